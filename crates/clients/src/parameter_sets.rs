//! What a decoder of H.264 or H.265 needs before its first picture, and which pictures can be the first, by the first bytes of NAL
//! units. Nothing here knows what carries them.

/// First bytes of a NAL unit that are looked at: some supplemental messages in front of a recovery point.
pub(crate) const UNIT_HEAD: usize = 64;

/// `payloadType` of a recovery point (ITU-T H.264 section D.1.1, H.265 section D.2.1).
const RECOVERY_POINT: usize = 6;

/// A codec whose stream is made of NAL units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NalCodec {
    H264,
    H265,
}

impl NalCodec {
    /// `nal_unit_type` in the first byte of a unit.
    pub(crate) fn unit_type(self, first: u8) -> u8 {
        match self {
            Self::H264 => first & 0x1F,
            Self::H265 => first >> 1 & 0x3F,
        }
    }

    /// Types and names of parameter sets (ITU-T H.264 table 7-1, H.265 table 7-1).
    fn sets(self) -> &'static [(u8, &'static str)] {
        match self {
            Self::H264 => &[(7, "SPS"), (8, "PPS")],
            Self::H265 => &[(32, "VPS"), (33, "SPS"), (34, "PPS")],
        }
    }

    /// Whether a unit is a slice of a picture that needs no other: an IDR picture of H.264, any intra random access point of H.265.
    pub(crate) fn is_random_access(self, unit: &[u8]) -> bool {
        unit.first().is_some_and(|first| match (self, self.unit_type(*first)) {
            (Self::H264, kind) => kind == 5,
            (Self::H265, kind) => (16..=23).contains(&kind),
        })
    }

    /// Whether a unit has the message that decoding can begin here although no picture is an IDR, as with intra refresh (ITU-T H.264
    /// section D.2.8, H.265 section D.3.8).
    pub(crate) fn is_recovery_point(self, unit: &[u8]) -> bool {
        let (kind, header) = match self {
            Self::H264 => (6, 1),
            Self::H265 => (39, 2),
        };
        unit.first().is_some_and(|first| self.unit_type(*first) == kind)
            && has_message(unit.get(header..).unwrap_or_default(), RECOVERY_POINT)
    }
}

impl std::fmt::Display for NalCodec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::H264 => "H.264",
            Self::H265 => "H.265",
        })
    }
}

/// Whether supplemental messages, one behind the other (ITU-T H.264 section 7.3.2.3.1), have one of this type.
fn has_message(messages: &[u8], wanted: usize) -> bool {
    let mut zeros = 0;
    // Bytes that prevent the emulation of start codes (section 7.3.1) are in no length.
    let mut bytes = messages.iter().copied().filter(|byte| {
        let is_escape = zeros >= 2 && *byte == 3;
        zeros = if *byte == 0 { zeros + 1 } else { 0 };
        !is_escape
    });
    while let Some(kind) = message_number(&mut bytes) {
        if kind == wanted {
            return true;
        }
        let Some(length) = message_number(&mut bytes) else { return false };
        if length > 0 && bytes.nth(length - 1).is_none() {
            return false;
        }
    }
    false
}

/// A type or a length: 255 for each byte of ones, and the byte behind them.
fn message_number(bytes: &mut impl Iterator<Item = u8>) -> Option<usize> {
    let mut number = 0;
    loop {
        let byte = bytes.next()?;
        number += usize::from(byte);
        if byte != 0xFF {
            return Some(number);
        }
    }
}

/// Which parameter sets of a stream have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ParameterSets {
    codec: NalCodec,
    /// A bit for each of [`NalCodec::sets`].
    seen: u8,
}

impl ParameterSets {
    pub(crate) fn new(codec: NalCodec) -> Self {
        Self { codec, seen: 0 }
    }

    pub(crate) fn codec(&self) -> NalCodec {
        self.codec
    }

    /// A NAL unit came; whether it is a parameter set that stands in front of a sequence of pictures, and not of each.
    pub(crate) fn take(&mut self, unit: &[u8]) -> bool {
        let kind = unit.first().map(|first| self.codec.unit_type(*first));
        let position = self.codec.sets().iter().position(|(set, _)| Some(*set) == kind);
        if let Some(position) = position {
            self.seen |= 1 << position;
        }
        position.is_some_and(|position| position + 1 < self.codec.sets().len())
    }

    /// Whether there is one of each kind.
    pub(crate) fn are_whole(&self) -> bool {
        usize::from(self.seen) + 1 == 1 << self.codec.sets().len()
    }

