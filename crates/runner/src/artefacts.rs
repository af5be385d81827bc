//! The artefacts of a run directory: one summary in every format.

use crate::{ErrorKind, RunError};
use std::io::Write;
use std::path::Path;
use weir_engine::record;
use weir_engine::summary::Summary;
use weir_report::{Report, Text};

/// The artefacts: formats, and the files that they are written to.
const ARTEFACTS: [(&str, &str); 6] = [
    ("json", "summary.json"),
    ("text", "report.txt"),
    ("markdown", "report.md"),
    ("html", "report.html"),
    ("csv", "report.csv"),
    ("junit", "report.xml"),
];

/// That which a single run has beside them.
const CLIENTS: (&str, &str) = ("clients", "clients.csv");

/// Writes the summary in every format beside the run's lines: `summary.json`, `report.html` and so on.
pub fn write_artefacts(summary: &Summary, directory: &Path) -> Result<(), RunError> {
    write(directory, &|format, text, out| summary.write(format, text, out))?;
    write_as(directory, CLIENTS, &|format, text, out| summary.write(format, text, out))
}

/// Writes what is not a single run's in the format of a name, as text in a manner.
pub type WriteAs<'a> = &'a dyn Fn(&str, &Text, &mut dyn Write) -> std::io::Result<()>;

/// Writes the artefacts of what is not a single run's, whole.
pub fn write(directory: &Path, write: WriteAs<'_>) -> Result<(), RunError> {
    ARTEFACTS.into_iter().try_for_each(|artefact| write_as(directory, artefact, write))
}

fn write_as(directory: &Path, (format, file): (&str, &str), write: WriteAs<'_>) -> Result<(), RunError> {
    let mut bytes = Vec::new();
    write(format, &Text::default(), &mut bytes).map_err(RunError::with(ErrorKind::Internal))?;
    record::write_whole(&directory.join(file), &bytes).map_err(RunError::with(ErrorKind::Internal))
}
