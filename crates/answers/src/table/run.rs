//! A row: one run, or one search for a capacity in its place.

use super::figures::{TableFigure, figures};
use crate::capacity::{CapacitySummary, Evidence, TrialVerdict};
use crate::compare::Unlike;
use crate::series::Ending;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_engine::ingest::Classic;
use weir_engine::summary::{Outcome, ProcessLoad, Role, Summary, ThresholdResult, VerdictState};

/// One run, or one search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TableRun {
    /// Its variant, or its side of a comparison; empty if there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub variant: String,
    /// Which repetition of it, from 1; of a run that is of no series, its number among those of its variant.
    pub repetition: u32,
    /// Its directory, in that of the whole if there is one.
    pub directory: String,
    /// Start, in seconds since the Unix epoch.
    pub started_at_seconds: f64,
    /// How it ended; of a search that failed, `reason` has why.
    pub outcome: Outcome,
    /// Whether the target gave no client an answer.
    pub unanswered: bool,
    /// Whether its figures can be believed.
    pub verdict: VerdictState,
    /// The first reason of the verdict, or what a run says in which nothing was measured, if there is one; of a search why it says
    /// nothing about its target.
    pub reason: Option<String>,
    /// Things to know when reading its figures, one line each.
    pub warnings: Vec<String>,
    /// What was asked of the target, and whether it held.
    pub thresholds: Vec<ThresholdResult>,
    /// By the figure's name.
    pub figures: BTreeMap<String, f64>,
    /// CPU of all that is watched, in percent of one core, by clients that played: in its last stage, of a search at the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent_per_client: Option<f64>,
    /// The busiest thread of what is watched, over the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_thread: Option<BusiestThread>,
    /// The line of the original measurement, of a run whose messages were saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub classic: Option<Classic>,
    /// What it carries, if that was searched for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<SearchedCapacity>,
    /// In a history, what it was asked for, where, or of what target, that is not as in the run before: keys of `run.json`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unlike_before: Vec<Unlike>,
}

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SearchedCapacity {
    /// How sure it is.
    pub evidence: Evidence,
    /// The largest load that was carried; none if not even the smallest was.
    pub lower: Option<u32>,
    /// The smallest load that was not; none if there was none.
    pub upper: Option<u32>,
    /// Whether the lower bound was confirmed.
    #[serde(default)]
    pub lower_is_sure: bool,
    /// Whether the upper bound was confirmed.
    #[serde(default)]
    pub upper_is_sure: bool,
    /// What a search of it would have needed as its budget to come to its end, of one that did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_seconds: Option<u32>,
}

/// A thread of what is watched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BusiestThread {
    /// Its name.
    pub name: String,
    /// Its CPU, in percent of a core.
    pub cpu_percent: f64,
}

impl TableRun {
    /// What is kept of a run, and what its figures are called. `directory` is its place in that of the whole.
    pub fn new(
        variant: &str,
        repetition: u32,
        directory: String,
        summary: &Summary,
    ) -> (Self, Vec<TableFigure>) {
        let named = figures(summary).into_iter().map(|(figure, value)| {
            let name = figure.name.clone();
            (figure, (name, value))
        });
        let (figures, values) = named.unzip();
        let load = summary.workloads.iter().filter(|workload| !workload.background);
        let asked = load.clone().find(|workload| workload.role == Role::Play).or(load.clone().next());
        let stage = asked.and_then(|workload| workload.stages.last());
        // Of what the processes used together, a part is no measure.
        let known = stage.filter(|stage| stage.unheard.is_empty());
        let targets = known.map_or(&[][..], |stage| &stage.targets);
        let run = Self {
            variant: variant.to_owned(),
            repetition,
            directory,
            started_at_seconds: summary.run.started_at_seconds,
            outcome: summary.outcome.clone(),
            unanswered: summary.is_unanswered(),
            verdict: summary.verdict.state,
            reason: summary.verdict.reasons.first().map(|reason| reason.text.clone()),
            warnings: summary.warnings.clone(),
            thresholds: summary.thresholds.clone(),
            figures: values,
            cpu_percent_per_client: stage.and_then(|stage| per_client(targets, stage.playing_mean)),
            busiest_thread: busiest(targets),
            classic: summary.workloads.iter().find_map(|it| Some(it.ingested.as_ref()?.classic)),
            capacity: None,
            unlike_before: Vec::new(),
        };
        (run, figures)
    }

