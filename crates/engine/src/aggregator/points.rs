//! What is drawn of one second.

use crate::summary::WorkloadPoint;
use std::collections::BTreeMap;
use weir_metrics::common::{DRIFT, FAILED, FRAMES, LATENCY, LOST, MEDIA, NUMBERED, PLAYING, STALLS, STARTUP};
use weir_metrics::{Histogram, Recorder, Unit};
use weir_observe::{TargetUsage, Usage};

/// Threads whose CPU is drawn second by second.
const DRAWN_THREADS: usize = 12;

pub(super) fn workload_point(planned: u32, figures: &Recorder) -> WorkloadPoint {
    let micros = |histogram: &Histogram<u64>, q| {
        (!histogram.is_empty()).then(|| histogram.value_at_quantile(q) as f64 * Unit::Micros.scale())
    };
    let signed = |figure, q| {
        let values = figures.signed(figure);
        (!values.is_empty()).then(|| values.value_at_quantile(q) as f64 * Unit::Micros.scale())
    };
    WorkloadPoint {
        planned,
        playing: figures.gauge(PLAYING),
        failed: figures.counter(FAILED),
        failures: figures.failures().collect(),
        expected_bps: None,
        actual_bps: figures.counter(MEDIA) as f64 * 8.0,
        startup_p50_seconds: micros(figures.spread(STARTUP), 0.5),
        startup_p99_seconds: micros(figures.spread(STARTUP), 0.99),
        latency_p50_seconds: signed(LATENCY, 0.5),
        latency_p99_seconds: signed(LATENCY, 0.99),
        drift_p50_seconds: signed(DRIFT, 0.5),
        drift_p99_seconds: signed(DRIFT, 0.99),
        stalls: figures.counter(STALLS),
        frames: figures.counter(FRAMES),
        numbered: figures.counter(NUMBERED),
        lost: figures.counter(LOST),
    }
}

pub(super) fn by_name(targets: &[TargetUsage]) -> BTreeMap<String, f64> {
    let mut names = BTreeMap::new();
    for thread in targets.iter().flat_map(|target| &target.process.threads) {
        *names.entry(thread.name.clone()).or_insert(0.0) += thread.cpu_percent;
    }
    names
}

pub(super) fn busiest_names<'a>(usages: impl Iterator<Item = &'a Usage>) -> Vec<String> {
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for (name, percent) in usages.flat_map(|usage| by_name(&usage.targets)) {
        *sums.entry(name).or_default() += percent;
    }
    let mut names: Vec<_> = sums.into_iter().collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    names.into_iter().take(DRAWN_THREADS).map(|(name, _)| name).collect()
}
