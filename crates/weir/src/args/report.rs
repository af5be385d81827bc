//! `weir report`.

use super::Print;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// `weir report`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Report {
    /// A run directory
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
    #[command(flatten)]
    pub(crate) print: Print,
    /// Also write summary.json and the reports into the run directory again
    #[arg(long)]
    pub(crate) write: bool,
}
