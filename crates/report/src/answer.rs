//! What is found out from several runs: one writer for all formats of a series, a search, a sweep, a comparison and a history.
//! It knows none of them.

use crate::document::Document;
use crate::picture::Picture;
use crate::text::Text;
use crate::{html, json, markdown};
use serde::Serialize;
use std::io;

/// What is found out from several runs: a series, a search, a sweep, a comparison, a history.
pub trait Answer {
    /// Writes it in the format of this name, one of [`crate::FORMATS`] or, of a comparison and a history, of
    /// [`crate::COMPARISON_FORMATS`]; as text in the manner of `text`.
    ///
    /// # Errors
    /// `out` does not take it, or there is no such format.
    fn write(&self, format: &str, text: &Text, out: &mut dyn io::Write) -> io::Result<()>;
}

/// An answer's parts, from which each format is made.
pub(crate) trait Findings: Serialize {
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
    /// As of [`Findings::write_csv`].
    fn write_junit(&self, _out: &mut dyn io::Write) -> io::Result<()> {
        Err(no_format::<Self>("junit"))
    }
}

impl<A: Findings> Answer for A {
    fn write(&self, format: &str, text: &Text, out: &mut dyn io::Write) -> io::Result<()> {
        match format {
            "text" => text.write_document(&self.document(), out),
            "markdown" => markdown::write_document(&self.document(), out),
            "html" => {
                let (document, pictures) = (self.document(), self.pictures());
                html::write_document(&self.subject(), document, pictures, self.pictures_note(), out)
            }
            "json" => json::write(self, out),
            "csv" => self.write_csv(out),
            "junit" => self.write_junit(out),
            other => Err(no_format::<A>(other)),
        }
    }
}

fn no_format<A: Findings + ?Sized>(format: &str) -> io::Error {
    io::Error::other(format!("{} has no format '{format}'; each of its runs has", A::NOUN))
}
