//! What is found out from several runs: one writer for all formats of a series, a search, a sweep, a comparison and a history.
//! It knows none of them.

use crate::document::Document;
use crate::picture::Picture;
use crate::text::Text;
use crate::{html, markdown};
use serde::Serialize;
use std::io;

/// A finished answer, which can say itself.
pub(crate) trait Answer: Serialize {
    /// What an error calls it.
    const NOUN: &'static str;

    /// All that it says, in sections.
    fn document(&self) -> Document;

    /// What its page is of: the id of what was run.
    fn subject(&self) -> String;

    /// The pictures of its page.
    fn pictures(&self) -> Vec<Picture> {
        Vec::new()
    }

    /// What is said of all of them together.
    fn pictures_note(&self) -> &'static str {
        ""
    }

    /// Its rows as CSV.
    ///
    /// # Errors
    /// `out` does not take it, or it has no such format.
    fn write_csv(&self, _out: &mut dyn io::Write) -> io::Result<()> {
        Err(no_format::<Self>("csv"))
    }

    /// Its thresholds as JUnit's test cases.
    ///
    /// # Errors
    /// As of [`Answer::write_csv`].
    fn write_junit(&self, _out: &mut dyn io::Write) -> io::Result<()> {
        Err(no_format::<Self>("junit"))
    }
}

/// Writes an answer in the format of this name; as text in the manner of `text`.
///
/// # Errors
/// `out` does not take it, or there is no such format.
pub(crate) fn write<A: Answer>(
    answer: &A,
    format: &str,
    text: &Text,
    out: &mut dyn io::Write,
) -> io::Result<()> {
    match format {
        "text" => text.write_document(&answer.document(), out),
        "markdown" => markdown::write_document(&answer.document(), out),
        "html" => {
            let (document, pictures) = (answer.document(), answer.pictures());
            html::write_document(&answer.subject(), document, pictures, answer.pictures_note(), out)
        }
        "json" => {
            serde_json::to_writer_pretty(&mut *out, answer)?;
            out.write_all(b"\n")
        }
        "csv" => answer.write_csv(out),
        "junit" => answer.write_junit(out),
        other => Err(no_format::<A>(other)),
    }
}

fn no_format<A: Answer + ?Sized>(format: &str) -> io::Error {
    io::Error::other(format!("{} has no format '{format}'; each of its runs has", A::NOUN))
}
