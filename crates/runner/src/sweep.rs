//! A sweep: every variant of a scenario, as a run or as a search for its capacity, and which is best.

use crate::answer::Answer;
use crate::capacity::{CapacitySearch, SearchSettings, SearchedVariant};
use crate::generators::Generators;
use crate::observer::AnswerSoFar;
use crate::prepare;
use crate::repeated::{Repeated, kept_run};
use crate::run_directory::name_of;
use crate::session::Session;
use crate::stepped::SteppedRun;
use crate::{ErrorKind, RunError};
use std::path::Path;
use std::time::Instant;
use weir_answers::capacity::CapacitySummary;
use weir_answers::series::Ending;
use weir_answers::sweep::{LAYOUT, Rank, SweepFacts, SweepSummary, budget_of_next, rival_of};
use weir_answers::table::{Table, TableRun};
use weir_engine::scenario::{Turn, Variation};
use weir_engine::summary::Summary;
use weir_setting::BY;

/// The figure that ranks runs without a watched process.
pub const USUAL_FIGURE: &str = "startup.p50";

/// What is swept.
#[derive(Clone, Copy, Debug)]
pub struct Sweep<'a> {
    /// How each variant is searched, if it is.
    pub search: &'a SearchSettings,
    /// Where the scenario's file is.
    pub folder: &'a Path,
    /// The variants.
    pub variations: &'a [Variation],
    /// Whether each is searched, and not run.
    pub is_search: bool,
}

/// What was made so far, and where it is written.
struct SweepWriter<'a> {
    facts: SweepFacts,
    began: Instant,
    directory: &'a Path,
    table: Table,
}

impl Sweep<'_> {
    /// Checks every variant, and says what a load of it is a number of.
    ///
    /// # Errors
    /// One cannot be run, or searched.
    pub fn check(&self, generators: &Generators) -> Result<Option<&'static str>, RunError> {
        // Before the first server is started, so that each has the same limits.
        prepare::raise_descriptors();
        let mut noun = None;
        for variation in self.variations {
            if self.is_search {
                noun = Some(self.trials(variation, 1, generators)?.noun());
            } else {
                prepare::plan(&variation.scenario, ErrorKind::Scenario)?;
            }
        }
        Ok(noun)
    }

    fn trials<'b>(
        &'b self,
        variation: &'b Variation,
        repetition: u32,
        generators: &Generators,
    ) -> Result<CapacitySearch<'b>, RunError> {
        let of = SearchedVariant {
            variant: variation.variant.as_ref(),
            repetition,
            folder: self.folder,
            wrong: ErrorKind::Scenario,
        };
        CapacitySearch::new(variation.scenario.clone(), self.search, generators, of)
    }

    /// One after the other, in the sweep's own directory `whole`; says what they came to, and what went wrong beside it unless
    /// somebody interrupted.
    ///
    /// # Errors
    /// Nothing can be written.
    pub fn run(
        &self,
        facts: SweepFacts,
        turns: &[Turn],
        whole: &Path,
        session: &mut Session<'_>,
    ) -> Result<(SweepSummary, Option<RunError>), RunError> {
        let mut made =
            SweepWriter { facts, began: Instant::now(), directory: whole, table: Table::default() };
        // What cannot be written is better known before the first run.
        session.watcher.comes_to(AnswerSoFar::Sweep(&made.write(Ending::Running)?));
        let repeated = Repeated {
            noun: if self.is_search { "search" } else { "run" },
            turns,
            variants: made.facts.series.variants.clone(),
            repeat: made.facts.series.repeat,
            whole,
        };
        let (ending, trouble) = repeated.each(session, |turn, own, session| {
            let trouble = self.make(turn, own, session, &mut made);
            if trouble.is_none() {
                session.watcher.comes_to(AnswerSoFar::Sweep(&made.write(Ending::Running)?));
            }
            Ok(trouble)
        })?;
        let summary = made.write(ending)?;
        session.watcher.comes_to(AnswerSoFar::Sweep(&summary));
        let trouble = trouble.filter(|_| summary.series.ending != Ending::Interrupted);
        Ok((summary, trouble))
    }

    /// Makes one run, or one search, and notes it; says what went wrong.
    fn make(
        &self,
        turn: Turn,
        own: &Path,
        session: &mut Session<'_>,
        made: &mut SweepWriter<'_>,
    ) -> Option<RunError> {
        let variation = &self.variations[turn.variant];
        if self.is_search {
            let searches = made.facts.series.variants.len() as u32 * made.facts.series.repeat;
            let (each, used) = (self.search.budget, made.began.elapsed());
            let budget = budget_of_next(each, searches, made.table.runs.len() as u32, used);
            let rival = rival_of(made.variant(turn), &made.table.runs);
            let hunted = self
                .trials(variation, turn.repetition, &session.generators())
                .and_then(|trials| trials.hunt(budget, rival, own, session));
            return match hunted {
                Ok((summary, trouble)) => {
                    made.add_search(turn, own, &summary);
                    trouble.err()
                }
                Err(failure) => Some(failure),
            };
        }
        let run = SteppedRun {
            scenario: &variation.scenario,
            variant: variation.variant.as_ref(),
            repetition: turn.repetition,
            folder: self.folder,
            directory: own,
        };
        match run.measure(session) {
            Ok((summary, beside)) => {
                made.add_run(turn, own, &summary);
                beside
            }
            Err(failure) => Some(failure),
        }
    }
}

