//! Runs of two sides or more, read from their directories and compared.

use crate::answer::{Answer, check_summary};
use crate::recompute::{self, RecomputedRun};
use crate::{ErrorKind, RunError};
use std::path::{Path, PathBuf};
use weir_answers::capacity::CapacitySummary;
use weir_answers::compare::{ComparedRun, Comparison, ComparisonError, Options, SeriesRef, Side};
use weir_answers::series::SeriesSummary;
use weir_answers::sweep::SweepSummary;
use weir_answers::table::TableRun;
use weir_engine::scenario::Order;
use weir_report::quote;

/// What a line of an error is cut to.
const LINE: usize = 400;

/// Runs of a side, at most: each is held whole in memory.
const MOST_RUNS: usize = 1_000;

/// What has changed between sides.
///
/// # Errors
/// They cannot be compared.
pub fn of_sides(sides: &[Side], options: &Options) -> Result<Comparison, RunError> {
    Comparison::new(sides, options).map_err(|error| {
        let kind = match &error {
            ComparisonError::Unlike(_) | ComparisonError::NoRuns { .. } => ErrorKind::Invalid,
            ComparisonError::OneSide(_) | ComparisonError::NoFigure { .. } | ComparisonError::Unit { .. } => {
                ErrorKind::Usage
            }
        };
        // Values of a run directory may come from others: control characters are shown, not sent to the terminal.
        let lines: Vec<_> = error.to_string().lines().map(|line| quote(line, LINE)).collect();
        RunError::new(kind, lines.join("\n"))
    })
}

/// The sides that places name: runs, folders of runs, series, variants of one (`DIR:VARIANT`), or each variant of the only series.
///
/// # Errors
/// One cannot be read, or has nothing to compare.
pub fn sides(places: &[String]) -> Result<Vec<Side>, RunError> {
    if let [only] = places
        && let Some(summary) = SeriesSummary::read(Path::new(only))
    {
        let names: Vec<_> = summary.variants.iter().map(|it| it.name.clone()).collect();
        if names.len() < 2 && !summary.table.runs.iter().any(TableRun::is_counted) {
            // That a second directory is missing is not what is wrong with it.
            let why = summary.shortfall().map_or_else(String::new, |why| format!(": {why}"));
            return Err(RunError::new(
                ErrorKind::Invalid,
                format!("{only} has no run that could be compared{why}"),
            ));
        }
        if names.len() < 2 {
            let line = format!("{only} has one variant, '{}'; give a second directory", names.join(", "));
            return Err(RunError::new(ErrorKind::Usage, line));
        }
        return names.iter().map(|name| of_series(Path::new(only), &summary, name, name)).collect();
    }
    places.iter().map(|side| one(side)).collect()
}

/// Several directories as one side.
///
/// # Errors
/// One cannot be read.
pub fn joined(places: &[String]) -> Result<Side, RunError> {
    if let [only] = places {
        return one(only);
    }
    let mut runs = Vec::new();
    let mut left_out = Vec::new();
    for place in places {
        let side = one(place)?;
        runs.extend(side.runs);
        left_out.extend(side.left_out);
    }
    // Repetitions of several series are no pairs.
    runs.iter_mut().for_each(|run| run.repetition = None);
    let (first, last) = (&places[0], &places[places.len() - 1]);
    Ok(Side { name: format!("{first} … {last}"), series: None, runs, left_out })
}

/// A run, a folder of runs, a series, or a variant of one: `DIR:VARIANT`.
fn one(place: &str) -> Result<Side, RunError> {
    let path = Path::new(place);
    if !path.exists()
        && let Some((directory, variant)) = place.rsplit_once(':')
        && let Some(summary) = series_of(Path::new(directory))
    {
        return of_series(Path::new(directory), &summary, variant, place);
    }
    if let Some(summary) = series_of(path) {
        let [only] = &summary.variants[..] else {
            let names: Vec<_> = summary.variants.iter().map(|it| it.name.as_str()).collect();
            let line = format!(
                "{place} is a series of {}; say which one: {place}:{}",
                names.join(", "),
                names.first().unwrap_or(&"VARIANT")
            );
            return Err(RunError::new(ErrorKind::Usage, line));
        };
        return of_series(path, &summary, &only.name, place);
    }
    if CapacitySummary::read(path).is_some() {
        let line = format!("{place} is a search for a capacity, which is no run; its trials are: {place}/…");
        return Err(RunError::new(ErrorKind::Usage, line));
    }
    if SweepSummary::read(path).is_some() {
        let line = format!(
            "{place} is a sweep of searches, which are no runs; `weir report {place}` ranks its variants"
        );
        return Err(RunError::new(ErrorKind::Usage, line));
    }
    check_summary(path)?;
    let runs = match inside(path) {
        runs if runs.is_empty() => vec![read(path, None)?],
        runs => runs.iter().map(|run| read(run, None)).collect::<Result<_, _>>()?,
    };
    Ok(Side { name: place.to_owned(), series: None, runs, left_out: Vec::new() })
}

/// The series of a directory, which a sweep of runs is too.
fn series_of(directory: &Path) -> Option<SeriesSummary> {
    SeriesSummary::read(directory).or_else(|| {
        let sweep = SweepSummary::read(directory)?;
        (!sweep.ranked.is_capacity()).then_some(sweep.series)
    })
}

/// The runs in a folder that is not a run itself, by name.
fn inside(folder: &Path) -> Vec<PathBuf> {
    if is_run(folder) {
        return Vec::new();
    }
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let mut runs: Vec<_> = entries.filter(|path| is_run(path)).take(MOST_RUNS).collect();
    runs.sort();
    runs
}

fn is_run(path: &Path) -> bool {
    path.join("run.json").exists()
}

/// The runs of a variant that are counted.
fn of_series(directory: &Path, summary: &SeriesSummary, variant: &str, name: &str) -> Result<Side, RunError> {
    let whole = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    if !summary.variants.iter().any(|it| it.name == variant) {
        let names: Vec<_> = summary.variants.iter().map(|it| it.name.as_str()).collect();
        let line =
            format!("{} has no variant '{variant}'; it has: {}", directory.display(), names.join(", "));
        return Err(RunError::new(ErrorKind::Usage, line));
    }
    let made = summary.table.runs.iter().filter(|run| run.variant == variant);
    let (mut runs, mut left_out) = (Vec::new(), Vec::new());
    for run in made {
        let place = directory.join(&run.directory);
        if run.is_counted() {
            runs.push(read(&place, Some(run.repetition))?);
        } else {
            left_out.push(format!("{} is left out: the series does not count it", place.display()));
        }
    }
    if runs.is_empty() && left_out.is_empty() {
        left_out.extend(summary.shortfall());
    }
    let is_interleaved = summary.order == Order::Interleaved;
    let series = Some(SeriesRef { directory: whole.display().to_string(), is_interleaved });
    Ok(Side { name: name.to_owned(), series, runs, left_out })
}

fn read(directory: &Path, repetition: Option<u32>) -> Result<ComparedRun, RunError> {
    let RecomputedRun { head, summary, .. } = recompute::of_run(directory)?;
    Ok(ComparedRun { name: directory.display().to_string(), repetition, head, summary })
}
