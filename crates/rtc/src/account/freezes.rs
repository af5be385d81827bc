//! Freezes: the time between two whole frames is over 200 ms and over three frame times.

use std::time::Duration;

use weir_metrics::Moment;

/// The shortest freeze.
const SHORTEST: Duration = Duration::from_millis(200);

/// In frame times.
const FRAME_TIMES: u32 = 3;

/// Freezes of a track.
#[derive(Clone, Copy, Debug, Default)]
pub struct Freezes {
    last: Option<Moment>,
    frame_time: Duration,
    count: u64,
    total: Duration,
    longest: Duration,
}

impl Freezes {
    /// A frame is whole.
    #[inline]
    pub(super) fn frame(&mut self, now: Moment) {
        let gap = now.since(self.last.replace(now).unwrap_or(now));
        if gap > SHORTEST && gap > self.frame_time * FRAME_TIMES {
            self.count += 1;
            self.total += gap;
            self.longest = self.longest.max(gap);
        }
    }

    pub(super) fn set_frame_time(&mut self, frame_time: Duration) {
        self.frame_time = frame_time;
    }

    /// The track ends: a freeze that is still going on is one.
    pub(super) fn finish(&mut self, now: Moment) {
        if let Some(last) = self.last {
            self.frame(now);
            self.last = Some(last.max(now));
        }
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// All of them together, from the last whole frame before each to the first behind it.
    pub fn total(&self) -> Duration {
        self.total
    }

    /// The longest.
    pub fn longest(&self) -> Duration {
        self.longest
    }

    /// How long the track has been frozen now; `None` when it is not.
    pub fn under_way(&self, now: Moment) -> Option<Duration> {
        let gap = now.since(self.last?);
        (gap > SHORTEST && gap > self.frame_time * FRAME_TIMES).then_some(gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    #[test]
    fn a_gap_of_over_200_ms_and_three_frame_times_is_a_freeze() {
        let mut freezes = Freezes::default();
        freezes.set_frame_time(Duration::from_millis(40));
        for millis in [0, 40, 240, 441, 481, 1_981] {
            freezes.frame(at(millis));
        }
        assert_eq!(freezes.count(), 2);
        assert_eq!(freezes.total(), Duration::from_millis(201 + 1_500));
        assert_eq!(freezes.longest(), Duration::from_millis(1_500));
    }

    #[test]
    fn a_slow_stream_does_not_freeze_by_being_slow() {
        let mut freezes = Freezes::default();
        freezes.set_frame_time(Duration::from_millis(500));
        for frame in 0..10 {
            freezes.frame(at(frame * 500));
        }
        assert_eq!(freezes.count(), 0);
    }

    #[test]
    fn a_freeze_at_the_end_counts() {
        let mut freezes = Freezes::default();
        freezes.finish(at(5_000));
        assert_eq!(freezes.count(), 0);
        freezes.frame(at(0));
        assert_eq!(freezes.under_way(at(200)), None);
        assert_eq!(freezes.under_way(at(900)), Some(Duration::from_millis(900)));
        freezes.finish(at(900));
        assert_eq!((freezes.count(), freezes.total()), (1, Duration::from_millis(900)));
    }
}
