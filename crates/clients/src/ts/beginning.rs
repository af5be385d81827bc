//! Where a decoder can begin with a transport stream, and what it lacks if it cannot.
//!
//! H.264 and H.265 need parameter sets in front of their first picture; AAC in LATM needs a StreamMuxConfig (ISO/IEC 14496-3 section
//! 1.7.3). ADTS says all of it in each frame. Other codecs begin where the stream says so, and are not checked; neither is what is
//! scrambled.

use crate::parameter_sets::{NalCodec, ParameterSets, UnitHeads};
use weir_ts::{Codec, ElementaryPiece};

/// Elementary streams that are followed. A stream of an operator's whole multiplex has fewer that viewers depend on.
const MOST_STREAMS: usize = 64;

/// The elementary streams that decoding depends on.
#[derive(Clone, Debug, Default)]
pub(super) struct Beginnings {
    streams: Vec<Stream>,
}

#[derive(Clone, Debug)]
struct Stream {
    pid: u16,
    codec: Codec,
    needed: bool,
    beginning: Beginning,
    has_begun: bool,
}

#[derive(Clone, Debug)]
enum Beginning {
    Pictures(Pictures),
    Latm(Latm),
    /// Not checked.
    Other,
}

impl Beginnings {
    /// A part of an elementary stream came.
    pub(super) fn take(&mut self, piece: &ElementaryPiece<'_>) {
        let known = self.streams.iter().position(|it| it.pid == piece.pid && it.codec == piece.codec);
        let at = match known {
            Some(at) => at,
            None if self.streams.len() < MOST_STREAMS => {
                // A new program map may have given the PID to another codec.
                self.streams.retain(|it| it.pid != piece.pid);
                self.streams.push(Stream::new(piece));
                self.streams.len() - 1
            }
            None => return,
        };
        let stream = &mut self.streams[at];
        stream.needed = piece.needed;
        stream.has_begun |= match &mut stream.beginning {
            Beginning::Pictures(pictures) => pictures.take(piece),
            Beginning::Latm(latm) => latm.take(piece),
            Beginning::Other => piece.random_access,
        };
    }

    /// Whether a decoder can begin with one of the programs.
    pub(super) fn has_begun(&self) -> bool {
        self.streams.iter().any(|it| it.needed && it.has_begun) && !self.lacks_sound()
    }

    /// Whether there is sound beside pictures, and none of it can be decoded.
    fn lacks_sound(&self) -> bool {
        let is_latm = |it: &&Stream| it.codec == Codec::AacLatm;
        let mut sound = self.streams.iter().filter(|it| !it.needed).peekable();
        sound.peek().is_some() && sound.all(|it| is_latm(&it) && !it.has_begun)
    }

    /// What is missing of the first stream in which decoding could have begun without it.
    pub(super) fn missing(&self) -> Option<String> {
        self.streams.iter().filter(|it| !it.has_begun).find_map(Stream::missing)
    }
}

impl Stream {
    fn new(piece: &ElementaryPiece<'_>) -> Self {
        let beginning = match piece.codec {
            Codec::H264 => Beginning::Pictures(Pictures::new(NalCodec::H264)),
            Codec::H265 => Beginning::Pictures(Pictures::new(NalCodec::H265)),
            Codec::AacLatm => Beginning::Latm(Latm::default()),
            _ => Beginning::Other,
        };
        Self { pid: piece.pid, codec: piece.codec, needed: piece.needed, beginning, has_begun: false }
    }

    fn missing(&self) -> Option<String> {
        let what = match &self.beginning {
            Beginning::Pictures(pictures) => pictures.sets.missing().filter(|_| pictures.missed)?,
            Beginning::Latm(latm) if latm.frames > 0 => "StreamMuxConfig".to_owned(),
            Beginning::Latm(_) => return None,
            Beginning::Other => return None,
        };
        Some(format!("{what} of the {} on PID {}", self.codec, self.pid))
    }
}

/// Pictures that are made of NAL units.
#[derive(Clone, Debug)]
struct Pictures {
    sets: ParameterSets,
    heads: UnitHeads,
    /// Decoding can begin with the access unit under way, if the parameter sets are there.
    is_start: bool,
    /// Such an access unit came without them.
    missed: bool,
}

impl Pictures {
    fn new(codec: NalCodec) -> Self {
        Self { sets: ParameterSets::new(codec), heads: UnitHeads::default(), is_start: false, missed: false }
    }

