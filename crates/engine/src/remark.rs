//! A line of `events.ndjson`: what happened once, in words.

use serde::{Deserialize, Serialize};
use weir_metrics::Failure;

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum RemarkLine {
    /// A client failed. At most twenty of a kind, shard and workload are written; all are counted.
    Failure {
        /// Since the run's start.
        at_seconds: f64,
        /// Position of the workload.
        workload: u16,
        /// Number of the client.
        client: u32,
        /// The kind.
        failure: Failure,
        /// What was said: by the peer, the system, or else weir.
        words: String,
    },
    /// The wall clock moved against the monotonic one.
    ClockStep {
        /// Since the run's start.
        at_seconds: f64,
        /// By how much, signed.
        by_seconds: f64,
    },
    /// The run was stopped before its plan's end: by a signal, a threshold, the target's death, or for want of clients.
    Stopped {
        /// Since the run's start.
        at_seconds: f64,
    },
}
