//! What is wrong with a payload, and where.

use crate::writer_id::{SchemaUnavailable, WriterId};
use std::fmt;

/// Why a payload cannot be read. One line; never a value of the payload in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeError {
    /// Which record of the payload, from 0; of a schema whose top is no record, which of its values.
    pub record: usize,
    /// The value, as `field.inner[3]`; empty if it is about the record or the payload as a whole.
    pub path: String,
    /// Where, in bytes from the beginning of the payload; in a compressed block of an object container file, from
    /// the beginning of the decompressed block.
    pub offset: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a payload. Counted by kind; the text says the figures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// The payload ends where a value goes on.
    #[error("the record ends within {0}")]
    Truncated(&'static str),
    /// There is more after the last record.
    #[error("{0} bytes follow that belong to no record")]
    TrailingBytes(usize),
    /// A second record where there must be one.
    #[error("a second record follows, and there must be one")]
    SecondRecord,
    /// No record where there must be one.
    #[error("the payload has no record")]
    NoRecord,
    /// The payload is larger than offsets can say.
    #[error("a payload of {0} bytes is too large; at most 4 GiB are read")]
    PayloadTooLarge(usize),
    /// A variable-length integer does not end after ten bytes, or has more than 64 bits.
    #[error("a variable-length integer has more than 64 bits")]
    IntegerTooLong,
    /// An `int` that has more than 32 bits.
    #[error("{0} is not an int of 32 bits")]
    IntOutOfRange(i64),
    /// A length that is negative, or longer than what is left.
    #[error("{what} has {length} bytes by its length, and {left} are left")]
    Length {
        /// What has that length.
        what: &'static str,
        /// The length.
        length: i64,
        /// What is left of the payload.
        left: usize,
    },
    /// More items than what is left could hold.
    #[error("a block has {count} items by its count, and {left} bytes are left for them")]
    Count {
        /// The count.
        count: i64,
        /// What is left of the payload.
        left: usize,
    },
    /// A block of items ends elsewhere than it says.
    #[error("a block has {0} bytes by its length, and its items do not")]
    BlockLength(i64),
    /// A boolean that is neither 0 nor 1.
    #[error("{0} is not a boolean; it is 0 or 1")]
    Boolean(u8),
    /// An index beyond the branches of a union or the symbols of an enum.
    #[error("{what} {index} does not exist; there are {count}")]
    Index {
        /// A branch or a symbol.
        what: &'static str,
        /// Which, from 0.
        index: i64,
        /// How many there are.
        count: usize,
    },
    /// Text is not UTF-8.
    #[error("a string is not well-formed UTF-8")]
    IllFormedText,
    /// Nesting without end.
    #[error("values are nested deeper than {}", crate::MAX_DEPTH)]
    TooDeep,
    /// Too many values in a record.
    #[error("the record has more than {} values", crate::MAX_VALUES)]
    TooManyValues,
    /// Too many items that take no byte.
    #[error("the record has more than {} items that take no byte", crate::MAX_EMPTY_ITEMS)]
    TooManyEmptyItems,
    /// A payload begins otherwise than its framing says.
    #[error("this is not {0}: it begins with other bytes")]
    Magic(&'static str),
    /// It was written by another schema.
    #[error("it was written by another schema, with fingerprint {found:016x}; expected {expected:016x}")]
    Fingerprint {
        /// The fingerprint in the payload.
        found: u64,
        /// That of the schema given.
        expected: u64,
    },
    /// The schema of the record's writer cannot be had.
    #[error("the schema with {writer} that it was written by cannot be had: {reason}")]
    Writer {
        /// What stands in front of the record.
        writer: WriterId,
        /// Whether it may be had later.
        lack: SchemaUnavailable,
        /// Why not.
        reason: Box<str>,
    },
    /// A record with the number of its schema in a registry, and no registry.
    #[error("it was written by the schema with id {0}, and no registry of schemas is known")]
    NoRegistry(u64),
    /// A value that was written as something that it cannot be read as.
    #[error("it was written as {written}, which cannot be read as {read}")]
    Mismatch {
        /// The writer's type.
        written: Box<str>,
        /// The reader's.
        read: Box<str>,
    },
    /// A field that the writer does not have, and for which the reader has no value.
    #[error("the writer has no field '{0}', and it has no default")]
    NotWritten(Box<str>),
    /// A symbol that the reader's enum does not have.
    #[error("the enum has no symbol '{0}' of the writer's, and no default")]
    UnknownSymbol(Box<str>),
    /// The schema in the header of a container cannot be read.
    #[error("the schema in the header: {0}")]
    HeaderSchema(Box<str>),
    /// A field of the header is missing.
    #[error("the header has no {0}")]
    Header(&'static str),
    /// A compression that is not read.
    #[error("the codec '{0}' is not read; null, deflate, snappy, zstandard, bzip2 and xz are")]
    Codec(Box<str>),
    /// Compressed data is damaged, or was compressed with a larger window than is read.
    #[error("a block of {0} cannot be decompressed: it is damaged, or wants more memory than it may have")]
    DamagedBlock(&'static str),
    /// Compressed data becomes larger than a block may be.
    #[error("a block has more than {} bytes once it is decompressed", crate::MAX_BLOCK)]
    BlockTooLarge,
    /// The marker after a block is not that of the header.
    #[error("a block does not end with the marker of the header")]
    SyncMarker,

    /// JSON has something else where a value must be.
    #[error("{expected} expected, found {found}")]
    Unexpected {
        /// What must be there.
        expected: &'static str,
        /// What is there.
        found: &'static str,
    },
    /// A number that the type cannot hold, or NaN or an infinity.
    #[error("the number is no {0}")]
    Number(&'static str),
    /// An escape that JSON does not have, or a control character.
    #[error("a string has {0}")]
    Text(&'static str),
    /// Bytes are not base64.
    #[error("the string is no base64")]
    Base64,
    /// A string that stands for bytes has a character that stands for none.
    #[error("the string has a character beyond U+00FF, which is not a byte")]
    Latin,
    /// A `fixed` has another size.
    #[error("a fixed of {expected} bytes expected, found {found}")]
    Size {
        /// The size by the schema.
        expected: usize,
        /// The size found.
        found: usize,
    },
    /// A symbol that the enum does not have.
    #[error("the string is not a symbol of the enum")]
    Symbol,
    /// A member is missing that can be neither its default nor null.
    #[error("the field '{0}' is missing")]
    Missing(Box<str>),
    /// A member comes twice.
    #[error("the field '{0}' comes twice")]
    Twice(Box<str>),
    /// No branch of a union takes the value.
    #[error("no branch of the union takes {0}")]
    NoBranch(&'static str),
}

impl fmt::Display for DecodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.record > 0 {
            write!(f, "record {}: ", self.record)?;
        }
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        write!(f, "byte {}: {}", self.offset, self.problem)
    }
}

impl std::error::Error for DecodeError {}

/// A problem on its way up: each type that it passes adds its name. Small, since every value's result carries one.
#[derive(Debug)]
pub(crate) struct Fault(Box<Trail>);

#[derive(Debug)]
struct Trail {
    problem: Problem,
    offset: usize,
    /// From the innermost outwards.
    segments: Vec<Segment>,
}

#[derive(Debug)]
enum Segment {
    Field(Box<str>),
    Item(usize),
}

impl Fault {
    #[cold]
    pub(crate) fn new(problem: Problem, offset: usize) -> Self {
        Self(Box::new(Trail { problem, offset, segments: Vec::new() }))
    }

    #[cold]
    pub(crate) fn in_field(mut self, name: &str) -> Self {
        self.0.segments.push(Segment::Field(name.into()));
        self
    }

    #[cold]
    pub(crate) fn in_item(mut self, index: usize) -> Self {
        self.0.segments.push(Segment::Item(index));
        self
    }

    #[cold]
    pub(crate) fn at_record(self, record: usize) -> DecodeError {
        use fmt::Write;
        let Trail { problem, offset, segments } = *self.0;
        let mut path = String::new();
        for segment in segments.iter().rev() {
            // Writing to a string does not fail.
            let _ = match segment {
                Segment::Field(name) if path.is_empty() => write!(path, "{name}"),
                Segment::Field(name) => write!(path, ".{name}"),
                Segment::Item(index) => write!(path, "[{index}]"),
            };
        }
        DecodeError { record, path, offset, problem }
    }
}
