//! From the payload of a message to rows.

use crate::column::{Column, Kind};
use crate::rows::{Cell, Rows};
use weir_record::{Decoder, Format, Record, Schema, Value};

/// Bytes that the records of one message may take, per byte that a message may have: what is packed well is not to take
/// all memory.
const MOST_INFLATED: usize = 16;

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

    /// The columns of each row.
    pub(crate) fn columns(&self) -> Vec<Column> {
        match &self.0 {
            How::Raw => vec![Column { name: "payload".to_owned(), kind: Kind::Bytes, nullable: false }],
            How::Records { columns, .. } => columns.clone(),
        }
    }

    /// Appends the records of a payload and says how many they are. `most` is the largest payload that is taken.
    ///
    /// # Errors
    /// What is wrong with it, in one line. What was appended until then is taken back by the caller.
    #[inline]
    pub(crate) fn decode(&mut self, payload: &[u8], most: usize, rows: &mut Rows) -> Result<usize, String> {
        let How::Records { decoder, columns } = &mut self.0 else {
            rows.push(Cell::Bytes(payload));
            return Ok(1);
        };
        let limit = rows.weight() + most.saturating_mul(MOST_INFLATED);
        let mut records = decoder.records(payload);
        let mut count = 0;
        while let Some(record) = records.next() {
            push(&record.map_err(|error| error.to_string())?, columns, rows);
            count += 1;
            if rows.weight() > limit {
                return Err(format!(
                    "the records take more than {MOST_INFLATED} times what a message may have"
                ));
            }
        }
        Ok(count)
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
    let kind = match column.kind() {
        Type::Boolean => Kind::Boolean,
        Type::Int => Kind::Integer,
        Type::Long => Kind::Long,
        Type::Float => Kind::Float,
        Type::Double => Kind::Double,
        Type::Bytes | Type::Fixed(_) => Kind::Bytes,
        Type::String | Type::Enum => Kind::Text,
        Type::Null | Type::Array | Type::Map | Type::Record | Type::Union => Kind::Json,
    };
    Column { name: column.name().to_owned(), kind, nullable: column.nullable() }
}

#[inline]
fn push(record: &Record<'_>, columns: &[Column], rows: &mut Rows) {
    for (value, column) in record.columns().zip(columns) {
        match (value, column.kind) {
            (Value::Null, _) => rows.push(Cell::Null),
            // A value of a union may be of any type.
            (value, Kind::Json) => rows.push_text(|out| value.write_json(out)),
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
}
