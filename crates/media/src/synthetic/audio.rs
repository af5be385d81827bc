//! The sound of a clip: access units or packets of two lengths, whose alternation meets the bit rate.

use std::time::Duration;

use super::{AudioSettings, SyntheticError};
use crate::rate::ticks;
use crate::rate::{bytes_in, rate_of_bytes};
use crate::{AudioCodec, AudioConfig, aac, opus};
use weir_metrics::BitRate;

/// An endless row of access units.
#[derive(Debug)]
pub(crate) struct AudioClip {
    pub(crate) config: AudioConfig,
    bit_rate: BitRate,
    samples_per_unit: u32,
    /// The length below the exact one, and the one above.
    units: [Vec<u8>; 2],
}

impl AudioClip {
    pub(crate) fn new(settings: &AudioSettings) -> Result<Self, SyntheticError> {
        let AudioSettings { codec, sample_rate, channels, bit_rate } = *settings;
        if !(1..=2).contains(&channels) {
            return Err(SyntheticError::Channels(channels));
        }
        let no_rate = SyntheticError::SampleRate { codec, asked: sample_rate };
        let (specific_config, samples_per_unit, longest) = match codec {
            AudioCodec::Aac => (
                aac::specific_config(sample_rate, channels).ok_or(no_rate)?,
                aac::SAMPLES_PER_UNIT,
                aac::MAX_UNIT_BYTES_PER_CHANNEL * u64::from(channels),
            ),
            AudioCodec::Opus if sample_rate == opus::SAMPLE_RATE => {
                (Vec::new(), opus::SAMPLES_PER_PACKET, opus::MAX_PACKET_BYTES)
            }
            AudioCodec::Opus => return Err(no_rate),
        };
        let silence = |length| match codec {
            AudioCodec::Aac => aac::silence(channels, length),
            AudioCodec::Opus => opus::silence(channels, length),
        };
        let (samples, rate) = (u64::from(samples_per_unit), u64::from(sample_rate));
        let shortest = silence(0).len() as u64;
        let shorter = bytes_in(bit_rate, samples, rate);
        if shorter < shortest || rate_of_bytes(longest, samples, rate) < bit_rate {
            return Err(SyntheticError::AudioRate {
                asked: bit_rate,
                minimum: rate_of_bytes(shortest, samples, rate),
                maximum: rate_of_bytes(longest, samples, rate),
            });
        }
        let units = [shorter, shorter + 1].map(|length| silence(length as usize));
        let config = AudioConfig { codec, specific_config, sample_rate, channels, bit_rate: Some(bit_rate) };
        Ok(Self { config, bit_rate, samples_per_unit, units })
    }

    /// The access unit `index`, from 0.
    pub(crate) fn unit(&self, index: u64) -> &[u8] {
        let length = self.bytes_before(index + 1) - self.bytes_before(index);
        &self.units[usize::from(length > self.units[0].len() as u64)]
    }

    /// When the access unit `index` is due.
    pub(crate) fn time_of(&self, index: u64) -> Duration {
        ticks(u128::from(index) * u128::from(self.samples_per_unit), self.config.sample_rate)
    }

    fn bytes_before(&self, index: u64) -> u64 {
        bytes_in(self.bit_rate, index * u64::from(self.samples_per_unit), self.config.sample_rate.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_met_to_the_byte() {
        for kbps in [8, 64, 96, 128, 320] {
            let settings = AudioSettings {
                bit_rate: BitRate::from_kbps(kbps),
                sample_rate: 44_100,
                ..AudioSettings::default()
            };
            let clip = AudioClip::new(&settings).unwrap();
            let units = 44_100;
            let bytes: usize = (0..units).map(|index| clip.unit(index).len()).sum();
            assert_eq!(clip.time_of(units), Duration::from_secs(1024));
            assert_eq!(bytes as u64, kbps * 1000 / 8 * 1024);
        }
        for kbps in [6, 64, 101, 400] {
            let bit_rate = BitRate::from_kbps(kbps);
            let opus = AudioSettings { codec: AudioCodec::Opus, bit_rate, ..AudioSettings::default() };
            let clip = AudioClip::new(&opus).unwrap();
            let bytes: usize = (0..50).map(|index| clip.unit(index).len()).sum();
            assert_eq!((clip.time_of(50), bytes as u64), (Duration::from_secs(1), kbps * 1000 / 8));
        }
    }

    #[test]
    fn what_cannot_be_made_says_what_can() {
        let error = |settings: AudioSettings| AudioClip::new(&settings).unwrap_err().to_string();
        let usual = AudioSettings::default();
        assert_eq!(
            error(AudioSettings { bit_rate: BitRate::from_kbps(1), ..usual }),
            "audio of 1 kbit/s cannot be made; ask for 2.25 kbit/s to 576 kbit/s"
        );
        assert_eq!(
            error(AudioSettings { channels: 6, ..usual }),
            "6 channels cannot be made; ask for 1 or 2"
        );
        assert_eq!(
            error(AudioSettings { sample_rate: 48_001, ..usual }),
            "AAC has no sample rate of 48001; 48000 and 44100 are usual"
        );
        let opus = AudioSettings { codec: AudioCodec::Opus, ..usual };
        assert_eq!(
            error(AudioSettings { bit_rate: BitRate::from_kbps(500), ..opus }),
            "audio of 500 kbit/s cannot be made; ask for 1.2 kbit/s to 440 kbit/s"
        );
        assert_eq!(
            error(AudioSettings { sample_rate: 44_100, ..opus }),
            "Opus has no sample rate of 44100; 48000 is its only one"
        );
    }
}
