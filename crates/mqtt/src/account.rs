//! Which messages have come, by their marks, publisher by publisher: exact, however far apart and in whatever order.

use std::collections::{HashMap, VecDeque};

/// Gaps that are kept of one publisher. What lies in older ones is taken for lost.
const GAPS_KEPT: usize = 65_536;

/// Publishers that are followed.
const PUBLISHERS_KEPT: usize = 65_536;

/// What the arrival of a message revealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is the next one, or later ones have been left out; so many are missing before it.
    Ahead {
        /// Messages that should have come before.
        missing: u64,
    },
    /// It was missing, and a later one came before it.
    Late,
    /// It came before, or had been given up.
    Again,
}

/// All publishers that were heard.
#[derive(Debug, Default)]
pub struct Account {
    places: HashMap<u64, usize>,
    tracks: Vec<Track>,
    /// The publisher of the last message, and its place.
    last: Option<(u64, usize)>,
}

/// The messages of one publisher.
#[derive(Debug)]
struct Track {
    /// One above the highest number that came.
    next: u64,
    /// Numbers below it that have not come: ranges in order, ends not included.
    gaps: VecDeque<(u64, u64)>,
}

impl Account {
    /// A message came. `first` is the number from which its publisher's messages should have come, if it is the first
    /// of them that does. `None` if there are more publishers than can be followed.
    #[inline]
    pub fn take(&mut self, publisher: u64, number: u64, first: impl FnOnce() -> u64) -> Option<Arrival> {
        let place = match self.last {
            Some((last, place)) if last == publisher => place,
            _ => self.place(publisher, first)?,
        };
        Some(self.tracks[place].take(number))
    }

    /// How many publishers were heard.
    pub fn publishers(&self) -> usize {
        self.tracks.len()
    }

    fn place(&mut self, publisher: u64, first: impl FnOnce() -> u64) -> Option<usize> {
        let known = self.places.get(&publisher).copied();
        if known.is_none() && self.tracks.len() >= PUBLISHERS_KEPT {
            return None;
        }
        let place = known.unwrap_or_else(|| {
            self.tracks.push(Track { next: first(), gaps: VecDeque::new() });
            self.places.insert(publisher, self.tracks.len() - 1);
            self.tracks.len() - 1
        });
        self.last = Some((publisher, place));
        Some(place)
    }
}

impl Track {
    #[inline]
    fn take(&mut self, number: u64) -> Arrival {
        if number < self.next {
            return self.fill(number);
        }
        let missing = number - self.next;
        if missing > 0 {
            self.gaps.push_back((self.next, number));
            if self.gaps.len() > GAPS_KEPT {
                self.gaps.pop_front();
            }
        }
        self.next = number.saturating_add(1);
        Arrival::Ahead { missing }
    }

    #[cold]
    fn fill(&mut self, number: u64) -> Arrival {
        let position = self.gaps.partition_point(|(_, end)| *end <= number);
        let Some((start, end)) = self.gaps.get(position).copied().filter(|(start, _)| *start <= number)
        else {
            return Arrival::Again;
        };
        match (start == number, end == number + 1) {
            (true, true) => {
                self.gaps.remove(position);
            }
            (true, false) => self.gaps[position].0 = number + 1,
            (false, true) => self.gaps[position].1 = number,
            (false, false) => {
                self.gaps[position].1 = number;
                self.gaps.insert(position + 1, (number + 1, end));
            }
        }
        Arrival::Late
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn follow(numbers: impl IntoIterator<Item = u64>) -> (u64, u64, u64) {
        let mut account = Account::default();
        let (mut missing, mut late, mut again) = (0, 0, 0);
        for number in numbers {
            match account.take(7, number, || 0).unwrap() {
                Arrival::Ahead { missing: more } => missing += more,
                Arrival::Late => (missing, late) = (missing - 1, late + 1),
                Arrival::Again => again += 1,
            }
        }
        (missing, late, again)
    }

    #[test]
    fn losses_of_any_size_are_counted_message_by_message() {
        assert_eq!(follow((0..1_000).filter(|n| n % 10 != 3)), (100, 0, 0));
        assert_eq!(follow([0, 65_520, 65_519]), (65_518, 1, 0));
        assert_eq!(follow((0..100).flat_map(|n| [n, n])), (0, 0, 100));
        assert_eq!(follow([3, 2, 1, 0, 0]), (0, 3, 1));
    }

    #[test]
    fn publishers_are_told_apart_and_may_be_joined_in_the_middle() {
        let mut account = Account::default();
        assert_eq!(account.take(1, 500, || 500), Some(Arrival::Ahead { missing: 0 }));
        assert_eq!(account.take(2, 5, || 0), Some(Arrival::Ahead { missing: 5 }));
        assert_eq!(account.take(1, 502, || 0), Some(Arrival::Ahead { missing: 1 }));
        assert_eq!(account.take(2, 6, || 0), Some(Arrival::Ahead { missing: 0 }));
    }

    proptest! {
        #[test]
        fn any_order_gives_what_a_set_would(numbers in prop::collection::vec(0..200_u64, 1..300)) {
            let (missing, late, again) = follow(numbers.iter().copied());
            let set: HashSet<u64> = numbers.iter().copied().collect();
            let highest = *set.iter().max().unwrap();
            prop_assert_eq!(missing, highest + 1 - set.len() as u64);
            prop_assert_eq!(again, (numbers.len() - set.len()) as u64);
            let mut most = 0;
            let mut seen = HashSet::new();
            let behind = numbers.iter().filter(|n| {
                let fresh = seen.insert(**n);
                let behind = fresh && **n < most;
                most = most.max(**n + 1);
                behind
            });
            prop_assert_eq!(late, behind.count() as u64);
        }
    }
}
