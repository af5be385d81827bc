//! Whether a run may be believed, and whether what was asked of the target held.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether a run may be believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VerdictState {
    /// The load generator had room to spare.
    Valid,
    /// Half of some limit was reached.
    Degraded,
    /// No client ever played or published, or no stage had a second to be judged: there is nothing to believe.
    NothingMeasured,
    /// The load generator was the bottleneck.
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

/// One limit of the load generator that was reached, or half of it.
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
    /// What the peer said the first time, of one that failed and counts what a peer says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub words: Option<String>,
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

impl Verdict {
    /// The worst state of any reason of one stage of one workload.
    pub(crate) fn of_stage(&self, place: (u16, u16)) -> VerdictState {
        let is_there = |it: &&Reason| it.stage == Some(place) || it.also.contains(&place);
        let reasons = self.reasons.iter().filter(is_there);
        reasons.map(|reason| reason.state).max().unwrap_or(VerdictState::Valid)
    }
}
