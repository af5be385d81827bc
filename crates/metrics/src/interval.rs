//! One workload's figures of one second, or of several in a row, and the form in which they are kept on disk.

use crate::level::{Level, LevelLine};
use crate::recorder::Reading;
use crate::{Failure, Figure, Gauge, Kind, Recorder, Schema, SignedHistogram};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The largest number of a second that is read back: whole numbers above it do not survive as `f64`.
const LARGEST: f64 = (1_u64 << 53) as f64;

/// Which second of which workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct IntervalKey {
    /// Seconds since the run's start, rounded down, of the interval's beginning.
    pub second: u32,
    /// Position of the workload in the scenario.
    pub workload: u16,
    /// Position of the server among the workload's, of figures of its clients alone; none for all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<u16>,
}

/// What left the shards for one workload and one second; or for several seconds, of a long run that is kept in fewer intervals.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Which second of which workload, of several the first.
    pub key: IntervalKey,
    /// The figures, merged over the shards. Levels are those at the interval's end.
    pub figures: Recorder,
    /// What `figures` does not say of several seconds.
    several: Option<Box<Several>>,
}

/// What the sums over several seconds do not say of them.
#[derive(Clone, Debug)]
struct Several {
    seconds: u32,
    /// One a figure; of those that are no levels it says nothing.
    levels: Vec<Level>,
}

/// A line of `intervals.ndjson`: everything but the distributions.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    key: IntervalKey,
    /// How many seconds it is of.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    seconds: u32,
    /// Position of the agent whose it is among those of the run, if agents made its load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<u16>,
    failures: BTreeMap<Failure, u64>,
    /// Of several seconds: what each level came to.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    levels: BTreeMap<String, LevelLine>,
    #[serde(flatten)]
    numbers: BTreeMap<String, f64>,
}

