//! `weir codec`: the same records in Avro and in JSON, and what decoding one costs in each, and saving it.

use crate::args::Codec;
use crate::cpu_time::{still, thread_seconds};
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::machine_watch::MachineWatch;
use crate::print::{Asked, written};
use crate::saving::SavingTarget;
use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;
use weir_engine::scenario::Order;
use weir_engine::series::turns;
use weir_libraries::{Library, Reader};
use weir_metrics::several;
use weir_record::{Decoder, Encoder, Format, Framing, Generator, Record, Schema, Value};
use weir_report::{CodecComparison, CodecSubject, EncodingTimes};
use weir_runner::records::schema;
use weir_runner::{ErrorKind, RunError};

/// CPU time that one encoding is measured for before the other has its turn.
const TURN_SECONDS: f64 = 0.02;

/// Bytes of payloads that are made of one encoding.
const MOST_BYTES: usize = 1 << 30;

/// Makes the same records in both encodings, decodes them alternately, and prints the comparison.
pub(crate) fn codec(args: &Codec) -> Result<Exit, RunError> {
    let schema = schema(&args.schema)?;
    let framing: Framing = args.avro_encoding.parse().map_err(|error| usage(&error))?;
    if args.avro_codec != weir_record::Codec::Null && framing != Framing::Container {
        let line = "--avro-codec: only a container is compressed; write --avro-encoding container";
        return Err(RunError::new(ErrorKind::Usage, line));
    }
    // A place that cannot be had is better known before.
    let interrupt = interrupt_flag()?;
    let places = args.save.iter().map(|text| SavingTarget::open(text, args, &schema, framing, &interrupt));
    let mut places = places.collect::<Result<Vec<_>, _>>()?;
    let fixed = args.payload.as_deref().map(|path| Fixed::read(path, &schema, framing)).transpose()?;
    let avro = Payloads::new(&schema, Format::Avro(framing), args, fixed.as_ref())?;
    let json = Payloads::new(&schema, Format::Json, args, fixed.as_ref())?;
    let mut sides = sides(&schema, [&avro, &json], args)?;
    let mut machine = MachineWatch::begin()?;
    // As the runs of a series: what the one leaves in the caches helps or harms all alike.
    for turn in turns(sides.len(), args.repetitions, Order::Interleaved, 0) {
        if interrupt.load(Ordering::Relaxed) {
            break;
        }
        machine.look();
        sides[turn.variant].measure();
    }
    // Of a comparison that was interrupted, what each has measured as often as the others.
    let whole = sides.iter().map(|side| side.seconds.len()).min().unwrap_or_default();
    sides.iter_mut().for_each(|side| side.seconds.truncate(whole));
    let mut stopped = (whole < args.repetitions as usize)
        .then(|| format!("after {whole} of {}", several(args.repetitions.into(), "repetition")));
    let subject = CodecSubject {
        schema: args.schema.display().to_string(),
        record: schema.name().to_owned(),
        fingerprint: schema.fingerprint(),
        seed: args.seed,
        records: avro.records(),
    };
    let mut saving = Vec::new();
    for place in &mut places {
        if stopped.is_some() {
            break;
        }
        match place.compare([&avro, &json], args.repetitions, &mut machine, &interrupt)? {
            Some(comparison) => saving.push(comparison),
            None => stopped = Some(format!("while records were saved into {place}")),
        }
    }
    let verdict = machine.verdict();
    if args.original && stopped.is_none() {
        let lines: String = if places.is_empty() {
            sides.iter().map(MeasuredDecoder::original).collect()
        } else {
            places.iter().map(SavingTarget::original).collect()
        };
        written(std::io::stdout().lock().write_all(lines.as_bytes()))?;
    }
    let times: Vec<EncodingTimes> = sides.iter().map(MeasuredDecoder::times).collect();
    let (pair, others) = times.split_at(2);
    let comparison = CodecComparison::new(subject, [&pair[0], &pair[1]], others);
    let interrupted = |when: String| RunError::new(ErrorKind::Interrupted, format!("interrupted {when}"));
    match (comparison, stopped) {
        (Some(comparison), stopped) => {
            print(&CodecComparison { saving, verdict, ..comparison }, args)?;
            stopped.map_or(Ok(Exit::Passed), |when| Err(interrupted(when)))
        }
        (None, Some(when)) => Err(interrupted(format!("{when}: nothing can be compared before two"))),
        (None, None) => Err(still()),
    }
}

