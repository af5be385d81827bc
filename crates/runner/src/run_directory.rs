//! The directory of a run or of several, and what is known before they begin.

use crate::error::{ErrorKind, RunError};
use std::path::{Path, PathBuf};
use weir_engine::record;
use weir_engine::record::kernel_clock::KernelClock;
use weir_engine::scenario::Scenario;
use weir_engine::summary::RunFacts;
use weir_observe::Environment;

/// Folder of run directories by default.
const PARENT: &str = "weir-runs";

/// What is known of a run, or of several, of a scenario before it begins.
pub fn facts(scenario: &Scenario, directory: &Path, started_at_seconds: f64) -> RunFacts {
    RunFacts {
        name: scenario.name.clone(),
        id: name_of(directory),
        started_at_seconds,
        weir_version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: scenario.seed,
        tags: scenario.tags.clone(),
        environment: Environment::read(),
        base_seconds: scenario.base().as_secs_f64(),
        clock: KernelClock::read(),
        ..RunFacts::default()
    }
}

/// The name of a directory, without those above it.
pub fn name_of(directory: &Path) -> String {
    directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The run's own directory: the one asked for, or a new one.
pub fn directory(asked: Option<&Path>, name: &str, at: u64) -> Result<PathBuf, RunError> {
    let Some(path) = asked else {
        return record::make_directory(Path::new(PARENT), name, at).map_err(RunError::with(ErrorKind::Usage));
    };
    let refuse = |cause: &str| RunError::new(ErrorKind::Usage, format!("{}: {cause}", path.display()));
    record::make_private(path).map_err(RunError::with(ErrorKind::Usage))?;
    let mut entries = std::fs::read_dir(path).map_err(|error| refuse(&error.to_string()))?;
    if entries.next().is_some() {
        return Err(refuse("is not empty; a run never writes over another: choose a new directory"));
    }
    Ok(path.to_owned())
}
