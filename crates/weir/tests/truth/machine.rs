//! The target's machine: before the load and over it, by /proc, a node_exporter and a Prometheus, and when one goes.

use crate::support::{NodeExporter, Run, air, config, measure, says, shared, soon, start_measuring, weir};
use serde_json::Value;
use std::path::Path;

pub(crate) const FIGURES: [&str; 5] = ["cpu_percent", "memory_bytes", "load1", "tx_bps", "rx_bps"];

/// The machine that was read by this source.
pub(crate) fn machine<'a>(run: &'a Run, source: &str) -> &'a Value {
    let machines =
        run.summary["machines"].as_array().unwrap_or_else(|| panic!("no machine: {:#}", run.summary));
    let found = machines.iter().find(|machine| machine["source"] == source);
    found.unwrap_or_else(|| panic!("none by {source}: {machines:#?}"))
}

pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is not a number"))
}

pub(crate) fn text(run: &Run) -> String {
    std::fs::read_to_string(run.directory().join("report.txt")).unwrap()
}

#[test]
fn a_node_exporter_that_dies_in_the_middle_is_noted_and_the_run_goes_on() {
    let _machine = shared();
    let mut exporter = NodeExporter::start();
    let air = air(&config(&[]));
    let mut command = weir();
    command.args(["play", &air.url, "-d", "8s", "--base", "1s", "--node-exporter", &exporter.url()]);
    let measuring = start_measuring(&mut command);
    let observed = measuring.directory().join("observe.ndjson");
    soon("the exporter was heard during the load", || {
        std::fs::read_to_string(&observed).is_ok_and(|text| text.lines().count() > 5)
    });
    exporter.process.kill();
    let run = measuring.finish();
    assert_eq!((run.code, run.total("played")), (0, 1.0), "{}", run.err);
    let warnings = run.summary["warnings"].to_string();
    assert!(warnings.contains(&exporter.url()) && warnings.contains("did not answer from"), "{warnings}");
    assert!(text(&run).contains("did not answer from"));
    // What came before it went is kept, and nothing is made up after it.
    let last = run.summary["series"].as_array().unwrap().iter().next_back().unwrap();
    assert!(last["machines"][1]["load1"].is_null(), "{last:#}");
}

#[test]
fn what_is_no_node_exporter_ends_the_run_before_it_begins_in_one_line() {
    let _machine = shared();
    let nobody = format!("http://me:hunter2@127.0.0.1:{}", crate::support::free_port());
    let parent = tempfile::tempdir().unwrap();
    let run = parent.path().join("run");
    // A server that does not answer is 97 in every verb; what is no URL is a mistake of the command line.
    for (url, code, words) in [
        (nobody.as_str(), 97, "refused"),
        ("127.0.0.1:9100", 2, "--node-exporter '127.0.0.1:9100' is no URL"),
    ] {
        let said = says([
            "play",
            "rtmp://127.0.0.1:9/live/a",
            "-d",
            "1s",
            "-o",
            run.to_str().unwrap(),
            "--node-exporter",
            url,
        ]);
        assert_eq!(
            (said.code, said.err.lines().count(), said.out.as_str()),
            (Some(code), 1, ""),
            "{}",
            said.err
        );
        assert!(said.err.contains(words) && !said.err.contains("hunter2"), "{}", said.err);
        assert!(!Path::new(&run).exists(), "nothing is left behind");
        assert_eq!(says(["watch", "-d", "1s", "--node-exporter", url]).code, Some(code));
    }
    let file = parent.path().join("scenario.yaml");
    let scenario =
        format!("node_exporter: {nobody}\nworkloads: [{{play: 'rtmp://127.0.0.1:9/live/a', duration: 1s}}]");
    std::fs::write(&file, scenario).unwrap();
    let said = says(["run", file.to_str().unwrap()]);
    assert_eq!((said.code, said.err.lines().count()), (Some(97), 1), "{}", said.err);
    let said = says(["play", "rtmp://127.0.0.1:9/live/a", "--interface", "eth0|lo"]);
    assert_eq!(said.code, Some(2));
    assert!(said.err.contains("is not an interface name"), "{}", said.err);
}

#[test]
fn user_and_password_of_a_node_exporter_reach_no_file() {
    let _machine = shared();
    let exporter = NodeExporter::start();
    let air = air(&config(&[]));
    let url = exporter.url().replace("http://", "http://me:hunter2@") + "/metrics?key=hunter3";
    let run =
        measure(["play", &air.url, "-d", "3s", "--warmup", "0s", "--base", "1s", "--node-exporter", &url]);
    assert!(run.summary.to_string().contains("/metrics?…"), "{:#}", run.summary["machines"]);
    for entry in run.directory().read_dir().unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("hunter"), "{}", path.display());
    }
    assert!(!run.err.contains("hunter"));
}

#[test]
fn a_machine_is_watched_without_a_load_and_without_a_process() {
    let _machine = shared();
    let exporter = NodeExporter::start();
    let url = exporter.url();
    let said = says(["watch", "--node-exporter", &url, "--interface", "lo", "-d", "3s"]);
    assert_eq!((said.code, said.err.as_str()), (Some(0), ""), "{}", said.out);
    assert!(
        said.out.contains("node_exporter CPU") && said.out.contains("load1") && said.out.contains("rx"),
        "{}",
        said.out
    );
    let said = says(["watch", "--node-exporter", &url, "--json", "-d", "3s"]);
    let lines = said.out.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    assert!(
        lines
            .flat_map(|line| line["machines"][0]["points"].as_array().cloned().unwrap())
            .any(|it| it["load1"].is_f64())
    );
}
