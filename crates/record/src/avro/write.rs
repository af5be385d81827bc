//! Writes a record in Avro's binary encoding ("Binary Encoding").

use crate::plan::{Shape, TypeId};
use crate::tape::Cell;
use crate::value::{Record, View};

/// Appends a row as a value of the schema: the only one in the arrays and maps that rows are in.
pub(crate) fn row(record: Record<'_>, out: &mut Vec<u8>) {
    within(record, record.view.plan.top, out);
}

fn within(record: Record<'_>, id: TypeId, out: &mut Vec<u8>) {
    let plan = record.view.plan;
    match plan.shape(id) {
        _ if id == plan.item => {
            value(record.view, id, record.item(), out);
        }
        Shape::Array(item) => {
            block(1, out);
            within(record, *item, out);
            out.push(0);
        }
        Shape::Map(value) => {
            block(1, out);
            sized(b"", out);
            within(record, *value, out);
            out.push(0);
        }
        Shape::Union(branches) => {
            if let Some((branch, inner)) = plan.passage(branches) {
                long(branch as i64, out);
                within(record, inner, out);
            }
        }
        _ => {}
    }
}

/// Appends a `long`: seven bits a byte, the lowest first, zig-zag.
#[inline]
pub(crate) fn long(value: i64, out: &mut Vec<u8>) {
    let mut rest = (value << 1) as u64 ^ (value >> 63) as u64;
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Appends bytes, their length before them.
pub(crate) fn sized(bytes: &[u8], out: &mut Vec<u8>) {
    long(bytes.len() as i64, out);
    out.extend_from_slice(bytes);
}

/// Appends the value that begins at `at`, and gives the cell after it.
fn value(view: View<'_>, id: TypeId, at: u32, out: &mut Vec<u8>) -> u32 {
    let cell = view.cell(at);
    let shape = view.plan.shape(id);
    match cell {
        Cell::Null => {}
        Cell::Boolean(value) => out.push(value.into()),
        Cell::Int(value) => long(value.into(), out),
        Cell::Long(value) => long(value, out),
        Cell::Float(value) => out.extend_from_slice(&value.to_le_bytes()),
        Cell::Double(value) => out.extend_from_slice(&value.to_le_bytes()),
        Cell::Input { .. } | Cell::Made { .. } if matches!(shape, Shape::Fixed(_)) => {
            out.extend_from_slice(view.bytes(cell));
        }
        Cell::Input { .. } | Cell::Made { .. } => sized(view.bytes(cell), out),
        Cell::Symbol(symbol) => long(symbol.into(), out),
        Cell::Branch(branch) => {
            long(branch.into(), out);
            if let Shape::Union(branches) = shape {
                return value(view, branches[branch as usize], at + 1, out);
            }
        }
        Cell::Floats { start, len } => {
            let items = &view.tape.floats[start as usize..][..len as usize];
            block(items.len(), out);
            out.extend(items.iter().flat_map(|item| item.to_le_bytes()));
            out.push(0);
        }
        Cell::Doubles { start, len } => {
            let items = &view.tape.doubles[start as usize..][..len as usize];
            block(items.len(), out);
            out.extend(items.iter().flat_map(|item| item.to_le_bytes()));
            out.push(0);
        }
        Cell::Array { items, .. } => {
            let Shape::Array(item) = shape else { return at + 1 };
            block(items as usize, out);
            let mut next = at + 1;
            for _ in 0..items {
                next = value(view, *item, next, out);
            }
            out.push(0);
            return next;
        }
        Cell::Map { items, .. } => {
            let Shape::Map(inner) = shape else { return at + 1 };
            block(items as usize, out);
            let mut next = at + 1;
            for _ in 0..items {
                sized(view.bytes(view.cell(next)), out);
                next = value(view, *inner, next + 1, out);
            }
            out.push(0);
            return next;
        }
        Cell::Record { field_starts, end } => {
            // They may have come in another order.
            for (number, field) in view.plan.fields(id).iter().enumerate() {
                value(view, field.id, view.tape.field_starts[field_starts as usize + number], out);
            }
            return end;
        }
    }
    at + 1
}

/// The head of the one block with all items, if there are any. A block of none ends an array and a map.
fn block(items: usize, out: &mut Vec<u8>) {
    if items > 0 {
        long(items as i64, out);
    }
}
