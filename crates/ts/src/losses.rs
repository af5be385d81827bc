//! About how many packets are missing, by the rate of the stream.
//!
//! A counter of four bits hides every whole 16 packets. The clock hides none: between two references as many packets are
//! due as the stream has had in an equal span before. A variable rate makes that vague. Where it scatters by less than the counters
//! hide, the two together are exact; beyond that a difference counts only if it is known to a fifth, of one interval or of all broken ones
//! together. Of the others nothing is known but what the counters say.

/// Intervals without a loss that it takes for a rate and a scatter.
const ENOUGH: u32 = 8;
/// Packets count as missing beyond this number of standard deviations.
const SIGNIFICANT: f64 = 3.0;
/// What the counters hide is a multiple of this.
const HIDDEN: f64 = 16.0;
/// An estimate may be off by this part of itself.
const KNOWN: f64 = 0.2;
/// Half a packet is rounding.
const ROUNDING: f64 = 0.5;
/// The rate is a mean over at least so long, in 27 MHz ticks: 2 s, some groups of pictures, so that it follows a rate that
/// changes slowly …
const RATE_MEMORY: f64 = 2.0 * 27e6;
/// … and the scatter about it over 10 s.
const SCATTER_MEMORY: f64 = 10.0 * 27e6;

/// From one clock reference to the next.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Interval {
    /// 27 MHz ticks.
    pub(crate) ticks: f64,
    /// Packets that passed.
    pub(crate) packets: f64,
    /// Whether continuity broke in it, on any PID.
    pub(crate) is_broken: bool,
    /// Packets that are missing from it although no counter says so.
    pub(crate) hidden: u64,
}

/// What is missing, up to the last clock reference.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    /// Of intervals without a loss.
    ticks: f64,
    packets: f64,
    /// Squares of what they had more or less than the rate says, in packets, and their ticks.
    squares: f64,
    square_ticks: f64,
    intervals: u32,
    /// The estimate of intervals about which something is sure, and of all others.
    sure: u64,
    unsure: u64,
    /// Intervals about which nothing was known when they came but what the counters say.
    unknown: u64,
    broken: BrokenIntervals,
    /// What the counters have said, up to the last reference.
    counted: u64,
}

/// All broken intervals whose own scatter hides what is missing: together they may show it.
#[derive(Clone, Copy, Debug, Default)]
struct BrokenIntervals {
    /// What is missing by the rate, and by the counters.
    missing: f64,
    counted: f64,
    /// Of the scatter: the sum of variances, and that of standard deviations.
    variance: f64,
    deviation: f64,
    /// How much more such intervals have on average if it is packets that are lost, and not spans of time: full ones lose more often.
    bias: f64,
}

impl BrokenIntervals {
    /// How many packets are missing from all of them, if that is known.
    fn estimate(&self) -> Option<u64> {
        let (hidden, deviation) = (self.missing - self.counted, self.variance.sqrt());
        // Scatter that is independent from one interval to the next grows with the root of their number. That of a rate which
        // changes slowly grows with their number.
        let is_sure = hidden > SIGNIFICANT * deviation && hidden > self.deviation;
        let is_known = 2.0 * deviation + self.bias <= KNOWN * self.missing;
        (is_sure && is_known).then_some(self.missing as u64)
    }
}

impl Losses {
    /// A clock reference comes; the counters say that `counted` packets are missing by now. `None`: it is unknown how
    /// much time has passed since the one before it.
    pub(crate) fn reference(&mut self, interval: Option<Interval>, counted: u64) {
        let at_least = counted - std::mem::replace(&mut self.counted, counted);
        match interval {
            Some(interval) if interval.is_broken => self.missing(interval, at_least),
            Some(interval) => {
                if interval.hidden == 0 {
                    self.learn(interval);
                }
                self.sure += interval.hidden;
            }
            None => {
                self.sure += at_least;
                self.unknown += u64::from(at_least > 0);
            }
        }
    }

    /// The estimate, where the counters say that `counted` packets are missing.
    pub(crate) fn estimate(&self, counted: u64) -> u64 {
        (self.sure + self.unsure).max(counted)
    }

    /// About how many intervals nothing is known but what the counters say.
    pub(crate) fn unknown(&self) -> u64 {
        self.unknown
    }

    /// Adds what is missing from an interval by the rate, or `at_least` where that is not known.
    fn missing(&mut self, interval: Interval, at_least: u64) {
        if self.intervals < ENOUGH || self.square_ticks <= 0.0 {
            self.sure += at_least;
            self.unknown += u64::from(at_least > 0);
            return;
        }
        let due = interval.ticks * self.packets / self.ticks;
        let missing = due - interval.packets;
        let variance = self.squares / self.square_ticks * interval.ticks;
        let unsure = ROUNDING + SIGNIFICANT * variance.sqrt();
        let by_rate = missing.round().max(0.0) as u64;
        let counted = at_least as f64;
        if unsure < 1.0 {
            // A counter of a PID with few packets shows a loss long after it, and from a rate that is known to a packet it
            // is known that none is missing here.
            self.sure += by_rate;
        } else if unsure < HIDDEN / 2.0 {
            let hidden = ((missing - counted) / HIDDEN).round().max(0.0) * HIDDEN;
            self.sure += at_least + hidden as u64;
        } else if missing > counted + unsure && variance.sqrt() <= KNOWN * missing {
            self.sure += by_rate;
        } else {
            let broken = &mut self.broken;
            broken.missing += missing;
            broken.counted += counted;
            broken.variance += variance;
            broken.deviation += variance.sqrt();
            broken.bias += if due > 0.0 { variance / due } else { 0.0 };
            let estimate = broken.estimate();
            self.unsure = self.unsure.max(estimate.unwrap_or(broken.counted as u64));
            self.unknown += u64::from(estimate.is_none() && at_least > 0);
        }
    }

