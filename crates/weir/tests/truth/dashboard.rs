//! What Prometheus collects from a run is what its summary has, and `dashboards/grafana.json` asks for nothing else.

use crate::support::{
    CHECKS_OF_THE_MACHINE, NodeExporter, Prometheus, Run, air, config, free_port, shared, start_measuring,
    weir,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// On a machine that has other things to do.
const TEST_TIMEOUT: Duration = Duration::from_secs(90);

/// The row of the figures of all clients, of which every run has each.
const COMMON: &str = "Every client";

fn dashboard() -> Value {
    let path = format!("{}/../../dashboards/grafana.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// The dashboard's queries as Grafana would send them: the title of the row, that of the panel, and the expression.
fn queries() -> Vec<(String, String, String)> {
    let dashboard = dashboard();
    let (mut queries, mut row) = (Vec::new(), String::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        let is_row = panel["type"] == "row";
        if is_row {
            title.clone_into(&mut row);
        }
        let below =
            if is_row { panel["panels"].as_array().unwrap().as_slice() } else { std::slice::from_ref(panel) };
        for panel in below {
            for target in panel["targets"].as_array().unwrap() {
                let query = target["expr"].as_str().unwrap().replace("$__rate_interval", "1m");
                let query = query.replace("$workload", ".*");
                assert!(!query.contains('$'), "a variable that this test does not know: {query}");
                queries.push((row.clone(), panel["title"].as_str().unwrap().to_owned(), query));
            }
        }
    }
    queries
}

pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < TEST_TIMEOUT, "{what}: not within {TEST_TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A panel of the run's sums: values by the metric's name.
pub(crate) fn sums(prometheus: &Prometheus, title: &str) -> BTreeMap<String, f64> {
    let (.., query) = queries().into_iter().find(|(_, it, _)| it == title).unwrap();
    let series = prometheus.query(&query).into_iter();
    series.map(|(labels, value)| (labels["__name__"].as_str().unwrap().to_owned(), value)).collect()
}

/// The metric of a figure, and what Prometheus has of it.
fn of<'a>(sums: &'a BTreeMap<String, f64>, figure: &str, sum: &Value, ending: &str) -> (&'a str, f64) {
    let unit = match sum["unit"].as_str().unwrap() {
        "count" => "",
        "bytes" => "_bytes",
        "seconds" => "_seconds",
        other => panic!("{figure} is in {other}"),
    };
    let name = format!("weir_{}{unit}{ending}", figure.replace('.', "_"));
    let (name, value) = sums.get_key_value(&name).unwrap_or_else(|| panic!("{name} is not in {sums:#?}"));
    (name, *value)
}

fn assert_near(what: &str, value: f64, expected: f64, tolerance: f64) {
    assert!((value - expected).abs() <= tolerance * expected.abs(), "{what}: {value} is not {expected}");
}

/// What Prometheus has of counters and distributions is what the run's summary has; `mean` is that of a distribution's metric.
pub(crate) fn assert_sums(
    run: &Run,
    counters: &BTreeMap<String, f64>,
    values: &BTreeMap<String, f64>,
    mean: impl Fn(&str) -> f64,
) {
    let total = run.workloads()[0]["total"].as_object().unwrap();
    for (figure, sum) in total {
        match sum["kind"].as_str().unwrap() {
            "counter" => {
                let (metric, value) = of(counters, figure, sum, "_total");
                assert_near(metric, value, sum["total"].as_f64().unwrap(), 1e-9);
            }
            "spread" => {
                let (metric, value) = of(values, figure, sum, "_count");
                let count = sum["count"].as_f64().unwrap();
                assert_near(metric, value, count, 0.0);
                if count > 0.0 {
                    let mean = mean(metric.trim_end_matches("_count"));
                    assert_near(metric, mean, sum["mean"].as_f64().unwrap(), 1e-6);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn what_a_watched_server_and_its_machine_use_is_collected_and_has_panels() {
    let _machine = shared();
    let (air, exporter, port) = (air(&config(&[])), NodeExporter::start(), free_port());
    let prometheus = Prometheus::collecting(port, &[]);
    // The origin is in this process.
    let watch = format!("pid={}", std::process::id());
    let mut command = weir();
    command.args(["play", &air.url, "-c", "3", "-d", "10m", "--warmup", "0s", "--drain", "200ms"]);
    command.args([
        "--watch",
        &watch,
        "--node-exporter",
        &exporter.url(),
        "--base",
        "1s",
        "--interface",
        "lo",
    ]);
    command.arg(format!("--live={port}")).args(["--accept", CHECKS_OF_THE_MACHINE]);
    let measuring = start_measuring(&mut command);
    let is_of_processes = |query: &str| {
        ["server", "machine", "generator"].iter().any(|of| query.contains(&format!("weir_{of}_")))
    };
    let queries: Vec<_> = queries().into_iter().filter(|(.., query)| is_of_processes(query)).collect();
    assert!(queries.len() >= 10, "{queries:?}");
    for (_, panel, query) in queries {
        eventually(&panel, || !prometheus.query(&query).is_empty());
    }
    let (labels, memory) = prometheus.query("weir_server_memory_bytes").remove(0);
    assert!(labels["server"] == watch.as_str() && memory > 1e6, "{labels}: {memory}");
    measuring.process.interrupt();
    let run = measuring.finish();
    let targets = &run.workloads()[0]["stages"][0]["targets"];
    assert_eq!(targets[0]["label"], watch.as_str(), "{targets:#}");
}

#[test]
fn prometheus_has_the_sums_of_the_summary_and_takes_every_query_of_the_dashboard() {
    let _machine = shared();
    let air = air(&config(&[]));
    let port = free_port();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("watched.yaml");
    // The figures stay until they were collected: the run's last step waits for this test, and not for ever.
    let scenario = format!(
        "name: watched\nwarmup: 0s\nworkloads:\n  - {{play: '{}', clients: 5, duration: 5s}}\n\
         after:\n  - run: 'for turn in $(seq 1200); do [ -e collected ] && break; sleep 0.1; done'\n",
        air.url
    );
    std::fs::write(&file, scenario).unwrap();
    let classic = Prometheus::collecting(port, &[]);
    let native = Prometheus::collecting(port, &["--enable-feature=native-histograms"]);
    for prometheus in [&classic, &native] {
        eventually("Prometheus collects", || !prometheus.query("up").is_empty());
    }
    let mut command = weir();
    command.arg("run").arg(&file).arg(format!("--live=:{port}")).args(["--accept", CHECKS_OF_THE_MACHINE]);
    let measuring = start_measuring(&mut command);
    for prometheus in [&classic, &native] {
        eventually("the ended run was collected", || {
            !prometheus.query("weir_running == 0 and weir_runs_total == 1").is_empty()
        });
    }
    let twice = "count_over_time(weir_slots_planned_total[1m]) > 1";
    eventually("there is a rate", || !classic.query(twice).is_empty());
    for (row, panel, query) in queries() {
        let series = classic.query(&query);
        assert!(row != COMMON || !series.is_empty(), "{panel}: nothing answers {query}");
    }
    let (counters, values) = (sums(&classic, "counters"), sums(&classic, "values"));
    let one = |prometheus: &Prometheus, query: &str| {
        let series = prometheus.query(query);
        assert_eq!(series.len(), 1, "{query}: {series:?}");
        series[0].1
    };
    let mut means = BTreeMap::new();
    for metric in values.keys().map(|name| name.trim_end_matches("_count")) {
        let mean = |it: &Prometheus, sum: &str, count: &str| (one(it, sum), one(it, count));
        let classic = mean(&classic, &format!("{metric}_sum"), &format!("{metric}_count"));
        let native =
            mean(&native, &format!("histogram_sum({metric})"), &format!("histogram_count({metric})"));
        assert_eq!(classic, native, "{metric}: sum and number of both kinds of histograms");
        means.insert(metric.to_owned(), classic.0 / classic.1);
    }
    let startup = one(&native, "histogram_quantile(0.5, weir_startup_seconds)");
    std::fs::write(folder.path().join("collected"), "").unwrap();
    let run = measuring.finish();
    assert_sums(&run, &counters, &values, |metric| means[metric]);
    assert_eq!((counters["weir_played_total"], values["weir_startup_seconds_count"]), (5.0, 5.0));
    // A native bucket is 2.2 % wide, and the quantile is in that of one of the five values.
    let edge = |key: &str| run.spread("startup")[key].as_f64().unwrap();
    assert!(
        edge("min") * 0.97 <= startup && startup <= edge("max") * 1.03,
        "{startup}: {}",
        run.spread("startup")
    );
}
