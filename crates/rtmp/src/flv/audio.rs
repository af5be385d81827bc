//! The first bytes of an audio tag (FLV 10.1 section E.4.2.1; enhanced RTMP v2, "Enhanced Audio").

use super::modifier::{ModifierPrefix, MultitrackType};
use super::{Error, FourCc, Multitrack};
use std::fmt;

/// What the first bytes of an audio tag, the payload of an audio message, say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioTag {
    /// The codec; of the first track, if there are several.
    pub codec: AudioCodec,
    /// What the tag carries.
    pub packet_type: AudioPacketType,
    /// Several tracks in one tag.
    pub multitrack: Option<Multitrack>,
    /// The number of the first track; 0 where tracks are not numbered.
    pub track: u8,
    /// What a modifier adds to the message's timestamp, in nanoseconds.
    pub nanoseconds: u32,
    /// Where the codec's own bytes begin; in the first track, if there are several.
    pub payload_offset: usize,
}

/// The codec of an audio tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AudioCodec {
    /// One with a number of four bits: 0 and 3 PCM, 1 ADPCM, 4 to 6 Nellymoser, 7 and 8 G.711, 11 Speex, …
    Legacy(u8),
    /// One with a name. MP3 by its numbers 2 and 14 and AAC by 10 are [`FourCc::MP3`] and [`FourCc::AAC`] as well.
    FourCc(FourCc),
}

/// The codec's usual name, or that it is unknown.
impl fmt::Display for AudioCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::FourCc(name) => return name.describe(f),
            Self::Legacy(0 | 3) => "PCM",
            Self::Legacy(1) => "ADPCM",
            Self::Legacy(4..=6) => "Nellymoser",
            Self::Legacy(7) => "G.711 A-law",
            Self::Legacy(8) => "G.711 µ-law",
            Self::Legacy(11) => "Speex",
            Self::Legacy(number) => return write!(f, "unknown codec {number}"),
        };
        f.write_str(name)
    }
}

/// What an audio tag carries (E-RTMP v2, AudioPacketType).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AudioPacketType {
    /// The decoder's configuration (0).
    SequenceStart,
    /// Frames (1).
    CodedFrames,
    /// The end of the stream (2).
    SequenceEnd,
    /// Which channel is where (4).
    MultichannelConfig,
    /// A type that is reserved.
    Reserved(u8),
}

const MULTITRACK: MultitrackType = MultitrackType(5);

/// The sound format that says: see the rest of the header (E-RTMP v2).
const EXTENDED: u8 = 9;

impl AudioTag {
    /// Parses the beginning of an audio tag. Two bytes are enough for the old form.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let &first = bytes.first().ok_or(Error::Truncated { length: 0 })?;
        match first >> 4 {
            EXTENDED => Self::extended(bytes),
            format => Self::legacy(format, bytes),
        }
    }

    /// Whether it is the decoder's configuration.
    pub fn is_sequence_header(&self) -> bool {
        self.packet_type == AudioPacketType::SequenceStart
    }

    /// Whether it is a frame, or several.
    pub fn is_frame(&self) -> bool {
        self.packet_type == AudioPacketType::CodedFrames
    }

    fn legacy(format: u8, bytes: &[u8]) -> Result<Self, Error> {
        let mut tag = Self {
            codec: AudioCodec::Legacy(format),
            packet_type: AudioPacketType::CodedFrames,
            multitrack: None,
            track: 0,
            nanoseconds: 0,
            payload_offset: 1,
        };
        match format {
            2 | 14 => tag.codec = AudioCodec::FourCc(FourCc::MP3),
            10 => {
                tag.codec = AudioCodec::FourCc(FourCc::AAC);
                tag.packet_type = match bytes.get(1) {
                    None => return Err(Error::Truncated { length: bytes.len() }),
                    Some(0) => AudioPacketType::SequenceStart,
                    Some(1) => AudioPacketType::CodedFrames,
                    Some(&other) => AudioPacketType::Reserved(other),
                };
                tag.payload_offset = 2;
            }
            _ => {}
        }
        Ok(tag)
    }

    fn extended(bytes: &[u8]) -> Result<Self, Error> {
        let modified = ModifierPrefix::parse(bytes)?;
        let header = modified.tracks(bytes, MULTITRACK)?;
        Ok(Self {
            codec: AudioCodec::FourCc(header.codec),
            packet_type: match header.packet_type {
                0 => AudioPacketType::SequenceStart,
                1 => AudioPacketType::CodedFrames,
                2 => AudioPacketType::SequenceEnd,
                4 => AudioPacketType::MultichannelConfig,
                other => AudioPacketType::Reserved(other),
            },
            multitrack: header.multitrack,
            track: header.track,
            nanoseconds: modified.nanoseconds,
            payload_offset: header.len,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_aac_tag_has_a_packet_type() {
        let header = AudioTag::parse(&[0xAF, 0, 0x12, 0x10]).unwrap();
        assert!(header.is_sequence_header());
        let frame = AudioTag::parse(&[0xAF, 1, 0x21]).unwrap();
        assert_eq!((frame.codec, frame.payload_offset), (AudioCodec::FourCc(FourCc::AAC), 2));
        assert!(!frame.is_sequence_header());
        assert_eq!(AudioTag::parse(&[0xAF]), Err(Error::Truncated { length: 1 }));
    }

    #[test]
    fn an_mp3_tag_has_none() {
        let tag = AudioTag::parse(&[0x2F]).unwrap();
        assert_eq!((tag.codec, tag.payload_offset), (AudioCodec::FourCc(FourCc::MP3), 1));
    }

    #[test]
    fn a_named_codec_follows_the_first_byte() {
        let opus = AudioTag::parse(b"\x90OpusOpusHead").unwrap();
        assert_eq!((opus.codec, opus.payload_offset), (AudioCodec::FourCc(FourCc::OPUS), 5));
        assert!(opus.is_sequence_header() && !opus.is_frame());
        assert!(AudioTag::parse(b"\x91Opus..").unwrap().is_frame());
        let channels = AudioTag::parse(b"\x94Opus\x01\x02").unwrap();
        assert_eq!(channels.packet_type, AudioPacketType::MultichannelConfig);
    }

    #[test]
    fn several_tracks_are_told_by_the_first() {
        let tag = AudioTag::parse(b"\x95\x11mp4a\x03\0\0\x01.").unwrap();
        assert_eq!((tag.multitrack, tag.track, tag.payload_offset), (Some(Multitrack::ManyTracks), 3, 10));
    }
}
