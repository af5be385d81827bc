//! Scenarios, thresholds and run directories, read from bytes: what the fuzz targets `grammars` and `run_directory` share
//! with their tests. Nothing here is part of a run.

use crate::agents::{self, SecondLines};
use crate::ingest::schema_of;
use crate::record::{self, RunHead};
use crate::scenario::facts::WorkloadFacts;
use crate::scenario::{BitRateText, Scenario};
use crate::summary::{Outcome, Role, RunFacts};
use crate::threshold::Threshold;
use std::io;
use std::path::Path;
use weir_metrics::{Interval, Schema};
use weir_protocols::schemes;

/// Largest plan that is laid out here: what a plan does with more clients, it does with these.
const MOST_CLIENTS: u64 = 200;

/// The machine of a run that was never one.
const ENVIRONMENT: &str = r#"{"kernel":"","architecture":"","hostname":"","cpu":{"online_count":2,"affinity":[0,1]},
    "descriptors":{},"sysctls":[],"virtualisation":{"hypervisor":false}}"#;

/// Reads a scenario, and after an empty line `KEY=VALUE` of `--set`, one a line.
pub fn scenario(text: &str) {
    let (file, settings) = text.split_once("\n\n").unwrap_or((text, ""));
    let Ok(mut scenario) = Scenario::parse(file) else { return };
    for (key, value) in settings.lines().filter_map(|line| line.split_once('=')) {
        if let Ok(set) = scenario.with(key, value) {
            scenario = set;
        }
    }
    scenario.resolve(Path::new("folder"));
    let _ = (scenario.is_endless(), scenario.base());
    // What is written down is read back, and plans the same.
    let shown = scenario.without_secrets();
    let written = serde_json::to_string(&shown).expect("a scenario is JSON");
    let again: Scenario = serde_json::from_str(&written).expect("what was just written");
    assert_eq!(again, shown);
    if clients(&scenario) <= MOST_CLIENTS {
        let Ok(plan) = scenario.plan() else { return };
        assert_eq!(again.plan().expect("the same plan"), plan);
        assert!(plan.slots.is_sorted_by_key(|slot| slot.start));
        assert!(plan.slots.iter().all(|slot| slot.start <= slot.stop));
    }
}

/// Reads a threshold, and holds it against the figures of every protocol.
pub fn threshold(text: &str) {
    let Ok(threshold) = text.parse::<Threshold>() else { return };
    assert_eq!(threshold.text().parse::<Threshold>().as_ref(), Ok(&threshold));
    let schemas: Vec<Schema> = schemes().filter_map(schema_of).collect();
    let _ = threshold.check(&schemas).map_err(|error| error.to_string());
    let _ = threshold.check_total(["published", "saved"]).map_err(|error| error.to_string());
    for value in [f64::NAN, -1.0, 0.0, 1.0, f64::INFINITY] {
        threshold.judge_value(|_| Some(value));
    }
    assert!(!threshold.judge_total(|_| None).passed);
}

/// Reads a run directory whose files these are, sums it up, and judges it: `run.json` or only the scenario in it,
/// `events.ndjson`, `histograms.hlog`, `intervals.ndjson`, `observe.ndjson`, with a zero byte between them. Says whether
/// it was one.
pub fn run_directory(bytes: &[u8]) -> bool {
    let mut files = bytes.splitn(5, |byte| *byte == 0);
    let files: [&[u8]; 5] = std::array::from_fn(|_| files.next().unwrap_or_default());
    let [head, events, histograms, intervals, observations] = files;
    for line in std::str::from_utf8(intervals).unwrap_or_default().lines() {
        if let Ok(interval) = Interval::from_line(line, |_| schema_of("http")) {
            let again = Interval::from_line(&interval.to_line(), |_| schema_of("http"));
            assert_eq!(again.expect("what was just written").key, interval.key);
        }
    }
    let Some(head) = head_of(head) else { return false };
    let contents = |path: &Path| {
        Ok(match path.file_name().and_then(|name| name.to_str()) {
            Some("run.json") => head.clone(),
            Some("events.ndjson") => events.to_owned(),
            Some("histograms.hlog") => histograms.to_owned(),
            Some("intervals.ndjson") => intervals.to_owned(),
            Some("observe.ndjson") => observations.to_owned(),
            _ => return Err(io::Error::from(io::ErrorKind::NotFound)),
        })
    };
    match record::read_files(Path::new("run"), schema_of, contents) {
        Ok((head, aggregator)) => {
            let summary = aggregator.finish(head.run, Outcome::Completed, &head.scenario);
            let _ = (
                aggregator.judge(&head.scenario.thresholds),
                aggregator.commonest_failure(),
                aggregator.latest(),
            );
            serde_json::to_string(&summary).expect("a summary is JSON");
            true
        }
        Err(error) => {
            assert!(error.to_string().starts_with("run/"), "{error}");
            false
        }
    }
}

