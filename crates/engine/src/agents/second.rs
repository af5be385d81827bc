//! One second of an agent's run on its way to the coordinator: the lines of its run directory, copied there and read here.

use super::words::is_brief;
use crate::plan::Plan;
use crate::record::event::EventLine;
use crate::record::{self, Histograms};
use crate::scenario::facts::WorkloadFacts;
use hdrhistogram::serialization::V2DeflateSerializer;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc::Sender;
use weir_metrics::{Interval, Schema};
use weir_protocols::columns_of;

/// One second of an agent's run: what its run directory has of it, as it stands there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondLines {
    /// Which second.
    pub second: u32,
    /// Lines of `intervals.ndjson`.
    pub intervals: Vec<String>,
    /// Lines of `histograms.hlog`.
    pub histograms: String,
    /// What happened since the second before.
    pub events: Vec<EventLine>,
    /// Whether the second ends with this: what is more than a message holds comes in parts.
    pub is_whole: bool,
}

/// Bytes of distributions, and events, after which the next of them are another part.
const PART_BYTES: usize = 256 << 10;
const PART_EVENTS: usize = 1_000;

/// Bytes of the lines that events of one agent's clients get: a quarter of a million failures.
const MOST_EVENT_BYTES: usize = 64 << 20;

/// Room for the lines of events that one agent's clients have in the run directory of the coordinator: it has no say in how many fail.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventRoom {
    /// Bytes of the lines so far.
    written: usize,
}

impl EventRoom {
    /// What is said once it is full.
    pub(crate) const FULL: &str =
        "its events fill 64 MiB; later failures and gaps are counted, and have no lines of their own";

    pub(crate) fn is_full(&self) -> bool {
        self.written > MOST_EVENT_BYTES
    }

    /// Whether an event gets a line. Accounts of clients do: of many, only a sample is written down.
    pub(crate) fn takes(&mut self, event: &EventLine) -> bool {
        if matches!(event, EventLine::Account { .. }) {
            return true;
        }
        let has_room = !self.is_full();
        if has_room {
            self.written += serde_json::to_vec(event).map_or(0, |line| line.len() + 1);
        }
        has_room
    }
}

/// Gathers what a run directory gets, and hands it on second by second.
pub(crate) struct SecondCopier {
    seconds: Sender<SecondLines>,
    serializer: V2DeflateSerializer,
    next: SecondLines,
    /// The second that is not over.
    second: u32,
}

impl SecondCopier {
    pub(crate) fn new(seconds: Sender<SecondLines>) -> Self {
        Self { seconds, serializer: V2DeflateSerializer::new(), next: SecondLines::default(), second: 0 }
    }

    /// Keeps what the coordinator does not find out by itself.
    pub(crate) fn event(&mut self, event: &EventLine) {
        if event.is_of_clients() || event.is_of_messages() {
            self.next.events.push(event.clone());
            if self.next.events.len() >= PART_EVENTS {
                let second = self.second;
                self.hand_on(second, false);
            }
        }
    }

    pub(crate) fn interval(&mut self, interval: &Interval) {
        self.next.intervals.push(interval.to_line());
        let mut log = Vec::new();
        record::write_histograms(&mut log, &mut self.serializer, None, interval)
            .expect("a vector takes whatever is written");
        self.next.histograms.push_str(&String::from_utf8_lossy(&log));
        if self.next.histograms.len() >= PART_BYTES {
            self.hand_on(interval.key.second, false);
        }
    }

    /// Hands the second on.
    pub(crate) fn complete(&mut self, second: u32) {
        self.hand_on(second, true);
        self.second = second + 1;
    }

    fn hand_on(&mut self, second: u32, is_whole: bool) {
        let lines = SecondLines { second, is_whole, ..std::mem::take(&mut self.next) };
        // A receiver that is gone has ended with its run.
        let _ = self.seconds.send(lines);
    }
}

/// Reads an agent's second, and refuses what no second of this plan can be. Each workload, and each of its servers, is there once: their
/// distributions may have a hundred times the bytes of their text. `servers` says of each workload how many it has by the coordinator.
pub(crate) fn read(
    lines: &SecondLines,
    plan: &Plan,
    schemas: &[Schema],
    servers: &[usize],
) -> Result<Vec<Interval>, String> {
    let mut histograms: Histograms =
        record::read_histograms(Path::new("histograms"), lines.histograms.as_bytes())
            .map_err(|error| error.to_string())?;
    let end = record::last_second(plan);
    if u64::from(lines.second) > end {
        return Err(format!("second {} is long after the plan's end", lines.second));
    }
    // The agent may have found more addresses behind a name; their figures are in no report.
    histograms.retain(|(_, key), _| {
        let servers = servers.get(usize::from(key.workload)).copied().unwrap_or_default();
        key.server.is_none_or(|server| usize::from(server) < servers)
    });
    let mut keys = BTreeSet::new();
    let intervals = lines.intervals.iter().map(|line| {
        let (agent, interval) = record::read_interval(line, schemas, end, &mut histograms)?;
        let key = interval.key;
        if !keys.insert(key) {
            return Err("two intervals of the same clients".to_owned());
        }
        match agent {
            None if key.second == lines.second && interval.seconds() == 1 => Ok(interval),
            _ => Err("an interval of another second, or of another agent".to_owned()),
        }
    });
    intervals.collect()
}

