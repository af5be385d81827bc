//! Figures added up over a stretch of seconds, and what they come to there: totals, rates, levels, distributions.

use crate::seconds::edges::{Edge, Patience, outstanding};
use crate::summary::{FigureValue, Spread, Value};
use std::collections::BTreeMap;
use weir_metrics::common::{
    AHEAD, AWAY, AWAY_TIME, MEDIA, PLAYED_TIME, SOURCE, SOURCE_FRAME_TIME, SOURCE_FRAMES, SOURCE_TIME,
    STARTUP, WAITED_MEDIA, WAITED_TIME,
};
use weir_metrics::{Gauge, Histogram, Interval, Kind, Recorder, Schema, Signed, SignedHistogram, Unit};

/// Share of the media time of viewers for which the frame rate of their source must be known.
const KNOWN_SHARE: f64 = 0.9;

/// Figures added up over seconds.
#[derive(Clone, Debug)]
pub(crate) struct Totals {
    pub(crate) figures: Recorder,
    pub(crate) seconds: u32,
    levels: Vec<Level>,
    /// What each viewer had got when they began, and when they ended, if these were edges.
    begin: Option<Edge>,
    end: Option<Edge>,
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
            begin: None,
            end: None,
        }
    }

    /// The same, of seconds that begin with this edge.
    pub(crate) fn from(edge: Option<&Edge>, schema: Schema) -> Self {
        Self { begin: edge.cloned(), ..Self::new(schema) }
    }

    pub(crate) fn add(&mut self, interval: &Interval) {
        self.figures.append(&interval.figures);
        self.seconds = self.seconds.saturating_add(interval.seconds());
        self.end = Edge::of(&interval.figures);
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

    /// How many clients were away in the mean: the times of those that came back, or the level at the ends of seconds, which has those
    /// that did not. Of two that differ the larger: what a client could not receive is not missed.
    pub(crate) fn away_mean(&self) -> f64 {
        let times = self.figures.spread(AWAY_TIME);
        let together =
            if times.is_empty() { 0.0 } else { times.mean() * times.len() as f64 * Unit::Micros.scale() };
        self.mean(AWAY).max(together / f64::from(self.seconds.max(1)))
    }

    /// How many viewers waited for a keyframe in the mean.
    pub(crate) fn waiting_mean(&self) -> f64 {
        let waited = self.figures.counter(WAITED_TIME) as f64 * Unit::Micros.scale();
        waited / f64::from(self.seconds.max(1))
    }

    /// Bits a second of what came to them meanwhile.
    pub(crate) fn waited_bps(&self) -> f64 {
        self.figures.counter(WAITED_MEDIA) as f64 * 8.0 / f64::from(self.seconds.max(1))
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

    /// Video frames a second by the same clock, where nearly all viewers have known it for nearly all of the time: what holds of
    /// less is not held against the rest.
    pub(crate) fn source_fps(&self) -> Option<f64> {
        let (frames, micros) = (self.figures.counter(SOURCE_FRAMES), self.figures.counter(SOURCE_FRAME_TIME));
        let is_known = micros as f64 >= KNOWN_SHARE * self.figures.counter(SOURCE_TIME) as f64;
        (frames > 0 && micros > 0 && is_known).then(|| frames as f64 * 1e6 / micros as f64)
    }

    /// Whether viewers have read media time off the stream.
    pub(crate) fn has_media_time(&self) -> bool {
        self.figures.counter(SOURCE_TIME) > 0
    }

    pub(crate) fn actual_bps(&self) -> f64 {
        self.actual_bps_over(f64::from(self.seconds.max(1)))
    }

    /// The same over this many seconds.
    pub(crate) fn actual_bps_over(&self, rate_seconds: f64) -> f64 {
        self.figures.counter(MEDIA) as f64 * 8.0 / rate_seconds
    }

    /// How many times as much media, and as many pictures, the seconds have as came in them, taken by whole bursts; `None` if hardly any
    /// part of them lies between two arrivals.
    pub(crate) fn whole_bursts(&self, patience: Patience) -> Option<WholeBursts> {
        let lacks = outstanding(self.begin.as_ref(), self.end.as_ref(), patience);
        let played = self.figures.counter(PLAYED_TIME) as f64 * Unit::Micros.scale();
        let is_known = played <= 0.0 || lacks.media.max(lacks.pictures) < 0.9 * played;
        let times = |lacks: f64| if played > 0.0 { played / (played - lacks) } else { 1.0 };
        is_known.then(|| WholeBursts { media: times(lacks.media), pictures: times(lacks.pictures) })
    }
}

/// What makes whole bursts of what came in a stretch, as factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WholeBursts {
    pub(crate) media: f64,
    pub(crate) pictures: f64,
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
