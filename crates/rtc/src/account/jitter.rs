//! Interarrival jitter (RFC 3550 appendix A.8), in fixed point as there.

/// The estimate of one stream, in ticks of its clock.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Jitter {
    transit: Option<u32>,
    /// Sixteen times the jitter.
    scaled: u32,
}

impl Jitter {
    /// A packet with this time stamp came at `arrival`, both in ticks, modulo 2³².
    #[inline]
    pub(super) fn arrive(&mut self, arrival: u32, timestamp: u32) {
        let transit = arrival.wrapping_sub(timestamp);
        let Some(last) = self.transit.replace(transit) else { return };
        let distance = (transit.wrapping_sub(last) as i32).unsigned_abs();
        // A jump of the sender's clock would stay in the estimate for minutes.
        let distance = distance.min(1 << 24);
        self.scaled = self.scaled + distance - ((self.scaled + 8) >> 4);
    }

    pub(super) fn ticks(&self) -> u32 {
        self.scaled >> 4
    }

    /// Time stamps restart; the estimate is kept.
    pub(super) fn restart(&mut self) {
        self.transit = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_steady_stream_has_none_over_the_wrap() {
        let mut jitter = Jitter::default();
        for packet in 0..100u32 {
            let timestamp = (u32::MAX - 20_000).wrapping_add(packet * 900);
            jitter.arrive(timestamp.wrapping_add(5), timestamp);
        }
        assert_eq!(jitter.ticks(), 0);
    }

    proptest! {
        /// Section 6.4.1: J(i) = J(i−1) + (|D(i−1,i)| − J(i−1)) / 16.
        #[test]
        fn it_follows_the_formula(
            offset: u32, delays in prop::collection::vec(0u32..9_000, 2..300),
        ) {
            let (mut jitter, mut exact) = (Jitter::default(), 0.0f64);
            for (at, delay) in delays.iter().enumerate() {
                let timestamp = offset.wrapping_add(at as u32 * 3000);
                jitter.arrive(timestamp.wrapping_add(*delay), timestamp);
                if at > 0 {
                    exact += (f64::from(delay.abs_diff(delays[at - 1])) - exact) / 16.0;
                }
            }
            prop_assert!((f64::from(jitter.ticks()) - exact).abs() < 2.0, "{} {exact}", jitter.ticks());
        }
    }
}
