//! What the parameter sets of pictures and the configuration of sound say: profile and size, rate and channels. They come from peers: what
//! no decoder could show is not believed, and reading ends where the bytes do.

pub(crate) mod av1;
pub(crate) mod vpx;

use crate::aac::SAMPLE_RATES;
use crate::bits::BitReader;
use crate::elementary::h265_parameter_sets;
use crate::nal::{Framing, units};
use crate::{obu, parameter_sets};

/// The largest side of a picture that is believed: level 6.2 of H.264 and H.265 allow 16,888 at the most (ITU-T H.264 table A-1,
/// MaxFS 139,264).
const LARGEST_SIDE: u32 = 16_888;

/// The longest parameter set that is read.
const LONGEST_SET: usize = 512;

/// Codecs whose parameter sets, or headers of keyframes, are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PictureCodec {
    /// ITU-T H.264.
    H264,
    /// ITU-T H.265.
    H265,
    /// RFC 6386.
    Vp8,
    /// The VP9 bitstream specification.
    Vp9,
    /// The AV1 bitstream specification.
    Av1,
}

/// What a sequence parameter set says of pictures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PictureFormat {
    /// Profile and level, `High, level 3.1`.
    pub profile: String,
    /// Width and height, in pixels, as they are shown.
    pub size: (u32, u32),
}

/// What the configuration of AAC says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SoundFormat {
    /// The audio object type, `LC`.
    pub profile: String,
    /// Samples a second.
    pub sample_rate: u32,
    /// Channels, where they are said.
    pub channels: Option<u8>,
}

impl PictureCodec {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::H264, Self::H265, Self::Vp8, Self::Vp9, Self::Av1];

    /// The codec's usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::H264 => "H.264",
            Self::H265 => "H.265",
            Self::Vp8 => "VP8",
            Self::Vp9 => "VP9",
            Self::Av1 => "AV1",
        }
    }

    /// The units of a picture as a [`crate::Frame`] has it: NAL units without their lengths, OBUs, or the one frame.
    pub fn units_of(self, payload: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
        let nal_units =
            matches!(self, Self::H264 | Self::H265).then(|| units(payload, Framing::LengthPrefixed));
        let obus = (self == Self::Av1).then(|| obu::obus(payload));
        let frame = matches!(self, Self::Vp8 | Self::Vp9).then_some(payload);
        nal_units.into_iter().flatten().chain(obus.into_iter().flatten()).chain(frame)
    }

    /// Whether a frame of VP8, VP9 or AV1 that begins so is a keyframe. Containers say it of the others.
    pub(crate) fn is_keyframe(self, head: &[u8]) -> bool {
        match self {
            // RFC 6386 section 9.1.
            Self::Vp8 => head.first().is_some_and(|first| first & 1 == 0),
            Self::Vp9 => vpx::vp9(head).is_some(),
            Self::Av1 => obu::is_keyframe(head),
            Self::H264 | Self::H265 => false,
        }
    }

    /// Whether a decoder can begin with a frame of VP8 or VP9, or a temporal unit of AV1. Of the others it is not known here.
    pub fn begins_with(self, frame: &[u8]) -> bool {
        self.is_keyframe(frame) && (self != Self::Av1 || obu::has_sequence_header(frame))
    }

    /// How many pictures a decoder shows when it is given a frame of VP8 or VP9, or a temporal unit of AV1, of which it shows the highest layer.
    /// Of a frame of VP9 with layers behind it the first alone is looked at. Of codecs with NAL units it is not known here.
    pub fn pictures_of(self, frame: &[u8]) -> u64 {
        match self {
            // RFC 6386 section 9.1: "A 1-bit show_frame flag".
            Self::Vp8 => frame.first().map_or(0, |first| u64::from(first >> 4 & 1)),
            Self::Vp9 => vpx::shown(frame),
            Self::Av1 => obu::is_shown(frame).into(),
            Self::H264 | Self::H265 => 0,
        }
    }

    /// What a NAL unit or OBU says, header included, or the frame of a codec without such; `None` if it is no sequence parameter set, no
    /// sequence header or no keyframe, or not a whole one.
    pub fn format(self, unit: &[u8]) -> Option<PictureFormat> {
        let unit = &unit[..unit.len().min(LONGEST_SET)];
        let format = match self {
            Self::H264 if unit.first()? & 0x1F == 7 => h264(&unescaped(&unit[1..])),
            Self::H265 if unit.first()? >> 1 & 0x3F == 33 => h265(&unescaped(unit.get(2..)?)),
            Self::Vp8 => vpx::vp8(unit),
            Self::Vp9 => vpx::vp9(unit),
            Self::Av1 => av1::sequence_header(unit),
            _ => None,
        }?;
        let (width, height) = format.size;
        [width, height].iter().all(|side| (1..=LARGEST_SIDE).contains(side)).then_some(format)
    }

    /// The same of a decoder configuration record (ISO/IEC 14496-15 sections 5.3.3.1 and 8.3.3.1).
    pub fn format_of_record(self, record: &[u8]) -> Option<PictureFormat> {
        match self {
            Self::H264 => parameter_sets(record).find_map(|unit| self.format(unit)),
            // AV1CodecConfigurationRecord has OBUs behind four bytes ("AV1 Codec ISO Media File Format Binding" section 2.3.3).
            Self::Av1 => self.format(record.get(4..)?),
            Self::Vp8 | Self::Vp9 => None,
            Self::H265 => h265_parameter_sets(record).find_map(|unit| self.format(unit)),
        }
    }

    /// The profile and level in the three bytes that name them, as in `profile-level-id` (RFC 6184 section 8.1). Of H.264 alone.
    pub fn profile_of(self, [profile, constraints, level]: [u8; 3]) -> Option<String> {
        (self == Self::H264).then(|| h264_profile(profile, constraints, level))
    }
}

