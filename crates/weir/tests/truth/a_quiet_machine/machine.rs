//! What is read of the target's machine by `/proc`, a node_exporter and a Prometheus, side by side.

use crate::machine::{FIGURES, machine, number, text};
use crate::support::{
    NodeExporter, Prometheus, air, config, quiet, report, start_measuring, undisturbed, weir,
};

#[test]
fn a_machine_is_told_before_the_load_and_over_it_three_ways_alike() {
    let _machine = quiet();
    undisturbed(|| {
        let exporter = NodeExporter::start();
        let prometheus = Prometheus::start(&exporter);
        let air = air(&config(&[]));
        let watch = format!("pid={}", std::process::id());
        let mut command = weir();
        command.args(["play", &air.url, "-c", "40", "-d", "15s", "--base", "4s", "--watch", &watch]);
        command.args(["--node-exporter", &exporter.url(), "--prometheus", &prometheus.url()]);
        let run = start_measuring(&mut command).finish();
        let all = ["proc", "node_exporter", "prometheus"].map(|source| machine(&run, source));
        for machine in all {
            assert_eq!(machine["interfaces"], serde_json::json!(["lo"]), "the target is on loopback");
            let length = number(&machine["end_seconds"]) - number(&machine["begin_seconds"]);
            assert!(
                (length - 0.6 * (number(&machine["end_seconds"]) + number(&machine["begin_seconds"]))).abs()
                    < 1e-6
            );
            for name in FIGURES {
                let figure = &machine[name];
                let [base, min, mean, p95, max] =
                    ["base", "min", "mean", "p95", "max"].map(|key| number(&figure[key]));
                assert!(
                    min <= mean * (1.0 + 1e-9) && mean <= max * (1.0 + 1e-9) && p95 <= max,
                    "{name}: {figure}"
                );
                assert!(
                    (number(&figure["max_increase"]) - (max - base).max(0.0)).abs() <= 1e-6 * max,
                    "{name}: {figure}"
                );
                assert!(
                    (number(&figure["min_increase"]) - (min - base).max(0.0)).abs() <= 1e-6 * max,
                    "{name}: {figure}"
                );
            }
            // What the viewers received crossed lo, whatever else did.
            let received = number(&run.stage(0)["actual_bps"]);
            for name in ["tx_bps", "rx_bps"] {
                let crossed = number(&machine[name]["mean"]);
                assert!(crossed > 0.9 * received, "{name} is {crossed}, {received} were received");
            }
        }
        for other in &all[1..] {
            let both = |name: &str| [all[0], other].map(|machine| number(&machine[name]["mean"]));
            for (name, tolerance) in [("memory_bytes", 0.05), ("tx_bps", 0.15), ("rx_bps", 0.15)] {
                let [a, b] = both(name);
                assert!((a - b).abs() < tolerance * a.max(b), "{name}: {a} and {b}");
            }
            let [a, b] = both("cpu_percent");
            assert!((a - b).abs() < 10.0, "cpu: {a} % and {b} %");
        }

        let seconds = run.summary["series"].as_array().unwrap();
        let told =
            |index: usize| seconds.iter().filter(|it| it["machines"][index]["rx_bps"].is_f64()).count();
        let told: Vec<usize> = (0..3).map(told).collect();
        assert!(told.iter().all(|&told| told >= 12), "{told:?} seconds of {}", seconds.len());
        assert_eq!(run.stage(0)["machines"].as_array().unwrap().len(), 3);
        let page = text(&run);
        for words in
            ["Machine", "Min+", "node_exporter at http://127.0.0.1", "/proc, this machine", "cpu", "load1"]
        {
            assert!(page.contains(words), "{words} is not in {page}");
        }
        let graph = all[2]["graph_url"].as_str().unwrap();
        let path = graph.strip_prefix(&prometheus.url()).unwrap();
        assert!(prometheus.get(path).is_some_and(|page| page.starts_with("HTTP/1.0 200")), "{graph}");
        assert!(page.contains("Prometheus at http://127.0.0.1"), "{page}");
        let again = report(run.directory());
        assert_eq!(again.summary["machines"], run.summary["machines"], "the run directory holds all of it");
    });
}