    /// Whether a decoder can begin with this part.
    fn take(&mut self, piece: &ElementaryPiece<'_>) -> bool {
        let Self { sets, heads, is_start, missed } = self;
        let mut begins = false;
        let mut unit = |unit: &[u8], is_start: &mut bool| {
            let codec = sets.codec();
            *is_start |= sets.take(unit) || codec.is_random_access(unit) || codec.is_recovery_point(unit);
            begins |= *is_start && sets.are_whole();
        };
        if piece.start {
            heads.end(&mut |head| unit(head, is_start));
            *missed |= *is_start;
            *is_start = piece.random_access;
        }
        heads.feed(piece.bytes, &mut |head| unit(head, is_start));
        begins
    }
}

/// AAC in LATM: frames behind a header of three bytes (ISO/IEC 14496-3 section 1.7.2.1).
#[derive(Clone, Debug, Default)]
struct Latm {
    /// The first bytes of the frame under way: its header, and the byte that says whether it has a configuration.
    head: [u8; 4],
    filled: usize,
    /// How many bytes of the frame are to come.
    rest: usize,
    /// Where the next frame begins is unknown until the next PES packet.
    is_lost: bool,
    /// Frames that begin where they should.
    frames: u64,
}

impl Latm {
    /// The first 11 bits of a frame.
    const SYNC: u16 = 0x2B7;