/// A sequence parameter set without the header of its unit (ITU-T H.264 section 7.3.2.1.1).
fn h264(bytes: &[u8]) -> Option<PictureFormat> {
    let &[profile, constraints, level, ref rest @ ..] = bytes else { return None };
    let mut bits = BitReader::new(rest);
    bits.unsigned_golomb()?; // seq_parameter_set_id
    let mut chroma = 1;
    if matches!(profile, 100 | 110 | 122 | 244 | 44 | 83 | 86 | 118 | 128 | 138 | 139 | 134 | 135) {
        chroma = bits.unsigned_golomb()?;
        if chroma == 3 {
            // 4:4:4 in separate planes is cropped as monochrome.
            chroma = if bits.flag()? { 0 } else { 3 };
        }
        bits.unsigned_golomb()?; // bit_depth_luma_minus8
        bits.unsigned_golomb()?; // bit_depth_chroma_minus8
        bits.flag()?; // qpprime_y_zero_transform_bypass_flag
        if bits.flag()? {
            for list in 0..if chroma == 3 { 12 } else { 8 } {
                if bits.flag()? {
                    scaling_list(&mut bits, if list < 6 { 16 } else { 64 })?;
                }
            }
        }
    }
    bits.unsigned_golomb()?; // log2_max_frame_num_minus4
    match bits.unsigned_golomb()? {
        0 => {
            bits.unsigned_golomb()?; // log2_max_pic_order_cnt_lsb_minus4
        }
        1 => {
            bits.flag()?; // delta_pic_order_always_zero_flag
            bits.unsigned_golomb()?; // offset_for_non_ref_pic, signed, which has the same length
            bits.unsigned_golomb()?; // offset_for_top_to_bottom_field
            for _ in 0..bits.unsigned_golomb()?.min(255) {
                bits.unsigned_golomb()?; // offset_for_ref_frame
            }
        }
        _ => {}
    }
    bits.unsigned_golomb()?; // max_num_ref_frames
    bits.flag()?; // gaps_in_frame_num_value_allowed_flag
    let columns = bits.unsigned_golomb()?.checked_add(1)?;
    let rows = bits.unsigned_golomb()?.checked_add(1)?;
    let fields = if bits.flag()? { 1 } else { 2 };
    if fields == 2 {
        bits.flag()?; // mb_adaptive_frame_field_flag
    }
    bits.flag()?; // direct_8x8_inference_flag
    let crop = if bits.flag()? { bits.four()? } else { [0; 4] };
    // Equations 7-19 to 7-22.
    let [across, down] = match chroma {
        1 => [2, 2],
        2 => [2, 1],
        _ => [1, 1],
    };
    Some(PictureFormat {
        profile: h264_profile(profile, constraints, level),
        size: cropped(
            (columns.checked_mul(16)?, rows.checked_mul(16 * fields)?),
            crop,
            (across, down * fields),
        )?,
    })
}

