//! How far apart keyframes of each stream were, as viewers of one thread have met them. A stream is a target of a workload:
//! sources differ, so that one stream says nothing of another.

use std::time::Duration;
use weir_metrics::Moment;

/// The longest time between two keyframes, and the latest of them, by workload and target.
#[derive(Debug, Default)]
pub(crate) struct KeyframeIntervals {
    workloads: Vec<WorkloadStreams>,
}

/// Those of a workload.
#[derive(Debug, Default)]
struct WorkloadStreams {
    /// How many targets it has: client n goes to target n modulo this. Of a client on its own it is unknown.
    targets: u32,
    /// By target. Nothing is kept before the first keyframe.
    streams: Vec<StreamKeyframes>,
}

/// What viewers have met of a stream, in milliseconds; 0 for nothing.
#[derive(Clone, Copy, Debug, Default)]
struct StreamKeyframes {
    longest: u32,
    /// When the latest came, modulo 2^32: 49 days.
    latest: u32,
}

impl WorkloadStreams {
    fn position(&self, client: u32) -> usize {
        (client % self.targets.max(1)) as usize
    }
}

impl KeyframeIntervals {
    /// A workload has this many targets.
    pub(crate) fn set_targets(&mut self, workload: u16, targets: usize) {
        self.workload(workload).targets = targets as u32;
    }

    /// Two keyframes of what this client plays came this far apart.
    pub(crate) fn note(&mut self, workload: u16, client: u32, interval: Duration) {
        if let Some(stream) = self.stream(workload, client) {
            let milliseconds = u32::try_from(interval.as_millis()).unwrap_or(u32::MAX).max(1);
            stream.longest = milliseconds.max(stream.longest);
        }
    }

    /// A keyframe of what this client plays came now.
    pub(crate) fn came(&mut self, workload: u16, client: u32, now: Moment) {
        if let Some(stream) = self.stream(workload, client) {
            stream.latest = milliseconds(now).max(1);
        }
    }

    /// The longest that keyframes of what this client plays were apart, if a viewer has had two.
    pub(crate) fn longest(&self, workload: u16, client: u32) -> Option<Duration> {
        let longest = self.met(workload, client)?.longest;
        (longest > 0).then(|| Duration::from_millis(u64::from(longest)))
    }

    /// How long ago the latest keyframe of what this client plays came, if a viewer has had one.
    pub(crate) fn since_latest(&self, workload: u16, client: u32, now: Moment) -> Option<Duration> {
        let latest = self.met(workload, client)?.latest;
        // What a narrow link brings is dated by when it has left the link: ahead of the viewers that have none.
        let ago = milliseconds(now).wrapping_sub(latest).cast_signed().max(0);
        (latest > 0).then(|| Duration::from_millis(u64::from(ago.unsigned_abs())))
    }

    fn met(&self, workload: u16, client: u32) -> Option<&StreamKeyframes> {
        let workload = self.workloads.get(usize::from(workload))?;
        workload.streams.get(workload.position(client))
    }

    fn stream(&mut self, workload: u16, client: u32) -> Option<&mut StreamKeyframes> {
        let workload = self.workload(workload);
        let position = workload.position(client);
        if workload.streams.is_empty() {
            workload.streams.resize(workload.targets.max(1) as usize, StreamKeyframes::default());
        }
        workload.streams.get_mut(position)
    }

    fn workload(&mut self, workload: u16) -> &mut WorkloadStreams {
        let workload = usize::from(workload);
        if self.workloads.len() <= workload {
            self.workloads.resize_with(workload + 1, WorkloadStreams::default);
        }
        &mut self.workloads[workload]
    }
}

fn milliseconds(moment: Moment) -> u32 {
    (moment.as_nanos() / 1_000_000) as u32
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
    fn how_long_ago_a_keyframe_came_is_known_of_its_stream() {
        let mut intervals = KeyframeIntervals::default();
        intervals.set_targets(0, 2);
        // Before and behind the end of 32 bits of milliseconds.
        let start = Moment::from_nanos(4_294_967_000_000_000);
        intervals.came(0, 4, start);
        intervals.came(0, 2, start + SECOND);
        assert_eq!(intervals.since_latest(0, 0, start + 3 * SECOND), Some(2 * SECOND));
        assert_eq!(intervals.since_latest(0, 1, start + 3 * SECOND), None);
        assert_eq!(intervals.longest(0, 0), None);
    }

    #[test]
    fn a_hundred_thousand_streams_take_eight_bytes_each() {
        let mut intervals = KeyframeIntervals::default();
        intervals.set_targets(0, 100_000);
        assert_eq!(intervals.workloads[0].streams.capacity(), 0);
        for client in [99_999, 250_000] {
            intervals.note(0, client, Duration::MAX);
            intervals.note(0, client, Duration::ZERO);
            assert!(intervals.longest(0, client) > Some(1_000_000 * SECOND));
        }
        assert_eq!(intervals.workloads[0].streams.capacity(), 100_000);
        assert_eq!(size_of::<StreamKeyframes>(), 8);
    }
}
