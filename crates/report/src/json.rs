//! Values as they are, and the schemas that they follow.

use crate::codec::CodecComparison;
use crate::stream::StreamCheck;
use schemars::schema_for;
use serde::Serialize;
use std::io;
use weir_engine::capacity::CapacitySummary;
use weir_engine::compare::Comparison;
use weir_engine::history::History;
use weir_engine::series::SeriesSummary;
use weir_engine::summary::Summary;
use weir_engine::sweep::SweepSummary;

/// Writes a value as JSON, indented.
pub(crate) fn write(value: &impl Serialize, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}

/// The JSON Schema (draft 2020-12) of a `summary`, `check`, `codec`, `series`, `capacity`, `sweep`, `compare` or `history`, made from
/// the types, as `docs/NAME.schema.json` has it.
pub fn schema(of: &str) -> Option<String> {
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
    Some(serde_json::to_string_pretty(&schema).ok()? + "\n")
}
