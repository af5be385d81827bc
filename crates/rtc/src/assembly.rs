//! Payloads into access units, of which no more than a bounded beginning is kept.

use crate::codec::VideoCodec;
use crate::piece::Piece;

/// Puts the payloads of a stream together, in the order of their sequence numbers.
///
/// A packet that comes late is not put back: the access unit is then not complete. What is kept of it ends where the
/// first packet is missing.
#[derive(Clone, Debug)]
pub struct Assembler {
    codec: VideoCodec,
    limit: usize,
    bytes: Vec<u8>,
    /// Where the length of the unit under way stands, if it was begun; of VP8 and VP9, where the frame under way does.
    unit_at: Option<usize>,
    timestamp: Option<u32>,
    next: Option<u64>,
    intact: bool,
    keyframe: bool,
    length: usize,
}

/// An access unit, or as much of it as is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccessUnit<'a> {
    /// Its RTP time stamp.
    pub timestamp: u32,
    /// Its NAL units or OBUs, each after its length in four bytes, or its frame of VP8 or VP9, up to the limit and to the first packet
    /// that is missing. The last unit may be shorter than it says.
    pub bytes: &'a [u8],
    /// The length of all of it that came, kept or not, framed in the same way.
    pub length: usize,
    /// No packet is missing.
    pub complete: bool,
    /// Decoding can begin with it: an IDR slice of H.264, an intra random access point of H.265, a keyframe of the others.
    pub keyframe: bool,
}

impl Assembler {
    /// Keeps up to `limit` bytes of each access unit.
    pub fn new(codec: VideoCodec, limit: usize) -> Self {
        Self {
            codec,
            limit,
            bytes: Vec::new(),
            unit_at: None,
            timestamp: None,
            next: None,
            intact: true,
            keyframe: false,
            length: 0,
        }
    }

    /// Begins again with the next packet, whatever its number.
    pub fn restart(&mut self) {
        *self = Self::new(self.codec, self.limit);
    }

