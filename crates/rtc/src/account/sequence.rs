//! Sequence numbers: what is missing, late, twice, or of another sequence (RFC 3550 appendices A.1 and A.3).
//!
//! A window of the last numbers remembers which came, so that gaps are exact at every moment, whatever comes late.
//! Nothing here knows time or payload.

use super::gaps::GapLengths;

/// A number this far ahead is a jump to another sequence, unless its time stamp says otherwise (appendix A.1).
pub const MAX_DROPOUT: u16 = 3000;

/// A number this far behind is late; farther behind it is a jump. Appendix A.1 has 100, which is too little for what
/// was asked for again.
pub const MAX_MISORDER: u16 = (WINDOW - 64) as u16;

/// How many numbers are remembered.
const WINDOW: u64 = 2048;
const WORDS: usize = (WINDOW / 64) as usize;

/// Extended numbers begin here, so that there is room below for what came before the first.
const ORIGIN: u64 = 1 << 16;

/// What was lost of a sequence. Totals of several sequences add.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Loss {
    /// Packets between the first and the highest number, both included.
    pub expected: u64,
    /// Of these, how many are here: each number once, repaired ones included.
    pub received: u64,
    /// Gaps: runs of missing numbers between numbers that are here.
    pub gaps: u64,
    /// The gaps by their lengths.
    pub gap_lengths: GapLengths,
}

impl Loss {
    /// Packets missing: expected and not here. It falls when what is missing comes late.
    pub fn lost(&self) -> u64 {
        self.expected - self.received
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.expected += other.expected;
        self.received += other.received;
        self.gaps += other.gaps;
        self.gap_lengths += other.gap_lengths;
    }
}

/// Where a number lies. Numbers are extended to 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// The next one, or one further ahead with `missing` between.
    Ahead { number: u64, missing: u64 },
    /// One that was missing.
    Late(u64),
    /// One that is here already.
    Duplicate(u64),
    /// Too far away: the first of another sequence, or a stray.
    Far,
}

/// One sequence, from its first number on.
#[derive(Clone, Debug)]
pub(super) struct Sequence {
    highest: u64,
    first: u64,
    /// One bit a number, from `floor` on, around.
    window: [u64; WORDS],
    /// The lowest number of the window: a multiple of 64.
    floor: u64,
    /// How many numbers right below the window are missing.
    missing_below: u64,
    received: u64,
    gaps: u64,
    gap_lengths: GapLengths,
}

impl Sequence {
    pub(super) fn new(number: u16) -> Self {
        let first = ORIGIN + u64::from(number);
        let mut sequence = Self {
            highest: first,
            first,
            window: [0; WORDS],
            floor: (first & !63) + 64 - WINDOW,
            missing_below: 0,
            received: 1,
            gaps: 0,
            gap_lengths: GapLengths::default(),
        };
        sequence.mark(first);
        sequence
    }

    /// Takes a number. `continuous` is asked of a number far ahead: whether it goes on with the sequence all the same.
    #[inline]
    pub(super) fn place(&mut self, number: u16, continuous: impl FnOnce() -> bool) -> Position {
        let ahead = number.wrapping_sub(self.highest as u16);
        if ahead == 1 {
            let number = self.highest + 1;
            self.advance(number);
            return Position::Ahead { number, missing: 0 };
        }
        self.place_slowly(ahead, continuous)
    }

    #[cold]
    fn place_slowly(&mut self, ahead: u16, continuous: impl FnOnce() -> bool) -> Position {
        let behind = ahead.wrapping_neg();
        if behind <= MAX_MISORDER {
            let number = self.highest - u64::from(behind);
            return if self.fill(number) { Position::Late(number) } else { Position::Duplicate(number) };
        }
        if ahead < MAX_DROPOUT || (ahead < 0x8000 && continuous()) {
            let (number, missing) = (self.highest + u64::from(ahead), u64::from(ahead) - 1);
            self.gaps += 1;
            self.gap_lengths.open(missing);
            self.advance(number);
            return Position::Ahead { number, missing };
        }
        Position::Far
    }

