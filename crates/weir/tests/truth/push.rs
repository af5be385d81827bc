//! What is pushed to Prometheus is what the summary has, and whoever takes nothing changes nothing.

use crate::dashboard::{assert_sums, eventually, sums};
use crate::support::{Prometheus, Run, air, config, free_port, measure, shared};
use std::net::TcpListener;

/// Nothing else in a run looks like this.
const SECRET: &str = "s3cr3tw0rd";

/// What weir said of where it pushes.
fn notes(run: &Run) -> Vec<&str> {
    run.err.lines().filter(|line| line.contains("--push-metrics")).collect()
}

#[test]
fn prometheus_has_the_sums_of_a_run_that_pushed_them_when_the_run_is_over() {
    let _machine = shared();
    let air = air(&config(&[]));
    let prometheus = Prometheus::collecting(free_port(), &["--web.enable-remote-write-receiver"]);
    eventually("Prometheus listens", || !prometheus.query("up").is_empty());
    let pushing = format!("{}/", prometheus.url().replace("http://", &format!("http://me:{SECRET}@")));
    let run =
        measure(["play", &air.url, "-c", "3", "-d", "9s", "--warmup", "0s", "--push-metrics", &pushing]);
    assert_eq!((run.code, notes(&run)), (0, vec![]), "{}", run.err);
    let (counters, values) = (sums(&prometheus, "counters"), sums(&prometheus, "values"));
    let mean = |metric: &str| {
        let one = |ending: &str| prometheus.query(&format!("{metric}{ending}"))[0].1;
        one("_sum") / one("_count")
    };
    assert_sums(&run, &counters, &values, mean);
    assert_eq!((counters["weir_played_total"], values["weir_startup_seconds_count"]), (3.0, 3.0));
    // Nobody plays any more, and the run is known by its directory.
    assert_eq!(prometheus.query("weir_playing")[0].1, 0.0);
    let directory = run.directory().file_name().unwrap().to_string_lossy();
    let info = prometheus.query(&format!("weir_run_info{{job=\"weir\", run=\"{directory}\"}}"));
    assert!(info.len() == 1 && info[0].0["instance"] != "", "{info:?}");
    // A sample of the run's begin, one 5 s later (for which a busy machine has 4 s more), and that of the end.
    let running = prometheus.query("count_over_time(weir_running[10m])")[0].1;
    assert!(running >= 3.0, "{running}");
}

#[test]
fn a_receiver_that_is_not_there_or_never_answers_stops_nothing_and_is_one_line() {
    let _machine = shared();
    let air = air(&config(&[]));
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for port in [free_port(), silent.local_addr().unwrap().port()] {
        let pushing = format!("http://me:{SECRET}@127.0.0.1:{port}/write?token={SECRET}");
        let run =
            measure(["play", &air.url, "-c", "2", "-d", "2s", "--warmup", "0s", "--push-metrics", &pushing]);
        assert_eq!((run.code, run.total("played")), (0, 2.0), "{}", run.err);
        let notes = notes(&run);
        assert_eq!(notes.len(), 1, "{}", run.err);
        assert!(
            notes[0].starts_with(&format!("weir: note: --push-metrics http://127.0.0.1:{port}/write?…: "))
        );
        assert!(!run.err.contains(SECRET), "{}", run.err);
    }
}
