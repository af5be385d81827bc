//! Freezes, as the W3C's statistics count them (webrtc-stats, `freezeCount`): "it is a freeze if frame duration, which is
//! time interval between two consecutively rendered frames, is equal or exceeds Max(3 * avg_frame_duration_ms,
//! avg_frame_duration_ms + 150), where avg_frame_duration_ms is linear average of durations of last 30 rendered frames".
//!
//= https://www.w3.org/TR/webrtc-stats/#dom-rtcinboundrtpstreamstats-freezecount
//! Here the mean is of the intervals before the one that is judged. Chromium has that one in the mean: at 25 frames a second it
//! counts from 195 ms on, and this from 190.

use std::time::Duration;

use weir_metrics::Moment;

/// Frame intervals that the mean is of.
const INTERVALS: usize = 30;

/// Browsers judge no interval before they know as many as this.
const FEWEST: u32 = 5;

/// How much longer than the mean a freeze is at the least, in microseconds.
const LONGER: u64 = 150_000;

/// In mean intervals.
const MEANS: u64 = 3;

/// Freezes of a track.
#[derive(Clone, Debug, Default)]
pub struct Freezes {
    last: Option<Moment>,
    /// The last intervals in microseconds, the oldest at `seen` modulo [`INTERVALS`], and their sum. Sound has none.
    intervals: Option<Box<[u32; INTERVALS]>>,
    sum: u64,
    seen: u32,
    count: u64,
    total: Duration,
    longest: Duration,
}

impl Freezes {
    /// A frame is whole.
    #[inline]
    pub(super) fn frame(&mut self, now: Moment) {
        let Some(last) = self.last.replace(now) else { return };
        let interval = now.since(last);
        if self.is_freeze(interval) {
            self.count += 1;
            self.total += interval;
            self.longest = self.longest.max(interval);
        }
        let intervals = self.intervals.get_or_insert_default();
        let oldest = &mut intervals[self.seen as usize % INTERVALS];
        let micros = u32::try_from(interval.as_micros()).unwrap_or(u32::MAX);
        self.sum = self.sum - u64::from(std::mem::replace(oldest, micros)) + u64::from(micros);
        // Counted in steps of the window, so that it never wraps in the middle of one.
        self.seen = if self.seen as usize == 2 * INTERVALS - 1 { INTERVALS as u32 } else { self.seen + 1 };
    }

    /// Whether an interval behind those that are known is a freeze.
    fn is_freeze(&self, interval: Duration) -> bool {
        if self.seen < FEWEST {
            return false;
        }
        let mean = self.sum / u64::from(self.seen.min(INTERVALS as u32));
        interval.as_micros() as u64 >= (mean * MEANS).max(mean + LONGER)
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
        self.is_freeze(gap).then_some(gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(micros: u64) -> Moment {
        Moment::from_nanos(micros * 1_000)
    }

    /// Frames of the same interval, and then one after another.
    fn freezes(interval: u64, frames: u64, gap: u64) -> Freezes {
        let mut freezes = Freezes::default();
        (0..frames).for_each(|frame| freezes.frame(at(frame * interval)));
        freezes.frame(at((frames - 1) * interval + gap));
        freezes
    }

    #[test]
    fn a_freeze_is_three_means_or_150_ms_more_than_the_mean() {
        for (interval, gap, count) in [
            // 30 and 25 frames a second: 150 ms more is what counts.
            (33_333, 183_332, 0),
            (33_333, 183_333, 1),
            (40_000, 189_999, 0),
            (40_000, 190_000, 1),
            // 5 a second: three times the mean. Two a second do not freeze by being slow.
            (200_000, 599_999, 0),
            (200_000, 600_000, 1),
            (500_000, 500_000, 0),
        ] {
            let found = freezes(interval, 40, gap);
            assert_eq!(found.count(), count, "{interval} {gap}");
            assert_eq!(found.total(), Duration::from_micros(gap * count));
        }
    }

    #[test]
    fn nothing_is_judged_before_five_intervals_are_known() {
        assert_eq!(freezes(40_000, 5, 1_000_000).count(), 0);
        assert_eq!(freezes(40_000, 6, 1_000_000).count(), 1);
    }

    #[test]
    fn the_mean_is_of_the_last_thirty_intervals_freezes_included() {
        // A freeze of 1.5 s and 29 intervals of 40 ms: 88.7 ms, and three times that is more than 150 ms more.
        let mut found = freezes(40_000, 40, 1_500_000);
        let begun = 39 * 40_000 + 1_500_000;
        (1..=29).for_each(|frame| found.frame(at(begun + frame * 40_000)));
        let last = begun + 29 * 40_000;
        assert_eq!(found.under_way(at(last + 265_000)), None);
        assert_eq!(found.under_way(at(last + 266_000)), Some(Duration::from_millis(266)));
        // One more, and it has left the window.
        found.frame(at(last + 40_000));
        assert_eq!(found.under_way(at(last + 40_000 + 190_000)), Some(Duration::from_millis(190)));
        (0..1_000).for_each(|frame| found.frame(at(last + 80_000 + frame * 40_000)));
        assert_eq!((found.count(), found.longest()), (1, Duration::from_millis(1_500)));
    }

    #[test]
    fn a_freeze_at_the_end_counts() {
        let mut nothing = Freezes::default();
        nothing.finish(at(5_000_000));
        assert_eq!(nothing.count(), 0);
        let mut found = freezes(40_000, 10, 40_000);
        assert_eq!(found.under_way(at(400_000 + 189_000)), None);
        found.finish(at(400_000 + 900_000));
        assert_eq!((found.count(), found.total()), (1, Duration::from_millis(900)));
    }

    proptest! {
        #[test]
        fn freezes_are_those_of_the_rule_wherever_the_clock_begins(
            begin in 0_u64..1_000_000_000,
            intervals in prop::collection::vec(prop_oneof![8 => 1_000_u64..60_000, 1 => 150_000_u64..3_000_000], 0..200),
        ) {
            let mut found = Freezes::default();
            let mut now = begin;
            found.frame(at(now));
            for interval in &intervals {
                now += interval;
                found.frame(at(now));
            }
            let frozen = intervals.iter().enumerate().skip(FEWEST as usize).filter(|&(place, interval)| {
                let before = &intervals[place.saturating_sub(INTERVALS)..place];
                let mean = before.iter().sum::<u64>() / before.len() as u64;
                *interval >= (3 * mean).max(mean + 150_000)
            });
            let frozen: Vec<u64> = frozen.map(|(_, interval)| *interval).collect();
            prop_assert_eq!(found.count(), frozen.len() as u64);
            prop_assert_eq!(found.total(), Duration::from_micros(frozen.iter().sum()));
            prop_assert_eq!(found.longest(), Duration::from_micros(frozen.into_iter().max().unwrap_or(0)));
            prop_assert!(found.total() <= Duration::from_micros(now - begin));
        }
    }
}
