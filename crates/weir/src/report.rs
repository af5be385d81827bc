//! `weir report`: a run directory read back, summed up again, printed.

use crate::answer::{self, check_summary, fault};
use crate::args::Report;
use crate::exit::Exit;
use crate::print::{check_print, print};
use crate::run::explained;
use std::path::Path;
use weir_engine::capacity::CapacitySummary;
use weir_engine::merge;
use weir_engine::record::{self, RunHead};
use weir_engine::series::SeriesSummary;
use weir_engine::summary::{Outcome, Summary};
use weir_engine::sweep::SweepSummary;
use weir_files::MOST_DOCUMENT;
use weir_runner::answer::Answer;
use weir_runner::artefacts::write_artefacts;
use weir_runner::{ErrorKind, RunError};

/// Prints the report of a finished or crashed run.
pub(crate) fn report(args: &Report) -> Result<Exit, RunError> {
    check_print(&args.print)?;
    let Some(directory) = &args.directory else { return merged(args) };
    let answer = shown::<SeriesSummary>(directory, args)
        .or_else(|| shown::<CapacitySummary>(directory, args))
        .or_else(|| shown::<SweepSummary>(directory, args));
    if let Some(answer) = answer {
        return answer;
    }
    check_summary(directory)?;
    let Recomputed { summary, .. } = recompute(directory)?;
    if args.write {
        write_artefacts(&summary, directory)?;
    }
    print(&summary, &args.print, directory)?;
    Ok(explained(&summary))
}

/// The answer of several runs that is in the directory, if it is of this kind.
fn shown<A: Answer>(directory: &Path, args: &Report) -> Option<Result<Exit, RunError>> {
    let found = A::read(directory)?;
    let kept = if args.write { found.keep(directory) } else { Ok(()) };
    let shown = kept.and_then(|()| answer::show(&found, &args.print, directory));
    Some(shown.map(|()| answer::explained(&found)))
}

/// Prints the report of the parts that agents have kept.
fn merged(args: &Report) -> Result<Exit, RunError> {
    let (head, aggregator) = merge::read_parts(&args.merge, weir_engine::ingest::schema_of)
        .map_err(RunError::with(ErrorKind::Usage))?;
    let mut run = head.run.clone();
    run.duration_seconds = aggregator.latest().map_or(0.0, |(second, _)| f64::from(second) + 1.0);
    let is_stopped = aggregator.is_stopped_at(u32::MAX);
    let outcome = if is_stopped { Outcome::Interrupted } else { Outcome::Completed };
    let mut summary = aggregator.finish(run, outcome, &head.scenario);
    if let Some(of) = args.merge.first().and_then(|first| part_of(first)).filter(|of| *of > args.merge.len())
    {
        summary.warnings.push(format!("these are {} of the {of} parts of the run", args.merge.len()));
    }
    print(&summary, &args.print, &args.merge[0])?;
    Ok(explained(&summary))
}

/// Of how many parts a directory has one.
fn part_of(directory: &Path) -> Option<usize> {
    let (head, _) = record::read(directory, weir_engine::ingest::schema_of).ok()?;
    head.segment.map(|segment| usize::from(segment.of))
}

/// A run, summed up again from its lines.
pub(crate) struct Recomputed {
    /// What was known before its first second.
    pub(crate) head: RunHead,
    /// What they come to.
    pub(crate) summary: Summary,
}

/// Reads a run's directory.
pub(crate) fn recompute(directory: &Path) -> Result<Recomputed, RunError> {
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
    Ok(Recomputed { head, summary })
}