    /// Those that are missing, in words.
    pub(crate) fn missing(&self) -> Option<String> {
        let sets = self.codec.sets().iter().enumerate();
        let missing: Vec<_> =
            sets.filter(|(position, _)| self.seen & 1 << position == 0).map(|(_, (_, name))| *name).collect();
        let (last, before) = missing.split_last()?;
        Some(if before.is_empty() { (*last).to_owned() } else { format!("{} and {last}", before.join(", ")) })
    }
}

/// Finds the NAL units of a byte stream that comes in pieces (ITU-T H.264 annex B), and keeps the first bytes of each.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnitHeads {
    zeros: u8,
    /// Whether the bytes are those of a unit whose head is not yet full.
    is_open: bool,
    head: Vec<u8>,
}

impl UnitHeads {
    /// The next bytes; `unit` gets the first bytes of each unit once they are all there.
    pub(crate) fn feed(&mut self, bytes: &[u8], unit: &mut impl FnMut(&[u8])) {
        for &byte in bytes {
            if self.zeros >= 2 && byte == 1 {
                self.end(unit);
                self.is_open = true;
                continue;
            }
            self.zeros = if byte == 0 { self.zeros.saturating_add(1) } else { 0 };
            if self.is_open {
                self.head.push(byte);
                if self.head.len() == UNIT_HEAD {
                    unit(&self.head);
                    self.head.clear();
                    self.is_open = false;
                }
            }
        }
    }

    /// The bytes end here, as at the end of an access unit.
    pub(crate) fn end(&mut self, unit: &mut impl FnMut(&[u8])) {
        if std::mem::take(&mut self.is_open) {
            // Zeros in front of a start code belong to no unit.
            let end = self.head.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            if end > 0 {
                unit(&self.head[..end]);
            }
        }
        self.head.clear();
        self.zeros = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let mut sets = ParameterSets::new(NalCodec::H264);
        assert_eq!(sets.missing().unwrap(), "SPS and PPS");
        assert!(sets.take(&[0x67, 66]) && !sets.take(&[0x65]) && !sets.take(&[]));
        assert_eq!((sets.are_whole(), sets.missing().unwrap()), (false, "PPS".to_owned()));
        assert!(!sets.take(&[0x28, 1]) && sets.are_whole());
        assert_eq!(sets.missing(), None);
        let mut sets = ParameterSets::new(NalCodec::H265);
        assert_eq!(sets.missing().unwrap(), "VPS, SPS and PPS");
        for first in [0x40, 0x42, 0x44] {
            assert!(!sets.are_whole());
            assert_eq!(sets.take(&[first, 1]), first != 0x44);
        }
        assert!(sets.are_whole());
    }

    #[test]
    fn a_recovery_point_is_found_behind_other_messages() {
        let codec = NalCodec::H264;
        for unit in [
            &[0x06, 6, 1, 0x80][..],
            &[0x06, 6],
            &[0x06, 0, 1, 9, 1, 2, 7, 7, 6, 1, 0xC4, 0x80],
            // A byte of emulation prevention in front of it.
            &[0x06, 1, 3, 0, 0, 3, 1, 6, 1, 0xC4, 0x80],
        ] {
            assert!(codec.is_recovery_point(unit), "{unit:?}");
        }
        for unit in [
            &[][..],
            &[0x06],
            &[0x06, 5, 1, 0x80],
            &[0x06, 5, 4, 6, 6, 6, 6, 0x80],
            &[0x06, 0xFF, 0xFF],
            &[0x06, 5, 0xFF, 0xFF, 6],
            &[0x65, 6, 1],
        ] {
            assert!(!codec.is_recovery_point(unit), "{unit:?}");
        }
        assert!(NalCodec::H265.is_recovery_point(&[0x4E, 1, 6, 1, 0x80]));
        assert!(!NalCodec::H265.is_recovery_point(&[0x4E, 6, 1, 1, 0x80]));
    }

    #[test]
    fn units_are_found_however_the_bytes_are_cut() {
        let long = [0x65; 3 * UNIT_HEAD];
        let stream =
            [&[0, 0, 0, 1, 0x67, 66, 0, 30, 0, 0, 0, 1, 0x68, 5, 0, 0, 1][..], &long, &[0, 0, 1, 0x41, 9]];
        let stream = stream.concat();
        for size in [1, 2, 3, 5, 7, stream.len()] {
            let mut heads = UnitHeads::default();
            let mut units: Vec<Vec<u8>> = Vec::new();
            let mut keep = |unit: &[u8]| units.push(unit.to_vec());
            stream.chunks(size).for_each(|piece| heads.feed(piece, &mut keep));
            heads.end(&mut keep);
            let expected = [&[0x67, 66, 0, 30][..], &[0x68, 5], &long[..UNIT_HEAD], &[0x41, 9]];
            assert_eq!(units, expected, "in pieces of {size}");
        }
    }
}
