//! NTP time stamps and their middle 32 bits (RFC 3550 section 4).

use std::time::Duration;

use weir_metrics::Moment;

/// Seconds in the upper 32 bits, their fraction in the lower.
///
/// RFC 3550 lets a sender use any clock that its streams share; weir's is the monotonic one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NtpTime(pub u64);

impl NtpTime {
    /// The time stamp of a moment, seconds since the clock's zero.
    pub fn of(moment: Moment) -> Self {
        let nanos = moment.as_nanos();
        let (seconds, rest) = (nanos / 1_000_000_000, nanos % 1_000_000_000);
        Self((seconds << 32) | ((rest << 32) / 1_000_000_000))
    }

    /// The middle 32 bits: 16 of the seconds, 16 of their fraction, as report blocks carry them.
    pub fn middle(self) -> u32 {
        (self.0 >> 16) as u32
    }
}

/// A span in units of 1/65536 second, as report blocks carry it; held to what 32 bits hold.
pub(crate) fn to_short(span: Duration) -> u32 {
    u32::try_from((span.as_nanos() << 16) / 1_000_000_000).unwrap_or(u32::MAX)
}

/// The span of a number of 1/65536 seconds.
pub(crate) fn from_short(units: u32) -> Duration {
    Duration::from_nanos((u64::from(units) * 1_000_000_000) >> 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_becomes_seconds_and_their_fraction() {
        let time = NtpTime::of(Moment::from_nanos(3_500_000_000));
        assert_eq!(time, NtpTime(3 << 32 | 1 << 31));
        assert_eq!(time.middle(), 3 << 16 | 1 << 15);
    }

    #[test]
    fn spans_go_to_short_units_and_back() {
        assert_eq!(to_short(Duration::from_millis(1500)), 3 << 15);
        assert_eq!(from_short(3 << 15), Duration::from_millis(1500));
        assert_eq!(to_short(Duration::from_secs(1 << 20)), u32::MAX);
    }
}
