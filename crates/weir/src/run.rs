//! Runs what is prepared: directory, signals, live view, artefacts, the printed report, the exit code.

use crate::args::{Print, RunOptions};
use crate::exit::{Exit, Failure};
use crate::live::Live;
use crate::live_page::LivePage;
use crate::{agents, prepare};
use signal_hook::iterator::Signals;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_engine::record;
use weir_engine::run::{self, Prepared, RunError, Watcher};
use weir_engine::scenario::Scenario;
use weir_engine::summary::{RunFacts, Summary};
use weir_observe::Environment;
use weir_report::{Format, Text};

/// Folder of run directories by default.
const PARENT: &str = "weir-runs";

/// What is known of a run, or of several, of a scenario before it begins.
pub(crate) fn facts(scenario: &Scenario, directory: &Path, started_at_seconds: f64) -> RunFacts {
    RunFacts {
        name: scenario.name.clone(),
        id: directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
        started_at_seconds,
        duration_seconds: 0.0,
        weir_version: env!("CARGO_PKG_VERSION").to_owned(),
        seed: scenario.seed,
        tags: scenario.tags.clone(),
        environment: Environment::read(),
        targets: Vec::new(),
        servers: Vec::new(),
        agents: Vec::new(),
        machines: Vec::new(),
        base_seconds: scenario.base().as_secs_f64(),
    }
}

/// The artefacts of what has no run directory's lines of its own: formats, and the files that they are written to.
pub(crate) const ARTEFACTS: [(&str, &str); 6] = [
    ("json", "summary.json"),
    ("text", "report.txt"),
    ("markdown", "report.md"),
    ("html", "report.html"),
    ("csv", "report.csv"),
    ("junit", "report.xml"),
];

/// Signals nearer to each other than this are one.
const SAME_SIGNAL: Duration = Duration::from_secs(1);

/// Prepares, runs, writes, prints; says how it ended. What is wrong with the scenario ends with `wrong`.
pub(crate) fn start(scenario: Scenario, wrong: Exit, options: &RunOptions) -> Result<Exit, Failure> {
    let prepared = prepare::prepare(scenario, wrong, options.agents.place())?;
    Ok(explained(&measure(prepared, options)?))
}

/// What a run comes to, with one line on stderr on why that is not a pass: whatever was asked to be printed, whoever sees
/// the exit code alone can read there what it means.
pub(crate) fn explained(summary: &Summary) -> Exit {
    said(Exit::of(summary), weir_report::shortfall(summary))
}

/// This exit, with the line on stderr that says why, unless it is a pass.
pub(crate) fn said(exit: Exit, why: Option<String>) -> Exit {
    if let Some(line) = why.filter(|_| exit != Exit::Passed) {
        // A closed terminal shows no error either.
        let _ = writeln!(std::io::stderr(), "weir: {}", line.replace('\u{a0}', " "));
    }
    exit
}

/// Runs, writes, prints; gives what it came to.
pub(crate) fn measure(prepared: Prepared, options: &RunOptions) -> Result<Summary, Failure> {
    check_print(&options.print)?;
    check_json(&options.print)?;
    let started = prepared.facts.started_at_seconds as u64;
    let directory = directory(options.output.as_deref(), &prepared.scenario.name, started)?;
    let interrupt = interrupt_flag()?;
    let page = LivePage::start(options.live, &prepared.scenario.name)?;
    let (summary, written) = run_in(prepared, options, &page, &directory, &interrupt)?;
    page.end_run(&summary);
    print(&summary, &options.print, &directory)?;
    written?;
    Ok(summary)
}

/// What a run came to, and whether its artefacts could be written.
pub(crate) type Measured = (Summary, Result<(), Failure>);

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
) -> Result<Measured, Failure> {
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
) -> Result<Measured, Failure> {
    prepared.facts.id =
        directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut watcher = page.watch(&prepared, watcher);
    let result = run::run(prepared, directory, interrupt, &mut watcher);
    let summary = result.map_err(|error| {
        let exit = match &error {
            RunError::Consumer(trouble) if trouble.is_of_scenario => Exit::Scenario,
            RunError::Consumer(_) => Exit::TargetDied,
            RunError::Interrupted => Exit::Interrupted,
            RunError::Record(_) | RunError::Thread { .. } => Exit::Internal,
        };
        Failure::new(exit, error.to_string())
    })?;
    page.ran(&summary);
    let written = write_artefacts(&summary, directory);
    Ok((summary, written))
}

