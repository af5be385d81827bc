//! What looks on while runs are made.

use std::time::Duration;
use weir_answers::capacity::CapacitySummary;
use weir_answers::series::SeriesSummary;
use weir_answers::sweep::SweepSummary;
use weir_engine::run::{Prepared, Unseen, Watcher};
use weir_engine::summary::Summary;

/// What looks on at all runs of a call: a live view, a page, a judge, or all of them. Each method does nothing unless it is written.
pub trait Observer: Watcher {
    /// A line for a person who waits: what is waited for, which run is next.
    fn line(&mut self, _line: &str) {}
    /// A run begins, which takes this long if nothing ends it.
    fn begins(&mut self, _prepared: &Prepared, _length: Duration) {}
    /// A run has ended, and came to this; `None` if there was none.
    fn ended(&mut self, _summary: Option<&Summary>) {}
    /// What several runs come to so far.
    fn comes_to(&mut self, _answer: AnswerSoFar<'_>) {}
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

impl Observer for Unseen {}