    /// Takes a number that came by another way, such as a retransmission in a stream of its own. Whether it was missing.
    pub(super) fn repair(&mut self, number: u16) -> Option<u64> {
        let behind = (self.highest as u16).wrapping_sub(number);
        let number = self.highest.checked_sub(u64::from(behind))?;
        (behind <= MAX_MISORDER && number >= self.first && self.fill(number)).then_some(number)
    }

    /// The highest number so far.
    pub(super) fn highest(&self) -> u64 {
        self.highest
    }

    /// The highest number as report blocks have it: wraps above, the number below.
    pub(super) fn reported_highest(&self) -> u32 {
        (self.highest - ORIGIN) as u32
    }

    pub(super) fn loss(&self) -> Loss {
        Loss {
            expected: self.highest - self.first + 1,
            received: self.received,
            gaps: self.gaps,
            gap_lengths: self.gap_lengths,
        }
    }

    #[inline]
    fn advance(&mut self, number: u64) {
        // Nearly always the number is in the newest word; else words leave the window.
        while number >= self.floor + WINDOW {
            let word = (self.floor / 64) as usize % WORDS;
            let bits = std::mem::take(&mut self.window[word]);
            self.missing_below = match bits {
                0 => self.missing_below + 64,
                _ => u64::from(bits.leading_zeros()),
            };
            self.floor += 64;
            // Before the first number nothing is missing.
            self.missing_below = self.missing_below.min(self.floor.saturating_sub(self.first));
        }
        self.highest = number;
        self.received += 1;
        self.mark(number);
    }

    /// Marks a number below the highest; whether it was not marked before.
    fn fill(&mut self, number: u64) -> bool {
        if number < self.floor || self.holds(number) {
            return false;
        }
        self.mark(number);
        self.received += 1;
        let above = self.missing_above(number);
        if number < self.first {
            // What lies between the new first and the old one is missing from now on.
            self.first = number;
            self.open(above);
            return true;
        }
        let below = self.missing_right_below(number);
        self.gaps -= 1;
        self.gap_lengths.close(below + 1 + above);
        self.open(below);
        self.open(above);
        true
    }

    fn open(&mut self, length: u64) {
        self.gaps += u64::from(length > 0);
        self.gap_lengths.open(length);
    }

    fn mark(&mut self, number: u64) {
        self.window[(number / 64) as usize % WORDS] |= 1 << (number % 64);
    }

    fn holds(&self, number: u64) -> bool {
        self.window[(number / 64) as usize % WORDS] >> (number % 64) & 1 == 1
    }

    /// How many numbers right above are missing; the highest is not.
    fn missing_above(&self, number: u64) -> u64 {
        let mut at = number + 1;
        loop {
            let bits = self.window[(at / 64) as usize % WORDS] >> (at % 64);
            if bits != 0 {
                return at + u64::from(bits.trailing_zeros()) - number - 1;
            }
            at = (at / 64 + 1) * 64;
            if at > self.highest {
                return 0;
            }
        }
    }

