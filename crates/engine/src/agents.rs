//! The seam to agents: other machines that make the load of a run, in the place of generator threads of this process.
//!
//! An agent runs a part of the plan as a run of its own, and hands on what its run directory gets, second by second. The
//! coordinator takes these seconds as it takes the reports of its own threads. Nothing here knows how they travel.

pub(crate) mod clients;
pub(crate) mod end;
pub(crate) mod facts;
pub(crate) mod report;
pub(crate) mod second;
mod watched;
mod words;

pub use self::clients::OpenClients;
pub use self::end::AgentEnd;
pub use self::facts::AgentFacts;
pub use self::report::AgentReport;
pub use self::second::SecondLines;
pub use self::watched::WatchedElsewhere;
pub use self::words::briefly;
pub use crate::run::coordinator_message::AgentReports;

pub(crate) use self::clients::CountedClients;
pub(crate) use self::second::{EventRoom, SecondCopier, check_events, read};

use crate::plan::Segment;
use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use weir_metrics::Moment;

/// Which generators make the load of a run.
pub enum Load {
    /// Generator threads of this process.
    Here,
    /// The same, for a part of the plan, as one agent of several.
    AsAgent(AgentRun),
    /// Agents on other machines.
    Elsewhere(Box<dyn Agents>),
}

/// What an agent's run has that a run of its own has not.
#[derive(Debug)]
pub struct AgentRun {
    /// Its part of the plan.
    pub segment: Segment,
    /// When second 0 begins, on this machine's clock.
    pub origin: Moment,
    /// Where its seconds go.
    pub seconds: Sender<SecondLines>,
}

/// Agents that are ready to begin.
pub trait Agents: Send {
    /// Their names and machines, in the order of their segments.
    fn facts(&self) -> Vec<AgentFacts>;

    /// Their parts of the plan.
    fn segments(&self) -> Vec<Segment>;

    /// What is read of the target on other machines, if it is.
    fn watched(&self) -> WatchedElsewhere;

    /// How many of them may be lost without an end to the run.
    fn losses_allowed(&self) -> u16;

    /// Sends them when second 0 begins, on this machine's clock, and passes on what they send until each has ended or is lost.
    /// When `stop` is set they are asked to end.
    ///
    /// # Errors
    /// The thread for it could not be started.
    fn begin(
        self: Box<Self>,
        origin: Moment,
        stop: Arc<AtomicBool>,
        reports: AgentReports,
    ) -> io::Result<JoinHandle<io::Result<()>>>;
}
