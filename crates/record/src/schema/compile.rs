//! From the JSON of a schema to a list of types.

use super::canonical;
use super::fault::{SchemaError, SchemaFault};
use crate::logical::{Logical, TimeUnit};
use crate::plan::{DefaultValue, ENDLESS, Field, Plan, RecordShape, Shape, Type, TypeId};
use crate::{MAX_DEPTH, MAX_SCHEMA, MAX_TYPES, rows};
use serde_json::{Map, Value};
use std::collections::{HashMap, HashSet};

/// The attribute that says how long generated values are.
const LENGTH: &str = "weir.length";

/// The types that have no attributes.
const PRIMITIVES: [(&str, Shape, u64); 8] = [
    ("null", Shape::Null, 0),
    ("boolean", Shape::Boolean, 1),
    ("int", Shape::Int, 1),
    ("long", Shape::Long, 1),
    ("float", Shape::Float, 4),
    ("double", Shape::Double, 8),
    ("bytes", Shape::Bytes, 1),
    ("string", Shape::String, 1),
];

pub(super) fn compile(text: &str) -> Result<Plan, SchemaError> {
    if text.len() > MAX_SCHEMA {
        return Err(SchemaError::new(SchemaFault::TooLong(text.len())));
    }
    let json: Value =
        serde_json::from_str(text).map_err(|error| SchemaError::new(SchemaFault::Json(error.to_string())))?;
    let mut compiler = Compiler { types: Vec::new(), named: HashMap::new() };
    let top = compiler.any(&json, "", 0)?;
    let mut types = compiler.types;
    let Some(item) = rows::item(&types, top) else {
        return Err(SchemaError::new(SchemaFault::NoRecord(types[top as usize].name.to_string())));
    };
    let row = row(&mut types, item);
    measure(&mut types)?;
    let mut plan = Plan { types, top, item, row, fingerprint: 0, canonical: String::new() };
    let mut canonical = String::new();
    canonical::write(&plan, top, &mut HashSet::new(), &mut canonical);
    plan.fingerprint = canonical::fingerprint(&canonical);
    plan.canonical = canonical;
    Ok(plan)
}

/// The record that a row is. For one of several records a type is made, which has their names as an enum.
fn row(types: &mut Vec<Type>, item: TypeId) -> TypeId {
    let Shape::Union(branches) = &types[item as usize].shape else { return item };
    let names = branches.iter().map(|id| types[*id as usize].name.clone()).collect();
    let next = types.len() as TypeId;
    let field = |name: &str, id| Field { name: name.into(), id, aliases: Box::default(), default: None };
    let fields = vec![field(rows::BRANCH, next), field(rows::VALUE, item)];
    types.push(Type::of("enum", Shape::Enum(names)));
    types.push(Type::of("union", Shape::Record(RecordShape::new(fields))));
    next + 1
}

struct Compiler {
    types: Vec<Type>,
    named: HashMap<String, TypeId>,
}

type CompileResult<T = TypeId> = Result<T, SchemaError>;

fn fail<T>(fault: SchemaFault) -> CompileResult<T> {
    Err(SchemaError::new(fault))
}

impl Compiler {
    fn any(&mut self, json: &Value, namespace: &str, depth: usize) -> CompileResult {
        if depth > MAX_DEPTH {
            return fail(SchemaFault::TooDeep);
        }
        match json {
            Value::String(name) => self.name(name, namespace),
            Value::Array(branches) => self.union(branches, namespace, depth),
            Value::Object(attributes) => self.object(attributes, namespace, depth),
            Value::Null => fail(SchemaFault::NoType("null")),
            Value::Bool(_) => fail(SchemaFault::NoType("a boolean")),
            Value::Number(_) => fail(SchemaFault::NoType("a number")),
        }
    }

