//! What is asked of the target, and what follows.

use crate::support::{air, config, measure, says, shared};
use std::time::{Duration, Instant};

const LOAD: [&str; 8] = ["-c", "4", "-d", "3s", "--warmup", "0s", "--drain", "200ms"];

#[test]
fn thresholds_that_hold_pass() {
    let _machine = shared();
    let air = air(&config(&[]));
    let asked = ["startup.p99 < 10s", "stalls.rate < 10", "witnesses.max >= 4"];
    let run = measure(
        ["play", &air.url].iter().chain(&LOAD).chain(asked.iter().flat_map(|text| [&"--threshold", text])),
    );
    let judged = run.summary["thresholds"].as_array().unwrap();
    // That viewers play and do not fail is always asked; the rate of so short a window is not.
    let said = |default: bool| {
        let of = judged.iter().filter(|threshold| threshold["default"] == default);
        of.map(|threshold| threshold["expression"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(
        (said(false), said(true)),
        (
            asked.to_vec(),
            vec![
                "stalled.ratio <= 1%",
                "starved.ratio <= 1%",
                "blackouts == 0",
                "failed.ratio <= 1%",
                "played.ratio >= 99%"
            ]
        )
    );
    assert!(judged.iter().all(|threshold| threshold["passed"] == true), "{judged:?}");
    assert_eq!(run.code, 0);
}

#[test]
fn a_scenario_is_asked_what_a_verb_is() {
    let _machine = shared();
    let air = air(&config(&["close viewer=2 at=1s"]));
    let file = tempfile::NamedTempFile::new().unwrap();
    let scenario = format!("workloads: [{{play: '{}', clients: 4, duration: 3s}}]\nwarmup: 0s", air.url);
    std::fs::write(file.path(), scenario).unwrap();
    let run = measure(["run", file.path().to_str().unwrap()]);
    let judged = run.summary["thresholds"].as_array().unwrap();
    let judged = judged.iter().find(|it| it["expression"] == "failed.ratio <= 1%").unwrap();
    assert_eq!((&judged["default"], &judged["value"], run.code), (&true.into(), &0.25.into(), 99));
}

#[test]
fn a_threshold_that_fails_fails_the_run_and_says_by_how_much() {
    let _machine = shared();
    let air = air(&config(&["close viewer=2 at=1s"]));
    let run = measure(["play", &air.url, "--threshold", "failed.ratio <= 10%"].iter().chain(&LOAD));
    let judged = &run.summary["thresholds"];
    assert_eq!((&judged[0]["passed"], &judged[0]["value"]), (&false.into(), &0.25.into()));
    assert_eq!(run.code, 99);
}

#[test]
fn an_aborting_threshold_ends_the_run_early_with_whole_artefacts() {
    let _machine = shared();
    let air = air(&config(&["close viewer=2 at=1s"]));
    let began = Instant::now();
    let run =
        measure(["play", &air.url, "-c", "4", "-d", "60s", "--warmup", "0s", "--abort", "slots_failed < 1"]);
    assert_eq!((run.code, &run.summary["outcome"]["aborted"]), (108, &"slots_failed < 1".into()));
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
    assert_eq!((run.slots("planned"), run.slots("failed")), (4, 1));
    for name in
        ["run.json", "intervals.ndjson", "histograms.hlog", "events.ndjson", "summary.json", "report.html"]
    {
        assert!(std::fs::metadata(run.directory().join(name)).unwrap().len() > 0, "{name} is empty");
    }
}

#[test]
fn what_is_not_measured_yet_aborts_nothing() {
    let _machine = shared();
    let air = air(&config(&[]));
    let stages = ["--stage", "2@4s", "--stage", "4@4s", "--warmup", "1s", "--drain", "200ms"];
    let asked = ["bitrate.ratio >= 0.5", "frames.rate >= 1", "playing.mean >= 1"];
    let run = measure(
        ["play", &air.url].iter().chain(&stages).chain(asked.iter().flat_map(|text| [&"--abort", text])),
    );
    assert_eq!(run.summary["outcome"], "completed");
}

#[test]
fn a_figure_that_does_not_exist_is_a_mistake_with_a_suggestion() {
    for flag in ["--threshold", "--abort"] {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("run");
        let said = says([
            "play",
            "rtmp://127.0.0.1:9/live/a",
            flag,
            "startupp.p99 < 1s",
            "-o",
            output.to_str().unwrap(),
        ]);
        assert_eq!(said.code, Some(2), "{}", said.err);
        assert!(
            said.err.contains("'startupp'") && said.err.contains("did you mean 'startup'"),
            "{}",
            said.err
        );
        assert!(!output.exists(), "nothing was run");
    }
    let said = says(["play", "rtmp://127.0.0.1:9/live/a", "--threshold", "startup < 1s"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("p99"), "says which statistics there are: {}", said.err);
}

/// A shell that counts uses all of one core that it can get, and what its thread used is known to the kernel.
#[test]
fn the_cpu_of_a_watched_process_is_asked_for_and_is_what_the_kernel_counts() {
    let _machine = shared();
    let air = air(&config(&[]));
    let mut busy =
        crate::support::Kept::start(std::process::Command::new("sh").args(["-c", "while :; do :; done"]));
    let watch = format!("pid={}", busy.0.id());
    let asked = ["server.cpu.max > 1%", "thread.sh.cpu > 1%", "server.memory.max < 1GB", "server.cpu < 1%"];
    let load = ["-c", "1", "-d", "5s", "--warmup", "0s", "--drain", "200ms", "--watch", &watch];
    let run = measure(
        ["play", &air.url].iter().chain(&load).chain(asked.iter().flat_map(|text| [&"--threshold", text])),
    );
    let _ = busy.0.kill();
    let judged = run.summary["thresholds"].as_array().unwrap();
    let passed: Vec<_> = judged.iter().take(4).map(|it| it["passed"].as_bool().unwrap()).collect();
    assert_eq!(passed, [true, true, true, false], "{judged:?}");
    let counted = run.stage(0)["targets"][0]["cpu_percent"].as_f64().unwrap();
    let compared = judged[3]["value"].as_f64().unwrap();
    assert!((compared - counted / 100.0).abs() < 1e-9, "{compared} of {counted} %");
    assert_eq!(run.code, 99);
}
