//! The seam to agents: other machines that make the load of a run, in the place of generator threads of this process.
//!
//! An agent runs a part of the plan as a run of its own, and hands on what its run directory gets, second by second. The
//! coordinator takes these seconds as it takes the reports of its own threads. Nothing here knows how they travel.

use crate::event::EventLine;
use crate::plan::{Plan, Segment};
use crate::record::{self, Histograms};
use crate::summary::{ProcessLoad, Reason, Summary};
use hdrhistogram::serialization::V2DeflateSerializer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use weir_metrics::common::{FAILED, LATE, MISSED, ON_TIME, PLANNED, PLAYED};
use weir_metrics::{Counter, Interval, Moment, Recorder, Schema};
use weir_observe::TargetSample;

use crate::report::Arrival;

/// Who makes the load of a run.
pub enum Load {
    /// Generator threads of this process.
    Here,
    /// The same, for a part of the plan, as one agent of several.
    AsAgent(AgentRun),
    /// Agents on other machines.
    Elsewhere(Box<dyn Agents>),
}

/// What an agent's run has that a run of its own has not.
#[derive(Debug)]
pub struct AgentRun {
    /// Its part of the plan.
    pub segment: Segment,
    /// When second 0 begins, on this machine's clock.
    pub origin: Moment,
    /// Where its seconds go.
    pub seconds: Sender<SecondLines>,
}

/// Agents that are ready to begin.
pub trait Agents: Send {
    /// Who they are, in the order of their segments.
    fn facts(&self) -> Vec<AgentFacts>;

    /// What is read of the target on other machines, if it is.
    fn watched(&self) -> WatchedElsewhere;

    /// How many of them may be lost without an end to the run.
    fn losses_allowed(&self) -> u16;

    /// Tells them when second 0 begins, on this machine's clock, and passes on what they send until each has ended or is lost.
    /// When `stop` is set they are told to end.
    ///
    /// # Errors
    /// The thread for it could not be started.
    fn begin(
        self: Box<Self>,
        origin: Moment,
        stop: Arc<AtomicBool>,
        reports: AgentReports,
    ) -> io::Result<JoinHandle<io::Result<()>>>;
}

/// The watched processes of other machines as they were read last: whoever hears of them puts them in, and each second of a run
/// takes them from here.
#[derive(Clone, Debug, Default)]
pub struct WatchedElsewhere(Arc<Mutex<Vec<Vec<TargetSample>>>>);

impl WatchedElsewhere {
    /// Of this many machines.
    pub fn of(machines: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![Vec::new(); machines])))
    }

    /// Takes what was read on a machine. The processes stay the same ones in the same places, and time goes on: what comes
    /// otherwise is left out.
    pub fn set(&self, machine: usize, targets: Vec<TargetSample>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = all.get_mut(machine) else { return };
        let follows = |(last, next): (&TargetSample, &TargetSample)| {
            let at = |it: &TargetSample| it.elsewhere.map(|it| it.at_ns);
            last.watch == next.watch && at(last) <= at(next)
        };
        let is_next = last.len() == targets.len() && last.iter().zip(&targets).all(follows);
        if last.is_empty() || is_next {
            *last = targets;
        }
    }

    /// All of them.
    pub fn latest(&self) -> Vec<TargetSample> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).concat()
    }
}

/// An agent, as a run directory names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentFacts {
    /// Its name.
    pub name: String,
    /// The machine that it runs on.
    pub hostname: String,
    /// Cores that it may use.
    pub cores: u32,
    /// `--label` pairs.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// One second of an agent's run: what its run directory has of it, as it stands there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecondLines {
    /// Which second.
    pub second: u32,
    /// Lines of `intervals.ndjson`.
    pub intervals: Vec<String>,
    /// Lines of `histograms.hlog`.
    pub histograms: String,
    /// What happened since the second before.
    pub events: Vec<EventLine>,
    /// Whether the second ends with this: what is more than a message holds comes in parts.
    pub is_whole: bool,
}

/// Bytes of distributions, and events, after which the next of them are another part.
const PART_BYTES: usize = 256 << 10;
const PART_EVENTS: usize = 1_000;

/// What an agent says of itself when its run is over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AgentEnd {
    /// Why it did not make the whole of its part, if it did not and was not told to end.
    pub cut_short: Option<String>,
    /// How far its clock may have been from what it was taken for, at the most.
    pub clock_bound_seconds: f64,
    /// What its machine made of its run.
    pub reasons: Vec<Reason>,
    /// What it used of its machine in each stage: workload, stage, CPU and memory.
    pub loads: Vec<(u16, u16, ProcessLoad)>,
}

impl AgentEnd {
    /// Of the run that this summary is of.
    pub fn of(summary: &Summary) -> Self {
        let stages = (0..).zip(&summary.workloads).flat_map(|(workload, it)| {
            let stages = it.stages.iter();
            stages.filter_map(move |stage| Some((workload, stage.stage, stage.generator.clone()?)))
        });
        Self {
            cut_short: None,
            clock_bound_seconds: 0.0,
            reasons: summary.verdict.reasons.clone(),
            loads: stages.collect(),
        }
    }
}

/// Clients of one workload that were there when their agent was lost: nobody knows what became of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenClients {
    /// Those that had begun.
    pub begun: u64,
    /// Those of them that had played.
    pub played: u64,
}

/// What one agent has counted of the clients of a workload.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CountedClients {
    planned: u64,
    played: u64,
    ended_well: u64,
    ended_otherwise: u64,
}

