//! What a run is summed up to: values only, made by [`crate::aggregator::Aggregator`] and read by reports.
//!
//! Keys carry their units; shares are ratios of 0 to 1; CPU percent is of one core.

use crate::agents::facts::AgentFacts;
use crate::growth::TargetGrowth;
use crate::ingest::Ingested;
use crate::kernel_clock::KernelClock;
use crate::lifetime::Lifetime;
use crate::startup_map::StartupMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_clients::ServerVersion;
use weir_metrics::{Failure, Side};
use weir_observe::{Environment, MachineFacts, MachineUsage, MachineValues, TargetEnvironment};

pub use crate::machine::{MachineFigure, MachineSummary};
pub use crate::role::Role;
pub use crate::units::BaseUnit;
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

/// Whether a run may be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictState {
    /// The instrument had room to spare.
    Valid,
    /// Half of some limit was reached.
    Degraded,
    /// No client ever played or published: there is nothing to believe.
    NothingMeasured,
    /// The instrument was at fault.
    Invalid,
}

/// The verdict with its reasons, the worst first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The worst state of any reason that was not waived; valid without such a reason.
    pub state: VerdictState,
    /// Every limit of which half or more was reached.
    pub reasons: Vec<Reason>,
    /// Reasons that the run accepts by `--accept`: they are shown, and change nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waived: Vec<Reason>,
}

/// One limit of the instrument that was reached, or half of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reason {
    /// What this reason makes of the run.
    pub state: VerdictState,
    /// Name of the check, such as `generator_thread`.
    pub check: String,
    /// Workload and stage, if it belongs to one.
    pub stage: Option<(u16, u16)>,
    /// Other workloads and stages in which the machine or the generator gave the same reason, where it was no worse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<(u16, u16)>,
    /// What was measured.
    pub measured: f64,
    /// The limit.
    pub limit: f64,
    /// One line for people: the figure, in its unit.
    pub text: String,
    /// One line for people: what to do.
    pub remedy: String,
}

/// One threshold's result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThresholdResult {
    /// As it was written.
    pub expression: String,
    /// The value that was compared, in base units; none if nothing was measured (which fails).
    pub value: Option<f64>,
    /// Whether it held.
    pub passed: bool,
    /// Whether it is a default, used because no threshold on its figure was given.
    #[serde(default)]
    pub default: bool,
    /// Where its value is from, if it is a single stage's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<ThresholdPlace>,
}

/// Where the value of a threshold is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ThresholdPlace {
    /// Position of the workload.
    pub workload: u16,
    /// Position of the stage within it.
    pub stage: u16,
    /// The second of the run in which its figure was farthest on the wrong side, where the seconds of a figure are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub second: Option<u32>,
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

/// What the clients of a workload left behind, each over its own life, ramps and drain included. The rows, one a client,
/// are in `clients.csv`.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ClientsSummary {
    /// Clients whose time came. Counts and rates are of all of them: one that never played has 0.
    pub planned: u64,
    /// Clients that left an account: all that began.
    pub accounts: u64,
    /// How far they had come when they ended.
    pub states: Vec<ClientStates>,
    /// One entry a figure, in the order of the table.
    pub figures: Vec<ClientFigure>,
    /// What the numbers of the rows are.
    #[serde(skip)]
    pub columns: &'static [ClientColumn],
    /// One a client that left an account, by its number.
    #[serde(skip)]
    pub rows: Vec<ClientRow>,
}

/// How many clients ended in which state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ClientStates {
    /// The figure's name.
    pub name: String,
    /// Its title.
    pub title: String,
    /// All states, in their order.
    pub clients: Vec<StateCount>,
}

/// Clients in one state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StateCount {
    /// The state.
    pub state: String,
    /// How many.
    pub clients: u64,
}

