//! The sequence header of AV1.

use super::{PictureFormat, level_name};
use crate::bits::BitReader;

/// What a sequence header says, up to its size.
struct Beginning {
    profile: u32,
    is_reduced: bool,
    /// Of the first operating point.
    level: u32,
    high: bool,
    size: (u32, u32),
}

/// The bits of an OBU, if it is a sequence header (AV1 sections 5.3.2 and 5.5.1).
fn bits_of(obu: &[u8]) -> Option<BitReader<'_>> {
    const OBU_SEQUENCE_HEADER: u8 = 1;
    let (&first, mut rest) = obu.split_first()?;
    if first >> 3 & 0x0F != OBU_SEQUENCE_HEADER {
        return None;
    }
    // obu_extension_flag, obu_has_size_field.
    if first & 0x04 != 0 {
        rest = rest.get(1..)?;
    }
    if first & 0x02 != 0 {
        let end = rest.iter().position(|byte| byte & 0x80 == 0)?;
        rest = rest.get(end + 1..)?;
    }
    Some(BitReader::new(rest))
}

fn beginning(bits: &mut BitReader<'_>) -> Option<Beginning> {
    let profile = bits.bits(3)?;
    bits.skip(1)?; // still_picture
    let is_reduced = bits.flag()?; // reduced_still_picture_header
    let (level, high) = if is_reduced { (bits.bits(5)?, false) } else { operating_points(bits)? };
    let (width_bits, height_bits) = (bits.bits(4)? + 1, bits.bits(4)? + 1);
    let size = (bits.bits(width_bits)? + 1, bits.bits(height_bits)? + 1);
    Some(Beginning { profile, is_reduced, level, high, size })
}

/// The first four bytes of an AV1CodecConfigurationRecord ("AV1 Codec ISO Media File Format Binding" section 2.3.3), of an OBU that is a
/// sequence header.
pub(crate) fn configuration(obu: &[u8]) -> Option<[u8; 4]> {
    let mut bits = bits_of(obu)?;
    let Beginning { profile, is_reduced, level, high, .. } = beginning(&mut bits)?;
    if !is_reduced && bits.flag()? {
        bits.skip(4 + 3)?; // delta_frame_id_length_minus_2, additional_frame_id_length_minus_1
    }
    bits.skip(3)?; // use_128x128_superblock, enable_filter_intra, enable_intra_edge_filter
    if !is_reduced {
        bits.skip(4)?; // enable_interintra_compound up to enable_dual_filter
        let has_order_hint = bits.flag()?;
        bits.skip(if has_order_hint { 2 } else { 0 })?; // enable_jnt_comp, enable_ref_frame_mvs
        // seq_choose_screen_content_tools, or seq_force_screen_content_tools; then seq_choose_integer_mv, or seq_force_integer_mv.
        if (bits.flag()? || bits.flag()?) && !bits.flag()? {
            bits.skip(1)?;
        }
        bits.skip(if has_order_hint { 3 } else { 0 })?; // order_hint_bits_minus_1
    }
    bits.skip(3)?; // enable_superres, enable_cdef, enable_restoration
    let colour = colour(&mut bits, profile)?;
    let level = (level & 0x1F) as u8;
    Some([0x81, (profile as u8) << 5 | level, u8::from(high) << 7 | colour, 0])
}

/// color_config(), section 5.5.2, as the record has it: high_bitdepth, twelve_bit, monochrome, chroma_subsampling_x, chroma_subsampling_y
/// and chroma_sample_position of two bits.
fn colour(bits: &mut BitReader<'_>, profile: u32) -> Option<u8> {
    const SRGB: (u32, u32, u32) = (1, 13, 0);
    let high_bit_depth = bits.flag()?;
    let twelve_bit = profile == 2 && high_bit_depth && bits.flag()?;
    let monochrome = profile != 1 && bits.flag()?;
    let described = if bits.flag()? { (bits.bits(8)?, bits.bits(8)?, bits.bits(8)?) } else { (2, 2, 2) };
    let (across, down, position) = if monochrome {
        (true, true, 0)
    } else if described == SRGB {
        (false, false, 0)
    } else {
        bits.skip(1)?; // color_range
        let (across, down) = match profile {
            0 => (true, true),
            1 => (false, false),
            _ if twelve_bit => {
                let across = bits.flag()?;
                (across, across && bits.flag()?)
            }
            _ => (true, false),
        };
        (across, down, if across && down { bits.bits(2)? as u8 } else { 0 })
    };
    let flag = |set: bool, at: u8| u8::from(set) << at;
    Some(
        flag(high_bit_depth, 6)
            | flag(twelve_bit, 5)
            | flag(monochrome, 4)
            | flag(across, 3)
            | flag(down, 2)
            | position,
    )
}

