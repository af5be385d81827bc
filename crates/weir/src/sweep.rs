//! `weir sweep`: every variant of a scenario in random order, as a run or as a search for its capacity, and which is best.

use crate::answer::KeptAnswer;
use crate::args::{Run, Sweep};
use crate::capacity::{SearchedVariant, Trials};
use crate::exit::Exit;
use crate::figures::declared;
use crate::interrupt::interrupt_flag;
use crate::live_page::{LivePage, Whole};
use crate::outline;
use crate::print::check_answer;
use crate::repeated::{Repeated, kept_run};
use crate::series::{as_asked, repetitions, variants, variations_of};
use crate::stepped::SteppedRun;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use weir_clients::meant;
use weir_engine::capacity::{CapacitySummary, LoadKind, Subject};
use weir_engine::compare::better;
use weir_engine::scenario::{Find, Order};
use weir_engine::series::{
    Ending, SeriesFacts, SeriesFigure, SeriesRun, SeriesSummary, Turn, Variation, turns,
};
use weir_engine::summary::Summary;
use weir_engine::sweep::{
    LAYOUT, Rank, Ranked, SweepCell, SweepFacts, SweepSummary, budget_of_next, rival_of,
};
use weir_engine::threshold::RECONNECTED;
use weir_metrics::{parse_rate, several};
use weir_runner::run_directory::{directory, name_of};
use weir_runner::{ErrorKind, RunError};
use weir_runner::{prepare, run_directory};
use weir_shard::clock;

/// Figures of runs that no schema declares.
const UNDECLARED: [&str; 4] = ["published", "counted", "cpu.weir", RECONNECTED];

/// The figure that ranks runs without a watched process.
const USUAL_FIGURE: &str = "startup.p50";

/// Sweeps.
pub(crate) fn sweep(args: &Sweep) -> Result<Exit, RunError> {
    sweep_file(args).map_err(|failure| failure.in_file(&args.file))
}

fn sweep_file(args: &Sweep) -> Result<Exit, RunError> {
    let print = &args.run.print;
    check_answer(print, "a sweep", "RUN")?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let variations = variations(args, folder)?;
    let first = &variations[0].scenario;
    let repeat = repetitions(first)?;
    let kind = searched(args, first.find);
    if kind.is_some() && args.by.is_some() {
        let line = "--by is of runs; searches are ranked by what each variant carries: leave one out";
        return Err(RunError::new(ErrorKind::Usage, line));
    }
    if kind.is_none()
        && let Some(of) = args.search.of
    {
        let line = format!("--of {} is of a search; add --find capacity", of.name());
        return Err(RunError::new(ErrorKind::Usage, line));
    }
    if let Some(name) = &args.by {
        check_figure(name)?;
        if name == RECONNECTED && variations.iter().all(|it| it.scenario.during.is_empty()) {
            let line = format!("--by {name}: nothing is restarted; say under `during` what is, and when");
            return Err(RunError::new(ErrorKind::Usage, line));
        }
    }
    let swept = Swept { args, folder, variations: &variations, is_search: kind.is_some() };
    let order = first.order.unwrap_or(Order::Random);
    if args.check {
        let how = swept.how(kind, repeat, order)?;
        return outline::print(&args.file, &how, &variations, repeat, &args.run.agents.generators());
    }
    // Before a server is started, or a directory made: what cannot be run or searched is said at once.
    let noun = swept.check()?;
    let ranked = match (&args.by, kind, noun) {
        (_, Some(kind), Some(noun)) => Ranked::by_capacity(kind, noun),
        (Some(figure), ..) => Ranked::by_figure(figure),
        _ if first.watch.is_empty() => Ranked::by_figure(USUAL_FIGURE),
        _ => Ranked::by_cpu_per_client(),
    };
    let started = clock::wall_nanos() as f64 * 1e-9;
    let whole = directory(args.run.output.as_deref(), &first.name, started as u64)?;
    let facts = SweepFacts {
        run: run_directory::facts(first, &whole, started),
        variants: variants(&variations),
        repeat,
        order,
        ranked,
    };
    let turns = turns(variations.len(), repeat, order, first.seed);
    let page = LivePage::start(&args.run.live, &first.name)?;
    let (summary, trouble) = swept.work(facts, &turns, &whole, &page)?;
    page.end_series(&summary.ending);
    summary.show(print, &whole)?;
    match trouble {
        Some(failure) if summary.ending != Ending::Interrupted => Err(failure),
        _ => Ok(summary.explained()),
    }
}

/// Refuses what can be no figure of a run, before any is made. Whether a run has one that there is, it says itself.
fn check_figure(name: &str) -> Result<(), RunError> {
    let of_figure = name.strip_suffix(".p50").or_else(|| name.strip_suffix(".p99")).unwrap_or(name);
    let is_it =
        |known: &str| of_figure.strip_suffix(known).is_some_and(|it| it.is_empty() || it.ends_with('.'));
    let declared = declared();
    let names = || declared.iter().flat_map(|it| &it.figures).map(|it| it.name).chain(UNDECLARED);
    if better(name).is_some() || names().any(is_it) {
        return Ok(());
    }
    let hint = meant(of_figure, names())
        .map_or_else(|| "`weir figures` lists them".to_owned(), |it| format!("did you mean '{it}'?"));
    let name = weir_report::quote(name, 60);
    Err(RunError::new(ErrorKind::Usage, format!("--by {name}: there is no such figure; {hint}")))
}

