//! The frame that drift is counted from: the one from which arrival follows the media clock.
//!
//! A server that keeps the newest group of pictures sends it to a new client at once. Counted from the first frame of such
//! a burst, all that follows comes "early" by the burst's length, for as long as the client lives. So a frame that comes
//! before its time takes the first's place, until arrival has followed the clock for a while.

use crate::Moment;
use std::time::Duration;

/// Arrival follows the media clock when no burst was seen for so long.
const FOLLOWS: Duration = Duration::from_millis(500);

/// A stream that is still ahead of the clock after this time is one that is sent faster than it plays.
const LONGEST: Duration = Duration::from_secs(10);

/// The first frame of a stream, and what came before it.
#[derive(Clone, Copy, Debug, Default)]
pub struct FirstFrame {
    /// Arrival and media time (microseconds) of the very first frame, and of the one that counts.
    begin: Option<(Moment, i64)>,
    first: (Moment, i64),
    /// Since when there was no burst.
    since: Moment,
    follows: bool,
}

impl FirstFrame {
    /// A frame of media time `media` (microseconds) arrived: (arrival − first arrival) − (media time − first media time)
    /// in microseconds. A frame that comes before its time while arrival does not follow yet is the first from then on, at
    /// 0; one of a burst, during which the clock moved less than half of what media did, has no value.
    pub fn arrive(&mut self, now: Moment, media: i64) -> Option<i64> {
        let Some((begin, _)) = self.begin else {
            self.begin = Some((now, media));
            (self.first, self.since) = ((now, media), now);
            return Some(0);
        };
        let (arrival, media_before) = self.first;
        let (clock, step) = (now.micros_since(arrival), media.saturating_sub(media_before));
        self.follows |= now.since(self.since) >= FOLLOWS && clock >= step || now.since(begin) >= LONGEST;
        if self.follows || clock >= step {
            return Some(clock.saturating_sub(step));
        }
        self.first = (now, media);
        if clock.saturating_mul(2) >= step {
            return Some(0);
        }
        self.since = now;
        None
    }

    /// The value that a frame of this media time would have if it came now; `None` before the first.
    pub fn at(&self, now: Moment, media: i64) -> Option<i64> {
        let (arrival, media_before) = self.first;
        self.begin.map(|_| now.micros_since(arrival).saturating_sub(media.saturating_sub(media_before)))
    }

    /// By how much more media than time had come with the first frame, in microseconds: the length of a burst. `None`
    /// until arrival follows.
    pub fn burst_micros(&self) -> Option<u64> {
        let (begin, media_before) = self.begin.filter(|_| self.follows)?;
        let (arrival, media) = self.first;
        Some(media.saturating_sub(media_before).saturating_sub(arrival.micros_since(begin)).max(0) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: i64) -> Moment {
        Moment::from_nanos((5_000_000 + micros) as u64 * 1_000)
    }

    /// Arrivals and media times in milliseconds; the values in milliseconds, and the burst.
    fn values(frames: impl IntoIterator<Item = (i64, i64)>) -> (Vec<Option<i64>>, Option<u64>) {
        let mut first = FirstFrame::default();
        let frames = frames.into_iter();
        let values = frames.map(|(arrival, media)| {
            first.arrive(at(arrival * 1_000), media * 1_000).map(|value| value / 1_000)
        });
        (values.collect(), first.burst_micros().map(|burst| burst / 1_000))
    }

    #[test]
    fn a_steady_stream_counts_from_its_first_frame() {
        let (found, burst) =
            values((0..100).map(|frame| (frame * 40 + if frame == 50 { 7 } else { 0 }, frame * 40)));
        assert_eq!(burst, Some(0));
        let expected: Vec<_> = (0..100).map(|frame| Some(if frame == 50 { 7 } else { 0 })).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_group_of_pictures_out_of_a_cache_is_no_earliness() {
        // 50 frames of 40 ms in 20 ms, in two pieces with 60 ms between them, then one every 40 ms, 5 ms late at times.
        let cached = |frame: i64| (if frame < 25 { frame / 3 } else { 60 + frame / 3 }, frame * 40);
        let live = |frame: i64| (80 + (frame - 49) * 40 + frame % 2 * 5, frame * 40);
        let (found, burst) =
            values((0..250).map(|frame| if frame < 50 { cached(frame) } else { live(frame) }));
        assert!(found[1..25].iter().all(Option::is_none), "{found:?}");
        assert!(
            found[50..].iter().all(|value| value.is_some_and(|value| (0..=9).contains(&value))),
            "{found:?}"
        );
        // 49 frames came 1.96 s before their time, less the 80 ms that it took.
        assert!(burst.is_some_and(|burst| (1_875..=1_885).contains(&burst)), "{burst:?}");
    }

    #[test]
    fn what_comes_early_later_is_early() {
        // Held for a second behind the first second, and then faster than its clock.
        let frames = (0..25).map(|frame| (frame * 40, frame * 40));
        let fast = (25..100).map(|frame| (2_000 + (frame - 25) * 10, frame * 40));
        let (found, burst) = values(frames.chain(fast));
        assert_eq!((found[25], found[99], burst), (Some(1_000), Some(-1_220), Some(0)));
    }

    #[test]
    fn a_stream_that_never_follows_is_counted_after_ten_seconds() {
        let (found, burst) = values((0..1_000).map(|frame| (frame * 13, frame * 40)));
        assert!(found[1..769].iter().all(Option::is_none));
        assert!(found[800..].iter().all(|value| value.is_some_and(|value| value < 0)));
        assert!(burst.is_some_and(|burst| burst > 19_000));
    }
}
