//! The clocks of this machine, as a clock stamp carries them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
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

/// What the wall clock that this process follows says at the monotonic clock's zero; 0 for its own.
static FOLLOWED: AtomicU64 = AtomicU64::new(0);

/// From now on all clocks of this process say that wall clock's time: `wall_at_zero` nanoseconds since the Unix epoch at this
/// machine's monotonic zero. Agents of one run follow their coordinator's, so that their own wall clocks do not matter.
pub fn follow_wall_clock(wall_at_zero: u64) {
    FOLLOWED.store(wall_at_zero, Relaxed);
}

impl HostClock {
    /// Reads this machine's.
    pub fn read() -> Self {
        let text = |path| std::fs::read_to_string(path).unwrap_or_default();
        let boot_id = parse_uuid(&text("/proc/sys/kernel/random/boot_id")).unwrap_or_default();
        Self {
            boot_id: moved(boot_id, &text("/proc/self/timens_offsets")),
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
        let wall_at_zero = match FOLLOWED.load(Relaxed) {
            0 => self.wall_at_zero,
            followed => followed,
        };
        ClockReading {
            boot_id: self.boot_id,
            monotonic_nanos: now.as_nanos(),
            wall_nanos: wall_at_zero.wrapping_add(now.as_nanos()),
        }
    }
}

/// Records the latency that the stamp of one frame shows, below zero too: two clocks that disagree must not look like a fast
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

/// A boot's id, changed by how far a time namespace has moved its monotonic clock (time_namespaces(7)): two processes with the
/// same id have the same clock.
fn moved(boot_id: [u8; 16], offsets: &str) -> [u8; 16] {
    let line = offsets.lines().find_map(|line| line.strip_prefix("monotonic"));
    let mut numbers =
        line.unwrap_or_default().split_whitespace().map(|word| word.parse::<i64>().unwrap_or(0));
    let (seconds, nanos) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let offset = (i128::from(seconds) << 64) | i128::from(nanos);
    (u128::from_be_bytes(boot_id) ^ offset as u128).to_be_bytes()
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
    fn a_clock_that_a_time_namespace_has_moved_is_another_one() {
        let own = "monotonic           0         0\nboottime            0         0\n";
        assert_eq!((moved([7; 16], own), moved([7; 16], "")), ([7; 16], [7; 16]));
        let ahead = moved([7; 16], "monotonic 3 0\nboottime 0 0\n");
        assert_ne!(ahead, [7; 16]);
        assert_ne!(ahead, moved([7; 16], "monotonic 0 3\n"));
    }

    #[test]
    fn this_machine_has_a_boot_id_and_a_wall_clock() {
        let reading = HostClock::read().at(clock::now());
        assert_ne!(reading.boot_id, [0; 16]);
        assert!(reading.wall_nanos.abs_diff(clock::wall_nanos()) < 1_000_000_000);
    }
}
