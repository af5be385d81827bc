//! The parts of a run that its agents kept, as the run directory that their coordinator would have written: for when it did not
//! come to that.

use crate::agents::facts::AgentFacts;
use crate::aggregator::Aggregator;
use crate::clients::reader_record::ReaderRecord;
use crate::record::event::EventLine;
use crate::record::{
    self, EVENTS, HISTOGRAMS, INTERVALS, LEFT_OUT, LeftOut, OBSERVATIONS, RUN, RecordError, RunHead,
    read_files,
};
use crate::scenario::Scenario;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use weir_files::MOST_LINE;
use weir_metrics::Schema;

/// Directories that are not parts of one run.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// One of them cannot be read.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// One of them is no part of the run that the first one is a part of.
    #[error("{}: {words}; give the directories that the agents of one run have kept", directory.display())]
    NoPart {
        /// Which.
        directory: PathBuf,
        /// What is wrong.
        words: String,
    },
}

/// Reads the parts of one run as one run.
///
/// # Errors
/// They are not parts of one run, or cannot be read.
pub fn read_parts(
    directories: &[PathBuf],
    schema_of: impl Fn(&str) -> Option<Schema>,
) -> Result<(RunHead, Aggregator), MergeError> {
    let mut parts: Vec<(&PathBuf, RunHead)> = Vec::new();
    for directory in directories {
        let no_part =
            |words: &str| MergeError::NoPart { directory: directory.clone(), words: words.to_owned() };
        // Each is a run of its own, and is read as one first: what is wrong with it is then said with its place.
        let (head, _) = record::read(directory, &schema_of)?;
        let segment = head.segment.clone().ok_or_else(|| no_part("is a whole run"))?;
        if let Some((_, first)) = parts.first() {
            let of = |head: &RunHead| head.segment.as_ref().map(|segment| segment.of);
            if of(first) != of(&head) || common(&first.scenario) != common(&head.scenario) {
                return Err(no_part("is of another run"));
            }
        }
        if parts.iter().any(|(_, head)| head.segment.as_ref().is_some_and(|it| it.index == segment.index)) {
            return Err(no_part("is a part that is there already"));
        }
        parts.push((directory, head));
    }
    let files = files(&parts)?;
    let directory = directories.first().map_or(Path::new(""), PathBuf::as_path);
    let contents = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let file = files.get(name).map(|text| text.clone().into_bytes());
        file.map_or_else(
            || if name == OBSERVATIONS { Ok(Vec::new()) } else { Err(io::ErrorKind::NotFound.into()) },
            Ok,
        )
    };
    Ok(read_files(directory, schema_of, contents)?)
}

/// What all agents of a run have of its scenario: where the files are that came with it, and where clients connect from, is each
/// agent's own.
fn common(scenario: &Scenario) -> Scenario {
    let mut scenario = Scenario { bind_addr: Vec::new(), ..scenario.clone() };
    scenario.each_file(&mut |path| *path = PathBuf::new());
    scenario
}

/// The files of the whole run, by name.
fn files(parts: &[(&PathBuf, RunHead)]) -> Result<BTreeMap<&'static str, String>, RecordError> {
    let (mut lines, mut log, mut events, mut stopped) = (BTreeMap::new(), String::new(), String::new(), None);
    let mut left_out = LeftOut::new();
    for (agent, (directory, _)) in (0_u16..).zip(parts) {
        let file = |path: &Path| weir_files::read_lines(path, MOST_LINE);
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        let [intervals, histograms] = record::intervals_of(directory, file)?.map(text);
        let path = directory.join(EVENTS);
        let of_part = text(file(&path).map_err(|source| RecordError::Io { path, source })?);
        // Each was read before, line by line, up to a last one that a crash has cut short.
        let whole = |text: &str| text.rfind('\n').map_or(String::new(), |end| text[..=end].to_owned());
        for line in whole(&intervals).lines() {
            let Ok(mut line) = serde_json::from_str::<Value>(line) else { continue };
            let number = |key: &str| line[key].as_u64();
            let key = (number("second"), number("workload"), number("server"), agent);
            line["agent"] = agent.into();
            lines.insert(key, line.to_string());
        }
        for line in whole(&histograms).lines() {
            let _ = match line.strip_prefix("Tag=").and_then(|tag| tag.split_once('/')) {
                Some((whose, rest)) => writeln!(log, "Tag={whose}@{agent}/{rest}"),
                None => writeln!(log, "{line}"),
            };
        }
        let mut clients = ClientsOfPart::default();
        for line in whole(&of_part).lines() {
            match serde_json::from_str::<EventLine>(line) {
                Ok(EventLine::Stopped { at_seconds }) => {
                    stopped = Some(at_seconds.max(stopped.unwrap_or(0.0)));
                }
                Ok(EventLine::Account { workload, place, .. }) => {
                    clients.push(workload, place, line, &mut left_out);
                }
                Ok(event) if event.is_of_clients() => {
                    let _ = writeln!(events, "{line}");
                }
                _ => {}
            }
        }
        clients.kept.values().flatten().for_each(|line| events.push_str(&format!("{line}\n")));
        for (workload, sums) in record::left_out(directory, file)? {
            left_out.entry(workload).or_default().append(&sums);
        }
    }
    if let Some(at_seconds) = stopped {
        let stopped = serde_json::to_string(&EventLine::Stopped { at_seconds }).expect("an event is JSON");
        let _ = writeln!(events, "{stopped}");
    }
    let intervals = lines.into_values().map(|line| line + "\n").collect();
    let (_, first) = &parts[0];
    let agent = |(_, head): &(&PathBuf, RunHead)| AgentFacts {
        name: head.run.id.clone(),
        hostname: head.run.environment.hostname.clone(),
        cores: head.run.environment.cpu.online_count as u32,
        labels: BTreeMap::new(),
        clock: head.run.clock,
    };
    let mut head = RunHead { segment: None, ..first.clone() };
    head.run.agents = parts.iter().map(agent).collect();
    let head = serde_json::to_string(&head).expect("a run's head is JSON");
    let left_out = serde_json::to_string(&left_out).expect("sums are JSON");
    let files =
        [(RUN, head), (INTERVALS, intervals), (HISTOGRAMS, log), (EVENTS, events), (LEFT_OUT, left_out)];
    Ok(files.into())
}

/// The lines of clients of a part, by workload: those that were kept at its end. Places are the part's own.
#[derive(Debug, Default)]
struct ClientsOfPart {
    kept: BTreeMap<u16, Vec<String>>,
}

impl ClientsOfPart {
    /// Adds a line; one whose place it takes is in the sums from then on.
    fn push(&mut self, workload: u16, place: Option<u32>, line: &str, left_out: &mut LeftOut) {
        let kept = self.kept.entry(workload).or_default();
        let Some(earlier) = place.and_then(|place| kept.get_mut(place as usize)) else {
            return kept.push(line.to_owned());
        };
        let replaced = std::mem::replace(earlier, without_place(line));
        let record = serde_json::from_str(&replaced).ok().as_ref().and_then(ReaderRecord::of);
        record.iter().for_each(|record| left_out.entry(workload).or_default().add(record));
    }
}

/// The same line, of a client that takes the place of no other.
fn without_place(line: &str) -> String {
    let Ok(mut line) = serde_json::from_str::<Value>(line) else { return line.to_owned() };
    line.as_object_mut().map(|line| line.remove("place"));
    line.to_string()
}
