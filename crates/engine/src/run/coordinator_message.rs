//! What the coordinator of a run receives: a report a second from each thread of this process, and what agents send.

use crate::agents::report::AgentReport;
use crate::ingest::consumer::ConsumerError;
use crate::ingest::ingested::Ingested;
use crate::record::event::EventLine;
use std::sync::mpsc::Sender;
use weir_clients::{ClientFailure, ClientRecord, Gap, TrackFormat};
use weir_metrics::Recorder;

/// One message to the coordinator of a run.
#[derive(Debug)]
pub(crate) enum CoordinatorMessage {
    /// From a thread of this process.
    Thread(ThreadReport),
    /// The thread with this number has ended without its last report, for what these words say.
    ThreadLost(usize, String),
    /// What the scenario has done to its servers.
    Event(EventLine),
    /// From the agent with this number.
    Agent(u16, AgentReport),
}

/// Reports the loss of a thread when it is dropped, be it by a panic, unless the thread ends well.
#[derive(Debug)]
pub(crate) struct LossReport {
    reports: Sender<CoordinatorMessage>,
    number: usize,
    words: Option<String>,
}

impl LossReport {
    /// Runs a thread's work; the thread has this number among the run's threads.
    pub(crate) fn watch(
        reports: Sender<CoordinatorMessage>,
        number: usize,
        work: impl FnOnce() -> std::io::Result<()>,
    ) -> std::io::Result<()> {
        let mut report = Self { reports, number, words: Some("it panicked; please report this".to_owned()) };
        let result = work();
        report.words = result.as_ref().err().map(ToString::to_string);
        result
    }
}

impl Drop for LossReport {
    fn drop(&mut self) {
        if let Some(words) = self.words.take() {
            // The coordinator of a run that is over receives nothing more.
            let _ = self.reports.send(CoordinatorMessage::ThreadLost(self.number, words));
        }
    }
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
    /// What tracks of workloads are, with the positions of these.
    pub(crate) tracks: Vec<(u16, TrackFormat)>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error, Result};
    use std::sync::mpsc::channel;

    #[test]
    fn a_thread_that_fails_or_panics_is_lost_and_one_that_ends_well_is_not() {
        let lost = |work: fn() -> Result<()>| {
            let (reports, received) = channel();
            let thread = std::thread::spawn(move || LossReport::watch(reports, 3, work));
            let _ = thread.join();
            received.iter().next().map(|message| match message {
                CoordinatorMessage::ThreadLost(number, words) => (number, words),
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(lost(|| Ok(())), None);
        assert_eq!(lost(|| Err(Error::other("no memory"))), Some((3, "no memory".to_owned())));
        let (number, words) = lost(|| panic!("as the test wants")).unwrap();
        assert_eq!(number, 3);
        assert!(words.contains("please report this"), "{words}");
    }
}
