//! Avro's binary encoding, and what may be around it (Apache Avro 1.12).

pub(crate) mod codec;
pub(crate) mod container;
pub(crate) mod read;
pub(crate) mod resolved;
pub(crate) mod write;

/// What a single object begins with ("Single-object encoding").
pub(crate) const SINGLE_OBJECT: [u8; 2] = [0xC3, 0x01];

/// What a record of Confluent's and of Apicurio's serializers begins with.
pub(crate) const REGISTERED: u8 = 0;

/// What an object container file begins with ("Object Container Files").
pub(crate) const CONTAINER: [u8; 4] = *b"Obj\x01";
