//! What a publisher draws its frames from, whether made or read.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::rate::FrameRate;
use crate::{Frame, PictureCodec};
use weir_metrics::BitRate;

/// An endless, ordered row of frames. Pacing is the reader's: a source knows the timeline, not the clock.
pub trait Source {
    /// The video track, if there is one.
    fn video_config(&self) -> Option<&VideoConfig>;

    /// The audio track, if there is one.
    fn audio_config(&self) -> Option<&AudioConfig>;

    /// Writes the next frame, in the order of decode times, over `frame`. The timeline starts at zero and
    /// goes on rising when the material starts again.
    ///
    /// # Errors
    ///
    /// [`FileFault::Read`] when a file can no longer be read. Made material does not fail.
    fn next(&mut self, frame: &mut Frame) -> Result<(), SourceError>;
}

/// What a receiver must know before the first picture.
#[derive(Debug, Clone, PartialEq)]
pub struct VideoConfig {
    /// How they are coded.
    pub codec: PictureCodec,
    /// Of H.264 AVCDecoderConfigurationRecord, the content of an `avcC` box (ISO/IEC 14496-15, clause 5.3.3.1); of H.265 that of `hvcC`
    /// (clause 8.3.3.1); of AV1 that of `av1C`, if the file has it. Of VP8 and VP9 nothing.
    pub decoder_configuration: Vec<u8>,
    /// Width and height, in pixels.
    pub resolution: Option<(u16, u16)>,
    /// Frames per second.
    pub frame_rate: Option<FrameRate>,
    /// The average over a GOP or over the file.
    pub bit_rate: Option<BitRate>,
}

impl VideoConfig {
    /// What the record has to be sent in front of keyframes: parameter sets as NAL units, or the OBUs of AV1.
    pub fn parameter_sets(&self) -> Vec<&[u8]> {
        self.codec.sets_of_record(&self.decoder_configuration)
    }
}

/// How sound is coded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum AudioCodec {
    /// AAC-LC (ISO/IEC 14496-3).
    #[default]
    Aac,
    /// Opus (RFC 6716), 20 ms a packet.
    Opus,
}

impl fmt::Display for AudioCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Aac => "AAC",
            Self::Opus => "Opus",
        })
    }
}

/// A text that names no codec of sound.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not an audio codec; write aac or opus")]
pub struct UnknownAudioCodec(pub String);

impl FromStr for AudioCodec {
    type Err = UnknownAudioCodec;

    fn from_str(text: &str) -> Result<Self, UnknownAudioCodec> {
        match text {
            "aac" => Ok(Self::Aac),
            "opus" => Ok(Self::Opus),
            other => Err(UnknownAudioCodec(other.to_owned())),
        }
    }
}

/// What a receiver must know before the first sound.
#[derive(Debug, Clone, PartialEq)]
pub struct AudioConfig {
    /// AAC or Opus.
    pub codec: AudioCodec,
    /// Of AAC, AudioSpecificConfig (ISO/IEC 14496-3, clause 1.6.2.1); of Opus nothing.
    pub specific_config: Vec<u8>,
    /// Samples per second.
    pub sample_rate: u32,
    /// Channels.
    pub channels: u8,
    /// The average.
    pub bit_rate: Option<BitRate>,
}

/// A file that gives no frames, and why.
#[derive(Debug, thiserror::Error)]
#[error("{}: {fault}", path.display())]
pub struct SourceError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    #[source]
    pub fault: FileFault,
}

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum FileFault {
    /// It cannot be opened or read; when it could before, it was changed or its disk failed.
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// It is neither MP4, Matroska, FLV nor IVF.
    #[error("neither MP4, Matroska, FLV nor IVF; convert it with ffmpeg -c copy")]
    Format,
    /// It is damaged, or written in a way that weir does not know.
    #[error("{0}; rewrite it with ffmpeg -c copy")]
    Malformed(String),
    /// It carries something else than what is published.
    #[error("{codec} is not supported; re-encode it with ffmpeg {remedy}")]
    Codec {
        /// The track and its codec, as the file names it: "video codec hvc1".
        codec: String,
        /// The arguments that make it H.264 or AAC.
        remedy: &'static str,
    },
    /// Its frames are laid out as weir does not read them.
    #[error("{layout} is not supported; rewrite it with ffmpeg {remedy}")]
    Layout {
        /// What it is.
        layout: &'static str,
        /// The arguments that make it readable.
        remedy: &'static str,
    },
    /// Its index would take more memory than a publisher should.
    #[error("{0} is more than is read; cut the file with ffmpeg -t 600 -c copy")]
    TooLarge(String),
    /// It has neither pictures nor sound in it.
    #[error("no frame of pictures or sound in it")]
    Empty,
}
