//! `weir capacity`: what the command line asks of a search.

use crate::args::Capacity;
use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::print::check_answer;
use crate::{answer, load};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use weir_engine::scenario::{Scenario, Variation};
use weir_runner::capacity::{CapacitySearch, SearchedVariant};
use weir_runner::run_directory::directory;
use weir_runner::{ErrorKind, RunError};
use weir_shard::clock;

/// Searches.
pub(crate) fn capacity(args: &Capacity) -> Result<Exit, RunError> {
    let outcome = search(args);
    if is_url(&args.what) {
        outcome
    } else {
        outcome.map_err(|failure| failure.in_file(Path::new(&args.what)))
    }
}

fn is_url(what: &str) -> bool {
    what.contains("://")
}

fn search(args: &Capacity) -> Result<Exit, RunError> {
    let print = &args.run.print;
    check_answer(print, "a search", "TRIAL")?;
    let folder = if is_url(&args.what) { None } else { Path::new(&args.what).parent() };
    let folder = folder.unwrap_or(Path::new(""));
    let (base, wrong) = if is_url(&args.what) {
        if let Some((key, _)) = args.set.first() {
            let line = format!("--set {key} is of a scenario file; a URL has options of its own");
            return Err(RunError::new(ErrorKind::Usage, line));
        }
        (load::of_capacity(args), ErrorKind::Usage)
    } else {
        (of_file(args, folder)?, ErrorKind::Scenario)
    };
    let of = SearchedVariant { variant: None, repetition: 1, folder, wrong };
    let trials = CapacitySearch::new(base, &args.search.settings()?, &args.run.agents.generators(), of)?
        .only(args.at_least)?;
    let started = clock::wall_nanos() as f64 * 1e-9;
    let whole = directory(args.run.output.as_deref(), trials.name(), started as u64)?;
    let interrupt = interrupt_flag()?;
    let mut console = Console::open(&args.run, trials.name())?;
    let mut session = console.session(&interrupt)?;
    let (summary, trouble) = trials.hunt(args.search.budget.get(), None, &whole, &mut session)?;
    console.page.end_series(&summary.ending);
    answer::show(&summary, print, &whole)?;
    match trouble {
        Err(failure) if !interrupt.load(Relaxed) => Err(failure),
        _ => Ok(answer::explained(&summary)),
    }
}

/// Reads a scenario file, with what the command line says of it.
fn of_file(args: &Capacity, folder: &Path) -> Result<Scenario, RunError> {
    let bad = |words: String| RunError::new(ErrorKind::Usage, words);
    let has_options = args.options.given() != &weir_protocols::Given::default() || args.expect.is_some();
    if has_options || args.of_clients.is_any() {
        return Err(bad(
            "options of clients stand in the scenario file; change one with --set KEY=VALUE".to_owned()
        ));
    }
    let mut variations = Variation::read(Path::new(&args.what)).map_err(|error| match error {
        weir_engine::scenario::ScenarioError::Read { .. } => {
            bad(format!("{error}; give a URL such as rtmp://host/app/stream, or a scenario file"))
        }
        _ => RunError::new(ErrorKind::Scenario, error.to_string()),
    })?;
    let Variation { mut scenario, variant } = variations.swap_remove(0);
    if variant.is_some() || scenario.repeat.is_some_and(|repeat| repeat > 1) {
        let line = "`variants` and `repeat` are of `weir sweep --find capacity`; a search takes a scenario without them";
        return Err(RunError::new(ErrorKind::Scenario, line));
    }
    for (key, value) in &args.set {
        scenario = scenario.with(key, value).map_err(|error| bad(error.to_string()))?;
    }
    scenario.resolve(folder);
    load::add_options(&mut scenario, &args.run);
    Ok(scenario)
}
