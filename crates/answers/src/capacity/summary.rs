//! What a search comes to, as it is written down.

use super::search::{Answer, Evidence, Purpose, TrialVerdict};
use super::trial::LoadOutcome;
use crate::series::Ending;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_engine::scenario::LoadKind;
use weir_engine::summary::RunFacts;

/// The version of the layout; `docs/capacity.schema.json` follows it.
pub const LAYOUT: &str = "weir.capacity/1";

/// A whole search.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CapacitySummary {
    /// `weir.capacity/1`.
    pub layout: String,
    /// What was run, and where.
    pub run: RunFacts,
    /// How it ended.
    pub ending: Ending,
    /// What was searched for.
    pub sought: Sought,
    /// What the trials say together.
    pub answer: Answer,
    /// All trials, in the order in which they were made. Each has a run directory of its own in that of the search.
    pub trials: Vec<CapacityTrial>,
}

/// What was searched for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Sought {
    /// What is counted.
    #[serde(default)]
    pub kind: LoadKind,
    /// What a load is a number of, in words: `viewers`, `subscribers`, `messages a second`.
    pub of: String,
    /// Where they go to, without secrets.
    pub target: String,
    /// What each slice of a trial is asked.
    pub thresholds: Vec<String>,
    /// The one load that was asked for, if it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least: Option<u32>,
    /// How far the upper bound may lie above the lower one, as a share of it.
    pub precision: f64,
    /// Clients a second while a load is approached.
    pub arrivals_per_second: f64,
    /// Seconds of a slice.
    pub slice_seconds: u32,
    /// Seconds that a load is held to narrow the bounds.
    pub short_seconds: u32,
    /// Seconds that a bound is held to confirm it.
    pub long_seconds: u32,
    /// Seconds that the search was allowed to take.
    pub budget_seconds: f64,
}

/// One trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CapacityTrial {
    /// What it was for; none of the climb.
    pub purpose: Option<Purpose>,
    /// Its loads, in order: several of the climb.
    pub loads: Vec<LoadOutcome>,
    /// Its run directory, in that of the search.
    pub directory: String,
}

impl CapacitySummary {
    /// Whether the target gave no client of any trial an answer.
    pub fn is_unanswered(&self) -> bool {
        let mut loads = self.trials.iter().flat_map(|trial| &trial.loads);
        self.answer.evidence == Evidence::AtMost && loads.all(|load| load.playing == 0.0)
    }

    /// Whether the load that was asked for is carried, if one was, as far as it is known.
    pub fn carries_at_least(&self) -> Option<bool> {
        match self.answer.evidence {
            _ if self.sought.at_least.is_none() => None,
            Evidence::AtLeast | Evidence::Found => Some(true),
            Evidence::AtMost => Some(false),
            Evidence::Undecided | Evidence::Void => None,
        }
    }

    /// For how long a search that ran out of time should have been allowed to go on, to the trials that it lacked: halvings of
    /// the interval, and confirmations of its ends.
    pub fn needed_seconds(&self) -> Option<u32> {
        let (answer, sought) = (&self.answer, &self.sought);
        let (lower, upper) = answer.bounds.lower.zip(answer.bounds.upper)?;
        let is_open = answer.evidence == Evidence::Undecided && answer.stopped.is_none();
        let made = f64::from(answer.trials.max(1));
        let halvings = f64::ln(f64::from(upper) / f64::from(lower)) / f64::ln(1.0 + sought.precision);
        let confirmations = u32::from(!answer.lower_is_sure) * 3 + u32::from(!answer.upper_is_sure) * 2;
        let each = self.run.duration_seconds / made;
        let lacking = halvings.max(1.0).log2().ceil() * each
            + f64::from(confirmations) * each.max(f64::from(sought.long_seconds));
        is_open.then_some((self.run.duration_seconds + lacking).ceil() as u32)
    }

    /// What became of a load that was held, of the longest trial of it.
    pub fn at(&self, load: u32) -> Option<&LoadOutcome> {
        let outcomes = self.trials.iter().flat_map(|trial| &trial.loads).filter(|it| it.load == load);
        outcomes.max_by_key(|it| it.good_seconds + it.bad_seconds)
    }

    /// The same of the trials of it that came out so.
    pub fn at_with(&self, load: u32, verdict: TrialVerdict) -> Option<&LoadOutcome> {
        let outcomes = self.trials.iter().flat_map(|trial| &trial.loads);
        let outcomes = outcomes.filter(|it| it.load == load && it.verdict == verdict);
        outcomes.max_by_key(|it| it.good_seconds + it.bad_seconds)
    }

    /// The same of the load that is nearest to half of another one.
    pub fn at_half_of(&self, load: u32) -> Option<&LoadOutcome> {
        let tried = self.trials.iter().flat_map(|trial| &trial.loads).map(|it| it.load);
        let nearest = tried.filter(|it| *it < load).min_by_key(|it| (it * 2).abs_diff(load))?;
        self.at(nearest)
    }
}
