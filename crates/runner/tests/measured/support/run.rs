//! One run of a scenario: what it measured, and what holds for every run.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use tempfile::TempDir;
use weir_engine::run::Watcher;
use weir_engine::scenario::Scenario;
use weir_engine::summary::Summary;
use weir_report::{Report, Text};
use weir_runner::run::Session;
use weir_runner::stepped::SteppedRun;
use weir_runner::{ErrorKind, Observer, RunError, recompute};

/// Checks of the verdict that a neighbour on the same cores can fail. Other tests run beside each of these: how busy they keep the
/// machine is not what is measured.
const CHECKS_OF_THE_MACHINE: &str = "generator_thread, generator_pause, generator_cores, send_lag, missed_slots, softirq, run_queue, \
    cpu_steal, cpu_throttling, host_busy, start_skew, stack_drops, conntrack_full, memory_pressure, thermal_throttling";

/// A run that has ended.
pub(crate) struct Run {
    pub(crate) summary: Value,
    /// What it did not meet.
    pub(crate) missed: Option<ErrorKind>,
    directory: Arc<TempDir>,
}

/// A run that goes on.
pub(crate) struct Measuring {
    running: Option<JoinHandle<Run>>,
    interrupt: Arc<AtomicBool>,
    directory: Arc<TempDir>,
}

/// Runs a scenario in YAML to its end. Without `warmup` there is none. Its run directory lives as long as the run.
pub(crate) fn measure(text: &str) -> Run {
    start(text).finish()
}

/// Viewers of `url` with these keys of a workload: `clients: 3, duration: 2s`.
pub(crate) fn play(url: &str, keys: &str) -> Run {
    measure(&format!("drain: 200ms\nworkloads: [{{play: '{url}', {keys}}}]"))
}

/// A publisher to `url` with these keys of a workload.
pub(crate) fn publish(url: &str, keys: &str) -> Run {
    measure(&format!("drain: 200ms\nworkloads: [{{publish: '{url}', {keys}}}]"))
}

