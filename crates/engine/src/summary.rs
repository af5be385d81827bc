//! What a run is summed up to: values only, made by [`crate::aggregator::Aggregator`] and read by reports.
//!
//! Keys carry their units; shares are ratios of 0 to 1; CPU percent is of one core.

mod clients;
mod figures;
mod judgement;
mod load;
mod point;
mod restart;
mod stage;
pub mod units;

use crate::agents::facts::AgentFacts;
use crate::ingest::Ingested;
use crate::machine::growth::TargetGrowth;
use crate::plan::lifetime::Lifetime;
use crate::record::kernel_clock::KernelClock;
use crate::seconds::startup_map::StartupMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_clients::ServerVersion;
pub use weir_clients::{Track, TrackFormat};
use weir_metrics::common::names;
use weir_metrics::{Failure, Side};
use weir_observe::{Environment, MachineFacts, TargetEnvironment};

pub use crate::machine::{MachineFigure, MachineSummary};
pub use crate::scenario::role::Role;
pub use crate::seconds::outage::{Outage, OutageKind};
pub use clients::{
    ChannelFigure, ChannelSummary, ClientFigure, ClientRow, ClientStates, ClientsSummary, GapSources,
    StateCount,
};
pub use figures::{FigureValue, Figures, Spread, Value};
pub use judgement::{Reason, ThresholdPlace, ThresholdResult, Verdict, VerdictState};
pub use load::{
    DescriptorLoad, HostLoad, LinkLoad, MissedPackets, OtherLoad, ProcessLoad, ThreadLoad, ThrottledLoad,
};
pub use point::{Point, WorkloadPoint};
pub use restart::RestartSummary;
pub use stage::{MessageRate, StageSummary};
pub use units::BaseUnit;
pub use weir_clients::{Column as ClientColumn, ColumnPosition, ColumnUnit, Statistic};

/// The version of the summary's layout; the JSON Schema in `docs/summary.schema.json` follows it.
pub const LAYOUT: &str = "weir.summary/1";

/// A whole run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// [`LAYOUT`].
    pub layout: String,
    /// What was run, and where.
    pub run: RunFacts,
    /// How the run ended.
    pub outcome: Outcome,
    /// Whether its figures can be believed.
    pub verdict: Verdict,
    /// Things to know when reading the figures, one line each.
    pub warnings: Vec<String>,
    /// What was asked of the target, and whether it held.
    pub thresholds: Vec<ThresholdResult>,
    /// One entry a workload, in the scenario's order.
    pub workloads: Vec<WorkloadSummary>,
    /// The target's machine over the load and before it, as `run.machines` lists it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineSummary>,
    /// How the watched processes grew, of a run whose clients follow each other, or that is long.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub growth: Vec<TargetGrowth>,
    /// Restarts of the server that the scenario asked for, in the order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restarts: Vec<RestartSummary>,
    /// One entry a second, for plots.
    pub series: Vec<Point>,
    /// What each figure says, by name, protocols' own included.
    pub glossary: BTreeMap<String, String>,
}

/// What was run, and where.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunFacts {
    /// The scenario's name.
    pub name: String,
    /// Name of the run directory.
    pub id: String,
    /// Start, in seconds since the Unix epoch.
    pub started_at_seconds: f64,
    /// Length, drain included.
    pub duration_seconds: f64,
    /// weir's version.
    pub weir_version: String,
    /// Seed of everything random in the run.
    pub seed: u64,
    /// `--tag` pairs.
    pub tags: BTreeMap<String, String>,
    /// The machine that weir ran on.
    pub environment: Environment,
    /// The watched targets' programs, where readable: command line without secrets, version.
    pub targets: Vec<TargetEnvironment>,
    /// What servers said of themselves when they were asked before the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerVersion>,
    /// The target's machine, once for each way in which it is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineFacts>,
    /// The machines that made the load, if they were others than the one that led the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentFacts>,
    /// Time before second 0 in which machines were read.
    #[serde(default)]
    pub base_seconds: f64,
    /// What the kernel of weir's machine says of its clock, where it may be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<KernelClock>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// To the plan's end.
    Completed,
    /// By Ctrl-C or SIGTERM.
    Interrupted,
    /// The watched target's processes were all gone.
    TargetDied,
    /// Every client was over before its time, and none was still to begin.
    NobodyLeft,
    /// More agents were lost than may be.
    AgentLost,
    /// By a threshold that was marked to abort; which.
    Aborted(String),
    /// It has not: the summary is of what there was up to now, for those who look on. No file has it.
    #[serde(skip)]
    Running,
}

/// One workload.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadSummary {
    /// Its name in the scenario, or its verb.
    pub name: String,
    /// What its clients did.
    pub role: Role,
    /// Whether it was there only to disturb the others: no threshold and no verdict is about it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub background: bool,
    /// Where to, without secrets.
    pub targets: Vec<String>,
    /// One entry a stage.
    pub stages: Vec<StageSummary>,
    /// The whole run, ramps and drain included.
    pub total: Figures,
    /// How its slots ended: planned = on time + late + missed + failed.
    pub slots: Slots,
    /// Failures by kind, the commonest first.
    pub failures: Vec<FailureCount>,
    /// One entry a server, if its clients went to several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerSummary>,
    /// Spans in which viewers were without pictures or without sound although the stream went on, the first hundred of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// What the tracks of its streams are, as its viewers were told, pictures first; sixteen at the most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tracks: Vec<TrackFormat>,
    /// One entry a channel that was read, of protocols that have channels.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub channels: Vec<ChannelSummary>,
    /// What its clients left behind, of protocols whose clients do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<ClientsSummary>,
    /// What became of the messages, of a workload that saves them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ingested: Option<Ingested>,
    /// How far the figure `latency` may be off because publisher and viewers read different clocks: 0 when
    /// they share one, none when it is not known or nothing was stamped.
    pub clock_uncertainty_seconds: Option<f64>,
    /// Share of the viewers of a stream that came to play whose modelled player never ran out of media, the whole run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall_free_ratio: Option<f64>,
    /// How clients followed each other, if they did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turnover: Option<TurnoverSummary>,
    /// When clients came to play, and after how long, if many did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_map: Option<StartupMap>,
}

