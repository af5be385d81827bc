//! A series: the runs of a scenario's variants, one after the other, each with its steps, its directory and its artefacts.

use crate::answer::Answer;
use crate::observer::AnswerSoFar;
use crate::repeated::{Repeated, kept_run};
use crate::session::Session;
use crate::stepped::SteppedRun;
use crate::{ErrorKind, RunError, prepare, run_directory};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use weir_answers::series::{Ending, LAYOUT, SeriesFacts, SeriesSummary};
use weir_answers::table::{Table, TableRun};
use weir_engine::scenario::lines::Part;
use weir_engine::scenario::{Scenario, ScenarioError, Turn, Variant, Variation, turns};
use weir_engine::summary::{Outcome, Summary, VerdictState};
use weir_metrics::several;

/// Runs of a variant, at most.
const MOST_REPETITIONS: u32 = 10_000;

/// What the only variant of a scenario without variants is called.
const ONLY: &str = "run";

/// Reads a scenario's file.
///
/// # Errors
/// 2 where it cannot be read, and 104 where it is no scenario.
pub fn variations_of(file: &Path) -> Result<Vec<Variation>, RunError> {
    Variation::read(file).map_err(|error| match error {
        ScenarioError::Read { .. } => RunError::new(ErrorKind::Usage, error.to_string()),
        _ => RunError::new(ErrorKind::Scenario, error.to_string()),
    })
}

/// How many runs each variant has.
///
/// # Errors
/// 104.
pub fn repetitions(scenario: &Scenario) -> Result<u32, RunError> {
    let repeat = scenario.repeat.unwrap_or(1);
    if (1..=MOST_REPETITIONS).contains(&repeat) {
        return Ok(repeat);
    }
    let line = format!("repeat: {repeat} is not a number of repetitions; write 1 to {MOST_REPETITIONS}");
    Err(RunError::new(ErrorKind::Scenario, line).of(Part::Repeat))
}

/// The variants under their names, which a scenario without any has as well.
pub fn variants(variations: &[Variation]) -> Vec<Variant> {
    let only = || Variant { name: ONLY.to_owned(), ..Variant::default() };
    variations.iter().map(|it| it.variant.clone().unwrap_or_else(only)).collect()
}

/// Runs of the variants of a scenario.
#[derive(Clone, Copy, Debug)]
pub struct Series<'a> {
    /// The variants.
    pub variations: &'a [Variation],
    /// Runs of each.
    pub repeat: u32,
    /// Where the scenario's file is.
    pub folder: &'a Path,
    /// The series' own directory.
    pub directory: &'a Path,
    /// When it begins: seconds of Unix time.
    pub started_at_seconds: f64,
}

impl Series<'_> {
    /// Makes the runs, and says what they came to, and what went wrong beside it unless somebody interrupted.
    ///
    /// # Errors
    /// There is no plan, or nothing can be written.
    pub fn run(&self, session: &mut Session<'_>) -> Result<(SeriesSummary, Option<RunError>), RunError> {
        let first = &self.variations[0].scenario;
        let facts = SeriesFacts {
            run: run_directory::facts(first, self.directory, self.started_at_seconds),
            variants: variants(self.variations),
            repeat: self.repeat,
            order: first.order.unwrap_or_default(),
        };
        let mut made =
            SeriesWriter { facts, began: Instant::now(), directory: self.directory, table: Table::default() };
        // What cannot be written is better known before the first run.
        let (summary, written) = made.write(Ending::Running);
        written?;
        session.watcher.comes_to(AnswerSoFar::Series(&summary));
        // Before the first server is started, so that each has the same limits.
        prepare::raise_descriptors();
        let order = turns(self.variations.len(), self.repeat, first.order.unwrap_or_default(), first.seed);
        let repeated = Repeated {
            noun: "run",
            turns: &order,
            variants: made.facts.variants.clone(),
            repeat: self.repeat,
            whole: self.directory,
        };
        let (ending, trouble) = repeated.each(session, |turn, own, session| {
            let variation = &self.variations[turn.variant];
            let run = SteppedRun {
                scenario: &variation.scenario,
                variant: variation.variant.as_ref(),
                repetition: turn.repetition,
                folder: self.folder,
                directory: own,
            };
            let (summary, trouble) = match run.measure(session) {
                Ok(measured) => measured,
                Err(failure) => return Ok(Some(failure)),
            };
            made.add(turn, own, &summary);
            if trouble.is_none() {
                let (summary, written) = made.write(Ending::Running);
                session.watcher.comes_to(AnswerSoFar::Series(&summary));
                written?;
            }
            Ok(trouble)
        })?;
        let (summary, written) = made.write(ending);
        session.watcher.comes_to(AnswerSoFar::Series(&summary));
        let trouble = trouble.filter(|_| !session.interrupt.load(Relaxed));
        Ok((summary, written.err().or(trouble)))
    }
}

