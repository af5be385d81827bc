//! A sweep: every variant of a scenario, run or searched, and which of them is best. Values only: the runner makes them.

mod budget;
#[cfg(test)]
mod fixture;
mod ranked;
mod standing;
mod summary;

pub use budget::{budget_of_next, rival_of};
pub use ranked::{Rank, Ranked};
pub use summary::{Dimension, LAYOUT, SweepFacts, SweepSummary};