    fn push(&mut self, name: &str, shape: Shape, attributes: Option<&Map<String, Value>>) -> CompileResult {
        if self.types.len() >= MAX_TYPES {
            return fail(SchemaFault::TooManyTypes);
        }
        let length = attributes.and_then(|it| it.get(LENGTH)).and_then(Value::as_u64);
        let length = length.and_then(|length| u32::try_from(length).ok());
        let logical = attributes.and_then(|attributes| logical(&shape, attributes));
        let fallback = match (&shape, attributes.and_then(|it| it.get("default"))) {
            (Shape::Enum(symbols), Some(Value::String(default))) => {
                symbols.iter().position(|symbol| **symbol == **default).map(|symbol| symbol as u32)
            }
            _ => None,
        };
        let is_named = matches!(shape, Shape::Record(_) | Shape::Enum(_) | Shape::Fixed(_));
        let aliases = attributes.filter(|_| is_named).map(|attributes| {
            let namespace = namespace_of(name);
            texts(attributes.get("aliases")).map(|alias| full_name(alias, namespace).into()).collect()
        });
        let aliases = aliases.unwrap_or_default();
        self.types.push(Type { length, aliases, fallback, logical, ..Type::of(name, shape) });
        Ok(self.types.len() as TypeId - 1)
    }

    fn primitive(&mut self, name: &str, attributes: Option<&Map<String, Value>>) -> Option<CompileResult> {
        let (name, shape, least) = PRIMITIVES.into_iter().find(|(known, ..)| *known == name)?;
        Some(self.push(name, shape, attributes).inspect(|id| self.types[*id as usize].least = least))
    }

    fn name(&mut self, name: &str, namespace: &str) -> CompileResult {
        if let Some(made) = self.primitive(name, None) {
            return made;
        }
        let full = full_name(name, namespace);
        match self.named.get(&full) {
            Some(id) => Ok(*id),
            None => fail(SchemaFault::Unknown(full)),
        }
    }

    fn union(&mut self, branches: &[Value], namespace: &str, depth: usize) -> CompileResult {
        let mut ids = Vec::with_capacity(branches.len());
        let mut names = HashSet::new();
        for (number, branch) in branches.iter().enumerate() {
            let place = format!("[{number}]");
            let id = self.any(branch, namespace, depth + 1).map_err(|error| error.within(&place))?;
            let of = &self.types[id as usize];
            let fault = if matches!(of.shape, Shape::Union(_)) {
                Some(SchemaFault::UnionInUnion)
            } else if !names.insert(of.name.clone()) {
                Some(SchemaFault::Twice { what: "branch", name: of.name.to_string() })
            } else {
                None
            };
            if let Some(fault) = fault {
                return Err(SchemaError::new(fault).within(&place));
            }
            ids.push(id);
        }
        self.push("union", Shape::Union(ids.into()), None)
    }

    fn object(&mut self, attributes: &Map<String, Value>, namespace: &str, depth: usize) -> CompileResult {
        let kind = match attributes.get("type") {
            Some(Value::String(kind)) => kind.as_str(),
            // A type wrapped once more, as some tools write it.
            Some(inner @ (Value::Object(_) | Value::Array(_))) => {
                return self.any(inner, namespace, depth + 1).map_err(|error| error.within("type"));
            }
            _ => return fail(attribute("type", "there, and a type")),
        };
        match kind {
            "record" => self.record(attributes, namespace, depth),
            "enum" => {
                let name = self.new_name(attributes, namespace)?;
                let symbols = symbols(attributes)?;
                let id = self.push(&name, Shape::Enum(symbols), Some(attributes))?;
                self.named.insert(name, id);
                Ok(id)
            }
            "fixed" => {
                let name = self.new_name(attributes, namespace)?;
                let size = attributes.get("size").and_then(Value::as_u64);
                let size = size.and_then(|size| u32::try_from(size).ok());
                let Some(size) = size else { return fail(attribute("size", "a number of bytes")) };
                let id = self.push(&name, Shape::Fixed(size), Some(attributes))?;
                self.named.insert(name, id);
                Ok(id)
            }
            "array" => {
                let Some(items) = attributes.get("items") else { return fail(attribute("items", "a type")) };
                let items = self.any(items, namespace, depth + 1).map_err(|error| error.within("items"))?;
                self.push("array", Shape::Array(items), Some(attributes))
            }
            "map" => {
                let Some(values) = attributes.get("values") else {
                    return fail(attribute("values", "a type"));
                };
                let values =
                    self.any(values, namespace, depth + 1).map_err(|error| error.within("values"))?;
                self.push("map", Shape::Map(values), Some(attributes))
            }
            name => self.primitive(name, Some(attributes)).unwrap_or_else(|| self.name(name, namespace)),
        }
    }

