//! What all viewers of media have: how each one reads, and the modelled player.

use crate::comeback;
use crate::given::Given;
use clap::Args;
use std::time::Duration;
use weir_clients::{Decoders, PlayOptions, WorkloadError};
use weir_metrics::parse_duration;

/// Options of viewers.
#[derive(Args)]
#[command(next_help_heading = "Viewers")]
pub(crate) struct Viewer {
    /// One viewer in N is a witness, which reads at every event and gives latency and drift; the others, the crowd, read in
    /// large batches, so that thousands fit on one machine
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    witness_every: u32,
    /// Hand what N witnesses at a time receive to ffmpeg, if it is in PATH, and count what it decodes; without N one [default with
    /// --verify: 1]
    #[arg(long, value_name = "N", num_args = 0..=1, require_equals = true, default_missing_value = "1", value_parser = clap::value_parser!(u32).range(0..=16))]
    decode: Option<u32>,
    /// Media that a modelled player buffers before it starts
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = parse_duration)]
    buffer: Duration,
}

/// The options of a workload's viewers.
pub(crate) fn options(shared: PlayOptions, given: &Given) -> Result<PlayOptions, WorkloadError> {
    let returns = comeback::returns(given)?;
    let Viewer { witness_every, decode, buffer } = given.read()?;
    let at_once = decode.unwrap_or(0);
    let decoders = (at_once > 0).then(|| Decoders::new(at_once));
    Ok(PlayOptions { witness_every, decoders, playout_buffer: buffer, returns, ..shared })
}

/// Whether viewers with these options are decoded.
pub fn are_decoded(given: &Given) -> bool {
    given.read::<Viewer>().is_ok_and(|viewer| viewer.decode.unwrap_or(0) > 0)
}

/// The media that a modelled player buffers before it starts, of a workload with these options.
pub fn buffer(given: &Given) -> Option<Duration> {
    given.read::<Viewer>().ok().map(|viewer| viewer.buffer)
}

/// One viewer for each URL.
pub(crate) fn one(_: &Given) -> u32 {
    1
}
