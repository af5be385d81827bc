//! Scenario files: what they run, and what is wrong with them.

use crate::support::{air, config, measure, says, shared};
use std::path::PathBuf;
use weir_origin::Origin;

#[test]
fn a_file_of_a_publisher_and_viewers_in_two_stages_runs_as_written() {
    let _machine = shared();
    let origin = Origin::start(&config(&[])).unwrap();
    let text = "
name: two steps
warmup: 500ms
drain: 400ms
tags: {site: lab}
workloads:
  - name: source
    publish: rtmp://HOST/live/{i}
    streams: 2
    bitrate: 235kbps
    gop: 1s
  - name: crowd
    play: rtmp://HOST/live/{i}
    streams: 2
    delay: 1s
    stages:
      - {clients: 2, hold: 2s, ramp: 100ms}
      - {clients: 6, hold: 2s, ramp: 100ms}
thresholds:
  - slots_failed == 0
";
    let address = origin.address("rtmp").unwrap().to_string();
    let (_directory, file) = written(&text.replace("HOST", &address));
    let run = measure(["run", file.to_str().unwrap()]);
    let [source, crowd] = run.workloads() else { panic!("two workloads") };
    assert_eq!((&source["name"], &crowd["name"]), (&"source".into(), &"crowd".into()));
    assert_eq!((&source["slots"]["failed"], &crowd["slots"]["failed"]), (&0.into(), &0.into()));
    assert_eq!((&source["slots"]["planned"], &crowd["slots"]["planned"]), (&2.into(), &6.into()));
    let clients: Vec<_> = crowd["stages"].as_array().unwrap().iter().map(|stage| &stage["clients"]).collect();
    assert_eq!(clients, [2, 6]);
    assert_eq!(run.summary["run"]["tags"]["site"], "lab");
    // Viewers take the streams in turn: 0, 1, 0, 1, 0, 1.
    let counts = origin.counts();
    let of = |name: &str| counts.viewers.iter().filter(|viewer| &*viewer.stream == name).count();
    assert_eq!((of("live/0"), of("live/1")), (3, 3));
    assert_eq!(run.code, 0);
    assert!(run.summary["thresholds"][0]["passed"].as_bool().unwrap());
}

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

/// Of text that is no YAML, of values of another kind and of values that are none.
#[test]
fn every_error_in_a_file_has_a_line() {
    for (text, place) in [
        ("name: x\nworkloads:\n  - play: [rtmp://h/a/b\n", ":"),
        ("name: x\nseed: much\n", ":2:"),
        ("name: x\nworkloads:\n  - {play: rtmp://h/a/b, clients: -1}\n", ":3:"),
        ("name: x\nworkloads:\n  - play: rtmp://h/a/b\n    duration: 15 parsecs\n", ":4:"),
        ("name: x\nworkloads:\n  - play: rtmp://h/a/b\n    stages:\n      - {clients: 5}\n", ":5:"),
        ("name: x\nthresholds:\n  - startup.p99 < 1s\n  - startup.p99 ! 1s\n", ":4:"),
        ("name: x\ninterfaces:\n  - 'a|b'\n", ":3:"),
        ("name: x\nbind_addr: [home]\n", ":2:"),
        ("name: x\nname: y\n", ":2:"),
        ("name: x\nworkloads: 5\n", ":2:"),
        // What is found when the file has been read.
        ("name: x\nworkloads:\n  - play: rtmp://h/a/b\n", ":3:"),
        ("name: x\nworkloads:\n  - {clients: 3, duration: 1s}\n", ":3:"),
        (
            "name: x\nworkloads:\n  - {play: rtmp://127.0.0.1:9/a/s, duration: 1s}\n  - {publish: gopher://h/a/b}\n",
            ":4:",
        ),
        ("name: x\nworkloads:\n  - {play: rtmp://127.0.0.1:9/a/s, duration: 1s, timeout: 0s}\n", ":3:"),
        (
            "workloads: [{play: rtmp://127.0.0.1:9/a/s, duration: 1s}]\nthresholds:\n  - latncy.p50 < 1s\n",
            ":3:",
        ),
        (
            "workloads: [{play: rtmp://127.0.0.1:9/a/s, duration: 1s}]\nabort: [startup.p50 < 1s,\n  frames.p50 < 1s]\n",
            ":3:",
        ),
        (
            "workloads: [{play: rtmp://127.0.0.1:9/a/s, duration: 1s}]\nwatch:\n  - name=nginx\n  - nginx\n",
            ":4:",
        ),
        ("workloads: [{play: rtmp://127.0.0.1:9/a/s, duration: 1s}]\nrepeat: 0\n", ":2:"),
        (
            "before: [start: sleep 9]\nworkloads: [{play: rtmp://127.0.0.1:9/a/s, duration: 2s}]\nduring:\n  - {at: 1s, restart: slep}\n",
            ":4:",
        ),
        (
            "workloads: [{play: rtmp://127.0.0.1:9/a/s, duration: 2s}]\nthresholds:\n  - restart.reconnected < 1s\n",
            ":3:",
        ),
    ] {
        let (_directory, file) = written(text);
        let said = says(["run", file.to_str().unwrap()]);
        let place = format!("{}{place}", file.display());
        assert!(said.code == Some(104) && said.err.contains(&place), "{text}: {}", said.err);
        let behind = said.err.split(&format!("{}:", file.display())).nth(1).unwrap_or_default();
        assert!(behind.starts_with(|letter: char| letter.is_ascii_digit()), "{text}: {}", said.err);
        assert_eq!(said.err.lines().count(), 1, "{}", said.err);
    }
}

