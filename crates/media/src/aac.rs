//! AAC-LC of any weight (ISO/IEC 14496-3, subpart 4): silence, filled up with fill elements. Fill elements
//! are inside the access unit, where no server looks.

use crate::bits::BitWriter;

/// Samples in one access unit of AAC-LC.
pub(crate) const SAMPLES_PER_UNIT: u32 = 1024;

/// The most bytes of one access unit, per channel: 6144 bits (clause 4.5.3.1).
pub(crate) const MAX_UNIT_BYTES_PER_CHANNEL: u64 = 768;

/// samplingFrequencyIndex (table 1.18), by its place in this list.
pub(crate) const SAMPLE_RATES: [u32; 13] =
    [96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000, 11025, 8000, 7350];

/// AudioSpecificConfig (clause 1.6.2.1) of AAC-LC with 1 or 2 channels; `None` for a rate without an index.
pub(crate) fn specific_config(sample_rate: u32, channels: u8) -> Option<Vec<u8>> {
    let index = SAMPLE_RATES.iter().position(|&rate| rate == sample_rate)?;
    let mut bits = BitWriter::default();
    bits.bits(2, 5); // audioObjectType: AAC LC
    bits.bits(index as u32, 4); // samplingFrequencyIndex
    bits.bits(channels.into(), 4); // channelConfiguration
    bits.bits(0, 3); // frameLengthFlag, dependsOnCoreCoder, extensionFlag
    Some(bits.finish())
}

/// Samples per second and channels in an AudioSpecificConfig. Channels described elsewhere (a configuration
/// of 0) are taken for two.
pub(crate) fn parse_specific_config(config: &[u8]) -> Option<(u32, u8)> {
    let mut bytes = [0; 8];
    let length = config.len().min(8);
    bytes[..length].copy_from_slice(&config[..length]);
    let bits = u64::from_be_bytes(bytes);
    let mut at = 0;
    let mut take = |count: u32| {
        at += count;
        (bits << (at - count) >> (64 - count)) as u32
    };
    if take(5) == 31 {
        take(6); // audioObjectTypeExt
    }
    let sample_rate = match take(4) {
        15 => take(24),
        index => *SAMPLE_RATES.get(index as usize)?,
    };
    let channels = match take(4) {
        0 => 2,
        7 => 8,
        count @ 1..=6 => count as u8,
        _ => return None,
    };
    (at as usize <= length * 8 && sample_rate > 0).then_some((sample_rate, channels))
}

/// One raw_data_block of silence, `length` bytes long, or as few more as silence takes.
pub(crate) fn silence(channels: u8, length: usize) -> Vec<u8> {
    let mut bits = BitWriter::default();
    match channels {
        1 => {
            bits.bits(SINGLE_CHANNEL_ELEMENT, 3);
            bits.bits(0, 4); // element_instance_tag
            bits.bits(0, 8); // global_gain
            ics_info(&mut bits);
            no_tools(&mut bits);
        }
        _ => {
            bits.bits(CHANNEL_PAIR_ELEMENT, 3);
            bits.bits(0, 4); // element_instance_tag
            bits.flag(true); // common_window
            ics_info(&mut bits);
            bits.bits(0, 2); // ms_mask_present
            for _channel in 0..2 {
                bits.bits(0, 8); // global_gain
                no_tools(&mut bits);
            }
        }
    }
    fill(&mut bits, (length * 8).saturating_sub(3));
    bits.bits(END, 3);
    bits.align();
    bits.finish()
}

/// id_syn_ele, table 4.85.
const SINGLE_CHANNEL_ELEMENT: u32 = 0;
const CHANNEL_PAIR_ELEMENT: u32 = 1;
const FILL_ELEMENT: u32 = 6;
const END: u32 = 7;

/// ics_info(), table 4.6: one long window with no scale factor band, so that no spectrum follows.
fn ics_info(bits: &mut BitWriter) {
    bits.flag(false); // ics_reserved_bit
    bits.bits(0, 2); // window_sequence: ONLY_LONG_SEQUENCE
    bits.flag(false); // window_shape: sine
    bits.bits(0, 6); // max_sfb
    bits.flag(false); // predictor_data_present
}

/// The rest of individual_channel_stream(), table 4.50, where max_sfb is 0.
fn no_tools(bits: &mut BitWriter) {
    bits.flag(false); // pulse_data_present
    bits.flag(false); // tns_data_present
    bits.flag(false); // gain_control_data_present
}

/// fill_element()s, table 4.11, until fewer than eight bits are missing to `end_bits`.
fn fill(bits: &mut BitWriter, end_bits: usize) {
    loop {
        let missing = end_bits.saturating_sub(bits.len_bits());
        if missing < 8 {
            return;
        }
        bits.bits(FILL_ELEMENT, 3);
        // count in four bits up to 14, else 15 and (count − 14) in eight more.
        let mut count = (missing - 7) / 8;
        if count < 15 {
            bits.bits(count as u32, 4);
        } else {
            count = ((missing - 15) / 8).min(14 + 255);
            bits.bits(15, 4);
            bits.bits((count - 14) as u32, 8);
        }
        if count > 0 {
            bits.bits(1, 4); // extension_type: EXT_FILL_DATA, table 4.51
            bits.bits(0, 4); // fill_nibble
            for _ in 1..count {
                bits.bits(0xa5, 8); // fill_byte
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_met_to_the_byte() {
        for (channels, shortest) in [(1, 4), (2, 6)] {
            assert_eq!(silence(channels, 0).len(), shortest);
            for length in shortest..=usize::from(channels) * 768 {
                assert_eq!(silence(channels, length).len(), length, "{channels} channels");
            }
        }
    }

    #[test]
    fn the_usual_configurations_are_the_well_known_bytes() {
        assert_eq!(specific_config(48_000, 2).as_deref(), Some(&[0x11, 0x90][..]));
        assert_eq!(specific_config(44_100, 2).as_deref(), Some(&[0x12, 0x10][..]));
        assert_eq!(specific_config(44_101, 2), None);
        assert_eq!(parse_specific_config(&[0x11, 0x90]), Some((48_000, 2)));
        assert_eq!(parse_specific_config(&[0x12, 0x08]), Some((44_100, 1)));
        assert_eq!(parse_specific_config(&[0x17, 0x80, 0x5d, 0xc0, 0x10]), Some((48_000, 2)));
        assert_eq!(parse_specific_config(&[0x11]), None);
        assert_eq!(parse_specific_config(&[]), None);
    }
}
