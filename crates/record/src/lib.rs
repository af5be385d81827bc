//! Records by an Avro schema, read and written as Avro and as JSON. Sans-IO: bytes in, values out.
//!
//! Nothing here knows a socket, a clock, a file or a protocol. A [`Schema`] is compiled once; a [`Decoder`] reads
//! payloads into memory of its own that it uses again for each record, and hands out a [`Record`]: a view of the
//! columns, in the schema's order, whose texts and bytes lie in the payload. After the first few records nothing is
//! allocated any more.
//!
//! ```
//! use weir_record::{Decoder, Format, Framing, Kind, Schema, Value};
//!
//! let schema = Schema::parse(
//!     r#"{"type": "record", "name": "Reading", "fields": [
//!         {"name": "place", "type": "string"},
//!         {"name": "celsius", "type": ["null", "double"]},
//!         {"name": "series", "type": {"type": "array", "items": "double"}}]}"#,
//! )?;
//! // What a table needs to know.
//! let celsius = &schema.columns()[1];
//! assert_eq!((celsius.name(), celsius.kind(), celsius.nullable()), ("celsius", Kind::Double, true));
//!
//! // A payload with one record; `records` is for those with several.
//! let mut decoder = Decoder::new(&schema, Format::Avro(Framing::Schemaless));
//! let record = decoder.one(b"\x06Kyi\x00\x00")?;
//! let mut columns = record.columns();
//! assert!(matches!(columns.next(), Some(Value::String("Kyi"))));
//! assert!(matches!(columns.next(), Some(Value::Null)));
//! let Some(Value::Array(series)) = columns.next() else { unreachable!() };
//! assert!(series.is_empty());
//!
//! // Values that no column of a database has, as JSON text.
//! let mut text = String::new();
//! record.column(2).write_json(&mut text);
//! assert_eq!(text, "[]");
//!
//! let mut decoder = Decoder::new(&schema, Format::Json);
//! let mut records = decoder.records(br#"{"place": "Oslo", "celsius": -0.5, "series": [1, 2.5]}"#);
//! while let Some(record) = records.next() {
//!     let Value::Array(series) = record?.column(2) else { unreachable!() };
//!     assert_eq!(series.doubles(), Some(&[1.0, 2.5][..]));
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is wrong with a payload is one line that says where: `series[17]: byte 312: the record ends within a double`.
//!
//! | module | what it is | where it is written down |
//! |---|---|---|
//! | [`Schema`] | the types of a record, compiled; the fingerprint of its canonical form | Apache Avro 1.12, "Schema Declaration", "Parsing Canonical Form for Schemas" |
//! | [`Decoder`], [`Encoder`] with [`Format::Avro`] | binary encoding; bare, as single objects, in object container files | "Binary Encoding", "Single-object encoding", "Object Container Files" |
//! | the same with [`Format::Json`] | plain JSON, as programs write it that have a dictionary and no Avro: see [`Format::Json`] | RFC 8259; bytes in base64 (RFC 4648, section 4) |
//! | [`WriterSchemas`] | records that were written by another schema than they are read by | "Schema Resolution" |
//! | [`Generator`] | records out of a seed | |
//!
//! A schema is that of a record, or of an array, a map or a union with records in it, in any depth: then each of those is a row.
//!
//! Every length is held against what is left of the payload before anything is done with it, nesting ends at
//! [`MAX_DEPTH`], and a record at [`MAX_VALUES`] values.

mod avro;
mod decoder;
mod default;
mod encoder;
mod error;
mod format;
mod generator;
mod json;
mod logical;
mod plan;
mod resolve;
mod rows;
mod schema;
mod tape;
mod value;
mod writers;

pub use avro::codec::Codec;
pub use decoder::{Decoder, Records};
pub use encoder::{EncodeError, Encoder};
pub use error::{DecodeError, Problem};
pub use format::{Format, Framing, UnknownFraming};
pub use generator::{Generator, RecordTooLarge, Spread};
pub use logical::{Logical, TimeUnit};
pub use schema::{Column, Kind, Schema, SchemaError, SchemaFault};
pub use value::{Array, Columns, Entries, Items, Map, Record, Value};
pub use writers::{Lack, WriterId, WriterSchemas};

/// How deep types and values may be nested.
pub const MAX_DEPTH: usize = 64;

/// How many values a record may have, those of nested records, arrays and maps counted as well. Numbers in arrays of
/// floats and doubles do not count: the length of the payload bounds them.
pub const MAX_VALUES: usize = 1 << 22;

/// How many bytes a record may have that stand in no payload: those of default values that it gets (an item of an array that takes no
/// byte may have a default of many), and all those of a record that is made.
pub const MAX_MADE_BYTES: usize = 16 << 20;

/// How many items that take no byte (nulls, say) a record may have. Nothing else bounds their number.
pub const MAX_EMPTY_ITEMS: usize = 1 << 16;

/// The largest block of an object container file, in bytes once it is decompressed.
pub const MAX_BLOCK: usize = 256 << 20;

/// The longest text of a schema, in bytes.
pub const MAX_SCHEMA: usize = 1 << 20;

/// How many types a schema may have.
pub const MAX_TYPES: usize = 1 << 14;