fn usage(error: &dyn std::fmt::Display) -> RunError {
    RunError::new(ErrorKind::Usage, error.to_string())
}

/// A decoder of records that were all written by its own schema, whatever number a frame says.
pub(crate) fn decoder(schema: &Schema, format: Format) -> Decoder {
    Decoder::new(schema, format).with_writers(Box::new(schema.clone()))
}

/// One encoding: payloads with the same number of records each.
pub(crate) struct Payloads {
    format: Format,
    codec: weir_record::Codec,
    pub(crate) payloads: Vec<Vec<u8>>,
    /// Records of a payload.
    per_message: u64,
}

impl Payloads {
    pub(crate) fn new(
        schema: &Schema,
        format: Format,
        args: &Codec,
        fixed: Option<&Fixed>,
    ) -> Result<Self, RunError> {
        let mut generator = Generator::new(schema, args.seed);
        let mut encoder = Encoder::new(schema, format).compressed(args.avro_codec);
        let per_message = fixed.map_or_else(|| args.per_message.into(), |fixed| fixed.records);
        let fixed = fixed.map(|fixed| fixed.payload(schema, format)).transpose()?;
        let full = |number| {
            let line = format!("{number} records fill 1 GiB in {format}; ask for fewer with --records");
            RunError::new(ErrorKind::Usage, line)
        };
        let (mut payloads, mut bytes) = (Vec::new(), 0);
        for message in 0..u64::from(args.records).div_ceil(per_message) {
            let mut payload = Vec::new();
            if let Some(fixed) = &fixed {
                payload.extend_from_slice(fixed);
            } else {
                for number in message * per_message..(message + 1) * per_message {
                    let record = generator.record(number).map_err(|error| usage(&error))?;
                    encoder.push(record).map_err(RunError::with(ErrorKind::Internal))?;
                    // Of many records in a message as well as of many messages.
                    if bytes + encoder.len() > MOST_BYTES {
                        return Err(full(number));
                    }
                }
                encoder.finish(&mut payload);
            }
            bytes += payload.len();
            if bytes > MOST_BYTES {
                return Err(full(message * per_message));
            }
            payloads.push(payload);
        }
        Ok(Self { format, codec: args.avro_codec, payloads, per_message })
    }

    /// The format, and how its blocks are compressed.
    fn encoding(&self) -> String {
        match (self.format, self.codec) {
            (Format::Avro(framing), codec) if codec != weir_record::Codec::Null => {
                format!("avro ({framing}, {})", codec.name())
            }
            (format, _) => format.to_string(),
        }
    }

    /// How many records a payload has.
    pub(crate) fn per_message(&self) -> u64 {
        self.per_message
    }

    /// How many records there are.
    pub(crate) fn records(&self) -> u64 {
        self.payloads.len() as u64 * self.per_message
    }
}

/// A message that was read from a file, and is sent again and again.
pub(crate) struct Fixed {
    format: Format,
    payload: Vec<u8>,
    records: u64,
}

impl Fixed {
    fn read(path: &Path, schema: &Schema, framing: Framing) -> Result<Self, RunError> {
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        let format = if is_json { Format::Json } else { Format::Avro(framing) };
        let payload = weir_files::read(path, MOST_BYTES).map_err(|error| RunError::of_file(path, &error))?;
        let mut decoder = decoder(schema, format);
        let (mut records, mut found) = (decoder.records(&payload), 0);
        let wrong = |words: &dyn std::fmt::Display| {
            RunError::new(ErrorKind::Usage, format!("--payload {}: {words}", path.display()))
        };
        while let Some(record) = records.next() {
            record.map_err(|error| wrong(&error))?;
            found += 1;
        }
        if found == 0 {
            return Err(wrong(&"there is no record in it"));
        }
        Ok(Self { format, payload, records: found })
    }

