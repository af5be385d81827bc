//! The first bytes of a video tag (FLV 10.1 section E.4.3.1; enhanced RTMP v1 and v2, "Enhanced Video").

use super::modifier::{ModifierPrefix, MultitrackType};
use super::{Error, FourCc, Multitrack};
use std::fmt;

/// What the first bytes of a video tag, the payload of a video message, say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VideoTag {
    /// The codec; of the first track, if there are several.
    pub codec: VideoCodec,
    /// Whether decoding can begin here.
    pub frame_type: FrameType,
    /// What the tag carries.
    pub packet_type: VideoPacketType,
    /// Several tracks in one tag.
    pub multitrack: Option<Multitrack>,
    /// The number of the first track; 0 where tracks are not numbered.
    pub track: u8,
    /// What to add to the message's timestamp for the time to show the frame, in milliseconds.
    pub composition_time: i32,
    /// What a modifier adds to that, in nanoseconds.
    pub nanoseconds: u32,
    /// Where the codec's own bytes begin; in the first track, if there are several.
    pub payload_offset: usize,
}

/// The codec of a video tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VideoCodec {
    /// One with a number of four bits: 2 Sorenson H.263, 3 Screen, 4 and 5 VP6, 6 Screen 2.
    Legacy(u8),
    /// One with a name. H.264 by its number 7 is [`FourCc::AVC`] as well; H.265 by 12, which was never agreed on but
    /// is in use, is [`FourCc::HEVC`].
    FourCc(FourCc),
    /// None is named, in a command to the player that has the new form.
    Unnamed,
}

/// The codec's usual name, or that it is unknown.
impl fmt::Display for VideoCodec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::FourCc(name) => name.describe(f),
            Self::Legacy(2) => f.write_str("Sorenson H.263"),
            Self::Legacy(3) => f.write_str("Screen video"),
            Self::Legacy(4) => f.write_str("VP6"),
            Self::Legacy(5) => f.write_str("VP6 with alpha"),
            Self::Legacy(6) => f.write_str("Screen video 2"),
            Self::Legacy(number) => write!(f, "unknown codec {number}"),
            Self::Unnamed => f.write_str("unknown codec"),
        }
    }
}

/// Whether decoding can begin at a frame (FLV 10.1 section E.4.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameType {
    /// It can (1).
    Key,
    /// It cannot (2).
    Inter,
    /// It cannot, and no other frame needs this one (3, H.263).
    DisposableInter,
    /// It can; the server made it (4).
    GeneratedKey,
    /// It is no frame but a command to the player (5).
    Command,
    /// A type that is reserved.
    Reserved(u8),
}

/// What a video tag carries (E-RTMP v2, VideoPacketType).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VideoPacketType {
    /// The decoder's configuration (0).
    SequenceStart,
    /// A frame (1).
    CodedFrames,
    /// The end of the stream (2).
    SequenceEnd,
    /// A frame without a composition time, which is 0 (3).
    CodedFramesX,
    /// Metadata of the video, such as HDR (4).
    Metadata,
    /// The decoder's configuration as MPEG-2 TS carries it (5).
    Mpeg2TsSequenceStart,
    /// A type that is reserved.
    Reserved(u8),
}

const METADATA: u8 = 4;
const MULTITRACK: MultitrackType = MultitrackType(6);

