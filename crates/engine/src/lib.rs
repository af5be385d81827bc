//! A run, from scenario to summary.
//!
//! [`scenario`] → [`plan`] → shards of clients → intervals → [`aggregator`] → [`summary`] with its
//! verdict. The plan, the aggregator, the thresholds and the verdict are functions of values; [`run`]
//! starts threads and [`record`] writes the run directory. Nothing here prints, and nothing names
//! a protocol.

pub mod agents;
pub mod aggregator;
pub mod arrival;
mod arrivals;
mod as_text;
mod background;
mod bursts;
pub mod capacity;
mod cells;
mod channel;
pub mod checks;
mod client_sums;
mod clients;
pub mod compare;
mod coordinator_message;
mod counts;
mod date;
mod decoding;
mod defaults;
mod edges;
mod event;
mod facts;
mod generator;
pub mod growth;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod harness;
pub mod history;
pub mod ingest;
pub mod kernel_clock;
mod keys;
pub mod lifetime;
pub mod lines;
mod loads;
mod machine;
pub mod merge;
mod outage;
mod overrides;
pub mod plan;
mod reader_records;
pub mod record;
pub mod republish;
mod reservoir;
pub mod restarts;
mod role;
pub mod run;
pub mod scenario;
pub mod series;
pub mod server_load;
mod servers;
mod starts;
pub mod startup_map;
mod steadiness;
pub mod summary;
pub mod sweep;
pub mod threshold;
mod totals;
mod units;
mod verdict;
mod yaml;

pub use date::date;
pub use event::EventLine;
pub use facts::WorkloadFacts;
pub use verdict::of_machine as verdict_of_machine;
