//! When datagrams left this side's socket: before a slow way a socket holds seconds of them, and what lies there has not come as far as
//! the peer's fault. Knows positions in all that the socket was given, and moments; no packet.

use std::collections::VecDeque;
use std::time::Duration;
use weir_metrics::Moment;

/// What the socket held longer ago is no news: it is asked every 50 ms while something is not acknowledged ([`ASKED_EVERY`]).
const FRESH: Duration = Duration::from_millis(250);
/// A system call in this time at the most.
const ASKED_EVERY: Duration = Duration::from_millis(50);
/// Answers that are kept. They are a sixteenth of the time apart for which packets are kept.
const MOST_ANSWERS: usize = 32;

/// What is known of one datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Departure {
    /// It has left; not before this moment, when the socket still held it, as far as it was asked.
    Left(Option<Moment>),
    /// It lies in the socket.
    Waits,
    /// The socket was not asked.
    Unknown,
}

#[derive(Clone, Copy, Debug)]
struct LeftBytes {
    bytes: u64,
    by: Moment,
    before: Option<Moment>,
}

/// What a socket was given, and what it said of it.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    /// Bytes that it has taken.
    given: u64,
    /// Bytes of them that had left by a moment, and when it was asked before: what lies between this and the entry before it had not left
    /// then. All of them grow.
    left: VecDeque<LeftBytes>,
    /// When it was asked last, and the bytes that it had taken by then.
    asked: Option<(Moment, u64)>,
}

impl Departures {
    /// The socket has taken a datagram; returns its position, which is never 0.
    pub(crate) fn give(&mut self, bytes: usize) -> u64 {
        self.given += bytes as u64;
        self.given
    }

    /// The socket has taken this many bytes in all, those of other connections that share it included: what it holds is of all of them, and
    /// leaves in one order.
    pub(crate) fn given_by_all(&mut self, bytes: u64) {
        self.given = self.given.max(bytes);
    }

    /// Whether it is time to ask again.
    pub(crate) fn asks(&self, now: Moment) -> bool {
        self.asked.is_none_or(|(at, _)| at + ASKED_EVERY <= now)
    }

    /// The socket said what it still holds: no less than the bytes of datagrams, for the kernel counts what it needs beside them.
    pub(crate) fn answer(&mut self, held: u64, now: Moment, keep_for: Duration) {
        let known = self.left();
        let bytes = self.given.saturating_sub(held).max(known);
        let mut before = self.asked.replace((now, self.given)).map(|(at, _)| at);
        if bytes == known {
            return;
        }
        // One between two that are close to each other tells little: what it says is said of a little later.
        if self.left.len() >= 2 && now.since(self.left[self.left.len() - 2].by) < keep_for / 16 {
            before = self.left.pop_back().and_then(|last| last.before);
        }
        if self.left.len() >= MOST_ANSWERS {
            self.left.pop_front();
        }
        self.left.push_back(LeftBytes { bytes, by: now, before });
    }

    /// Bytes that had left when it was asked last.
    fn left(&self) -> u64 {
        self.left.back().map_or(0, |last| last.bytes)
    }

    /// Whether something lies in the socket, as far as that is known.
    pub(crate) fn holds(&self, now: Moment) -> bool {
        self.asked.is_some_and(|(at, given)| now.since(at) <= FRESH && self.left() < given)
    }

    /// What is known of the datagram at this position.
    pub(crate) fn of(&self, position: u64, now: Moment) -> Departure {
        let next = self.left.partition_point(|it| it.bytes < position);
        match self.left.get(next) {
            Some(left) => Departure::Left(left.before),
            None if self.holds(now) => Departure::Waits,
            None => Departure::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Moment = Moment::from_nanos(1_000_000_000_000);
    const KEPT: Duration = Duration::from_secs(1);

    fn at(millis: u64) -> Moment {
        START + Duration::from_millis(millis)
    }

    #[test]
    fn what_the_socket_does_not_hold_any_more_has_left_first_in_first_out() {
        let mut departures = Departures::default();
        let [first, second, third] = [100, 100, 100].map(|bytes| departures.give(bytes));
        assert_eq!((first, departures.of(first, at(0))), (100, Departure::Unknown));
        departures.answer(200, at(0), KEPT);
        let found = [first, second, third].map(|position| departures.of(position, at(100)));
        assert_eq!(found, [Departure::Left(None), Departure::Waits, Departure::Waits]);
        departures.answer(50, at(200), KEPT);
        let found = [first, second, third].map(|position| departures.of(position, at(200)));
        assert_eq!(found, [Departure::Left(None), Departure::Left(Some(at(0))), Departure::Waits]);
        assert!(departures.holds(at(200)));
        // What was said long ago is not known any more.
        assert_eq!(departures.of(third, at(500)), Departure::Unknown);
        departures.answer(0, at(600), KEPT);
        assert!(!departures.holds(at(600)));
        assert_eq!(departures.of(third, at(600)), Departure::Left(Some(at(200))));
    }

    #[test]
    fn it_is_asked_every_50_ms_and_keeps_a_few_answers_of_which_none_makes_a_departure_later() {
        let mut departures = Departures::default();
        assert!(departures.asks(at(0)));
        let mut given = Vec::new();
        for millis in 0..10_000 {
            given.push((departures.give(1_000), millis));
            if departures.asks(at(millis)) {
                // A thousand datagrams wait: each for a second.
                departures.answer(1_000_000, at(millis), KEPT);
                assert!(!departures.asks(at(millis + 49)) && departures.asks(at(millis + 50)));
            }
        }
        assert!(departures.left.len() <= MOST_ANSWERS, "{}", departures.left.len());
        for (position, given) in &given[8_000..8_900] {
            let Departure::Left(Some(left)) = departures.of(*position, at(10_000)) else {
                panic!("it has left")
            };
            let waited = left.since(at(*given)).as_millis();
            assert!((1_000 - 50 - 125..=1_000).contains(&waited), "{waited} ms");
        }
    }

    #[test]
    fn what_others_give_to_the_same_socket_leaves_in_one_order_with_ones_own() {
        let mut departures = Departures::default();
        departures.given_by_all(10_000);
        let first = departures.give(100);
        // Another connection has 5,000 bytes behind it, and the socket holds 5,000: the first has left.
        departures.given_by_all(15_100);
        departures.answer(5_000, at(0), KEPT);
        assert_eq!((first, departures.of(first, at(0))), (10_100, Departure::Left(None)));
        departures.given_by_all(40_000);
        let second = departures.give(100);
        departures.given_by_all(50_000);
        departures.answer(9_900, at(100), KEPT);
        assert_eq!(departures.of(second, at(100)), Departure::Left(Some(at(0))));
        departures.given_by_all(60_000);
        let third = departures.give(100);
        departures.answer(100, at(200), KEPT);
        assert_eq!(departures.of(third, at(200)), Departure::Waits);
    }

    #[test]
    fn more_that_is_held_than_was_given_is_nothing_that_has_left() {
        let mut departures = Departures::default();
        let position = departures.give(100);
        departures.answer(2_304, at(0), KEPT);
        assert_eq!(departures.of(position, at(0)), Departure::Waits);
    }
}
