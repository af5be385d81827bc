//! Records out of a seed: record n of a seed is the same in every run and on every machine.
//!
//! How long values are stands in the schema, as the attribute `weir.length` of a type: letters of a `string`, bytes of
//! `bytes`, items of an `array` or a `map`. Without it they are short.

use crate::logical::{Logical, TimeUnit};
use crate::plan::{Plan, Shape, Type, TypeId};
use crate::rows;
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

/// Days from 1970 up to 2070, and seconds of one: dates and times that are generated.
const CENTURY_DAYS: i64 = 36_525;
const DAY_SECONDS: i64 = 86_400;

/// Values that a record may have: a schema of nested arrays multiplies lengths.
const VALUES: usize = 1 << 16;

/// What the values are drawn from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Spread {
    /// What a measurement sends: any `int` and `long`, floating point numbers from 0 up to 1, letters and digits,
    /// lengths just as the schema says; of logical types, dates and times from 1970 up to 2070, decimals of as many digits as
    /// they may have, and UUIDs.
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
        maker.value(plan.item, 0);
        let at = rows::begin(plan, &mut self.tape, 0);
        Record { view: View { plan, tape: &self.tape, input: &[] }, id: plan.row, at }
    }
}

impl Maker<'_> {
    fn value(&mut self, id: TypeId, depth: usize) {
        let plan = self.plan;
        let of = plan.of(id);
        let extreme = self.spread == Spread::Extreme;
        if let Some(logical) = of.logical.filter(|_| !extreme) {
            let cell = self.meaningful(of, logical);
            return self.tape.cells.push(cell);
        }
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

    /// A value that means something.
    fn meaningful(&mut self, of: &Type, logical: Logical) -> Cell {
        let second = |unit| match unit {
            TimeUnit::Millis => 1_000,
            TimeUnit::Micros => 1_000_000,
            TimeUnit::Nanos => 1_000_000_000,
        };
        let value = match logical {
            Logical::Date => self.rng.i64(0..CENTURY_DAYS),
            Logical::Time(unit) => self.rng.i64(0..DAY_SECONDS * second(unit)),
            Logical::Timestamp(unit) | Logical::LocalTimestamp(unit) => {
                self.rng.i64(0..CENTURY_DAYS * DAY_SECONDS * second(unit))
            }
            Logical::Decimal { precision, .. } => {
                // 18 digits are as many as 64 bits always have room for, and bytes of a fixed may be fewer.
                let bits = if let Shape::Fixed(size) = of.shape {
                    size.saturating_mul(8).saturating_sub(1)
                } else {
                    63
                };
                let limit = 10_i64.pow(precision.min(18)).min(1 << bits.min(62));
                let value = self.rng.i64(1 - limit..limit);
                let bytes = value.to_be_bytes();
                let size = if let Shape::Fixed(size) = of.shape { size as usize } else { bytes.len() };
                let start = self.tape.made.len();
                let sign = if value < 0 { 0xFF } else { 0 };
                self.tape.made.extend(std::iter::repeat_n(sign, size.saturating_sub(bytes.len())));
                self.tape.made.extend_from_slice(&bytes[bytes.len().saturating_sub(size)..]);
                return self.made(start);
            }
            Logical::Uuid if matches!(of.shape, Shape::Fixed(_)) => return self.bytes(16),
            Logical::Uuid => {
                let start = self.tape.made.len();
                let digits = format!("{:032x}", self.rng.u128(..));
                let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
                self.tape.made.extend_from_slice(parts.join("-").as_bytes());
                return self.made(start);
            }
        };
        if matches!(of.shape, Shape::Int) { Cell::Int(value as i32) } else { Cell::Long(value) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    #[test]
    fn values_of_logical_types_mean_something() {
        let schema = r#"{"type": "record", "name": "L", "fields": [
            {"name": "a", "type": {"type": "int", "logicalType": "date"}},
            {"name": "b", "type": {"type": "int", "logicalType": "time-millis"}},
            {"name": "c", "type": {"type": "long", "logicalType": "timestamp-nanos"}},
            {"name": "d", "type": {"type": "bytes", "logicalType": "decimal", "precision": 3}},
            {"name": "e", "type": {"type": "fixed", "name": "F", "size": 1, "logicalType": "decimal", "precision": 2}},
            {"name": "f", "type": {"type": "fixed", "name": "G", "size": 12, "logicalType": "decimal", "precision": 28}},
            {"name": "g", "type": {"type": "string", "logicalType": "uuid"}}]}"#;
        let schema = Schema::parse(schema).unwrap();
        let mut generator = Generator::new(&schema, 5);
        for number in 0..500 {
            let record = generator.record(number);
            let number = |column| match record.column(column) {
                Value::Int(value) => i128::from(value),
                Value::Long(value) => value.into(),
                Value::Bytes(bytes) | Value::Fixed(bytes) => {
                    let sign = if bytes[0] < 0x80 { 0 } else { 0xFF };
                    let mut wide = [sign; 16];
                    wide[16 - bytes.len()..].copy_from_slice(bytes);
                    i128::from_be_bytes(wide)
                }
                other => panic!("{other:?}"),
            };
            assert!((0..36_525).contains(&number(0)) && (0..86_400_000).contains(&number(1)));
            assert!((0..36_525 * 86_400 * 1_000_000_000).contains(&number(2)));
            assert!(number(3).abs() < 1_000 && number(4).abs() < 100 && number(5).abs() < 10_i128.pow(18));
            let Value::String(uuid) = record.column(6) else { panic!("no text") };
            let places: Vec<_> = uuid.match_indices('-').map(|(at, _)| at).collect();
            assert_eq!((uuid.len(), &places[..]), (36, &[8, 13, 18, 23][..]));
        }
    }
}
