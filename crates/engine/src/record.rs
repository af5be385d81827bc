//! The run directory: append-only, and worth reading after a crash.
//!
//! `run.json` first, then a line or more a second in `intervals.ndjson`, `histograms.hlog`,
//! `observe.ndjson` and `events.ndjson`; of a long run fewer than one a second. `summary.json` and the
//! reports come last, under a temporary name that is renamed.

mod client_lines;
mod latest;
mod open_block;
mod thinning;
mod together;

use crate::aggregator::Aggregator;
use crate::date::Date;
use crate::event::EventLine;
use crate::facts::WorkloadFacts;
use crate::plan::{Plan, Schedule, Segment};
use crate::scenario::Scenario;
use crate::summary::RunFacts;
use client_lines::ClientLines;
use open_block::OpenBlock;
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use thinning::Thinning;
use together::Together;
use weir_metrics::{Histogram, Interval, IntervalKey, Schema};
use weir_observe::Sample;

use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};

pub(crate) const RUN: &str = "run.json";
pub(crate) const INTERVALS: &str = "intervals.ndjson";
pub(crate) const HISTOGRAMS: &str = "histograms.hlog";
pub(crate) const OBSERVATIONS: &str = "observe.ndjson";
pub(crate) const EVENTS: &str = "events.ndjson";
pub(crate) use client_lines::{LEFT_OUT, LeftOut};

/// Longest time that is looked back over, in seconds: a year.
const LONGEST_BASE_SECONDS: f64 = 366.0 * 86_400.0;
/// Latest start, in seconds since the Unix epoch: the end of the year 9999, the last that RFC 3339 writes.
const LATEST_START_SECONDS: f64 = 253_402_300_799.0;
/// Significant digits of the distributions that weir writes.
const DIGITS: u8 = 3;

/// Addresses, command lines and what servers sent are for the user alone.
const PRIVATE_DIRECTORY: u32 = 0o700;
const PRIVATE_FILE: u32 = 0o600;

/// Seconds after a plan's end in which a run may still be: its drain, and what a machine that stands still makes of it.
const LONGEST_AFTER: u64 = 86_400;
/// The last second that a run can have; one can be added to it.
const LAST_SECOND: u64 = u32::MAX as u64 - 1;
/// Clients that the plan of a run can start: 2 kB each are more memory than most machines have.
const MOST_CLIENTS: u64 = 20_000_000;

/// `run.json`: what is known before the first second.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunHead {
    /// What was run, and where.
    pub run: RunFacts,
    /// Monotonic time of second 0.
    pub origin_ns: u64,
    /// What was asked for.
    pub scenario: Scenario,
    /// What is known of each workload.
    pub workloads: Vec<WorkloadFacts>,
    /// Which part of the plan this one made, if it was an agent among several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub segment: Option<Segment>,
}

/// A run directory that cannot be made, written or read.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The directory is another's.
    #[error(
        "{} is no run directory: there is no run.json in it; give one that a run has written, such as weir-runs/NAME-TIME",
        .0.display()
    )]
    NoRun(PathBuf),
    /// The system refused.
    #[error("{path}: {source}")]
    Io {
        /// Which file.
        path: PathBuf,
        /// The system's words.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("{path}:{line}: {text}; this is not a run directory of weir, or it was changed")]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong.
        text: String,
    },
}

fn io_error(path: &Path) -> impl Fn(io::Error) -> RecordError + '_ {
    |source| RecordError::Io { path: path.to_owned(), source }
}

/// Makes a directory that only this user can look into, and the directories above it as they usually are.
///
/// # Errors
/// The system's, with the path.
pub fn make_private(path: &Path) -> Result<(), RecordError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(io_error(parent))?;
    }
    match DirBuilder::new().mode(PRIVATE_DIRECTORY).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        made => made.map_err(io_error(path)),
    }
}