impl VideoTag {
    /// Parses the beginning of a video tag. Five bytes are enough for the old form, eight for E-RTMP v1.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let &first = bytes.first().ok_or(Error::Truncated { length: 0 })?;
        if first & 0x80 != 0 { Self::extended(first, bytes) } else { Self::legacy(first, bytes) }
    }

    /// Whether decoding can begin at this frame.
    pub fn is_keyframe(&self) -> bool {
        matches!(self.frame_type, FrameType::Key | FrameType::GeneratedKey)
            && matches!(self.packet_type, VideoPacketType::CodedFrames | VideoPacketType::CodedFramesX)
    }

    /// Whether it is the decoder's configuration.
    pub fn is_sequence_header(&self) -> bool {
        matches!(self.packet_type, VideoPacketType::SequenceStart | VideoPacketType::Mpeg2TsSequenceStart)
    }

    /// Whether it is a frame.
    pub fn is_frame(&self) -> bool {
        self.frame_type != FrameType::Command
            && matches!(self.packet_type, VideoPacketType::CodedFrames | VideoPacketType::CodedFramesX)
    }

    fn legacy(first: u8, bytes: &[u8]) -> Result<Self, Error> {
        let codec = match first & 0x0F {
            7 => VideoCodec::FourCc(FourCc::AVC),
            12 => VideoCodec::FourCc(FourCc::HEVC),
            other => VideoCodec::Legacy(other),
        };
        let mut tag = Self {
            codec,
            frame_type: FrameType::from_id(first >> 4),
            packet_type: VideoPacketType::CodedFrames,
            multitrack: None,
            track: 0,
            composition_time: 0,
            nanoseconds: 0,
            payload_offset: 1,
        };
        if matches!(codec, VideoCodec::FourCc(_)) && tag.frame_type != FrameType::Command {
            // AVCPacketType and CompositionTime (section E.4.3.1).
            let &[_, packet_type, c2, c1, c0, ..] = bytes else {
                return Err(Error::Truncated { length: bytes.len() });
            };
            tag.packet_type = match packet_type {
                0 => VideoPacketType::SequenceStart,
                1 => VideoPacketType::CodedFrames,
                2 => VideoPacketType::SequenceEnd,
                other => VideoPacketType::Reserved(other),
            };
            tag.composition_time = signed_24([c2, c1, c0]);
            tag.payload_offset = 5;
        }
        Ok(tag)
    }

    fn extended(first: u8, bytes: &[u8]) -> Result<Self, Error> {
        let frame_type = FrameType::from_id(first >> 4 & 0x07);
        let modified = ModifierPrefix::parse(bytes)?;
        if frame_type == FrameType::Command && modified.packet_type != METADATA {
            return Ok(Self {
                codec: VideoCodec::Unnamed,
                frame_type,
                packet_type: VideoPacketType::from_id(modified.packet_type),
                multitrack: None,
                track: 0,
                composition_time: 0,
                nanoseconds: modified.nanoseconds,
                payload_offset: modified.len,
            });
        }
        let header = modified.tracks(bytes, MULTITRACK)?;
        let packet_type = VideoPacketType::from_id(header.packet_type);
        let mut tag = Self {
            codec: VideoCodec::FourCc(header.codec),
            frame_type,
            packet_type,
            multitrack: header.multitrack,
            track: header.track,
            composition_time: 0,
            nanoseconds: modified.nanoseconds,
            payload_offset: header.len,
        };
        let composed = matches!(header.codec, FourCc::AVC | FourCc::HEVC);
        if composed && packet_type == VideoPacketType::CodedFrames && frame_type != FrameType::Command {
            let time = bytes[header.len..].first_chunk().ok_or(Error::Truncated { length: bytes.len() })?;
            tag.composition_time = signed_24(*time);
            tag.payload_offset += 3;
        }
        Ok(tag)
    }
}

impl VideoPacketType {
    fn from_id(id: u8) -> Self {
        match id {
            0 => Self::SequenceStart,
            1 => Self::CodedFrames,
            2 => Self::SequenceEnd,
            3 => Self::CodedFramesX,
            METADATA => Self::Metadata,
            5 => Self::Mpeg2TsSequenceStart,
            other => Self::Reserved(other),
        }
    }
}

impl FrameType {
    fn from_id(id: u8) -> Self {
        match id {
            1 => Self::Key,
            2 => Self::Inter,
            3 => Self::DisposableInter,
            4 => Self::GeneratedKey,
            5 => Self::Command,
            other => Self::Reserved(other),
        }
    }
}

