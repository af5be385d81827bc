//! What the coordinator of a run receives: a report a second from each thread of this process, and what agents send.

use crate::agents::report::AgentReport;
use crate::ingest::consumer::ConsumerError;
use crate::ingest::ingested::Ingested;
use std::sync::mpsc::Sender;
use weir_clients::{ClientFailure, ClientRecord, Gap};
use weir_metrics::Recorder;

/// One message to the coordinator of a run.
#[derive(Debug)]
pub(crate) enum CoordinatorMessage {
    /// From a thread of this process.
    Thread(ThreadReport),
    /// From the agent with this number.
    Agent(u16, AgentReport),
}

/// The way from agents to the coordinator.
#[derive(Clone, Debug)]
pub struct AgentReports(pub(crate) Sender<CoordinatorMessage>);

impl AgentReports {
    /// Passes on what came from the agent with this number.
    pub fn send(&self, agent: u16, report: AgentReport) {
        // The coordinator of a run that is over receives nothing more.
        let _ = self.0.send(CoordinatorMessage::Agent(agent, report));
    }
}

/// What leaves a generator thread once a second.
#[derive(Debug)]
pub(crate) struct ThreadReport {
    pub(crate) shard: usize,
    pub(crate) second: u32,
    /// One a workload.
    pub(crate) figures: Vec<Recorder>,
    pub(crate) failures: Vec<ClientFailure>,
    /// Whether this thread has no client, and none still to begin.
    pub(crate) deserted: bool,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) client_records: Vec<ClientRecord>,
    /// How the consumer of a workload that saves messages ended, if it has.
    pub(crate) consumer_end: Option<(u16, ConsumerEnd)>,
    /// Whether this was the last.
    pub(crate) last: bool,
}

/// How a workload that saves has ended.
#[derive(Debug)]
pub(crate) enum ConsumerEnd {
    /// All is counted that will come, or the run was over.
    Over(Box<Ingested>),
    /// It stands still, or something has failed.
    Failed(ConsumerError),
}