/// Refuses what no run of these workloads tells of its clients and messages: a coordinator keeps something for each workload and
/// channel that it is told of.
pub(crate) fn check_events(events: &[EventLine], workloads: &[&WorkloadFacts]) -> Result<(), String> {
    let of = |workload: &u16| workloads.get(usize::from(*workload));
    let reads = |workload: &u16, channel: &u32| {
        workloads.get(usize::from(*workload)).filter(|it| (*channel as usize) < it.targets.len())
    };
    let is_possible = |event: &EventLine| match event {
        EventLine::Failure { workload, words, .. } => of(workload).is_some() && is_brief(words),
        EventLine::Gap { workload, channel, .. } => reads(workload, channel).is_some(),
        EventLine::Account { workload, channel, numbers, .. } => {
            reads(workload, channel).is_some_and(|it| numbers.len() <= columns_of(&it.protocol).len())
        }
        EventLine::Ingested { workload, .. } => of(workload).is_some(),
        EventLine::Trouble { words, .. } => is_brief(words),
        EventLine::Track { workload, track, .. } => of(workload).is_some() && track.is_brief(),
        // It is added up; the others are not taken from an agent.
        _ => true,
    };
    if events.iter().all(is_possible) {
        return Ok(());
    }
    Err("an event of a workload or a channel that is not there, or with more words or numbers than there are"
        .to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::scenario::role::Role;
    use weir_metrics::common::STARTUP;
    use weir_metrics::{Failure, IntervalKey, Recorder};

    fn facts() -> WorkloadFacts {
        WorkloadFacts {
            name: "a".to_owned(),
            role: Role::Play,
            protocol: "http".to_owned(),
            targets: vec!["http://h/a".to_owned(), "http://h/b".to_owned()],
            expect: None,
            frame_time_seconds: None,
            messages_per_second: None,
            timeout_seconds: 10.0,
            background: false,
            servers: Vec::new(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn a_second_has_each_workload_once_and_distributions_of_servers_that_are_there_alone() {
        let scenario = "workloads: [{play: 'http://127.0.0.1:1/a', duration: 5s}]";
        let plan = Scenario::parse(scenario).unwrap().plan().unwrap();
        let schema = weir_protocols::schema_of("http").unwrap();
        let (seconds, copied) = std::sync::mpsc::channel();
        let mut copier = SecondCopier::new(seconds);
        for server in [None, Some(0)] {
            let mut figures = Recorder::new(schema);
            figures.record(STARTUP, 7);
            copier.interval(&Interval::new(IntervalKey { second: 0, workload: 0, server }, figures));
        }
        copier.complete(0);
        let mut lines = copied.recv().unwrap();
        let started = |lines: &SecondLines| {
            let intervals = read(lines, &plan, &[schema], &[0])?;
            Ok::<_, String>(intervals.iter().map(|it| it.figures.spread(STARTUP).len()).collect::<Vec<_>>())
        };
        assert_eq!(started(&lines), Ok(vec![1, 0]));
        lines.intervals.swap_remove(1);
        lines.intervals.push(lines.intervals[0].clone());
        assert_eq!(started(&lines), Err("two intervals of the same clients".to_owned()));
    }

    #[test]
    fn events_of_an_agent_fill_64_mib_and_no_more() {
        let failure = EventLine::Failure {
            at_seconds: 1.0,
            workload: 0,
            client: 1,
            failure: Failure::Reset,
            words: "x".repeat(4_000),
        };
        let mut room = EventRoom::default();
        let taken = (0..100_000).take_while(|_| room.takes(&failure)).count();
        assert!((10_000..17_000).contains(&taken) && room.is_full(), "{taken}");
    }

    #[test]
    fn what_an_agent_tells_is_of_workloads_channels_and_columns_that_there_are() {
        let facts = facts();
        let check = |event: EventLine| check_events(&[event], &[&facts]).is_ok();
        let failure = |workload, words: &str| EventLine::Failure {
            at_seconds: 1.0,
            workload,
            client: 1,
            failure: Failure::Reset,
            words: words.to_owned(),
        };
        let account = |channel, numbers| EventLine::Account {
            at_seconds: 1.0,
            workload: 0,
            client: 1,
            channel,
            since_seconds: None,
            failure: None,
            numbers: vec![None; numbers],
            place: None,
        };
        let columns = columns_of("http").len();
        assert!(check(failure(0, "gone")) && check(account(1, columns)));
        let track = |workload, codec: String| {
            let text = format!(
                r#"{{"event":"track","at_seconds":1.0,"workload":{workload},"track":{{"kind":"video","codec":"{codec}"}}}}"#
            );
            serde_json::from_str::<EventLine>(&text).unwrap()
        };
        assert!(check(track(0, "H.264".to_owned())));
        assert!(!check(track(1, "H.264".to_owned())) && !check(track(0, "x".repeat(61))));
        assert!(!check(failure(1, "gone")) && !check(failure(0, &"x".repeat(5_000))));
        assert!(!check(failure(0, "gone\u{1b}[2J")) && !check(failure(0, "gone\nweir: passed")));
        assert!(
            !check(account(2, columns)) && !check(account(u32::MAX, 0)) && !check(account(0, columns + 1))
        );
    }
}
