//! One stage of one workload: a row of the table.

use super::{Figures, HostLoad, ProcessLoad, VerdictState, is_zero};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_metrics::common::names;
use weir_observe::MachineUsage;

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
    /// Mean number of planned clients that were on their way to playing, over the window: of a workload whose clients follow
    /// each other those that came to play, of others those that waited for a keyframe.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub starting_mean: f64,
    /// Mean number of planned clients, over the window, that were lost with an agent that `--allow-lost` covers.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub lost_mean: f64,
    /// Mean number of planned clients, over the window, that had lost their link and looked for another.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub away_mean: f64,
    /// What the source sent for all planned clients, less those that were on their way, away, or lost with their agent; none if the source's rate is not known.
    pub expected_bps: Option<f64>,
    /// Media bits received (or sent, by publishers) a second, over the window.
    pub actual_bps: f64,
    /// Messages a second over the window, of a workload that sends or receives messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessageRate>,
    /// Video frames a second of the source, for one client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_fps: Option<f64>,
    /// Video frames that came at once to viewers that began in the window; only of a workload whose clients follow each other, or came
    /// back.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub frames_ahead: f64,
    /// Video frames that were due at the window's end and came behind it, less those that were due before it and came in it: servers send
    /// in bursts.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub frames_due: f64,
    /// By how much the median of `drift` grew from the first quarter of the window to its last, beyond what clocks that differ make of
    /// it; none where viewers have no drift, and of a window that ended early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_growth_seconds: Option<f64>,
    /// By how many parts in a million the source's clock is slow, where `drift` shows that all viewers fall behind evenly, and by more than
    /// any quartz: so much is not in `drift_growth_seconds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_clock_ppm: Option<f64>,
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
    /// The worst state of the load generator in this stage.
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

impl StageSummary {
    /// Video frames a second of each client that played in the window, where there are frames.
    pub fn fps(&self) -> Option<f64> {
        // Witnesses alone count them, and nothing says how many of the clients those were.
        if self.figures.total(names::FRAMES_ANNOUNCED) > 0.0 {
            return None;
        }
        // Clients that left within a second played for a part of it.
        let played = self.figures.total(names::PLAYED_TIME);
        let played = if played > 0.0 { played } else { self.playing_mean * self.window_seconds() };
        // What a server sends at once to whoever begins is no rate.
        let frames = (self.figures.total(names::FRAMES) + self.frames_due - self.frames_ahead).max(0.0);
        (played > 0.0 && (frames > 0.0 || self.source_fps.is_some())).then(|| frames / played)
    }

    /// Length of the window.
    pub fn window_seconds(&self) -> f64 {
        f64::from(self.window_end_seconds - self.window_begin_seconds)
    }

    /// Mean number of planned clients that should get what the source sends.
    pub fn expected_clients(&self) -> f64 {
        (f64::from(self.clients) - self.starting_mean - self.lost_mean - self.away_mean).max(0.0)
    }
}
