//! `weir sweep`: every variant of a scenario in random order, as a run or as a search for its capacity, and which is best.

use crate::args::{Run, Sweep};
use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::print::check_answer;
use crate::series::as_asked;
use crate::{answer, outline};
use std::path::Path;
use weir_answers::capacity::Subject;
use weir_answers::series::SeriesFacts;
use weir_answers::sweep::{Ranked, SweepFacts};
use weir_engine::declared;
use weir_engine::scenario::{Find, LoadKind, Order, Variation, turns};
use weir_metrics::several;
use weir_runner::capacity::SearchSettings;
use weir_runner::run_directory::{self, directory};
use weir_runner::series::{repetitions, variants, variations_of};
use weir_runner::sweep::{self as swept, USUAL_FIGURE};
use weir_runner::{ErrorKind, RunError};
use weir_shard::clock;

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
        if name == declared::RECONNECTED.name && variations.iter().all(|it| it.scenario.during.is_empty()) {
            let line = format!("--by {name}: nothing is restarted; say under `during` what is, and when");
            return Err(RunError::new(ErrorKind::Usage, line));
        }
    }
    let search = args.search.settings()?;
    let swept = swept::Sweep { search: &search, folder, variations: &variations, is_search: kind.is_some() };
    let order = first.order.unwrap_or(Order::Random);
    if args.check {
        let how = how(&search, &variations, kind, repeat, order)?;
        return outline::print(&args.file, &how, &variations, repeat, &args.run.agents.generators());
    }
    // Before a server is started, or a directory made: what cannot be run or searched is said at once.
    let noun = swept.check(&args.run.agents.generators())?;
    let ranked = match (&args.by, kind, noun) {
        (_, Some(kind), Some(noun)) => Ranked::by_capacity(kind, noun),
        (Some(figure), ..) => Ranked::by_figure(figure),
        _ if first.watch.is_empty() => Ranked::by_figure(USUAL_FIGURE),
        _ => Ranked::by_cpu_per_client(),
    };
    let started = clock::wall_nanos() as f64 * 1e-9;
    let whole = directory(args.run.output.as_deref(), &first.name, started as u64)?;
    let run = run_directory::facts(first, &whole, started);
    let series = SeriesFacts { run, variants: variants(&variations), repeat, order };
    let facts = SweepFacts { series, ranked };
    let turns = turns(variations.len(), repeat, order, first.seed);
    let mut console = Console::open(&args.run, &first.name)?;
    let interrupt = interrupt_flag()?;
    let mut session = console.session(&interrupt)?;
    let (summary, trouble) = swept.run(facts, &turns, &whole, &mut session)?;
    console.page.end_series(&summary.series.ending);
    answer::show(&summary, print, &whole)?;
    trouble.map_or_else(|| Ok(answer::explained(&summary)), Err)
}

/// Refuses what can be no figure of a run, before any is made. Whether a run has one that there is, it says itself.
fn check_figure(name: &str) -> Result<(), RunError> {
    let Err(nearest) = declared::check(name) else { return Ok(()) };
    let hint =
        nearest.map_or_else(|| "`weir figures` lists them".to_owned(), |it| format!("did you mean '{it}'?"));
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

/// How the variants are worked through, in a line.
fn how(
    search: &SearchSettings,
    variations: &[Variation],
    kind: Option<LoadKind>,
    repeat: u32,
    order: Order,
) -> Result<String, RunError> {
    let count = variations.len() as u64 * u64::from(repeat);
    let what = match kind {
        None => several(count, "run"),
        Some(kind) => {
            let scenario = variations[0].scenario.clone();
            let subject = Subject::new(scenario, kind, search.clients, search.arrivals_per_second);
            let noun = subject.map_err(RunError::with(ErrorKind::Scenario))?.noun();
            let most = outline::time(search.budget.saturating_mul(count as u32));
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
