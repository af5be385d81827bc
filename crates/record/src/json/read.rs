//! Reads a record out of JSON onto a tape.

use super::cursor::{Cursor, Raw};
use super::number::{Decimal, whole};
use super::{INFINITY, MINUS_INFINITY, NAN, NAN_BITS};
use crate::default;
use crate::error::{Fault, Problem};
use crate::plan::{Plan, RecordShape, Shape, TypeId};
use crate::tape::{Cell, Tape};
use crate::{MAX_DEPTH, MAX_MADE_BYTES, MAX_VALUES};
use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Base64 with padding or without.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Reads values, one after the other.
pub(super) struct Reader<'r> {
    pub(super) plan: &'r Plan,
    pub(super) tape: &'r mut Tape,
    pub(super) cursor: Cursor<'r>,
    /// Whether by Avro's own JSON encoding.
    pub(super) avro: bool,
    depth: usize,
    /// Bytes of default values so far.
    defaults: usize,
}

/// Reads one record that begins at `at`, and gives the place after it; `avro`: by
/// [`Format::AvroJson`](crate::Format::AvroJson).
pub(crate) fn record(
    plan: &Plan,
    tape: &mut Tape,
    input: &[u8],
    at: usize,
    avro: bool,
) -> Result<usize, Fault> {
    let mut reader = Reader { plan, tape, cursor: Cursor { input, at }, avro, depth: 0, defaults: 0 };
    reader.value(plan.top)?;
    Ok(reader.cursor.at)
}

/// A number of a type.
trait Number: fast_float2::FastFloat + Copy {
    const NAME: &'static str;
    const NO_NUMBER: Self;
    const INFINITE: [Self; 2];
    fn is_finite(self) -> bool;
    /// The number, if the fast path can represent it exactly.
    fn of(decimal: &Decimal) -> Option<Self>;
    /// The NaN with these bits, if they are those of one.
    fn nan(bits: &str) -> Option<Self>;
}

impl Number for f64 {
    const NAME: &'static str = "double";
    const NO_NUMBER: Self = Self::NAN;
    const INFINITE: [Self; 2] = [Self::INFINITY, Self::NEG_INFINITY];
    fn is_finite(self) -> bool {
        self.is_finite()
    }
    #[inline]
    fn of(decimal: &Decimal) -> Option<Self> {
        decimal.double()
    }
    fn nan(bits: &str) -> Option<Self> {
        u64::from_str_radix(bits, 16).ok().map(Self::from_bits).filter(|value| value.is_nan())
    }
}

impl Number for f32 {
    const NAME: &'static str = "float";
    const NO_NUMBER: Self = Self::NAN;
    const INFINITE: [Self; 2] = [Self::INFINITY, Self::NEG_INFINITY];
    fn is_finite(self) -> bool {
        self.is_finite()
    }
    fn of(_: &Decimal) -> Option<Self> {
        None
    }
    fn nan(bits: &str) -> Option<Self> {
        u32::from_str_radix(bits, 16).ok().map(Self::from_bits).filter(|value| value.is_nan())
    }
}

/// Bytes that were made, of which there must be `size`.
fn sized(start: usize, len: usize, size: Option<usize>, at: usize) -> Result<Cell, Fault> {
    match size {
        Some(expected) if expected != len => Err(Fault::new(Problem::Size { expected, found: len }, at)),
        _ => Ok(Cell::Made { start: start as u32, len: len as u32 }),
    }
}

impl<'r> Reader<'r> {
    pub(super) fn value(&mut self, id: TypeId) -> Result<(), Fault> {
        let plan = self.plan;
        let cell = match plan.shape(id) {
            Shape::Null => {
                self.cursor.word("null", "null")?;
                Cell::Null
            }
            Shape::Boolean if self.cursor.takes("true") => Cell::Boolean(true),
            Shape::Boolean => {
                self.cursor.word("false", "a boolean")?;
                Cell::Boolean(false)
            }
            Shape::Int => {
                self.cursor.peek();
                let begin = self.cursor.at;
                let small = i32::try_from(self.integer("int")?);
                Cell::Int(small.map_err(|_| Fault::new(Problem::Number("int"), begin))?)
            }
            Shape::Long => Cell::Long(self.integer("long")?),
            Shape::Float => Cell::Float(self.number()?),
            Shape::Double => Cell::Double(self.number()?),
            Shape::Bytes => self.bytes(None)?,
            Shape::Fixed(size) => self.bytes(Some(*size as usize))?,
            Shape::String => {
                let raw = self.cursor.raw("a string")?;
                self.text(raw)?
            }
            Shape::Enum(symbols) => {
                let raw = self.cursor.raw("a string")?;
                let said = raw.said()?;
                match symbols.iter().position(|symbol| symbol.as_bytes() == &*said) {
                    Some(symbol) => Cell::Symbol(symbol as u32),
                    None => return Err(Fault::new(Problem::Symbol, raw.at)),
                }
            }
            Shape::Array(item) => return self.deeper(|reader| reader.array(*item)),
            Shape::Map(value) => return self.deeper(|reader| reader.map(*value)),
            Shape::Record(record) => return self.deeper(|reader| reader.record(record)),
            Shape::Union(branches) => return self.union(branches),
        };
        self.tape.cells.push(cell);
        Ok(())
    }

