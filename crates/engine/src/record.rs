//! The run directory: append-only, and worth reading after a crash.
//!
//! `run.json` first, then a line or more a second in `intervals.ndjson`, `histograms.hlog`,
//! `observe.ndjson` and `events.ndjson`. `summary.json` and the reports come last, under a temporary
//! name that is renamed.

use crate::date::Date;
use crate::fold::{Fold, WorkloadFacts};
use crate::remark::RemarkLine;
use crate::scenario::Scenario;
use crate::summary::RunFacts;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_metrics::{Histogram, Interval, Schema};
use weir_observe::Sample;

use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};

const RUN: &str = "run.json";
const INTERVALS: &str = "intervals.ndjson";
const HISTOGRAMS: &str = "histograms.hlog";
const OBSERVATIONS: &str = "observe.ndjson";
const EVENTS: &str = "events.ndjson";

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
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(RecordError::Io { path, source }),
        }
    }
    let source = io::Error::new(io::ErrorKind::AlreadyExists, "a thousand runs of this second exist already");
    Err(RecordError::Io { path: parent.to_owned(), source })
}

/// Writes `bytes` to `path` under a temporary name first, so that a reader never sees half of it.
///
/// # Errors
/// The system's, with the path.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let temporary = path.with_extension("part");
    fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path)).map_err(|source| {
        // Half of a file helps nobody, and it takes what room is left.
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
}

#[derive(Debug)]
struct Appender {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Appender {
    fn open(directory: &Path, name: &str) -> Result<Self, RecordError> {
        let path = directory.join(name);
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(io_error(&path))?;
        Ok(Self { path, file: BufWriter::new(file) })
    }

    fn line(&mut self, text: &str) -> Result<(), RecordError> {
        writeln!(self.file, "{text}").map_err(io_error(&self.path))
    }

    fn flush(&mut self) -> Result<(), RecordError> {
        self.file.flush().map_err(io_error(&self.path))
    }
}

impl RecordWriter {
    /// Writes `run.json` and opens the rest.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn create(directory: &Path, head: &RunHead) -> Result<Self, RecordError> {
        let json = serde_json::to_vec_pretty(head).expect("a run's head is JSON");
        write_whole(&directory.join(RUN), &json)?;
        Ok(Self {
            intervals: Appender::open(directory, INTERVALS)?,
            histograms: Appender::open(directory, HISTOGRAMS)?,
            observations: Appender::open(directory, OBSERVATIONS)?,
            events: Appender::open(directory, EVENTS)?,
            serializer: V2DeflateSerializer::new(),
        })
    }

    /// Appends one workload's second.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn interval(&mut self, interval: &Interval) -> Result<(), RecordError> {
        self.intervals.line(&interval.to_line())?;
        let start = Duration::from_secs(u64::from(interval.key.second));
        let path = &self.histograms.path;
        let mut writer = IntervalLogWriterBuilder::new()
            .begin_log_with(&mut self.histograms.file, &mut self.serializer)
            .map_err(io_error(path))?;
        for (name, histogram) in interval.histograms() {
            let tag = format!("{}/{name}", interval.key.workload);
            writer
                .write_histogram(histogram, start, Duration::from_secs(1), Tag::new(&tag))
                .map_err(|error| io_error(path)(io::Error::other(error.to_string())))?;
        }
        Ok(())
    }

    /// Appends one observation.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn sample(&mut self, sample: &Sample) -> Result<(), RecordError> {
        self.observations.line(&serde_json::to_string(sample).expect("a sample is JSON"))
    }

    /// Appends one event.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn remark(&mut self, remark: &RemarkLine) -> Result<(), RecordError> {
        self.events.line(&serde_json::to_string(remark).expect("an event is JSON"))
    }

    /// Hands all lines to the system.
    ///
    /// # Errors
    /// The system's, with the path.
    pub fn flush(&mut self) -> Result<(), RecordError> {
        [&mut self.intervals, &mut self.histograms, &mut self.observations, &mut self.events]
            .into_iter()
            .try_for_each(Appender::flush)
    }
}

