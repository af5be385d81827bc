//! One run, in a directory of its own: agents are called, somebody looks on, the artefacts are written.

use crate::agents;
use crate::observer::Observer;
use crate::run_directory::name_of;
use crate::{ErrorKind, RunError, artefacts};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use weir_engine::run::{self, Prepared, RunFault};
use weir_engine::summary::Summary;

pub use crate::session::Session;

/// What a run came to, and whether its artefacts could be written.
pub type MeasuredRun = (Summary, Result<(), RunError>);

/// How long a run will be shown to take.
pub fn length(prepared: &Prepared) -> Duration {
    prepared.plan.about.unwrap_or(prepared.plan.length) + prepared.scenario.drain()
}

impl Session<'_> {
    /// Runs in a directory of its own, and writes the artefacts there.
    ///
    /// # Errors
    /// The run could not be made.
    pub fn run(&mut self, prepared: Prepared, directory: &Path) -> Result<MeasuredRun, RunError> {
        let prepared = agents::gather(prepared, self).inspect_err(|_| {
            // There was no run. What has something in it stays.
            let _ = std::fs::remove_dir(directory);
        })?;
        for line in prepared.scenario.too_short(&prepared.plan) {
            self.watcher.line(&format!("weir: note: {line}"));
        }
        let length = length(&prepared);
        run_here(prepared, length, directory, self.interrupt, self.watcher)
    }
}

/// Runs what has its agents, or needs none.
///
/// # Errors
/// The run could not be made.
pub(crate) fn run_here(
    mut prepared: Prepared,
    length: Duration,
    directory: &Path,
    interrupt: &Arc<AtomicBool>,
    watcher: &mut dyn Observer,
) -> Result<MeasuredRun, RunError> {
    prepared.facts.id = name_of(directory);
    watcher.begins(&prepared, length);
    let result = run::run(prepared, directory, interrupt, watcher);
    watcher.ended(result.as_ref().ok());
    let summary = result.map_err(|fault| {
        let kind = match &fault {
            RunFault::Consumer(trouble) if trouble.is_of_scenario => ErrorKind::Scenario,
            RunFault::Consumer(_) => ErrorKind::TargetDied,
            RunFault::Interrupted => ErrorKind::Interrupted,
            RunFault::Record(_) | RunFault::Thread { .. } => ErrorKind::Internal,
        };
        RunError::new(kind, fault.to_string())
    })?;
    let written = artefacts::write_artefacts(&summary, directory);
    Ok((summary, written))
}
