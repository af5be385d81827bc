//! Delay drift: how far arrival has moved against media time since the first frame.

use weir_metrics::Moment;

/// (arrival − first arrival) − (media time − first media time), in microseconds, signed: positive when media comes
/// later than it should.
#[derive(Clone, Copy, Debug, Default)]
pub struct Drift {
    /// Arrival minus media time, at the first frame.
    first: Option<(Moment, i64)>,
    last_media: i64,
    last: i64,
    least: i64,
    most: i64,
    sum: i64,
    count: u64,
}

impl Drift {
    pub(super) fn arrive(&mut self, now: Moment, media_micros: i64) {
        let (first_arrival, first_media) = *self.first.get_or_insert((now, media_micros));
        self.last = now.micros_since(first_arrival).saturating_sub(media_micros.saturating_sub(first_media));
        self.last_media = media_micros;
        (self.least, self.most) = match self.count {
            0 => (self.last, self.last),
            _ => (self.least.min(self.last), self.most.max(self.last)),
        };
        self.sum = self.sum.saturating_add(self.last);
        self.count += 1;
    }

    /// Media time begins anew. What follows is measured from its own first frame, and the extremes are kept.
    pub(super) fn restart(&mut self) {
        self.first = None;
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

    /// The drift that the last frame would have if it came now. That of a silent stream grows with the clock.
    pub fn at(&self, now: Moment) -> Option<i64> {
        let (first_arrival, first_media) = self.first?;
        Some(now.micros_since(first_arrival).saturating_sub(self.last_media.saturating_sub(first_media)))
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
        drift.arrive(at(100), 800);
        assert_eq!(drift.last_micros(), Some(-200));
        drift.arrive(at(1_000), 900);
        assert_eq!((drift.least_micros(), drift.most_micros()), (Some(-200), Some(600)));
        assert_eq!(drift.at(at(3_000)), Some(2_600));
        assert_eq!(drift.mean_micros(), Some(400.0 / 3.0));
        drift.restart();
        drift.arrive(at(9_000), 7);
        assert_eq!(drift.last_micros(), Some(0));
    }
}
