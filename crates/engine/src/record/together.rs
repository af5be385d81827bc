//! What several agents counted in the same seconds, as one interval.

use std::collections::BTreeMap;
use weir_metrics::{Interval, IntervalKey};

/// Seconds by which the lines of one agent may stand behind those of another: an agent keeps for half a minute what it cannot
/// send.
const LATEST_AGENT: u32 = 60;

/// Intervals of agents that are not added up.
#[derive(Debug, Default)]
pub(super) struct Together {
    /// By the second in which they begin, and by agent.
    open: BTreeMap<IntervalKey, BTreeMap<u16, Interval>>,
}

impl Together {
    /// Takes what an agent counted; gives the intervals of all agents of which no more can come, in order.
    pub(super) fn push(&mut self, agent: u16, interval: Interval) -> Vec<Interval> {
        let second = interval.key.second;
        let of_key = self.open.entry(interval.key).or_default();
        match of_key.get_mut(&agent) {
            Some(earlier) => earlier.merge(&interval),
            None => drop(of_key.insert(agent, interval)),
        }
        self.before(second.saturating_sub(LATEST_AGENT))
    }

    /// The intervals that begin before this second.
    pub(super) fn before(&mut self, second: u32) -> Vec<Interval> {
        let mut complete = Vec::new();
        while let Some(first) = self.open.first_entry()
            && first.key().second < second
        {
            let (key, of_agents) = first.remove_entry();
            complete.extend(self.sum(key, of_agents));
        }
        complete
    }

    /// All that are left.
    pub(super) fn rest(mut self) -> Vec<Interval> {
        self.before(u32::MAX)
    }

    /// The sum over agents of the intervals that begin together, and of those that overlap with them: an agent that was stopped
    /// earlier than others has cut its seconds at other places.
    fn sum(&mut self, key: IntervalKey, mut of_agents: BTreeMap<u16, Interval>) -> Option<Interval> {
        let mut end = of_agents.values().map(Interval::end).max()?;
        while let Some(next) = self.overlapping(key, end) {
            for (agent, interval) in self.open.remove(&next).into_iter().flatten() {
                end = end.max(interval.end());
                match of_agents.get_mut(&agent) {
                    Some(earlier) => earlier.append(&interval),
                    None => drop(of_agents.insert(agent, interval)),
                }
            }
        }
        let mut sums = of_agents.into_values();
        let mut sum = sums.next()?;
        sums.for_each(|more| sum.merge(&more));
        sum.key = key;
        Some(sum)
    }

    /// The next interval of the same workload and server that begins before `end`.
    fn overlapping(&self, key: IntervalKey, end: u32) -> Option<IntervalKey> {
        let after = self.open.range(key..).take_while(|(next, _)| next.second < end);
        after.map(|(next, _)| *next).find(|next| (next.workload, next.server) == (key.workload, key.server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_metrics::common::{MEDIA, PLAYING};
    use weir_metrics::{Recorder, Schema};

    fn of(second: u32, workload: u16) -> Interval {
        let mut figures = Recorder::new(Schema::new(&[]));
        figures.set(PLAYING, 4);
        figures.count(MEDIA, 10);
        Interval::new(IntervalKey { second, workload, server: None }, figures)
    }

    #[test]
    fn a_second_is_added_up_when_no_agent_can_be_behind_it() {
        let mut together = Together::default();
        assert!(together.push(0, of(5, 0)).is_empty());
        assert!(together.push(1, of(6, 0)).is_empty());
        assert!(together.push(1, of(5, 0)).is_empty());
        assert!(together.push(0, of(65, 0)).is_empty());
        let complete = together.push(0, of(66, 0));
        let media = |intervals: &[Interval]| -> Vec<(u32, u64)> {
            intervals.iter().map(|it| (it.key.second, it.figures.counter(MEDIA))).collect()
        };
        assert_eq!(media(&complete), [(5, 20)]);
        assert_eq!(media(&together.rest()), [(6, 10), (65, 10), (66, 10)]);
    }

    proptest! {
        #[test]
        fn however_agents_cut_their_seconds_each_second_counts_once(
            cuts in prop::collection::vec(prop::collection::vec(1u32..9, 1..20), 1..4),
        ) {
            // All have the seconds 0 to 39 of two workloads.
            let mut lines = Vec::new();
            for (agent, lengths) in (0_u16..).zip(&cuts) {
                let mut lengths = lengths.iter().cycle();
                let mut at = 0;
                while at < 40 {
                    let end = (at + lengths.next().unwrap()).min(40);
                    for workload in [0, 1] {
                        let mut interval = of(at, workload);
                        (at + 1..end).for_each(|second| interval.append(&of(second, workload)));
                        lines.push((agent, interval));
                    }
                    at = end;
                }
            }
            lines.sort_by_key(|(agent, interval)| (interval.key, *agent));
            let mut together = Together::default();
            let mut sums = Vec::new();
            for (agent, interval) in lines {
                sums.extend(together.push(agent, interval));
            }
            sums.extend(together.rest());
            let agents = cuts.len() as u64;
            for workload in [0, 1] {
                let of: Vec<_> = sums.iter().filter(|it| it.key.workload == workload).collect();
                prop_assert_eq!(of.iter().map(|it| it.seconds()).sum::<u32>(), 40);
                prop_assert_eq!(of.iter().map(|it| it.figures.counter(MEDIA)).sum::<u64>(), 400 * agents);
                prop_assert_eq!(of.iter().map(|it| it.level_of(PLAYING).sum).sum::<u64>(), 160 * agents);
                prop_assert!(of.iter().all(|it| it.level_of(PLAYING).max == 4 * agents));
            }
        }
    }
}
