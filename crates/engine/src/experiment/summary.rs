//! What all repetitions come to: a value made of values.

use super::ExperimentSpec;
use super::account::{Account, Stage};
use super::repetition::{Carried, Repetition, title};
pub use crate::series::Ending;
use crate::summary::{RunFacts, ThresholdResult, VerdictState};
use crate::threshold::{Threshold, ThresholdError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weir_metrics::Estimate;

/// The version of the layout; `docs/experiment.schema.json` follows it.
pub const LAYOUT: &str = "weir.experiment/1";

/// Counts of an account by name: what thresholds may ask for.
const COUNTS: [&str; 8] = [
    "lost",
    "duplicate",
    "dead_lettered",
    "unpublished",
    "unacknowledged",
    "unsettled",
    "saved",
    "imbalances",
];

/// What a time beside background load begins with, in thresholds: `background.json.insert`.
const BESIDE: &str = "background.";

/// What is measured of each repetition.
pub const MEASURES: [Measure; 7] = [
    Measure {
        name: "publish",
        title: "Publish",
        is_of_all: true,
        of: |it| it.publish.map(|stretch| stretch.seconds()),
    },
    Measure {
        name: "receive",
        title: "Receive",
        is_of_all: true,
        of: |it| it.receive.map(|stretch| stretch.seconds()),
    },
    Measure { name: "decode", title: "Decode, busy", is_of_all: true, of: |it| it.decode_seconds },
    Measure { name: "save", title: "Save, busy", is_of_all: true, of: |it| it.save_seconds },
    Measure {
        name: "insert",
        title: "First to last insert",
        is_of_all: true,
        of: |it| it.commit.map(|stretch| stretch.seconds()),
    },
    Measure {
        name: "total",
        title: "Publish to last insert",
        is_of_all: true,
        of: |it| it.commit.map(|stretch| stretch.last_seconds),
    },
    Measure {
        name: "first_insert",
        title: "Publish to first insert",
        is_of_all: false,
        of: |it| it.commit.map(|stretch| stretch.first_seconds),
    },
];

/// A time of a repetition.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    /// Its name in JSON and in thresholds.
    pub name: &'static str,
    /// Its name in tables.
    pub title: &'static str,
    /// Whether all records go by in it, so that it makes a rate.
    is_of_all: bool,
    of: fn(&Repetition) -> Option<f64>,
}

/// A whole experiment.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExperimentSummary {
    /// `weir.experiment/1`.
    pub layout: String,
    /// What was run, and where.
    pub run: RunFacts,
    /// What was asked for, without secrets.
    pub experiment: ExperimentSpec,
    /// How it ended.
    pub ending: Ending,
    /// Whether its figures can be believed: invalid if weir lost count of a message.
    pub verdict: VerdictState,
    /// Things to know when reading the figures, one line each.
    pub warnings: Vec<String>,
    /// What was asked, and whether it held.
    pub thresholds: Vec<ThresholdResult>,
    /// Without background load.
    #[serde(flatten)]
    pub alone: Measurement,
    /// The same beside background load, if there is to be any.
    pub background: Option<Beside>,
    /// All repetitions, in the order in which they were made.
    pub repetitions: Vec<Repetition>,
}

/// The encodings under the same conditions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measurement {
    /// The difference in words.
    pub conclusion: String,
    /// One entry an encoding, in the order of the scenario.
    pub encodings: Vec<EncodingSummary>,
    /// The second encoding against the first, if there are two.
    pub comparison: Option<Comparison>,
}

/// What was measured beside background load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Beside {
    /// What the load's streams carried, in the mean of the repetitions.
    pub carried: Carried,
    /// What was measured.
    #[serde(flatten)]
    pub measurement: Measurement,
}

/// What an encoding came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct EncodingSummary {
    /// `avro` or `json`.
    pub encoding: String,
    /// Repetitions that were made.
    pub repetitions: u64,
    /// Of these, those in which each message became a row: the times below are theirs.
    pub whole: u64,
    /// Sums over all repetitions.
    pub account: Account,
    /// Bytes of a payload, in the mean.
    pub payload_bytes: f64,
    /// Bytes of the table a row, index included, in the mean.
    pub row_bytes: f64,
    /// One entry each of the times that were measured.
    pub times: Vec<Measured>,
}