/// One figure of all clients, in its base unit. Means and percentiles are over one value a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientFigure {
    /// Its name.
    pub name: String,
    /// Its title in the table.
    pub title: String,
    /// Its unit.
    pub unit: BaseUnit,
    /// Whether the table has it.
    pub summed: bool,
    /// How many clients are in it.
    pub count: u64,
    /// The sum, of counts.
    pub total: Option<f64>,
    /// The mean over the clients' own means or counts.
    pub mean: Option<f64>,
    /// The most that any client has met.
    pub max: Option<f64>,
    /// The least that any client has met.
    pub min: Option<f64>,
    /// The median of the clients.
    pub p50: Option<f64>,
    /// Their 90th percentile.
    pub p90: Option<f64>,
    /// Their 95th percentile.
    pub p95: Option<f64>,
    /// Their 99th percentile.
    pub p99: Option<f64>,
}

/// What one client left behind.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientRow {
    /// Its number, from 1.
    pub client: u32,
    /// Position of what it read among the workload's targets.
    pub target: u32,
    /// As what failure it ended, if it did.
    pub failure: Option<Failure>,
    /// Since when it played, in seconds of the run; none if it never came to that.
    pub since_seconds: Option<f64>,
    /// When it ended, in seconds of the run.
    pub until_seconds: f64,
    /// One number a column, in base units.
    pub numbers: Vec<Option<f64>>,
}

/// What the readers of one channel counted, over the whole run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelSummary {
    /// What was read, without secrets.
    pub target: String,
    /// How many clients read it.
    pub readers: u64,
    /// How many clients that were sent there failed, those that never read included.
    #[serde(default)]
    pub failed: u64,
    /// Bits received a second and reader.
    pub bit_rate_bps: f64,
    /// Sums over the readers, in the order of the table.
    pub figures: Vec<ChannelFigure>,
    /// Which readers met the gaps.
    pub gaps: GapSources,
}

/// One figure of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChannelFigure {
    /// Its name, as elsewhere.
    pub name: String,
    /// Its title in the table by channel.
    pub title: String,
    /// The sum.
    pub total: u64,
}

/// Gaps in a channel's stream, by which readers met them. A gap that several readers met counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct GapSources {
    /// By all of several readers: server, tuner or antenna.
    pub of_source: u64,
    /// By some of several readers: their connections.
    pub of_connection: u64,
    /// By some of several readers, while this host's receive path complained: the generator.
    pub of_generator: u64,
    /// By one reader, while no other read before and after the gap: the source is unknown.
    pub unknown: u64,
    /// Gaps of single readers whose place was not kept: each reader keeps its first few hundred.
    #[serde(default)]
    pub unplaced: u64,
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

/// One stage of one workload: a row of the table.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StageSummary {
    /// Position within the workload.
    pub stage: u16,
    /// Clients that the stage holds by the plan.
    pub clients: u32,
    /// Seconds of the run from the ramp's beginning to the hold's end.
    pub begin_seconds: f64,
    /// See `begin_seconds`.
    pub end_seconds: f64,
    /// First second of the window.
    pub window_begin_seconds: u32,
    /// Second after the window's last.
    pub window_end_seconds: u32,
    /// Mean number of clients that played, over the window.
    pub playing_mean: f64,
    /// Whether one half of the window, or all of it, is without media although the stream's source is known: its rates
    /// are of no state of the target, and a threshold on them fails.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub window_is_void: bool,
    /// Mean number of planned clients that were on their way to playing, and came to play, over the window; only of a
    /// workload whose clients follow each other.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub starting_mean: f64,
    /// Mean number of planned clients, over the window, that were lost with an agent that `--allow-lost` covers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_mean: f64,
    /// What the source sent for all planned clients, less those that were on their way or lost with their agent; none if the source's rate is not known.
    pub expected_bps: Option<f64>,
    /// Media bits received (or sent, by publishers) a second, over the window.
    pub actual_bps: f64,
    /// Messages a second over the window, of a workload that sends or receives messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessageRate>,
    /// Video frames a second of the source, for one client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_fps: Option<f64>,
    /// Video frames that came at once to viewers that began in the window; only of a workload whose clients follow each other.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub frames_ahead: f64,
    /// Distributions of what began in this stage (startup and its phases, start lag): ramp and
    /// hold. All other figures: the window only.
    pub figures: Figures,
    /// The target's processes over the window, one entry a watched target.
    pub targets: Vec<ProcessLoad>,
    /// Watched targets on other machines of which nothing was heard any more when the window ended: what they used is unknown, and
    /// thresholds on processes fail.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unheard: Vec<String>,
    /// weir itself over the window.
    pub generator: Option<ProcessLoad>,
    /// The host over the window.
    pub host: Option<HostLoad>,
    /// The target's machine over the window, as `run.machines` lists it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineUsage>,
    /// The worst that the instrument did in this stage.
    pub verdict: VerdictState,
}

