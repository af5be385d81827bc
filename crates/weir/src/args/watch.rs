//! `weir watch`.

use super::Machine;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use weir_engine::scenario::Span;

/// `weir watch`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Watch {
    /// The server of this name; with + at its end all servers of it
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Vec<String>,
    /// This process
    #[arg(long, value_name = "PID")]
    pub(crate) pid: Vec<u32>,
    /// The process that listens on this TCP port
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Vec<u16>,
    /// PEM file of certificates to trust
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) cacert: Option<PathBuf>,
    /// Take any certificate of --prometheus and --node-exporter
    #[arg(long, conflicts_with = "cacert")]
    pub(crate) insecure: bool,
    /// For how long [default: until Ctrl-C]
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// One line of JSON a second instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) machine: Machine,
}
