//! Columns of ClickHouse: their types, and how values are written into them (`RowBinary`).

use crate::batch::RowSource;
use crate::column::{ColumnKind, Provenance};
use crate::decode::a_second;
use crate::payload_hash::LENGTH;
use crate::rows::Cell;
use crate::store::literal;
use std::borrow::Cow;
use weir_record::TimeUnit;

/// Digits of the widest decimal that every version has a type for.
const MOST_DIGITS: u32 = 38;

/// Days and seconds from 1970 that `Date32` and `DateTime64` begin and end at: the years 1900 to 2299.
const DAYS: std::ops::Range<i32> = -25_567..120_530;
const SECONDS: std::ops::Range<i64> = -2_208_988_800..10_413_792_000;

/// What stands for the hash of a message without a mark: no SHA-256 begins with it.
pub(super) const NO_HASH: [u8; LENGTH] = [0; LENGTH];

/// A type, and whether it is within `Nullable(…)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnType {
    base: Type,
    nullable: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    UInt8,
    UInt32,
    UInt64,
    Int32,
    Int64,
    Float32,
    Float64,
    String,
    /// Of as many bytes as a hash has.
    Hash,
    Date32,
    /// With as many digits behind the second.
    DateTime64(u32),
    Decimal {
        precision: u32,
        scale: u32,
    },
    Uuid,
}

impl ColumnType {
    /// Reads a type as `system.columns` has it.
    pub(super) fn named(name: &str) -> Option<Self> {
        let within = |text: &'_ str, outer: &str| -> Option<String> {
            Some(text.strip_prefix(outer)?.strip_suffix(')')?.to_owned())
        };
        let plain = within(name, "LowCardinality(").unwrap_or_else(|| name.to_owned());
        let inner = within(&plain, "Nullable(");
        let nullable = inner.is_some();
        let plain = inner.unwrap_or(plain);
        let numbers = |text: &str| -> Vec<u32> {
            text.split([',', ')']).map_while(|number| number.trim().parse().ok()).collect()
        };
        let base = match &*plain {
            "UInt8" | "Bool" => Type::UInt8,
            "UInt32" => Type::UInt32,
            "UInt64" => Type::UInt64,
            "Int32" => Type::Int32,
            "Int64" => Type::Int64,
            "Float32" => Type::Float32,
            "Float64" => Type::Float64,
            "String" => Type::String,
            "FixedString(16)" => Type::Hash,
            "Date32" => Type::Date32,
            "UUID" => Type::Uuid,
            other => {
                if let Some(rest) = other.strip_prefix("DateTime64(") {
                    Type::DateTime64(*numbers(rest).first()?)
                } else {
                    let [precision, scale] = numbers(other.strip_prefix("Decimal(")?)[..] else {
                        return None;
                    };
                    Type::Decimal { precision, scale }
                }
            }
        };
        Some(Self { base, nullable })
    }

    pub(super) fn takes(self, kind: ColumnKind) -> bool {
        let base = self.base;
        match kind {
            ColumnKind::Boolean => base == Type::UInt8,
            ColumnKind::Integer => matches!(base, Type::Int32 | Type::Int64),
            ColumnKind::Long => base == Type::Int64,
            ColumnKind::Float => matches!(base, Type::Float32 | Type::Float64),
            ColumnKind::Double => base == Type::Float64,
            ColumnKind::Bytes | ColumnKind::Text | ColumnKind::Json => base == Type::String,
            ColumnKind::Date => matches!(base, Type::Date32 | Type::Int32 | Type::Int64),
            ColumnKind::Time(TimeUnit::Millis) => matches!(base, Type::Int32 | Type::Int64),
            ColumnKind::Time(_) => base == Type::Int64,
            ColumnKind::Timestamp { unit, .. } => {
                base == Type::DateTime64(digits(unit)) || base == Type::Int64
            }
            ColumnKind::Decimal { precision, scale } => match base {
                Type::Decimal { precision: most, scale: there } => {
                    precision <= most && most <= MOST_DIGITS && scale == there
                }
                base => base == Type::String,
            },
            ColumnKind::Uuid => matches!(base, Type::Uuid | Type::String),
        }
    }

    pub(super) fn takes_provenance(self, provenance: Provenance) -> bool {
        let base = self.base;
        !self.nullable
            && match provenance {
                Provenance::Topic => base == Type::String,
                Provenance::Publisher | Provenance::SequenceNumber => base == Type::UInt64,
                Provenance::Record => base == Type::UInt32,
                Provenance::Received => matches!(base, Type::DateTime64(6) | Type::Int64),
                Provenance::PayloadHash => base == Type::Hash,
                Provenance::Conflict => base == Type::UInt8,
            }
    }

    pub(super) fn is_time(self) -> bool {
        matches!(self.base, Type::DateTime64(_))
    }
}

