//! Runs what is prepared: directory, signals, live view, artefacts, the printed report, the exit code.

use crate::agents;
use crate::args::RunOptions;
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::live::Live;
use crate::live_page::LivePage;
use crate::print::{check_json, check_print, note, print, print_progress, write_artefacts};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;
use weir_engine::run::{self, Prepared, Watcher};
use weir_engine::scenario::Scenario;
use weir_engine::summary::Summary;
use weir_runner::prepare;
use weir_runner::run_directory::{directory, name_of};
use weir_runner::{ErrorKind, RunError};

/// Prepares, runs, writes, prints; says how it ended. What is wrong with the scenario ends with `wrong`.
pub(crate) fn start(scenario: Scenario, wrong: ErrorKind, options: &RunOptions) -> Result<Exit, RunError> {
    let prepared = prepare::prepare(scenario, wrong, &options.agents.generators())?;
    Ok(explained(&measure(prepared, options)?))
}

/// The exit code of a run, with one line on stderr on why that is not a pass: whatever was asked to be printed, a person who sees
/// the exit code alone can read there what it means.
pub(crate) fn explained(summary: &Summary) -> Exit {
    said(Exit::of(summary), weir_report::shortfall(summary))
}

/// This exit, with the line on stderr that says why, unless it is a pass.
pub(crate) fn said(exit: Exit, why: Option<String>) -> Exit {
    if let Some(line) = why.filter(|_| exit != Exit::Passed) {
        note(format_args!("weir: {}", line.replace('\u{a0}', " ")));
    }
    exit
}

/// Runs, writes, prints; gives what it came to.
pub(crate) fn measure(prepared: Prepared, options: &RunOptions) -> Result<Summary, RunError> {
    check_print(&options.print)?;
    check_json(&options.print)?;
    let started = prepared.facts.started_at_seconds as u64;
    let directory = directory(options.output.as_deref(), &prepared.scenario.name, started)?;
    let interrupt = interrupt_flag()?;
    let page = LivePage::start(&options.live, &prepared.scenario.name)?;
    let (summary, written) = run_in(prepared, options, &page, &directory, &interrupt)?;
    page.end_run(&summary);
    print(&summary, &options.print, &directory)?;
    written?;
    Ok(summary)
}

/// What a run came to, and whether its artefacts could be written.
pub(crate) type Measured = (Summary, Result<(), RunError>);

/// How long a run will be shown to take.
pub(crate) fn length(prepared: &Prepared) -> Duration {
    prepared.plan.about.unwrap_or(prepared.plan.length) + prepared.scenario.drain()
}

/// Runs in a directory of its own, with the live view that the options ask for, and writes the artefacts there.
///
/// # Errors
/// The run could not be made.
pub(crate) fn run_in(
    prepared: Prepared,
    options: &RunOptions,
    page: &LivePage,
    directory: &Path,
    interrupt: &Arc<AtomicBool>,
) -> Result<Measured, RunError> {
    let gathered = agents::gather(prepared, &options.agents, options.print.quiet, interrupt);
    let prepared = gathered.inspect_err(|_| {
        // There was no run. What has something in it stays.
        let _ = std::fs::remove_dir(directory);
    })?;
    for line in prepared.scenario.too_short(&prepared.plan) {
        print_progress(options, &format!("weir: note: {line}"));
    }
    let mut live = Live::new(length(&prepared), options);
    let measured = run_watched(prepared, page, directory, interrupt, &mut live);
    live.clear();
    measured
}

/// The same, shown to `watcher`.
///
/// # Errors
/// The run could not be made.
pub(crate) fn run_watched(
    mut prepared: Prepared,
    page: &LivePage,
    directory: &Path,
    interrupt: &Arc<AtomicBool>,
    watcher: &mut dyn Watcher,
) -> Result<Measured, RunError> {
    prepared.facts.id = name_of(directory);
    let mut watcher = page.watch(&prepared, watcher);
    let result = run::run(prepared, directory, interrupt, &mut watcher);
    let summary = result.map_err(|error| {
        let exit = match &error {
            run::RunError::Consumer(trouble) if trouble.is_of_scenario => ErrorKind::Scenario,
            run::RunError::Consumer(_) => ErrorKind::TargetDied,
            run::RunError::Interrupted => ErrorKind::Interrupted,
            run::RunError::Record(_) | run::RunError::Thread { .. } => ErrorKind::Internal,
        };
        RunError::new(exit, error.to_string())
    })?;
    page.ran(&summary);
    let written = write_artefacts(&summary, directory);
    Ok((summary, written))
}
