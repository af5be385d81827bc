//! Two groups of runs in one figure: how far their means are from each other, and how far that can be trusted. Values in,
//! values out; a run is one number.

use statrs::distribution::{ContinuousCDF, StudentsT};
use weir_metrics::Estimate;

/// The values of a figure, one a run, on the two sides that are compared.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    /// Runs that have nothing to do with each other.
    Apart(Vec<f64>, Vec<f64>),
    /// Runs that were made next to each other: base and other.
    Pairs(Vec<(f64, f64)>),
}

/// The difference of two groups of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Contrast {
    /// The other's mean less the base's, with its 95 % confidence interval.
    pub(crate) difference: Estimate,
    /// The other's mean over the base's; geometric means. None if a value is not above 0.
    pub(crate) ratio: Option<Estimate>,
    /// The probability of a difference as large as this one, or larger, between runs that are the same in truth; of the ratio where
    /// there is one. Not corrected for the number of figures.
    pub(crate) p: f64,
}

/// A mean that was estimated: its standard error and the degrees of freedom of that.
struct MeanEstimate {
    mean: f64,
    error: f64,
    freedom: f64,
}

impl Values {
    /// Runs on the side that has fewer of them.
    pub(crate) fn fewest(&self) -> usize {
        match self {
            Self::Apart(base, other) => base.len().min(other.len()),
            Self::Pairs(pairs) => pairs.len(),
        }
    }

    /// Whether all values are one.
    pub(crate) fn are_equal(&self) -> bool {
        let mut all = self.all();
        all.next().is_some_and(|first| all.all(|it| it == first))
    }

    /// The largest value, without its sign.
    pub(crate) fn magnitude(&self) -> f64 {
        self.all().fold(0.0, |most, it| most.max(it.abs()))
    }

    fn all(&self) -> Box<dyn Iterator<Item = f64> + '_> {
        match self {
            Self::Apart(base, other) => Box::new(base.iter().chain(other).copied()),
            Self::Pairs(pairs) => Box::new(pairs.iter().flat_map(|(base, other)| [*base, *other])),
        }
    }

    /// The means of the base and of the other, of which one is the other by the change that is told of them: geometric where that is a
    /// ratio, arithmetic where it is a difference.
    pub(crate) fn means(&self, contrast: Option<&Contrast>) -> (f64, f64) {
        let is_ratio = contrast.is_some_and(|it| it.ratio.is_some());
        let (base, other): (Vec<f64>, Vec<f64>) =
            match if is_ratio { self.map(f64::ln) } else { self.clone() } {
                Self::Apart(base, other) => (base, other),
                Self::Pairs(pairs) => pairs.into_iter().unzip(),
            };
        let mean = |mut values: Vec<f64>| {
            // In order of size, so that the sum does not depend on the order of the runs.
            values.sort_by(f64::total_cmp);
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            if is_ratio { mean.exp() } else { mean }
        };
        (mean(base), mean(other))
    }

    fn map(&self, of: impl Fn(f64) -> f64) -> Self {
        let each = |values: &[f64]| values.iter().map(|it| of(*it)).collect();
        match self {
            Self::Apart(base, other) => Self::Apart(each(base), each(other)),
            Self::Pairs(pairs) => {
                Self::Pairs(pairs.iter().map(|(base, other)| (of(*base), of(*other))).collect())
            }
        }
    }

    /// Other less base. Of two groups by Welch's formula, which does not take them to vary alike; of pairs by the differences in
    /// each.
    fn estimated(&self) -> Option<MeanEstimate> {
        match self {
            Self::Apart(base, other) => {
                let (base, other) = (Group::of(base)?, Group::of(other)?);
                let (one, two) = (base.variance / base.count, other.variance / other.count);
                let freedom = (one + two).powi(2)
                    / (one.powi(2) / (base.count - 1.0) + two.powi(2) / (other.count - 1.0));
                // Where nothing varies any number of degrees will do.
                let freedom = if freedom.is_finite() { freedom } else { base.count + other.count - 2.0 };
                Some(MeanEstimate { mean: other.mean - base.mean, error: (one + two).sqrt(), freedom })
            }
            Self::Pairs(pairs) => {
                let differences: Vec<f64> = pairs.iter().map(|(base, other)| other - base).collect();
                let group = Group::of(&differences)?;
                let error = (group.variance / group.count).sqrt();
                Some(MeanEstimate { mean: group.mean, error, freedom: group.count - 1.0 })
            }
        }
    }
}

