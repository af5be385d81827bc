//! Reads a run directory back, a crashed run's included, and refuses what weir cannot have written.

use super::client_lines::{LEFT_OUT, LeftOut};
use super::distribution::EncodedDistribution;
use super::together::Together;
use super::{
    EVENTS, HISTOGRAMS, INTERVALS, OBSERVATIONS, RUN, RecordError, RunHead, io_error, latest, no_run,
};
use crate::aggregator::Aggregator;
use crate::date::LATEST_SECONDS;
use crate::plan::{Plan, Schedule};
use crate::scenario::MOST_PARTS;
use crate::scenario::facts::WorkloadFacts;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use weir_files::MOST_LINE;
use weir_metrics::{Interval, IntervalKey, Schema};
use weir_observe::Sample;

/// Longest time that is looked back over, in seconds: a year.
const LONGEST_BASE_SECONDS: f64 = 366.0 * 86_400.0;
/// Seconds after a plan's end in which a run may still be: its drain, and what a machine that stands still makes of it.
const LONGEST_AFTER: u64 = 86_400;
/// The last second that a run can have; one can be added to it.
const LAST_SECOND: u64 = u32::MAX as u64 - 1;
/// Clients that the plan of a run can start: 2 kB each are more memory than most machines have.
const MOST_CLIENTS: u64 = 20_000_000;
/// Servers that the clients of a run can go to: their figures have places with numbers of 16 bits.
const MOST_SERVERS: usize = u16::MAX as usize;

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
    read_files(directory, schema_of, |path| weir_files::read_lines(path, MOST_LINE))
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
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => no_run(directory),
        _ => RecordError::Io { path: path.clone(), source },
    })?;
    let at_line = |line: usize, text: String| RecordError::Malformed { path: path.clone(), line, text };
    let malformed = |text: String| at_line(1, text);
    let head: RunHead =
        serde_json::from_slice(&text).map_err(|error| at_line(error.line().max(1), error.to_string()))?;
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
    if !(0.0..=LATEST_SECONDS).contains(&head.run.started_at_seconds)
        || !spans.into_iter().all(|seconds| (0.0..=LONGEST_BASE_SECONDS).contains(&seconds))
    {
        return Err("no run began at such a time".to_owned());
    }
    // One more than the scenario has is its background.
    let servers: usize = head.workloads.iter().map(|facts| facts.servers.len()).sum();
    if head.workloads.len() > MOST_PARTS + 1 || servers > MOST_SERVERS {
        return Err(format!("it has {} workloads with {servers} servers", head.workloads.len()));
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
    if at_ns > u64::MAX / 2 { Err(format!("{at_ns} ns is not a monotonic time")) } else { Ok(()) }
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
pub(crate) type Histograms = HashMap<(Option<u16>, IntervalKey), Vec<(String, EncodedDistribution)>>;

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
        interval.restore(&name, histogram.histogram()?);
    }
    Ok((agent, interval))
}

pub(crate) fn read_histograms(path: &Path, bytes: &[u8]) -> Result<Histograms, RecordError> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
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
            let (whose, agent) = latest::split(whose, '@');
            let (workload, server) = latest::split(whose, '.');
            Some((number(Some(workload))??, number(server)?, number(agent)?, name))
        });
        let Some((workload, server, agent, name)) = whose else {
            return Err(malformed(format!("tag '{tag}' is not workload/figure")));
        };
        let histogram = EncodedDistribution::new(interval.encoded_histogram()).map_err(malformed)?;
        let second = interval.start_timestamp().as_secs() as u32;
        let key = IntervalKey { second, workload, server };
        all.entry((agent, key)).or_default().push((name.to_owned(), histogram));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::serialization::V2DeflateSerializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
    use std::time::Duration;
    use weir_metrics::Histogram;

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
        let head = include_str!("../../../../fuzz/corpus/run_directory/head").split('\0').next().unwrap();
        assert_eq!(said(head, b""), None);
        for (from, to, words) in [
            ("\"clients\":20", "\"clients\":4294967295", "it plans 4294967295 clients"),
            ("\"base_seconds\":0.0", "\"base_seconds\":1e300", "no run began at such a time"),
            ("\"base_seconds\":0.0", "\"base_seconds\":-1", "no run began at such a time"),
            ("1147776216873", "18446744073709551615", "is not a monotonic time"),
        ] {
            assert!(head.contains(from), "{from}");
            let said = said(&head.replace(from, to), b"").unwrap();
            assert!(said.starts_with("run/run.json:1: ") && said.contains(words), "{to}: {said}");
        }
    }

    #[test]
    fn a_run_with_more_workloads_stages_or_servers_than_any_has_is_refused() {
        let head = include_str!("../../../../fuzz/corpus/run_directory/head").split('\0').next().unwrap();
        let (stages, duration) = (r#"{"clients":1,"hold":"1s"},"#.repeat(1_000), r#""duration":"30s","#);
        let (clients, facts) = (r#""clients":20,"#, r#""background":false}]}"#);
        for (from, to, words) in [
            (
                duration,
                format!(r#""stages":[{}],"#, stages.trim_end_matches(',')),
                "1 workload with 1,000 stages",
            ),
            (
                facts,
                format!(r#""background":false,"servers":[{}""]}}]}}"#, r#""","#.repeat(70_000)),
                "1 workloads with 70001 servers",
            ),
        ] {
            let damaged = head.replace(clients, "").replace(from, &to);
            let said = said(&damaged, b"").unwrap();
            assert!(said.contains(words), "{words}: {said}");
        }
    }

    #[test]
    fn distributions_of_other_precision_are_refused() {
        let head = include_str!("../../../../fuzz/corpus/run_directory/head").split('\0').next().unwrap();
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
}