/// How many messages a second there were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MessageRate {
    /// What the planned publishers were to send; none of those who receive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_per_second: Option<f64>,
    /// What was sent, or received.
    pub actual_per_second: f64,
}

/// Figures by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Figures(pub BTreeMap<String, FigureValue>);

/// One figure's value, in base units (seconds, bytes, count).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureValue {
    /// The base unit: `seconds`, `bytes` or `count`.
    pub unit: BaseUnit,
    /// The number or the distribution.
    #[serde(flatten)]
    pub value: Value,
}

/// A number or a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Value {
    /// Events in the stretch, and a second.
    Counter {
        /// Sum.
        total: f64,
        /// Sum divided by the stretch's seconds.
        per_second: f64,
    },
    /// A level.
    Gauge {
        /// Mean over the stretch's seconds.
        mean: f64,
        /// Highest.
        max: f64,
        /// At the end.
        last: f64,
    },
    /// A distribution.
    Spread(Spread),
}

/// A distribution in base units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Number of values.
    pub count: u64,
    /// Smallest.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

/// A set of processes over a window. 100 percent is one core.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ProcessLoad {
    /// `name=nginx`, `pid=12`, `port=1935`, or `weir`.
    pub label: String,
    /// CPU seconds used in the window by its wall seconds.
    pub cpu_percent: f64,
    /// The busiest second.
    pub cpu_percent_max: f64,
    /// Highest resident set.
    pub rss_max_bytes: u64,
    /// Mean resident set.
    pub rss_mean_bytes: f64,
    /// Highest number of established connections, where counted.
    pub connections_max: Option<u64>,
    /// Highest number of descriptors, where readable.
    pub descriptors_max: Option<u64>,
    /// Context switches a second.
    pub context_switches_per_second: f64,
    /// CPU of each thread name (summed over threads of that name), the busiest first; at most 32.
    pub threads: Vec<ThreadLoad>,
}

/// Threads of one name.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ThreadLoad {
    /// The name.
    pub name: String,
    /// How many threads bear it.
    pub threads: u32,
    /// CPU of all of them over the window.
    pub cpu_percent: f64,
    /// CPU of the busiest one over the window.
    pub cpu_percent_busiest: f64,
}

/// The host over a window. CPU is in percent of one core, 0 to 100 times the cores.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HostLoad {
    /// CPU that worked, in percent of one core.
    pub cpu_percent: f64,
    /// CPU taken by the hypervisor, in percent of one core.
    pub steal_percent: f64,
    /// CPU of processes that are neither weir nor watched, softirqs left out, in percent of one core; absent where the
    /// host's CPU time cannot be read.
    #[serde(default)]
    pub others_percent: Option<f64>,
    /// Those of them that used most, by name; empty while they used little.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub others: Vec<OtherLoad>,
    /// The core that spent most of its time in softirqs, of those that weir may run on: how much, in percent of it.
    #[serde(default)]
    pub softirq_percent: Option<f64>,
    /// One-minute load average, highest.
    pub load1_max: f64,
    /// Memory in use, highest.
    pub memory_used_max_bytes: u64,
    /// Received on all interfaces, loopback included.
    pub rx_bps: f64,
    /// Sent on all interfaces, loopback included.
    pub tx_bps: f64,
    /// The interface that came closest to its speed, of those whose speed is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkLoad>,
    /// TCP segments sent again, a second.
    pub tcp_retransmits_per_second: f64,
    /// Connections that the host's listeners dropped (`ListenDrops`, overflows included), in the window.
    pub listen_drops: u64,
}

