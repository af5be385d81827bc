#![doc = include_str!("../README.md")]

#[cfg(feature = "agents")]
pub mod agents;
#[cfg(not(feature = "agents"))]
#[path = "agents/absent.rs"]
pub mod agents;
pub mod answer;
mod api;
pub mod artefacts;
pub mod background;
pub mod capacity;
pub mod clear_text;
pub mod comparison;
#[cfg(feature = "databases")]
mod consumer;
#[cfg(not(feature = "databases"))]
#[path = "consumer/absent.rs"]
mod consumer;
#[cfg(feature = "doctor")]
pub mod doctor;
mod error;
mod generators;
#[cfg(feature = "databases")]
pub mod ingester;
pub mod machine;
mod observer;
#[cfg(feature = "doctor")]
pub mod origin_process;
pub mod past_runs;
pub mod prepare;
pub mod recompute;
#[cfg(feature = "databases")]
pub mod records;
mod repeated;
pub mod retarget;
pub mod run;
pub mod run_directory;
#[cfg(feature = "databases")]
mod schema_registry;
pub mod series;
mod session;
pub mod stepped;
mod steps;
pub mod sweep;
pub mod tls;
pub mod url_lists;
pub mod verification;

pub use api::{Capacity, Run, StopHandle, Summary, compare};
pub use error::{ErrorKind, RunError};
pub use observer::{AnswerSoFar, Observer};
pub use steps::{end_with_weir, kill_all};
