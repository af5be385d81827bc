//! A run, from scenario to summary.
//!
//! [`scenario`] → [`plan`] → shards of clients → intervals → [`aggregator`] → [`summary`] with its
//! verdict. The plan, the aggregator, the thresholds and the verdict are functions of values; [`run`]
//! starts threads and [`record`] writes the run directory. Nothing here prints, and nothing names
//! a protocol.

pub mod accept;
pub mod aggregator;
pub mod arrival;
mod arrivals;
pub mod background;
pub mod capacity;
mod cells;
mod channel;
mod clients;
mod counts;
mod date;
mod defaults;
mod event;
mod generator;
pub mod growth;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod harness;
pub mod ingest;
mod keys;
pub mod lifetime;
pub mod lines;
mod loads;
mod machine;
mod overrides;
pub mod plan;
pub mod record;
pub mod run;
pub mod scenario;
pub mod series;
mod servers;
mod starts;
mod steadiness;
pub mod summary;
pub mod threshold;
mod totals;
mod verdict;

pub use event::EventLine;
pub use verdict::CHECKS;
