//! Clients that are lost with their agent: what became of them is unknown, and each is left out once.

use super::{SCHEMA, aggregator_of, finish};
use weir_engine::EventLine;
use weir_engine::agents::OpenClients;
use weir_engine::plan::Segment;
use weir_engine::threshold::Threshold;
use weir_metrics::common::{KEYFRAME_WAITS, KEYFRAME_WAITS_OVER, PLANNED, PLAYED, PLAYING, STARTED, WAITING};
use weir_metrics::{Interval, IntervalKey, Recorder};

const TEN_VIEWERS: &str = "
warmup: 0s
workloads:
  - {name: viewers, play: rtmp://h/live/b, clients: 10, stages: [], duration: 5s, arrival: 1000/s}
";

#[test]
fn a_client_that_is_lost_while_it_waits_for_a_keyframe_is_left_out_once() {
    let mut aggregator = aggregator_of(TEN_VIEWERS);
    for second in 0..5 {
        let mut figures = Recorder::new(SCHEMA);
        if second == 0 {
            // Two never get media, four play, and four wait; of those two do until the end, and two until their agent is lost.
            for (counter, count) in
                [(PLANNED, 10), (STARTED, 10), (KEYFRAME_WAITS, 8), (KEYFRAME_WAITS_OVER, 4), (PLAYED, 4)]
            {
                figures.count(counter, count);
            }
        }
        figures.set(PLAYING, 4);
        figures.set(WAITING, 4);
        aggregator.interval(&Interval::new(IntervalKey { second, workload: 0, server: None }, figures));
    }
    aggregator.event(&EventLine::AgentLost {
        at_seconds: 4.5,
        agent: 1,
        segment: Segment::equal(1, 2),
        open: vec![OpenClients { begun: 3, played: 1, waiting: 2 }],
        is_allowed: true,
        words: String::new(),
    });
    // Of the seven that are left five did not wait, and three of these played.
    let judged = ["played.ratio >= 0.6", "played.ratio > 0.6"].map(|text| {
        let threshold: Threshold = text.parse().unwrap();
        threshold.judge(&finish(&aggregator).workloads).passed
    });
    assert_eq!(judged, [true, false]);
}
