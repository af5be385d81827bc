//! Settings of a server, each searched or run with a server of its own: which is best, and that nothing is left behind.

use crate::support::{
    A_RUN, CHECKS_OF_THE_MACHINE, Said, Watched, free_port, row_of, says, says_on_its_page, shared,
};
use serde_json::Value;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// Short trials: what is asked depends on no time.
const BRIEF: [&str; 6] = ["--slice", "1s", "--hold", "2s", "--confirm", "2s"];

/// A scenario of weir's in a folder of its own, its servers on a free port.
struct Sweep {
    folder: TempDir,
    port: u16,
}

impl Sweep {
    /// `changes` are made in the scenario and in the server's file.
    fn of_file(name: &str, target: &str, port: u16, changes: &[(&str, &str)]) -> Self {
        let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
        let sweep = Self { folder: tempfile::tempdir().unwrap(), port: free_port() };
        std::fs::create_dir(sweep.path("targets")).unwrap();
        for file in [name, target] {
            let mut text = std::fs::read_to_string(scenarios.join(file)).unwrap();
            // Two tests, or a user, may have files of the same name.
            text = text.replace("/tmp", &sweep.folder.path().display().to_string());
            text = text.replace(&port.to_string(), &sweep.port.to_string());
            for (from, to) in changes {
                text = text.replace(from, to);
            }
            std::fs::write(sweep.path(file), text).unwrap();
        }
        sweep
    }

    fn of_text(text: &str) -> Self {
        let sweep = Self { folder: tempfile::tempdir().unwrap(), port: free_port() };
        std::fs::write(sweep.path("s.yaml"), text.replace("PORT", &sweep.port.to_string())).unwrap();
        sweep
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn sweep(&self, name: &str, more: &[&str]) -> (Said, Value) {
        let (said, summary, _) = self.sweep_on_its_page(name, more);
        (said, summary)
    }

    /// The same, with what a tab at its page was sent.
    fn sweep_on_its_page(&self, name: &str, more: &[&str]) -> (Said, Value, Watched) {
        let (file, out) = (self.path(name).display().to_string(), self.path("out").display().to_string());
        let words = ["sweep", &file, "-o", &out, "--json", "-", "--accept", CHECKS_OF_THE_MACHINE];
        let (said, page) = says_on_its_page(words.iter().chain(more));
        let summary = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err));
        // What is on disk says the same again.
        let again = says(["report", &out, "--json", "-"]);
        assert_eq!((again.code, serde_json::from_str::<Value>(&again.out).unwrap()), (said.code, summary));
        assert!(TcpStream::connect(("127.0.0.1", self.port)).is_err(), "the server goes on behind the sweep");
        (said, serde_json::from_str(&again.out).unwrap(), page)
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.path("out/report.txt")).unwrap()
    }
}

/// What a search of a sweep came to.
fn summary_of_search(sweep: &Sweep, cell: &Value) -> Value {
    let place = sweep.path("out").join(cell["directory"].as_str().unwrap()).join("summary.json");
    serde_json::from_slice(&std::fs::read(place).unwrap()).unwrap()
}

fn variant<'a>(summary: &'a Value, name: &str) -> &'a Value {
    let mut variants = summary["variants"].as_array().unwrap().iter();
    variants.find(|it| it["name"] == name).unwrap()
}