/// The size without what is cropped at left, right, top and bottom.
fn cropped((width, height): (u32, u32), crop: [u32; 4], (across, down): (u32, u32)) -> Option<(u32, u32)> {
    let [left, right, top, bottom] = crop;
    let sides = left.checked_add(right)?.checked_mul(across)?;
    let ends = top.checked_add(bottom)?.checked_mul(down)?;
    Some((width.checked_sub(sides)?, height.checked_sub(ends)?))
}

/// Section 7.3.2.1.1.1: a list ends when its next scale is 0.
fn scaling_list(bits: &mut BitReader<'_>, size: u32) -> Option<()> {
    let (mut last, mut next) = (8, 8);
    for _ in 0..size {
        if next != 0 {
            let delta = bits.signed_golomb().filter(|delta| (-128..=127).contains(delta))?;
            next = (last + delta + 256) % 256;
        }
        last = if next == 0 { last } else { next };
    }
    Some(())
}

/// Annex A.2 and A.3.
fn h264_profile(profile: u8, constraints: u8, level: u8) -> String {
    let set = |number: u8| constraints & 0x80 >> number != 0;
    let name = match profile {
        66 if set(1) => "Constrained Baseline",
        66 => "Baseline",
        77 => "Main",
        88 => "Extended",
        100 if set(4) && set(5) => "Constrained High",
        100 => "High",
        110 => "High 10",
        122 => "High 4:2:2",
        244 => "High 4:4:4 Predictive",
        other => return format!("profile {other}, level {}", level_name(level.into(), 10)),
    };
    // Level 1b: section A.3.1 for the first three, A.3.2 for the others.
    let is_1b = level == 9 || level == 11 && set(3) && matches!(profile, 66 | 77 | 88);
    let level = if is_1b { "1b".to_owned() } else { level_name(level.into(), 10) };
    format!("{name}, level {level}")
}

fn level_name(number: u32, of: u32) -> String {
    match (number / of, number % of * 10 / of) {
        (whole, 0) => whole.to_string(),
        (whole, part) => format!("{whole}.{part}"),
    }
}