/// An OBU, if it is a sequence header.
pub(super) fn sequence_header(obu: &[u8]) -> Option<PictureFormat> {
    let Beginning { profile, level, high, size, .. } = beginning(&mut bits_of(obu)?)?;
    // Section 6.4.1.
    let name = match profile {
        0 => "Main".to_owned(),
        1 => "High".to_owned(),
        2 => "Professional".to_owned(),
        other => format!("profile {other}"),
    };
    // Annex A.3: level X.Y is 4 * (X - 2) + Y, and 31 is without bounds.
    let level = match level {
        31 => "level without bounds".to_owned(),
        level => format!("level {}", level_name((level / 4 + 2) * 10 + level % 4, 10)),
    };
    let tier = if high { " (high tier)" } else { "" };
    Some(PictureFormat { profile: format!("{name}, {level}{tier}"), size })
}

/// Level and tier of the first operating point; reads over the others.
fn operating_points(bits: &mut BitReader<'_>) -> Option<(u32, bool)> {
    let mut delay_bits = None;
    // timing_info_present_flag, section 5.5.3.
    if bits.flag()? {
        bits.skip(64)?; // num_units_in_display_tick, time_scale
        if bits.flag()? {
            bits.unsigned_golomb()?; // num_ticks_per_picture_minus_1, which has the same form
        }
        // decoder_model_info_present_flag, section 5.5.4.
        if bits.flag()? {
            delay_bits = Some(bits.bits(5)? + 1);
            bits.skip(32 + 5 + 5)?; // num_units_in_decoding_tick, and two lengths
        }
    }
    let has_display_delay = bits.flag()?;
    let mut first = None;
    for _ in 0..=bits.bits(5)? {
        bits.skip(12)?; // operating_point_idc
        let level = bits.bits(5)?;
        let tier = level > 7 && bits.flag()?;
        if let Some(delay_bits) = delay_bits
            && bits.flag()?
        {
            bits.skip(2 * delay_bits + 1)?; // section 5.5.5
        }
        if has_display_delay && bits.flag()? {
            bits.skip(4)?; // initial_display_delay_minus_1
        }
        first.get_or_insert((level, tier));
    }
    first
}

#[cfg(test)]
mod tests {
    use super::super::PictureCodec;

    /// The sequence header of pictures of 320x180 that ffmpeg made (`-c:v libaom-av1`), with a size.
    const AV1: &[u8] = &[0x0A, 0x0B, 0x00, 0x00, 0x00, 0x04, 0x3C, 0xFE, 0xCC, 0xDA, 0xF9, 0x00, 0x40];

    fn read(obu: &[u8]) -> Option<(String, (u32, u32))> {
        PictureCodec::Av1.format(obu).map(|format| (format.profile, format.size))
    }

    #[test]
    fn a_sequence_header_says_profile_level_and_size() {
        assert_eq!(read(AV1), Some(("Main, level 2".to_owned(), (320, 180))));
        // Without a size, and with an extension.
        assert_eq!(read(&[&[0x08], &AV1[2..]].concat()), read(AV1));
        assert_eq!(read(&[&[0x0C, 0x00], &AV1[2..]].concat()), read(AV1));
    }

    #[test]
    fn a_configuration_record_says_profile_level_and_colour() {
        // Main, level 2.0 (index 0), 8 bits, 4:2:0.
        assert_eq!(super::configuration(AV1).map(|it| it[..3].to_vec()), Some(vec![0x81, 0, 0x0C]));
        (0..8).for_each(|length| assert_eq!(super::configuration(&AV1[..length]), None));
    }

    #[test]
    fn other_units_and_what_is_cut_short_say_nothing() {
        (0..8).for_each(|length| assert_eq!(read(&AV1[..length]), None));
        assert_eq!(read(&[&[0x32], &AV1[1..]].concat()), None);
    }
}