/// How the clients of a workload followed each other in their places.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TurnoverSummary {
    /// For how long a client stays.
    pub life: Lifetime,
    /// How long its place is empty then.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub pause_seconds: f64,
    /// Clients that began in the whole run.
    pub started: u64,
    /// Clients that began a second, over the windows of all stages; none if there was no window.
    pub starts_per_second: Option<f64>,
    /// Clients that were replaced before they played, and before anybody could be blamed for that.
    pub exits_before_start: u64,
}

/// What the clients of one server came to over the whole run, ramps and drain included.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerSummary {
    /// `host:port`, without the port if it is the scheme's own.
    pub server: String,
    /// Clients whose time came.
    pub planned: u64,
    /// Those that came to play or publish.
    pub played: u64,
    /// Those that failed.
    pub failed: u64,
    /// Bytes of media that came or went.
    pub media_bytes: u64,
    /// Bits of media a second of one client that played or published; none if none did.
    pub client_bit_rate_bps: Option<f64>,
    /// From the planned start to playing; none if no client came to that.
    pub startup: Option<Spread>,
}

/// How slots ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Slots {
    /// Slots whose time came.
    pub planned: u64,
    /// Began on time, did not fail.
    pub on_time: u64,
    /// Began late, did not fail.
    pub late: u64,
    /// Never began.
    pub missed: u64,
    /// Failed.
    pub failed: u64,
}

/// Failures of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FailureCount {
    /// The kind.
    pub kind: Failure,
    /// Whether the target or the generator is responsible.
    pub side: Side,
    /// How many clients.
    pub clients: u64,
    /// What was said of the first of them: by the peer, the system, or else weir.
    pub words: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl Summary {
    /// Whether any client played or published that was not there only to disturb the others.
    pub fn has_measured(&self) -> bool {
        self.workloads.iter().any(|it| !it.background && it.total.total(names::PLAYED) > 0.0)
    }

    /// Makes of it a run in which nothing was measured, or nothing judged: it is not valid, and what holds of nothing is not passed.
    pub(crate) fn has_nothing(&mut self) {
        let stages = self.workloads.iter_mut().flat_map(|it| &mut it.stages).map(|it| &mut it.verdict);
        for state in stages.chain([&mut self.verdict.state]) {
            *state = (*state).max(VerdictState::NothingMeasured);
        }
        for threshold in self.thresholds.iter_mut().filter(|it| it.passed) {
            (threshold.value, threshold.passed) = (None, false);
        }
    }

    /// Whether the target gave no client an answer: nothing listens there, or it said nothing before the timeout.
    pub fn is_unanswered(&self) -> bool {
        let workloads = || self.workloads.iter().filter(|it| !it.background);
        let mut failures = workloads().flat_map(|it| &it.failures).peekable();
        self.heard_nothing() && failures.peek().is_some() && failures.all(|it| it.kind.is_silence())
    }

    /// How many connections the target has accepted, if it has said nothing on any of them, before the timeout or before the
    /// run was over.
    pub fn accepted_in_silence(&self) -> Option<u64> {
        let workloads = || self.workloads.iter().filter(|it| !it.background);
        let accepted = workloads().map(|it| it.total.total(names::CONNECTED)).sum::<f64>() as u64;
        let is_silence = workloads().flat_map(|it| &it.failures).all(|it| it.kind.is_silence());
        (accepted > 0 && is_silence && self.heard_nothing()).then_some(accepted)
    }

    /// Whether no client has come past its handshake, or past its request where there is none.
    fn heard_nothing(&self) -> bool {
        let heard = |it: &WorkloadSummary| {
            [names::HANDSHAKE, names::REQUEST].iter().any(|of| it.total.spread(of).is_some())
        };
        !self.has_measured() && !self.workloads.iter().filter(|it| !it.background).any(heard)
    }
}

impl WorkloadSummary {
    /// Whether a stage has a second that its figures come from.
    pub fn has_window(&self) -> bool {
        self.stages.iter().any(|stage| stage.window_seconds() > 0.0)
    }

    /// Playing time of all clients together, in seconds, over all windows. A viewer that receives nothing any more, or has lost its
    /// link and looks for another, has stalled, and is still a viewer.
    pub fn viewed_seconds(&self) -> f64 {
        let waiting =
            |stage: &StageSummary| stage.figures.mean(names::STARVING) + stage.figures.mean(names::AWAY);
        let there = |stage: &StageSummary| stage.playing_mean + waiting(stage);
        self.stages.iter().map(|stage| there(stage) * stage.window_seconds()).sum()
    }

    /// The share of that time in which clients were stalled: CTA-2066's rebuffering ratio.
    pub fn stalled_ratio(&self) -> Option<f64> {
        let viewed = self.viewed_seconds();
        let stalled: f64 = self.stages.iter().map(|stage| stage.figures.total(names::STALLED)).sum();
        (viewed > 0.0).then(|| stalled / viewed)
    }
}
