//! The offset between another machine's clock and this one's: four timestamps an exchange (RFC 5905, section 8) and eight
//! exchanges a burst, of which the one with the shortest round trip counts.

use std::collections::VecDeque;
use std::time::Duration;
use weir_metrics::Moment;

/// Number of exchanges in a burst.
const BURST: u32 = 8;
/// Time between the beginnings of two bursts.
pub const EVERY: Duration = Duration::from_secs(5);
/// Number of bursts that the drift is computed from: those of a minute.
const BURSTS: usize = 12;
/// The largest drift that is taken for real: `adjtimex` slews a clock by 500 ppm at most.
const MOST_DRIFT: f64 = 500e-6;
/// How long an answer is waited for before the request is sent again.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// The other machine's clock minus this machine's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// In nanoseconds.
    pub nanos: i64,
    /// The true offset lies within this much: half of the round trip.
    pub bound: Duration,
}

/// One exchange of RFC 5905's timestamps T1 to T4: the first and the last by this machine's clock, the others by the other's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the request left (T1).
    pub asked: u64,
    /// When the request arrived (T2).
    pub received: u64,
    /// When the answer left (T3).
    pub answered: u64,
    /// When the answer arrived (T4).
    pub heard: u64,
}

impl Exchange {
    /// The offset that it gives; `None` if no such exchange is possible.
    pub fn offset(self) -> Option<ClockOffset> {
        let Self { asked, received, answered, heard } = self;
        let way = heard.checked_sub(asked)?.checked_sub(answered.checked_sub(received)?)?;
        let difference = |theirs: u64, own: u64| i128::from(theirs) - i128::from(own);
        let nanos = (difference(received, asked) + difference(answered, heard)) / 2;
        Some(ClockOffset { nanos: i64::try_from(nanos).ok()?, bound: Duration::from_nanos(way.div_ceil(2)) })
    }
}

impl ClockOffset {
    /// A moment of the other machine's clock, by this one's.
    pub fn here(self, there: u64) -> Moment {
        let nanos = i128::from(there) - i128::from(self.nanos);
        Moment::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }

    /// A moment of this machine's clock, by the other's.
    pub fn there(self, here: Moment) -> u64 {
        let nanos = i128::from(here.as_nanos()) + i128::from(self.nanos);
        u64::try_from(nanos.max(0)).unwrap_or(u64::MAX)
    }

    /// What the other machine's wall clock shows at the zero of this machine's monotonic clock, if it shows `there` at the zero of its own.
    pub fn wall_at_zero(self, there: u64) -> u64 {
        there.saturating_add_signed(self.nanos)
    }
}

/// Measures the offset, burst after burst.
#[derive(Debug, Default)]
pub struct OffsetMeter {
    /// Of each complete burst, the offset of the exchange that counts, and when that ended.
    bursts: VecDeque<(Moment, ClockOffset)>,
    /// The same of the current burst so far.
    best: Option<(Moment, ClockOffset)>,
    exchanges: u32,
    burst_began: Option<Moment>,
    /// When the request left whose answer is waited for.
    asked: Option<Moment>,
}

impl OffsetMeter {
    /// The offset at a moment, once a burst is complete: that of the last burst, and the drift since then.
    pub fn at(&self, now: Moment) -> Option<ClockOffset> {
        let (then, offset) = self.bursts.back()?;
        let drifted = self.drift() * now.since(*then).as_nanos() as f64;
        Some(ClockOffset { nanos: offset.nanos.saturating_add(drifted as i64), ..*offset })
    }

    /// The drift: the slope of the line through all bursts that are kept, by least squares.
    fn drift(&self) -> f64 {
        let Some((first, base)) = self.bursts.front().filter(|_| self.bursts.len() > 2) else { return 0.0 };
        let points = || {
            self.bursts.iter().map(|(then, offset)| {
                (then.since(*first).as_nanos() as f64, offset.nanos.saturating_sub(base.nanos) as f64)
            })
        };
        let count = self.bursts.len() as f64;
        let mean = |of: fn((f64, f64)) -> f64| points().map(of).sum::<f64>() / count;
        let (x, y) = (mean(|point| point.0), mean(|point| point.1));
        let above: f64 = points().map(|point| (point.0 - x) * (point.1 - y)).sum();
        let below: f64 = points().map(|point| (point.0 - x).powi(2)).sum();
        if below > 0.0 { (above / below).clamp(-MOST_DRIFT, MOST_DRIFT) } else { 0.0 }
    }

