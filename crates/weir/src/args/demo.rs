//! `weir demo`.

use super::RunOptions;
use clap::Args;

/// `weir demo`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Demo {
    #[command(flatten)]
    pub(crate) run: RunOptions,
}
