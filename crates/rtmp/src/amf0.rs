//! Action Message Format 0: the values that commands and metadata are written in.
//!
//! [`Value`] borrows its strings from the bytes it was decoded from. Decoding is bounded in depth and in the number
//! of values, so that a small hostile message cannot become a large structure.

mod decode;
mod encode;
mod marker;
mod value;

pub use decode::{Decoder, Error, MAX_DEPTH, MAX_VALUES, decode};
pub use encode::{encode, encode_all};
pub use value::{Object, Value};
