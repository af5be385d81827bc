//! What messages are filled with.

use super::payloads::Payloads;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use weir_mqtt::mark::HEADER_LEN;
use weir_record::{Encoder, Format, Generator, RecordTooLarge, Schema, SchemaError};

/// How many different messages of records are made before a run, so that a publisher has nothing to make while it
/// publishes: as many as this, or as fit in [`POOL_BYTES`]. Then they come again from the first.
const POOL: u64 = 8_192;
const POOL_BYTES: usize = 32 << 20;

/// Bytes of a file that is a payload: a packet has room for less.
const MOST_FILE: usize = 256 << 20;

/// Bytes of all payloads of a directory.
const DIRECTORY_BYTES: usize = 256 << 20;

/// What the payload of a message is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filling {
    /// This many random bytes.
    Size(usize),
    /// Random bytes, as many as are drawn for each message.
    Sizes(RangeInclusive<usize>),
    /// The content of a file.
    File(PathBuf),
    /// The contents of the files of a directory, in the order of their names, and again from the first.
    Directory(PathBuf),
    /// The content of a file that has places in it for what clients and messages differ in.
    Template(PathBuf),
    /// Records of a schema, made out of the seed.
    Records {
        /// The file with the Avro schema.
        schema: PathBuf,
        /// How they are encoded.
        format: Format,
        /// How many there are in a message.
        records: u32,
        /// The schema's number in a registry, for frames that carry it.
        schema_id: u64,
    },
}

impl Default for Filling {
    fn default() -> Self {
        Self::Size(256)
    }
}

/// A payload that cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum FillingError {
    /// The file cannot be read.
    #[error("{path}: {source}")]
    Read {
        /// The file.
        path: String,
        /// The system's words.
        source: std::io::Error,
    },
    /// The schema cannot be used.
    #[error("{path}: {source}")]
    Schema {
        /// The file.
        path: String,
        /// What is wrong, and where.
        source: SchemaError,
    },
    /// Records of the schema are too large.
    #[error("{path}: {source}")]
    Record {
        /// The file with the schema.
        path: String,
        /// What the limits are.
        source: RecordTooLarge,
    },
    /// The directory has no payloads.
    #[error("{path}: no file is in it; a payload is the content of one")]
    Empty {
        /// The directory.
        path: String,
    },
    /// The directory has too much in it.
    #[error("{path}: payloads of more than {} MiB are not kept; use a directory of fewer files", DIRECTORY_BYTES >> 20)]
    TooMuch {
        /// The directory.
        path: String,
    },
    /// The template is not text.
    #[error("{path}: a template is text in UTF-8; send other bytes with file:")]
    NoText {
        /// The file.
        path: String,
    },
    /// No packet has room for it.
    #[error("a payload of {bytes} bytes is more than a packet of MQTT has room for; send less than 256 MiB")]
    TooLong {
        /// Its length.
        bytes: usize,
    },
}

impl Filling {
    /// The payloads of `count` messages or of any number, the same for the same seed.
    ///
    /// # Errors
    /// A file that cannot be read, text that is not a schema, or more than a packet has room for.
    pub(super) fn payloads(&self, seed: u64, count: Option<u64>) -> Result<Payloads, FillingError> {
        let mut payloads = Payloads::default();
        match self {
            Self::Size(size) => {
                check(*size)?;
                payloads.push(&noise(*size, seed));
            }
            Self::Sizes(sizes) => {
                check(*sizes.end())?;
                payloads = Payloads::beginnings(&noise(*sizes.end(), seed), sizes, seed);
            }
            Self::File(path) => {
                let bytes = weir_files::read(path, MOST_FILE).map_err(|source| unreadable(path, source))?;
                check(bytes.len())?;
                payloads.push(&bytes);
            }
            Self::Directory(path) => {
                for file in Self::files(path)? {
                    let bytes =
                        weir_files::read(&file, MOST_FILE).map_err(|source| unreadable(&file, source))?;
                    check(bytes.len())?;
                    if payloads.bytes() + bytes.len() > DIRECTORY_BYTES {
                        return Err(FillingError::TooMuch { path: path.display().to_string() });
                    }
                    payloads.push(&bytes);
                }
            }
            Self::Template(path) => {
                let bytes = weir_files::read(path, MOST_FILE).map_err(|source| unreadable(path, source))?;
                check(bytes.len())?;
                let text = String::from_utf8(bytes)
                    .map_err(|_| FillingError::NoText { path: path.display().to_string() })?;
                payloads = Payloads::of_template(text);
            }
            Self::Records { schema, format, records, schema_id } => {
                let path = schema.display().to_string();
                let mut maker =
                    RecordGenerator::new(&read(schema)?, path, *format, *records, *schema_id, seed);
                for number in 0..count.unwrap_or(POOL).clamp(1, POOL) {
                    let payload = maker.payload(number)?;
                    if number > 0 && payloads.bytes() + payload.len() > POOL_BYTES {
                        break;
                    }
                    payloads.push(payload);
                }
            }
        }
        Ok(payloads)
    }

