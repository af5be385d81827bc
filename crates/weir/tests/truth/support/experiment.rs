//! A scenario whose messages are saved, and what became of them.

use super::process::{Said, says, weir};
use super::run::CHECKS_OF_THE_MACHINE;
use serde_json::Value;
use std::path::PathBuf;
use tempfile::TempDir;
use weir_testing::KilledOnDrop;

pub(crate) const SCHEMA: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/schemas/SimpleClass.avsc");

/// What differs from one scenario to the next; `{directory}` is its own, `{encoding}` that of the variant.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    /// `ingest` of weir's own, or `probe` with another's address.
    pub(crate) probe: Option<&'a str>,
    /// Keys of `into` beside schema, format and table.
    pub(crate) into: &'a str,
    pub(crate) settle: &'a str,
    /// Keys of the workload that saves.
    pub(crate) workload: &'a str,
    /// Options of MQTT, of both.
    pub(crate) mqtt: &'a str,
    pub(crate) count: u64,
    pub(crate) rate: &'a str,
    /// Further keys of the scenario.
    pub(crate) rest: &'a str,
}

/// Into a file of SQLite, as fast as the broker takes it.
pub(crate) const ASKED: Asked<'static> = Asked {
    probe: None,
    into: "empty: true, save: 'sqlite:{directory}/rows.db'",
    settle: "300ms",
    workload: "",
    mqtt: "qos: 1",
    count: 300,
    rate: "1000000000/s",
    rest: "",
};

/// Keys of a workload, a line each.
fn keys(inline: &str) -> String {
    inline.split(", ").map(|key| format!("    {key}\n")).collect()
}

/// A scenario in a directory of its own.
pub(crate) struct Experiment {
    directory: TempDir,
}

impl Experiment {
    /// Messages go to this broker.
    pub(crate) fn of(broker: &str, asked: &Asked<'_>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let experiment = Self { directory };
        let Asked { into, settle, workload, mqtt, count, rate, rest, .. } = asked;
        let takes = match asked.probe {
            Some(probe) => format!("probe: '{probe}'"),
            None => format!("ingest: 'mqtt://{broker}/e/{{encoding}}/+'"),
        };
        let ingest_mqtt = if asked.probe.is_some() { String::new() } else { keys(mqtt) };
        let text = format!(
            "name: truth\n{rest}\nworkloads:\n  - {takes}\n{workload}    into: {{schema: {SCHEMA}, format: '{{encoding}}', table: \
             'rows_{{encoding}}', settle: {settle}, {into}}}\n{ingest_mqtt}  - publish: 'mqtt://{broker}/e/{{encoding}}/{{seq}}'\n{}    \
             count: {count}\n    rate: {rate}\n    payload: '{{encoding}}:{SCHEMA}'\n",
            keys(mqtt),
        );
        let text = text.replace("{directory}", &experiment.directory.path().display().to_string());
        let text = if rest.contains("variants:") { text } else { text.replace("{encoding}", "avro") };
        std::fs::write(experiment.path("scenario.yaml"), text).unwrap();
        experiment
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn arguments(&self) -> Vec<String> {
        let path = |name: &str| self.path(name).display().to_string();
        vec!["run".into(), path("scenario.yaml"), "-o".into(), path("run"), "--json".into(), "-".into()]
    }

    pub(crate) fn run(&self) -> Ran {
        self.run_with(&[])
    }

    /// With these arguments behind the others.
    pub(crate) fn run_with(&self, more: &[&str]) -> Ran {
        let arguments = self.arguments();
        let accepted = ["--accept", CHECKS_OF_THE_MACHINE];
        let arguments = arguments.iter().map(String::as_str).chain(accepted);
        let ran = self.ran(says(arguments.chain(more.iter().copied())));
        ran.ingested.iter().for_each(balanced);
        ran
    }

    /// What came of it, with sums that others may have disturbed.
    pub(crate) fn ran(&self, said: Said) -> Ran {
        assert!(!said.err.contains("panicked"), "{}", said.err);
        let summary: Value = serde_json::from_str(&said.out)
            .unwrap_or_else(|error| panic!("{error}: {:?}; stderr: {}", said.out, said.err));
        let runs: Vec<Value> = match summary["runs"].as_array() {
            Some(runs) => {
                let read = |run: &Value| self.written(&format!("run/{}", run["directory"].as_str().unwrap()));
                runs.iter().map(read).collect()
            }
            None => vec![summary.clone()],
        };
        let ingested = runs.iter().map(|run| run["workloads"][0]["ingested"].clone()).collect();
        Ran { summary, said, runs, ingested }
    }

    /// Starts it; what it says goes into files.
    pub(crate) fn start(&self) -> KilledOnDrop {
        let file = |name: &str| std::fs::File::create(self.path(name)).unwrap();
        KilledOnDrop::start(weir().args(self.arguments()).stdout(file("out")).stderr(file("err")))
    }

    /// Waits for the end of one that was started.
    pub(crate) fn said(&self, mut started: KilledOnDrop) -> Said {
        let code = started.ended().code();
        let read = |name: &str| std::fs::read_to_string(self.path(name)).unwrap();
        Said { code, out: read("out"), err: read("err") }
    }

    /// What stands in this directory.
    pub(crate) fn written(&self, directory: &str) -> Value {
        let path = self.path(directory).join("summary.json");
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    }
}

pub(crate) struct Ran {
    /// Of the series, or of the only run.
    pub(crate) summary: Value,
    pub(crate) said: Said,
    /// Of each run.
    pub(crate) runs: Vec<Value>,
    /// What became of the messages of each run.
    pub(crate) ingested: Vec<Value>,
}

impl Ran {
    /// A sum of an account over all runs.
    pub(crate) fn total(&self, count: &str) -> u64 {
        self.ingested.iter().map(|it| number(it, count)).sum()
    }

    pub(crate) fn imbalances(&self) -> Vec<(String, String)> {
        let all = self.ingested.iter().flat_map(|it| it["imbalances"].as_array().unwrap());
        all.map(|it| (it["stage"].as_str().unwrap().to_owned(), it["text"].as_str().unwrap().to_owned()))
            .collect()
    }

    /// Which variants were run, in their order.
    pub(crate) fn order(&self) -> Vec<(u64, &str)> {
        let runs = self.summary["runs"].as_array().unwrap().iter();
        runs.map(|it| (it["repetition"].as_u64().unwrap(), it["variant"].as_str().unwrap())).collect()
    }
}

pub(crate) fn number(ingested: &Value, count: &str) -> u64 {
    ingested["account"][count].as_u64().unwrap_or_else(|| panic!("{count}: {ingested:#}"))
}

/// The three sums that hold for each run, whatever a broker does.
fn balanced(ingested: &Value) {
    let of = |count| number(ingested, count);
    assert_eq!(of("published"), of("received") - of("duplicate") + of("lost"), "{ingested:#}");
    assert_eq!(of("received"), of("saved") + of("dead_lettered") + of("duplicate"), "{ingested:#}");
    assert_eq!((of("saved"), of("dead_lettered")), (of("counted"), of("counted_dead")), "{ingested:#}");
}
