//! The origin holds every unit back by a known time.

use crate::support::{Run, air, config, measure, quiet, undisturbed};

const DELAY: f64 = 0.080;

/// What the stamp, the clock and the bins of the histogram are good for.
const RESOLUTION: f64 = 0.002;

#[test]
fn a_delay_of_80_ms_is_80_ms_of_latency() {
    let _machine = quiet();
    undisturbed(|| {
        let air = air(&config(&["delay 80ms viewers=3..4"]));
        // Two viewers without the delay, then two with it, of the same stream and the same minute.
        let plain = watch(&air.url);
        let delayed = watch(&air.url);
        let (without, noise) = median(&plain);
        let (with, more_noise) = median(&delayed);
        let found = with - without;
        let noise = noise.max(more_noise);
        assert!(
            (found - DELAY).abs() <= RESOLUTION + noise,
            "{with} s with the delay and {without} s without: {found} s, noise {noise} s"
        );
        assert!(noise < DELAY / 2.0, "the machine is too busy to tell: {noise} s of noise");
    });
}

fn watch(url: &str) -> Run {
    let run = measure(["play", url, "-c", "2", "-d", "6s", "--warmup", "1500ms", "--drain", "200ms"]);
    assert_eq!(run.well(), 2, "{:?}", run.failures());
    assert_eq!(run.workloads()[0]["clock_uncertainty_seconds"], 0.0, "one clock");
    run
}

/// Median latency in the window, and how far from it the ninth decile lies without the delay's doing.
fn median(run: &Run) -> (f64, f64) {
    let latency = &run.stage(0)["figures"]["latency"];
    let at = |key: &str| latency[key].as_f64().unwrap();
    assert!(at("count") >= 100.0, "{latency}");
    (at("p50"), at("p90") - at("p50"))
}
