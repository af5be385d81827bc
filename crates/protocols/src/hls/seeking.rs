//! When viewers of a recording go to another place, and where that is. A function of times and numbers; knows no link.

use std::str::FromStr;
use std::time::Duration;
use weir_metrics::{Moment, parse_duration};

/// The shortest time from one seek to the next: players need a picture of each place.
const SHORTEST: Duration = Duration::from_millis(500);

/// How often viewers seek: `every:30s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeekInterval(Duration);

impl FromStr for SeekInterval {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let interval = text.strip_prefix("every:").and_then(|it| parse_duration(it).ok());
        interval.filter(|it| *it >= SHORTEST).map(Self).ok_or_else(|| {
            format!(
                "{text} is no interval of seeks; write for example every:30s, and no less than every:500ms"
            )
        })
    }
}

/// The seeks of one viewer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seeking {
    every: Duration,
    /// When it seeks next; `None` before it plays.
    due: Option<Moment>,
    /// Since when it waits for the picture at the place that it went to.
    since: Option<Moment>,
    random: u64,
}

impl Seeking {
    /// Those of the viewer with this number: each has places of its own, the same in each run.
    pub(super) fn new(interval: SeekInterval, number: u64) -> Self {
        Self { every: interval.0, due: None, since: None, random: number.wrapping_mul(0x9E37_79B9_7F4A_7C15) }
    }

    pub(super) fn due(&self) -> Option<Moment> {
        self.due
    }

    /// It shows pictures. How long it has waited for them since it went to another place, if it has.
    pub(super) fn plays(&mut self, now: Moment) -> Option<Duration> {
        self.due.get_or_insert(now + self.every);
        self.since.take().map(|since| now.since(since))
    }

    /// It goes to another place of a recording that lasts so long: one from which on there is something to show until the next seek,
    /// if the recording is that long.
    pub(super) fn go(&mut self, whole: Duration, now: Moment) -> Duration {
        (self.due, self.since) = (Some(now + self.every), Some(now));
        let last = whole.saturating_sub(self.every).max(whole / 2);
        last.mul_f64(self.next_share())
    }

    /// It cannot go anywhere just now.
    pub(super) fn put_off(&mut self, now: Moment) {
        self.due = Some(now + SHORTEST / 5);
    }

    /// A number from 0 to 1, by Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators" (SplitMix64).
    fn next_share(&mut self) -> f64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ mixed >> 31) as f64 / u64::MAX as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_read() {
        assert_eq!("every:30s".parse(), Ok(SeekInterval(Duration::from_secs(30))));
        for none in ["30s", "every:", "every:x", "every:499ms", "at:3s"] {
            assert!(none.parse::<SeekInterval>().is_err(), "{none}");
        }
    }

    #[test]
    fn places_are_all_over_a_recording_and_leave_something_to_show() {
        let now = Moment::from_nanos(1_000_000_000);
        let (interval, whole) = (SeekInterval(Duration::from_secs(30)), Duration::from_secs(130));
        let places = |number| {
            let mut seeking = Seeking::new(interval, number);
            std::array::from_fn::<_, 200, _>(|_| seeking.go(whole, now).as_secs())
        };
        let first = places(1);
        assert!(first.iter().all(|place| *place <= 100));
        assert!((0..10).all(|tenth| first.iter().any(|place| place / 10 == tenth)));
        assert_ne!(first, places(2));
        assert_eq!(first, places(1));
        let mut seeking = Seeking::new(interval, 1);
        assert!(seeking.go(Duration::from_secs(20), now) <= Duration::from_secs(10), "a short one");
    }

    #[test]
    fn the_wait_for_a_picture_counts_from_the_seek() {
        let at = |seconds: u64| Moment::from_nanos(seconds * 1_000_000_000);
        let mut seeking = Seeking::new(SeekInterval(Duration::from_secs(30)), 1);
        assert_eq!((seeking.due(), seeking.plays(at(1))), (None, None));
        assert_eq!(seeking.due(), Some(at(31)));
        seeking.go(Duration::from_secs(60), at(31));
        assert_eq!((seeking.plays(at(33)), seeking.plays(at(34))), (Some(Duration::from_secs(2)), None));
        assert_eq!(seeking.due(), Some(at(61)));
    }
}