#[test]
fn nginx_is_searched_with_one_worker_and_with_two() {
    let _machine = shared();
    let changes = [
        ("worker_connections 4096", "worker_connections 16"),
        (
            "  - played.ratio >= 99.9%\n  - bitrate.ratio >= 98%\n  - stalled.ratio <= 0.1%\n  - startup.p99 < 3s\n",
            "  - played.ratio >= 0%\n",
        ),
        ("failed.ratio <= 0.1%", "failed.ratio == 0"),
        ("bitrate: 2mbps", "bitrate: 200kbps\n    gop: 200ms"),
    ];
    let sweep = Sweep::of_file("nginx-workers.yaml", "targets/nginx-workers.conf.in", 19_352, &changes);
    let brief = ["--from", "4", "--precision", "20%", "--set", "warmup=0s", "--set", "drain=200ms"];
    let arguments: Vec<_> = BRIEF.iter().chain(&brief).copied().collect();
    let (said, summary) = sweep.sweep("nginx-workers.yaml", &arguments);
    assert_eq!((said.code, &summary["ending"]), (Some(0), &"completed".into()), "{}", said.err);
    assert_eq!(summary["ranked"]["by"]["capacity"], "clients");
    // Of the 16 connections of a worker a few are its own: sockets that listen, a channel to the master process, the publisher.
    let one = &variant(&summary, "one")["value"];
    let (low, high) = (one["low"].as_f64().unwrap(), one["high"].as_f64().unwrap());
    assert!((8.0..=14.0).contains(&low) && high <= 15.0, "{one}\n{}", said.err);
    let two = &variant(&summary, "two")["value"];
    // How the kernel shares arrivals out between two is chance, and a worker sends only what was published to it: whether the numbers
    // carry a best one is as the trials come out.
    let (low, high) = (two["low"].as_f64().unwrap(), two["high"].as_f64().unwrap_or(64.0));
    assert!(low < high && low <= 28.0, "{two}\n{}", said.err);
    let best = summary["variants"].as_array().unwrap().iter().filter(|it| it["standing"] == "best").count();
    assert!(best <= 1, "{summary:#}");
    // Each search is one like any other, whose trials had a server with that setting.
    let cells = summary["runs"].as_array().unwrap();
    assert_eq!(cells.len(), 2);
    let first = sweep.path("out").join(cells[0]["directory"].as_str().unwrap());
    let search = says(["report".as_ref(), first.as_os_str()]);
    assert!(search.out.contains("viewers") && search.out.contains("001-climb"), "{}", search.out);
    let text = sweep.text();
    let answer = if best == 1 { "best: " } else { "cannot tell which is best" };
    assert!(text.contains(answer) && text.contains("001-") && text.contains("002-"), "{text}");
}

#[test]
fn mosquitto_is_searched_for_messages_a_second() {
    let _machine = shared();
    let changes = [("  - played.ratio >= 99.9%\n  - bitrate.ratio >= 98%\n", "  - played.ratio >= 0%\n")];
    let sweep =
        Sweep::of_file("mosquitto-inflight.yaml", "targets/mosquitto-inflight.conf.in", 18_831, &changes);
    let brief = ["--from", "200", "--most", "400", "--set", "warmup=0s", "--set", "drain=1s"];
    let arguments: Vec<_> = BRIEF.iter().chain(&brief).copied().collect();
    let (said, summary, page) = sweep.sweep_on_its_page("mosquitto-inflight.yaml", &arguments);
    assert_eq!(said.code, Some(0), "{}", said.err);
    for name in ["default", "large"] {
        let value = &variant(&summary, name)["value"];
        // Any broker carries that many, and more was not tried.
        assert_eq!((&value["low"], &value["high"]), (&400.0.into(), &Value::Null), "{}", said.err);
        assert!(variant(&summary, name)["cpu_percent_per_client"].as_f64().is_some_and(|it| it >= 0.0));
    }
    assert!(sweep.text().contains("at least 400"), "{}", sweep.text());
    // From the top of the page: the sweep with its first search, the second search with its first trial, the run that goes on.
    let first = row_of(summary["runs"][0]["directory"].as_str().unwrap());
    let trial =
        row_of(summary_of_search(&sweep, &summary["runs"][1])["trials"][0]["directory"].as_str().unwrap());
    page.first_with(&["id=\"all-part-0\"", &first, "id=\"search-part-0\"", &trial, A_RUN]);
    assert!(page.last().contains("at least 400") && !page.last().contains("search-part"), "{}", page.last());
    let standings: Vec<_> =
        summary["variants"].as_array().unwrap().iter().map(|it| &it["standing"]).collect();
    assert!(standings.iter().all(|it| **it == "unknown"), "either may carry more: {standings:?}");
}

/// An origin of weir for each run, whose bit rate and number of viewers are two dimensions.
const PLANE: &str = "
name: plane
matrix:
  rate: [200kbps, 400kbps]
  viewers: [1, 3]
