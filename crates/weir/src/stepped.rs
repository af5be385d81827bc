//! One run of a scenario with what is done before and after it: servers that are started and ended, files, waits.

use crate::args::RunOptions;
use crate::live_page::LivePage;
use crate::print;
use crate::run::{Measured, run_in};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_engine::run::Prepared;
use weir_engine::scenario::Scenario;
use weir_engine::scenario::Variant;
use weir_engine::summary::{Outcome, Summary};
use weir_runner::prepare::Generators;
use weir_runner::steps::{SharedSteps, StepError, StepRunner};
use weir_runner::{ErrorKind, RunError};
use weir_runner::{background, prepare};

/// One run of a scenario, with its steps.
pub(crate) struct SteppedRun<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) variant: Option<&'a Variant>,
    pub(crate) repetition: u32,
    /// Where the scenario's file is.
    pub(crate) folder: &'a Path,
    /// The run's own.
    pub(crate) directory: &'a Path,
}

impl SteppedRun<'_> {
    /// The same of a run that is measured as any other, with a live view and the page.
    ///
    /// # Errors
    /// As of [`Self::run`].
    pub(crate) fn measure(
        &self,
        options: &RunOptions,
        page: &LivePage,
        interrupt: &Arc<AtomicBool>,
    ) -> Result<(Summary, Option<RunError>), RunError> {
        let generators = options.agents.generators();
        self.run(&generators, interrupt, |it| run_in(it, options, page, self.directory, interrupt))
    }

    /// What it came to, and what went wrong beside it. `start` is given what is to be run in [`Self::directory`], once all
    /// that stands before it is done.
    ///
    /// # Errors
    /// There was no run.
    pub(crate) fn run(
        &self,
        generators: &Generators,
        interrupt: &Arc<AtomicBool>,
        start: impl FnOnce(Prepared) -> Result<Measured, RunError>,
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
        let taken = steps.lock().take(&self.scenario.before, self.variant, interrupt);
        let ran = taken.map_err(failed("before")).and_then(|()| {
            let _far_end = background::far_end(&mut scenario)?;
            let prepared = prepare::prepare(scenario, ErrorKind::Scenario, generators)?;
            start(Prepared { servers: Some(Box::new(steps.clone())), ..prepared })
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
            trouble = trouble.or(print::write_artefacts(&summary, self.directory).err());
        }
        Ok((summary, trouble.or(after.map_err(failed("after")).err())))
    }
}
