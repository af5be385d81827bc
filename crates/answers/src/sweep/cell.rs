//! One cell of a sweep: one variant once, as a run or as a search.

use crate::capacity::{CapacitySummary, Evidence, Verdict};
use crate::series::{Ending, SeriesRun};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_engine::summary::{ProcessLoad, Role, Summary};

/// One variant, once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SweepCell {
    /// Its variant.
    pub variant: String,
    /// Which repetition of it, from 1.
    pub repetition: u32,
    /// Its directory, in that of the sweep.
    pub directory: String,
    /// Whether it is in the figures of its variant.
    pub counted: bool,
    /// Why it is not, if it is not.
    pub reason: Option<String>,
    /// What it carries, if that was searched for.
    pub capacity: Option<CellCapacity>,
    /// CPU of all that is watched, in percent of one core, by clients that played: at the bound of a search, in the last stage of
    /// a run.
    pub cpu_percent_per_client: Option<f64>,
    /// The busiest thread of what is watched, over the same time.
    pub busiest_thread: Option<BusiestThread>,
    /// The figures of a run, by name.
    pub figures: BTreeMap<String, f64>,
    /// Thresholds that did not hold in a run, as they were written.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
    /// Whether it is a search in which no client was answered: the least load of all was too much.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unanswered: bool,
}

/// What a search came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CellCapacity {
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

impl SweepCell {
    /// Of a run, as its series has it.
    pub fn of_run(run: &SeriesRun, summary: &Summary) -> Self {
        let load = summary.workloads.iter().filter(|workload| !workload.background);
        let asked = load.clone().find(|workload| workload.role == Role::Play).or(load.clone().next());
        let stage = asked.and_then(|workload| workload.stages.last());
        // Of what the processes used together, a part is no measure.
        let known = stage.filter(|stage| stage.unheard.is_empty());
        let targets = known.map_or(&[][..], |stage| &stage.targets);
        let failed = run.thresholds.iter().filter(|it| !it.passed);
        Self {
            variant: run.variant.clone(),
            repetition: run.repetition,
            directory: run.directory.clone(),
            counted: run.is_counted(),
            reason: (!run.is_counted()).then(|| run.why_not_counted()),
            capacity: None,
            cpu_percent_per_client: stage.and_then(|stage| per_client(targets, stage.playing_mean)),
            busiest_thread: busiest(targets),
            figures: run.figures.clone(),
            failed: failed.map(|it| it.expression.clone()).collect(),
            unanswered: false,
        }
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
        let carried = bounds.lower.and_then(|lower| search.at_with(lower, Verdict::Pass));
        let targets = carried.map_or(&[][..], |carried| &carried.targets);
        Self {
            variant: variant.to_owned(),
            repetition,
            directory,
            counted: reason.is_none(),
            reason,
            capacity: Some(CellCapacity {
                evidence: if is_whole { answer.evidence } else { Evidence::Undecided },
                lower: bounds.lower,
                upper: bounds.upper,
                lower_is_sure: answer.lower_is_sure,
                upper_is_sure: answer.upper_is_sure,
                needed_seconds: search.needed_seconds(),
            }),
            cpu_percent_per_client: carried.and_then(|carried| per_client(targets, carried.playing)),
            busiest_thread: busiest(targets),
            figures: BTreeMap::new(),
            failed: Vec::new(),
            unanswered: search.ending == Ending::Completed && search.is_unanswered(),
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
