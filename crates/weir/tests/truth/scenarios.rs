//! Scenario files: what a command line changes in them.

use crate::support::{air, config, measure, says, shared};
use std::path::PathBuf;

#[test]
fn a_file_is_pointed_at_another_server() {
    let _machine = shared();
    let air = air(&config(&[]));
    let (_directory, file) = written(
        "warmup: 0s\ndrain: 200ms\nworkloads: [{play: rtmp://no-such-host.invalid/live/a, clients: 2, duration: 2s}]",
    );
    let target = air.origin.address("rtmp").unwrap().to_string();
    let run = measure(["run", file.to_str().unwrap(), "--target", &target]);
    assert_eq!((run.code, run.total("played")), (0, 2.0));
}

#[test]
fn a_command_line_changes_what_a_file_says_and_its_paths_begin_at_the_file() {
    let _machine = shared();
    let air = air(&config(&[]));
    let text =
        format!("warmup: 0s\ndrain: 200ms\nworkloads: [{{play: '{}', clients: 9, duration: 60s}}]", air.url);
    let (_directory, file) = written(&text);
    let file = file.to_str().unwrap();
    let run = measure([
        "run",
        file,
        "-c",
        "2",
        "-d",
        "2s",
        "--set",
        "workloads.play.buffer=300ms",
        "--set",
        "seed=7",
    ]);
    assert_eq!((run.total("played"), run.slots("planned")), (2.0, 2));
    assert_eq!(run.summary["run"]["seed"], 7);
    let head = std::fs::read_to_string(run.directory().join("run.json")).unwrap();
    assert!(head.contains("\"buffer\": \"300ms\""), "{head}");
    let (directory, file) =
        written("workloads: [{publish: 'rtmp://127.0.0.1:9/live/a', file: clip.flv, duration: 1s}]");
    let said = says(["run", file.to_str().unwrap()]);
    let path = directory.path().join("clip.flv").display().to_string();
    assert!(said.code == Some(104) && said.err.contains(&path), "{}", said.err);
    let said = says(["run", file.to_str().unwrap(), "--set", "workloads.publish.flie=x"]);
    assert!(said.code == Some(2) && said.err.contains("did you mean `file`?"), "{}", said.err);
}

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scenario.yaml");
    std::fs::write(&file, text).unwrap();
    (directory, file)
}
