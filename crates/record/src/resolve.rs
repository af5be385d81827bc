//! How records of one schema are read by another: a plan of steps, made once for each schema of a writer (Apache Avro 1.12,
//! "Schema Resolution").
//!
//! Of a reader's union, the first branch of the same type is taken, and only if there is none the first that the value is
//! promoted to. The standard has the first that matches at all, by which bytes would become text in a union of both; Java's
//! implementation does as this one. Names match if their last parts do, or by an alias. What does not match is an error only
//! when such a value comes.

use crate::MAX_DEPTH;
use crate::error::Problem;
use crate::logical::Logical;
use crate::plan::{Plan, RecordShape, Shape, TypeId};
use crate::schema::Schema;
use std::collections::HashMap;

/// The number of a step.
pub(crate) type StepId = u32;

/// Steps of one plan. A writer's schema comes from the network, and every type of it may meet every type of the reader's.
const MOST_STEPS: usize = 1 << 16;

/// How records of a writer are read.
#[derive(Debug)]
pub(crate) struct Resolution {
    writer: Schema,
    steps: Vec<Step>,
    top: StepId,
    /// Of each record of the writer the fields that take a byte at least: those that are walked to skip one.
    solid: Vec<Box<[TypeId]>>,
}

/// How a value is read.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// As the reader's own: both types are alike.
    Alike(TypeId),
    /// A number or text of another type.
    Promote(Promotion),
    /// A symbol: which one of the reader's each of the writer's is.
    Enum(Box<[Result<u32, Problem>]>),
    Array {
        item: StepId,
        /// Bytes that an item takes at least.
        least: u64,
    },
    Map {
        value: StepId,
        least: u64,
    },
    Record(RecordSteps),
    /// One of the branches of the writer's union.
    Branches(Box<[StepId]>),
    /// A branch of the reader's union.
    Branch {
        branch: u32,
        value: StepId,
    },
    /// It cannot be read.
    Mismatch(Problem),
}

/// What the reader makes of a value of another type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Promotion {
    IntToLong,
    IntToFloat,
    IntToDouble,
    LongToFloat,
    LongToDouble,
    FloatToDouble,
    StringToBytes,
    BytesToString,
}

/// How a record is read.
#[derive(Clone, Debug)]
pub(crate) struct RecordSteps {
    /// The reader's record.
    pub(crate) id: TypeId,
    /// What is done with the writer's fields, in their order; then the fields that the writer does not have.
    pub(crate) fields: Box<[FieldStep]>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum FieldStep {
    /// The field of this number is read.
    Read { field: u32, step: StepId },
    /// The reader has no such field.
    Skip(TypeId),
    /// The writer has no such field.
    Default { field: u32 },
}

impl Resolution {
    pub(crate) fn new(writer: &Schema, reader: &Schema) -> Self {
        let (from, to) = (&*writer.plan, &*reader.plan);
        let mut resolver = Resolver { from, to, steps: Vec::new(), known: HashMap::new() };
        let top = resolver.step(from.top, to.top, 0);
        let steps = resolver.steps;
        let solid = from.types.iter().map(|of| match &of.shape {
            Shape::Record(record) => {
                record.fields.iter().map(|field| field.id).filter(|id| from.of(*id).least > 0).collect()
            }
            _ => Box::default(),
        });
        Self { solid: solid.collect(), writer: writer.clone(), steps, top }
    }

    pub(crate) fn top(&self) -> StepId {
        self.top
    }

    #[inline]
    pub(crate) fn step(&self, id: StepId) -> &Step {
        &self.steps[id as usize]
    }

    /// The writer's types.
    pub(crate) fn writer(&self) -> &Plan {
        &self.writer.plan
    }

    /// The fields of a writer's record that take a byte at least.
    pub(crate) fn solid(&self, id: TypeId) -> &[TypeId] {
        &self.solid[id as usize]
    }
}

struct Resolver<'p> {
    from: &'p Plan,
    to: &'p Plan,
    steps: Vec<Step>,
    known: HashMap<(TypeId, TypeId), StepId>,
}

