//! How a plan is divided among machines of unlike capacity. A function of values.

use super::segment::{Segment, Share};
use super::{Plan, StageSpan};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Clients that are given out one by one, at the most; of a larger workload more than one at a time.
const MOST_STEPS: u32 = 1 << 20;

/// What a machine can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Cores that it may use: machines get clients in proportion to them.
    pub cores: u32,
    /// Clients that it can have at once, by its descriptors, its ports and its owner.
    pub most: u64,
}

/// The parts of a plan, one a machine. `places` says of each workload which machines may make it; one that no machine may
/// make is given to all.
///
/// Each machine gets clients in proportion to its cores, up to what it can have. Where all together can have too few, they get more
/// than they can have, and say so themselves.
pub fn segments(plan: &Plan, machines: &[Capacity], places: &[Vec<usize>]) -> Vec<Segment> {
    let everybody: Vec<usize> = (0..machines.len()).collect();
    let mut order: Vec<usize> = (0..places.len()).collect();
    // Those that have least choice come first, and the others around them.
    order.sort_by_key(|workload| match places[*workload].len() {
        0 => machines.len(),
        count => count,
    });
    let mut load = vec![0_u64; machines.len()];
    let mut shares = vec![vec![Share::default(); places.len()]; machines.len()];
    for workload in order {
        let own = &places[workload];
        let allowed = if own.is_empty() { &everybody } else { own };
        let of_workload = |span: &&StageSpan| usize::from(span.workload) == workload;
        let clients = plan.stages.iter().filter(of_workload).map(|span| span.clients).max().unwrap_or(0);
        let parts = parts(clients, allowed, machines, &mut load);
        let of = parts.iter().sum();
        let mut from = 0;
        for (machine, part) in allowed.iter().zip(parts) {
            shares[*machine][workload] = Share { from, to: from + part, of, step: step(of) };
            from += part;
        }
    }
    let of = machines.len() as u16;
    (0..).zip(shares).map(|(index, shares)| Segment { index, of, shares }).collect()
}

/// How many clients of a workload each of these machines gets, beside what it has.
fn parts(clients: u32, allowed: &[usize], machines: &[Capacity], load: &mut [u64]) -> Vec<u32> {
    let unit = clients.div_ceil(MOST_STEPS).max(1);
    let mut parts = vec![0; allowed.len()];
    // Whether it is full, and what a core of it would have to do; the least first, and the first of equals.
    let key = |at: usize, load: &[u64]| {
        let Capacity { cores, most } = machines[allowed[at]];
        let next = load[allowed[at]] + u64::from(unit);
        let a_core = next as f64 / f64::from(cores.max(1));
        // Positive numbers are in the order of their bits.
        Reverse((next > most, a_core.to_bits(), at))
    };
    let mut queue: BinaryHeap<_> = (0..allowed.len()).map(|at| key(at, load)).collect();
    for _ in 0..clients / unit {
        let Some(Reverse((_, _, at))) = queue.pop() else { break };
        parts[at] += 1;
        load[allowed[at]] += u64::from(unit);
        queue.push(key(at, load));
    }
    parts
}

