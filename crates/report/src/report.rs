//! One writer for all formats of a run, a series, a search, a sweep, a comparison and a history.

use crate::document::Document;
use crate::glance::Glance;
use crate::picture::Picture;
use crate::text::Text;
use crate::{clients_csv, csv, html, json, junit, markdown};
use serde::Serialize;
use std::io;
use weir_engine::summary::Summary;

/// What is reported: a run, or what several runs came to.
pub trait Report {
    /// Writes it in the format of this name, one of [`crate::FORMATS`]; as text in the manner of `text`. A comparison and a history
    /// have [`crate::COMPARISON_FORMATS`] alone.
    ///
    /// # Errors
    /// `out` does not take it, or there is no such format.
    fn write(&self, format: &str, text: &Text, out: &mut dyn io::Write) -> io::Result<()>;
}

impl Report for Summary {
    fn write(&self, format: &str, text: &Text, out: &mut dyn io::Write) -> io::Result<()> {
        match format {
            "text" => text.write(self, out),
            "markdown" => markdown::write(self, out),
            "html" => html::write(self, out),
            "json" => json::write(self, out),
            "csv" => csv::write(self, out),
            "clients" => clients_csv::write(self, out),
            "junit" => junit::write(self, out),
            other => Err(io::Error::other(format!("there is no format '{other}'"))),
        }
    }
}

/// An answer's parts, from which each format is made.
pub(crate) trait Findings: Serialize {
    /// What an error calls it.
    const NOUN: &'static str;

    /// All that it says, in sections.
    fn document(&self) -> Document;

    /// What its page is of: the id of what was run.
    fn subject(&self) -> String;

    /// What a reader wants to know first, on cards at the top of its page.
    fn glances(&self) -> Vec<Glance> {
        Vec::new()
    }

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

impl<A: Findings> Report for A {
    fn write(&self, format: &str, text: &Text, out: &mut dyn io::Write) -> io::Result<()> {
        match format {
            "text" => text.write_document(&self.document(), out),
            "markdown" => markdown::write_document(&self.document(), out),
            "html" => {
                let (document, glances) = (self.document(), self.glances());
                let pictures = (self.pictures(), self.pictures_note());
                html::write_document(&self.subject(), document, glances, pictures, out)
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