    fn deeper(&mut self, read: impl FnOnce(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        if self.depth > MAX_DEPTH {
            return self.cursor.fault(Problem::TooDeep);
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn record(&mut self, record: &RecordShape) -> Result<(), Fault> {
        let fields = &record.fields;
        let (at, field_starts) = self.tape.begin_record(fields.len());
        self.cursor.mark(b'{', "an object")?;
        let (mut found, mut guess) = (0, 0);
        let mut more = !self.cursor.none(b'}');
        while more {
            let name = self.cursor.raw("a field's name")?;
            self.cursor.mark(b':', "':'")?;
            let number =
                if name.escaped { record.find(&name.said()?, guess) } else { record.find(name.bytes, guess) };
            if let Some(number) = number {
                let field = &fields[number];
                // No field begins at the first cell: the record itself does.
                if self.tape.field_starts[field_starts + number] != 0 {
                    return Err(Fault::new(Problem::Twice(field.name.clone()), name.at));
                }
                self.tape.field_starts[field_starts + number] = self.tape.here();
                self.value(field.id).map_err(|fault| fault.in_field(&field.name))?;
                found += 1;
                guess = number + 1;
            } else {
                self.cursor.skip(self.depth)?;
            }
            more = self.cursor.more(b'}', "',' or '}'")?;
        }
        if found < fields.len() {
            self.fill(record, field_starts)?;
        }
        self.tape.end(at, 0);
        Ok(())
    }

    /// Puts their defaults into the fields that did not come, or null if they may be that.
    fn fill(&mut self, record: &RecordShape, field_starts: usize) -> Result<(), Fault> {
        let plan = self.plan;
        for (number, field) in record.fields.iter().enumerate() {
            if self.tape.field_starts[field_starts + number] != 0 {
                continue;
            }
            self.tape.field_starts[field_starts + number] = self.tape.here();
            let null = |id: &TypeId| matches!(plan.shape(*id), Shape::Null);
            if let Some(default) = plan.default(field) {
                self.defaults += default.bytes();
                self.tape.append(default);
                if self.defaults > MAX_MADE_BYTES || self.tape.cells.len() > MAX_VALUES {
                    return self.cursor.fault(Problem::TooManyValues);
                }
            } else if let Shape::Union(branches) = plan.shape(field.id)
                && let Some(branch) = branches.iter().position(null)
            {
                self.tape.cells.extend([Cell::Branch(branch as u32), Cell::Null]);
            } else if null(&field.id) {
                self.tape.cells.push(Cell::Null);
            } else {
                return Err(Fault::new(Problem::Missing(field.name.clone()), self.cursor.at - 1));
            }
        }
        Ok(())
    }

    fn array(&mut self, item: TypeId) -> Result<(), Fault> {
        self.cursor.mark(b'[', "an array")?;
        let cell = match self.plan.shape(item) {
            Shape::Double => {
                let start = self.tape.doubles.len();
                self.items(|reader| {
                    let number = reader.number()?;
                    reader.tape.doubles.push(number);
                    Ok(())
                })?;
                Cell::Doubles { start: start as u32, len: (self.tape.doubles.len() - start) as u32 }
            }
            Shape::Float => {
                let start = self.tape.floats.len();
                self.items(|reader| {
                    let number = reader.number()?;
                    reader.tape.floats.push(number);
                    Ok(())
                })?;
                Cell::Floats { start: start as u32, len: (self.tape.floats.len() - start) as u32 }
            }
            _ => {
                let at = self.tape.here();
                self.tape.cells.push(Cell::Array { items: 0, end: 0 });
                let items = self.items(|reader| {
                    reader.room()?;
                    reader.value(item)
                })?;
                self.tape.end(at, items);
                return Ok(());
            }
        };
        self.tape.cells.push(cell);
        Ok(())
    }

    /// Reads items up to the end of the array, and counts them.
    #[inline]
    fn items(&mut self, mut read: impl FnMut(&mut Self) -> Result<(), Fault>) -> Result<u32, Fault> {
        let mut items = 0;
        let mut more = !self.cursor.none(b']');
        while more {
            read(self).map_err(|fault| fault.in_item(items as usize))?;
            items += 1;
            more = self.cursor.more(b']', "',' or ']'")?;
        }
        Ok(items)
    }

    fn map(&mut self, value: TypeId) -> Result<(), Fault> {
        self.cursor.mark(b'{', "an object")?;
        let at = self.tape.here();
        self.tape.cells.push(Cell::Map { items: 0, end: 0 });
        let mut items = 0;
        let mut more = !self.cursor.none(b'}');
        while more {
            self.room()?;
            let mut entry = || {
                let raw = self.cursor.raw("a key")?;
                let key = self.text(raw)?;
                self.tape.cells.push(key);
                self.cursor.mark(b':', "':'")?;
                self.value(value)
            };
            entry().map_err(|fault| fault.in_item(items as usize))?;
            items += 1;
            more = self.cursor.more(b'}', "',' or '}'")?;
        }
        self.tape.end(at, items);
        Ok(())
    }

    /// Looks whether the record may have more values.
    #[inline]
    fn room(&self) -> Result<(), Fault> {
        if self.tape.cells.len() >= MAX_VALUES {
            return self.cursor.fault(Problem::TooManyValues);
        }
        Ok(())
    }

    fn text(&mut self, raw: Raw<'_>) -> Result<Cell, Fault> {
        let ill_formed = |_| Fault::new(Problem::IllFormedText, raw.at);
        if !raw.escaped {
            std::str::from_utf8(raw.bytes).map_err(ill_formed)?;
            return Ok(Cell::Input { start: raw.at as u32, len: raw.bytes.len() as u32 });
        }
        let start = self.tape.made.len();
        raw.unescape(&mut self.tape.made)?;
        let made = &self.tape.made[start..];
        std::str::from_utf8(made).map_err(ill_formed)?;
        Ok(Cell::Made { start: start as u32, len: made.len() as u32 })
    }

    /// Bytes, a character each.
    fn characters(&mut self, size: Option<usize>) -> Result<Cell, Fault> {
        let raw = self.cursor.raw("a string")?;
        let said = raw.said()?;
        let bytes = std::str::from_utf8(&said).ok().and_then(default::bytes);
        let Some(bytes) = bytes else { return Err(Fault::new(Problem::Latin, raw.at)) };
        let start = self.tape.made.len();
        self.tape.made.extend_from_slice(&bytes);
        sized(start, bytes.len(), size, raw.at)
    }

    /// Bytes in base64, as such or as the only item of an array.
    fn bytes(&mut self, size: Option<usize>) -> Result<Cell, Fault> {
        if self.avro {
            return self.characters(size);
        }
        let listed = self.cursor.peek() == Some(b'[');
        self.cursor.at += usize::from(listed);
        let raw = self.cursor.raw("a string in base64")?;
        if listed {
            self.cursor.mark(b']', "']' after one string")?;
        }
        let said = raw.said()?;
        let start = self.tape.made.len();
        self.tape.made.resize(start + base64::decoded_len_estimate(said.len()), 0);
        let len = BASE64
            .decode_slice(&said, &mut self.tape.made[start..])
            .map_err(|_| Fault::new(Problem::Base64, raw.at))?;
        self.tape.made.truncate(start + len);
        sized(start, len, size, raw.at)
    }

    #[inline]
    fn integer(&mut self, name: &'static str) -> Result<i64, Fault> {
        let Some(b'-' | b'0'..=b'9') = self.cursor.peek() else {
            return self.cursor.unexpected("a number");
        };
        let Some((end, plain)) = self.cursor.number() else {
            return self.cursor.fault(Problem::Number(name));
        };
        let text = &self.cursor.input[self.cursor.at..end];
        let text_of = std::str::from_utf8(text).ok();
        let value = text_of.and_then(|text| if plain { text.parse().ok() } else { whole(text) });
        match value {
            Some(value) => {
                self.cursor.at += text.len();
                Ok(value)
            }
            None => self.cursor.fault(Problem::Number(name)),
        }
    }

    #[inline(always)]
    fn number<N: Number>(&mut self) -> Result<N, Fault> {
        let Some(b'-' | b'0'..=b'9') = self.cursor.peek() else { return self.no_number() };
        let begin = self.cursor.at;
        let Some(decimal) = Decimal::read(self.cursor.input, begin) else {
            if self.cursor.takes(MINUS_INFINITY) {
                return Ok(N::INFINITE[1]);
            }
            return self.cursor.fault(Problem::Number(N::NAME));
        };
        let value = match N::of(&decimal) {
            Some(value) => value,
            None => self.unusual(begin, decimal.end)?,
        };
        self.cursor.at = decimal.end;
        Ok(value)
    }

    /// A number that takes more than the usual way.
    #[cold]
    fn unusual<N: Number>(&self, begin: usize, end: usize) -> Result<N, Fault> {
        let value = fast_float2::parse(&self.cursor.input[begin..end]).ok();
        let value = value.filter(|value: &N| value.is_finite());
        value.ok_or_else(|| Fault::new(Problem::Number(N::NAME), begin))
    }

    /// What JSON has no numbers for.
    #[cold]
    fn no_number<N: Number>(&mut self) -> Result<N, Fault> {
        if self.cursor.takes(NAN) {
            return Ok(N::NO_NUMBER);
        }
        if self.cursor.takes(INFINITY) {
            return Ok(N::INFINITE[0]);
        }
        if self.cursor.peek() != Some(b'"') {
            return self.cursor.unexpected("a number");
        }
        let raw = self.cursor.raw("a number")?;
        let text = std::str::from_utf8(raw.bytes).unwrap_or_default();
        match text {
            NAN => Ok(N::NO_NUMBER),
            INFINITY => Ok(N::INFINITE[0]),
            MINUS_INFINITY => Ok(N::INFINITE[1]),
            _ => text
                .strip_prefix(NAN_BITS)
                .and_then(N::nan)
                .ok_or_else(|| Fault::new(Problem::Number(N::NAME), raw.at)),
        }
    }
}
