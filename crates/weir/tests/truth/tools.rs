//! The verbs around a run: schema, doctor, watch, origin.

use crate::support::{KilledOnDrop, interrupt, program, says, shared, weir};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::Stdio;
use std::time::{Duration, Instant};

#[test]
fn the_schemas_are_the_ones_in_the_documentation() {
    let documents = || ["summary", "check", "codec", "series", "capacity", "sweep", "compare", "history"];
    for what in documents().into_iter().chain(["scenario"]) {
        let said = says(["schema", what]);
        assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
        let file = |name: &str| {
            let path = format!("{}/../../docs/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
            serde_json::from_str::<Value>(&std::fs::read_to_string(path).unwrap()).unwrap()
        };
        let whole: Value = serde_json::from_str(&said.out).unwrap();
        jsonschema::validator_for(&whole).unwrap();
        if what == "scenario" {
            assert_eq!(whole, file(what));
            continue;
        }
        // In the documentation what several share stands once.
        let (published, shared) = (file(what), file("definitions"));
        let none = serde_json::Map::new();
        for (name, definition) in whole["$defs"].as_object().unwrap_or(&none) {
            let of_file = published["$defs"].get(name);
            assert_eq!(of_file.is_none(), shared["$defs"].get(name).is_some(), "{what}: {name}");
            assert!(of_file.is_none_or(|it| it["type"] == definition["type"]), "{what}: {name}");
        }
        let properties =
            |of: &Value| of["properties"].as_object().map(|it| it.keys().cloned().collect::<Vec<_>>());
        assert_eq!(properties(&whole), properties(&published));
    }
    assert_eq!(says(["schema", "world"]).code, Some(2));
}

#[test]
fn the_doctor_names_each_limit_with_a_figure_and_a_remedy() {
    let said = says(["doctor", "--no-load"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{}", said.err);
    for words in ["descriptors", "local ports", "receive buffer", "backlog", "cores"] {
        assert!(said.out.contains(words), "{words} is not in {}", said.out);
    }
    for line in said.out.lines().filter(|line| line.trim_start().starts_with("limit")) {
        assert!(line.contains("; ") && line.contains(|c: char| c.is_ascii_digit()), "no remedy: {line}");
    }
}

#[test]
fn the_doctor_says_how_many_machines_a_load_needs_and_what_runs_out_first() {
    let _machine = shared();
    let said = says(["doctor", "--for", "rtmp://127.0.0.1/live/a 2000 at 500kbps"]);
    // A machine that is busy with other things does not know, and says so.
    let words = match said.code {
        Some(98) => &["not known: ", "Remedy: "][..],
        _ => &["first to run out: ", "local ports", "loopback has no speed", "witness", "An estimate."],
    };
    assert!(matches!(said.code, Some(0 | 98)) && said.err.is_empty(), "{:?}: {}", said.code, said.err);
    for words in words {
        assert!(said.out.contains(words), "{words} is not in {}", said.out);
    }
}

#[test]
fn a_process_is_watched_once_a_second() {
    let _machine = shared();
    let began = Instant::now();
    let said = says(["watch", "--pid", &std::process::id().to_string(), "-d", "2s"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""));
    assert!(began.elapsed() >= Duration::from_secs(2));
    let (head, lines) = said.out.split_once('\n').unwrap();
    assert!(head.starts_with("CPU: 100% is one core"), "{head}");
    assert!((1..=2).contains(&lines.lines().count()), "{lines}");
    assert!(lines.lines().all(|line| line.contains("CPU") && line.contains("MB")), "{lines}");

    let said = says(["watch", "--pid", &std::process::id().to_string(), "-d", "2s", "--json"]);
    assert_eq!(said.code, Some(0));
    for line in said.out.lines() {
        let usage: Value = serde_json::from_str(line).unwrap();
        assert!(usage["targets"][0]["process"]["rss_bytes"].as_u64().unwrap() > 0, "{line}");
    }
    assert_eq!(says(["watch", "-d", "1s"]).code, Some(2), "nothing to watch");
}

#[test]
fn a_watched_process_that_dies_ends_the_watch() {
    let _machine = shared();
    let mut target = KilledOnDrop::start(std::process::Command::new("sleep").arg("60"));
    let mut watch = weir();
    watch.args(["watch", "--pid", &target.pid().to_string(), "-d", "60s"]).stdout(Stdio::piped());
    let mut watching = KilledOnDrop::start(watch.stderr(Stdio::piped()));
    let mut first = String::new();
    let mut out = BufReader::new(watching.0.stdout.take().unwrap());
    out.read_line(&mut first).unwrap();
    target.kill();
    assert_eq!(watching.ended().code(), Some(97));
    let mut err = String::new();
    watching.0.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert!(err.contains("gone"), "{err}");
}

#[test]
fn an_origin_says_where_it_listens_and_what_it_served() {
    let mut command = weir();
    command.args(["origin", "--rtmp", ":0"]).stdout(Stdio::piped());
    let mut origin = KilledOnDrop::start(&mut command);
    let mut out = BufReader::new(origin.0.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on rtmp://127.0.0.1:"), "{line}");
    let url = format!("{}/live/nobody", line.trim().strip_prefix("listening on ").unwrap());
    let parent = tempfile::tempdir().unwrap();
    let said =
        says(["play", &url, "-c", "2", "-d", "1s", "-q", "-o", parent.path().join("run").to_str().unwrap()]);
    assert_eq!(said.code, Some(99), "nothing was played: {}", said.err);
    interrupt(&origin.0);
    assert_eq!(origin.ended().code(), Some(0));
    line.clear();
    out.read_line(&mut line).unwrap();
    assert_eq!(line.trim(), "2 links, 2 viewers; sent 0 payload bytes in 0 units");
}

#[test]
fn an_origin_is_a_tuner_server_beside_or_without_rtmp() {
    let serves = |arguments: &[&str], schemes: &[&str]| {
        let mut command = weir();
        command.arg("origin").args(arguments).args(["--http", ":0", "--bitrate", "2mbps"]);
        let mut origin = KilledOnDrop::start(command.stdout(Stdio::piped()));
        let mut out = BufReader::new(origin.0.stdout.take().unwrap());
        let mut url = String::new();
        for scheme in schemes {
            let mut line = String::new();
            out.read_line(&mut line).unwrap();
            assert!(line.starts_with(&format!("listening on {scheme}://127.0.0.1:")), "{line}");
            if *scheme == "http" {
                url = line.trim().strip_prefix("listening on ").unwrap().to_owned();
            }
        }
        (origin, out, url)
    };
    let (origin, mut out, url) = serves(&["--services", "GR:1,BS:2"], &["http", "mirakurun+http"]);
    let mut curl = program("curl", "curl");
    let got = curl.args(["-sf", &format!("{url}/api/services?channel.type=BS")]).output().unwrap();
    let services: Value = serde_json::from_slice(&got.stdout).unwrap();
    let names: Vec<_> = services.as_array().unwrap().iter().map(|service| &service["name"]).collect();
    assert_eq!(names, ["weir BS 1", "weir BS 2"]);

    let directory = tempfile::tempdir().unwrap();
    let stored = directory.path().join("stored.ts");
    let mut curl = program("curl", "curl");
    let _ = curl
        .args(["-sN", "--max-time", "2", "-o", stored.to_str().unwrap(), &format!("{url}/3.ts")])
        .status();
    interrupt(&origin.0);
    let mut last = String::new();
    out.read_line(&mut last).unwrap();
    assert!(last.starts_with("2 links, 1 viewer; sent "), "{last}");
    assert!(std::fs::metadata(&stored).unwrap().len() > 188 * 1_000);

    let (_origin, _, url) =
        serves(&["--rtmp", ":0", "--file", stored.to_str().unwrap()], &["rtmp", "http", "mirakurun+http"]);
    let mut curl = program("curl", "curl");
    let got = curl.args(["-sf", &format!("{url}/api/services")]).output().unwrap();
    let services: Value = serde_json::from_slice(&got.stdout).unwrap();
    assert_eq!(services.as_array().unwrap().len(), 1);
    assert_eq!(services[0]["name"], "weir BS 2", "a file is named after what is in it");

    let none = directory.path().join("none.ts");
    std::fs::write(&none, [0; 10_000]).unwrap();
    let said = says(["origin", "--http", ":0", "--file", none.to_str().unwrap()]);
    assert_eq!((said.code, said.err.lines().count()), (Some(2), 1), "{}", said.err);
    assert!(said.err.contains("none.ts: no transport stream packets"), "{}", said.err);
}

#[test]
fn a_fault_that_is_none_and_a_port_that_is_taken_are_said_in_a_line() {
    let said = says(["origin", "--rtmp", ":0", "--fault", "explode"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("'explode' is not a fault"), "{}", said.err);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let said = says(["origin", "--rtmp", &taken.local_addr().unwrap().to_string(), "-d", "1s"]);
    assert_eq!((said.code, said.err.lines().count()), (Some(2), 1), "{}", said.err);
}
