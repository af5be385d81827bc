//! When each message is due: an open loop, whatever the broker does.

use super::draw::fraction;
use std::collections::VecDeque;
use std::time::Duration;
use weir_metrics::Moment;

/// How the messages of a publisher are spread over the time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Arrivals {
    /// All intervals are alike.
    #[default]
    Even,
    /// Each interval has any length up to twice the mean, all of them as likely.
    Random,
    /// A Poisson process: at any moment a message is as likely to be due as at any other.
    Poisson,
}

/// Messages between two marks of a schedule that is drawn.
const BETWEEN_MARKS: u64 = 256;

/// Marks that are kept: those of all messages that may be unacknowledged, 65,535 at the most (MQTT 5 section 3.3.4).
const MARKS: usize = 65_536 / BETWEEN_MARKS as usize + 2;

/// Intervals that are drawn to count the messages of a time that is over; beyond, they count as of the mean.
const MOST_COUNTED: u64 = 1 << 20;

/// The schedule of one publisher: message n is due at the start plus n divided by the rate, or when it is drawn.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    start: Moment,
    /// Nanoseconds between two messages, in the mean.
    interval: f64,
    count: u64,
    drawn: Option<Box<DrawnPace>>,
}

/// Intervals that are drawn. Each is a function of the seed and the message's number, and a moment the sum of those before it, which is
/// kept of the next message and of some before that.
#[derive(Clone, Debug)]
struct DrawnPace {
    is_poisson: bool,
    seed: u64,
    next: Mark,
    marks: VecDeque<Mark>,
}

/// When a message is due.
#[derive(Clone, Copy, Debug)]
struct Mark {
    number: u64,
    /// Nanoseconds since the start.
    nanos: f64,
}

impl DrawnPace {
    /// The interval before a message.
    fn interval(&self, number: u64, mean: f64) -> f64 {
        let fraction = fraction(self.seed, number);
        // The inverse of the distribution, of a number that is not 0.
        mean * if self.is_poisson { -(1.0 - fraction).ln() } else { 2.0 * fraction }
    }

    fn after(&self, mark: Mark, mean: f64) -> Mark {
        Mark { number: mark.number + 1, nanos: mark.nanos + self.interval(mark.number + 1, mean) }
    }

    /// When a message is due, out of the last mark that is not behind it.
    fn nanos(&self, number: u64, mean: f64) -> f64 {
        let before = self.marks.iter().rev().find(|mark| mark.number <= number);
        let mut mark = match before {
            _ if self.next.number <= number => self.next,
            Some(mark) => *mark,
            // Longer ago than anything that may be unacknowledged.
            None => return number as f64 * mean,
        };
        while mark.number < number {
            mark = self.after(mark, mean);
        }
        mark.nanos
    }
}

impl Pace {
    /// A pace of `rate` messages a second that ends after `count` messages, if there is a count.
    pub(super) fn new(start: Moment, rate: f64, count: Option<u64>) -> Self {
        Self { start, interval: 1e9 / rate.max(1e-6), count: count.unwrap_or(u64::MAX), drawn: None }
    }

    /// The same with arrivals that are drawn from a seed, if they are.
    pub(super) fn arriving(mut self, arrivals: Arrivals, seed: u64) -> Self {
        let first = Mark { number: 0, nanos: 0.0 };
        let drawn = |is_poisson| {
            let mut drawn = DrawnPace { is_poisson, seed, next: first, marks: VecDeque::new() };
            drawn.next.nanos = drawn.interval(0, self.interval);
            drawn.marks.push_back(drawn.next);
            Some(Box::new(drawn))
        };
        self.drawn = match arrivals {
            Arrivals::Even => None,
            Arrivals::Random => drawn(false),
            Arrivals::Poisson => drawn(true),
        };
        self
    }

    /// When a message is due; `None` behind the last.
    #[inline]
    pub(super) fn due(&self, number: u64) -> Option<Moment> {
        let nanos = || match &self.drawn {
            None => number as f64 * self.interval,
            Some(drawn) => drawn.nanos(number, self.interval),
        };
        (number < self.count).then(|| self.start + Duration::from_nanos(nanos() as u64))
    }

