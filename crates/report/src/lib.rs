#![doc = include_str!("../README.md")]

mod account;
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
mod table;

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
mod report;
mod restarts;
mod schemas;
mod servers;
mod startup_map;
mod text;

pub use crate::capacity::lines::{capacity_line, load_line};
pub use crate::capacity_headline::capacity_shortfall;
pub use crate::codec::{CodecComparison, CodecSubject, EncodingTimes};
pub use crate::compare::COMPARISON_FORMATS;
pub use crate::fragment::{Fragment, fragments, page_script, page_style};
pub use crate::headline::shortfall;
pub use crate::quote::quote;
pub use crate::report::Report;
pub use crate::saving::{SavingComparison, SavingFigures, SavingTimes};
pub use crate::schemas::{DEFINITIONS, SCHEMAS, published_schema, schema};
pub use crate::series::lines::series_line;
pub use crate::stream::{Circumstances, StreamCheck};
pub use crate::sweep::lines::sweep_line;
pub use crate::text::Text;

/// The names of all formats.
pub const FORMATS: [&str; 7] = ["text", "markdown", "json", "csv", "clients", "junit", "html"];
