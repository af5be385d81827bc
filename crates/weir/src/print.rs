//! What weir prints, and the artefacts that it writes: the report of a run, and the answer that several runs give.

use crate::args::Print;
use crate::screen::is_dumb;
use std::fmt::Display;
use std::fs::File;
use std::io::{IsTerminal, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use weir_engine::summary::Summary;
use weir_report::{Report, Text};
use weir_runner::artefacts::WriteAs;
use weir_runner::{ErrorKind, RunError};

/// A file for JSON that cannot be written is better known before the run.
pub(crate) fn check_json(print: &Print) -> Result<(), RunError> {
    if let Some(path) = print.json.as_deref().filter(|path| path.as_os_str() != "-") {
        // As the artefacts are: it has addresses, command lines and what servers said. One that is there keeps who may read it.
        let file = File::options().append(true).create(true).mode(0o600).open(path);
        file.map_err(|error| RunError::of_file(path, &error))?;
    }
    Ok(())
}

/// Two things cannot both be all that stdout holds.
pub(crate) fn check_print(print: &Print) -> Result<(), RunError> {
    let stdout = print.json.as_deref().is_some_and(|path| path.as_os_str() == "-");
    if stdout && !["text", "json"].contains(&print.format.as_str()) {
        let line = format!(
            "--json - and --format {} both write to stdout; give --json a file, or leave one out",
            print.format
        );
        return Err(RunError::new(ErrorKind::Usage, line));
    }
    Ok(())
}

/// Both for what several runs come to, which is `noun` and has a directory called `each` for each of them: one of its formats is of a
/// run alone.
///
/// # Errors
/// 2.
pub(crate) fn check_answer(print: &Print, noun: &str, each: &str) -> Result<(), RunError> {
    check_print(print)?;
    if print.format == "clients" {
        let line = format!(
            "--format clients is of a run, and this is {noun}; `weir report DIR/{each} --format clients` prints one's"
        );
        return Err(RunError::new(ErrorKind::Usage, line));
    }
    check_json(print)
}

/// Prints the report of a run as asked.
pub(crate) fn print(summary: &Summary, print: &Print, directory: &Path) -> Result<(), RunError> {
    let asked = AnswerOutput { format: &print.format, json: print.json.as_deref(), quiet: print.quiet };
    let directory = Some(directory.display().to_string());
    asked.print(None, &|format, text, out| {
        summary.write(format, &Text { directory: directory.clone(), ..text.clone() }, out)
    })
}

/// Prints what is not a single run's as asked. A text ends with the answer and the directory of its files: on a terminal its
/// first lines may be out of sight by then.
pub(crate) fn show(
    print: &Print,
    directory: &Path,
    answer: Option<String>,
    write: WriteAs<'_>,
) -> Result<(), RunError> {
    let asked = AnswerOutput { format: &print.format, json: print.json.as_deref(), quiet: print.quiet };
    let answer = answer.map_or_else(String::new, |line| format!("Answer: {line}\n"));
    asked.print(Some(format!("\n{answer}Files: {}\n", directory.display())), write)
}

/// How the answer to a question is printed.
pub(crate) struct AnswerOutput<'a> {
    /// What goes to stdout.
    pub(crate) format: &'a str,
    /// Where it goes as JSON as well; `-` for stdout, instead of the text.
    pub(crate) json: Option<&'a Path>,
    /// Whether text is left out.
    pub(crate) quiet: bool,
}

impl AnswerOutput<'_> {
    /// Prints it, and below a text this.
    pub(crate) fn print(&self, below: Option<String>, write: WriteAs<'_>) -> Result<(), RunError> {
        let bytes = |format: &str| {
            let mut bytes = Vec::new();
            write(format, &text(), &mut bytes).map_err(RunError::with(ErrorKind::Internal))?;
            Ok::<_, RunError>(bytes)
        };
        let mut format = self.format;
        match self.json {
            Some(path) if path.as_os_str() == "-" => format = "json",
            Some(path) => {
                let bytes = bytes("json")?;
                let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path);
                let mut file = file.map_err(|error| RunError::of_file(path, &error))?;
                file.write_all(&bytes).map_err(|error| RunError::of_file(path, &error))?;
            }
            None => {}
        }
        if self.quiet && format == "text" {
            return Ok(());
        }
        let mut out = bytes(format)?;
        if let Some(below) = below.filter(|_| format == "text") {
            out.extend_from_slice(below.as_bytes());
        }
        written(std::io::stdout().lock().write_all(&out))
    }
}

/// Text as it fits stdout.
pub(crate) fn text() -> Text {
    Text {
        width: width(),
        colour: std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none() && !is_dumb(),
        directory: None,
    }
}

/// Prints a line for a person on stderr. A closed terminal is no error: the run goes on.
///
/// A line may have words of a server or of another machine in it, and none of them steers the reader's terminal.
pub(crate) fn note(line: impl Display) {
    let line = line.to_string().replace(|it: char| it.is_control() && !"\n\t".contains(it), " ");
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// A reader that has closed the pipe has seen what it wanted.
pub(crate) fn written(result: std::io::Result<()>) -> Result<(), RunError> {
    match result {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(RunError::new(ErrorKind::Internal, format!("standard output: {error}")))
        }
        _ => Ok(()),
    }
}

/// Columns of the terminal; `COLUMNS`, then 100, into a pipe.
fn width() -> u16 {
    terminal_size::terminal_size()
        .map(|(width, _)| width.0)
        .or_else(|| std::env::var("COLUMNS").ok()?.parse().ok())
        .unwrap_or(100)
        .max(20)
}
