//! What every run takes: what is watched and asked, and where it goes.

use super::values::{tag, watch_text};
use super::{AgentOptions, Machine, Print};
use crate::outlets::LiveOptions;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use weir_engine::checks::CheckName;
use weir_engine::scenario::Span;
use weir_engine::threshold::Threshold;

/// What every run takes.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "The run")]
pub(crate) struct RunOptions {
    /// The target's processes: name=nginx (name=nginx+ if several servers are meant), pid=123 or port=1935; repeatable
    #[arg(long, value_name = "WHAT", value_parser = watch_text, help_heading = "The target")]
    pub(crate) watch: Vec<String>,
    /// What is asked of the target, exit code 99 if it fails: 'startup.p99 < 1s'; repeatable
    #[arg(long = "threshold", value_name = "EXPR", help_heading = "What is asked")]
    pub(crate) thresholds: Vec<Threshold>,
    /// A threshold that ends the run as soon as it fails, exit code 108; repeatable
    #[arg(long, value_name = "EXPR", help_heading = "What is asked")]
    pub(crate) abort: Vec<Threshold>,
    /// Checks of the verdict whose reasons are waived, and shown as waived: steal,generator-pause; repeatable
    #[arg(long, value_name = "CHECKS", value_delimiter = ',', help_heading = "What is asked")]
    pub(crate) accept: Vec<CheckName>,
    /// Threads for viewers [default: half the cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=256))]
    pub(crate) shards: Option<u32>,
    /// A label that the run carries: site=lab; repeatable
    #[arg(long = "tag", value_name = "K=V", value_parser = tag)]
    pub(crate) tags: Vec<(String, String)>,
    /// Run directory, new or empty [default: weir-runs/NAME-TIME]
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "Output")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) print: Print,
    /// Show and write down the keys of RTMP streams, what stands behind the application in a URL; without it a number stands
    /// for each: rtmp://host/app/…1
    #[arg(long, help_heading = "Output")]
    pub(crate) show_keys: bool,
    /// No live view; plain lines, as into a pipe
    #[arg(long, help_heading = "Output")]
    pub(crate) no_tui: bool,
    /// A plain line every second instead of every five; twice (`-vv`): each client's dialogue with the server, too
    #[arg(short, long, action = clap::ArgAction::Count, help_heading = "Output")]
    pub(crate) verbose: u8,
    #[command(flatten)]
    pub(crate) live: LiveOptions,
    // Behind a flattened struct arguments stand under its heading, so it comes last.
    #[command(flatten)]
    pub(crate) machine: Machine,
    /// Time before the load in which the target's machine is read, so that increases can be shown
    /// [default: 3s with --prometheus or --node-exporter, otherwise none]
    #[arg(long, value_name = "TIME", help_heading = "The target")]
    pub(crate) base: Option<Span>,
    #[command(flatten)]
    pub(crate) agents: AgentOptions,
}
