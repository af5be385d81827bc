//! From the payload of a message to rows.

use crate::column::{Column, ColumnKind};
use crate::rows::{Cell, Rows};
use uuid::Uuid;
use weir_record::{
    DecodeError, Decoder, Format, Logical, Problem, Record, Schema, SchemaUnavailable, TimeUnit, Value,
    WriterSchemas,
};

/// Bytes that the records of one message may take, per byte that a message may have: what is packed well is not to take
/// all memory.
const MOST_INFLATED: usize = 16;

/// Digits of a decimal that become a number: as many as PostgreSQL lets a column declare. With more it stays bytes.
const MOST_DIGITS: u32 = 1_000;

/// Seconds from 1970 that a date or a timestamp may be away: 260,000 years, less than any calendar here can say.
const MOST_SECONDS: i64 = 8_200_000_000_000;

const DAY_SECONDS: i64 = 86_400;

/// Why a payload did not become rows, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum DecodeFailure {
    /// It is no record: a dead letter.
    Dead(String),
    /// What is needed to read it cannot be had now.
    Away(String),
    /// What is needed to read it is not given to this reader.
    Refused(String),
}

/// How payloads become rows.
#[derive(Debug)]
pub struct Decode(How);

enum How {
    /// As they come, in one column.
    Raw,
    Records {
        decoder: Box<Decoder>,
        columns: Vec<Column>,
    },
}

impl Decode {
    /// Payloads as they come, in one column.
    pub fn raw() -> Self {
        Self(How::Raw)
    }

    /// Records of a schema.
    pub fn records(schema: &Schema, format: Format) -> Self {
        let columns = schema.columns().iter().map(column).collect();
        Self(How::Records { decoder: Box::new(Decoder::new(schema, format)), columns })
    }

    /// The same, with the schemas of those who wrote the records.
    #[must_use]
    pub fn with_writers(self, schemas: Box<dyn WriterSchemas>) -> Self {
        match self.0 {
            How::Records { decoder, columns } => {
                Self(How::Records { decoder: Box::new(decoder.with_writers(schemas)), columns })
            }
            How::Raw => self,
        }
    }

    /// The columns of each row.
    pub(crate) fn columns(&self) -> Vec<Column> {
        match &self.0 {
            How::Raw => vec![Column { name: "payload".to_owned(), kind: ColumnKind::Bytes, nullable: false }],
            How::Records { columns, .. } => columns.clone(),
        }
    }

    /// Appends the records of a payload and says how many they are. `most` is the largest payload that is taken.
    ///
    /// # Errors
    /// What is wrong with it, in one line. What was appended until then is taken back by the caller.
    #[inline]
    pub(crate) fn decode(
        &mut self,
        payload: &[u8],
        most: usize,
        rows: &mut Rows,
    ) -> Result<usize, DecodeFailure> {
        let How::Records { decoder, columns } = &mut self.0 else {
            rows.push(Cell::Bytes(payload));
            return Ok(1);
        };
        let limit = rows.weight() + most.saturating_mul(MOST_INFLATED);
        let mut records = decoder.records(payload);
        let mut count = 0;
        while let Some(record) = records.next() {
            push(&record?, columns, rows).map_err(DecodeFailure::Dead)?;
            count += 1;
            if rows.weight() > limit {
                return Err(DecodeFailure::Dead(format!(
                    "the records take more than {MOST_INFLATED} times what a message may have"
                )));
            }
        }
        Ok(count)
    }
}

impl From<DecodeError> for DecodeFailure {
    fn from(error: DecodeError) -> Self {
        match &error.problem {
            Problem::Writer { lack: SchemaUnavailable::Passing, writer, reason } => {
                Self::Away(format!("schema with {writer}: {reason}"))
            }
            Problem::Writer { lack: SchemaUnavailable::Forbidden, reason, .. } => {
                Self::Refused(reason.to_string())
            }
            _ => Self::Dead(error.to_string()),
        }
    }
}

impl DecodeFailure {
    /// Why.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Dead(words) | Self::Away(words) | Self::Refused(words) => words,
        }
    }
}

impl std::fmt::Debug for How {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Raw => f.write_str("Raw"),
            Self::Records { decoder, .. } => write!(f, "Records({})", decoder.format()),
        }
    }
}

fn column(column: &weir_record::Column) -> Column {
    use weir_record::Kind as Type;
    let kind = match (column.kind(), column.logical()) {
        (_, Some(Logical::Date)) => ColumnKind::Date,
        (_, Some(Logical::Time(unit))) => ColumnKind::Time(unit),
        (_, Some(Logical::Timestamp(unit))) => ColumnKind::Timestamp { unit, utc: true },
        (_, Some(Logical::LocalTimestamp(unit))) => ColumnKind::Timestamp { unit, utc: false },
        (_, Some(Logical::Decimal { precision, scale })) if precision <= MOST_DIGITS => {
            ColumnKind::Decimal { precision, scale }
        }
        (_, Some(Logical::Uuid)) => ColumnKind::Uuid,
        (Type::Boolean, _) => ColumnKind::Boolean,
        (Type::Int, _) => ColumnKind::Integer,
        (Type::Long, _) => ColumnKind::Long,
        (Type::Float, _) => ColumnKind::Float,
        (Type::Double, _) => ColumnKind::Double,
        (Type::Bytes | Type::Fixed(_), _) => ColumnKind::Bytes,
        (Type::String | Type::Enum, _) => ColumnKind::Text,
        (Type::Null | Type::Array | Type::Map | Type::Record | Type::Union, _) => ColumnKind::Json,
    };
    Column { name: column.name().to_owned(), kind, nullable: column.nullable() }
}

