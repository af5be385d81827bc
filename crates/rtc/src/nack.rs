//! Which lost packets to ask for again, and when (RFC 4585 section 6.2.1). What is remembered is bounded.

use std::ops::{Range, RangeInclusive};
use std::time::Duration;

use weir_metrics::Moment;

/// How to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NackSettings {
    /// How often a packet is asked for; 0: never.
    pub tries: u8,
    /// How long a packet may be missing before it is asked for: it may be out of order only.
    pub patience: Duration,
    /// How long to wait before asking again: a round trip, and some.
    pub interval: Duration,
    /// How many packets may be missing at a time. More than these are not asked for: a keyframe is cheaper.
    pub pending: usize,
    /// How long a packet is remembered after it was first missing.
    pub lifetime: Duration,
}

impl Default for NackSettings {
    /// What browsers do, about: ten times at most, for two seconds at most.
    fn default() -> Self {
        Self {
            tries: 10,
            patience: Duration::from_millis(10),
            interval: Duration::from_millis(100),
            pending: 512,
            lifetime: Duration::from_secs(2),
        }
    }
}

impl NackSettings {
    /// Nothing is asked for.
    pub const OFF: Self = Self {
        tries: 0,
        patience: Duration::ZERO,
        interval: Duration::ZERO,
        pending: 0,
        lifetime: Duration::ZERO,
    };
}

/// The missing packets of one stream.
#[derive(Clone, Debug)]
pub struct Nack {
    settings: NackSettings,
    /// By number.
    missing: Vec<Missing>,
    given_up: u64,
    asked: u64,
}

#[derive(Clone, Copy, Debug)]
struct Missing {
    number: u64,
    tries: u8,
    /// When to ask, or to forget once all tries are used up.
    due: Moment,
    forgotten_at: Moment,
}

impl Nack {
    /// Nothing is missing.
    pub fn new(settings: NackSettings) -> Self {
        Self { settings, missing: Vec::new(), given_up: 0, asked: 0 }
    }

    /// These numbers, above all before, are missing.
    pub(crate) fn missing(&mut self, numbers: Range<u64>, now: Moment) {
        if self.settings.tries == 0 {
            return;
        }
        let count = numbers.end - numbers.start;
        if count + self.missing.len() as u64 > self.settings.pending as u64 {
            self.given_up += count + self.missing.len() as u64;
            self.missing.clear();
            return;
        }
        let (due, forgotten_at) = (now + self.settings.patience, now + self.settings.lifetime);
        self.missing.extend(numbers.map(|number| Missing { number, tries: 0, due, forgotten_at }));
    }

    /// A missing number came; whether it had been asked for.
    pub(crate) fn arrived(&mut self, number: u64) -> bool {
        match self.missing.binary_search_by_key(&number, |missing| missing.number) {
            Ok(at) => self.missing.remove(at).tries > 0,
            Err(_) => false,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.missing.clear();
    }

    /// Writes the numbers to ask for now into `numbers`, which is emptied first; they rise.
    pub fn poll(&mut self, now: Moment, numbers: &mut Vec<u16>) {
        numbers.clear();
        let settings = self.settings;
        let mut given_up = 0;
        self.missing.retain_mut(|missing| {
            if missing.due > now {
                return true;
            }
            if missing.forgotten_at <= now {
                given_up += 1;
                return false;
            }
            missing.tries += 1;
            numbers.push(missing.number as u16);
            let again =
                if missing.tries < settings.tries { now + settings.interval } else { missing.forgotten_at };
            missing.due = again.min(missing.forgotten_at);
            true
        });
        self.given_up += given_up;
        self.asked += numbers.len() as u64;
    }

    /// When to call [`Self::poll`]; `None` while nothing is missing.
    pub fn poll_timeout(&self) -> Option<Moment> {
        self.missing.iter().map(|missing| missing.due).min()
    }

    /// How many of these numbers may still come.
    pub fn pending_in(&self, numbers: RangeInclusive<u64>) -> u64 {
        self.missing.iter().filter(|missing| numbers.contains(&missing.number)).count() as u64
    }

    /// Whether anything is ever asked for.
    pub fn is_on(&self) -> bool {
        self.settings.tries > 0
    }

    /// Packets that will not be asked for any more, and did not come: a keyframe must repair what they break.
    pub fn given_up(&self) -> u64 {
        self.given_up
    }

    /// How often packets were asked for, each time counted.
    pub fn asked(&self) -> u64 {
        self.asked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    fn poll(nack: &mut Nack, millis: u64) -> Vec<u16> {
        let mut numbers = vec![9];
        nack.poll(at(millis), &mut numbers);
        numbers
    }

    #[test]
    fn a_packet_is_asked_for_so_often_and_then_given_up() {
        let settings = NackSettings { tries: 2, ..NackSettings::default() };
        let mut nack = Nack::new(settings);
        nack.missing(70_000..70_002, at(0));
        assert_eq!(nack.poll_timeout(), Some(at(10)));
        assert!(poll(&mut nack, 9).is_empty());
        assert_eq!(poll(&mut nack, 10), [4464, 4465]);
        assert!(nack.arrived(70_001));
        assert_eq!(poll(&mut nack, 110), [4464]);
        assert_eq!(nack.poll_timeout(), Some(at(2000)));
        assert!(poll(&mut nack, 1999).is_empty());
        assert!(poll(&mut nack, 2000).is_empty());
        assert_eq!((nack.poll_timeout(), nack.given_up(), nack.asked()), (None, 1, 3));
    }

    #[test]
    fn what_was_only_out_of_order_was_not_asked_for() {
        let mut nack = Nack::new(NackSettings::default());
        nack.missing(5..6, at(0));
        assert!(!nack.arrived(5));
        assert!(!nack.arrived(5));
        assert!(poll(&mut nack, 50).is_empty());
    }

    #[test]
    fn too_many_are_given_up_at_once() {
        let mut nack = Nack::new(NackSettings { pending: 10, ..NackSettings::default() });
        nack.missing(0..8, at(0));
        nack.missing(9..12, at(0));
        assert_eq!((nack.given_up(), nack.poll_timeout()), (11, None));
    }

    #[test]
    fn off_asks_for_nothing_and_gives_nothing_up() {
        let mut nack = Nack::new(NackSettings::OFF);
        nack.missing(0..8, at(0));
        assert_eq!((nack.given_up(), nack.poll_timeout()), (0, None));
    }
}
