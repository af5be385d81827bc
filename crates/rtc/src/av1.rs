//! AV1 in RTP ("RTP Payload Format For AV1", AOM): an aggregation header in front of OBUs, the first and last of which may be fragments.

use crate::piece::{Header, Piece, Unreadable};

/// The aggregation header (section 4.4).
pub(crate) const CONTINUES: u8 = 0x80;
pub(crate) const IS_CONTINUED: u8 = 0x40;
pub(crate) const STARTS_SEQUENCE: u8 = 0x08;

/// The most OBU elements of a payload that are read: a temporal unit of 64 tile groups, and what is in front of it.
const MOST_ELEMENTS: usize = 128;

/// Types of OBUs (AV1 section 6.2.2).
mod kind {
    pub(super) const SEQUENCE_HEADER: u8 = 1;
    pub(super) const TEMPORAL_DELIMITER: u8 = 2;
    pub(super) const FRAME_HEADER: u8 = 3;
    pub(super) const FRAME: u8 = 6;
    pub(super) const TILE_LIST: u8 = 8;
    pub(super) const PADDING: u8 = 15;
}

/// `obu_type` in the first byte of an OBU (AV1 section 5.3.2).
fn obu_type(first: u8) -> u8 {
    first >> 3 & 0x0F
}

/// Whether an OBU that begins so is passed over: "The temporal delimiter OBU, if present, SHOULD be removed when transmitting, and MUST be
/// ignored by receivers." Of tile lists the same is said; padding is of no frame.
pub(crate) fn is_ignored(first: u8) -> bool {
    matches!(obu_type(first), kind::TEMPORAL_DELIMITER | kind::TILE_LIST | kind::PADDING)
}

/// Whether an OBU that begins so is a sequence header, without which nothing is decoded (AV1 section 7.5).
pub fn is_sequence_header(obu: &[u8]) -> bool {
    obu.first().is_some_and(|first| obu_type(*first) == kind::SEQUENCE_HEADER)
}

/// What is behind the header of an OBU, its extension and its size included (AV1 section 5.3.1).
pub fn obu_payload(obu: &[u8]) -> Option<&[u8]> {
    let (&first, mut rest) = obu.split_first()?;
    // obu_extension_flag.
    if first & 0x04 != 0 {
        rest = rest.get(1..)?;
    }
    // obu_has_size_field: what is said need not be believed, the element has a length.
    if first & 0x02 != 0 {
        rest = leb128(rest)?.1;
    }
    Some(rest)
}

/// A number of the variable length of AV1 section 4.10.5, of eight bytes at the most: "It is a requirement of bitstream conformance that the
/// value … is less than or equal to (1 << 32) - 1". It may be padded.
fn leb128(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut value: u64 = 0;
    for (at, &byte) in bytes.iter().enumerate().take(8) {
        value |= u64::from(byte & 0x7F) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((u32::try_from(value).ok()?, &bytes[at + 1..]));
        }
    }
    None
}

/// The OBUs, or fragments of such, of a payload.
pub(crate) fn pieces<'a>(payload: &'a [u8], take: &mut impl FnMut(Piece<'a>)) -> Result<(), Unreadable> {
    let (&header, mut rest) = payload.split_first().ok_or(Unreadable)?;
    // "W: two bit field that describes the number of OBU elements in the packet. This field MUST be set equal to 0 or equal to the number
    // of OBU elements contained in the packet. If set to 0, each OBU element MUST be preceded by a length field."
    let count = usize::from(header >> 4 & 0x03);
    let mut at = 0;
    while !rest.is_empty() {
        let bytes;
        if count > 0 && at + 1 == count {
            // "If not set to 0 (i.e., W = 1, 2 or 3) the last OBU element MUST NOT be preceded by a length field."
            (bytes, rest) = (rest, &rest[rest.len()..]);
        } else {
            let (length, behind) = leb128(rest).ok_or(Unreadable)?;
            (bytes, rest) = behind.split_at_checked(length as usize).ok_or(Unreadable)?;
        }
        // "Z: MUST be set to 1 if the first OBU element is an OBU fragment that is a continuation of an OBU fragment from the previous
        // packet", "Y: MUST be set to 1 if the last OBU element is an OBU fragment that will continue in the next packet".
        let start = at > 0 || header & CONTINUES == 0;
        let end = !rest.is_empty() || header & IS_CONTINUED == 0;
        at += 1;
        if at > MOST_ELEMENTS {
            return Err(Unreadable);
        }
        let is_ignored = start && end && bytes.first().is_none_or(|first| is_ignored(*first));
        if !is_ignored {
            take(Piece { start, end, header: Header::NONE, bytes });
        }
    }
    Ok(())
}

