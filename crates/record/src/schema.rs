//! A schema: what a record is made of, for those who decode it and for those who make a table of it.

mod canonical;
mod compile;
mod fault;

pub use fault::{SchemaError, SchemaFault};

use crate::logical::Logical;
use crate::plan::{Plan, Shape, TypeId};
use std::fmt;
use std::sync::Arc;

/// The Avro schema of a record, compiled. Cheap to clone.
#[derive(Clone)]
pub struct Schema {
    pub(crate) plan: Arc<Plan>,
    columns: Arc<[Column]>,
}

/// A field of the record, as a column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    name: Box<str>,
    kind: Kind,
    /// Of the items, if it is an array.
    items: Option<Kind>,
    nullable: bool,
    logical: Option<Logical>,
}

/// What kind of values a column has. A union of `null` and one type counts as that type, and is nullable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Nothing but `null`.
    Null,
    /// `boolean`.
    Boolean,
    /// `int`: 32 bits.
    Int,
    /// `long`: 64 bits.
    Long,
    /// `float`: 32 bits.
    Float,
    /// `double`: 64 bits.
    Double,
    /// `bytes`.
    Bytes,
    /// `string`.
    String,
    /// `fixed`: this number of bytes.
    Fixed(u32),
    /// `enum`: a text.
    Enum,
    /// `array`.
    Array,
    /// `map`.
    Map,
    /// A record in the record.
    Record,
    /// A union of more than `null` and one type: values of several kinds.
    Union,
}

impl Schema {
    /// Reads a schema (`.avsc`): the JSON of a record, or of an array, a map or a union with records in it.
    ///
    /// Named types may refer to each other and to themselves, by full name or within their namespace. Defaults and
    /// aliases count where records were [written](crate::WriterSchemas) by another schema than they are read by; a
    /// default that is no value of its field's type is as good as none.
    ///
    /// # Errors
    /// What is wrong, and where in the schema.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        let plan = compile::compile(text)?;
        let columns =
            plan.fields(plan.row).iter().map(|field| Column::of(&plan, &field.name, field.id)).collect();
        Ok(Self { plan: Arc::new(plan), columns })
    }

    /// The full name of the record; `union` of several.
    pub fn name(&self) -> &str {
        &self.plan.of(self.plan.row).name
    }

    /// The columns of the record, in the schema's order. Of several records in a union: `type`, the name of the one that a row
    /// is of, and `value`.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The schema in its Parsing Canonical Form.
    pub fn canonical(&self) -> &str {
        &self.plan.canonical
    }

    /// Whether records of the one schema are records of the other as they are, and mean the same.
    pub(crate) fn reads_alike(&self, other: &Self) -> bool {
        // Schemas with one canonical form have their types in one order. That form itself says nothing of what they mean.
        let mut pairs = self.plan.types.iter().zip(&other.plan.types);
        self == other && pairs.all(|(one, other)| Logical::agree(one.logical, other.logical))
    }

    /// The CRC-64-AVRO of the canonical form, as single objects carry it.
    pub fn fingerprint(&self) -> u64 {
        self.plan.fingerprint
    }
}

impl Column {
    fn of(plan: &Plan, name: &str, id: TypeId) -> Self {
        let (inner, nullable) = match plan.shape(id) {
            Shape::Union(branches) => match plan.optional(branches) {
                Some(inner) => (inner, true),
                None => (id, branches.iter().any(|branch| matches!(plan.shape(*branch), Shape::Null))),
            },
            shape => (id, matches!(shape, Shape::Null)),
        };
        let shape = plan.shape(inner);
        let items = if let Shape::Array(item) = shape { Some(Kind::of(plan.shape(*item))) } else { None };
        Self { name: name.into(), kind: Kind::of(shape), items, nullable, logical: plan.of(inner).logical }
    }

    /// The name of the field.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What its values are.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What the items of an array are.
    pub fn items(&self) -> Option<Kind> {
        self.items
    }

    /// Whether a value may be `null`.
    pub fn nullable(&self) -> bool {
        self.nullable
    }

    /// What its values mean, if the schema says more than their type.
    pub fn logical(&self) -> Option<Logical> {
        self.logical
    }
}

impl Kind {
    fn of(shape: &Shape) -> Self {
        match shape {
            Shape::Null => Self::Null,
            Shape::Boolean => Self::Boolean,
            Shape::Int => Self::Int,
            Shape::Long => Self::Long,
            Shape::Float => Self::Float,
            Shape::Double => Self::Double,
            Shape::Bytes => Self::Bytes,
            Shape::String => Self::String,
            Shape::Fixed(size) => Self::Fixed(*size),
            Shape::Enum(_) => Self::Enum,
            Shape::Array(_) => Self::Array,
            Shape::Map(_) => Self::Map,
            Shape::Record(_) => Self::Record,
            Shape::Union(_) => Self::Union,
        }
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Schema({})", self.plan.canonical)
    }
}

/// Two schemas are the same if their canonical forms are.
impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.plan.canonical == other.plan.canonical
    }
}

impl Eq for Schema {}