/// Makes a new directory `parent/name-…` for a run that starts `at_seconds` after the Unix epoch.
///
/// # Errors
/// The system's, with the path.
pub fn make_directory(parent: &Path, name: &str, at_seconds: u64) -> Result<PathBuf, RecordError> {
    fs::create_dir_all(parent).map_err(io_error(parent))?;
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' })
        .take(40)
        .collect();
    for attempt in 0..1_000 {
        let suffix = if attempt == 0 { String::new() } else { format!("-{attempt}") };
        let path = parent.join(format!("{plain}-{}{suffix}", Date::of_unix(at_seconds).compact()));
        match DirBuilder::new().mode(PRIVATE_DIRECTORY).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(RecordError::Io { path, source }),
        }
    }
    let source = io::Error::new(io::ErrorKind::AlreadyExists, "a thousand runs of this second exist already");
    Err(RecordError::Io { path: parent.to_owned(), source })
}

/// Writes `bytes` to `path` under a temporary name first, so that a reader never sees half of it. What stands there
/// under the temporary name, a link of another user's or the rest of a write that was cut short, is not written to.
///
/// # Errors
/// The system's, with the path.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let temporary = path.with_extension("part");
    let write = || {
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        // A new file follows no link (open(2), O_EXCL).
        let mut file = options.write(true).create_new(true).mode(PRIVATE_FILE).open(&temporary)?;
        file.write_all(bytes)
    };
    write().and_then(|()| fs::rename(&temporary, path)).map_err(|source| {
        // Half of a file is of no use, and takes what room is left.
        let _ = fs::remove_file(&temporary);
        RecordError::Io { path: path.to_owned(), source }
    })
}

/// Appends to a run directory.
pub struct RecordWriter {
    intervals: Appender,
    histograms: Appender,
    observations: Appender,
    events: Appender,
    serializer: V2DeflateSerializer,
    origin_ns: u64,
    /// The block of seconds that is not over, and lines of these seconds, which are there to be read if it is never written.
    block: OpenBlock,
    latest_lines: Option<LatestLines>,
    clients: ClientLines,
    directory: PathBuf,
    thinning: Thinning,
    /// The latest sample, if it was left out: of the end of a run it is written all the same.
    latest: Option<Sample>,
}

#[derive(Debug)]
struct LatestLines {
    intervals: Appender,
    histograms: Appender,
}

#[derive(Debug)]
struct Appender {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Appender {
    fn open(directory: &Path, name: &str) -> Result<Self, RecordError> {
        let path = directory.join(name);
        let mut options = OpenOptions::new();
        let file =
            options.create(true).append(true).mode(PRIVATE_FILE).open(&path).map_err(io_error(&path))?;
        Ok(Self { path, file: BufWriter::new(file) })
    }

    fn line(&mut self, text: &str) -> Result<(), RecordError> {
        writeln!(self.file, "{text}").map_err(io_error(&self.path))
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        self.file.flush().map_err(io_error(&self.path))
    }

    /// Appends the distributions of an interval.
    fn distributions(
        &mut self,
        serializer: &mut V2DeflateSerializer,
        agent: Option<u16>,
        interval: &Interval,
    ) -> Result<(), RecordError> {
        write_histograms(&mut self.file, serializer, agent, interval).map_err(io_error(&self.path))
    }

    /// Takes all lines out of the file. What is appended next stands at its beginning.
    fn empty(&mut self) -> Result<(), RecordError> {
        self.flush()?;
        self.file.get_ref().set_len(0).map_err(io_error(&self.path))
    }
}

impl LatestLines {
    fn open(directory: &Path) -> Result<Self, RecordError> {
        let open = |name| Appender::open(directory, name);
        Ok(Self { intervals: open(latest::LATEST_INTERVALS)?, histograms: open(latest::LATEST_HISTOGRAMS)? })
    }
}

impl RecordWriter {
    /// Writes `run.json` and opens the rest.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn create(directory: &Path, head: &RunHead) -> Result<Self, RecordError> {
        let (edges, all_edges) = head
            .scenario
            .plan()
            .map_or_else(|_| Default::default(), |plan| (plan.window_edges(), plan.edges()));
        let json = serde_json::to_vec_pretty(head).expect("a run's head is JSON");
        write_whole(&directory.join(RUN), &json)?;
        Ok(Self {
            intervals: Appender::open(directory, INTERVALS)?,
            histograms: Appender::open(directory, HISTOGRAMS)?,
            observations: Appender::open(directory, OBSERVATIONS)?,
            events: Appender::open(directory, EVENTS)?,
            serializer: V2DeflateSerializer::new(),
            origin_ns: head.origin_ns,
            block: OpenBlock::new(all_edges),
            latest_lines: None,
            clients: ClientLines::default(),
            directory: directory.to_owned(),
            thinning: Thinning::new(edges),
            latest: None,
        })
    }

