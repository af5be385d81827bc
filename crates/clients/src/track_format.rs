//! What a track of a stream is, as its viewers were told: in one form for all protocols.

use crate::timeline::Track;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use weir_media::{PictureCodec, SoundFormat, aac_format};
use weir_rtmp::flv::{AudioCodec, AudioTag, FourCc, VideoCodec, VideoTag};

/// Tracks that are kept of a workload: renditions of a stream are a dozen at the most, and a peer may invent more.
pub const MOST_TRACKS: usize = 16;

/// The longest name of a codec or profile, in characters: those that weir knows have no more than 40.
const LONGEST: usize = 60;

/// What a track of a stream is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
pub struct TrackFormat {
    /// Pictures or sound.
    pub kind: Track,
    /// The codec's usual name, or one that is unknown as the peer names it: ``unknown codec `xyz1` ``.
    pub codec: String,
    /// Profile and level of pictures, `High, level 3.1`; the kind of AAC, `LC`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
    /// Width and height of pictures, in pixels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<(u32, u32)>,
    /// Samples of sound a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sample_rate: Option<u32>,
    /// Channels of sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u8>,
}

impl TrackFormat {
    /// A track of which only the codec is known.
    pub(crate) fn new(kind: Track, codec: impl fmt::Display) -> Self {
        let codec = codec.to_string().chars().filter(|sign| !sign.is_control()).take(LONGEST).collect();
        Self { kind, codec, profile: None, size: None, sample_rate: None, channels: None }
    }

    /// Pictures whose sequence parameter set is in one of these NAL units, if it is.
    pub(crate) fn with_units<'a>(self, codec: PictureCodec, units: impl Iterator<Item = &'a [u8]>) -> Self {
        match units.take(MOST_UNITS).find_map(|unit| codec.format(unit)) {
            Some(format) => Self { profile: Some(format.profile), size: Some(format.size), ..self },
            None => self,
        }
    }

    pub(crate) fn with_sound(self, format: Option<SoundFormat>) -> Self {
        match format {
            Some(SoundFormat { profile, sample_rate, channels }) => {
                Self { profile: Some(profile), sample_rate: Some(sample_rate), channels, ..self }
            }
            None => self,
        }
    }

    /// The pictures of an FLV tag: by the decoder's configuration, or by what stands in front of a picture.
    pub(crate) fn of_video(tag: &VideoTag, head: &[u8]) -> Self {
        let format = Self::new(Track::Video, tag.codec);
        let payload = head.get(tag.payload_offset..).unwrap_or_default();
        let codec = match tag.codec {
            VideoCodec::FourCc(FourCc::AVC) => PictureCodec::H264,
            VideoCodec::FourCc(FourCc::HEVC) => PictureCodec::H265,
            _ => return format,
        };
        if tag.multitrack.is_some() {
            return format;
        }
        if !tag.is_sequence_header() {
            return format.with_units(codec, weir_media::units(payload, weir_media::Framing::LengthPrefixed));
        }
        match codec.format_of_record(payload) {
            Some(known) => Self { profile: Some(known.profile), size: Some(known.size), ..format },
            None => format,
        }
    }

    /// The sound of an FLV tag.
    pub(crate) fn of_audio(tag: &AudioTag, head: &[u8]) -> Self {
        let format = Self::new(Track::Audio, tag.codec);
        let is_aac = tag.codec == AudioCodec::FourCc(FourCc::AAC) && tag.multitrack.is_none();
        if is_aac && tag.is_sequence_header() {
            format.with_sound(aac_format(head.get(tag.payload_offset..).unwrap_or_default()))
        } else {
            format
        }
    }

    /// Whether it may be what a viewer was told, and not what another weir made up: it is short, and a line.
    pub fn is_brief(&self) -> bool {
        let is_word = |text: &str| text.chars().count() <= LONGEST && !text.contains(char::is_control);
        is_word(&self.codec) && self.profile.as_deref().is_none_or(is_word)
    }
}

/// NAL units that are looked at for parameter sets.
const MOST_UNITS: usize = 16;

/// `H.264 High, level 3.1, 1280x720`, or `AAC LC, 48 kHz, 2 channels`.
impl fmt::Display for TrackFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.codec)?;
        if let Some(profile) = &self.profile {
            write!(f, " {profile}")?;
        }
        if let Some((width, height)) = self.size {
            write!(f, ", {width}x{height}")?;
        }
        if let Some(rate) = self.sample_rate {
            write!(f, ", {} kHz", f64::from(rate) / 1e3)?;
        }
        match self.channels {
            Some(1) => f.write_str(", 1 channel"),
            Some(channels) => write!(f, ", {channels} channels"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPS: &[u8] = &[
        0x67, 0x64, 0, 0x1F, 0xAC, 0xD9, 0x40, 0x50, 5, 0xBB, 1, 0x10, 0, 0, 3, 0, 0x10, 0, 0, 3, 3, 0x20,
        0xF1, 0x83, 0x19, 0x60,
    ];

    fn video(body: &[u8]) -> String {
        TrackFormat::of_video(&VideoTag::parse(body).unwrap(), body).to_string()
    }

    fn audio(body: &[u8]) -> String {
        TrackFormat::of_audio(&AudioTag::parse(body).unwrap(), body).to_string()
    }

    #[test]
    fn a_track_is_told_with_what_is_known_of_it() {
        let mut header = Vec::new();
        let mut record = Vec::new();
        assert!(weir_media::append_decoder_configuration(&[SPS], &[&[0x68, 0xCE]], &mut record));
        weir_rtmp::flv::avc_sequence_header(&record, &mut header);
        assert_eq!(video(&header), "H.264 High, level 3.1, 1280x720");
        // In front of a picture.
        let mut frame = vec![0x17, 1, 0, 0, 0, 0, 0, 0, SPS.len() as u8];
        frame.extend_from_slice(SPS);
        assert_eq!(video(&frame), "H.264 High, level 3.1, 1280x720");
        assert_eq!(video(&[0x17, 1, 0, 0, 0, 0, 0, 0, 1, 0x65]), "H.264");
        assert_eq!(video(b"\x90av01\x81"), "AV1");
        assert_eq!(audio(&[0xAF, 0, 0x11, 0x90]), "AAC LC, 48 kHz, 2 channels");
        assert_eq!(audio(&[0xAF, 0, 0x12, 0x08]), "AAC LC, 44.1 kHz, 1 channel");
        assert_eq!(audio(&[0x7F, 0]), "G.711 A-law");
    }

    #[test]
    fn what_a_peer_names_is_shown_without_what_a_terminal_would_do_with_it() {
        assert_eq!(video(b"\x90xyz1"), "unknown codec `xyz1`");
        let named = TrackFormat::new(Track::Video, "\x1b[2J".to_owned() + &"x".repeat(1_000));
        assert!(named.is_brief() && named.codec.starts_with("[2Jxxx"), "{}", named.codec);
        let long = TrackFormat { codec: "x".repeat(1_000), ..named };
        assert!(!long.is_brief());
    }
}