#[test]
fn an_unknown_key_is_named_with_its_place_and_its_neighbour() {
    let (_directory, file) = written("name: x\nworkloads:\n  - play: rtmp://h/live/a\n    clints: 5\n");
    let said = says(["run", file.to_str().unwrap()]);
    assert_eq!(said.code, Some(104), "{}", said.err);
    let expected = format!("{}:4:5: unknown key `clints`; did you mean `clients`?", file.display());
    assert!(said.err.contains(&expected), "{}", said.err);
    assert_eq!(said.err.lines().count(), 1, "{}", said.err);
}

#[test]
fn what_makes_no_sense_in_a_file_is_a_bad_scenario() {
    for (text, words) in [
        ("workloads: []", "no workloads"),
        ("workloads: [{clients: 3, duration: 1s}]", "one of `play`, `publish`"),
        ("workloads: [{play: rtmp://127.0.0.1:9/a/s}]", "duration"),
        ("workloads: [{play: rtmp://127.0.0.1:9/a/s, duration: soon}]", "soon"),
        ("workloads: [{play: gopher://h/a/s, duration: 1s}]", "gopher"),
        (
            "workloads: [{play: rtmp://127.0.0.1:9/a/s, duration: 1s}]\nthresholds: [latncy.p50 < 1s]",
            "latency",
        ),
        ("workloads: [{play: rtmp://127.0.0.1:9/a/s, duration: 1s}]\nwatch: [nginx]", "name=nginx"),
        ("workloads: {", ""),
    ] {
        let (_directory, file) = written(text);
        let said = says(["run", file.to_str().unwrap()]);
        assert_eq!(said.code, Some(104), "{text}: {}", said.err);
        assert!(said.err.contains(words) && !said.err.is_empty(), "{text}: {}", said.err);
    }
}

#[test]
fn a_file_that_is_not_there_is_a_usage_error() {
    let said = says(["run", "/no/such/scenario.yaml"]);
    assert_eq!((said.code, said.err.lines().count()), (Some(2), 1), "{}", said.err);
    assert!(said.err.contains("/no/such/scenario.yaml"), "{}", said.err);
}

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scenario.yaml");
    std::fs::write(&file, text).unwrap();
    (directory, file)
}
