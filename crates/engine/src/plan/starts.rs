//! The starts of a plan in the order of time, one after the other: each client of a place is followed by the next. Pure
//! data, made as it is needed, so that a plan of hours takes no more memory than one of minutes.

use crate::plan::{Plan, PlannedLife, PlannedSlot};
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::time::Duration;

/// What of a plan is still to begin.
#[derive(Debug)]
pub(crate) struct Starts {
    /// By start.
    slots: Vec<PlannedSlot>,
    next: usize,
    /// Clients that replace another: at most one for each planned start.
    following: BinaryHeap<Reverse<InOrder>>,
}

/// A start, by its time.
#[derive(Debug, PartialEq, Eq)]
struct InOrder(PlannedLife);

impl Starts {
    pub(crate) fn of(plan: &Plan) -> Self {
        Self { slots: plan.slots.clone(), next: 0, following: BinaryHeap::new() }
    }

    /// The next one.
    pub(crate) fn peek(&self) -> Option<PlannedLife> {
        let first = self.slots.get(self.next).map(PlannedSlot::first);
        let follower = self.following.peek().map(|Reverse(InOrder(start))| *start);
        first.into_iter().chain(follower).min_by_key(order)
    }

    /// Takes the next one out.
    pub(crate) fn pop(&mut self) -> Option<PlannedLife> {
        let start = self.peek()?;
        if start.turn == 0 {
            self.next += 1;
        } else {
            self.following.pop();
        }
        self.following.extend(start.follower().map(|follower| Reverse(InOrder(follower))));
        Some(start)
    }

    /// Takes the next one out, if its time has come `now`.
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<PlannedLife> {
        self.peek().filter(|start| start.start <= now)?;
        self.pop()
    }

    /// Whether none is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.peek().is_none()
    }
}

fn order(start: &PlannedLife) -> (Duration, u16, u32) {
    (start.start, start.slot.workload, start.slot.client)
}

impl Ord for InOrder {
    fn cmp(&self, other: &Self) -> Ordering {
        order(&self.0).cmp(&order(&other.0))
    }
}

impl PartialOrd for InOrder {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::arrival::Spacing;
    use crate::plan::lifetime::Lifetime;
    use crate::plan::{RampStage, Schedule};
    use proptest::prelude::*;

    fn all(plan: &Plan) -> Vec<PlannedLife> {
        let mut starts = Starts::of(plan);
        std::iter::from_fn(move || starts.pop()).collect()
    }

    /// How many are there at a moment.
    fn present(starts: &[PlannedLife], at: Duration) -> usize {
        starts.iter().filter(|it| it.start <= at && at < it.stop).count()
    }

    fn schedule(stages: &[(u32, u64, u64)], life: Option<Lifetime>) -> Schedule {
        let seconds = Duration::from_secs;
        let stage = |(clients, ramp, hold): &(u32, u64, u64)| RampStage {
            clients: *clients,
            ramp: seconds(*ramp),
            hold: seconds(*hold),
        };
        Schedule { stages: stages.iter().map(stage).collect(), life, ..Schedule::default() }
    }

    #[test]
    fn a_place_is_never_empty_and_never_taken_twice() {
        let life = Some(Lifetime::Fixed(Duration::from_secs(4)));
        let plan = Plan::new(&[schedule(&[(10, 2, 18)], life)], 0, Duration::ZERO, &[]);
        let starts = all(&plan);
        // 20 s of the first place, and 18.2 s of the last, of 4 s each.
        assert_eq!(starts.len(), 50);
        assert!(starts.is_sorted_by_key(|it| it.start));
        for tenth in 20..200 {
            assert_eq!(present(&starts, Duration::from_millis(100 * tenth)), 10);
        }
        let of_the_third: Vec<_> = starts.iter().filter(|it| it.slot.client == 3).collect();
        let begun: Vec<_> = of_the_third.iter().map(|it| (it.turn, it.start.as_millis())).collect();
        assert_eq!(begun, [(0, 600), (1, 4_600), (2, 8_600), (3, 12_600), (4, 16_600)]);
        assert_eq!(of_the_third[4].stop, Duration::from_secs(20));
    }