/// Begins a run of a scenario in YAML.
pub(crate) fn start(text: &str) -> Measuring {
    let scenario = scenario(text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let (interrupt, directory) = (Arc::new(AtomicBool::new(false)), Arc::new(tempfile::tempdir().unwrap()));
    let (flag, place) = (Arc::clone(&interrupt), Arc::clone(&directory));
    let running = std::thread::spawn(move || {
        let summary = run(&scenario, place.path(), &flag).unwrap_or_else(|error| panic!("{error}"));
        Run::of(&summary, place)
    });
    Measuring { running: Some(running), interrupt, directory }
}

/// Why there is no run of a scenario in YAML, which leaves nothing in its directory.
pub(crate) fn refusal(text: &str) -> RunError {
    let directory = tempfile::tempdir().unwrap();
    let ran = scenario(text).and_then(|scenario| run(&scenario, directory.path(), &Arc::default()));
    let error = ran.expect_err(text);
    assert!(
        !directory.path().exists() || directory.path().read_dir().unwrap().next().is_none(),
        "nothing was run"
    );
    error
}

fn scenario(text: &str) -> Result<Scenario, RunError> {
    let text = if text.contains("warmup:") { text.to_owned() } else { format!("{text}\nwarmup: 0s") };
    let text = format!("{text}\naccept: [{CHECKS_OF_THE_MACHINE}]");
    Scenario::parse(&text).map_err(RunError::with(ErrorKind::Scenario))
}

fn run(scenario: &Scenario, directory: &Path, interrupt: &Arc<AtomicBool>) -> Result<Summary, RunError> {
    let folder = Path::new("");
    let run = SteppedRun { scenario, variant: None, repetition: 1, folder, directory };
    let mut session = Session { agents: None, watcher: &mut Silent, interrupt };
    let (summary, trouble) = run.measure(&mut session)?;
    trouble.map_or(Ok(summary), Err)
}

struct Silent;

impl Watcher for Silent {}

impl Observer for Silent {}

/// What the lines of a run directory come to.
pub(crate) fn recompute(directory: &Path) -> Value {
    let again = recompute::of_run(directory).unwrap_or_else(|error| panic!("{error}"));
    serde_json::to_value(&again.summary).unwrap()
}

/// The same in a format of reports.
pub(crate) fn recomputed_as(format: &str, directory: &Path) -> String {
    let again = recompute::of_run(directory).unwrap_or_else(|error| panic!("{error}"));
    let mut bytes = Vec::new();
    again.summary.write(format, &Text::default(), &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

impl Measuring {
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Ends it early, as Ctrl-C does.
    pub(crate) fn interrupt(&self) {
        self.interrupt.store(true, Relaxed);
    }

    /// Waits for its end.
    pub(crate) fn finish(mut self) -> Run {
        self.running.take().unwrap().join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

impl Drop for Measuring {
    fn drop(&mut self) {
        self.interrupt();
        // Its outcome is not used: a test that fails has said why.
        let _ = self.running.take().map(JoinHandle::join);
    }
}

impl Run {
    fn of(summary: &Summary, directory: Arc<TempDir>) -> Self {
        let written = std::fs::read(directory.path().join("summary.json")).unwrap();
        let written = serde_json::from_slice(&written).unwrap();
        let run = Self { summary: written, missed: ErrorKind::of_summary(summary), directory };
        run.check();
        run
    }

    /// What holds for every run, whatever was measured.
    fn check(&self) {
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
        assert_eq!(self.missed, self.expected(), "{:#}", self.summary["verdict"]);
    }

    /// What the summary stands for.
    fn expected(&self) -> Option<ErrorKind> {
        let thresholds = self.summary["thresholds"].as_array().unwrap();
        match &self.summary["outcome"] {
            outcome if outcome == "interrupted" => Some(ErrorKind::Interrupted),
            outcome if outcome == "target_died" => Some(ErrorKind::TargetDied),
            outcome if outcome["aborted"].is_string() => Some(ErrorKind::Aborted),
            _ if self.is_unanswered() => Some(ErrorKind::TargetDied),
            _ if self.summary["verdict"]["state"] == "invalid" => Some(ErrorKind::Invalid),
            _ if self.summary["verdict"]["state"] == "nothing_measured" => Some(ErrorKind::Thresholds),
            _ if thresholds.iter().any(|threshold| threshold["passed"] == false) => {
                Some(ErrorKind::Thresholds)
            }
            _ => None,
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

    /// Where it was written.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// What one of its files has.
    pub(crate) fn file(&self, name: &str) -> String {
        let path = self.directory().join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn workloads(&self) -> &[Value] {
        self.summary["workloads"].as_array().unwrap()
    }

    /// A counter of the first workload, ramps and drain included.
    pub(crate) fn total(&self, figure: &str) -> f64 {
        counter(&self.workloads()[0], figure)
    }

    /// A counter of the first workload, or how many values a distribution of it has.
    pub(crate) fn count(&self, figure: &str) -> u64 {
        count(&self.workloads()[0], figure)
    }

    /// The same of any workload.
    pub(crate) fn figure_of(&self, workload: usize, figure: &str) -> u64 {
        count(&self.workloads()[workload], figure)
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
}

fn counter(workload: &Value, figure: &str) -> f64 {
    let total = &workload["total"][figure]["total"];
    total.as_f64().unwrap_or_else(|| panic!("{figure} is no counter of {:#}", workload["total"]))
}

/// A counter of a workload, or how many values a distribution of it has.
pub(crate) fn count(workload: &Value, figure: &str) -> u64 {
    let value = &workload["total"][figure];
    value["total"].as_f64().or_else(|| value["count"].as_f64()).unwrap_or_else(|| panic!("{figure}: {value}"))
        as u64
}

fn failures(workload: &Value) -> BTreeMap<String, u64> {
    let list = workload["failures"].as_array().unwrap();
    list.iter().map(|f| (f["kind"].as_str().unwrap().to_owned(), f["clients"].as_u64().unwrap())).collect()
}
