//! Frames as elementary streams: Annex B and ADTS, as transport streams and plain files carry them.

use crate::nal::{Framing, units};
use crate::{AudioConfig, Frame, VideoConfig};

/// Appends a video frame in Annex B (H.264, annex B), each keyframe behind its parameter sets.
pub fn append_annex_b(config: &VideoConfig, frame: &Frame, out: &mut Vec<u8>) {
    if frame.keyframe {
        for unit in parameter_sets(&config.decoder_configuration) {
            out.extend_from_slice(&[0, 0, 0, 1]);
            out.extend_from_slice(unit);
        }
    }
    for unit in units(&frame.payload, Framing::LengthPrefixed) {
        out.extend_from_slice(&[0, 0, 0, 1]);
        out.extend_from_slice(unit);
    }
}

/// The sequence and picture parameter sets in an AVCDecoderConfigurationRecord (ISO/IEC 14496-15, clause
/// 5.3.3.1.2), in order, as NAL units. A damaged record gives those before the damage.
pub fn parameter_sets(decoder_configuration: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = decoder_configuration.get(5..).unwrap_or_default();
    let mut lists_left = 2;
    let mut units_left = 0;
    std::iter::from_fn(move || {
        while units_left == 0 {
            if lists_left == 0 {
                return None;
            }
            // The first count has three reserved bits on top, the second none.
            let mask = if lists_left == 2 { 0x1f } else { 0xff };
            lists_left -= 1;
            let (count, behind) = rest.split_first()?;
            units_left = count & mask;
            rest = behind;
        }
        units_left -= 1;
        let unit;
        (unit, rest) = split_unit(rest)?;
        Some(unit)
    })
}

/// The parameter sets in a record of H.265 (ISO/IEC 14496-15, clause 8.3.3.1.2), in order, as NAL units. A damaged record gives those
/// before the damage.
pub(crate) fn h265_parameter_sets(decoder_configuration: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = decoder_configuration.get(23..).unwrap_or_default();
    let mut lists_left = decoder_configuration.get(22).copied().unwrap_or_default();
    let mut units_left = 0;
    std::iter::from_fn(move || {
        while units_left == 0 {
            lists_left = lists_left.checked_sub(1)?;
            // The type, and how many.
            let (list, behind) = rest.split_first_chunk::<3>()?;
            units_left = u16::from_be_bytes([list[1], list[2]]);
            rest = behind;
        }
        units_left -= 1;
        let unit;
        (unit, rest) = split_unit(rest)?;
        Some(unit)
    })
}

/// A unit behind its length in two bytes, and what is behind it.
fn split_unit(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, behind) = bytes.split_first_chunk::<2>()?;
    behind.split_at_checked(u16::from_be_bytes(*length).into())
}

/// Appends the AVCDecoderConfigurationRecord (ISO/IEC 14496-15, clause 5.3.3.1.2) of parameter sets, with lengths of four
/// bytes. The first sequence parameter set says profile and level. Returns whether it was appended: that needs a
/// sequence parameter set, and units of 65,535 bytes at most.
pub fn append_decoder_configuration(sequence: &[&[u8]], picture: &[&[u8]], out: &mut Vec<u8>) -> bool {
    let Some(&[_, profile, constraints, level, ..]) = sequence.first().copied() else { return false };
    let fit = sequence.iter().chain(picture).all(|unit| unit.len() <= usize::from(u16::MAX));
    if !fit || sequence.len() > 31 || picture.len() > 255 {
        return false;
    }
    out.extend([1, profile, constraints, level, 0xfc | 3]); // lengthSizeMinusOne
    for (count, units) in [(0xe0 | sequence.len() as u8, sequence), (picture.len() as u8, picture)] {
        out.push(count);
        for unit in units {
            out.extend((unit.len() as u16).to_be_bytes());
            out.extend_from_slice(unit);
        }
    }
    if profile == HIGH_PROFILE {
        // It has 4:2:0 with 8 bits only; no extension of sequence parameter sets.
        out.extend([0xfc | 1, 0xf8, 0xf8, 0]);
    }
    true
}

/// profile_idc of the high profile (H.264, clause A.2.4).
const HIGH_PROFILE: u8 = 100;

/// Appends an audio frame behind an ADTS header (ISO/IEC 14496-3, clause 1.A.2.2).
pub fn append_adts(config: &AudioConfig, frame: &Frame, out: &mut Vec<u8>) {
    let Some(header) = adts_header(&config.specific_config, frame.payload.len()) else { return };
    out.extend_from_slice(&header);
    out.extend_from_slice(&frame.payload);
}

/// The ADTS header of a frame of this many bytes, of AAC with this AudioSpecificConfig; `None` where that is cut short.
pub fn adts_header(specific_config: &[u8], payload: usize) -> Option<[u8; 7]> {
    let [first, second, ..] = *specific_config else { return None };
    let profile = (first >> 3).saturating_sub(1) & 3; // audioObjectType − 1
    let sampling_frequency_index = (first & 7) << 1 | second >> 7;
    let channel_configuration = second >> 3 & 0xf;
    let length = 7 + payload;
    Some([
        0xff,
        0xf1, // MPEG-4, layer 0, no CRC
        profile << 6 | sampling_frequency_index << 2 | channel_configuration >> 2,
        channel_configuration << 6 | (length >> 11) as u8 & 3,
        (length >> 3) as u8,
        (length << 5) as u8 | 0x1f, // adts_buffer_fullness 0x7ff: variable rate
        0xfc,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_sets_come_out_of_the_record_that_was_made_of_them() {
        for profile in [66, HIGH_PROFILE] {
            let (sequence, picture) = ([0x67, profile, 0xe0, 31, 1], [0x68, 2, 3]);
            let mut record = Vec::new();
            assert!(append_decoder_configuration(&[&sequence], &[&picture, &picture], &mut record));
            assert_eq!(record[..5], [1, profile, 0xe0, 31, 0xff]);
            assert_eq!(parameter_sets(&record).collect::<Vec<_>>(), [&sequence[..], &picture, &picture]);
        }
    }

    #[test]
    fn no_record_is_made_without_a_sequence_parameter_set_or_of_too_much() {
        let (short, long) = ([0x67, 66], vec![0x67; 65_536]);
        for sequence in [&[][..], &[&short[..]], &[&long[..]]] {
            let mut record = Vec::new();
            assert!(!append_decoder_configuration(sequence, &[&[0x68]], &mut record) && record.is_empty());
        }
    }
}
