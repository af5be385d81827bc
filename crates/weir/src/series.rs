//! `weir run`: a scenario's file, its variants, and run after run, each with its steps, its directory and its artefacts.

use crate::answer::KeptAnswer;
use crate::args::Run;
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::live_page::{LivePage, Whole};
use crate::print::{check_answer, check_print};
use crate::repeated::{Repeated, kept_run};
use crate::stepped::SteppedRun;
use crate::{load, outline, print, run};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;
use weir_engine::lines::Part;
use weir_engine::scenario::{Scenario, ScenarioError, Variant};
use weir_engine::series::{
    Ending, LAYOUT, SeriesFacts, SeriesFigure, SeriesRun, SeriesSummary, Turn, Variation, turns,
};
use weir_engine::summary::{Outcome, Summary, VerdictState};
use weir_metrics::several;
use weir_runner::run_directory::directory;
use weir_runner::{ErrorKind, RunError};
use weir_runner::{background, prepare, run_directory, url_lists};
use weir_shard::clock;

/// Runs of a variant, at most.
const MOST_REPETITIONS: u32 = 10_000;

/// What the only variant of a scenario without variants is called.
const ONLY: &str = "run";

/// Runs a scenario file.
pub(crate) fn run(args: &Run) -> Result<Exit, RunError> {
    run_file(args).map_err(|failure| failure.in_file(&args.file))
}

fn run_file(args: &Run) -> Result<Exit, RunError> {
    let variations = variations_of(&args.file)?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let mut variations = variations
        .into_iter()
        .map(|it| Ok(Variation { scenario: as_asked(it.scenario, it.variant.as_ref(), args, folder)?, ..it }))
        .collect::<Result<Vec<_>, RunError>>()?;
    let repeat = repetitions(&variations[0].scenario)?;
    let is_searched = variations[0].scenario.find.is_some();
    if args.check {
        let how = "find: `weir sweep` searches each variant, and shows with --check what it would do";
        let how = if is_searched { how } else { "" };
        return outline::print(&args.file, how, &variations, repeat, &args.run.agents.generators());
    }
    if is_searched {
        let line = "find: is of `weir sweep`, which searches each variant; leave it out of a run";
        return Err(RunError::new(ErrorKind::Scenario, line));
    }
    let is_series = repeat > 1 || variations[0].variant.is_some();
    if is_series {
        return series(&variations, repeat, folder, args);
    }
    let mut scenario = variations.swap_remove(0).scenario;
    let _far_end = background::far_end(&mut scenario)?;
    if scenario.before.is_empty() && scenario.after.is_empty() {
        return run::start(scenario, ErrorKind::Scenario, &args.run);
    }
    check_print(&args.run.print)?;
    prepare::plan(&scenario, ErrorKind::Scenario)?;
    let started = clock::wall_nanos() as f64 * 1e-9;
    let place = directory(args.run.output.as_deref(), &scenario.name, started as u64)?;
    let interrupt = interrupt_flag()?;
    let run = SteppedRun { scenario: &scenario, variant: None, repetition: 1, folder, directory: &place };
    let page = LivePage::start(&args.run.live, &scenario.name)?;
    let (summary, trouble) = run.measure(&args.run, &page, &interrupt)?;
    page.end_run(&summary);
    print::print(&summary, &args.run.print, &place)?;
    trouble.map_or_else(|| Ok(run::explained(&summary)), Err)
}

/// Reads a scenario's file.
///
/// # Errors
/// 2 where it cannot be read, and 104 where it is no scenario.
pub(crate) fn variations_of(file: &Path) -> Result<Vec<Variation>, RunError> {
    Variation::read(file).map_err(|error| match error {
        ScenarioError::Read { .. } => RunError::new(ErrorKind::Usage, error.to_string()),
        _ => RunError::new(ErrorKind::Scenario, error.to_string()),
    })
}

