//! `weir run` of a scenario with an experiment: repetition after repetition, and after each the artefacts.

use crate::args::{Print, Run, RunOptions};
use crate::conduct::{ARTEFACTS, check_json, check_print, directory, interrupt_flag, refused, text, written};
use crate::exit::{Exit, Failure};
use crate::ingest::place;
use crate::load::span_or;
use crate::machine::trust;
use crate::mqtt::{credentials_of, first_line, version};
use crate::tls::Asked;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use weir_clients::Qos;
use weir_engine::background::BackgroundSpec;
use weir_engine::experiment::{self, Ending, ExperimentSpec, ExperimentSummary, Facts, Repetition, title};
use weir_engine::record;
use weir_engine::scenario::{Scenario, ScenarioError};
use weir_engine::summary::{RunFacts, VerdictState};
use weir_engine::threshold::Threshold;
use weir_experiment::{Background, Bench, Encoding, Probe, Progress, Saving, Setup, Taking};
use weir_ingest::{Destination, Durability, UnknownDurability};
use weir_observe::Environment;
use weir_record::Framing;
use weir_report::Text;
use weir_shard::clock;

/// Name of the summary in the run directory.
const SUMMARY: &str = "summary.json";

/// What tables' names begin with.
const TABLE: &str = "weir_experiment";

/// Has another consumer take the messages, and this probe ask for them.
pub(crate) fn leave_to(scenario: &mut Scenario, probe: &str) -> Result<(), Failure> {
    let Some(spec) = &mut scenario.experiment else {
        let line = "--probe: the scenario has no `experiment` whose consumer could be another";
        return Err(Failure::new(Exit::Usage, line));
    };
    (spec.save, spec.probe) = (None, Some(probe.to_owned()));
    Ok(())
}

/// Runs an experiment to its end, or to Ctrl-C.
pub(crate) fn experiment(scenario: &Scenario, spec: &ExperimentSpec, args: &Run) -> Result<Exit, Failure> {
    let print = &args.run.print;
    check_print(print)?;
    check_json(print)?;
    scenario.check_experiment().map_err(Failure::with(Exit::Scenario))?;
    let setup = setup(scenario, spec)?;
    let names: Vec<String> = setup.encodings.iter().map(|encoding| encoding.name().to_owned()).collect();
    let thresholds = scenario.asked();
    for threshold in &thresholds {
        experiment::check_threshold(threshold, &names, setup.background.is_some())
            .map_err(Failure::with(Exit::Scenario))?;
    }
    let started = clock::wall_nanos() as f64 * 1e-9;
    let directory = directory(args.run.output.as_deref(), &scenario.name, started as u64)?;
    let shown = scenario.without_secrets();
    let facts = Facts {
        run: RunFacts {
            name: scenario.name.clone(),
            id: directory.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            started_at_seconds: started,
            duration_seconds: 0.0,
            weir_version: env!("CARGO_PKG_VERSION").to_owned(),
            seed: scenario.seed,
            tags: scenario.tags.clone(),
            environment: Environment::read(),
            targets: Vec::new(),
            servers: Vec::new(),
            machines: Vec::new(),
            base_seconds: 0.0,
        },
        spec: shown.experiment.map_or_else(|| spec.clone(), |spec| *spec),
        encodings: names,
        background: setup.background.is_some(),
    };
    let interrupt = interrupt_flag()?;
    let desk = Desk { facts, thresholds, directory: &directory, began: Instant::now() };
    let mut view = View::new(&setup, &args.run);
    let mut repetitions: Vec<Repetition> = Vec::new();
    let bench = Bench::new(&setup);
    let (mut ending, mut fault) = (Ending::Completed, Exit::TargetDied);
    // What cannot be written is better known before the first message is sent.
    desk.write(&desk.summary(&repetitions, Ending::Running))?;
    'all: for number in 1..=setup.repetitions {
        // Each goes first every second time: what the one leaves behind helps or harms both alike.
        let beside = std::iter::once(None).chain(setup.background.as_ref().map(Some));
        let mut order: Vec<_> = beside
            .flat_map(|beside| setup.encodings.iter().map(move |encoding| (*encoding, beside)))
            .collect();
        if number % 2 == 0 {
            order.reverse();
        }
        for (encoding, beside) in order {
            let mut progress = |progress: Progress| view.show(number, encoding, progress);
            match bench.measure(encoding, number, beside, &interrupt, &mut progress) {
                Ok(Some(repetition)) => {
                    view.line(&repetition);
                    repetitions.push(repetition);
                }
                Ok(None) => ending = Ending::Interrupted,
                Err(trouble) => {
                    ending = Ending::Failed(trouble.to_string());
                    if trouble.is_of_scenario {
                        fault = Exit::Scenario;
                    }
                }
            }
            if interrupt.load(Ordering::Relaxed) && ending == Ending::Completed {
                ending = Ending::Interrupted;
            }
            if ending != Ending::Completed {
                break 'all;
            }
            desk.write(&desk.summary(&repetitions, Ending::Running))?;
        }
    }
    view.clear();
    let summary = desk.summary(&repetitions, ending);
    let written = desk.write(&summary);
    show(&summary, print, &directory)?;
    written?;
    if let Ending::Failed(words) = &summary.ending {
        return Err(Failure::new(fault, words.clone()));
    }
    Ok(exit(&summary))
}

