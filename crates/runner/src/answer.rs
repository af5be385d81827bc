//! What several runs came to, whatever they were made for: kept in a directory, and read back.

use crate::{ErrorKind, RunError, artefacts};
use serde::de::DeserializeOwned;
use std::path::Path;
use weir_files::MOST_DOCUMENT;
use weir_report::Report;

/// Name of the summary in its directory.
pub const SUMMARY: &str = "summary.json";

/// The summary of a series, of a search or of a sweep.
pub trait Answer: Report + DeserializeOwned {
    /// The version of its layout.
    const LAYOUT: &'static str;

    /// The version of the layout that a file says it has.
    fn layout(&self) -> &str;

    /// What it did not meet, if anything.
    fn missed(&self) -> Option<ErrorKind>;

    /// What was asked, answered in one line; `None` if nothing was asked.
    fn answer(&self) -> Option<String>;

    /// Why it did not pass, in one line.
    fn shortfall(&self) -> Option<String>;

    /// Reads it from a directory; `None` if the directory is another's.
    fn read(directory: &Path) -> Option<Self> {
        let bytes = weir_files::read(&directory.join(SUMMARY), MOST_DOCUMENT).ok()?;
        serde_json::from_slice::<Self>(&bytes).ok().filter(|summary| summary.layout() == Self::LAYOUT)
    }

    /// Writes its artefacts.
    ///
    /// # Errors
    /// One cannot be written.
    fn keep(&self, directory: &Path) -> Result<(), RunError> {
        artefacts::write(directory, &|format, text, out| self.write(format, text, out))
    }
}
