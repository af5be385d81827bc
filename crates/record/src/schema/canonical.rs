//! The Parsing Canonical Form of a schema, and its fingerprint (Avro 1.12, "Parsing Canonical Form for Schemas").

use crate::plan::{Plan, Shape, TypeId};
use std::collections::HashSet;
use std::fmt::Write;

/// The polynomial of CRC-64-AVRO, and where it begins.
const EMPTY: u64 = 0xC15D_213A_A4D7_A795;

const TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut value = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            value = (value >> 1) ^ if value & 1 == 1 { EMPTY } else { 0 };
            bit += 1;
        }
        table[byte] = value;
        byte += 1;
    }
    table
};

/// The CRC-64-AVRO of a text.
pub(crate) fn fingerprint(text: &str) -> u64 {
    text.bytes().fold(EMPTY, |value, byte| (value >> 8) ^ TABLE[usize::from(value as u8 ^ byte)])
}

/// Writes a type. A named one is written whole the first time only.
pub(super) fn write<'p>(plan: &'p Plan, id: TypeId, seen: &mut HashSet<&'p str>, out: &mut String) {
    let of = plan.of(id);
    let name = &*of.name;
    let named = matches!(of.shape, Shape::Record(_) | Shape::Enum(_) | Shape::Fixed(_));
    // Writing to a string does not fail. Names have no character that JSON would want escaped.
    let _ = match &of.shape {
        _ if named && !seen.insert(name) => write!(out, "\"{name}\""),
        Shape::Fixed(size) => write!(out, r#"{{"name":"{name}","type":"fixed","size":{size}}}"#),
        Shape::Enum(symbols) => {
            write!(out, r#"{{"name":"{name}","type":"enum","symbols":["{}"]}}"#, symbols.join("\",\""))
        }
        Shape::Record(record) => {
            let _ = write!(out, r#"{{"name":"{name}","type":"record","fields":["#);
            for (number, field) in record.fields.iter().enumerate() {
                let comma = if number > 0 { "," } else { "" };
                let _ = write!(out, r#"{comma}{{"name":"{}","type":"#, field.name);
                write(plan, field.id, seen, out);
                out.push('}');
            }
            write!(out, "]}}")
        }
        Shape::Array(inner) | Shape::Map(inner) => {
            let (kind, attribute) = if name == "array" { ("array", "items") } else { ("map", "values") };
            let _ = write!(out, r#"{{"type":"{kind}","{attribute}":"#);
            write(plan, *inner, seen, out);
            write!(out, "}}")
        }
        Shape::Union(branches) => {
            out.push('[');
            for (number, branch) in branches.iter().enumerate() {
                out.push_str(if number > 0 { "," } else { "" });
                write(plan, *branch, seen, out);
            }
            write!(out, "]")
        }
        _ => write!(out, "\"{name}\""),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_those_of_the_reference_implementation() {
        // share/test/data/schema-tests.txt of Apache Avro.
        assert_eq!(fingerprint("\"null\"") as i64, 7_195_948_357_588_979_594);
        assert_eq!(fingerprint("\"boolean\"") as i64, -6_970_731_678_124_411_036);
        assert_eq!(fingerprint("\"int\"") as i64, 8_247_732_601_305_521_295);
    }
}
