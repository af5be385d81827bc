//! What agents read of the target's processes on other machines.

use std::sync::{Arc, Mutex, PoisonError};
use weir_observe::TargetSample;

/// The watched processes of other machines as they were read last: samples are put in as they come, and each second of a run
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
