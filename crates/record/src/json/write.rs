//! Writes a record as JSON.

use super::{INFINITY, MINUS_INFINITY, NAN, NAN_BITS};
use crate::plan::{Plan, Shape, TypeId};
use crate::tape::Cell;
use crate::value::{Record, Value, View};
use base64::display::Base64Display;
use base64::engine::general_purpose::STANDARD;
use std::fmt::Write;

/// Appends a row as a value of the schema, the only one in the arrays and maps that rows are in; `avro`: by
/// [`Format::AvroJson`](crate::Format::AvroJson).
pub(crate) fn write(record: Record<'_>, out: &mut Vec<u8>, avro: bool) {
    Text { out, avro }.within(record, record.view.plan.top);
}

/// Appends a value.
pub(crate) fn append(value: Value<'_>, out: &mut String) {
    let mut text = Text { out, avro: false };
    match value {
        Value::Null => text.push("null"),
        Value::Boolean(value) => text.push(if value { "true" } else { "false" }),
        Value::Int(value) => text.show(value),
        Value::Long(value) => text.show(value),
        Value::Float(value) => text.float(value),
        Value::Double(value) => text.double(value),
        Value::Bytes(bytes) | Value::Fixed(bytes) => text.bytes(bytes),
        Value::String(value) | Value::Enum(value) => text.string(value),
        Value::Array(array) => {
            let (view, id, at) = array.place();
            text.value(view, id, at);
        }
        Value::Map(map) => {
            let (view, id, at) = map.place();
            text.value(view, id, at);
        }
        Value::Record(record) => {
            text.value(record.view, record.id, record.at);
        }
    }
}

/// What text is appended to.
trait Sink {
    fn push(&mut self, text: &str);
}

impl Sink for Vec<u8> {
    #[inline]
    fn push(&mut self, text: &str) {
        self.extend_from_slice(text.as_bytes());
    }
}

impl Sink for String {
    #[inline]
    fn push(&mut self, text: &str) {
        self.push_str(text);
    }
}

/// Writes values behind what is there.
struct Text<'o, S> {
    out: &'o mut S,
    /// Whether by Avro's own JSON encoding.
    avro: bool,
}