/// Reads a second of an agent, and holds it against a plan of a few seconds. Says whether it was one.
pub fn agent_second(bytes: &[u8]) -> bool {
    let Ok(lines) = serde_json::from_slice::<SecondLines>(bytes) else { return false };
    let schedule = Scenario::parse("workloads: [{play: 'http://h/a', clients: 2, duration: 3s}]");
    let plan = schedule.ok().and_then(|scenario| scenario.plan().ok()).expect("a plan");
    let schemas: Vec<Schema> = schema_of("http").into_iter().collect();
    match agents::read(&lines, &plan, &schemas, &[0]) {
        Ok(intervals) => {
            assert!(intervals.iter().all(|it| it.key.second == lines.second && it.key.workload == 0));
            true
        }
        Err(words) => {
            assert!(!words.is_empty());
            false
        }
    }
}

/// The bytes of a `run.json`, or of one around a scenario; none if it plans more clients than are laid out here.
fn head_of(bytes: &[u8]) -> Option<Vec<u8>> {
    let written = serde_json::from_slice::<RunHead>(bytes);
    let head = match (written, std::str::from_utf8(bytes)) {
        (Ok(head), _) => head,
        (Err(_), Ok(text)) => made_up(Scenario::parse(text).ok()?),
        (Err(_), Err(_)) => return None,
    };
    if clients(&head.scenario) > MOST_CLIENTS {
        return None;
    }
    Some(serde_json::to_vec(&head).expect("a run's head is JSON"))
}

fn made_up(scenario: Scenario) -> RunHead {
    let run = RunFacts {
        name: scenario.name.clone(),
        started_at_seconds: 1e9,
        duration_seconds: 5.0,
        seed: scenario.seed,
        environment: serde_json::from_str(ENVIRONMENT).expect("an environment"),
        base_seconds: scenario.base().as_secs_f64(),
        ..RunFacts::default()
    };
    let facts = scenario.workloads.iter().map(|spec| {
        let (role, urls) = spec.verb().unwrap_or((Role::Play, &[]));
        WorkloadFacts {
            name: spec.label(),
            role,
            protocol: urls
                .first()
                .and_then(|url| url.split_once(':'))
                .map_or("", |(scheme, _)| scheme)
                .to_owned(),
            targets: urls.to_vec(),
            expect: spec.expect.as_ref().map(BitRateText::get),
            frame_time_seconds: None,
            messages_per_second: None,
            timeout_seconds: 10.0,
            servers: Vec::new(),
            warnings: Vec::new(),
            background: spec.background,
        }
    });
    RunHead { run, origin_ns: 1_000_000_000, workloads: facts.collect(), scenario, segment: None }
}

fn clients(scenario: &Scenario) -> u64 {
    let schedules = scenario.schedules().unwrap_or_default();
    schedules.iter().flat_map(|schedule| &schedule.stages).map(|stage| u64::from(stage.clients)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inputs_that_fuzzing_begins_with_are_run_directories() {
        for bytes in [
            &include_bytes!("../../../fuzz/corpus/run_directory/head")[..],
            include_bytes!("../../../fuzz/corpus/run_directory/observed"),
            include_bytes!("../../../fuzz/corpus/run_directory/rtmp"),
            include_bytes!("../../../fuzz/corpus/run_directory/ts"),
        ] {
            assert!(run_directory(bytes), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn a_second_of_an_agent_is_read_and_one_that_is_long_after_the_end_is_not() {
        assert!(agent_second(include_bytes!("../../../fuzz/corpus/agents/second")));
        assert!(agent_second(br#"{"second":1,"intervals":[],"histograms":"","events":[],"is_whole":true}"#));
        assert!(!agent_second(
            br#"{"second":1000000,"intervals":[],"histograms":"","events":[],"is_whole":true}"#
        ));
    }

    #[test]
    fn a_scenario_and_a_threshold_are_read() {
        scenario("workloads: [{play: 'http://h/a', clients: 2, duration: 3s}]\n\nworkloads.play.clients=5");
        threshold("startup.p99 < 1s");
    }
}