impl Resolver<'_> {
    fn step(&mut self, from: TypeId, to: TypeId, depth: usize) -> StepId {
        if let Some(id) = self.known.get(&(from, to)) {
            return *id;
        }
        // It may be asked for while it is made: a list of itself.
        let id = self.steps.len() as StepId;
        self.steps.push(Step::Mismatch(Problem::TooDeep));
        self.known.insert((from, to), id);
        // A value has three steps at most for each level of its nesting: two unions and itself.
        if depth <= 4 * MAX_DEPTH && self.steps.len() < MOST_STEPS {
            self.steps[id as usize] = self.make(from, to, depth + 1);
        }
        id
    }

    fn make(&mut self, from: TypeId, to: TypeId, depth: usize) -> Step {
        let (writer, reader) = (self.from, self.to);
        match (writer.shape(from), reader.shape(to)) {
            (Shape::Union(branches), _) => {
                let steps: Box<[StepId]> =
                    branches.iter().map(|branch| self.step(*branch, to, depth)).collect();
                if self.are_alike(&steps, to) { Step::Alike(to) } else { Step::Branches(steps) }
            }
            (_, Shape::Union(branches)) => match self.branch(from, branches) {
                Some(branch) => {
                    let value = self.step(from, branches[branch], depth);
                    Step::Branch { branch: branch as u32, value }
                }
                None => self.mismatch(from, to),
            },
            _ if !self.matches(from, to) => self.mismatch(from, to),
            (Shape::Enum(symbols), Shape::Enum(own)) => {
                if symbols == own {
                    return Step::Alike(to);
                }
                let fallback = reader.of(to).fallback;
                let symbols = symbols.iter().map(|symbol| {
                    let found = own.iter().position(|known| known == symbol).map(|found| found as u32);
                    found.or(fallback).ok_or_else(|| Problem::UnknownSymbol(symbol.clone()))
                });
                Step::Enum(symbols.collect())
            }
            (Shape::Array(item), Shape::Array(own)) => {
                let step = self.step(*item, *own, depth);
                match self.steps[step as usize] {
                    Step::Alike(_) => Step::Alike(to),
                    _ => Step::Array { item: step, least: writer.of(*item).least },
                }
            }
            (Shape::Map(value), Shape::Map(own)) => {
                let step = self.step(*value, *own, depth);
                match self.steps[step as usize] {
                    Step::Alike(_) => Step::Alike(to),
                    _ => Step::Map { value: step, least: writer.of(*value).least.saturating_add(1) },
                }
            }
            (Shape::Record(record), Shape::Record(own)) => self.record(record, own, to, depth),
            (one, other) => promotion(one, other).map_or(Step::Alike(to), Step::Promote),
        }
    }

    fn record(&mut self, record: &RecordShape, own: &RecordShape, to: TypeId, depth: usize) -> Step {
        let (writer, reader) = (self.from, self.to);
        let mut by_alias = HashMap::new();
        for (number, field) in own.fields.iter().enumerate() {
            for alias in &field.aliases {
                by_alias.entry(&**alias).or_insert(number);
            }
        }
        let mut is_read = vec![false; own.fields.len()];
        let mut fields = Vec::with_capacity(record.fields.len());
        let mut alike = record.fields.len() == own.fields.len();
        for (place, field) in record.fields.iter().enumerate() {
            let found = own.find(field.name.as_bytes(), place);
            // By an alias only what is not there by its name.
            let by_alias = || {
                by_alias
                    .get(&*field.name)
                    .copied()
                    .filter(|number| record.find(own.fields[*number].name.as_bytes(), *number).is_none())
            };
            match found.or_else(by_alias).filter(|number| !is_read[*number]) {
                Some(number) => {
                    is_read[number] = true;
                    let step = self.step(field.id, own.fields[number].id, depth);
                    alike &= number == place && matches!(self.steps[step as usize], Step::Alike(_));
                    fields.push(FieldStep::Read { field: number as u32, step });
                }
                None => {
                    alike = false;
                    if writer.of(field.id).least > 0 {
                        fields.push(FieldStep::Skip(field.id));
                    }
                }
            }
        }
        if alike {
            return Step::Alike(to);
        }
        for (number, field) in own.fields.iter().enumerate().filter(|(number, _)| !is_read[*number]) {
            if reader.default(field).is_none() {
                return Step::Mismatch(Problem::NotWritten(field.name.clone()));
            }
            fields.push(FieldStep::Default { field: number as u32 });
        }
        Step::Record(RecordSteps { id: to, fields: fields.into() })
    }

    /// Whether the branches of a writer's union are those of the reader's, in the same order.
    fn are_alike(&self, steps: &[StepId], to: TypeId) -> bool {
        let Shape::Union(own) = self.to.shape(to) else { return false };
        own.len() == steps.len()
            && steps.iter().enumerate().all(|(place, step)| match self.steps[*step as usize] {
                Step::Branch { branch, value } => {
                    branch as usize == place && matches!(self.steps[value as usize], Step::Alike(_))
                }
                _ => false,
            })
    }

    /// The branch of a reader's union that a value becomes.
    fn branch(&self, from: TypeId, branches: &[TypeId]) -> Option<usize> {
        let (writer, reader) = (self.from, self.to);
        let is_same = |to: &TypeId| promotion(writer.shape(from), reader.shape(*to)).is_none();
        let matches = |to: &TypeId| self.matches(from, *to);
        let same = branches.iter().position(|to| is_same(to) && matches(to));
        same.or_else(|| branches.iter().position(matches))
    }

    /// Whether a value of the one type may be read as the other, by what can be said without looking into records.
    fn matches(&self, from: TypeId, to: TypeId) -> bool {
        let (writer, reader) = (self.from.of(from), self.to.of(to));
        match (&writer.shape, &reader.shape) {
            (Shape::Union(_), _) | (_, Shape::Union(_)) => true,
            (Shape::Array(one), Shape::Array(other)) | (Shape::Map(one), Shape::Map(other)) => {
                self.matches(*one, *other)
            }
            (Shape::Fixed(one), Shape::Fixed(other)) => {
                one == other && self.is_named(from, to) && Logical::agree(writer.logical, reader.logical)
            }
            (Shape::Enum(_), Shape::Enum(_)) | (Shape::Record(_), Shape::Record(_)) => {
                self.is_named(from, to)
            }
            (one, other) => {
                let same = std::mem::discriminant(one) == std::mem::discriminant(other);
                (same || promotion(one, other).is_some()) && Logical::agree(writer.logical, reader.logical)
            }
        }
    }

    /// Whether the last parts of the names are the same, or the reader's type has the writer's name as an alias.
    fn is_named(&self, from: TypeId, to: TypeId) -> bool {
        let last = |name: &'_ str| name.rsplit('.').next().map(str::len).unwrap_or_default();
        let (name, own) = (&*self.from.of(from).name, self.to.of(to));
        let short = &name[name.len() - last(name)..];
        let same = |other: &str| other == name || &other[other.len() - last(other)..] == short;
        same(&own.name) || own.aliases.iter().any(|alias| same(alias))
    }

    fn mismatch(&self, from: TypeId, to: TypeId) -> Step {
        Step::Mismatch(Problem::Mismatch { written: said(self.from, from), read: said(self.to, to) })
    }
}

