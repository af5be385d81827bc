//! Program clock references of one PID: how far the stream's own time goes on with each, and what is wrong with it.
//!
//! The only clock here is the stream's. Its time goes on by what the references say, or, where they jump, by what
//! the packets between would have taken.

use std::time::Duration;

use crate::losses;
use crate::packet::Pcr;

/// Ticks of the system clock in a second (ISO/IEC 13818-1 section 2.4.2.1).
pub const TICKS_PER_SECOND: u64 = 27_000_000;

const MILLISECOND: i64 = 27_000;
/// The longest way from one reference to the next (section 2.7.2; TR 101 290 2.3).
pub(crate) const LONGEST_INTERVAL: i64 = 100 * MILLISECOND;
/// ± 500 ns (section 2.4.2.2; TR 101 290 2.4).
const TOLERANCE: f64 = 13.5;
/// Agreeing intervals that make a constant rate.
const STEADY: u8 = 16;
/// Intervals agree that differ by no more than this part of them …
const AGREEMENT: f64 = 1.0 / 2000.0;
/// … nor by half a packet; by this they may, since each lies between two references within the tolerance.
const LEEWAY: f64 = 4.0 * TOLERANCE;
/// Consecutive intervals that deviate in the same direction and so show that the rate has changed.
const STRAYS: i8 = 8;
/// A clock that goes on by more than this has jumped, where no rate says how much is due. Servers that put a reference
/// in front of each keyframe have one in 2 to 10 s.
const LONGEST_SPARSE: i64 = 10 * TICKS_PER_SECOND as i64;
/// Fewer packets than one in this number of ticks (32 kbit/s) are a jump of the clock.
const SLOWEST: f64 = 188.0 * 8.0 / 32_000.0 * TICKS_PER_SECOND as f64;
/// Of references that are usually further apart than allowed, an interval may hold this many times as many packets as
/// another, or as few, and twice that if it is as long as usual: streams of servers that send no null packets have no
/// constant rate.
const SPARSE_FACTOR: f64 = 2.0;
/// For how many references null packets count as sent after the last of them.
const NULLS_ARE_SENT: u8 = 64;
/// A clock reference is missing from an interval that is longer by this factor than any whole one.
const CUT: f64 = 1.5;
/// Consecutive jumps that show that the rate they are judged by is wrong.
const WRONG_RATE: u8 = 3;
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
    /// Ticks from one reference to the next as it usually is.
    pub(crate) usual: u64,
    /// The first interval was so long that until now nothing was known of the time.
    pub(crate) learnt_late: bool,
    /// What passed since the reference before it; `None` where the time that passed is unknown.
    pub(crate) interval: Option<losses::Interval>,
}

/// Ticks by packets.
#[derive(Clone, Copy, Debug, Default)]
struct Rate {
    ticks: f64,
    packets: f64,
}

impl Rate {
    /// Zero where nothing is known.
    fn ticks_per_packet(self) -> f64 {
        if self.packets > 0.0 { self.ticks / self.packets } else { 0.0 }
    }

    fn add(&mut self, interval: Self) {
        self.ticks += interval.ticks;
        self.packets += interval.packets;
        if self.ticks > 2.0 * MEMORY {
            self.ticks /= 2.0;
            self.packets /= 2.0;
        }
    }

    /// How many ticks longer an interval is than its packets take at this rate.
    fn deviation(self, interval: Self) -> f64 {
        interval.ticks - interval.packets * self.ticks_per_packet()
    }

    fn agrees(self, interval: Self) -> bool {
        let packet = self.ticks_per_packet();
        let most = (interval.packets * packet * AGREEMENT).min(packet / 2.0).max(LEEWAY);
        self.packets > 0.0 && self.deviation(interval).abs() <= most
    }

    /// Whether whole packets are missing from an interval, and nothing else is wrong with it.
    fn lacks_packets(self, interval: Self) -> bool {
        let (deviation, packet) = (self.deviation(interval), self.ticks_per_packet());
        let missing = (deviation / packet).round();
        missing >= 1.0 && (deviation - missing * packet).abs() <= TOLERANCE
    }

    /// How many packets are missing from an interval that [lacks packets](Self::lacks_packets).
    fn missing(self, interval: Self) -> u64 {
        (self.deviation(interval) / self.ticks_per_packet()).round() as u64
    }
}

/// A reference and where it stood.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reference {
    pub(crate) pcr: Pcr,
    /// Counts the packets of the stream before it.
    pub(crate) place: u64,
    /// Counts the breaks of continuity up to it, on any PID, wrong counters apart.
    pub(crate) breaks: u64,
    /// Counts the null packets up to it.
    pub(crate) nulls: u64,
}