/// A file for JSON that cannot be written is better known before the run.
pub(crate) fn check_json(print: &Print) -> Result<(), Failure> {
    if let Some(path) = print.json.as_deref().filter(|path| path.as_os_str() != "-") {
        let file = std::fs::File::options().append(true).create(true).open(path);
        file.map_err(|error| refused(path, &error))?;
    }
    Ok(())
}

/// Two things cannot both be all that stdout holds.
pub(crate) fn check_print(print: &Print) -> Result<(), Failure> {
    let stdout = print.json.as_deref().is_some_and(|path| path.as_os_str() == "-");
    if stdout && !["text", "json"].contains(&print.format.as_str()) {
        let line = format!(
            "--json - and --format {} both write to stdout; give --json a file, or leave one out",
            print.format
        );
        return Err(Failure::new(Exit::Usage, line));
    }
    Ok(())
}

/// The run's own directory: the one asked for, or a new one.
pub(crate) fn directory(asked: Option<&Path>, name: &str, at: u64) -> Result<PathBuf, Failure> {
    let Some(path) = asked else {
        return record::make_directory(Path::new(PARENT), name, at).map_err(Failure::with(Exit::Usage));
    };
    let refuse = |cause: &str| Failure::new(Exit::Usage, format!("{}: {cause}", path.display()));
    record::make_private(path).map_err(Failure::with(Exit::Usage))?;
    let mut entries = std::fs::read_dir(path).map_err(|error| refuse(&error.to_string()))?;
    if entries.next().is_some() {
        return Err(refuse("is not empty; a run never writes over another: choose a new directory"));
    }
    Ok(path.to_owned())
}

/// A flag that Ctrl-C, SIGTERM or a closed terminal sets. A second signal ends weir at once, unless it follows so soon
/// that it is the same one: a shell or `timeout` may send it to weir and to weir's group.
pub(crate) fn interrupt_flag() -> Result<Arc<AtomicBool>, Failure> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
    // A file that may grow no more is an error of its write, as on a full disk, and not the end of weir.
    signal_hook::flag::register(SIGXFSZ, Arc::default()).map_err(Failure::with(Exit::Internal))?;
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(Failure::with(Exit::Internal))?;
    let flag = Arc::new(AtomicBool::new(false));
    let interrupt = flag.clone();
    let listen = move || {
        let mut asked: Option<Instant> = None;
        for _ in signals.forever() {
            let since = asked.get_or_insert_with(Instant::now).elapsed();
            if interrupt.swap(true, Ordering::SeqCst) && since >= SAME_SIGNAL {
                crate::steps::kill_all();
                signal_hook::low_level::exit(Exit::Interrupted as i32);
            }
        }
    };
    let thread = std::thread::Builder::new().name("weir-signals".to_owned()).spawn(listen);
    thread.map_err(Failure::with(Exit::Internal))?;
    Ok(flag)
}

/// Writes the summary in every format beside the run's lines: `summary.json`, `report.html` and so on.
pub(crate) fn write_artefacts(summary: &Summary, directory: &Path) -> Result<(), Failure> {
    for name in weir_report::FORMATS {
        let Some(format) = weir_report::by_name(name) else { continue };
        let mut bytes = Vec::new();
        format.write(summary, &mut bytes).map_err(Failure::with(Exit::Internal))?;
        let stem = match name {
            "json" => "summary",
            "clients" => "clients",
            _ => "report",
        };
        let path = directory.join(format!("{stem}.{}", format.extension()));
        record::write_whole(&path, &bytes).map_err(Failure::with(Exit::Internal))?;
    }
    Ok(())
}

