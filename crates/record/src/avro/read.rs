//! Reads values of Avro's binary encoding onto a tape ("Binary Encoding").

use crate::error::{Fault, Problem};
use crate::plan::{Plan, Shape, TypeId};
use crate::tape::{Cell, Tape};
use crate::{MAX_DEPTH, MAX_EMPTY_ITEMS, MAX_VALUES};

/// Reads values, one after the other.
pub(crate) struct Reader<'r> {
    pub(super) plan: &'r Plan,
    pub(super) tape: &'r mut Tape,
    pub(super) bytes: Bytes<'r>,
    depth: usize,
    /// Items so far that take no byte.
    empty_items: usize,
}

/// The bytes of a payload, and how far they are read.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'r> {
    input: &'r [u8],
    at: usize,
}

/// Reads one value of the schema that begins at `at`, and gives the place after it.
#[inline]
pub(crate) fn top(plan: &Plan, tape: &mut Tape, input: &[u8], at: usize) -> Result<usize, Fault> {
    let mut reader = Reader::new(plan, tape, Bytes { input, at });
    reader.top()?;
    Ok(reader.bytes.at)
}

impl<'r> Bytes<'r> {
    pub(crate) fn new(input: &'r [u8], at: usize) -> Self {
        Self { input, at }
    }

    pub(crate) fn at(&self) -> usize {
        self.at
    }

    #[inline]
    pub(crate) fn left(&self) -> usize {
        self.input.len() - self.at
    }

    #[cold]
    pub(crate) fn fault<T>(&self, problem: Problem) -> Result<T, Fault> {
        Err(Fault::new(problem, self.at))
    }

