//! Runs of a server against runs of the same one with a fault: what the fault did is found, from the other side as well, and what
//! cannot be compared is not.

use crate::support::{CHECKS_OF_THE_MACHINE, Said, free_port, quiet, says, undisturbed};
use serde_json::Value;
use std::path::Path;

/// A second of delay is more than a busy machine adds to the startup of two viewers.
const SCENARIO: &str = "name: delays
variants:
  quick: {fault: delay 0ms}
  slow: {fault: delay 1s}
repeat: 6
warmup: 0s
drain: 100ms
before:
  - start: exec WEIR origin --rtmp 127.0.0.1:PORT --fault '{fault}'
  - wait: 127.0.0.1:PORT
workloads:
  - {publish: 'rtmp://127.0.0.1:PORT/live/a', bitrate: 200kbps, gop: 200ms, audio_bitrate: '0'}
  - {play: 'rtmp://127.0.0.1:PORT/live/a', clients: 2, delay: 1s, duration: 2500ms}
thresholds: [failed.ratio <= 100%]
";

fn json(said: &Said) -> Value {
    serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err))
}

/// What is found of the viewers' startup.
fn startup(comparison: &Value) -> &Value {
    let changes = comparison["comparisons"][0]["differences"].as_array().unwrap();
    changes.iter().find(|it| it["figure"] == "play.startup.p50").unwrap()
}

#[test]
fn a_second_of_delay_is_worse_one_way_and_better_the_other_and_two_runs_tell_nothing() {
    let _machine = quiet();
    undisturbed(|| {
        let folder = tempfile::tempdir().unwrap();
        let text =
            SCENARIO.replace("WEIR", env!("CARGO_BIN_EXE_weir")).replace("PORT", &free_port().to_string());
        std::fs::write(folder.path().join("s.yaml"), text).unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let made = says(["run", &at("s.yaml"), "-o", &at("out"), "-q", "--accept", CHECKS_OF_THE_MACHINE]);
        assert!(matches!(made.code, Some(0 | 99)), "{}", made.err);

        let limit = ["--fail-on", "play.startup.p50 > +200ms", "--json", "-"];
        let out = at("out");
        let compare = |more: &[&str]| says(["compare"].iter().chain(more).chain(&limit));
        let there = compare(&[&out]);
        let comparison = json(&there);
        assert_eq!(there.code, Some(96), "{comparison:#}");
        assert_eq!(
            (&comparison["layout"], &comparison["comparisons"][0]["pairs"]),
            (&"weir.compare/1".into(), &6.into())
        );
        assert_eq!(startup(&comparison)["finding"], "worse", "{comparison:#}");
        assert_eq!(comparison["limits"][0]["finding"], "regression");
        assert!(comparison["subject"].as_array().is_some_and(|it| it.len() <= 1), "{comparison:#}");
        // The other way round it is better, and no regression.
        let (quick, slow) = (format!("{out}:quick"), format!("{out}:slow"));
        let back = compare(&[&slow, &quick]);
        assert_eq!((back.code, &startup(&json(&back))["finding"]), (Some(0), &"better".into()));
        let mean = |of: &Value| startup(of)["difference"]["mean"].as_f64().unwrap();
        assert!((mean(&comparison) + mean(&json(&back))).abs() < 1e-9, "{comparison:#}");
        // Its percentile is of the distribution of all runs: it is at least that of the delay.
        let value = &comparison["variants"][1]["figures"]["play.startup.p50"]["mean"];
        assert!(value.as_f64().unwrap() >= 0.999, "{value}");

        few_runs_tell_nothing(Path::new(&out));
        what_is_not_alike_is_refused_key_by_key(folder.path());
        a_history_has_every_run(Path::new(&out));
    });
}

fn few_runs_tell_nothing(series: &Path) {
    let run = |name: &str| series.join(name).display().to_string();
    let (quick, slow) = (run("001-quick"), run("002-slow"));
    let text = says(["compare", &quick, &slow]);
    assert_eq!(text.code, Some(0), "{}", text.err);
    assert!(text.out.contains("too few runs to tell"), "{}", text.out);
    let unjudged = says(["compare", &quick, &slow, "--fail-on", "startup.p50 > +10%"]);
    assert_eq!(unjudged.code, Some(98), "a limit that cannot be judged is not held: {}", unjudged.out);
    assert!(unjudged.out.contains("it needs 6 runs a side, and there are 1"), "{}", unjudged.out);
    let unknown = says(["compare", &quick, &slow, "--figure", "startup.p98"]);
    assert_eq!(unknown.code, Some(2));
    assert!(unknown.err.contains("no run has a figure 'startup.p98'"), "{}", unknown.err);
}

fn what_is_not_alike_is_refused_key_by_key(folder: &Path) {
    let at = |name: &str| folder.join(name).display().to_string();
    let place = folder.join("other");
    std::fs::create_dir(&place).unwrap();
    // The same run as if it had been made with more viewers, and by another weir.
    for entry in std::fs::read_dir(folder.join("out/001-quick")).unwrap().flatten() {
        std::fs::copy(entry.path(), place.join(entry.file_name())).unwrap();
    }
    let head = std::fs::read_to_string(place.join("run.json")).unwrap();
    let mut head: Value = serde_json::from_str(&head).unwrap();
    head["scenario"]["workloads"][1]["clients"] = 3.into();
    head["run"]["weir_version"] = "0.0.9".into();
    std::fs::write(place.join("run.json"), head.to_string()).unwrap();
    let refused = says(["compare", &at("out/001-quick"), &at("other")]);
    assert_eq!(refused.code, Some(98), "{}", refused.out);
    for key in ["workloads[1].clients: 2, in ", "weir_version: ", "--anyway compares them"] {
        assert!(refused.err.contains(key), "{} lacks {key}", refused.err);
    }
    let anyway = says(["compare", &at("out/001-quick"), &at("other"), "--anyway", "--format", "markdown"]);
    assert_eq!(anyway.code, Some(0), "{}", anyway.err);
    assert!(anyway.out.contains("not alike") && anyway.out.contains("0.0.9"), "{}", anyway.out);
}

fn a_history_has_every_run(series: &Path) {
    let said = says(["history", &series.display().to_string(), "--figure", "startup", "--json", "-"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let history = json(&said);
    assert_eq!((&history["layout"], &history["name"]), (&"weir.history/1".into(), &"delays".into()));
    assert_eq!(history["runs"].as_array().unwrap().len(), 12);
    let figures = history["figures"].as_array().unwrap();
    let is_of_each = |figure: &Value| {
        let mut runs = history["runs"].as_array().unwrap().iter();
        runs.all(|run| run["figures"][figure["name"].as_str().unwrap()].is_number())
    };
    assert!(!figures.is_empty() && figures.iter().all(is_of_each), "{history:#}");
}