    /// Appends one workload's second, or keeps it until those are over that are one line with it.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn interval(&mut self, interval: &Interval) -> Result<(), RecordError> {
        let second = interval.key.second;
        if self.block.is_over_with(second) {
            let block = self.block.take();
            self.end_block(&block)?;
        }
        if open_block::has_own_lines(second) {
            return self.append(None, interval);
        }
        self.block.add(interval);
        if self.latest_lines.is_none() {
            self.latest_lines = Some(LatestLines::open(&self.directory)?);
        }
        let Some(LatestLines { intervals, histograms }) = &mut self.latest_lines else { return Ok(()) };
        intervals.line(&interval.to_line())?;
        histograms.distributions(&mut self.serializer, None, interval)
    }

    /// Appends what one agent counted in a second of one workload, where seconds have lines of their own.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn interval_of(&mut self, agent: u16, interval: &Interval) -> Result<(), RecordError> {
        let is_written = open_block::has_own_lines(interval.key.second);
        if is_written { self.append(Some(agent), interval) } else { Ok(()) }
    }

    /// Appends what all agents counted in a second of one workload, where each agent has no line of its own.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn interval_of_all(&mut self, interval: &Interval) -> Result<(), RecordError> {
        let is_written = open_block::has_own_lines(interval.key.second);
        if is_written { Ok(()) } else { self.interval(interval) }
    }

    fn append(&mut self, agent: Option<u16>, interval: &Interval) -> Result<(), RecordError> {
        self.intervals.line(&interval.to_line_of(agent))?;
        self.histograms.distributions(&mut self.serializer, agent, interval)
    }

    /// Appends the block of seconds that is over, and only then takes its seconds out of the lines of the latest ones: whenever
    /// a run is cut short, each second is in one or the other.
    fn end_block(&mut self, block: &[Interval]) -> Result<(), RecordError> {
        for interval in block {
            self.append(None, interval)?;
        }
        self.histograms.flush()?;
        self.intervals.flush()?;
        let lines = self.latest_lines.iter_mut();
        lines.flat_map(|it| [&mut it.intervals, &mut it.histograms]).try_for_each(Appender::empty)
    }

    /// Appends one observation, or leaves it out where a long run has enough of them.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn sample(&mut self, sample: &Sample) -> Result<(), RecordError> {
        let since = i128::from(sample.at_ns) - i128::from(self.origin_ns);
        let second = i64::try_from(since.div_euclid(1_000_000_000)).unwrap_or(i64::MAX);
        let mut sample = sample.clone();
        if let Some(left_out) = self.latest.take() {
            sample.take_over(left_out);
        }
        // Points of other machines are in one sample only.
        if self.thinning.takes(second) || sample.machines.iter().any(|it| !it.is_empty()) {
            return self.observe(&sample);
        }
        self.latest = Some(sample);
        Ok(())
    }

    fn observe(&mut self, sample: &Sample) -> Result<(), RecordError> {
        self.observations.line(&serde_json::to_string(sample).expect("a sample is JSON"))
    }

    /// Appends what was kept back, at the end of a run, and hands all lines to the system.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn finish(&mut self) -> Result<(), RecordError> {
        if let Some(latest) = self.latest.take() {
            self.observe(&latest)?;
        }
        let rest = self.block.take_rest();
        self.end_block(&rest)?;
        if let Some(LatestLines { intervals, histograms }) = self.latest_lines.take() {
            for Appender { path, .. } in [intervals, histograms] {
                fs::remove_file(&path).map_err(io_error(&path))?;
            }
        }
        self.flush()
    }

    /// Appends one event, or adds what it says to the sums over clients without a line.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn event(&mut self, event: &EventLine) -> Result<(), RecordError> {
        if let EventLine::Stopped { at_seconds } = event {
            self.block.cut(*at_seconds as u32);
        }
        let Some(line) = self.clients.line(event) else { return Ok(()) };
        self.events.line(&serde_json::to_string(&line).expect("an event is JSON"))
    }

    /// Hands all lines to the system, and writes the sums over clients without a line.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        let lines = self.latest_lines.iter_mut().flat_map(|it| [&mut it.intervals, &mut it.histograms]);
        [&mut self.intervals, &mut self.histograms, &mut self.observations, &mut self.events]
            .into_iter()
            .chain(lines)
            .try_for_each(Appender::flush)?;
        self.clients.changed().map_or(Ok(()), |sums| {
            let json = serde_json::to_vec(sums).expect("sums are JSON");
            write_whole(&self.directory.join(LEFT_OUT), &json)
        })
    }
}

