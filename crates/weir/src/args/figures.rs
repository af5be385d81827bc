//! `weir figures`.

use clap::Args;

/// `weir figures`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Figures {
    /// Only figures in whose names or meanings all of these words are [default: all]
    #[arg(value_name = "WORD")]
    pub(crate) words: Vec<String>,
}
