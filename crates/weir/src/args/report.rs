//! `weir report`.

use super::Print;
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// `weir report`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Report {
    /// A run directory
    #[arg(value_name = "RUN", value_hint = ValueHint::DirPath, required_unless_present = "merge")]
    pub(crate) directory: Option<PathBuf>,
    /// Instead: the directories that the agents of one run have kept, as one run; for when their coordinator was lost
    #[arg(long, value_name = "RUN", value_hint = ValueHint::DirPath, num_args = 1.., conflicts_with_all = ["directory", "write"])]
    pub(crate) merge: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) print: Print,
    /// Also write summary.json and the reports into the run directory again
    #[arg(long)]
    pub(crate) write: bool,
}
