//! Values to bytes.

use super::marker;
use super::{Object, Value};

/// Appends one value. A string is written in the short form if it fits (AMF 0 sections 2.4 and 2.14).
pub fn encode(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Number(number) => {
            out.push(marker::NUMBER);
            out.extend(number.to_be_bytes());
        }
        Value::Boolean(boolean) => out.extend([marker::BOOLEAN, u8::from(*boolean)]),
        Value::String(text) if text.len() <= usize::from(u16::MAX) => {
            out.push(marker::STRING);
            short_text(text, out);
        }
        Value::String(text) => {
            out.push(marker::LONG_STRING);
            long_text(text, out);
        }
        Value::Object(properties) => {
            out.push(marker::OBJECT);
            object(properties, out);
        }
        Value::Null => out.push(marker::NULL),
        Value::Undefined => out.push(marker::UNDEFINED),
        Value::Reference(index) => {
            out.push(marker::REFERENCE);
            out.extend(index.to_be_bytes());
        }
        Value::EcmaArray(properties) => {
            out.push(marker::ECMA_ARRAY);
            out.extend((properties.0.len() as u32).to_be_bytes());
            object(properties, out);
        }
        Value::StrictArray(values) => {
            out.push(marker::STRICT_ARRAY);
            out.extend((values.len() as u32).to_be_bytes());
            encode_all(values, out);
        }
        Value::Date { milliseconds, time_zone } => {
            out.push(marker::DATE);
            out.extend(milliseconds.to_be_bytes());
            out.extend(time_zone.to_be_bytes());
        }
        Value::Unsupported => out.push(marker::UNSUPPORTED),
        Value::XmlDocument(text) => {
            out.push(marker::XML_DOCUMENT);
            long_text(text, out);
        }
        Value::TypedObject { class, object: properties } => {
            out.push(marker::TYPED_OBJECT);
            short_text(class, out);
            object(properties, out);
        }
    }
}

/// Appends values one after the other.
pub fn encode_all<'a>(values: impl IntoIterator<Item = &'a Value<'a>>, out: &mut Vec<u8>) {
    for value in values {
        encode(value, out);
    }
}

fn object(Object(properties): &Object<'_>, out: &mut Vec<u8>) {
    for (name, value) in properties {
        short_text(name, out);
        encode(value, out);
    }
    short_text("", out);
    out.push(marker::OBJECT_END);
}

/// A name or a class longer than its length field can say is cut, at a character boundary.
fn short_text(text: &str, out: &mut Vec<u8>) {
    let mut length = text.len().min(usize::from(u16::MAX));
    while !text.is_char_boundary(length) {
        length -= 1;
    }
    out.extend((length as u16).to_be_bytes());
    out.extend_from_slice(&text.as_bytes()[..length]);
}

fn long_text(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u32).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}