/// The type that a column of a new table gets. A server that has no `DateTime64` of all these years (`has_times`) gets numbers.
pub(super) fn type_of(kind: ColumnKind, nullable: bool, has_times: bool) -> String {
    let name: Cow<'_, str> = match kind {
        ColumnKind::Boolean => "UInt8".into(),
        ColumnKind::Integer | ColumnKind::Time(TimeUnit::Millis) => "Int32".into(),
        ColumnKind::Long | ColumnKind::Time(_) => "Int64".into(),
        ColumnKind::Float => "Float32".into(),
        ColumnKind::Double => "Float64".into(),
        ColumnKind::Bytes | ColumnKind::Text | ColumnKind::Json => "String".into(),
        ColumnKind::Date => if has_times { "Date32" } else { "Int32" }.into(),
        // Without a zone it would be read in that of the server.
        ColumnKind::Timestamp { unit, .. } if has_times => {
            format!("DateTime64({}, 'UTC')", digits(unit)).into()
        }
        ColumnKind::Timestamp { .. } => "Int64".into(),
        ColumnKind::Decimal { precision, scale } if precision <= MOST_DIGITS => {
            format!("Decimal({precision}, {scale})").into()
        }
        ColumnKind::Decimal { .. } => "String".into(),
        ColumnKind::Uuid => "UUID".into(),
    };
    if nullable { format!("Nullable({name})") } else { name.into_owned() }
}

pub(super) fn provenance_type(provenance: Provenance, has_times: bool) -> &'static str {
    match provenance {
        Provenance::Topic => "String",
        Provenance::Publisher | Provenance::SequenceNumber => "UInt64",
        Provenance::Record => "UInt32",
        Provenance::Received if has_times => "DateTime64(6, 'UTC')",
        Provenance::Received => "Int64",
        Provenance::PayloadHash => "FixedString(16)",
        Provenance::Conflict => "UInt8",
    }
}

fn digits(unit: TimeUnit) -> u32 {
    a_second(unit).ilog10()
}

/// A name as ClickHouse has it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", escaped(name).replace('"', "\\\""))
}

/// A text as ClickHouse has it.
pub(super) fn text(text: &str) -> String {
    format!("'{}'", escaped(text).replace('\'', "\\'"))
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
}

/// Writes a value as the type of its column has it.
///
/// # Errors
/// Why the column cannot have it.
#[inline]
pub(super) fn put(
    cell: Cell<'_>,
    column: ColumnType,
    kind: ColumnKind,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    const BEYOND: &str = "a date or time of ClickHouse is of the years 1900 to 2299";
    if column.nullable {
        let is_null = cell == Cell::Null;
        out.push(is_null.into());
        if is_null {
            return Ok(());
        }
    }
    match (cell, column.base) {
        (Cell::Null, _) => return Err("the column takes no NULL"),
        (Cell::Boolean(value), _) => out.push(value.into()),
        (Cell::Integer(days), Type::Date32) if !DAYS.contains(&days) => return Err(BEYOND),
        (Cell::Integer(value), Type::Int64) => out.extend_from_slice(&i64::from(value).to_le_bytes()),
        (Cell::Integer(value), _) => out.extend_from_slice(&value.to_le_bytes()),
        (Cell::Long(value), Type::DateTime64(_)) => {
            let ColumnKind::Timestamp { unit, .. } = kind else { return Err(BEYOND) };
            if !SECONDS.contains(&value.div_euclid(a_second(unit))) {
                return Err(BEYOND);
            }
            out.extend_from_slice(&value.to_le_bytes());
        }
        (Cell::Long(value), _) => out.extend_from_slice(&value.to_le_bytes()),
        (Cell::Float(value), Type::Float64) => out.extend_from_slice(&f64::from(value).to_le_bytes()),
        (Cell::Float(value), _) => out.extend_from_slice(&value.to_le_bytes()),
        (Cell::Double(value), _) => out.extend_from_slice(&value.to_le_bytes()),
        (Cell::Bytes(bytes), Type::Decimal { precision, .. }) => put_decimal(bytes, precision, out),
        (Cell::Bytes(bytes), Type::Uuid) => {
            // Two numbers of eight bytes, the least significant byte of each first.
            let (high, low) = bytes.split_at(bytes.len() / 2);
            out.extend(high.iter().rev().chain(low.iter().rev()));
        }
        (Cell::Bytes(bytes), _) => match kind {
            ColumnKind::Decimal { scale, .. } => put_bytes(literal::decimal(bytes, scale).as_bytes(), out),
            ColumnKind::Uuid => put_bytes(literal::uuid(bytes).unwrap_or_default().as_bytes(), out),
            _ => put_bytes(bytes, out),
        },
        (Cell::Text(text), _) => put_bytes(text.as_bytes(), out),
    }
    Ok(())
}

/// Writes an integer in two's complement, least significant byte first, of 4, 8 or 16 bytes. The decoder has counted its digits:
/// bytes that find no room are those of the sign.
fn put_decimal(bytes: &[u8], precision: u32, out: &mut Vec<u8>) {
    let width = match precision {
        ..=9 => 4,
        10..=18 => 8,
        _ => 16,
    };
    let sign = if bytes.first().is_some_and(|byte| byte & 0x80 != 0) { 0xFF } else { 0 };
    out.extend(bytes.iter().rev().copied().chain(std::iter::repeat(sign)).take(width));
}

