//! The CPU time of the thread that measures codecs.

use rustix::time::{ClockId, clock_gettime};
use weir_runner::{ErrorKind, RunError};

/// CPU time that this thread has used.
pub(crate) fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// No comparison can be made of what was measured.
pub(crate) fn still() -> RunError {
    RunError::new(ErrorKind::Internal, "the clock of CPU time stands still")
}
