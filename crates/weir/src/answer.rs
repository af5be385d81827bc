//! What several runs came to, whatever they were made for: kept in a directory, read back, printed, and shown on the live page.

use crate::args::Print;
use crate::exit::Exit;
use crate::live_page::{LivePage, Whole};
use crate::{print, run};
use serde::de::DeserializeOwned;
use std::path::Path;
use weir_engine::capacity::CapacitySummary;
use weir_engine::series::SeriesSummary;
use weir_engine::sweep::SweepSummary;
use weir_files::MOST_DOCUMENT;
use weir_report::Text;
use weir_runner::{ErrorKind, RunError};

/// Name of the summary in its directory.
const SUMMARY: &str = "summary.json";

/// The summary of a series, of a search or of a sweep.
pub(crate) trait KeptAnswer: weir_report::Report + DeserializeOwned {
    /// The version of its layout.
    const LAYOUT: &'static str;

    /// What it is on the live page.
    const WHOLE: Whole;

    /// The version of the layout that a file says it has.
    fn layout(&self) -> &str;

    /// What it did not meet, if anything.
    fn missed(&self) -> Option<ErrorKind>;

    /// What was asked, answered in one line; `None` if nothing was asked.
    fn answer(&self) -> Option<String>;

    /// Why it did not pass, in one line.
    fn shortfall(&self) -> Option<String>;

    /// Reads it from a directory; none if the directory is another's.
    fn read(directory: &Path) -> Option<Self> {
        let bytes = weir_files::read(&directory.join(SUMMARY), MOST_DOCUMENT).ok()?;
        serde_json::from_slice::<Self>(&bytes).ok().filter(|summary| summary.layout() == Self::LAYOUT)
    }

    /// Writes its artefacts.
    fn keep(&self, directory: &Path) -> Result<(), RunError> {
        print::write(directory, &|format, text, out| self.write(format, text, out))
    }

    /// Prints it as asked.
    fn show(&self, print: &Print, directory: &Path) -> Result<(), RunError> {
        print::show(print, directory, self.answer(), &|format, text, out| self.write(format, text, out))
    }

    /// Shows it above the run on the live page.
    fn show_on(&self, page: &LivePage) {
        page.show_whole(Self::WHOLE, |out| self.write("html", &Text::default(), out));
    }

    /// The exit code; why it is no other is said.
    fn explained(&self) -> Exit {
        run::said(self.missed().into(), self.shortfall())
    }
}

/// Refuses a directory whose summary is that of several runs and cannot be read. A run's own is summed up from its lines.
///
/// # Errors
/// Names the file and the line.
pub(crate) fn check_summary(directory: &Path) -> Result<(), RunError> {
    // A file of that name with none is not weir's.
    #[derive(serde::Deserialize)]
    struct Layout {
        #[serde(default)]
        layout: String,
    }
    fn read<A: KeptAnswer>(layout: &str, bytes: &[u8]) -> serde_json::Result<()> {
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