    /// How many numbers right below are missing, down to the first.
    fn missing_right_below(&self, number: u64) -> u64 {
        let mut end = number;
        while end > self.floor {
            let last = end - 1;
            let bits = self.window[(last / 64) as usize % WORDS] << (63 - last % 64);
            if bits != 0 {
                return number - end + u64::from(bits.leading_zeros());
            }
            end = last & !63;
            if end <= self.first {
                return number - self.first;
            }
        }
        number - self.floor + self.missing_below
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// The same from the set of all numbers that came.
    fn naive(came: &BTreeSet<u64>) -> Loss {
        let mut loss = Loss { received: came.len() as u64, ..Loss::default() };
        for (this, next) in came.iter().zip(came.iter().skip(1)) {
            if next - this > 1 {
                loss.gaps += 1;
                loss.gap_lengths.open(next - this - 1);
            }
        }
        loss.expected = came.last().unwrap() - came.first().unwrap() + 1;
        loss
    }

    fn check(arrivals: &[u64]) -> Result<(), TestCaseError> {
        let mut came = BTreeSet::from([arrivals[0]]);
        let mut sequence = Sequence::new(arrivals[0] as u16);
        let offset = sequence.highest.wrapping_sub(arrivals[0]);
        for &number in &arrivals[1..] {
            let highest = *came.last().unwrap();
            let expected = if number > highest {
                Position::Ahead { number: number.wrapping_add(offset), missing: number - highest - 1 }
            } else if came.contains(&number) {
                Position::Duplicate(number.wrapping_add(offset))
            } else {
                Position::Late(number.wrapping_add(offset))
            };
            came.insert(number);
            prop_assert_eq!(sequence.place(number as u16, || true), expected);
            prop_assert_eq!(sequence.loss(), naive(&came));
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Any loss, duplication and order, within the window, at any place of the wrap.
        #[test]
        fn every_number_has_its_place_and_every_gap_its_length(
            start in 100_000u64..170_000,
            packets in prop::collection::vec((0u64..4, prop_oneof![8 => 0u64..1, 4 => 0u64..8, 1 => 0u64..1900]), 1..150),
            burst in prop_oneof![Just(1u64), Just(3), Just(70), Just(2_900)],
        ) {
            let mut arrivals = Vec::new();
            let mut number = start;
            for (step, delay) in packets {
                number += if step == 3 { burst } else { step };
                // A packet is late when it is delivered behind one that is `delay` ahead of it.
                arrivals.push((number + delay, number));
            }
            arrivals.sort_by_key(|(due, _)| *due);
            let arrivals: Vec<u64> = arrivals.into_iter().map(|(_, number)| number).collect();
            check(&arrivals)?;
        }

        /// A dense stream of which much is lost and repaired late.
        #[test]
        fn repairs_close_shorten_and_split_gaps(
            start in 120_000u64..140_000,
            lost in prop::collection::btree_set(1u64..400, 0..200),
            order in any::<u64>(),
        ) {
            let mut arrivals: Vec<u64> = (0..400).filter(|at| !lost.contains(at)).map(|at| start + at).collect();
            let mut repairs: Vec<u64> = lost.iter().map(|at| start + at).collect();
            fastrand::Rng::with_seed(order).shuffle(&mut repairs);
            arrivals.push(start + 400);
            arrivals.extend(repairs);
            check(&arrivals)?;
        }
    }

    #[test]
    fn a_window_of_long_losses_is_exact_below_its_edge() {
        // 1900 packets missing, all words of the window gone through, then one of them comes.
        let mut arrivals: Vec<u64> = (200_000..200_010).collect();
        arrivals.push(202_900);
        arrivals.push(201_500);
        arrivals.push(200_990);
        check(&arrivals).unwrap();
    }

    #[test]
    fn a_number_far_away_is_of_another_sequence_unless_it_goes_on() {
        let mut sequence = Sequence::new(10);
        assert_eq!(sequence.place(10 + MAX_DROPOUT, || false), Position::Far);
        assert_eq!(sequence.place(10u16.wrapping_sub(MAX_MISORDER + 1), || false), Position::Far);
        let ahead = Position::Ahead { number: ORIGIN + 10 + 20_000, missing: 19_999 };
        assert_eq!(sequence.place(20_010, || true), ahead);
        assert_eq!((sequence.loss().lost(), sequence.loss().gaps), (19_999, 1));
    }

    #[test]
    fn a_repair_counts_once_and_never_before_the_first() {
        let mut sequence = Sequence::new(5);
        sequence.place(8, || true);
        assert_eq!(sequence.repair(7), Some(ORIGIN + 7));
        assert_eq!(sequence.repair(7), None);
        assert_eq!(sequence.repair(4), None);
        assert_eq!(sequence.repair(9), None);
        assert_eq!((sequence.loss().lost(), sequence.loss().gaps), (1, 1));
    }
}
