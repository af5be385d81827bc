//! `weir help`.

use clap::Args;

/// `weir help`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Help {
    /// A command, or one of the topics that `weir help` lists
    #[arg(value_name = "TOPIC")]
    pub(crate) topic: Option<String>,
}
