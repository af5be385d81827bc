//! The plan: every client start with its time, its client and its source address. Pure data.

pub mod apportion;
pub mod arrival;
pub mod lifetime;
pub mod republish;
mod segment;
pub(crate) mod starts;

pub use self::segment::{Segment, Share};

use arrival::Spacing;
use lifetime::Lifetime;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// A stretch of a workload's schedule: go to `clients`, then hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RampStage {
    /// Clients at the end of the ramp.
    pub clients: u32,
    /// Time to get there.
    pub ramp: Duration,
    /// Time to stay there.
    pub hold: Duration,
}

/// The schedule of one workload.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// When its first stage begins, after the run's start.
    pub delay: Duration,
    /// Its stages, one after the other.
    pub stages: Vec<RampStage>,
    /// Whether it goes on until the last of the other schedules has ended.
    pub until_the_end: bool,
    /// About how long its clients need, if they end by themselves: its stages are then long enough for any of them.
    pub about: Option<Duration>,
    /// How the starts and stops of a ramp are spaced.
    pub spacing: Spacing,
    /// For how long a client stays before another comes in its place; none for as long as the schedule holds it.
    pub life: Option<Lifetime>,
    /// How long a place is empty between a client and the next.
    pub pause: Duration,
}

/// One place that the schedule holds, with the client that has it, or with those that have it one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedSlot {
    /// Position of the workload.
    pub workload: u16,
    /// Number of the client within its workload. The clients that replace it have the same number.
    pub client: u32,
    /// Start of the first client, after the run's start.
    pub start: Duration,
    /// Planned end of the last client, after the run's start.
    pub stop: Duration,
    /// Local address to connect from, if not the system's choice.
    pub from: Option<IpAddr>,
    /// How clients follow each other; none if one stays for all of it.
    pub turnover: Option<Turnover>,
}

/// How clients follow each other in one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turnover {
    /// For how long each stays.
    pub life: Lifetime,
    /// How long the place is empty before the next one comes.
    pub pause: Duration,
    /// From when on no new client comes, after the run's start.
    pub closes: Duration,
    /// What the lives of this place are drawn from.
    seed: u64,
}

impl Turnover {
    /// The share of its time in which a place has a client, by plan.
    pub(crate) fn presence(self) -> f64 {
        let (life, pause) = (self.life.mean().as_secs_f64(), self.pause.as_secs_f64());
        if pause > 0.0 { life / (life + pause) } else { 1.0 }
    }
}

/// One planned start of a client: those of a plan are its slots' first ones and their followers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedLife {
    /// Its place.
    pub slot: PlannedSlot,
    /// How many were in its place before it.
    pub turn: u32,
    /// Start, after the run's start.
    pub start: Duration,
    /// Planned end, after the run's start.
    pub stop: Duration,
    /// What the lives of those behind it are drawn from.
    seed: u64,
}

impl PlannedSlot {
    /// The same, held until then.
    fn until(self, stop: Duration) -> Self {
        let turnover = self.turnover.map(|turnover| Turnover { closes: stop, ..turnover });
        Self { stop, turnover, ..self }
    }

    /// Its first client.
    pub fn first(&self) -> PlannedLife {
        PlannedLife::new(*self, 0, self.start, self.turnover.map_or(0, |turnover| turnover.seed))
    }
}

impl PlannedLife {
    fn new(slot: PlannedSlot, turn: u32, start: Duration, seed: u64) -> Self {
        let Some(turnover) = slot.turnover else { return Self { slot, turn, start, stop: slot.stop, seed } };
        let mut random = fastrand::Rng::with_seed(seed);
        let end = start + turnover.life.draw(&mut random);
        // A client that no other would follow stays.
        let stop = if end + turnover.pause < turnover.closes { end.min(slot.stop) } else { slot.stop };
        Self { slot, turn, start, stop, seed: random.get_seed() }
    }

    /// The client that replaces it when it has left; none if the planned start ends with it.
    pub fn follower(&self) -> Option<Self> {
        let goes_on = self.stop < self.slot.stop;
        let pause = self.slot.turnover.map_or(Duration::ZERO, |turnover| turnover.pause);
        goes_on.then(|| Self::new(self.slot, self.turn.saturating_add(1), self.stop + pause, self.seed))
    }
}

