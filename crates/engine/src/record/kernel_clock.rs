//! What a kernel says of its clock, as run directories and summaries have it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use weir_shard::clock;

/// The largest rate at which the kernel moves a clock (adjtimex(2), `tolerance`): 500 ppm.
const MOST_RATE: f64 = 500e-6;

/// What a kernel says of its clock (adjtimex(2)).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelClock {
    /// Whether something keeps it at the time of day.
    pub is_synchronised: bool,
    /// How far it is from the time of day at the most.
    pub most_error_seconds: f64,
    /// How far it is by estimate.
    pub estimated_error_seconds: f64,
    /// What it is still to be moved by, by and by.
    pub slewing_seconds: f64,
}

impl KernelClock {
    /// That of this machine, if it may be asked.
    pub fn read() -> Option<Self> {
        let clock = clock::of_kernel()?;
        Some(Self {
            is_synchronised: clock.is_synchronised,
            most_error_seconds: clock.most_error.as_secs_f64(),
            estimated_error_seconds: clock.estimated_error.as_secs_f64(),
            slewing_seconds: clock.slewing.as_secs_f64(),
        })
    }

    /// By how much the kernel may move the clock within a time, as it stands: what is left of its correction, at the most by the
    /// rate at which it makes corrections.
    pub fn moves_within(&self, time: Duration) -> Duration {
        // What another machine says may be no number.
        let left = if self.slewing_seconds.is_finite() { self.slewing_seconds.abs() } else { f64::MAX };
        Duration::from_secs_f64(left.min(MOST_RATE * time.as_secs_f64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_moves_a_clock_by_what_is_left_and_no_faster_than_it_can() {
        let clock = |slewing_seconds| KernelClock {
            is_synchronised: true,
            most_error_seconds: 0.004,
            estimated_error_seconds: 0.001,
            slewing_seconds,
        };
        let within = |slewing, seconds| clock(slewing).moves_within(Duration::from_secs(seconds));
        assert_eq!(within(0.000_1, 5), Duration::from_micros(100));
        assert_eq!(within(-0.1, 5), Duration::from_micros(2_500));
        assert_eq!(within(f64::NAN, 2), Duration::from_millis(1));
    }
}
