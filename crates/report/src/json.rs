//! Values as they are, as JSON.

use serde::Serialize;
use std::io;

/// Writes a value as JSON, indented.
pub(crate) fn write(value: &impl Serialize, out: &mut dyn io::Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    out.write_all(b"\n")
}
