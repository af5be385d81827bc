//! What an agent reports of itself when its part of a run is over.

use super::words::{briefly, is_brief};
use crate::machine::loads::LISTED_THREADS;
use crate::summary::{ProcessLoad, Reason, Summary};
use serde::{Deserialize, Serialize};

/// Reasons that are taken, at the most: there are some thirty checks.
const MOST_REASONS: usize = 200;

/// What an agent says of itself when its run is over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentEnd {
    /// Why its part of the plan is incomplete, unless it is complete or was stopped on request.
    pub cut_short: Option<String>,
    /// How far its clock may have been from what it was taken for, at the most.
    pub clock_bound_seconds: f64,
    /// What its machine made of its run.
    pub reasons: Vec<Reason>,
    /// What it used of its machine in each stage: workload, stage, CPU and memory.
    pub loads: Vec<(u16, u16, ProcessLoad)>,
}

impl AgentEnd {
    /// Of a part that could not be run, or not to its end. Words of others, which a database may make long, are cut.
    pub fn cut_short(words: &str) -> Self {
        Self { cut_short: Some(briefly(words)), ..Self::default() }
    }

    /// Of the run that this summary is of.
    pub fn of(summary: &Summary) -> Self {
        let stages = (0..).zip(&summary.workloads).flat_map(|(workload, it)| {
            let stages = it.stages.iter();
            stages.filter_map(move |stage| Some((workload, stage.stage, stage.generator.clone()?)))
        });
        Self {
            cut_short: None,
            clock_bound_seconds: 0.0,
            reasons: summary.verdict.reasons.clone(),
            loads: stages.collect(),
        }
    }

    /// Whether an agent can say this of a run with this many stages: all of it is kept, and its reasons are in the summary.
    pub(crate) fn is_possible(&self, stages: usize) -> bool {
        let is_short = |words: &String| is_brief(words);
        let is_reason = |it: &Reason| {
            it.also.len() <= stages && [&it.check, &it.text, &it.remedy].into_iter().all(is_short)
        };
        let is_load = |load: &ProcessLoad| {
            load.threads.len() <= LISTED_THREADS
                && is_short(&load.label)
                && load.threads.iter().all(|it| is_short(&it.name))
        };
        self.cut_short.iter().all(is_short)
            && self.reasons.len() <= MOST_REASONS
            && self.reasons.iter().all(is_reason)
            && self.loads.len() <= stages
            && self.loads.iter().all(|(_, _, load)| is_load(load))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::VerdictState;

    #[test]
    fn an_end_has_no_more_reasons_words_and_loads_than_a_run_has() {
        let reason = |text: &str| Reason {
            state: VerdictState::Degraded,
            check: "host_busy".to_owned(),
            stage: None,
            also: Vec::new(),
            measured: 1.0,
            limit: 0.5,
            text: text.to_owned(),
            remedy: String::new(),
        };
        let of = |reasons, loads| AgentEnd {
            reasons,
            loads: vec![(0, 0, ProcessLoad::default()); loads],
            ..AgentEnd::default()
        };
        assert!(of(vec![reason("busy"); 30], 2).is_possible(2));
        assert!(!of(vec![reason("busy"); 1_000], 2).is_possible(2));
        assert!(!of(vec![reason(&"x".repeat(5_000))], 2).is_possible(2));
        assert!(!of(vec![reason("two\nlines")], 2).is_possible(2));
        assert!(!of(Vec::new(), 3).is_possible(2));
        let long = "x".repeat(5_000);
        assert!(AgentEnd::cut_short(&long).is_possible(2));
        assert!(!AgentEnd { cut_short: Some(long), ..AgentEnd::default() }.is_possible(2));
    }
}
