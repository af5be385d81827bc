//! `weir doctor`.

use clap::Args;

/// `weir doctor`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Doctor {
    /// Look at the limits only, measure nothing
    #[arg(long)]
    pub(crate) no_load: bool,
    /// Highest number of clients to try
    #[arg(long, value_name = "N", default_value_t = 8_000, value_parser = clap::value_parser!(u32).range(100..))]
    pub(crate) most: u32,
}
