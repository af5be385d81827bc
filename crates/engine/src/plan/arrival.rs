//! How the starts of a ramp are spaced: evenly (`20/s`), or as those of people who know nothing of each other
//! (`poisson:20/s`).

use std::time::Duration;
use weir_metrics::{ParseUnitError, parse_rate};

/// How clients come while a stage ramps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arrival {
    /// Clients a second.
    pub rate: f64,
    /// How they are spaced.
    pub spacing: Spacing,
}

/// How the starts of a ramp are spaced.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spacing {
    /// At equal distances.
    #[default]
    Even,
    /// As a Poisson process.
    Poisson,
}

impl std::str::FromStr for Arrival {
    type Err = ParseUnitError;

    fn from_str(text: &str) -> Result<Self, ParseUnitError> {
        let (rate, spacing) = match text.strip_prefix("poisson:") {
            Some(rate) => (rate, Spacing::Poisson),
            None => (text, Spacing::Even),
        };
        Ok(Self { rate: parse_rate(rate)?, spacing })
    }
}

impl Spacing {
    /// When each of `count` starts of a ramp of this length is, after its beginning, in order.
    ///
    /// A Poisson process of which `count` events are known to lie in a stretch has them where as many numbers lie that are
    /// drawn from it uniformly (S. Ross, Introduction to Probability Models, theorem 5.2). So a ramp has its length and its
    /// number of clients whatever the seed, and repetitions of a run have the same windows.
    pub(crate) fn starts(self, count: u32, ramp: Duration, random: &mut fastrand::Rng) -> Vec<Duration> {
        let mut shares: Vec<f64> = match self {
            Self::Even => (0..count).map(|k| f64::from(k) / f64::from(count)).collect(),
            Self::Poisson => (0..count).map(|_| random.f64()).collect(),
        };
        shares.sort_unstable_by(f64::total_cmp);
        shares.into_iter().map(|share| ramp.mul_f64(share)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_arrival_is_a_rate_with_its_spacing() {
        assert_eq!("20/s".parse::<Arrival>().unwrap(), Arrival { rate: 20.0, spacing: Spacing::Even });
        assert_eq!(
            "poisson:120/m".parse::<Arrival>().unwrap(),
            Arrival { rate: 2.0, spacing: Spacing::Poisson }
        );
        assert!("poisson:soon".parse::<Arrival>().unwrap_err().to_string().contains("a rate above zero"));
    }

    /// The largest distance between the distribution of gaps and the exponential one of their mean rate, times √n
    /// (Kolmogorov, Smirnov).
    fn distance(starts: &[Duration], rate: f64) -> f64 {
        let mut gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]).as_secs_f64()).collect();
        gaps.sort_unstable_by(f64::total_cmp);
        let count = gaps.len() as f64;
        let apart = gaps.iter().zip(0_u32..).map(|(gap, number)| {
            let expected = 1.0 - (-gap * rate).exp();
            let (below, above) = (f64::from(number) / count, f64::from(number + 1) / count);
            (expected - below).abs().max((above - expected).abs())
        });
        apart.fold(0.0, f64::max) * count.sqrt()
    }

    #[test]
    fn gaps_of_a_poisson_process_are_exponential_and_those_of_an_even_one_are_not() {
        // Beyond 1.63 a sample that is exponential lies in one case of a hundred; the seeds are fixed.
        for seed in 0..20 {
            let mut random = fastrand::Rng::with_seed(seed);
            let starts = Spacing::Poisson.starts(2_000, Duration::from_secs(100), &mut random);
            assert!(distance(&starts, 20.0) < 1.63, "seed {seed}: {}", distance(&starts, 20.0));
        }
        let even = Spacing::Even.starts(2_000, Duration::from_secs(100), &mut fastrand::Rng::new());
        assert!(distance(&even, 20.0) > 10.0);
    }

    proptest! {
        #[test]
        fn all_starts_of_a_ramp_lie_in_it_in_order_at_its_mean_rate(count in 1_u32..500, ramp in 0_u64..100, seed: u64) {
            let ramp = Duration::from_secs(ramp);
            for spacing in [Spacing::Even, Spacing::Poisson] {
                let starts = spacing.starts(count, ramp, &mut fastrand::Rng::with_seed(seed));
                prop_assert_eq!(starts.len(), count as usize);
                prop_assert!(starts.is_sorted() && starts.iter().all(|start| *start <= ramp));
                prop_assert_eq!(&starts, &spacing.starts(count, ramp, &mut fastrand::Rng::with_seed(seed)));
            }
        }
    }
}
