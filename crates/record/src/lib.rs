#![doc = include_str!("../README.md")]

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
mod writer_id;
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
pub use writer_id::{SchemaUnavailable, WriterId};
pub use writers::WriterSchemas;

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
