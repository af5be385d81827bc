//! Bytes of a bit rate, and frames per second as a ratio, because 29.97 is 30000/1001.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;
use weir_metrics::BitRate;

/// The whole bytes that a rate carries in `numerator / denominator` seconds.
pub(crate) fn bytes_in(rate: BitRate, numerator: u64, denominator: u64) -> u64 {
    let bits = u128::from(rate.whole_bps()) * u128::from(numerator) / u128::from(denominator);
    u64::try_from(bits / 8).unwrap_or(u64::MAX)
}

/// The rate, rounded up to whole bits, of `bytes` in `numerator / denominator` seconds.
pub(crate) fn rate_of_bytes(bytes: u64, numerator: u64, denominator: u64) -> BitRate {
    let bits = (u128::from(bytes) * 8 * u128::from(denominator)).div_ceil(u128::from(numerator));
    BitRate::from_bps(bits as f64)
}

/// A frame rate, in frames per second, as a ratio of whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FrameRate {
    frames: NonZeroU32,
    seconds: NonZeroU32,
}

impl FrameRate {
    /// `frames` frames in `seconds` seconds, in lowest terms; `None` when either is zero or, in lowest
    /// terms, above 1,000,000.
    pub fn new(frames: u32, seconds: u32) -> Option<Self> {
        let divisor = greatest_common_divisor(frames, seconds);
        let (frames, seconds) = (frames.checked_div(divisor)?, seconds.checked_div(divisor)?);
        (frames.max(seconds) <= 1_000_000)
            .then_some(Self { frames: NonZeroU32::new(frames)?, seconds: NonZeroU32::new(seconds)? })
    }

    /// The rate that people mean by a decimal; `None` outside 0.001 to 1000. Decimals next to a rate of NTSC
    /// become that rate (29.97 is 30000/1001), others are taken as thousandths.
    pub fn from_decimal(decimal: f64) -> Option<Self> {
        if !(0.001..=1000.0).contains(&decimal) {
            return None;
        }
        let whole = decimal.round();
        if decimal == whole {
            Self::new(whole as u32, 1)
        } else if whole > 0.0 && (decimal - whole * 1000.0 / 1001.0).abs() < 0.006 {
            Self::new(whole as u32 * 1000, 1001)
        } else {
            Self::new((decimal * 1000.0).round() as u32, 1000)
        }
    }

    /// A whole number of frames a second.
    pub(crate) const fn whole(frames: u32) -> Self {
        match NonZeroU32::new(frames) {
            Some(frames) => Self { frames, seconds: NonZeroU32::MIN },
            None => panic!("a rate of no frames"),
        }
    }

    /// The frames in [`Self::denominator`] seconds.
    pub fn numerator(self) -> u32 {
        self.frames.get()
    }

    /// The seconds in which [`Self::numerator`] frames pass.
    pub fn denominator(self) -> u32 {
        self.seconds.get()
    }

    /// Frames per second, rounded to the nearest double.
    pub fn as_f64(self) -> f64 {
        f64::from(self.numerator()) / f64::from(self.denominator())
    }

    /// When frame `index` (from 0) is due, rounded down to the nanosecond. No error builds up.
    pub fn time_of(self, index: u64) -> Duration {
        ticks(u128::from(index) * u128::from(self.denominator()), self.numerator())
    }
}

/// A frame rate that is neither a whole number, nor a ratio, nor a decimal.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a frame rate; write 25, 30000/1001 or 29.97")]
pub struct ParseFrameRateError(String);

/// Reads `25`, `30000/1001` and, by [`FrameRate::from_decimal`], `29.97`.
impl FromStr for FrameRate {
    type Err = ParseFrameRateError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseFrameRateError(text.to_owned());
        if let Some((frames, seconds)) = text.split_once('/') {
            let part = |part: &str| part.trim().parse().map_err(|_| error());
            return Self::new(part(frames)?, part(seconds)?).ok_or_else(error);
        }
        text.trim().parse().ok().and_then(Self::from_decimal).ok_or_else(error)
    }
}

impl fmt::Display for FrameRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.denominator() {
            1 => write!(f, "{}", self.numerator()),
            denominator => write!(f, "{}/{denominator}", self.numerator()),
        }
    }
}

fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// `count` ticks of a clock with `per_second` ticks a second, rounded down to the nanosecond.
pub(crate) fn ticks(count: u128, per_second: u32) -> Duration {
    let per_second = u128::from(per_second);
    let nanoseconds = count % per_second * 1_000_000_000 / per_second;
    Duration::new((count / per_second) as u64, nanoseconds as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decimals_of_ntsc_become_ratios() {
        for (text, numerator, denominator) in [
            ("25", 25, 1),
            ("29.97", 30000, 1001),
            ("23.976", 24000, 1001),
            ("23.98", 24000, 1001),
            ("59.94", 60000, 1001),
            ("12.5", 25, 2),
            ("30000/1001", 30000, 1001),
        ] {
            assert_eq!(text.parse(), Ok(FrameRate::new(numerator, denominator).unwrap()), "{text}");
        }
        for text in ["", "0", "-25", "25/0", "NaN", "fast"] {
            assert!(text.parse::<FrameRate>().is_err(), "{text}");
        }
    }

    #[test]
    fn an_hour_of_ntsc_is_not_a_nanosecond_off() {
        let rate = FrameRate::new(30000, 1001).unwrap();
        assert_eq!(rate.time_of(30_000), Duration::from_secs(1001));
        assert_eq!(rate.time_of(107_892 * 30_000), Duration::from_secs(107_892 * 1001));
    }

    proptest! {
        #[test]
        fn frame_times_rise_by_one_frame(frames in 1u32..=240_000, seconds in 1u32..=1001, index in 0u64..1 << 40) {
            let rate = FrameRate::new(frames, seconds).unwrap();
            let step = rate.time_of(index + 1) - rate.time_of(index);
            let exact = 1e9 / rate.as_f64();
            prop_assert!((step.as_nanos() as f64 - exact).abs() < 1.001);
        }

        #[test]
        fn the_rate_of_bytes_carries_those_bytes(bytes in 0u64..1 << 40, numerator in 1u64..100_000, denominator in 1u64..100_000) {
            prop_assert!(bytes_in(rate_of_bytes(bytes, numerator, denominator), numerator, denominator) >= bytes);
        }
    }
}
