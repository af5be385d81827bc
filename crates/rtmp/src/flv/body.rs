//! Builds the bodies of tags: AVC, AAC and G.711 in the old form that every server and player reads, Opus and the other codecs of pictures in
//! the extended one that alone has them (enhanced RTMP v2, "Enhanced Audio" and "Enhanced Video").

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

/// The first byte of extended video (E-RTMP v2, ExVideoTagHeader), without the kind of frame and the packet type.
const EXTENDED_VIDEO: u8 = 0x80;
const KEY_FRAME: u8 = 0x10;
const INTER_FRAME: u8 = 0x20;

/// Appends the body of a sequence header of the codec with this name: its decoder's configuration, of H.264 in the old form.
pub fn picture_configuration(codec: FourCc, configuration: &[u8], out: &mut Vec<u8>) {
    if codec == FourCc::AVC {
        return avc_sequence_header(configuration, out);
    }
    out.push(EXTENDED_VIDEO | KEY_FRAME);
    out.extend(codec.0);
    out.extend_from_slice(configuration);
}

/// Appends what stands in front of a frame of the codec with this name, of H.264 in the old form: the kind of frame, the codec, and of H.264
/// and H.265 the composition time in milliseconds. The frame goes behind it.
pub fn picture_header(codec: FourCc, keyframe: bool, composition_time: i32, out: &mut Vec<u8>) {
    if codec == FourCc::AVC {
        return avc_frame(keyframe, composition_time, &[], out);
    }
    out.push(EXTENDED_VIDEO | if keyframe { KEY_FRAME } else { INTER_FRAME } | 1);
    out.extend(codec.0);
    if codec == FourCc::HEVC {
        out.extend(&composition_time.to_be_bytes()[1..]);
    }
}

/// G.711, A-law and µ-law, 16 bit, mono (FLV 10.1 section E.4.2.1).
const G711_A: u8 = 7 << 4 | 2;
const G711_MU: u8 = 8 << 4 | 2;

/// Appends the body of a frame of G.711.
pub fn g711_frame(is_a_law: bool, samples: &[u8], out: &mut Vec<u8>) {
    out.push(if is_a_law { G711_A } else { G711_MU });
    out.extend_from_slice(samples);
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
    fn pictures_of_every_codec_are_named_in_the_form_that_has_them() {
        for codec in [FourCc::AVC, FourCc::HEVC, FourCc::VP8, FourCc::VP9, FourCc::AV1] {
            let mut out = Vec::new();
            picture_header(codec, true, -40, &mut out);
            let length = out.len();
            out.extend(b"frame");
            let tag = VideoTag::parse(&out).unwrap();
            let is_composed = codec == FourCc::AVC || codec == FourCc::HEVC;
            assert_eq!((tag.codec, tag.payload_offset), (VideoCodec::FourCc(codec), length));
            assert!(tag.is_keyframe() && tag.composition_time == if is_composed { -40 } else { 0 });
            out.clear();
            picture_header(codec, false, 0, &mut out);
            let tag = VideoTag::parse(&out).unwrap();
            assert!(tag.is_frame() && !tag.is_keyframe());
            out.clear();
            picture_configuration(codec, b"record", &mut out);
            let tag = VideoTag::parse(&out).unwrap();
            assert!(tag.is_sequence_header() && out[tag.payload_offset..] == *b"record");
        }
        for (is_a_law, number) in [(true, 7), (false, 8)] {
            let mut out = Vec::new();
            g711_frame(is_a_law, b"ab", &mut out);
            let tag = AudioTag::parse(&out).unwrap();
            assert_eq!((tag.codec, tag.payload_offset), (AudioCodec::Legacy(number), 1));
        }
    }

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
