//! A schema, compiled: all types in one list that refer to each other by number.

use crate::logical::Logical;
use crate::tape::Tape;
use serde_json::Value;
use std::sync::OnceLock;

/// The number of a type.
pub(crate) type TypeId = u32;

/// The least size of a type without end, and of one of which it is not known yet.
pub(crate) const ENDLESS: u64 = u64::MAX;

/// All types of a schema.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) types: Vec<Type>,
    /// What the schema itself is: the type of what a payload holds.
    pub(crate) top: TypeId,
    /// What rows are made of: a record, or a union of several. It is the top, or in the arrays, maps and unions of the top.
    pub(crate) item: TypeId,
    /// The record that a row is: the item, or the name and the value of its branch.
    pub(crate) row: TypeId,
    pub(crate) fingerprint: u64,
    pub(crate) canonical: String,
}

/// A type.
#[derive(Debug)]
pub(crate) struct Type {
    pub(crate) shape: Shape,
    /// The full name of a record, an enum, a fixed; of others that of the type.
    pub(crate) name: Box<str>,
    /// The fewest bytes that a value takes in Avro's binary encoding.
    pub(crate) least: u64,
    /// How long generated values are: the attribute `weir.length`.
    pub(crate) length: Option<u32>,
    /// Other full names of a record, an enum, a fixed, under which a writer may know it.
    pub(crate) aliases: Box<[Box<str>]>,
    /// The symbol that stands for symbols of a writer that the enum does not have.
    pub(crate) fallback: Option<u32>,
    pub(crate) logical: Option<Logical>,
}

/// What a type is made of.
#[derive(Debug)]
pub(crate) enum Shape {
    Null,
    Boolean,
    Int,
    Long,
    Float,
    Double,
    Bytes,
    String,
    Fixed(u32),
    Enum(Box<[Box<str>]>),
    Array(TypeId),
    Map(TypeId),
    Union(Box<[TypeId]>),
    Record(RecordShape),
}

/// What a record is made of.
#[derive(Debug)]
pub(crate) struct RecordShape {
    pub(crate) fields: Box<[Field]>,
    /// The numbers of the fields, in the order of their names.
    by_name: Box<[u32]>,
}

/// A field of a record.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: Box<str>,
    pub(crate) id: TypeId,
    /// Other names under which a writer may know it.
    pub(crate) aliases: Box<[Box<str>]>,
    pub(crate) default: Option<DefaultValue>,
}

/// The value of a field that a payload does not have. Made when it is first asked for: schemas of writers are never asked.
#[derive(Debug)]
pub(crate) struct DefaultValue {
    pub(crate) json: Value,
    pub(crate) made: OnceLock<Option<Box<Tape>>>,
}

impl Type {
    /// A type of which nothing else is said.
    pub(crate) fn of(name: &str, shape: Shape) -> Self {
        Self {
            shape,
            name: name.into(),
            least: ENDLESS,
            length: None,
            aliases: Box::default(),
            fallback: None,
            logical: None,
        }
    }
}

impl Field {
    /// Its default value as the schema has it.
    pub(crate) fn default_json(&self) -> Option<&Value> {
        self.default.as_ref().map(|default| &default.json)
    }
}

impl DefaultValue {
    pub(crate) fn new(json: Value) -> Self {
        Self { json, made: OnceLock::new() }
    }
}

impl Plan {
    #[inline]
    pub(crate) fn of(&self, id: TypeId) -> &Type {
        &self.types[id as usize]
    }

    #[inline]
    pub(crate) fn shape(&self, id: TypeId) -> &Shape {
        &self.types[id as usize].shape
    }

    /// The fields of a record; none of anything else.
    #[inline]
    pub(crate) fn fields(&self, id: TypeId) -> &[Field] {
        match self.shape(id) {
            Shape::Record(record) => &record.fields,
            _ => &[],
        }
    }

    /// Whether a payload holds a record, and nothing around it.
    #[inline]
    pub(crate) fn is_flat(&self) -> bool {
        self.top == self.row
    }

    /// The branch through which a union leads to rows, if it is not itself what they are made of: the one that is not `null`.
    pub(crate) fn passage(&self, branches: &[TypeId]) -> Option<(usize, TypeId)> {
        let mut all = branches.iter().copied().enumerate();
        all.find(|(_, id)| !matches!(self.shape(*id), Shape::Null))
    }

    /// The type that a union of `null` and one type stands for.
    pub(crate) fn optional(&self, branches: &[TypeId]) -> Option<TypeId> {
        let &[one, other] = branches else { return None };
        match (self.shape(one), self.shape(other)) {
            (Shape::Null, _) => Some(other),
            (_, Shape::Null) => Some(one),
            _ => None,
        }
    }
}

impl RecordShape {
    pub(crate) fn new(fields: Vec<Field>) -> Self {
        let mut by_name: Vec<u32> = (0..fields.len() as u32).collect();
        by_name.sort_by(|one, other| fields[*one as usize].name.cmp(&fields[*other as usize].name));
        Self { fields: fields.into(), by_name: by_name.into() }
    }

    /// The number of the field with that name. `guess` is where it is looked for first.
    #[inline]
    pub(crate) fn find(&self, name: &[u8], guess: usize) -> Option<usize> {
        if self.fields.get(guess).is_some_and(|field| field.name.as_bytes() == name) {
            return Some(guess);
        }
        let by = |number: &u32| self.fields[*number as usize].name.as_bytes().cmp(name);
        self.by_name.binary_search_by(by).ok().map(|place| self.by_name[place] as usize)
    }
}
