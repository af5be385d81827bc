//! Columns of a file: cells of rows, and facts of where each came from, in Parquet's types.

use crate::batch::RowSource;
use crate::column::{ColumnKind, Provenance};
use crate::payload_hash::PayloadHash;
use crate::rows::Cell;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FixedLenByteArray, FixedLenByteArrayType,
    FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedColumnWriter;
use weir_record::TimeUnit;

/// A value of a dead letter, or of where a row came from.
pub(super) enum Fact<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
    Hash(Option<PayloadHash>),
    Number(Option<i64>),
    Small(i32),
    Flag(bool),
}

/// Where a row or a dead letter came from: the fact at this position of [`Provenance::ALL`].
pub(super) fn fact<'a>(source: &RowSource<'a>, conflict: bool, position: usize) -> Fact<'a> {
    match Provenance::ALL[position] {
        Provenance::Topic => Fact::Text(source.topic),
        Provenance::Publisher => Fact::Number(source.origin.map(|origin| origin.publisher as i64)),
        Provenance::SequenceNumber => Fact::Number(source.origin.map(|origin| origin.sequence_number as i64)),
        Provenance::Record => Fact::Small(source.record as i32),
        Provenance::Received => Fact::Number(Some(source.received)),
        Provenance::PayloadHash => Fact::Hash(source.hash),
        Provenance::Conflict => Fact::Flag(conflict),
    }
}

/// Writes a column of facts; all are of one kind.
pub(super) fn put_facts<'a>(
    writer: &mut SerializedColumnWriter<'_>,
    facts: impl Iterator<Item = Fact<'a>>,
) -> Result<(), ParquetError> {
    let (mut texts, mut numbers, mut small) = (Vec::new(), Vec::new(), Vec::new());
    let (mut flags, mut hashes, mut levels) = (Vec::new(), Vec::new(), Vec::new());
    let mut are_hashes = false;
    for fact in facts {
        match fact {
            Fact::Text(text) => texts.push(ByteArray::from(text)),
            Fact::Bytes(bytes) => texts.push(ByteArray::from(bytes.to_vec())),
            Fact::Small(number) => small.push(number),
            Fact::Flag(flag) => flags.push(flag),
            Fact::Hash(hash) => {
                are_hashes = true;
                levels.push(i16::from(hash.is_some()));
                hashes.extend(hash.map(|hash| ByteArray::from(hash.0.to_vec())));
            }
            Fact::Number(number) => {
                levels.push(i16::from(number.is_some()));
                numbers.extend(number);
            }
        }
    }
    if !texts.is_empty() {
        writer.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
    } else if are_hashes {
        writer.typed::<ByteArrayType>().write_batch(&hashes, Some(&levels), None)?;
    } else if !flags.is_empty() {
        writer.typed::<BoolType>().write_batch(&flags, None, None)?;
    } else if !small.is_empty() {
        writer.typed::<Int32Type>().write_batch(&small, None, None)?;
    } else {
        // Of a column that has no nulls, levels are not looked at.
        writer.typed::<Int64Type>().write_batch(&numbers, Some(&levels), None)?;
    }
    Ok(())
}

/// Writes a column of values.
pub(super) fn put_cells<'a, I: Iterator<Item = Cell<'a>>>(
    writer: &mut SerializedColumnWriter<'_>,
    kind: ColumnKind,
    nullable: bool,
    cells: impl Fn() -> I,
) -> Result<(), ParquetError> {
    let levels: Option<Vec<i16>> =
        nullable.then(|| cells().map(|cell| i16::from(cell != Cell::Null)).collect());
    let levels = levels.as_deref();
    match kind {
        ColumnKind::Boolean => put::<BoolType>(writer, cells(), levels, |cell| match cell {
            Cell::Boolean(value) => Some(value),
            _ => None,
        }),
        ColumnKind::Integer | ColumnKind::Date | ColumnKind::Time(TimeUnit::Millis) => {
            put::<Int32Type>(writer, cells(), levels, |cell| match cell {
                Cell::Integer(value) => Some(value),
                _ => None,
            })
        }
        ColumnKind::Long | ColumnKind::Time(_) | ColumnKind::Timestamp { .. } => {
            put::<Int64Type>(writer, cells(), levels, |cell| match cell {
                Cell::Long(value) => Some(value),
                _ => None,
            })
        }
        ColumnKind::Float => put::<FloatType>(writer, cells(), levels, |cell| match cell {
            Cell::Float(value) => Some(value),
            _ => None,
        }),
        ColumnKind::Double => put::<DoubleType>(writer, cells(), levels, |cell| match cell {
            Cell::Double(value) => Some(value),
            _ => None,
        }),
        ColumnKind::Uuid => put::<FixedLenByteArrayType>(writer, cells(), levels, |cell| match cell {
            Cell::Bytes(bytes) => Some(FixedLenByteArray::from(bytes.to_vec())),
            _ => None,
        }),
        ColumnKind::Bytes | ColumnKind::Text | ColumnKind::Json | ColumnKind::Decimal { .. } => {
            put::<ByteArrayType>(writer, cells(), levels, |cell| match cell {
                Cell::Bytes(bytes) => Some(ByteArray::from(bytes.to_vec())),
                Cell::Text(text) => Some(ByteArray::from(text)),
                _ => None,
            })
        }
    }
}

fn put<'a, T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = Cell<'a>>,
    levels: Option<&[i16]>,
    of: impl Fn(Cell<'a>) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = cells.filter_map(of).collect();
    writer.typed::<T>().write_batch(&values, levels, None)?;
    Ok(())
}
