//! Ends what goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends a run or a search early.
#[derive(Clone, Debug, Default)]
pub struct StopHandle(Arc<AtomicBool>);

impl StopHandle {
    /// Has it end now, as Ctrl-C does: clients say goodbye, and what was measured is summed up.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub(super) fn flag(&self) -> &Arc<AtomicBool> {
        &self.0
    }
}