/// A time over the whole repetitions of an encoding.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// Its name: `publish`, `receive`, `decode`, `save`, `insert`, `total` or `first_insert`.
    pub name: String,
    /// The mean.
    pub mean_seconds: f64,
    /// The mean with its 95 % confidence interval, from two repetitions on.
    pub seconds: Option<Estimate>,
    /// Records a second: rows of a repetition by the mean; none if that is 0.
    pub records_per_second: Option<f64>,
}

/// The second encoding against the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Comparison {
    /// The encoding that the other is compared with.
    pub base: String,
    /// The other.
    pub other: String,
    /// Repetitions in which both are whole.
    pub pairs: u64,
    /// One entry each of the times that were measured.
    pub differences: Vec<Difference>,
    /// The other's bytes of payload over the base's.
    pub bytes_ratio: f64,
}

/// The difference of a time between two encodings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Difference {
    /// Its name.
    pub name: String,
    /// The other's time less the base's, of each pair.
    pub seconds: Estimate,
    /// The other's time over the base's, of each pair; the geometric mean. None where a time is 0.
    pub ratio: Option<Estimate>,
}

/// What is known of an experiment beside its repetitions.
#[derive(Clone, Debug)]
pub struct Facts {
    /// What is run, and where.
    pub run: RunFacts,
    /// What was asked for, without secrets.
    pub spec: ExperimentSpec,
    /// The encodings' names.
    pub encodings: Vec<String>,
    /// Whether each is measured beside background load, too.
    pub background: bool,
}

impl ExperimentSummary {
    /// Sums up what was measured so far.
    pub fn new(facts: &Facts, repetitions: &[Repetition], ending: Ending, thresholds: &[Threshold]) -> Self {
        let (beside, alone): (Vec<_>, Vec<_>) = repetitions.iter().partition(|it| it.background.is_some());
        let is_lost_count =
            |it: &Repetition| it.imbalances.iter().any(|it| matches!(it.stage, Stage::Ingest | Stage::Table));
        let verdict =
            if repetitions.iter().any(is_lost_count) { VerdictState::Invalid } else { VerdictState::Valid };
        let mut summary = Self {
            layout: LAYOUT.to_owned(),
            run: facts.run.clone(),
            experiment: facts.spec.clone(),
            ending,
            verdict,
            warnings: warnings(repetitions),
            thresholds: Vec::new(),
            alone: Measurement::new(&facts.encodings, &alone),
            background: facts.background.then(|| Beside {
                carried: Carried::mean(beside.iter().filter_map(|it| it.background)),
                measurement: Measurement::new(&facts.encodings, &beside),
            }),
            repetitions: repetitions.to_vec(),
        };
        summary.thresholds = thresholds.iter().map(|it| it.judge_value(|name| summary.value(name))).collect();
        summary
    }

    /// What was measured, without background load and with it.
    pub fn measurements(&self) -> impl Iterator<Item = &Measurement> {
        std::iter::once(&self.alone).chain(self.background.as_ref().map(|it| &it.measurement))
    }

    /// A value that a threshold may ask for.
    fn value(&self, name: &str) -> Option<f64> {
        let (of, name) = match name.strip_prefix(BESIDE) {
            Some(name) => (self.background.as_ref().map(|it| &it.measurement)?, name),
            None => (&self.alone, name),
        };
        if let Some((encoding, measure)) = name.split_once('.') {
            let encoding = of.encodings.iter().find(|it| it.encoding == encoding)?;
            return encoding.times.iter().find(|it| it.name == measure).map(|it| it.mean_seconds);
        }
        if self.repetitions.is_empty() {
            return None;
        }
        let sum = |of: fn(&Account) -> u64| {
            let encodings = self.measurements().flat_map(|it| &it.encodings);
            encodings.map(|it| of(&it.account)).sum::<u64>()
        };
        let number = match name {
            "lost" => sum(|it| it.lost),
            "duplicate" => sum(|it| it.duplicate),
            "dead_lettered" => sum(|it| it.dead_lettered),
            "unpublished" => sum(|it| it.planned.saturating_sub(it.published)),
            "unacknowledged" => sum(|it| it.published.saturating_sub(it.acknowledged)),
            "unsettled" => sum(|it| it.received.saturating_sub(it.saved + it.dead_lettered + it.duplicate)),
            "saved" => sum(|it| it.saved),
            "imbalances" => self.repetitions.iter().map(|it| it.imbalances.len() as u64).sum(),
            _ => return None,
        };
        Some(number as f64)
    }
}

