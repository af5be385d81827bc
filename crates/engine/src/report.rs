//! What the threads of a run send to it.

use crate::agents::AgentReport;
use crate::ingest::consumer::ConsumerError;
use crate::ingest::ingested::Ingested;
use weir_clients::{ClientFailure, ClientRecord, Gap};
use weir_metrics::Recorder;

/// What comes to the coordinator of a run.
#[derive(Debug)]
pub(crate) enum Arrival {
    /// From a thread of this process.
    Report(Report),
    /// From the agent with this number.
    Agent(u16, AgentReport),
}

/// What leaves a generator thread once a second.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) shard: usize,
    pub(crate) second: u32,
    /// One a workload.
    pub(crate) figures: Vec<Recorder>,
    pub(crate) remarks: Vec<ClientFailure>,
    /// Whether this thread has no client, and none still to begin.
    pub(crate) deserted: bool,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) client_records: Vec<ClientRecord>,
    /// What became of messages, of the workload that saves them.
    pub(crate) taken: Option<(u16, Taken)>,
    /// Whether this was the last.
    pub(crate) last: bool,
}

/// How a workload that saves has ended.
#[derive(Debug)]
pub(crate) enum Taken {
    /// All is counted that will come, or the run was over.
    Over(Box<Ingested>),
    /// It stands still, or something has failed.
    Failed(ConsumerError),
}