/// The scenario's variants as the command line has them.
fn variations(args: &Sweep, folder: &Path) -> Result<Vec<Variation>, RunError> {
    let read = variations_of(&args.file)?;
    if read[0].variant.is_none() {
        let line =
            "nothing to sweep: the scenario has no `variants` and no `matrix`; add one, or use `weir run`";
        return Err(RunError::new(ErrorKind::Scenario, line));
    }
    let asked = Run {
        file: args.file.clone(),
        target: args.target.clone(),
        clients: None,
        duration: None,
        set: args.set.clone(),
        probe: None,
        check: false,
        run: args.run.clone(),
    };
    read.into_iter()
        .map(|it| {
            Ok(Variation { scenario: as_asked(it.scenario, it.variant.as_ref(), &asked, folder)?, ..it })
        })
        .collect()
}

/// What is counted, if each variant is searched.
fn searched(args: &Sweep, find: Option<Find>) -> Option<LoadKind> {
    let is_asked = args.find.is_some() || find.is_some();
    is_asked.then(|| args.search.of.or(find.map(Find::kind)).unwrap_or_default())
}

/// What is swept.
struct Swept<'a> {
    args: &'a Sweep,
    folder: &'a Path,
    variations: &'a [Variation],
    is_search: bool,
}

/// What was made so far, and where it is written.
struct SweepWriter<'a> {
    facts: SweepFacts,
    began: Instant,
    directory: &'a Path,
    is_search: bool,
    cells: Vec<SweepCell>,
    figures: Vec<SeriesFigure>,
    runs: Vec<SeriesRun>,
}

