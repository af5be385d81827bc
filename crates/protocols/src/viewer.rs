//! What all viewers of media have: how each one reads, and the modelled player.

use crate::given::Given;
use clap::Args;
use std::time::Duration;
use weir_clients::{PlayOptions, WorkloadError};
use weir_metrics::parse_duration;

/// Options of viewers.
#[derive(Args)]
#[command(next_help_heading = "Viewers")]
pub(crate) struct Viewer {
    /// One viewer in N is a witness, which reads at every event and gives latency and drift; the others, the crowd, read in
    /// large batches, so that thousands fit on one machine
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    witness_every: u32,
    /// Media that a modelled player buffers before it starts
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    buffer: Duration,
}

/// The options of a workload's viewers.
pub(crate) fn options(shared: PlayOptions, given: &Given) -> Result<PlayOptions, WorkloadError> {
    let Viewer { witness_every, buffer } = given.read()?;
    Ok(PlayOptions { witness_every, playout_buffer: buffer, ..shared })
}

/// The media that a modelled player buffers before it starts, of a workload with these options.
pub fn buffer(given: &Given) -> Option<Duration> {
    given.read::<Viewer>().ok().map(|viewer| viewer.buffer)
}

/// One viewer for each URL.
pub(crate) fn one(_: &Given) -> u32 {
    1
}
