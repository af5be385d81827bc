//! Which messages have come, by their marks, publisher by publisher: exact, however far apart and in whatever order.

use std::collections::{HashMap, VecDeque};

/// Gaps that are kept of one publisher. What lies in older ones is taken for lost.
const GAPS_KEPT: usize = 65_536;

/// Publishers that are followed.
const PUBLISHERS_KEPT: usize = 65_536;

/// What the arrival of a message revealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is the next one, or one behind a gap; how many are missing before it.
    Ahead {
        /// Messages that should have come before.
        missing: u64,
    },
    /// It was missing, and a later one came before it.
    Late,
    /// It came before, or had been given up.
    Again,
    /// It was sent before the first that should come.
    Early,
}

/// What a tracker lacks of the messages of one publisher, whose end is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unreceived {
    /// Messages behind the last that came.
    pub behind: u64,
    /// Messages that did not come and that may never have been published.
    pub excused: u64,
    /// Those of them that are behind the last that came.
    pub excused_behind: u64,
}

/// Every publisher from which a message came.
#[derive(Debug, Default)]
pub struct DeliveryTracker {
    places: HashMap<u64, usize>,
    tracks: Vec<Track>,
    /// The publisher of the last message, and its place.
    last: Option<(u64, usize)>,
}

/// The messages of one publisher.
#[derive(Debug)]
struct Track {
    /// The first number that should come.
    first: u64,
    /// One above the highest number that came.
    next: u64,
    /// Numbers below it that have not come: ranges in order, ends not included.
    gaps: VecDeque<(u64, u64)>,
    /// Whether its last message has come.
    ended: bool,
}

impl DeliveryTracker {
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

    /// The messages of a publisher should come from this number on, whether one has come or not.
    pub fn expect(&mut self, publisher: u64, first: u64) {
        let _ = self.place(publisher, || first);
    }

    /// The messages missing from a publisher that has sent those below `end`, if it is unknown whether
    /// those in `excused` should come: ranges in order, ends not included.
    pub fn unreceived(&self, publisher: u64, end: u64, excused: &[(u64, u64)]) -> Unreceived {
        let Some(place) = self.places.get(&publisher) else { return Unreceived::default() };
        self.tracks[*place].unreceived(end, excused)
    }

    /// The last message of a publisher has come.
    pub fn end(&mut self, publisher: u64) {
        if let Some(place) = self.places.get(&publisher) {
            self.tracks[*place].ended = true;
        }
    }

    /// Whether the last message of a publisher has come.
    pub fn has_ended(&self, publisher: u64) -> bool {
        self.places.get(&publisher).is_some_and(|place| self.tracks[*place].ended)
    }

    /// The publishers from which messages came or should come.
    pub fn known(&self) -> impl Iterator<Item = u64> + '_ {
        self.places.keys().copied()
    }

    /// From how many publishers a message came.
    pub fn publishers(&self) -> usize {
        self.tracks.len()
    }

    fn place(&mut self, publisher: u64, first: impl FnOnce() -> u64) -> Option<usize> {
        let known = self.places.get(&publisher).copied();
        if known.is_none() && self.tracks.len() >= PUBLISHERS_KEPT {
            return None;
        }
        let place = known.unwrap_or_else(|| {
            let first = first();
            self.tracks.push(Track { first, next: first, gaps: VecDeque::new(), ended: false });
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

    fn unreceived(&self, end: u64, excused: &[(u64, u64)]) -> Unreceived {
        let tail = (self.next, end.max(self.next));
        let gaps = self.gaps.iter().copied().chain([tail]);
        // Both are in order: each gap begins where the one before it has looked up to.
        let mut rest = excused;
        let (mut found, mut found_last) = (0, 0);
        for (start, end) in gaps {
            let skip = rest.partition_point(|(_, excused_end)| *excused_end <= start);
            rest = &rest[skip..];
            let within = rest.iter().take_while(|(excused_start, _)| *excused_start < end);
            found_last = within.map(|(from, to)| to.min(&end) - from.max(&start)).sum::<u64>();
            found += found_last;
        }
        // The tail is the last of them.
        Unreceived { behind: tail.1 - tail.0, excused: found, excused_behind: found_last }
    }

    #[cold]
    fn fill(&mut self, number: u64) -> Arrival {
        if number < self.first {
            return Arrival::Early;
        }
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
        let mut deliveries = DeliveryTracker::default();
        let (mut missing, mut late, mut again) = (0, 0, 0);
        for number in numbers {
            match deliveries.take(7, number, || 0).unwrap() {
                Arrival::Ahead { missing: more } => missing += more,
                Arrival::Late => (missing, late) = (missing - 1, late + 1),
                Arrival::Again => again += 1,
                Arrival::Early => {}
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
        let mut deliveries = DeliveryTracker::default();
        assert_eq!(deliveries.take(1, 500, || 500), Some(Arrival::Ahead { missing: 0 }));
        assert_eq!(deliveries.take(2, 5, || 0), Some(Arrival::Ahead { missing: 5 }));
        assert_eq!(deliveries.take(1, 502, || 0), Some(Arrival::Ahead { missing: 1 }));
        assert_eq!(deliveries.take(2, 6, || 0), Some(Arrival::Ahead { missing: 0 }));
    }

    #[test]
    fn what_lacks_at_the_end_is_what_did_not_come_less_what_nobody_knows_of() {
        let mut deliveries = DeliveryTracker::default();
        for number in [2, 3, 6] {
            deliveries.take(7, number, || 2);
        }
        // 4, 5 are missing before the last that came, 7 to 9 behind it.
        let unreceived = |excused: &[(u64, u64)]| deliveries.unreceived(7, 10, excused);
        assert_eq!(unreceived(&[]), Unreceived { behind: 3, ..Unreceived::default() });
        assert_eq!(
            unreceived(&[(0, 1), (5, 8), (9, 12)]),
            Unreceived { behind: 3, excused: 3, excused_behind: 2 }
        );
        assert_eq!(
            deliveries.unreceived(7, 5, &[(4, 5)]),
            Unreceived { excused: 1, ..Unreceived::default() }
        );
        assert_eq!(deliveries.unreceived(8, 5, &[]), Unreceived::default());
        // A publisher of which messages should have come, and none did.
        deliveries.expect(9, 4);
        assert_eq!(deliveries.unreceived(9, 6, &[]).behind, 2);
        assert_eq!(deliveries.take(9, 3, || 0), Some(Arrival::Early));
        assert_eq!(deliveries.take(9, 5, || 0), Some(Arrival::Ahead { missing: 1 }));
    }

    proptest! {
        #[test]
        fn what_is_excused_is_what_a_set_would_say(
            came in prop::collection::vec(0..60_u64, 1..60),
            end in 0..80_u64,
            cuts in prop::collection::btree_set(0..80_u64, 0..12),
        ) {
            let mut deliveries = DeliveryTracker::default();
            for number in &came {
                deliveries.take(7, *number, || 0);
            }
            let cuts: Vec<u64> = cuts.into_iter().collect();
            let excused: Vec<(u64, u64)> = cuts.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
            let highest = *came.iter().max().unwrap();
            let lacks = |number: &u64| !came.contains(number);
            let within = |number: &u64| excused.iter().any(|(from, to)| (from..to).contains(&number));
            let end = end.max(highest + 1);
            let found = deliveries.unreceived(7, end, &excused);
            prop_assert_eq!(found.behind, end - highest - 1);
            prop_assert_eq!(found.excused, (0..end).filter(lacks).filter(within).count() as u64);
        }

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
