//! `weir completions`: made from the declaration of the command line.

use crate::args::Completions;
use crate::exit::Exit;
use crate::help;
use crate::print::written;
use std::io::Write;
use weir_runner::RunError;

/// Prints what a shell reads to complete weir's commands.
pub(crate) fn completions(args: &Completions) -> Result<Exit, RunError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut help::command(), "weir", &mut script);
    written(std::io::stdout().lock().write_all(&script))?;
    Ok(Exit::Passed)
}
