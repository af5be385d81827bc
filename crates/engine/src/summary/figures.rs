//! Figures by name: numbers, levels and distributions in base units.

use crate::summary::units::BaseUnit;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_metrics::common::names;

/// Figures by name.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Figures(pub BTreeMap<String, FigureValue>);

/// One figure's value, in base units (seconds, bytes, count).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureValue {
    /// The base unit: `seconds`, `bytes` or `count`.
    pub unit: BaseUnit,
    /// The number or the distribution.
    #[serde(flatten)]
    pub value: Value,
}

/// A number or a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Value {
    /// Events in the stretch, and a second.
    Counter {
        /// Sum.
        total: f64,
        /// Sum divided by the stretch's seconds.
        per_second: f64,
    },
    /// A level.
    Gauge {
        /// Mean over the stretch's seconds.
        mean: f64,
        /// Highest.
        max: f64,
        /// At the end.
        last: f64,
    },
    /// A distribution.
    Spread(Spread),
}

/// A distribution in base units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spread {
    /// Number of values.
    pub count: u64,
    /// Smallest.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p999: f64,
    /// Largest.
    pub max: f64,
}

impl Figures {
    /// A figure's value by name.
    pub fn get(&self, name: &str) -> Option<&FigureValue> {
        self.0.get(name)
    }

    /// A distribution by name; none if absent or empty.
    pub fn spread(&self, name: &str) -> Option<&Spread> {
        match &self.get(name)?.value {
            Value::Spread(spread) if spread.count > 0 => Some(spread),
            _ => None,
        }
    }

    /// A level's mean by name, 0 if absent.
    pub fn mean(&self, name: &str) -> f64 {
        match self.get(name).map(|figure| &figure.value) {
            Some(Value::Gauge { mean, .. }) => *mean,
            _ => 0.0,
        }
    }

    /// The total of the counter whose name ends so, where a protocol has one.
    pub fn ending(&self, end: &str) -> Option<f64> {
        self.0.iter().find_map(|(name, figure)| match figure.value {
            Value::Counter { total, .. } if name.ends_with(end) => Some(total),
            _ => None,
        })
    }

    /// Units that are missing, of those that should have come; none where nothing tells that one is missing. What came is
    /// numbered packets, or frames and messages that were stamped, or messages that were delivered to be saved.
    pub fn lost_ratio(&self) -> Option<f64> {
        let once = |name| self.total(name) - self.total(names::DUPLICATE);
        let came = match self.total(names::NUMBERED) {
            numbered if numbered > 0.0 => numbered,
            _ if self.get("saved").is_some() => once(names::UNITS),
            _ => once(names::STAMPED),
        };
        let lost = self.total(names::LOST);
        (lost + came > 0.0).then(|| lost / (lost + came))
    }

    /// Viewers that never stalled, of those that played; none where nothing has a media time to stall by.
    pub fn stall_free_ratio(&self) -> Option<f64> {
        let played = self.total(names::PLAYED);
        let is_stream = played > 0.0 && self.total(names::SOURCE_TIME) > 0.0;
        is_stream.then(|| 1.0 - self.total(names::STALLED_VIEWERS) / played)
    }

    /// A counter's total by name, 0 if absent.
    pub fn total(&self, name: &str) -> f64 {
        match self.get(name).map(|figure| &figure.value) {
            Some(Value::Counter { total, .. }) => *total,
            _ => 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(totals: &[(&str, f64)]) -> Figures {
        let figure =
            |total| FigureValue { unit: BaseUnit::Count, value: Value::Counter { total, per_second: 0.0 } };
        Figures(totals.iter().map(|(name, total)| ((*name).to_owned(), figure(*total))).collect())
    }

    #[test]
    fn what_is_lost_is_a_share_of_what_should_have_come_wherever_that_is_known() {
        for (totals, expected) in [
            (&[("lost", 1.0), ("numbered", 99.0), ("stamped", 9.0), ("duplicate", 9.0)][..], Some(0.01)),
            (&[("lost", 10.0), ("stamped", 95.0), ("duplicate", 5.0), ("units", 200.0)], Some(0.1)),
            (&[("lost", 10.0), ("units", 95.0), ("duplicate", 5.0), ("saved", 90.0)], Some(0.1)),
            (&[("lost", 10.0), ("stamped", 0.0)], Some(1.0)),
            (&[("lost", 0.0), ("stamped", 7.0)], Some(0.0)),
            (&[("lost", 0.0), ("units", 7.0)], None),
        ] {
            assert_eq!(figures(totals).lost_ratio(), expected, "{totals:?}");
        }
    }
}
