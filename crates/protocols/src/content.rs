//! What publishers of pictures and sound send.

use crate::comeback;
use crate::given::Given;
use crate::protocol::Output;
use clap::{Args, ValueHint};
use std::path::PathBuf;
use std::time::Duration;
use weir_clients::{AudioCodec, FrameRate, MaterialOptions, PublishOptions, WorkloadError};
use weir_metrics::{BitRate, parse_duration};
use weir_setting::PAYLOAD;

/// Options of publishers of pictures and sound.
#[derive(Args)]
#[command(next_help_heading = "What is published")]
pub(crate) struct Content {
    /// Bit rate, sound included
    #[arg(long, value_name = "BITRATE", default_value = "500kbps")]
    bitrate: BitRate,
    /// Audio bit rate, 0 for none
    #[arg(long, value_name = "BITRATE", default_value = "64kbps", value_parser = audio_bit_rate)]
    audio_bitrate: BitRate,
    /// Sound over RTMP: aac, or opus (Enhanced RTMP); by WebRTC it is Opus
    #[arg(long, value_name = "NAME", default_value = "aac")]
    audio_codec: AudioCodec,
    /// Frames a second: 25, 29.97 or 30000/1001
    #[arg(long, value_name = "N", default_value = "25")]
    fps: FrameRate,
    /// Time between keyframes
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = gop)]
    gop: Duration,
    /// Picture size
    #[arg(long, value_name = "WxH", default_value = "640x360", value_parser = size)]
    size: (u16, u16),
    /// Loop a file: MP4, Matroska or FLV; IVF by WHIP and RTSP, .ts by SRT
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["bitrate", "audio_bitrate", "audio_codec", "fps", "gop", "size"])]
    file: Option<PathBuf>,
}

/// Whether what is published carries the time at which it was sent.
#[derive(Args)]
#[command(next_help_heading = "What is published")]
pub(crate) struct Stamp {
    /// Leave the clock stamp out (an SEI message in every frame, a mark in every message): no latency can be measured
    #[arg(long)]
    no_stamp: bool,
}

impl Stamp {
    /// Whether these options ask for it.
    pub(crate) fn is_on(given: &Given) -> Result<bool, WorkloadError> {
        Ok(!given.read::<Self>()?.no_stamp)
    }
}

/// The options of a workload's publishers.
pub(crate) fn options(
    shared: PublishOptions,
    given: &Given,
    seed: u64,
) -> Result<PublishOptions, WorkloadError> {
    let returns = comeback::returns(given)?;
    let content: Content = given.read()?;
    let stamp = Stamp::is_on(given)?;
    Ok(PublishOptions { material: content.material(seed), stamp, returns, ..shared })
}

/// What each of them sends.
pub(crate) fn output(given: &Given, _: u64) -> Output {
    let Ok(content) = given.read::<Content>() else { return Output::default() };
    if content.file.is_some() {
        // Known when it has been read.
        return Output::default();
    }
    Output {
        bit_rate: Some(content.bitrate),
        frame_time: Some(1.0 / content.fps.as_f64()),
        sound: content.audio_bitrate.bps() > 0.0,
        ..Output::default()
    }
}

impl Content {
    fn material(self, seed: u64) -> MaterialOptions {
        if let Some(file) = self.file {
            return MaterialOptions::File(file);
        }
        let bits = |rate: BitRate| BitRate::from_bps(rate.bps().trunc());
        MaterialOptions::Synthetic {
            bit_rate: bits(self.bitrate),
            frame_rate: self.fps,
            gop: self.gop,
            resolution: self.size,
            audio_bit_rate: Some(self.audio_bitrate).filter(|rate| rate.bps() > 0.0).map(bits),
            audio_codec: self.audio_codec,
            seed,
        }
    }
}

fn audio_bit_rate(text: &str) -> Result<BitRate, weir_metrics::ParseUnitError> {
    if text == "0" { Ok(BitRate::from_bps(0.0)) } else { text.parse() }
}

fn gop(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Duration::ZERO) => {
            Err("a gop of 0s has no keyframe to begin with; give for example 2s".to_owned())
        }
        span => span.map_err(|error| error.to_string()),
    }
}

fn size(text: &str) -> Result<(u16, u16), String> {
    text.split_once('x')
        .and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)))
        .ok_or_else(|| {
            format!(
                "'{text}' is not a picture size; write for example 1280x720, and of messages {}",
                PAYLOAD.to("size:955")
            )
        })
}
