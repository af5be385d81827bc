//! Payloads in, records out.

use crate::MAX_EMPTY_ITEMS;
use crate::avro::codec::{Codec, Decompressor};
use crate::avro::container::{Block, Header};
use crate::avro::read::{self, Bytes};
use crate::avro::{REGISTERED, SINGLE_OBJECT, resolved};
use crate::error::{DecodeError, Fault, Problem};
use crate::format::{Format, Framing};
use crate::json;
use crate::rows;
use crate::schema::Schema;
use crate::tape::Tape;
use crate::value::{Record, View};
use crate::writer_id::WriterId;
use crate::writers::{WriterSchemas, Writers};

/// Reads records of one schema, in one format. Keeps the memory of the record before for the next one; a thread has
/// its own.
pub struct Decoder {
    schema: Schema,
    format: Format,
    tape: Tape,
    /// The last block that had to be decompressed.
    decompressed: Vec<u8>,
    decompressor: Decompressor,
    /// The text of the schema that was found in the last header.
    known: Vec<u8>,
    writers: Writers,
    /// Where the rows begin of a value that is no record: see [`rows`].
    rows: Vec<u32>,
}

/// The records of a payload, one after the other. Not an [`Iterator`]: a record is gone when the next one is read.
pub struct Records<'d, 'p> {
    decoder: &'d mut Decoder,
    payload: &'p [u8],
    at: usize,
    /// How many values came before.
    number: usize,
    phase: DecoderPhase,
    /// Where the last value was read from.
    found: ValuePosition,
    /// How many rows of it came.
    rows: usize,
}

#[derive(Clone, Copy, Debug)]
enum DecoderPhase {
    /// Nothing was read.
    Begin,
    /// Between two records, of which one came at least.
    Between,
    /// Between two items of a JSON array.
    Listed,
    /// In an object container file.
    Container { marker: [u8; 16], codec: Codec, block: Open },
    /// All is read, or there was an error.
    Over,
}

/// A block of a container that is being read.
#[derive(Clone, Copy, Debug)]
struct Open {
    /// Records left in it.
    left: usize,
    /// How far it is read: in the payload, or in the decompressed block.
    at: usize,
    /// Where it ends, likewise.
    end: usize,
    decompressed: bool,
}

/// Where a value is, after it was read.
#[derive(Clone, Copy)]
enum ValuePosition {
    InPayload,
    Decompressed,
}

impl Decoder {
    /// A decoder for payloads in that format.
    pub fn new(schema: &Schema, format: Format) -> Self {
        Self {
            schema: schema.clone(),
            format,
            tape: Tape::default(),
            decompressed: Vec::new(),
            decompressor: Decompressor::default(),
            known: Vec::new(),
            writers: Writers::default(),
            rows: Vec::new(),
        }
    }

    /// The same for records in front of which stands who wrote them, with the schemas of their writers.
    #[must_use]
    pub fn with_writers(mut self, schemas: Box<dyn WriterSchemas>) -> Self {
        self.writers = Writers::of(schemas);
        self
    }

    /// The same for records that were written by another schema, and do not say so: [`Framing::Schemaless`].
    #[must_use]
    pub fn written_by(mut self, writer: &Schema) -> Self {
        self.writers.set(writer, &self.schema);
        self
    }

    /// The schema that it reads by.
    pub fn schema(&self) -> &Schema {
        &self.schema
    }

    /// The format that it reads.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Reads a payload that has one record.
    ///
    /// # Errors
    /// What is wrong with the payload, and where; more than one record, or none, as well.
    #[inline]
    pub fn one<'r>(&'r mut self, payload: &'r [u8]) -> Result<Record<'r>, DecodeError> {
        // The usual case without the account of several.
        if self.format == Format::Avro(Framing::Schemaless)
            && self.writers.current.is_none()
            && self.schema.plan.is_flat()
            && u32::try_from(payload.len()).is_ok()
        {
            self.tape.clear();
            let end = read::top(&self.schema.plan, &mut self.tape, payload, 0)
                .map_err(|fault| fault.at_record(0))?;
            if end < payload.len() {
                let problem = Problem::TrailingBytes(payload.len() - end);
                return Err(Fault::new(problem, end).at_record(0));
            }
            return Ok(self.record(payload, 0));
        }
        self.one_of(payload)
    }