/// How many runs each variant has.
///
/// # Errors
/// 104.
pub(crate) fn repetitions(scenario: &Scenario) -> Result<u32, RunError> {
    let repeat = scenario.repeat.unwrap_or(1);
    if (1..=MOST_REPETITIONS).contains(&repeat) {
        return Ok(repeat);
    }
    let line = format!("repeat: {repeat} is not a number of repetitions; write 1 to {MOST_REPETITIONS}");
    Err(RunError::new(ErrorKind::Scenario, line).of(Part::Repeat))
}

/// The variants under their names, which a scenario without any has as well.
pub(crate) fn variants(variations: &[Variation]) -> Vec<Variant> {
    let only = || Variant { name: ONLY.to_owned(), ..Variant::default() };
    variations.iter().map(|it| it.variant.clone().unwrap_or_else(only)).collect()
}

/// What the command line makes of a scenario.
pub(crate) fn as_asked(
    mut scenario: Scenario,
    variant: Option<&Variant>,
    args: &Run,
    folder: &Path,
) -> Result<Scenario, RunError> {
    let bad = |error: ScenarioError| RunError::new(ErrorKind::Usage, error.to_string());
    for (key, value) in &args.set {
        if key.starts_with("variants") || key.starts_with("matrix") {
            let line = format!(
                "--set {key}: variants are of the file, which is read once for each; change it there"
            );
            return Err(RunError::new(ErrorKind::Usage, line));
        }
        scenario = scenario.with(key, value).map_err(bad)?;
    }
    if let Some(clients) = args.clients {
        scenario.set_clients(clients).map_err(bad)?;
    }
    if let Some(time) = &args.duration {
        scenario.set_duration(time);
    }
    scenario.resolve(folder);
    scenario = url_lists::read_or(scenario, ErrorKind::Scenario)?;
    if let Some(target) = &args.target {
        // Not as it was written: a URL may hold a secret.
        if target.is_empty() || target.contains(['/', '?', '#', '@']) {
            let line = "--target takes the place of host and port in each URL; write HOST:PORT alone";
            return Err(RunError::new(ErrorKind::Usage, line));
        }
        if let Some(line) = load::retarget(&mut scenario, target, !args.run.watch.is_empty()) {
            print::print_progress(&args.run, &line);
        }
    }
    load::add_options(&mut scenario, &args.run);
    if let Some(probe) = &args.probe {
        let Some(workload) = scenario.workloads.iter_mut().find(|it| it.saves()) else {
            let line = "--probe: the scenario has no `ingest` whose place another consumer could take";
            return Err(RunError::new(ErrorKind::Usage, line));
        };
        workload.ingest.0.clear();
        workload.probe.0 = vec![variant.map_or_else(|| probe.clone(), |variant| variant.fill(probe))];
        if let Some(into) = &mut workload.into {
            (into.save, into.durability) = (None, None);
        }
    }
    Ok(scenario)
}