    /// Whether a decoder can begin with a frame that begins here.
    fn take(&mut self, piece: &ElementaryPiece<'_>) -> bool {
        let mut bytes = piece.bytes;
        if piece.start {
            (self.filled, self.rest, self.is_lost) = (0, 0, false);
            // Frames that do not begin with a PES packet are not looked for, and not checked.
            if bytes.len() >= 2 && u16::from_be_bytes([bytes[0], bytes[1]]) >> 5 != Self::SYNC {
                return true;
            }
        }
        while !bytes.is_empty() && !self.is_lost {
            let skipped = self.rest.min(bytes.len());
            (self.rest, bytes) = (self.rest - skipped, &bytes[skipped..]);
            let Some((first, behind)) = bytes.split_first().filter(|_| self.rest == 0) else { break };
            self.head[self.filled] = *first;
            (self.filled, bytes) = ((self.filled + 1) % self.head.len(), behind);
            if self.filled == 0 {
                let [a, b, c, element] = self.head;
                self.is_lost = u16::from_be_bytes([a, b]) >> 5 != Self::SYNC;
                if !self.is_lost {
                    self.frames += 1;
                    self.rest = (usize::from(b & 0x1F) << 8 | usize::from(c)).saturating_sub(1);
                    // useSameStreamMux (section 1.7.3.1).
                    if element & 0x80 == 0 {
                        return true;
                    }
                }
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPS: &[u8] = &[0, 0, 0, 1, 0x67, 66, 0, 30];
    const PPS: &[u8] = &[0, 0, 0, 1, 0x68, 0xCE];
    const IDR: &[u8] = &[0, 0, 0, 1, 0x65, 0x88, 1, 2];
    const SLICE: &[u8] = &[0, 0, 0, 1, 0x41, 0x9A, 1, 2];
    const RECOVERY: &[u8] = &[0, 0, 0, 1, 0x06, 6, 1, 0xC4, 0x80];

    fn piece(codec: Codec, needed: bool, start: bool, bytes: &[u8]) -> ElementaryPiece<'_> {
        let pid = if codec.is_video() { 256 } else { 257 };
        ElementaryPiece { pid, codec, needed, start, random_access: false, times: None, bytes }
    }

    /// Gives it access units of H.264, each in parts of this size, and one more that begins nothing.
    fn pictures(units: &[&[&[u8]]], size: usize) -> Beginnings {
        let mut beginnings = Beginnings::default();
        for unit in units.iter().chain([&[SLICE][..]].iter()) {
            for (at, bytes) in unit.concat().chunks(size).enumerate() {
                beginnings.take(&piece(Codec::H264, true, at == 0, bytes));
            }
        }
        beginnings
    }

    #[test]
    fn pictures_begin_behind_their_parameter_sets_however_they_are_cut() {
        for size in [1, 3, 7, 100] {
            for units in [
                &[&[SPS, PPS, IDR][..]][..],
                &[&[SLICE], &[SLICE], &[SPS, PPS, IDR]],
                &[&[SPS, PPS, RECOVERY, SLICE]],
                // Parameter sets that come once, in front of a picture that nothing can begin with.
                &[&[PPS], &[SPS, SLICE], &[IDR]],
                &[&[SPS, PPS, SLICE], &[RECOVERY, SLICE]],
            ] {
                let beginnings = pictures(units, size);
                assert!(beginnings.has_begun(), "{units:?} by {size}");
                assert_eq!(beginnings.missing(), None);
            }
            for (units, missing) in [
                (&[&[IDR][..], &[SLICE]][..], Some("SPS and PPS")),
                (&[&[SPS, IDR], &[SLICE]], Some("PPS")),
                (&[&[PPS, RECOVERY, SLICE]], Some("SPS")),
                // Within a group of pictures nothing is missing yet.
                (&[&[SLICE], &[SLICE]], None),
                (&[&[PPS, SLICE], &[PPS, SLICE]], None),
            ] {
                let beginnings = pictures(units, size);
                assert!(!beginnings.has_begun(), "{units:?} by {size}");
                let words = missing.map(|missing| format!("{missing} of the H.264 on PID 256"));
                assert_eq!(beginnings.missing(), words);
            }
        }
    }

    #[test]
    fn what_the_stream_marks_as_random_access_begins_a_codec_that_is_not_checked() {
        for (codec, needs_sets) in [(Codec::H264, true), (Codec::Mpeg2Video, false), (Codec::H266, false)] {
            let mut beginnings = Beginnings::default();
            beginnings.take(&piece(codec, true, true, SLICE));
            assert!(!beginnings.has_begun());
            beginnings.take(&ElementaryPiece { random_access: true, ..piece(codec, true, true, SLICE) });
            assert_eq!(beginnings.has_begun(), !needs_sets, "{codec}");
            let marked = [SPS, PPS, SLICE].concat();
            beginnings.take(&ElementaryPiece { random_access: true, ..piece(codec, true, true, &marked) });
            beginnings.take(&piece(codec, true, true, SLICE));
            assert!(beginnings.has_begun(), "{codec}");
        }
    }

    /// A frame with a configuration, or without one.
    fn frame(has_configuration: bool, length: u16) -> Vec<u8> {
        let [high, low] = length.to_be_bytes();
        let mut frame = vec![0x56, 0xE0 | high, low, if has_configuration { 0x20 } else { 0x80 }];
        frame.resize(usize::from(length) + 3, 0x56);
        frame
    }

    /// Sound in PES packets of these frames, each cut into parts of this size.
    fn sound(needed: bool, packets: &[Vec<u8>], size: usize) -> Beginnings {
        let mut beginnings = Beginnings::default();
        for packet in packets {
            for (at, bytes) in packet.chunks(size).enumerate() {
                beginnings.take(&piece(Codec::AacLatm, needed, at == 0, bytes));
            }
        }
        beginnings
    }

    #[test]
    fn latm_begins_with_a_configuration_wherever_in_a_packet_it_is() {
        let plain = [frame(false, 300), frame(false, 17), frame(false, 1)].concat();
        let with = [frame(false, 300), frame(false, 17), frame(true, 200)].concat();
        for size in [1, 2, 5, 184, 1_000] {
            let without = sound(true, &[plain.clone(), plain.clone()], size);
            assert!(!without.has_begun());
            assert_eq!(without.missing().unwrap(), "StreamMuxConfig of the AAC (LATM) on PID 257");
            assert!(sound(true, &[plain.clone(), with.clone()], size).has_begun(), "by {size}");
        }
        // Bytes that are no frame end the search until the next packet.
        let broken = [&[0x56, 0xE0, 2, 0x80, 9, 9][..], &frame(true, 9)].concat();
        assert!(!sound(true, &[broken, plain], 7).has_begun());
    }

    #[test]
    fn frames_that_do_not_begin_with_a_packet_are_not_checked() {
        let across = [&[1, 2, 3][..], &frame(false, 300)].concat();
        assert!(sound(true, &[across], 100).has_begun());
    }

    #[test]
    fn sound_without_its_configuration_holds_up_pictures() {
        let mut beginnings = pictures(&[&[SPS, PPS, IDR]], 50);
        assert!(beginnings.has_begun());
        beginnings.take(&piece(Codec::AacLatm, false, true, &frame(false, 20)));
        assert!(!beginnings.has_begun());
        assert_eq!(beginnings.missing().unwrap(), "StreamMuxConfig of the AAC (LATM) on PID 257");
        beginnings.take(&piece(Codec::AacLatm, false, true, &frame(true, 20)));
        assert!(beginnings.has_begun());
    }

    #[test]
    fn a_stream_of_every_pid_is_bounded() {
        let mut beginnings = Beginnings::default();
        for pid in 0..8_192 {
            beginnings.take(&ElementaryPiece { pid, ..piece(Codec::H264, true, true, IDR) });
        }
        assert_eq!(beginnings.streams.len(), MOST_STREAMS);
    }
}
