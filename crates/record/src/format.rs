//! How records lie in a payload.

use std::fmt;
use std::str::FromStr;

/// An encoding of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Avro's binary encoding.
    Avro(Framing),
    /// JSON, as a program writes it that has a dictionary and no Avro.
    ///
    /// A record is an object. Several are an array of objects, or follow each other with white space between them.
    /// Members may come in any order; those that the schema does not name are skipped; one that is missing is an
    /// error, and so is one that comes twice.
    ///
    /// | Avro | JSON |
    /// |---|---|
    /// | `int`, `long` | a number without fraction and exponent |
    /// | `float`, `double` | a number: the shortest one that is read back as the same bits. `"Infinity"`, `"-Infinity"`, `"NaN"`, and `"NaN:7ff8000000000001"` for one with other bits, since JSON has none of them; read as well: the bare words that Python writes |
    /// | `bytes`, `fixed` | a string in base64 with padding; read as well: without padding, and as the only item of an array |
    /// | `string`, `enum` | a string |
    /// | `array`, `map`, `record` | an array, an object, an object |
    /// | union of `null` and one type | `null`, or the value as such |
    /// | other unions | `null`, or an object whose only member is named after the branch, as in Avro's JSON encoding; read as well: anything but an object as such, taken as the first branch that can hold it |
    Json,
}

/// What is around the records of an Avro payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// Nothing: one record after the other to the end of the payload.
    Schemaless,
    /// Before each record two bytes and the fingerprint of its schema ("Single-object encoding").
    SingleObject,
    /// An object container file: a header with the schema, and blocks of records.
    Container,
}

/// A name that no framing has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is no encoding of Avro; write schemaless, single-object or container")]
pub struct UnknownFraming(pub String);

impl Framing {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Schemaless, Self::SingleObject, Self::Container];

    /// The name, as users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Schemaless => "schemaless",
            Self::SingleObject => "single-object",
            Self::Container => "container",
        }
    }
}

impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Framing {
    type Err = UnknownFraming;

    fn from_str(text: &str) -> Result<Self, UnknownFraming> {
        let found = Self::ALL.into_iter().find(|framing| framing.name() == text);
        found.ok_or_else(|| UnknownFraming(text.to_owned()))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Avro(Framing::Schemaless) => f.pad("avro"),
            Self::Avro(framing) => write!(f, "avro ({framing})"),
            Self::Json => f.pad("json"),
        }
    }
}
