//! What several runs came to, whatever they were made for: kept in a directory, and read back.

use crate::{ErrorKind, RunError, artefacts};
use serde::de::DeserializeOwned;
use std::path::Path;
use weir_answers::capacity::CapacitySummary;
use weir_answers::series::SeriesSummary;
use weir_answers::sweep::SweepSummary;
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

/// Refuses a directory whose summary is that of several runs and cannot be read. A run's own is summed up from its lines.
///
/// # Errors
/// Names the file and the line.
pub fn check_summary(directory: &Path) -> Result<(), RunError> {
    // A file of that name with none is not weir's.
    #[derive(serde::Deserialize)]
    struct Layout {
        #[serde(default)]
        layout: String,
    }
    fn read<A: Answer>(layout: &str, bytes: &[u8]) -> serde_json::Result<()> {
        if layout == A::LAYOUT { serde_json::from_slice::<A>(bytes).map(drop) } else { Ok(()) }
    }
    let path = directory.join(SUMMARY);
    let Some(bytes) =
        weir_files::read(&path, MOST_DOCUMENT).ok().filter(|_| !directory.join("run.json").exists())
    else {
        return Ok(());
    };
    let whole = serde_json::from_slice(&bytes).and_then(|Layout { layout }| {
        read::<SeriesSummary>(&layout, &bytes)?;
        read::<CapacitySummary>(&layout, &bytes)?;
        read::<SweepSummary>(&layout, &bytes)
    });
    whole.map_err(|error| {
        let (path, line, fault) = (path.display(), error.line(), fault(&error));
        let words = format!(
            "{path}:{line}: {fault}: {error}; what its runs measured is in the directories beside it"
        );
        RunError::new(ErrorKind::Usage, words)
    })
}

/// What a summary is that cannot be read.
pub(crate) fn fault(error: &serde_json::Error) -> &'static str {
    if error.is_data() { "of another version of weir" } else { "damaged" }
}