/// Reads a run directory back into a fold. `schema_of` says the figures of a protocol.
///
/// A last line that a crash cut short is left out.
///
/// # Errors
/// A file that is missing or was changed, with path and line.
pub fn read(
    directory: &Path,
    schema_of: impl Fn(&str) -> Option<Schema>,
) -> Result<(RunHead, Fold), RecordError> {
    let path = directory.join(RUN);
    let text = fs::read_to_string(&path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound if directory.is_dir() => RecordError::NoRun(directory.to_owned()),
        _ => RecordError::Io { path: path.clone(), source },
    })?;
    let malformed = |text: String| RecordError::Malformed { path: path.clone(), line: 1, text };
    let head: RunHead = serde_json::from_str(&text).map_err(|error| malformed(error.to_string()))?;
    let plan = head.scenario.plan().map_err(|error| malformed(error.to_string()))?;
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
    let mut fold = Fold::new(plan, facts, head.origin_ns);
    // Before the intervals: where the run was stopped, its windows end.
    each_line(&directory.join(EVENTS), |line| {
        fold.remark(&serde_json::from_str(line).map_err(|error| error.to_string())?);
        Ok(())
    })?;
    let mut histograms = read_histograms(&directory.join(HISTOGRAMS))?;
    each_line(&directory.join(INTERVALS), |line| {
        let mut interval = Interval::from_line(line, |workload| schemas.get(usize::from(workload)).copied())
            .map_err(|error| error.to_string())?;
        for (name, histogram) in
            histograms.remove(&(interval.key.second, interval.key.workload)).into_iter().flatten()
        {
            interval.restore(&name, histogram);
        }
        fold.interval(&interval);
        Ok(())
    })?;
    each_line(&directory.join(OBSERVATIONS), |line| {
        fold.sample(serde_json::from_str(line).map_err(|error| error.to_string())?);
        Ok(())
    })?;
    Ok((head, fold))
}

/// Calls `take` with every whole line.
fn each_line(path: &Path, mut take: impl FnMut(&str) -> Result<(), String>) -> Result<(), RecordError> {
    let text = fs::read_to_string(path).map_err(io_error(path))?;
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    for (number, line) in whole.lines().enumerate() {
        take(line).map_err(|text| RecordError::Malformed {
            path: path.to_owned(),
            line: number + 1,
            text,
        })?;
    }
    Ok(())
}

type Histograms = std::collections::HashMap<(u32, u16), Vec<(String, Histogram<u64>)>>;

fn read_histograms(path: &Path) -> Result<Histograms, RecordError> {
    use base64::Engine as _;
    let bytes = fs::read(path).map_err(io_error(path))?;
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
        let Some((workload, name)) = tag.split_once('/').and_then(|(w, name)| Some((w.parse().ok()?, name)))
        else {
            return Err(malformed(format!("tag '{tag}' is not workload/figure")));
        };
        let encoded = base64::engine::general_purpose::STANDARD
            .decode(interval.encoded_histogram())
            .map_err(|error| malformed(error.to_string()))?;
        let mut histogram: Histogram<u64> = deserializer
            .deserialize(&mut encoded.as_slice())
            .map_err(|error| malformed(error.to_string()))?;
        histogram.auto(true);
        let second = interval.start_timestamp().as_secs() as u32;
        all.entry((second, workload)).or_default().push((name.to_owned(), histogram));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_of_one_second_have_two_directories() {
        let parent = tempfile::tempdir().unwrap();
        let first = make_directory(parent.path(), "a/b c", 0).unwrap();
        let second = make_directory(parent.path(), "a/b c", 0).unwrap();
        assert_ne!(first, second);
        assert!(first.ends_with("a-b-c-19700101T000000Z"), "{}", first.display());
    }
}
