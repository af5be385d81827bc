//! A run that has ended, summed up again from the lines of its directory.

use crate::answer::fault;
use crate::{ErrorKind, RunError};
use std::path::{Path, PathBuf};
use weir_engine::record::merge;
use weir_engine::record::{self, RunHead};
use weir_engine::summary::{Outcome, Summary};
use weir_files::MOST_DOCUMENT;

/// A run, summed up again from its lines.
pub struct RecomputedRun {
    /// What was known before its first second.
    pub head: RunHead,
    /// What they come to.
    pub summary: Summary,
}

/// Reads a run's directory.
///
/// # Errors
/// It is no run's, or cannot be read.
pub fn of_run(directory: &Path) -> Result<RecomputedRun, RunError> {
    let (head, aggregator) =
        record::read(directory, weir_engine::ingest::schema_of).map_err(RunError::with(ErrorKind::Usage))?;
    let mut run = head.run.clone();
    // How it ended is in the summary that it wrote, if it came so far.
    let path = directory.join("summary.json");
    let read =
        weir_files::read(&path, MOST_DOCUMENT).ok().map(|bytes| serde_json::from_slice::<Summary>(&bytes));
    let damage = read.as_ref().and_then(|it| it.as_ref().err()).map(|error| {
        let (path, line, fault) = (path.display(), error.line(), fault(error));
        format!("{path}:{line}: {fault}: {error}; the figures are out of the run's lines, and how it ended is not known")
    });
    let written: Option<Summary> = read.and_then(Result::ok);
    let outcome = written.as_ref().map_or(Outcome::Interrupted, |summary| summary.outcome.clone());
    run.duration_seconds = written
        .as_ref()
        .map_or_else(|| aggregator.seen().map_or(0.0, f64::from), |summary| summary.run.duration_seconds);
    let mut summary = aggregator.finish(run, outcome, &head.scenario);
    // What a run had to say of itself, such as a thread of it that failed, is in none of its lines.
    let of_its_own = written.into_iter().flat_map(|summary| summary.warnings);
    for warning in of_its_own {
        if !summary.warnings.contains(&warning) {
            summary.warnings.push(warning);
        }
    }
    summary.warnings.extend(damage);
    Ok(RecomputedRun { head, summary })
}

/// What the parts of a run come to that agents have kept.
///
/// # Errors
/// One cannot be read, or they are of different runs.
pub fn of_parts(directories: &[PathBuf]) -> Result<Summary, RunError> {
    let (head, aggregator) = merge::read_parts(directories, weir_engine::ingest::schema_of)
        .map_err(RunError::with(ErrorKind::Usage))?;
    let mut run = head.run.clone();
    run.duration_seconds = aggregator.latest().map_or(0.0, |(second, _)| f64::from(second) + 1.0);
    let is_stopped = aggregator.is_stopped_at(u32::MAX);
    let outcome = if is_stopped { Outcome::Interrupted } else { Outcome::Completed };
    let mut summary = aggregator.finish(run, outcome, &head.scenario);
    if let Some(of) =
        directories.first().and_then(|first| part_of(first)).filter(|of| *of > directories.len())
    {
        summary.warnings.push(format!("these are {} of the {of} parts of the run", directories.len()));
    }
    Ok(summary)
}

/// Of how many parts a directory has one.
fn part_of(directory: &Path) -> Option<usize> {
    let (head, _) = record::read(directory, weir_engine::ingest::schema_of).ok()?;
    head.segment.map(|segment| usize::from(segment.of))
}
