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
use crate::{MAX_MADE_BYTES, MAX_VALUES};
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

/// A record of the schema has more than one that is read may have: lengths that the schema gives, and records in records, multiply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a record of this schema has more than {MAX_VALUES} values or {} MiB; give shorter lengths (weir.length), or fewer records in records",
    MAX_MADE_BYTES >> 20
)]
pub struct RecordTooLarge;

/// Makes records.
pub struct Generator {
    schema: Schema,
    seed: u64,
    spread: Spread,
    tape: Tape,
}

struct ValueGenerator<'m> {
    plan: &'m Plan,
    tape: &'m mut Tape,
    rng: Rng,
    spread: Spread,
    /// Bytes that the record may still get.
    bytes_left: usize,
    /// The same of the names of its fields, which JSON repeats for each value.
    names_left: usize,
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
    ///
    /// # Errors
    /// It would be larger than one that is read may be.
    pub fn record(&mut self, number: u64) -> Result<Record<'_>, RecordTooLarge> {
        let plan = &*self.schema.plan;
        self.tape.clear();
        let seed = self.seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ number;
        let rng = Rng::with_seed(seed);
        let (bytes_left, names_left) = (MAX_MADE_BYTES, MAX_MADE_BYTES);
        let tape = &mut self.tape;
        ValueGenerator { plan, tape, rng, spread: self.spread, bytes_left, names_left }
            .value(plan.item, 0)?;
        let at = rows::begin(plan, &mut self.tape, 0);
        Ok(Record { view: View { plan, tape: &self.tape, input: &[] }, id: plan.row, at })
    }
}

