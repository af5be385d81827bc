//! H.265 in FLV tags: frames and the decoder's configuration, of a codec that is named by four characters (enhanced RTMP v1).

use super::{EXTENDED_VIDEO_FRAME, INTER, KEY};

/// In front of a picture: the kind of frame, the codec's name, and a composition time of three bytes.
pub(super) const PICTURE_HEADER: usize = 8;

/// The decoder's configuration instead of coded frames.
const EXTENDED_SEQUENCE_START: u8 = 0x80;

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

/// The body of a frame: NAL units, each after its length.
pub(super) fn frame(keyframe: bool, composition_time: i32, units: &[u8], out: &mut Vec<u8>) {
    out.push(EXTENDED_VIDEO_FRAME | if keyframe { KEY } else { INTER });
    out.extend(b"hvc1");
    out.extend(&composition_time.to_be_bytes()[1..]);
    out.extend_from_slice(units);
}

/// The body with a decoder configuration record (ISO/IEC 14496-15 section 8.3.3.1.2) of these sets; `None` if one of the three kinds is
/// missing, or the sequence parameter set is too short.
pub(super) fn sequence_header<Set: AsRef<[u8]>>(sets: &[Set]) -> Option<Vec<u8>> {
    let of = |kind: u8| -> Vec<&[u8]> {
        let sets = sets.iter().map(AsRef::as_ref);
        sets.filter(|set: &&[u8]| set.first().is_some_and(|first| unit_type(*first) == kind)).collect()
    };
    let arrays = SETS.map(of);
    // general_profile_space up to general_level_idc stand behind four bits, three and one (ITU-T H.265 section 7.3.2.2.1).
    let unescaped: Vec<u8> = unescaped(arrays[1].first()?);
    let profile = unescaped.get(3..15)?;
    if arrays.iter().any(Vec::is_empty) {
        return None;
    }
    let mut body = vec![EXTENDED_SEQUENCE_START | KEY];
    body.extend(b"hvc1\x01");
    body.extend(profile);
    // Segmentation and parallelism are not said; chroma 4:2:0 with 8 bits, which the sequence parameter set says itself; no frame rate; one
    // temporal layer; lengths of four bytes.
    body.extend([0xF0, 0, 0xFC, 0xFD, 0xF8, 0xF8, 0, 0, 0x0F, SETS.len() as u8]);
    for (kind, units) in SETS.into_iter().zip(&arrays) {
        body.push(0x80 | kind);
        body.extend((units.len() as u16).to_be_bytes());
        for unit in units {
            body.extend(u16::try_from(unit.len()).ok()?.to_be_bytes());
            body.extend_from_slice(unit);
        }
    }
    Some(body)
}

/// The first bytes of a unit without those that prevent the emulation of start codes (ITU-T H.265 section 7.3.1.1).
fn unescaped(unit: &[u8]) -> Vec<u8> {
    let mut zeros = 0;
    let kept = unit.iter().copied().filter(|byte| {
        let is_escape = zeros >= 2 && *byte == 3;
        zeros = if *byte == 0 { zeros + 1 } else { 0 };
        !is_escape
    });
    kept.take(16).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_media::PictureCodec;
    use weir_rtmp::flv::VideoTag;

    /// What libx265 makes of pictures of 320x180.
    const VPS: &[u8] = &[0x40, 1, 0x0C, 1];
    const SPS: &[u8] = &[
        0x42, 0x01, 0x01, 0x01, 0x60, 0x00, 0x00, 0x03, 0x00, 0x90, 0x00, 0x00, 0x03, 0x00, 0x00, 0x03, 0x00,
        0x3C, 0xA0, 0x0A, 0x08, 0x0C, 0x1F, 0x3E, 0x59, 0x59, 0x52, 0x93, 0x0B, 0xC0, 0x5A, 0x02, 0x00, 0x00,
        0x03, 0x00, 0x02, 0x00, 0x00, 0x03, 0x00, 0x32, 0x10, 0x00,
    ];
    const PPS: &[u8] = &[0x44, 1, 0xC0];

    #[test]
    fn a_configuration_says_what_its_sequence_parameter_set_says() {
        let body = sequence_header(&[PPS, SPS, VPS]).unwrap();
        let tag = VideoTag::parse(&body).unwrap();
        assert!(tag.is_sequence_header());
        let record = &body[tag.payload_offset..];
        assert_eq!((record[0], record[1], record[12], record[21] & 3, record[22]), (1, 0x01, 0x3C, 3, 3));
        let format = PictureCodec::H265.format_of_record(record).unwrap();
        assert_eq!((&*format.profile, format.size), ("Main, level 2", (320, 180)));
        for missing in [&[PPS, SPS][..], &[VPS, SPS], &[VPS, PPS], &[VPS, &SPS[..9], PPS]] {
            assert_eq!(sequence_header(missing), None);
        }
    }

    #[test]
    fn a_frame_has_its_composition_time() {
        let mut body = Vec::new();
        frame(true, 40, &[0, 0, 0, 2, 0x26, 1], &mut body);
        let tag = VideoTag::parse(&body).unwrap();
        assert!(tag.is_keyframe() && tag.composition_time == 40 && tag.payload_offset == PICTURE_HEADER);
    }
}
