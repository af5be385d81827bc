//! `weir codec --save`: the same records decoded and saved, alternately in Avro and JSON, in each store.

use crate::CodecOptions;
use crate::cpu_time::{still, thread_seconds};
use crate::decoders::read;
use crate::machine_watch::MachineWatch;
use crate::payloads::{Payloads, decoder};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use weir_engine::scenario::{Order, turns};
use weir_http::HttpTrust;
use weir_ingest::{Decode, Destination, Durability, Loader, Waiting};
use weir_record::{Decoder, Format, Schema};
use weir_report::{SavingComparison, SavingTimes};
use weir_runner::records::destination;
use weir_runner::{ErrorKind, RunError};
use weir_setting::SAVE;

/// What the tables' names begin with.
const TABLE: &str = "weir_codec";

/// A place that rows go to, with a table for each encoding.
pub(crate) struct SavingTarget<'a> {
    destination: Destination,
    batch: usize,
    interrupt: &'a AtomicBool,
    /// Says what a store is waited for.
    say: &'a dyn Fn(&str),
    /// Avro, then JSON.
    sides: [SavedEncoding; 2],
}

/// One encoding in one place.
struct SavedEncoding {
    format: Format,
    decode: Decode,
    loader: Loader,
    seconds: Vec<f64>,
    cpu_seconds: Vec<f64>,
    /// The decoder alone, if the times of the original measurement are asked for.
    alone: Option<Decoder>,
    /// Milliseconds of decoding and of saving all records, of each repetition.
    original: Vec<[f64; 2]>,
}

impl<'a> SavingTarget<'a> {
    /// Opens a place, and empties its tables.
    pub(crate) fn open(
        text: &str,
        options: &CodecOptions,
        schema: &Schema,
        interrupt: &'a AtomicBool,
        say: &'a dyn Fn(&str),
    ) -> Result<Self, RunError> {
        let destination = destination(text, options.save_password_file.as_deref(), &HttpTrust::System)
            .map_err(|line| RunError::new(ErrorKind::Usage, format!("{SAVE}: {line}")))?;
        let side = |format, name: &str| {
            let decode = Decode::records(schema, format).with_writers(Box::new(schema.clone()));
            let table = format!("{TABLE}_{name}");
            let destination = match &destination {
                // Files of each encoding are in a directory of their own.
                Destination::Parquet(directory) => Destination::Parquet(directory.join(&table)),
                Destination::Kafka(cluster) => Destination::Kafka(cluster.clone().with_topic(&table)),
                other => other.clone(),
            };
            let place = &destination;
            let mut loader = Loader::new(place, &table, &decode, Durability::Full);
            loader.empty(&waiting(&is_over(interrupt), say)).map_err(|error| {
                let exit = if interrupt.load(Ordering::Relaxed) {
                    ErrorKind::Interrupted
                } else {
                    ErrorKind::of_store(place, &error, ErrorKind::Usage)
                };
                RunError::new(exit, error.to_string())
            })?;
            Ok::<_, RunError>(SavedEncoding {
                format,
                decode,
                loader,
                seconds: Vec::new(),
                cpu_seconds: Vec::new(),
                alone: options.original.then(|| decoder(schema, format)),
                original: Vec::new(),
            })
        };
        let sides = [side(Format::Avro(options.framing), "avro")?, side(Format::Json, "json")?];
        Ok(Self { destination, batch: options.batch as usize, interrupt, say, sides })
    }

    /// Decodes and saves the payloads of both encodings alternately, each time into an empty table. `None` if it was
    /// interrupted.
    pub(crate) fn compare(
        &mut self,
        payloads: [&Payloads; 2],
        repetitions: u32,
        machine: &mut MachineWatch,
    ) -> Result<Option<SavingComparison>, RunError> {
        for turn in turns(2, repetitions, Order::Interleaved, 0) {
            machine.look();
            let (interrupt, say) = (self.interrupt, self.say);
            self.sides[turn.variant].measure(payloads[turn.variant], self.batch, interrupt, say)?;
            if interrupt.load(Ordering::Relaxed) {
                return Ok(None);
            }
        }
        let name = self.destination.to_string();
        let times = self.sides.each_mut().map(|side| side.times(self.interrupt, self.say));
        if self.interrupt.load(Ordering::Relaxed) {
            return Ok(None);
        }
        let [avro, json] = times;
        let (avro, json) = (avro?, json?);
        let comparison = SavingComparison::new(name, self.batch as u64, &avro, &json);
        comparison.map(Some).ok_or_else(still)
    }

    /// The lines of the measurement that weir replaces.
    pub(crate) fn original(&self) -> String {
        let mut lines = String::new();
        for side in &self.sides {
            lines += &format!("{} into {}: [decode, save, total] in ms\n", side.format, self.destination);
            for [decode, save] in &side.original {
                lines += &format!("[{decode:.3}, {save:.3}, {:.3}]\n", decode + save);
            }
        }
        lines
    }
}

