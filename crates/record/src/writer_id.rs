//! How a writer's schema is known, and what it means that it cannot be had.

use std::fmt;

/// What stands in front of a record for the schema that it was written by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriterId {
    /// The number of the schema in a registry.
    Id(u64),
    /// The schema's fingerprint: CRC-64-AVRO.
    Fingerprint(u64),
}

/// What it means that a schema cannot be had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SchemaUnavailable {
    /// There is no such schema: records by it cannot be read.
    #[default]
    Lasting,
    /// Whoever has it does not answer now: the same question may be answered later.
    Passing,
    /// Whoever has it wants other credentials.
    Forbidden,
}

impl fmt::Display for WriterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Id(id) => write!(f, "id {id}"),
            Self::Fingerprint(fingerprint) => write!(f, "fingerprint {fingerprint:016x}"),
        }
    }
}
