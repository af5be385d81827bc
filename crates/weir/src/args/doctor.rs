//! `weir doctor`.

use clap::Args;

/// `weir doctor`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Doctor {
    /// Look at the limits only, measure nothing
    #[arg(long)]
    pub(crate) no_load: bool,
    /// Say how many machines like this one a load needs, and what runs out first, by what its clients cost here in some
    /// seconds: 'rtmp://host/live/a 50000 at 2mbps'
    #[arg(long = "for", value_name = "PLAN", conflicts_with_all = ["no_load", "most"])]
    pub(crate) plan: Option<String>,
    /// As root: write the settings and limits that this machine lacks; without it they are only shown
    #[arg(long)]
    pub(crate) fix: bool,
    /// Highest number of clients to try
    #[arg(long, value_name = "N", default_value_t = 8_000, value_parser = clap::value_parser!(u32).range(100..))]
    pub(crate) most: u32,
}
