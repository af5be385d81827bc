//! What is written where: pure JSON, closed pipes, formats.

use crate::support::{air, config, measure, program, says, shared, weir};
use std::path::Path;
use std::process::Stdio;

#[test]
fn the_summary_on_stdout_keeps_to_its_published_schema() {
    let _machine = shared();
    let air = air(&config(&["close viewer=2 at=1s"]));
    let watch = format!("pid={}", std::process::id());
    let run = measure([
        "play", &air.url, "-c", "3", "-d", "3s", "--warmup", "1s", "--drain", "200ms", "--watch", &watch,
        "--tag", "site=lab",
    ]);
    let schema = weir().args(["schema", "summary"]).output().unwrap();
    let schema = serde_json::from_slice(&schema.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let wrong: Vec<_> = validator.iter_errors(&run.summary).map(|error| error.to_string()).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(run.summary["layout"], "weir.summary/1");
}

#[test]
fn a_reader_that_leaves_early_is_no_error() {
    let _machine = shared();
    let air = air(&config(&[]));
    let weir = weir().get_program().to_str().unwrap().to_owned();
    let parent = tempfile::tempdir().unwrap();
    let run = parent.path().join("run");
    let load = format!("play {} -c 2 -d 1s --warmup 0s --drain 200ms -o '{}'", air.url, run.display());
    for (arguments, reader) in [
        (load.as_str(), "head -1"),
        ("schema summary", "head -1"),
        ("doctor --no-load", "true"),
        (&format!("watch --pid {} -d 10s", std::process::id()), "head -1"),
        ("--help", "true"),
    ] {
        let script = format!("{{ '{weir}' {arguments}; echo \"code $?\" >&2; }} | {reader} >/dev/null");
        let output = program("sh", "dash").args(["-c", &script]).stderr(Stdio::piped()).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(!err.contains("panicked"), "{arguments}: {err}");
        assert!(err.contains("code 0\n"), "{arguments}: {err}");
    }
    assert!(run.join("summary.json").exists(), "the run is written whether it is read or not");
}

#[test]
fn every_format_goes_to_stdout_and_nothing_else_does() {
    let _machine = shared();
    let air = air(&config(&[]));
    let run = measure(["play", &air.url, "-c", "2", "-d", "2s", "--warmup", "0s", "--drain", "200ms"]);
    let directory = run.directory().to_str().unwrap();
    for (format, begins) in
        [("json", "{"), ("csv", ""), ("markdown", "#"), ("junit", "<?xml"), ("html", "<!"), ("text", "")]
    {
        let output = weir().args(["report", directory, "--format", format]).output().unwrap();
        let out = String::from_utf8(output.stdout).unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*err), (Some(0), ""), "{format}");
        assert!(out.len() > 200 && out.trim_start().starts_with(begins), "{format}: {out}");
        assert!(!out.contains('\u{1b}'), "{format}: no colour into a pipe");
    }
    let quiet = weir().args(["report", directory, "-q"]).output().unwrap();
    assert_eq!(quiet.stdout, b"");
}

#[test]
fn a_summary_that_cannot_be_written_is_known_before_the_run_or_is_no_success() {
    let _machine = shared();
    let air = air(&config(&[]));
    let directory = tempfile::tempdir().unwrap();
    let play = |json: &str, run: &Path| {
        let load = ["play", &air.url, "-c", "1", "-d", "1s", "--drain", "200ms", "-q"];
        says(load.into_iter().chain(["--json", json, "-o", run.to_str().unwrap()]))
    };
    let run = directory.path().join("early");
    let said = play("/nonexistent/summary.json", &run);
    assert_eq!(said.code, Some(2), "{}", said.err);
    assert!(said.err.contains("/nonexistent/summary.json") && !run.exists(), "{}", said.err);
    let run = directory.path().join("late");
    let said = play("/dev/full", &run);
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(said.err.contains("/dev/full") && run.join("summary.json").exists(), "{}", said.err);
}
