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
    /// A record is an object. Several are an array of objects, or follow each other with white space between them; of a schema whose
    /// top is no record, values follow each other.
    /// Members may come in any order; those that the schema does not name are skipped; one that is missing is the
    /// field's default, or `null` if it may be that; otherwise it is an error, and so is one that comes twice.
    ///
    /// | Avro | JSON |
    /// |---|---|
    /// | `int`, `long` | a number without fraction and exponent; read as well: `1.0` and `1e3`, whose value is a whole number |
    /// | `float`, `double` | a number: the shortest one that is read back as the same bits. `"Infinity"`, `"-Infinity"`, `"NaN"`, and `"NaN:7ff8000000000001"` for one with other bits, since JSON has none of them; read as well: the bare words that Python writes |
    /// | `bytes`, `fixed` | a string in base64 with padding; read as well: without padding, and as the only item of an array |
    /// | `string`, `enum` | a string |
    /// | `array`, `map`, `record` | an array, an object, an object |
    /// | union of `null` and one type | `null`, or the value as such |
    /// | other unions | `null`, or an object whose only member is named after the branch, as in Avro's JSON encoding; read as well: anything but an object as such, taken as the first branch that can hold it, and a text as `bytes` or `fixed` only where no other branch can |
    Json,
    /// Avro's own JSON encoding ("JSON Encoding"), as Java's and Python's programs write it.
    ///
    /// As [`Self::Json`], but for unions: `null`, or an object whose only member is named after the branch; and for `bytes` and
    /// `fixed`: a string with a character for each byte, U+0000 to U+00FF. Several records follow each other, a line each.
    AvroJson,
}

/// What is around the records of an Avro payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// Nothing: one record after the other to the end of the payload.
    Schemaless,
    /// Before each record two bytes and the fingerprint of its schema ("Single-object encoding").
    SingleObject,
    /// Before each record a zero and the number of its schema in a registry, in four bytes: what Confluent's serializers
    /// write, and Apicurio's usually.
    Confluent,
    /// The same with a number of eight bytes: what Apicurio's serializers write before their version 3.
    Apicurio,
    /// An object container file: a header with the schema, and blocks of records.
    Container,
}

/// A name that no framing has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an Avro encoding; write schemaless, single-object, confluent, apicurio or container")]
pub struct UnknownFraming(pub String);

impl Framing {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::Schemaless, Self::SingleObject, Self::Confluent, Self::Apicurio, Self::Container];

    /// The name, as users write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Schemaless => "schemaless",
            Self::SingleObject => "single-object",
            Self::Confluent => "confluent",
            Self::Apicurio => "apicurio",
            Self::Container => "container",
        }
    }

    /// Whether records carry the number of their schema in a registry.
    pub const fn is_registered(self) -> bool {
        matches!(self, Self::Confluent | Self::Apicurio)
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

impl Format {
    /// Whether it is text.
    pub const fn is_json(self) -> bool {
        matches!(self, Self::Json | Self::AvroJson)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Avro(Framing::Schemaless) => f.pad("avro"),
            Self::Avro(framing) => write!(f, "avro ({framing})"),
            Self::Json => f.pad("json"),
            Self::AvroJson => f.pad("avro-json"),
        }
    }
}