    /// The same records in another format.
    fn payload(&self, schema: &Schema, format: Format) -> Result<Vec<u8>, RunError> {
        if format == self.format {
            return Ok(self.payload.clone());
        }
        let (mut decoder, mut encoder) = (decoder(schema, self.format), Encoder::new(schema, format));
        let mut records = decoder.records(&self.payload);
        while let Some(record) = records.next() {
            let record = record.map_err(RunError::with(ErrorKind::Internal))?;
            encoder.push(record).map_err(RunError::with(ErrorKind::Internal))?;
        }
        let mut payload = Vec::new();
        encoder.finish(&mut payload);
        Ok(payload)
    }
}

/// A decoder with its payloads, and how long it took.
struct MeasuredDecoder<'p> {
    payloads: &'p Payloads,
    library: Library,
    decoder: Decoding,
    /// How many passes fill a turn.
    passes: u32,
    /// Seconds of CPU time a record, of each repetition.
    seconds: Vec<f64>,
    /// Milliseconds of monotonic time of all records, of each repetition.
    original: Vec<f64>,
}

enum Decoding {
    Ours(Box<Decoder>),
    Theirs(Reader),
}

/// The decoders that were asked for: the first of Avro, the first of JSON, the others.
fn sides<'p>(
    schema: &Schema,
    both: [&'p Payloads; 2],
    args: &Codec,
) -> Result<Vec<MeasuredDecoder<'p>>, RunError> {
    let mut asked = args.decoders.clone();
    // One that is named twice has its turns once.
    let mut known = Vec::new();
    asked.retain(|library| {
        !known.contains(library) && {
            known.push(*library);
            true
        }
    });
    let [avro, json] = [Library::reads_avro, Library::reads_json].map(|reads| {
        let mut able: Vec<Library> = asked.iter().copied().filter(|library| reads(*library)).collect();
        if able.is_empty() {
            able.push(Library::Weir);
        }
        able
    });
    let first = [(both[0], avro[0]), (both[1], json[0])];
    let others = avro[1..].iter().map(|library| (both[0], *library));
    let others = others.chain(json[1..].iter().map(|library| (both[1], *library)));
    let mut sides = Vec::new();
    for (payloads, library) in first.into_iter().chain(others) {
        sides.push(MeasuredDecoder::new(schema, payloads, library, args)?);
    }
    same(schema, both, &sides)?;
    sides.iter_mut().for_each(MeasuredDecoder::settle_passes);
    Ok(sides)
}

impl<'p> MeasuredDecoder<'p> {
    fn new(
        schema: &Schema,
        payloads: &'p Payloads,
        library: Library,
        args: &Codec,
    ) -> Result<Self, RunError> {
        let format = payloads.format;
        if library != Library::Weir
            && matches!(format, Format::Avro(framing) if framing != Framing::Schemaless)
        {
            let name = library.name();
            let line =
                format!("--decoder {name} reads records without a frame alone; leave --avro-encoding out");
            return Err(RunError::new(ErrorKind::Usage, line));
        }
        if library != Library::Weir && payloads.per_message > 1 {
            let name = library.name();
            let line =
                format!("--decoder {name} reads one record a message; leave --per-message and --payload out");
            return Err(RunError::new(ErrorKind::Usage, line));
        }
        let text = weir_files::read_text(&args.schema, weir_record::MAX_SCHEMA)
            .map_err(|error| RunError::of_file(&args.schema, &error))?;
        let reader =
            Reader::new(library, schema, &text).map_err(|line| RunError::new(ErrorKind::Usage, line))?;
        let decoder = match reader {
            Some(reader) => Decoding::Theirs(reader),
            None => Decoding::Ours(Box::new(decoder(schema, format))),
        };
        Ok(Self { payloads, library, decoder, passes: 1, seconds: Vec::new(), original: Vec::new() })
    }

    /// Decodes all payloads once, and gives the CPU time that took.
    fn decode_all(&mut self) -> f64 {
        let started = thread_seconds();
        match &mut self.decoder {
            // They were all decoded before.
            Decoding::Ours(decoder) if self.payloads.per_message == 1 => {
                for payload in &self.payloads.payloads {
                    if let Ok(record) = decoder.one(payload) {
                        read(record);
                    }
                }
            }
            Decoding::Ours(decoder) => {
                for payload in &self.payloads.payloads {
                    let mut records = decoder.records(payload);
                    while let Some(Ok(record)) = records.next() {
                        read(record);
                    }
                }
            }
            // The same here.
            Decoding::Theirs(reader) => drop(reader.decode_all(&self.payloads.payloads)),
        }
        thread_seconds() - started
    }

