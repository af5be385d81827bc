//! Runs what is prepared: directory, signals, live view, artefacts, the printed report, the exit code.

use crate::args::RunOptions;
use crate::console::Console;
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::print::{check_json, check_print, note, print};
use weir_engine::run::Prepared;
use weir_engine::scenario::Scenario;
use weir_engine::summary::Summary;
use weir_runner::run_directory::directory;
use weir_runner::{ErrorKind, RunError, prepare};

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
    let mut console = Console::open(options, &prepared.scenario.name)?;
    let (summary, written) = console.session(&interrupt)?.run(prepared, &directory)?;
    console.page.end_run(&summary);
    print(&summary, &options.print, &directory)?;
    written?;
    Ok(summary)
}
