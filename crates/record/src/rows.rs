//! The rows of a value whose schema is no record: those that are in its arrays, maps and unions.

use crate::plan::{Plan, Shape, Type, TypeId};
use crate::tape::{Cell, Tape};

/// The fields of a row that is one of several records.
pub(crate) const BRANCH: &str = "type";
pub(crate) const VALUE: &str = "value";

/// What the rows of a type are made of: a record, or a union of several. `null` beside one record or its arrays is no row. What
/// has a name ends the way there, and so it ends.
pub(crate) fn item(types: &[Type], id: TypeId) -> Option<TypeId> {
    let shape = |id: TypeId| &types[id as usize].shape;
    match shape(id) {
        Shape::Record(_) => Some(id),
        Shape::Array(inner) | Shape::Map(inner) => item(types, *inner),
        Shape::Union(branches) => {
            let mut others = branches.iter().filter(|id| !matches!(shape(**id), Shape::Null));
            match (others.next(), others.next()) {
                (Some(only), None) => item(types, *only),
                _ => branches.iter().any(|id| matches!(shape(*id), Shape::Record(_))).then_some(id),
            }
        }
        _ => None,
    }
}

/// Finds the rows of the value that begins at the first cell, by their cells.
pub(crate) fn find(plan: &Plan, tape: &mut Tape, rows: &mut Vec<u32>) {
    rows.clear();
    walk(plan, tape, plan.top, 0, rows);
    for at in rows {
        *at = begin(plan, tape, *at);
    }
}

/// Walks through a value, and gives the cell after it.
fn walk(plan: &Plan, tape: &Tape, id: TypeId, at: u32, rows: &mut Vec<u32>) -> u32 {
    if id == plan.item {
        rows.push(at);
        return tape.after(at);
    }
    match (plan.shape(id), tape.cells[at as usize]) {
        (Shape::Array(item), Cell::Array { items, .. }) => {
            (0..items).fold(at + 1, |next, _| walk(plan, tape, *item, next, rows))
        }
        (Shape::Map(value), Cell::Map { items, .. }) => {
            (0..items).fold(at + 1, |next, _| walk(plan, tape, *value, next + 1, rows))
        }
        (Shape::Union(branches), Cell::Branch(branch)) => {
            walk(plan, tape, branches[branch as usize], at + 1, rows)
        }
        _ => at + 1,
    }
}

/// The cell of the row that an item is: one of several records gets its name beside it.
pub(crate) fn begin(plan: &Plan, tape: &mut Tape, item: u32) -> u32 {
    let Cell::Branch(branch) = tape.cells[item as usize] else { return item };
    let (row, field_starts) = tape.begin_record(plan.fields(plan.row).len());
    let name = tape.here();
    tape.cells.push(Cell::Symbol(branch));
    tape.field_starts[field_starts..].copy_from_slice(&[name, item]);
    tape.end(row, 0);
    row
}
