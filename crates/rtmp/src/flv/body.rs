//! Builds the bodies of AVC and AAC tags, in the old form that every server and player reads.

/// Appends the body of an AVC sequence header (FLV 10.1 section E.4.3.1): the decoder's configuration as ISO/IEC
/// 14496-15 has it.
pub fn avc_sequence_header(configuration: &[u8], out: &mut Vec<u8>) {
    avc(true, 0, 0, configuration, out);
}

/// Appends the body of an AVC frame: NAL units, each after its length. `composition_time` in milliseconds.
pub fn avc_frame(keyframe: bool, composition_time: i32, nal_units: &[u8], out: &mut Vec<u8>) {
    avc(keyframe, 1, composition_time, nal_units, out);
}

/// Appends the body of an AVC end of sequence.
pub fn avc_end_of_sequence(out: &mut Vec<u8>) {
    avc(true, 2, 0, &[], out);
}

fn avc(keyframe: bool, packet_type: u8, composition_time: i32, payload: &[u8], out: &mut Vec<u8>) {
    let frame_type = if keyframe { 0x10 } else { 0x20 };
    let [_, c2, c1, c0] = composition_time.to_be_bytes();
    out.reserve(5 + payload.len());
    out.extend([frame_type | 7, packet_type, c2, c1, c0]);
    out.extend_from_slice(payload);
}

/// AAC, 44 kHz, 16 bit, stereo: what section E.4.2.1 demands for AAC, whatever is inside.
const AAC: u8 = 0xAF;

/// Appends the body of an AAC sequence header (section E.4.2.2): an AudioSpecificConfig of ISO/IEC 14496-3.
pub fn aac_sequence_header(configuration: &[u8], out: &mut Vec<u8>) {
    out.extend([AAC, 0]);
    out.extend_from_slice(configuration);
}

/// Appends the body of an AAC frame, raw and without an ADTS header.
pub fn aac_frame(frame: &[u8], out: &mut Vec<u8>) {
    out.extend([AAC, 1]);
    out.extend_from_slice(frame);
}

#[cfg(test)]
mod tests {
    use super::super::{AudioTag, FourCc, VideoCodec, VideoTag};
    use super::*;

    #[test]
    fn what_is_built_is_what_is_parsed() {
        let mut out = Vec::new();
        avc_frame(true, -80, b"nal", &mut out);
        let tag = VideoTag::parse(&out).unwrap();
        assert_eq!((tag.codec, tag.composition_time), (VideoCodec::FourCc(FourCc::AVC), -80));
        assert!(tag.is_keyframe());
        assert_eq!(&out[tag.payload_offset..], b"nal");

        out.clear();
        avc_sequence_header(b"avcC", &mut out);
        assert!(VideoTag::parse(&out).unwrap().is_sequence_header());

        out.clear();
        aac_sequence_header(&[0x12, 0x10], &mut out);
        assert!(AudioTag::parse(&out).unwrap().is_sequence_header());

        out.clear();
        aac_frame(b"raw", &mut out);
        let tag = AudioTag::parse(&out).unwrap();
        assert_eq!(&out[tag.payload_offset..], b"raw");
    }
}
