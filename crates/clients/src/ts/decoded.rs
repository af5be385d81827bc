//! The pictures and the sound of a transport stream as a decoder is given them: access units out of PES packets.

use crate::decoding::DecodedWitness;
use crate::parameter_sets::NalCodec;
use weir_media::Framing;
use weir_metrics::Moment;
use weir_ts::{Codec, ElementaryPiece};

/// The longest PES packet that is put together: larger than any picture of H.264 up to level 5.2 (ITU-T H.264 table A-1, MinCR).
const LONGEST_UNIT: usize = 8 * 1024 * 1024;

/// The streams of one program that are decoded: its first of pictures, and its first of sound.
pub(super) struct DecodedStreams {
    witness: DecodedWitness,
    pictures: Option<Unit>,
    sound: Option<Unit>,
}

/// A PES packet under way.
struct Unit {
    pid: u16,
    codec: Codec,
    bytes: Vec<u8>,
    /// Its beginning has come.
    has_begun: bool,
}

impl Unit {
    /// Takes a part, and gives out what is whole with it. What is too long is left out.
    fn take(&mut self, piece: &ElementaryPiece<'_>) -> Option<Vec<u8>> {
        let before = if piece.start && self.has_begun { Some(std::mem::take(&mut self.bytes)) } else { None };
        if piece.start {
            self.bytes.clear();
            self.has_begun = true;
        }
        if self.bytes.len() + piece.bytes.len() > LONGEST_UNIT {
            self.has_begun = false;
        }
        if self.has_begun {
            self.bytes.extend_from_slice(piece.bytes);
        }
        before
    }
}

impl DecodedStreams {
    pub(super) fn new(witness: DecodedWitness) -> Self {
        Self { witness, pictures: None, sound: None }
    }

    /// A part of an elementary stream came.
    pub(super) fn take(&mut self, piece: &ElementaryPiece<'_>, now: Moment) {
        let unit = match piece.codec {
            Codec::H264 | Codec::H265 => &mut self.pictures,
            Codec::Aac => &mut self.sound,
            _ => return,
        };
        let (pid, codec) = (piece.pid, piece.codec);
        let unit = unit.get_or_insert_with(|| Unit { pid, codec, bytes: Vec::new(), has_begun: false });
        if (unit.pid, unit.codec) != (pid, codec) {
            return;
        }
        let Some(bytes) = unit.take(piece) else { return };
        match codec {
            Codec::H264 => self.witness.picture(NalCodec::H264, &bytes, Framing::AnnexB, now),
            Codec::H265 => self.witness.picture(NalCodec::H265, &bytes, Framing::AnnexB, now),
            _ => {
                if let Some(frames) = adts_frames(&bytes) {
                    self.witness.framed_sound(bytes, frames, self.pictures.is_none(), now);
                }
            }
        }
    }
}

/// How many frames of ADTS these bytes are (ISO/IEC 14496-3 section 1.A.2.2); `None` where they are not whole ones.
fn adts_frames(mut bytes: &[u8]) -> Option<u64> {
    let mut frames = 0;
    while !bytes.is_empty() {
        let [0xFF, second, _, a, b, c, ..] = *bytes else { return None };
        let length = usize::from(a & 3) << 11 | usize::from(b) << 3 | usize::from(c >> 5);
        if second & 0xF6 != 0xF0 || length < 7 {
            return None;
        }
        bytes = bytes.get(length..)?;
        frames += 1;
    }
    Some(frames)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_media::adts_header;

    #[test]
    fn frames_of_sound_are_counted_where_they_are_whole() {
        let frame =
            |length: usize| [&adts_header(&[0x11, 0x90], length).unwrap()[..], &vec![0xFF; length]].concat();
        assert_eq!(adts_frames(&[frame(200), frame(0), frame(1_000)].concat()), Some(3));
        let mut cut = [frame(200), frame(30)].concat();
        cut.pop();
        assert_eq!(adts_frames(&cut), None);
        assert_eq!(adts_frames(&frame(9)[1..]), None);
        assert_eq!(adts_frames(&[]), Some(0));
        let short = [0xFF, 0xF1, 0, 0, 0, 0x1F, 0xFC];
        assert_eq!(adts_frames(&short), None, "a length of no frame would never end");
    }

    #[test]
    fn a_unit_is_whole_when_the_next_begins() {
        let mut unit = Unit { pid: 256, codec: Codec::H264, bytes: Vec::new(), has_begun: false };
        let piece = |start, bytes: &'static [u8]| ElementaryPiece {
            pid: 256,
            codec: Codec::H264,
            needed: true,
            start,
            random_access: false,
            times: None,
            bytes,
        };
        assert_eq!(unit.take(&piece(false, &[9])), None);
        assert_eq!(unit.take(&piece(true, &[1])), None);
        assert_eq!(unit.take(&piece(false, &[2, 3])), None);
        assert_eq!(unit.take(&piece(true, &[4])), Some(vec![1, 2, 3]));
    }
}