/// Follows the references of one PID.
#[derive(Clone, Debug, Default)]
pub(crate) struct PcrTrack {
    last: Option<Reference>,
    /// Of the whole stream, or, once that is constant, of what agrees with it.
    rate: Rate,
    /// Of the latest intervals that agree with each other, and how many agreed with those before them.
    run: Rate,
    steady: u8,
    /// Intervals in a row that were too long; below zero, too short.
    strays: i8,
    /// Ticks of an interval: the mean of all, the latest weighing a quarter.
    usual: i64,
    /// The rate is that of one interval of more than 100 ms, which may have been a jump.
    guessed: bool,
    /// Jumps in a row.
    jumps: u8,
    shortages: Shortages,
    pub(crate) figures: PcrFigures,
}

/// Intervals that are short of whole packets, at a constant rate, although no counter broke in them: packets were filtered
/// out, or a loss is hidden from counters of four bits.
#[derive(Clone, Copy, Debug, Default)]
struct Shortages {
    /// For how many more references null packets count as sent. A server that filters them out makes intervals short of any
    /// number of packets.
    nulls: u8,
    /// Short by a multiple of 16, which the counter of a PID hides.
    sixteens: u32,
    /// Short by any other number.
    others: u32,
    /// The longest interval that had all its packets, in ticks.
    longest_whole: f64,
}

impl Shortages {
    /// Takes the next interval, which is short of `missing` packets if continuity broke nowhere in it: how many of them are
    /// lost.
    fn lost(&mut self, ticks: f64, missing: Option<u64>) -> u64 {
        let Some(missing) = missing else { return 0 };
        let hides = missing.is_multiple_of(16);
        if hides {
            self.sixteens += 1;
        } else {
            self.others += 1;
        }
        // A filter lets clock references through. Where they are missing as well, the stream was cut: a multiple of 16 packets
        // of each PID, and null packets, which have no counter.
        let was_cut = missing > 16 && ticks > CUT * self.longest_whole && self.longest_whole > 0.0;
        let are_sixteens =
            hides && u64::from(self.sixteens) * 10 >= u64::from(self.sixteens + self.others) * 9;
        if self.nulls > 0 && (are_sixteens || was_cut) { missing } else { 0 }
    }
}

impl PcrTrack {
    pub(crate) fn observe(&mut self, reference: Reference, announced: bool) -> Tick {
        self.figures.count += 1;
        let Some(last) = self.last.replace(reference) else {
            return Tick { ticks_per_packet: self.rate.ticks_per_packet(), ..Tick::default() };
        };
        let passed = (reference.place - last.place) as f64;
        let known = self.rate.packets > 0.0;
        let estimate = passed * self.rate.ticks_per_packet();
        let is_broken = reference.breaks > last.breaks;
        let mut tick = Tick::default();
        if announced {
            tick.broken = true;
            tick.elapsed = estimate as u64;
        } else {
            let step = reference.pcr.since(last.pcr);
            let regular = (0..=LONGEST_INTERVAL).contains(&step);
            if !regular {
                tick.out_of_range = Some(step);
            }
            let interval = Rate { ticks: step as f64, packets: passed };
            let has_nulls = reference.nulls > last.nulls;
            self.shortages.nulls =
                if has_nulls { NULLS_ARE_SENT } else { self.shortages.nulls.saturating_sub(1) };
            let is_short = self.steady >= STEADY && !is_broken && self.rate.lacks_packets(interval);
            let hidden = self.shortages.lost(interval.ticks, is_short.then(|| self.rate.missing(interval)));
            if regular || self.explains(interval) {
                let by_packets = if known && !self.is_sparse() { estimate } else { step as f64 };
                if !regular && by_packets > LONGEST_INTERVAL as f64 {
                    tick.late = Some(step as u64);
                }
                tick.learnt_late = !known && !regular;
                let guess = self.rate.ticks_per_packet();
                if std::mem::replace(&mut self.guessed, tick.learnt_late)
                    && regular
                    && !within(interval.ticks_per_packet(), guess, 2.0 * SPARSE_FACTOR)
                {
                    // The long interval was a jump.
                    (self.rate, self.run) = (Rate::default(), Rate::default());
                }
                tick.elapsed = step as u64;
                tick.inaccurate = self.measure(interval, is_broken || hidden > 0);
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
                self.jumps += 1;
                if self.jumps == WRONG_RATE {
                    (self.rate, self.run, self.steady, self.jumps) = (Rate::default(), Rate::default(), 0, 0);
                }
            }
            // Packets that are missing in bulk make a jump as well.
            let is_loss = is_broken || hidden > 0;
            let lasted = tick.jump.is_none() || is_loss && (1..=LONGEST_SPARSE).contains(&step);
            tick.interval =
                lasted.then_some(losses::Interval { ticks: step as f64, packets: passed, is_broken, hidden });
        }
        tick.ticks_per_packet = self.rate.ticks_per_packet();
        tick.usual = self.usual as u64;
        tick
    }