fn one() -> u32 {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_one(seconds: &u32) -> bool {
    *seconds == 1
}

impl Interval {
    /// One second.
    pub fn new(key: IntervalKey, figures: Recorder) -> Self {
        Self { key, figures, several: None }
    }

    /// How many seconds it is of.
    pub fn seconds(&self) -> u32 {
        self.several.as_ref().map_or(1, |several| several.seconds)
    }

    /// The second after its last.
    pub fn end(&self) -> u32 {
        self.key.second.saturating_add(self.seconds())
    }

    /// What the level at this position of the schema came to over its seconds.
    pub fn level(&self, position: usize) -> Level {
        let several = self.several.as_ref().and_then(|several| several.levels.get(position).copied());
        several.unwrap_or_else(|| Level::of(self.figures.number(position)))
    }

    /// The same of a gauge.
    pub fn level_of(&self, gauge: Gauge) -> Level {
        self.level(usize::from(gauge.0))
    }

    /// Adds the seconds that come after it: counters add, distributions merge, levels go on.
    pub fn append(&mut self, later: &Self) {
        let levels = self.levels().zip(later.levels()).map(|(mine, theirs)| mine.then(theirs)).collect();
        self.several =
            Some(Box::new(Several { seconds: self.seconds().saturating_add(later.seconds()), levels }));
        self.figures.append(&later.figures);
    }

    /// Adds what others counted in the same seconds. Of several seconds the highest level of both together is not known: it is
    /// what it would be if both had theirs in the same second.
    pub fn merge(&mut self, other: &Self) {
        if self.several.is_some() || other.several.is_some() {
            let both = self.levels().zip(other.levels());
            let levels =
                self.figures.schema().figures().zip(both).map(|(figure, (mine, theirs))| match figure.kind {
                    Kind::Gauge(merge) => mine.beside(theirs, merge),
                    Kind::Counter | Kind::Spread | Kind::Signed => mine,
                });
            let (levels, seconds) = (levels.collect(), self.seconds().max(other.seconds()));
            self.several = Some(Box::new(Several { seconds, levels }));
        }
        self.figures.merge(&other.figures);
    }

    fn levels(&self) -> impl Iterator<Item = Level> {
        (0..self.figures.schema().figures().count()).map(|position| self.level(position))
    }

    /// The counters, gauges and failures as one line of JSON, without the line break.
    pub fn to_line(&self) -> String {
        self.to_line_of(None)
    }

    /// The same, as what one agent of several counted.
    pub fn to_line_of(&self, agent: Option<u16>) -> String {
        let numbers = self
            .figures
            .schema()
            .figures()
            .zip(self.figures.readings())
            .filter_map(|(figure, reading)| match reading {
                Reading::Number(value) => Some((
                    format!("{}{}", figure.name, figure.unit.suffix()),
                    value as f64 * figure.unit.scale(),
                )),
                Reading::Spread(_) | Reading::Signed(_) => None,
            })
            .collect();
        let is_level = |figure: &Figure| matches!(figure.kind, Kind::Gauge(_));
        let levels = self.figures.schema().figures().enumerate().filter(|(_, figure)| is_level(figure));
        let levels = levels.filter(|_| self.several.is_some()).map(|(position, figure)| {
            (format!("{}{}", figure.name, figure.unit.suffix()), self.level(position).line(figure.unit))
        });
        let line = Line {
            key: self.key,
            seconds: self.seconds(),
            agent,
            failures: self.figures.failures().collect(),
            levels: levels.collect(),
            numbers,
        };
        serde_json::to_string(&line).expect("a map of strings to numbers is JSON")
    }

    /// Reads a line back; `schema_of` says which figures the workload has.
    ///
    /// # Errors
    /// The line is not an object with a `second` and a known `workload`.
    pub fn from_line(
        line: &str,
        schema_of: impl Fn(u16) -> Option<Schema>,
    ) -> Result<Self, serde_json::Error> {
        Self::from_line_of(line, schema_of).map(|(_, interval)| interval)
    }

    /// The same, with the agent whose it is.
    ///
    /// # Errors
    /// As [`Self::from_line`].
    pub fn from_line_of(
        line: &str,
        schema_of: impl Fn(u16) -> Option<Schema>,
    ) -> Result<(Option<u16>, Self), serde_json::Error> {
        let line: Line = serde_json::from_str(line)?;
        let schema = schema_of(line.key.workload).ok_or_else(|| {
            serde::de::Error::custom(format!("workload {} is not in run.json", line.key.workload))
        })?;
        if line.seconds == 0 {
            return Err(serde::de::Error::custom("an interval of 0 seconds"));
        }
        let mut figures = Recorder::new(schema);
        let mut levels = vec![Level::default(); schema.figures().count()];
        for ((position, figure), level) in schema.figures().enumerate().zip(&mut levels) {
            let number = |value: f64| {
                let number = value / figure.unit.scale();
                if (0.0..=LARGEST).contains(&number) {
                    return Ok(number.round() as u64);
                }
                let words = format!("{} is {value}, which no second has", figure.name);
                Err(serde::de::Error::custom(words))
            };
            let key = format!("{}{}", figure.name, figure.unit.suffix());
            if let Some(value) = line.numbers.get(&key) {
                let value = number(*value)?;
                figures.set_number(position, value);
                *level = Level { sum: value.saturating_mul(line.seconds.into()), max: value };
            }
            if let Some(LevelLine { sum, max }) = line.levels.get(&key) {
                *level = Level { sum: number(*sum)?, max: number(*max)? };
            }
        }
        for (failure, n) in line.failures {
            figures.set_failure(failure, n);
        }
        let several = (line.seconds > 1).then(|| Box::new(Several { seconds: line.seconds, levels }));
        Ok((line.agent, Self { key: line.key, figures, several }))
    }

    /// The distributions that are not empty, each with its name in `histograms.hlog`:
    /// the figure's, with `+` or `-` for the halves of a signed one.
    pub fn histograms(&self) -> impl Iterator<Item = (String, &Histogram<u64>)> {
        self.figures.schema().figures().zip(self.figures.readings()).flat_map(|(figure, reading)| {
            let named: [Option<(String, &Histogram<u64>)>; 2] = match reading {
                Reading::Number(_) => [None, None],
                Reading::Spread(histogram) => [Some((figure.name.to_owned(), histogram)), None],
                Reading::Signed(histogram) => [
                    Some((format!("{}-", figure.name), histogram.below())),
                    Some((format!("{}+", figure.name), histogram.above())),
                ],
            };
            named.into_iter().flatten().filter(|(_, histogram)| !histogram.is_empty())
        })
    }

    /// Puts a distribution from `histograms.hlog` back; a name that is not of the schema is left out.
    pub fn restore(&mut self, name: &str, histogram: Histogram<u64>) {
        let schema = self.figures.schema();
        let (plain, half) = match name.as_bytes().last() {
            Some(b'-') => (&name[..name.len() - 1], Some(false)),
            Some(b'+') => (&name[..name.len() - 1], Some(true)),
            _ => (name, None),
        };
        let Some(position) = schema.position(plain) else { return };
        let kind = schema.figures().nth(position).map(|figure| figure.kind);
        match (kind, half) {
            (Some(Kind::Spread), None) => self.figures.set_spread(position, histogram),
            // A figure that had no values below zero when the run was recorded has one half, without a sign.
            (Some(Kind::Signed), half) => {
                let upper = half.unwrap_or(true);
                let now = self.figures.signed(crate::Signed(position as u16));
                let halves = if upper {
                    SignedHistogram::from_halves(now.below().clone(), histogram)
                } else {
                    SignedHistogram::from_halves(histogram, now.above().clone())
                };
                self.figures.set_signed(position, halves);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::{ACTIVE, DRIFT, RECEIVED, STALLED, STARTUP};

    fn sample(seed: u64) -> Recorder {
        let mut recorder = Recorder::new(Schema::new(&[]));
        recorder.count(RECEIVED, 1_000 + seed);
        recorder.count(STALLED, 1_500_001);
        recorder.shift(ACTIVE, 7);
        recorder.record(STARTUP, 120_000 * (seed + 1));
        recorder.record_signed(DRIFT, -40_000);
        recorder.record_signed(DRIFT, 15_000);
        recorder.fail(Failure::StreamNotFound);
        recorder
    }

    #[test]
    fn an_interval_survives_its_line_and_its_histograms() {
        let key = IntervalKey { second: 3, workload: 0, server: None };
        let interval = Interval::new(key, sample(1));
        let mut back = Interval::from_line(&interval.to_line(), |_| Some(Schema::new(&[]))).unwrap();
        for (name, histogram) in interval.histograms() {
            back.restore(&name, histogram.clone());
        }
        assert_eq!(back.key, key);
        assert_eq!(back.to_line(), interval.to_line());
        assert_eq!(back.figures.counter(STALLED), 1_500_001);
        assert_eq!(back.figures.spread(STARTUP).max(), interval.figures.spread(STARTUP).max());
        assert_eq!(back.figures.signed(DRIFT).min(), interval.figures.signed(DRIFT).min());
    }

    /// The interval of second `second`, with `active` clients at its end.
    fn second(second: u32, active: i64) -> Interval {
        let mut figures = sample(u64::from(second));
        figures.shift(ACTIVE, active - 7);
        Interval::new(IntervalKey { second, workload: 0, server: None }, figures)
    }

    #[test]
    fn seconds_in_a_row_are_one_interval_that_survives_its_line() {
        let mut interval = second(4, 9);
        [second(5, 3), second(6, 6)].iter().for_each(|later| interval.append(later));
        let line = interval.to_line();
        assert!(line.starts_with(r#"{"second":4,"workload":0,"seconds":3,"#), "{line}");
        let back = Interval::from_line(&line, |_| Some(Schema::new(&[]))).unwrap();
        assert_eq!(back.to_line(), line);
        assert_eq!((back.seconds(), back.end()), (3, 7));
        assert_eq!(back.level_of(ACTIVE), Level { sum: 18, max: 9 });
        assert_eq!((back.figures.gauge(ACTIVE), back.figures.counter(RECEIVED)), (6, 3_015));
        let no_seconds = line.replace("\"seconds\":3", "\"seconds\":0");
        assert!(Interval::from_line(&no_seconds, |_| Some(Schema::new(&[]))).is_err());
    }

    #[test]
    fn what_two_machines_counted_in_the_same_seconds_adds() {
        let of = |levels: [i64; 2]| {
            let mut interval = second(4, levels[0]);
            interval.append(&second(5, levels[1]));
            interval
        };
        let mut both = of([1, 2]);
        both.merge(&of([8, 4]));
        assert_eq!((both.seconds(), both.level_of(ACTIVE)), (2, Level { sum: 15, max: 10 }));
        assert_eq!((both.figures.gauge(ACTIVE), both.figures.spread(STARTUP).len()), (6, 4));
    }

    #[test]
    fn a_signed_figure_that_was_recorded_without_signs_is_read_back() {
        let mut old = crate::histogram::empty_histogram();
        old.record_n(7_000, 3).unwrap();
        let key = IntervalKey { second: 0, workload: 0, server: None };
        let mut interval = Interval::new(key, Recorder::new(Schema::new(&[])));
        interval.restore("latency", old);
        let latency = interval.figures.signed(crate::common::LATENCY);
        assert_eq!((latency.len(), latency.min(), latency.max()), (3, 7_000, 7_003));
    }

    #[test]
    fn merging_is_associative_and_keeps_every_count() {
        let (a, b, c) = (sample(1), sample(2), sample(3));
        let mut left = a.clone();
        left.merge(&b);
        left.merge(&c);
        let mut right = b;
        right.merge(&c);
        let mut whole = a;
        whole.merge(&right);
        let key = IntervalKey { second: 0, workload: 0, server: None };
        let line = |figures: &Recorder| Interval::new(key, figures.clone()).to_line();
        assert_eq!(line(&left), line(&whole));
        assert_eq!(left.spread(STARTUP).len(), 3);
        assert_eq!(left.gauge(ACTIVE), 21);
        assert_eq!(left.counter(crate::common::FAILED), 3);
    }

    #[test]
    fn a_taken_recorder_leaves_levels_and_clears_counts() {
        let mut recorder = sample(1);
        let taken = recorder.take();
        assert_eq!(taken.counter(RECEIVED), 1_001);
        assert_eq!(recorder.counter(RECEIVED), 0);
        assert_eq!(recorder.gauge(ACTIVE), 7);
        assert!(recorder.spread(STARTUP).is_empty());
    }
}