    /// Finds out how many passes fill a turn, of which the first ones are lost to empty caches.
    fn settle_passes(&mut self) {
        self.decode_all();
        let seconds = self.decode_all().max(1e-9);
        self.passes = (TURN_SECONDS / seconds).ceil().clamp(1.0, 1e7) as u32;
    }

    fn measure(&mut self) {
        let began = Instant::now();
        let seconds: f64 = (0..self.passes).map(|_| self.decode_all()).sum();
        self.original.push(began.elapsed().as_secs_f64() * 1e3 / f64::from(self.passes));
        self.seconds.push(seconds / f64::from(self.passes) / self.payloads.records() as f64);
    }

    /// The lines of the measurement that weir replaces, of which only the first number is measured here.
    fn original(&self) -> String {
        let head = format!("{} by {}: [decode] in ms\n", self.payloads.encoding(), self.library.name());
        self.original.iter().fold(head, |lines, decode| lines + &format!("[{decode:.3}]\n"))
    }

    fn times(&self) -> EncodingTimes {
        let payloads = &self.payloads.payloads;
        let bytes: usize = payloads.iter().map(Vec::len).sum();
        EncodingTimes {
            encoding: self.payloads.encoding(),
            decoder: self.library.name().to_owned(),
            record_bytes: bytes as f64 / self.payloads.records() as f64,
            seconds: self.seconds.clone(),
        }
    }
}

/// All decoders say the same of both encodings, bit for bit: else there would be nothing to compare.
fn same(schema: &Schema, both: [&Payloads; 2], sides: &[MeasuredDecoder<'_>]) -> Result<(), RunError> {
    let plain = |record: Record<'_>| {
        let (mut encoder, mut out) = (Encoder::new(schema, Format::Avro(Framing::Schemaless)), Vec::new());
        encoder.push(record).map_err(RunError::with(ErrorKind::Internal))?;
        encoder.finish(&mut out);
        Ok::<_, RunError>(out)
    };
    let [mut avro, mut json] = both.map(|payloads| decoder(schema, payloads.format));
    for (number, (one, other)) in both[0].payloads.iter().zip(&both[1].payloads).enumerate() {
        let (mut of_avro, mut of_json) = (avro.records(one), json.records(other));
        for _ in 0..both[0].per_message {
            let missing = || RunError::new(ErrorKind::Internal, "a message has too few records");
            let record = of_avro.next().ok_or_else(missing)?.map_err(RunError::with(ErrorKind::Internal))?;
            let same = of_json.next().ok_or_else(missing)?.map_err(RunError::with(ErrorKind::Internal))?;
            if plain(record)? != plain(same)? {
                return Err(RunError::new(
                    ErrorKind::Internal,
                    "a record is not the same in Avro and in JSON",
                ));
            }
        }
        if both[0].per_message > 1 {
            // Libraries read one a message.
            continue;
        }
        let record = avro.one(one).map_err(RunError::with(ErrorKind::Internal))?;
        for side in sides {
            let Decoding::Theirs(reader) = &side.decoder else { continue };
            let payload = if std::ptr::eq(side.payloads, both[0]) { one } else { other };
            reader.check(payload, record).map_err(|cause| {
                let name = side.library.name();
                RunError::new(
                    ErrorKind::Usage,
                    format!("--decoder {name} cannot be compared, record {number}: {cause}; leave it out"),
                )
            })?;
        }
    }
    Ok(())
}

/// Looks at each column once.
#[inline]
pub(crate) fn read(record: Record<'_>) {
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

fn print(comparison: &CodecComparison, args: &Codec) -> Result<(), RunError> {
    let asked = Asked { format: "text", json: args.json.as_deref(), quiet: args.quiet };
    asked.print(None, &|format, text, out| match format {
        "json" => comparison.write_json(out),
        _ => text.write_codec(comparison, out),
    })
}