    #[test]
    fn a_place_with_a_pause_is_empty_for_it_and_the_last_of_it_stays() {
        let life = Some(Lifetime::Fixed(Duration::from_secs(4)));
        let pausing = Schedule { pause: Duration::from_secs(1), ..schedule(&[(2, 0, 14)], life) };
        let starts = all(&Plan::new(&[pausing], 0, Duration::ZERO, &[]));
        let of_the_first = starts.iter().filter(|it| it.slot.client == 0);
        let lives: Vec<_> = of_the_first.map(|it| (it.start.as_secs(), it.stop.as_secs())).collect();
        assert_eq!(lives, [(0, 4), (5, 9), (10, 14)]);
        let pausing = Schedule { pause: Duration::from_secs(1), ..schedule(&[(1, 0, 10)], life) };
        let starts = all(&Plan::new(&[pausing], 0, Duration::ZERO, &[]));
        let lives: Vec<_> = starts.iter().map(|it| (it.start.as_secs(), it.stop.as_secs())).collect();
        assert_eq!(lives, [(0, 4), (5, 10)], "nobody would come back at the end");
    }

    #[test]
    fn a_grace_at_the_end_brings_nobody_new() {
        let life = Some(Lifetime::Fixed(Duration::from_secs(5)));
        let mut plan = Plan::new(&[schedule(&[(1, 0, 10)], life)], 0, Duration::ZERO, &[]);
        plan.slots[0].stop += Duration::from_secs(7);
        let starts = all(&plan);
        assert_eq!(starts.len(), 2);
        assert_eq!(starts[1].stop, Duration::from_secs(17), "the last one stays");
    }

    #[test]
    fn a_plan_without_an_end_is_begun_at_once() {
        let year = 365 * 86_400;
        let life = Some(Lifetime::Exponential(Duration::from_millis(100)));
        let plan = Plan::new(&[schedule(&[(500, 1, 10 * year)], life)], 3, Duration::ZERO, &[]);
        let mut starts = Starts::of(&plan);
        assert!((0..10_000).filter_map(|_| starts.pop()).count() == 10_000 && !starts.is_empty());
    }

    prop_compose! {
        fn churning()(
            raw in prop::collection::vec((prop::collection::vec((0u32..20, 0u64..4, 0u64..6), 1..4), 0u8..3), 1..3),
            poisson: bool,
        ) -> Vec<Schedule> {
            raw.into_iter().map(|(stages, kind)| {
                let mean = Duration::from_millis(700);
                let life = [None, Some(Lifetime::Fixed(mean)), Some(Lifetime::Exponential(mean))][usize::from(kind)];
                let spacing = if poisson { Spacing::Poisson } else { Spacing::Even };
                Schedule { spacing, ..schedule(&stages, life) }
            }).collect()
        }
    }

    proptest! {
        #[test]
        fn the_starts_of_all_segments_are_the_starts_of_the_plan(schedules in churning(), seed: u64, n in 1usize..6) {
            let plan = Plan::new(&schedules, seed, Duration::from_secs(1), &[]);
            let mut together: Vec<_> = (0..n).flat_map(|i| all(&plan.segment(i, n))).collect();
            together.sort_by_key(order);
            prop_assert_eq!(together, all(&plan));
        }

        #[test]
        fn who_comes_in_anothers_place_keeps_the_number_of_clients(schedules in churning(), seed: u64) {
            let plan = Plan::new(&schedules, seed, Duration::ZERO, &[]);
            let starts = all(&plan);
            for tenth in 0..200 {
                let at = Duration::from_millis(100 * tenth);
                let places = plan.slots.iter().filter(|it| it.start <= at && at < it.stop).count();
                prop_assert_eq!(present(&starts, at), places);
            }
        }
    }
}