fn series(variations: &[Variation], repeat: u32, folder: &Path, args: &Run) -> Result<Exit, RunError> {
    let print = &args.run.print;
    check_answer(print, "a series", "RUN")?;
    for Variation { scenario, .. } in variations {
        // Before a server is started: a plan that cannot be needs none.
        prepare::plan(scenario, ErrorKind::Scenario)?;
    }
    let first = &variations[0].scenario;
    let started = clock::wall_nanos() as f64 * 1e-9;
    let whole = directory(args.run.output.as_deref(), &first.name, started as u64)?;
    let facts = SeriesFacts {
        run: run_directory::facts(first, &whole, started),
        variants: variants(variations),
        repeat,
        order: first.order.unwrap_or_default(),
    };
    let mut made = SeriesWriter {
        facts,
        began: Instant::now(),
        directory: &whole,
        figures: Vec::new(),
        runs: Vec::new(),
    };
    let page = LivePage::start(&args.run.live, &first.name)?;
    // What cannot be written is better known before the first run.
    let (summary, written) = made.write(Ending::Running);
    written?;
    summary.show_on(&page);
    let interrupt = interrupt_flag()?;
    // Before the first server is started, so that each has the same limits.
    prepare::raise_descriptors();
    let order = turns(variations.len(), repeat, first.order.unwrap_or_default(), first.seed);
    let repeated = Repeated {
        noun: "run",
        turns: &order,
        variants: made.facts.variants.clone(),
        repeat,
        whole: &whole,
        options: &args.run,
    };
    let (ending, trouble) = repeated.each(&interrupt, |turn, own| {
        let variation = &variations[turn.variant];
        let run = SteppedRun {
            scenario: &variation.scenario,
            variant: variation.variant.as_ref(),
            repetition: turn.repetition,
            folder,
            directory: own,
        };
        let (summary, trouble) = match run.measure(&args.run, &page, &interrupt) {
            Ok(measured) => measured,
            Err(failure) => return Ok(Some(failure)),
        };
        made.add(turn, own, &summary);
        if trouble.is_none() {
            let (summary, written) = made.write(Ending::Running);
            summary.show_on(&page);
            written?;
        }
        Ok(trouble)
    })?;
    let (summary, written) = made.write(ending);
    summary.show_on(&page);
    page.end_series(&summary.ending);
    summary.show(print, &whole)?;
    written?;
    match trouble {
        Some(failure) if !interrupt.load(Relaxed) => Err(failure),
        _ => Ok(summary.explained()),
    }
}

/// The runs that were made so far, and where their series is written.
struct SeriesWriter<'a> {
    facts: SeriesFacts,
    began: Instant,
    directory: &'a Path,
    figures: Vec<SeriesFigure>,
    runs: Vec<SeriesRun>,
}

impl SeriesWriter<'_> {
    fn add(&mut self, turn: Turn, own: &Path, summary: &Summary) {
        let variant = &self.facts.variants[turn.variant].name;
        let (run, figures) = kept_run(variant, turn, own, summary);
        self.runs.push(run);
        for figure in figures {
            if !self.figures.iter().any(|known| known.name == figure.name) {
                self.figures.push(figure);
            }
        }
    }

    /// What they come to, written whole into the series' directory.
    fn write(&mut self, ending: Ending) -> (SeriesSummary, Result<(), RunError>) {
        self.facts.run.duration_seconds = self.began.elapsed().as_secs_f64();
        let summary = SeriesSummary::new(&self.facts, &self.figures, &self.runs, ending);
        let written = summary.keep(self.directory);
        (summary, written)
    }
}

fn target_died(run: &SeriesRun) -> bool {
    run.outcome == Outcome::TargetDied || run.unanswered
}

fn was_aborted(run: &SeriesRun) -> bool {
    matches!(run.outcome, Outcome::Aborted(_))
}

impl KeptAnswer for SeriesSummary {
    const LAYOUT: &'static str = LAYOUT;
    const WHOLE: Whole = Whole::Series;

    fn layout(&self) -> &str {
        &self.layout
    }

    /// What a series comes to. How it ended says more than what it measured, and whether it can be believed more than whether
    /// it passed.
    fn missed(&self) -> Option<ErrorKind> {
        let any = |is: fn(&SeriesRun) -> bool| self.runs.iter().any(is);
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
    /// or else how many thresholds failed. The reason is that of [`Self::exit`]'s code.
    fn shortfall(&self) -> Option<String> {
        if let Ending::Failed(failure) = &self.ending {
            return Some(weir_report::quote(&failure.words, 1_000));
        }
        let (made, wanted) = (self.runs.len(), self.variants.len() as u64 * u64::from(self.repeat));
        if matches!(self.ending, Ending::Interrupted | Ending::Running) {
            let whole = self.runs.iter().filter(|run| run.outcome != Outcome::Interrupted).count();
            return Some(format!("interrupted after {whole} of {}", several(wanted, "run")));
        }
        let left_out: Vec<_> = self.runs.iter().filter(|run| !run.is_counted()).collect();
        let first = |is: fn(&SeriesRun) -> bool| left_out.iter().find(|run| is(run));
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