/// A step by which consecutive clients come to different machines: about the golden section of the places, and without a divisor in
/// common with them, so that each place has its turn.
fn step(of: u32) -> u32 {
    let wanted = (f64::from(of) * 0.618_034).round() as u32;
    let divisor = |mut a: u32, mut b: u32| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    (wanted.max(1)..=of.max(1)).find(|step| divisor(*step, of) == 1).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{RampStage, Schedule};
    use proptest::prelude::*;
    use std::time::Duration;

    fn plan(clients: &[u32]) -> Plan {
        let hold = Duration::from_secs(5);
        let schedule = |clients: &u32| Schedule {
            stages: vec![RampStage { clients: *clients, ramp: Duration::from_secs(1), hold }],
            ..Schedule::default()
        };
        Plan::new(&clients.iter().map(schedule).collect::<Vec<_>>(), 0, Duration::ZERO, &[])
    }

    fn machine(cores: u32, most: u64) -> Capacity {
        Capacity { cores, most }
    }

    /// How many clients of each workload each machine has.
    fn counts(plan: &Plan, segments: &[Segment], workloads: u16) -> Vec<Vec<usize>> {
        let of = |part: &Plan, workload| part.slots.iter().filter(|slot| slot.workload == workload).count();
        let parts: Vec<_> = segments.iter().map(|segment| plan.part(segment)).collect();
        parts.iter().map(|part| (0..workloads).map(|workload| of(part, workload)).collect()).collect()
    }

    #[test]
    fn machines_get_clients_in_proportion_to_their_cores_up_to_what_they_can_have() {
        let plan = plan(&[100]);
        let of = |machines: &[Capacity]| {
            let counts = counts(&plan, &segments(&plan, machines, &[Vec::new()]), 1);
            counts.into_iter().map(|it| it[0]).collect::<Vec<_>>()
        };
        assert_eq!(of(&[machine(2, 1_000), machine(2, 1_000), machine(2, 1_000)]), [34, 33, 33]);
        assert_eq!(of(&[machine(8, 1_000), machine(1, 1_000), machine(1, 1_000)]), [80, 10, 10]);
        assert_eq!(of(&[machine(8, 30), machine(1, 1_000), machine(1, 1_000)]), [30, 35, 35]);
        // Too few for all of it: somebody will refuse.
        assert_eq!(of(&[machine(1, 10), machine(1, 10)]), [50, 50]);
    }

    #[test]
    fn a_workload_goes_where_it_may_and_others_around_it() {
        let plan = plan(&[90, 10]);
        let machines = [machine(2, 1_000); 3];
        let parts = segments(&plan, &machines, &[Vec::new(), vec![1]]);
        assert_eq!(counts(&plan, &parts, 2), [[34, 0], [23, 10], [33, 0]]);
        let many = self::plan(&[1; 6]);
        let parts = segments(&many, &machines, &vec![Vec::new(); 6]);
        let sums: Vec<usize> = counts(&many, &parts, 6).iter().map(|it| it.iter().sum()).collect();
        assert_eq!(sums, [2, 2, 2], "workloads of one client are not all given to the first");
    }

    #[test]
    fn clients_in_a_row_come_to_machines_by_turns() {
        let plan = plan(&[60]);
        let parts =
            segments(&plan, &[machine(4, 1_000), machine(1, 1_000), machine(1, 1_000)], &[Vec::new()]);
        for part in &parts {
            let clients: Vec<u32> = plan.part(part).slots.iter().map(|slot| slot.client).collect();
            let first = clients.iter().filter(|client| **client < 30).count();
            assert!(first.abs_diff(clients.len() - first) <= 2, "{clients:?}");
        }
    }

    proptest! {
        /// Whatever machines are given, and wherever workloads may go: the parts add up to the plan.
        #[test]
        fn the_weighted_segments_of_a_plan_add_up_to_the_plan(
            stages in prop::collection::vec(prop::collection::vec((0u32..60, 0u64..4, 0u64..4), 1..4), 1..4),
            machines in prop::collection::vec((0u32..9, 0u64..80), 1..6),
            places in prop::collection::vec(prop::collection::vec(0usize..6, 0..4), 4),
        ) {
            let stage = |(clients, ramp, hold): &(u32, u64, u64)| RampStage {
                clients: *clients, ramp: Duration::from_secs(*ramp), hold: Duration::from_secs(*hold),
            };
            let schedule = |it: &Vec<_>| Schedule { stages: it.iter().map(stage).collect(), ..Schedule::default() };
            let plan = Plan::new(&stages.iter().map(schedule).collect::<Vec<_>>(), 0, Duration::ZERO, &[]);
            let machines: Vec<_> = machines.into_iter().map(|(cores, most)| Capacity { cores, most }).collect();
            let places: Vec<Vec<usize>> = places.into_iter().take(stages.len()).map(|mut it| {
                it.retain(|machine| *machine < machines.len());
                it.sort_unstable();
                it.dedup();
                it
            }).collect();
            let parts = segments(&plan, &machines, &places);
            let mut together: Vec<_> = parts.iter().flat_map(|part| plan.part(part).slots).collect();
            together.sort_by_key(|slot| (slot.start, slot.workload, slot.client));
            prop_assert_eq!(together, plan.slots.clone());
            for (machine, part) in parts.iter().enumerate() {
                let own = plan.part(part).slots;
                let may = |workload: u16| {
                    let places = &places[usize::from(workload)];
                    places.is_empty() || places.contains(&machine)
                };
                prop_assert!(own.iter().all(|slot| may(slot.workload)));
            }
        }

        /// A part that somebody else has sent is a part of a plan, or nothing, and costs nothing.
        #[test]
        fn no_share_is_more_than_the_plan(from: u32, to: u32, of: u32, step: u32) {
            let plan = plan(&[20]);
            let segment = Segment { index: 0, of: 1, shares: vec![Share { from, to, of, step }] };
            prop_assert!(plan.part(&segment).slots.len() <= 20);
            prop_assert!(segment.largest_fraction() >= 0.0);
        }
    }
}
