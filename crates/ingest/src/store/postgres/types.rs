//! Types of PostgreSQL, and how values are written into columns of them by a binary COPY.

use crate::batch::RowSource;
use crate::column::{ColumnKind, Provenance};
use crate::rows::Cell;
use crate::store::literal;
use std::borrow::Cow;
use weir_record::TimeUnit;

/// Microseconds from 1970 to 2000, where PostgreSQL's time begins.
const EPOCH: i64 = 946_684_800_000_000;

/// The same in days.
const EPOCH_DAYS: i32 = 10_957;

/// Types of PostgreSQL that rows are written into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Bool,
    Int4,
    Int8,
    Float4,
    Float8,
    Bytea,
    Text,
    Jsonb,
    Timestamp,
    Date,
    Time,
    Numeric,
    Uuid,
}

impl Type {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "bool" => Self::Bool,
            "int4" => Self::Int4,
            "int8" => Self::Int8,
            "float4" => Self::Float4,
            "float8" => Self::Float8,
            "bytea" => Self::Bytea,
            // JSON has the binary form of text.
            "text" | "varchar" | "json" => Self::Text,
            "jsonb" => Self::Jsonb,
            "timestamptz" | "timestamp" => Self::Timestamp,
            "date" => Self::Date,
            "time" => Self::Time,
            "numeric" => Self::Numeric,
            "uuid" => Self::Uuid,
            _ => return None,
        })
    }

    pub(super) fn takes(self, kind: ColumnKind) -> bool {
        match kind {
            ColumnKind::Boolean => self == Self::Bool,
            ColumnKind::Integer => matches!(self, Self::Int4 | Self::Int8),
            ColumnKind::Long => self == Self::Int8,
            ColumnKind::Float => matches!(self, Self::Float4 | Self::Float8),
            ColumnKind::Double => self == Self::Float8,
            ColumnKind::Bytes => self == Self::Bytea,
            ColumnKind::Text => self == Self::Text,
            ColumnKind::Json => matches!(self, Self::Text | Self::Jsonb),
            // A table that the user made may have numbers, texts and bytes for what has a type of its own.
            ColumnKind::Date => matches!(self, Self::Date | Self::Int4 | Self::Int8),
            ColumnKind::Time(TimeUnit::Millis) => matches!(self, Self::Time | Self::Int4 | Self::Int8),
            ColumnKind::Time(_) => matches!(self, Self::Time | Self::Int8),
            // A timestamp of PostgreSQL ends at microseconds.
            ColumnKind::Timestamp { unit: TimeUnit::Nanos, .. } => self == Self::Int8,
            ColumnKind::Timestamp { .. } => matches!(self, Self::Timestamp | Self::Int8),
            ColumnKind::Decimal { .. } => matches!(self, Self::Numeric | Self::Bytea),
            ColumnKind::Uuid => matches!(self, Self::Uuid | Self::Text | Self::Bytea),
        }
    }

    pub(super) fn takes_provenance(self, provenance: Provenance) -> bool {
        match provenance {
            Provenance::Topic => self == Self::Text,
            Provenance::Publisher | Provenance::SequenceNumber => self == Self::Int8,
            Provenance::Record => matches!(self, Self::Int4 | Self::Int8),
            Provenance::Received => matches!(self, Self::Timestamp | Self::Int8),
            Provenance::PayloadHash => self == Self::Bytea,
            Provenance::Conflict => self == Self::Bool,
        }
    }
}

/// Those of [`Provenance::ALL`] in a table that weir has made.
pub(super) const PROVENANCE: [Type; Provenance::ALL.len()] =
    [Type::Text, Type::Int8, Type::Int8, Type::Int4, Type::Timestamp, Type::Bytea, Type::Bool];

/// The type that a new table gets.
pub(super) fn type_of(kind: ColumnKind) -> Cow<'static, str> {
    let name = match kind {
        ColumnKind::Boolean => "boolean",
        ColumnKind::Integer => "integer",
        ColumnKind::Long | ColumnKind::Timestamp { unit: TimeUnit::Nanos, .. } => "bigint",
        ColumnKind::Float => "real",
        ColumnKind::Double => "double precision",
        ColumnKind::Bytes => "bytea",
        ColumnKind::Text => "text",
        ColumnKind::Json => "json",
        ColumnKind::Date => "date",
        ColumnKind::Time(_) => "time",
        ColumnKind::Timestamp { utc: true, .. } => "timestamptz",
        ColumnKind::Timestamp { utc: false, .. } => "timestamp",
        ColumnKind::Decimal { precision, scale } => return format!("numeric({precision}, {scale})").into(),
        ColumnKind::Uuid => "uuid",
    };
    name.into()
}

