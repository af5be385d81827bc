//! A sweep: every variant of a scenario, run or searched, and which of them is best. Values only: the binary runs them.

mod budget;
mod cell;
mod standing;
mod summary;

pub use budget::{budget_of_next, rival_of};
pub use cell::{BusiestThread, CellCapacity, SweepCell};
pub use summary::{
    Dimension, LAYOUT, Rank, Ranked, Standing, SweepFacts, SweepSummary, SweepValue, SweepVariant,
};
