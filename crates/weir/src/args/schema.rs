//! `weir schema`.

use clap::Args;

/// `weir schema`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Schema {
    /// Of what
    #[arg(value_parser = ["scenario", "summary", "check", "codec", "series", "capacity", "sweep", "compare", "history"])]
    pub(crate) what: String,
}
