//! How much a target carries: which load to try next, given the trials so far, and what they say together.

mod load;
mod search;
#[cfg(test)]
mod simulation;
mod summary;
mod trial;

pub use load::{LoadKind, Subject, SubjectError};
pub use search::{Answer, Bounds, Evidence, Goal, Purpose, Search, Step, Trial, Verdict};
pub use summary::{CapacitySummary, CapacityTrial, LAYOUT, Sought};
pub use trial::{
    Cost, CostOf, Criterion, FailedThreshold, LoadOutcome, NetworkLoad, TrialPlan, TrialSlices, criteria,
};