    /// Whether a request for the time is due now.
    pub fn poll(&mut self, now: Moment) -> bool {
        if self.asked.is_some_and(|asked| now.since(asked) < ANSWER_TIMEOUT) {
            return false;
        }
        let is_due = self.exchanges > 0 || self.burst_began.is_none_or(|began| now.since(began) >= EVERY);
        if is_due {
            if self.exchanges == 0 {
                (self.burst_began, self.best) = (Some(now), None);
            }
            self.asked = Some(now);
        }
        is_due
    }

    /// Takes an answer.
    pub fn handle(&mut self, exchange: Exchange) {
        if self.asked.map(Moment::as_nanos) != Some(exchange.asked) {
            // The answer to a request that was given up, or that was never sent.
            return;
        }
        self.asked = None;
        let told = exchange.offset().map(|offset| (Moment::from_nanos(exchange.heard), offset));
        self.best = [self.best, told].into_iter().flatten().min_by_key(|(_, offset)| offset.bound);
        self.exchanges += 1;
        if self.exchanges >= BURST {
            self.exchanges = 0;
            if let Some(best) = self.best {
                self.bursts.push_back(best);
                self.bursts.drain(..self.bursts.len().saturating_sub(BURSTS));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_shortest_round_trip_of_a_burst_counts() {
        let mut meter = OffsetMeter::default();
        let mut now = Moment::from_nanos(1_000_000_000);
        let ahead = 3_000_000_000;
        // Each request takes 1 ms; the answer takes 1 ms in one exchange, and 40 ms in the others.
        for number in 0..8 {
            assert!(meter.at(now).is_none());
            assert!(meter.poll(now) && !meter.poll(now));
            let received = now.as_nanos() + 1_000_000 + ahead;
            let back = if number == 5 { 1_000_000 } else { 40_000_000 };
            let heard = now.as_nanos() + 1_000_000 + back;
            meter.handle(Exchange { asked: now.as_nanos(), received, answered: received, heard });
            now = Moment::from_nanos(heard);
        }
        let offset = meter.at(now).unwrap();
        assert_eq!((offset.nanos, offset.bound), (ahead as i64, Duration::from_millis(1)));
        assert_eq!(offset.here(now.as_nanos() + ahead), now);
        assert_eq!(offset.there(now), now.as_nanos() + ahead);
        assert!(!meter.poll(now), "the next burst is later");
        assert!(meter.poll(now + EVERY));
    }

    /// An answer without delay, from a clock that gains this much a second.
    fn answer(meter: &mut OffsetMeter, now: Moment, gain: f64) {
        let there = (now.as_nanos() as f64 * (1.0 + gain)) as u64 + 7_000_000_000;
        meter.handle(Exchange {
            asked: now.as_nanos(),
            received: there,
            answered: there,
            heard: now.as_nanos(),
        });
    }

    #[test]
    fn drift_between_two_bursts_is_extrapolated_by_a_line() {
        let (mut meter, gain) = (OffsetMeter::default(), 40e-6);
        let mut now = Moment::from_nanos(1_000_000_000);
        for _ in 0..400 {
            if meter.poll(now) {
                answer(&mut meter, now, gain);
            }
            now = now + Duration::from_millis(250);
        }
        // Five seconds after the last burst, a clock that gains 40 ppm is 200 µs ahead of what the burst gave.
        let true_offset = |now: Moment| 7_000_000_000 + (now.as_nanos() as f64 * gain) as i64;
        let later = now + Duration::from_secs(4);
        let error = meter.at(later).unwrap().nanos - true_offset(later);
        assert!(error.abs() < 2_000, "{error} ns");
    }

    proptest! {
        #[test]
        fn the_offset_is_within_its_bound(
            own in 0u64..1 << 50, ahead in -(1i64 << 40)..1 << 40,
            there in 0u64..1 << 30, work in 0u64..1 << 30, back in 0u64..1 << 30,
        ) {
            let theirs = |own: u64| (i128::from(own) + i128::from(ahead)) as u64;
            prop_assume!(i128::from(own) + i128::from(ahead) >= 0);
            let received = own + there;
            let exchange = Exchange {
                asked: own,
                received: theirs(received),
                answered: theirs(received + work),
                heard: received + work + back,
            };
            let offset = exchange.offset().unwrap();
            prop_assert!(u128::from(offset.nanos.abs_diff(ahead)) <= offset.bound.as_nanos());
        }

        #[test]
        fn impossible_timestamps_give_no_offset(asked: u64, received: u64, answered: u64, heard: u64) {
            let exchange = Exchange { asked, received, answered, heard };
            if let Some(offset) = exchange.offset() {
                prop_assert!(heard >= asked && answered >= received);
                let _ = offset.here(asked);
            }
        }
    }
}