fn signed_24([high, middle, low]: [u8; 3]) -> i32 {
    i32::from_be_bytes([high, middle, low, 0]) >> 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_avc_tag_has_a_packet_type_and_a_composition_time() {
        let tag = VideoTag::parse(&[0x27, 1, 0xFF, 0xFF, 0xD8, 0]).unwrap();
        assert_eq!(tag.codec, VideoCodec::FourCc(FourCc::AVC));
        assert_eq!((tag.composition_time, tag.payload_offset), (-40, 5));
        assert!(tag.is_frame() && !tag.is_keyframe());
        assert!(VideoTag::parse(&[0x17, 1, 0, 0, 0]).unwrap().is_keyframe());
    }

    #[test]
    fn a_codec_has_its_usual_name_or_is_unknown_by_its_own() {
        let name = |bytes: &[u8]| VideoTag::parse(bytes).unwrap().codec.to_string();
        assert_eq!(name(&[0x17, 0, 0, 0, 0]), "H.264");
        assert_eq!(name(b"\x90av01"), "AV1");
        assert_eq!(name(b"\x90xyz1"), "unknown codec `xyz1`");
        // What a peer says is shown without what a terminal would do with it.
        assert_eq!(name(b"\x90\x1b[2J"), "unknown codec `\\x1b[2J`");
        assert_eq!((name(&[0x14, 0]), name(&[0x19, 0])), ("VP6".to_owned(), "unknown codec 9".to_owned()));
    }

    #[test]
    fn a_sequence_header_is_no_keyframe() {
        for bytes in [&[0x17, 0, 0, 0, 0][..], b"\x90hvc1", b"\x95hvc1"] {
            let tag = VideoTag::parse(bytes).unwrap();
            assert!(tag.is_sequence_header() && !tag.is_keyframe(), "{tag:?}");
        }
    }

    #[test]
    fn a_named_codec_has_a_composition_time_only_where_it_reorders() {
        let hevc = VideoTag::parse(b"\x91hvc1\0\0\x28..").unwrap();
        assert_eq!((hevc.composition_time, hevc.payload_offset), (40, 8));
        let hevc_without = VideoTag::parse(b"\x93hvc1..").unwrap();
        assert_eq!((hevc_without.composition_time, hevc_without.payload_offset), (0, 5));
        let av1 = VideoTag::parse(b"\x91av01..").unwrap();
        assert_eq!((av1.composition_time, av1.payload_offset), (0, 5));
        assert!(hevc.is_keyframe() && hevc_without.is_keyframe() && av1.is_keyframe());
    }

    #[test]
    fn a_modifier_stands_before_the_codec() {
        let tag = VideoTag::parse(b"\x97\x02\x00\x03\xE8\x01av01..").unwrap();
        assert_eq!((tag.nanoseconds, tag.payload_offset), (1000, 10));
        assert_eq!(tag.packet_type, VideoPacketType::CodedFrames);
    }

    #[test]
    fn several_tracks_are_told_by_the_first() {
        let one = VideoTag::parse(b"\x96\x01avc1\x07\0\0\x01..").unwrap();
        assert_eq!((one.multitrack, one.track, one.composition_time), (Some(Multitrack::OneTrack), 7, 1));
        let many = VideoTag::parse(b"\xA6\x23vp09\x01\0\0\x02..").unwrap();
        assert_eq!((many.multitrack, many.track), (Some(Multitrack::ManyTracksManyCodecs), 1));
        assert_eq!((many.frame_type, many.payload_offset), (FrameType::Inter, 10));
        assert_eq!(VideoTag::parse(b"\x96\x06avc1\0"), Err(Error::NestedMultitrack));
    }

    #[test]
    fn a_tag_cut_inside_its_header_is_an_error() {
        for whole in [&[0x17, 1, 0, 0, 0][..], b"\x91hvc1\0\0\x28", b"\x97\x02\0\x03\xE8\x01av01"] {
            assert!(VideoTag::parse(whole).is_ok());
            for length in 0..whole.len() {
                assert_eq!(VideoTag::parse(&whole[..length]), Err(Error::Truncated { length }));
            }
        }
    }
}
