//! `weir completions`.

use clap::Args;
use clap_complete::Shell;

/// `weir completions`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}
