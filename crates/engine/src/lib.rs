//! A run, from scenario to summary.
//!
//! [`scenario`] → [`plan`] → shards of clients → intervals → [`aggregator`] → [`summary`] with its
//! verdict. The plan, the aggregator, the thresholds and the verdict are functions of values; [`run`]
//! starts threads and [`record`] writes the run directory. Nothing here prints, and nothing names
//! a protocol.

pub mod accept;
pub mod aggregator;
mod arrivals;
pub mod background;
mod cells;
mod channel;
mod counts;
mod date;
mod defaults;
mod generator;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod harness;
pub mod ingest;
mod keys;
pub mod lines;
mod loads;
mod machine;
mod overrides;
pub mod plan;
pub mod record;
mod remark;
mod roll;
pub mod run;
pub mod scenario;
pub mod series;
mod servers;
mod steadiness;
pub mod summary;
pub mod threshold;
mod totals;
mod verdict;

pub use remark::RemarkLine;
pub use verdict::CHECKS;
