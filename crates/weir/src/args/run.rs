//! `weir run`.

use super::RunOptions;
use super::values::setting;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use weir_engine::scenario::Span;

/// `weir run`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Run {
    /// The scenario file (YAML; `weir schema scenario` prints its schema)
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Replace HOST:PORT in every URL of the scenario. The file's `watch` stays unless --watch is given; its `prometheus` and
    /// `node_exporter`, which are about another machine, are left out
    #[arg(long, value_name = "HOST:PORT", help_heading = "Scenario")]
    pub(crate) target: Option<String>,
    /// Clients, instead of those that the scenario says, of its one workload that plays, or publishes if none plays
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), help_heading = "Scenario")]
    pub(crate) clients: Option<u32>,
    /// Time to hold them, instead of each `duration` and of each stage's `hold`; 0 for until Ctrl-C
    #[arg(short, long, value_name = "TIME", help_heading = "Scenario")]
    pub(crate) duration: Option<Span>,
    /// Any other key of the scenario, as if it stood in the file: seed=3, workloads.0.bitrate=2mbps, workloads.NAME.clients=5;
    /// repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = setting, help_heading = "Scenario")]
    pub(crate) set: Vec<(String, String)>,
    /// Instead of `ingest`: leave the messages to another consumer, and ask what came of them: http://HOST:PORT/csp/mqtt/rest of
    /// an IRIS gateway, or sql:postgres://user@host/database#TABLE (password: save_password_file, or PGPASSWORD)
    #[arg(long, value_name = "URL", help_heading = "Scenario")]
    pub(crate) probe: Option<String>,
    /// Check the scenario and print what it would do, without asking any server
    #[arg(long, help_heading = "Scenario")]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}
