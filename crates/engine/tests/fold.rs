//! What a run comes to, from intervals that were made up.

use weir_engine::fold::{Fold, WorkloadFacts};
use weir_engine::scenario::Scenario;
use weir_engine::summary::{Outcome, RunFacts, Summary};
use weir_engine::threshold::Threshold;
use weir_metrics::common::{MEDIA, PLAYING};
use weir_metrics::{Failure, Interval, IntervalKey, Recorder, Schema};

/// Two streams of different rates, and viewers of the second.
const TWO_STREAMS: &str = "
warmup: 0s
workloads:
  - {name: thin, publish: rtmp://h/live/a}
  - {name: thick, publish: rtmp://h/live/b}
  - {name: viewers, play: rtmp://h/live/b, clients: 4, stages: [], duration: 5s, arrival: 1000/s}
";

const SCHEMA: Schema = Schema::new(&[]);

fn fold(text: &str) -> Fold {
    let scenario = Scenario::parse(text).unwrap();
    let facts = scenario.workloads.iter().map(|spec| {
        let (role, urls) = spec.verb().unwrap();
        let facts = WorkloadFacts {
            background: false,
            name: spec.label(),
            role,
            protocol: "rtmp".to_owned(),
            targets: urls.to_vec(),
            expect: None,
            frame_time_seconds: None,
        };
        (facts, SCHEMA)
    });
    Fold::new(scenario.plan().unwrap(), facts.collect(), 0)
}

/// A second of a workload: so many clients that play, so many media bytes.
fn second(fold: &mut Fold, second: u32, workload: u16, playing: u64, media: u64) {
    let mut figures = Recorder::new(SCHEMA);
    figures.set(PLAYING, playing);
    figures.count(MEDIA, media);
    fold.interval(&Interval { key: IntervalKey { second, workload }, figures });
}

fn finish(fold: &Fold) -> Summary {
    let run = RunFacts {
        name: String::new(),
        id: String::new(),
        started_at_seconds: 0.0,
        duration_seconds: 5.0,
        weir_version: String::new(),
        seed: 0,
        tags: std::collections::BTreeMap::new(),
        environment: weir_observe::Environment::read(),
        targets: Vec::new(),
        servers: Vec::new(),
        machines: Vec::new(),
        base_seconds: 0.0,
    };
    fold.finish(run, Outcome::Completed, &[])
}

#[test]
fn the_expected_rate_is_that_of_the_publisher_of_the_same_targets() {
    let mut fold = fold(TWO_STREAMS);
    for at in 0..5 {
        second(&mut fold, at, 0, 1, 1_000);
        second(&mut fold, at, 1, 1, 50_000);
        second(&mut fold, at, 2, 4, 190_000);
    }
    let summary = finish(&fold);
    let row = &summary.workloads[2].stages[0];
    assert_eq!(row.expected_bps, Some(4.0 * 50_000.0 * 8.0));
    assert_eq!(row.actual_bps, 190_000.0 * 8.0);
}

#[test]
fn a_threshold_is_judged_alike_while_the_run_goes_on_and_at_its_end() {
    let mut fold = fold(TWO_STREAMS);
    for at in 0..5 {
        second(&mut fold, at, 1, 1, 50_000);
        second(&mut fold, at, 2, 4, 190_000);
    }
    let mut figures = Recorder::new(SCHEMA);
    figures.fail(Failure::Reset);
    fold.interval(&Interval { key: IntervalKey { second: 5, workload: 2 }, figures });
    let asked: Vec<Threshold> =
        ["slots_failed < 1", "bitrate.ratio > 0.9", "playing.mean > 3", "startup.p99 < 1s"]
            .iter()
            .map(|text| text.parse().unwrap())
            .collect();
    let summary = finish(&fold);
    let at_the_end: Vec<_> = asked.iter().map(|threshold| threshold.judge(&summary.workloads)).collect();
    let judged = fold.judge(&asked);
    assert_eq!(judged, at_the_end);
    let passed: Vec<_> = judged.iter().map(|result| result.passed).collect();
    assert_eq!(passed, [false, true, false, false], "{judged:?}");
}
