//! One run of weir that writes its summary to stdout: what it measured, and what holds for every run.

use super::process::{Said, weir};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;
use weir_testing::KilledOnDrop;

/// A run that has ended.
pub(crate) struct Run {
    pub(crate) summary: Value,
    pub(crate) code: i32,
    pub(crate) err: String,
    directory: PathBuf,
    _parent: Option<TempDir>,
}

/// A run that goes on.
pub(crate) struct Measuring {
    pub(crate) process: KilledOnDrop,
    parent: TempDir,
}

/// Runs a verb of weir to its end; its run directory lives as long as the run.
///
/// Other tests run on the same cores: how busy they keep them is not what is measured, so that the verdict's checks of the
/// machine are waived. Tests of the verdict have the machine [to themselves](super::alone) and waive nothing.
pub(crate) fn measure<S: AsRef<OsStr>>(arguments: impl IntoIterator<Item = S>) -> Run {
    start_measuring(weir().args(arguments).args(["--accept", CHECKS_OF_THE_MACHINE])).finish()
}

/// Checks of the verdict that a neighbour on the same cores can fail.
pub(crate) const CHECKS_OF_THE_MACHINE: &str = "generator_thread,generator_pause,generator_cores,send_lag,missed_slots,softirq,run_queue,\
    cpu_steal,cpu_throttling,host_busy,start_skew,stack_drops,conntrack_full,memory_pressure,thermal_throttling";

/// Viewers of `url`, with flags as they are typed.
pub(crate) fn play(url: &str, flags: &str) -> Run {
    measure(["play", url].into_iter().chain(flags.split(' ')))
}

/// Starts weir, or what `command` makes of it, with a run directory of its own.
pub(crate) fn start_measuring(command: &mut Command) -> Measuring {
    let parent = tempfile::tempdir().unwrap();
    let at = |name: &str| parent.path().join(name);
    command.args(["--json", "-", "--no-tui", "-o"]).arg(at("run"));
    // Into files: a pipe that is not read yet would hold weir up.
    command.stdout(std::fs::File::create(at("out")).unwrap());
    command.stderr(std::fs::File::create(at("err")).unwrap());
    Measuring { process: KilledOnDrop::start(command), parent }
}

/// `weir report` of a run directory.
pub(crate) fn report(directory: &Path) -> Run {
    let output = weir().arg("report").arg(directory).args(["--json", "-"]).stderr(Stdio::piped()).output();
    Run::of(output.unwrap().into(), directory.to_owned(), None)
}

impl Measuring {
    /// What it has said on stderr so far.
    pub(crate) fn said(&self) -> String {
        std::fs::read_to_string(self.parent.path().join("err")).unwrap()
    }

    pub(crate) fn directory(&self) -> PathBuf {
        self.parent.path().join("run")
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Run {
        let code = self.process.ended().code();
        let read = |name: &str| std::fs::read_to_string(self.parent.path().join(name)).unwrap();
        let said = Said { code, out: read("out"), err: read("err") };
        Run::of(said, self.directory(), Some(self.parent))
    }
}

impl Run {
    fn of(said: Said, directory: PathBuf, parent: Option<TempDir>) -> Self {
        let summary = serde_json::from_str(&said.out).unwrap_or_else(|error| {
            panic!("`--json -` is pure JSON, but {error}: {:?}; stderr: {}", said.out, said.err)
        });
        let code = said.code.unwrap_or_else(|| panic!("weir was killed: {}", said.err));
        let run = Self { summary, code, err: said.err, directory, _parent: parent };
        run.check();
        run
    }

    /// What holds for every run, whatever was measured.
    fn check(&self) {
        assert!(!self.err.contains("panicked"), "{}", self.err);
        for workload in self.workloads() {
            let slots = |key: &str| workload["slots"][key].as_u64().unwrap();
            let ends = slots("on_time") + slots("late") + slots("missed") + slots("failed");
            assert_eq!(slots("planned"), ends, "every slot ends in exactly one way: {workload:#}");
            // Counted at the beginning, not at the end: no client is lost in between.
            let begun = counter(workload, "started") as u64 + slots("missed");
            assert_eq!(slots("planned"), begun, "every slot that begins ends: {workload:#}");
            let stages = workload["stages"].as_array().unwrap();
            let most = stages.iter().filter_map(|stage| stage["clients"].as_u64()).max().unwrap_or(0);
            if self.summary["outcome"] == "completed" {
                assert!(slots("planned") >= most, "every planned client has a slot: {workload:#}");
            }
            let failed: u64 = failures(workload).values().sum();
            assert_eq!(slots("failed"), failed, "every failure has a kind");
        }
        assert_eq!(self.code, self.expected_code(), "{:#}", self.summary["verdict"]);
    }

