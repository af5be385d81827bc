//! A row as one object of JSON, dates, times and decimals in the text that SQLite gets of them.

use super::literal;
use crate::column::{Column, ColumnKind};
use crate::rows::Cell;
use weir_record::Value;

/// Appends a row.
pub(super) fn write<'a>(columns: &[Column], cells: impl Iterator<Item = Cell<'a>>, out: &mut String) {
    let mut before = '{';
    for (column, cell) in columns.iter().zip(cells) {
        out.push(before);
        before = ',';
        Value::String(&column.name).write_json(out);
        out.push(':');
        write_cell(cell, column.kind, out);
    }
    out.push_str(if before == '{' { "{}" } else { "}" });
}

fn write_cell(cell: Cell<'_>, kind: ColumnKind, out: &mut String) {
    // What is nested was written as JSON when it was decoded.
    if let (Cell::Text(text), ColumnKind::Json) = (cell, kind) {
        return out.push_str(text);
    }
    let literal = literal::of(cell, kind);
    let value = match (&literal, cell) {
        (Some(text), _) => Value::String(text),
        (None, Cell::Null) => Value::Null,
        (None, Cell::Boolean(value)) => Value::Boolean(value),
        (None, Cell::Integer(value)) => Value::Int(value),
        (None, Cell::Long(value)) => Value::Long(value),
        (None, Cell::Float(value)) => Value::Float(value),
        (None, Cell::Double(value)) => Value::Double(value),
        (None, Cell::Bytes(bytes)) => Value::Bytes(bytes),
        (None, Cell::Text(text)) => Value::String(text),
    };
    value.write_json(out);
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_record::TimeUnit;

    fn row(cells: &[(&str, ColumnKind, Cell<'_>)]) -> String {
        let column = |(name, kind, _): &(&str, ColumnKind, Cell<'_>)| Column {
            name: (*name).to_owned(),
            kind: *kind,
            nullable: true,
        };
        let columns: Vec<_> = cells.iter().map(column).collect();
        let mut out = String::new();
        write(&columns, cells.iter().map(|(_, _, cell)| *cell), &mut out);
        out
    }

    #[test]
    fn a_row_is_an_object() {
        let moment = ColumnKind::Timestamp { unit: TimeUnit::Millis, utc: true };
        let decimal = ColumnKind::Decimal { precision: 5, scale: 2 };
        assert_eq!(
            row(&[
                ("n", ColumnKind::Long, Cell::Long(-7)),
                ("x", ColumnKind::Double, Cell::Double(0.1)),
                ("text", ColumnKind::Text, Cell::Text("a\"b\n")),
                ("none", ColumnKind::Text, Cell::Null),
                ("list", ColumnKind::Json, Cell::Text("[1,2]")),
                ("bytes", ColumnKind::Bytes, Cell::Bytes(b"abc")),
                ("day", ColumnKind::Date, Cell::Integer(20_782)),
                ("at", moment, Cell::Long(0)),
                ("price", decimal, Cell::Bytes(&[1, 0])),
            ]),
            "{\"n\":-7,\"x\":0.1,\"text\":\"a\\\"b\\n\",\"none\":null,\"list\":[1,2],\"bytes\":\"YWJj\",\
             \"day\":\"2026-11-25\",\"at\":\"1970-01-01 00:00:00.000\",\"price\":\"2.56\"}"
        );
        assert_eq!(row(&[]), "{}");
    }
}