/// Bytes behind their length, as `LEB128` has it.
pub(super) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    let mut left = bytes.len();
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
    out.extend_from_slice(bytes);
}

/// Writes where a row came from. One without a mark has publisher 0, no hash, and a sequence number that no other of these has:
/// what has the same key is one row to ClickHouse.
pub(super) fn put_source(source: &RowSource<'_>, unmarked: u64, conflict: bool, out: &mut Vec<u8>) {
    put_bytes(source.topic.as_bytes(), out);
    let (publisher, number) =
        source.origin.map_or((0, unmarked), |origin| (origin.publisher, origin.sequence_number));
    out.extend_from_slice(&publisher.to_le_bytes());
    out.extend_from_slice(&number.to_le_bytes());
    out.extend_from_slice(&source.record.to_le_bytes());
    out.extend_from_slice(&source.received.to_le_bytes());
    out.extend_from_slice(&source.hash.map_or(NO_HASH, |hash| hash.0));
    out.push(conflict.into());
}

/// Takes the texts out of what was written with [`put_bytes`]; `None` at an end that is none.
pub(super) fn texts(mut bytes: &[u8]) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    while !bytes.is_empty() {
        let (mut length, mut shift) = (0_usize, 0);
        loop {
            let (byte, rest) = bytes.split_first()?;
            bytes = rest;
            length |= usize::from(byte & 0x7F).checked_shl(shift)?;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let (text, rest) = bytes.split_at_checked(length)?;
        texts.push(String::from_utf8_lossy(text).into_owned());
        bytes = rest;
    }
    Some(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_the_server_writes_them() {
        let of = |name: &str| ColumnType::named(name).map(|it| (it.base, it.nullable));
        assert_eq!(of("LowCardinality(Nullable(String))"), Some((Type::String, true)));
        assert_eq!(of("Nullable(DateTime64(3, 'UTC'))"), Some((Type::DateTime64(3), true)));
        assert_eq!(of("DateTime64(6)"), Some((Type::DateTime64(6), false)));
        assert_eq!(of("Decimal(9, 2)"), Some((Type::Decimal { precision: 9, scale: 2 }, false)));
        for name in ["Array(String)", "Decimal(9)", "DateTime64()", "FixedString(3)", ""] {
            assert_eq!(of(name), None, "{name}");
        }
    }

    #[test]
    fn names_and_texts_keep_what_ends_them() {
        assert_eq!(quoted(r#"a"b\"#), r#""a\"b\\""#);
        assert_eq!(text(r"a'b\"), r"'a\'b\\'");
    }

    #[test]
    fn lengths_take_as_many_bytes_as_they_need() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 3_000_000] {
            let mut out = Vec::new();
            put_bytes(&vec![b'x'; length], &mut out);
            put_bytes(b"y", &mut out);
            let texts = texts(&out).unwrap();
            assert_eq!((texts[0].len(), &*texts[1], texts.len()), (length, "y", 2));
        }
        for broken in [&[0x80][..], &[2, b'x'], &[0xFF; 12]] {
            assert_eq!(texts(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn a_decimal_is_as_wide_as_its_type() {
        let of = |bytes: &[u8], precision| {
            let mut out = Vec::new();
            put_decimal(bytes, precision, &mut out);
            out
        };
        assert_eq!(of(&[1, 0xE2], 9), [0xE2, 1, 0, 0]);
        assert_eq!(of(&[0xFF; 20], 18), [0xFF; 8]);
        assert_eq!(of(&[0xFE], 38), [&[0xFE][..], &[0xFF; 15]].concat());
    }

    #[test]
    fn what_a_type_cannot_say_is_refused() {
        let put = |cell, name: &str, kind| {
            put(cell, ColumnType::named(name).unwrap(), kind, &mut Vec::new()).is_ok()
        };
        let millis = ColumnKind::Timestamp { unit: TimeUnit::Millis, utc: true };
        assert!(
            put(Cell::Null, "Nullable(Int32)", ColumnKind::Integer)
                && !put(Cell::Null, "Int32", ColumnKind::Integer)
        );
        assert!(put(Cell::Integer(-25_567), "Date32", ColumnKind::Date));
        assert!(!put(Cell::Integer(-25_568), "Date32", ColumnKind::Date));
        assert!(!put(Cell::Integer(120_530), "Date32", ColumnKind::Date));
        assert!(put(Cell::Integer(i32::MAX), "Int32", ColumnKind::Date));
        assert!(put(Cell::Long(10_413_791_999_999), "DateTime64(3, 'UTC')", millis));
        assert!(!put(Cell::Long(10_413_792_000_000), "DateTime64(3, 'UTC')", millis));
        assert!(put(Cell::Long(i64::MAX), "Int64", millis));
    }
}
