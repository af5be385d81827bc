//! How much a target carries: which load to try next, given the trials so far, and what they say together.

mod clients;
mod hunt;
mod load;
mod search;
#[cfg(test)]
mod simulation;
mod summary;
mod trial;

pub use hunt::{PlannedTrial, TrialRunner, hunt};
pub use load::{Subject, SubjectError};
pub use search::{
    Answer, Bounds, Evidence, Goal, Purpose, Search, Step, Stopped, Trial, TrialVerdict, VoidCause,
};
pub use summary::{CapacitySummary, CapacityTrial, LAYOUT, Sought};
pub use trial::{
    Cost, CostOf, Criterion, FailedThreshold, LoadOutcome, NetworkLoad, SourceClock, TrialPlan, TrialSlices,
    criteria,
};
