//! Decoded records, one row after another, with their bytes in one piece of memory.

use std::ops::Range;

/// One value of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Cell<'a> {
    /// No value.
    Null,
    /// Of a boolean column.
    Boolean(bool),
    /// Of an integer column.
    Integer(i32),
    /// Of a long column.
    Long(i64),
    /// Of a float column.
    Float(f32),
    /// Of a double column.
    Double(f64),
    /// Of a bytes column.
    Bytes(&'a [u8]),
    /// Of a text column, or of a JSON column.
    Text(&'a str),
}

/// Capacity that is kept for the next rows, in bytes: one huge record is not to be paid for ever after.
const KEPT: usize = 8 << 20;

/// A value with its bytes elsewhere.
#[derive(Clone, Debug)]
enum StoredCell {
    Plain(Cell<'static>),
    Bytes(Range<usize>),
    Text(Range<usize>),
}

/// Rows of `width` cells each.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rows {
    width: usize,
    cells: Vec<StoredCell>,
    bytes: Vec<u8>,
    text: String,
}

impl Rows {
    /// Rows of this many cells.
    pub(crate) fn new(width: usize) -> Self {
        Self { width, ..Self::default() }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.cells.len() / self.width.max(1)
    }

    /// Bytes of memory that they stand for.
    #[inline]
    pub(crate) fn weight(&self) -> usize {
        self.cells.len() * size_of::<StoredCell>() + self.bytes.len() + self.text.len()
    }

    /// Appends a cell.
    #[inline]
    pub(crate) fn push(&mut self, cell: Cell<'_>) {
        let start = self.bytes.len();
        let cell = match cell {
            Cell::Bytes(bytes) => {
                self.bytes.extend_from_slice(bytes);
                StoredCell::Bytes(start..self.bytes.len())
            }
            Cell::Text(text) => return self.push_text(|out| out.push_str(text)),
            Cell::Null => StoredCell::Plain(Cell::Null),
            Cell::Boolean(value) => StoredCell::Plain(Cell::Boolean(value)),
            Cell::Integer(value) => StoredCell::Plain(Cell::Integer(value)),
            Cell::Long(value) => StoredCell::Plain(Cell::Long(value)),
            Cell::Float(value) => StoredCell::Plain(Cell::Float(value)),
            Cell::Double(value) => StoredCell::Plain(Cell::Double(value)),
        };
        self.cells.push(cell);
    }

    /// Appends a cell with text that is written into place.
    #[inline]
    pub(crate) fn push_text(&mut self, write: impl FnOnce(&mut String)) {
        let start = self.text.len();
        write(&mut self.text);
        self.cells.push(StoredCell::Text(start..self.text.len()));
    }

    /// The cells of a row.
    #[inline]
    pub(crate) fn cells(&self, row: usize) -> impl ExactSizeIterator<Item = Cell<'_>> {
        self.cells[row * self.width..][..self.width].iter().map(|cell| match cell {
            StoredCell::Plain(cell) => *cell,
            StoredCell::Bytes(range) => Cell::Bytes(&self.bytes[range.clone()]),
            StoredCell::Text(range) => Cell::Text(&self.text[range.clone()]),
        })
    }

    /// Takes back what was appended after this many rows.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.cells.truncate(rows * self.width);
    }

    /// Takes a row out.
    pub(crate) fn remove(&mut self, row: usize) {
        self.cells.drain(row * self.width..(row + 1) * self.width);
    }

    /// Empties it.
    pub(crate) fn clear(&mut self) {
        self.cells.clear();
        self.bytes.clear();
        self.text.clear();
        self.bytes.shrink_to(KEPT);
        self.text.shrink_to(KEPT);
    }
}
