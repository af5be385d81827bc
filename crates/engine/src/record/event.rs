//! A line of `events.ndjson`: what happened once, in words.

use crate::agents::clients::OpenClients;
use crate::agents::end::AgentEnd;
use crate::ingest::Ingested;
use crate::plan::Segment;
use serde::{Deserialize, Serialize};
use weir_clients::TrackFormat;
use weir_metrics::Failure;

/// One event of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum EventLine {
    /// A client failed. At most twenty of a kind, shard and workload are written; all are counted.
    Failure {
        /// Since the run's start.
        at_seconds: f64,
        /// Position of the workload.
        workload: u16,
        /// Number of the client, from 1.
        client: u32,
        /// The kind.
        failure: Failure,
        /// What was said: by the peer, the system, or else weir.
        words: String,
    },
    /// A client came upon a place in its stream where units are missing. At most 20,000 a shard are written.
    Gap {
        /// Since the run's start.
        at_seconds: f64,
        /// Position of the workload.
        workload: u16,
        /// Number of the client, from 1.
        client: u32,
        /// Position of what it read among the workload's targets.
        channel: u32,
        /// The same for all readers that miss the same packets: of MPEG-TS, PID, due and found counter in 16, 4 and 4 bits.
        mark: u32,
        /// Where, on the stream's own clock.
        place_seconds: f64,
    },
    /// A client has ended, of a protocol whose clients leave numbers behind.
    Account {
        /// Since the run's start.
        at_seconds: f64,
        /// Position of the workload.
        workload: u16,
        /// Number of the client, from 1.
        client: u32,
        /// Position of what it read among the workload's targets.
        channel: u32,
        /// Since when it has read, since the run's start; none if it never came to that.
        #[serde(default)]
        since_seconds: Option<f64>,
        /// As what failure it ended, if it did.
        #[serde(default)]
        failure: Option<Failure>,
        /// One number for each column of the protocol, in its base unit; none where nothing was measured.
        numbers: Vec<Option<f64>>,
        /// The place among the records that are kept in which it takes that of another client; only after the first 100,000.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<u32>,
    },
    /// What a track of a workload's streams is; each is written once, a shard and workload at most sixteen.
    Track {
        /// Since the run's start.
        at_seconds: f64,
        /// Position of the workload.
        workload: u16,
        /// What it is.
        track: TrackFormat,
    },
    /// The wall clock moved against the monotonic one.
    ClockStep {
        /// Since the run's start.
        at_seconds: f64,
        /// By how much, signed.
        by_seconds: f64,
    },
    /// What became of messages, at the end of the workload that saves them.
    Ingested {
        /// Since the run's start.
        at_seconds: f64,
        /// Position of the workload.
        workload: u16,
        /// What became of them.
        ingested: Box<Ingested>,
    },
    /// The run could not go on: messages could not be saved any more, or a server was not there to be restarted.
    Trouble {
        /// Since the run's start.
        at_seconds: f64,
        /// Where it stood, and why.
        words: String,
    },
    /// A server of the scenario's own was told to end, by the scenario. A second line has when it was started again.
    Restart {
        /// Since the run's start.
        at_seconds: f64,
        /// Which of the scenario's restarts it is, from 0.
        number: u16,
        /// Its program.
        server: String,
        /// When it was started again, since the run's start.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        started_seconds: Option<f64>,
    },
    /// A generator thread of this process has ended before its part of the run was over.
    ThreadLost {
        /// Since the run's start.
        at_seconds: f64,
        /// Its number.
        thread: usize,
        /// Why.
        words: String,
    },
    /// An agent has begun.
    AgentBegun {
        /// Its position among the run's agents.
        agent: u16,
        /// How long after the common moment its first client could begin.
        late_seconds: f64,
        /// How far its clock may be from what it was taken for.
        clock_bound_seconds: f64,
    },
    /// An agent is not there any more.
    AgentLost {
        /// Since the run's start.
        at_seconds: f64,
        /// Its position among the run's agents.
        agent: u16,
        /// Its part of the plan, which is not run any more.
        segment: Segment,
        /// Its clients, one entry a workload.
        open: Vec<OpenClients>,
        /// Whether `--allow-lost` covers it: the run goes on without its clients.
        is_allowed: bool,
        /// What was seen of it last.
        words: String,
    },
    /// An agent's part of the run is over.
    AgentEnded {
        /// Its position among the run's agents.
        agent: u16,
        /// What it says of its own machine.
        end: Box<AgentEnd>,
    },
    /// The run was stopped before its plan's end: by a signal, a threshold, the target's death, for want of clients, or because
    /// all messages are accounted for.
    Stopped {
        /// Since the run's start.
        at_seconds: f64,
    },
}

impl EventLine {
    /// Why the workload that saves messages could not go on.
    pub(crate) fn trouble(&self) -> Option<&str> {
        match self {
            Self::Trouble { words, .. } => Some(words),
            _ => None,
        }
    }

    /// Whether it is about the messages that are saved.
    pub(crate) fn is_of_messages(&self) -> bool {
        matches!(self, Self::Ingested { .. } | Self::Trouble { .. })
    }

    /// Whether it is about clients and their machine, and not about the run that they are part of.
    pub(crate) fn is_of_clients(&self) -> bool {
        matches!(
            self,
            Self::Failure { .. }
                | Self::Gap { .. }
                | Self::Account { .. }
                | Self::Track { .. }
                | Self::ClockStep { .. }
        )
    }
}
