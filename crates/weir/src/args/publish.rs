//! `weir publish`.

use super::{Load, RunOptions};
use crate::options::{OptionsOf, Publishes};
use clap::{Args, ValueHint};
use std::path::PathBuf;
use weir_engine::plan::republish::Republish;

/// `weir publish`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Publish {
    /// Where to publish; several get the same stream. `weir help urls` lists the schemes
    ///
    /// For example rtmp://host:1935/app/stream, whip+http://host/whip/stream, mqtt://host/topic/{seq}
    #[arg(required_unless_present = "urls_file", value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// File with a URL a line, for each client its own: signed ones, tokens; -c is their number by default
    #[arg(long = "urls", value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Load")]
    pub(crate) urls_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) load: Load,
    /// Stop and come back: every:60s, or every:60s,pause:1s for how long a publisher is away; `recovery` of viewers in the same
    /// scenario says how long they were without frames
    #[arg(long, value_name = "TIME", help_heading = "Load", conflicts_with = "life")]
    pub(crate) republish: Option<Republish>,
    /// RTMP: play each stream with one viewer of weir's own, and fail if its pictures or its sound never come; a server takes
    /// a codec that it cannot handle, and shows nothing of it. One at a time is decoded, if there is an ffmpeg
    #[arg(long, conflicts_with = "stages", help_heading = "Load")]
    pub(crate) verify: bool,
    #[command(flatten)]
    pub(crate) options: OptionsOf<Publishes>,
    #[command(flatten)]
    pub(crate) run: RunOptions,
}
