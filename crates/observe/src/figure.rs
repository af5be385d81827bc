//! Least, mean, 95th percentile and greatest of a series.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a series of values comes to. The unit is that of the field that holds it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Figure {
    /// The least value.
    pub min: f64,
    /// For a gauge the mean of the values; for a rate what was counted in the whole window over the time
    /// of the window, which is not the mean of the rates when intervals differ in length.
    pub mean: f64,
    /// The least value that at least 95 % of the values do not exceed (nearest rank).
    pub p95: f64,
    /// The greatest value.
    pub max: f64,
}

impl Figure {
    /// The figure of a gauge; `None` for no values.
    pub(crate) fn of_gauge(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Self::of_rate(values, mean)
    }

    /// The figure of a rate whose mean over the window is known; `None` for no values.
    pub(crate) fn of_rate(values: impl IntoIterator<Item = f64>, mean: f64) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_unstable_by(f64::total_cmp);
        let rank = (values.len() * 95).div_ceil(100);
        Some(Self { min: *values.first()?, mean, p95: *values.get(rank - 1)?, max: *values.last()? })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_95th_percentile_is_a_value_of_the_series() {
        let figure = Figure::of_gauge((1..=100).map(f64::from)).unwrap();
        assert_eq!(figure, Figure { min: 1.0, mean: 50.5, p95: 95.0, max: 100.0 });
        assert_eq!(Figure::of_gauge([7.0]), Some(Figure { min: 7.0, mean: 7.0, p95: 7.0, max: 7.0 }));
        assert_eq!(Figure::of_gauge([]), None);
    }

    proptest! {
        #[test]
        fn the_four_are_in_order(values in prop::collection::vec(0.0..1e9, 1..50)) {
            let figure = Figure::of_gauge(values).unwrap();
            prop_assert!(figure.min <= figure.p95 && figure.p95 <= figure.max);
            prop_assert!(figure.min <= figure.mean * (1.0 + 1e-9) && figure.mean <= figure.max * (1.0 + 1e-9));
        }
    }
}