/// What the reader makes of a value of another primitive type; `None` if it can make nothing of it, or has nothing to do.
fn promotion(from: &Shape, to: &Shape) -> Option<Promotion> {
    Some(match (from, to) {
        (Shape::Int, Shape::Long) => Promotion::IntToLong,
        (Shape::Int, Shape::Float) => Promotion::IntToFloat,
        (Shape::Int, Shape::Double) => Promotion::IntToDouble,
        (Shape::Long, Shape::Float) => Promotion::LongToFloat,
        (Shape::Long, Shape::Double) => Promotion::LongToDouble,
        (Shape::Float, Shape::Double) => Promotion::FloatToDouble,
        (Shape::String, Shape::Bytes) => Promotion::StringToBytes,
        (Shape::Bytes, Shape::String) => Promotion::BytesToString,
        _ => return None,
    })
}

/// A type, as a person calls it.
fn said(plan: &Plan, id: TypeId) -> Box<str> {
    let of = plan.of(id);
    let name = of.name.chars().take(80);
    match (&of.shape, of.logical) {
        (Shape::Record(_), _) => format!("record {}", name.collect::<String>()),
        (Shape::Enum(_), _) => format!("enum {}", name.collect::<String>()),
        (Shape::Fixed(size), None) => format!("fixed {} of {size} bytes", name.collect::<String>()),
        (Shape::Union(branches), _) => {
            let names: Vec<_> = branches.iter().take(8).map(|branch| &*plan.of(*branch).name).collect();
            format!("a union of {}", names.join(", ")).chars().take(160).collect()
        }
        (_, Some(logical)) => logical.to_string(),
        _ => name.collect(),
    }
    .into()
}
