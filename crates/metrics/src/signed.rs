//! A histogram of signed values, out of two unsigned ones.

use crate::histogram::FilledHistogram;
use hdrhistogram::Histogram;

/// Counts of values on both sides of zero, three significant digits on each.
#[derive(Clone, Debug, Default)]
pub struct SignedHistogram {
    below: FilledHistogram,
    above: FilledHistogram,
}

impl SignedHistogram {
    /// From the magnitudes of negative values and the values from zero up.
    pub fn from_halves(below: Histogram<u64>, above: Histogram<u64>) -> Self {
        Self { below: below.into(), above: above.into() }
    }

    /// Magnitudes of the negative values.
    pub fn below(&self) -> &Histogram<u64> {
        self.below.get()
    }

    /// The values from zero up.
    pub fn above(&self) -> &Histogram<u64> {
        self.above.get()
    }

    /// Counts one value.
    pub fn record(&mut self, value: i64) {
        let half = if value < 0 { &mut self.below } else { &mut self.above };
        half.record(value.unsigned_abs());
    }

    /// Adds another's counts.
    pub fn add(&mut self, other: &Self) {
        self.below.add(&other.below);
        self.above.add(&other.above);
    }

    /// Number of values.
    pub fn len(&self) -> u64 {
        self.below().len() + self.above().len()
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at quantile `q` of 0 to 1; 0 when empty.
    pub fn value_at_quantile(&self, q: f64) -> i64 {
        let rank = ((q.clamp(0.0, 1.0) * self.len() as f64).ceil() as u64).max(1);
        let negative = self.below().len();
        if rank <= negative {
            // The smallest value is the largest magnitude: count from the other end.
            // The half keeps the ceiling of the product with the length at the rank meant.
            let from_far = ((negative - rank + 1) as f64 - 0.5) / negative as f64;
            return -(self.below().value_at_quantile(from_far) as i64);
        }
        if self.above().is_empty() {
            return 0;
        }
        let within = ((rank - negative) as f64 - 0.5) / self.above().len() as f64;
        self.above().value_at_quantile(within) as i64
    }

    /// The smallest value; 0 when empty.
    pub fn min(&self) -> i64 {
        if self.below().is_empty() { self.above().min() as i64 } else { -(self.below().max() as i64) }
    }

    /// The largest value; 0 when empty.
    pub fn max(&self) -> i64 {
        if self.above().is_empty() && !self.below().is_empty() {
            -(self.below().min() as i64)
        } else {
            self.above().max() as i64
        }
    }

    /// The mean; 0 when empty.
    pub fn mean(&self) -> f64 {
        if self.is_empty() {
            return 0.0;
        }
        let sum =
            self.above().mean() * self.above().len() as f64 - self.below().mean() * self.below().len() as f64;
        sum / self.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn large_values_of_both_signs_keep_three_digits() {
        let mut histogram = SignedHistogram::default();
        histogram.record(3_600_000_000);
        histogram.record(-1_500_000);
        assert!((histogram.max() - 3_600_000_000).abs() <= 3_600_000, "{}", histogram.max());
        assert!((histogram.min() + 1_500_000).abs() <= 1_500, "{}", histogram.min());
    }

    proptest! {
        #[test]
        fn quantiles_follow_the_sorted_values(mut values in prop::collection::vec(-900i64..900, 1..200), q in 0.0f64..=1.0) {
            let mut histogram = SignedHistogram::default();
            values.iter().for_each(|v| histogram.record(*v));
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).max(1);
            prop_assert_eq!(histogram.value_at_quantile(q), values[rank - 1]);
            prop_assert_eq!(histogram.min(), values[0]);
            prop_assert_eq!(histogram.max(), values[values.len() - 1]);
        }
    }
}