/// Writes the distributions of one workload's interval as lines of an interval log of HdrHistogram.
pub(crate) fn write_histograms(
    out: &mut impl Write,
    serializer: &mut V2DeflateSerializer,
    agent: Option<u16>,
    interval: &Interval,
) -> io::Result<()> {
    let start = Duration::from_secs(u64::from(interval.key.second));
    let length = Duration::from_secs(interval.seconds().into());
    let mut writer = IntervalLogWriterBuilder::new().begin_log_with(out, serializer)?;
    let IntervalKey { workload, server, .. } = interval.key;
    let server = server.map_or_else(String::new, |server| format!(".{server}"));
    let agent = agent.map_or_else(String::new, |agent| format!("@{agent}"));
    for (name, histogram) in interval.histograms() {
        let tag = format!("{workload}{server}{agent}/{name}");
        writer
            .write_histogram(histogram, start, length, Tag::new(&tag))
            .map_err(|error| io::Error::other(error.to_string()))?;
    }
    Ok(())
}

/// Reads a run directory back into an aggregator. `schema_of` gives the figures of a protocol.
///
/// A last line that a crash cut short is left out.
///
/// # Errors
/// A file that is missing or was changed, with path and line.
pub fn read(
    directory: &Path,
    schema_of: impl Fn(&str) -> Option<Schema>,
) -> Result<(RunHead, Aggregator), RecordError> {
    read_files(directory, schema_of, |path| fs::read(path))
}

