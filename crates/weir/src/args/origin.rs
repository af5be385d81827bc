//! `weir origin`.

use super::values::{Services, services};
use crate::listen::ListenOptions;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use weir_engine::scenario::{BitRateText, Span};
use weir_origin::Fault;

/// `weir origin`.
#[derive(Clone, Debug, Args)]
pub(crate) struct Origin {
    #[command(flatten)]
    pub(crate) listen: ListenOptions,
    /// --rtc: a TURN server that viewers are to use: all by WHEP, and ws://…?transport=tcp. It is reached over TCP, with
    /// ?transport=udp over UDP, with turns: over TLS. Others can read the command line, but not this variable of the
    /// environment
    #[arg(
        long,
        value_name = "turn:USER:PASSWORD@HOST[:PORT]",
        env = "WEIR_TURN",
        hide_env_values = true,
        requires = "rtc"
    )]
    pub(crate) turn: Option<String>,
    /// --http: made services, all GR or a number of each kind: 8, or GR:4,BS:3,CS:1 [default: 8, or none beside --file]
    #[arg(long, value_name = "N", value_parser = services, requires = "http")]
    pub(crate) services: Option<Services>,
    /// --http: constant bit rate of each made service, null packets included
    #[arg(long, value_name = "BITRATE", default_value = "15mbps")]
    pub(crate) bitrate: BitRateText,
    /// --http: a stored transport stream as a service, looped without a break; repeatable
    #[arg(long = "file", value_name = "FILE", value_hint = ValueHint::FilePath, requires = "http")]
    pub(crate) files: Vec<PathBuf>,
    /// --hls: a segment ends at the first keyframe from this duration on
    #[arg(long, value_name = "TIME", default_value = "2s", requires = "hls", help_heading = "HLS")]
    pub(crate) segment: Span,
    /// --hls: segments that a playlist names, or more until they have three target durations
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u16).range(1..=10_000), requires = "hls", help_heading = "HLS")]
    pub(crate) segments: u16,
    /// --hls: the longest part of a segment, for Low-Latency HLS: 200ms [default: no parts]
    #[arg(long, value_name = "TIME", requires = "hls", help_heading = "HLS")]
    pub(crate) part: Option<Span>,
    /// --hls: segments of fragmented MPEG-4 instead of MPEG-2 Transport Streams, with Opus as well as AAC
    #[arg(long, requires = "hls", help_heading = "HLS")]
    pub(crate) fmp4: bool,
    /// --hls: what segments and parts are encrypted with (AES-128), 32 hexadecimal digits; who asks for the key is told it
    #[arg(
        long,
        value_name = "HEX",
        requires = "hls",
        env = "WEIR_HLS_KEY",
        hide_env_values = true,
        help_heading = "HLS"
    )]
    pub(crate) hls_key: Option<String>,
    /// --srt: file whose first line is the passphrase that callers have to know [environment: the passphrase itself in
    /// WEIR_SRT_PASSPHRASE]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "srt")]
    pub(crate) srt_passphrase_file: Option<PathBuf>,
    /// Certificate chain (PEM): listen for RTMPS, HTTPS, WSS and MQTTS instead
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// The certificate's key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Worker threads
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256), help_heading = "How it serves")]
    pub(crate) workers: u16,
    /// Time for which packets to a viewer are merged into one write; 0s sends each at once [default: 350ms, 40ms of a tuner]
    #[arg(long, value_name = "TIME", help_heading = "How it serves")]
    pub(crate) merge: Option<Span>,
    /// Start viewers at the next keyframe instead of at the last one
    #[arg(long, help_heading = "How it serves")]
    pub(crate) no_gop_cache: bool,
    /// Media that a slow viewer may fall behind before it loses some [default: 10s, 2s of a tuner]
    #[arg(long, value_name = "TIME", help_heading = "How it serves")]
    pub(crate) queue: Option<Span>,
    /// Refuse viewers of a stream that has no publisher, instead of letting them wait
    #[arg(long, help_heading = "How it serves")]
    pub(crate) refuse_missing: bool,
    /// Publish what comes in to another server too: rtmp://host/app; repeatable
    #[arg(long, value_name = "URL")]
    pub(crate) forward: Vec<String>,
    /// A scripted fault, such as 'delay 80ms' or 'drop unit=every:100 viewer=3'; repeatable
    #[arg(long = "fault", value_name = "FAULT")]
    pub(crate) faults: Vec<Fault>,
    /// End a connection whose peer has not said what it wants, TLS included [default: 15s]
    #[arg(long, value_name = "TIME", help_heading = "How it serves")]
    pub(crate) request_timeout: Option<Span>,
    /// End a connection whose peer neither sends nor acknowledges anything [default: 10m]
    #[arg(long, value_name = "TIME", help_heading = "How it serves")]
    pub(crate) idle_timeout: Option<Span>,
    /// For how long [default: until Ctrl-C]
    #[arg(short, long, value_name = "TIME")]
    pub(crate) duration: Option<Span>,
    /// Name streams by their keys in what is printed; without it a number stands for each
    #[arg(long)]
    pub(crate) show_keys: bool,
    /// End when stdin ends, as it does when the process that started it is gone
    #[arg(long, hide = true)]
    pub(crate) until_stdin_ends: bool,
}
