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
    /// It is followed no further: it was sent before the first that should come, or while there was no subscription, or after
    /// [`DeliveryTracker::close`].
    Early,
}

/// What a tracker lacks of the messages of one publisher, whose end is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissingMessages {
    /// Messages behind the last that came, if they are followed.
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
    /// Whether no other publisher is followed.
    closed: bool,
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
    /// Numbers below it that need not come, sent while there was no subscription: the last such range, end not included.
    passed: (u64, u64),
    onward: Onward,
    /// Whether its last message has come.
    ended: bool,
}

/// What is expected of the numbers behind those that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Onward {
    /// All should come.
    All,
    /// All should come from the next one on that does.
    FromNext,
    /// They are not followed.
    None,
}

impl DeliveryTracker {
    /// One that follows no publisher.
    pub fn closed() -> Self {
        Self { closed: true, ..Self::default() }
    }

    /// A message came. `first` is the number from which its publisher's messages should have come, if it is the first
    /// of them that does. `None` if there are more publishers than can be followed.
    #[inline]
    pub fn take(&mut self, publisher: u64, number: u64, first: impl FnOnce() -> u64) -> Option<Arrival> {
        let place = match self.last {
            Some((last, place)) if last == publisher => place,
            _ if self.closed && !self.places.contains_key(&publisher) => return Some(Arrival::Early),
            _ => self.place(publisher, first)?,
        };
        Some(self.tracks[place].take(number))
    }

    /// The messages of a publisher should come from this number on, whether one has come or not, unless it is followed already.
    pub fn expect(&mut self, publisher: u64, first: u64) {
        if !self.closed {
            let _ = self.place(publisher, || first);
        }
    }

    /// The subscription is over, and what comes next comes of another: what publishers send until then need not come.
    pub fn interrupt(&mut self) {
        self.tracks.iter_mut().for_each(|track| track.onward = Onward::FromNext);
    }

    /// There is a subscription, of which the messages of a publisher should come from this number on.
    pub fn resume(&mut self, publisher: u64, first: u64) {
        self.expect(publisher, first);
        if let Some(place) = self.places.get(&publisher) {
            self.tracks[*place].resume(first);
        }
    }

    /// From now on only what is missing of those that came is followed, but for publishers of which this says that they are at
    /// their end.
    pub fn close(&mut self, mut is_at_end: impl FnMut(u64) -> bool) {
        self.closed = true;
        for (publisher, place) in &self.places {
            if !is_at_end(*publisher) {
                self.tracks[*place].onward = Onward::None;
            }
        }
    }

    /// The messages missing from a publisher that has sent those below `end`, if it is unknown whether
    /// those in `excused` should come: ranges in order, ends not included.
    pub fn unreceived(&self, publisher: u64, end: u64, excused: &[(u64, u64)]) -> MissingMessages {
        let Some(place) = self.places.get(&publisher) else { return MissingMessages::default() };
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
            self.tracks.push(Track::new(first));
            self.places.insert(publisher, self.tracks.len() - 1);
            self.tracks.len() - 1
        });
        self.last = Some((publisher, place));
        Some(place)
    }
}

impl Track {
    fn new(first: u64) -> Self {
        let (gaps, passed, onward) = (VecDeque::new(), (first, first), Onward::All);
        Self { first, next: first, gaps, passed, onward, ended: false }
    }

    #[inline]
    fn take(&mut self, number: u64) -> Arrival {
        if number < self.next {
            return self.fill(number);
        }
        match self.onward {
            Onward::All => {}
            Onward::FromNext => self.resume(number),
            Onward::None => return Arrival::Early,
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

    /// All should come from this number on, if that is not below those that came.
    #[cold]
    fn resume(&mut self, first: u64) {
        if self.onward == Onward::FromNext {
            let first = first.max(self.next);
            (self.passed, self.next, self.onward) = ((self.next, first), first, Onward::All);
        }
    }

    fn unreceived(&self, end: u64, excused: &[(u64, u64)]) -> MissingMessages {
        let end = if self.onward == Onward::All { end.max(self.next) } else { self.next };
        let tail = (self.next, end);
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
        MissingMessages { behind: tail.1 - tail.0, excused: found, excused_behind: found_last }
    }

    #[cold]
    fn fill(&mut self, number: u64) -> Arrival {
        if number < self.first || (self.passed.0..self.passed.1).contains(&number) {
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
        assert_eq!(unreceived(&[]), MissingMessages { behind: 3, ..MissingMessages::default() });
        assert_eq!(
            unreceived(&[(0, 1), (5, 8), (9, 12)]),
            MissingMessages { behind: 3, excused: 3, excused_behind: 2 }
        );
        assert_eq!(
            deliveries.unreceived(7, 5, &[(4, 5)]),
            MissingMessages { excused: 1, ..MissingMessages::default() }
        );
        assert_eq!(deliveries.unreceived(8, 5, &[]), MissingMessages::default());
        // A publisher of which messages should have come, and none did.
        deliveries.expect(9, 4);
        assert_eq!(deliveries.unreceived(9, 6, &[]).behind, 2);
        assert_eq!(deliveries.take(9, 3, || 0), Some(Arrival::Early));
        assert_eq!(deliveries.take(9, 5, || 0), Some(Arrival::Ahead { missing: 1 }));
    }

    #[test]
    fn what_is_sent_while_there_is_no_subscription_need_not_come() {
        let mut deliveries = DeliveryTracker::default();
        for number in [0, 1, 3] {
            deliveries.take(7, number, || 0);
        }
        deliveries.take(8, 4, || 4);
        deliveries.interrupt();
        assert_eq!(deliveries.unreceived(7, 50, &[]), MissingMessages::default(), "there is no subscription");
        // Of one it is known from where on; of the other it shows.
        deliveries.resume(8, 20);
        assert_eq!(deliveries.take(8, 21, || 0), Some(Arrival::Ahead { missing: 1 }));
        assert_eq!(deliveries.take(7, 30, || 0), Some(Arrival::Ahead { missing: 0 }));
        assert_eq!(deliveries.take(7, 32, || 0), Some(Arrival::Ahead { missing: 1 }));
        for (number, arrival) in [(29, Arrival::Early), (2, Arrival::Late), (1, Arrival::Again)] {
            assert_eq!(deliveries.take(7, number, || 0), Some(arrival), "{number}");
        }
        assert_eq!(deliveries.unreceived(7, 35, &[]).behind, 2);
    }

    #[test]
    fn a_closed_tracker_follows_what_is_missing_and_nothing_new() {
        let mut deliveries = DeliveryTracker::default();
        for publisher in [7, 8] {
            for number in [0, 2] {
                deliveries.take(publisher, number, || 0);
            }
        }
        deliveries.close(|publisher| publisher == 8);
        deliveries.expect(9, 0);
        for (publisher, number, arrival) in [
            (7, 1, Arrival::Late),
            (7, 5, Arrival::Early),
            (8, 4, Arrival::Ahead { missing: 1 }),
            (9, 3, Arrival::Early),
        ] {
            assert_eq!(deliveries.take(publisher, number, || 0), Some(arrival), "{publisher}, {number}");
        }
        let behind = [7, 8, 9].map(|publisher| deliveries.unreceived(publisher, 10, &[]).behind);
        assert_eq!((behind, deliveries.publishers()), ([0, 5, 0], 2));
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
