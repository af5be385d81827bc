//! Which messages are there, for a store that has no index: ranges of sequence numbers by publisher.

use std::collections::{BTreeMap, HashMap};

/// A set of publishers and sequence numbers. Numbers that follow each other cost nothing.
#[derive(Debug, Default)]
pub(crate) struct PublisherNumbers(HashMap<u64, BTreeMap<u64, u64>>);

impl PublisherNumbers {
    /// Puts one in; `false` if it was there.
    pub(crate) fn insert(&mut self, publisher: u64, number: u64) -> bool {
        // First numbers of ranges, and their last.
        let ranges = self.0.entry(publisher).or_default();
        let before = ranges.range(..=number).next_back().map(|(first, last)| (*first, *last));
        if before.is_some_and(|(_, last)| number <= last) {
            return false;
        }
        let behind = number.checked_add(1).and_then(|next| ranges.remove(&next));
        let last = behind.unwrap_or(number);
        match before {
            Some((first, end)) if end.checked_add(1) == Some(number) => ranges.insert(first, last),
            _ => ranges.insert(number, last),
        };
        true
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    proptest! {
        #[test]
        fn it_is_a_set(numbers in prop::collection::vec((0_u64..3, prop_oneof![0_u64..40, u64::MAX - 3..=u64::MAX]), 0..200)) {
            let (mut seen, mut truth) = (PublisherNumbers::default(), HashSet::new());
            for (publisher, number) in numbers {
                prop_assert_eq!(seen.insert(publisher, number), truth.insert((publisher, number)));
            }
        }
    }

    #[test]
    fn numbers_in_a_row_are_one_range() {
        let mut seen = PublisherNumbers::default();
        for number in (0..1_000).step_by(2).chain((1..1_000).step_by(2)) {
            assert!(seen.insert(7, number));
        }
        assert_eq!(seen.0[&7].len(), 1);
    }
}
