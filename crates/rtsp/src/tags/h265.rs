//! Units of H.265: which of them are parameter sets.

/// In front of a picture: the kind of frame, the codec's name, and a composition time of three bytes.
pub(super) const PICTURE_HEADER: usize = 8;

/// Parameter sets (ITU-T H.265 table 7-1), in the order of the record.
const SETS: [u8; 3] = [32, 33, 34];

/// `nal_unit_type` in the first byte of a unit.
pub(super) fn unit_type(first: u8) -> u8 {
    first >> 1 & 0x3F
}

/// The place of a parameter set among the three; `None` of another unit.
pub(super) fn set_place(first: u8) -> Option<usize> {
    SETS.iter().position(|kind| *kind == unit_type(first))
}