/// The same, with the contents of each file from `file`.
pub(crate) fn read_files(
    directory: &Path,
    schema_of: impl Fn(&str) -> Option<Schema>,
    file: impl Fn(&Path) -> io::Result<Vec<u8>>,
) -> Result<(RunHead, Aggregator), RecordError> {
    let contents = |name: &str| {
        let path = directory.join(name);
        file(&path).map(|bytes| (path.clone(), bytes)).map_err(io_error(&path))
    };
    let path = directory.join(RUN);
    let text = file(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound if directory.is_dir() => RecordError::NoRun(directory.to_owned()),
        _ => RecordError::Io { path: path.clone(), source },
    })?;
    let malformed = |text: String| RecordError::Malformed { path: path.clone(), line: 1, text };
    let head: RunHead = serde_json::from_slice(&text).map_err(|error| malformed(error.to_string()))?;
    check_head(&head).map_err(malformed)?;
    let plan = head.scenario.plan().map_err(|error| malformed(error.to_string()))?;
    let plan = head.segment.as_ref().map_or_else(|| plan.clone(), |segment| plan.part(segment));
    let end = last_second(&plan);
    let facts: Vec<(WorkloadFacts, Schema)> = head
        .workloads
        .iter()
        .map(|facts| {
            let schema = schema_of(&facts.protocol)
                .ok_or_else(|| malformed(format!("this weir does not know protocol '{}'", facts.protocol)))?;
            Ok((facts.clone(), schema))
        })
        .collect::<Result<_, RecordError>>()?;
    let schemas: Vec<Schema> = facts.iter().map(|(_, schema)| *schema).collect();
    let mut aggregator = Aggregator::new(plan, facts, head.origin_ns);
    // Before the intervals: where the run was stopped, its windows end.
    each_line(contents(EVENTS)?, |line| {
        aggregator.event(&serde_json::from_str(line).map_err(|error| error.to_string())?);
        Ok(())
    })?;
    for (workload, sums) in left_out(directory, &file)? {
        aggregator.left_out(workload, &sums);
    }
    let [intervals, log] = intervals_of(directory, &file)?;
    let mut histograms = read_histograms(&directory.join(HISTOGRAMS), &log)?;
    // What several agents counted in one second stands near to each other, as it came, and is one interval of the run.
    let mut together = Together::default();
    each_line((directory.join(INTERVALS), intervals), |line| {
        let (agent, interval) = read_interval(line, &schemas, end, &mut histograms)?;
        let complete = match agent {
            Some(agent) => together.push(agent, interval),
            // It is of all of them, as are those behind it.
            None => together.before(interval.key.second).into_iter().chain([interval]).collect(),
        };
        complete.iter().for_each(|interval| aggregator.interval(interval));
        Ok(())
    })?;
    together.rest().iter().for_each(|interval| aggregator.interval(interval));
    each_line(contents(OBSERVATIONS)?, |line| {
        let sample: Sample = serde_json::from_str(line).map_err(|error| error.to_string())?;
        check_clock(sample.at_ns)?;
        aggregator.sample(sample);
        Ok(())
    })?;
    Ok((head, aggregator))
}

/// `intervals.ndjson` and `histograms.hlog` of a run directory, with what a run that was cut short had not written there.
pub(crate) fn intervals_of(
    directory: &Path,
    file: impl Fn(&Path) -> io::Result<Vec<u8>>,
) -> Result<[Vec<u8>; 2], RecordError> {
    latest::complete(|name| {
        let path = directory.join(name);
        file(&path).map_err(|source| (path, source))
    })
    .map_err(|(path, source)| RecordError::Io { path, source })
}

/// The sums over clients of a run directory that have no line; none of most runs.
pub(crate) fn left_out(
    directory: &Path,
    file: impl Fn(&Path) -> io::Result<Vec<u8>>,
) -> Result<LeftOut, RecordError> {
    let path = directory.join(LEFT_OUT);
    let bytes = match file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LeftOut::new()),
        read => read.map_err(io_error(&path))?,
    };
    if bytes.is_empty() {
        return Ok(LeftOut::new());
    }
    serde_json::from_slice(&bytes).map_err(|error| RecordError::Malformed {
        line: error.line(),
        text: error.to_string(),
        path,
    })
}

/// The last second that a run of this plan can have.
pub(crate) fn last_second(plan: &Plan) -> u64 {
    plan.length.as_secs().saturating_add(LONGEST_AFTER).min(LAST_SECOND)
}

/// Refuses what no run that was begun says of itself.
fn check_head(head: &RunHead) -> Result<(), String> {
    check_clock(head.origin_ns)?;
    let spans = head.run.machines.iter().map(|facts| facts.step_seconds).chain([head.run.base_seconds]);
    if !(0.0..=LATEST_START_SECONDS).contains(&head.run.started_at_seconds)
        || !spans.into_iter().all(|seconds| (0.0..=LONGEST_BASE_SECONDS).contains(&seconds))
    {
        return Err("no run began at such a time".to_owned());
    }
    let schedules = head.scenario.schedules().map_err(|error| error.to_string())?;
    let starts = |schedule: &Schedule| {
        let clients = schedule.stages.iter().map(|stage| u64::from(stage.clients));
        let before = std::iter::once(0).chain(clients.clone());
        clients.zip(before).map(|(clients, before)| clients.saturating_sub(before)).sum::<u64>()
    };
    let clients: u64 = schedules.iter().map(starts).sum();
    if clients > MOST_CLIENTS { Err(format!("it plans {clients} clients")) } else { Ok(()) }
}

