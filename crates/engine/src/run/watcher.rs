//! Who looks on while runs are made.

use super::Prepared;
use crate::aggregator::Aggregator;
use crate::capacity::CapacitySummary;
use crate::series::SeriesSummary;
use crate::summary::Summary;
use crate::sweep::SweepSummary;
use std::time::Duration;

/// What looks on: a live view, a page, a judge, or all of them. Each method does nothing unless it is written.
pub trait Watcher {
    /// A line for a person who waits: what is waited for, which run is next.
    fn line(&mut self, _line: &str) {}
    /// A run begins, which takes this long if nothing ends it.
    fn begins(&mut self, _prepared: &Prepared, _length: Duration) {}
    /// A second is complete; `aggregator` holds all up to it.
    fn second(&mut self, _second: u32, _aggregator: &Aggregator) {}
    /// Called a few times a second.
    fn tick(&mut self, _elapsed: Duration) {}
    /// An agent should have reported its next second this long ago. Called for each that goes on, a few times a second.
    fn lag(&mut self, _agent: &str, _behind: Duration) {}
    /// A run has ended, and came to this; `None` if there was none.
    fn ended(&mut self, _summary: Option<&Summary>) {}
    /// What several runs come to so far.
    fn comes_to(&mut self, _answer: AnswerSoFar<'_>) {}
    /// Whether the run has shown what it was made for: it ends then, before its plan does, as completed.
    fn has_seen_enough(&self) -> bool {
        false
    }
}

/// What several runs come to so far.
#[derive(Clone, Copy, Debug)]
pub enum AnswerSoFar<'a> {
    /// Runs of variants, each several times.
    Series(&'a SeriesSummary),
    /// Trials of a search, which may be one of a sweep.
    Search(&'a CapacitySummary),
    /// Variants, each as a run or as a search.
    Sweep(&'a SweepSummary),
}

/// Looks away.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unseen;

impl Watcher for Unseen {}
