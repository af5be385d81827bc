//! The sequence header of AV1.

use super::{PictureFormat, level_name};
use crate::bits::BitReader;

/// An OBU, if it is a sequence header (AV1 sections 5.3.2 and 5.5.1).
pub(super) fn sequence_header(obu: &[u8]) -> Option<PictureFormat> {
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
    let mut bits = BitReader::new(rest);
    let profile = bits.bits(3)?;
    bits.skip(1)?; // still_picture
    let (level, high) = if bits.flag()? {
        // reduced_still_picture_header
        (bits.bits(5)?, false)
    } else {
        operating_points(&mut bits)?
    };
    let (width_bits, height_bits) = (bits.bits(4)? + 1, bits.bits(4)? + 1);
    let size = (bits.bits(width_bits)? + 1, bits.bits(height_bits)? + 1);
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
    fn other_units_and_what_is_cut_short_say_nothing() {
        (0..8).for_each(|length| assert_eq!(read(&AV1[..length]), None));
        assert_eq!(read(&[&[0x32], &AV1[1..]].concat()), None);
    }
}
