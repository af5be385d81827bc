//! What several runs came to, whatever they were made for: printed, and refused where it cannot be read.

use crate::args::Print;
use crate::exit::Exit;
use crate::{print, run};
use std::path::Path;
use weir_engine::capacity::CapacitySummary;
use weir_engine::series::SeriesSummary;
use weir_engine::sweep::SweepSummary;
use weir_files::MOST_DOCUMENT;
use weir_runner::answer::{Answer, SUMMARY};
use weir_runner::{ErrorKind, RunError};

/// Prints it as asked.
pub(crate) fn show(answer: &impl Answer, print: &Print, directory: &Path) -> Result<(), RunError> {
    print::show(print, directory, answer.answer(), &|format, text, out| answer.write(format, text, out))
}

/// The exit code; why it is no other is said.
pub(crate) fn explained(answer: &impl Answer) -> Exit {
    run::said(answer.missed().into(), answer.shortfall())
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
