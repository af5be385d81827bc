//! `weir run`: a scenario's file, as the command line changes it.

use crate::args::Run;
use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::print::{check_answer, check_print};
use crate::{answer, load, outline, print, run};
use std::path::Path;
use weir_engine::scenario::{Scenario, ScenarioError, Variant, Variation};
use weir_runner::retarget::retarget;
use weir_runner::run_directory::directory;
use weir_runner::series::{Series, repetitions, variations_of};
use weir_runner::stepped::SteppedRun;
use weir_runner::{ErrorKind, RunError, background, prepare, url_lists};
use weir_shard::clock;

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
    let mut console = Console::open(&args.run, &scenario.name)?;
    let (summary, trouble) = run.measure(&mut console.session(&interrupt)?)?;
    console.page.end_run(&summary);
    print::print(&summary, &args.run.print, &place)?;
    trouble.map_or_else(|| Ok(run::explained(&summary)), Err)
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
        let left_out = retarget(&mut scenario, target, !args.run.watch.is_empty());
        left_out.into_iter().filter(|_| !args.run.print.quiet).for_each(print::note);
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
    let started_at_seconds = clock::wall_nanos() as f64 * 1e-9;
    let whole = directory(args.run.output.as_deref(), &first.name, started_at_seconds as u64)?;
    let mut console = Console::open(&args.run, &first.name)?;
    let interrupt = interrupt_flag()?;
    let series = Series { variations, repeat, folder, directory: &whole, started_at_seconds };
    let (summary, trouble) = series.run(&mut console.session(&interrupt)?)?;
    console.page.end_series(&summary.ending);
    answer::show(&summary, print, &whole)?;
    trouble.map_or_else(|| Ok(answer::explained(&summary)), Err)
}
