#![doc = include_str!("../README.md")]

mod cpu_time;
mod decoders;
mod machine_watch;
mod payloads;
mod saving;

use cpu_time::still;
use decoders::{MeasuredDecoder, sides};
use machine_watch::MachineWatch;
use payloads::{Payloads, StoredMessage};
use saving::SavingTarget;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use weir_engine::scenario::{Order, turns};
use weir_libraries::Library;
use weir_metrics::several;
use weir_record::{Format, Framing};
use weir_report::{CodecComparison, CodecSubject, EncodingTimes};
use weir_runner::records::schema;
use weir_runner::{ErrorKind, RunError};

/// What is compared, and how often.
#[derive(Clone, Debug)]
pub struct CodecOptions {
    /// The Avro schema of a record, a file.
    pub schema: PathBuf,
    /// Different records to decode.
    pub records: u32,
    /// Records in a message.
    pub per_message: u32,
    /// A file that every message is: JSON if its name ends with `.json`, otherwise Avro. Made from the seed if there is none.
    pub payload: Option<PathBuf>,
    /// Whether each repetition is kept in milliseconds, as the measurement that weir replaces prints it.
    pub original: bool,
    /// Which decoders: the first of each encoding are compared, the others stand beside them.
    pub decoders: Vec<Library>,
    /// How often each encoding is measured; 2 at the least.
    pub repetitions: u32,
    /// What is around a record in Avro.
    pub framing: Framing,
    /// How the blocks of a container are compressed.
    pub compression: weir_record::Codec,
    /// Where the records are saved as well, as `--save` has it.
    pub save: Vec<String>,
    /// A file whose first line is the password of the database.
    pub save_password_file: Option<PathBuf>,
    /// Records of a transaction.
    pub batch: u32,
    /// Seed of the records.
    pub seed: u64,
}

impl CodecOptions {
    /// What the program compares if nothing but the schema is said.
    pub fn new(schema: impl Into<PathBuf>) -> Self {
        Self {
            schema: schema.into(),
            records: 1_000,
            per_message: 1,
            payload: None,
            original: false,
            decoders: vec![Library::Weir],
            repetitions: 30,
            framing: Framing::Schemaless,
            compression: weir_record::Codec::Null,
            save: Vec::new(),
            save_password_file: None,
            batch: 1_000,
            seed: 0,
        }
    }
}

/// What a comparison came to.
#[derive(Debug)]
pub struct ComparisonOutcome {
    /// The comparison.
    pub comparison: CodecComparison,
    /// A line a repetition, if [they were asked for](CodecOptions::original).
    pub original: String,
    /// Where it was interrupted, if it was: what was measured before is in it.
    pub stopped: Option<String>,
}

/// Makes the same records in both encodings, and decodes and saves them alternately, until that is done or `interrupt` is set. What a
/// store is waited for is said by `say`.
///
/// # Errors
/// The schema, the payload or a store cannot be had; a decoder reads something else than weir's; it was interrupted before there was
/// anything to compare.
pub fn compare(
    options: &CodecOptions,
    interrupt: &AtomicBool,
    say: &dyn Fn(&str),
) -> Result<ComparisonOutcome, RunError> {
    let framing = options.framing;
    let schema = schema(&options.schema)?;
    // A place that cannot be had is better known before.
    let places = options.save.iter().map(|text| SavingTarget::open(text, options, &schema, interrupt, say));
    let mut places = places.collect::<Result<Vec<_>, _>>()?;
    let fixed =
        options.payload.as_deref().map(|path| StoredMessage::read(path, &schema, framing)).transpose()?;
    let avro = Payloads::new(&schema, Format::Avro(framing), options, fixed.as_ref())?;
    let json = Payloads::new(&schema, Format::Json, options, fixed.as_ref())?;
    let mut sides = sides(&schema, [&avro, &json], options)?;
    let mut machine = MachineWatch::begin()?;
    // As the runs of a series: what the one leaves in the caches helps or harms all alike.
    for turn in turns(sides.len(), options.repetitions, Order::Interleaved, 0) {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        machine.look();
        sides[turn.variant].measure();
    }
    // Of a comparison that was interrupted, what each has measured as often as the others.
    let whole = sides.iter().map(|side| side.seconds.len()).min().unwrap_or_default();
    sides.iter_mut().for_each(|side| side.seconds.truncate(whole));
    let mut stopped = (whole < options.repetitions as usize)
        .then(|| format!("after {whole} of {}", several(options.repetitions.into(), "repetition")));
    let subject = CodecSubject {
        schema: options.schema.display().to_string(),
        record: schema.name().to_owned(),
        fingerprint: schema.fingerprint(),
        seed: options.seed,
        records: avro.records(),
    };
    let mut saving = Vec::new();
    for place in &mut places {
        if stopped.is_some() {
            break;
        }
        match place.compare([&avro, &json], options.repetitions, &mut machine)? {
            Some(comparison) => saving.push(comparison),
            None => stopped = Some(format!("while records were saved into {place}")),
        }
    }
    let verdict = machine.verdict();
    let original = match stopped {
        Some(_) => String::new(),
        None if !options.original => String::new(),
        None if places.is_empty() => sides.iter().map(MeasuredDecoder::original).collect(),
        None => places.iter().map(SavingTarget::original).collect(),
    };
    let times: Vec<EncodingTimes> = sides.iter().map(MeasuredDecoder::times).collect();
    let (pair, others) = times.split_at(2);
    match (CodecComparison::new(subject, [&pair[0], &pair[1]], others), stopped) {
        (Some(comparison), stopped) => Ok(ComparisonOutcome {
            comparison: CodecComparison { saving, verdict, ..comparison },
            original,
            stopped,
        }),
        (None, Some(when)) => Err(interrupted(&format!("{when}: nothing can be compared before two"))),
        (None, None) => Err(still()),
    }
}

/// The comparison was interrupted: when.
pub fn interrupted(when: &str) -> RunError {
    RunError::new(ErrorKind::Interrupted, format!("interrupted {when}"))
}

fn usage(error: &dyn std::fmt::Display) -> RunError {
    RunError::new(ErrorKind::Usage, error.to_string())
}