impl Measurement {
    fn new(names: &[String], repetitions: &[&Repetition]) -> Self {
        let encodings: Vec<_> = names.iter().map(|name| EncodingSummary::new(name, repetitions)).collect();
        let comparison = match names {
            [base, other] => Comparison::new(base, other, &encodings, repetitions),
            _ => None,
        };
        let mut measurement = Self { conclusion: String::new(), encodings, comparison };
        measurement.conclusion = measurement.conclude();
        measurement
    }

    fn conclude(&self) -> String {
        let [base, other] = &self.encodings[..] else {
            return match &self.encodings[..] {
                [one] => {
                    format!("One encoding, {}: there is nothing to compare.", title(&one.encoding))
                }
                _ => "Nothing was measured.".to_owned(),
            };
        };
        let Some(comparison) = &self.comparison else {
            return format!(
                "No comparison: it takes two repetitions in which each message of both became a row, and there are {} of {} \
                 and {} of {}.",
                base.whole,
                title(&base.encoding),
                other.whole,
                title(&other.encoding)
            );
        };
        comparison.conclude()
    }
}

/// Checks that a threshold asks for something that an experiment measures.
///
/// # Errors
/// Names what was meant, if something resembles it.
pub fn check_threshold(
    threshold: &Threshold,
    encodings: &[String],
    background: bool,
) -> Result<(), ThresholdError> {
    let conditions = if background { &["", BESIDE][..] } else { &[""] };
    let times = encodings.iter().flat_map(|encoding| {
        MEASURES.iter().flat_map(move |measure| {
            conditions.iter().map(move |condition| format!("{condition}{encoding}.{}", measure.name))
        })
    });
    let names: Vec<String> = COUNTS.iter().map(|name| (*name).to_owned()).chain(times).collect();
    threshold.check_total(names.iter().map(String::as_str))
}

/// Each imbalance once, with the repetitions that have it.
fn warnings(repetitions: &[Repetition]) -> Vec<String> {
    let told = repetitions.iter().flat_map(|it| {
        let beside = if it.background.is_some() { " beside background load" } else { "" };
        let place = format!("{}{beside} {}", title(&it.encoding), it.repetition);
        let imbalances = it.imbalances.iter();
        let imbalances = imbalances.map(|it| format!("{place}: {}: {}", it.stage.name(), it.text));
        let remarks = it.remarks.iter().map(|remark| format!("{place}: {remark}"));
        imbalances.chain(remarks).collect::<Vec<_>>()
    });
    let mut told: Vec<_> = told.collect();
    let more = told.len().saturating_sub(MOST_WARNINGS);
    told.truncate(MOST_WARNINGS);
    if more > 0 {
        told.push(format!("and {more} more; summary.json has them all, by repetition"));
    }
    told
}

/// Lines of warnings that are told.
const MOST_WARNINGS: usize = 20;

impl EncodingSummary {
    fn new(name: &str, repetitions: &[&Repetition]) -> Self {
        let all: Vec<_> = repetitions.iter().filter(|it| it.encoding == name).collect();
        let whole: Vec<_> = all.iter().filter(|it| it.is_whole()).collect();
        let mut account = Account::default();
        let (mut payload, mut table) = (0, 0);
        for it in &all {
            account.add(it.account);
            payload += it.payload_bytes;
            table += it.table_bytes;
        }
        let by = |bytes: u64, number: u64| if number == 0 { 0.0 } else { bytes as f64 / number as f64 };
        let times = MEASURES.iter().filter_map(|measure| {
            let seconds: Vec<f64> = whole.iter().filter_map(|it| (measure.of)(it)).collect();
            let mean = seconds.iter().sum::<f64>() / seconds.len() as f64;
            let rows = whole.first().map_or(0, |it| it.account.counted) as f64;
            mean.is_finite().then(|| Measured {
                name: measure.name.to_owned(),
                mean_seconds: mean,
                seconds: Estimate::of(&seconds),
                records_per_second: Some(rows / mean).filter(|rate| measure.is_of_all && rate.is_finite()),
            })
        });
        Self {
            encoding: name.to_owned(),
            repetitions: all.len() as u64,
            whole: whole.len() as u64,
            account,
            payload_bytes: by(payload, account.published),
            row_bytes: by(table, account.counted),
            times: times.collect(),
        }
    }
}

