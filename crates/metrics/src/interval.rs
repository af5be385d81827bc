//! One workload's figures of one second, and the form in which they are kept on disk.

use crate::recorder::Reading;
use crate::{Failure, Kind, Recorder, Schema, SignedHistogram};
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

/// What left the shards for one workload and one second.
#[derive(Clone, Debug)]
pub struct Interval {
    /// Which second of which workload.
    pub key: IntervalKey,
    /// The figures, merged over the shards.
    pub figures: Recorder,
}

/// A line of `intervals.ndjson`: everything but the distributions.
#[derive(Debug, Serialize, Deserialize)]
struct Line {
    #[serde(flatten)]
    key: IntervalKey,
    /// Position of the agent whose it is among those of the run, if agents made its load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<u16>,
    failures: BTreeMap<Failure, u64>,
    #[serde(flatten)]
    numbers: BTreeMap<String, f64>,
}

impl Interval {
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
        let line = Line { key: self.key, agent, failures: self.figures.failures().collect(), numbers };
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
        let mut figures = Recorder::new(schema);
        for (position, figure) in schema.figures().enumerate() {
            if let Some(value) = line.numbers.get(&format!("{}{}", figure.name, figure.unit.suffix())) {
                let number = value / figure.unit.scale();
                if !(0.0..=LARGEST).contains(&number) {
                    let words = format!("{} is {value}, which no second has", figure.name);
                    return Err(serde::de::Error::custom(words));
                }
                figures.set_number(position, number.round() as u64);
            }
        }
        for (failure, n) in line.failures {
            figures.set_failure(failure, n);
        }
        Ok((line.agent, Self { key: line.key, figures }))
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
        let interval = Interval { key, figures: sample(1) };
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

    #[test]
    fn a_signed_figure_that_was_recorded_without_signs_is_read_back() {
        let mut old = crate::histogram::empty_histogram();
        old.record_n(7_000, 3).unwrap();
        let key = IntervalKey { second: 0, workload: 0, server: None };
        let mut interval = Interval { key, figures: Recorder::new(Schema::new(&[])) };
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
        let line = |figures: &Recorder| Interval { key, figures: figures.clone() }.to_line();
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
