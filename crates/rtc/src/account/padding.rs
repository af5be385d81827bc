//! The numbers of packets that are padding alone: senders probe for bandwidth with them, usually right behind a frame and
//! with its time stamp (libwebrtc). They belong to no frame, and between two frames they are no gap.

/// How many numbers are remembered: as many as may be late ([`super::sequence`]).
const WINDOW: u64 = 2048;
const WORDS: usize = (WINDOW / 64) as usize;

/// Numbers of one sequence.
#[derive(Clone, Debug)]
pub(super) struct Padding {
    /// One bit a number, around.
    bits: [u64; WORDS],
    /// The lowest number above the newest word: a multiple of 64.
    end: u64,
}

impl Padding {
    /// The first number.
    pub(super) fn new(number: u64) -> Self {
        let mut padding = Self { bits: [0; WORDS], end: (number & !63) + 64 };
        padding.mark(number);
        padding
    }

    /// A packet with this number is padding.
    pub(super) fn mark(&mut self, number: u64) {
        if number + WINDOW < self.end {
            return;
        }
        let end = (number & !63) + 64;
        // Words that lie between are of numbers that have not come.
        for word in (self.end.max(end.saturating_sub(WINDOW))..end).step_by(64) {
            self.bits[(word / 64) as usize % WORDS] = 0;
        }
        self.end = self.end.max(end);
        self.bits[(number / 64) as usize % WORDS] |= 1 << (number % 64);
    }

    /// How many of the numbers from `from` up to, and without, `to` are padding.
    pub(super) fn count(&self, from: u64, to: u64) -> u64 {
        let (mut at, to) = (from.max(self.end.saturating_sub(WINDOW)), to.min(self.end));
        let mut count = 0;
        while at < to {
            let next = ((at | 63) + 1).min(to);
            let length = next - at;
            let mask = if length == 64 { u64::MAX } else { (1 << length) - 1 };
            let word = self.bits[(at / 64) as usize % WORDS] >> (at % 64);
            count += u64::from((word & mask).count_ones());
            at = next;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn numbers_are_counted_as_a_set_of_them_would(
            steps in prop::collection::vec((0u64..90, 0u64..400), 1..120),
            ranges in prop::collection::vec((0u64..2_000, 0u64..700), 1..20),
        ) {
            let (mut newest, mut set) = (70_000, BTreeSet::new());
            let mut padding: Option<Padding> = None;
            for (step, late) in steps {
                newest += step;
                let number = newest - late;
                set.insert(number);
                match &mut padding {
                    Some(padding) => padding.mark(number),
                    None => padding = Some(Padding::new(number)),
                }
            }
            let padding = padding.unwrap();
            for (behind, length) in ranges {
                let from = (newest - behind).max(padding.end.saturating_sub(WINDOW));
                let to = from + length;
                prop_assert_eq!(padding.count(from, to), set.range(from..to).count() as u64);
            }
        }
    }
}
