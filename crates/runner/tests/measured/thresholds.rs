//! What is asked of the target, and what follows.

use crate::support::{Run, air, config, measure, refusal};
use std::time::{Duration, Instant};
use weir_runner::ErrorKind::{Aborted, Scenario, Thresholds};
use weir_testing::KilledOnDrop;

/// Four viewers for three seconds, asked this.
fn four_viewers(url: &str, asked: &[&str]) -> Run {
    measure(&format!("thresholds: {asked:?}\nworkloads: [{{play: '{url}', clients: 4, duration: 3s}}]"))
}

#[test]
fn thresholds_that_hold_pass() {
    let air = air(&config(&[]));
    let asked = ["startup.p99 < 10s", "stalls.rate < 10", "witnesses.max >= 4"];
    let run = four_viewers(&air.url, &asked);
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
    assert_eq!(run.missed, None);
}

#[test]
fn what_is_always_asked_fails_a_run_as_what_was_asked_for_does_and_says_by_how_much() {
    let air = air(&config(&["close viewer=2 at=1s"]));
    let run = four_viewers(&air.url, &["failed.ratio <= 10%"]);
    let judged = &run.summary["thresholds"];
    assert_eq!((&judged[0]["passed"], &judged[0]["value"]), (&false.into(), &0.25.into()));
    assert_eq!(run.missed, Some(Thresholds));
}

#[test]
fn a_scenario_that_asks_nothing_is_asked_what_every_load_is() {
    let air = air(&config(&["close viewer=2 at=1s"]));
    let run = four_viewers(&air.url, &[]);
    let judged = run.summary["thresholds"].as_array().unwrap();
    let judged = judged.iter().find(|it| it["expression"] == "failed.ratio <= 1%").unwrap();
    assert_eq!(
        (&judged["default"], &judged["value"], run.missed),
        (&true.into(), &0.25.into(), Some(Thresholds))
    );
}

#[test]
fn an_aborting_threshold_ends_the_run_early_with_whole_artefacts() {
    let air = air(&config(&["close viewer=2 at=1s"]));
    let began = Instant::now();
    let run = measure(&format!(
        "abort: ['slots_failed < 1']\nworkloads: [{{play: '{}', clients: 4, duration: 60s}}]",
        air.url
    ));
    assert_eq!((run.missed, &run.summary["outcome"]["aborted"]), (Some(Aborted), &"slots_failed < 1".into()));
    assert!(began.elapsed() < Duration::from_secs(50), "{:?}", began.elapsed());
    assert_eq!((run.slots("planned"), run.slots("failed")), (4, 1));
    for name in
        ["run.json", "intervals.ndjson", "histograms.hlog", "events.ndjson", "summary.json", "report.html"]
    {
        assert!(!run.file(name).is_empty(), "{name} is empty");
    }
}

#[test]
fn what_is_not_measured_yet_aborts_nothing() {
    let air = air(&config(&[]));
    let run = measure(&format!(
        "warmup: 1s
abort: ['bitrate.ratio >= 0.5', 'frames.rate >= 1', 'playing.mean >= 1']
workloads: [{{play: '{}', stages: [{{clients: 2, hold: 4s}}, {{clients: 4, hold: 4s}}]}}]",
        air.url
    ));
    assert_eq!(run.summary["outcome"], "completed");
}

#[test]
fn a_figure_that_does_not_exist_is_a_mistake_with_a_suggestion() {
    let workload = "workloads: [{play: 'rtmp://127.0.0.1:9/live/a', duration: 1s}]";
    for key in ["thresholds", "abort"] {
        let error = refusal(&format!("{key}: ['startupp.p99 < 1s']\n{workload}"));
        assert_eq!(error.kind(), Scenario);
        let words = error.to_string();
        assert!(words.contains("'startupp'") && words.contains("did you mean 'startup'"), "{words}");
    }
    let error = refusal(&format!("thresholds: ['startup < 1s']\n{workload}"));
    assert_eq!(error.kind(), Scenario);
    assert!(error.to_string().contains("p99"), "says which statistics there are: {error}");
}

/// A shell that counts uses all of one core that it can get, and what its thread used is known to the kernel.
#[test]
fn the_cpu_of_a_watched_process_is_asked_for_and_is_what_the_kernel_counts() {
    let air = air(&config(&[]));
    let mut busy = KilledOnDrop::start(std::process::Command::new("sh").args(["-c", "while :; do :; done"]));
    let asked = ["server.cpu.max > 1%", "thread.sh.cpu > 1%", "server.memory.max < 1GB", "server.cpu < 1%"];
    let run = measure(&format!(
        "thresholds: {asked:?}\nwatch: [pid={}]\nworkloads: [{{play: '{}', clients: 1, duration: 5s}}]",
        busy.pid(),
        air.url
    ));
    busy.kill();
    let judged = run.summary["thresholds"].as_array().unwrap();
    let passed: Vec<_> = judged.iter().take(4).map(|it| it["passed"].as_bool().unwrap()).collect();
    assert_eq!(passed, [true, true, true, false], "{judged:?}");
    let counted = run.stage(0)["targets"][0]["cpu_percent"].as_f64().unwrap();
    let compared = judged[3]["value"].as_f64().unwrap();
    assert!((compared - counted / 100.0).abs() < 1e-9, "{compared} of {counted} %");
    assert_eq!(run.missed, Some(Thresholds));
}