    /// Takes a packet: its extended sequence number, time stamp, marker and decrypted payload. `finished` gets each
    /// access unit that ends with it: with the marker, or because another one has begun.
    pub fn push(
        &mut self,
        number: u64,
        timestamp: u32,
        marker: bool,
        payload: &[u8],
        mut finished: impl FnMut(AccessUnit<'_>),
    ) {
        if self.next.is_some_and(|next| number < next) {
            return;
        }
        let gap = self.next.is_some_and(|next| number > next);
        self.next = Some(number + 1);
        if payload.is_empty() {
            // Padding only, as packets are that probe for bandwidth.
            self.intact &= !gap;
            return;
        }
        if self.timestamp.is_some_and(|this| this != timestamp) {
            // Whatever is missing may have been the end of this one.
            self.intact &= !gap;
            self.finish(&mut finished);
        }
        if gap {
            self.intact = false;
        }
        self.timestamp = Some(timestamp);
        let codec = self.codec;
        if !codec.is_key_by_unit() {
            self.keyframe |= codec.hints(payload).keyframe == Some(true);
        }
        if codec.pieces(payload, &mut |piece| self.piece(piece)).is_err() {
            self.intact = false;
        }
        if marker {
            self.finish(&mut finished);
        }
    }

    fn finish(&mut self, finished: &mut impl FnMut(AccessUnit<'_>)) {
        if self.codec.has_units() {
            self.intact &= self.unit_at.is_none();
            self.end_unit();
        }
        self.unit_at = None;
        if let Some(timestamp) = self.timestamp.take() {
            finished(AccessUnit {
                timestamp,
                bytes: &self.bytes,
                length: self.length,
                complete: self.intact,
                keyframe: self.keyframe,
            });
        }
        self.bytes.clear();
        (self.intact, self.keyframe, self.length) = (true, false, 0);
    }

    fn piece(&mut self, piece: Piece<'_>) {
        if !self.codec.has_units() {
            if piece.start {
                self.unit_at = Some(self.length);
            } else if self.unit_at.is_none() {
                self.intact = false;
            }
            return self.extend(piece.bytes);
        }
        if piece.start {
            let header = piece.header.as_slice();
            if header.is_empty() && piece.bytes.is_empty() {
                return;
            }
            self.end_unit();
            self.keyframe |=
                header.first().or(piece.bytes.first()).is_some_and(|first| self.codec.is_key_unit(*first));
            self.unit_at = Some(self.length);
            self.extend(&[0; 4]);
            self.extend(header);
        } else if self.unit_at.is_none() {
            self.intact = false;
        }
        self.extend(piece.bytes);
        if piece.end {
            self.end_unit();
        }
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = self.limit.saturating_sub(self.bytes.len());
        // Behind a gap nothing is kept: it would not be where it says.
        if self.intact && self.bytes.len() == self.length {
            self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
        self.length += bytes.len();
    }

    fn end_unit(&mut self) {
        let Some(at) = self.unit_at.take() else { return };
        let length = u32::try_from(self.length - at - 4).unwrap_or(u32::MAX);
        if let Some(place) = self.bytes.get_mut(at..at + 4) {
            place.copy_from_slice(&length.to_be_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h264::Packetiser;

    const UNITS: [&[u8]; 4] = [&[9, 0x10], &[6, 5, 1, 7, 0x80], &[0x65; 70], &[0x65; 9]];

    /// The packets of `frames` access units: number, time stamp, marker, payload.
    fn packets(frames: u32) -> Vec<(u64, u32, bool, Vec<u8>)> {
        let mut packets = Vec::new();
        for frame in 0..frames {
            Packetiser::new(30).packetise(UNITS, |payload, last| {
                packets.push((packets.len() as u64, frame, last, payload.to_vec()));
            });
        }
        packets
    }

    fn assemble(
        packets: &[(u64, u32, bool, Vec<u8>)],
        limit: usize,
    ) -> Vec<(u32, Vec<u8>, usize, bool, bool)> {
        let mut assembler = Assembler::new(VideoCodec::H264, limit);
        let mut all = Vec::new();
        for (number, timestamp, marker, payload) in packets {
            assembler.push(*number, *timestamp, *marker, payload, |unit| {
                all.push((unit.timestamp, unit.bytes.to_vec(), unit.length, unit.complete, unit.keyframe));
            });
        }
        all
    }

    fn framed() -> Vec<u8> {
        UNITS.iter().flat_map(|unit| [&(unit.len() as u32).to_be_bytes()[..], unit].concat()).collect()
    }

    #[test]
    fn packets_of_padding_only_have_numbers_and_break_nothing() {
        let mut packets = packets(3);
        let behind_first = packets.iter().position(|packet| packet.2).unwrap() + 1;
        let inside_second = behind_first + 3;
        for at in [inside_second, behind_first] {
            let timestamp = packets[at - 1].1;
            packets.insert(at, (0, timestamp, false, Vec::new()));
        }
        for (number, packet) in (0..).zip(&mut packets) {
            packet.0 = number;
        }
        let whole = assemble(&packets, usize::MAX);
        assert_eq!(
            whole.iter().map(|unit| (unit.0, unit.3)).collect::<Vec<_>>(),
            [(0, true), (1, true), (2, true)]
        );
        packets.remove(behind_first);
        assert!(!assemble(&packets, usize::MAX)[1].3, "what is missing may have been a packet of a frame");
    }

    #[test]
    fn access_units_come_out_as_they_went_in() {
        let units = assemble(&packets(2), usize::MAX);
        let length = framed().len();
        assert_eq!(units, [(0, framed(), length, true, true), (1, framed(), length, true, true)]);
    }

    #[test]
    fn only_the_beginning_is_kept() {
        let (_, bytes, length, complete, _) = assemble(&packets(1), 25).remove(0);
        assert_eq!((&bytes[..], length, complete), (&framed()[..25], framed().len(), true));
    }

    #[test]
    fn a_gap_ends_what_is_kept_and_spoils_one_access_unit() {
        let whole = packets(3);
        let per_frame = whole.len() / 3;
        for lost in 1..per_frame - 1 {
            let mut packets = whole.clone();
            packets.remove(per_frame + lost);
            let units = assemble(&packets, usize::MAX);
            let complete: Vec<_> = units.iter().map(|unit| unit.3).collect();
            assert_eq!(complete, [true, false, true], "{lost}");
            let kept = &units[1].1;
            // Lengths apart, it is the beginning of the whole.
            assert_eq!(kept[..2 + 4], framed()[..2 + 4]);
            assert!(kept.len() < framed().len());
        }
    }

    #[test]
    fn a_lost_marker_ends_with_the_next_time_stamp() {
        let whole = packets(2);
        let mut lost = whole.clone();
        lost.remove(whole.len() / 2 - 1);
        let complete: Vec<_> = assemble(&lost, 1000).iter().map(|unit| (unit.0, unit.3)).collect();
        assert_eq!(complete, [(0, false), (1, false)]);
        let unmarked: Vec<_> =
            whole.iter().cloned().map(|packet| (packet.0, packet.1, false, packet.3)).collect();
        assert!(assemble(&unmarked, 1000)[0].3);
    }

    #[test]
    fn late_packets_are_passed_over() {
        let mut packets = packets(1);
        packets.swap(1, 2);
        assert!(!assemble(&packets, 1000)[0].3);
    }

    /// The frames of packets of another codec: completeness, whether it is a keyframe, and what is kept.
    fn frames(codec: VideoCodec, packets: &[(u64, u32, bool, &[u8])]) -> Vec<(bool, bool, Vec<u8>)> {
        let mut assembler = Assembler::new(codec, 1000);
        let mut all = Vec::new();
        for (number, timestamp, marker, payload) in packets {
            assembler.push(*number, *timestamp, *marker, payload, |unit| {
                assert!(!unit.complete || unit.length == unit.bytes.len());
                all.push((unit.complete, unit.keyframe, unit.bytes.to_vec()));
            });
        }
        all
    }

    #[test]
    fn frames_without_units_are_put_together_as_they_are() {
        // VP8: a keyframe of two packets, and a frame whose first packet is missing.
        let vp8: [(u64, u32, bool, &[u8]); 4] = [
            (1, 0, false, &[0x10, 0x10, 1]),
            (2, 0, true, &[0x00, 2, 3]),
            (4, 9, true, &[0x00, 4]),
            (5, 18, true, &[0x10, 0x11, 5]),
        ];
        let expected =
            [(true, true, vec![0x10, 1, 2, 3]), (false, false, vec![]), (true, false, vec![0x11, 5])];
        assert_eq!(frames(VideoCodec::Vp8, &vp8), expected);
        // VP9: two layers of one picture.
        let vp9: [(u64, u32, bool, &[u8]); 2] =
            [(1, 0, false, &[0xB8, 5, 0x00, 0x82]), (2, 0, true, &[0xB8, 5, 0x03, 0x86])];
        assert_eq!(frames(VideoCodec::Vp9, &vp9), [(true, true, vec![0x82, 0x86])]);
    }

    #[test]
    fn obus_and_nal_units_are_put_together_of_fragments() {
        let av1: [(u64, u32, bool, &[u8]); 3] = [
            (1, 0, false, &[0x68, 3, 0x08, 7, 7, 0x30, 0x10]),
            (2, 0, true, &[0x90, 8, 9]),
            (3, 9, true, &[0x90, 8, 9]),
        ];
        let whole = vec![0, 0, 0, 3, 0x08, 7, 7, 0, 0, 0, 4, 0x30, 0x10, 8, 9];
        assert_eq!(frames(VideoCodec::Av1, &av1), [(true, true, whole), (false, false, vec![])]);
        let h265: [(u64, u32, bool, &[u8]); 2] =
            [(1, 0, false, &[0x62, 0x01, 0x93, 0xAF]), (2, 0, true, &[0x62, 0x01, 0x53, 8])];
        assert_eq!(frames(VideoCodec::H265, &h265), [(true, true, vec![0, 0, 0, 4, 0x26, 0x01, 0xAF, 8])]);
    }
}