pub(super) fn provenance_type(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Topic => "text",
        Provenance::Publisher | Provenance::SequenceNumber => "bigint",
        Provenance::Record => "integer",
        Provenance::Received => "timestamptz",
        Provenance::PayloadHash => "bytea",
        Provenance::Conflict => "boolean",
    }
}

/// Writes a value as the type of its column has it; behind its length.
#[inline]
pub(super) fn put(cell: Cell<'_>, kind: Type, meaning: ColumnKind, out: &mut Vec<u8>) {
    match (cell, kind) {
        (Cell::Null, _) => out.extend_from_slice(&(-1_i32).to_be_bytes()),
        // Of what is far from any date the decoder has made a dead letter.
        (Cell::Integer(days), Type::Date) => put_bytes(&(days - EPOCH_DAYS).to_be_bytes(), out),
        (Cell::Integer(value), Type::Time) => put_bytes(&micros(value.into(), meaning).to_be_bytes(), out),
        (Cell::Long(value), Type::Time) => put_bytes(&micros(value, meaning).to_be_bytes(), out),
        (Cell::Long(value), Type::Timestamp) => {
            put_bytes(&(micros(value, meaning) - EPOCH).to_be_bytes(), out);
        }
        (Cell::Bytes(bytes), Type::Numeric) => {
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            let scale = if let ColumnKind::Decimal { scale, .. } = meaning { scale } else { 0 };
            literal::put_numeric(bytes, scale, out);
            let length = (out.len() - at - 4) as i32;
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
        (Cell::Bytes(bytes), Type::Text) => {
            put_bytes(literal::uuid(bytes).unwrap_or_default().as_bytes(), out);
        }
        (Cell::Boolean(value), _) => put_bytes(&[value.into()], out),
        (Cell::Integer(value), Type::Int8) => put_bytes(&i64::from(value).to_be_bytes(), out),
        (Cell::Integer(value), _) => put_bytes(&value.to_be_bytes(), out),
        (Cell::Long(value), _) => put_bytes(&value.to_be_bytes(), out),
        (Cell::Float(value), Type::Float8) => put_bytes(&f64::from(value).to_bits().to_be_bytes(), out),
        (Cell::Float(value), _) => put_bytes(&value.to_bits().to_be_bytes(), out),
        (Cell::Double(value), _) => put_bytes(&value.to_bits().to_be_bytes(), out),
        (Cell::Bytes(bytes), _) => put_bytes(bytes, out),
        (Cell::Text(text), Type::Jsonb) => {
            out.extend_from_slice(&(text.len() as i32 + 1).to_be_bytes());
            out.push(1);
            out.extend_from_slice(text.as_bytes());
        }
        (Cell::Text(text), _) => put_bytes(text.as_bytes(), out),
    }
}

/// A time in microseconds.
fn micros(value: i64, meaning: ColumnKind) -> i64 {
    match meaning {
        ColumnKind::Time(TimeUnit::Millis) | ColumnKind::Timestamp { unit: TimeUnit::Millis, .. } => {
            value * 1_000
        }
        _ => value,
    }
}

#[inline]
fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
    out.extend_from_slice(bytes);
}

#[inline]
pub(super) fn put_source(source: &RowSource<'_>, types: &[Type], out: &mut Vec<u8>) {
    put_bytes(source.topic.as_bytes(), out);
    put_identity(source, types, out);
}

/// The same without the topic.
#[inline]
pub(super) fn put_identity(source: &RowSource<'_>, types: &[Type], out: &mut Vec<u8>) {
    match source.origin {
        Some(origin) => {
            put_bytes(&origin.publisher.to_be_bytes(), out);
            put_bytes(&origin.sequence_number.to_be_bytes(), out);
        }
        None => out.extend_from_slice(&[0xff; 8]),
    }
    match types[3] {
        Type::Int8 => put_bytes(&u64::from(source.record).to_be_bytes(), out),
        _ => put_bytes(&source.record.to_be_bytes(), out),
    }
    match types[4] {
        Type::Timestamp => put_bytes(&(source.received - EPOCH).to_be_bytes(), out),
        _ => put_bytes(&source.received.to_be_bytes(), out),
    }
    match &source.hash {
        Some(hash) => put_bytes(&hash.0, out),
        None => out.extend_from_slice(&[0xff; 4]),
    }
    // In conflict is what the table holds already, and that does not come by this way.
    put_bytes(&[false.into()], out);
}