/// Where a stage lies in the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageSpan {
    /// Position of the workload.
    pub workload: u16,
    /// Position of the stage within its workload.
    pub stage: u16,
    /// Clients that the stage holds.
    pub clients: u32,
    /// Beginning of its ramp.
    pub begin: Duration,
    /// First whole second that its figures come from.
    pub window_begin: u32,
    /// Second after the last whole one that its figures come from.
    pub window_end: u32,
    /// Whether its window begins with its hold, since the warm-up would have left no whole second of that.
    pub without_warmup: bool,
    /// End of its hold.
    pub end: Duration,
}

/// What a run does: slots in the order of their starts, and where the stages lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Every client of every workload, by start time.
    pub slots: Vec<PlannedSlot>,
    /// Every stage of every workload, by workload and time.
    pub stages: Vec<StageSpan>,
    /// End of the last stage.
    pub length: Duration,
    /// About when the run is over, if clients end by themselves long before that.
    pub about: Option<Duration>,
}

impl Plan {
    /// Lays out the schedules; what is random in them comes out of `seed`. `warmup` after each ramp is left out of the
    /// window; clients take the source addresses in turn.
    pub fn new(schedules: &[Schedule], seed: u64, warmup: Duration, sources: &[IpAddr]) -> Self {
        let end_of = |schedule: &Schedule| {
            schedule.stages.iter().fold(schedule.delay, |end, stage| end + stage.ramp + stage.hold)
        };
        let length = schedules.iter().filter(|s| !s.until_the_end).map(end_of).max();
        let length = length.or_else(|| schedules.iter().map(end_of).max()).unwrap_or_default();
        let about = schedules.iter().filter_map(|s| Some(s.delay + s.about?)).max();
        let mut plan = Self { slots: Vec::new(), stages: Vec::new(), length, about };
        let mut random = fastrand::Rng::with_seed(seed);
        for (workload, schedule) in schedules.iter().enumerate() {
            plan.lay_out(workload as u16, schedule, random.fork(), warmup, sources);
        }
        plan.slots.sort_by_key(|slot| (slot.start, slot.workload, slot.client));
        plan
    }

    fn lay_out(
        &mut self,
        workload: u16,
        schedule: &Schedule,
        mut random: fastrand::Rng,
        warmup: Duration,
        sources: &[IpAddr],
    ) {
        let mut running: Vec<PlannedSlot> = Vec::new();
        let (mut begin, mut clients) = (schedule.delay, 0);
        let last = schedule.stages.len().saturating_sub(1);
        for (number, stage) in schedule.stages.iter().enumerate() {
            let ramped = begin + stage.ramp;
            let mut end = ramped + stage.hold;
            if schedule.until_the_end && number == last {
                end = end.max(self.length);
            }
            let change = stage.clients.abs_diff(running.len() as u32);
            for offset in schedule.spacing.starts(change, stage.ramp, &mut random) {
                let at = begin + offset;
                if stage.clients < running.len() as u32 {
                    // The newest leave first.
                    self.slots.extend(running.pop().map(|slot| slot.until(at)));
                } else {
                    let from = (!sources.is_empty()).then(|| sources[clients as usize % sources.len()]);
                    let turnover = schedule.life.map(|life| Turnover {
                        life,
                        pause: schedule.pause,
                        closes: end,
                        seed: random.u64(..),
                    });
                    running.push(PlannedSlot {
                        workload,
                        client: clients,
                        start: at,
                        stop: end,
                        from,
                        turnover,
                    });
                    clients += 1;
                }
            }
            let held_until = end.as_secs() as u32;
            let warm = (ramped + warmup).as_secs_f64().ceil() as u32;
            // A hold of a second is one that begins in the second in which the ramp ends.
            let in_ramp = (end - ramped >= Duration::from_secs(1)).then_some(ramped.as_secs() as u32);
            let from_hold = [Some(ramped.as_secs_f64().ceil() as u32), in_ramp].into_iter().flatten();
            let cold = from_hold.filter(|_| warm >= held_until).find(|begin| *begin < held_until);
            let (window_begin, without_warmup) = (cold.unwrap_or(warm), cold.is_some());
            self.stages.push(StageSpan {
                workload,
                stage: number as u16,
                clients: stage.clients,
                begin,
                window_begin,
                window_end: held_until.max(window_begin),
                without_warmup,
                end,
            });
            begin = end;
        }
        self.slots.extend(running.into_iter().map(|slot| slot.until(begin)));
    }

