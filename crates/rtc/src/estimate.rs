//! What a receiver tells its sender that it can take, where the sender asks for that (REMB): the rate of what came, lowered when the link
//! was over-used and raised by degrees otherwise, as the receivers of draft-ietf-rmcat-gcc-02 do. Over-use is for the caller to see.

use weir_metrics::Moment;

/// What is kept of the rate that came when the link was over-used: β of section 5.5, where it "SHOULD be set to ... 0.85".
const DECREASE: f64 = 0.85;

/// By what the estimate grows in a second far from where the link was over-used last: η of section 5.5, "at most 8% per second".
const INCREASE: f64 = 1.08;

/// By how many bits a second it grows in a second near to that: there, section 5.5 adds half of a packet in each response time, here 1,200 bytes
/// and 200 ms.
const ADDITIVE_INCREASE: f64 = 0.5 * 1_200.0 * 8.0 / 0.2;

/// What is near, as parts of the rate at which the link was over-used.
const NEAR: std::ops::RangeInclusive<f64> = 0.5..=1.5;

/// "Since the system depends on over-using the channel to verify the current available bandwidth estimate ... A_hat(i) < 1.5 * R_hat(i)".
const MOST_OF_RATE: f64 = 1.5;

/// Less is of use for no picture: a sender that is told less stops.
const LEAST: f64 = 10_000.0;

/// The estimate of one transport.
#[derive(Clone, Copy, Debug)]
pub struct Estimate {
    bits_per_second: f64,
    most: f64,
    /// The rate at which the link was over-used last, if it was.
    limit: Option<f64>,
    /// When the interval under way began, with the first packet at the latest, what came in it, and whether the link was over-used in it.
    since: Option<Moment>,
    bytes: u64,
    overused: bool,
}

impl Estimate {
    /// This many bits a second, as long as the link is not over-used.
    pub fn new(most: u64) -> Self {
        let most = most as f64;
        Self { bits_per_second: most, most, limit: None, since: None, bytes: 0, overused: false }
    }

    /// A packet of this many bytes came.
    pub fn arrive(&mut self, now: Moment, bytes: usize) {
        self.since.get_or_insert(now);
        self.bytes += bytes as u64;
    }

    /// The link was over-used: packets wait for it, or are dropped.
    pub fn overuse(&mut self) {
        self.overused = true;
    }

    /// An interval ends: the estimate, in bits a second.
    pub fn update(&mut self, now: Moment) -> u64 {
        let Some(since) = self.since else { return self.bits_per_second as u64 };
        let seconds = now.since(since).as_secs_f64();
        let rate = self.bytes as f64 * 8.0 / seconds.max(1e-3);
        if self.overused {
            // Not above what was said before: of what came some had waited since then.
            self.bits_per_second = (DECREASE * rate).min(self.bits_per_second);
            self.limit = Some(rate);
        } else if let Some(limit) = self.limit {
            let (before, seconds) = (self.bits_per_second, seconds.min(1.0));
            let is_near = NEAR.contains(&(before / limit.max(LEAST)));
            let higher =
                if is_near { before + ADDITIVE_INCREASE * seconds } else { before * INCREASE.powf(seconds) };
            self.bits_per_second = higher.min(MOST_OF_RATE * rate).max(before);
        }
        self.bits_per_second = self.bits_per_second.clamp(LEAST, self.most);
        (self.since, self.bytes, self.overused) = (Some(now), 0, false);
        self.bits_per_second as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Second by second: the kilobits that came, and whether the link was over-used.
    fn estimates(seconds: &[(u64, bool)]) -> Vec<u64> {
        let at = |second: usize| Moment::from_nanos((second as u64 + 1) * 1_000_000_000);
        let mut estimate = Estimate::new(100_000_000);
        assert_eq!(estimate.update(at(0)), 100_000_000, "nothing has come");
        let mut all = Vec::new();
        for (second, (kilobits, overused)) in seconds.iter().enumerate() {
            estimate.arrive(at(second), *kilobits as usize * 125);
            if *overused {
                estimate.overuse();
            }
            all.push(estimate.update(at(second + 1)));
        }
        all
    }

    #[test]
    fn all_is_taken_until_the_link_is_over_used_and_then_what_came_and_a_little_more_each_second() {
        let said = estimates(&[(3_000, false), (1_000, true), (850, false), (900, false), (1_000, true)]);
        assert_eq!(said, [100_000_000, 850_000, 874_000, 898_000, 850_000]);
    }

    #[test]
    fn a_source_that_is_slower_than_the_link_raises_nothing_and_lowers_nothing() {
        assert_eq!(estimates(&[(1_000, true), (100, false), (0, false)]), [850_000; 3]);
    }

    #[test]
    fn there_is_a_least_and_what_is_over_used_again_is_said_to_take_no_more() {
        assert_eq!(estimates(&[(0, true), (5_000, true)]), [10_000; 2]);
    }

    #[test]
    fn a_link_that_has_become_wider_is_found_out_by_parts_of_what_is_known() {
        let mut seconds = vec![(1_000, true)];
        seconds.extend([(2_000, false); 40]);
        let said = estimates(&seconds);
        assert_eq!(said[1] - said[0], 24_000);
        let last = said[30] as f64 / said[29] as f64;
        assert!((last - 1.08).abs() < 0.001, "{last}");
    }
}