    fn one_of<'r>(&'r mut self, payload: &'r [u8]) -> Result<Record<'r>, DecodeError> {
        let mut records = self.records(payload);
        let first = records.advance().transpose()?;
        // What follows is looked at without touching the record: nothing may follow.
        if first.is_none() {
            return Err(Fault::new(Problem::NoRecord, payload.len()).at_record(0));
        }
        records.nothing_more().map_err(|fault| fault.at_record(0))?;
        let at = records.row();
        Ok(match first {
            Some(ValuePosition::Decompressed) => self.record(&self.decompressed, at),
            _ => self.record(payload, at),
        })
    }

    /// Reads a payload that may have several records. Only an object container file may have none.
    #[inline]
    pub fn records<'d, 'p>(&'d mut self, payload: &'p [u8]) -> Records<'d, 'p> {
        self.rows.clear();
        let (phase, found) = (DecoderPhase::Begin, ValuePosition::InPayload);
        Records { decoder: self, payload, at: 0, number: 0, phase, found, rows: 0 }
    }

    fn record<'r>(&'r self, input: &'r [u8], at: u32) -> Record<'r> {
        let plan = &*self.schema.plan;
        Record { view: View { plan, tape: &self.tape, input }, id: plan.row, at }
    }

    /// Reads a value of the current writer.
    #[inline]
    fn read(&mut self, input: &[u8], at: usize) -> Result<usize, Fault> {
        let Self { schema, tape, writers, .. } = self;
        tape.clear();
        match &writers.current {
            None => read::top(&schema.plan, tape, input, at),
            Some(resolution) => resolved::top(&schema.plan, resolution, tape, input, at),
        }
    }

    /// The fewest bytes that a value of the current writer takes.
    fn least(&self) -> u64 {
        let own = &self.schema.plan;
        let plan = self.writers.current.as_ref().map_or(&**own, |resolution| resolution.writer());
        plan.of(plan.top).least
    }

    /// Finds out how records are read that were written by a header's schema.
    fn recognise(&mut self, text: &[u8], at: usize) -> Result<(), Fault> {
        if !self.known.is_empty() && self.known == text {
            return Ok(());
        }
        let unreadable = |words: String| Fault::new(Problem::HeaderSchema(words.into()), at);
        let json = std::str::from_utf8(text).map_err(|error| unreadable(error.to_string()))?;
        let found = Schema::parse(json).map_err(|error| unreadable(error.to_string()))?;
        self.writers.set(&found, &self.schema);
        self.known.clear();
        self.known.extend_from_slice(text);
        Ok(())
    }
}