    fn record(&mut self, attributes: &Map<String, Value>, namespace: &str, depth: usize) -> CompileResult {
        let name = self.new_name(attributes, namespace)?;
        let Some(Value::Array(list)) = attributes.get("fields") else {
            return fail(attribute("fields", "an array"));
        };
        // Its fields may name it.
        let id = self.push(&name, Shape::Record(RecordShape::new(Vec::new())), Some(attributes))?;
        let inner = namespace_of(&name).to_owned();
        self.named.insert(name, id);
        let mut fields = Vec::with_capacity(list.len());
        let mut names = HashSet::new();
        for (number, field) in list.iter().enumerate() {
            let name = match field.get("name") {
                Some(Value::String(name)) if is_name(name) => name,
                Some(Value::String(name)) => {
                    let error = SchemaError::new(SchemaFault::Name(name.clone()));
                    return Err(error.within(&format!("fields[{number}]")));
                }
                _ => {
                    let error = SchemaError::new(attribute("name", "a text"));
                    return Err(error.within(&format!("fields[{number}]")));
                }
            };
            if !names.insert(name) {
                return fail(SchemaFault::Twice { what: "field", name: name.clone() });
            }
            let made = match field.get("type") {
                Some(json) => self.any(json, &inner, depth + 1),
                None => fail(attribute("type", "there, and a type")),
            };
            let id = made.map_err(|error| error.within(name))?;
            let aliases = texts(field.get("aliases")).map(Into::into).collect();
            let default = field.get("default").cloned().map(DefaultValue::new);
            fields.push(Field { name: name.as_str().into(), id, aliases, default });
        }
        self.types[id as usize].shape = Shape::Record(RecordShape::new(fields));
        Ok(id)
    }

    /// The full name of a type that is defined here (Avro 1.12, "Names").
    fn new_name(&self, attributes: &Map<String, Value>, namespace: &str) -> CompileResult<String> {
        let Some(name) = attributes.get("name").and_then(Value::as_str) else {
            return fail(attribute("name", "a text"));
        };
        let namespace = attributes.get("namespace").and_then(Value::as_str).unwrap_or(namespace);
        let full = full_name(name, namespace);
        if !full.split('.').all(is_name) {
            return fail(SchemaFault::Name(full));
        }
        let primitive = PRIMITIVES.iter().any(|(known, ..)| *known == full);
        if primitive || self.named.contains_key(&full) {
            return fail(SchemaFault::Twice { what: "type", name: full });
        }
        Ok(full)
    }
}

fn attribute(name: &'static str, expected: &'static str) -> SchemaFault {
    SchemaFault::Attribute { name, expected }
}

fn full_name(name: &str, namespace: &str) -> String {
    if name.contains('.') || namespace.is_empty() { name.to_owned() } else { format!("{namespace}.{name}") }
}

/// What stands before the last point of a full name.
fn namespace_of(name: &str) -> &str {
    name.rsplit_once('.').map_or("", |(namespace, _)| namespace)
}

