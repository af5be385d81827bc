//! How long tables are waited for: for any time, with a line every ten seconds, until Ctrl-C.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use weir_ingest::{DRAIN, Waiting};

/// How long rows may be counted after Ctrl-C: as long as a last commit.
pub(crate) const AFTER_INTERRUPT: Duration = DRAIN;

/// Takes a line that a person should read.
pub type Say = fn(&str);

/// Who waits.
#[derive(Clone)]
pub(crate) struct Attendant {
    interrupt: Arc<AtomicBool>,
    say: Say,
}

impl Attendant {
    pub(crate) fn new(interrupt: Arc<AtomicBool>, say: Say) -> Self {
        Self { interrupt, say }
    }

    /// Has this done, and waits for it until Ctrl-C, and for this long after it.
    pub(crate) fn wait<T>(&self, grace: Duration, work: impl FnOnce(&Waiting<'_>) -> T) -> T {
        let interrupted = Cell::new(None::<Instant>);
        let is_over = || {
            if !self.interrupt.load(Relaxed) {
                return false;
            }
            let since = interrupted.get().unwrap_or_else(Instant::now);
            interrupted.set(Some(since));
            since.elapsed() >= grace
        };
        work(&Waiting { is_over: &is_over, say: &self.say })
    }
}
