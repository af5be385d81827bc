//! The origin sends nothing for a while.

use crate::support::{air, config, measure, quiet, undisturbed};

/// The gap between two units, at the beginning and at the end of a stall, and what a busy machine adds.
const RESOLUTION: f64 = 0.040 + 0.100;

#[test]
fn two_stalls_of_three_viewers_are_six_stalls_of_their_length() {
    let _machine = quiet();
    undisturbed(|| {
        // The first stall leaves 1.5 s in the modelled player, which is shown before it stands still again.
        let mut config =
            config(&["stall at=2s for=1500ms viewers=1..3", "stall at=5s for=2500ms viewers=1..3"]);
        // A cached group of pictures would fill the modelled player before the stall.
        config.history.gop_cache = false;
        let air = air(&config);
        // From the first unit, within a second of the start, stalls last from 2 to 3.5 s and from 5 to 7.5 s.
        let run = measure([
            "play",
            &air.url,
            "-c",
            "6",
            "--arrival",
            "50/s",
            "-d",
            "9s",
            "--warmup",
            "0s",
            "--drain",
            "200ms",
            "--buffer",
            "500ms",
            "--threshold",
            "stall_free.ratio >= 50%",
            "--threshold",
            "stall_free.ratio > 50%",
        ]);
        assert_eq!(run.well(), 6, "{:?}", run.failures());
        assert_eq!(run.total("stalls"), 6.0);
        // Three viewers stalled, each of them twice.
        assert_eq!(
            (run.total("stalled_viewers"), &run.workloads()[0]["stall_free_ratio"]),
            (3.0, &0.5.into())
        );
        let asked = run.summary["thresholds"].as_array().unwrap();
        let passed: Vec<_> =
            asked.iter().filter(|it| it["expression"].to_string().contains("stall_free")).collect();
        assert_eq!(
            [0, 1].map(|number: usize| &passed[number]["passed"]),
            [&true.into(), &serde_json::Value::from(false)]
        );
        let text = std::fs::read_to_string(run.directory().join("report.txt")).unwrap();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("50.0% of viewers without any stall"), "{text}");
        // The modelled player shows what it has buffered before it stands still: 0.5 s, then 0.5 s and 1 s.
        let expected = 1.5 - 0.5;
        assert_eq!(expected, 2.5 - (0.5 + expected));
        let lengths = run.spread("stall_length");
        assert_eq!(lengths["count"], 6);
        for bound in ["min", "max"] {
            let length = lengths[bound].as_f64().unwrap();
            assert!((length - expected).abs() <= RESOLUTION, "{bound} {length} s, expected {expected} s");
        }
        let stalled = run.total("stalled");
        assert!((stalled - 6.0 * expected).abs() <= 6.0 * RESOLUTION, "{stalled} s in all");
        // The frame at the beginning of the longer stall is as late as that stall is long.
        let latest = run.spread("latency")["max"].as_f64().unwrap();
        assert!((latest - 2.5).abs() <= RESOLUTION, "the latest frame came after {latest} s");
        let drift = run.spread("drift")["max"].as_f64().unwrap();
        assert!((drift - 2.5).abs() <= RESOLUTION, "the greatest drift was {drift} s");
    });
}

#[test]
fn a_stream_that_flows_has_no_stalls() {
    let _machine = quiet();
    undisturbed(|| {
        let air = air(&config(&[]));
        let run = measure(["play", &air.url, "-c", "6", "-d", "5s", "--warmup", "0s", "--drain", "200ms"]);
        assert_eq!((run.well(), run.total("stalls"), run.total("stalled")), (6, 0.0, 0.0));
        assert_eq!((run.total("lost"), run.total("timestamp_jumps")), (0.0, 0.0));
    });
}

#[test]
fn a_stall_that_the_buffer_covers_is_late_but_no_stall() {
    let _machine = quiet();
    undisturbed(|| {
        let mut config = config(&["stall at=2s for=600ms"]);
        config.history.gop_cache = false;
        let air = air(&config);
        let run = measure([
            "play", &air.url, "-c", "3", "-d", "5s", "--warmup", "0s", "--drain", "200ms", "--buffer",
            "1500ms",
        ]);
        assert_eq!((run.well(), run.total("stalls")), (3, 0.0));
        let latest = run.spread("latency")["max"].as_f64().unwrap();
        assert!((latest - 0.6).abs() <= RESOLUTION, "the latest frame came after {latest} s");
        assert!(air.origin.effects().len() >= 3, "{:?}", air.origin.effects());
    });
}
