//! `weir sweep`: every variant of a scenario in random order, as a run or as a search for its capacity, and which is best.

use crate::args::{Print, Run, Sweep};
use crate::capacity::{SearchedVariant, Trials};
use crate::exit::{Exit, Failure};
use crate::interrupt::interrupt_flag;
use crate::live_page::{LivePage, Whole};
use crate::print::{check_json, check_print, print_progress};
use crate::run_directory::directory;
use crate::series::{MOST_REPETITIONS, ONLY, as_asked};
use crate::stepped::SteppedRun;
use crate::{prepare, print, run, run_directory};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;
use weir_engine::capacity::{CapacitySummary, LoadKind};
use weir_engine::lines::Part;
use weir_engine::record;
use weir_engine::scenario::{Find, Order, ScenarioError, Variant};
use weir_engine::series::{
    Ending, SeriesFacts, SeriesFigure, SeriesRun, SeriesSummary, Turn, Variation, turns,
};
use weir_engine::summary::Summary;
use weir_engine::sweep::{LAYOUT, Rank, Ranked, SweepCell, SweepFacts, SweepSummary};
use weir_report::Text;
use weir_shard::clock;

/// Name of the summary in the directory of a sweep.
const SUMMARY: &str = "summary.json";

/// The figure that ranks runs without a watched process.
const USUAL_FIGURE: &str = "startup.p50";

/// Sweeps.
pub(crate) fn sweep(args: &Sweep) -> Result<Exit, Failure> {
    sweep_file(args).map_err(|failure| failure.in_file(&args.file))
}

fn sweep_file(args: &Sweep) -> Result<Exit, Failure> {
    let print = &args.run.print;
    check_print(print)?;
    if print.format == "clients" {
        let line = "--format clients is of a run, and this is a sweep; `weir report DIR/RUN --format clients` prints one's";
        return Err(Failure::new(Exit::Usage, line));
    }
    check_json(print)?;
    let folder = args.file.parent().unwrap_or(Path::new(""));
    let variations = variations(args, folder)?;
    let first = &variations[0].scenario;
    let repeat = first.repeat.unwrap_or(1);
    if !(1..=MOST_REPETITIONS).contains(&repeat) {
        let line = format!("repeat: {repeat} is no number of repetitions; write 1 to {MOST_REPETITIONS}");
        return Err(Failure::new(Exit::Scenario, line).of(Part::Repeat));
    }
    let kind = searched(args, first.find);
    if kind.is_some() && args.by.is_some() {
        let line = "--by is of runs; searches are ranked by what each variant carries: leave one out";
        return Err(Failure::new(Exit::Usage, line));
    }
    if kind.is_none()
        && let Some(of) = args.search.of
    {
        let line = format!("--of {} is of a search; add --find capacity", of.name());
        return Err(Failure::new(Exit::Usage, line));
    }
    let swept = Swept { args, folder, variations: &variations, is_search: kind.is_some() };
    // Before a server is started, or a directory made: what cannot be run or searched is said at once.
    let noun = swept.check()?;
    let ranked = match (&args.by, kind, noun) {
        (_, Some(kind), Some(noun)) => Ranked::by_capacity(kind, noun),
        (Some(figure), ..) => Ranked::by_figure(figure),
        _ if first.watch.is_empty() => Ranked::by_figure(USUAL_FIGURE),
        _ => Ranked::by_cpu_per_client(),
    };
    let order = first.order.unwrap_or(Order::Random);
    let started = clock::wall_nanos() as f64 * 1e-9;
    let whole = directory(args.run.output.as_deref(), &first.name, started as u64)?;
    let only = || Variant { name: ONLY.to_owned(), ..Variant::default() };
    let facts = SweepFacts {
        run: run_directory::facts(first, &whole, started),
        variants: variations.iter().map(|it| it.variant.clone().unwrap_or_else(only)).collect(),
        repeat,
        order,
        ranked,
    };
    let turns = turns(variations.len(), repeat, order, first.seed);
    let page = LivePage::start(&args.run.live, &first.name)?;
    let (summary, trouble) = swept.work(facts, &turns, &whole, &page)?;
    page.end_series(&summary.ending);
    show(&summary, print, &whole)?;
    match trouble {
        Some(failure) if summary.ending != Ending::Interrupted => Err(failure),
        _ => Ok(explained(&summary)),
    }
}

