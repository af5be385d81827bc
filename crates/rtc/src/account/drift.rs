//! Delay drift: how far arrival has moved against media time since the first frame.

use weir_metrics::{FirstFrame, Moment};

/// (arrival − first arrival) − (media time − first media time), in microseconds, signed: positive when media comes
/// later than it should. First is the frame from which arrival follows the media clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drift {
    first: FirstFrame,
    /// The most that any sequence brought in a burst.
    burst: Option<u64>,
    last_media: i64,
    last: i64,
    least: i64,
    most: i64,
    sum: i64,
    count: u64,
}

impl Drift {
    pub(super) fn arrive(&mut self, now: Moment, media_micros: i64) {
        self.last_media = media_micros;
        let value = self.first.arrive(now, media_micros);
        self.burst = self.burst.max(self.first.burst_micros());
        let Some(value) = value else { return };
        self.last = value;
        (self.least, self.most) = match self.count {
            0 => (value, value),
            _ => (self.least.min(value), self.most.max(value)),
        };
        self.sum = self.sum.saturating_add(value);
        self.count += 1;
    }

    /// Media time begins again from elsewhere. What follows is measured from its own first frame, and the extremes are
    /// kept.
    pub(super) fn restart(&mut self) {
        self.first = FirstFrame::default();
    }

    /// The drift of the last frame; `None` before the first.
    pub fn last_micros(&self) -> Option<i64> {
        (self.count > 0).then_some(self.last)
    }

    /// The least.
    pub fn least_micros(&self) -> Option<i64> {
        (self.count > 0).then_some(self.least)
    }

    /// The most.
    pub fn most_micros(&self) -> Option<i64> {
        (self.count > 0).then_some(self.most)
    }

    /// The mean over all frames.
    pub fn mean_micros(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum as f64 / self.count as f64)
    }

    /// How much more media than time came at the beginning; `None` while arrival does not follow the media clock yet.
    pub fn burst_micros(&self) -> Option<u64> {
        self.burst
    }

    /// The drift that the last frame would have if it came now. That of a silent stream grows with the clock.
    pub fn at(&self, now: Moment) -> Option<i64> {
        self.first.at(now, self.last_media)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drift_has_a_sign_and_grows_in_silence() {
        let at = |micros: u64| Moment::from_nanos(1_000_000_000 + micros * 1000);
        let mut drift = Drift::default();
        assert_eq!((drift.last_micros(), drift.at(at(0))), (None, None));
        drift.arrive(at(0), 500);
        drift.arrive(at(600_000), 600_500);
        drift.arrive(at(600_100), 600_800);
        assert_eq!(drift.last_micros(), Some(-200));
        drift.arrive(at(601_000), 600_900);
        assert_eq!((drift.least_micros(), drift.most_micros()), (Some(-200), Some(600)));
        assert_eq!(drift.at(at(603_000)), Some(2_600));
        assert_eq!(drift.mean_micros(), Some(400.0 / 4.0));
        assert_eq!(drift.burst_micros(), Some(0));
        drift.restart();
        drift.arrive(at(609_000), 7);
        assert_eq!(drift.last_micros(), Some(0));
    }
}
