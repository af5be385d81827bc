//! Decoders that are measured alternately over the same payloads.

use crate::CodecOptions;
use crate::cpu_time::thread_seconds;
use crate::payloads::{Payloads, decoder};
use std::hint::black_box;
use std::time::Instant;
use weir_libraries::{Library, Reader};
use weir_record::{Decoder, Encoder, Format, Framing, Record, Schema, Value};
use weir_report::EncodingTimes;
use weir_runner::{ErrorKind, RunError};
use weir_setting::{AVRO_ENCODING, DECODER, PAYLOAD, PER_MESSAGE};

/// CPU time that one encoding is measured for before the other has its turn.
const TURN_SECONDS: f64 = 0.02;

/// A decoder with its payloads, and how long it took.
pub(crate) struct MeasuredDecoder<'p> {
    payloads: &'p Payloads,
    library: Library,
    decoder: Decoding,
    /// How many passes fill a turn.
    passes: u32,
    /// Seconds of CPU time a record, of each repetition.
    pub(crate) seconds: Vec<f64>,
    /// Milliseconds of monotonic time of all records, of each repetition.
    original: Vec<f64>,
}

enum Decoding {
    Ours(Box<Decoder>),
    Theirs(Reader),
}

/// The decoders that were asked for: the first of Avro, the first of JSON, the others.
pub(crate) fn sides<'p>(
    schema: &Schema,
    both: [&'p Payloads; 2],
    options: &CodecOptions,
) -> Result<Vec<MeasuredDecoder<'p>>, RunError> {
    let mut asked = options.decoders.clone();
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
        sides.push(MeasuredDecoder::new(schema, payloads, library, options)?);
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
        options: &CodecOptions,
    ) -> Result<Self, RunError> {
        let format = payloads.format;
        if library != Library::Weir
            && matches!(format, Format::Avro(framing) if framing != Framing::Schemaless)
        {
            let name = library.name();
            let line = format!(
                "{} reads records without a frame alone; leave {AVRO_ENCODING} out",
                DECODER.to(name)
            );
            return Err(RunError::new(ErrorKind::Usage, line));
        }
        if library != Library::Weir && payloads.per_message() > 1 {
            let name = library.name();
            let line = format!(
                "{} reads one record a message; leave {PER_MESSAGE} and {PAYLOAD} out",
                DECODER.to(name)
            );
            return Err(RunError::new(ErrorKind::Usage, line));
        }
        let text = weir_files::read_text(&options.schema, weir_record::MAX_SCHEMA)
            .map_err(|error| RunError::of_file(&options.schema, &error))?;
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
            Decoding::Ours(decoder) if self.payloads.per_message() == 1 => {
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

    pub(crate) fn measure(&mut self) {
        let began = Instant::now();
        let seconds: f64 = (0..self.passes).map(|_| self.decode_all()).sum();
        self.original.push(began.elapsed().as_secs_f64() * 1e3 / f64::from(self.passes));
        self.seconds.push(seconds / f64::from(self.passes) / self.payloads.records() as f64);
    }

    /// The lines of the measurement that weir replaces, of which only the first number is measured here.
    pub(crate) fn original(&self) -> String {
        let head = format!("{} by {}: [decode] in ms\n", self.payloads.encoding(), self.library.name());
        self.original.iter().fold(head, |lines, decode| lines + &format!("[{decode:.3}]\n"))
    }

    pub(crate) fn times(&self) -> EncodingTimes {
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
        for _ in 0..both[0].per_message() {
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
        if both[0].per_message() > 1 {
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
                    format!(
                        "{} cannot be compared, record {number}: {cause}; leave it out",
                        DECODER.to(name)
                    ),
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