/// The summary of a run directory that an experiment has written; `None` if it is another's.
pub(crate) fn read(directory: &Path) -> Option<ExperimentSummary> {
    let bytes = std::fs::read(directory.join(SUMMARY)).ok()?;
    serde_json::from_slice::<ExperimentSummary>(&bytes)
        .ok()
        .filter(|summary| summary.layout == experiment::LAYOUT)
}

/// What a finished experiment comes to.
pub(crate) fn exit(summary: &ExperimentSummary) -> Exit {
    match summary.ending {
        Ending::Interrupted | Ending::Running => Exit::Interrupted,
        Ending::Failed(_) => Exit::TargetDied,
        Ending::Completed if summary.verdict == VerdictState::Invalid => Exit::Invalid,
        Ending::Completed if summary.thresholds.iter().any(|it| !it.passed) => Exit::Thresholds,
        Ending::Completed => Exit::Passed,
    }
}

/// Prints it as asked.
pub(crate) fn show(summary: &ExperimentSummary, print: &Print, directory: &Path) -> Result<(), Failure> {
    let bytes = |format: &str, text: &Text| {
        let mut bytes = Vec::new();
        weir_report::write_experiment(summary, format, text, &mut bytes)
            .map_err(Failure::with(Exit::Internal))?;
        Ok::<_, Failure>(bytes)
    };
    let mut format = print.format.as_str();
    match &print.json {
        Some(path) if path.as_os_str() == "-" => format = "json",
        Some(path) => {
            std::fs::write(path, bytes("json", &text())?).map_err(|error| refused(path, &error))?;
        }
        None => {}
    }
    if print.quiet && format == "text" {
        return Ok(());
    }
    let mut out = bytes(format, &text())?;
    if format == "text" {
        out.extend_from_slice(format!("\nFiles: {}\n", directory.display()).as_bytes());
    }
    written(std::io::stdout().lock().write_all(&out))
}

/// Writes the artefacts, whole.
pub(crate) fn write(summary: &ExperimentSummary, directory: &Path) -> Result<(), Failure> {
    for (name, file) in ARTEFACTS {
        let mut bytes = Vec::new();
        weir_report::write_experiment(summary, name, &Text::default(), &mut bytes)
            .map_err(Failure::with(Exit::Internal))?;
        record::write_whole(&directory.join(file), &bytes).map_err(Failure::with(Exit::Internal))?;
    }
    Ok(())
}

