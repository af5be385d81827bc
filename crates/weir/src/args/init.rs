//! `weir init`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// `weir init`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Init {
    /// What to play, or to publish to if it cannot be played, as `weir play` and `weir publish` take it
    #[arg(value_name = "URL")]
    pub(crate) url: String,
    /// The file to write; - for stdout
    #[arg(short, long, value_name = "FILE", default_value = "scenario.yaml", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,
    /// Write publishers, of a URL that can be played as well
    #[arg(long)]
    pub(crate) publish: bool,
}
