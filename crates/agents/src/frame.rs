//! What goes over NATS between agents and coordinators, as JSON, and on which subjects.
//!
//! | subject | from | to |
//! |---|---|---|
//! | `weir.call` | a coordinator | every agent |
//! | `weir.down.NAME` | a coordinator | the agents of that name |
//! | `weir.up.NAME` | an agent of that name | every coordinator |
//!
//! An agent publishes on one subject and subscribes to two, so that permissions of the NATS server can restrict it to them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use weir_engine::agents::{AgentEnd, SecondLines, briefly};
use weir_engine::plan::Segment;
use weir_engine::record::kernel_clock::KernelClock;
use weir_observe::{TargetEnvironment, TargetSample};
use weir_setting::{LABEL, ONLY, WATCH};

/// The subject on which coordinators call all agents.
pub const CALL: &str = "weir.call";
/// The subjects on which all agents publish.
pub const ALL_UP: &str = "weir.up.*";
/// Bytes of an agent's answer to a call, at the most: what is more, a coordinator leaves out. Ten labels are 500.
pub const LARGEST_HELLO: usize = 4 << 10;
/// Longest name of an agent: as long as a host name may be on Linux (`HOST_NAME_MAX`).
const LONGEST_NAME: usize = 64;

/// The name of an agent, which is a part of its subjects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

impl AgentName {
    /// The subject on which the agent publishes.
    pub fn up(&self) -> String {
        format!("weir.up.{self}")
    }

    /// The subject that the agent subscribes to.
    pub fn down(&self) -> String {
        format!("weir.down.{self}")
    }
}

impl FromStr for AgentName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if (1..=LONGEST_NAME).contains(&text.len()) && text.chars().all(is_plain) {
            Ok(Self(text.to_owned()))
        } else {
            Err("a name has 1 to 64 letters, digits, - and _".to_owned())
        }
    }
}

impl TryFrom<String> for AgentName {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<AgentName> for String {
    fn from(name: AgentName) -> Self {
        name.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A random number of a process: an agent that was started again has the same name and another number.
pub type Instance = u64;

/// A message of an agent, with its sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FromAgent {
    /// The process that sent it.
    pub from: Instance,
    /// The identifier of the run that it is about; empty outside of runs.
    pub run: String,
    /// The message.
    pub message: AgentMessage,
}

/// What an agent can send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentMessage {
    /// What it is and what it can do: the answer to a call.
    Hello(Box<Hello>),
    /// It is alive.
    Heartbeat,
    /// A request for the time, with the time by its own clock.
    Time(u64),
    /// It is ready to begin.
    Accepted,
    /// It refuses the offer, with the reason.
    Refused(String),
    /// What it has read of the processes that it watches.
    Watched(Box<Watched>),
    /// An item of its run.
    Item {
        /// Its number: items are numbered from 1.
        number: u64,
        /// The oldest item that it still keeps, and could send again.
        oldest: u64,
        /// The item.
        item: Box<Item>,
    },
}

/// What an agent sends of its run, in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// The run has begun.
    Begun {
        /// How long after the moment at which all agents were to begin.
        late_seconds: f64,
        /// The largest error of the offset between its clock and the coordinator's.
        clock_bound_seconds: f64,
    },
    /// A second, or a part of it.
    Second(SecondLines),
    /// The run is over.
    Ended(AgentEnd),
}

/// What an agent has read of the processes that it watches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// The processes, always in the same order. The time of the reading is by the coordinator's clock.
    pub targets: Vec<TargetSample>,
    /// Descriptions of the processes; sent before the run begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub described: Vec<TargetEnvironment>,
}

impl Hello {
    /// Refuses what is longer than a coordinator takes.
    ///
    /// # Errors
    /// What to shorten.
    pub fn check(&self, name: &AgentName) -> Result<(), String> {
        let message = AgentMessage::Hello(Box::new(self.clone()));
        let frame = FromAgent { from: Instance::MAX, run: String::new(), message };
        let bytes = serde_json::to_vec(&frame).map_or(0, |bytes| bytes.len());
        // Its clock's figures change.
        if bytes + 256 <= LARGEST_HELLO {
            return Ok(());
        }
        Err(format!(
            "what agent {name} says of itself has {bytes} bytes, and a coordinator takes {LARGEST_HELLO}; give fewer or shorter {LABEL}, {ONLY} and {WATCH}"
        ))
    }

