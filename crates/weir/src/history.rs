//! `weir history`: the runs in a folder, and since when a figure is what it is.

use crate::args::History as Arguments;
use crate::exit::Exit;
use crate::print::AnswerOutput;
use weir_report::Report;
use weir_runner::RunError;
use weir_runner::past_runs::PastRuns;

/// Prints it.
pub(crate) fn history(args: &Arguments) -> Result<Exit, RunError> {
    let tags = args.tags.iter().cloned().collect();
    let runs = PastRuns {
        directory: &args.directory,
        name: args.name.as_deref(),
        tags: &tags,
        figures: &args.figures,
    };
    let history = runs.history()?;
    let asked = AnswerOutput { format: &args.format, json: args.json.as_deref(), quiet: false };
    asked.print(None, &|format, text, out| history.write(format, text, out))?;
    Ok(Exit::Passed)
}