    /// This message is the next one.
    #[inline]
    pub(super) fn advance(&mut self, next: u64) {
        let Some(drawn) = &mut self.drawn else { return };
        while drawn.next.number < next {
            drawn.next = drawn.after(drawn.next, self.interval);
            if drawn.next.number.is_multiple_of(BETWEEN_MARKS) {
                if drawn.marks.len() == MARKS {
                    drawn.marks.pop_front();
                }
                drawn.marks.push_back(drawn.next);
            }
        }
    }

    /// The time between two messages, in the mean.
    pub(super) fn interval(&self) -> Duration {
        Duration::from_nanos(self.interval as u64)
    }

    /// How many messages are due by a moment.
    pub(super) fn due_by(&self, now: Moment) -> u64 {
        if let Some(drawn) = &self.drawn {
            return self.drawn_by(drawn, now.since(self.start).as_nanos() as u64).min(self.count);
        }
        let mut due = ((now.since(self.start).as_nanos() as f64 / self.interval) as u64).saturating_add(1);
        // Rounding may have taken one too many.
        while due > 0 && self.due(due - 1).is_some_and(|at| at > now) {
            due -= 1;
        }
        due.min(self.count)
    }

    fn drawn_by(&self, drawn: &DrawnPace, nanos: u64) -> u64 {
        let mut mark = drawn.next;
        while mark.nanos as u64 <= nanos {
            if mark.number >= drawn.next.number + MOST_COUNTED {
                return mark.number.saturating_add(((nanos as f64 - mark.nanos) / self.interval) as u64);
            }
            mark = drawn.after(mark, self.interval);
        }
        mark.number
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

    #[test]
    fn intervals_that_are_drawn_have_the_mean_and_the_spread_of_their_kind() {
        let start = Moment::from_nanos(7);
        // Of 1 ms: an exponential distribution has its mean as its standard deviation, a uniform one up to twice its mean that by the
        // square root of 3.
        for (arrivals, deviation) in [(Arrivals::Poisson, 1e6), (Arrivals::Random, 1e6 / 3_f64.sqrt())] {
            let mut pace = Pace::new(start, 1_000.0, Some(100_000)).arriving(arrivals, 42);
            let mut dues = vec![start];
            for number in 0..100_000 {
                pace.advance(number);
                dues.push(pace.due(number).unwrap());
            }
            let intervals: Vec<f64> =
                dues.windows(2).map(|it| it[1].since(it[0]).as_nanos() as f64).collect();
            let mean = intervals.iter().sum::<f64>() / 1e5;
            let spread = (intervals.iter().map(|it| (it - mean).powi(2)).sum::<f64>() / 1e5).sqrt();
            // Five standard errors of the mean are 1.6 %.
            assert!(
                (mean / 1e6 - 1.0).abs() < 0.016 && (spread / deviation - 1.0).abs() < 0.03,
                "{mean} {spread}"
            );
            assert_eq!(pace.due(100_000), None);
            // What may be unacknowledged is due when it was.
            for number in [99_999, 99_000, 40_000] {
                assert_eq!(pace.due(number), Some(dues[number as usize + 1]), "{number}");
            }
        }
    }

    #[test]
    fn a_schedule_is_its_seeds_and_counts_what_is_due() {
        let start = Moment::from_nanos(0);
        let pace = |seed| Pace::new(start, 1_000.0, None).arriving(Arrivals::Poisson, seed);
        assert_eq!(pace(1).due(500), pace(1).due(500));
        assert_ne!(pace(1).due(500), pace(2).due(500));
        for number in [0, 1, 300, 5_000] {
            let due = pace(1).due(number).unwrap();
            assert_eq!(pace(1).due_by(due), number + 1);
            assert_eq!(pace(1).due_by(due - Duration::from_nanos(1)), number);
        }
    }
}
