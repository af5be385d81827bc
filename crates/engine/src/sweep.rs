//! A sweep: every variant of a scenario, run or searched, and which of them is best. Values only: the binary runs them.

mod cell;
mod summary;

pub use cell::{BusiestThread, CellCapacity, SweepCell};
pub use summary::{
    Dimension, Direction, LAYOUT, Rank, Ranked, Standing, SweepFacts, SweepSummary, SweepValue, SweepVariant,
};
