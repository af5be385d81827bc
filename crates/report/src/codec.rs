//! What `weir codec` measured: Avro against JSON, as text and as JSON with a schema.
//!
//! A value like a run's summary: nothing here measures or reads.

use crate::document::{Badge, Cell, Document, Fact, Grid, Part, Section, Tone, columns};
use crate::faster::{conclusion, nanos};
use crate::json;
use crate::quantity::{bytes, count};
use crate::quote::quote;
use crate::saving::{SavingComparison, saving_grid};
use crate::stages::{state_tone, state_word};
use schemars::JsonSchema;
use serde::Serialize;
use std::io;
use weir_engine::summary::{Verdict, VerdictState};
use weir_metrics::Estimate;

/// The version of the layout; `docs/codec.schema.json` follows it.
const LAYOUT: &str = "weir.codec/1";

/// Longest name of a file or a record.
const NAME: usize = 60;

/// A comparison of two encodings of the same records.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CodecComparison {
    /// `weir.codec/1`.
    pub layout: String,
    /// weir's version.
    pub weir_version: String,
    /// The file of the schema.
    pub schema: String,
    /// The full name of the record.
    pub record: String,
    /// CRC-64-AVRO of the schema's canonical form, 16 hexadecimal digits.
    pub fingerprint: String,
    /// Seed of the records.
    pub seed: u64,
    /// How many different records were decoded.
    pub records: u64,
    /// How often each encoding was measured, alternately.
    pub repetitions: u64,
    /// Avro.
    pub avro: EncodingFigures,
    /// JSON.
    pub json: EncodingFigures,
    /// Other decoders that had their turns between these two.
    pub others: Vec<EncodingFigures>,
    /// JSON's time for a record less Avro's, of each repetition.
    pub difference_seconds: Estimate,
    /// JSON's time for a record over Avro's, of each repetition; the geometric mean.
    pub time_ratio: Estimate,
    /// JSON's bytes over Avro's.
    pub bytes_ratio: f64,
    /// The difference in words.
    pub conclusion: String,
    /// The same with saving, one entry a destination.
    pub saving: Vec<SavingComparison>,
    /// What others did to the machine meanwhile.
    pub verdict: Verdict,
}

/// What one encoding costs.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EncodingFigures {
    /// Its name.
    pub encoding: String,
    /// The decoder: weir, or the name of a library.
    pub decoder: String,
    /// Bytes of a payload with one record, in the mean.
    pub record_bytes: f64,
    /// CPU time to decode a record and read each of its columns once.
    pub decode_seconds: Estimate,
    /// Records a second of one core: 1 over the mean time.
    pub records_per_second: f64,
}

/// What a comparison is about.
#[derive(Clone, Debug)]
pub struct CodecSubject {
    /// The file of the schema.
    pub schema: String,
    /// The full name of the record.
    pub record: String,
    /// The fingerprint of the schema.
    pub fingerprint: u64,
    /// Seed of the records.
    pub seed: u64,
    /// How many there are.
    pub records: u64,
}

/// What was measured of one encoding.
#[derive(Clone, Debug)]
pub struct EncodingTimes {
    /// Its name.
    pub encoding: String,
    /// The decoder.
    pub decoder: String,
    /// Bytes of a payload with one record, in the mean.
    pub record_bytes: f64,
    /// Seconds of CPU time a record, of each repetition.
    pub seconds: Vec<f64>,
}

