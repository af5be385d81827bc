//! What keeps a scenario from being run.

use super::MOST_PARTS;
use std::io;
use weir_clients::shown;
use weir_metrics::{grouped, several};
use weir_setting::Setting;

/// A scenario that cannot be run; says where and what to do.
#[derive(Debug, thiserror::Error)]
pub enum ScenarioError {
    /// The file could not be read.
    #[error("{}: {}", shown(path), unread(path, .source))]
    Read {
        /// The file, or a URL that was given in the place of one.
        path: String,
        /// The system's words.
        source: io::Error,
    },
    /// The file is not a scenario.
    #[error("{path}:{text}")]
    Parse {
        /// The file.
        path: String,
        /// Line, column, what is wrong, and the nearest known key.
        text: String,
    },
    /// A workload does not say what it does, or says it twice.
    #[error("workload '{0}': give one of `play`, `publish`, `ingest` and `probe`, with at least one URL")]
    Verb(String),
    /// A workload says when in two ways.
    #[error("workload '{0}': give either `stages`, or `clients` and `duration`, not both")]
    TwoSchedules(String),
    /// A viewers' workload has no end.
    #[error("workload '{0}': say for how long: `duration: 30s`, `stages`, or of MQTT publishers a `count`")]
    NoDuration(String),
    /// A quantity could not be read.
    #[error("workload '{workload}': {source}")]
    Quantity {
        /// The workload.
        workload: String,
        /// What is wrong.
        source: weir_metrics::ParseUnitError,
    },
    /// A key is given a value that it cannot have.
    #[error("{setting}: {words}")]
    Override {
        /// What gives the value.
        setting: Setting<'static>,
        /// What is wrong.
        words: String,
    },
    /// Clients that follow each other, of a workload that cannot have them.
    #[error("workload '{workload}': `life` {words}")]
    Life {
        /// The workload.
        workload: String,
        /// Why, and what to do.
        words: &'static str,
    },
    /// A publisher that comes back, of a workload that cannot have it.
    #[error("workload '{workload}': `republish` {words}")]
    Republish {
        /// The workload.
        workload: String,
        /// Why, and what to do.
        words: &'static str,
    },
    /// The background cannot be had.
    #[error("background: {0}")]
    Background(&'static str),
    /// A server that cannot be restarted, or not then.
    #[error("`during` at {at} s: {words}")]
    During {
        /// When, in seconds.
        at: f64,
        /// Why, and what to do.
        words: String,
    },
    /// Several workloads save messages, and nothing says which of them saves which message.
    #[error("workload '{0}': one `ingest` or `probe` is all that a run has; compare several with `variants`")]
    SeveralSave(String),
    /// More than a run can have, and a report can show: each of them has figures of its own.
    #[error(
        "{} with {}: a run has {} of both together at the most; make several runs of it",
        several(*workloads as u64, "workload"),
        several(*stages as u64, "stage"),
        grouped(MOST_PARTS as u64)
    )]
    ManyParts {
        /// How many there are.
        workloads: usize,
        /// Stages that are written out, of all workloads.
        stages: usize,
    },
    /// There is nothing to do.
    #[error("the scenario has no workloads; add one under `workloads:`")]
    Empty,
}

impl ScenarioError {
    /// Label of the workload that it is about, if it is about one.
    pub fn label(&self) -> Option<&str> {
        match self {
            Self::Verb(label)
            | Self::TwoSchedules(label)
            | Self::NoDuration(label)
            | Self::SeveralSave(label)
            | Self::Life { workload: label, .. }
            | Self::Republish { workload: label, .. }
            | Self::Quantity { workload: label, .. } => Some(label),
            Self::Read { .. }
            | Self::Parse { .. }
            | Self::Override { .. }
            | Self::Background(_)
            | Self::During { .. }
            | Self::ManyParts { .. }
            | Self::Empty => None,
        }
    }
}

/// Why a file could not be read, and what helps.
fn unread(path: &str, error: &io::Error) -> String {
    if path.contains("://") {
        return "a URL is not a scenario file; `weir play URL` plays it, and `weir init URL` writes a scenario"
            .to_owned();
    }
    match error.kind() {
        io::ErrorKind::IsADirectory => "is a directory; give a scenario file".to_owned(),
        _ => error.to_string(),
    }
}
