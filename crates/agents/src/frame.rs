//! What goes over NATS between agents and coordinators, as JSON, and on which subjects.
//!
//! | subject | from | to |
//! |---|---|---|
//! | `weir.call` | a coordinator | every agent |
//! | `weir.down.NAME` | a coordinator | the agents of that name |
//! | `weir.up.NAME` | an agent of that name | every coordinator |
//!
//! An agent publishes on one subject and reads two, so that a server's permissions can hold it to them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use weir_engine::agents::{AgentEnd, SecondLines};
use weir_engine::kernel_clock::KernelClock;
use weir_engine::plan::Segment;
use weir_observe::{TargetEnvironment, TargetSample};

/// Where agents are called.
pub const CALL: &str = "weir.call";
/// Where a coordinator hears all agents.
pub const ALL_UP: &str = "weir.up.*";
/// Longest name of an agent: that of a host.
const LONGEST_NAME: usize = 64;

/// The name of an agent, which is a part of its subjects.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentName(String);

impl AgentName {
    /// Where the agent speaks.
    pub fn up(&self) -> String {
        format!("weir.up.{self}")
    }

    /// Where it is spoken to.
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

/// One process, so that one that was started again is not taken for the one before.
pub type Instance = u64;

/// What an agent says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FromAgent {
    /// Its process.
    pub from: Instance,
    /// The run that it is about; empty outside of runs.
    pub run: String,
    /// What it says.
    pub says: AgentSays,
}

/// What an agent can say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentSays {
    /// Who it is: the answer to a call.
    Hello(Box<Hello>),
    /// It is there.
    Beat,
    /// What is the time? By its own clock it is this.
    Time(u64),
    /// It is ready to begin.
    Accepted,
    /// It will not run this, and why.
    Refused(String),
    /// What it has read of the processes that it watches.
    Watched(Box<Watched>),
    /// An item of its run.
    Item {
        /// From 1, one more each.
        number: u64,
        /// The oldest item that it could still send again.
        oldest: u64,
        /// The item.
        item: Box<Item>,
    },
}

/// What a run on an agent consists of, in this order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Item {
    /// It has begun.
    Begun {
        /// How long after the common moment.
        late_seconds: f64,
        /// How far its clock may be from what it was taken for.
        clock_bound_seconds: f64,
    },
    /// A second, or a part of it.
    Second(SecondLines),
    /// It is over.
    Ended(AgentEnd),
}

/// What an agent has read of the processes that it watches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Watched {
    /// The processes, at the same places every time. When they were read is said by the coordinator's clock.
    pub targets: Vec<TargetSample>,
    /// What they are; before the run begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub described: Vec<TargetEnvironment>,
}

/// Who an agent is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Hello {
    /// The version of its weir.
    pub version: String,
    /// What its weir counts: two that differ here cannot be added up.
    pub figures: String,
    /// Its machine.
    pub hostname: String,
    /// Cores that it may use.
    pub cores: u32,
    /// Descriptors that it may have.
    pub descriptors: u64,
    /// Local ports that its clients may have towards one server, on all of its addresses, where that is known.
    #[serde(default)]
    pub ports: Option<u64>,
    /// `--label` pairs.
    pub labels: BTreeMap<String, String>,
    /// Clients that its owner lets it be given, at most.
    pub most: Option<u32>,
    /// The targets that its owner lets it load.
    pub only: Vec<String>,
    /// What it watches on its machine; one that watches makes no load.
    #[serde(default)]
    pub watches: Vec<String>,
    /// What its kernel says of its clock, where it may be asked.
    #[serde(default)]
    pub clock: Option<KernelClock>,
    /// Whether it has a run.
    pub is_busy: bool,
}

/// What a coordinator says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FromCoordinator {
    /// Its process.
    pub from: Instance,
    /// The agent's process; none for every agent.
    pub to: Option<Instance>,
    /// The run that it is about; empty outside of runs.
    pub run: String,
    /// What it says.
    pub says: CoordinatorSays,
}

/// What a coordinator can say.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoordinatorSays {
    /// Who is there?
    Call,
    /// What is to be run.
    Offer(Box<Offer>),
    /// The time.
    Time {
        /// As it stood in the question.
        asked: u64,
        /// When the question came, by the coordinator's clock.
        received: u64,
        /// When this left.
        answered: u64,
    },
    /// When all begin, and which wall clock they follow.
    Begin(CommonClock),
    /// It is there, and has all items up to this number.
    Beat(u64),
    /// End now.
    Stop,
    /// The run is over, or was never begun: nothing more is needed.
    Done,
}

/// The clock that all agents of a run have in common: their coordinator's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommonClock {
    /// When second 0 begins, on its monotonic clock.
    pub origin: u64,
    /// What its wall clock says at its monotonic zero, in nanoseconds since the Unix epoch.
    pub wall_at_zero: u64,
    /// By how much its kernel is about to move it until the next offset is measured, in nanoseconds.
    #[serde(default)]
    pub moves: u64,
}

/// What an agent is to run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Offer {
    /// The version of the coordinator's weir.
    pub version: String,
    /// What its weir counts.
    pub figures: String,
    /// The scenario, as JSON.
    pub scenario: serde_json::Value,
    /// What the coordinator found at each workload's URLs: an agent that finds something else would make another load.
    pub targets: Vec<Vec<String>>,
    /// The files that the scenario names.
    pub files: Vec<SentFile>,
    /// The agent's part; none for one that watches.
    pub segment: Option<Segment>,
}

/// A file that a scenario names.
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
    fn a_name_cannot_be_another_subject() {
        assert_eq!("a-1".parse::<AgentName>().unwrap().up(), "weir.up.a-1");
        for text in ["", "*", ">", "a.b", "a b", "ä", &"a".repeat(65)] {
            assert!(text.parse::<AgentName>().is_err(), "{text}");
        }
        assert!(serde_json::from_str::<AgentName>("\"a.b\"").is_err());
    }
}
