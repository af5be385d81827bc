//! About how many packets are missing, by the rate of the stream.
//!
//! A counter of four bits hides every whole 16 packets. The clock hides none: between two references as many packets are
//! due as the stream has had in an equal span before. A variable rate makes that vague, so a difference counts only beyond
//! the scatter of intervals without a loss.

/// Intervals without a loss that it takes for a rate and a scatter.
const ENOUGH: u32 = 8;
/// Packets count as missing beyond this number of standard deviations.
const SIGNIFICANT: f64 = 3.0;
/// Half a packet is rounding.
const ROUNDING: f64 = 0.5;
/// The rate is a mean over at least so long, in 27 MHz ticks: 10 s.
const MEMORY: f64 = 10.0 * 27e6;

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
    /// Squares of what they had more or less than the rate says, in packets.
    squares: f64,
    intervals: u32,
    /// The estimate, and what the counters have said, up to the last reference.
    estimate: u64,
    counted: u64,
}

impl Losses {
    /// A clock reference comes; the counters say that `counted` packets are missing by now. `None`: it is unknown how
    /// much time has passed since the one before it.
    pub(crate) fn reference(&mut self, interval: Option<Interval>, counted: u64) {
        let at_least = counted - std::mem::replace(&mut self.counted, counted);
        self.estimate += match interval {
            Some(interval) if interval.is_broken => self.missing(interval, at_least),
            Some(interval) => {
                if interval.hidden == 0 {
                    self.learn(interval);
                }
                interval.hidden
            }
            None => at_least,
        };
    }

    /// The estimate, where the counters say that `counted` packets are missing.
    pub(crate) fn estimate(&self, counted: u64) -> u64 {
        self.estimate.max(counted)
    }

    /// How many are missing from an interval by the rate, or `at_least` where that is not surely more.
    fn missing(&self, interval: Interval, at_least: u64) -> u64 {
        if self.intervals < ENOUGH || self.ticks <= 0.0 {
            return at_least;
        }
        let missing = interval.ticks * self.packets / self.ticks - interval.packets;
        let unsure = ROUNDING + SIGNIFICANT * (self.squares / self.ticks * interval.ticks).sqrt();
        // A counter of a PID with few packets shows a loss long after it, and from a rate that is known to a packet it
        // is known that none is missing here.
        if unsure < 1.0 || missing > at_least as f64 + unsure {
            missing.round().max(0.0) as u64
        } else {
            at_least
        }
    }

    fn learn(&mut self, interval: Interval) {
        if self.ticks > 0.0 {
            let due = interval.ticks * self.packets / self.ticks;
            self.squares += (interval.packets - due).powi(2);
        }
        self.ticks += interval.ticks;
        self.packets += interval.packets;
        self.intervals = self.intervals.saturating_add(1);
        if self.ticks > 2.0 * MEMORY {
            self.ticks /= 2.0;
            self.packets /= 2.0;
            self.squares /= 2.0;
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
    fn before_a_rate_is_known_the_counters_are_all_there_is() {
        let mut losses = of((0..3).map(|_| 200));
        losses.reference(Some(Interval { is_broken: true, ..interval(20) }), 4);
        losses.reference(None, 6);
        assert_eq!(losses.estimate(6), 6);
    }
}
