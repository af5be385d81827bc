//! A distribution as Prometheus takes it: classic buckets, and the sparse ones of a native histogram.
//!
//! Both are made from the bins of an HDR histogram of three digits, so that a value is in the wrong one only where its bin,
//! of a thousandth of its size, lies across a bound. It must not know figures.

use std::collections::BTreeMap;
use weir_metrics::{Histogram, SignedHistogram};

/// Resolution of native histograms: each bound is 2^(1/32) of the one before it, so that a quantile is off by at most 1.1 %.
pub(crate) const SCHEMA: i32 = 5;
/// What counts as zero: the width that Prometheus' own libraries have (2^-128).
pub(crate) const ZERO_WIDTH: f64 = 2.938_735_877_055_719e-39;

/// A distribution, cumulative over a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Buckets {
    pub(crate) sum: f64,
    pub(crate) count: u64,
    /// Upper bounds, the last of them infinite, and how many values each bucket alone has.
    pub(crate) classic: Vec<(f64, u64)>,
    /// Values that are zero.
    pub(crate) zeros: u64,
    pub(crate) positive: Sparse,
    pub(crate) negative: Sparse,
}

/// The buckets of one side of zero that have values: runs of neighbours, and how each count differs from the one before it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sparse {
    pub(crate) spans: Vec<(i32, u32)>,
    pub(crate) deltas: Vec<i64>,
}

impl Buckets {
    /// Of values from zero up.
    pub(crate) fn of(histogram: &Histogram<u64>, scale: f64, bounds: &[f64]) -> Self {
        Self::gather(values(histogram, scale), bounds)
    }

    /// Of values on both sides of zero.
    pub(crate) fn of_signed(histogram: &SignedHistogram, scale: f64, bounds: &[f64]) -> Self {
        let below = values(histogram.below(), -scale);
        Self::gather(below.chain(values(histogram.above(), scale)), bounds)
    }

    /// The classic buckets as Prometheus has them: each upper bound with the number of values that are not above it.
    pub(crate) fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        self.classic.iter().scan(0, |sum, (bound, count)| {
            *sum += count;
            Some((*bound, *sum))
        })
    }

    fn gather(values: impl Iterator<Item = (f64, u64)>, bounds: &[f64]) -> Self {
        let mut classic: Vec<(f64, u64)> = bounds.iter().map(|bound| (*bound, 0)).collect();
        classic.push((f64::INFINITY, 0));
        let mut buckets = Self { classic, ..Self::default() };
        let (mut positive, mut negative) = (BTreeMap::new(), BTreeMap::new());
        for (value, count) in values {
            buckets.sum += value * count as f64;
            buckets.count += count;
            let position = bounds.partition_point(|bound| *bound < value);
            buckets.classic[position].1 += count;
            if value.abs() <= ZERO_WIDTH {
                buckets.zeros += count;
            } else {
                let side = if value > 0.0 { &mut positive } else { &mut negative };
                *side.entry(index(value.abs())).or_default() += count;
            }
        }
        (buckets.positive, buckets.negative) = (Sparse::of(&positive), Sparse::of(&negative));
        buckets
    }
}

impl Sparse {
    fn of(counts: &BTreeMap<i32, u64>) -> Self {
        let mut sparse = Self::default();
        let (mut next, mut before) = (0, 0_i64);
        for (index, count) in counts {
            match sparse.spans.last_mut() {
                Some((_, length)) if *index == next => *length += 1,
                _ => sparse.spans.push((index - next, 1)),
            }
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            sparse.deltas.push(count - before);
            (next, before) = (index + 1, count);
        }
        sparse
    }
}

/// Which bucket of a native histogram a value above zero is in: its upper bound is 2^(index / 2^schema), itself included.
fn index(value: f64) -> i32 {
    (value.log2() * f64::from(1 << SCHEMA)).ceil() as i32
}

/// Each bin by the value in its middle, in base units, and how many values it has.
fn values(histogram: &Histogram<u64>, scale: f64) -> impl Iterator<Item = (f64, u64)> {
    histogram.iter_recorded().map(move |bin| {
        let middle = histogram.median_equivalent(bin.value_iterated_to());
        (middle as f64 * scale, bin.count_since_last_iteration())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_value_is_in_the_bucket_whose_upper_bound_is_not_below_it() {
        // 2^(32/32) is 2, and belongs to the bucket that ends there.
        assert_eq!([index(1.0), index(1.01), index(2.0), index(2.01), index(0.5)], [0, 1, 32, 33, -32]);
    }

    #[test]
    fn neighbours_are_one_span_and_counts_are_told_by_their_differences() {
        let sparse = Sparse::of(&BTreeMap::from([(-3, 2), (-2, 5), (4, 1)]));
        assert_eq!(sparse, Sparse { spans: vec![(-3, 2), (5, 1)], deltas: vec![2, 3, -4] });
    }

    #[test]
    fn values_of_both_signs_and_zero_are_told_apart() {
        let mut signed = SignedHistogram::default();
        [-40_000, -40_000, 0, 15_000].into_iter().for_each(|value| signed.record(value));
        let buckets = Buckets::of_signed(&signed, 1e-6, &[-0.025, 0.0, 0.025]);
        assert_eq!(buckets.classic, [(-0.025, 2), (0.0, 1), (0.025, 1), (f64::INFINITY, 0)]);
        assert_eq!((buckets.count, buckets.zeros), (4, 1));
        assert_eq!((buckets.negative.deltas, buckets.positive.deltas), (vec![2], vec![1]));
        assert!((buckets.sum + 0.065).abs() < 1e-4, "{}", buckets.sum);
    }

    proptest! {
        #[test]
        fn every_value_is_in_one_bucket_of_each_kind(values in prop::collection::vec(0_u64..100_000_000, 0..200)) {
            let mut histogram = Histogram::new(3).unwrap();
            values.iter().for_each(|value| histogram.record(*value).unwrap());
            let buckets = Buckets::of(&histogram, 1e-6, &[0.001, 0.1, 1.0, 10.0]);
            let classic: u64 = buckets.classic.iter().map(|(_, count)| count).sum();
            let mut count = 0_i64;
            let native: i64 = buckets.positive.deltas.iter().map(|delta| { count += delta; count }).sum();
            let spans: u32 = buckets.positive.spans.iter().map(|(_, length)| length).sum();
            prop_assert_eq!(classic, values.len() as u64);
            prop_assert_eq!(native as u64 + buckets.zeros, values.len() as u64);
            prop_assert_eq!(spans as usize, buckets.positive.deltas.len());
            // As the summary has it: the mean of the same bins, as often as there are values.
            let mean = histogram.mean() * histogram.len() as f64 * 1e-6;
            prop_assert!((buckets.sum - mean).abs() <= 1e-9 * mean.abs().max(1.0));
        }
    }
}
