//! What is wrong with a schema.

use std::fmt;

/// Why a schema cannot be used. One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchemaError {
    /// Where in the schema, as `fields.inner.items`: names of fields, and the attributes between them. Empty at the
    /// top.
    pub path: String,
    /// What is wrong there.
    pub fault: SchemaFault,
}

/// What is wrong with a schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SchemaFault {
    /// It is no JSON.
    #[error("no JSON: {0}")]
    Json(String),
    /// It is too long.
    #[error("{0} bytes of schema; at most {max} are read", max = crate::MAX_SCHEMA)]
    TooLong(usize),
    /// Too many types.
    #[error("more than {} types", crate::MAX_TYPES)]
    TooManyTypes,
    /// Types are nested too deep.
    #[error("types are nested deeper than {}", crate::MAX_DEPTH)]
    TooDeep,
    /// The top is no record, and has none in it.
    #[error("a record must be at the top, or an array, a map or a union with one; this is {0}")]
    NoRecord(String),
    /// Something else where a type must be.
    #[error("a type is a name, an object or an array; this is {0}")]
    NoType(&'static str),
    /// No type has that name.
    #[error("'{0}' is not a type, and no record, enum or fixed before this has that name")]
    Unknown(String),
    /// An attribute is missing, or is something else.
    #[error("the attribute '{name}' must be {expected}")]
    Attribute {
        /// Its name.
        name: &'static str,
        /// What it must be.
        expected: &'static str,
    },
    /// A name that Avro does not allow.
    #[error("'{0}' is not a name: letters, digits and _, no digit first")]
    Name(String),
    /// A name that there is already.
    #[error("the {what} '{name}' comes twice")]
    Twice {
        /// What has that name.
        what: &'static str,
        /// The name.
        name: String,
    },
    /// A union in a union.
    #[error("a union cannot have a union as a branch")]
    UnionInUnion,
    /// A type of which no value can exist.
    #[error("{0} has no value that ends: it contains itself, or a union has no branch")]
    Endless(String),
}

impl SchemaError {
    pub(crate) fn new(fault: SchemaFault) -> Self {
        Self { path: String::new(), fault }
    }

    /// Adds what is around it.
    pub(crate) fn within(mut self, outer: &str) -> Self {
        if !self.path.is_empty() {
            self.path.insert(0, '.');
        }
        self.path.insert_str(0, outer);
        self
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("schema: ")?;
        if !self.path.is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        self.fault.fmt(f)
    }
}

impl std::error::Error for SchemaError {}
