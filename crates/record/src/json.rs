//! Records as JSON (RFC 8259), by the rules of [`Format::Json`](crate::Format::Json).

mod cursor;
mod number;
mod read;
mod union;
mod write;

pub(crate) use cursor::{after_space, next_item};
pub(crate) use read::record;
pub(crate) use write::{append, write};

/// What stands for an infinity and for the usual NaN.
const INFINITY: &str = "Infinity";
const MINUS_INFINITY: &str = "-Infinity";
const NAN: &str = "NaN";

/// What stands before the bits of a NaN that is not the usual one.
const NAN_BITS: &str = "NaN:";