#[inline]
fn push(record: &Record<'_>, columns: &[Column], rows: &mut Rows) -> Result<(), String> {
    for (value, column) in record.columns().zip(columns) {
        let wrong = |words: &str| format!("{}: {words}", column.name);
        match (value, column.kind) {
            (Value::Null, _) => rows.push(Cell::Null),
            // A value of a union may be of any type.
            (value, ColumnKind::Json) => rows.push_text(|out| value.write_json(out)),
            (Value::String(text), ColumnKind::Uuid) => {
                let uuid = Uuid::try_parse(text).map_err(|_| wrong("the text is no UUID"))?;
                rows.push(Cell::Bytes(uuid.as_bytes()));
            }
            (Value::Bytes(bytes) | Value::Fixed(bytes), ColumnKind::Decimal { precision, .. }) => {
                if !fits(bytes, precision) {
                    return Err(wrong(&format!("the decimal has more than {precision} digits")));
                }
                // No bytes are a zero to Avro, and nothing to a store.
                rows.push(Cell::Bytes(if bytes.is_empty() { &[0] } else { bytes }));
            }
            (Value::Int(value), ColumnKind::Date | ColumnKind::Time(_)) => {
                is_in_range(value.into(), column.kind).then_some(()).ok_or_else(|| wrong(BEYOND))?;
                rows.push(Cell::Integer(value));
            }
            (Value::Long(value), ColumnKind::Time(_) | ColumnKind::Timestamp { .. }) => {
                is_in_range(value, column.kind).then_some(()).ok_or_else(|| wrong(BEYOND))?;
                rows.push(Cell::Long(value));
            }
            (Value::Boolean(value), _) => rows.push(Cell::Boolean(value)),
            (Value::Int(value), _) => rows.push(Cell::Integer(value)),
            (Value::Long(value), _) => rows.push(Cell::Long(value)),
            (Value::Float(value), _) => rows.push(Cell::Float(value)),
            (Value::Double(value), _) => rows.push(Cell::Double(value)),
            (Value::Bytes(value) | Value::Fixed(value), _) => rows.push(Cell::Bytes(value)),
            (Value::String(value) | Value::Enum(value), _) => rows.push(Cell::Text(value)),
            (value, _) => rows.push_text(|out| value.write_json(out)),
        }
    }
    Ok(())
}

const BEYOND: &str = "the number is no date or time: a day has 24 hours, and years end at 260,000";

/// Whether a number is a date or a time of this kind.
fn is_in_range(value: i64, kind: ColumnKind) -> bool {
    match kind {
        ColumnKind::Date => value.abs() < MOST_SECONDS / DAY_SECONDS,
        ColumnKind::Time(unit) => (0..DAY_SECONDS * a_second(unit)).contains(&value),
        ColumnKind::Timestamp { unit, .. } => (value / a_second(unit)).abs() < MOST_SECONDS,
        _ => true,
    }
}

/// How many there are in a second.
pub(crate) fn a_second(unit: TimeUnit) -> i64 {
    match unit {
        TimeUnit::Millis => 1_000,
        TimeUnit::Micros => 1_000_000,
        TimeUnit::Nanos => 1_000_000_000,
    }
}

/// Whether an integer in two's complement has no more digits. Beyond the 38 that 128 bits hold the number of bytes is looked
/// at, and the rest is left to the store.
fn fits(bytes: &[u8], precision: u32) -> bool {
    let negative = bytes.first().is_some_and(|byte| byte & 0x80 != 0);
    let sign = if negative { 0xFF } else { 0 };
    let significant = &bytes[bytes.iter().take_while(|byte| **byte == sign).count()..];
    if let Some(limit) = 10_i128.checked_pow(precision) {
        if significant.len() > 16 || significant.len() == 16 && (significant[0] & 0x80 != 0) != negative {
            return false;
        }
        let mut value = [sign; 16];
        value[16 - significant.len()..].copy_from_slice(significant);
        return i128::from_be_bytes(value).unsigned_abs() < limit.unsigned_abs();
    }
    // A digit takes 3.33 bits.
    significant.len() <= (precision as usize * 3_330 / 8_000) + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_have_as_many_digits_as_the_schema_says() {
        assert!(fits(&[], 1) && fits(&[0, 0, 0], 1) && fits(&[9], 1) && fits(&[0xF7], 1));
        assert!(!fits(&[10], 1) && !fits(&[0xF6], 1));
        assert!(fits(&[0xFF; 400], 1) && !fits(&[1; 17], 38) && fits(&[1; 17], 41));
        let widest = 10_i128.pow(38) - 1;
        assert!(fits(&widest.to_be_bytes(), 38) && fits(&(-widest).to_be_bytes(), 38));
        assert!(!fits(&(widest + 1).to_be_bytes(), 38));
        // 128 bits with a byte of sign before them.
        let mut wide = vec![0];
        wide.extend_from_slice(&u128::MAX.to_be_bytes());
        assert!(!fits(&wide, 38) && fits(&wide, 39));
        assert!(!fits(&[1; 1_000], 1_000) && fits(&[1; 416], 1_000));
    }

    #[test]
    fn times_are_of_a_day_and_dates_of_a_calendar() {
        let time = ColumnKind::Time(TimeUnit::Millis);
        assert!(is_in_range(86_399_999, time) && !is_in_range(86_400_000, time) && !is_in_range(-1, time));
        assert!(is_in_range(-719_162, ColumnKind::Date) && !is_in_range(i32::MIN.into(), ColumnKind::Date));
        let moment = |unit| ColumnKind::Timestamp { unit, utc: true };
        assert!(is_in_range(i64::MIN, moment(TimeUnit::Nanos)));
        assert!(
            !is_in_range(i64::MIN, moment(TimeUnit::Micros))
                && !is_in_range(i64::MAX, moment(TimeUnit::Millis))
        );
    }
}
