//! Runs what is prepared: directory, signals, live view, artefacts, the printed report, the exit code.

use crate::args::{Print, RunOptions};
use crate::exit::{Exit, Failure};
use crate::live::Live;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weir_engine::record;
use weir_engine::run::{Prepared, Watcher, run};
use weir_engine::summary::Summary;

/// Where runs go when nothing is said.
const PARENT: &str = "weir-runs";

/// Runs, writes, prints; says how it ended.
pub(crate) fn conduct(mut prepared: Prepared, options: &RunOptions) -> Result<Exit, Failure> {
    let directory = directory(options.output.as_deref(), &prepared)?;
    prepared.facts.id =
        directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let interrupt = interrupt_flag()?;
    let length = prepared.plan.length + prepared.scenario.drain();
    let mut live = Live::new(length, options.no_tui, options.print.quiet);
    let result = run(prepared, &directory, &interrupt, &mut live as &mut dyn Watcher);
    live.clear();
    let summary = result.map_err(Failure::with(Exit::Internal))?;
    let written = write_artefacts(&summary, &directory);
    print(&summary, &options.print, Some(&directory))?;
    written?;
    Ok(Exit::of(&summary))
}

/// The run's own directory: the one asked for, or a new one.
fn directory(asked: Option<&Path>, prepared: &Prepared) -> Result<PathBuf, Failure> {
    let Some(path) = asked else {
        let at = prepared.facts.started_at_seconds as u64;
        return record::make_directory(Path::new(PARENT), &prepared.scenario.name, at)
            .map_err(Failure::with(Exit::Usage));
    };
    let refuse = |cause: &str| Failure::new(Exit::Usage, format!("{}: {cause}", path.display()));
    std::fs::create_dir_all(path).map_err(|error| refuse(&error.to_string()))?;
    let mut entries = std::fs::read_dir(path).map_err(|error| refuse(&error.to_string()))?;
    if entries.next().is_some() {
        return Err(refuse("is not empty; a run never writes over another: choose a new directory"));
    }
    Ok(path.to_owned())
}

/// A flag that Ctrl-C, SIGTERM or a closed terminal sets. The second signal ends weir at once.
pub(crate) fn interrupt_flag() -> Result<Arc<AtomicBool>, Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register_conditional_shutdown(signal, Exit::Interrupted as i32, flag.clone())
            .and_then(|_| signal_hook::flag::register(signal, flag.clone()))
            .map_err(Failure::with(Exit::Internal))?;
    }
    Ok(flag)
}

/// Writes `summary.json` and a report in every file format beside the run's lines.
pub(crate) fn write_artefacts(summary: &Summary, directory: &Path) -> Result<(), Failure> {
    let mut refused = None;
    for artefact in weir_report::artefacts(summary) {
        if let Err(error) = record::write_whole(&directory.join(artefact.file_name), &artefact.bytes) {
            refused.get_or_insert(error);
        }
    }
    refused.map_or(Ok(()), |error| Err(Failure::new(Exit::Internal, error)))
}

/// Prints the report as asked.
pub(crate) fn print(summary: &Summary, print: &Print, directory: Option<&Path>) -> Result<(), Failure> {
    if let Some(path) = &print.json {
        let mut json = serde_json::to_vec_pretty(summary).map_err(Failure::with(Exit::Internal))?;
        json.push(b'\n');
        if path.as_os_str() == "-" {
            return written(std::io::stdout().lock().write_all(&json));
        }
        std::fs::write(path, json)
            .map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", path.display())))?;
    }
    let stdout = std::io::stdout();
    let style = weir_report::Style {
        width: width(),
        colour: stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        quiet: print.quiet,
        verbose: print.verbose,
        directory: directory.map(Path::to_owned),
    };
    let mut bytes = Vec::new();
    weir_report::write(&print.format, summary, &style, &mut bytes).map_err(Failure::with(Exit::Internal))?;
    written(stdout.lock().write_all(&bytes))
}

/// A reader that has closed the pipe has seen what it wanted.
fn written(result: std::io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::new(Exit::Internal, error)),
        _ => Ok(()),
    }
}

/// Columns of the terminal; `COLUMNS`, then 100, into a pipe.
pub(crate) fn width() -> usize {
    terminal_size::terminal_size()
        .map(|(width, _)| usize::from(width.0))
        .or_else(|| std::env::var("COLUMNS").ok()?.parse().ok())
        .unwrap_or(100)
        .max(20)
}
