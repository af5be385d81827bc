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
    /// It had left by this moment.
    Left(Moment),
    /// It lies in the socket.
    Waits,
    /// The socket was not asked.
    Unknown,
}

/// What a socket was given, and what it said of it.
#[derive(Debug, Default)]
pub(crate) struct Departures {
    /// Bytes that it has taken.
    given: u64,
    /// Bytes of them that had left by a moment. Both grow.
    left: VecDeque<(u64, Moment)>,
    /// When it was asked last, and the bytes that it had taken by then.
    asked: Option<(Moment, u64)>,
}

impl Departures {
    /// The socket has taken a datagram; returns its position, which is never 0.
    pub(crate) fn give(&mut self, bytes: usize) -> u64 {
        self.given += bytes as u64;
        self.given
    }

    /// Whether it is time to ask again.
    pub(crate) fn asks(&self, now: Moment) -> bool {
        self.asked.is_none_or(|(at, _)| at + ASKED_EVERY <= now)
    }

    /// The socket said what it still holds: no less than the bytes of datagrams, for the kernel counts what it needs beside them.
    pub(crate) fn answer(&mut self, held: u64, now: Moment, keep_for: Duration) {
        let before = self.left.back().map_or(0, |(left, _)| *left);
        let left = self.given.saturating_sub(held).max(before);
        self.asked = Some((now, self.given));
        if left == before {
            return;
        }
        // One between two that are close to each other tells little: what it says is said of a little later.
        if self.left.len() >= 2 && now.since(self.left[self.left.len() - 2].1) < keep_for / 16 {
            self.left.pop_back();
        }
        if self.left.len() >= MOST_ANSWERS {
            self.left.pop_front();
        }
        self.left.push_back((left, now));
    }

    /// Whether something lies in the socket, as far as that is known.
    pub(crate) fn holds(&self, now: Moment) -> bool {
        let left = self.left.back().map_or(0, |(left, _)| *left);
        self.asked.is_some_and(|(at, given)| now.since(at) <= FRESH && left < given)
    }

    /// What is known of the datagram at this position.
    pub(crate) fn of(&self, position: u64, now: Moment) -> Departure {
        let next = self.left.partition_point(|(left, _)| *left < position);
        match self.left.get(next) {
            Some((_, at)) => Departure::Left(*at),
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
        assert_eq!(found, [Departure::Left(at(0)), Departure::Waits, Departure::Waits]);
        departures.answer(50, at(200), KEPT);
        let found = [first, second, third].map(|position| departures.of(position, at(200)));
        assert_eq!(found, [Departure::Left(at(0)), Departure::Left(at(200)), Departure::Waits]);
        assert!(departures.holds(at(200)));
        // What was said long ago is not known any more.
        assert_eq!(departures.of(third, at(500)), Departure::Unknown);
        departures.answer(0, at(600), KEPT);
        assert!(!departures.holds(at(600)));
        assert_eq!(departures.of(third, at(600)), Departure::Left(at(600)));
    }

    #[test]
    fn it_is_asked_every_50_ms_and_keeps_a_few_answers_of_which_none_makes_a_departure_earlier() {
        let mut departures = Departures::default();
        assert!(departures.asks(at(0)));
        let mut given = Vec::new();
        for millis in 0..10_000 {
            given.push((departures.give(1_000), millis));
            if departures.asks(at(millis)) {
                // A hundred datagrams wait: each for 100 ms.
                departures.answer(100_000, at(millis), KEPT);
                assert!(!departures.asks(at(millis + 49)) && departures.asks(at(millis + 50)));
            }
        }
        assert!(departures.left.len() <= MOST_ANSWERS, "{}", departures.left.len());
        for (position, given) in &given[8_500..9_800] {
            let Departure::Left(left) = departures.of(*position, at(10_000)) else { panic!("it has left") };
            let waited = left.since(at(*given)).as_millis();
            assert!((100..=100 + 50 + 125).contains(&waited), "{waited} ms");
        }
    }

    #[test]
    fn more_that_is_held_than_was_given_is_nothing_that_has_left() {
        let mut departures = Departures::default();
        let position = departures.give(100);
        departures.answer(2_304, at(0), KEPT);
        assert_eq!(departures.of(position, at(0)), Departure::Waits);
    }
}