impl Records<'_, '_> {
    /// Reads the next record. After an error there are no more.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Result<Record<'_>, DecodeError>> {
        let found = self.advance()?;
        let at = self.row();
        match found {
            Ok(ValuePosition::InPayload) => Some(Ok(self.decoder.record(self.payload, at))),
            Ok(ValuePosition::Decompressed) => Some(Ok(self.decoder.record(&self.decoder.decompressed, at))),
            Err(error) => Some(Err(error)),
        }
    }

    /// The cell of the row that came last.
    fn row(&self) -> u32 {
        self.rows.checked_sub(1).map_or(0, |last| self.decoder.rows[last])
    }

    /// Goes on to the next row.
    fn advance(&mut self) -> Option<Result<ValuePosition, DecodeError>> {
        if self.decoder.schema.plan.is_flat() {
            return self.advance_value();
        }
        while self.rows == self.decoder.rows.len() {
            self.rows = 0;
            self.decoder.rows.clear();
            match self.advance_value()? {
                Ok(found) => self.found = found,
                Err(error) => return Some(Err(error)),
            }
            let Decoder { schema, tape, rows, .. } = &mut *self.decoder;
            rows::find(&schema.plan, tape, rows);
        }
        self.rows += 1;
        Some(Ok(self.found))
    }

    fn advance_value(&mut self) -> Option<Result<ValuePosition, DecodeError>> {
        if u32::try_from(self.payload.len()).is_err() {
            self.phase = DecoderPhase::Over;
            let problem = Problem::PayloadTooLarge(self.payload.len());
            return Some(Err(Fault::new(problem, 0).at_record(0)));
        }
        let step = match self.decoder.format {
            Format::Json | Format::AvroJson => self.json(),
            Format::Avro(Framing::Schemaless) => self.schemaless(),
            Format::Avro(framing @ (Framing::SingleObject | Framing::Confluent | Framing::Apicurio)) => {
                self.framed(framing)
            }
            Format::Avro(Framing::Container) => self.container(),
        };
        match step {
            Ok(Some(found)) => {
                self.number += 1;
                Some(Ok(found))
            }
            Ok(None) => {
                self.phase = DecoderPhase::Over;
                None
            }
            Err(fault) => {
                self.phase = DecoderPhase::Over;
                Some(Err(fault.at_record(self.number)))
            }
        }
    }

    /// Looks whether the record that was read is the only one.
    fn nothing_more(&self) -> Result<(), Fault> {
        let (payload, at) = (self.payload, self.at);
        if self.rows < self.decoder.rows.len() {
            return Err(Fault::new(Problem::SecondRecord, at));
        }
        let (more, at) = match self.phase {
            DecoderPhase::Between if self.decoder.format.is_json() => {
                let at = json::after_space(payload, at);
                (at < payload.len(), at)
            }
            DecoderPhase::Between => (at < payload.len(), at),
            DecoderPhase::Listed => match json::next_item(payload, at, false)? {
                Some(next) => (true, next),
                None => (false, at),
            },
            DecoderPhase::Container { block, .. } => {
                (block.left > 0 || block.at < block.end || at < payload.len(), block.at)
            }
            DecoderPhase::Begin | DecoderPhase::Over => (false, at),
        };
        if more { Err(Fault::new(Problem::SecondRecord, at)) } else { Ok(()) }
    }

    fn schemaless(&mut self) -> Result<Option<ValuePosition>, Fault> {
        if matches!(self.phase, DecoderPhase::Over)
            || matches!(self.phase, DecoderPhase::Between) && self.at == self.payload.len()
        {
            return Ok(None);
        }
        self.binary()
    }

    /// A record in Avro's binary encoding.
    fn binary(&mut self) -> Result<Option<ValuePosition>, Fault> {
        let end = self.decoder.read(self.payload, self.at)?;
        if end == self.at
            && end < self.payload.len()
            && self.decoder.format == Format::Avro(Framing::Schemaless)
        {
            // A record that takes no byte would come again and again.
            return Err(Fault::new(Problem::TrailingBytes(self.payload.len() - end), end));
        }
        self.at = end;
        self.phase = DecoderPhase::Between;
        Ok(Some(ValuePosition::InPayload))
    }

    /// A record behind what says who wrote it.
    fn framed(&mut self, framing: Framing) -> Result<Option<ValuePosition>, Fault> {
        if matches!(self.phase, DecoderPhase::Over)
            || matches!(self.phase, DecoderPhase::Between) && self.at == self.payload.len()
        {
            return Ok(None);
        }
        let mut bytes = Bytes::new(self.payload, self.at);
        let begins = match framing {
            Framing::SingleObject => bytes.array("the header").is_ok_and(|magic| *magic == SINGLE_OBJECT),
            _ => bytes.array("the header").is_ok_and(|magic| *magic == [REGISTERED]),
        };
        let at = bytes.at();
        let writer = match framing {
            Framing::SingleObject if begins => {
                WriterId::Fingerprint(u64::from_le_bytes(*bytes.array("the fingerprint")?))
            }
            Framing::Confluent if begins => {
                WriterId::Id(u32::from_be_bytes(*bytes.array("the id of the schema")?).into())
            }
            Framing::Apicurio if begins => {
                WriterId::Id(u64::from_be_bytes(*bytes.array("the id of the schema")?))
            }
            _ => {
                let name = match framing {
                    Framing::SingleObject => "a single object",
                    Framing::Confluent => "a record with the id of a schema in four bytes",
                    _ => "a record with the id of a schema in eight bytes",
                };
                return Err(Fault::new(Problem::Magic(name), self.at));
            }
        };
        let Decoder { writers, schema, .. } = &mut *self.decoder;
        writers.select(writer, schema).map_err(|problem| Fault::new(problem, at))?;
        self.at = bytes.at();
        self.binary()
    }

    fn container(&mut self) -> Result<Option<ValuePosition>, Fault> {
        let (marker, codec, mut block) = match self.phase {
            DecoderPhase::Container { marker, codec, block } => (marker, codec, block),
            DecoderPhase::Begin => {
                let mut bytes = Bytes::new(self.payload, 0);
                let header = Header::read(&mut bytes)?;
                self.decoder.recognise(header.schema, 0)?;
                self.at = bytes.at();
                (header.marker, header.codec, Open { left: 0, at: 0, end: 0, decompressed: false })
            }
            _ => return Ok(None),
        };
        while block.left == 0 {
            if block.at < block.end {
                let problem = Problem::TrailingBytes(block.end - block.at);
                return Err(Fault::new(problem, block.at));
            }
            if self.at == self.payload.len() {
                return Ok(None);
            }
            block = self.open(marker, codec)?;
        }
        block.at = if block.decompressed {
            // Taken out, so that it can be read from while the rest of the decoder is written to.
            let decompressed = std::mem::take(&mut self.decoder.decompressed);
            let end = self.decoder.read(&decompressed, block.at);
            self.decoder.decompressed = decompressed;
            end?
        } else {
            self.decoder.read(&self.payload[..block.end], block.at)?
        };
        block.left -= 1;
        self.phase = DecoderPhase::Container { marker, codec, block };
        Ok(Some(if block.decompressed { ValuePosition::Decompressed } else { ValuePosition::InPayload }))
    }

    /// Opens the next block.
    fn open(&mut self, marker: [u8; 16], codec: Codec) -> Result<Open, Fault> {
        let mut bytes = Bytes::new(self.payload, self.at);
        let Block { count, at, end } = Block::read(&mut bytes, &marker)?;
        let mut open = Open { left: count, at, end, decompressed: false };
        if codec != Codec::Null {
            let Decoder { decompressed, decompressor, .. } = &mut *self.decoder;
            let result = decompressor.decompress(codec, &self.payload[at..end], decompressed);
            result.map_err(|problem| Fault::new(problem, at))?;
            open = Open { left: count, at: 0, end: decompressed.len(), decompressed: true };
        }
        // Records that take no byte are as many as the block says.
        let least = self.decoder.least();
        let left = open.end - open.at;
        let room = (left as u64).checked_div(least).unwrap_or(MAX_EMPTY_ITEMS as u64);
        if count as u64 > room {
            return Err(Fault::new(Problem::Count { count: count as i64, left }, self.at));
        }
        self.at = bytes.at();
        Ok(open)
    }

    fn json(&mut self) -> Result<Option<ValuePosition>, Fault> {
        let begin = match self.phase {
            DecoderPhase::Over => return Ok(None),
            DecoderPhase::Listed => match json::next_item(self.payload, self.at, false)? {
                Some(at) => at,
                None => return Ok(None),
            },
            DecoderPhase::Between => {
                let at = json::after_space(self.payload, self.at);
                if at == self.payload.len() {
                    return Ok(None);
                }
                at
            }
            DecoderPhase::Begin | DecoderPhase::Container { .. } => {
                let at = json::after_space(self.payload, 0);
                self.phase = DecoderPhase::Between;
                if self.payload.get(at) == Some(&b'[') && self.decoder.schema.plan.is_flat() {
                    self.phase = DecoderPhase::Listed;
                    match json::next_item(self.payload, at + 1, true)? {
                        Some(at) => at,
                        None => return Ok(None),
                    }
                } else {
                    at
                }
            }
        };
        let Decoder { schema, tape, format, .. } = &mut *self.decoder;
        tape.clear();
        self.at = json::record(&schema.plan, tape, self.payload, begin, *format == Format::AvroJson)?;
        Ok(Some(ValuePosition::InPayload))
    }
}
