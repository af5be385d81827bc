//! The clocks of this machine, as a clock stamp carries them.

use std::time::Duration;
use weir_media::{ClockReading, Latency, LatencyClock, WallOffset};
use weir_metrics::common::{LATENCY, NEGATIVE_LATENCIES, STAMPED, WALL_LATENCIES};
use weir_metrics::{Moment, Recorder};
use weir_mqtt::mark::{Clocks, fold_boot_id};
use weir_shard::clock;

/// Boot id, and the wall clock's distance from the monotonic one, both read once: a reading then costs
/// no system call. A wall clock that is stepped during a run voids the run anyway.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostClock {
    boot_id: [u8; 16],
    wall_at_zero: u64,
}

/// Without a measured offset, wall clocks are taken to agree, within any bound.
pub(crate) const UNKNOWN_OFFSET: WallOffset =
    WallOffset { publisher_ahead_nanos: 0, uncertainty: Duration::MAX };

impl HostClock {
    /// Reads this machine's.
    pub fn read() -> Self {
        let boot_id = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
        Self {
            boot_id: parse_uuid(&boot_id).unwrap_or_default(),
            wall_at_zero: clock::wall_nanos().wrapping_sub(clock::now().as_nanos()),
        }
    }

    /// One with a made-up boot id, for tests.
    pub const fn made_up(boot_id: [u8; 16]) -> Self {
        Self { boot_id, wall_at_zero: 0 }
    }

    /// What the mark of a message says of `now`.
    #[inline]
    pub(crate) fn clocks(&self, now: Moment) -> Clocks {
        let reading = self.at(now);
        let boot = fold_boot_id(reading.boot_id);
        Clocks { monotonic: reading.monotonic_nanos, wall: reading.wall_nanos, boot }
    }

    /// What the clocks say at `now`.
    pub fn at(&self, now: Moment) -> ClockReading {
        ClockReading {
            boot_id: self.boot_id,
            monotonic_nanos: now.as_nanos(),
            wall_nanos: self.wall_at_zero.wrapping_add(now.as_nanos()),
        }
    }
}

/// Books what the stamp of one frame tells, below zero too: two clocks that disagree are not to look like a fast
/// server. Returns it in microseconds.
pub(crate) fn record_latency(recorder: &mut Recorder, latency: Latency) -> i64 {
    // Towards minus infinity: a latency of less than a microsecond below zero is still below zero.
    let micros = latency.nanos.div_euclid(1_000);
    recorder.count(STAMPED, 1);
    recorder.count(WALL_LATENCIES, u64::from(latency.clock == LatencyClock::Wall));
    recorder.count(NEGATIVE_LATENCIES, u64::from(micros < 0));
    recorder.record_signed(LATENCY, micros);
    micros
}

fn parse_uuid(text: &str) -> Option<[u8; 16]> {
    let digits: String = text.trim().chars().filter(|c| *c != '-').collect();
    (digits.len() == 32).then_some(())?;
    u128::from_str_radix(&digits, 16).ok().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_latency_below_zero_is_counted_and_not_cut_off() {
        let mut recorder = Recorder::new(weir_metrics::Schema::new(&[]));
        for nanos in [-40_000_000, -1, 0, 35_000_000] {
            let clock = LatencyClock::Wall;
            record_latency(&mut recorder, Latency { nanos, uncertainty: Duration::MAX, clock });
        }
        let counted = [STAMPED, WALL_LATENCIES, NEGATIVE_LATENCIES].map(|figure| recorder.counter(figure));
        assert_eq!(counted, [4, 4, 2]);
        let latency = recorder.signed(LATENCY);
        assert_eq!((latency.len(), latency.value_at_quantile(0.5)), (4, -1));
        assert!((latency.min() + 40_000).abs() <= 40, "{}", latency.min());
    }

    #[test]
    fn this_machine_has_a_boot_id_and_a_wall_clock() {
        let reading = HostClock::read().at(clock::now());
        assert_ne!(reading.boot_id, [0; 16]);
        assert!(reading.wall_nanos.abs_diff(clock::wall_nanos()) < 1_000_000_000);
    }
}
