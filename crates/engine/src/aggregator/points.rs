//! What is drawn of one second.

use crate::summary::{MessageRate, WorkloadPoint};
use std::collections::BTreeMap;
use weir_metrics::common::{
    AHEAD, DRIFT, FAILED, FRAMES, LATENCY, LOST, MEDIA, NUMBERED, PLAYING, STALLS, STARTUP, WAITED_MEDIA,
    WAITED_TIME,
};
use weir_metrics::{Histogram, Interval, Unit};
use weir_observe::{TargetUsage, Usage};

/// Threads whose CPU is drawn second by second.
const DRAWN_THREADS: usize = 12;

/// A second, or what a second of several came to in the mean: counts are rounded up, so that a failure stays one.
pub(super) fn workload_point(
    planned: u32,
    interval: &Interval,
    messages: Option<MessageRate>,
    turns_over: bool,
) -> WorkloadPoint {
    let (figures, seconds) = (&interval.figures, interval.seconds());
    let count = |counter| figures.counter(counter).div_ceil(seconds.into());
    let micros = |histogram: &Histogram<u64>, q| {
        (!histogram.is_empty()).then(|| histogram.value_at_quantile(q) as f64 * Unit::Micros.scale())
    };
    let signed = |figure, q| {
        let values = figures.signed(figure);
        (!values.is_empty()).then(|| values.value_at_quantile(q) as f64 * Unit::Micros.scale())
    };
    let startups = figures.spread(STARTUP);
    let starting = startups.mean() * startups.len() as f64 * Unit::Micros.scale() / f64::from(seconds);
    let waiting = figures.counter(WAITED_TIME) as f64 * Unit::Micros.scale() / f64::from(seconds);
    let begun = if turns_over { AHEAD } else { WAITED_MEDIA };
    WorkloadPoint {
        planned,
        playing: figures.gauge(PLAYING),
        failed: count(FAILED),
        failures: figures.failures().map(|(kind, n)| (kind, n.div_ceil(seconds.into()))).collect(),
        expected_bps: None,
        actual_bps: figures.counter(MEDIA) as f64 * 8.0 / f64::from(seconds),
        messages,
        startup_p50_seconds: micros(figures.spread(STARTUP), 0.5),
        startup_p99_seconds: micros(figures.spread(STARTUP), 0.99),
        latency_p50_seconds: signed(LATENCY, 0.5),
        latency_p99_seconds: signed(LATENCY, 0.99),
        drift_p50_seconds: signed(DRIFT, 0.5),
        drift_p99_seconds: signed(DRIFT, 0.99),
        stalls: count(STALLS),
        frames: count(FRAMES),
        numbered: count(NUMBERED),
        lost: count(LOST),
        starting_mean: match () {
            () if !turns_over => waiting,
            () if startups.is_empty() => 0.0,
            () => starting,
        },
        ahead_bps: figures.counter(begun) as f64 * 8.0 / f64::from(seconds),
    }
}

/// A second whose rates are the mean of it and of the one before, if both had the same clients.
pub(super) fn calmed(before: &WorkloadPoint, point: &WorkloadPoint) -> WorkloadPoint {
    if (before.planned, before.playing) != (point.planned, point.playing) {
        return point.clone();
    }
    let messages = point.messages.zip(before.messages).map(|(now, before)| MessageRate {
        actual_per_second: (now.actual_per_second + before.actual_per_second) / 2.0,
        ..now
    });
    WorkloadPoint { actual_bps: (before.actual_bps + point.actual_bps) / 2.0, messages, ..point.clone() }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyframe_every_other_second_is_no_wave() {
        let point = |playing, actual_bps| WorkloadPoint {
            planned: 10,
            playing,
            actual_bps,
            ..WorkloadPoint::default()
        };
        let rate = |before: &WorkloadPoint, after: &WorkloadPoint| calmed(before, after).actual_bps;
        let (high, low) = (point(10, 6e6), point(10, 4e6));
        assert_eq!([rate(&high, &low), rate(&low, &high)], [5e6, 5e6]);
        // Another load has another rate, and a target that stops is seen at once.
        assert_eq!(rate(&point(5, 3e6), &high), 6e6);
        assert_eq!(rate(&high, &point(0, 0.0)), 0.0);
    }
}
