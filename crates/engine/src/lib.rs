#![doc = include_str!("../README.md")]

pub mod agents;
pub mod aggregator;
mod clients;
mod date;
pub mod declared;
mod figure_ratio;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod harness;
pub mod ingest;
mod machine;
pub mod plan;
pub mod record;
pub mod run;
pub mod scenario;
mod seconds;
pub mod summary;
pub mod threshold;
mod verdict;

pub use date::date;
pub use machine::growth;
pub use machine::loads::LINK_WITHIN_REACH;
pub use record::event::EventLine;
pub use scenario::facts::WorkloadFacts;
pub use seconds::startup_map;
pub use verdict::CORES_OF_A_VALID_RUN;
pub use verdict::checks;
pub use verdict::of_machine as verdict_of_machine;
pub use weir_protocols::is_udp;
