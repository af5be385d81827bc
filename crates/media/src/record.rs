//! Decoder configuration records of pictures, as containers have them: made of what is in front of a keyframe or in it, and taken apart into what
//! is sent in front of one. Nothing here looks into a picture beyond its headers.

use crate::obu::{self, append_obus, obus};
use crate::track_format::{av1, vpx};
use crate::{PictureCodec, append_decoder_configuration, elementary};
use weir_rtmp::flv::{FourCc, VideoCodec, VideoTag};

/// Parameter sets of H.264 (ITU-T H.264 table 7-1).
const H264_SEQUENCE: u8 = 7;
const H264_PICTURE: u8 = 8;

/// Parameter sets of H.265 (ITU-T H.265 table 7-1), in the order of the record.
const H265_SETS: [u8; 3] = [32, 33, 34];

/// The largest luma picture of each level of VP9, in samples, with ten times the level (the bitstream specification, annex A).
const VP9_LEVELS: [(u32, u8); 8] = [
    (36_864, 10),
    (73_728, 11),
    (122_880, 20),
    (245_760, 21),
    (552_960, 30),
    (983_040, 31),
    (2_228_224, 40),
    (8_912_896, 50),
];
const VP9_HIGHEST: u8 = 60;

impl PictureCodec {
    /// The name of the codec in FLV tags (enhanced RTMP v2, "Enhanced Video").
    pub fn four_cc(self) -> FourCc {
        match self {
            Self::H264 => FourCc::AVC,
            Self::H265 => FourCc::HEVC,
            Self::Vp8 => FourCc::VP8,
            Self::Vp9 => FourCc::VP9,
            Self::Av1 => FourCc::AV1,
        }
    }

    /// The codec of a tag, in either form.
    pub fn of_tag(tag: &VideoTag) -> Option<Self> {
        Self::ALL.into_iter().find(|codec| tag.codec == VideoCodec::FourCc(codec.four_cc()))
    }

    /// The decoder configuration record that the units of an access unit describe (NAL units, OBUs, or the one frame of VP8 or VP9; parameter
    /// sets alone are enough); `None` if something that it needs is not among them, as in pictures between keyframes. Of H.264
    /// AVCDecoderConfigurationRecord, of H.265 HEVCDecoderConfigurationRecord (ISO/IEC 14496-15), of AV1 AV1CodecConfigurationRecord, of VP8 and
    /// VP9 VPCodecConfigurationRecord ("VP Codec ISO Media File Format Binding") without the header of its box.
    pub fn record_of<'a>(self, units: impl Iterator<Item = &'a [u8]> + Clone) -> Option<Vec<u8>> {
        match self {
            Self::H264 => h264(&units),
            Self::H265 => h265(&units),
            Self::Av1 => {
                let is_sequence_header = |unit: &&[u8]| {
                    unit.first().is_some_and(|first| first >> 3 & 0x0F == obu::SEQUENCE_HEADER)
                };
                let header = units.clone().find(is_sequence_header)?;
                let mut record = av1::configuration(header)?.to_vec();
                append_obus(std::iter::once(header), &mut record);
                Some(record)
            }
            Self::Vp8 => {
                let mut frames = units;
                let frame = frames.next()?;
                let format = self.format(frame)?;
                (format.size.0 > 0).then(|| vp_record(frame[0] >> 1 & 7, 0, 8, 1, false))
            }
            Self::Vp9 => {
                let mut frames = units;
                let header = vpx::vp9_header(frames.next()?)?;
                let samples = header.size.0.saturating_mul(header.size.1);
                let level =
                    VP9_LEVELS.iter().find(|(most, _)| samples <= *most).map_or(VP9_HIGHEST, |it| it.1);
                // 4:2:0 with chroma where luma is, 4:2:2, 4:4:4; 4:4:0 has none of the three.
                let chroma = match header.subsampling {
                    (true, true) => 1,
                    (true, false) => 2,
                    _ => 3,
                };
                Some(vp_record(header.profile, level, header.bit_depth, chroma, header.is_full_range))
            }
        }
    }

    /// What a record has to be sent in front of keyframes that do not have it: parameter sets as NAL units, or the OBUs of AV1.
    pub fn sets_of_record(self, record: &[u8]) -> Vec<&[u8]> {
        match self {
            Self::H264 => elementary::parameter_sets(record).collect(),
            Self::H265 => {
                // Encoders describe messages there as well.
                let is_set =
                    |unit: &&[u8]| unit.first().is_some_and(|first| H265_SETS.contains(&h265_type(*first)));
                elementary::h265_parameter_sets(record).filter(is_set).collect()
            }
            // "AV1 Codec ISO Media File Format Binding" section 2.3.3.
            Self::Av1 => obus(record.get(4..).unwrap_or_default()).collect(),
            Self::Vp8 | Self::Vp9 => Vec::new(),
        }
    }

    /// Whether a unit is one of [`Self::sets_of_record`], by its first byte.
    pub fn is_set(self, unit: &[u8]) -> bool {
        unit.first().is_some_and(|&first| match self {
            Self::H264 => matches!(first & 0x1F, H264_SEQUENCE | H264_PICTURE),
            Self::H265 => H265_SETS.contains(&h265_type(first)),
            Self::Av1 => first >> 3 & 0x0F == obu::SEQUENCE_HEADER,
            Self::Vp8 | Self::Vp9 => false,
        })
    }

    /// Whether a unit only says that a picture begins (ITU-T H.264 table 7-1, H.265 table 7-1, AV1 section 6.2.2).
    pub fn is_delimiter(self, unit: &[u8]) -> bool {
        unit.first().is_some_and(|&first| match self {
            Self::H264 => first & 0x1F == 9,
            Self::H265 => h265_type(first) == 35,
            Self::Av1 => first >> 3 & 0x0F == 2,
            Self::Vp8 | Self::Vp9 => false,
        })
    }

    /// Whether a unit is a part of the picture itself, and not only of what is around it.
    pub fn is_picture(self, unit: &[u8]) -> bool {
        unit.first().is_some_and(|&first| match self {
            Self::H264 => matches!(first & 0x1F, 1..=5),
            Self::H265 => h265_type(first) < 32,
            // OBU_FRAME_HEADER, OBU_TILE_GROUP, OBU_FRAME.
            Self::Av1 => matches!(first >> 3 & 0x0F, 3 | 4 | 6),
            Self::Vp8 | Self::Vp9 => true,
        })
    }
}

