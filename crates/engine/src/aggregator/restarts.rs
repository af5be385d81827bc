//! What a restart of the server did to clients: how many lost their links, and when the last of them was back.

use crate::record::event::EventLine;
use crate::summary::RestartSummary;
use std::collections::BTreeMap;
use weir_metrics::common::{CUT_OFF, LAST_CUT_OFF, LAST_RETURN, LEFT_AWAY, RETURNED};
use weir_metrics::{Interval, Unit};

/// The restarts of a run, and what its seconds say of clients without a link.
#[derive(Clone, Debug, Default)]
pub(super) struct Restarts {
    /// By number.
    restarts: BTreeMap<u16, Restart>,
    /// The second that is being added up, of all workloads.
    second: Second,
    /// Clients that have lost their link and are not back, at the end of the second before it. Those that gave up are among them.
    away: u64,
    /// How far the clock of any agent may be from the coordinator's, in seconds.
    clock_bound: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Second {
    end: u32,
    cut_off: u64,
    /// Those that play again, and those that had left by plan before they could.
    returned: u64,
    /// The latest loss of a link and the latest return up to its end, since the run's beginning.
    last_cut_off: f64,
    last_return: f64,
}

#[derive(Clone, Debug)]
struct Restart {
    summary: RestartSummary,
    started_seconds: Option<f64>,
    /// Clients that were away when its first second began; `None` until then.
    away_before: Option<u64>,
}

impl Restarts {
    /// Takes a line on a restart, of which there are two: the second one has when the server was started again. Agents say how
    /// far their clocks may be wrong.
    pub(super) fn take(&mut self, line: &EventLine) {
        if let EventLine::AgentBegun { clock_bound_seconds, .. } = line {
            self.clock_bound = self.clock_bound.max(*clock_bound_seconds);
        }
        let EventLine::Restart { at_seconds, number, server, started_seconds } = line else { return };
        let restart = self.restarts.entry(*number).or_insert_with(|| Restart {
            summary: RestartSummary::new(server.clone(), *at_seconds),
            started_seconds: None,
            away_before: None,
        });
        restart.started_seconds = *started_seconds;
        restart.summary.down_seconds = started_seconds.map(|started| started - at_seconds);
    }

    /// Adds a workload's second, behind those of earlier seconds.
    pub(super) fn add(&mut self, interval: &Interval) {
        if interval.key.second >= self.second.end {
            self.settle();
        }
        let second = &mut self.second;
        second.end = second.end.max(interval.end());
        second.cut_off += interval.figures.counter(CUT_OFF);
        second.returned += interval.figures.counter(RETURNED) + interval.figures.counter(LEFT_AWAY);
        let seconds = |gauge| interval.figures.gauge(gauge) as f64 * Unit::Micros.scale();
        second.last_cut_off = second.last_cut_off.max(seconds(LAST_CUT_OFF));
        second.last_return = second.last_return.max(seconds(LAST_RETURN));
    }

    /// What is known up to now.
    pub(super) fn summaries(&self) -> Vec<RestartSummary> {
        let mut known = self.clone();
        known.settle();
        known.restarts.into_values().map(|it| it.summary).collect()
    }

    /// Whether a server was down, or just started again, in this span of the run, in seconds.
    pub(super) fn overlap(&self, from: f64, until: f64) -> bool {
        self.restarts.values().any(|restart| {
            let begin = restart.summary.at_seconds;
            let end = restart.summary.down_seconds.map_or(f64::MAX, |down| begin + down);
            // Viewers notice a server that ends within a second of it.
            begin <= from + 1.0 && from <= end + 1.0 || begin <= until && until <= end
        })
    }

