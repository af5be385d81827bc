//! Scenario files: what they run, and what is wrong with them.

use crate::support::{config, measure};
use std::path::{Path, PathBuf};
use weir_origin::Origin;
use weir_runner::ErrorKind;
use weir_runner::prepare::{Generators, prepare};
use weir_runner::series::{repetitions, variations_of};

#[test]
fn a_file_of_a_publisher_and_viewers_in_two_stages_runs_as_written() {
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
    let run = measure(&text.replace("HOST", &address));
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
    assert_eq!(run.missed, None);
    assert!(run.summary["thresholds"][0]["passed"].as_bool().unwrap());
}

/// What is said of a file that is wrong, before anything is run.
fn refused(file: &Path) -> String {
    let ready = variations_of(file).and_then(|mut variations| {
        let scenario = variations.swap_remove(0).scenario;
        repetitions(&scenario)?;
        prepare(scenario, ErrorKind::Scenario, &Generators::Here)
    });
    let Err(error) = ready else { panic!("{} can be run", file.display()) };
    let error = error.in_file(file);
    assert_eq!(error.kind(), ErrorKind::Scenario, "{error}");
    error.to_string()
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
        let words = refused(&file);
        let place = format!("{}{place}", file.display());
        assert!(words.contains(&place), "{text}: {words}");
        let behind = words.split(&format!("{}:", file.display())).nth(1).unwrap_or_default();
        assert!(behind.starts_with(|letter: char| letter.is_ascii_digit()), "{text}: {words}");
        assert_eq!(words.lines().count(), 1, "{words}");
    }
}

#[test]
fn an_unknown_key_is_named_with_its_place_and_its_neighbour() {
    let (_directory, file) = written("name: x\nworkloads:\n  - play: rtmp://h/live/a\n    clints: 5\n");
    let words = refused(&file);
    let expected = format!("{}:4:5: unknown key `clints`; did you mean `clients`?", file.display());
    assert!(words.contains(&expected), "{words}");
    assert_eq!(words.lines().count(), 1, "{words}");
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
        let line = refused(&file);
        assert!(line.contains(words) && !line.is_empty(), "{text}: {line}");
    }
}

#[test]
fn a_file_that_is_not_there_is_a_usage_error() {
    let error = variations_of(Path::new("/no/such/scenario.yaml")).unwrap_err();
    assert_eq!((error.kind(), error.to_string().lines().count()), (ErrorKind::Usage, 1), "{error}");
    assert!(error.to_string().contains("/no/such/scenario.yaml"), "{error}");
}

fn written(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("scenario.yaml");
    std::fs::write(&file, text).unwrap();
    (directory, file)
}