/// Whether a store is no longer waited for.
fn is_over(interrupt: &AtomicBool) -> impl Fn() -> bool {
    move || interrupt.load(Ordering::Relaxed)
}

/// Waits for a store, and says every ten seconds what for.
fn waiting<'a>(is_over: &'a dyn Fn() -> bool, say: &'a dyn Fn(&str)) -> Waiting<'a> {
    Waiting { is_over, say }
}

impl fmt::Display for SavingTarget<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.destination.fmt(f)
    }
}

/// How long all payloads take to be decoded, and their columns to be looked at, without a row made of them.
fn decode_alone(decoder: &mut Decoder, messages: &Payloads) -> Duration {
    let began = Instant::now();
    for payload in &messages.payloads {
        let mut records = decoder.records(payload);
        // All of them were decoded before.
        while let Some(Ok(record)) = records.next() {
            read(record);
        }
    }
    began.elapsed()
}

impl SavedEncoding {
    /// Leaves off when it is interrupted.
    fn measure(
        &mut self,
        messages: &Payloads,
        batch: usize,
        interrupt: &AtomicBool,
        say: &dyn Fn(&str),
    ) -> Result<(), RunError> {
        let failed = RunError::with(ErrorKind::Internal);
        let emptied = self.loader.empty(&waiting(&is_over(interrupt), say));
        // The error then is that the store is no longer waited for.
        if interrupt.load(Ordering::Relaxed) {
            return Ok(());
        }
        emptied.map_err(&failed)?;
        let alone = self.alone.as_mut().map(|decoder| decode_alone(decoder, messages));
        let (mut decode, mut save, mut rows, mut first) = (Duration::ZERO, Duration::ZERO, 0, 0);
        let began = thread_seconds();
        // A transaction has whole messages, and one at least.
        let messages_each = batch.div_ceil(messages.per_message() as usize);
        for payloads in messages.payloads.chunks(messages_each) {
            if interrupt.load(Ordering::Relaxed) {
                return Ok(());
            }
            let filled = self.loader.fill(&mut self.decode, payloads, 1, first).map_err(&failed)?;
            decode += filled.decode;
            save += filled.save;
            rows += filled.rows;
            first += payloads.len() as u64;
        }
        let cpu_seconds = thread_seconds() - began;
        if rows != messages.records() {
            let line = format!("{:?} took {rows} of {} records", self.loader, messages.records());
            return Err(RunError::new(ErrorKind::Internal, line));
        }
        self.seconds.push((decode + save).as_secs_f64() / rows as f64);
        if let Some(alone) = alone {
            // The original makes a row of what it has decoded while it saves.
            let split = [alone, (decode + save).saturating_sub(alone)];
            self.original.push(split.map(|time| time.as_secs_f64() * 1e3));
        }
        self.cpu_seconds.push(cpu_seconds / rows as f64);
        Ok(())
    }

    fn times(&mut self, interrupt: &AtomicBool, say: &dyn Fn(&str)) -> Result<SavingTimes, RunError> {
        let contents = self
            .loader
            .contents(&waiting(&is_over(interrupt), say))
            .map_err(RunError::with(ErrorKind::Internal))?;
        Ok(SavingTimes {
            encoding: self.format.to_string(),
            seconds: self.seconds.clone(),
            cpu_seconds: self.cpu_seconds.clone(),
            row_bytes: contents.bytes as f64 / contents.rows as f64,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_record::Framing;

    const SCHEMA: &str = r#"{"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}"#;

    /// Somebody else has locked the file, so that whatever is asked of the store takes until the interruption.
    #[test]
    fn an_interruption_while_a_store_is_waited_for_is_no_failure() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("rows.db");
        let place = format!("sqlite:{}", file.display());
        let options = CodecOptions { records: 2, ..CodecOptions::new("schema.avsc") };
        let schema = Schema::parse(SCHEMA).unwrap();
        let interrupt = AtomicBool::new(false);
        let open = || SavingTarget::open(&place, &options, &schema, &interrupt, &|_| {});
        let mut target = open().map_err(|failure| failure.to_string()).unwrap();

        let other = rusqlite::Connection::open(&file).unwrap();
        other.execute_batch("BEGIN EXCLUSIVE").unwrap();
        interrupt.store(true, Ordering::Relaxed);
        let [avro, json] = [Format::Avro(Framing::Schemaless), Format::Json]
            .map(|format| Payloads::new(&schema, format, &options, None).unwrap());
        let mut machine = MachineWatch::begin().unwrap();
        let compared = target.compare([&avro, &json], 2, &mut machine);
        assert!(matches!(compared, Ok(None)), "it is no error of the place");
        let refused = open().err().map(|failure| failure.kind());
        assert_eq!(refused, Some(ErrorKind::Interrupted));
    }
}
