//! `weir completions` and `weir man`: made from the declaration of the command line.

use crate::args::{Completions, Man};
use crate::exit::{Exit, Failure};
use crate::help;
use crate::print::written;
use std::io::Write;

/// Prints what a shell reads to complete weir's commands.
pub(crate) fn completions(args: &Completions) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut help::command(), "weir", &mut script);
    written(std::io::stdout().lock().write_all(&script))?;
    Ok(Exit::Passed)
}

/// Writes a page for weir and one for each command.
pub(crate) fn man(args: &Man) -> Result<Exit, Failure> {
    let made = std::fs::create_dir_all(&args.directory);
    made.and_then(|()| clap_mangen::generate_to(help::whole(), &args.directory))
        .map_err(|error| Failure::of_file(&args.directory, &error))?;
    Ok(Exit::Passed)
}
