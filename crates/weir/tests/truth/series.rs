//! Variants of a scenario, run alternately: what differs between them is found, what a run began is ended with it, and whatever
//! was measured is on disk.

use crate::support::{CHECKS_OF_THE_MACHINE, KilledOnDrop, Said, free_port, says, shared, soon, weir};
use serde_json::Value;
use std::net::TcpStream;
use std::path::PathBuf;
use tempfile::TempDir;

/// A scenario file in a folder of its own.
struct Scenario {
    folder: TempDir,
}

impl Scenario {
    fn of(text: &str) -> Self {
        let scenario = Self { folder: tempfile::tempdir().unwrap() };
        std::fs::write(scenario.path("s.yaml"), text).unwrap();
        scenario
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn arguments(&self) -> Vec<String> {
        let path = |name: &str| self.path(name).display().to_string();
        let words =
            ["run", &path("s.yaml"), "-o", &path("out"), "--json", "-", "--accept", CHECKS_OF_THE_MACHINE];
        words.map(str::to_owned).into()
    }

    fn run(&self) -> (Said, Value) {
        let said = says(self.arguments());
        let summary = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err));
        (said, summary)
    }
}

/// An origin of weir as a step of a scenario: its address stands in a file that is filled for each run.
fn served(port: u16) -> String {
    let weir = env!("CARGO_BIN_EXE_weir");
    format!(
        "before:\n  - fill: {{from: port.in, to: port}}\n  - start: exec {weir} origin --rtmp $(cat port)\n  \
         - wait: 127.0.0.1:{port}\nafter:\n  - run: 'echo $WEIR_VARIANT $WEIR_REPETITION >> done'\n"
    )
}

#[test]
fn twice_the_bit_rate_is_told_apart_as_twice_and_each_run_has_a_server_of_its_own() {
    let _machine = shared();
    let port = free_port();
    let text = format!(
        "name: rates
variants:
  low: {{rate: 200kbps}}
  high: {{rate: 400kbps}}
repeat: 4
warmup: 0s
{}workloads:
  - {{publish: 'rtmp://127.0.0.1:{port}/live/a', bitrate: {{rate}}, gop: 200ms, audio_bitrate: '0'}}
  - {{play: 'rtmp://127.0.0.1:{port}/live/a', clients: 2, delay: 500ms, duration: 2s}}
thresholds: [failed.ratio == 0]
",
        served(port)
    );
    let scenario = Scenario::of(&text);
    // The place of a value that stands in a file of the target.
    std::fs::write(scenario.path("port.in"), format!("127.0.0.1:{port}")).unwrap();
    let (said, summary) = scenario.run();
    assert_eq!(said.code, Some(0), "{}\n{summary:#}", said.err);
    let runs = summary["runs"].as_array().unwrap();
    let order: Vec<_> = runs.iter().map(|run| run["variant"].as_str().unwrap()).collect();
    assert_eq!(order, ["low", "high", "high", "low", "low", "high", "high", "low"]);
    let comparison = &summary["comparisons"][0];
    assert_eq!(
        (&comparison["base"], &comparison["other"], &comparison["pairs"]),
        (&"low".into(), &"high".into(), &4.into())
    );
    let sent =
        comparison["differences"].as_array().unwrap().iter().find(|it| it["figure"] == "publish.bitrate");
    let sent = sent.unwrap();
    let ratio = sent["ratio"]["mean"].as_f64().unwrap();
    assert!((1.8..2.2).contains(&ratio) && sent["finding"] == "better", "{sent:#}");
    // A run's own directory is a run like any other; steps behind it were told which it was.
    let one = says(["report".as_ref(), scenario.path("out/001-low").as_os_str()]);
    assert!(one.out.contains("variant=low") || one.out.contains("low"), "{}", one.out);
    assert_eq!(std::fs::read_to_string(scenario.path("done")).unwrap().lines().next(), Some("low 1"));
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "the server goes on behind the series");
    // What is read again says the same.
    let again =
        says(["report".as_ref(), scenario.path("out").as_os_str(), "--format".as_ref(), "markdown".as_ref()]);
    assert_eq!(again.out, std::fs::read_to_string(scenario.path("out/report.md")).unwrap());
    assert_eq!(again.code, Some(0));
    let text = says(["report".as_ref(), scenario.path("out").as_os_str()]).out;
    let answer = text.lines().rev().nth(1).unwrap_or_default();
    assert!(answer.starts_with("Answer: high ") && answer.contains('×'), "{text}");
}