/// Mean and variance of one side.
struct Group {
    count: f64,
    mean: f64,
    variance: f64,
}

impl Group {
    /// `None` for fewer than two values, or if one is no finite number.
    fn of(values: &[f64]) -> Option<Self> {
        if values.len() < 2 || !values.iter().all(|it| it.is_finite()) {
            return None;
        }
        // In order of size, so that the sums do not depend on the order of the runs.
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let count = sorted.len() as f64;
        let mean = sorted.iter().sum::<f64>() / count;
        let mut squares: Vec<f64> = sorted.iter().map(|it| (it - mean).powi(2)).collect();
        squares.sort_by(f64::total_cmp);
        Some(Self { count, mean, variance: squares.iter().sum::<f64>() / (count - 1.0) })
    }
}

impl MeanEstimate {
    fn interval(&self) -> Option<Estimate> {
        let half = self.student()?.inverse_cdf(0.975) * self.error;
        Some(Estimate { mean: self.mean, low: self.mean - half, high: self.mean + half })
    }

    /// Two-sided.
    fn p(&self) -> Option<f64> {
        if self.mean == 0.0 {
            return Some(1.0);
        }
        if self.error == 0.0 {
            return Some(0.0);
        }
        Some(2.0 * self.student()?.cdf(-(self.mean / self.error).abs()))
    }

    fn student(&self) -> Option<StudentsT> {
        StudentsT::new(0.0, 1.0, self.freedom).ok()
    }
}

impl Contrast {
    /// Whether the other is larger.
    pub(crate) fn rises(&self) -> bool {
        self.ratio.map_or(self.difference.mean > 0.0, |ratio| ratio.mean > 1.0)
    }

    /// Of two groups of runs; `None` for fewer than two a side, or if a value is no finite number.
    pub(crate) fn of(values: &Values) -> Option<Self> {
        let plain = values.estimated()?;
        let is_positive = values.all().all(|it| it > 0.0);
        let logarithms = is_positive.then(|| values.map(f64::ln)).and_then(|it| it.estimated());
        let ratio = logarithms.as_ref().and_then(MeanEstimate::interval).map(|it| Estimate {
            mean: it.mean.exp(),
            low: it.low.exp(),
            high: it.high.exp(),
        });
        let p = logarithms.as_ref().unwrap_or(&plain).p()?;
        Some(Self { difference: plain.interval()?, ratio, p })
    }
}

