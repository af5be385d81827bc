//! Records out of a seed: record n of a seed is the same in every run and on every machine.
//!
//! How long values are stands in the schema, as the attribute `weir.length` of a type: letters of a `string`, bytes of
//! `bytes`, items of an `array` or a `map`. Without it they are short.

use crate::plan::{Plan, Shape, TypeId};
use crate::schema::Schema;
use crate::tape::{Cell, Tape};
use crate::value::{Record, View};
use fastrand::Rng;

/// Lengths where the schema says none.
const LETTERS: u32 = 16;
const BYTES: u32 = 16;
const ITEMS: u32 = 3;

/// Nesting from which on arrays, maps and unions are kept as small as can be, so that a list of itself ends.
const DEEP: usize = 6;

/// Values that a record may have: a schema of nested arrays multiplies lengths.
const VALUES: usize = 1 << 16;

/// What the values are drawn from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spread {
    /// What a measurement sends: any `int` and `long`, floating point numbers from 0 up to 1, letters and digits,
    /// lengths just as the schema says.
    #[default]
    Usual,
    /// What a test wants: any bits of a number, any letters of Unicode, lengths from none up to twice.
    Extreme,
}

/// Makes records.
pub struct Generator {
    schema: Schema,
    seed: u64,
    spread: Spread,
    tape: Tape,
}

struct Maker<'m> {
    plan: &'m Plan,
    tape: &'m mut Tape,
    rng: Rng,
    spread: Spread,
}

impl Generator {
    /// A generator of usual records.
    pub fn new(schema: &Schema, seed: u64) -> Self {
        Self { schema: schema.clone(), seed, spread: Spread::Usual, tape: Tape::default() }
    }

    /// The same with values drawn otherwise.
    #[must_use]
    pub fn spread(self, spread: Spread) -> Self {
        Self { spread, ..self }
    }

    /// Record `number` of the seed.
    pub fn record(&mut self, number: u64) -> Record<'_> {
        let plan = &*self.schema.plan;
        self.tape.clear();
        let seed = self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number;
        let rng = Rng::with_seed(seed);
        let mut maker = Maker { plan, tape: &mut self.tape, rng, spread: self.spread };
        maker.value(plan.top, 0);
        Record { view: View { plan, tape: &self.tape, input: &[] }, id: plan.top, at: 0 }
    }
}