/// A network interface whose speed is known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LinkLoad {
    /// Its name.
    pub interface: String,
    /// Bits a second in the direction that carried more.
    pub bps: f64,
    /// Bits a second that it can carry in one direction.
    pub speed_bps: f64,
}

/// Processes of one name that are neither weir nor watched.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OtherLoad {
    /// The program's base name.
    pub name: String,
    /// The busiest of them.
    pub pid: u32,
    /// How many of them used any CPU at a time.
    pub processes: u64,
    /// CPU of all of them, in percent of one core.
    pub cpu_percent: f64,
}

/// One second, for plots. Values that were not measured are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Second of the run.
    pub second: u32,
    /// By workload position: clients planned, playing; bit rates; percentiles.
    pub workloads: Vec<WorkloadPoint>,
    /// CPU of each watched target in percent of one core, in the order of the stages' `targets`.
    pub target_cpu_percent: Vec<f64>,
    /// Resident set of each watched target.
    pub target_rss_bytes: Vec<u64>,
    /// CPU of weir.
    pub generator_cpu_percent: Option<f64>,
    /// CPU of all cores of the host.
    pub host_cpu_percent: Option<f64>,
    /// The target's machine, as `run.machines` lists it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineValues>,
    /// CPU of the target's threads by name, the busiest dozen of the run.
    pub thread_cpu_percent: BTreeMap<String, f64>,
}

/// One workload's second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadPoint {
    /// Clients that should run by the plan at the second's end.
    pub planned: u32,
    /// Clients that played at the second's end.
    pub playing: u64,
    /// Failures in this second.
    pub failed: u64,
    /// The same by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<Failure, u64>,
    /// What the source sent for all planned clients.
    pub expected_bps: Option<f64>,
    /// What arrived (or was sent).
    pub actual_bps: f64,
    /// Messages of this second, where there are messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessageRate>,
    /// Median startup of clients that began to play in this second.
    pub startup_p50_seconds: Option<f64>,
    /// 99th percentile of the same.
    pub startup_p99_seconds: Option<f64>,
    /// Median latency of witnesses.
    pub latency_p50_seconds: Option<f64>,
    /// 99th percentile of the same.
    pub latency_p99_seconds: Option<f64>,
    /// Median drift of witnesses.
    pub drift_p50_seconds: Option<f64>,
    /// 99th percentile of the same.
    pub drift_p99_seconds: Option<f64>,
    /// Stalls that began in this second.
    pub stalls: u64,
    /// Video frames that arrived (or were sent).
    #[serde(default)]
    pub frames: u64,
    /// Units that arrived with a number, and those that are known to be missing.
    #[serde(default)]
    pub numbered: u64,
    /// The second of the two.
    #[serde(default)]
    pub lost: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl Verdict {
    /// The worst state of any reason of one stage of one workload.
    pub(crate) fn of_stage(&self, place: (u16, u16)) -> VerdictState {
        let is_there = |it: &&Reason| it.stage == Some(place) || it.also.contains(&place);
        let reasons = self.reasons.iter().filter(is_there);
        reasons.map(|reason| reason.state).max().unwrap_or(VerdictState::Valid)
    }
}

impl Summary {
    /// Whether any client played or published that was not there only to disturb the others.
    pub fn has_measured(&self) -> bool {
        self.workloads.iter().any(|it| !it.background && it.total.total("played") > 0.0)
    }

