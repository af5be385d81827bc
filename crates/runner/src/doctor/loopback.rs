//! Viewers of weir's own origin over loopback: one publisher, steps of viewers, and what each step came to.

use super::interrupted;
use crate::prepare::{Generators, prepare};
use crate::{ErrorKind, RunError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use weir_engine::run::{Unseen, run};
use weir_engine::scenario::{OneOrMany, Scenario, StageSpec, WorkloadSpec};
use weir_engine::summary::{Role, StageSummary, Verdict, VerdictState};
use weir_protocols::Given;

/// Time after each step's ramp that is left out, and of the ramp.
const WARMUP: Duration = Duration::from_secs(1);

/// What is played, and by how many.
pub(super) struct LoopbackRun {
    /// Where one publisher sends the stream with what options, if it is not the origin's own.
    pub(super) publish: Option<(String, Given)>,
    /// Where viewers have it.
    pub(super) play: String,
    /// Options of the viewers.
    pub(super) viewers: Given,
    /// How long after the publisher they begin.
    pub(super) delay: Duration,
    /// How many there are, step by step.
    pub(super) steps: Vec<u32>,
    /// Time in which the viewers of a step come.
    pub(super) ramp: Duration,
    /// How long each step is held.
    pub(super) hold: Duration,
    /// How to watch the origin.
    pub(super) watch: String,
}

/// What the steps came to.
pub(super) struct StepResults {
    pub(super) steps: Vec<StageSummary>,
    pub(super) verdict: Verdict,
}

impl LoopbackRun {
    /// Runs it; nothing of it is kept.
    pub(super) fn measure(self, interrupt: &Arc<AtomicBool>) -> Result<StepResults, RunError> {
        let stage =
            |clients: u32| StageSpec { clients, hold: self.hold.into(), ramp: Some(self.ramp.into()) };
        let publisher = self.publish.map(|(url, options)| WorkloadSpec {
            publish: OneOrMany(vec![url]),
            options,
            ..WorkloadSpec::default()
        });
        let viewers = WorkloadSpec {
            play: OneOrMany(vec![self.play]),
            options: self.viewers,
            delay: Some(self.delay.into()),
            stages: self.steps.into_iter().map(stage).collect(),
            ..WorkloadSpec::default()
        };
        let scenario = Scenario {
            name: "doctor".to_owned(),
            workloads: publisher.into_iter().chain([viewers]).collect(),
            warmup: Some(WARMUP.into()),
            watch: vec![self.watch],
            // The origin's certificate is made for this one measurement.
            insecure: true,
            ..Scenario::default()
        };
        let prepared = prepare(scenario, ErrorKind::Internal, &Generators::Here)?;
        let directory = tempfile::tempdir().map_err(RunError::with(ErrorKind::Internal))?;
        let summary = run(prepared, directory.path(), interrupt, &mut Unseen)
            .map_err(RunError::with(ErrorKind::Internal))?;
        if interrupt.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        let verdict = summary.verdict;
        let viewers = summary.workloads.into_iter().find(|workload| workload.role == Role::Play);
        Ok(StepResults { steps: viewers.map(|workload| workload.stages).unwrap_or_default(), verdict })
    }
}

impl StepResults {
    /// Why a step says nothing of this machine, with what to do, if it does not. `enough` is the share of the stream that has to arrive.
    pub(super) fn fault(&self, step: &StageSummary, enough: f64) -> Option<String> {
        let worst = self.verdict.reasons.iter().find(|reason| reason.state == VerdictState::Invalid);
        if let Some(reason) = worst {
            return Some(format!("{}. Remedy: {}", reason.text, reason.remedy));
        }
        if step.window_seconds() <= 0.0 || self.verdict.state == VerdictState::NothingMeasured {
            return Some(
                "no viewer played while it was to be measured; run `weir demo` to see what they met"
                    .to_owned(),
            );
        }
        let expected = step.expected_bps.filter(|expected| step.actual_bps <= enough * expected)?;
        Some(format!(
            "{:.1} % of the stream arrived, and no limit of weir's was reached: the origin, or the cores that both share, were the limit",
            100.0 * step.actual_bps / expected
        ))
    }
}