    /// Whether references usually are further apart than allowed.
    fn is_sparse(&self) -> bool {
        self.usual > LONGEST_INTERVAL
    }

    /// Whether the packets of an interval of more than 100 ms, or what is usual, explain how long it is.
    fn explains(&self, interval: Rate) -> bool {
        let estimate = interval.packets * self.rate.ticks_per_packet();
        if interval.ticks < 0.0 || interval.packets == 0.0 {
            false
        } else if self.rate.packets == 0.0 {
            interval.ticks <= LONGEST_SPARSE as f64 && interval.ticks_per_packet() <= SLOWEST
        } else if self.is_sparse() && interval.ticks <= LONGEST_SPARSE as f64 {
            let most = if within(interval.ticks, self.usual as f64, SPARSE_FACTOR) { 2.0 } else { 1.0 };
            within(interval.ticks, estimate, most * SPARSE_FACTOR)
        } else {
            (interval.ticks - estimate).abs() <= LONGEST_INTERVAL as f64
        }
    }

    fn count_interval(&mut self, step: u64) {
        let figures = &mut self.figures;
        figures.interval_min = if figures.intervals == 0 { step } else { figures.interval_min.min(step) };
        figures.interval_max = figures.interval_max.max(step);
        figures.interval_sum += step;
        figures.intervals += 1;
        let step = step as i64;
        self.usual = if figures.intervals == 1 { step } else { self.usual + (step - self.usual) / 4 };
        self.jumps = 0;
    }

    /// Takes an interval into the rate; how far it is off a constant one, in nanoseconds, when over the tolerance. `is_loss`:
    /// packets of it are lost.
    fn measure(&mut self, interval: Rate, is_loss: bool) -> Option<f64> {
        if self.steady < STEADY {
            self.search(interval);
            return None;
        }
        let constant = self.rate;
        let deviation = constant.deviation(interval);
        let is_off = deviation.abs() > TOLERANCE;
        // What is off a constant rate is the fault of its reference, or of a packet that is missing: no new rate.
        if constant.agrees(interval) {
            self.rate.add(interval);
            self.shortages.longest_whole = self.shortages.longest_whole.max(interval.ticks);
        }
        self.strays = match deviation.signum() as i8 {
            _ if !is_off => 0,
            way if way == self.strays.signum() => self.strays + way,
            way => way,
        };
        if self.strays.abs() == STRAYS {
            (self.rate, self.run) = (interval, interval);
            (self.steady, self.strays) = (0, 0);
        }
        // Where packets were filtered out, their number says nothing of the time.
        if constant.lacks_packets(interval) && !(is_loss && self.shortages.nulls > 0) {
            return None;
        }
        let nanoseconds = deviation * 1000.0 / 27.0;
        let worst = self.figures.jitter_max_nanoseconds.unwrap_or(0.0);
        self.figures.jitter_max_nanoseconds = Some(worst.max(nanoseconds.abs()));
        is_off.then_some(nanoseconds)
    }

    /// Looks for a constant rate. An interval that disagrees begins a new run: the rate has no packet in it that is
    /// missing.
    fn search(&mut self, interval: Rate) {
        self.rate.add(interval);
        if self.run.agrees(interval) {
            self.run.add(interval);
            self.steady += 1;
        } else {
            self.run = interval;
            self.steady = 0;
        }
        if self.steady == STEADY {
            self.rate = self.run;
        }
    }
}