    fn learn(&mut self, interval: Interval) {
        if self.ticks > 0.0 {
            let due = interval.ticks * self.packets / self.ticks;
            self.squares += (interval.packets - due).powi(2);
            self.square_ticks += interval.ticks;
        }
        self.ticks += interval.ticks;
        self.packets += interval.packets;
        self.intervals = self.intervals.saturating_add(1);
        if self.ticks > 2.0 * RATE_MEMORY {
            self.ticks /= 2.0;
            self.packets /= 2.0;
        }
        if self.square_ticks > 2.0 * SCATTER_MEMORY {
            self.squares /= 2.0;
            self.square_ticks /= 2.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(packets: u64) -> Interval {
        Interval { ticks: 27e6 / 25.0, packets: packets as f64, is_broken: false, hidden: 0 }
    }

    fn of(packets: impl Iterator<Item = u64>) -> Losses {
        let mut losses = Losses::default();
        packets.for_each(|packets| losses.reference(Some(interval(packets)), 0));
        losses
    }

    #[test]
    fn a_constant_rate_says_how_many_the_counters_hide() {
        let mut losses = of((0..20).map(|_| 200));
        losses.reference(Some(Interval { is_broken: true, ..interval(200 - 174) }), 9);
        assert_eq!(losses.estimate(9), 174);
        losses.reference(Some(Interval { is_broken: true, ..interval(200) }), 11);
        assert_eq!(losses.estimate(11), 174, "a counter that tells of the same loss later");
        losses.reference(Some(Interval { is_broken: true, ..interval(199) }), 12);
        assert_eq!(losses.estimate(12), 175);
        assert_eq!(losses.estimate(500), 500, "never less than the counters say");
    }

    #[test]
    fn a_rate_that_scatters_by_less_than_the_counters_hide_is_exact_with_them() {
        for burst in [17, 31, 37, 100] {
            let mut losses = of((0..100).map(|number| 200 + number % 3));
            losses.reference(Some(Interval { is_broken: true, ..interval(200 - burst) }), burst % 16);
            assert_eq!((losses.estimate(burst % 16), losses.unknown()), (burst, 0));
        }
    }

    #[test]
    fn bursts_in_a_rate_that_scatters_by_more_are_unknown() {
        let vary = |number: u64| 100 + number * 37 % 120;
        let mut losses = of((0..200).map(vary));
        for number in 0..10 {
            losses.reference(
                Some(Interval { is_broken: true, ..interval(vary(number).saturating_sub(20)) }),
                (number + 1) * 4,
            );
        }
        assert_eq!((losses.estimate(40), losses.unknown()), (40, 10));
    }

    #[test]
    fn a_variable_rate_says_only_what_it_can() {
        let vary = |number: u64| if number.is_multiple_of(20) { 900 } else { 150 + number * 37 % 60 };
        let mut losses = of((0..100).map(vary));
        losses.reference(Some(Interval { is_broken: true, ..interval(150) }), 3);
        assert_eq!(losses.estimate(3), 3, "a small picture, or a loss");
        let chunk = Interval { ticks: 27e6, packets: 1_000.0, ..interval(0) };
        losses.reference(Some(Interval { is_broken: true, ..chunk }), 10);
        let estimate = losses.estimate(10);
        assert!((4_000..4_800).contains(&estimate), "{estimate} of about 4,400");
    }

    #[test]
    fn what_no_interval_shows_all_of_them_together_may() {
        let vary = |number: u64| 100 + number * 37 % 60;
        let mut losses = of((0..200).map(vary));
        for number in 0..50 {
            losses.reference(
                Some(Interval { is_broken: true, ..interval(vary(number) - 40) }),
                (number + 1) * 8,
            );
        }
        let estimate = losses.estimate(400);
        assert!((1_600..=2_400).contains(&estimate), "{estimate} of 2,000");
    }

    #[test]
    fn a_rate_that_falls_by_less_than_its_scatter_is_no_loss() {
        // Knuth's MMIX generator: packets of an interval, 0 to 59 above the least.
        let mut state = 1u64;
        let mut scatter = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % 60
        };
        let mut losses = of((0..500).map(|_| 150 + scatter()));
        // A quieter scene, and one packet lost in every fifth interval.
        let mut counted = 0;
        for number in 0..1_000 {
            let is_broken = number % 5 == 0;
            counted += u64::from(is_broken);
            let packets = 135 + scatter() - u64::from(is_broken);
            losses.reference(Some(Interval { is_broken, ..interval(packets) }), counted);
        }
        assert_eq!(losses.estimate(counted), counted);
    }

    #[test]
    fn before_a_rate_is_known_the_counters_are_all_there_is() {
        let mut losses = of((0..3).map(|_| 200));
        losses.reference(Some(Interval { is_broken: true, ..interval(20) }), 4);
        losses.reference(None, 6);
        assert_eq!(losses.estimate(6), 6);
    }
}
