//! Records in, payloads out.

use crate::avro::codec::Codec;
use crate::avro::container::Header;
use crate::avro::{REGISTERED, SINGLE_OBJECT, write};
use crate::format::{Format, Framing};
use crate::json;
use crate::schema::Schema;
use crate::value::Record;

/// A record that cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// It is of another schema.
    #[error("the record has the schema with fingerprint {found:016x}; this encoder writes {expected:016x}")]
    Schema {
        /// The fingerprint of the record's schema.
        found: u64,
        /// That of the encoder's.
        expected: u64,
    },
}

/// Writes payloads: records are pushed, and the payload with all of them is taken.
///
/// ```
/// use weir_record::{Encoder, Format, Framing, Generator, Schema};
///
/// let schema = Schema::parse(r#"{"type": "record", "name": "R", "fields": [{"name": "a", "type": "boolean"}]}"#)?;
/// let mut generator = Generator::new(&schema, 7);
/// let mut encoder = Encoder::new(&schema, Format::Avro(Framing::SingleObject));
/// let mut payload = Vec::new();
/// encoder.push(generator.record(0)?)?;
/// encoder.finish(&mut payload);
/// assert_eq!(payload.len(), 2 + 8 + 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Encoder {
    schema: Schema,
    format: Format,
    codec: Codec,
    marker: [u8; 16],
    /// The schema's number in a registry.
    schema_id: u64,
    body: Vec<u8>,
    count: usize,
}

impl Encoder {
    /// An encoder of payloads in that format. The marker of container files is made of the fingerprint: the same
    /// records give the same bytes.
    pub fn new(schema: &Schema, format: Format) -> Self {
        let [one, other] = [0x7765_6972_7765_6972, 0x5851_F42D_4C95_7F2D_u64]
            .map(|factor| schema.fingerprint().wrapping_mul(factor | 1).to_le_bytes());
        let mut marker = [0; 16];
        marker[..8].copy_from_slice(&one);
        marker[8..].copy_from_slice(&other);
        let (schema, codec, body) = (schema.clone(), Codec::Null, Vec::new());
        Self { schema, format, codec, marker, schema_id: 0, body, count: 0 }
    }

    /// The same, with blocks of container files compressed so.
    #[must_use]
    pub fn compressed(self, codec: Codec) -> Self {
        Self { codec, ..self }
    }

    /// The same, with this number of the schema in a registry. [`Framing::Confluent`] has room for its lower 32 bits.
    #[must_use]
    pub fn schema_id(self, schema_id: u64) -> Self {
        Self { schema_id, ..self }
    }

    /// Adds a record to the payload. Where the schema's top is an array or a map, it is the only one in it.
    ///
    /// # Errors
    /// [`EncodeError::Schema`]: the record is of another schema.
    pub fn push(&mut self, record: Record<'_>) -> Result<(), EncodeError> {
        let (found, expected) = (record.view.plan.fingerprint, self.schema.fingerprint());
        if found != expected || record.id != record.view.plan.row {
            return Err(EncodeError::Schema { found, expected });
        }
        match self.format {
            Format::Avro(framing) => {
                match framing {
                    Framing::SingleObject => {
                        self.body.extend_from_slice(&SINGLE_OBJECT);
                        self.body.extend_from_slice(&expected.to_le_bytes());
                    }
                    Framing::Confluent => {
                        self.body.push(REGISTERED);
                        self.body.extend_from_slice(&(self.schema_id as u32).to_be_bytes());
                    }
                    Framing::Apicurio => {
                        self.body.push(REGISTERED);
                        self.body.extend_from_slice(&self.schema_id.to_be_bytes());
                    }
                    Framing::Schemaless | Framing::Container => {}
                }
                write::row(record, &mut self.body);
            }
            Format::Json if self.schema.plan.is_flat() => {
                self.body.push(if self.count == 0 { b'[' } else { b',' });
                json::write(record, &mut self.body, false);
            }
            Format::Json | Format::AvroJson => {
                if self.count > 0 {
                    self.body.push(b'\n');
                }
                json::write(record, &mut self.body, self.format == Format::AvroJson);
            }
        }
        self.count += 1;
        Ok(())
    }

    /// Bytes of the records so far, before they are compressed.
    pub fn len(&self) -> usize {
        self.body.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.body.is_empty()
    }

    /// Appends the payload, and begins the next one.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        match self.format {
            Format::Avro(Framing::Container) => {
                Header::write(self.schema.canonical(), self.codec, &self.marker, out);
                if self.count > 0 {
                    write::long(self.count as i64, out);
                    write::sized(&self.codec.compress(&self.body), out);
                    out.extend_from_slice(&self.marker);
                }
            }
            Format::Avro(_) | Format::AvroJson => out.extend_from_slice(&self.body),
            Format::Json if !self.schema.plan.is_flat() => out.extend_from_slice(&self.body),
            Format::Json if self.count == 1 => out.extend_from_slice(&self.body[1..]),
            Format::Json if self.count == 0 => out.extend_from_slice(b"[]"),
            Format::Json => {
                out.extend_from_slice(&self.body);
                out.push(b']');
            }
        }
        self.body.clear();
        self.count = 0;
    }
}
