//! What is known of a run while it goes on.

use super::{Aggregator, points};
use crate::machine;
use crate::scenario::facts::WorkloadFacts;
use crate::scenario::role::Role;
use crate::summary::WorkloadPoint;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_metrics::common::FAILED;
use weir_metrics::{Failure, Recorder};
use weir_observe::{MachineFacts, MachinePoint, MachineValues, Usage};

/// Samples of the last seconds in which a machine must have been heard: a Prometheus has a point every ten or fifteen seconds.
const HEARD_SAMPLES: usize = 20;

/// A stage that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageProgress {
    /// Which it is, from 1 up.
    pub stage: u16,
    /// How many its workload has.
    pub of: u16,
    /// Clients that it holds.
    pub clients: u32,
    /// The time to its end.
    pub left: Duration,
}

impl Aggregator {
    /// The latest second of each workload, for a live view.
    pub fn latest(&self) -> Option<(u32, &[WorkloadPoint])> {
        self.points.items().last().map(|(second, points)| (*second, points.as_slice()))
    }

    /// The same for a line that is read as it goes by: rates are those of the last two seconds if as many clients were
    /// planned and played in both, so that a keyframe every other second is no wave.
    pub fn latest_calmed(&self) -> Option<Vec<WorkloadPoint>> {
        let (second, latest) = self.latest()?;
        let before = self.before_latest.as_ref().filter(|(before, _)| before + 1 == second);
        let calmed = latest.iter().enumerate().map(|(workload, point)| {
            let before = before.and_then(|(_, points)| points.get(workload));
            before.map_or_else(|| point.clone(), |before| points::calmed(before, point))
        });
        Some(calmed.collect())
    }

    /// The figures of the whole run up to now, of each workload, or of each of its servers where it has several.
    pub fn figures(&self) -> impl Iterator<Item = (&WorkloadFacts, Option<&str>, &Recorder)> {
        self.workloads.iter().flat_map(|workload| {
            let servers = workload.facts.servers.iter().zip(&workload.servers);
            let whole = servers.len() < 2;
            let all = whole.then_some((&workload.facts, None, &workload.total.figures));
            let each = servers.map(|(name, it)| (&workload.facts, Some(name.as_str()), it.figures()));
            all.into_iter().chain(each.filter(move |_| !whole))
        })
    }

    /// Whether the run was stopped before its plan's end, in this second or one before.
    pub fn is_stopped_at(&self, second: u32) -> bool {
        self.cut.is_some_and(|cut| cut <= second)
    }

    /// What each workload's clients do.
    pub fn roles(&self) -> Vec<Role> {
        self.workloads.iter().map(|workload| workload.facts.role).collect()
    }

    /// The failures so far, all workloads together.
    pub fn failed(&self) -> u64 {
        self.workloads.iter().map(|workload| workload.total.figures.counter(FAILED)).sum()
    }

    /// Each workload, and what it counted up to now.
    pub fn totals(&self) -> impl Iterator<Item = (&WorkloadFacts, &Recorder)> {
        self.workloads.iter().map(|workload| (&workload.facts, &workload.total.figures))
    }

    /// What the target, weir and the machine used between the last two samples.
    pub fn latest_usage(&self) -> Option<Usage> {
        let samples = self.samples.items();
        let [.., before, latest] = samples else { return None };
        Usage::between(before, latest)
    }

    /// What these machines did last, of those that were heard in the last seconds.
    pub fn latest_machines<'a>(
        &self,
        machines: &'a [MachineFacts],
    ) -> Vec<(&'a MachineFacts, MachineValues)> {
        let samples = self.samples.items();
        let courses = machine::courses(machines, &samples[samples.len().saturating_sub(HEARD_SAMPLES)..]);
        let latest = |course: &Vec<MachinePoint>| course.last().map(|point| point.values);
        machines.iter().zip(&courses).filter_map(|(facts, course)| Some((facts, latest(course)?))).collect()
    }

    /// The stage that is under way at `elapsed`, of the first workload that has several.
    pub fn stage_at(&self, elapsed: Duration) -> Option<StageProgress> {
        let last = self.plan.stages.iter().find(|span| span.stage > 0)?;
        let stages = || self.plan.stages.iter().filter(|span| span.workload == last.workload);
        let now = stages().find(|span| elapsed < span.end)?;
        Some(StageProgress {
            stage: now.stage + 1,
            of: stages().count() as u16,
            clients: now.clients,
            left: now.end.saturating_sub(elapsed),
        })
    }

    /// All kinds of failures so far, the commonest first: how many clients met each, and what was said of the first of them.
    pub fn failures(&self) -> Vec<(Failure, u64, &str)> {
        let mut kinds: BTreeMap<Failure, (u64, &str)> = BTreeMap::new();
        for (workload, number) in self.workloads.iter().zip(0..) {
            for (kind, clients) in workload.total.figures.failures() {
                let (sum, words) = kinds.entry(kind).or_default();
                *sum += clients;
                if words.is_empty() {
                    *words = self.words.get(&(number, kind)).map_or("", String::as_str);
                }
            }
        }
        let mut kinds: Vec<_> =
            kinds.into_iter().map(|(kind, (clients, words))| (kind, clients, words)).collect();
        kinds.sort_by_key(|(_, clients, _)| std::cmp::Reverse(*clients));
        kinds
    }

    /// The commonest kind of failure so far, how many clients met it, and what was said of the first of them.
    pub fn commonest_failure(&self) -> Option<(Failure, u64, &str)> {
        let kinds = self.workloads.iter().zip(0..).flat_map(|(workload, number)| {
            workload.total.figures.failures().map(move |(kind, clients)| (number, kind, clients))
        });
        let (number, kind, clients) = kinds.max_by_key(|(_, _, clients)| *clients)?;
        Some((kind, clients, self.words.get(&(number, kind)).map_or("", String::as_str)))
    }
}
