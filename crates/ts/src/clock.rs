//! Program clock references of one PID, and the stream's own time made of them.
//!
//! The only clock here is the stream's. Its time goes on by what the references say, or, where they jump, by what
//! the packets between would have taken.

use std::time::Duration;

use crate::packet::Pcr;

/// Ticks of the system clock in a second (ISO/IEC 13818-1 section 2.4.2.1).
pub const TICKS_PER_SECOND: u64 = 27_000_000;

const MILLISECOND: i64 = 27_000;
/// The longest way from one reference to the next (section 2.7.2; TR 101 290 2.3).
const LONGEST_INTERVAL: i64 = 100 * MILLISECOND;
/// ± 500 ns (section 2.4.2.2; TR 101 290 2.4).
const TOLERANCE: f64 = 13.5;
/// So many intervals within a hundredth of each other make a constant rate; as many strays end it.
const STEADY: u8 = 16;
const STRAYS: u8 = 8;
/// The rate is a mean over at least so long.
const MEMORY: f64 = 10.0 * TICKS_PER_SECOND as f64;

/// Time since the first clock reference of the stream: 27 MHz ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamTime(pub u64);

impl StreamTime {
    /// In seconds.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / TICKS_PER_SECOND as f64
    }

    /// Time from `earlier` to this; zero when it lies behind.
    pub fn since(self, earlier: Self) -> Duration {
        let ticks = self.0.saturating_sub(earlier.0);
        Duration::from_nanos((u128::from(ticks) * 1000 / 27) as u64)
    }
}

/// The clock references of one PID so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PcrFigures {
    /// How many there were.
    pub count: u64,
    /// The shortest interval in 27 MHz ticks; discontinuities apart.
    pub interval_min: u64,
    /// The longest.
    pub interval_max: u64,
    /// All intervals together; over `intervals`, the mean.
    pub interval_sum: u64,
    /// How many intervals.
    pub intervals: u64,
    /// The farthest that a reference lay off the constant rate of the stream, in nanoseconds; `None` where the rate
    /// was never constant.
    pub jitter_max_nanoseconds: Option<f64>,
    /// Jumps that nothing announced.
    pub discontinuities: u64,
}

/// What a clock reference says beside the time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tick {
    /// How far the stream's time goes on, in ticks.
    pub(crate) elapsed: u64,
    /// A new time base: what was measured against the old one says nothing.
    pub(crate) broken: bool,
    /// By how much it jumps, unannounced and unexplained.
    pub(crate) jump: Option<i64>,
    /// Outside 0 … 100 ms, unannounced.
    pub(crate) out_of_range: Option<i64>,
    /// Over 100 ms by the packets that passed.
    pub(crate) late: Option<u64>,
    /// Nanoseconds off the constant rate, where over 500.
    pub(crate) inaccurate: Option<f64>,
    /// 27 MHz ticks that a packet takes.
    pub(crate) ticks_per_packet: f64,
}

/// Follows the references of one PID.
#[derive(Clone, Debug, Default)]
pub(crate) struct PcrTrack {
    last: Option<(Pcr, u64)>,
    /// Ticks and packets that the rate is the quotient of.
    ticks: f64,
    packets: f64,
    steady: u8,
    strays: u8,
    pub(crate) figures: PcrFigures,
}

impl PcrTrack {
    /// `place` counts the packets of the stream before this one.
    pub(crate) fn observe(&mut self, pcr: Pcr, place: u64, announced: bool) -> Tick {
        self.figures.count += 1;
        let Some((last, last_place)) = self.last.replace((pcr, place)) else {
            return Tick { ticks_per_packet: self.ticks_per_packet(), ..Tick::default() };
        };
        let passed = (place - last_place) as f64;
        let known = self.packets > 0.0;
        let estimate = passed * self.ticks_per_packet();
        let mut tick = Tick::default();
        if announced {
            tick.broken = true;
            tick.elapsed = estimate as u64;
        } else {
            let step = pcr.since(last);
            let regular = (0..=LONGEST_INTERVAL).contains(&step);
            if !regular {
                tick.out_of_range = Some(step);
            }
            let explained = step >= 0 && (step as f64 - estimate).abs() <= LONGEST_INTERVAL as f64;
            if regular || known && explained {
                let by_packets = if known { estimate } else { step as f64 };
                if !regular && by_packets > LONGEST_INTERVAL as f64 {
                    tick.late = Some(step as u64);
                }
                tick.elapsed = step as u64;
                tick.inaccurate = self.measure(step as f64, passed, estimate, known);
                self.count_interval(step as u64);
            } else {
                tick.jump = Some(step - estimate as i64);
                tick.broken = true;
                tick.elapsed = estimate as u64;
                self.figures.discontinuities += 1;
                // Packets that passed for over 100 ms without a reference are late as well.
                if estimate > LONGEST_INTERVAL as f64 {
                    tick.late = Some(estimate as u64);
                }
            }
        }
        tick.ticks_per_packet = self.ticks_per_packet();
        tick
    }

    fn ticks_per_packet(&self) -> f64 {
        if self.packets > 0.0 { self.ticks / self.packets } else { 0.0 }
    }

    fn count_interval(&mut self, step: u64) {
        let figures = &mut self.figures;
        figures.interval_min = if figures.intervals == 0 { step } else { figures.interval_min.min(step) };
        figures.interval_max = figures.interval_max.max(step);
        figures.interval_sum += step;
        figures.intervals += 1;
    }

