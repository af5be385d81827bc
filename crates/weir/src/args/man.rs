//! `weir man`.

use clap::{Args, ValueHint};
use std::path::PathBuf;

/// `weir man`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Man {
    /// Where weir.1, weir-play.1 and so on are written; made if it is not there
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) directory: PathBuf,
}
