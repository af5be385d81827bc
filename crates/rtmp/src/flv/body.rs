//! Builds the bodies of tags: AVC and AAC in the old form that every server and player reads, Opus in the extended one
//! that alone has it (enhanced RTMP v2, "Enhanced Audio").

use super::FourCc;

/// Appends the body of an AVC sequence header (FLV 10.1 section E.4.3.1): the decoder's configuration as ISO/IEC
/// 14496-15 has it.
pub fn avc_sequence_header(configuration: &[u8], out: &mut Vec<u8>) {
    avc(true, 0, 0, configuration, out);
}

/// Appends the body of an AVC frame: NAL units, each after its length. `composition_time` in milliseconds.
pub fn avc_frame(keyframe: bool, composition_time: i32, nal_units: &[u8], out: &mut Vec<u8>) {
    avc(keyframe, 1, composition_time, nal_units, out);
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

/// The first byte of extended audio (E-RTMP v2, ExAudioTagHeader), without the packet type.
const EXTENDED_AUDIO: u8 = 0x90;

/// Appends the body of an Opus sequence header: the identification header of RFC 7845 section 5.1, with no gain and
/// nothing to skip.
pub fn opus_sequence_header(channels: u8, out: &mut Vec<u8>) {
    out.push(EXTENDED_AUDIO);
    out.extend(FourCc::OPUS.0);
    out.extend(b"OpusHead\x01");
    out.extend([channels, 0, 0]);
    out.extend(48_000_u32.to_le_bytes());
    out.extend([0, 0, 0]);
}

/// Appends the body of an Opus frame: one Opus packet.
pub fn opus_frame(packet: &[u8], out: &mut Vec<u8>) {
    out.push(EXTENDED_AUDIO | 1);
    out.extend(FourCc::OPUS.0);
    out.extend_from_slice(packet);
}

#[cfg(test)]
mod tests {
    use super::super::{AudioCodec, AudioTag, VideoCodec, VideoTag};
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

        out.clear();
        opus_sequence_header(2, &mut out);
        let tag = AudioTag::parse(&out).unwrap();
        assert!(tag.is_sequence_header() && out[tag.payload_offset..].starts_with(b"OpusHead\x01\x02"));
        assert_eq!(out.len() - tag.payload_offset, 19);

        out.clear();
        opus_frame(b"raw", &mut out);
        let tag = AudioTag::parse(&out).unwrap();
        assert_eq!((tag.codec, tag.is_frame()), (AudioCodec::FourCc(FourCc::OPUS), true));
        assert_eq!(&out[tag.payload_offset..], b"raw");
    }
}
