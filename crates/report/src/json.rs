//! The summary itself, and the schema that it follows.

use crate::Format;
use std::io;
use weir_engine::summary::Summary;

/// The summary as it is, indented. [`schema`] describes it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

impl Format for Json {
    fn name(&self) -> &'static str {
        "json"
    }

    fn extension(&self) -> &'static str {
        "json"
    }

    fn write(&self, summary: &Summary, out: &mut dyn io::Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut *out, summary)?;
        out.write_all(b"\n")
    }
}

/// The JSON Schema of a summary (draft 2020-12), made from the types: `docs/summary.schema.json`.
pub fn schema() -> String {
    published(schemars::schema_for!(Summary), "weir summary")
}

/// A schema under its title, as it is published.
pub(crate) fn published(mut schema: schemars::Schema, title: &str) -> String {
    schema.insert("title".to_owned(), title.into());
    let mut text = serde_json::to_string_pretty(&schema).unwrap_or_default();
    text.push('\n');
    text
}
