//! OBUs of AV1 in the low-overhead format (AV1 section 5.2): taking a temporal unit apart. Nothing here knows what is inside an OBU
//! beyond the first byte of a frame's header.

/// `obu_type` (AV1 section 6.2.2).
const FRAME_HEADER: u8 = 3;
const FRAME: u8 = 6;

/// The OBUs of a temporal unit, each with its header and size. One without a size is the last; a unit that is cut short gives what is there.
pub(crate) fn obus(temporal_unit: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = temporal_unit;
    std::iter::from_fn(move || {
        let &first = rest.first()?;
        let payload = payload_offset(rest);
        let end = match payload {
            Some((offset, Some(size))) => offset.saturating_add(size).min(rest.len()),
            _ => rest.len(),
        };
        let obu;
        (obu, rest) = rest.split_at(end);
        // obu_forbidden_bit: what follows is no OBU either.
        (first & 0x80 == 0).then_some(obu)
    })
}

/// Whether the first frame that is in these first bytes of a temporal unit is a keyframe that is shown.
pub(crate) fn is_keyframe(temporal_unit: &[u8]) -> bool {
    let mut frames = obus(temporal_unit).filter(|obu| matches!(obu[0] >> 3 & 0x0F, FRAME_HEADER | FRAME));
    // show_existing_frame 0, frame_type KEY_FRAME (0), show_frame 1 (section 5.9.2).
    frames.next().is_some_and(|obu| {
        payload_offset(obu).and_then(|(offset, _)| obu.get(offset)).is_some_and(|first| first & 0xF0 == 0x10)
    })
}

/// Where the payload of an OBU begins, and its size if it is said (sections 5.3.1 and 4.10.5).
fn payload_offset(obu: &[u8]) -> Option<(usize, Option<usize>)> {
    let &first = obu.first()?;
    let header = if first & 0x04 != 0 { 2 } else { 1 };
    if first & 0x02 == 0 {
        return Some((header, None));
    }
    let mut size = 0;
    for (at, byte) in obu.get(header..)?.iter().enumerate().take(8) {
        size |= u64::from(byte & 0x7F) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((header + at + 1, Some(usize::try_from(size).unwrap_or(usize::MAX))));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DELIMITER: &[u8] = &[0x12, 0x00];
    const SEQUENCE: &[u8] = &[0x0A, 0x03, 1, 2, 3];
    const KEY: &[u8] = &[0x32, 0x02, 0x10, 9];
    const INTER: &[u8] = &[0x32, 0x02, 0x30, 9];

    #[test]
    fn a_temporal_unit_is_taken_apart_and_its_keyframes_are_known() {
        let key = [DELIMITER, SEQUENCE, KEY].concat();
        assert_eq!(obus(&key).collect::<Vec<_>>(), [DELIMITER, SEQUENCE, KEY]);
        assert!(is_keyframe(&key));
        assert!(!is_keyframe(&[DELIMITER, SEQUENCE, INTER].concat()) && !is_keyframe(SEQUENCE));
        // The last without a size, with an extension.
        assert!(is_keyframe(&[SEQUENCE, &[0x34, 0x08, 0x10, 9]].concat()));
        assert_eq!(obus(&[KEY, &[0x80, 1]].concat()).count(), 1, "no OBU");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let length: usize = obus(&bytes).map(<[u8]>::len).sum();
            prop_assert!(length <= bytes.len());
            is_keyframe(&bytes);
        }
    }
}
