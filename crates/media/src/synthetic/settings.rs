//! What to make, and why it cannot be made.

use crate::{AudioCodec, FrameRate};
use weir_metrics::BitRate;

/// What a [`Clip`](crate::Clip) is made of.
#[derive(Debug, Clone, PartialEq)]
pub struct ClipSettings {
    /// The pictures.
    pub video: VideoSettings,
    /// The sound, if any.
    pub audio: Option<AudioSettings>,
    /// Equal settings with equal seeds give equal bytes; the seed changes the noise only.
    pub seed: u64,
}

/// The pictures of a [`Clip`](crate::Clip).
#[derive(Debug, Clone, PartialEq)]
pub struct VideoSettings {
    /// In pixels; even. The smallest picture is 128x96, or another shape of as many macroblocks.
    pub width: u16,
    /// In pixels; even.
    pub height: u16,
    /// Frames per second.
    pub frame_rate: FrameRate,
    /// Frames from one keyframe to the next, 1 or more.
    pub gop_frames: u32,
    /// The average over a GOP of all NAL units with their lengths, stamps included, parameter sets not.
    pub bit_rate: BitRate,
    /// How many times larger a keyframe is than another frame, within the sizes that are possible; 1 or more.
    pub keyframe_ratio: f64,
    /// Whether every frame has room for a [`Stamp`](crate::Stamp), whose bytes then count in the bit rate.
    pub stamped: bool,
}

/// The sound of a [`Clip`](crate::Clip): silent.
#[derive(Debug, Clone, PartialEq)]
pub struct AudioSettings {
    /// AAC-LC or Opus.
    pub codec: AudioCodec,
    /// Samples per second: of Opus 48000, of AAC one of 96000, 88200, 64000, 48000, 44100, 32000, 24000, 22050, 16000, 12000,
    /// 11025, 8000, 7350.
    pub sample_rate: u32,
    /// 1 or 2.
    pub channels: u8,
    /// The average, without container.
    pub bit_rate: BitRate,
}

/// 1280x720 at 30 frames per second and 2 Mbit/s, a keyframe every two seconds, sound of the default kind.
impl Default for ClipSettings {
    fn default() -> Self {
        Self { video: VideoSettings::default(), audio: Some(AudioSettings::default()), seed: 1 }
    }
}

impl Default for VideoSettings {
    fn default() -> Self {
        Self {
            width: 1280,
            height: 720,
            frame_rate: FrameRate::whole(30),
            gop_frames: 60,
            bit_rate: BitRate::from_kbps(2000),
            keyframe_ratio: 6.0,
            stamped: true,
        }
    }
}

/// AAC, stereo at 48 kHz and 128 kbit/s.
impl Default for AudioSettings {
    fn default() -> Self {
        Self { codec: AudioCodec::Aac, sample_rate: 48_000, channels: 2, bit_rate: BitRate::from_kbps(128) }
    }
}

/// Why a clip cannot be made as asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SyntheticError {
    /// Chroma has half the pixels of luma each way, and bars, block and noise need some room.
    #[error("a picture of {width}x{height} cannot be made; both must be even, and the smallest is 128x96")]
    Resolution {
        /// In pixels.
        width: u16,
        /// In pixels.
        height: u16,
    },
    /// There must be a keyframe.
    #[error("a GOP of 0 frames has no keyframe; ask for 1 or more")]
    EmptyGop,
    /// A whole GOP is kept in memory.
    #[error("a GOP of {bytes} bytes is too large to keep (limit {limit}); ask for a shorter one")]
    GopTooLarge {
        /// The GOP that was asked for.
        bytes: u64,
        /// The largest that is made.
        limit: u64,
    },
    /// The ratio of sizes is not a number of 1 or more.
    #[error("a keyframe {0} times as large as another frame cannot be made; ask for 1 or more")]
    KeyframeRatio(f64),
    /// Even the bare pictures and stamps weigh more.
    #[error("{} is too little for these pictures; ask for {} or a smaller picture", asked.exact(), minimum.exact())]
    VideoRateTooLow {
        /// The rate that was asked for.
        asked: BitRate,
        /// The lowest that can be made.
        minimum: BitRate,
    },
    /// Even uncompressed noise weighs less.
    #[error("{} is too much for these pictures; ask for {} or a larger picture", asked.exact(), maximum.exact())]
    VideoRateTooHigh {
        /// The rate that was asked for.
        asked: BitRate,
        /// The highest that can be made.
        maximum: BitRate,
    },
    /// No decoder is made for it: beyond level 6.2 (H.264, table A-1).
    #[error("no H.264 level allows this size, frame rate and bit rate together; lower one of them")]
    BeyondLevels,
    /// The codec has no such rate.
    #[error("{codec} has no sample rate of {asked}; {}", match codec {
        AudioCodec::Aac => "48000 and 44100 are usual",
        AudioCodec::Opus => "48000 is its only one",
    })]
    SampleRate {
        /// The codec that was asked for.
        codec: AudioCodec,
        /// The rate that was asked for.
        asked: u32,
    },
    /// Neither mono nor stereo.
    #[error("{0} channels cannot be made; ask for 1 or 2")]
    Channels(u8),
    /// Even silence weighs more, or no access unit may weigh as much.
    #[error("audio of {} cannot be made; ask for {} to {}", asked.exact(), minimum.exact(), maximum.exact())]
    AudioRate {
        /// The rate that was asked for.
        asked: BitRate,
        /// The lowest that can be made.
        minimum: BitRate,
        /// The highest that can be made.
        maximum: BitRate,
    },
}