    /// For how long a client stays before another comes in its place, of the workloads whose clients do.
    pub fn lives(&self) -> BTreeMap<u16, Lifetime> {
        self.turnovers().map(|(workload, turnover)| (workload, turnover.life)).collect()
    }

    /// How clients follow each other, of the workloads whose clients do; once for each place.
    pub(crate) fn turnovers(&self) -> impl Iterator<Item = (u16, Turnover)> {
        self.slots.iter().filter_map(|slot| Some((slot.workload, slot.turnover?)))
    }

    /// Segment `i` of `n`: a plan too; all segments together are this plan.
    pub fn segment(&self, i: usize, n: usize) -> Self {
        let slots =
            self.slots.iter().enumerate().filter(|(at, _)| at % n == i).map(|(_, slot)| *slot).collect();
        Self { slots, stages: self.stages.clone(), ..*self }
    }

    /// The slots of the workloads for which `keep` says so, and all stages.
    pub fn only(&self, keep: impl Fn(u16) -> bool) -> Self {
        let slots = self.slots.iter().filter(|slot| keep(slot.workload)).copied().collect();
        Self { slots, stages: self.stages.clone(), ..*self }
    }

    /// Seconds at whose beginning a window begins or ends, in order, each once.
    pub fn window_edges(&self) -> Vec<u32> {
        let mut edges: Vec<u32> = self.stages.iter().flat_map(|s| [s.window_begin, s.window_end]).collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// Whether a window begins or ends at the beginning of this second, or a slice of one, if windows are cut into slices of this
    /// many seconds.
    pub(crate) fn is_edge(&self, second: u32, slice_seconds: Option<u32>) -> bool {
        self.stages.iter().any(|stage| {
            let cuts = slice_seconds.is_some_and(|length| {
                (stage.window_begin..stage.window_end).contains(&second)
                    && (second - stage.window_begin).is_multiple_of(length.max(1))
            });
            cuts || second == stage.window_begin || second == stage.window_end
        })
    }

    /// The same, with the seconds that cut each window into ten parts, and that end its first quarter and begin its last: of a long run,
    /// too, a window is seen to be of one state or of several, and viewers to fall behind.
    pub fn window_parts(&self) -> Vec<u32> {
        let parts = |stage: &StageSpan| {
            let (begin, length) = (stage.window_begin, stage.window_end.saturating_sub(stage.window_begin));
            let tenths = (0..=10).map(move |tenth| begin + (u64::from(length) * tenth / 10) as u32);
            let quarters = [1, 3].map(|quarter| begin + (u64::from(length) * quarter).div_ceil(4) as u32);
            tenths.chain(quarters)
        };
        let mut edges: Vec<u32> = self.stages.iter().flat_map(parts).collect();
        edges.sort_unstable();
        edges.dedup();
        edges
    }

    /// Seconds at whose beginning anything of the plan changes that figures are summed up by: windows with their parts, stages, and
    /// the plan's end. In order, each once.
    pub fn edges(&self) -> Vec<u32> {
        let second = |at: Duration| u32::try_from(at.as_secs()).ok();
        let mut edges = self.window_parts();
        edges.extend(self.stages.iter().map(|stage| stage.begin).chain([self.length]).filter_map(second));
        edges.sort_unstable();
        edges.dedup();
        edges
    }
}

/// The number of clients that should be running at `at`, by the plan.
pub fn planned_at(plan: &Plan, workload: u16, at: Duration) -> usize {
    plan.slots.iter().filter(|s| s.workload == workload && s.start <= at && at < s.stop).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn stage(clients: u32, ramp: u64, hold: u64) -> RampStage {
        RampStage { clients, ramp: seconds(ramp), hold: seconds(hold) }
    }

    #[test]
    fn clients_stay_from_their_stage_to_the_end() {
        let schedule = Schedule { stages: vec![stage(10, 1, 5), stage(20, 1, 5)], ..Schedule::default() };
        let plan = Plan::new(&[schedule], 0, seconds(1), &[]);
        assert_eq!(plan.slots.len(), 20);
        assert_eq!(plan.length, seconds(12));
        assert!(plan.slots.iter().all(|slot| slot.stop == seconds(12)));
        assert_eq!(plan.slots[1].start, Duration::from_millis(100));
        assert_eq!((plan.stages[0].window_begin, plan.stages[0].window_end), (2, 6));
        assert_eq!((plan.stages[1].window_begin, plan.stages[1].window_end), (8, 12));
    }

    #[test]
    fn a_stage_no_longer_than_its_warm_up_is_judged_from_its_hold_on() {
        let window = |hold: u64, warmup: u64| {
            let schedule = Schedule { stages: vec![stage(10, 1, hold)], ..Schedule::default() };
            let span = Plan::new(&[schedule], 0, seconds(warmup), &[]).stages[0];
            (span.window_begin, span.window_end, span.without_warmup)
        };
        assert_eq!(window(3, 2), (3, 4, false));
        assert_eq!(window(2, 2), (1, 3, true));
        assert_eq!(window(1, 2), (1, 2, true));
        // A ramp alone holds nothing that could be judged.
        assert_eq!(window(0, 2), (3, 3, false));
        assert_eq!(window(2, 0), (1, 3, false));
        let short = RampStage { clients: 2, ramp: Duration::from_millis(20), hold: seconds(1) };
        let span = Plan::new(&[Schedule { stages: vec![short], ..Schedule::default() }], 0, seconds(0), &[])
            .stages[0];
        assert_eq!((span.window_begin, span.window_end, span.without_warmup), (0, 1, true));
    }

    #[test]
    fn a_window_and_each_slice_of_it_begin_and_end_with_an_edge() {
        let schedule = Schedule { stages: vec![stage(10, 1, 9), stage(20, 1, 5)], ..Schedule::default() };
        let plan = Plan::new(&[schedule], 0, seconds(1), &[]);
        let edges = |slice| (0..20).filter(|second| plan.is_edge(*second, slice)).collect::<Vec<_>>();
        assert_eq!(edges(None), plan.window_edges());
        assert_eq!(edges(None), [2, 10, 12, 16]);
        // The rest of a window is no slice.
        assert_eq!(edges(Some(3)), [2, 5, 8, 10, 12, 15, 16]);
    }

    #[test]
    fn a_smaller_stage_lets_the_newest_go() {
        let schedule = Schedule { stages: vec![stage(4, 0, 5), stage(2, 2, 5)], ..Schedule::default() };
        let plan = Plan::new(&[schedule], 0, seconds(0), &[]);
        let stops: Vec<_> = (0..4)
            .map(|client| plan.slots.iter().find(|slot| slot.client == client).unwrap().stop.as_secs())
            .collect();
        assert_eq!(stops, [12, 12, 6, 5]);
    }

    #[test]
    fn a_publisher_lasts_as_long_as_its_viewers() {
        let viewers = Schedule { delay: seconds(1), stages: vec![stage(5, 1, 8)], ..Schedule::default() };
        let publisher = Schedule { stages: vec![stage(1, 0, 0)], until_the_end: true, ..Schedule::default() };
        let plan = Plan::new(&[publisher, viewers], 0, seconds(0), &[]);
        assert_eq!(plan.slots[0].stop, seconds(10));
    }

    prop_compose! {
        fn schedules()(raw in prop::collection::vec(prop::collection::vec((0u32..40, 0u64..5, 0u64..5), 1..5), 1..4)) -> Vec<Schedule> {
            raw.into_iter().map(|stages| Schedule {
                stages: stages.into_iter().map(|(clients, ramp, hold)| stage(clients, ramp, hold)).collect(),
                ..Schedule::default()
            }).collect()
        }
    }

    proptest! {
        #[test]
        fn the_segments_of_a_plan_add_up_to_the_plan(schedules in schedules(), n in 1usize..6) {
            let plan = Plan::new(&schedules, 0, seconds(1), &[]);
            let mut together: Vec<_> = (0..n).flat_map(|i| plan.segment(i, n).slots).collect();
            together.sort_by_key(|slot| (slot.start, slot.workload, slot.client));
            prop_assert_eq!(together, plan.slots);
        }

        #[test]
        fn every_stage_holds_the_clients_it_says(schedules in schedules()) {
            let plan = Plan::new(&schedules, 0, seconds(0), &[]);
            for span in plan.stages.iter().filter(|span| span.end > span.begin) {
                let last = span.end - Duration::from_nanos(1);
                let held = span.end - last <= schedules[usize::from(span.workload)].stages[usize::from(span.stage)].hold;
                if held {
                    prop_assert_eq!(planned_at(&plan, span.workload, last), span.clients as usize);
                }
            }
        }
    }
}
