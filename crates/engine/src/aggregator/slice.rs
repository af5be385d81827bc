//! A stage's window cut into slices of equal length, each judged on its own as soon as it is over.

use crate::seconds::edges::Edge;
use crate::seconds::totals::Totals;
use crate::summary::ThresholdResult;
use weir_metrics::{Interval, Schema};

/// The slice of a window that is being added up.
#[derive(Debug)]
pub(super) struct SliceTotals {
    /// Its first second.
    pub(super) begin: u32,
    pub(super) totals: Totals,
    /// Media bytes of each of its seconds.
    pub(super) media: Vec<f64>,
}

/// What was asked of the target in a slice, and what came of it.
#[derive(Clone, Debug)]
pub struct Slice {
    /// Position of the stage within its workload.
    pub stage: u16,
    /// Clients that the stage holds.
    pub clients: u32,
    /// Clients that played, or published, in the mean of its seconds.
    pub playing: f64,
    /// Viewers that waited for a keyframe, in the mean of its seconds.
    pub waiting: f64,
    /// Media that came, or went, in bits a second.
    pub actual_bps: f64,
    /// Messages, or other units of media, that came, or went, in a second.
    pub units_per_second: f64,
    /// Clients of all workloads up to its end that weir itself did not start, or that failed on its machine.
    pub own_faults: u64,
    /// The thresholds that have a value in it.
    pub results: Vec<ThresholdResult>,
}

impl Slice {
    /// The same, judged with what another workload did in the same seconds: a threshold holds if it holds for both, and one
    /// that only one of them has a value for is that one's.
    #[must_use]
    pub fn judged_with(mut self, other: &Self) -> Self {
        for (own, theirs) in self.results.iter_mut().zip(&other.results) {
            let is_decisive = match (own.value, theirs.value) {
                (_, None) => false,
                (None, Some(_)) => true,
                (Some(_), Some(_)) => own.passed && !theirs.passed,
            };
            if is_decisive {
                own.clone_from(theirs);
            }
        }
        self
    }
}

impl SliceTotals {
    /// A slice that begins with this second, and this edge.
    pub(super) fn new(begin: u32, edge: Option<&Edge>, schema: Schema) -> Self {
        Self { begin, totals: Totals::from(edge, schema), media: Vec::new() }
    }

    pub(super) fn add(&mut self, media: f64, interval: &Interval) {
        self.totals.add(interval);
        self.media.push(media);
    }

    /// The second after its last.
    pub(super) fn end(&self) -> u32 {
        self.begin + self.totals.seconds
    }
}
