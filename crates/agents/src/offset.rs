//! How far another machine's clock is from one's own: four timestamps an exchange (RFC 5905, section 8), eight exchanges in
//! a row, of which the one with the shortest round trip counts.

use std::time::Duration;
use weir_metrics::Moment;

/// Exchanges of a burst.
const BURST: u32 = 8;
/// Time between the beginnings of two bursts.
const EVERY: Duration = Duration::from_secs(5);
/// How long an answer is waited for before the question is put again.
const PATIENCE: Duration = Duration::from_secs(1);

/// The other clock minus one's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// In nanoseconds.
    pub nanos: i64,
    /// The true offset lies within this much: half of the round trip.
    pub bound: Duration,
}

/// One exchange: asked and heard by one's own clock, received and answered by the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// When the question left.
    pub asked: u64,
    /// When it came.
    pub received: u64,
    /// When the answer left.
    pub answered: u64,
    /// When that came.
    pub heard: u64,
}

impl Exchange {
    /// What it tells; nothing if it cannot have been.
    pub fn offset(self) -> Option<ClockOffset> {
        let Self { asked, received, answered, heard } = self;
        let way = heard.checked_sub(asked)?.checked_sub(answered.checked_sub(received)?)?;
        let difference = |theirs: u64, own: u64| i128::from(theirs) - i128::from(own);
        let nanos = (difference(received, asked) + difference(answered, heard)) / 2;
        Some(ClockOffset { nanos: i64::try_from(nanos).ok()?, bound: Duration::from_nanos(way.div_ceil(2)) })
    }
}

impl ClockOffset {
    /// A moment of the other clock, on one's own.
    pub fn here(self, there: u64) -> Moment {
        let nanos = i128::from(there) - i128::from(self.nanos);
        Moment::from_nanos(u64::try_from(nanos.max(0)).unwrap_or(u64::MAX))
    }
}

/// Measures the offset, burst after burst.
#[derive(Debug, Default)]
pub struct OffsetMeter {
    /// Of the last whole burst.
    latest: Option<ClockOffset>,
    /// Of the burst that is under way.
    best: Option<ClockOffset>,
    exchanges: u32,
    burst_began: Option<Moment>,
    /// The question that is under way.
    asked: Option<Moment>,
}

impl OffsetMeter {
    /// What is known, once a burst is over.
    pub fn latest(&self) -> Option<ClockOffset> {
        self.latest
    }

    /// Whether to ask for the time now.
    pub fn poll(&mut self, now: Moment) -> bool {
        if self.asked.is_some_and(|asked| now.since(asked) < PATIENCE) {
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
            // One that was given up, or was never asked for.
            return;
        }
        self.asked = None;
        let offset = exchange.offset();
        self.best = [self.best, offset].into_iter().flatten().min_by_key(|it| it.bound);
        self.exchanges += 1;
        if self.exchanges >= BURST {
            self.exchanges = 0;
            self.latest = self.best.or(self.latest);
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
        // There in 1 ms; back in 1 ms of one exchange, and in 40 ms of the others.
        for number in 0..8 {
            assert!(meter.latest().is_none());
            assert!(meter.poll(now) && !meter.poll(now));
            let received = now.as_nanos() + 1_000_000 + ahead;
            let back = if number == 5 { 1_000_000 } else { 40_000_000 };
            let heard = now.as_nanos() + 1_000_000 + back;
            meter.handle(Exchange { asked: now.as_nanos(), received, answered: received, heard });
            now = Moment::from_nanos(heard);
        }
        let offset = meter.latest().unwrap();
        assert_eq!((offset.nanos, offset.bound), (ahead as i64, Duration::from_millis(1)));
        assert_eq!(offset.here(now.as_nanos() + ahead), now);
        assert!(!meter.poll(now), "the next burst is later");
        assert!(meter.poll(now + EVERY));
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
        fn made_up_times_are_not_believed(asked: u64, received: u64, answered: u64, heard: u64) {
            let exchange = Exchange { asked, received, answered, heard };
            if let Some(offset) = exchange.offset() {
                prop_assert!(heard >= asked && answered >= received);
                let _ = offset.here(asked);
            }
        }
    }
}