/// `nal_unit_type` of H.265.
fn h265_type(first: u8) -> u8 {
    first >> 1 & 0x3F
}

fn h264<'a>(units: &(impl Iterator<Item = &'a [u8]> + Clone)) -> Option<Vec<u8>> {
    let of = |kind: u8| {
        let is = move |unit: &&[u8]| unit.first().is_some_and(|first| first & 0x1F == kind);
        units.clone().filter(is)
    };
    // Most access units have none.
    of(H264_SEQUENCE).next()?;
    let (sequence, picture) = (of(H264_SEQUENCE).collect::<Vec<_>>(), of(H264_PICTURE).collect::<Vec<_>>());
    let mut record = Vec::new();
    append_decoder_configuration(&sequence, &picture, &mut record).then_some(record)
}

/// ISO/IEC 14496-15 section 8.3.3.1.2; `None` if one of the three kinds is missing, or the sequence parameter set is too short.
fn h265<'a>(units: &(impl Iterator<Item = &'a [u8]> + Clone)) -> Option<Vec<u8>> {
    let of = |kind: u8| {
        let is = move |unit: &&[u8]| unit.first().is_some_and(|first| h265_type(*first) == kind);
        units.clone().filter(is)
    };
    // general_profile_space up to general_level_idc stand behind four bits, three and one (ITU-T H.265 section 7.3.2.2.1).
    let sequence = unescaped_head(of(H265_SETS[1]).next()?);
    let profile = sequence.get(3..15)?;
    let mut record = vec![1];
    record.extend(profile);
    // Segmentation and parallelism are not said; chroma 4:2:0 with 8 bits, which the sequence parameter set says itself; no frame rate; one
    // temporal layer; lengths of four bytes.
    record.extend([0xF0, 0, 0xFC, 0xFD, 0xF8, 0xF8, 0, 0, 0x0F, H265_SETS.len() as u8]);
    for kind in H265_SETS {
        let count = u16::try_from(of(kind).count()).ok().filter(|count| *count > 0)?;
        record.push(0x80 | kind);
        record.extend(count.to_be_bytes());
        for unit in of(kind) {
            record.extend(u16::try_from(unit.len()).ok()?.to_be_bytes());
            record.extend_from_slice(unit);
        }
    }
    Some(record)
}

/// The first bytes of a unit without those that prevent the emulation of start codes (ITU-T H.265 section 7.3.1.1).
fn unescaped_head(unit: &[u8]) -> Vec<u8> {
    let mut zeros = 0;
    let kept = unit.iter().copied().filter(|byte| {
        let is_escape = zeros >= 2 && *byte == 3;
        zeros = if *byte == 0 { zeros + 1 } else { 0 };
        !is_escape
    });
    kept.take(16).collect()
}

