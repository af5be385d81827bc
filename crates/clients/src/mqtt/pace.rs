//! When each message is due: an open loop, whatever the broker does.

use std::time::Duration;
use weir_metrics::Moment;

/// The schedule of one publisher: message n is due at the start plus n divided by the rate.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    start: Moment,
    /// Nanoseconds between two messages.
    interval: f64,
    count: u64,
}

impl Pace {
    /// A pace of `rate` messages a second that ends after `count` messages, if there is a count.
    pub(super) fn new(start: Moment, rate: f64, count: Option<u64>) -> Self {
        Self { start, interval: 1e9 / rate.max(1e-6), count: count.unwrap_or(u64::MAX) }
    }

    /// When a message is due; `None` behind the last.
    #[inline]
    pub(super) fn due(&self, number: u64) -> Option<Moment> {
        (number < self.count)
            .then(|| self.start + Duration::from_nanos((number as f64 * self.interval) as u64))
    }

    /// The time between two messages.
    pub(super) fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval as u64)
    }

    /// How many messages are due by a moment.
    pub(super) fn due_by(&self, now: Moment) -> u64 {
        let mut due = ((now.since(self.start).as_nanos() as f64 / self.interval) as u64).saturating_add(1);
        // Rounding may have taken one too many.
        while due > 0 && self.due(due - 1).is_some_and(|at| at > now) {
            due -= 1;
        }
        due.min(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_due_at_the_rate_and_end_with_the_count() {
        let start = Moment::from_nanos(1_000);
        let pace = Pace::new(start, 10_000.0, Some(5_000));
        assert_eq!(pace.due(0), Some(start));
        assert_eq!(pace.due(4_999), Some(start + Duration::from_micros(499_900)));
        assert_eq!(pace.due(5_000), None);
        assert_eq!(pace.due_by(start), 1);
        assert_eq!(pace.due_by(start + Duration::from_micros(100)), 2);
        assert_eq!(pace.due_by(start + Duration::from_micros(99)), 1);
        assert_eq!(pace.due_by(start + Duration::from_secs(9)), 5_000);
        assert_eq!(Pace::new(start, 0.5, None).due(1), Some(start + Duration::from_secs(2)));
    }
}