/// Prints the report as asked.
pub(crate) fn print(summary: &Summary, print: &Print, directory: &Path) -> Result<(), Failure> {
    let mut format = print.format.as_str();
    if let Some(path) = &print.json {
        if path.as_os_str() == "-" {
            format = "json";
        } else {
            let mut bytes = Vec::new();
            weir_report::Json.write(summary, &mut bytes).map_err(Failure::with(Exit::Internal))?;
            std::fs::write(path, &bytes)
                .map_err(|error| Failure::new(Exit::Internal, format!("{}: {error}", path.display())))?;
        }
    }
    if print.quiet && format == "text" {
        return Ok(());
    }
    let stdout = std::io::stdout();
    let format = match format {
        "text" => Box::new(Text { directory: Some(directory.display().to_string()), ..text() }),
        name => weir_report::by_name(name)
            .ok_or_else(|| Failure::new(Exit::Usage, format!("there is no format '{name}'")))?,
    };
    let mut bytes = Vec::new();
    format.write(summary, &mut bytes).map_err(Failure::with(Exit::Internal))?;
    written(stdout.lock().write_all(&bytes))
}

/// Writes what is not a single run's in the format of a name, as text in a manner.
pub(crate) type WriteAs<'a> = &'a dyn Fn(&str, &Text, &mut dyn Write) -> std::io::Result<()>;

/// Prints what is not a single run's as asked.
pub(crate) fn show(print: &Print, directory: &Path, write: WriteAs<'_>) -> Result<(), Failure> {
    let asked = Answer { format: &print.format, json: print.json.as_deref(), quiet: print.quiet };
    asked.print(Some(directory), write)
}

/// How the answer to a question is printed.
pub(crate) struct Answer<'a> {
    /// What goes to stdout.
    pub(crate) format: &'a str,
    /// Where it goes as JSON as well; `-` for stdout, instead of the text.
    pub(crate) json: Option<&'a Path>,
    /// Whether text is left out.
    pub(crate) quiet: bool,
}

impl Answer<'_> {
    /// Prints it; below a text stands the directory of its files, if it has one.
    pub(crate) fn print(&self, directory: Option<&Path>, write: WriteAs<'_>) -> Result<(), Failure> {
        let bytes = |format: &str| {
            let mut bytes = Vec::new();
            write(format, &text(), &mut bytes).map_err(Failure::with(Exit::Internal))?;
            Ok::<_, Failure>(bytes)
        };
        let mut format = self.format;
        match self.json {
            Some(path) if path.as_os_str() == "-" => format = "json",
            Some(path) => std::fs::write(path, bytes("json")?).map_err(|error| refused(path, &error))?,
            None => {}
        }
        if self.quiet && format == "text" {
            return Ok(());
        }
        let mut out = bytes(format)?;
        if let Some(directory) = directory.filter(|_| format == "text") {
            out.extend_from_slice(format!("\nFiles: {}\n", directory.display()).as_bytes());
        }
        written(std::io::stdout().lock().write_all(&out))
    }
}

/// Writes the artefacts of what is not a single run's, whole.
pub(crate) fn write(directory: &Path, write: WriteAs<'_>) -> Result<(), Failure> {
    for (name, file) in ARTEFACTS {
        let mut bytes = Vec::new();
        write(name, &Text::default(), &mut bytes).map_err(Failure::with(Exit::Internal))?;
        record::write_whole(&directory.join(file), &bytes).map_err(Failure::with(Exit::Internal))?;
    }
    Ok(())
}

/// Text as it fits stdout.
pub(crate) fn text() -> Text {
    Text {
        width: width(),
        colour: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none(),
        directory: None,
    }
}

pub(crate) fn refused(path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(Exit::Usage, format!("{}: {error}", path.display()))
}

/// Prints a line on stderr while a series or a search goes on, unless `--quiet` is given.
pub(crate) fn print_progress(options: &RunOptions, line: &str) {
    if !options.print.quiet {
        // A closed terminal shows no error either.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

/// A reader that has closed the pipe has seen what it wanted.
pub(crate) fn written(result: std::io::Result<()>) -> Result<(), Failure> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Failure::new(Exit::Internal, error.to_string()))
        }
        _ => Ok(()),
    }
}

/// Columns of the terminal; `COLUMNS`, then 100, into a pipe.
fn width() -> u16 {
    terminal_size::terminal_size()
        .map(|(width, _)| width.0)
        .or_else(|| std::env::var("COLUMNS").ok()?.parse().ok())
        .unwrap_or(100)
        .max(20)
}
