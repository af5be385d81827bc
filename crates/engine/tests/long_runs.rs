//! Runs of hours: what stands in their directories is less than was counted, and comes to the same.

mod facts;

use facts::facts_of;
use proptest::prelude::*;
use std::ops::Range;
use std::path::Path;
use weir_engine::aggregator::Aggregator;
use weir_engine::record::{self, RecordWriter, RunHead};
use weir_engine::scenario::Scenario;
use weir_engine::summary::{Outcome, RunFacts};
use weir_engine::{EventLine, WorkloadFacts};
use weir_metrics::common::{
    DRIFT, LATENCY, MEDIA, PLANNED, PLAYED, PLAYING, SHARD_BUSY, SOURCE, SOURCE_TIME, STALLS, STARTED,
    STARTUP,
};
use weir_metrics::{Failure, Interval, IntervalKey, Recorder, Schema};

const SCHEMA: Schema = Schema::new(&[]);

/// A day and more. Stages and windows begin at odd seconds.
const DAY: &str = "{warmup: 3s, workloads: [{play: [rtmp://h/live/a, rtmp://i/live/a], arrival: 1000/s, \
    stages: [{clients: 4, hold: 8201s}, {clients: 8, hold: 100s}, {clients: 4, hold: 91701s}]}]}";

fn facts(scenario: &Scenario) -> WorkloadFacts {
    let servers = vec!["h:1935".to_owned(), "i:1935".to_owned()];
    WorkloadFacts { servers, ..facts_of(&scenario.workloads[0]) }
}

/// A run that is counted and written down at once.
struct Running {
    scenario: Scenario,
    live: Aggregator,
    writer: RecordWriter,
}

impl Running {
    fn new(directory: &Path) -> Self {
        let scenario = Scenario::parse(DAY).unwrap();
        let facts = facts(&scenario);
        let live = Aggregator::new(scenario.plan().unwrap(), vec![(facts.clone(), SCHEMA)], 0);
        let run = RunFacts::default();
        let head =
            RunHead { run, origin_ns: 0, scenario: scenario.clone(), workloads: vec![facts], segment: None };
        Self { scenario, live, writer: RecordWriter::create(directory, &head).unwrap() }
    }

    /// Whatever `values` say happened in a second, to the clients of one server or of the other.
    fn second(&mut self, second: u32, values: &[u16]) {
        let value = |at: usize| u64::from(values[(second as usize * 7 + at) % values.len()]);
        let mut figures = Recorder::new(SCHEMA);
        figures.set(PLAYING, 2 + value(0) % 3);
        figures.set(SHARD_BUSY, value(1) * 10);
        figures.count(MEDIA, 50_000 + value(2) % 1_000);
        figures.count(SOURCE, 50_000);
        figures.count(SOURCE_TIME, 1_000_000);
        figures.count(STALLS, value(3) % 2);
        for counter in [PLANNED, STARTED, PLAYED] {
            figures.count(counter, value(4) % 2);
        }
        if value(5).is_multiple_of(11) {
            figures.fail(Failure::Reset);
        }
        (0..value(4) % 2).for_each(|_| figures.record(STARTUP, 1_000 + value(6)));
        figures.record_signed(LATENCY, value(7) as i64 - 10_000);
        figures.record_signed(DRIFT, value(8) as i64 - 30_000);
        let nothing = Recorder::new(SCHEMA);
        let of_servers = if second.is_multiple_of(2) { [&figures, &nothing] } else { [&nothing, &figures] };
        for (server, figures) in [(None, &figures), (Some(0), of_servers[0]), (Some(1), of_servers[1])] {
            let key = IntervalKey { second, workload: 0, server };
            let interval = Interval::new(key, figures.clone());
            self.writer.interval(&interval).unwrap();
            self.live.interval(&interval);
        }
        self.writer.flush().unwrap();
    }

    fn stop(&mut self, at_seconds: f64) {
        let stopped = EventLine::Stopped { at_seconds };
        self.writer.event(&stopped).unwrap();
        self.live.event(&stopped);
    }
}

/// All that a run comes to but its series, which have one second of each block, or the mean of a block that is one.
fn summed_up(aggregator: &Aggregator, scenario: &Scenario) -> serde_json::Value {
    let summary = aggregator.finish(RunFacts::default(), Outcome::Completed, scenario);
    serde_json::to_value(summary.workloads).unwrap()
}

fn read(directory: &Path, scenario: &Scenario) -> serde_json::Value {
    let (_, again) = record::read(directory, |_| Some(SCHEMA)).unwrap();
    summed_up(&again, scenario)
}

/// The seconds that are looked at, of before and behind each change of a block's length, and around the edges of windows.
fn seconds() -> impl Iterator<Item = Range<u32>> {
    [0..20, 8_160..8_340, 16_370..16_420, 65_530..65_600, 100_000..100_010].into_iter()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn a_run_that_is_read_from_fewer_lines_comes_to_the_same(
        values in prop::collection::vec(any::<u16>(), 30..90),
        left in 0usize..370,
        is_finished: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let mut running = Running::new(folder.path());
        // Stopped somewhere, and cut short there or summed up.
        let all: Vec<u32> = seconds().flatten().collect();
        let (before, behind) = all.split_at(all.len().saturating_sub(left).max(1));
        before.iter().for_each(|second| running.second(*second, &values));
        running.stop(f64::from(before[before.len() - 1]) + 1.4);
        behind.iter().take(5).for_each(|second| running.second(*second, &values));
        if is_finished {
            running.writer.finish().unwrap();
        }
        let Running { scenario, live, writer } = running;
        drop(writer);
        prop_assert_eq!(summed_up(&live, &scenario), read(folder.path(), &scenario));
        let is_long = before.len() + behind.len().min(5) > all.iter().take_while(|second| **second < 8_192).count();
        prop_assert_eq!(folder.path().join("latest.ndjson").exists(), !is_finished && is_long);
    }
}

#[test]
fn a_long_run_has_a_line_for_several_seconds_and_short_ones_one_for_each() {
    let folder = tempfile::tempdir().unwrap();
    let mut running = Running::new(folder.path());
    seconds().flatten().for_each(|second| running.second(second, &[1, 2, 3]));
    running.writer.finish().unwrap();
    let text = std::fs::read_to_string(folder.path().join("intervals.ndjson")).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |from: u64, to: u64| -> Vec<(u64, u64)> {
        let number = |line: &serde_json::Value, key: &str| line[key].as_u64();
        let found = lines.iter().filter(|line| line.get("server").is_none());
        let found = found.map(|line| (number(line, "second").unwrap(), number(line, "seconds").unwrap_or(1)));
        found.filter(|(second, _)| (from..to).contains(second)).collect()
    };
    assert_eq!(of(8_189, 8_196), [(8_189, 1), (8_190, 1), (8_191, 1), (8_192, 2), (8_194, 2)]);
    // The first stage ends with second 8,200, and the window of the second begins with 8,205.
    assert_eq!(of(8_198, 8_206), [(8_198, 2), (8_200, 1), (8_201, 1), (8_202, 2), (8_204, 1), (8_205, 1)]);
    assert_eq!(of(65_530, 65_560), [(65_530, 6), (65_536, 16), (65_552, 16)]);
    assert!(!folder.path().join("latest.ndjson").exists());
}
