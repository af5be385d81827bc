//! What was read: a record as a view of its columns.

use crate::json;
use crate::plan::{Field, Plan, Shape, TypeId};
use crate::tape::{Cell, Tape};
use std::fmt;
use std::slice;

/// What every part of a record looks into.
#[derive(Clone, Copy)]
pub(crate) struct View<'r> {
    pub(crate) plan: &'r Plan,
    pub(crate) tape: &'r Tape,
    pub(crate) input: &'r [u8],
}

/// A record: the one that a payload holds, or one within another. Borrowed from its [`Decoder`](crate::Decoder) and
/// the payload, and small: pass it by value.
#[derive(Clone, Copy)]
pub struct Record<'r> {
    pub(crate) view: View<'r>,
    pub(crate) id: TypeId,
    pub(crate) at: u32,
}

/// A value. A union is the value of its branch. Numbers are exact, to the last bit of a NaN.
#[derive(Clone, Copy)]
pub enum Value<'r> {
    /// `null`, usually in a union.
    Null,
    /// `boolean`.
    Boolean(bool),
    /// `int`.
    Int(i32),
    /// `long`.
    Long(i64),
    /// `float`.
    Float(f32),
    /// `double`.
    Double(f64),
    /// `bytes`.
    Bytes(&'r [u8]),
    /// `string`.
    String(&'r str),
    /// `fixed`.
    Fixed(&'r [u8]),
    /// The symbol of an `enum`.
    Enum(&'r str),
    /// `array`.
    Array(Array<'r>),
    /// `map`.
    Map(Map<'r>),
    /// A record in a record.
    Record(Record<'r>),
}

/// An array.
#[derive(Clone, Copy)]
pub struct Array<'r> {
    view: View<'r>,
    id: TypeId,
    at: u32,
}

/// A map.
#[derive(Clone, Copy)]
pub struct Map<'r> {
    view: View<'r>,
    id: TypeId,
    at: u32,
}

/// The columns of a record, in the schema's order.
#[derive(Clone)]
pub struct Columns<'r> {
    view: View<'r>,
    fields: slice::Iter<'r, Field>,
    /// Where the values begin.
    field_starts: slice::Iter<'r, u32>,
}

/// The items of an array.
#[derive(Clone)]
pub struct Items<'r> {
    array: Array<'r>,
    /// The number of the next item.
    index: usize,
    /// Its cell.
    at: u32,
}

/// The entries of a map, as they came.
#[derive(Clone)]
pub struct Entries<'r> {
    map: Map<'r>,
    left: usize,
    at: u32,
}

impl<'r> Record<'r> {
    /// How many columns it has.
    pub fn len(&self) -> usize {
        self.view.plan.fields(self.id).len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The columns, in the schema's order.
    #[inline]
    pub fn columns(&self) -> Columns<'r> {
        let fields = self.view.plan.fields(self.id);
        Columns {
            view: self.view,
            fields: fields.iter(),
            field_starts: self.field_starts(fields.len()).iter(),
        }
    }

    /// One column.
    ///
    /// # Panics
    /// If the schema has fewer.
    #[inline]
    pub fn column(&self, index: usize) -> Value<'r> {
        self.get(index).expect("a column of the schema")
    }

    /// One column, if there is one.
    #[inline]
    pub fn get(&self, index: usize) -> Option<Value<'r>> {
        let field = self.view.plan.fields(self.id).get(index)?;
        Some(self.view.value(field.id, *self.field_starts(index + 1).last()?))
    }

    /// Where the values of the first fields begin.
    #[inline]
    fn field_starts(&self, fields: usize) -> &'r [u32] {
        match self.view.cell(self.at) {
            Cell::Record { field_starts, .. } => {
                &self.view.tape.field_starts[field_starts as usize..][..fields]
            }
            _ => &[],
        }
    }

    /// The cell of what the row is made of: itself, or the value of one that is one of several records.
    pub(crate) fn item(&self) -> u32 {
        let plan = self.view.plan;
        if plan.item == plan.row { self.at } else { self.field_starts(2)[1] }
    }

    /// The columns with their names.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&'r str, Value<'r>)> + use<'r> {
        let record = *self;
        let fields = self.view.plan.fields(self.id);
        fields.iter().zip(record.columns()).map(|(field, value)| (&*field.name, value))
    }

    /// Appends the record as JSON: see [`Format::Json`](crate::Format::Json).
    pub fn write_json(&self, out: &mut String) {
        Value::Record(*self).write_json(out);
    }
}

impl Value<'_> {
    /// Appends the value as JSON: see [`Format::Json`](crate::Format::Json).
    pub fn write_json(&self, out: &mut String) {
        json::append(*self, out);
    }
}

impl<'r> View<'r> {
    #[inline]
    pub(crate) fn cell(&self, at: u32) -> Cell {
        self.tape.cells[at as usize]
    }