/// Says in one line why a sweep did not pass.
fn shortfall(summary: &SweepSummary) -> Option<String> {
    if let Ending::Failed(failure) = &summary.ending {
        return Some(weir_report::quote(&failure.words, 1_000));
    }
    if is_unknown_figure(summary) {
        let Rank::Figure(name) = &summary.ranked.by else { return None };
        return Some(format!(
            "--by {}: no run has that figure; `weir figures` lists them",
            weir_report::quote(name, 60)
        ));
    }
    match &summary.series {
        Some(series) => crate::series::shortfall(series),
        None if matches!(summary.ending, Ending::Interrupted | Ending::Running) => {
            Some("interrupted before every variant was searched".to_owned())
        }
        None if summary.cells.iter().all(|cell| cell.unanswered) => Some(
            "the target answered in no search; start the server, or correct the scenario's addresses"
                .to_owned(),
        ),
        None => Some("no search told anything: see the reasons in the report".to_owned()),
    }
}

/// The scenario's variants as the command line has them.
fn variations(args: &Sweep, folder: &Path) -> Result<Vec<Variation>, Failure> {
    let read = Variation::read(&args.file).map_err(|error| match error {
        ScenarioError::Read { .. } => Failure::new(Exit::Usage, error.to_string()),
        _ => Failure::new(Exit::Scenario, error.to_string()),
    })?;
    if read[0].variant.is_none() {
        let line =
            "nothing to sweep: the scenario has no `variants` and no `matrix`; add one, or use `weir run`";
        return Err(Failure::new(Exit::Scenario, line));
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
    /// Checks every variant, and says what a load of it is a number of.
    fn check(&self) -> Result<Option<&'static str>, Failure> {
        // Before the first server is started, so that each has the same limits.
        prepare::raise_descriptors();
        let mut noun = None;
        for variation in self.variations {
            if self.is_search {
                noun = Some(self.trials(variation, 1)?.noun());
            } else {
                prepare::plan(&variation.scenario, Exit::Scenario)?;
            }
        }
        Ok(noun)
    }

    fn trials<'b>(&'b self, variation: &'b Variation, repetition: u32) -> Result<Trials<'b>, Failure> {
        let of = SearchedVariant {
            variant: variation.variant.as_ref(),
            repetition,
            folder: self.folder,
            wrong: Exit::Scenario,
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
    ) -> Result<(SweepSummary, Option<Failure>), Failure> {
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
        show_on(page, &made.write(Ending::Running)?);
        let interrupt = interrupt_flag()?;
        let mut trouble = None;
        for (number, turn) in (1..).zip(turns) {
            if interrupt.load(Relaxed) {
                break;
            }
            let name = made.facts.variants[turn.variant].name.clone();
            let place = format!("{number:03}-{name}");
            let what = if self.is_search { "search" } else { "run" };
            let (of, repeat) = (turns.len(), made.facts.repeat);
            print_progress(
                &self.args.run,
                &format!("{what} {number} of {of}: {name}, repetition {} of {repeat}", turn.repetition),
            );
            let own = whole.join(&place);
            record::make_private(&own).map_err(Failure::with(Exit::Internal))?;
            trouble = self.cell(*turn, (&own, page), &interrupt, &mut made);
            if trouble.is_some() {
                break;
            }
            show_on(page, &made.write(Ending::Running)?);
        }
        let ending = match &trouble {
            _ if interrupt.load(Relaxed) => Ending::Interrupted,
            Some(failure) => failure.ending(),
            None => Ending::Completed,
        };
        let summary = made.write(ending)?;
        show_on(page, &summary);
        Ok((summary, trouble))
    }

    /// Makes one cell and notes it; says what went wrong.
    fn cell(
        &self,
        turn: Turn,
        (own, page): (&Path, &LivePage),
        interrupt: &Arc<AtomicBool>,
        made: &mut SweepWriter<'_>,
    ) -> Option<Failure> {
        let variation = &self.variations[turn.variant];
        if self.is_search {
            let hunted =
                self.trials(variation, turn.repetition).and_then(|trials| trials.hunt(own, page, interrupt));
            return match hunted {
                Ok((summary, trouble)) => {
                    made.add_search(turn, own, &summary);
                    trouble.err()
                }
                Err(failure) => Some(failure),
            };
        }
        let run = SteppedRun {
            generators: self.args.run.agents.generators(),
            scenario: &variation.scenario,
            variant: variation.variant.as_ref(),
            repetition: turn.repetition,
            folder: self.folder,
            directory: own,
        };
        match run.run(interrupt, |prepared| run::run_in(prepared, &self.args.run, page, own, interrupt)) {
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
        let cell = SweepCell::of_search(self.variant(turn), turn.repetition, place(own), summary);
        self.cells.push(cell);
    }

    fn add_run(&mut self, turn: Turn, own: &Path, summary: &Summary) {
        let (run, figures) = SeriesRun::new(self.variant(turn), turn.repetition, place(own), summary);
        self.cells.push(SweepCell::of_run(&run, summary));
        self.runs.push(run);
        for figure in figures {
            if !self.figures.iter().any(|known| known.name == figure.name) {
                self.figures.push(figure);
            }
        }
    }

    /// What they come to, written whole into the sweep's directory.
    fn write(&mut self, ending: Ending) -> Result<SweepSummary, Failure> {
        self.facts.run.duration_seconds = self.began.elapsed().as_secs_f64();
        let series = (!self.is_search).then(|| {
            let SweepFacts { run, variants, repeat, order, .. } = self.facts.clone();
            let facts = SeriesFacts { run, variants, repeat, order };
            SeriesSummary::new(&facts, &self.figures, &self.runs, ending.clone())
        });
        let summary = SweepSummary::new(&self.facts, &self.cells, series, ending);
        write(&summary, self.directory)?;
        Ok(summary)
    }
}

/// Shows on the page what there is up to now.
fn show_on(page: &LivePage, summary: &SweepSummary) {
    page.show_whole(Whole::Series, |out| weir_report::write_sweep(summary, "html", &Text::default(), out));
}

fn place(directory: &Path) -> String {
    directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The summary of a directory that a sweep has written; `None` if it is another's.
pub(crate) fn read(directory: &Path) -> Option<SweepSummary> {
    let bytes = std::fs::read(directory.join(SUMMARY)).ok()?;
    serde_json::from_slice::<SweepSummary>(&bytes).ok().filter(|summary| summary.layout == LAYOUT)
}

/// What a sweep comes to: of runs what their series does, of searches whether anything was learnt.
fn exit(summary: &SweepSummary) -> Exit {
    match (&summary.ending, &summary.series) {
        (Ending::Interrupted | Ending::Running, _) => Exit::Interrupted,
        (Ending::Failed(failure), _) => Exit::of_code(failure.exit_code),
        (Ending::Completed, Some(series)) => match crate::series::exit(series) {
            // A figure that no run has ranks nothing, and a name that is not there is a slip of the pen.
            Exit::Passed if is_unknown_figure(summary) => Exit::Usage,
            exit => exit,
        },
        (Ending::Completed, None) if summary.cells.iter().all(|cell| cell.unanswered) => Exit::TargetDied,
        (Ending::Completed, None) if summary.variants.iter().all(|it| it.counted == 0) => Exit::Invalid,
        (Ending::Completed, None) => Exit::Passed,
    }
}

fn is_unknown_figure(summary: &SweepSummary) -> bool {
    matches!(&summary.ranked.by, Rank::Figure(name) if name != USUAL_FIGURE)
        && summary.variants.iter().all(|it| it.value.is_none())
}

/// The same, with one line on stderr on why that is not a pass.
pub(crate) fn explained(summary: &SweepSummary) -> Exit {
    run::said(exit(summary), shortfall(summary))
}

/// Prints it as asked.
pub(crate) fn show(summary: &SweepSummary, print: &Print, directory: &Path) -> Result<(), Failure> {
    print::show(print, directory, &|format, text, out| weir_report::write_sweep(summary, format, text, out))
}

/// Writes the artefacts, whole.
pub(crate) fn write(summary: &SweepSummary, directory: &Path) -> Result<(), Failure> {
    print::write(directory, &|format, text, out| weir_report::write_sweep(summary, format, text, out))
}
