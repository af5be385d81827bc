//! `weir codec`: the same records in Avro and in JSON, and what decoding one costs in each, and saving it.

use crate::args::Codec;
use crate::conduct::{interrupt_flag, refused, text, written};
use crate::exit::{Exit, Failure};
use crate::saving::Place;
use rustix::time::{ClockId, clock_gettime};
use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::atomic::Ordering;
use weir_engine::series::{Order, turns};
use weir_record::{Decoder, Encoder, Format, Framing, Generator, Record, Schema, Value};
use weir_report::{CodecComparison, CodecSubject, EncodingTimes};

/// CPU time that one encoding is measured for before the other has its turn.
const TURN_SECONDS: f64 = 0.02;

/// Bytes of payloads that are made of one encoding.
const MOST_BYTES: usize = 1 << 30;

/// Makes, compares, decodes by turns, prints.
pub(crate) fn codec(args: &Codec) -> Result<Exit, Failure> {
    let schema = schema(&args.schema)?;
    let framing: Framing = args.avro_encoding.parse().map_err(|error| usage(&error))?;
    // A place that cannot be had is better known before.
    let places = args.save.iter().map(|text| Place::open(text, args, &schema, framing));
    let mut places = places.collect::<Result<Vec<_>, _>>()?;
    let interrupt = interrupt_flag()?;
    let mut avro = Side::new(&schema, Format::Avro(framing), args)?;
    let mut json = Side::new(&schema, Format::Json, args)?;
    same(&schema, &mut avro, &mut json)?;
    let passes = [&mut avro, &mut json].map(Side::passes);
    // As the runs of a series: what the one leaves in the caches helps or harms both alike.
    for turn in turns(2, args.repetitions, Order::Interleaved) {
        [&mut avro, &mut json][turn.variant].measure(passes[turn.variant]);
        if interrupt.load(Ordering::Relaxed) {
            return Ok(Exit::Interrupted);
        }
    }
    let subject = CodecSubject {
        schema: args.schema.display().to_string(),
        record: schema.name().to_owned(),
        fingerprint: schema.fingerprint(),
        seed: args.seed,
        records: avro.payloads.len() as u64,
    };
    let mut saving = Vec::new();
    for place in &mut places {
        match place.compare([&avro.payloads, &json.payloads], args.repetitions, &interrupt)? {
            Some(comparison) => saving.push(comparison),
            None => return Ok(Exit::Interrupted),
        }
    }
    let mut comparison = CodecComparison::new(subject, &avro.times(), &json.times()).ok_or_else(still)?;
    comparison.saving = saving;
    print(&comparison, args)?;
    Ok(Exit::Passed)
}

/// No comparison can be made of what was measured.
pub(crate) fn still() -> Failure {
    Failure::new(Exit::Internal, "the clock of CPU time stands still")
}

/// Reads a schema from a file.
pub(crate) fn schema(path: &Path) -> Result<Schema, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| refused(path, &error))?;
    Schema::parse(&text).map_err(|error| Failure::new(Exit::Usage, format!("{}: {error}", path.display())))
}

fn usage(error: &dyn std::fmt::Display) -> Failure {
    Failure::new(Exit::Usage, error.to_string())
}

/// One encoding: its payloads with one record each, and how long they took.
struct Side {
    format: Format,
    decoder: Decoder,
    payloads: Vec<Vec<u8>>,
    /// Seconds of CPU time a record, of each repetition.
    seconds: Vec<f64>,
}

impl Side {
    fn new(schema: &Schema, format: Format, args: &Codec) -> Result<Self, Failure> {
        let mut generator = Generator::new(schema, args.seed);
        let mut encoder = Encoder::new(schema, format);
        let (mut payloads, mut bytes) = (Vec::new(), 0);
        for number in 0..args.records.into() {
            let mut payload = Vec::new();
            encoder.push(generator.record(number)).map_err(Failure::with(Exit::Internal))?;
            encoder.finish(&mut payload);
            bytes += payload.len();
            if bytes > MOST_BYTES {
                let line = format!("{number} records fill 1 GiB in {format}; ask for fewer with --records");
                return Err(Failure::new(Exit::Usage, line));
            }
            payloads.push(payload);
        }
        Ok(Self { format, decoder: Decoder::new(schema, format), payloads, seconds: Vec::new() })
    }

    /// Decodes all payloads once, and gives the CPU time that took.
    fn pass(&mut self) -> f64 {
        let started = thread_seconds();
        for payload in &self.payloads {
            // They were all decoded before.
            if let Ok(record) = self.decoder.one(payload) {
                read(record);
            }
        }
        thread_seconds() - started
    }

    /// How many passes fill a turn, of which the first ones are lost to empty caches.
    fn passes(&mut self) -> u32 {
        self.pass();
        let seconds = self.pass().max(1e-9);
        (TURN_SECONDS / seconds).ceil().clamp(1.0, 1e7) as u32
    }

    fn measure(&mut self, passes: u32) {
        let seconds: f64 = (0..passes).map(|_| self.pass()).sum();
        self.seconds.push(seconds / f64::from(passes) / self.payloads.len() as f64);
    }

    fn times(&self) -> EncodingTimes {
        let bytes: usize = self.payloads.iter().map(Vec::len).sum();
        EncodingTimes {
            encoding: self.format.to_string(),
            record_bytes: bytes as f64 / self.payloads.len() as f64,
            seconds: self.seconds.clone(),
        }
    }
}

/// Both say the same, bit for bit: else there would be nothing to compare.
fn same(schema: &Schema, avro: &mut Side, json: &mut Side) -> Result<(), Failure> {
    let plain = |record: Record<'_>| {
        let (mut encoder, mut out) = (Encoder::new(schema, Format::Avro(Framing::Schemaless)), Vec::new());
        encoder.push(record).map_err(Failure::with(Exit::Internal))?;
        encoder.finish(&mut out);
        Ok::<_, Failure>(out)
    };
    for (one, other) in avro.payloads.iter().zip(&json.payloads) {
        let [one, other] =
            [(&mut avro.decoder, one), (&mut json.decoder, other)].map(|(decoder, payload)| {
                let record = decoder.one(payload).map_err(Failure::with(Exit::Internal))?;
                plain(record)
            });
        if one? != other? {
            return Err(Failure::new(Exit::Internal, "a record is not the same in Avro and in JSON"));
        }
    }
    Ok(())
}

/// Looks at each column once.
#[inline]
fn read(record: Record<'_>) {
    for column in record.columns() {
        match column {
            Value::Array(array) => {
                black_box((array.doubles(), array.floats(), array.len()));
            }
            other => {
                black_box(other);
            }
        }
    }
}

pub(crate) fn thread_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn print(comparison: &CodecComparison, args: &Codec) -> Result<(), Failure> {
    let json = args.json.as_deref();
    let mut bytes = Vec::new();
    if json == Some(Path::new("-")) {
        comparison.write_json(&mut bytes).map_err(Failure::with(Exit::Internal))?;
    } else if !args.quiet {
        text().write_codec(comparison, &mut bytes).map_err(Failure::with(Exit::Internal))?;
    }
    written(std::io::stdout().lock().write_all(&bytes))?;
    if let Some(path) = json.filter(|path| *path != Path::new("-")) {
        let mut file = BufWriter::new(File::create(path).map_err(|error| refused(path, &error))?);
        comparison
            .write_json(&mut file)
            .and_then(|()| file.flush())
            .map_err(|error| refused(path, &error))?;
    }
    Ok(())
}