/// The texts of an array.
fn texts(list: Option<&Value>) -> impl Iterator<Item = &str> {
    list.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn is_name(name: &str) -> bool {
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    first && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn symbols(attributes: &Map<String, Value>) -> CompileResult<Box<[Box<str>]>> {
    let Some(Value::Array(list)) = attributes.get("symbols") else {
        return fail(attribute("symbols", "an array of names"));
    };
    let mut symbols: Vec<Box<str>> = Vec::with_capacity(list.len());
    let mut seen = HashSet::new();
    for symbol in list {
        let Some(symbol) = symbol.as_str() else { return fail(attribute("symbols", "an array of names")) };
        if !is_name(symbol) {
            return fail(SchemaFault::Name(symbol.to_owned()));
        }
        if !seen.insert(symbol) {
            return fail(SchemaFault::Twice { what: "symbol", name: symbol.to_owned() });
        }
        symbols.push(symbol.into());
    }
    Ok(symbols.into())
}

/// Finds the fewest bytes that each type takes; what takes infinitely many is an error.
fn measure(types: &mut [Type]) -> CompileResult<()> {
    loop {
        let mut changed = false;
        // Types come after what they are made of, but for records, and so mostly one pass is enough.
        for at in (0..types.len()).rev().chain(0..types.len()) {
            let of = |id: &TypeId| types[*id as usize].least;
            let least = match &types[at].shape {
                Shape::Fixed(size) => u64::from(*size),
                Shape::Enum(symbols) if symbols.is_empty() => ENDLESS,
                Shape::Enum(_) | Shape::Array(_) | Shape::Map(_) => 1,
                Shape::Union(branches) => branches.iter().map(of).min().unwrap_or(ENDLESS).saturating_add(1),
                Shape::Record(record) => {
                    record.fields.iter().fold(0, |sum: u64, field| sum.saturating_add(of(&field.id)))
                }
                _ => types[at].least,
            };
            changed |= std::mem::replace(&mut types[at].least, least) != least;
        }
        if !changed {
            break;
        }
    }
    match types.iter().find(|of| of.least == ENDLESS) {
        Some(endless) => fail(SchemaFault::Endless(endless.name.to_string())),
        None => Ok(()),
    }
}

/// What a type with these attributes means.
fn logical(shape: &Shape, attributes: &Map<String, Value>) -> Option<Logical> {
    let number = |name: &str| {
        let number = attributes.get(name).and_then(Value::as_u64)?;
        u32::try_from(number).ok()
    };
    Some(match (attributes.get("logicalType")?.as_str()?, shape) {
        ("date", Shape::Int) => Logical::Date,
        ("time-millis", Shape::Int) => Logical::Time(TimeUnit::Millis),
        ("time-micros", Shape::Long) => Logical::Time(TimeUnit::Micros),
        ("timestamp-millis", Shape::Long) => Logical::Timestamp(TimeUnit::Millis),
        ("timestamp-micros", Shape::Long) => Logical::Timestamp(TimeUnit::Micros),
        ("timestamp-nanos", Shape::Long) => Logical::Timestamp(TimeUnit::Nanos),
        ("local-timestamp-millis", Shape::Long) => Logical::LocalTimestamp(TimeUnit::Millis),
        ("local-timestamp-micros", Shape::Long) => Logical::LocalTimestamp(TimeUnit::Micros),
        ("local-timestamp-nanos", Shape::Long) => Logical::LocalTimestamp(TimeUnit::Nanos),
        ("decimal", Shape::Bytes | Shape::Fixed(_)) => {
            let precision = number("precision").filter(|precision| *precision > 0)?;
            let scale = if attributes.contains_key("scale") { number("scale")? } else { 0 };
            if scale > precision {
                return None;
            }
            Logical::Decimal { precision, scale }
        }
        ("uuid", Shape::String | Shape::Fixed(16)) => Logical::Uuid,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        compile(text).unwrap_err().to_string()
    }

    fn record(fields: &str) -> String {
        format!(r#"{{"type": "record", "name": "R", "fields": [{fields}]}}"#)
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line_with_its_place() {
        assert_eq!(error("{"), "schema: no JSON: EOF while parsing an object at line 1 column 1");
        assert_eq!(
            error(r#""int""#),
            "schema: a record must be at the top, or an array, a map or a union with one; this is int"
        );
        assert_eq!(
            error(&record(r#"{"name": "a", "type": {"type": "array", "items": "byts"}}"#)),
            "schema: a.items: 'byts' is not a type, and no record, enum or fixed before this has that name"
        );
        assert_eq!(
            error(&record(r#"{"name": "a b", "type": "int"}"#)),
            "schema: fields[0]: 'a b' is not a name: letters, digits and _, no digit first"
        );
        assert_eq!(
            error(&record(r#"{"name": "a", "type": "int"}, {"name": "a", "type": "int"}"#)),
            "schema: the field 'a' comes twice"
        );
        assert_eq!(
            error(&record(r#"{"name": "a", "type": ["int", ["null"]]}"#)),
            "schema: a.[1]: a union cannot have a union as a branch"
        );
        assert_eq!(
            error(&record(r#"{"name": "a", "type": ["int", "int"]}"#)),
            "schema: a.[1]: the branch 'int' comes twice"
        );
        assert_eq!(
            error(&record(r#"{"name": "a", "type": {"type": "fixed", "name": "F"}}"#)),
            "schema: a: the attribute 'size' must be a number of bytes"
        );
        assert_eq!(
            error(&record(r#"{"name": "a", "type": "R"}"#)),
            "schema: R has no value that ends: it contains itself, or a union has no branch"
        );
        assert_eq!(
            error(&record(r#"{"name": "a", "type": []}"#)),
            "schema: R has no value that ends: it contains itself, or a union has no branch"
        );
    }

    #[test]
    fn a_list_of_itself_ends() {
        let list = record(r#"{"name": "next", "type": ["null", "R"]}, {"name": "value", "type": "double"}"#);
        assert_eq!(compile(&list).unwrap().types[0].least, 9);
    }

    #[test]
    fn depth_and_size_are_bounded() {
        let deep = r#"{"type":"array","items":"#.repeat(100) + "\"int\"" + &"}".repeat(100);
        assert!(
            error(&record(&format!(r#"{{"name": "a", "type": {deep}}}"#))).contains("nested deeper than 64")
        );
        assert!(error(&" ".repeat(MAX_SCHEMA + 1)).contains("at most 1048576"));
        let many: Vec<_> = (0..MAX_TYPES).map(|n| format!(r#"{{"name": "f{n}", "type": "int"}}"#)).collect();
        assert!(error(&record(&many.join(","))).contains("more than 16384 types"));
    }

    #[test]
    fn names_are_full_and_the_canonical_form_has_nothing_else() {
        let plan = compile(
            r#"{"type": "record", "name": "Outer", "namespace": "a.b", "doc": "x", "fields": [
                {"name": "f", "default": null, "type": ["null", {"type": "fixed", "name": "Id", "size": 16}]},
                {"name": "g", "type": {"type": "enum", "name": "c.Suit", "symbols": ["S", "H"]}},
                {"name": "h", "type": {"type": "map", "values": "Id"}},
                {"name": "i", "type": {"type": "array", "items": "c.Suit"}},
                {"name": "t", "type": {"type": "long", "logicalType": "timestamp-micros"}}]}"#,
        )
        .unwrap();
        assert_eq!(
            plan.canonical,
            concat!(
                r#"{"name":"a.b.Outer","type":"record","fields":["#,
                r#"{"name":"f","type":["null",{"name":"a.b.Id","type":"fixed","size":16}]},"#,
                r#"{"name":"g","type":{"name":"c.Suit","type":"enum","symbols":["S","H"]}},"#,
                r#"{"name":"h","type":{"type":"map","values":"a.b.Id"}},"#,
                r#"{"name":"i","type":{"type":"array","items":"c.Suit"}},"#,
                r#"{"name":"t","type":"long"}]}"#
            )
        );
    }
}
