//! What viewers are held against where the run publishes the stream itself.

use super::*;

/// A minute of a publisher that sends as many pictures in each of these seconds, and of two viewers a second behind it.
fn source_fps(frames: impl Fn(u32) -> u64) -> Option<f64> {
    let mut aggregator = aggregator_of(
        "{warmup: 0s, workloads: [{publish: rtmp://h/live/a, duration: 60s}, {play: rtmp://h/live/a, clients: 2, arrival: 1000/s, duration: 60s}]}",
    );
    for second in 0..60u32 {
        for (workload, clients, of) in [(0, 1, frames(second)), (1, 2, 2 * frames(second.saturating_sub(1)))]
        {
            let mut figures = Recorder::new(SCHEMA);
            figures.set(PLAYING, clients);
            figures.count(MEDIA, 1_000 * of);
            figures.count(FRAMES, of);
            // Viewers see that pictures are not of one rate: they know none.
            figures.count(SOURCE_TIME, clients * 1_000_000);
            aggregator.interval(&Interval::new(IntervalKey { second, workload, server: None }, figures));
        }
    }
    finish(&aggregator).workloads[1].stages[0].source_fps
}

#[test]
fn pictures_are_held_against_those_of_a_publisher_that_has_as_many_in_each_second() {
    assert_eq!(source_fps(|_| 25), Some(25.0));
    // It is late once and catches up.
    assert_eq!(
        source_fps(|second| [25, 10, 40][usize::from(second == 20) + 2 * usize::from(second == 21)]),
        Some(25.0)
    );
    // One picture in five seconds.
    let slides = source_fps(|second| u64::from(second.is_multiple_of(5))).unwrap();
    assert!((0.18..0.22).contains(&slides), "{slides}");
}

#[test]
fn pictures_of_a_screen_are_held_against_no_rate() {
    assert_eq!(source_fps(|second| if second < 40 { 2 } else { 30 }), None);
    assert_eq!(source_fps(|second| if second % 10 < 5 { 30 } else { 0 }), None);
}

/// `bitrate.ratio` of viewers over a window from second 3 to 14, whose publisher sends as many bytes in each second. They get this share of
/// them a second later.
fn bit_rate_ratio(bytes: impl Fn(u32) -> u64, share: f64) -> f64 {
    let mut aggregator = aggregator_of(
        "{warmup: 2s, workloads: [{publish: rtmp://h/live/a, duration: 20s}, {play: rtmp://h/live/a, clients: 2, arrival: 1000/s, duration: 14s}]}",
    );
    for second in 0..14u32 {
        let received = (bytes(second.saturating_sub(1)) as f64 * share) as u64;
        for (workload, clients, media) in [(0, 1, bytes(second)), (1, 2, 2 * received)] {
            let mut figures = Recorder::new(SCHEMA);
            figures.set(PLAYING, clients);
            figures.count(MEDIA, media);
            figures.count(SOURCE_TIME, clients * 1_000_000);
            aggregator.interval(&Interval::new(IntervalKey { second, workload, server: None }, figures));
        }
    }
    let stage = &finish(&aggregator).workloads[1].stages[0];
    stage.actual_bps / stage.expected_bps.unwrap()
}

#[test]
fn a_large_keyframe_at_the_edge_of_a_window_is_held_against_no_viewer() {
    // As many bytes as the other seconds of the window have together: sent in its last second, and received behind it.
    for large in [2, 3, 13] {
        let bytes = |second: u32| if second == large { 12_000 } else { 1_000 };
        let ratio = bit_rate_ratio(bytes, 1.0);
        assert!(ratio >= 0.99, "{large}: {ratio}");
        // A server that leaves out a fifth is not let off.
        if large != 2 {
            let ratio = bit_rate_ratio(bytes, 0.8);
            assert!(ratio < 0.9, "{large}: {ratio}");
        }
    }
    assert!(bit_rate_ratio(|_| 1_000, 0.85) < 0.9);
}
