//! Delay drift: how far arrival has moved against media time since the frame from which it follows that clock.

use std::time::Duration;
use weir_metrics::{FirstFrame, Moment};

/// How often the drift of a silent stream is looked at.
const SILENCE: Duration = Duration::from_secs(1);

/// (arrival − first arrival) − (media time − first media time), signed: positive when media comes later
/// than it should. First is the frame from which arrival follows the media clock. While nothing comes, the drift grows
/// with the clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drift {
    first: FirstFrame,
    /// Latest media time, and when the drift was last looked at.
    last: Option<(i64, Moment)>,
    burst_told: bool,
}

impl Drift {
    /// The same stream on another link: first is a frame of that. What came at its beginning is no burst of the client's.
    pub(crate) fn begin_again(&mut self) {
        *self = Self { burst_told: true, ..Self::default() };
    }

    /// A frame of media time `media` (microseconds) arrived; its drift in microseconds, unless it came in a burst before
    /// the first.
    pub fn arrive(&mut self, now: Moment, media: i64) -> Option<i64> {
        self.last = Some((media, now));
        self.first.arrive(now, media)
    }

    /// How much more media than time came at the beginning, in microseconds: once, when arrival follows the media clock.
    pub fn take_burst(&mut self) -> Option<u64> {
        let burst = self.first.burst_micros().filter(|_| !self.burst_told);
        self.burst_told |= burst.is_some();
        burst
    }

    /// The drift of a stream that has been silent for a second since it was last looked at.
    pub fn handle_timeout(&mut self, now: Moment) -> Option<i64> {
        self.poll_timeout().filter(|next| *next <= now)?;
        let (media, looked) = self.last.as_mut()?;
        *looked = now;
        self.first.at(now, *media)
    }

    /// When to call [`Self::handle_timeout`]; `None` before the first frame.
    pub fn poll_timeout(&self) -> Option<Moment> {
        self.last.map(|(_, looked)| looked + SILENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stream of 25 frames a second that is held for 1.5 s in every 5 and then catches up at once.
    #[test]
    fn a_stream_held_for_a_second_and_a_half_drifts_so_far_and_comes_back() {
        let mut drift = Drift::default();
        let (mut lowest, mut highest) = (i64::MAX, i64::MIN);
        for frame in 0..1_000i64 {
            let due = frame * 40;
            let phase = due % 5_000;
            let held = if phase >= 3_500 { 5_000 - phase } else { 0 };
            let now = Moment::from_nanos((1_000 + due + held) as u64 * 1_000_000);
            let value = drift.arrive(now, due * 1_000).unwrap();
            assert_eq!(value, held * 1_000);
            (lowest, highest) = (lowest.min(value), highest.max(value));
        }
        assert_eq!((lowest, highest), (0, 1_480_000));
        assert_eq!((drift.take_burst(), drift.take_burst()), (Some(0), None));
    }

    #[test]
    fn the_drift_of_a_silent_stream_grows_with_the_clock() {
        let mut drift = Drift::default();
        assert_eq!((drift.poll_timeout(), drift.handle_timeout(Moment::from_nanos(9))), (None, None));
        let start = Moment::from_nanos(5);
        drift.arrive(start, 700);
        assert_eq!(drift.handle_timeout(start + Duration::from_millis(999)), None);
        for second in 1..=4 {
            let now = drift.poll_timeout().unwrap();
            assert_eq!(drift.handle_timeout(now), Some(second * 1_000_000));
        }
    }

    #[test]
    fn media_that_comes_faster_than_its_clock_drifts_below_zero_unless_it_is_the_beginning() {
        let mut drift = Drift::default();
        let start = Moment::from_nanos(0);
        drift.arrive(start, 0);
        assert_eq!((drift.arrive(start, 2_000_000), drift.take_burst()), (None, None));
        let later = start + Duration::from_millis(600);
        assert_eq!(drift.arrive(later, 2_600_000), Some(0));
        assert_eq!(drift.take_burst(), Some(2_000_000));
        assert_eq!(drift.arrive(later, 4_600_000), Some(-2_000_000));
    }
}
