//! Figures added up over a stretch of seconds, and what they come to there: totals, rates, levels, distributions.

use crate::summary::{FigureValue, Spread, Value};
use std::collections::BTreeMap;
use weir_metrics::common::{AHEAD, MEDIA, SOURCE, SOURCE_FRAMES, SOURCE_TIME, STARTUP};
use weir_metrics::{Gauge, Histogram, Interval, Kind, Recorder, Schema, Signed, SignedHistogram, Unit};

/// Figures added up over seconds.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    pub(crate) figures: Recorder,
    pub(crate) seconds: u32,
    levels: Vec<Level>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    sum: f64,
    max: u64,
}

impl Totals {
    pub(crate) fn new(schema: Schema) -> Self {
        Self {
            figures: Recorder::new(schema),
            seconds: 0,
            levels: vec![Level::default(); schema.figures().count()],
        }
    }

    pub(crate) fn add(&mut self, interval: &Interval) {
        self.figures.append(&interval.figures);
        self.seconds = self.seconds.saturating_add(interval.seconds());
        for (position, level) in self.levels.iter_mut().enumerate() {
            let more = interval.level(position);
            level.sum += more.sum as f64;
            level.max = level.max.max(more.max);
        }
    }

    pub(crate) fn mean(&self, gauge: Gauge) -> f64 {
        self.levels[usize::from(gauge.0)].sum / f64::from(self.seconds.max(1))
    }

    /// How many clients were on their way to playing in the mean, of those that came to play: their startups, one after the
    /// other, over the time.
    pub(crate) fn starting_mean(&self) -> f64 {
        let startups = self.figures.spread(STARTUP);
        let together = startups.mean() * startups.len() as f64 * Unit::Micros.scale();
        if self.seconds == 0 || startups.is_empty() { 0.0 } else { together / f64::from(self.seconds) }
    }

    /// Bits a second of what came to viewers that begin, and not by the clock.
    pub(crate) fn ahead_bps(&self) -> f64 {
        if self.seconds == 0 {
            0.0
        } else {
            self.figures.counter(AHEAD) as f64 * 8.0 / f64::from(self.seconds)
        }
    }

    /// Seconds over which rates are meant of a stretch that begins with this second, and is over at `end` if it ends within it.
    pub(crate) fn rate_seconds(&self, begin: u32, end: Option<f64>) -> f64 {
        let all = f64::from(self.seconds.max(1));
        end.map(|end| end - f64::from(begin)).filter(|seconds| *seconds > 0.0).map_or(all, |it| it.min(all))
    }

    fn figure(&self, position: usize, rate_seconds: f64) -> Option<(&'static str, FigureValue)> {
        let figure = self.figures.schema().figures().nth(position)?;
        let scale = figure.unit.scale();
        let number = self.figures.number(position) as f64 * scale;
        let seconds = f64::from(self.seconds.max(1));
        let value = match figure.kind {
            Kind::Counter => Value::Counter { total: number, per_second: number / rate_seconds },
            Kind::Gauge(_) => {
                let level = self.levels[position];
                Value::Gauge {
                    mean: level.sum * scale / seconds,
                    max: level.max as f64 * scale,
                    last: number,
                }
            }
            Kind::Spread => {
                let histogram = self.figures.spread(weir_metrics::Spread(position as u16));
                Value::Spread(of_histogram(histogram, scale))
            }
            Kind::Signed => Value::Spread(of_signed(self.figures.signed(Signed(position as u16)), scale)),
        };
        Some((figure.name, FigureValue { unit: figure.unit.into(), value }))
    }

    pub(crate) fn figures(&self, keep: impl Fn(&str) -> bool) -> BTreeMap<String, FigureValue> {
        self.figures_over(f64::from(self.seconds.max(1)), keep)
    }

    /// The same with rates over this many seconds.
    pub(crate) fn figures_over(
        &self,
        rate_seconds: f64,
        keep: impl Fn(&str) -> bool,
    ) -> BTreeMap<String, FigureValue> {
        (0..self.levels.len())
            .filter_map(|position| self.figure(position, rate_seconds))
            .filter(|(name, _)| keep(name))
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }

    /// Bits a second of media by its own clock.
    pub(crate) fn source_bps(&self) -> Option<f64> {
        let micros = self.figures.counter(SOURCE_TIME);
        (micros > 0).then(|| self.figures.counter(SOURCE) as f64 * 8e6 / micros as f64)
    }

    /// Video frames a second by the same clock.
    pub(crate) fn source_fps(&self) -> Option<f64> {
        let (frames, micros) = (self.figures.counter(SOURCE_FRAMES), self.figures.counter(SOURCE_TIME));
        (frames > 0 && micros > 0).then(|| frames as f64 * 1e6 / micros as f64)
    }

    pub(crate) fn actual_bps(&self) -> f64 {
        self.actual_bps_over(f64::from(self.seconds.max(1)))
    }

    /// The same over this many seconds.
    pub(crate) fn actual_bps_over(&self, rate_seconds: f64) -> f64 {
        self.figures.counter(MEDIA) as f64 * 8.0 / rate_seconds
    }
}

/// A distribution in base units, of which one of the histogram's is `scale`.
pub(crate) fn of_histogram(histogram: &Histogram<u64>, scale: f64) -> Spread {
    let ends = [histogram.min() as f64, histogram.mean(), histogram.max() as f64];
    spread(histogram.len(), ends, |q| histogram.value_at_quantile(q) as f64, scale)
}

/// The same of signed values.
pub(crate) fn of_signed(histogram: &SignedHistogram, scale: f64) -> Spread {
    let ends = [histogram.min() as f64, histogram.mean(), histogram.max() as f64];
    spread(histogram.len(), ends, |q| histogram.value_at_quantile(q) as f64, scale)
}

/// A distribution of either kind, in base units: how many values, the smallest, the mean, the largest, and the
/// value at a quantile.
fn spread(count: u64, [min, mean, max]: [f64; 3], at: impl Fn(f64) -> f64, scale: f64) -> Spread {
    let at = |q| at(q) * scale;
    Spread {
        count,
        min: min * scale,
        mean: mean * scale,
        p50: at(0.5),
        p90: at(0.9),
        p95: at(0.95),
        p99: at(0.99),
        p999: at(0.999),
        max: max * scale,
    }
}
