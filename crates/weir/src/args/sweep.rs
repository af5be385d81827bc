//! `weir sweep`.

use super::values::setting;
use super::{RunOptions, SearchOptions};
use clap::{Args, ValueHint};
use std::path::PathBuf;

/// `weir sweep`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Sweep {
    /// The scenario file with `variants` or a `matrix`
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// What is found out about each variant, instead of one run's figures [default: what the scenario says at `find`]
    #[arg(long, value_name = "WHAT", value_parser = ["capacity"], help_heading = "Scenario")]
    pub(crate) find: Option<String>,
    /// Without a search: the figure that says which variant is best, such as startup.p99, cpu.nginx or bitrate [default: the
    /// CPU that what is watched needs for each client; the median startup if nothing is]
    #[arg(long, value_name = "FIGURE", help_heading = "Scenario")]
    pub(crate) by: Option<String>,
    /// Replace HOST:PORT in every URL of the scenario, as `weir run` does
    #[arg(long, value_name = "HOST:PORT", help_heading = "Scenario")]
    pub(crate) target: Option<String>,
    /// Any other key of the scenario, as if it stood in the file: repeat=4, order=interleaved, workloads.NAME.clients=5;
    /// repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting, help_heading = "Scenario")]
    pub(crate) set: Vec<(String, String)>,
    /// Check the scenario and print what would be done with it, without asking any server
    #[arg(long, help_heading = "Scenario")]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) search: SearchOptions,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}
