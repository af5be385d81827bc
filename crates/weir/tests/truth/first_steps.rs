//! What a newcomer pastes: the recipes of README.md, each in a network of its own, where their ports are free.
//!
//! They are run as they stand there, but for times and counts, which are made shorter.

use crate::support::{program, shared};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Output;
use tempfile::TempDir;

/// What is shortened. A recipe's `sleep` becomes longer: a machine that is busy with other tests starts servers later.
const SHORTER: [(&str, &str); 6] = [
    ("sleep 1\n", "sleep 3\n"),
    ("@20s", "@4s"),
    ("-d 20s", "-d 10s"),
    ("-m 10 ", "-m 4 "),
    ("--count 50000", "--count 5000"),
    ("--count 10000", "--count 1000"),
];

/// A recipe that was pasted, and what it left behind.
struct Pasted {
    output: Output,
    directory: TempDir,
}

/// The shell block of README.md that has these words.
fn recipe(words: &str) -> String {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")).unwrap();
    let section = readme.split("\n## A recipe a protocol\n").nth(1).expect("the section of recipes");
    let section = section.split("\n## ").next().unwrap_or_default();
    let mut blocks = section.split("```sh\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.find(|block| block.contains(words)).unwrap_or_else(|| panic!("no recipe has {words}")).to_owned()
}

/// Runs a recipe as a shell does, with weir in its path, in an empty directory. What it leaves in the background ends with it.
fn paste(words: &str) -> Pasted {
    let mut script = recipe(words);
    for (long, short) in SHORTER {
        script = script.replace(long, short);
    }
    let directory = tempfile::tempdir().unwrap();
    let programs = Path::new(env!("CARGO_BIN_EXE_weir")).parent().unwrap().display();
    let path = std::env::var("PATH").unwrap_or_default();
    let output = program("unshare", "util-linux")
        .args(["--net", "--pid", "--fork", "--kill-child", "--mount-proc", "bash", "-c"])
        .arg(format!("ip link set lo up\n{script}"))
        .current_dir(directory.path())
        .env("PATH", format!("{programs}:{path}"))
        .output()
        .unwrap();
    Pasted { output, directory }
}

impl Pasted {
    /// The summary of the one run of this verb.
    fn summary(&self, verb: &str) -> Value {
        let runs = self.directory.path().join("weir-runs");
        let entries = runs.read_dir().unwrap_or_else(|error| panic!("{error}: {}", self.said()));
        let is_of_verb = |path: &PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&format!("{verb}-")))
        };
        let mut found = entries.map(|entry| entry.unwrap().path()).filter(is_of_verb);
        let path = found.next().unwrap_or_else(|| panic!("no run of {verb}: {}", self.said()));
        serde_json::from_slice(&std::fs::read(path.join("summary.json")).unwrap()).unwrap()
    }

    fn said(&self) -> String {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        text(&self.output.stdout) + &text(&self.output.stderr)
    }
}

/// How many clients played or published, and how many failed.
fn played(summary: &Value) -> (f64, u64) {
    let workload = &summary["workloads"][0];
    (workload["total"]["played"]["total"].as_f64().unwrap(), workload["slots"]["failed"].as_u64().unwrap())
}

#[test]
fn a_table_of_rtmp_has_two_rows_and_the_servers_cpu() {
    let _machine = shared();
    let summary = paste("--rtmp").summary("play");
    assert_eq!(played(&summary), (200.0, 0));
    let stages = summary["workloads"][0]["stages"].as_array().unwrap();
    let clients: Vec<_> = stages.iter().map(|stage| stage["clients"].as_u64().unwrap()).collect();
    assert_eq!(clients, [100, 200]);
    assert_eq!(stages[0]["targets"][0]["label"], "port=1935", "{:#}", stages[0]["targets"]);
}

#[test]
fn webrtc_comes_in_by_whip_and_goes_out_by_whep() {
    let _machine = shared();
    assert_eq!(played(&paste("whep+http").summary("play")), (50.0, 0));
}

#[test]
fn three_packets_that_a_tuner_server_left_out_are_found() {
    let _machine = shared();
    let pasted = paste("mirakurun+http");
    let summary = pasted.summary("play");
    assert_eq!(played(&summary), (8.0, 0));
    let lost = summary["thresholds"]
        .as_array()
        .unwrap()
        .iter()
        .find(|it| it["expression"] == "ts.lost_packets == 0");
    let lost = lost.expect("asked of all services");
    assert_eq!((lost["value"].as_f64(), lost["passed"].as_bool()), (Some(3.0), Some(false)));
    assert!(pasted.said().contains("stdin · "), "{}", pasted.said());
}

#[test]
fn every_message_of_mqtt_is_accounted_for() {
    let _machine = shared();
    let pasted = paste("weir play 'mqtt://");
    let (sent, got) = (pasted.summary("publish"), pasted.summary("play"));
    let total =
        |summary: &Value, figure: &str| summary["workloads"][0]["total"][figure]["total"].as_f64().unwrap();
    assert_eq!((total(&sent, "units"), total(&sent, "mqtt.acknowledged")), (5_000.0, 5_000.0));
    assert_eq!((total(&got, "units"), total(&got, "lost")), (20_000.0, 0.0));
}

#[test]
fn every_message_is_a_row() {
    let _machine = shared();
    let pasted = paste("weir ingest");
    let rows = rusqlite::Connection::open(pasted.directory.path().join("rows.db")).unwrap();
    let count: i64 = rows.query_row("SELECT count(*) FROM messages", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 1_000, "{}", pasted.said());
}
