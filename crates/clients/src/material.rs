//! What publishers publish: made or read once, shared by all, played by each from its own start.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use weir_media::{
    AudioCodec, AudioConfig, AudioSettings, Clip, ClipSettings, Frame, FrameRate, LoopedFile, MediaFile,
    PictureCodec, Source, SourceError, Synthetic, SyntheticError, Track, VideoSettings,
};
use weir_metrics::BitRate;

/// Frames among which the first keyframe is looked for: sound may be in front of it.
const FIRST_FRAMES: usize = 256;

/// What to publish.
#[derive(Clone, Debug, PartialEq)]
pub enum MaterialOptions {
    /// Made H.264, and AAC or Opus.
    Synthetic {
        /// Of the whole stream, sound included, without the protocol's overhead.
        bit_rate: BitRate,
        /// Frames a second.
        frame_rate: FrameRate,
        /// From keyframe to keyframe.
        gop: Duration,
        /// Width and height in pixels.
        resolution: (u16, u16),
        /// Of the sound alone; `None` for no sound.
        audio_bit_rate: Option<BitRate>,
        /// How the sound is coded; by WebRTC always Opus.
        audio_codec: AudioCodec,
        /// Equal seeds give equal streams.
        seed: u64,
    },
    /// An MP4, Matroska, FLV or IVF file, in a loop.
    File(PathBuf),
}

impl Default for MaterialOptions {
    /// 1 Mbit/s, 25 frames a second, a keyframe every 2 s, 640x360, sound of 64 kbit/s.
    fn default() -> Self {
        Self::Synthetic {
            bit_rate: BitRate::from_kbps(1_000),
            frame_rate: FrameRate::new(25, 1).expect("25 is a frame rate"),
            gop: Duration::from_secs(2),
            resolution: (640, 360),
            audio_bit_rate: Some(BitRate::from_kbps(64)),
            audio_codec: AudioCodec::Aac,
            seed: 1,
        }
    }
}

impl MaterialOptions {
    /// The same with Opus, the sound of WebRTC. A file keeps its own.
    pub(crate) fn with_opus(&self) -> Self {
        let mut options = self.clone();
        if let Self::Synthetic { audio_codec, .. } = &mut options {
            *audio_codec = AudioCodec::Opus;
        }
        options
    }
}

/// Material that cannot be had; says why and what would do.
#[derive(Debug, thiserror::Error)]
pub enum MaterialError {
    /// It cannot be made as asked.
    #[error("the synthetic stream cannot be made: {0}")]
    Synthetic(#[from] SyntheticError),
    /// The whole stream is to have no more bits than its sound.
    #[error(
        "a bit rate of {} leaves nothing for the pictures beside sound of {}; raise the first or lower the second",
        whole.exact(),
        audio.exact()
    )]
    NothingForPictures {
        /// The whole.
        whole: BitRate,
        /// The sound.
        audio: BitRate,
    },
    /// What the sound leaves is not enough for the pictures.
    #[error(
        "a bit rate of {}, sound included, is too little for these pictures; ask for {} or a smaller picture",
        whole.exact(),
        minimum.exact()
    )]
    TooLittle {
        /// The whole that was asked for.
        whole: BitRate,
        /// The lowest whole that can be made, in whole kbit/s.
        minimum: BitRate,
    },
    /// No picture of this size encodes to as many bytes as the bit rate asks for.
    #[error(
        "a bit rate of {}, sound included, is too much for these pictures; ask for {} or a larger picture",
        whole.exact(),
        maximum.exact()
    )]
    TooMuch {
        /// The whole that was asked for.
        whole: BitRate,
        /// The highest whole that can be made, in whole kbit/s.
        maximum: BitRate,
    },
    /// The file cannot be read.
    #[error(transparent)]
    File(#[from] SourceError),
    /// Nothing of the file goes over WebRTC, which has no AAC.
    #[error(
        "the file has no pictures, and its sound does not go over WebRTC: publish one with pictures, or by RTMP, RTSP or SRT"
    )]
    NoPictures,
}

/// Material that is ready: immutable, and shared.
#[derive(Clone, Debug)]
pub enum Material {
    /// It was made.
    Made(Arc<Clip>),
    /// It is a file.
    File(Arc<MediaFile>),
}

impl Material {
    /// Whether its pictures are shown in another order than they are decoded in.
    pub fn has_b_frames(&self) -> bool {
        matches!(self, Self::File(file) if file.has_b_frames())
    }

    /// Whether it has pictures: a file may have sound alone.
    pub fn has_pictures(&self) -> bool {
        match self {
            Self::Made(_) => true,
            Self::File(file) => file.picture_codec().is_some(),
        }
    }

    /// Makes or opens it: pictures of H.264.
    ///
    /// # Errors
    /// It cannot be had as asked for.
    pub fn prepare(options: &MaterialOptions, stamped: bool) -> Result<Self, MaterialError> {
        Self::prepare_of(options, stamped, &[PictureCodec::H264])
    }

