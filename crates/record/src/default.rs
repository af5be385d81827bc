//! Default values of fields, from the JSON of a schema onto a tape (Apache Avro 1.12, "Complex Types", records).

use crate::MAX_DEPTH;
use crate::plan::{Field, Plan, Shape, TypeId};
use crate::tape::{Cell, Tape};
use serde_json::Value;

/// Values that are tried for one default: records whose fields have defaults themselves multiply, and so do unions.
const TRIED: usize = 1 << 16;

impl Plan {
    /// The default value of a field; `None` if it has none, or one that is no value of its type.
    pub(crate) fn default<'f>(&self, field: &'f Field) -> Option<&'f Tape> {
        let default = field.default.as_ref()?;
        let made = default.made.get_or_init(|| make(self, field.id, &default.json).map(Box::new));
        made.as_deref()
    }
}

/// The value of a type that a JSON text stands for; `None` if the text is no value of the type.
pub(crate) fn make(plan: &Plan, id: TypeId, json: &Value) -> Option<Tape> {
    let mut maker = DefaultEncoder { plan, tape: Tape::default(), left: TRIED };
    maker.value(id, json, 0)?;
    Some(maker.tape)
}

/// Bytes, of which JSON has a character each, U+0000 to U+00FF.
pub(crate) fn bytes(text: &str) -> Option<Vec<u8>> {
    text.chars().map(|letter| u8::try_from(u32::from(letter)).ok()).collect()
}

struct DefaultEncoder<'p> {
    plan: &'p Plan,
    tape: Tape,
    left: usize,
}

impl DefaultEncoder<'_> {
    fn value(&mut self, id: TypeId, json: &Value, depth: usize) -> Option<()> {
        self.left = self.left.checked_sub(1)?;
        if depth > MAX_DEPTH {
            return None;
        }
        let plan = self.plan;
        let cell = match (plan.shape(id), json) {
            (Shape::Null, Value::Null) => Cell::Null,
            (Shape::Boolean, Value::Bool(value)) => Cell::Boolean(*value),
            (Shape::Int, json) => Cell::Int(i32::try_from(json.as_i64()?).ok()?),
            (Shape::Long, json) => Cell::Long(json.as_i64()?),
            (Shape::Float, json) => Cell::Float(number(json)? as f32),
            (Shape::Double, json) => Cell::Double(number(json)?),
            (Shape::String, Value::String(text)) => self.made(text.as_bytes()),
            (Shape::Bytes, Value::String(text)) => self.made(&bytes(text)?),
            (Shape::Fixed(size), Value::String(text)) => {
                let bytes = bytes(text).filter(|bytes| bytes.len() == *size as usize)?;
                self.made(&bytes)
            }
            (Shape::Enum(symbols), Value::String(text)) => {
                Cell::Symbol(symbols.iter().position(|symbol| **symbol == **text)? as u32)
            }
            (Shape::Array(item), Value::Array(items)) => return self.array(*item, items, depth),
            (Shape::Map(value), Value::Object(members)) => {
                let at = self.tape.here();
                self.tape.cells.push(Cell::Map { items: 0, end: 0 });
                for (key, json) in members {
                    let key = self.made(key.as_bytes());
                    self.tape.cells.push(key);
                    self.value(*value, json, depth + 1)?;
                }
                self.tape.end(at, members.len() as u32);
                return Some(());
            }
            (Shape::Record(record), Value::Object(members)) => {
                let (at, field_starts) = self.tape.begin_record(record.fields.len());
                for (number, field) in record.fields.iter().enumerate() {
                    self.tape.field_starts[field_starts + number] = self.tape.here();
                    let json = members.get(&*field.name).or_else(|| field.default_json())?;
                    self.value(field.id, json, depth + 1)?;
                }
                self.tape.end(at, 0);
                return Some(());
            }
            (Shape::Union(branches), json) => return self.union(branches, json, depth),
            _ => return None,
        };
        self.tape.cells.push(cell);
        Some(())
    }

    fn array(&mut self, item: TypeId, items: &[Value], depth: usize) -> Option<()> {
        let cell = match self.plan.shape(item) {
            Shape::Double => {
                let start = self.tape.doubles.len() as u32;
                for json in items {
                    self.tape.doubles.push(number(json)?);
                }
                Cell::Doubles { start, len: items.len() as u32 }
            }
            Shape::Float => {
                let start = self.tape.floats.len() as u32;
                for json in items {
                    self.tape.floats.push(number(json)? as f32);
                }
                Cell::Floats { start, len: items.len() as u32 }
            }
            _ => {
                let at = self.tape.here();
                self.tape.cells.push(Cell::Array { items: 0, end: 0 });
                for json in items {
                    self.value(item, json, depth + 1)?;
                }
                self.tape.end(at, items.len() as u32);
                return Some(());
            }
        };
        self.tape.cells.push(cell);
        Some(())
    }

    /// The first branch that the value is one of; usually that is the first of all.
    fn union(&mut self, branches: &[TypeId], json: &Value, depth: usize) -> Option<()> {
        let before = self.tape.position();
        for (number, branch) in branches.iter().enumerate() {
            self.tape.cells.push(Cell::Branch(number as u32));
            if self.value(*branch, json, depth + 1).is_some() {
                return Some(());
            }
            self.tape.rewind(before);
        }
        None
    }

    fn made(&mut self, bytes: &[u8]) -> Cell {
        let start = self.tape.made.len() as u32;
        self.tape.made.extend_from_slice(bytes);
        Cell::Made { start, len: bytes.len() as u32 }
    }
}

/// A number, or what Java writes where JSON has none.
fn number(json: &Value) -> Option<f64> {
    match json.as_str() {
        Some("NaN") => Some(f64::NAN),
        Some("Infinity" | "INF") => Some(f64::INFINITY),
        Some("-Infinity" | "-INF") => Some(f64::NEG_INFINITY),
        _ => json.as_f64(),
    }
}