impl CodecComparison {
    /// Sums up what was measured of Avro, of JSON and of other decoders. `None` if there are fewer than two repetitions, or
    /// not as many of one encoding as of the other.
    pub fn new(
        subject: CodecSubject,
        [avro, json]: [&EncodingTimes; 2],
        others: &[EncodingTimes],
    ) -> Option<Self> {
        if avro.seconds.len() != json.seconds.len() {
            return None;
        }
        let pairs = || json.seconds.iter().zip(&avro.seconds);
        let differences: Vec<f64> = pairs().map(|(json, avro)| json - avro).collect();
        let ratios: Vec<f64> = pairs().map(|(json, avro)| json / avro).collect();
        let mut comparison = Self {
            layout: LAYOUT.to_owned(),
            weir_version: env!("CARGO_PKG_VERSION").to_owned(),
            schema: subject.schema,
            record: subject.record,
            fingerprint: format!("{:016x}", subject.fingerprint),
            seed: subject.seed,
            records: subject.records,
            repetitions: avro.seconds.len() as u64,
            difference_seconds: Estimate::of(&differences)?,
            time_ratio: Estimate::of_ratios(&ratios)?,
            bytes_ratio: json.record_bytes / avro.record_bytes,
            avro: EncodingFigures::new(avro)?,
            json: EncodingFigures::new(json)?,
            others: others.iter().map(EncodingFigures::new).collect::<Option<_>>()?,
            conclusion: String::new(),
            saving: Vec::new(),
            verdict: Verdict { state: VerdictState::Valid, reasons: Vec::new(), waived: Vec::new() },
        };
        let words = conclusion("decoded", "decoding", comparison.time_ratio, comparison.difference_seconds);
        comparison.conclusion = format!("{words} JSON has {:.2} times the bytes.", comparison.bytes_ratio);
        Some(comparison)
    }

    /// Writes it as JSON, indented. [`crate::schema`] describes it.
    ///
    /// # Errors
    /// `out` does not take it.
    pub fn write_json(&self, out: &mut dyn io::Write) -> io::Result<()> {
        json::write(self, out)
    }

    pub(crate) fn document(&self) -> Document {
        let mut facts = vec![
            Fact::new("Schema", quote(&self.schema, NAME)),
            Fact::new("Record", format!("{}, fingerprint {}", quote(&self.record, NAME), self.fingerprint)),
            Fact::new(
                "Measured",
                format!(
                    "{} different records of seed {}, decoded {} times alternately",
                    count(self.records),
                    self.seed,
                    self.repetitions
                ),
            ),
            Fact::new("Conclusion", self.conclusion.clone()),
            Fact::new("Definitions", "docs/method/ingest.md"),
        ];
        facts.extend(self.verdict.reasons.iter().map(|reason| Fact {
            label: state_word(reason.state).to_owned(),
            lines: vec![quote(&reason.text, 500), format!("Remedy: {}", quote(&reason.remedy, 500))],
            tone: state_tone(reason.state),
            item: true,
        }));
        let columns = columns![
            word "Encoding", word "Decoder", number "Bytes a record" / "Bytes",
            number "CPU a record" / "CPU", number "95% confidence" / "95%",
            number "Records/s a core" / "Records/s",
        ];
        let rows =
            [&self.avro, &self.json].into_iter().chain(&self.others).map(EncodingFigures::row).collect();
        let grid = Grid { caption: "Decoding".to_owned(), columns, rows };
        let mut sections = vec![Section::new("Comparison", vec![Part::Grid(grid), Part::Facts(facts)])];
        if !self.saving.is_empty() {
            let facts = self.saving.iter().map(SavingComparison::fact).collect();
            sections.push(Section::new(
                "Saving",
                vec![Part::Grid(saving_grid(&self.saving)), Part::Facts(facts)],
            ));
        }
        let state = if self.time_ratio.excludes(1.0) { "difference found" } else { "no difference" };
        Document {
            title: "Avro against JSON".to_owned(),
            badges: vec![
                Badge::new(state_word(self.verdict.state), state_tone(self.verdict.state)),
                Badge::new(state, Tone::Plain),
            ],
            sections,
        }
    }
}

impl EncodingFigures {
    fn new(times: &EncodingTimes) -> Option<Self> {
        let decode_seconds = Estimate::of(&times.seconds)?;
        Some(Self {
            encoding: times.encoding.clone(),
            decoder: times.decoder.clone(),
            record_bytes: times.record_bytes,
            decode_seconds,
            records_per_second: 1.0 / decode_seconds.mean,
        })
    }

    fn row(&self) -> Vec<Cell> {
        let Estimate { mean, low, high } = self.decode_seconds;
        vec![
            Cell::text(self.encoding.clone()),
            Cell::text(self.decoder.clone()),
            Cell::text(bytes(self.record_bytes)),
            Cell::text(nanos(mean)),
            Cell::text(format!("{} to {}", nanos(low), nanos(high))),
            Cell::text(count(self.records_per_second.round() as u64)),
        ]
    }
}
