//! What the agents of a run said of themselves, and which of them were lost.

use crate::agents::end::AgentEnd;
use crate::agents::facts::AgentFacts;
use crate::record::event::EventLine;
use crate::summary::{ProcessLoad, Reason};
use crate::verdict;
use std::collections::BTreeMap;

/// What is known of the agents of a run.
#[derive(Debug, Default)]
pub(super) struct AgentsAggregator {
    /// How late each began, and how far its clock may be off, in seconds.
    begun: BTreeMap<u16, (f64, f64)>,
    lost: BTreeMap<u16, LostAgent>,
    ends: BTreeMap<u16, AgentEnd>,
}

#[derive(Debug)]
struct LostAgent {
    at_seconds: f64,
    words: String,
    is_allowed: bool,
}

impl AgentsAggregator {
    /// Takes note of an event, if it is about an agent.
    pub(super) fn take(&mut self, line: &EventLine) {
        match line {
            EventLine::AgentBegun { agent, late_seconds, clock_bound_seconds } => {
                self.begun.insert(*agent, (*late_seconds, *clock_bound_seconds));
            }
            EventLine::AgentLost { agent, at_seconds, is_allowed, words, .. } => {
                let lost =
                    LostAgent { at_seconds: *at_seconds, words: words.clone(), is_allowed: *is_allowed };
                self.lost.insert(*agent, lost);
            }
            EventLine::AgentEnded { agent, end } => {
                self.ends.insert(*agent, (**end).clone());
            }
            _ => {}
        }
    }

    /// What it makes of the run.
    pub(super) fn reasons(&self, facts: &[AgentFacts]) -> Vec<Reason> {
        let name = |agent: &u16| facts.get(usize::from(*agent)).map_or("?", |facts| &facts.name);
        let lost = self.lost.iter().map(|(agent, LostAgent { at_seconds, words, is_allowed })| {
            verdict::of_lost_agent(name(agent), *at_seconds, words, *is_allowed)
        });
        let late = self
            .begun
            .iter()
            .filter_map(|(agent, (late, bound))| verdict::of_late_agent(name(agent), late + bound));
        let own = self.ends.iter().flat_map(|(agent, end)| {
            let of_machine = end.reasons.iter().filter(|reason| verdict::is_of_machine(&reason.check));
            of_machine.map(move |reason| Reason {
                text: format!("{}: {}", name(agent), reason.text),
                ..reason.clone()
            })
        });
        lost.chain(late).chain(own).collect()
    }

    /// How far the clocks of any two agents may be apart, if agents made the load.
    pub(super) fn clock_uncertainty(&self) -> Option<f64> {
        let ends = |agent| self.ends.get(agent).map_or(0.0, |end: &AgentEnd| end.clock_bound_seconds);
        let mut bounds: Vec<f64> =
            self.begun.iter().map(|(agent, (_, bound))| bound.max(ends(agent))).collect();
        bounds.sort_by(|a, b| b.total_cmp(a));
        (!bounds.is_empty()).then(|| bounds.iter().take(2).sum())
    }

    /// What all agents together used of their machines in a stage, if each of them said so.
    pub(super) fn load(&self, agents: usize, workload: u16, stage: u16) -> Option<ProcessLoad> {
        let of = |end: &AgentEnd| {
            let mut loads = end.loads.iter();
            loads.find(|(w, s, _)| (*w, *s) == (workload, stage)).map(|(_, _, load)| load.clone())
        };
        let loads: Option<Vec<_>> = self.ends.values().map(of).collect();
        let mut loads = loads.filter(|loads| loads.len() == agents)?.into_iter();
        let mut sum = loads.next()?;
        for load in loads {
            sum.cpu_percent += load.cpu_percent;
            sum.cpu_percent_max += load.cpu_percent_max;
            sum.cpu_seconds = sum.cpu_seconds.zip(load.cpu_seconds).map(|(sum, more)| sum + more);
            sum.rss_max_bytes += load.rss_max_bytes;
            sum.rss_mean_bytes += load.rss_mean_bytes;
            sum.descriptors_max = sum.descriptors_max.zip(load.descriptors_max).map(|(a, b)| a + b);
            sum.context_switches_per_second += load.context_switches_per_second;
            // Which thread of which machine was busy is in each agent's own report.
            sum.threads.clear();
        }
        Some(sum)
    }
}
