//! Schemas to test with.

use proptest::prelude::*;

/// One record with all types, in and out of unions.
pub(crate) fn every_type() -> &'static str {
    include_str!("every.avsc")
}

/// The JSON of a record of any types, or of what may be around it. Names are made unique by number.
pub(crate) fn any_schema() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "null", "boolean", "int", "long", "float", "double", "bytes", "string", "fixed", "enum",
    ]);
    let tree = leaf.prop_map(Tree::Leaf).prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            inner.clone().prop_map(|item| Tree::Array(item.into())),
            inner.clone().prop_map(|value| Tree::Map(value.into())),
            prop::collection::vec(inner.clone(), 1..5).prop_map(Tree::Union),
            prop::collection::vec(inner, 0..5).prop_map(Tree::Record),
        ]
    });
    let record = prop::collection::vec(tree, 1..6).prop_map(Tree::Record);
    let top = prop_oneof![
        4 => record.clone(),
        1 => record.clone().prop_map(|item| Tree::Array(item.into())),
        1 => record.clone().prop_map(|value| Tree::Map(Tree::Array(value.into()).into())),
        1 => record.clone().prop_map(|branch| Tree::Union(vec![branch, Tree::Leaf("null")])),
        1 => prop::collection::vec(record, 1..4).prop_map(Tree::Union),
    ];
    top.prop_map(|top| top.json(&mut 0))
}

#[derive(Clone, Debug)]
enum Tree {
    Leaf(&'static str),
    Array(Box<Self>),
    Map(Box<Self>),
    Union(Vec<Self>),
    Record(Vec<Self>),
}

impl Tree {
    fn json(&self, number: &mut usize) -> String {
        *number += 1;
        let own = *number;
        match self {
            Self::Leaf("fixed") => format!(r#"{{"type": "fixed", "name": "F{own}", "size": {}}}"#, own % 9),
            Self::Leaf("enum") => {
                format!(r#"{{"type": "enum", "name": "E{own}", "symbols": ["A", "B", "C"]}}"#)
            }
            Self::Leaf(name) => format!("\"{name}\""),
            Self::Array(item) => format!(r#"{{"type": "array", "items": {}}}"#, item.json(number)),
            Self::Map(value) => format!(r#"{{"type": "map", "values": {}}}"#, value.json(number)),
            Self::Union(branches) => {
                // No union in a union, and no unnamed type twice.
                let mut seen = Vec::new();
                let mut list = Vec::new();
                for branch in branches {
                    let kind = match branch {
                        Self::Leaf("fixed" | "enum") | Self::Record(_) => "",
                        Self::Leaf(name) => name,
                        Self::Array(_) => "array",
                        Self::Map(_) => "map",
                        Self::Union(_) => continue,
                    };
                    if kind.is_empty() || !seen.contains(&kind) {
                        seen.push(kind);
                        list.push(branch.json(number));
                    }
                }
                if list.is_empty() { "\"null\"".to_owned() } else { format!("[{}]", list.join(", ")) }
            }
            Self::Record(fields) => {
                let fields: Vec<_> = fields
                    .iter()
                    .enumerate()
                    .map(|(at, field)| format!(r#"{{"name": "f{at}", "type": {}}}"#, field.json(number)))
                    .collect();
                format!(r#"{{"type": "record", "name": "R{own}", "fields": [{}]}}"#, fields.join(", "))
            }
        }
    }
}