impl<S: Sink> Text<'_, S> {
    #[inline]
    fn push(&mut self, text: &str) {
        self.out.push(text);
    }

    fn show(&mut self, value: impl std::fmt::Display) {
        // Writing to memory does not fail.
        let _ = write!(self, "{value}");
    }

    fn double(&mut self, value: f64) {
        if value.is_finite() {
            self.push(zmij::Buffer::new().format_finite(value));
        } else if value.is_nan() && value.to_bits() != f64::NAN.to_bits() {
            self.show(format_args!("\"{NAN_BITS}{:016x}\"", value.to_bits()));
        } else {
            self.not_finite(value.is_nan(), value > 0.0);
        }
    }

    fn float(&mut self, value: f32) {
        if value.is_finite() {
            self.push(zmij::Buffer::new().format_finite(value));
        } else if value.is_nan() && value.to_bits() != f32::NAN.to_bits() {
            self.show(format_args!("\"{NAN_BITS}{:08x}\"", value.to_bits()));
        } else {
            self.not_finite(value.is_nan(), value > 0.0);
        }
    }

    fn not_finite(&mut self, nan: bool, positive: bool) {
        self.push("\"");
        self.push(match (nan, positive) {
            (true, _) => NAN,
            (false, true) => INFINITY,
            (false, false) => MINUS_INFINITY,
        });
        self.push("\"");
    }

    fn bytes(&mut self, bytes: &[u8]) {
        if self.avro {
            let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
            return self.string(&text);
        }
        self.show(format_args!("\"{}\"", Base64Display::new(bytes, &STANDARD)));
    }

    fn string(&mut self, text: &str) {
        self.push("\"");
        let mut rest = text;
        while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
            self.push(&rest[..at]);
            match rest.as_bytes()[at] {
                b'"' => self.push("\\\""),
                b'\\' => self.push("\\\\"),
                b'\n' => self.push("\\n"),
                b'\r' => self.push("\\r"),
                b'\t' => self.push("\\t"),
                control => self.show(format_args!("\\u{control:04x}")),
            }
            rest = &rest[at + 1..];
        }
        self.push(rest);
        self.push("\"");
    }

    /// Appends the value that begins at `at`, and gives the cell after it.
    fn value(&mut self, view: View<'_>, id: TypeId, at: u32) -> u32 {
        let cell = view.cell(at);
        let shape = view.plan.shape(id);
        match cell {
            Cell::Null => self.push("null"),
            Cell::Boolean(value) => self.push(if value { "true" } else { "false" }),
            Cell::Int(value) => self.show(value),
            Cell::Long(value) => self.show(value),
            Cell::Float(value) => self.float(value),
            Cell::Double(value) => self.double(value),
            Cell::Input { .. } | Cell::Made { .. } if matches!(shape, Shape::String) => {
                self.string(view.text(cell));
            }
            Cell::Input { .. } | Cell::Made { .. } => self.bytes(view.bytes(cell)),
            Cell::Symbol(symbol) => {
                if let Shape::Enum(symbols) = shape {
                    self.string(&symbols[symbol as usize]);
                }
            }
            Cell::Branch(branch) => {
                let Shape::Union(branches) = shape else { return at + 1 };
                let inner = branches[branch as usize];
                return self.branch(view.plan, branches, inner, |text| text.value(view, inner, at + 1));
            }
            Cell::Floats { start, len } => {
                let items = &view.tape.floats[start as usize..][..len as usize];
                self.list(items, |text, item| text.float(*item));
            }
            Cell::Doubles { start, len } => {
                let items = &view.tape.doubles[start as usize..][..len as usize];
                self.list(items, |text, item| text.double(*item));
            }
            Cell::Array { items, .. } => {
                let Shape::Array(item) = shape else { return at + 1 };
                let mut next = at + 1;
                self.push("[");
                for number in 0..items {
                    self.push(if number > 0 { "," } else { "" });
                    next = self.value(view, *item, next);
                }
                self.push("]");
                return next;
            }
            Cell::Map { items, .. } => {
                let Shape::Map(inner) = shape else { return at + 1 };
                let mut next = at + 1;
                self.push("{");
                for number in 0..items {
                    self.push(if number > 0 { "," } else { "" });
                    self.string(view.text(view.cell(next)));
                    self.push(":");
                    next = self.value(view, *inner, next + 1);
                }
                self.push("}");
                return next;
            }
            Cell::Record { field_starts, end } => {
                self.push("{");
                for (number, field) in view.plan.fields(id).iter().enumerate() {
                    self.push(if number > 0 { ",\"" } else { "\"" });
                    // A name has nothing to escape.
                    self.push(&field.name);
                    self.push("\":");
                    self.value(view, field.id, view.tape.field_starts[field_starts as usize + number]);
                }
                self.push("}");
                return end;
            }
        }
        at + 1
    }

    /// Appends a value of a union, which `write` writes.
    fn branch<T>(
        &mut self,
        plan: &Plan,
        branches: &[TypeId],
        inner: TypeId,
        write: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let is_plain = !self.avro && plan.optional(branches).is_some();
        if is_plain || matches!(plan.shape(inner), Shape::Null) {
            return write(self);
        }
        self.push("{");
        self.string(&plan.of(inner).name);
        self.push(":");
        let written = write(self);
        self.push("}");
        written
    }

    fn within(&mut self, record: Record<'_>, id: TypeId) {
        let plan = record.view.plan;
        match plan.shape(id) {
            _ if id == plan.item => {
                self.value(record.view, id, record.item());
            }
            Shape::Array(item) => {
                self.push("[");
                self.within(record, *item);
                self.push("]");
            }
            Shape::Map(value) => {
                self.push("{\"\":");
                self.within(record, *value);
                self.push("}");
            }
            Shape::Union(branches) => {
                if let Some((_, inner)) = plan.passage(branches) {
                    self.branch(plan, branches, inner, |text| text.within(record, inner));
                }
            }
            _ => {}
        }
    }

    fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        self.push("[");
        for (number, item) in items.iter().enumerate() {
            self.push(if number > 0 { "," } else { "" });
            each(self, item);
        }
        self.push("]");
    }
}

impl<S: Sink> Write for Text<'_, S> {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.push(text);
        Ok(())
    }
}