    /// Takes this many bytes, which must be there.
    #[inline]
    pub(crate) fn array<const N: usize>(&mut self, what: &'static str) -> Result<&'r [u8; N], Fault> {
        match self.input[self.at..].first_chunk() {
            Some(bytes) => {
                self.at += N;
                Ok(bytes)
            }
            None => self.fault(Problem::Truncated(what)),
        }
    }

    /// A `long`: seven bits a byte, the lowest first, zig-zag.
    #[inline]
    pub(crate) fn long(&mut self, what: &'static str) -> Result<i64, Fault> {
        match self.input[self.at..] {
            [first, ..] if first < 0x80 => {
                self.at += 1;
                Ok(zig_zag(first.into()))
            }
            [first, second, ..] if second < 0x80 => {
                self.at += 2;
                Ok(zig_zag(u64::from(first & 0x7F) | u64::from(second) << 7))
            }
            _ => self.longer(what),
        }
    }

    fn longer(&mut self, what: &'static str) -> Result<i64, Fault> {
        let mut value = 0;
        for (number, &byte) in self.input[self.at..].iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7F) << (7 * number);
            if byte < 0x80 {
                if number == 9 && byte > 1 {
                    break;
                }
                self.at += number + 1;
                return Ok(zig_zag(value));
            }
        }
        self.fault(if self.left() < 10 { Problem::Truncated(what) } else { Problem::IntegerTooLong })
    }

    /// An `int`: a `long` of 32 bits.
    #[inline]
    pub(crate) fn int(&mut self) -> Result<i32, Fault> {
        let begin = self.at;
        let value = self.long("an int")?;
        i32::try_from(value).map_err(|_| Fault::new(Problem::IntOutOfRange(value), begin))
    }

    /// Takes this many bytes.
    #[inline]
    pub(crate) fn take(&mut self, len: usize, what: &'static str) -> Result<&'r [u8], Fault> {
        if len > self.left() {
            return self.fault(Problem::Truncated(what));
        }
        let bytes = &self.input[self.at..][..len];
        self.at += len;
        Ok(bytes)
    }

    /// Goes on at a place that is there.
    pub(crate) fn jump(&mut self, at: usize) {
        self.at = at.min(self.input.len());
    }

    /// A length, and the place where its bytes begin. They are there.
    #[inline]
    pub(crate) fn sized(&mut self, what: &'static str) -> Result<&'r [u8], Fault> {
        let begin = self.at;
        let length = self.long(what)?;
        let left = self.left();
        match usize::try_from(length) {
            Ok(len) if len <= left => {
                let bytes = &self.input[self.at..][..len];
                self.at += len;
                Ok(bytes)
            }
            _ => Err(Fault::new(Problem::Length { what, length, left }, begin)),
        }
    }

    /// The count of the next block of an array or a map, and where the block ends, if it says so. The items have room
    /// in what is left, if each has `least` bytes.
    #[inline]
    pub(crate) fn block(&mut self, least: u64) -> Result<(usize, Option<usize>), Fault> {
        let begin = self.at;
        let count = self.long("the count of a block")?;
        let end = if count < 0 {
            let length = self.long("the length of a block")?;
            let left = self.left();
            match usize::try_from(length) {
                Ok(len) if len <= left => Some(self.at + len),
                _ => return Err(Fault::new(Problem::Length { what: "a block", length, left }, begin)),
            }
        } else {
            None
        };
        let left = self.left();
        let items = count.unsigned_abs();
        if items.saturating_mul(least) > left as u64 {
            return Err(Fault::new(Problem::Count { count, left }, begin));
        }
        // Items of zero bytes can still be more than memory has room for; the caller limits their number.
        Ok((usize::try_from(items).unwrap_or(usize::MAX), end))
    }

    #[inline]
    pub(crate) fn close_block(&self, end: Option<usize>) -> Result<(), Fault> {
        match end {
            Some(end) if end != self.at => self.fault(Problem::BlockLength(end as i64 - self.at as i64)),
            _ => Ok(()),
        }
    }
}

#[inline]
fn zig_zag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

impl<'r> Reader<'r> {
    #[inline]
    pub(super) fn new(plan: &'r Plan, tape: &'r mut Tape, bytes: Bytes<'r>) -> Self {
        Self { plan, tape, bytes, depth: 0, empty_items: 0 }
    }

    #[inline]
    pub(super) fn top(&mut self) -> Result<(), Fault> {
        let plan = self.plan;
        if plan.is_flat() { self.record(plan.top) } else { self.value(plan.top) }
    }

    #[inline]
    fn record(&mut self, id: TypeId) -> Result<(), Fault> {
        let plan = self.plan;
        let fields = plan.fields(id);
        let (at, field_starts) = self.tape.begin_record(fields.len());
        for (number, field) in fields.iter().enumerate() {
            self.tape.field_starts[field_starts + number] = self.tape.here();
            if let Err(fault) = self.value(field.id) {
                return Err(fault.in_field(&field.name));
            }
        }
        self.tape.end(at, 0);
        Ok(())
    }

    pub(super) fn value(&mut self, id: TypeId) -> Result<(), Fault> {
        let plan = self.plan;
        let cell = match plan.shape(id) {
            Shape::Null => Cell::Null,
            Shape::Boolean => match self.bytes.array("a boolean")? {
                [byte @ (0 | 1)] => Cell::Boolean(*byte == 1),
                [byte] => return Err(Fault::new(Problem::Boolean(*byte), self.bytes.at - 1)),
            },
            Shape::Int => Cell::Int(self.bytes.int()?),
            Shape::Long => Cell::Long(self.bytes.long("a long")?),
            Shape::Float => Cell::Float(f32::from_le_bytes(*self.bytes.array("a float")?)),
            Shape::Double => Cell::Double(f64::from_le_bytes(*self.bytes.array("a double")?)),
            Shape::Bytes => {
                let len = self.bytes.sized("bytes")?.len();
                self.input(len)
            }
            Shape::String => self.text()?,
            Shape::Fixed(size) => {
                let len = self.bytes.take(*size as usize, "a fixed")?.len();
                self.input(len)
            }
            Shape::Enum(symbols) => Cell::Symbol(self.index("the symbol", symbols.len())?),
            Shape::Union(branches) => {
                let branch = self.index("the branch", branches.len())?;
                self.tape.cells.push(Cell::Branch(branch));
                return self.value(branches[branch as usize]);
            }
            Shape::Array(item) => match plan.shape(*item) {
                Shape::Double => self.doubles()?,
                Shape::Float => self.floats()?,
                _ => return self.deeper(|reader| reader.array(*item)),
            },
            Shape::Map(value) => return self.deeper(|reader| reader.map(*value)),
            Shape::Record(_) => return self.deeper(|reader| reader.record(id)),
        };
        self.tape.cells.push(cell);
        Ok(())
    }

    fn deeper(&mut self, read: impl FnOnce(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        self.descend()?;
        read(self)?;
        self.ascend();
        Ok(())
    }

    /// Goes one level down in nesting, which ends.
    #[inline]
    pub(super) fn descend(&mut self) -> Result<(), Fault> {
        if self.depth >= MAX_DEPTH {
            return self.bytes.fault(Problem::TooDeep);
        }
        self.depth += 1;
        Ok(())
    }

    #[inline]
    pub(super) fn ascend(&mut self) {
        self.depth -= 1;
    }

    /// The last `len` bytes.
    #[inline]
    pub(super) fn input(&self, len: usize) -> Cell {
        // A payload has no more bytes than fit: the decoder looks.
        Cell::Input { start: (self.bytes.at - len) as u32, len: len as u32 }
    }

    #[inline]
    pub(super) fn text(&mut self) -> Result<Cell, Fault> {
        let text = self.bytes.sized("a string")?;
        match std::str::from_utf8(text) {
            Ok(_) => Ok(self.input(text.len())),
            Err(error) => {
                Err(Fault::new(Problem::IllFormedText, self.bytes.at - text.len() + error.valid_up_to()))
            }
        }
    }

    #[inline]
    pub(super) fn index(&mut self, what: &'static str, count: usize) -> Result<u32, Fault> {
        let begin = self.bytes.at;
        let index = self.bytes.long(what)?;
        match u32::try_from(index) {
            Ok(small) if (small as usize) < count => Ok(small),
            _ => Err(Fault::new(Problem::Index { what, index, count }, begin)),
        }
    }

    fn doubles(&mut self) -> Result<Cell, Fault> {
        let start = self.tape.doubles.len();
        loop {
            let (count, end) = self.bytes.block(8)?;
            if count == 0 {
                break;
            }
            let bytes = &self.bytes.input[self.bytes.at..][..count * 8];
            self.tape.doubles.extend(bytes.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)));
            self.bytes.at += bytes.len();
            self.bytes.close_block(end)?;
        }
        Ok(Cell::Doubles { start: start as u32, len: (self.tape.doubles.len() - start) as u32 })
    }

    fn floats(&mut self) -> Result<Cell, Fault> {
        let start = self.tape.floats.len();
        loop {
            let (count, end) = self.bytes.block(4)?;
            if count == 0 {
                break;
            }
            let bytes = &self.bytes.input[self.bytes.at..][..count * 4];
            self.tape.floats.extend(bytes.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)));
            self.bytes.at += bytes.len();
            self.bytes.close_block(end)?;
        }
        Ok(Cell::Floats { start: start as u32, len: (self.tape.floats.len() - start) as u32 })
    }

    fn array(&mut self, item: TypeId) -> Result<(), Fault> {
        let at = self.tape.here();
        self.tape.cells.push(Cell::Array { items: 0, end: 0 });
        let least = self.plan.of(item).least;
        let mut items = 0;
        loop {
            let (count, end) = self.bytes.block(least)?;
            if count == 0 {
                break;
            }
            self.count_empty(least, count)?;
            for _ in 0..count {
                self.room()?;
                self.value(item).map_err(|fault| fault.in_item(items))?;
                items += 1;
            }
            self.bytes.close_block(end)?;
        }
        self.tape.end(at, items as u32);
        Ok(())
    }

    fn map(&mut self, value: TypeId) -> Result<(), Fault> {
        let at = self.tape.here();
        self.tape.cells.push(Cell::Map { items: 0, end: 0 });
        let least = self.plan.of(value).least.saturating_add(1);
        let mut items = 0;
        loop {
            let (count, end) = self.bytes.block(least)?;
            if count == 0 {
                break;
            }
            for _ in 0..count {
                self.room()?;
                let mut entry = || {
                    let key = self.text()?;
                    self.tape.cells.push(key);
                    self.value(value)
                };
                entry().map_err(|fault| fault.in_item(items))?;
                items += 1;
            }
            self.bytes.close_block(end)?;
        }
        self.tape.end(at, items as u32);
        Ok(())
    }

    /// Counts items that take no byte, before they are read.
    pub(super) fn count_empty(&mut self, least: u64, count: usize) -> Result<(), Fault> {
        if least == 0 {
            self.empty_items = self.empty_items.saturating_add(count);
            if self.empty_items > MAX_EMPTY_ITEMS {
                return self.bytes.fault(Problem::TooManyEmptyItems);
            }
        }
        Ok(())
    }

    /// Looks whether the record may have more values.
    #[inline]
    pub(super) fn room(&self) -> Result<(), Fault> {
        if self.tape.cells.len() >= MAX_VALUES {
            return self.bytes.fault(Problem::TooManyValues);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long(bytes: &[u8]) -> Result<(i64, usize), Problem> {
        let mut reader = Bytes::new(bytes, 0);
        let value = reader.long("a long");
        value.map(|value| (value, reader.at)).map_err(|fault| fault.at_record(0).problem)
    }

    #[test]
    fn integers_are_read_as_the_standard_writes_them() {
        let table: [(&[u8], i64); 8] = [
            (&[0], 0),
            (&[1], -1),
            (&[2], 1),
            (&[0x7F], -64),
            (&[0x80, 1], 64),
            (&[0xFF, 0x7F], -8192),
            (&[0xFE, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1], i64::MAX),
            (&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1], i64::MIN),
        ];
        for (bytes, value) in table {
            assert_eq!(long(bytes), Ok((value, bytes.len())));
        }
    }

    #[test]
    fn integers_end() {
        assert_eq!(long(&[]), Err(Problem::Truncated("a long")));
        assert_eq!(long(&[0x80]), Err(Problem::Truncated("a long")));
        assert_eq!(long(&[0x80; 10]), Err(Problem::IntegerTooLong));
        assert_eq!(
            long(&[0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 2]),
            Err(Problem::IntegerTooLong)
        );
        assert_eq!(long(&[0x80; 9]), Err(Problem::Truncated("a long")));
    }
}