/// A sequence parameter set without the header of its unit (ITU-T H.265 section 7.3.2.2.1).
fn h265(bytes: &[u8]) -> Option<PictureFormat> {
    let mut bits = BitReader::new(bytes);
    bits.bits(4)?; // sps_video_parameter_set_id
    let sub_layers = bits.bits(3)?;
    bits.flag()?; // sps_temporal_id_nesting_flag
    // profile_tier_level(), section 7.3.3.
    bits.bits(2)?; // general_profile_space
    let high = bits.flag()?;
    let profile = bits.bits(5)?;
    bits.skip(32 + 48)?; // compatibility flags, and those of constraints
    let level = bits.bits(8)?;
    let mut present = [(false, false); 8];
    for layer in present.iter_mut().take(sub_layers as usize) {
        *layer = (bits.flag()?, bits.flag()?);
    }
    if sub_layers > 0 {
        bits.skip(2 * (8 - sub_layers))?;
    }
    for (has_profile, has_level) in present {
        bits.skip(if has_profile { 88 } else { 0 })?;
        bits.skip(if has_level { 8 } else { 0 })?;
    }
    bits.unsigned_golomb()?; // sps_seq_parameter_set_id
    let mut chroma = bits.unsigned_golomb()?;
    if chroma == 3 && bits.flag()? {
        chroma = 0;
    }
    let size = (bits.unsigned_golomb()?, bits.unsigned_golomb()?);
    let crop = if bits.flag()? { bits.four()? } else { [0; 4] };
    // SubWidthC and SubHeightC, table 6-1.
    let unit = match chroma {
        1 => (2, 2),
        2 => (2, 1),
        _ => (1, 1),
    };
    // Annex A.3.
    let name = match profile {
        1 => "Main".to_owned(),
        2 => "Main 10".to_owned(),
        3 => "Main Still Picture".to_owned(),
        4 => "Format Range Extensions".to_owned(),
        9 => "Screen Content Coding".to_owned(),
        other => format!("profile {other}"),
    };
    let tier = if high { " (high tier)" } else { "" };
    let profile = format!("{name}, level {}{tier}", level_name(level, 30));
    Some(PictureFormat { profile, size: cropped(size, crop, unit)? })
}

/// Takes emulation prevention out (ITU-T H.264 section 7.4.1).
fn unescaped(bytes: &[u8]) -> Vec<u8> {
    let mut out: Vec<u8> = Vec::with_capacity(bytes.len());
    let mut zeros = 0;
    for &byte in bytes {
        if zeros >= 2 && byte == 3 {
            zeros = 0;
            continue;
        }
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        out.push(byte);
    }
    out
}

/// What an AudioSpecificConfig says (ISO/IEC 14496-3 section 1.6.2.1).
pub fn aac_format(config: &[u8]) -> Option<SoundFormat> {
    let mut bits = BitReader::new(config);
    let kind = object_type(&mut bits)?;
    let mut sample_rate = sampling_frequency(&mut bits)?;
    let channels = match bits.bits(4)? {
        count @ 1..=6 => Some(count as u8),
        7 => Some(8),
        _ => None,
    };
    if matches!(kind, 5 | 29) {
        // The rate behind SBR is that of what is heard.
        sample_rate = sampling_frequency(&mut bits)?;
    }
    Some(SoundFormat { profile: object_type_name(kind), sample_rate, channels })
}

/// What the header of an ADTS frame says (section 1.A.2.2).
pub fn adts_format(frame: &[u8]) -> Option<SoundFormat> {
    let mut bits = BitReader::new(frame);
    if bits.bits(12)? != 0xFFF {
        return None;
    }
    bits.skip(4)?; // ID, layer, protection_absent
    let kind = bits.bits(2)? + 1;
    let sample_rate = *SAMPLE_RATES.get(bits.bits(4)? as usize)?;
    bits.skip(1)?; // private_bit
    let channels = match bits.bits(3)? {
        0 => None,
        7 => Some(8),
        count => Some(count as u8),
    };
    Some(SoundFormat { profile: object_type_name(kind), sample_rate, channels })
}

fn object_type(bits: &mut BitReader<'_>) -> Option<u32> {
    match bits.bits(5)? {
        31 => Some(32 + bits.bits(6)?),
        kind => Some(kind),
    }
}

fn sampling_frequency(bits: &mut BitReader<'_>) -> Option<u32> {
    match bits.bits(4)? {
        15 => bits.bits(24).filter(|rate| *rate > 0),
        index => SAMPLE_RATES.get(index as usize).copied(),
    }
}

