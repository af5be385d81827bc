//! Whether viewers of a stage fall behind: the drift of their frames at its beginning, and at its end.

use crate::plan::StageSpan;
use weir_metrics::common::DRIFT;
use weir_metrics::{Interval, SignedHistogram, Unit};

/// By how much the clocks of a source and of weir may differ: encoders keep theirs within 30 ppm (ISO/IEC 13818-1, 2.4.2.1), the
/// quartz of a cheap camera within ten times as much.
const CLOCKS_DIFFER: f64 = 500e-6;

/// The drift in the first and in the last quarter of a window.
#[derive(Debug, Default)]
pub(super) struct Delays {
    quarters: Option<Box<[SignedHistogram; 2]>>,
}

impl Delays {
    /// Adds a second of the window of this stage.
    pub(super) fn add(&mut self, span: &StageSpan, interval: &Interval) {
        let drift = interval.figures.signed(DRIFT);
        let (passed, window) = (interval.key.second - span.window_begin, span.window_end - span.window_begin);
        let quarter = match u64::from(passed) * 4 / u64::from(window.max(1)) {
            0 => 0,
            3 => 1,
            _ => return,
        };
        if !drift.is_empty() {
            self.quarters.get_or_insert_default()[quarter].add(drift);
        }
    }

    /// By how much the median of the last quarter lies above that of the first, in seconds, beyond what clocks that differ make of it;
    /// none of a window that has not come to its end.
    pub(super) fn growth(&self, span: &StageSpan) -> Option<f64> {
        let quarters = self.quarters.as_ref().filter(|it| it.iter().all(|quarter| !quarter.is_empty()))?;
        let [first, last] =
            quarters.each_ref().map(|it| it.value_at_quantile(0.5) as f64 * Unit::Micros.scale());
        let between = 0.75 * f64::from(span.window_end - span.window_begin);
        let growth = last - first;
        Some(growth - growth.clamp(0.0, CLOCKS_DIFFER * between))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use weir_metrics::{IntervalKey, Recorder, Schema};

    /// The growth over a window of this length that has been run for so long, whose delay at each second is this.
    fn growth(window: u32, run: u32, delay: impl Fn(u32) -> f64) -> Option<f64> {
        let span = StageSpan {
            workload: 0,
            stage: 0,
            clients: 20,
            begin: Duration::ZERO,
            window_begin: 3,
            window_end: 3 + window,
            without_warmup: false,
            end: Duration::from_secs(u64::from(window) + 3),
        };
        let mut delays = Delays::default();
        for second in 0..run {
            let mut figures = Recorder::new(Schema::new(&[]));
            (0..20).for_each(|_| figures.record_signed(DRIFT, (delay(second) * 1e6) as i64));
            let key = IntervalKey { second: 3 + second, workload: 0, server: None };
            delays.add(&span, &Interval::new(key, figures));
        }
        delays.growth(&span)
    }

    #[test]
    fn viewers_that_fall_behind_are_told_from_clocks_that_differ() {
        let about =
            |growth: Option<f64>, seconds: f64| (growth.unwrap() - seconds).abs() < 0.01 * seconds + 0.002;
        // A tenth too slow, over a minute: the middles of the quarters lie 45 s apart.
        assert!(about(growth(60, 60, |second| 0.1 * f64::from(second)), 4.5 - 0.0225));
        // A day of a camera whose quartz is wrong by 100 ppm: 6.5 s.
        assert!(about(growth(86_400, 86_400, |second| 1e-4 * f64::from(second)), 0.0));
        // What was late from the beginning does not grow, and what comes earlier is told as it is.
        assert!(about(growth(60, 60, |_| 9.0), 0.0));
        assert!(growth(60, 60, |second| -0.1 * f64::from(second)).unwrap() < -4.0);
    }

    #[test]
    fn a_window_that_ended_early_has_no_last_quarter() {
        assert_eq!(growth(60, 40, f64::from), None);
    }
}
