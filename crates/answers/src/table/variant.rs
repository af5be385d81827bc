//! A variant: the rows of one kind, column by column.

use super::FEWEST_FOR_DIFFERENCE;
use super::difference::Finding;
use super::run::{BusiestThread, TableRun};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_metrics::Estimate;

/// One variant of a scenario, or one side of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct VariantSummary {
    /// Its name.
    pub name: String,
    /// What stood for each key; URLs without user, password and token.
    pub values: BTreeMap<String, String>,
    /// Runs, or searches, that were made; of a comparison, those that are compared.
    pub runs: u64,
    /// Of these, those that are in the figures: they ran to their end, something was measured, and the verdict on them was not `invalid`.
    /// All that are compared are in those of a comparison.
    pub counted: u64,
    /// By the figure's name.
    pub figures: BTreeMap<String, FigureStatistics>,
    /// What was asked, over the runs that are counted.
    pub thresholds: Vec<VariantThreshold>,
    /// CPU of what is watched for each client, in percent of a core, in the mean of its runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_percent_per_client: Option<f64>,
    /// The busiest thread of what is watched, in the run in which it was busiest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busiest_thread: Option<BusiestThread>,
    /// What it is ranked by, if variants are: a capacity's bounds over all its searches, a figure's mean with its 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<RankedValue>,
    /// How it stands to the best one, if variants are ranked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standing: Option<Finding>,
}

/// A figure over the runs of a variant that are counted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FigureStatistics {
    /// Runs that have it.
    pub runs: u64,
    /// The mean.
    pub mean: f64,
    /// The least.
    pub min: f64,
    /// The most.
    pub max: f64,
    /// The mean with its 95 % confidence interval, from four runs on.
    pub estimate: Option<Estimate>,
}

/// A value that variants are ranked by, with what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankedValue {
    /// The mean; of a capacity the geometric mean of what was carried.
    pub mean: f64,
    /// The lower end of the interval, from four runs on; of a capacity the smallest lower bound.
    pub low: Option<f64>,
    /// The upper end; of a capacity the largest upper bound. `None` if it is unknown.
    pub high: Option<f64>,
    /// Whether the ends are what is asked for: bounds that were confirmed, or a 95 % interval.
    pub is_sure: bool,
    /// Whether the lower end is.
    #[serde(default)]
    pub low_is_sure: bool,
    /// Whether the upper end is.
    #[serde(default)]
    pub high_is_sure: bool,
}

/// A threshold over the runs of a variant that are counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct VariantThreshold {
    /// As it was written.
    pub expression: String,
    /// Runs in which it held.
    pub passed: u64,
    /// Runs in which it was judged.
    pub runs: u64,
}

impl VariantSummary {
    /// What `counted` of its runs come to.
    pub(crate) fn of(
        name: &str,
        values: BTreeMap<String, String>,
        runs: usize,
        counted: &[&TableRun],
    ) -> Self {
        let mut measured: BTreeMap<&String, Vec<f64>> = BTreeMap::new();
        let mut thresholds: Vec<VariantThreshold> = Vec::new();
        for run in counted {
            for (name, value) in &run.figures {
                measured.entry(name).or_default().push(*value);
            }
            for result in &run.thresholds {
                let at = thresholds.iter().position(|it| it.expression == result.expression);
                let at = at.unwrap_or_else(|| {
                    let expression = result.expression.clone();
                    thresholds.push(VariantThreshold { expression, passed: 0, runs: 0 });
                    thresholds.len() - 1
                });
                thresholds[at].runs += 1;
                thresholds[at].passed += u64::from(result.passed);
            }
        }
        let cpu: Vec<f64> = counted.iter().filter_map(|run| run.cpu_percent_per_client).collect();
        let busiest = counted.iter().filter_map(|run| run.busiest_thread.as_ref());
        let busiest = busiest.max_by(|one, other| one.cpu_percent.total_cmp(&other.cpu_percent));
        Self {
            name: name.to_owned(),
            values,
            runs: runs as u64,
            counted: counted.len() as u64,
            figures: measured
                .into_iter()
                .map(|(name, values)| (name.clone(), FigureStatistics::of(&values)))
                .collect(),
            thresholds,
            cpu_percent_per_client: (!cpu.is_empty()).then(|| cpu.iter().sum::<f64>() / cpu.len() as f64),
            busiest_thread: busiest.cloned(),
            value: None,
            standing: None,
        }
    }

    /// The thresholds that did not hold in most of its counted runs. One that a run did not judge did not fail there.
    pub fn failed(&self) -> Vec<VariantThreshold> {
        let most = |it: &&VariantThreshold| (it.runs - it.passed) * 2 > self.counted;
        let of_counted = |it: &VariantThreshold| VariantThreshold {
            passed: self.counted - (it.runs - it.passed),
            runs: self.counted,
            ..it.clone()
        };
        self.thresholds.iter().filter(most).map(of_counted).collect()
    }
}

impl FigureStatistics {
    /// Of at least one value.
    fn of(values: &[f64]) -> Self {
        // In order of size, so that the sums do not depend on the order of the runs.
        let mut values = values.to_vec();
        values.sort_by(f64::total_cmp);
        Self {
            runs: values.len() as u64,
            mean: values.iter().sum::<f64>() / values.len() as f64,
            min: values.first().copied().unwrap_or(f64::NAN),
            max: values.last().copied().unwrap_or(f64::NAN),
            estimate: Estimate::of(&values).filter(|_| values.len() >= FEWEST_FOR_DIFFERENCE),
        }
    }
}