impl Swept<'_> {
    /// How the variants are worked through, in a line.
    fn how(&self, kind: Option<LoadKind>, repeat: u32, order: Order) -> Result<String, RunError> {
        let search = &self.args.search;
        let count = self.variations.len() as u64 * u64::from(repeat);
        let what = match kind {
            None => several(count, "run"),
            Some(kind) => {
                let arrivals = parse_rate(&search.arrival).map_err(RunError::with(ErrorKind::Usage))?;
                let scenario = self.variations[0].scenario.clone();
                let subject = Subject::new(scenario, kind, search.clients, arrivals);
                let noun = subject.map_err(RunError::with(ErrorKind::Scenario))?.noun();
                let most = outline::time(search.budget.get().saturating_mul(count as u32));
                let searches = if count == 1 { "1 search".to_owned() } else { format!("{count} searches") };
                format!("{searches} for how many {noun} each variant carries, {most} at most in all")
            }
        };
        let order = match order {
            Order::Random => "in a random order that the seed decides",
            Order::Interleaved => "interleaved",
            Order::Sequential => "variant after variant",
        };
        Ok(format!("sweep: {what}, {order}"))
    }

    /// Checks every variant, and says what a load of it is a number of.
    fn check(&self) -> Result<Option<&'static str>, RunError> {
        // Before the first server is started, so that each has the same limits.
        prepare::raise_descriptors();
        let mut noun = None;
        for variation in self.variations {
            if self.is_search {
                noun = Some(self.trials(variation, 1)?.noun());
            } else {
                prepare::plan(&variation.scenario, ErrorKind::Scenario)?;
            }
        }
        Ok(noun)
    }

    fn trials<'b>(&'b self, variation: &'b Variation, repetition: u32) -> Result<Trials<'b>, RunError> {
        let of = SearchedVariant {
            variant: variation.variant.as_ref(),
            repetition,
            folder: self.folder,
            wrong: ErrorKind::Scenario,
        };
        Trials::new(variation.scenario.clone(), &self.args.search, &self.args.run, of)
    }

    /// Cell after cell.
    fn work(
        &self,
        facts: SweepFacts,
        turns: &[Turn],
        whole: &Path,
        page: &LivePage,
    ) -> Result<(SweepSummary, Option<RunError>), RunError> {
        let mut made = SweepWriter {
            facts,
            began: Instant::now(),
            directory: whole,
            is_search: self.is_search,
            cells: Vec::new(),
            figures: Vec::new(),
            runs: Vec::new(),
        };
        // What cannot be written is better known before the first cell.
        made.write(Ending::Running)?.show_on(page);
        let interrupt = interrupt_flag()?;
        let repeated = Repeated {
            noun: if self.is_search { "search" } else { "run" },
            turns,
            variants: made.facts.variants.clone(),
            repeat: made.facts.repeat,
            whole,
            options: &self.args.run,
        };
        let (ending, trouble) = repeated.each(&interrupt, |turn, own| {
            let trouble = self.cell(turn, (own, page), &interrupt, &mut made);
            if trouble.is_none() {
                made.write(Ending::Running)?.show_on(page);
            }
            Ok(trouble)
        })?;
        let summary = made.write(ending)?;
        summary.show_on(page);
        Ok((summary, trouble))
    }

    /// Makes one cell and notes it; says what went wrong.
    fn cell(
        &self,
        turn: Turn,
        (own, page): (&Path, &LivePage),
        interrupt: &Arc<AtomicBool>,
        made: &mut SweepWriter<'_>,
    ) -> Option<RunError> {
        let variation = &self.variations[turn.variant];
        if self.is_search {
            let searches = made.facts.variants.len() as u32 * made.facts.repeat;
            let (each, used) = (self.args.search.budget.get(), made.began.elapsed());
            let budget = budget_of_next(each, searches, made.cells.len() as u32, used);
            let rival = rival_of(made.variant(turn), &made.cells);
            let hunted = self
                .trials(variation, turn.repetition)
                .and_then(|trials| trials.hunt(budget, rival, (own, page), interrupt));
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
        match run.measure(&self.args.run, page, interrupt) {
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
        &self.facts.variants[turn.variant].name
    }

    fn add_search(&mut self, turn: Turn, own: &Path, summary: &CapacitySummary) {
        let cell = SweepCell::of_search(self.variant(turn), turn.repetition, name_of(own), summary);
        self.cells.push(cell);
    }

    fn add_run(&mut self, turn: Turn, own: &Path, summary: &Summary) {
        let (run, figures) = kept_run(self.variant(turn), turn, own, summary);
        self.cells.push(SweepCell::of_run(&run, summary));
        self.runs.push(run);
        for figure in figures {
            if !self.figures.iter().any(|known| known.name == figure.name) {
                self.figures.push(figure);
            }
        }
    }

    /// What they come to, written whole into the sweep's directory.
    fn write(&mut self, ending: Ending) -> Result<SweepSummary, RunError> {
        self.facts.run.duration_seconds = self.began.elapsed().as_secs_f64();
        let series = (!self.is_search).then(|| {
            let SweepFacts { run, variants, repeat, order, .. } = self.facts.clone();
            let facts = SeriesFacts { run, variants, repeat, order };
            SeriesSummary::new(&facts, &self.figures, &self.runs, ending.clone())
        });
        let summary = SweepSummary::new(&self.facts, &self.cells, series, ending);
        summary.keep(self.directory)?;
        Ok(summary)
    }
}

fn is_unknown_figure(summary: &SweepSummary) -> bool {
    matches!(&summary.ranked.by, Rank::Figure(name) if name != USUAL_FIGURE)
        && summary.variants.iter().all(|it| it.value.is_none())
}

impl KeptAnswer for SweepSummary {
    const LAYOUT: &'static str = LAYOUT;
    const WHOLE: Whole = Whole::Series;

    fn layout(&self) -> &str {
        &self.layout
    }

    /// What a sweep comes to: of runs what their series does, of searches whether anything was learnt.
    fn missed(&self) -> Option<ErrorKind> {
        match (&self.ending, &self.series) {
            (Ending::Interrupted | Ending::Running, _) => Some(ErrorKind::Interrupted),
            (Ending::Failed(failure), _) => Some(ErrorKind::of_code(failure.exit_code)),
            (Ending::Completed, Some(series)) => match series.missed() {
                // A figure that no run has ranks nothing, and a name that is not there is a slip of the pen.
                None if is_unknown_figure(self) => Some(ErrorKind::Usage),
                missed => missed,
            },
            (Ending::Completed, None) if self.cells.iter().all(|cell| cell.unanswered) => {
                Some(ErrorKind::TargetDied)
            }
            (Ending::Completed, None) if self.variants.iter().all(|it| it.counted == 0) => {
                Some(ErrorKind::Invalid)
            }
            (Ending::Completed, None) => None,
        }
    }

    fn answer(&self) -> Option<String> {
        Some(weir_report::sweep_line(self))
    }

    /// Says in one line why a sweep did not pass.
    fn shortfall(&self) -> Option<String> {
        if let Ending::Failed(failure) = &self.ending {
            return Some(weir_report::quote(&failure.words, 1_000));
        }
        if is_unknown_figure(self) {
            let Rank::Figure(name) = &self.ranked.by else { return None };
            return Some(format!(
                "--by {}: no run has that figure; `weir figures` lists them",
                weir_report::quote(name, 60)
            ));
        }
        match &self.series {
            Some(series) => series.shortfall(),
            None if matches!(self.ending, Ending::Interrupted | Ending::Running) => {
                // The one that was interrupted is the last.
                let whole = self.cells.len()
                    - usize::from(!self.cells.is_empty() && self.ending == Ending::Interrupted);
                let wanted = self.variants.len() as u64 * u64::from(self.repeat);
                let of = if wanted == 1 { "search" } else { "searches" };
                Some(format!("interrupted after {whole} of {wanted} {of}"))
            }
            None if self.cells.iter().all(|cell| cell.unanswered) => Some(
                "the target answered in no search; start the server, or correct the scenario's addresses"
                    .to_owned(),
            ),
            None => Some("no search told anything: see the reasons in the report".to_owned()),
        }
    }
}
