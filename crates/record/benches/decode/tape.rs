//! Records of a schema that is known only when the program runs, read out of JSON by libraries: what weir's own reader
//! would be if it stood on them.
//!
//! As there, values go onto a tape in memory that is used again, text is left where it lies, and a column that is missing
//! or comes twice is refused. What is nested in a column is left out, so that this is the least that such a reader costs.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use sonic_rs::{LazyValue, PointerTree};
use std::fmt;
use std::hint::black_box;
use weir_record::{Column, Kind, Schema};

/// One value.
#[derive(Clone, Copy)]
enum Cell {
    Missing,
    Boolean(bool),
    Long(i64),
    Double(f64),
    Float(f32),
    /// Text that lies in the payload.
    Input {
        start: u32,
        len: u32,
    },
    /// Text or bytes that had to be made.
    Made {
        start: u32,
        len: u32,
    },
    Doubles {
        start: u32,
        len: u32,
    },
}

/// The values of a record.
pub(crate) struct Tape {
    columns: Box<[Column]>,
    /// The columns' names, for what looks them up together.
    tree: PointerTree,
    cells: Vec<Cell>,
    doubles: Vec<f64>,
    made: Vec<u8>,
}

impl Tape {
    pub(crate) fn new(schema: &Schema) -> Self {
        let mut tree = PointerTree::new();
        for column in schema.columns() {
            tree.add_path(&[column.name()]);
        }
        Self {
            columns: schema.columns().into(),
            tree,
            cells: Vec::new(),
            doubles: Vec::new(),
            made: Vec::new(),
        }
    }

    fn clear(&mut self) {
        self.cells.clear();
        self.cells.resize(self.columns.len(), Cell::Missing);
        self.doubles.clear();
        self.made.clear();
    }

    pub(crate) fn serde_json(&mut self, payload: &[u8]) -> u64 {
        let mut json = serde_json::Deserializer::from_slice(payload);
        self.clear();
        RecordOf { tape: self, input: payload }.deserialize(&mut json).expect("a record");
        json.end().expect("nothing more");
        self.touch(payload)
    }

    pub(crate) fn sonic(&mut self, payload: &[u8]) -> u64 {
        let mut json = sonic_rs::Deserializer::from_slice(payload);
        self.clear();
        RecordOf { tape: self, input: payload }.deserialize(&mut json).expect("a record");
        json.end().expect("nothing more");
        self.touch(payload)
    }

    /// By values that are looked at when they are asked for, found one behind the other.
    pub(crate) fn sonic_lazily(&mut self, payload: &[u8]) -> u64 {
        self.clear();
        let mut expected = 0;
        for member in sonic_rs::to_object_iter(payload) {
            let (name, value) = member.expect("a member");
            let Some(at) = place(&self.columns, expected, &name) else { continue };
            self.put(at, &value, payload);
            expected = at + 1;
        }
        self.touch(payload)
    }

    /// The same, of all columns at once.
    pub(crate) fn sonic_many(&mut self, payload: &[u8]) -> u64 {
        self.clear();
        let found = sonic_rs::get_many(payload, &self.tree).expect("a record");
        for (at, value) in found.iter().enumerate() {
            self.put(at, value.as_ref().expect("a column"), payload);
        }
        self.touch(payload)
    }

    fn put(&mut self, at: usize, value: &LazyValue<'_>, input: &[u8]) {
        let (kind, items) = (self.columns[at].kind(), self.columns[at].items());
        let mut json = sonic_rs::Deserializer::from_str(value.as_raw_str());
        let cell = CellOf { kind, items, doubles: &mut self.doubles, made: &mut self.made, input };
        self.cells[at] = cell.deserialize(&mut json).expect("a value of the column");
    }

    /// Reads each column once.
    fn touch(&self, input: &[u8]) -> u64 {
        self.cells
            .iter()
            .map(|cell| match black_box(*cell) {
                Cell::Missing => 0,
                Cell::Boolean(value) => value.into(),
                Cell::Long(value) => value as u64,
                Cell::Double(value) => value.to_bits(),
                Cell::Float(value) => value.to_bits().into(),
                Cell::Input { start, len } => input[start as usize..][..len as usize].len() as u64,
                Cell::Made { start, len } => self.made[start as usize..][..len as usize].len() as u64,
                Cell::Doubles { start, len } => self.doubles[start as usize..][..len as usize].len() as u64,
            })
            .fold(0, u64::wrapping_add)
    }
}

