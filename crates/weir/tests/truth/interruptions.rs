//! Runs that do not come to their end: by Ctrl-C, by the kernel, by a full disk.

use crate::support::{KilledOnDrop, air, config, program, report, says, shared, soon, start_measuring, weir};
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

#[test]
fn ctrl_c_leaves_whole_artefacts_and_the_same_summary_when_read_again() {
    let _machine = shared();
    let air = air(&config(&["close viewer=3 at=1s"]));
    let mut command = weir();
    command.args(["play", &air.url, "-c", "5", "-d", "60s", "--warmup", "1s", "--drain", "300ms"]);
    let measuring = start_measuring(&mut command);
    soon("three seconds are written", || seconds_written(&measuring.directory()) >= 3);
    // As `timeout -s INT` does it: to the process, and to its group.
    measuring.process.interrupt();
    measuring.process.interrupt();
    let run = measuring.finish();
    assert_eq!((run.code, &run.summary["outcome"]), (105, &"interrupted".into()));
    assert_eq!((run.well(), run.slots("failed")), (4, 1));
    for name in [
        "run.json",
        "intervals.ndjson",
        "histograms.hlog",
        "observe.ndjson",
        "events.ndjson",
        "summary.json",
        "report.html",
        "report.txt",
        "report.md",
        "report.csv",
        "report.xml",
    ] {
        let length =
            std::fs::metadata(run.directory().join(name)).unwrap_or_else(|e| panic!("{name}: {e}")).len();
        assert!(length > 0, "{name} is empty");
    }
    let written: Value =
        serde_json::from_slice(&std::fs::read(run.directory().join("summary.json")).unwrap()).unwrap();
    assert_eq!(without_length(&written), without_length(&run.summary));
    let again = report(run.directory());
    assert_eq!(without_length(&again.summary), without_length(&run.summary));
}

/// A broker that accepts a client and acknowledges nothing: the publisher waits for it for most of the drain.
#[test]
fn a_second_ctrl_c_ends_weir_at_once_with_the_number_of_an_interruption() {
    let _machine = shared();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("mqtt://{}/a", listener.local_addr().unwrap());
    let broker = std::thread::spawn(move || {
        let (mut link, _) = listener.accept().unwrap();
        // CONNACK of MQTT 3.1.1, section 3.2: accepted.
        link.write_all(&[0x20, 2, 0, 0]).unwrap();
        let _ = std::io::copy(&mut link, &mut std::io::sink());
    });
    let mut command = weir();
    command.args(["publish", &url, "--mqtt-version", "3.1.1", "--qos", "1", "-d", "300s", "--drain", "300s"]);
    let mut measuring = start_measuring(&mut command);
    soon("a second is written", || seconds_written(&measuring.directory()) >= 1);
    measuring.process.interrupt();
    // Signals within a second are taken for the same one.
    std::thread::sleep(Duration::from_millis(1_300));
    assert!(measuring.process.0.try_wait().unwrap().is_none(), "it waits for acknowledgements");
    measuring.process.interrupt();
    assert_eq!(measuring.process.0.wait().unwrap().code(), Some(105));
    broker.join().unwrap();
}

#[test]
fn rates_of_an_interrupted_run_come_from_whole_seconds_of_stages_that_were_reached() {
    let _machine = shared();
    let air = air(&config(&[]));
    let mut command = weir();
    command.args(["play", &air.url, "--stage", "4@60s", "--stage", "8@60s", "--warmup", "1s"]);
    command.args(["--witness-every", "1", "--drain", "300ms", "--threshold", "bitrate.ratio > 0.8"]);
    let measuring = start_measuring(&mut command);
    soon("five seconds are written", || seconds_written(&measuring.directory()) >= 5);
    measuring.process.interrupt();
    let run = measuring.finish();
    let (first, second) = (run.stage(0), run.stage(1));
    let end = first["window_end_seconds"].as_f64().unwrap();
    assert!(end >= 4.0 && end <= run.summary["run"]["duration_seconds"].as_f64().unwrap(), "{first:#}");
    // In the second that was cut short clients left, and less came.
    assert_eq!(first["playing_mean"], 4.0);
    assert_eq!(second["window_begin_seconds"], second["window_end_seconds"]);
    assert_eq!((&second["expected_bps"], &second["targets"]), (&Value::Null, &Value::Array(Vec::new())));
    assert_eq!(run.summary["thresholds"][0]["passed"], true, "{:#}", run.summary["thresholds"]);
}

#[test]
fn ctrl_c_on_a_terminal_ends_the_demo_and_not_its_origin_under_it() {
    let _machine = shared();
    let mut command = weir();
    command.arg("demo").process_group(0);
    let measuring = start_measuring(&mut command);
    soon("three seconds are written", || seconds_written(&measuring.directory()) >= 6);
    kill_process_group(Pid::from_child(&measuring.process.0), Signal::INT).unwrap();
    let run = measuring.finish();
    assert_eq!((run.code, &run.summary["outcome"]), (105, &"interrupted".into()));
    for workload in run.workloads() {
        assert_eq!(workload["slots"]["failed"], 0, "{:#}", workload["failures"]);
    }
}

