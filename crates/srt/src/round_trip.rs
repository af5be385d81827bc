//! The round-trip time of a connection, smoothed.

use std::time::Duration;

/// draft-sharabayko-srt-01, section 4.10: "The initial value of RTT is 100 milliseconds, RTTVar is 50 milliseconds."
const INITIAL: RoundTrip = RoundTrip { time: 100_000, variance: 50_000, is_measured: false };
/// Longer round trips are not believed: the answer is to something else.
const LONGEST: u32 = 60_000_000;

/// Round-trip time and its variance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    time: u32,
    variance: u32,
    is_measured: bool,
}

impl Default for RoundTrip {
    fn default() -> Self {
        INITIAL
    }
}

impl RoundTrip {
    /// The smoothed time.
    pub fn time(&self) -> Duration {
        Duration::from_micros(u64::from(self.time))
    }

    /// The smoothed distance of measurements from it.
    pub fn variance(&self) -> Duration {
        Duration::from_micros(u64::from(self.variance))
    }

    /// Whether it was measured, or is the initial value.
    pub fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// In microseconds, as acknowledgements have them.
    pub(crate) fn as_micros(&self) -> [u32; 2] {
        [self.time, self.variance]
    }

    /// What the peer has measured and smoothed. One that has not measured yet says the initial values.
    pub(crate) fn set(&mut self, time: u32, variance: u32) {
        if (time, variance) != (INITIAL.time, INITIAL.variance) {
            *self = Self { time: time.min(LONGEST), variance: variance.min(LONGEST), is_measured: true };
        }
    }

    /// One more measurement.
    pub(crate) fn measure(&mut self, micros: u32) {
        let sample = micros.min(LONGEST);
        if !std::mem::replace(&mut self.is_measured, true) {
            (self.time, self.variance) = (sample, sample / 2);
            return;
        }
        //= draft-sharabayko-srt-01, section 4.10
        //# RTTVar = 3/4 * RTTVar + 1/4 * abs(RTT - rtt)
        self.variance = (3 * self.variance + self.time.abs_diff(sample)) / 4;
        //= draft-sharabayko-srt-01, section 4.10
        //# RTT = 7/8 * RTT + 1/8 * rtt
        self.time = ((7 * u64::from(self.time) + u64::from(sample)) / 8) as u32;
    }

    /// RTT + 4 · RTTVar: after this time an answer is lost.
    pub(crate) fn patience(&self) -> Duration {
        self.time() + 4 * self.variance()
    }
}