    /// The same, of which a file may have pictures of any of these codecs. What is made is H.264.
    ///
    /// # Errors
    /// It cannot be had as asked for.
    pub fn prepare_of(
        options: &MaterialOptions,
        stamped: bool,
        codecs: &[PictureCodec],
    ) -> Result<Self, MaterialError> {
        match options {
            MaterialOptions::File(path) => Ok(Self::File(Arc::new(MediaFile::open_of(path, codecs)?))),
            &MaterialOptions::Synthetic {
                bit_rate,
                frame_rate,
                gop,
                resolution,
                audio_bit_rate,
                audio_codec: codec,
                seed,
            } => {
                let audio = audio_bit_rate.map_or(0, BitRate::whole_bps);
                let pictures = bit_rate.whole_bps().saturating_sub(audio);
                if pictures == 0 {
                    let audio = BitRate::from_bps(audio as f64);
                    return Err(MaterialError::NothingForPictures { whole: bit_rate, audio });
                }
                let settings = ClipSettings {
                    video: VideoSettings {
                        width: resolution.0,
                        height: resolution.1,
                        frame_rate,
                        gop_frames: (gop.as_secs_f64() * frame_rate.as_f64()).round().max(1.0) as u32,
                        bit_rate: BitRate::from_bps(pictures as f64),
                        stamped,
                        ..VideoSettings::default()
                    },
                    audio: audio_bit_rate.map(|bit_rate| AudioSettings {
                        codec,
                        bit_rate,
                        ..AudioSettings::default()
                    }),
                    seed,
                };
                let clip = Clip::prepare(&settings).map_err(|error| of_whole(error, bit_rate, audio))?;
                Ok(Self::Made(Arc::new(clip)))
            }
        }
    }

    /// The codec of its pictures; H.264 where it has none.
    pub fn picture_codec(&self) -> PictureCodec {
        match self {
            Self::Made(_) => PictureCodec::H264,
            Self::File(file) => file.picture_codec().unwrap_or(PictureCodec::H264),
        }
    }

    /// What is said of stamped pictures that can carry no clock stamp.
    pub(crate) fn unstamped(&self, stamped: bool) -> Option<String> {
        let codec = self.picture_codec();
        (stamped && codec != PictureCodec::H264).then(|| {
            let name = codec.name();
            format!("the file's pictures are {name}, which carry no clock stamp: viewers of them have no latency (H.264 does)")
        })
    }

    /// The decoder configuration record of its pictures: as the file has it, or as the first keyframe says it. `None` where neither does, or
    /// there are no pictures.
    pub(crate) fn picture_record(&self) -> Option<Vec<u8>> {
        let mut source = self.source();
        let config = source.video_config()?;
        let codec = config.codec;
        if !config.decoder_configuration.is_empty() {
            return Some(config.decoder_configuration.clone());
        }
        let mut frame = Frame::empty();
        for _ in 0..FIRST_FRAMES {
            source.next(&mut frame).ok()?;
            if frame.track == Track::Video && frame.keyframe {
                return codec.record_of(codec.units_of(&frame.payload));
            }
        }
        None
    }

    /// Its sound, if it has any.
    pub fn audio(&self) -> Option<AudioConfig> {
        self.source().audio_config().cloned()
    }

    /// Plays it from the start.
    pub fn source(&self) -> Box<dyn Source + Send> {
        match self {
            Self::Made(clip) => Box::new(Synthetic::new(clip.clone())),
            Self::File(file) => Box::new(LoopedFile::new(file.clone())),
        }
    }
}

/// An error about the pictures' rate, in terms of the whole that was asked for.
fn of_whole(error: SyntheticError, whole: BitRate, audio: u64) -> MaterialError {
    match error {
        SyntheticError::VideoRateTooLow { minimum, .. } => {
            let minimum = BitRate::from_kbps((minimum.whole_bps() + audio).div_ceil(1000));
            MaterialError::TooLittle { whole, minimum }
        }
        SyntheticError::VideoRateTooHigh { maximum, .. } => {
            let maximum = BitRate::from_kbps((maximum.whole_bps() + audio) / 1000);
            MaterialError::TooMuch { whole, maximum }
        }
        error => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_that_is_named_in_an_error_can_be_had() {
        let material = |bit_rate, frames, resolution| {
            let options = MaterialOptions::Synthetic {
                bit_rate,
                frame_rate: FrameRate::new(frames, 1).unwrap(),
                gop: Duration::from_secs(2),
                resolution,
                audio_bit_rate: Some(BitRate::from_kbps(64)),
                audio_codec: AudioCodec::Aac,
                seed: 1,
            };
            Material::prepare(&options, true)
        };
        let fast = |bit_rate| material(bit_rate, 1000, (640, 360));
        let Err(MaterialError::TooLittle { minimum, .. }) = fast(BitRate::from_kbps(500)) else {
            panic!("500 kbit/s is too little for 1,000 pictures a second");
        };
        assert_eq!(minimum.whole_bps() % 1000, 0, "people type it again");
        fast(minimum).unwrap();
        assert!(fast(BitRate::from_bps(minimum.bps() - 1_000.0)).is_err());
        let small = |bit_rate| material(bit_rate, 25, (128, 96));
        let Err(MaterialError::TooMuch { maximum, .. }) = small(BitRate::from_kbps(20_000)) else {
            panic!("20 Mbit/s is too much for so small pictures");
        };
        assert_eq!(maximum.whole_bps() % 1000, 0);
        small(maximum).unwrap();
    }

    #[test]
    fn material_that_cannot_be_had_says_what_would_do() {
        let nothing = MaterialOptions::Synthetic {
            bit_rate: BitRate::from_kbps(50),
            frame_rate: FrameRate::new(25, 1).unwrap(),
            gop: Duration::from_secs(2),
            resolution: (640, 360),
            audio_bit_rate: Some(BitRate::from_kbps(64)),
            audio_codec: AudioCodec::Aac,
            seed: 1,
        };
        let said = Material::prepare(&nothing, true).unwrap_err().to_string();
        assert!(said.contains("raise the first"), "{said}");
        let said = Material::prepare(&MaterialOptions::File("/no/such.flv".into()), true).unwrap_err();
        assert!(said.to_string().contains("/no/such.flv"), "{said}");
    }
}
