//! What looks on while a run goes on.

use crate::aggregator::Aggregator;
use std::time::Duration;

/// What looks on at one run. Each method does nothing unless it is written.
pub trait Watcher {
    /// A second is complete; `aggregator` holds all up to it.
    fn second(&mut self, _second: u32, _aggregator: &Aggregator) {}
    /// Called a few times a second.
    fn tick(&mut self, _elapsed: Duration) {}
    /// An agent should have reported its next second this long ago. Called for each that goes on, a few times a second.
    fn lag(&mut self, _agent: &str, _behind: Duration) {}
    /// Whether the run has shown what it was made for: it ends then, before its plan does, as completed.
    fn has_seen_enough(&self) -> bool {
        false
    }
}

/// Looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unseen;

impl Watcher for Unseen {}