    /// Of a search; of one that was interrupted, what it had come to.
    pub fn of_search(variant: &str, repetition: u32, directory: String, search: &CapacitySummary) -> Self {
        let (answer, bounds) = (&search.answer, search.answer.bounds);
        let reason = match &search.ending {
            Ending::Failed(failure) => Some(failure.words.clone()),
            Ending::Interrupted | Ending::Running if bounds.lower.is_none() => {
                Some("it was interrupted".to_owned())
            }
            Ending::Completed if answer.evidence == Evidence::Void => {
                let loads = search.trials.iter().flat_map(|trial| &trial.loads);
                let why = loads.filter_map(|load| load.void.clone()).next();
                Some(why.unwrap_or_else(|| "no result".to_owned()))
            }
            Ending::Completed | Ending::Interrupted | Ending::Running => None,
        };
        let is_whole = search.ending == Ending::Completed || reason.is_some();
        let unanswered = search.ending == Ending::Completed && search.is_unanswered();
        let carried = bounds.lower.and_then(|lower| search.at_with(lower, TrialVerdict::Pass));
        let targets = carried.map_or(&[][..], |carried| &carried.targets);
        Self {
            variant: variant.to_owned(),
            repetition,
            directory,
            started_at_seconds: search.run.started_at_seconds,
            outcome: match search.ending {
                Ending::Completed | Ending::Failed(_) => Outcome::Completed,
                Ending::Interrupted => Outcome::Interrupted,
                Ending::Running => Outcome::Running,
            },
            unanswered,
            verdict: match &reason {
                None if !unanswered => VerdictState::Valid,
                _ => VerdictState::NothingMeasured,
            },
            reason,
            warnings: Vec::new(),
            thresholds: Vec::new(),
            figures: BTreeMap::new(),
            cpu_percent_per_client: carried.and_then(|carried| per_client(targets, carried.playing)),
            busiest_thread: busiest(targets),
            classic: None,
            capacity: Some(SearchedCapacity {
                evidence: if is_whole { answer.evidence } else { Evidence::Undecided },
                lower: bounds.lower,
                upper: bounds.upper,
                lower_is_sure: answer.lower_is_sure,
                upper_is_sure: answer.upper_is_sure,
                needed_seconds: search.needed_seconds(),
            }),
            unlike_before: Vec::new(),
        }
    }

    /// Whether its figures are in those of its variant.
    pub fn is_counted(&self) -> bool {
        match self.capacity {
            Some(_) => self.reason.is_none(),
            None => {
                matches!(self.outcome, Outcome::Completed | Outcome::NobodyLeft)
                    && self.verdict < VerdictState::NothingMeasured
            }
        }
    }

    /// Why its figures are not in those of its variant, of a run that is not counted.
    pub fn why_not_counted(&self) -> String {
        match &self.outcome {
            _ if self.capacity.is_some() => self.reason.clone().unwrap_or_default(),
            Outcome::Interrupted => "it was interrupted".to_owned(),
            Outcome::TargetDied => "the target died".to_owned(),
            Outcome::Running => "it still goes on".to_owned(),
            Outcome::AgentLost => "an agent was lost".to_owned(),
            Outcome::Aborted(threshold) => format!("{threshold} ended it"),
            Outcome::Completed | Outcome::NobodyLeft => self.reason.clone().unwrap_or_else(|| {
                let words = match self.verdict {
                    _ if self.unanswered => "no client got an answer",
                    VerdictState::NothingMeasured => "nothing was measured",
                    _ => "it is invalid",
                };
                words.to_owned()
            }),
        }
    }
}

fn per_client(targets: &[ProcessLoad], playing: f64) -> Option<f64> {
    let cpu: f64 = targets.iter().map(|target| target.cpu_percent).sum();
    (!targets.is_empty() && playing > 0.0).then(|| cpu / playing)
}

fn busiest(targets: &[ProcessLoad]) -> Option<BusiestThread> {
    let threads = targets.iter().flat_map(|target| &target.threads);
    let busiest = threads.max_by(|one, other| one.full_percent().total_cmp(&other.full_percent()))?;
    Some(BusiestThread { name: busiest.name.clone(), cpu_percent: busiest.full_percent() })
}