/// What the repetitions are summed up with, and where that goes.
struct Desk<'a> {
    facts: Facts,
    thresholds: Vec<Threshold>,
    directory: &'a Path,
    began: Instant,
}

impl Desk<'_> {
    fn summary(&self, repetitions: &[Repetition], ending: Ending) -> ExperimentSummary {
        let mut facts = self.facts.clone();
        facts.run.duration_seconds = self.began.elapsed().as_secs_f64();
        ExperimentSummary::new(&facts, repetitions, ending, &self.thresholds)
    }

    fn write(&self, summary: &ExperimentSummary) -> Result<(), Failure> {
        write(summary, self.directory)
    }
}

fn setup(scenario: &Scenario, spec: &ExperimentSpec) -> Result<Setup, Failure> {
    let wrong = |line: String| Failure::new(Exit::Scenario, format!("experiment: {line}"));
    let schema = crate::codec::schema(&spec.schema)?;
    let framing: Framing = spec
        .avro_encoding
        .as_deref()
        .map_or(Ok(Framing::Schemaless), str::parse)
        .map_err(|error: weir_record::UnknownFraming| wrong(format!("avro_encoding: {error}")))?;
    let known = |name: &String| match name.as_str() {
        "avro" => Ok(Encoding::Avro(framing)),
        "json" => Ok(Encoding::Json),
        other => Err(wrong(format!("'{other}' is no encoding; write avro or json"))),
    };
    let mut encodings = spec.encodings.iter().map(known).collect::<Result<Vec<_>, _>>()?;
    if encodings.is_empty() {
        encodings = vec![Encoding::Avro(framing), Encoding::Json];
    }
    if encodings.len() > 2 || encodings.len() == 2 && encodings[0] == encodings[1] {
        return Err(wrong("encodings: name each of avro and json once".to_owned()));
    }
    let qos = spec.qos.unwrap_or(1);
    let qos = Qos::from_bits(qos).ok_or_else(|| wrong(format!("'{qos}' is no QoS; write 0, 1 or 2")))?;
    let rate = spec.rate.as_deref().map(weir_metrics::parse_rate).transpose();
    let tls = Asked::by(scenario).client_tls().map_err(Failure::with(Exit::Scenario))?;
    let taking = match (&spec.save, &spec.probe) {
        (Some(save), None) => Taking::Ingest(saving(save, spec).map_err(wrong)?),
        (None, Some(_)) if spec.durability.is_some() => {
            return Err(wrong("durability: what another consumer commits is its own affair".to_owned()));
        }
        (None, Some(probe)) => {
            let trust = trust(scenario.insecure, scenario.cacert.as_deref());
            let password = database_password(spec).map_err(&wrong)?;
            let probe = Probe::parse(probe, &trust, password.as_deref());
            Taking::Probe(Box::new(probe.map_err(|error| wrong(format!("probe: {error}")))?))
        }
        _ => return Err(wrong("say either `save` or `probe`".to_owned())),
    };
    let setup = Setup {
        publish: spec.publish.clone(),
        schema_file: spec.schema.clone(),
        schema,
        encodings,
        repetitions: spec.repetitions.unwrap_or(30).max(1),
        count: spec.count.unwrap_or(5_000).max(1),
        rate: rate.map_err(|error| wrong(format!("rate: {error}")))?,
        version: version(spec.mqtt_version.as_deref())
            .map_err(|line| wrong(format!("mqtt_version: {line}")))?,
        qos,
        window: spec.window.unwrap_or(1_000).max(1),
        taking,
        // On a full wire a lost segment comes again after seconds.
        settle: span_or(
            spec.settle.as_ref(),
            Duration::from_secs(if scenario.background.is_some() { 5 } else { 1 }),
        ),
        timeout: span_or(spec.timeout.as_ref(), Duration::from_secs(30)),
        credentials: credentials_of(spec.user.as_deref(), spec.password_file.as_deref()).map_err(wrong)?,
        tls,
        seed: scenario.seed,
        background: scenario
            .background
            .as_ref()
            .map(background)
            .transpose()
            .map_err(Failure::with(Exit::Scenario))?,
    };
    setup.check().map_err(wrong)?;
    Ok(setup)
}

