//! What an agent reports of itself when its part of a run is over.

use crate::summary::{ProcessLoad, Reason, Summary};
use serde::{Deserialize, Serialize};

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
}
