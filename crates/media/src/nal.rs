//! NAL units (H.264, clause 7.3.1): taking an access unit apart, and emulation prevention. Nothing here
//! knows what is inside a NAL unit beyond its first byte.

/// How the NAL units of an access unit follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Framing {
    /// Each after its length in four bytes, as in FLV and MP4 ("AVCC"; ISO/IEC 14496-15, clause 5.3.3).
    LengthPrefixed,
    /// Each after a start code, as in transport streams and `.h264` files (H.264, annex B).
    AnnexB,
}

/// nal_unit_type, H.264 table 7-1; only those that weir treats differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UnitType {
    /// A coded slice (types 1 to 5): from here on the picture itself follows.
    Slice {
        /// Type 5: the picture can be decoded with no other.
        idr: bool,
    },
    /// Supplemental enhancement information, 6.
    Sei,
    /// Sequence parameter set, 7.
    SequenceParameterSet,
    /// Picture parameter set, 8.
    PictureParameterSet,
    /// Access unit delimiter, 9.
    AccessUnitDelimiter,
    /// Any other.
    Other(u8),
}

impl UnitType {
    /// The type in the first byte of a NAL unit; `None` for an empty one.
    pub fn of(unit: &[u8]) -> Option<Self> {
        Some(match unit.first()? & 0x1f {
            kind @ 1..=5 => Self::Slice { idr: kind == 5 },
            6 => Self::Sei,
            7 => Self::SequenceParameterSet,
            8 => Self::PictureParameterSet,
            9 => Self::AccessUnitDelimiter,
            other => Self::Other(other),
        })
    }
}

/// The NAL units of an access unit, in order, without lengths and start codes. The access unit may be cut
/// short: its last unit is then shorter than announced.
pub fn units(access_unit: &[u8], framing: Framing) -> Units<'_> {
    let rest = match framing {
        Framing::LengthPrefixed => access_unit,
        Framing::AnnexB => after_start_code(access_unit),
    };
    Units { rest, framing }
}

/// Iterator over NAL units; see [`units`].
#[derive(Debug, Clone)]
pub struct Units<'a> {
    /// Length prefixed: starts with a length. Annex B: starts behind a start code.
    rest: &'a [u8],
    framing: Framing,
}

impl<'a> Iterator for Units<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        match self.framing {
            Framing::LengthPrefixed => {
                let (length, rest) = self.rest.split_first_chunk::<4>()?;
                let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
                let unit;
                (unit, self.rest) = rest.split_at(length.min(rest.len()));
                Some(unit)
            }
            Framing::AnnexB => {
                if self.rest.is_empty() {
                    return None;
                }
                let end = find_start_code(self.rest).unwrap_or(self.rest.len());
                let unit = without_trailing_zeros(&self.rest[..end]);
                self.rest = after_start_code(&self.rest[end..]);
                Some(unit)
            }
        }
    }
}

/// Appends `unit`, a NAL unit before emulation prevention, to `out` with the emulation prevention bytes of
/// clause 7.3.1 put in.
pub(crate) fn append_escaped(unit: &[u8], out: &mut Vec<u8>) {
    let mut zeros = 0;
    for &byte in unit {
        if zeros >= 2 && byte <= 3 {
            out.push(3);
            zeros = 0;
        }
        out.push(byte);
        zeros = if byte == 0 { zeros + 1 } else { 0 };
    }
}

/// The bytes of a NAL unit with the emulation prevention bytes taken out.
#[derive(Debug, Clone)]
pub(crate) struct UnescapedBytes<'a> {
    bytes: std::slice::Iter<'a, u8>,
    zeros: u8,
}

impl<'a> UnescapedBytes<'a> {
    pub(crate) fn new(unit: &'a [u8]) -> Self {
        Self { bytes: unit.iter(), zeros: 0 }
    }
}

impl Iterator for UnescapedBytes<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        let mut byte = *self.bytes.next()?;
        if self.zeros >= 2 && byte == 3 {
            self.zeros = 0;
            byte = *self.bytes.next()?;
        }
        self.zeros = if byte == 0 { self.zeros.saturating_add(1) } else { 0 };
        Some(byte)
    }
}

/// Where the next three-byte start code begins.
fn find_start_code(bytes: &[u8]) -> Option<usize> {
    bytes.windows(3).position(|window| window == [0, 0, 1])
}

fn after_start_code(bytes: &[u8]) -> &[u8] {
    find_start_code(bytes).map_or(&[], |at| &bytes[at + 3..])
}

/// trailing_zero_8bits and the zero_byte of the next start code (annex B.1.1) are not the unit's.
fn without_trailing_zeros(bytes: &[u8]) -> &[u8] {
    let end = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    &bytes[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn annex_b_with_long_and_short_start_codes_comes_apart() {
        let stream = [0, 0, 0, 1, 9, 0x10, 0, 0, 1, 7, 1, 2, 0, 0, 0, 1, 0x65, 3];
        let units: Vec<_> = units(&stream, Framing::AnnexB).collect();
        assert_eq!(units, [&[9, 0x10][..], &[7, 1, 2], &[0x65, 3]]);
    }

    #[test]
    fn a_cut_unit_is_given_as_far_as_it_goes() {
        let stream = [0, 0, 0, 2, 9, 0x10, 0, 0, 1, 0, 0x65, 3];
        let units: Vec<_> = units(&stream, Framing::LengthPrefixed).collect();
        assert_eq!(units, [&[9, 0x10][..], &[0x65, 3]]);
    }

    /// Bytes in which runs of zeros are common.
    fn sparse() -> impl Strategy<Value = Vec<u8>> {
        prop::collection::vec(prop_oneof![3 => Just(0u8), 2 => 0u8..=4, 1 => any::<u8>()], 0..200)
    }

    proptest! {
        #[test]
        fn escaping_is_undone_by_unescaping(mut unit in sparse()) {
            unit.push(0x80);
            let mut escaped = Vec::new();
            append_escaped(&unit, &mut escaped);
            prop_assert!(!escaped.windows(3).any(|window| window[..2] == [0, 0] && window[2] < 3));
            prop_assert_eq!(UnescapedBytes::new(&escaped).collect::<Vec<_>>(), unit);
        }

        #[test]
        fn both_framings_give_the_same_units(raw in prop::collection::vec(sparse(), 0..6)) {
            let mut length_prefixed = Vec::new();
            let mut annex_b = Vec::new();
            let mut expected = Vec::new();
            for mut unit in raw {
                unit.insert(0, 0x41);
                unit.push(0x80);
                let mut escaped = Vec::new();
                append_escaped(&unit, &mut escaped);
                length_prefixed.extend_from_slice(&(escaped.len() as u32).to_be_bytes());
                length_prefixed.extend_from_slice(&escaped);
                annex_b.extend_from_slice(&[0, 0, 0, 1]);
                annex_b.extend_from_slice(&escaped);
                expected.push(escaped);
            }
            prop_assert!(units(&length_prefixed, Framing::LengthPrefixed).eq(&expected));
            prop_assert!(units(&annex_b, Framing::AnnexB).eq(&expected));
        }

        #[test]
        fn any_bytes_come_apart_without_harm(bytes in sparse()) {
            for framing in [Framing::LengthPrefixed, Framing::AnnexB] {
                let total: usize = units(&bytes, framing).map(<[u8]>::len).sum();
                prop_assert!(total <= bytes.len());
            }
        }
    }
}
