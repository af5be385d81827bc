//! What is printed at the end.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// What is printed at the end.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct Print {
    /// Where the summary goes as JSON; - for stdout, instead of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// What is printed at the end
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = weir_report::FORMATS)]
    pub(crate) format: String,
    /// Print errors only; the artefacts are written all the same
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
