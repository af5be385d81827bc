//! The three clocks that are read: monotonic, wall, and the thread's CPU.

use rustix::time::{ClockId, Timespec, clock_gettime};
use std::time::Duration;
use weir_metrics::Moment;

/// Now, on `CLOCK_MONOTONIC`.
pub fn now() -> Moment {
    Moment::from_nanos(nanos(clock_gettime(ClockId::Monotonic)))
}

/// Nanoseconds since the Unix epoch, on `CLOCK_REALTIME`.
pub fn wall_nanos() -> u64 {
    nanos(clock_gettime(ClockId::Realtime))
}

/// CPU time that this thread has used, on `CLOCK_THREAD_CPUTIME_ID`.
pub fn thread_cpu() -> Duration {
    Duration::from_nanos(nanos(clock_gettime(ClockId::ThreadCPUTime)))
}

fn nanos(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
