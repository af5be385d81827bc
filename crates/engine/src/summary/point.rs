//! One second of a run, for plots.

use super::MessageRate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_metrics::{Failure, common::names};
use weir_observe::MachineValues;

/// One second, for plots. Values that were not measured are absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Second of the run.
    pub second: u32,
    /// By workload position: clients planned, playing; bit rates; percentiles.
    pub workloads: Vec<WorkloadPoint>,
    /// CPU of each watched target in percent of one core, in the order of the stages' `targets`.
    pub target_cpu_percent: Vec<f64>,
    /// Resident set of each watched target.
    pub target_rss_bytes: Vec<u64>,
    /// CPU of weir.
    pub generator_cpu_percent: Option<f64>,
    /// CPU of all cores of the host.
    pub host_cpu_percent: Option<f64>,
    /// The target's machine, as `run.machines` lists it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub machines: Vec<MachineValues>,
    /// CPU of the target's threads by name, the busiest dozen of the run.
    pub thread_cpu_percent: BTreeMap<String, f64>,
}

/// One workload's second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadPoint {
    /// Clients that should run by the plan at the second's end.
    pub planned: u32,
    /// Clients that played at the second's end.
    pub playing: u64,
    /// Failures in this second.
    pub failed: u64,
    /// The same by kind.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub failures: BTreeMap<Failure, u64>,
    /// What the source sent for all planned clients.
    pub expected_bps: Option<f64>,
    /// What arrived (or was sent).
    pub actual_bps: f64,
    /// Messages of this second, where there are messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessageRate>,
    /// Median startup of clients that began to play in this second.
    pub startup_p50_seconds: Option<f64>,
    /// 99th percentile of the same.
    pub startup_p99_seconds: Option<f64>,
    /// Median latency of witnesses.
    pub latency_p50_seconds: Option<f64>,
    /// 99th percentile of the same.
    pub latency_p99_seconds: Option<f64>,
    /// Median drift of witnesses.
    pub drift_p50_seconds: Option<f64>,
    /// 99th percentile of the same.
    pub drift_p99_seconds: Option<f64>,
    /// Stalls that began in this second.
    pub stalls: u64,
    /// Video frames that arrived (or were sent).
    #[serde(default)]
    pub frames: u64,
    /// Units that arrived with a number, and those that are known to be missing.
    #[serde(default)]
    pub numbered: u64,
    /// The second of the two.
    #[serde(default)]
    pub lost: u64,
    /// How many clients were on their way to playing in the mean, as in the stage's summary. Needed for what was expected, and not kept.
    #[serde(skip)]
    pub starting_mean: f64,
    /// The same of what came to those that began, and not by the clock.
    #[serde(skip)]
    pub ahead_bps: f64,
}

/// Median and 99th percentile of a second's values.
type Percentiles = (Option<f64>, Option<f64>);

impl WorkloadPoint {
    /// What is kept of the distribution of this name, where its seconds are kept.
    pub fn percentiles(&self, figure: &str) -> Percentiles {
        match figure {
            names::STARTUP => (self.startup_p50_seconds, self.startup_p99_seconds),
            names::LATENCY => (self.latency_p50_seconds, self.latency_p99_seconds),
            names::DRIFT => (self.drift_p50_seconds, self.drift_p99_seconds),
            _ => (None, None),
        }
    }

    /// Notes what was expected, by the source's rate: as of a stage, so that plots and tables say the same.
    pub(crate) fn expect(&mut self, source_bps: Option<f64>) {
        let clients = (f64::from(self.planned) - self.starting_mean).max(0.0);
        self.expected_bps = source_bps.map(|bps| bps * clients + self.ahead_bps);
    }
}

#[cfg(test)]
mod tests {
    use super::WorkloadPoint;

    #[test]
    fn clients_that_follow_each_other_are_expected_to_get_what_comes_ahead_once_they_have_begun() {
        let mut point =
            WorkloadPoint { planned: 40, starting_mean: 2.0, ahead_bps: 1e6, ..WorkloadPoint::default() };
        point.expect(Some(1e5));
        assert_eq!(point.expected_bps, Some(38.0 * 1e5 + 1e6));
        point.expect(None);
        assert_eq!(point.expected_bps, None);
    }
}
