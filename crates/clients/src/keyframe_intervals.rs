//! How far apart keyframes of each stream were, as viewers of one thread have met them. A stream is a target of a workload:
//! sources differ, so that one stream says nothing of another.

use std::time::Duration;

/// The longest time between two keyframes, by workload and target.
#[derive(Debug, Default)]
pub(crate) struct KeyframeIntervals {
    workloads: Vec<StreamIntervals>,
}

/// Those of a workload.
#[derive(Debug, Default)]
struct StreamIntervals {
    /// How many targets it has: client n goes to target n modulo this. Of a client on its own it is unknown.
    targets: u32,
    /// By target, in milliseconds; 0 where no viewer has had two keyframes. Nothing is kept before the first of them.
    longest: Vec<u32>,
}

impl StreamIntervals {
    fn position(&self, client: u32) -> usize {
        (client % self.targets.max(1)) as usize
    }
}

impl KeyframeIntervals {
    /// A workload has this many targets.
    pub(crate) fn set_targets(&mut self, workload: u16, targets: usize) {
        self.of(workload).targets = targets as u32;
    }

    /// Two keyframes of what this client plays came this far apart.
    pub(crate) fn note(&mut self, workload: u16, client: u32, interval: Duration) {
        let milliseconds = u32::try_from(interval.as_millis()).unwrap_or(u32::MAX).max(1);
        let streams = self.of(workload);
        let position = streams.position(client);
        if streams.longest.is_empty() {
            streams.longest.resize(streams.targets.max(1) as usize, 0);
        }
        if let Some(longest) = streams.longest.get_mut(position) {
            *longest = milliseconds.max(*longest);
        }
    }

    /// The longest that keyframes of what this client plays were apart, if a viewer has had two.
    pub(crate) fn longest(&self, workload: u16, client: u32) -> Option<Duration> {
        let streams = self.workloads.get(usize::from(workload))?;
        let longest = streams.longest.get(streams.position(client)).filter(|longest| **longest > 0)?;
        Some(Duration::from_millis(u64::from(*longest)))
    }

    fn of(&mut self, workload: u16) -> &mut StreamIntervals {
        let workload = usize::from(workload);
        if self.workloads.len() <= workload {
            self.workloads.resize_with(workload + 1, StreamIntervals::default);
        }
        &mut self.workloads[workload]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_stream_says_nothing_of_another() {
        let mut intervals = KeyframeIntervals::default();
        intervals.set_targets(1, 3);
        assert_eq!(intervals.longest(1, 0), None);
        intervals.note(1, 3, 2 * SECOND);
        intervals.note(1, 7, 10 * SECOND);
        intervals.note(1, 4, 9 * SECOND);
        for (workload, client, longest) in
            [(1, 0, Some(2)), (1, 1, Some(10)), (1, 2, None), (1, 5, None), (0, 0, None), (2, 0, None)]
        {
            assert_eq!(intervals.longest(workload, client), longest.map(|it| it * SECOND), "{client}");
        }
    }

    #[test]
    fn a_hundred_thousand_streams_take_four_bytes_each() {
        let mut intervals = KeyframeIntervals::default();
        intervals.set_targets(0, 100_000);
        assert_eq!(intervals.workloads[0].longest.capacity(), 0);
        for client in [99_999, 250_000] {
            intervals.note(0, client, Duration::MAX);
            intervals.note(0, client, Duration::ZERO);
            assert!(intervals.longest(0, client) > Some(1_000_000 * SECOND));
        }
        assert_eq!(intervals.workloads[0].longest.capacity(), 100_000);
    }
}