    /// The files of a directory whose contents are payloads, by name; those whose names begin with a dot are left out, as by `ls`.
    ///
    /// # Errors
    /// The directory cannot be read, or has no such file.
    pub fn files(directory: &Path) -> Result<Vec<PathBuf>, FillingError> {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(|source| unreadable(directory, source))? {
            let path = entry.map_err(|source| unreadable(directory, source))?.path();
            let is_hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
            if path.is_file() && !is_hidden {
                files.push(path);
            }
        }
        files.sort();
        if files.is_empty() {
            return Err(FillingError::Empty { path: directory.display().to_string() });
        }
        Ok(files)
    }

    /// The mean size of a message in bytes; `None` if it is unknown before the run.
    pub fn mean_size(&self, seed: u64, count: Option<u64>) -> Option<f64> {
        match self {
            Self::Size(size) => Some(*size as f64),
            Self::Sizes(sizes) => Some((sizes.start() + sizes.end()) as f64 / 2.0),
            Self::File(path) => std::fs::metadata(path).ok().map(|file| file.len() as f64),
            Self::Records { .. } | Self::Directory(_) => {
                self.payloads(seed, count).ok().map(|payloads| payloads.mean_size())
            }
            Self::Template(_) => None,
        }
    }
}

/// Makes payloads of records.
struct RecordGenerator {
    generator: Generator,
    encoder: Encoder,
    records: u64,
    payload: Vec<u8>,
    /// The file with the schema.
    path: String,
}

impl RecordGenerator {
    fn new(schema: &Schema, path: String, format: Format, records: u32, schema_id: u64, seed: u64) -> Self {
        let generator = Generator::new(schema, seed);
        let encoder = Encoder::new(schema, format).schema_id(schema_id);
        Self { generator, encoder, records: records.into(), payload: Vec::new(), path }
    }

    /// The payload of a message: the records that follow those of the message before.
    fn payload(&mut self, number: u64) -> Result<&[u8], FillingError> {
        for record in number * self.records..(number + 1) * self.records {
            let record = self.generator.record(record);
            let record = record.map_err(|source| FillingError::Record { path: self.path.clone(), source })?;
            // It has the schema of the encoder.
            let _ = self.encoder.push(record);
            check(self.encoder.len())?;
        }
        self.payload.clear();
        self.encoder.finish(&mut self.payload);
        check(self.payload.len())?;
        Ok(&self.payload)
    }
}

fn read(path: &Path) -> Result<Schema, FillingError> {
    let text =
        weir_files::read_text(path, weir_record::MAX_SCHEMA).map_err(|source| unreadable(path, source))?;
    Schema::parse(&text).map_err(|source| FillingError::Schema { path: path.display().to_string(), source })
}

fn unreadable(path: &Path, source: std::io::Error) -> FillingError {
    FillingError::Read { path: path.display().to_string(), source }
}

fn check(bytes: usize) -> Result<(), FillingError> {
    // A topic, properties and a mark have to fit as well.
    let most = weir_mqtt::MAX_REMAINING_LENGTH - 2 * weir_mqtt::MAX_FIELD_LENGTH - HEADER_LEN;
    if bytes > most { Err(FillingError::TooLong { bytes }) } else { Ok(()) }
}