/// The probabilities of several figures, each corrected for their number by the method of Benjamini and Hochberg: the largest as
/// it is, each smaller one times their number over its rank, and none above the one behind it.
pub(crate) fn corrected(probabilities: &[f64]) -> Vec<f64> {
    let count = probabilities.len();
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| probabilities[*b].total_cmp(&probabilities[*a]));
    let mut corrected = vec![1.0; count];
    let mut most = 1.0_f64;
    for (behind, &position) in order.iter().enumerate() {
        most = most.min(probabilities[position] * count as f64 / (count - behind) as f64);
        corrected[position] = most;
    }
    corrected
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-6 * expected.abs().max(1.0), "{found} {expected}");
    }

    /// R's data set `sleep`: hours of sleep that ten people gained by one drug and by another (Student, 1908).
    const ONE: [f64; 10] = [0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0];
    const TWO: [f64; 10] = [1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4];

    #[test]
    fn two_groups_are_compared_by_welchs_test() {
        // R: t.test(extra ~ group, data = sleep): p-value = 0.07939, -3.3654832 to 0.2054832.
        let found = Contrast::of(&Values::Apart(ONE.to_vec(), TWO.to_vec())).unwrap();
        close(found.difference.low, -0.205_483_2);
        close(found.difference.high, 3.365_483_2);
        assert!((found.p - 0.079_39).abs() < 5e-6, "{found:?}");
        assert_eq!(found.ratio, None, "a logarithm of nothing is none");
    }

    #[test]
    fn pairs_are_compared_by_their_differences() {
        // R: with(sleep, t.test(extra[group == 1], extra[group == 2], paired = TRUE)): p-value = 0.002833.
        let pairs = ONE.into_iter().zip(TWO).collect();
        let found = Contrast::of(&Values::Pairs(pairs)).unwrap();
        close(found.difference.low, 0.700_114_2);
        close(found.difference.high, 2.459_885_8);
        assert!((found.p - 0.002_833).abs() < 5e-7, "{found:?}");
    }

    #[test]
    fn what_does_not_vary_differs_or_not() {
        let of = |base: f64, other: f64| Contrast::of(&Values::Apart(vec![base; 4], vec![other; 4])).unwrap();
        assert_eq!((of(3.0, 3.0).p, of(3.0, 4.0).p, of(0.0, 0.0).ratio), (1.0, 0.0, None));
        assert_eq!(of(2.0, 4.0).difference, Estimate { mean: 2.0, low: 2.0, high: 2.0 });
        assert!(Contrast::of(&Values::Apart(vec![1.0], vec![2.0, 3.0])).is_none());
        assert!(Contrast::of(&Values::Pairs(vec![(1.0, f64::NAN), (1.0, 2.0)])).is_none());
    }

    #[test]
    fn a_probability_is_corrected_for_the_number_of_figures() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "BH").
        let found = corrected(&[0.01, 0.04, 0.03, 0.005]);
        for (found, expected) in found.into_iter().zip([0.02, 0.04, 0.04, 0.02]) {
            close(found, expected);
        }
        assert!(corrected(&[]).is_empty());
        // One that differs among many must be as small as by Bonferroni's method.
        close(corrected(&[0.9, 0.004, 0.8, 0.7])[1], 0.016);
    }

    proptest! {
        #[test]
        fn one_mean_becomes_the_other_by_the_change_between_them(
            base in prop::collection::vec(-1e3f64..1e6, 2..12),
            other in prop::collection::vec(-1e3f64..1e6, 2..12),
            pairs: bool,
        ) {
            let values = if pairs {
                Values::Pairs(base.into_iter().zip(other).collect())
            } else {
                Values::Apart(base, other)
            };
            if let Some(contrast) = Contrast::of(&values) {
                let (base, other) = values.means(Some(&contrast));
                let told = contrast.ratio.map_or(base + contrast.difference.mean, |ratio| base * ratio.mean);
                prop_assert!((told - other).abs() <= 1e-6 * base.abs().max(other.abs()).max(1.0));
            }
        }

        #[test]
        fn the_other_way_round_is_the_mirror_image(
            base in prop::collection::vec(0.01f64..1e6, 2..12),
            other in prop::collection::vec(0.01f64..1e6, 2..12),
        ) {
            let there = Contrast::of(&Values::Apart(base.clone(), other.clone())).unwrap();
            let back = Contrast::of(&Values::Apart(other, base)).unwrap();
            prop_assert_eq!(there.difference.mean, -back.difference.mean);
            prop_assert_eq!(there.difference.low, -back.difference.high);
            let (there_ratio, back_ratio) = (there.ratio.unwrap(), back.ratio.unwrap());
            prop_assert!((there_ratio.low * back_ratio.high - 1.0).abs() < 1e-9);
            prop_assert_eq!(there.p, back.p);
        }

        #[test]
        fn so_it_is_of_pairs(pairs in prop::collection::vec((0.01f64..1e6, 0.01f64..1e6), 2..12)) {
            let there = Contrast::of(&Values::Pairs(pairs.clone())).unwrap();
            let turned = pairs.into_iter().map(|(base, other)| (other, base)).collect();
            let back = Contrast::of(&Values::Pairs(turned)).unwrap();
            prop_assert!((there.difference.mean + back.difference.mean).abs() < 1e-6);
            prop_assert!((there.ratio.unwrap().low * back.ratio.unwrap().high - 1.0).abs() < 1e-9);
            prop_assert!((there.p - back.p).abs() < 1e-9);
        }

        #[test]
        fn the_order_of_the_runs_does_not_matter(
            mut base in prop::collection::vec(-1e6f64..1e6, 2..12),
            other in prop::collection::vec(-1e6f64..1e6, 2..12),
            turn in 0usize..12,
        ) {
            let found = Contrast::of(&Values::Apart(base.clone(), other.clone()));
            let turn = turn % base.len();
            base.rotate_left(turn);
            prop_assert_eq!(found, Contrast::of(&Values::Apart(base, other)));
        }
    }
}
