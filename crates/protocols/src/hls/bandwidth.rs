//! How fast a viewer reads, and what it takes from that for the variant to play.

use super::variant::Variant;
use std::time::Duration;
use weir_metrics::{BitRate, Moment};

/// The link of a viewer that is narrower than the generator's: what was read is paid for with time before more is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Throttle {
    bytes_per_second: f64,
    /// When all that was read would have come.
    free_at: Moment,
}

/// What may be read at once: of a narrow link it takes this long to come.
const AT_ONCE: Duration = Duration::from_millis(50);

/// Less is not read at a time: a packet of Ethernet brings 1,448 bytes.
const LEAST_READ: usize = 4 << 10;

impl Throttle {
    pub(super) fn new(rate: BitRate, now: Moment) -> Self {
        // A viewer of a bit a second would never have its first playlist.
        Self { bytes_per_second: (rate.bps() / 8.0).max(1_000.0), free_at: now }
    }

    /// What to read at a time.
    pub(super) fn most_read(&self) -> usize {
        ((self.bytes_per_second * AT_ONCE.as_secs_f64()) as usize).max(LEAST_READ)
    }

    /// This many bytes were read. When to read again, if not now.
    pub(super) fn take(&mut self, bytes: usize, now: Moment) -> Option<Moment> {
        let span = Duration::from_secs_f64(bytes as f64 / self.bytes_per_second);
        self.free_at = self.free_at.max(now) + span;
        self.due(now)
    }

    /// When to read again, if not now.
    pub(super) fn due(&self, now: Moment) -> Option<Moment> {
        (self.free_at > now).then_some(self.free_at)
    }
}

/// The throughput of a viewer, as hls.js estimates it: two averages that forget at other speeds, of which the lower counts.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Throughput {
    fast: Average,
    slow: Average,
}

#[derive(Clone, Copy, Debug, Default)]
struct Average {
    sum: f64,
    weight: f64,
}

/// After how many seconds of loading half of a value is forgotten.
const HALF_LIVES: [f64; 2] = [3.0, 9.0];

/// What of the throughput a variant may have: to stay, and to change to one with more.
const TO_STAY: f64 = 0.95;
const TO_RISE: f64 = 0.7;

/// A download that takes less says more of the machine than of the link.
const SHORTEST: Duration = Duration::from_millis(1);

impl Average {
    fn add(&mut self, value: f64, weight: f64, half_life: f64) {
        let kept = 0.5_f64.powf(weight / half_life);
        self.sum = self.sum * kept + value * (1.0 - kept);
        self.weight = self.weight * kept + (1.0 - kept);
    }

    fn value(self) -> Option<f64> {
        (self.weight > 0.0).then(|| self.sum / self.weight)
    }
}

impl Throughput {
    /// This many bytes came in this time.
    pub(super) fn add(&mut self, bytes: u64, took: Duration) {
        let seconds = took.max(SHORTEST).as_secs_f64();
        let rate = bytes as f64 * 8.0 / seconds;
        self.fast.add(rate, seconds, HALF_LIVES[0]);
        self.slow.add(rate, seconds, HALF_LIVES[1]);
    }

    fn bits_per_second(&self) -> Option<f64> {
        self.fast.value().zip(self.slow.value()).map(|(fast, slow)| fast.min(slow))
    }

    /// Which of these variants to play next, after the one at `current`.
    pub(super) fn choose(&self, variants: &[Variant], current: usize) -> usize {
        let (Some(rate), Some(now)) = (self.bits_per_second(), variants.get(current)) else { return current };
        let may_play = |it: &Variant| {
            let share = if it.bandwidth > now.bandwidth { TO_RISE } else { TO_STAY };
            it.bandwidth as f64 <= rate * share
        };
        let all = || variants.iter().enumerate();
        if may_play(now) && all().all(|(_, it)| it.bandwidth <= now.bandwidth || !may_play(it)) {
            return current;
        }
        let highest = all().filter(|(_, it)| may_play(it)).max_by_key(|(_, it)| it.bandwidth);
        let lowest = || all().min_by_key(|(_, it)| it.bandwidth);
        highest.or_else(lowest).map_or(current, |(place, _)| place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_link_brings_so_many_bytes_and_no_more() {
        let mut now = Moment::from_nanos(1_000_000_000);
        let begin = now;
        let mut throttle = Throttle::new("800kbps".parse().unwrap(), now);
        for _ in 0..100 {
            now = throttle.take(5_000, now).unwrap();
        }
        assert_eq!(now.since(begin), Duration::from_secs(5));
        // What was not used is not saved up.
        now = now + Duration::from_secs(60);
        assert_eq!(throttle.take(5_000, now).unwrap().since(now), Duration::from_millis(50));
        assert_eq!(throttle.most_read(), 5_000);
    }

    #[test]
    fn a_variant_is_played_that_the_link_can_bring() {
        let variant = |bandwidth| Variant { uri: String::new(), bandwidth, audio: None };
        let all = [variant(3_000_000), variant(500_000), variant(1_000_000)];
        let mut throughput = Throughput::default();
        assert_eq!(throughput.choose(&all, 2), 2, "nothing is known yet");
        throughput.add(250_000, Duration::from_secs(1));
        assert_eq!(throughput.choose(&all, 1), 2, "2 Mbit/s");
        assert_eq!(throughput.choose(&all, 2), 2);
        assert_eq!(throughput.choose(&all, 0), 2);
        for _ in 0..40 {
            throughput.add(65_000, Duration::from_secs(1));
        }
        assert_eq!(throughput.choose(&all, 2), 1, "520 kbit/s");
        assert_eq!(throughput.choose(&all, 1), 1, "0.95 of them are enough to stay");
        throughput.add(1, Duration::from_secs(600));
        assert_eq!(throughput.choose(&all, 0), 1, "there is none lower");
        // Faster at once, and not at the first sign.
        throughput.add(10_000_000, Duration::from_secs(1));
        assert_eq!(throughput.choose(&all, 1), 0);
    }
}
