//! Metrics as values, before they have a form: families of series, and the name that a figure has among them.

use crate::buckets::Buckets;
use weir_metrics::{Figure, Kind, Unit};

/// What every metric's name begins with.
pub const PREFIX: &str = "weir";

/// Upper bounds of the classic buckets of times, in seconds: those of Prometheus' libraries, and further.
const SECONDS: &[f64] =
    &[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
/// The same of times that may be negative.
const SIGNED_SECONDS: &[f64] = &[
    -10.0, -1.0, -0.25, -0.1, -0.05, -0.025, -0.01, 0.0, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0,
    10.0, 30.0, 60.0,
];
/// The same of numbers: a packet, a stream's frame rates, a burst.
const COUNTS: &[f64] = &[1.0, 2.0, 5.0, 10.0, 15.0, 20.0, 24.0, 30.0, 50.0, 60.0, 120.0, 250.0, 1_000.0];
/// The same of bytes, in a second of one client: 8 kbit/s to 128 Mbit/s, by four.
const BYTES: &[f64] = &[1e3, 4e3, 16e3, 64e3, 256e3, 1e6, 4e6, 16e6];

/// A label's name and value.
pub type Label = (&'static str, String);

/// A metric with all its series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Family {
    /// Without [`PREFIX`], unit and what its kind adds.
    pub(crate) name: String,
    pub(crate) help: String,
    pub(crate) unit: Unit,
    pub(crate) kind: FamilyKind,
    pub(crate) series: Vec<(Vec<Label>, Sample)>,
}

/// What a metric is to Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FamilyKind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

/// The value of a series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Sample {
    Whole(u64),
    Number(f64),
    Histogram(Box<Buckets>),
}

impl Family {
    /// Without a series.
    pub(crate) fn new(name: &str, help: &str, unit: Unit, kind: FamilyKind) -> Self {
        // The encoders end it with a full stop.
        let help = help.trim_end_matches('.').to_owned();
        Self { name: name.to_owned(), help, unit, kind, series: Vec::new() }
    }

    /// Of a figure.
    pub(crate) fn of(figure: &Figure) -> Self {
        Self::new(&base_name(figure.name), figure.help, figure.unit, FamilyKind::of(figure.kind))
    }

    /// The name in expressions. Of a histogram: what `_bucket`, `_sum` and `_count` are added to.
    pub(crate) fn full_name(&self) -> String {
        let ending = match self.kind {
            FamilyKind::Counter => "_total",
            FamilyKind::Info => "_info",
            FamilyKind::Gauge | FamilyKind::Histogram => "",
        };
        format!("{PREFIX}_{}{}{ending}", self.name, self.unit.suffix())
    }
}

impl Sample {
    /// As a metric's value; of a distribution its sum.
    pub(crate) fn number(&self) -> f64 {
        match self {
            Self::Whole(value) => *value as f64,
            Self::Number(value) => *value,
            Self::Histogram(buckets) => buckets.sum,
        }
    }
}

impl FamilyKind {
    fn of(kind: Kind) -> Self {
        match kind {
            Kind::Counter => Self::Counter,
            Kind::Gauge(_) => Self::Gauge,
            Kind::Spread | Kind::Signed => Self::Histogram,
        }
    }
}

/// A figure's name as a part of a metric's, in which a dot has no place; the unit comes behind it.
pub(crate) fn base_name(figure: &str) -> String {
    figure.replace('.', "_")
}

/// What Prometheus calls a figure: `weir_startup_seconds`, `weir_received_bytes_total`. Of a histogram: what `_bucket`, `_sum`
/// and `_count` are added to.
pub fn metric_name(figure: &Figure) -> String {
    Family::of(figure).full_name()
}

/// The upper bounds of a figure's classic buckets, the infinite one left out.
pub(crate) fn bounds(figure: &Figure) -> &'static [f64] {
    match (figure.unit, figure.kind) {
        (Unit::Micros, Kind::Signed) => SIGNED_SECONDS,
        (Unit::Micros, _) => SECONDS,
        (Unit::Bytes, _) => BYTES,
        (Unit::Count, _) => COUNTS,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_metrics::common::FIGURES;

    fn name_of(figure: &str) -> String {
        metric_name(FIGURES.iter().find(|it| it.name == figure).unwrap())
    }

    #[test]
    fn a_metric_is_named_after_its_figure_unit_and_kind() {
        let names = ["startup", "received", "stalled", "playing", "drift"].map(name_of);
        let expected = [
            "weir_startup_seconds",
            "weir_received_bytes_total",
            "weir_stalled_seconds_total",
            "weir_playing",
            "weir_drift_seconds",
        ];
        assert_eq!(names, expected);
    }
}
