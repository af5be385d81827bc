//! `weir play`.

use super::{Load, RunOptions};
use crate::options::{OptionsOf, Plays};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use weir_engine::scenario::BitRateText;

/// `weir play`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Play {
    /// Where to play; of several, viewers take one after the other. `weir help urls` lists the schemes
    ///
    /// For example rtmp://host:1935/app/stream, ws://host:3333/app/stream, whep+http://host/whep/stream,
    /// http://host/x.ts, http://host/app/stream.flv, mirakurun+http://host:40772, mqtt://host/topic/#
    #[arg(required_unless_present = "urls_file", value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// File with a URL a line, for each client its own: signed ones, tokens; -c is their number by default
    #[arg(long = "urls", value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Load")]
    pub(crate) urls_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) load: Load,
    /// What the source sends to each viewer [default: read off the stream]
    #[arg(long, value_name = "BITRATE", help_heading = "Load")]
    pub(crate) expect: Option<BitRateText>,
    #[command(flatten)]
    pub(crate) options: OptionsOf<Plays>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}