fn saving(save: &str, spec: &ExperimentSpec) -> Result<Saving, String> {
    let destination =
        place(save, spec.save_password_file.as_deref()).map_err(|line| format!("save: {line}"))?;
    let parquet = matches!(destination, Destination::Parquet(_));
    let durability = spec.durability.as_deref().map_or(Ok(Durability::Full), str::parse);
    let durability = durability.map_err(|error: UnknownDurability| format!("durability: {error}"))?;
    if parquet && durability != Durability::Full {
        return Err(
            "durability: a file of Parquet is on the disk when it has its name; leave it out".to_owned()
        );
    }
    let batch = spec.batch.unwrap_or(if parquet { 50_000 } else { 1_000 }).max(1) as usize;
    let linger = Duration::from_millis(if parquet { 1_000 } else { 50 });
    let most = usize::from(u16::MAX);
    Ok(Saving {
        destination,
        durability,
        table: spec.table.clone().unwrap_or_else(|| TABLE.to_owned()),
        batch,
        linger: span_or(spec.linger.as_ref(), linger),
        receive_window: spec.receive_window.unwrap_or((batch * 4).clamp(100, most) as u16).max(1),
    })
}

fn database_password(spec: &ExperimentSpec) -> Result<Option<String>, String> {
    match &spec.save_password_file {
        Some(path) => first_line(path).map(Some),
        None => Ok(std::env::var("PGPASSWORD").ok()),
    }
}

fn background(spec: &BackgroundSpec) -> Result<Background, ScenarioError> {
    let (to, block) = spec.check()?;
    Ok(Background { to, streams: spec.tcp_streams, both_ways: spec.both_ways, block })
}

/// A bar on a terminal, a line a repetition elsewhere.
struct View {
    bar: Option<ProgressBar>,
    lines: bool,
    repetitions: u32,
    count: u64,
}

impl View {
    fn new(setup: &Setup, options: &RunOptions) -> Self {
        let terminal = std::io::stderr().is_terminal() && !options.no_tui && !options.verbose;
        let bar = (terminal && !options.print.quiet).then(|| {
            let conditions = setup.encodings.len() as u64 * if setup.background.is_some() { 2 } else { 1 };
            let all = u64::from(setup.repetitions) * conditions * setup.count;
            let bar = ProgressBar::with_draw_target(Some(all), ProgressDrawTarget::stderr_with_hz(4));
            let style = ProgressStyle::with_template("{bar:20} {msg}")
                .unwrap_or_else(|_| ProgressStyle::default_bar());
            bar.set_style(style.progress_chars("━╸─"));
            bar
        });
        let lines = bar.is_none() && !options.print.quiet;
        Self { bar, lines, repetitions: setup.repetitions, count: setup.count }
    }

    fn show(&self, number: u32, encoding: Encoding, progress: Progress) {
        if let Some(bar) = &self.bar {
            let title = title(encoding.name());
            bar.set_message(format!(
                "{number} of {} · {title} · {} of {} published, {} saved",
                self.repetitions, progress.published, self.count, progress.settled
            ));
        }
    }

    /// A repetition is complete.
    fn line(&mut self, repetition: &Repetition) {
        if let Some(bar) = &self.bar {
            bar.inc(self.count);
        }
        if self.lines {
            let title = title(&repetition.encoding);
            let lost = match repetition.account.lost {
                0 => String::new(),
                lost => format!(" · {lost} lost"),
            };
            let beside = if repetition.background.is_some() { ", beside background load" } else { "" };
            // A reader that is gone must not end the experiment.
            let _ = writeln!(
                std::io::stderr(),
                "{} of {} · {title}{beside} · {}{lost}",
                repetition.repetition,
                self.repetitions,
                repetition.classic_line()
            );
        }
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
