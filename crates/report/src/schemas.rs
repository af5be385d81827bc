//! The JSON Schemas that values in files follow.

use crate::codec::CodecComparison;
use crate::stream::StreamCheck;
use schemars::schema_for;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use weir_answers::capacity::CapacitySummary;
use weir_answers::compare::Comparison;
use weir_answers::history::History;
use weir_answers::series::SeriesSummary;
use weir_answers::sweep::SweepSummary;
use weir_engine::summary::Summary;

/// The names of the schemas, those of answers that are made of runs behind that of a run.
pub const SCHEMAS: [&str; 8] =
    ["summary", "check", "codec", "series", "capacity", "sweep", "compare", "history"];

/// The file of what several schemas define alike.
pub const DEFINITIONS: &str = "definitions";

/// The JSON Schema (draft 2020-12) of one of [`SCHEMAS`], made from the types, with all that it refers to.
pub fn schema(of: &str) -> Option<String> {
    text(&made(of)?.into())
}

/// The same as `docs/NAME.schema.json` has it: what others define alike is a reference to `definitions.schema.json`, which has the name
/// [`DEFINITIONS`].
pub fn published_schema(of: &str) -> Option<String> {
    let shared = shared_definitions();
    if of == DEFINITIONS {
        let shared = shared.into_iter().map(|(name, it)| (name, at_home(it, &|_| false))).collect();
        return text(&Value::Object(Map::from_iter([
            ("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into()),
            ("title".to_owned(), "what the schemas of weir share".into()),
            ("$defs".to_owned(), Value::Object(shared)),
        ])));
    }
    let mut schema = made(of)?;
    if let Some(Value::Object(definitions)) = schema.get_mut("$defs") {
        definitions.retain(|name, _| !shared.contains_key(name));
    }
    text(&at_home(schema.into(), &|name| shared.contains_key(name)))
}

fn made(of: &str) -> Option<Map<String, Value>> {
    let mut schema = match of {
        "summary" => schema_for!(Summary),
        "check" => schema_for!(StreamCheck),
        "codec" => schema_for!(CodecComparison),
        "series" => schema_for!(SeriesSummary),
        "capacity" => schema_for!(CapacitySummary),
        "sweep" => schema_for!(SweepSummary),
        "compare" => schema_for!(Comparison),
        "history" => schema_for!(History),
        _ => return None,
    };
    schema.insert("title".to_owned(), format!("weir {of}").into());
    schema.as_object().cloned()
}

fn text(schema: &Value) -> Option<String> {
    Some(serde_json::to_string_pretty(schema).ok()? + "\n")
}

/// What two schemas and more define, each of them alike.
fn shared_definitions() -> Map<String, Value> {
    let mut found: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for mut schema in SCHEMAS.into_iter().filter_map(made) {
        let Some(Value::Object(definitions)) = schema.remove("$defs") else { continue };
        definitions.into_iter().for_each(|(name, it)| found.entry(name).or_default().push(it));
    }
    let alike = |all: &Vec<Value>| all.len() > 1 && all.iter().all(|it| *it == all[0]);
    found.into_iter().filter(|(_, all)| alike(all)).map(|(name, mut all)| (name, all.remove(0))).collect()
}

/// A schema whose references to what is shared lead to the file that has it.
fn at_home(schema: Value, is_shared: &dyn Fn(&str) -> bool) -> Value {
    match schema {
        Value::Object(object) => {
            let entry =
                |(key, value): (String, Value)| match value.as_str().and_then(|it| it.strip_prefix(LOCAL)) {
                    Some(name) if key == "$ref" && is_shared(name) => {
                        (key, format!("{DEFINITIONS}.schema.json{LOCAL}{name}").into())
                    }
                    _ => (key, at_home(value, is_shared)),
                };
            Value::Object(object.into_iter().map(entry).collect())
        }
        Value::Array(values) => values.into_iter().map(|it| at_home(it, is_shared)).collect(),
        other => other,
    }
}

/// Where a schema's own definitions are.
const LOCAL: &str = "#/$defs/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_defined_in_common_refers_to_nothing_else() {
        let shared = shared_definitions();
        assert!(shared.contains_key("RunFacts") && shared.contains_key("ProcessLoad"));
        let text = published_schema(DEFINITIONS).unwrap();
        for name in text.split(LOCAL).skip(1).map(|rest| rest.split('"').next().unwrap()) {
            assert!(shared.contains_key(name), "{name}");
        }
    }

    #[test]
    fn a_published_schema_refers_to_the_shared_file_and_defines_the_rest() {
        for of in SCHEMAS {
            let text = published_schema(of).unwrap();
            let schema: Value = serde_json::from_str(&text).unwrap();
            for name in text.split("\"#/$defs/").skip(1).map(|rest| rest.split('"').next().unwrap()) {
                assert!(schema["$defs"].get(name).is_some(), "{of}: {name}");
            }
        }
    }
}