/// A time since the machine was started that leaves room for that of a run.
fn check_clock(at_ns: u64) -> Result<(), String> {
    if at_ns > u64::MAX / 2 { Err(format!("{at_ns} ns is no monotonic time")) } else { Ok(()) }
}

/// Calls `take` with every whole line.
fn each_line(
    (path, bytes): (PathBuf, Vec<u8>),
    mut take: impl FnMut(&str) -> Result<(), String>,
) -> Result<(), RecordError> {
    let text = String::from_utf8(bytes)
        .map_err(|error| io_error(&path)(io::Error::new(io::ErrorKind::InvalidData, error)))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for (number, line) in whole.lines().enumerate() {
        take(line).map_err(|text| RecordError::Malformed { path: path.clone(), line: number + 1, text })?;
    }
    Ok(())
}

/// Distributions by whose they are, and when.
pub(crate) type Histograms =
    std::collections::HashMap<(Option<u16>, IntervalKey), Vec<(String, Histogram<u64>)>>;

/// Reads one workload's second of figures back, with its distributions, which are taken out of `histograms`, and the agent whose it is.
pub(crate) fn read_interval(
    line: &str,
    schemas: &[Schema],
    end: u64,
    histograms: &mut Histograms,
) -> Result<(Option<u16>, Interval), String> {
    let (agent, mut interval) =
        Interval::from_line_of(line, |workload| schemas.get(usize::from(workload)).copied())
            .map_err(|error| error.to_string())?;
    let last = interval.end() - 1;
    if u64::from(last) > end {
        return Err(format!("second {last} is long after the plan's end"));
    }
    for (name, histogram) in histograms.remove(&(agent, interval.key)).into_iter().flatten() {
        interval.restore(&name, histogram);
    }
    Ok((agent, interval))
}

pub(crate) fn read_histograms(path: &Path, bytes: &[u8]) -> Result<Histograms, RecordError> {
    use base64::Engine as _;
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let mut deserializer = Deserializer::new();
    let mut all = Histograms::new();
    for (number, entry) in IntervalLogIterator::new(&bytes[..whole]).enumerate() {
        let malformed =
            |text: String| RecordError::Malformed { path: path.to_owned(), line: number + 1, text };
        let LogEntry::Interval(interval) = entry.map_err(|error| malformed(format!("{error:?}")))? else {
            continue;
        };
        let tag = interval.tag().map(|tag| tag.as_str().to_owned()).unwrap_or_default();
        let number = |text: Option<&str>| text.map(str::parse).transpose().ok();
        let whose = tag.split_once('/').and_then(|(whose, name)| {
            let (whose, agent) = split(whose, '@');
            let (workload, server) = split(whose, '.');
            Some((number(Some(workload))??, number(server)?, number(agent)?, name))
        });
        let Some((workload, server, agent, name)) = whose else {
            return Err(malformed(format!("tag '{tag}' is not workload/figure")));
        };
        let encoded = base64::engine::general_purpose::STANDARD
            .decode(interval.encoded_histogram())
            .map_err(|error| malformed(error.to_string()))?;
        let mut histogram: Histogram<u64> = deserializer
            .deserialize(&mut encoded.as_slice())
            .map_err(|error| malformed(error.to_string()))?;
        // Those of other precision are not added to weir's own, and may take a hundred times the memory.
        if histogram.sigfig() != DIGITS {
            return Err(malformed(format!("a distribution of {} digits", histogram.sigfig())));
        }
        histogram.auto(true);
        let second = interval.start_timestamp().as_secs() as u32;
        let key = IntervalKey { second, workload, server };
        all.entry((agent, key)).or_default().push((name.to_owned(), histogram));
    }
    Ok(all)
}