/// Bytes that do not compress.
fn noise(size: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; size];
    fastrand::Rng::with_seed(seed).fill(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use weir_record::{Decoder, Framing};

    fn schema() -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let text = r#"{"type": "record", "name": "R", "fields": [
            {"name": "number", "type": "long"}, {"name": "text", "type": {"type": "string", "weir.length": 30}}]}"#;
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn sizes_between_two_bounds_are_drawn_from_the_seed() {
        let filling = Filling::Sizes(10..=12);
        let payloads = filling.payloads(7, None).unwrap();
        let sizes: Vec<usize> = (0..300).map(|number| payloads.of(number).len()).collect();
        for size in 10..=12 {
            let share = sizes.iter().filter(|it| **it == size).count();
            assert!((60..=140).contains(&share), "{size}: {share}");
        }
        let again = filling.payloads(7, None).unwrap();
        assert!((0..300).all(|number| again.of(number) == payloads.of(number)));
        assert_eq!((payloads.longest(), filling.mean_size(7, None)), (12, Some(11.0)));
        assert!(payloads.differ() && Filling::Sizes(5..=5).payloads(1, None).unwrap().of(9).len() == 5);
    }

    #[test]
    fn message_n_has_the_records_that_follow_those_of_the_message_before() {
        let file = schema();
        let schema = read(file.path()).unwrap();
        for format in [
            Format::Avro(Framing::Schemaless),
            Format::Avro(Framing::Confluent),
            Format::Avro(Framing::Container),
            Format::Json,
            Format::AvroJson,
        ] {
            let filling = Filling::Records { schema: file.path().into(), format, records: 3, schema_id: 9 };
            let payloads = filling.payloads(7, Some(20)).unwrap();
            let mut generator = Generator::new(&schema, 7);
            let mut decoder = Decoder::new(&schema, format).with_writers(Box::new(schema.clone()));
            let mut number = 0;
            for message in 0..20 {
                let mut records = decoder.records(payloads.of(message));
                while let Some(record) = records.next() {
                    let expected = format!("{:?}", generator.record(number).unwrap());
                    assert_eq!(format!("{:?}", record.unwrap()), expected);
                    number += 1;
                }
            }
            assert_eq!(number, 60);
            assert_eq!(payloads.of(20), payloads.of(0));
            assert_ne!(filling.payloads(8, Some(1)).unwrap().of(0), payloads.of(0));
        }
    }

    #[test]
    fn the_pool_is_bounded_in_messages_and_in_bytes() {
        let file = schema();
        let format = Format::Avro(Framing::Schemaless);
        let payloads = |records| {
            let filling = Filling::Records { schema: file.path().into(), format, records, schema_id: 0 };
            filling.payloads(0, None).unwrap()
        };
        assert_eq!(payloads(1).len() as u64, POOL);
        let large = payloads(10_000);
        assert!(large.len() < 100 && large.bytes() <= POOL_BYTES, "{} {}", large.len(), large.bytes());
    }

    #[test]
    fn the_files_of_a_directory_follow_each_other_by_name() {
        let directory = tempfile::tempdir().unwrap();
        let of = |path: &Path| Filling::Directory(path.into()).payloads(0, None);
        assert!(matches!(of(directory.path()), Err(FillingError::Empty { .. })));
        for (name, content) in [("b.json", "second"), ("a.json", "first"), (".hidden", "none"), ("c", "")] {
            std::fs::write(directory.path().join(name), content).unwrap();
        }
        std::fs::create_dir(directory.path().join("0")).unwrap();
        let payloads = of(directory.path()).unwrap();
        assert_eq!([0, 1, 2, 3].map(|number| payloads.of(number)), [&b"first"[..], b"second", b"", b"first"]);
        assert!(of(Path::new("/nowhere")).unwrap_err().to_string().starts_with("/nowhere: "));
    }

    #[test]
    fn a_template_is_text() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"{seq}").unwrap();
        let of = |path: &Path| Filling::Template(path.into()).payloads(0, None);
        assert_eq!(of(file.path()).unwrap().template(), Some("{seq}"));
        file.write_all(b"\xFF").unwrap();
        assert!(of(file.path()).unwrap_err().to_string().contains("send other bytes with file:"));
    }

    #[test]
    fn what_is_no_schema_is_said_with_the_name_of_the_file() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"\"int\"").unwrap();
        let format = Format::Json;
        let filling =
            |schema: &Path| Filling::Records { schema: schema.into(), format, records: 1, schema_id: 0 };
        let error = filling(file.path()).payloads(0, None).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "schema: a record must be at the top, or an array, a map or a union with one; this is int"
            ),
            "{error}"
        );
        assert!(error.starts_with(file.path().to_str().unwrap()), "{error}");
        assert!(
            filling(Path::new("/nowhere")).payloads(0, None).unwrap_err().to_string().contains("/nowhere")
        );
    }
}
