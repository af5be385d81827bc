//! What several runs came to, whatever they were made for: printed.

use crate::args::Print;
use crate::exit::Exit;
use crate::{print, run};
use std::path::Path;
use weir_runner::RunError;
use weir_runner::answer::Answer;

/// Prints it as asked.
pub(crate) fn show(answer: &impl Answer, print: &Print, directory: &Path) -> Result<(), RunError> {
    print::show(print, directory, answer.answer(), &|format, text, out| answer.write(format, text, out))
}

/// The exit code; why it is no other is said.
pub(crate) fn explained(answer: &impl Answer) -> Exit {
    run::said(answer.missed().into(), answer.shortfall())
}