/// What stands before the sign, and behind it if it is there.
fn split(text: &str, sign: char) -> (&str, Option<&str>) {
    text.split_once(sign).map_or((text, None), |(before, behind)| (before, Some(behind)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_run_writes_is_for_its_user_alone_and_goes_through_no_link() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        let parent = tempfile::tempdir().unwrap();
        let run = make_directory(parent.path(), "a", 0).unwrap();
        let asked = parent.path().join("b/c");
        make_private(&asked).unwrap();
        make_private(&asked).unwrap();
        assert_eq!((mode(&run), mode(&asked)), (0o700, 0o700));
        let (other, report) = (parent.path().join("other"), run.join("report.txt"));
        fs::write(&other, "theirs").unwrap();
        symlink(&other, run.join("report.part")).unwrap();
        write_whole(&report, b"ours").unwrap();
        assert_eq!(
            (fs::read(&other).unwrap(), fs::read(&report).unwrap()),
            (b"theirs".into(), b"ours".into())
        );
        Appender::open(&run, EVENTS).unwrap();
        assert_eq!((mode(&report), mode(&run.join(EVENTS))), (0o600, 0o600));
        assert!(fs::symlink_metadata(run.join("report.part")).is_err());
    }

    /// What is said of a run directory with this `run.json` and these distributions.
    fn said(head: &str, histograms: &[u8]) -> Option<String> {
        let file = |path: &Path| {
            let (is_head, is_log) = (path.ends_with(RUN), path.ends_with(HISTOGRAMS));
            Ok(if is_head {
                head.as_bytes().to_vec()
            } else {
                Vec::from(if is_log { histograms } else { b"" })
            })
        };
        read_files(Path::new("run"), weir_protocols::schema_of, file).err().map(|error| error.to_string())
    }

    #[test]
    fn a_run_that_weir_cannot_have_written_is_refused() {
        let head = include_str!("../../../fuzz/corpus/run_directory/head").split('\0').next().unwrap();
        assert_eq!(said(head, b""), None);
        for (from, to, words) in [
            ("\"clients\":20", "\"clients\":4294967295", "it plans 4294967295 clients"),
            ("\"base_seconds\":0.0", "\"base_seconds\":1e300", "no run began at such a time"),
            ("\"base_seconds\":0.0", "\"base_seconds\":-1", "no run began at such a time"),
            ("1147776216873", "18446744073709551615", "is no monotonic time"),
        ] {
            assert!(head.contains(from), "{from}");
            let said = said(&head.replace(from, to), b"").unwrap();
            assert!(said.starts_with("run/run.json:1: ") && said.contains(words), "{to}: {said}");
        }
    }

    #[test]
    fn distributions_of_other_precision_are_refused() {
        let head = include_str!("../../../fuzz/corpus/run_directory/head").split('\0').next().unwrap();
        let log = |digits| {
            let mut histogram: Histogram<u64> = Histogram::new(digits).unwrap();
            histogram.record(5).unwrap();
            let (mut log, mut serializer) = (Vec::new(), V2DeflateSerializer::new());
            let mut writer =
                IntervalLogWriterBuilder::new().begin_log_with(&mut log, &mut serializer).unwrap();
            let tag = Tag::new("0/startup").unwrap();
            writer.write_histogram(&histogram, Duration::ZERO, Duration::from_secs(1), Some(tag)).unwrap();
            log
        };
        assert_eq!(said(head, &log(3)), None);
        assert!(said(head, &log(5)).unwrap().contains("a distribution of 5 digits"));
    }

    #[test]
    fn two_runs_of_one_second_have_two_directories() {
        let parent = tempfile::tempdir().unwrap();
        let first = make_directory(parent.path(), "a/b c", 0).unwrap();
        let second = make_directory(parent.path(), "a/b c", 0).unwrap();
        assert_ne!(first, second);
        assert!(first.ends_with("a-b-c-19700101T000000Z"), "{}", first.display());
    }
}
