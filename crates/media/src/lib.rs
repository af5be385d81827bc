#![doc = include_str!("../README.md")]

mod aac;
mod bits;
mod elementary;
mod file;
mod frame;
mod h264;
mod nal;
mod noise;
mod obu;
mod opus;
mod rate;
mod record;
mod source;
mod stamp;
mod synthetic;
mod track_format;

pub use elementary::{
    adts_header, append_adts, append_annex_b, append_decoder_configuration, parameter_sets,
};
pub use file::{LoopedFile, MediaFile};
pub use frame::{Frame, Track};
pub use nal::{Framing, UnitType, Units, units};
pub use obu::append_obus;
pub use rate::{FrameRate, ParseFrameRateError};
pub use source::{AudioCodec, AudioConfig, FileFault, Source, SourceError, UnknownAudioCodec, VideoConfig};
pub use stamp::{
    ClockReading, Latency, LatencyClock, STAMP_LEN, STAMP_SEARCH_LEN, STAMP_UUID, Stamp, WallOffset,
};
pub use synthetic::{AudioSettings, Clip, ClipSettings, Synthetic, SyntheticError, VideoSettings};
pub use track_format::{PictureCodec, PictureFormat, SoundFormat, aac_format, adts_format};