impl Comparison {
    fn new(
        base: &str,
        other: &str,
        encodings: &[EncodingSummary],
        repetitions: &[&Repetition],
    ) -> Option<Self> {
        let of = |name: &str, number: u32| {
            repetitions.iter().find(|it| it.encoding == name && it.repetition == number && it.is_whole())
        };
        let pairs: Vec<_> = repetitions
            .iter()
            .filter(|it| it.encoding == base)
            .filter_map(|it| Some((of(base, it.repetition)?, of(other, it.repetition)?)))
            .collect();
        let differences = MEASURES.iter().filter_map(|measure| {
            let times: Vec<_> = pairs
                .iter()
                .filter_map(|(one, two)| Some(((measure.of)(one)?, (measure.of)(two)?)))
                .collect();
            let differences: Vec<f64> = times.iter().map(|(one, two)| two - one).collect();
            let ratios: Vec<f64> = times.iter().map(|(one, two)| two / one).collect();
            Some(Difference {
                name: measure.name.to_owned(),
                seconds: Estimate::of(&differences)?,
                ratio: Estimate::of_ratios(&ratios),
            })
        });
        let differences: Vec<_> = differences.collect();
        let (one, two) = (encodings.first()?, encodings.get(1)?);
        (pairs.len() >= 2).then(|| Self {
            base: base.to_owned(),
            other: other.to_owned(),
            pairs: pairs.len() as u64,
            differences,
            bytes_ratio: two.payload_bytes / one.payload_bytes,
        })
    }

    /// The difference of a time.
    pub fn difference(&self, name: &str) -> Option<&Difference> {
        self.differences.iter().find(|it| it.name == name)
    }

    fn conclude(&self) -> String {
        let (base, other) = (title(&self.base), title(&self.other));
        let size = format!("{other} has {:.2} times the bytes.", self.bytes_ratio);
        // With one transaction for all there is no time from the first to the last.
        let found = [("insert", "from first to last insert"), ("total", "from first publish to last insert")]
            .into_iter()
            .find_map(|(name, words)| {
                let difference = self.difference(name)?;
                Some((difference, difference.ratio?, words))
            });
        let Some((difference, ratio, words)) = found else {
            return format!("No time was measured that could be compared. {size}");
        };
        let Estimate { mean, low, high } = ratio;
        if !ratio.excludes(1.0) {
            return format!(
                "No difference can be told {words}: {other} takes {mean:.2} times as long as {base}, and 1 is in the 95% \
                 confidence interval, {low:.2} to {high:.2}. {size}"
            );
        }
        let (faster, slower) = if mean > 1.0 { (base, other) } else { (other, base) };
        let flip = |value: f64| if mean > 1.0 { value } else { 1.0 / value };
        let (low, high) = if mean > 1.0 { (low, high) } else { (1.0 / high, 1.0 / low) };
        let busy = |name: &str| Some(self.difference(name)?.seconds.mean * 1e3);
        let of_stages = busy("decode")
            .zip(busy("save"))
            .map(|(decode, save)| format!(", decoding {decode:+.1} ms, saving {save:+.1} ms"));
        // The mean of differences need not lie where the mean of ratios does, so that it has its sign.
        format!(
            "{slower} takes {:.2} times as long as {faster} {words} (95% confidence: {low:.2} to {high:.2}). {other} less \
             {base}: {:+.1} ms{}. {size}",
            flip(mean),
            difference.seconds.mean * 1e3,
            of_stages.unwrap_or_default(),
        )
    }
}