    /// The exit code that the summary stands for.
    fn expected_code(&self) -> i32 {
        let thresholds = self.summary["thresholds"].as_array().unwrap();
        match &self.summary["outcome"] {
            outcome if outcome == "interrupted" => 105,
            outcome if outcome == "target_died" => 97,
            outcome if outcome == "agent_lost" => 98,
            outcome if outcome["aborted"].is_string() => 108,
            _ if self.is_unanswered() => 97,
            _ if self.summary["verdict"]["state"] == "invalid" => 98,
            _ if self.summary["verdict"]["state"] == "nothing_measured" => 99,
            _ if thresholds.iter().any(|threshold| threshold["passed"] == false) => 99,
            _ => 0,
        }
    }

    /// Whether clients failed, each because no answer came.
    fn is_unanswered(&self) -> bool {
        let silence =
            ["connection_refused", "unreachable", "connect_timeout", "handshake_timeout", "request_timeout"];
        let asked = || self.workloads().iter().filter(|it| it["background"] != true);
        let heard = |figure: &str, key: &str| asked().any(|it| it["total"][figure][key].as_f64() > Some(0.0));
        let mut kinds = asked().flat_map(|it| failures(it).into_keys()).peekable();
        let heard = heard("played", "total") || heard("handshake", "count") || heard("request", "count");
        !heard && kinds.peek().is_some() && kinds.all(|kind| silence.contains(&kind.as_str()))
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn workloads(&self) -> &[Value] {
        self.summary["workloads"].as_array().unwrap()
    }

    /// A counter of the first workload, ramps and drain included.
    pub(crate) fn total(&self, figure: &str) -> f64 {
        counter(&self.workloads()[0], figure)
    }

    /// A distribution of the first workload, ramps and drain included.
    pub(crate) fn spread(&self, figure: &str) -> &Value {
        &self.workloads()[0]["total"][figure]
    }

    /// A stage of the first workload.
    pub(crate) fn stage(&self, stage: usize) -> &Value {
        &self.workloads()[0]["stages"][stage]
    }

    pub(crate) fn slots(&self, key: &str) -> u64 {
        self.workloads()[0]["slots"][key].as_u64().unwrap()
    }

    /// Slots of the first workload that were begun and did not fail; on a busy machine some are late.
    pub(crate) fn well(&self) -> u64 {
        self.slots("on_time") + self.slots("late")
    }

    /// Failed clients of the first workload by kind.
    pub(crate) fn failures(&self) -> BTreeMap<String, u64> {
        failures(&self.workloads()[0])
    }

    /// The only kind of failure, with the number of clients, the side and the peer's words.
    pub(crate) fn failure(&self) -> (String, u64, String, String) {
        let failures = self.workloads()[0]["failures"].as_array().unwrap();
        assert_eq!(failures.len(), 1, "one kind: {failures:?}");
        let text = |key: &str| failures[0][key].as_str().unwrap().to_owned();
        (text("kind"), failures[0]["clients"].as_u64().unwrap(), text("side"), text("words"))
    }

    /// Names of the checks that made the run invalid.
    pub(crate) fn invalid_checks(&self) -> Vec<String> {
        let reasons = self.summary["verdict"]["reasons"].as_array().unwrap();
        let invalid = reasons.iter().filter(|reason| reason["state"] == "invalid");
        invalid.map(|reason| reason["check"].as_str().unwrap().to_owned()).collect()
    }
}

fn counter(workload: &Value, figure: &str) -> f64 {
    let total = &workload["total"][figure]["total"];
    total.as_f64().unwrap_or_else(|| panic!("{figure} is no counter of {:#}", workload["total"]))
}

fn failures(workload: &Value) -> BTreeMap<String, u64> {
    let list = workload["failures"].as_array().unwrap();
    list.iter().map(|f| (f["kind"].as_str().unwrap().to_owned(), f["clients"].as_u64().unwrap())).collect()
}