/// The runs that were made so far, and where their series is written.
struct SeriesWriter<'a> {
    facts: SeriesFacts,
    began: Instant,
    directory: &'a Path,
    table: Table,
}

impl SeriesWriter<'_> {
    fn add(&mut self, turn: Turn, own: &Path, summary: &Summary) {
        let variant = &self.facts.variants[turn.variant].name;
        let (run, figures) = kept_run(variant, turn, own, summary);
        self.table.add(run, figures);
    }

    /// What they come to, written whole into the series' directory.
    fn write(&mut self, ending: Ending) -> (SeriesSummary, Result<(), RunError>) {
        self.facts.run.duration_seconds = self.began.elapsed().as_secs_f64();
        let summary = SeriesSummary::new(&self.facts, &self.table, ending);
        let written = summary.keep(self.directory);
        (summary, written)
    }
}

fn target_died(run: &TableRun) -> bool {
    run.outcome == Outcome::TargetDied || run.unanswered
}

fn was_aborted(run: &TableRun) -> bool {
    matches!(run.outcome, Outcome::Aborted(_))
}

impl Answer for SeriesSummary {
    const LAYOUT: &'static str = LAYOUT;

    fn layout(&self) -> &str {
        &self.layout
    }

    /// What a series comes to. How it ended says more than what it measured, and whether it can be believed more than whether
    /// it passed.
    fn missed(&self) -> Option<ErrorKind> {
        let any = |is: fn(&TableRun) -> bool| self.table.runs.iter().any(is);
        match &self.ending {
            Ending::Interrupted | Ending::Running => Some(ErrorKind::Interrupted),
            Ending::Failed(failure) => Some(ErrorKind::of_code(failure.exit_code)),
            Ending::Completed if any(target_died) => Some(ErrorKind::TargetDied),
            Ending::Completed if any(was_aborted) => Some(ErrorKind::Aborted),
            Ending::Completed if self.verdict == VerdictState::Invalid => Some(ErrorKind::Invalid),
            Ending::Completed if self.verdict == VerdictState::NothingMeasured => Some(ErrorKind::Thresholds),
            Ending::Completed if self.failed_thresholds() > 0 => Some(ErrorKind::Thresholds),
            Ending::Completed => None,
        }
    }

    fn answer(&self) -> Option<String> {
        weir_report::series_line(self)
    }

    /// Says in one line why a series did not pass: how many of its runs are not in the figures and why the first of them is not,
    /// or else how many thresholds failed. The reason is that of [`Answer::missed`]'s code.
    fn shortfall(&self) -> Option<String> {
        if let Ending::Failed(failure) = &self.ending {
            return Some(weir_report::quote(&failure.words, 1_000));
        }
        let (made, wanted) = (self.table.runs.len(), self.variants.len() as u64 * u64::from(self.repeat));
        if matches!(self.ending, Ending::Interrupted | Ending::Running) {
            let whole = self.table.runs.iter().filter(|run| run.outcome != Outcome::Interrupted).count();
            return Some(format!("interrupted after {whole} of {}", several(wanted, "run")));
        }
        let left_out: Vec<_> = self.table.runs.iter().filter(|run| !run.is_counted()).collect();
        let first = |is: fn(&TableRun) -> bool| left_out.iter().find(|run| is(run));
        let decisive = first(target_died)
            .or_else(|| first(was_aborted))
            .or_else(|| left_out.first().filter(|_| self.verdict >= VerdictState::NothingMeasured));
        if let Some(first) = decisive {
            let why = weir_report::quote(&first.why_not_counted(), 300);
            return Some(format!(
                "{} of {} {} not in the figures; {}: {why}",
                left_out.len(),
                several(made as u64, "run"),
                if left_out.len() == 1 { "is" } else { "are" },
                first.directory
            ));
        }
        let thresholds = || {
            self.variants.iter().flat_map(|variant| variant.thresholds.iter().map(move |it| (variant, it)))
        };
        let failed = thresholds().filter(|(_, it)| it.passed < it.runs).count();
        let (variant, first) = thresholds().find(|(_, it)| it.passed < it.runs)?;
        let (expression, missed) = (weir_report::quote(&first.expression, 300), first.runs - first.passed);
        let others =
            if failed > 1 { format!(", and {}", several(failed as u64 - 1, "other")) } else { String::new() };
        let of = if self.variants.len() > 1 { format!(" of {}", variant.name) } else { String::new() };
        Some(format!("{expression} failed in {missed} of {}{of}{others}", several(first.runs, "run")))
    }
}
