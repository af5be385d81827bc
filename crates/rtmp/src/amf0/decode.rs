//! Bytes to values.

use std::borrow::Cow;

use super::marker;
use super::{Object, Value};

/// How deep values may be nested.
pub const MAX_DEPTH: usize = 16;

/// How many values one [`Decoder`] will decode, counting those inside others.
pub const MAX_VALUES: usize = 16_384;

/// Bytes that are not AMF 0. `at` counts from the first byte the decoder was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The bytes end inside a value.
    #[error("AMF 0 ends at byte {at}, inside a value")]
    Truncated {
        /// Where the bytes end.
        at: usize,
    },
    /// A marker that stands for no value, or for one that nobody sends: movie clips, record sets, AMF 3.
    #[error("AMF 0 marker {marker:#04x} at byte {at} is unknown or unsupported")]
    Marker {
        /// Where it is.
        at: usize,
        /// The marker.
        marker: u8,
    },
    /// Values nested deeper than [`MAX_DEPTH`].
    #[error("AMF 0 values nested deeper than {MAX_DEPTH} at byte {at}")]
    TooDeep {
        /// Where the innermost begins.
        at: usize,
    },
    /// More values than [`MAX_VALUES`].
    #[error("more than {MAX_VALUES} AMF 0 values at byte {at}")]
    TooManyValues {
        /// Where the one too many begins.
        at: usize,
    },
}

/// All values in `bytes`, one after the other.
pub fn decode(bytes: &[u8]) -> Result<Vec<Value<'_>>, Error> {
    let mut decoder = Decoder::new(bytes);
    let mut values = Vec::new();
    while !decoder.is_empty() {
        values.push(decoder.value()?);
    }
    Ok(values)
}

/// Decodes values one after the other.
#[derive(Clone, Debug)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    at: usize,
    values: usize,
}

impl<'a> Decoder<'a> {
    /// A decoder at the first byte.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, values: 0 }
    }

    /// Whether every byte has been decoded.
    pub fn is_empty(&self) -> bool {
        self.at == self.bytes.len()
    }

    /// How many bytes have been decoded.
    pub fn position(&self) -> usize {
        self.at
    }

    /// The next value.
    pub fn value(&mut self) -> Result<Value<'a>, Error> {
        self.nested(0)
    }

    fn nested(&mut self, depth: usize) -> Result<Value<'a>, Error> {
        let at = self.at;
        if depth > MAX_DEPTH {
            return Err(Error::TooDeep { at });
        }
        if self.values == MAX_VALUES {
            return Err(Error::TooManyValues { at });
        }
        self.values += 1;
        let [marker] = self.array()?;
        Ok(match marker {
            marker::NUMBER => Value::Number(self.number()?),
            marker::BOOLEAN => Value::Boolean(self.array::<1>()? != [0]),
            marker::STRING => Value::String(self.short_text()?),
            marker::OBJECT => Value::Object(self.object(depth)?),
            marker::NULL => Value::Null,
            marker::UNDEFINED => Value::Undefined,
            marker::REFERENCE => Value::Reference(u16::from_be_bytes(self.array()?)),
            marker::ECMA_ARRAY => {
                // How many there are is a hint that writers get wrong; the end marker decides.
                self.array::<4>()?;
                Value::EcmaArray(self.object(depth)?)
            }
            marker::STRICT_ARRAY => {
                let count = u32::from_be_bytes(self.array()?);
                let mut values = Vec::new();
                for _ in 0..count {
                    values.push(self.nested(depth + 1)?);
                }
                Value::StrictArray(values)
            }
            marker::DATE => {
                Value::Date { milliseconds: self.number()?, time_zone: i16::from_be_bytes(self.array()?) }
            }
            marker::LONG_STRING => Value::String(self.long_text()?),
            marker::UNSUPPORTED => Value::Unsupported,
            marker::XML_DOCUMENT => Value::XmlDocument(self.long_text()?),
            marker::TYPED_OBJECT => {
                Value::TypedObject { class: self.short_text()?, object: self.object(depth)? }
            }
            marker => return Err(Error::Marker { at, marker }),
        })
    }

    fn object(&mut self, depth: usize) -> Result<Object<'a>, Error> {
        let mut properties = Vec::new();
        loop {
            let name = self.short_text()?;
            if self.bytes.get(self.at) == Some(&marker::OBJECT_END) {
                self.at += 1;
                // A name before the end marker has no value to name; encoders write an empty one.
                return Ok(Object(properties));
            }
            properties.push((name, self.nested(depth + 1)?));
        }
    }

    fn number(&mut self) -> Result<f64, Error> {
        Ok(f64::from_be_bytes(self.array()?))
    }

    fn short_text(&mut self) -> Result<Cow<'a, str>, Error> {
        let length = u16::from_be_bytes(self.array()?);
        self.text(usize::from(length))
    }

    fn long_text(&mut self) -> Result<Cow<'a, str>, Error> {
        let length = u32::from_be_bytes(self.array()?);
        self.text(length as usize)
    }

    fn text(&mut self, length: usize) -> Result<Cow<'a, str>, Error> {
        let rest = &self.bytes[self.at..];
        let text = rest.get(..length).ok_or(Error::Truncated { at: self.bytes.len() })?;
        self.at += length;
        Ok(String::from_utf8_lossy(text))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let array = self.bytes[self.at..].first_chunk().ok_or(Error::Truncated { at: self.bytes.len() })?;
        self.at += N;
        Ok(*array)
    }
}
