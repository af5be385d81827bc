//! The same records as messages of one encoding: made from a seed, or read from a file.

use crate::{CodecOptions, usage};
use std::path::Path;
use weir_record::{Decoder, Encoder, Format, Framing, Generator, Schema};
use weir_runner::{ErrorKind, RunError};
use weir_setting::{PAYLOAD, RECORDS};

/// Bytes of payloads that are made of one encoding.
const MOST_BYTES: usize = 1 << 30;

/// A decoder of records that were all written by its own schema, whatever number a frame says.
pub(crate) fn decoder(schema: &Schema, format: Format) -> Decoder {
    Decoder::new(schema, format).with_writers(Box::new(schema.clone()))
}

/// One encoding: payloads with the same number of records each.
pub(crate) struct Payloads {
    pub(crate) format: Format,
    codec: weir_record::Codec,
    pub(crate) payloads: Vec<Vec<u8>>,
    /// Records of a payload.
    per_message: u64,
}

impl Payloads {
    pub(crate) fn new(
        schema: &Schema,
        format: Format,
        options: &CodecOptions,
        fixed: Option<&StoredMessage>,
    ) -> Result<Self, RunError> {
        let mut generator = Generator::new(schema, options.seed);
        let mut encoder = Encoder::new(schema, format).compressed(options.compression);
        let per_message = fixed.map_or_else(|| options.per_message.into(), |fixed| fixed.records);
        let fixed = fixed.map(|fixed| fixed.payload(schema, format)).transpose()?;
        let full = |number| {
            let line = format!("{number} records fill 1 GiB in {format}; ask for fewer with {RECORDS}");
            RunError::new(ErrorKind::Usage, line)
        };
        let (mut payloads, mut bytes) = (Vec::new(), 0);
        for message in 0..u64::from(options.records).div_ceil(per_message) {
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
        Ok(Self { format, codec: options.compression, payloads, per_message })
    }

    /// The format, and how its blocks are compressed.
    pub(crate) fn encoding(&self) -> String {
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
pub(crate) struct StoredMessage {
    format: Format,
    payload: Vec<u8>,
    records: u64,
}

impl StoredMessage {
    pub(crate) fn read(path: &Path, schema: &Schema, framing: Framing) -> Result<Self, RunError> {
        let is_json = path.extension().is_some_and(|extension| extension == "json");
        let format = if is_json { Format::Json } else { Format::Avro(framing) };
        let payload = weir_files::read(path, MOST_BYTES).map_err(|error| RunError::of_file(path, &error))?;
        let mut decoder = decoder(schema, format);
        let (mut records, mut found) = (decoder.records(&payload), 0);
        let wrong = |words: &dyn std::fmt::Display| {
            RunError::new(ErrorKind::Usage, format!("{}: {words}", PAYLOAD.to(path.display().to_string())))
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
