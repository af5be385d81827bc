//! One run of a scenario with what is done before and after it: servers that are started and ended, files, waits.

use crate::run::MeasuredRun;
use crate::session::Session;
use crate::steps::{SharedSteps, StepError, StepRunner};
use crate::{ErrorKind, RunError, artefacts, background, prepare};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use weir_engine::run::Prepared;
use weir_engine::scenario::Scenario;
use weir_engine::scenario::Variant;
use weir_engine::summary::{Outcome, Summary};

/// One run of a scenario, with its steps.
pub struct SteppedRun<'a> {
    /// What is run.
    pub scenario: &'a Scenario,
    /// The variant that it is, if it is one of several.
    pub variant: Option<&'a Variant>,
    /// Which of its runs it is, from 1 on.
    pub repetition: u32,
    /// Where the scenario's file is.
    pub folder: &'a Path,
    /// The run's own.
    pub directory: &'a Path,
}

impl SteppedRun<'_> {
    /// What it came to, and what went wrong beside it.
    ///
    /// # Errors
    /// There was no run.
    pub fn measure(&self, session: &mut Session<'_>) -> Result<(Summary, Option<RunError>), RunError> {
        self.run(session, |prepared, session| session.run(prepared, self.directory))
    }

    /// The same, measured in a way of its own. `start` is given what is to be run in [`Self::directory`], once all
    /// that stands before it is done.
    ///
    /// # Errors
    /// There was no run.
    pub(crate) fn run<'s>(
        &self,
        session: &mut Session<'s>,
        start: impl FnOnce(Prepared, &mut Session<'s>) -> Result<MeasuredRun, RunError>,
    ) -> Result<(Summary, Option<RunError>), RunError> {
        let failed = |when: &str| {
            let when = when.to_owned();
            move |error: StepError| match error {
                StepError::Interrupted => {
                    RunError::new(ErrorKind::Interrupted, format!("{when}: interrupted"))
                }
                StepError::Address(_) | StepError::System { .. } => {
                    RunError::new(ErrorKind::Scenario, format!("{when}: {error}"))
                }
                error => RunError::new(ErrorKind::TargetDied, format!("{when}: {error}")),
            }
        };
        let steps =
            SharedSteps::new(StepRunner::new(self.folder, self.directory, self.variant, self.repetition));
        let mut scenario = self.scenario.clone();
        // What the seed decides is alike within a pair, and varies from pair to pair.
        scenario.seed = scenario.seed.wrapping_add(u64::from(self.repetition - 1));
        if let Some(variant) = self.variant {
            scenario.tags.insert("variant".to_owned(), variant.name.clone());
            scenario.tags.insert("repetition".to_owned(), self.repetition.to_string());
        }
        // The run locks them itself.
        let taken = steps.lock().take(&self.scenario.before, self.variant, session.interrupt);
        let ran = taken.map_err(failed("before")).and_then(|()| {
            let _far_end = background::far_end(&mut scenario)?;
            let prepared = prepare::prepare(scenario, ErrorKind::Scenario, &session.generators())?;
            start(Prepared { servers: Some(Box::new(steps.clone())), ..prepared }, session)
        });
        let mut steps = steps.lock();
        let servers = steps.check();
        // What was put up before a run is put away, however the run ended.
        let after = steps.take(&self.scenario.after, self.variant, &AtomicBool::new(false));
        let (mut summary, written) = ran?;
        let mut trouble = written.err();
        if let Err(died) = servers
            && matches!(summary.outcome, Outcome::Completed | Outcome::NobodyLeft)
        {
            summary.outcome = Outcome::TargetDied;
            summary.warnings.push(died.to_string());
            trouble = trouble.or(artefacts::write_artefacts(&summary, self.directory).err());
        }
        Ok((summary, trouble.or(after.map_err(failed("after")).err())))
    }
}
