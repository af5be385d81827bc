//! A record that was read: its values in a row, in memory that is used again.

/// One value, or the beginning of one that has others in it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cell {
    Null,
    Boolean(bool),
    Int(i32),
    Long(i64),
    Float(f32),
    Double(f64),
    /// Text or bytes that lie in the payload.
    Input {
        start: u32,
        len: u32,
    },
    /// Text or bytes that had to be made.
    Made {
        start: u32,
        len: u32,
    },
    /// A symbol of an enum.
    Symbol(u32),
    /// A branch of a union; its value follows.
    Branch(u32),
    /// An array; its items follow, up to `end`.
    Array {
        items: u32,
        end: u32,
    },
    /// An array of nothing but floats.
    Floats {
        start: u32,
        len: u32,
    },
    /// An array of nothing but doubles.
    Doubles {
        start: u32,
        len: u32,
    },
    /// A map; keys and values follow alternately, up to `end`.
    Map {
        items: u32,
        end: u32,
    },
    /// A record; its fields follow, up to `end`. Where each begins stands in `field_starts`.
    Record {
        field_starts: u32,
        end: u32,
    },
}

/// The values of a record.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tape {
    pub(crate) cells: Vec<Cell>,
    /// For each record the cells at which its fields begin.
    pub(crate) field_starts: Vec<u32>,
    pub(crate) floats: Vec<f32>,
    pub(crate) doubles: Vec<f64>,
    pub(crate) made: Vec<u8>,
}

/// A place on a tape: how long its lists are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TapePosition {
    cells: usize,
    field_starts: usize,
    floats: usize,
    doubles: usize,
    made: usize,
}

/// Memory that is kept between two records, per list, in bytes. One huge record is not to be paid for ever after.
const KEPT: usize = 1 << 20;

impl Tape {
    #[inline]
    pub(crate) fn clear(&mut self) {
        clear(&mut self.cells);
        clear(&mut self.field_starts);
        clear(&mut self.floats);
        clear(&mut self.doubles);
        clear(&mut self.made);
    }

    /// The cell after the value that begins at `at`.
    pub(crate) fn after(&self, at: u32) -> u32 {
        match self.cells[at as usize] {
            Cell::Branch(_) => self.after(at + 1),
            Cell::Array { end, .. } | Cell::Map { end, .. } | Cell::Record { end, .. } => end,
            _ => at + 1,
        }
    }

    /// The place of what comes next.
    pub(crate) fn position(&self) -> TapePosition {
        TapePosition {
            cells: self.cells.len(),
            field_starts: self.field_starts.len(),
            floats: self.floats.len(),
            doubles: self.doubles.len(),
            made: self.made.len(),
        }
    }

    /// Takes back what was appended behind a place.
    pub(crate) fn rewind(&mut self, to: TapePosition) {
        self.cells.truncate(to.cells);
        self.field_starts.truncate(to.field_starts);
        self.floats.truncate(to.floats);
        self.doubles.truncate(to.doubles);
        self.made.truncate(to.made);
    }

    /// The number of the next cell.
    #[inline]
    pub(crate) fn here(&self) -> u32 {
        self.cells.len() as u32
    }

    /// Begins a record with this number of fields; returns its cell and where its `field_starts` begin.
    #[inline]
    pub(crate) fn begin_record(&mut self, fields: usize) -> (u32, usize) {
        let (at, field_starts) = (self.here(), self.field_starts.len());
        self.cells.push(Cell::Record { field_starts: field_starts as u32, end: 0 });
        self.field_starts.resize(field_starts + fields, 0);
        (at, field_starts)
    }

    /// Appends the values of another tape, which have nothing in a payload.
    pub(crate) fn append(&mut self, other: &Self) {
        let (cells, made) = (self.here(), self.made.len() as u32);
        let (floats, doubles) = (self.floats.len() as u32, self.doubles.len() as u32);
        let starts = self.field_starts.len() as u32;
        self.cells.extend(other.cells.iter().map(|cell| match *cell {
            Cell::Made { start, len } => Cell::Made { start: start + made, len },
            Cell::Array { items, end } => Cell::Array { items, end: end + cells },
            Cell::Map { items, end } => Cell::Map { items, end: end + cells },
            Cell::Floats { start, len } => Cell::Floats { start: start + floats, len },
            Cell::Doubles { start, len } => Cell::Doubles { start: start + doubles, len },
            Cell::Record { field_starts, end } => {
                Cell::Record { field_starts: field_starts + starts, end: end + cells }
            }
            plain => plain,
        }));
        self.field_starts.extend(other.field_starts.iter().map(|start| start + cells));
        self.made.extend_from_slice(&other.made);
        self.floats.extend_from_slice(&other.floats);
        self.doubles.extend_from_slice(&other.doubles);
    }

    /// Bytes that it takes beside its cells.
    pub(crate) fn bytes(&self) -> usize {
        self.made.len() + 4 * (self.floats.len() + self.field_starts.len()) + 8 * self.doubles.len()
    }

    /// Ends the array, map or record that began at `at`, with this number of items.
    #[inline]
    pub(crate) fn end(&mut self, at: u32, count: u32) {
        let here = self.here();
        if let Cell::Array { items, end } | Cell::Map { items, end } = &mut self.cells[at as usize] {
            (*items, *end) = (count, here);
        } else if let Cell::Record { end, .. } = &mut self.cells[at as usize] {
            *end = here;
        }
    }
}

#[inline]
fn clear<T>(list: &mut Vec<T>) {
    list.clear();
    if list.capacity() * size_of::<T>() > KEPT {
        list.shrink_to(KEPT / size_of::<T>());
    }
}