/// VPCodecConfigurationRecord: profile, level, bit depth with chroma and range, colours that are not said, no initialization data.
fn vp_record(profile: u8, level: u8, bit_depth: u8, chroma: u8, is_full_range: bool) -> Vec<u8> {
    const UNSPECIFIED: u8 = 2;
    let samples = bit_depth << 4 | chroma << 1 | u8::from(is_full_range);
    vec![profile, level, samples, UNSPECIFIED, UNSPECIFIED, UNSPECIFIED, 0, 0]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What libx265 makes of pictures of 320x180.
    const VPS: &[u8] = &[0x40, 1, 0x0C, 1];
    const SPS: &[u8] = &[
        0x42, 0x01, 0x01, 0x01, 0x60, 0x00, 0x00, 0x03, 0x00, 0x90, 0x00, 0x00, 0x03, 0x00, 0x00, 0x03, 0x00,
        0x3C, 0xA0, 0x0A, 0x08, 0x0C, 0x1F, 0x3E, 0x59, 0x59, 0x52, 0x93, 0x0B, 0xC0, 0x5A, 0x02, 0x00, 0x00,
        0x03, 0x00, 0x02, 0x00, 0x00, 0x03, 0x00, 0x32, 0x10, 0x00,
    ];
    const PPS: &[u8] = &[0x44, 1, 0xC0];
    const SLICE: &[u8] = &[0x26, 1, 0xAF];

    fn record(codec: PictureCodec, units: &[&[u8]]) -> Option<Vec<u8>> {
        codec.record_of(units.iter().copied())
    }

    #[test]
    fn a_record_of_h265_says_what_its_sequence_parameter_set_says() {
        let made = record(PictureCodec::H265, &[PPS, SPS, VPS, SLICE]).unwrap();
        assert_eq!((made[0], made[1], made[12], made[21] & 3, made[22]), (1, 0x01, 0x3C, 3, 3));
        let format = PictureCodec::H265.format_of_record(&made).unwrap();
        assert_eq!((&*format.profile, format.size), ("Main, level 2", (320, 180)));
        assert_eq!(PictureCodec::H265.sets_of_record(&made), [VPS, SPS, PPS]);
        for missing in [&[PPS, SPS][..], &[VPS, SPS], &[VPS, PPS], &[VPS, &SPS[..9], PPS], &[SLICE]] {
            assert_eq!(record(PictureCodec::H265, missing), None);
        }
    }

    #[test]
    fn a_record_of_the_others_says_profile_and_level() {
        let av1 = [0x0A, 0x0B, 0x00, 0x00, 0x00, 0x04, 0x3C, 0xFE, 0xCC, 0xDA, 0xF9, 0x00, 0x40];
        // As in RTP: without a size, which the record has.
        let bare = [&[0x08], &av1[2..]].concat();
        for header in &[&av1[..], &bare] {
            let made = record(PictureCodec::Av1, &[*header, &[0x30, 0x10]]).unwrap();
            assert_eq!(made, [&[0x81, 0, 0x0C, 0][..], &av1].concat());
            assert_eq!(PictureCodec::Av1.sets_of_record(&made), [&av1[..]]);
        }
        let vp9 = [0x82, 0x49, 0x83, 0x42, 0x00, 0x13, 0xF0, 0x0B, 0x36, 0x00];
        assert_eq!(record(PictureCodec::Vp9, &[&vp9]), Some(vec![0, 11, 0x82, 2, 2, 2, 0, 0]));
        let vp8 = [0x10, 0x62, 0x00, 0x9D, 0x01, 0x2A, 0x40, 0x01, 0xB4, 0x00];
        assert_eq!(record(PictureCodec::Vp8, &[&vp8]), Some(vec![0, 0, 0x82, 2, 2, 2, 0, 0]));
        let h264 = [&[0x67, 66, 0xE0, 31, 1][..], &[0x68, 2], &[0x65, 1]];
        assert_eq!(
            record(PictureCodec::H264, &h264).map(|made| made[..5].to_vec()),
            Some(vec![1, 66, 0xE0, 31, 0xFF])
        );
        for (codec, between) in [
            (PictureCodec::Av1, &[0x30, 0x30][..]),
            (PictureCodec::Vp9, &[0x86, 1]),
            (PictureCodec::Vp8, &[0x11, 2]),
            (PictureCodec::H264, &[0x41, 1]),
        ] {
            assert_eq!((record(codec, &[between]), record(codec, &[])), (None, None));
        }
    }

    proptest! {
        #[test]
        fn any_units_are_read_without_harm(units in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 0..6)) {
            for codec in PictureCodec::ALL {
                if let Some(record) = codec.record_of(units.iter().map(Vec::as_slice)) {
                    prop_assert!(record.len() <= 64 + units.iter().map(|unit| unit.len() + 4).sum::<usize>());
                    codec.sets_of_record(&record);
                }
            }
        }
    }
}