impl SweepWriter<'_> {
    fn variant(&self, turn: Turn) -> &str {
        &self.facts.series.variants[turn.variant].name
    }

    fn add_search(&mut self, turn: Turn, own: &Path, summary: &CapacitySummary) {
        let search = TableRun::of_search(self.variant(turn), turn.repetition, name_of(own), summary);
        self.table.add(search, Vec::new());
    }

    fn add_run(&mut self, turn: Turn, own: &Path, summary: &Summary) {
        let (run, figures) = kept_run(self.variant(turn), turn, own, summary);
        self.table.add(run, figures);
    }

    /// What they come to, written whole into the sweep's directory.
    fn write(&mut self, ending: Ending) -> Result<SweepSummary, RunError> {
        self.facts.series.run.duration_seconds = self.began.elapsed().as_secs_f64();
        let summary = SweepSummary::new(&self.facts, &self.table, ending);
        summary.keep(self.directory)?;
        Ok(summary)
    }
}

fn is_unknown_figure(summary: &SweepSummary) -> bool {
    matches!(&summary.ranked.by, Rank::Figure(name) if name != USUAL_FIGURE)
        && summary.series.variants.iter().all(|it| it.value.is_none())
}

impl Answer for SweepSummary {
    const LAYOUT: &'static str = LAYOUT;

    fn layout(&self) -> &str {
        &self.series.layout
    }

    /// What a sweep comes to: of runs what their series does, of searches whether anything was learnt.
    fn missed(&self) -> Option<ErrorKind> {
        let series = &self.series;
        match &series.ending {
            Ending::Interrupted | Ending::Running => Some(ErrorKind::Interrupted),
            Ending::Failed(failure) => Some(ErrorKind::of_code(failure.exit_code)),
            Ending::Completed if !self.ranked.is_capacity() => match series.missed() {
                // A figure that no run has ranks nothing, and a name that is not there is a slip of the pen.
                None if is_unknown_figure(self) => Some(ErrorKind::Usage),
                missed => missed,
            },
            Ending::Completed if series.table.runs.iter().all(|search| search.unanswered) => {
                Some(ErrorKind::TargetDied)
            }
            Ending::Completed if series.variants.iter().all(|it| it.counted == 0) => Some(ErrorKind::Invalid),
            Ending::Completed => None,
        }
    }

    fn answer(&self) -> Option<String> {
        Some(weir_report::sweep_line(self))
    }

    /// Says in one line why a sweep did not pass.
    fn shortfall(&self) -> Option<String> {
        let series = &self.series;
        if let Ending::Failed(failure) = &series.ending {
            return Some(weir_report::quote(&failure.words, 1_000));
        }
        if is_unknown_figure(self) {
            let Rank::Figure(name) = &self.ranked.by else { return None };
            return Some(format!(
                "{}: no run has that figure; `weir figures` lists them",
                BY.to(weir_report::quote(name, 60))
            ));
        }
        if !self.ranked.is_capacity() {
            return series.shortfall();
        }
        let searches = &series.table.runs;
        let line = if matches!(series.ending, Ending::Interrupted | Ending::Running) {
            // The one that was interrupted is the last.
            let is_cut = !searches.is_empty() && series.ending == Ending::Interrupted;
            let whole = searches.len() - usize::from(is_cut);
            let wanted = series.variants.len() as u64 * u64::from(series.repeat);
            let of = if wanted == 1 { "search" } else { "searches" };
            format!("interrupted after {whole} of {wanted} {of}")
        } else if searches.iter().all(|search| search.unanswered) {
            "the target answered in no search; start the server, or correct the scenario's addresses"
                .to_owned()
        } else {
            "no search told anything: see the reasons in the report".to_owned()
        };
        Some(line)
    }
}
