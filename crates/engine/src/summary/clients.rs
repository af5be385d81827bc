//! What clients left behind, one by one and channel by channel.

use super::{BaseUnit, ClientColumn};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_metrics::Failure;

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
