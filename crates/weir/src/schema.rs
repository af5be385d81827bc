//! `weir schema`: the published schemas, as `docs/` has them, packed by the build script. To make them from the types again
//! would take a program that is half a megabyte larger.

use crate::args;
use crate::exit::Exit;
use crate::print::written;
use flate2::read::DeflateDecoder;
use serde_json::{Map, Value};
use std::io::{Read, Write};
use weir_runner::RunError;

/// Name and text of each, with a zero behind each.
const PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schemas"));

/// Where a schema's own definitions are.
const LOCAL: &str = "#/$defs/";

/// The file of what several schemas define alike, as they refer to it.
const SHARED: &str = "definitions.schema.json#/$defs/";

/// Prints a schema, whole: what is printed has no file beside it to refer to.
pub(crate) fn schema(args: &args::Schema) -> Result<Exit, RunError> {
    let mut texts = String::new();
    DeflateDecoder::new(PACKED).read_to_string(&mut texts).expect("the build script packs text");
    let named = |name: &str| texts.split('\0').skip_while(|it| *it != name).nth(1).unwrap_or_default();
    let text = whole(named(&args.what), named("definitions")).expect("published schemas are JSON");
    let mut out = std::io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))?;
    Ok(Exit::Passed)
}

/// A schema with the shared definitions that it refers to, and those that these refer to.
fn whole(text: &str, definitions: &str) -> serde_json::Result<String> {
    let definitions: Value = serde_json::from_str(definitions)?;
    let mut wanted = referred(text, SHARED);
    if wanted.is_empty() {
        return Ok(text.to_owned());
    }
    let mut added = Map::new();
    while let Some(name) = wanted.pop() {
        if let Some(definition) = definitions["$defs"].get(&name).filter(|_| !added.contains_key(&name)) {
            wanted.extend(referred(&definition.to_string(), LOCAL));
            added.insert(name, definition.clone());
        }
    }
    let mut schema: Map<String, Value> = serde_json::from_str(&text.replace(SHARED, LOCAL))?;
    let own = schema.entry("$defs").or_insert_with(|| Map::new().into());
    if let Value::Object(own) = own {
        own.extend(added);
    }
    Ok(serde_json::to_string_pretty(&schema)? + "\n")
}

/// The names behind a prefix of references.
fn referred(text: &str, prefix: &str) -> Vec<String> {
    let quoted = format!("\"{prefix}");
    text.split(quoted.as_str()).skip(1).filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_refers_to_nothing_outside_of_it() {
        let definitions = r##"{"$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"type": "null"}, "C": {}}}"##;
        let text = r##"{"$ref": "definitions.schema.json#/$defs/A", "$defs": {"D": {}}}"##;
        let printed: Value = serde_json::from_str(&whole(text, definitions).unwrap()).unwrap();
        assert_eq!(printed["$ref"], "#/$defs/A");
        let names: Vec<_> = printed["$defs"].as_object().unwrap().keys().collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert_eq!(printed["$defs"]["B"]["type"], "null");
        assert_eq!(whole("{}", definitions).unwrap(), "{}");
    }
}
