//! OBUs of AV1 in the low-overhead format (AV1 section 5.2): taking a temporal unit apart, and putting one together. Nothing here knows what is inside an OBU
//! beyond the first byte of a frame's header.

/// `obu_type` (AV1 section 6.2.2).
pub(crate) const SEQUENCE_HEADER: u8 = 1;
const FRAME_HEADER: u8 = 3;
const FRAME: u8 = 6;

/// The OBUs of a temporal unit, each with its header and size. One without a size is the last; a unit that is cut short gives what is there.
pub(crate) fn obus(temporal_unit: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
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

/// Whether a sequence header is in it, without which nothing is decoded (section 7.5).
pub(crate) fn has_sequence_header(temporal_unit: &[u8]) -> bool {
    obus(temporal_unit).any(|obu| obu[0] >> 3 & 0x0F == SEQUENCE_HEADER)
}

/// Whether a frame is shown: one of it, or one that was decoded before.
pub(crate) fn is_shown(temporal_unit: &[u8]) -> bool {
    let mut frames = obus(temporal_unit).filter(|obu| matches!(obu[0] >> 3 & 0x0F, FRAME_HEADER | FRAME));
    frames.any(|obu| {
        let first = payload_offset(obu).and_then(|(offset, _)| obu.get(offset));
        // show_existing_frame, frame_type of two bits, show_frame.
        first.is_some_and(|first| first & 0x80 != 0 || first & 0x10 != 0)
    })
}

/// Appends OBUs, which may have no size of their own, as in RTP, each with its size.
pub fn append_obus<'a>(obus: impl Iterator<Item = &'a [u8]>, to: &mut Vec<u8>) {
    for obu in obus {
        let Some(&first) = obu.first() else { continue };
        if first & 0x02 != 0 {
            to.extend_from_slice(obu);
            continue;
        }
        let header_length = if first & 0x04 != 0 { 2 } else { 1 };
        let (header, payload) = obu.split_at(obu.len().min(header_length));
        to.push(first | 0x02);
        to.extend_from_slice(&header[1..]);
        let mut size = payload.len();
        while size > 0x7F {
            to.push(size as u8 | 0x80);
            size >>= 7;
        }
        to.push(size as u8);
        to.extend_from_slice(payload);
    }
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

    #[test]
    fn what_is_shown_is_known() {
        let hidden: &[u8] = &[0x32, 0x02, 0x20, 9];
        let again: &[u8] = &[0x1A, 0x01, 0x80];
        assert!(
            is_shown(&[SEQUENCE, KEY].concat()) && is_shown(&[hidden, INTER].concat()) && is_shown(again)
        );
        assert!(!is_shown(hidden) && !is_shown(SEQUENCE));
        assert!(has_sequence_header(&[DELIMITER, SEQUENCE].concat()) && !has_sequence_header(KEY));
    }

    #[test]
    fn obus_get_the_sizes_that_they_lack() {
        let bare: [&[u8]; 5] = [&[0x08, 1, 2, 3], KEY, &[0x34, 0x08, 0x30], &[], &[0x30; 300]];
        let mut unit = Vec::new();
        append_obus(bare.into_iter(), &mut unit);
        let expected = [SEQUENCE, KEY, &[0x36, 0x08, 0x01, 0x30], &[0x32, 0xAB, 0x02]].concat();
        assert_eq!(unit[..expected.len()], expected);
        assert_eq!(obus(&unit).map(<[u8]>::len).collect::<Vec<_>>(), [5, 4, 4, 302]);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let length: usize = obus(&bytes).map(<[u8]>::len).sum();
            prop_assert!(length <= bytes.len());
            is_keyframe(&bytes);
            is_shown(&bytes);
            let mut again = Vec::new();
            append_obus(obus(&bytes), &mut again);
            prop_assert!(again.len() <= bytes.len() + 8);
        }
    }
}