impl CountedClients {
    pub(crate) fn add(&mut self, figures: &Recorder) {
        let sum =
            |counters: &[Counter]| counters.iter().map(|counter| figures.counter(*counter)).sum::<u64>();
        self.planned += sum(&[PLANNED]);
        self.played += sum(&[PLAYED]);
        self.ended_well += sum(&[ON_TIME, LATE]);
        self.ended_otherwise += sum(&[MISSED, FAILED]);
    }

    /// Those that have not ended.
    pub(crate) fn open(&self) -> OpenClients {
        let begun = self.planned.saturating_sub(self.ended_well + self.ended_otherwise);
        // A client that has ended well had played, or had too little time to.
        OpenClients { begun, played: self.played.saturating_sub(self.ended_well).min(begun) }
    }
}

/// What came from an agent.
#[derive(Debug)]
pub enum AgentReport {
    /// It has begun.
    Begun {
        /// How long after the common moment its first client could begin.
        late_seconds: f64,
        /// How far its clock may be from what it was taken for.
        clock_bound_seconds: f64,
    },
    /// A second.
    Second(SecondLines),
    /// Its run is over.
    Ended(AgentEnd),
    /// It is not there any more, and nothing will come.
    Lost(String),
    /// Something is wrong that a person should know.
    Trouble(String),
}

/// Where what agents send goes.
#[derive(Clone, Debug)]
pub struct AgentReports(pub(crate) Sender<Arrival>);

impl AgentReports {
    /// Passes on what came from the agent with this number.
    pub fn send(&self, agent: u16, report: AgentReport) {
        // A run that is over needs none.
        let _ = self.0.send(Arrival::Agent(agent, report));
    }
}

/// Gathers what a run directory gets, and hands it on second by second.
pub(crate) struct SecondCopier {
    seconds: Sender<SecondLines>,
    serializer: V2DeflateSerializer,
    next: SecondLines,
    /// The second that is not over.
    second: u32,
}

impl SecondCopier {
    pub(crate) fn new(seconds: Sender<SecondLines>) -> Self {
        Self { seconds, serializer: V2DeflateSerializer::new(), next: SecondLines::default(), second: 0 }
    }

    /// Keeps what the coordinator does not find out by itself.
    pub(crate) fn event(&mut self, event: &EventLine) {
        if event.is_of_clients() {
            self.next.events.push(event.clone());
            if self.next.events.len() >= PART_EVENTS {
                let second = self.second;
                self.hand_on(second, false);
            }
        }
    }

    pub(crate) fn interval(&mut self, interval: &Interval) {
        self.next.intervals.push(interval.to_line());
        let mut log = Vec::new();
        record::write_histograms(&mut log, &mut self.serializer, None, interval)
            .expect("a vector takes whatever is written");
        self.next.histograms.push_str(&String::from_utf8_lossy(&log));
        if self.next.histograms.len() >= PART_BYTES {
            self.hand_on(interval.key.second, false);
        }
    }

    /// Hands the second on.
    pub(crate) fn complete(&mut self, second: u32) {
        self.hand_on(second, true);
        self.second = second + 1;
    }

    fn hand_on(&mut self, second: u32, is_whole: bool) {
        let lines = SecondLines { second, is_whole, ..std::mem::take(&mut self.next) };
        // Whoever does not take it any more has its reasons.
        let _ = self.seconds.send(lines);
    }
}

/// Reads an agent's second, and refuses what no second of this plan can be.
pub(crate) fn read(lines: &SecondLines, plan: &Plan, schemas: &[Schema]) -> Result<Vec<Interval>, String> {
    let mut histograms: Histograms =
        record::read_histograms(Path::new("histograms"), lines.histograms.as_bytes())
            .map_err(|error| error.to_string())?;
    let end = record::last_second(plan);
    if u64::from(lines.second) > end {
        return Err(format!("second {} is long after the plan's end", lines.second));
    }
    let intervals = lines.intervals.iter().map(|line| {
        let (agent, interval) = record::read_interval(line, schemas, end, &mut histograms)?;
        match agent {
            None if interval.key.second == lines.second => Ok(interval),
            _ => Err("an interval of another second, or of another agent".to_owned()),
        }
    });
    intervals.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_observe::{Elsewhere, ProcessSample, TargetState, Watch};

    fn target(pid: u32, at_ns: u64) -> TargetSample {
        TargetSample {
            watch: Watch::Pid(pid),
            state: TargetState::Running,
            process: ProcessSample::default(),
            ports: Vec::new(),
            connections: None,
            elsewhere: Some(Elsewhere { at_ns, uptime_seconds: 1.0 }),
        }
    }

    #[test]
    fn processes_of_other_machines_keep_their_places_and_time_goes_on() {
        let watched = WatchedElsewhere::of(2);
        watched.set(1, vec![target(7, 10)]);
        watched.set(0, vec![target(1, 5), target(2, 5)]);
        let seen = || watched.latest().iter().map(|it| it.elsewhere.unwrap().at_ns).collect::<Vec<_>>();
        assert_eq!(seen(), [5, 5, 10]);
        watched.set(1, vec![target(7, 20)]);
        // Another process, one more, an earlier one, a machine that is none.
        for (machine, targets) in [
            (1, vec![target(8, 30)]),
            (1, vec![target(7, 30); 2]),
            (1, vec![target(7, 19)]),
            (2, vec![target(7, 30)]),
        ] {
            watched.set(machine, targets);
        }
        assert_eq!(seen(), [5, 5, 20]);
    }
}
