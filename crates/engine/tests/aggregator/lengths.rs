//! Runs of hours and days: what is kept of them, and that nothing at their end is overlooked.

use crate::facts::facts_of;
use crate::{SCHEMA, aggregator_of, finish, finish_as, sample, second};
use weir_engine::record::{self, RecordWriter, RunHead};
use weir_engine::scenario::Scenario;
use weir_engine::summary::{Outcome, RunFacts, Value};
use weir_metrics::common::{MEDIA, PLAYING, SOURCE, SOURCE_TIME};
use weir_metrics::{Interval, IntervalKey, Recorder};

#[test]
fn a_run_of_a_million_seconds_keeps_few_of_them_and_its_totals_are_exact() {
    const SECONDS: u32 = 1_000_000;
    let text = format!(
        "warmup: 0s\nworkloads: [{{play: rtmp://h/live/a, clients: 2, duration: {SECONDS}s, arrival: 1000/s}}]"
    );
    let mut aggregator = aggregator_of(&text);
    for at in 0..SECONDS {
        aggregator.sample(sample(f64::from(at) + 0.001, 0.0));
        second(&mut aggregator, at, 0, 2, 500);
    }
    let summary = finish(&aggregator);
    let stage = &summary.workloads[0].stages[0];
    assert_eq!((stage.window_begin_seconds, stage.window_end_seconds), (1, SECONDS));
    assert_eq!((stage.actual_bps, stage.playing_mean), (4_000.0, 2.0));
    let media = summary.workloads[0].total.get("media").map(|it| it.value);
    assert!(matches!(media, Some(Value::Counter { total, .. }) if total == 5e8), "{media:?}");
    // Two hours by the second, the edges of windows, and the latest.
    assert!(summary.series.len() <= 7_204, "{} points", summary.series.len());
    assert_eq!(aggregator.latest().map(|(second, _)| second), Some(SECONDS - 1));
    assert!(!summary.warnings.iter().any(|it| it.contains("steady")), "{:?}", summary.warnings);
}

/// Seven hours, whose samples are thinned as they are written.
#[test]
fn a_long_run_that_is_read_again_comes_to_the_same_from_fewer_samples() {
    const SECONDS: u32 = 25_000;
    let text = format!(
        "warmup: 0s\nworkloads: [{{play: rtmp://h/live/a, clients: 2, duration: {SECONDS}s, arrival: 1000/s}}]"
    );
    let scenario = Scenario::parse(&text).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut live = aggregator_of(&text);
    let workloads = vec![facts_of(&scenario.workloads[0])];
    let run = RunFacts::default();
    let head = RunHead { run, origin_ns: 0, scenario: scenario.clone(), workloads, segment: None };
    let mut writer = RecordWriter::create(folder.path(), &head).unwrap();
    for at in 0..SECONDS {
        // A process that uses ever more.
        let sample = sample(f64::from(at) + 0.001, f64::from(at) * f64::from(at) * 1e-6);
        writer.sample(&sample).unwrap();
        live.sample(sample);
        second(&mut live, at, 0, 2, 500);
        let mut figures = Recorder::new(SCHEMA);
        figures.set(PLAYING, 2);
        figures.count(MEDIA, 500);
        let key = IntervalKey { second: at, workload: 0, server: None };
        writer.interval(&Interval::new(key, figures)).unwrap();
    }
    writer.finish().unwrap();
    let lines = std::fs::read_to_string(folder.path().join("observe.ndjson")).unwrap().lines().count();
    assert!((10_000..15_000).contains(&lines), "{lines} of {SECONDS} samples");
    let (_, again) = record::read(folder.path(), |_| Some(SCHEMA)).unwrap();
    let [live, again] = [&live, &again].map(|it| serde_json::to_value(finish_as(it, &scenario)).unwrap());
    assert_eq!(live["workloads"], again["workloads"]);
    let points = |summary: &serde_json::Value| summary["series"].as_array().unwrap().len();
    assert_eq!(points(&live), points(&again));
    assert!(live == again, "series differ");
}

/// A day, whose last two minutes lose their media after half a minute.
#[test]
fn a_short_window_at_the_end_of_a_long_run_is_seen_to_lose_its_media() {
    let text = "{warmup: 0s, workloads: [{play: rtmp://h/live/b, arrival: 1000/s, stages: [{clients: 4, hold: 86280s}, {clients: 4, hold: 120s}]}]}";
    let mut aggregator = aggregator_of(text);
    for at in 0..86_400 {
        let mut figures = Recorder::new(SCHEMA);
        figures.set(PLAYING, 4);
        if at < 86_310 {
            figures.count(MEDIA, 200_000);
            figures.count(SOURCE, 200_000);
            figures.count(SOURCE_TIME, 4_000_000);
        }
        aggregator.interval(&Interval::new(IntervalKey { second: at, workload: 0, server: None }, figures));
    }
    let run = RunFacts { duration_seconds: 86_400.0, ..RunFacts::default() };
    let summary = aggregator.finish(run, Outcome::Completed, &Scenario::default());
    let void: Vec<_> = summary.workloads[0].stages.iter().map(|stage| stage.window_is_void).collect();
    assert_eq!(void, [false, true]);
}
