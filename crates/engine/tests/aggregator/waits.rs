//! Viewers that still wait for a keyframe when a run is over: of a workload that has no others nothing is known, and that is no pass.

use super::{SCHEMA, aggregator_of, finish_as};
use weir_engine::scenario::Scenario;
use weir_metrics::common::{KEYFRAME_WAITS, KEYFRAME_WAITS_OVER, ON_TIME, PLANNED, PLAYED, PLAYING, STARTED};
use weir_metrics::{Interval, IntervalKey, Recorder};

const TWO_STREAMS: &str = "
warmup: 0s
workloads:
  - {name: a, play: rtmp://h/live/a, clients: 10, stages: [], duration: 5s, arrival: 1000/s}
  - {name: b, play: rtmp://h/live/b, clients: 10, stages: [], duration: 5s, arrival: 1000/s}
";

/// What is said of `played.ratio`, if this many of ten viewers of the second stream wait until the end, and as many others as play.
fn judged(waiting: u64, thresholds: &str) -> Option<(Option<f64>, bool)> {
    let text = format!("{thresholds}{TWO_STREAMS}");
    let mut aggregator = aggregator_of(&text);
    for second in 0..5 {
        for (workload, played) in [(0, 10), (1, (10 - waiting) / 2)] {
            let mut figures = Recorder::new(SCHEMA);
            if second == 0 {
                let over = if workload == 0 { 10 } else { 10 - waiting };
                for (counter, count) in [
                    (PLANNED, 10),
                    (STARTED, 10),
                    (ON_TIME, 10),
                    (KEYFRAME_WAITS, 10),
                    (KEYFRAME_WAITS_OVER, over),
                    (PLAYED, played),
                ] {
                    figures.count(counter, count);
                }
            }
            figures.set(PLAYING, played);
            aggregator.interval(&Interval::new(IntervalKey { second, workload, server: None }, figures));
        }
    }
    let summary = finish_as(&aggregator, &Scenario::parse(&text).unwrap());
    let mut results = summary.thresholds.iter();
    results.find(|it| it.expression.starts_with("played.ratio")).map(|it| (it.value, it.passed))
}

#[test]
fn a_workload_whose_viewers_all_wait_passes_nothing() {
    for thresholds in ["", "thresholds: ['played.ratio >= 99%']"] {
        assert_eq!(judged(10, thresholds), Some((None, false)), "{thresholds}");
        assert_eq!(judged(8, thresholds), Some((Some(0.5), false)), "{thresholds}");
    }
    assert_eq!(judged(8, "thresholds: ['played.ratio >= 50%']"), Some((Some(0.5), true)));
}
