//! A point of the monotonic clock, as a value: pure code takes the time as an argument and never reads a clock.

use std::ops::{Add, Sub};
use std::time::Duration;

/// Nanoseconds of `CLOCK_MONOTONIC`, which all processes of one boot share.
///
/// Unlike [`std::time::Instant`] it can be written into a clock stamp and made up in a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Moment(u64);

impl Moment {
    /// The moment `nanoseconds` after the clock's zero.
    pub const fn from_nanos(nanoseconds: u64) -> Self {
        Self(nanoseconds)
    }

    /// Nanoseconds since the clock's zero.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time since `earlier`, zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }

    /// Microseconds since `earlier`, negative if `earlier` is later.
    pub const fn micros_since(self, earlier: Self) -> i64 {
        self.0.wrapping_sub(earlier.0) as i64 / 1_000
    }
}

impl Add<Duration> for Moment {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl Sub<Duration> for Moment {
    type Output = Self;

    fn sub(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_keeps_its_sign_in_microseconds() {
        let (a, b) = (Moment::from_nanos(5_000_000), Moment::from_nanos(7_500_000));
        assert_eq!(b.micros_since(a), 2_500);
        assert_eq!(a.micros_since(b), -2_500);
        assert_eq!(a.since(b), Duration::ZERO);
    }
}
