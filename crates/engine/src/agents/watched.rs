//! What agents read of the target's processes on other machines.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_metrics::Moment;
use weir_observe::TargetSample;

/// Processes of one machine that are taken, at the most.
const MOST_TARGETS: usize = 64;
/// What no count and no memory of a machine reaches: 2^50, a pebibyte.
const MOST: u64 = 1 << 50;
/// What no time of a machine reaches: three hundred years.
const MOST_SECONDS: f64 = 1e10;
/// How far a machine may be ahead, by what it makes of its clock.
const AHEAD: Duration = Duration::from_secs(3);

/// The watched processes of other machines as they were read last: samples are put in as they come, and each second of a run
/// takes them from here.
#[derive(Clone, Debug, Default)]
pub struct WatchedElsewhere(Arc<Mutex<Vec<Vec<TargetSample>>>>);

impl WatchedElsewhere {
    /// Of this many machines.
    pub fn of(machines: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![Vec::new(); machines])))
    }

    /// Takes what was read on a machine; whether it did. The processes stay the same ones in the same places, and time goes on
    /// up to `now`: what comes otherwise is left out, and so is what no machine can have read.
    pub fn set(&self, machine: usize, targets: Vec<TargetSample>, now: Moment) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(last) = all.get_mut(machine) else { return false };
        let latest = (now + AHEAD).as_nanos();
        let is_read = |it: &TargetSample| {
            it.elsewhere.is_some_and(|it| it.at_ns <= latest && is_time(it.uptime_seconds)) && is_possible(it)
        };
        let follows = |(last, next): (&TargetSample, &TargetSample)| {
            let at = |it: &TargetSample| it.elsewhere.map(|it| it.at_ns);
            last.watch == next.watch && at(last) <= at(next)
        };
        let is_next = last.len() == targets.len() && last.iter().zip(&targets).all(follows);
        let is_taken = (1..=MOST_TARGETS).contains(&targets.len())
            && targets.iter().all(is_read)
            && (last.is_empty() || is_next);
        if is_taken {
            *last = targets;
        }
        is_taken
    }

    /// All of them.
    pub fn latest(&self) -> Vec<TargetSample> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).concat()
    }
}

/// Whether these are seconds that something can have taken.
fn is_time(seconds: f64) -> bool {
    (0.0..MOST_SECONDS).contains(&seconds)
}

/// Whether a machine can have read this: what is added and subtracted later stays in range.
fn is_possible(target: &TargetSample) -> bool {
    let process = &target.process;
    let throttling = process.throttling.unwrap_or_default();
    let counts = [
        process.processes,
        process.exited,
        process.unread,
        process.rss_bytes,
        process.descriptors.unwrap_or(0),
        process.voluntary_switches,
        process.involuntary_switches,
        process.major_faults,
        throttling.periods,
        target.connections.map_or(0, |it| it.established),
    ];
    let threads = process.threads.iter().flat_map(|it| [it.started_seconds, it.cpu_seconds]);
    let mut times =
        [process.cpu_seconds, process.system_seconds, throttling.seconds].into_iter().chain(threads);
    counts.iter().all(|count| *count < MOST) && times.all(is_time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_observe::{Elsewhere, ProcessSample, TargetState, ThreadSample, Watch};

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

    const NOW: Moment = Moment::from_nanos(1_000);

    #[test]
    fn processes_of_other_machines_keep_their_places_and_time_goes_on() {
        let watched = WatchedElsewhere::of(2);
        assert!(watched.set(1, vec![target(7, 10)], NOW));
        assert!(watched.set(0, vec![target(1, 5), target(2, 5)], NOW));
        let seen = || watched.latest().iter().map(|it| it.elsewhere.unwrap().at_ns).collect::<Vec<_>>();
        assert_eq!(seen(), [5, 5, 10]);
        assert!(watched.set(1, vec![target(7, 20)], NOW));
        // Another process, one more, an earlier one, no machine at all.
        for (machine, targets) in [
            (1, vec![target(8, 30)]),
            (1, vec![target(7, 30); 2]),
            (1, vec![target(7, 19)]),
            (2, vec![target(7, 30)]),
        ] {
            assert!(!watched.set(machine, targets, NOW));
        }
        assert_eq!(seen(), [5, 5, 20]);
    }

    #[test]
    fn what_no_machine_can_have_read_is_left_out() {
        let watched = WatchedElsewhere::of(1);
        let with = |change: fn(&mut TargetSample)| {
            let mut target = target(7, 10);
            change(&mut target);
            vec![target]
        };
        for (number, nonsense) in [
            Vec::new(),
            vec![target(7, 10); 65],
            with(|it| it.elsewhere = None),
            with(|it| it.elsewhere = Some(Elsewhere { at_ns: u64::MAX, uptime_seconds: 1.0 })),
            with(|it| it.elsewhere = Some(Elsewhere { at_ns: 10, uptime_seconds: f64::NAN })),
            with(|it| it.process.cpu_seconds = f64::INFINITY),
            with(|it| it.process.cpu_seconds = -1.0),
            with(|it| it.process.system_seconds = 1e300),
            with(|it| it.process.rss_bytes = 1 << 50),
            with(|it| it.process.descriptors = Some(u64::MAX)),
            with(|it| {
                let (name, started_seconds) = ("x".to_owned(), -1.0);
                it.process.threads = vec![ThreadSample {
                    pid: 1,
                    tid: 1,
                    name,
                    started_seconds,
                    cpu_seconds: 0.0,
                    waited_seconds: None,
                }];
            }),
        ]
        .into_iter()
        .enumerate()
        {
            assert!(!watched.set(0, nonsense, NOW), "{number}");
        }
        assert!(watched.latest().is_empty());
        assert!(watched.set(0, with(|it| it.process.rss_bytes = 1 << 40), NOW));
    }
}
