//! A finished run as text, Markdown, JSON, CSV, JUnit and HTML.
//!
//! Everything is made from a [`Summary`]: nothing here reads a run directory, a clock or a terminal, and
//! nothing names a protocol. A [`Format`] writes one form; [`by_name`] finds it. [`StreamCheck`] and
//! [`CodecComparison`] are the values beside it: a stored transport stream, and two encodings, as text and as JSON; a
//! series of runs, a search for a capacity and a sweep have all formats ([`Answer`]), a
//! comparison of runs and their history those for people and JSON.
//!
//! ```
//! use weir_report::{FORMATS, by_name};
//! assert!(FORMATS.iter().all(|name| by_name(name).is_some()));
//! assert!(by_name("pdf").is_none());
//! ```

mod account;
mod answer;
mod capacity;
mod capacity_headline;
mod clients_csv;
mod codec;
mod compare;
mod digest;
mod document;
mod faster;
mod fragment;
mod history;
mod machines;
mod measured;
mod names;
mod quantity;
mod quote;
mod saving;
mod series;
mod stages;
mod stream;
mod stream_page;
mod surroundings;
mod sweep;

mod channels;
mod clients;
mod csv;
mod glance;
mod growth;
mod headline;
mod heat_map;
mod html;
mod ingest;
mod intervals;
mod json;
mod junit;
mod markdown;
mod picture;
mod plot;
mod plots;
mod remedy;
mod servers;
mod startup_map;
mod text;

pub use crate::answer::Answer;
pub use crate::capacity::lines::{capacity_line, load_line};
pub use crate::capacity_headline::capacity_shortfall;
pub use crate::clients_csv::Clients;
pub use crate::codec::{CodecComparison, CodecSubject, EncodingTimes};
pub use crate::compare::COMPARISON_FORMATS;
pub use crate::csv::Csv;
pub use crate::fragment::{Fragment, fragments, page_script, page_style};
pub use crate::headline::shortfall;
pub use crate::html::Html;
pub use crate::json::{Json, schema};
pub use crate::junit::Junit;
pub use crate::markdown::Markdown;
pub use crate::quote::quote;
pub use crate::saving::{SavingComparison, SavingFigures, SavingTimes};
pub use crate::stream::{Circumstances, StreamCheck};
pub use crate::sweep::lines::sweep_line;
pub use crate::text::Text;

use std::io;
use weir_engine::summary::Summary;

/// One form of a report.
pub trait Format {
    /// Its name on the command line: one of [`FORMATS`].
    fn name(&self) -> &'static str;

    /// What its file's name ends in, without the dot.
    fn extension(&self) -> &'static str;

    /// Writes the whole report.
    ///
    /// # Errors
    /// `out` does not take it.
    fn write(&self, summary: &Summary, out: &mut dyn io::Write) -> io::Result<()>;
}

/// The names of all formats.
pub const FORMATS: [&str; 7] = ["text", "markdown", "json", "csv", "clients", "junit", "html"];

/// The format of this name; text is 80 columns wide and without colour, as for a file.
pub fn by_name(name: &str) -> Option<Box<dyn Format>> {
    Some(match name {
        "text" => Box::new(Text::default()),
        "markdown" => Box::new(Markdown),
        "json" => Box::new(Json),
        "csv" => Box::new(Csv),
        "clients" => Box::new(Clients),
        "junit" => Box::new(Junit),
        "html" => Box::new(Html),
        _ => return None,
    })
}