impl ValueGenerator<'_> {
    fn value(&mut self, id: TypeId, depth: usize) -> Result<(), RecordTooLarge> {
        if self.tape.cells.len() >= MAX_VALUES {
            return Err(RecordTooLarge);
        }
        let plan = self.plan;
        let of = plan.of(id);
        let extreme = self.spread == Spread::Extreme;
        if let Some(logical) = of.logical.filter(|_| !extreme) {
            let cell = self.meaningful(of, logical)?;
            self.tape.cells.push(cell);
            return Ok(());
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
                self.bytes(length)?
            }
            Shape::Fixed(size) => self.bytes(*size as usize)?,
            Shape::String => {
                let length = self.length(of.length.unwrap_or(LETTERS));
                self.text(length)?
            }
            Shape::Enum(symbols) => Cell::Symbol(self.rng.u32(..symbols.len() as u32)),
            Shape::Array(item) => {
                let length = self.items(of.length, depth);
                match plan.shape(*item) {
                    Shape::Double => {
                        self.take(length.saturating_mul(size_of::<f64>()))?;
                        let start = self.tape.doubles.len() as u32;
                        for _ in 0..length {
                            let number = self.double();
                            self.tape.doubles.push(number);
                        }
                        Cell::Doubles { start, len: length as u32 }
                    }
                    Shape::Float => {
                        self.take(length.saturating_mul(size_of::<f32>()))?;
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
                            self.value(*item, depth + 1)?;
                            made += 1;
                        }
                        self.tape.end(at, made as u32);
                        return Ok(());
                    }
                }
            }
            Shape::Map(value) => {
                let length = self.items(of.length, depth);
                let at = self.tape.here();
                self.tape.cells.push(Cell::Map { items: 0, end: 0 });
                let mut made = 0;
                while made < length && self.tape.cells.len() < VALUES {
                    let key = self.key(made)?;
                    self.tape.cells.push(key);
                    self.value(*value, depth + 1)?;
                    made += 1;
                }
                self.tape.end(at, made as u32);
                return Ok(());
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
                    self.names_left = self.names_left.checked_sub(field.name.len()).ok_or(RecordTooLarge)?;
                    self.value(field.id, depth + 1)?;
                }
                self.tape.end(at, 0);
                return Ok(());
            }
        };
        debug_assert!(extreme || !matches!(cell, Cell::Double(number) if !number.is_finite()));
        self.tape.cells.push(cell);
        Ok(())
    }

    /// Counts bytes of the record before they are made.
    fn take(&mut self, bytes: usize) -> Result<(), RecordTooLarge> {
        self.bytes_left = self.bytes_left.checked_sub(bytes).ok_or(RecordTooLarge)?;
        Ok(())
    }

    /// A value that means something.
    fn meaningful(&mut self, of: &Type, logical: Logical) -> Result<Cell, RecordTooLarge> {
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
                self.take(size.max(bytes.len()))?;
                let start = self.tape.made.len();
                let sign = if value < 0 { 0xFF } else { 0 };
                self.tape.made.extend(std::iter::repeat_n(sign, size.saturating_sub(bytes.len())));
                self.tape.made.extend_from_slice(&bytes[bytes.len().saturating_sub(size)..]);
                return Ok(self.made(start));
            }
            Logical::Uuid if matches!(of.shape, Shape::Fixed(_)) => return self.bytes(16),
            Logical::Uuid => {
                self.take(36)?;
                let start = self.tape.made.len();
                let digits = format!("{:032x}", self.rng.u128(..));
                let parts = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
                self.tape.made.extend_from_slice(parts.join("-").as_bytes());
                return Ok(self.made(start));
            }
        };
        Ok(if matches!(of.shape, Shape::Int) { Cell::Int(value as i32) } else { Cell::Long(value) })
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

    fn bytes(&mut self, length: usize) -> Result<Cell, RecordTooLarge> {
        self.take(length)?;
        let start = self.tape.made.len();
        self.tape.made.resize(start + length, 0);
        self.rng.fill(&mut self.tape.made[start..]);
        Ok(self.made(start))
    }

    fn text(&mut self, length: usize) -> Result<Cell, RecordTooLarge> {
        self.take(length)?;
        let start = self.tape.made.len();
        for _ in 0..length {
            let letter = match self.spread {
                Spread::Usual => self.rng.alphanumeric(),
                Spread::Extreme if self.rng.bool() => self.rng.char('\0'..='\u{7f}'),
                Spread::Extreme => self.rng.char(..),
            };
            self.tape.made.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
        Ok(self.made(start))
    }

    /// A key that no other entry of the map has: most programs keep one value a key.
    fn key(&mut self, number: usize) -> Result<Cell, RecordTooLarge> {
        let start = self.tape.made.len();
        self.text(4)?;
        self.tape.made.extend_from_slice(format!("-{number}").as_bytes());
        Ok(self.made(start))
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
            let record = generator.record(number).unwrap();
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
    #[test]
    fn a_record_has_no_more_values_and_bytes_than_one_that_is_read() {
        let refused = |schema: &str| {
            let schema = Schema::parse(schema).unwrap();
            Generator::new(&schema, 1).record(0).err()
        };
        // Twelve records in records, with ten fields each: four kilobytes of schema.
        let mut nested = "\"int\"".to_owned();
        for level in 0..12 {
            let again = |number: usize| {
                let inner = if level == 0 { "int".to_owned() } else { format!("R{}", level - 1) };
                format!(r#", {{"name": "f{number}", "type": "{inner}"}}"#)
            };
            let more: String = (0..9).map(again).collect();
            nested = format!(
                r#"{{"type": "record", "name": "R{level}", "fields": [{{"name": "a", "type": {nested}}}{more}]}}"#
            );
        }
        assert_eq!(refused(&nested), Some(RecordTooLarge));
        let field = |name: &str, kind: &str| {
            format!(r#"{{"type": "record", "name": "R", "fields": [{{"name": "{name}", "type": {kind}}}]}}"#)
        };
        for kind in [
            r#"{"type": "string", "weir.length": 4000000000}"#,
            r#"{"type": "bytes", "weir.length": 4000000000}"#,
            r#"{"type": "array", "items": "double", "weir.length": 4000000000}"#,
            r#"{"type": "array", "items": "float", "weir.length": 4000000000}"#,
            r#"{"type": "map", "values": {"type": "string", "weir.length": 1000000}, "weir.length": 20}"#,
            r#"{"type": "fixed", "name": "F", "size": 2000000000}"#,
            r#"{"type": "fixed", "name": "F", "size": 2000000000, "logicalType": "decimal", "precision": 9}"#,
        ] {
            assert_eq!(refused(&field("a", kind)), Some(RecordTooLarge), "{kind}");
        }
        let inner = field(&"n".repeat(10_000), "\"int\"").replace("\"R\"", "\"I\"");
        let long_names = format!(r#"{{"type": "array", "items": {inner}, "weir.length": 60000}}"#);
        assert_eq!(refused(&field("a", &long_names)), Some(RecordTooLarge));
        let large = r#"{"type": "array", "items": "double", "weir.length": 2000000}"#;
        assert_eq!(refused(&field("a", large)), None);
    }
}