    /// A second is complete: it is of the latest restart that began before its end.
    fn settle(&mut self) {
        let second = std::mem::take(&mut self.second);
        let before = self.away;
        self.away = (before + second.cut_off).saturating_sub(second.returned);
        // A thread that wakes late books what came meanwhile in the second before.
        let end = f64::from(second.end).max(second.last_cut_off + self.clock_bound);
        let begun = |it: &&mut Restart| it.summary.at_seconds < end;
        let Some(restart) = self.restarts.values_mut().rev().find(begun) else { return };
        let away_before = *restart.away_before.get_or_insert(before);
        let summary = &mut restart.summary;
        summary.cut_off += second.cut_off;
        summary.away = self.away.saturating_sub(away_before);
        // A client that was back before the server was started again had found the old one.
        let is_back = restart.started_seconds.is_some_and(|started| second.last_return >= started);
        if summary.reconnected_seconds.is_none() && summary.away == 0 && is_back {
            summary.reconnected_seconds = Some(second.last_return - summary.at_seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::{IntervalKey, Recorder, Schema};

    /// Adds a second of a workload: how many clients lost their link in it, how many came back, and when the last one did.
    fn second(restarts: &mut Restarts, workload: u16, second: u32, counts: [u64; 2], last_return: f64) {
        let mut figures = Recorder::new(Schema::new(&[]));
        figures.count(CUT_OFF, counts[0]);
        figures.count(RETURNED, counts[1]);
        figures.set(LAST_RETURN, (last_return * 1e6) as u64);
        restarts.add(&Interval::new(IntervalKey { second, workload, server: None }, figures));
    }

    fn restart(restarts: &mut Restarts, number: u16, at_seconds: f64, started_seconds: Option<f64>) {
        restarts.take(&EventLine::Restart {
            at_seconds,
            number,
            server: "broker".to_owned(),
            started_seconds,
        });
    }

    #[test]
    fn all_are_connected_again_when_the_last_of_any_workload_is() {
        let mut restarts = Restarts::default();
        restart(&mut restarts, 0, 1.25, None);
        second(&mut restarts, 0, 0, [1, 0], 0.0);
        second(&mut restarts, 0, 1, [5, 0], 0.0);
        second(&mut restarts, 1, 1, [2, 0], 0.0);
        let known = &restarts.summaries()[0];
        assert_eq!((known.cut_off, known.away, known.reconnected_seconds), (7, 7, None));
        restart(&mut restarts, 0, 1.25, Some(2.25));
        second(&mut restarts, 0, 2, [0, 5], 2.5);
        second(&mut restarts, 1, 2, [0, 1], 2.9);
        assert_eq!(restarts.summaries()[0].reconnected_seconds, None);
        second(&mut restarts, 0, 3, [0, 0], 2.5);
        second(&mut restarts, 1, 3, [0, 1], 3.45);
        // One that had lost its link before is no matter of this restart; nor is what comes behind it.
        second(&mut restarts, 0, 4, [1, 1], 4.5);
        let [known] = &restarts.summaries()[..] else { panic!() };
        assert!((known.reconnected_seconds.unwrap() - 2.2).abs() < 1e-6, "{known:?}");
        assert_eq!((known.down_seconds, known.away), (Some(1.0), 0));
    }

    #[test]
    fn a_link_that_breaks_at_the_edge_of_a_second_is_of_the_restart_wherever_it_was_counted() {
        let booked = |last_cut_off: f64, clock_bound_seconds: f64| {
            let mut restarts = Restarts::default();
            restarts.take(&EventLine::AgentBegun { agent: 0, late_seconds: 0.0, clock_bound_seconds });
            restart(&mut restarts, 0, 3.0, Some(4.5));
            let mut figures = Recorder::new(Schema::new(&[]));
            figures.count(CUT_OFF, 20);
            figures.set(LAST_CUT_OFF, (last_cut_off * 1e6) as u64);
            restarts.add(&Interval::new(IntervalKey { second: 2, workload: 0, server: None }, figures));
            second(&mut restarts, 0, 3, [3, 0], 0.0);
            second(&mut restarts, 0, 4, [0, 23], 4.75);
            let known = restarts.summaries().swap_remove(0);
            (known.cut_off, known.away, known.reconnected_seconds)
        };
        assert_eq!(booked(3.03, 0.0), (23, 0, Some(1.75)), "a thread woke 30 ms late");
        assert_eq!(booked(2.998, 0.005), (23, 0, Some(1.75)), "the agent's clock is late");
        assert_eq!(booked(2.5, 0.005), (3, 0, Some(1.75)), "before the server was told to end");
    }

    #[test]
    fn a_client_that_gives_up_is_away_for_good_and_the_next_restart_has_its_own() {
        let mut restarts = Restarts::default();
        restart(&mut restarts, 0, 1.0, Some(1.5));
        restart(&mut restarts, 1, 3.0, Some(3.1));
        second(&mut restarts, 0, 1, [3, 0], 0.0);
        second(&mut restarts, 0, 2, [0, 2], 2.2);
        second(&mut restarts, 0, 3, [2, 2], 3.5);
        let known = restarts.summaries();
        let of = |at: usize| (known[at].cut_off, known[at].away, known[at].reconnected_seconds.is_some());
        assert_eq!([of(0), of(1)], [(3, 1, false), (2, 0, true)]);
    }

    #[test]
    fn who_leaves_by_plan_without_a_link_keeps_nobody_waiting() {
        let mut restarts = Restarts::default();
        restart(&mut restarts, 0, 1.0, Some(1.5));
        second(&mut restarts, 0, 1, [3, 1], 1.75);
        let mut figures = Recorder::new(Schema::new(&[]));
        figures.count(LEFT_AWAY, 2);
        figures.set(LAST_RETURN, 1_750_000);
        restarts.add(&Interval::new(IntervalKey { second: 2, workload: 0, server: None }, figures));
        let known = &restarts.summaries()[0];
        assert_eq!((known.cut_off, known.away, known.reconnected_seconds), (3, 0, Some(0.75)));
    }

    #[test]
    fn a_restart_that_no_client_noticed_has_no_time() {
        let mut restarts = Restarts::default();
        restart(&mut restarts, 0, 1.0, Some(1.5));
        (0..4).for_each(|at| second(&mut restarts, 0, at, [0, 0], 0.0));
        let known = restarts.summaries();
        assert_eq!((known[0].cut_off, known[0].away, known[0].reconnected_seconds), (0, 0, None));
    }
}