/// Whether one is at most `factor` times the other.
fn within(one: f64, other: f64, factor: f64) -> bool {
    one.max(other) <= factor * one.min(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream_clock::StreamClock;

    const STEP: u64 = 30 * 27_000;

    fn observe(track: &mut PcrTrack, ticks: u64, place: u64) -> Tick {
        track.observe(Reference { pcr: Pcr::new(ticks), place, breaks: 0, nulls: place }, false)
    }

    fn steady(track: &mut PcrTrack, count: u64) {
        for number in 0..count {
            let tick = observe(track, number * STEP, number * 100);
            assert_eq!((tick.jump, tick.out_of_range, tick.late, tick.inaccurate), (None, None, None, None));
        }
    }

    /// How many of 40 intervals with these numbers of packets are inaccurate, after 30 of 100.
    fn inaccurate_at_another_rate(packets: u64) -> (usize, PcrTrack) {
        let mut track = PcrTrack::default();
        steady(&mut track, 30);
        let ticks = (1..=40).map(|number| observe(&mut track, (29 + number) * STEP, 2900 + number * packets));
        (ticks.filter(|tick| tick.inaccurate.is_some()).count(), track)
    }

    #[test]
    fn a_constant_rate_makes_a_clock_that_lies_501_nanoseconds_off_seen() {
        let mut track = PcrTrack::default();
        steady(&mut track, 30);
        assert_eq!(observe(&mut track, 30 * STEP + 13, 3000).inaccurate, None);
        let tick = observe(&mut track, 31 * STEP + 13 + 14, 3100);
        assert!(tick.inaccurate.is_some_and(|nanoseconds| (500.0..530.0).contains(&nanoseconds)));
    }

    #[test]
    fn an_interval_that_lacks_packets_is_judged_where_continuity_misses_them() {
        for (missing, breaks, judged) in [(1, 0, false), (1, 1, true), (5, 0, false), (16, 0, true)] {
            let mut track = PcrTrack::default();
            steady(&mut track, 30);
            let reference =
                Reference { pcr: Pcr::new(30 * STEP), place: 3000 - missing, breaks, nulls: 3000 };
            let tick = track.observe(reference, false);
            assert_eq!(tick.inaccurate.is_some(), judged, "{missing} packets, {breaks} breaks");
        }
        // Half a packet is not a missing packet.
        let mut track = PcrTrack::default();
        steady(&mut track, 30);
        assert!(observe(&mut track, 30 * STEP + STEP / 200, 3000).inaccurate.is_some());
    }

    /// What intervals that lack these packets hide, in a stream with null packets or without, after 30 whole ones.
    fn hidden(missing: &[u64], nulls: u64) -> Vec<u64> {
        let mut track = PcrTrack::default();
        let mut place = 0;
        let mut observe = |number: u64, missing: u64| {
            place += if number == 0 { 0 } else { 100 - missing };
            let reference =
                Reference { pcr: Pcr::new(number * STEP), place, breaks: 0, nulls: number * nulls };
            track.observe(reference, false).interval.map_or(0, |interval| interval.hidden)
        };
        (0..30).for_each(|number| assert_eq!(observe(number, 0), 0));
        missing.iter().zip(30..).map(|(missing, number)| observe(number, *missing)).collect()
    }

    #[test]
    fn packets_that_no_counter_misses_are_lost_if_null_packets_are_sent_and_all_lack_sixteens() {
        assert_eq!(hidden(&[16, 0, 32, 48], 1), [16, 0, 32, 48]);
        assert_eq!(hidden(&[16, 0, 32, 48], 0), [0; 4], "null packets are filtered out");
        assert_eq!(hidden(&[3, 16, 5, 32, 20], 1), [0; 5], "others are filtered out");
    }

    #[test]
    fn packets_that_are_gone_with_a_clock_reference_are_lost_whatever_their_number() {
        for (nulls, lost) in [(1, 54), (0, 0)] {
            let mut track = PcrTrack::default();
            let mut observe = |ticks: u64, place: u64, nulls| {
                let reference = Reference { pcr: Pcr::new(ticks), place, breaks: 0, nulls };
                track.observe(reference, false).interval.map(|interval| interval.hidden)
            };
            (0..30).for_each(|number| _ = observe(number * STEP, number * 100, number * nulls));
            assert_eq!(observe(31 * STEP, 3_100 - 54, 31 * nulls), Some(lost));
            // 24 references and more packets than there are in 100 ms.
            let jump = observe(55 * STEP, 5_500 - 54 - 1_000, 55 * nulls);
            assert_eq!(jump, (nulls > 0).then_some(1_000));
        }
    }

    #[test]
    fn a_loss_before_the_rate_is_known_is_in_no_rate() {
        let mut track = PcrTrack::default();
        let ticks = (0..60).map(|number| {
            let lost = if number > 5 { 31 } else { 0 };
            let reference = Reference {
                pcr: Pcr::new(number * STEP),
                place: number * 100 - lost,
                breaks: lost,
                nulls: number,
            };
            track.observe(reference, false)
        });
        assert_eq!(ticks.filter(|tick| tick.inaccurate.is_some()).count(), 0);
        assert_eq!(track.figures.jitter_max_nanoseconds, Some(0.0));
    }

    #[test]
    fn another_rate_is_learnt_and_judged_again() {
        for (packets, told) in [(101, 8), (200, 8), (99, 0)] {
            let (inaccurate, mut track) = inaccurate_at_another_rate(packets);
            assert_eq!(inaccurate, told, "{packets} packets");
            let place = 2900 + 41 * packets;
            assert!(observe(&mut track, 70 * STEP + 14, place).inaccurate.is_some(), "{packets} packets");
        }
    }

    #[test]
    fn a_rate_that_is_never_the_same_is_never_judged() {
        let mut track = PcrTrack::default();
        let mut place = 0;
        for number in 0..200 {
            place += 100 + number % 2;
            assert_eq!(observe(&mut track, number * STEP, place).inaccurate, None);
        }
        assert_eq!(track.figures.jitter_max_nanoseconds, None);
    }

    #[test]
    fn a_jump_is_told_from_references_that_are_far_apart() {
        let mut track = PcrTrack::default();
        steady(&mut track, 10);
        // 120 ms and packets for 120 ms: late.
        let tick = observe(&mut track, 13 * STEP, 1300);
        assert_eq!((tick.jump, tick.late), (None, Some(4 * STEP)));
        // 5 s and packets for 30 ms: a jump.
        let tick = observe(&mut track, 14 * STEP + 5 * TICKS_PER_SECOND, 1400);
        assert_eq!((tick.jump, tick.late, tick.elapsed), (Some(5 * TICKS_PER_SECOND as i64), None, STEP));
    }

    /// References 2 s apart, of a stream whose rate is never the same.
    #[test]
    fn references_that_are_seconds_apart_are_late_and_no_jumps() {
        let (mut track, mut clock) = (PcrTrack::default(), StreamClock::default());
        let (mut place, mut ticks) = (0, 0);
        for number in 0..30u64 {
            let tick = observe(&mut track, ticks, place);
            clock.follow(0x100, Pcr::new(ticks), place, &tick);
            let late = (number > 0).then_some(2 * TICKS_PER_SECOND);
            assert_eq!((tick.jump, tick.late, tick.broken), (None, late, false), "{number}");
            assert_eq!(tick.learnt_late, number == 1);
            assert_eq!(clock.at(place), Some(StreamTime(ticks)));
            if number > 1 {
                // Between two references it goes on by the packets.
                let later = clock.at(place + 1_000).unwrap().0 - ticks;
                assert!((TICKS_PER_SECOND / 2..2 * TICKS_PER_SECOND).contains(&later), "{later}");
            }
            ticks += 2 * TICKS_PER_SECOND;
            place += [1_500, 2_400, 1_100, 3_000][number as usize % 4];
        }
        assert_eq!((track.figures.discontinuities, track.figures.intervals), (0, 29));
        assert_eq!(track.figures.interval_max, 2 * TICKS_PER_SECOND);
        // A jump is one all the same.
        ticks += 7 * TICKS_PER_SECOND;
        assert!(observe(&mut track, ticks, place).jump.is_some());
        assert!(observe(&mut track, 5, place + 2_000).jump.is_some());
    }

    #[test]
    fn a_rate_that_a_jump_has_taught_is_forgotten() {
        let mut track = PcrTrack::default();
        observe(&mut track, 0, 0);
        // Nothing says yet that 9 s are too long for 400 packets.
        assert_eq!(observe(&mut track, 9 * TICKS_PER_SECOND, 400).jump, None);
        let ticks = |number: u64| 9 * TICKS_PER_SECOND + number * 2 * TICKS_PER_SECOND;
        let jumps =
            (1..20).filter(|number| observe(&mut track, ticks(*number), 400 + number * 2_000).jump.is_some());
        assert_eq!(jumps.count(), usize::from(WRONG_RATE));
        let mut track = PcrTrack::default();
        observe(&mut track, 0, 0);
        assert!(observe(&mut track, 9 * TICKS_PER_SECOND, 10).jump.is_some(), "10 packets are no stream");
        for number in 1..20 {
            let tick = observe(&mut track, 9 * TICKS_PER_SECOND + number * STEP, 10 + number * 100);
            assert_eq!((tick.jump, tick.late), (None, None));
        }
        assert_eq!(track.rate.ticks_per_packet(), STEP as f64 / 100.0);
    }

    #[test]
    fn an_announced_jump_is_none() {
        let mut track = PcrTrack::default();
        steady(&mut track, 10);
        let tick = track.observe(Reference { pcr: Pcr::new(0), place: 1000, breaks: 0, nulls: 1000 }, true);
        assert_eq!((tick.jump, tick.out_of_range, tick.elapsed), (None, None, STEP));
    }
}
