//! The three clocks that are read: monotonic, wall, and the thread's CPU; and what the kernel says of the first two.

use crate::sys;
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

/// What the kernel says of its clock: of wall and monotonic time, which run at one rate (adjtimex(2)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelClock {
    /// Whether something keeps the wall clock at the time of day (no `STA_UNSYNC`).
    pub is_synchronised: bool,
    /// How far it is from the time of day at the most (`maxerror`).
    pub most_error: Duration,
    /// How far it is by estimate (`esterror`).
    pub estimated_error: Duration,
    /// What both clocks are still to be moved by, by and by (`offset`).
    pub slewing: Duration,
}

/// What the kernel says of its clock, if it may be asked.
// A `c_long` has 32 bits on machines of 32 bits.
#[allow(clippy::unnecessary_cast)]
pub fn of_kernel() -> Option<KernelClock> {
    let state = sys::kernel_clock().ok()?;
    let micros = |count: libc::c_long| Duration::from_micros(count.unsigned_abs() as u64);
    let is_in_nanos = state.status & libc::STA_NANO != 0;
    Some(KernelClock {
        is_synchronised: state.status & libc::STA_UNSYNC == 0,
        most_error: micros(state.maxerror),
        estimated_error: micros(state.esterror),
        slewing: if is_in_nanos {
            Duration::from_nanos(state.offset.unsigned_abs() as u64)
        } else {
            micros(state.offset)
        },
    })
}

fn nanos(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