impl Maker<'_> {
    fn value(&mut self, id: TypeId, depth: usize) {
        let plan = self.plan;
        let of = plan.of(id);
        let extreme = self.spread == Spread::Extreme;
        let cell = match &of.shape {
            Shape::Null => Cell::Null,
            Shape::Boolean => Cell::Boolean(self.rng.bool()),
            Shape::Int => Cell::Int(self.any_long() as i32),
            Shape::Long => Cell::Long(self.any_long()),
            Shape::Float => Cell::Float(self.float()),
            Shape::Double => Cell::Double(self.double()),
            Shape::Bytes => {
                let length = self.length(of.length.unwrap_or(BYTES));
                self.bytes(length)
            }
            Shape::Fixed(size) => self.bytes(*size as usize),
            Shape::String => {
                let length = self.length(of.length.unwrap_or(LETTERS));
                self.text(length)
            }
            Shape::Enum(symbols) => Cell::Symbol(self.rng.u32(..symbols.len() as u32)),
            Shape::Array(item) => {
                let length = self.items(of.length, depth);
                match plan.shape(*item) {
                    Shape::Double => {
                        let start = self.tape.doubles.len() as u32;
                        for _ in 0..length {
                            let number = self.double();
                            self.tape.doubles.push(number);
                        }
                        Cell::Doubles { start, len: length as u32 }
                    }
                    Shape::Float => {
                        let start = self.tape.floats.len() as u32;
                        for _ in 0..length {
                            let number = self.float();
                            self.tape.floats.push(number);
                        }
                        Cell::Floats { start, len: length as u32 }
                    }
                    _ => {
                        let at = self.tape.here();
                        self.tape.cells.push(Cell::Array { items: 0, end: 0 });
                        let mut made = 0;
                        while made < length && self.tape.cells.len() < VALUES {
                            self.value(*item, depth + 1);
                            made += 1;
                        }
                        self.tape.end(at, made as u32);
                        return;
                    }
                }
            }
            Shape::Map(value) => {
                let length = self.items(of.length, depth);
                let at = self.tape.here();
                self.tape.cells.push(Cell::Map { items: 0, end: 0 });
                let mut made = 0;
                while made < length && self.tape.cells.len() < VALUES {
                    let key = self.key(made);
                    self.tape.cells.push(key);
                    self.value(*value, depth + 1);
                    made += 1;
                }
                self.tape.end(at, made as u32);
                return;
            }
            Shape::Union(branches) => {
                let small = depth >= DEEP || self.tape.cells.len() >= VALUES;
                let branch = if small {
                    let least = |number: &usize| plan.of(branches[*number]).least;
                    (0..branches.len()).min_by_key(least).unwrap_or_default()
                } else {
                    self.rng.usize(..branches.len())
                };
                self.tape.cells.push(Cell::Branch(branch as u32));
                return self.value(branches[branch], depth + 1);
            }
            Shape::Record(record) => {
                let (at, field_starts) = self.tape.begin_record(record.fields.len());
                for (number, field) in record.fields.iter().enumerate() {
                    self.tape.field_starts[field_starts + number] = self.tape.here();
                    self.value(field.id, depth + 1);
                }
                self.tape.end(at, 0);
                return;
            }
        };
        debug_assert!(extreme || !matches!(cell, Cell::Double(number) if !number.is_finite()));
        self.tape.cells.push(cell);
    }

    /// Any number; in a test often a short one, and often one at the edge.
    fn any_long(&mut self) -> i64 {
        let any = self.rng.i64(..);
        if self.spread == Spread::Usual {
            return any;
        }
        match self.rng.u8(..6) {
            0 => *self
                .rng
                .choice(&[0, 1, -1, 63, 64, -64, -65, i32::MIN.into(), i64::MIN, i64::MAX])
                .unwrap_or(&0),
            1 => any >> 56,
            2 => any >> 40,
            _ => any,
        }
    }

    fn double(&mut self) -> f64 {
        if self.spread == Spread::Usual { self.rng.f64() } else { f64::from_bits(self.rng.u64(..)) }
    }

    fn float(&mut self) -> f32 {
        if self.spread == Spread::Usual { self.rng.f32() } else { f32::from_bits(self.rng.u32(..)) }
    }

    fn length(&mut self, usual: u32) -> usize {
        match self.spread {
            Spread::Usual => usual as usize,
            Spread::Extreme => self.rng.usize(..=2 * usual as usize),
        }
    }

    fn items(&mut self, said: Option<u32>, depth: usize) -> usize {
        if depth >= DEEP { 0 } else { self.length(said.unwrap_or(ITEMS)) }
    }

    fn made(&self, start: usize) -> Cell {
        Cell::Made { start: start as u32, len: (self.tape.made.len() - start) as u32 }
    }

    fn bytes(&mut self, length: usize) -> Cell {
        let start = self.tape.made.len();
        self.tape.made.resize(start + length, 0);
        self.rng.fill(&mut self.tape.made[start..]);
        self.made(start)
    }

    fn text(&mut self, length: usize) -> Cell {
        let start = self.tape.made.len();
        for _ in 0..length {
            let letter = match self.spread {
                Spread::Usual => self.rng.alphanumeric(),
                Spread::Extreme if self.rng.bool() => self.rng.char('\0'..='\u{7f}'),
                Spread::Extreme => self.rng.char(..),
            };
            self.tape.made.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
        self.made(start)
    }

    /// A key that no other entry of the map has: most programs keep one value a key.
    fn key(&mut self, number: usize) -> Cell {
        let start = self.tape.made.len();
        self.text(4);
        self.tape.made.extend_from_slice(format!("-{number}").as_bytes());
        self.made(start)
    }
}