#[test]
fn a_run_without_an_end_is_complete_when_it_is_interrupted() {
    let _machine = shared();
    let air = air(&config(&[]));
    let mut command = weir();
    command.args(["play", &air.url, "-c", "2", "-d", "0", "--warmup", "0s", "--drain", "200ms"]);
    let measuring = start_measuring(&mut command);
    soon("three seconds are written", || seconds_written(&measuring.directory()) >= 3);
    measuring.process.interrupt();
    let run = measuring.finish();
    assert_eq!((&run.summary["outcome"], run.total("played")), (&"completed".into(), 2.0));
    assert!(run.stage(0)["window_end_seconds"].as_u64().unwrap() >= 2, "{:#}", run.stage(0));
}

#[test]
fn the_origin_of_a_demo_that_is_killed_ends_too() {
    let _machine = shared();
    let mut command = weir();
    command.arg("demo");
    let mut measuring = start_measuring(&mut command);
    let head = measuring.directory().join("run.json");
    soon("the run has begun", || head.exists());
    let head: Value = serde_json::from_slice(&std::fs::read(head).unwrap()).unwrap();
    let url = head["workloads"][0]["targets"][0].as_str().unwrap();
    let place = url.trim_start_matches("rtmp://").split('/').next().unwrap();
    measuring.process.kill();
    soon("nobody listens any more", || TcpStream::connect(place).is_err());
}

#[test]
fn a_killed_run_still_reports_what_it_measured() {
    let _machine = shared();
    let air = air(&config(&[]));
    let mut command = weir();
    command.args(["play", &air.url, "-c", "4", "-d", "60s", "--warmup", "1s"]);
    let mut measuring = start_measuring(&mut command);
    soon("three seconds are written", || seconds_written(&measuring.directory()) >= 3);
    measuring.process.kill();
    let directory = measuring.directory();
    let seconds = seconds_written(&directory);
    let said = says(["report", directory.to_str().unwrap(), "--json", "-"]);
    assert_eq!(said.code, Some(105), "{}", said.err);
    let summary: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!(summary["outcome"], "interrupted");
    let total = &summary["workloads"][0]["total"];
    assert_eq!(total["played"]["total"], 4.0);
    assert_eq!(summary["series"].as_array().unwrap().len(), seconds);
    // What the report says is what the lines say.
    let lines = std::fs::read_to_string(directory.join("intervals.ndjson")).unwrap();
    let media: f64 = lines
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["media_bytes"].as_f64().unwrap())
        .sum();
    assert!(media > 0.0);
    assert_eq!(total["media"]["total"], media);
    assert_eq!(total["startup"]["count"], 4);
}

#[test]
fn a_line_that_was_cut_short_is_left_out() {
    let _machine = shared();
    let air = air(&config(&[]));
    let mut command = weir();
    command.args(["play", &air.url, "-c", "2", "-d", "3s", "--warmup", "0s", "--drain", "200ms"]);
    let run = start_measuring(&mut command).finish();
    for name in ["intervals.ndjson", "histograms.hlog", "observe.ndjson", "summary.json"] {
        let path = run.directory().join(name);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 10]).unwrap();
    }
    let said = says(["report", run.directory().to_str().unwrap(), "--json", "-"]);
    let summary: Value = serde_json::from_str(&said.out).unwrap_or_else(|e| panic!("{e}: {}", said.err));
    assert_eq!(summary["workloads"][0]["total"]["played"]["total"], 2.0);
    // How it ended is in no line: that this is not known is said, with the file and its line.
    let warnings = summary["warnings"].as_array().unwrap().iter().filter_map(Value::as_str);
    let damaged = warnings.filter(|it| it.contains("/summary.json:") && it.contains(": damaged: ")).count();
    assert_eq!(damaged, 1, "{}", summary["warnings"]);
}

#[test]
fn files_that_can_grow_no_more_end_the_record_and_not_the_run() {
    let _machine = shared();
    let air = air(&config(&[]));
    let parent = tempfile::tempdir().unwrap();
    let run = parent.path().join("run");
    // What a full disk does, without the right to mount one.
    let mut command = weir();
    command.args(["play", &air.url, "-c", "4", "-d", "6s", "--warmup", "0s"]);
    command.args(["--drain", "200ms", "-o"]).arg(&run).env("COLUMNS", "100");
    let mut playing = KilledOnDrop::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    soon("two seconds are written", || seconds_written(&run) >= 2);
    let mut limit = program("prlimit", "util-linux");
    assert!(limit.args(["--fsize=1", "--pid", &playing.pid().to_string()]).status().unwrap().success());
    let code = playing.ended().code();
    let text = |stream: &mut dyn Read| {
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        text
    };
    let out = text(&mut playing.0.stdout.take().unwrap());
    let err = text(&mut playing.0.stderr.take().unwrap());
    assert!(!err.contains("panicked"), "{err}");
    // The table is there, and all of its figures; a line names the file that could not be written.
    let flat = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(flat.contains("Startup") && flat.contains("Verdict"), "{out}{err}");
    assert!(flat.contains(".ndjson") && flat.contains("figures above are whole"), "{out}{err}");
    // The artefacts could not be written: that is no success.
    assert_eq!(code, Some(1), "{out}{err}");
    assert!(err.lines().any(|line| line.starts_with("weir: ") && line.contains("/run/")), "{err}");
}

pub(crate) fn seconds_written(directory: &Path) -> usize {
    std::fs::read_to_string(directory.join("intervals.ndjson")).map_or(0, |text| text.lines().count())
}

/// A summary without the length of the run, which reading cannot know to the microsecond.
fn without_length(summary: &Value) -> Value {
    let mut summary = summary.clone();
    summary["run"].as_object_mut().unwrap().remove("duration_seconds");
    summary
}