/// Whether a temporal unit begins here, as far as that is known, and whether a keyframe does.
pub(crate) fn marks(payload: &[u8]) -> (Option<bool>, Option<bool>) {
    let Some(&header) = payload.first() else { return (None, None) };
    // "N: MUST be set to 1 if the packet is the first packet of a coded video sequence, and MUST be set to 0 otherwise." A sequence begins
    // with a keyframe.
    let says_sequence = header & (STARTS_SEQUENCE | CONTINUES) == STARTS_SEQUENCE;
    let (mut begins_with_sequence, mut has_sequence) = (None, false);
    let (mut has_frame, mut has_key) = (false, false);
    let read = pieces(payload, &mut |piece| {
        let is_sequence = piece.start && is_sequence_header(piece.bytes);
        begins_with_sequence.get_or_insert(is_sequence);
        has_sequence |= is_sequence;
        has_frame |= piece.start && is_frame(piece.bytes);
        has_key |= piece.start && is_key_frame(piece.bytes);
    });
    // Senders that say no N put a sequence header in front of a keyframe as well; in front of another frame it is a repetition (AV1
    // section 7.5).
    let keyframe = says_sequence || has_key || has_sequence && !has_frame;
    if read.is_err() && !keyframe {
        return (None, None);
    }
    // In front of a sequence header there is nothing else of its temporal unit.
    let start = match header & CONTINUES != 0 {
        true => Some(false),
        false => (says_sequence || begins_with_sequence == Some(true)).then_some(true),
    };
    (start, Some(keyframe))
}

/// Whether an OBU is a frame, or the header of one.
fn is_frame(obu: &[u8]) -> bool {
    obu.first().is_some_and(|first| matches!(obu_type(*first), kind::FRAME | kind::FRAME_HEADER))
}

/// Whether an OBU is a frame, or the header of one, that decoding can begin with (AV1 section 5.9.2): `show_existing_frame` is 0,
/// `frame_type` is KEY_FRAME (0), and `show_frame` is 1.
fn is_key_frame(obu: &[u8]) -> bool {
    is_frame(obu) && obu_payload(obu).and_then(<[u8]>::first).is_some_and(|first| first & 0xF0 == 0x10)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// OBUs without a size: a sequence header, a keyframe that is shown, another frame that is.
    const SEQUENCE: [u8; 3] = [0x08, 0, 0];
    const KEY: [u8; 3] = [0x30, 0x10, 7];
    const INTER: [u8; 3] = [0x30, 0x30, 7];

    fn read(payload: &[u8]) -> Vec<(bool, bool, Vec<u8>)> {
        let mut found = Vec::new();
        pieces(payload, &mut |piece| found.push((piece.start, piece.end, piece.bytes.to_vec()))).unwrap();
        found
    }

    #[test]
    fn elements_come_out_with_and_without_their_lengths() {
        let whole = |obu: [u8; 3]| (true, true, obu.to_vec());
        let both = [whole(SEQUENCE), whole(KEY)];
        assert_eq!(read(&[&[0x08, 3][..], &SEQUENCE, &[3], &KEY].concat()), both);
        assert_eq!(read(&[&[0x28, 3][..], &SEQUENCE, &KEY].concat()), both);
        assert_eq!(read(&[&[0x10][..], &INTER].concat()), [whole(INTER)]);
        // Lengths of two bytes, and a delimiter that is passed over.
        assert_eq!(read(&[&[0x20, 0x81, 0, 0x10][..], &INTER].concat()), [whole(INTER)]);
        // Fragments.
        assert_eq!(read(&[&[0x50][..], &INTER].concat()), [(true, false, INTER.to_vec())]);
        assert_eq!(read(&[&[0xD0][..], &INTER].concat()), [(false, false, INTER.to_vec())]);
        assert_eq!(read(&[&[0xA0, 1, 9][..], &INTER].concat()), [(false, true, vec![9]), whole(INTER)]);
    }

    #[test]
    fn what_is_cut_short_is_unreadable() {
        for payload in [&[][..], &[0x00, 5, 1], &[0x20, 0x80], &[0x00, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]] {
            assert_eq!(pieces(payload, &mut |_| {}), Err(Unreadable), "{payload:?}");
            assert_eq!(marks(payload), (None, None), "{payload:?}");
        }
        let many = [&[0][..], &[1, 0x30].repeat(MOST_ELEMENTS + 1)].concat();
        assert_eq!(pieces(&many, &mut |_| {}), Err(Unreadable));
    }

    #[test]
    fn keyframes_and_beginnings_are_seen() {
        assert_eq!(marks(&[&[0x28, 3][..], &SEQUENCE, &KEY].concat()), (Some(true), Some(true)));
        assert_eq!(
            marks(&[&[0x18][..], &SEQUENCE].concat()),
            (Some(true), Some(true)),
            "its frame comes behind it"
        );
        assert_eq!(marks(&[&[0x10][..], &KEY].concat()), (None, Some(true)), "a sender that says no N");
        let of_sequence = |frame: &[u8]| marks(&[&[0x20, 3][..], &SEQUENCE, frame].concat());
        assert_eq!(of_sequence(&KEY), (Some(true), Some(true)));
        assert_eq!(of_sequence(&INTER), (Some(true), Some(false)), "a header that is repeated");
        assert_eq!(
            marks(&[&[0x10][..], &SEQUENCE].concat()),
            (Some(true), Some(true)),
            "its frame comes behind"
        );
        assert_eq!(marks(&[&[0x10][..], &INTER].concat()), (None, Some(false)));
        assert_eq!(marks(&[&[0x90][..], &KEY].concat()), (Some(false), Some(false)), "the rest of an OBU");
        // With an extension, and with a size.
        assert_eq!(marks(&[0x10, 0x36, 0x08, 1, 0x10]), (None, Some(true)));
        // A keyframe that is not shown, and one that is shown again.
        assert_eq!(marks(&[0x10, 0x30, 0x00]), (None, Some(false)));
        assert_eq!(marks(&[0x10, 0x18, 0x80]), (None, Some(false)));
    }
}