#[test]
fn an_interrupted_series_keeps_what_was_complete_and_ends_what_it_began() {
    let _machine = shared();
    let port = free_port();
    let text = format!(
        "repeat: 50\nwarmup: 0s\n{}workloads:\n  - {{publish: 'rtmp://127.0.0.1:{port}/live/a', duration: 1s}}\n",
        served(port)
    );
    let scenario = Scenario::of(&text);
    std::fs::write(scenario.path("port.in"), format!("127.0.0.1:{port}")).unwrap();
    let file = |name: &str| std::fs::File::create(scenario.path(name)).unwrap();
    let mut series =
        KilledOnDrop::start(weir().args(scenario.arguments()).stdout(file("said")).stderr(file("err")));
    soon("the second run goes on", || scenario.path("out/002-run/run.json").exists());
    series.interrupt();
    assert_eq!(series.ended().code(), Some(105));
    let summary: Value =
        serde_json::from_slice(&std::fs::read(scenario.path("out/summary.json")).unwrap()).unwrap();
    assert_eq!(summary["ending"], "interrupted");
    assert!(summary["variants"][0]["counted"].as_u64().unwrap() >= 1, "{summary:#}");
    // How far it came, without the run that was cut short.
    let runs = summary["runs"].as_array().unwrap();
    let whole = runs.iter().filter(|run| run["outcome"] != "interrupted").count();
    let err = std::fs::read_to_string(scenario.path("err")).unwrap();
    let expected = format!("weir: interrupted after {whole} of 50 runs");
    assert_eq!(err.lines().last(), Some(&*expected), "{err}");
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err(), "the server goes on behind the series");
}

#[test]
fn a_server_that_ends_by_itself_and_one_of_others_are_not_measured() {
    let _machine = shared();
    let port = free_port();
    let workloads = format!(
        "workloads: [{{publish: 'rtmp://127.0.0.1:{port}/live/a', duration: 30s}}]\nwarmup: 0s\nrepeat: 2\n"
    );
    let weir = env!("CARGO_BIN_EXE_weir");
    // On a busy machine the run begins more than a second after its server.
    let dies = format!(
        "{workloads}before:\n  - start: timeout 4 {weir} origin --rtmp 127.0.0.1:{port}\n  - wait: 127.0.0.1:{port}\n"
    );
    let (said, summary) = Scenario::of(&dies).run();
    assert_eq!((said.code, &summary["variants"][0]["counted"]), (Some(97), &0.into()), "{summary:#}");
    assert_eq!(summary["runs"][0]["outcome"], "target_died");
    let _other = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    let (said, summary) = Scenario::of(&dies).run();
    assert_eq!(
        (said.code, &summary["runs"], &summary["verdict"]),
        (Some(97), &Value::Array(Vec::new()), &"nothing_measured".into())
    );
    assert!(
        said.err.contains("takes connections before the scenario's own server is started"),
        "{}",
        said.err
    );
}

#[test]
fn a_series_of_a_server_that_is_not_there_measures_nothing() {
    let _machine = shared();
    let text = format!(
        "repeat: 2\nworkloads: [{{play: 'rtmp://127.0.0.1:{}/live/a', clients: 2, duration: 1s}}]\n",
        free_port()
    );
    let (said, summary) = Scenario::of(&text).run();
    assert_eq!((said.code, &summary["verdict"]), (Some(97), &"nothing_measured".into()), "{summary:#}");
    assert_eq!(summary["variants"][0]["counted"], 0);
    assert!(summary["warnings"][0].as_str().unwrap().contains("nothing answered at rtmp://"), "{summary:#}");
}

#[test]
fn a_step_that_fails_and_variants_that_cannot_be_are_one_line() {
    let workloads = "workloads: [{play: 'rtmp://127.0.0.1:9/live/a', clients: 1, duration: 1s}]\n";
    for (text, code, words) in [
        (
            "before: [run: 'echo no such table >&2; exit 3']\n",
            97,
            "before: `echo …` ended with exit status: 3: no such table; ",
        ),
        ("repeat: 2\nbefore: [run: exit 3]\n", 97, "before: `exit …` ended with exit status: 3; "),
        ("before: [wait: nowhere]\n", 104, "before: wait: 'nowhere' is not an address; write HOST:PORT"),
        ("before: [sleep: 3]\n", 104, "s.yaml:1:"),
        ("variants: {a: {x: 1}}\n", 104, "variants: {x} stands nowhere"),
        ("variants: {a/b: {}}\n", 104, "variants: 'a/b' is not a name"),
        ("repeat: 0\n", 104, "repeat: 0 is not a number of repetitions"),
    ] {
        let scenario = Scenario::of(&format!("{text}{workloads}"));
        let said = says(scenario.arguments());
        assert_eq!(said.code, Some(code), "{text}: {}", said.err);
        let last = said.err.lines().last().unwrap_or_default();
        assert!(last.starts_with("weir: ") && last.contains(words), "{text}: {}", said.err);
    }
}

#[test]
fn a_series_that_failed_cannot_be_compared_and_says_why() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let text = "{name: fails, repeat: 2, before: [run: 'false'], workloads: [{play: 'rtmp://127.0.0.1:1/live/a', duration: 1s}]}";
    std::fs::write(at("s.yaml"), text).unwrap();
    says(["run", &at("s.yaml"), "-o", &at("out"), "-q"]);
    for sides in [vec![at("out")], vec![at("out"), at("out")]] {
        let said = says(std::iter::once("compare").chain(sides.iter().map(String::as_str)));
        assert_eq!(said.code, Some(98), "{}", said.err);
        assert!(said.err.contains("has no run that could be compared: before: `false"), "{}", said.err);
    }
}