/// The column with this name, which most often is the expected one.
#[inline]
fn place(columns: &[Column], expected: usize, name: &str) -> Option<usize> {
    if columns.get(expected).is_some_and(|column| column.name() == name) {
        return Some(expected);
    }
    columns.iter().position(|column| column.name() == name)
}

/// Reads a record onto the tape.
struct RecordOf<'t, 'i> {
    tape: &'t mut Tape,
    input: &'i [u8],
}

impl<'de> DeserializeSeed<'de> for RecordOf<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for RecordOf<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a record")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Tape { columns, cells, doubles, made, .. } = self.tape;
        let (mut expected, mut found) = (0, 0);
        while let Some(at) = map.next_key_seed(ColumnPosition { columns, expected })? {
            let Some(at) = at else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            if !matches!(cells[at], Cell::Missing) {
                return Err(A::Error::custom("a column comes twice"));
            }
            let (kind, items) = (columns[at].kind(), columns[at].items());
            cells[at] = map.next_value_seed(CellOf { kind, items, doubles, made, input: self.input })?;
            expected = at + 1;
            found += 1;
        }
        if found == columns.len() { Ok(()) } else { Err(A::Error::custom("a column is missing")) }
    }
}

/// Finds the column that a name is of.
struct ColumnPosition<'c> {
    columns: &'c [Column],
    expected: usize,
}

impl<'de> DeserializeSeed<'de> for ColumnPosition<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for ColumnPosition<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a column")
    }

    fn visit_str<E>(self, name: &str) -> Result<Option<usize>, E> {
        Ok(place(self.columns, self.expected, name))
    }
}

/// Reads a value of a kind.
struct CellOf<'t, 'i> {
    kind: Kind,
    items: Option<Kind>,
    doubles: &'t mut Vec<f64>,
    made: &'t mut Vec<u8>,
    input: &'i [u8],
}

impl<'de> DeserializeSeed<'de> for CellOf<'_, '_> {
    type Value = Cell;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Cell, D::Error> {
        match self.kind {
            Kind::Boolean => deserializer.deserialize_bool(self),
            Kind::Int | Kind::Long => deserializer.deserialize_i64(self),
            Kind::Float => deserializer.deserialize_f32(self),
            Kind::Double => deserializer.deserialize_f64(self),
            Kind::String | Kind::Bytes => deserializer.deserialize_str(self),
            Kind::Array if self.items == Some(Kind::Double) => deserializer.deserialize_seq(self),
            _ => Err(D::Error::custom("a column of another kind")),
        }
    }
}

impl<'de> Visitor<'de> for CellOf<'_, '_> {
    type Value = Cell;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a value of {:?}", self.kind)
    }

    fn visit_bool<E>(self, it: bool) -> Result<Cell, E> {
        Ok(Cell::Boolean(it))
    }

    fn visit_i64<E>(self, it: i64) -> Result<Cell, E> {
        Ok(match self.kind {
            Kind::Double => Cell::Double(it as f64),
            Kind::Float => Cell::Float(it as f32),
            _ => Cell::Long(it),
        })
    }

    fn visit_u64<E: Error>(self, it: u64) -> Result<Cell, E> {
        self.visit_i64(i64::try_from(it).map_err(|_| E::custom("a number beyond 64 bits"))?)
    }

    fn visit_f64<E>(self, it: f64) -> Result<Cell, E> {
        Ok(if self.kind == Kind::Float { Cell::Float(it as f32) } else { Cell::Double(it) })
    }

    fn visit_borrowed_str<E: Error>(self, it: &'de str) -> Result<Cell, E> {
        if self.kind == Kind::Bytes {
            return self.visit_str(it);
        }
        let start = it.as_ptr().addr() - self.input.as_ptr().addr();
        Ok(Cell::Input { start: start as u32, len: it.len() as u32 })
    }

    fn visit_str<E: Error>(self, it: &str) -> Result<Cell, E> {
        let start = self.made.len();
        if self.kind == Kind::Bytes {
            self.made.resize(start + base64::decoded_len_estimate(it.len()), 0);
            let len = STANDARD.decode_slice(it, &mut self.made[start..]).map_err(E::custom)?;
            self.made.truncate(start + len);
        } else {
            self.made.extend_from_slice(it.as_bytes());
        }
        Ok(Cell::Made { start: start as u32, len: (self.made.len() - start) as u32 })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Cell, A::Error> {
        let start = self.doubles.len();
        while let Some(number) = seq.next_element::<f64>()? {
            self.doubles.push(number);
        }
        Ok(Cell::Doubles { start: start as u32, len: (self.doubles.len() - start) as u32 })
    }
}