    /// The same with every text in one line: it comes from another machine, and is shown on this one's terminal.
    #[must_use]
    pub fn in_one_line(self) -> Self {
        let all = |texts: Vec<String>| texts.iter().map(|it| briefly(it)).collect();
        Self {
            version: briefly(&self.version),
            figures: briefly(&self.figures),
            hostname: briefly(&self.hostname),
            labels: self.labels.iter().map(|(key, value)| (briefly(key), briefly(value))).collect(),
            only: all(self.only),
            watches: all(self.watches),
            ..self
        }
    }
}

/// What an agent is and what it can do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of its weir.
    pub version: String,
    /// A digest of the figures that its weir counts: those of two agents can be added up only if their digests are equal.
    pub figures: String,
    /// The name of its machine.
    pub hostname: String,
    /// Number of cores that it may use.
    pub cores: u32,
    /// Number of descriptors that it may open.
    pub descriptors: u64,
    /// Number of local ports that its clients can use towards one server, on all of its addresses, if that is known.
    #[serde(default)]
    pub ports: Option<u64>,
    /// `--label` pairs.
    pub labels: BTreeMap<String, String>,
    /// The largest number of clients that its owner lets it run (`--most`).
    pub most: Option<u32>,
    /// The networks that its owner lets it load (`--only`).
    pub only: Vec<String>,
    /// The processes that it watches on its machine; an agent that watches makes no load.
    #[serde(default)]
    pub watches: Vec<String>,
    /// What `adjtimex` says of its clock, if it may be called.
    #[serde(default)]
    pub clock: Option<KernelClock>,
    /// Whether it is part of a run already.
    pub is_busy: bool,
}

/// A message of a coordinator, with its sender.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FromCoordinator {
    /// The process that sent it.
    pub from: Instance,
    /// The process of the agent that it is for; `None` for all agents.
    pub to: Option<Instance>,
    /// The identifier of the run that it is about; empty outside of runs.
    pub run: String,
    /// The message.
    pub message: CoordinatorMessage,
}

/// What a coordinator can send.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoordinatorMessage {
    /// Asks every agent for its [`Hello`].
    Call,
    /// Offers a part of a run.
    Offer(Box<Offer>),
    /// The answer to a request for the time.
    Time {
        /// When the request left, by the agent's clock: copied from it.
        asked: u64,
        /// When the request arrived, by the coordinator's clock.
        received: u64,
        /// When the answer left, by the coordinator's clock.
        answered: u64,
    },
    /// The moment at which all agents begin, and the wall clock that they share.
    Begin(CommonClock),
    /// It is alive, and has received all items up to this number.
    Heartbeat(u64),
    /// Asks the agent to end its run now.
    Stop,
    /// The run is over, or will not begin: nothing more is needed of the agent.
    Done,
}

/// The clock that all agents of a run share: the coordinator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommonClock {
    /// When second 0 of the run begins, by the coordinator's monotonic clock.
    pub origin: u64,
    /// What the coordinator's wall clock shows at the zero of its monotonic clock, in nanoseconds since the Unix epoch.
    pub wall_at_zero: u64,
    /// By how much its kernel may adjust it until the next offset is measured, in nanoseconds.
    #[serde(default)]
    pub moves: u64,
}

/// A part of a run that is offered to an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// The version of the coordinator's weir.
    pub version: String,
    /// A digest of the figures that its weir counts.
    pub figures: String,
    /// The scenario, as JSON.
    pub scenario: serde_json::Value,
    /// The targets that the coordinator found at each workload's URLs: an agent that finds other ones refuses, because its load would
    /// differ.
    pub targets: Vec<Vec<String>>,
    /// The servers that it found behind each workload's names, where there are several: they are counted apart, by their positions.
    #[serde(default)]
    pub servers: Vec<Vec<String>>,
    /// The files that the scenario names, with their contents.
    pub files: Vec<SentFile>,
    /// The agent's segment of the plan; `None` for an agent that watches.
    pub segment: Option<Segment>,
    /// Seconds of the slices that windows are judged in, if they are: what its clients have got is read where one ends.
    #[serde(default)]
    pub slice_seconds: Option<u32>,
}

/// A file that a scenario names, with its contents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SentFile {
    /// Its path in the scenario.
    pub path: String,
    /// Its contents, in base64.
    pub contents: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_a_character_that_means_something_in_a_subject_is_refused() {
        assert_eq!("a-1".parse::<AgentName>().unwrap().up(), "weir.up.a-1");
        for text in ["", "*", ">", "a.b", "a b", "ä", &"a".repeat(65)] {
            assert!(text.parse::<AgentName>().is_err(), "{text}");
        }
        assert!(serde_json::from_str::<AgentName>("\"a.b\"").is_err());
    }
}