/// Table 1.17.
fn object_type_name(kind: u32) -> String {
    match kind {
        1 => "Main".to_owned(),
        2 => "LC".to_owned(),
        3 => "SSR".to_owned(),
        4 => "LTP".to_owned(),
        5 => "HE".to_owned(),
        23 => "LD".to_owned(),
        29 => "HE v2".to_owned(),
        39 => "ELD".to_owned(),
        42 => "USAC".to_owned(),
        other => format!("object type {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::h264::parameter_sets::{Sequence, sequence_parameter_set};
    use proptest::prelude::*;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> =
            hex.bytes().filter_map(|it| (it as char).to_digit(16)).map(|it| it as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    fn shown(codec: PictureCodec, hex: &str) -> String {
        let PictureFormat { profile, size: (width, height) } = codec.format(&bytes(hex)).unwrap();
        format!("{profile}, {width}x{height}")
    }

    #[test]
    fn profile_level_and_size_are_those_that_encoders_wrote() {
        // x264, the second of them interlaced, which is cropped from 1,088 rows by four each.
        let high = "6764001facd9405005bb011000000300100000030320f1831960";
        assert_eq!(shown(PictureCodec::H264, high), "High, level 3.1, 1280x720");
        let main = "674d4028eca03c0227ef011000000300100000030321f162d960";
        assert_eq!(shown(PictureCodec::H264, main), "Main, level 4, 1920x1080");
        // weir's own: 360 rows are cropped from 368.
        let frame_rate = crate::VideoSettings::default().frame_rate;
        let own = Sequence { width: 640, height: 360, frame_rate, level_idc: 30 };
        let own = PictureCodec::H264.format(&sequence_parameter_set(&own)).unwrap();
        assert_eq!((own.profile.as_str(), own.size), ("Constrained Baseline, level 3", (640, 360)));
        // x265.
        let main = "420101016000000300900000030000030078a003c08010e596566924caf0168080000003008000000c84";
        assert_eq!(shown(PictureCodec::H265, main), "Main, level 4, 1920x1080");
    }

    #[test]
    fn what_is_no_sequence_parameter_set_says_nothing() {
        for unit in ["", "68 ce 3c 80", "67", "67 64 00", "67 42 00 1f 00 00 00 00 00 00"] {
            assert_eq!(PictureCodec::H264.format(&bytes(unit)), None, "{unit}");
        }
        assert_eq!(PictureCodec::H265.format(&bytes("40 01 0c 01")), None);
    }

    #[test]
    fn the_configuration_of_aac_says_rate_channels_and_kind() {
        let format = |hex: &str| {
            let SoundFormat { profile, sample_rate, channels } = aac_format(&bytes(hex)).unwrap();
            (profile, sample_rate, channels)
        };
        assert_eq!(format("12 10"), ("LC".to_owned(), 44_100, Some(2)));
        assert_eq!(format("11 88"), ("LC".to_owned(), 48_000, Some(1)));
        // HE-AAC: a core of 24 kHz that is heard at 48.
        assert_eq!(format("2b 11 88 00"), ("HE".to_owned(), 48_000, Some(2)));
        assert_eq!(aac_format(&[0x12]), None);
        let adts = adts_format(&bytes("ff f1 4c 80 2e 7f fc")).unwrap();
        assert_eq!((adts.profile.as_str(), adts.sample_rate, adts.channels), ("LC", 48_000, Some(2)));
        assert_eq!(adts_format(&bytes("47 40 00 10")), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_a_size_that_no_decoder_could_show(tail in prop::collection::vec(any::<u8>(), 0..120)) {
            for (codec, head) in [(PictureCodec::H264, &[0x67][..]), (PictureCodec::H265, &[0x42, 1][..])] {
                let unit = [head, &tail].concat();
                if let Some(format) = codec.format(&unit) {
                    prop_assert!(format.size.0 <= LARGEST_SIDE && format.size.1 <= LARGEST_SIDE);
                    prop_assert!(format.profile.len() < 80);
                }
                let _ = codec.format_of_record(&unit);
                let _ = (aac_format(&unit), adts_format(&unit));
            }
        }
    }
}
