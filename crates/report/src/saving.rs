//! What `weir codec --save` measured: the same records decoded and saved, Avro against JSON, in each place.

use crate::document::{Cell, Fact, Grid, columns};
use crate::faster::{conclusion, nanos};
use crate::quantity::{bytes, count};
use crate::quote::quote;
use schemars::JsonSchema;
use serde::Serialize;
use weir_metrics::Estimate;

/// Longest name of a destination.
const NAME: usize = 60;

/// A comparison of two encodings of the same records, decoded and saved in one place.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SavingComparison {
    /// Where rows went, without a password.
    pub destination: String,
    /// Records of a transaction, at most.
    pub batch: u64,
    /// Avro.
    pub avro: SavingFigures,
    /// JSON.
    pub json: SavingFigures,
    /// JSON's time for a record less Avro's, of each repetition.
    pub difference_seconds: Estimate,
    /// JSON's time for a record over Avro's, of each repetition; the geometric mean.
    pub time_ratio: Estimate,
    /// The difference in words.
    pub conclusion: String,
}

/// What decoding and saving a record of one encoding costs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SavingFigures {
    /// Its name.
    pub encoding: String,
    /// Time to decode and save a record, transactions included.
    pub record_seconds: Estimate,
    /// Of this, CPU time of weir's thread.
    pub cpu_seconds: Estimate,
    /// Records a second: 1 over the mean time.
    pub records_per_second: f64,
    /// Bytes that the table takes a row, index included, after the run.
    pub row_bytes: f64,
}

/// What was measured of one encoding in one place.
#[derive(Clone, Debug)]
pub struct SavingTimes {
    /// Its name.
    pub encoding: String,
    /// Seconds a record, of each repetition.
    pub seconds: Vec<f64>,
    /// Seconds of CPU time of the thread a record, of each repetition.
    pub cpu_seconds: Vec<f64>,
    /// Bytes of the table a row, after the last.
    pub row_bytes: f64,
}

impl SavingComparison {
    /// Sums up what was measured. `None` if there are fewer than two repetitions, or not as many of one encoding as of
    /// the other.
    pub fn new(destination: String, batch: u64, avro: &SavingTimes, json: &SavingTimes) -> Option<Self> {
        if avro.seconds.len() != json.seconds.len() {
            return None;
        }
        let pairs = || json.seconds.iter().zip(&avro.seconds);
        let differences: Vec<f64> = pairs().map(|(json, avro)| json - avro).collect();
        let ratios: Vec<f64> = pairs().map(|(json, avro)| json / avro).collect();
        let (difference_seconds, time_ratio) = (Estimate::of(&differences)?, Estimate::of_ratios(&ratios)?);
        Some(Self {
            destination,
            batch,
            avro: SavingFigures::new(avro)?,
            json: SavingFigures::new(json)?,
            difference_seconds,
            time_ratio,
            conclusion: conclusion(
                "decoded and saved",
                "decoding and saving",
                time_ratio,
                difference_seconds,
            ),
        })
    }

    pub(crate) fn fact(&self) -> Fact {
        Fact::new(quote(&self.destination, NAME), self.conclusion.clone())
    }
}

impl SavingFigures {
    fn new(times: &SavingTimes) -> Option<Self> {
        let record_seconds = Estimate::of(&times.seconds)?;
        Some(Self {
            encoding: times.encoding.clone(),
            record_seconds,
            cpu_seconds: Estimate::of(&times.cpu_seconds)?,
            records_per_second: 1.0 / record_seconds.mean,
            row_bytes: times.row_bytes,
        })
    }
}

/// One row a destination and encoding.
pub(crate) fn saving_grid(comparisons: &[SavingComparison]) -> Grid {
    let columns = columns![
        word "Save", word "Encoding", number "Time a record" / "Time", number "95% confidence" / "95%",
        number "Records/s", number "CPU a record" / "CPU", number "Bytes a row" / "Row",
    ];
    let rows = comparisons.iter().flat_map(|comparison| {
        [&comparison.avro, &comparison.json].map(|it| {
            let Estimate { mean, low, high } = it.record_seconds;
            let (kind, _) = comparison.destination.split_once(':').unwrap_or((&comparison.destination, ""));
            vec![
                Cell::text(quote(kind, NAME)),
                Cell::text(it.encoding.clone()),
                Cell::text(nanos(mean)),
                Cell::text(format!("{} to {}", nanos(low), nanos(high))),
                Cell::text(count(it.records_per_second.round() as u64)),
                Cell::text(nanos(it.cpu_seconds.mean)),
                Cell::text(bytes(it.row_bytes)),
            ]
        })
    });
    Grid { caption: "Decoding and saving".to_owned(), columns, rows: rows.collect() }
}