    /// Makes of it a run in which nothing was measured: it is not valid, and what holds of nothing is not passed.
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
        let heard =
            |it: &WorkloadSummary| ["handshake", "request"].iter().any(|of| it.total.spread(of).is_some());
        let none_was_heard = !self.has_measured() && !workloads().any(heard);
        none_was_heard && failures.peek().is_some() && failures.all(|it| it.kind.is_silence())
    }
}

impl Figures {
    /// A figure's value by name.
    pub fn get(&self, name: &str) -> Option<&FigureValue> {
        self.0.get(name)
    }

    /// A distribution by name; none if absent or empty.
    pub fn spread(&self, name: &str) -> Option<&Spread> {
        match &self.get(name)?.value {
            Value::Spread(spread) if spread.count > 0 => Some(spread),
            _ => None,
        }
    }

    /// A level's mean by name, 0 if absent.
    pub fn mean(&self, name: &str) -> f64 {
        match self.get(name).map(|figure| &figure.value) {
            Some(Value::Gauge { mean, .. }) => *mean,
            _ => 0.0,
        }
    }

    /// The total of the counter whose name ends so, where a protocol has one.
    pub fn ending(&self, end: &str) -> Option<f64> {
        self.0.iter().find_map(|(name, figure)| match figure.value {
            Value::Counter { total, .. } if name.ends_with(end) => Some(total),
            _ => None,
        })
    }

    /// Units that are missing of those whose numbers tell; none where none has a number.
    pub fn lost_ratio(&self) -> Option<f64> {
        let (lost, numbered) = (self.total("lost"), self.total("numbered"));
        (numbered > 0.0).then(|| lost / (lost + numbered))
    }

    /// Viewers that never stalled, of those that played; none where nothing has a media time to stall by.
    pub fn stall_free_ratio(&self) -> Option<f64> {
        let played = self.total("played");
        let is_stream = played > 0.0 && self.total("source_time") > 0.0;
        is_stream.then(|| 1.0 - self.total("stalled_viewers") / played)
    }

    /// A counter's total by name, 0 if absent.
    pub fn total(&self, name: &str) -> f64 {
        match self.get(name).map(|figure| &figure.value) {
            Some(Value::Counter { total, .. }) => *total,
            _ => 0.0,
        }
    }
}

impl WorkloadSummary {
    /// Playing time of all clients together, in seconds, over all windows. A viewer that receives nothing any more has stalled,
    /// and is still a viewer.
    pub fn viewed_seconds(&self) -> f64 {
        let there = |stage: &StageSummary| stage.playing_mean + stage.figures.mean("starving");
        self.stages.iter().map(|stage| there(stage) * stage.window_seconds()).sum()
    }

    /// The share of that time in which clients were stalled: CTA-2066's rebuffering ratio.
    pub fn stalled_ratio(&self) -> Option<f64> {
        let viewed = self.viewed_seconds();
        let stalled: f64 = self.stages.iter().map(|stage| stage.figures.total("stalled")).sum();
        (viewed > 0.0).then(|| stalled / viewed)
    }
}

impl StageSummary {
    /// Video frames a second of each client that played in the window, where there are frames.
    pub fn fps(&self) -> Option<f64> {
        let played = self.playing_mean * self.window_seconds();
        // What a server sends at once to whoever begins is no rate.
        let frames = (self.figures.total("frames") - self.frames_ahead).max(0.0);
        (played > 0.0 && (frames > 0.0 || self.source_fps.is_some())).then(|| frames / played)
    }

    /// Length of the window.
    pub fn window_seconds(&self) -> f64 {
        f64::from(self.window_end_seconds - self.window_begin_seconds)
    }

    /// Mean number of planned clients that should get what the source sends.
    pub fn expected_clients(&self) -> f64 {
        (f64::from(self.clients) - self.starting_mean - self.lost_mean).max(0.0)
    }
}
