//! The distributions behind a run's percentiles, so that those of several runs can be merged.

use crate::summary::Spread;
use crate::totals::{self, Totals};
use weir_metrics::{Figure, Histogram, Kind, SignedHistogram, Unit};

/// A figure's distribution over a stage of a run, or of several.
#[derive(Clone, Debug)]
pub struct Distribution {
    /// Position of the workload.
    pub workload: usize,
    /// Position of the stage within it.
    pub stage: usize,
    /// The figure's name.
    pub figure: &'static str,
    unit: Unit,
    values: Counts,
}

#[derive(Clone, Debug)]
enum Counts {
    Unsigned(Histogram<u64>),
    Signed(SignedHistogram),
}

impl Distribution {
    /// Of the figure at this position of a schema, in a stage of a workload. None of one that is no distribution.
    pub(super) fn of(
        (workload, stage): (usize, usize),
        position: u16,
        figure: &Figure,
        totals: &Totals,
    ) -> Option<Self> {
        let values = match figure.kind {
            Kind::Spread => Counts::Unsigned(totals.figures.spread(weir_metrics::Spread(position)).clone()),
            Kind::Signed => Counts::Signed(totals.figures.signed(weir_metrics::Signed(position)).clone()),
            Kind::Counter | Kind::Gauge(_) => return None,
        };
        Some(Self { workload, stage, figure: figure.name, unit: figure.unit, values })
    }

    /// Adds the counts of the same figure of another run.
    pub fn add(&mut self, other: &Self) {
        match (&mut self.values, &other.values) {
            (Counts::Unsigned(sum), Counts::Unsigned(other)) => {
                // Both resize themselves and have the same precision, as reading them has checked.
                let added = sum.add(other);
                debug_assert!(added.is_ok(), "{added:?}");
            }
            (Counts::Signed(sum), Counts::Signed(other)) => sum.add(other),
            (Counts::Unsigned(_), Counts::Signed(_)) | (Counts::Signed(_), Counts::Unsigned(_)) => {}
        }
    }

    /// Whether both are of one figure, stage and workload.
    pub fn is_like(&self, other: &Self) -> bool {
        (self.workload, self.stage, self.figure) == (other.workload, other.stage, other.figure)
    }

    /// In base units.
    pub fn spread(&self) -> Spread {
        match &self.values {
            Counts::Unsigned(histogram) => totals::of_histogram(histogram, self.unit.scale()),
            Counts::Signed(histogram) => totals::of_signed(histogram, self.unit.scale()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of_run(values: &[i64], is_signed: bool) -> Distribution {
        let values = if is_signed {
            let mut histogram = SignedHistogram::default();
            values.iter().for_each(|value| histogram.record(*value));
            Counts::Signed(histogram)
        } else {
            let mut histogram = Histogram::new(3).unwrap();
            values.iter().for_each(|value| histogram.record(value.unsigned_abs()).unwrap());
            Counts::Unsigned(histogram)
        };
        Distribution { workload: 0, stage: 0, figure: "latency", unit: Unit::Micros, values }
    }

    proptest! {
        #[test]
        fn repetitions_merge_in_any_order_to_what_all_their_values_make(
            runs in prop::collection::vec(prop::collection::vec(-1_000_000i64..1_000_000, 1..50), 1..6),
            turn in 0usize..6,
            is_signed: bool,
        ) {
            let merged = |runs: &[Vec<i64>]| {
                let mut sum = of_run(&runs[0], is_signed);
                runs[1..].iter().for_each(|run| sum.add(&of_run(run, is_signed)));
                sum.spread()
            };
            let mut turned = runs.clone();
            turned.rotate_left(turn % runs.len());
            prop_assert_eq!(merged(&runs), merged(&turned));
            prop_assert_eq!(merged(&runs), of_run(&runs.concat(), is_signed).spread());
        }
    }
}
