//! Reads values that were written by another schema, by the steps of a [`Resolution`].

use super::read::{Bytes, Reader};
use crate::error::{Fault, Problem};
use crate::plan::{Plan, Shape, TypeId};
use crate::resolve::{FieldStep, Promotion, RecordSteps, Resolution, Step, StepId};
use crate::tape::{Cell, Tape};
use crate::{MAX_MADE_BYTES, MAX_VALUES};

/// Reads one value of the reader's schema that begins at `at`, and gives the place after it.
pub(crate) fn top(
    plan: &Plan,
    resolution: &Resolution,
    tape: &mut Tape,
    input: &[u8],
    at: usize,
) -> Result<usize, Fault> {
    let reader = Reader::new(plan, tape, Bytes::new(input, at));
    let mut reader = ResolvedReader { resolution, reader, defaults: 0 };
    match resolution.step(resolution.top()) {
        Step::Alike(_) => reader.reader.top()?,
        Step::Record(record) => reader.record(record)?,
        _ => reader.value(resolution.top())?,
    }
    Ok(reader.reader.bytes.at())
}

struct ResolvedReader<'r> {
    resolution: &'r Resolution,
    reader: Reader<'r>,
    /// Bytes of default values so far.
    defaults: usize,
}

impl ResolvedReader<'_> {
    fn value(&mut self, id: StepId) -> Result<(), Fault> {
        let resolution = self.resolution;
        match resolution.step(id) {
            Step::Alike(own) => self.reader.value(*own),
            Step::Promote(promotion) => {
                let cell = self.promoted(*promotion)?;
                self.reader.tape.cells.push(cell);
                Ok(())
            }
            Step::Enum(symbols) => {
                let begin = self.reader.bytes.at();
                let symbol = self.reader.index("the symbol", symbols.len())?;
                match &symbols[symbol as usize] {
                    Ok(own) => {
                        self.reader.tape.cells.push(Cell::Symbol(*own));
                        Ok(())
                    }
                    Err(problem) => Err(Fault::new(problem.clone(), begin)),
                }
            }
            Step::Array { item, least } => self.deeper(|reader| reader.array(*item, *least)),
            Step::Map { value, least } => self.deeper(|reader| reader.map(*value, *least)),
            Step::Record(record) => self.deeper(|reader| reader.record(record)),
            Step::Branches(branches) => {
                let branch = self.reader.index("the branch", branches.len())?;
                self.value(branches[branch as usize])
            }
            Step::Branch { branch, value } => {
                self.reader.tape.cells.push(Cell::Branch(*branch));
                self.value(*value)
            }
            Step::Mismatch(problem) => self.reader.bytes.fault(problem.clone()),
        }
    }

    fn deeper(&mut self, read: impl FnOnce(&mut Self) -> Result<(), Fault>) -> Result<(), Fault> {
        self.reader.descend()?;
        read(self)?;
        self.reader.ascend();
        Ok(())
    }

    fn promoted(&mut self, promotion: Promotion) -> Result<Cell, Fault> {
        let bytes = &mut self.reader.bytes;
        Ok(match promotion {
            Promotion::IntToLong => Cell::Long(bytes.int()?.into()),
            Promotion::IntToFloat => Cell::Float(bytes.int()? as f32),
            Promotion::IntToDouble => Cell::Double(bytes.int()?.into()),
            Promotion::LongToFloat => Cell::Float(bytes.long("a long")? as f32),
            Promotion::LongToDouble => Cell::Double(bytes.long("a long")? as f64),
            Promotion::FloatToDouble => Cell::Double(f32::from_le_bytes(*bytes.array("a float")?).into()),
            Promotion::StringToBytes => {
                let len = bytes.sized("a string")?.len();
                self.reader.input(len)
            }
            Promotion::BytesToString => self.reader.text()?,
        })
    }

    fn record(&mut self, steps: &RecordSteps) -> Result<(), Fault> {
        let plan = self.reader.plan;
        let fields = plan.fields(steps.id);
        let (at, field_starts) = self.reader.tape.begin_record(fields.len());
        for step in &steps.fields {
            match step {
                FieldStep::Read { field, step } => {
                    self.reader.tape.field_starts[field_starts + *field as usize] = self.reader.tape.here();
                    let read = self.value(*step);
                    read.map_err(|fault| fault.in_field(&fields[*field as usize].name))?;
                }
                FieldStep::Skip(id) => self.skip(*id)?,
                FieldStep::Default { field } => {
                    self.reader.tape.field_starts[field_starts + *field as usize] = self.reader.tape.here();
                    if let Some(default) = plan.default(&fields[*field as usize]) {
                        self.defaults += default.bytes();
                        self.reader.tape.append(default);
                    }
                    if self.defaults > MAX_MADE_BYTES || self.reader.tape.cells.len() > MAX_VALUES {
                        return self.reader.bytes.fault(Problem::TooManyValues);
                    }
                }
            }
        }
        self.reader.tape.end(at, 0);
        Ok(())
    }

    fn array(&mut self, item: StepId, least: u64) -> Result<(), Fault> {
        let at = self.reader.tape.here();
        self.reader.tape.cells.push(Cell::Array { items: 0, end: 0 });
        let mut items = 0;
        loop {
            let (count, end) = self.reader.bytes.block(least)?;
            if count == 0 {
                break;
            }
            self.reader.count_empty(least, count)?;
            for _ in 0..count {
                self.reader.room()?;
                self.value(item).map_err(|fault| fault.in_item(items))?;
                items += 1;
            }
            self.reader.bytes.close_block(end)?;
        }
        self.reader.tape.end(at, items as u32);
        Ok(())
    }

    fn map(&mut self, value: StepId, least: u64) -> Result<(), Fault> {
        let at = self.reader.tape.here();
        self.reader.tape.cells.push(Cell::Map { items: 0, end: 0 });
        let mut items = 0;
        loop {
            let (count, end) = self.reader.bytes.block(least)?;
            if count == 0 {
                break;
            }
            for _ in 0..count {
                self.reader.room()?;
                let mut entry = || {
                    let key = self.reader.text()?;
                    self.reader.tape.cells.push(key);
                    self.value(value)
                };
                entry().map_err(|fault| fault.in_item(items))?;
                items += 1;
            }
            self.reader.bytes.close_block(end)?;
        }
        self.reader.tape.end(at, items as u32);
        Ok(())
    }

    /// Goes past a value of the writer's that the reader has no place for. Only what takes a byte is walked, so that a
    /// schema cannot make a short payload long.
    fn skip(&mut self, id: TypeId) -> Result<(), Fault> {
        let resolution = self.resolution;
        let plan = resolution.writer();
        let bytes = &mut self.reader.bytes;
        match plan.shape(id) {
            Shape::Null => Ok(()),
            Shape::Boolean => bytes.array::<1>("a boolean").map(drop),
            Shape::Int | Shape::Long => bytes.long("a long").map(drop),
            Shape::Float => bytes.array::<4>("a float").map(drop),
            Shape::Double => bytes.array::<8>("a double").map(drop),
            Shape::Bytes => bytes.sized("bytes").map(drop),
            Shape::String => bytes.sized("a string").map(drop),
            Shape::Fixed(size) => bytes.take(*size as usize, "a fixed").map(drop),
            Shape::Enum(symbols) => self.reader.index("the symbol", symbols.len()).map(drop),
            Shape::Union(branches) => {
                let branch = self.reader.index("the branch", branches.len())?;
                self.skip(branches[branch as usize])
            }
            Shape::Array(item) => self.deeper(|reader| reader.skip_blocks(*item, false)),
            Shape::Map(value) => self.deeper(|reader| reader.skip_blocks(*value, true)),
            Shape::Record(_) => {
                self.deeper(|reader| resolution.solid(id).iter().try_for_each(|field| reader.skip(*field)))
            }
        }
    }

    fn skip_blocks(&mut self, item: TypeId, keyed: bool) -> Result<(), Fault> {
        let least = self.resolution.writer().of(item).least;
        loop {
            let (count, end) = self.reader.bytes.block(least.saturating_add(keyed.into()))?;
            if count == 0 {
                return Ok(());
            }
            if let Some(end) = end {
                self.reader.bytes.jump(end);
                continue;
            }
            if least == 0 && !keyed {
                continue;
            }
            for _ in 0..count {
                if keyed {
                    self.reader.bytes.sized("a string")?;
                }
                if least > 0 {
                    self.skip(item)?;
                }
            }
        }
    }
}
