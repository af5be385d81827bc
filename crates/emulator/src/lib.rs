//! What a link does to packets: which are lost, and when the others arrive. Tests on made-up time ask it, and `weir relay`
//! between real sockets. Knows no packet's contents, no socket and no clock; the same seed and the same packets give the same
//! link.

use std::time::Duration;
use weir_metrics::Moment;

/// How much later a packet arrives that others overtake.
const OVERTAKEN_BY: Duration = Duration::from_millis(16);

/// What a link does to what goes over it, in one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Impairment {
    /// The share of packets that are lost, 0 to 1.
    pub loss: f64,
    /// Packets that are lost in a row.
    pub burst: u32,
    /// The share of packets that arrive 16 ms late, so that others overtake them.
    pub overtaken: f64,
    /// How long each packet is on its way.
    pub delay: Duration,
    /// How much longer at the most. Packets stay in their order.
    pub jitter: Duration,
    /// Bits a second that leave, if they are limited.
    pub rate: Option<f64>,
    /// How long packets may wait because of the rate; what would wait longer is dropped.
    pub queue: Duration,
}

impl Default for Impairment {
    /// A link that does nothing.
    fn default() -> Self {
        Self {
            loss: 0.0,
            burst: 1,
            overtaken: 0.0,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            rate: None,
            queue: Duration::from_millis(100),
        }
    }
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passage {
    /// It arrives at this moment.
    Arrives(Moment),
    /// It is lost.
    Lost,
    /// It finds no room in the queue before a limited rate.
    Overflowed,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct EmulatedLink {
    impairment: Impairment,
    random: fastrand::Rng,
    /// Packets that are still to be lost in a row.
    burst_left: u32,
    /// When the last packet has left.
    free_at: Moment,
    /// When the last one arrives that was not overtaken.
    arrival: Moment,
}

impl EmulatedLink {
    /// A link that has carried nothing.
    pub fn new(impairment: Impairment, seed: u64) -> Self {
        Self {
            impairment,
            random: fastrand::Rng::with_seed(seed),
            burst_left: 0,
            free_at: Moment::default(),
            arrival: Moment::default(),
        }
    }

    /// Changes what it does from now on.
    pub fn change(&mut self, change: impl FnOnce(&mut Impairment)) {
        change(&mut self.impairment);
    }

    /// A packet of this number of bytes is sent.
    pub fn carry(&mut self, bytes: usize, now: Moment) -> Passage {
        let Impairment { loss, burst, overtaken, delay, jitter, rate, queue } = self.impairment;
        let mut left_at = now;
        if let Some(rate) = rate {
            let begins = self.free_at.max(now);
            if begins.since(now) > queue {
                return Passage::Overflowed;
            }
            left_at = begins + Duration::from_nanos((bytes as f64 * 8e9 / rate.max(1.0)) as u64);
            self.free_at = left_at;
        }
        if self.burst_left > 0 {
            self.burst_left -= 1;
            return Passage::Lost;
        }
        // Of the packets outside of bursts a share of p is lost and takes n - 1 others with it: p · n / (1 + p · (n - 1)) is the loss.
        let n = f64::from(burst.max(1));
        let first = loss / (n - loss * (n - 1.0)).max(f64::MIN_POSITIVE);
        if self.random.f64() < first {
            self.burst_left = burst.max(1) - 1;
            return Passage::Lost;
        }
        let on_its_way = left_at + delay;
        if overtaken > 0.0 && self.random.f64() < overtaken {
            return Passage::Arrives(on_its_way + OVERTAKEN_BY);
        }
        let arrival =
            if jitter.is_zero() { on_its_way } else { on_its_way + jitter.mul_f64(self.random.f64()) };
        self.arrival = arrival.max(self.arrival);
        Passage::Arrives(self.arrival)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Moment = Moment::from_nanos(1_000_000_000);

    fn lost(impairment: Impairment, seed: u64) -> Vec<bool> {
        let mut link = EmulatedLink::new(impairment, seed);
        (0..100_000).map(|_| link.carry(1_316, START) == Passage::Lost).collect()
    }

    #[test]
    fn as_many_are_lost_as_is_said_however_long_the_bursts_are() {
        for (loss, burst) in [(0.001, 1), (0.02, 1), (0.2, 1), (0.02, 5), (0.2, 5), (0.9, 5)] {
            let lost = lost(Impairment { loss, burst, ..Impairment::default() }, 7);
            let share = lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64;
            assert!((share / loss - 1.0).abs() < 0.25, "{loss} in bursts of {burst}: {share}");
            let bursts = lost.chunk_by(|a, b| a == b).filter(|run| run[0]);
            assert!(burst == 1 || bursts.map(<[bool]>::len).all(|length| length % 5 == 0 || length < 5));
        }
        assert!(lost(Impairment { loss: 1.0, ..Impairment::default() }, 7).iter().all(|lost| *lost));
        assert!(!lost(Impairment::default(), 7).iter().any(|lost| *lost));
    }

    #[test]
    fn one_seed_is_one_link() {
        let impairment = Impairment { loss: 0.1, ..Impairment::default() };
        assert_eq!(lost(impairment, 7), lost(impairment, 7));
        assert_ne!(lost(impairment, 7), lost(impairment, 8));
    }

    #[test]
    fn packets_are_late_within_the_bounds_and_in_order_unless_they_are_overtaken() {
        let ms = Duration::from_millis;
        let late = Impairment { delay: ms(40), jitter: ms(10), ..Impairment::default() };
        for (impairment, in_order) in [(late, true), (Impairment { overtaken: 0.02, ..late }, false)] {
            let mut link = EmulatedLink::new(impairment, 3);
            let arrivals: Vec<Moment> = (0..1_000)
                .map(|n| {
                    let sent = START + ms(n);
                    let Passage::Arrives(at) = link.carry(100, sent) else { panic!("nothing is lost") };
                    assert!((ms(40)..=ms(56)).contains(&at.since(sent)));
                    at
                })
                .collect();
            assert_eq!(arrivals.is_sorted(), in_order);
        }
    }

    #[test]
    fn a_rate_holds_packets_back_and_drops_what_would_wait_too_long() {
        // A packet of 1,000 bytes takes a millisecond.
        let impairment =
            Impairment { rate: Some(8e6), queue: Duration::from_millis(20), ..Impairment::default() };
        let mut link = EmulatedLink::new(impairment, 1);
        let passages: Vec<Passage> = (0..100).map(|_| link.carry(1_000, START)).collect();
        assert_eq!(passages[0], Passage::Arrives(START + Duration::from_millis(1)));
        assert_eq!(passages[20], Passage::Arrives(START + Duration::from_millis(21)));
        assert!(passages[21..].iter().all(|passage| *passage == Passage::Overflowed));
    }
}