warmup: 0s
drain: 200ms
before:
  - start: exec WEIR origin --rtmp :PORT
  - wait: 127.0.0.1:PORT
workloads:
  - {publish: 'rtmp://127.0.0.1:PORT/live/a', bitrate: {rate}, gop: 200ms}
  - {play: 'rtmp://127.0.0.1:PORT/live/a', clients: {viewers}, delay: 500ms, duration: 2s}
thresholds: [failed.ratio == 0]
";

#[test]
fn every_combination_of_a_matrix_is_run_once_a_block_and_ranked_by_the_figure_that_is_asked_for() {
    let _machine = shared();
    let sweep = Sweep::of_text(&PLANE.replace("WEIR", env!("CARGO_BIN_EXE_weir")));
    let (said, summary, page) =
        sweep.sweep_on_its_page("s.yaml", &["--by", "play.bitrate", "--set", "repeat=2"]);
    assert_eq!((said.code, &summary["order"]), (Some(0), &"random".into()), "{}", said.err);
    let cells = summary["runs"].as_array().unwrap();
    for block in cells.chunks(4) {
        let mut names: Vec<_> = block.iter().map(|cell| cell["variant"].as_str().unwrap()).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "rate-200kbps-viewers-1",
                "rate-200kbps-viewers-3",
                "rate-400kbps-viewers-1",
                "rate-400kbps-viewers-3"
            ]
        );
    }
    // Two pairs of runs tell no difference, so that none is best.
    assert_eq!(variant(&summary, "rate-400kbps-viewers-3")["standing"], "unknown", "{summary:#}");
    assert_eq!(variant(&summary, "rate-200kbps-viewers-1")["standing"], "unknown");
    let keys: Vec<_> = summary["dimensions"].as_array().unwrap().iter().map(|it| &it["key"]).collect();
    assert_eq!(keys, ["rate", "viewers"]);
    let report = std::fs::read_to_string(sweep.path("out/report.html")).unwrap();
    assert_eq!(report.matches("<svg").count(), 2, "the intervals and the plane");
    // What ran before stands above what runs, and at the end the sweep alone.
    let places: Vec<_> = cells.iter().map(|cell| cell["directory"].as_str().unwrap()).collect();
    let shown: Vec<_> = places[..7].iter().map(|place| page.first_with(&[&row_of(place), A_RUN])).collect();
    assert!(shown.is_sorted_by(|one, next| one < next), "{shown:?}");
    assert!(page.last().contains(&row_of(places[7])) && !page.last().contains(A_RUN), "{}", page.last());
}

#[test]
fn what_cannot_be_swept_is_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.yaml").display().to_string();
    let of = |verb: &str, text: &str, arguments: &[&str]| {
        std::fs::write(&file, text).unwrap();
        says([verb, &file].iter().chain(arguments))
    };
    let two = "variants: {a: {v: 1}, b: {v: 2}}\nworkloads: [{play: 'rtmp://h/a/b{v}', duration: 1s}]\n";
    for (said, code, words) in [
        (of("sweep", "workloads: [{play: 'rtmp://h/a/b', duration: 1s}]", &[]), 104, "nothing to sweep"),
        (of("sweep", two, &["--of", "messages"]), 2, "add --find capacity"),
        (of("sweep", two, &["--find", "capacity", "--by", "startup.p99"]), 2, "--by is of runs"),
        (of("sweep", two, &["--find", "capacity", "--of", "messages"]), 104, "leave one whose publishers"),
        (of("sweep", &format!("{two}find: best\n"), &[]), 104, "'best' is nothing that is found"),
        (of("run", &format!("{two}find: capacity\n"), &[]), 104, "`weir sweep`"),
        (of("sweep", &format!("{two}matrix: {{w: [1]}}\n"), &[]), 104, "`variants` or a `matrix`"),
        (of("sweep", &format!("{two}repeat: 0\n"), &[]), 104, "repeat"),
        (says(["sweep", "/no/such/file"]), 2, "/no/such/file"),
    ] {
        assert_eq!(said.code, Some(code), "{words}: {}", said.err);
        assert!(said.err.contains(words) && said.err.lines().count() == 1, "{words}: {}", said.err);
    }
}
