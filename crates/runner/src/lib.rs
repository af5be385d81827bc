#![doc = include_str!("../README.md")]

pub mod agents;
pub mod answer;
mod api;
pub mod artefacts;
pub mod background;
pub mod capacity;
pub mod clear_text;
pub mod comparison;
mod consumer;
mod error;
pub mod ingester;
pub mod machine;
mod observer;
pub mod past_runs;
pub mod prepare;
pub mod recompute;
pub mod records;
mod repeated;
pub mod retarget;
pub mod run;
pub mod run_directory;
mod schema_registry;
pub mod series;
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
