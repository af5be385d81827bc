//! `weir check`.

use super::values::packet_size;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use weir_engine::threshold::Threshold;
use weir_ts::PacketSize;

/// `weir check`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Check {
    /// A transport stream; - for stdin
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// What is asked of the stream, exit code 99 if it fails: 'ts.lost_packets == 0'; repeatable
    #[arg(long = "threshold", value_name = "EXPR")]
    pub(crate) thresholds: Vec<Threshold>,
    /// Bytes from one sync byte to the next: 188, 192 or 204 [default: found out]
    #[arg(long, value_name = "BYTES", value_parser = packet_size)]
    pub(crate) packet_size: Option<PacketSize>,
    /// Findings of each kind that are listed; the rest is counted only
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(..=10_000))]
    pub(crate) findings: u32,
    /// Where the result goes as JSON; - for stdout, instead of the text
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,
    /// Print errors only
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