    /// Takes an interval into the rate; how far it is off a constant one, in nanoseconds, when over the tolerance.
    fn measure(&mut self, step: f64, passed: f64, estimate: f64, known: bool) -> Option<f64> {
        let deviation = step - estimate;
        let constant = self.steady == STEADY;
        let near = known && deviation.abs() <= estimate / 100.0;
        let mut inaccurate = None;
        if constant {
            let nanoseconds = deviation * 1000.0 / 27.0;
            let worst = self.figures.jitter_max_nanoseconds.unwrap_or(0.0);
            self.figures.jitter_max_nanoseconds = Some(worst.max(nanoseconds.abs()));
            inaccurate = (deviation.abs() > TOLERANCE).then_some(nanoseconds);
            self.strays = if near { 0 } else { self.strays + 1 };
            if self.strays == STRAYS {
                (self.steady, self.strays) = (0, 0);
                (self.ticks, self.packets) = (0.0, 0.0);
            }
        } else if near {
            self.steady += 1;
        } else {
            self.steady = 0;
        }
        // What is off a constant rate is the fault of its reference, or of a packet that is missing: no new rate.
        if !constant || deviation.abs() <= estimate / 2000.0 {
            self.ticks += step;
            self.packets += passed;
            if self.ticks > 2.0 * MEMORY {
                self.ticks /= 2.0;
                self.packets /= 2.0;
            }
        }
        inaccurate
    }
}

/// The time of the whole stream: that of one clock among those that it carries.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamClock {
    /// The PID that is followed.
    reference: Option<u16>,
    elapsed: u64,
    /// The place of the last reference.
    place: u64,
    ticks_per_packet: f64,
    pcr: Option<Pcr>,
    /// Counts new time bases.
    pub(crate) epoch: u32,
    /// What other clocks have counted since the followed one spoke last.
    silence: u64,
}

impl StreamClock {
    /// Takes what a reference on `pid` said.
    pub(crate) fn follow(&mut self, pid: u16, pcr: Pcr, place: u64, tick: &Tick) {
        let reference = *self.reference.get_or_insert(pid);
        if reference != pid {
            self.silence += tick.elapsed;
            if self.silence < TICKS_PER_SECOND {
                return;
            }
            // The followed clock has gone: another program's takes over.
            self.elapsed = self.at(place).map_or(0, |time| time.0);
            self.reference = Some(pid);
            self.epoch += 1;
        } else {
            self.elapsed += tick.elapsed;
            self.epoch += u32::from(tick.broken);
        }
        self.silence = 0;
        self.place = place;
        self.pcr = Some(pcr);
        self.ticks_per_packet = tick.ticks_per_packet;
    }

    /// The time at a place; `None` before the first reference.
    pub(crate) fn at(&self, place: u64) -> Option<StreamTime> {
        self.reference?;
        Some(StreamTime(self.elapsed + self.beyond(place)))
    }

    /// The program clock itself at a place, for one stream seen by several readers.
    pub(crate) fn pcr_at(&self, place: u64) -> Option<Pcr> {
        self.pcr.map(|pcr| Pcr::new(pcr.ticks() + self.beyond(place)))
    }

    fn beyond(&self, place: u64) -> u64 {
        let ticks = place.saturating_sub(self.place) as f64 * self.ticks_per_packet;
        (ticks as u64).min(TICKS_PER_SECOND)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEP: u64 = 30 * 27_000;

    fn steady(track: &mut PcrTrack, count: u64) {
        for number in 0..count {
            let tick = track.observe(Pcr::new(number * STEP), number * 100, false);
            assert_eq!((tick.jump, tick.out_of_range, tick.late, tick.inaccurate), (None, None, None, None));
        }
    }

    #[test]
    fn a_constant_rate_makes_a_clock_that_lies_501_nanoseconds_off_seen() {
        let mut track = PcrTrack::default();
        steady(&mut track, 30);
        assert_eq!(track.observe(Pcr::new(30 * STEP + 13), 3000, false).inaccurate, None);
        let tick = track.observe(Pcr::new(31 * STEP + 13 + 14), 3100, false);
        assert!(tick.inaccurate.is_some_and(|nanoseconds| (500.0..530.0).contains(&nanoseconds)));
    }

    #[test]
    fn a_jump_is_told_from_references_that_are_far_apart() {
        let mut track = PcrTrack::default();
        steady(&mut track, 10);
        // 120 ms and packets for 120 ms: late.
        let tick = track.observe(Pcr::new(13 * STEP), 1300, false);
        assert_eq!((tick.jump, tick.late), (None, Some(4 * STEP)));
        // 5 s and packets for 30 ms: a jump.
        let tick = track.observe(Pcr::new(14 * STEP + 5 * TICKS_PER_SECOND), 1400, false);
        assert_eq!((tick.jump, tick.late, tick.elapsed), (Some(5 * TICKS_PER_SECOND as i64), None, STEP));
    }

    #[test]
    fn an_announced_jump_is_none() {
        let mut track = PcrTrack::default();
        steady(&mut track, 10);
        let tick = track.observe(Pcr::new(0), 1000, true);
        assert_eq!((tick.jump, tick.out_of_range, tick.elapsed), (None, None, STEP));
    }
}