    /// Text or bytes.
    #[inline]
    pub(crate) fn bytes(&self, cell: Cell) -> &'r [u8] {
        match cell {
            Cell::Input { start, len } => &self.input[start as usize..][..len as usize],
            Cell::Made { start, len } => &self.tape.made[start as usize..][..len as usize],
            _ => &[],
        }
    }

    #[inline]
    pub(crate) fn text(&self, cell: Cell) -> &'r str {
        // It was looked at when it was read; to keep that in mind would take a copy, or unsafe code.
        std::str::from_utf8(self.bytes(cell)).unwrap_or_default()
    }

    #[inline]
    fn value(self, id: TypeId, at: u32) -> Value<'r> {
        let cell = self.cell(at);
        match cell {
            Cell::Null => Value::Null,
            Cell::Boolean(value) => Value::Boolean(value),
            Cell::Int(value) => Value::Int(value),
            Cell::Long(value) => Value::Long(value),
            Cell::Float(value) => Value::Float(value),
            Cell::Double(value) => Value::Double(value),
            Cell::Input { .. } | Cell::Made { .. } => match self.plan.shape(id) {
                Shape::String => Value::String(self.text(cell)),
                Shape::Fixed(_) => Value::Fixed(self.bytes(cell)),
                _ => Value::Bytes(self.bytes(cell)),
            },
            Cell::Symbol(symbol) => match self.plan.shape(id) {
                Shape::Enum(symbols) => Value::Enum(&symbols[symbol as usize]),
                _ => Value::Null,
            },
            Cell::Branch(branch) => match self.plan.shape(id) {
                Shape::Union(branches) => self.value(branches[branch as usize], at + 1),
                _ => Value::Null,
            },
            Cell::Array { .. } | Cell::Floats { .. } | Cell::Doubles { .. } => {
                Value::Array(Array { view: self, id, at })
            }
            Cell::Map { .. } => Value::Map(Map { view: self, id, at }),
            Cell::Record { .. } => Value::Record(Record { view: self, id, at }),
        }
    }
}

impl<'r> Array<'r> {
    /// How many items it has.
    #[inline]
    pub fn len(&self) -> usize {
        match self.view.cell(self.at) {
            Cell::Array { items: len, .. } | Cell::Floats { len, .. } | Cell::Doubles { len, .. } => {
                len as usize
            }
            _ => 0,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The items of an array of `double`, all at once.
    #[inline]
    pub fn doubles(&self) -> Option<&'r [f64]> {
        match self.view.cell(self.at) {
            Cell::Doubles { start, len } => Some(&self.view.tape.doubles[start as usize..][..len as usize]),
            _ => None,
        }
    }

    /// The items of an array of `float`, all at once.
    #[inline]
    pub fn floats(&self) -> Option<&'r [f32]> {
        match self.view.cell(self.at) {
            Cell::Floats { start, len } => Some(&self.view.tape.floats[start as usize..][..len as usize]),
            _ => None,
        }
    }

    /// The items, one after the other.
    pub fn items(&self) -> Items<'r> {
        Items { array: *self, index: 0, at: self.at + 1 }
    }

    pub(crate) fn place(&self) -> (View<'r>, TypeId, u32) {
        (self.view, self.id, self.at)
    }
}

impl<'r> Map<'r> {
    /// How many entries it has. A key may come more than once: Avro does not forbid it.
    pub fn len(&self) -> usize {
        match self.view.cell(self.at) {
            Cell::Map { items, .. } => items as usize,
            _ => 0,
        }
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Keys and values, in the order of the payload.
    pub fn entries(&self) -> Entries<'r> {
        Entries { map: *self, left: self.len(), at: self.at + 1 }
    }

    pub(crate) fn place(&self) -> (View<'r>, TypeId, u32) {
        (self.view, self.id, self.at)
    }
}

impl<'r> Iterator for Columns<'r> {
    type Item = Value<'r>;

    #[inline]
    fn next(&mut self) -> Option<Value<'r>> {
        let (field, at) = (self.fields.next()?, self.field_starts.next()?);
        Some(self.view.value(field.id, *at))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.field_starts.size_hint()
    }
}

impl ExactSizeIterator for Columns<'_> {}

impl<'r> Iterator for Items<'r> {
    type Item = Value<'r>;

    fn next(&mut self) -> Option<Value<'r>> {
        if self.index >= self.array.len() {
            return None;
        }
        let Array { view, id, at } = self.array;
        let value = match view.cell(at) {
            Cell::Floats { start, .. } => Value::Float(view.tape.floats[start as usize + self.index]),
            Cell::Doubles { start, .. } => Value::Double(view.tape.doubles[start as usize + self.index]),
            _ => {
                let Shape::Array(item) = view.plan.shape(id) else { return None };
                let here = self.at;
                self.at = view.tape.after(here);
                view.value(*item, here)
            }
        };
        self.index += 1;
        Some(value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.array.len() - self.index;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Items<'_> {}

impl<'r> Iterator for Entries<'r> {
    type Item = (&'r str, Value<'r>);

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let Map { view, id, .. } = self.map;
        let Shape::Map(value) = view.plan.shape(id) else { return None };
        let here = self.at;
        self.at = view.tape.after(here + 1);
        Some((view.text(view.cell(here)), view.value(*value, here + 1)))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Entries<'_> {}

macro_rules! debug_as_json {
    ($($name:ident),*) => {$(
        impl fmt::Debug for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut text = String::new();
                Value::$name(*self).write_json(&mut text);
                f.write_str(&text)
            }
        }
    )*};
}

debug_as_json!(Array, Map, Record);

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        self.write_json(&mut text);
        f.write_str(&text)
    }
}
