//! What a PID carries, by `stream_type` and descriptors (ISO/IEC 13818-1 table 2-34, ETSI EN 300 468, ARIB STD-B10).

use std::fmt;

/// The kind of an elementary stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Codec {
    /// MPEG-1 or MPEG-2 video.
    Mpeg2Video,
    /// MPEG-4 part 2 video.
    Mpeg4Video,
    /// H.264.
    H264,
    /// H.265.
    H265,
    /// H.266.
    H266,
    /// MPEG-1 or MPEG-2 audio, layers I to III.
    MpegAudio,
    /// AAC in ADTS.
    Aac,
    /// AAC in LATM/LOAS.
    AacLatm,
    /// AC-3 or E-AC-3.
    Ac3,
    /// DTS.
    Dts,
    /// Opus.
    Opus,
    /// Subtitles, captions or teletext.
    Subtitles,
    /// Private sections, data carousels, metadata.
    Data,
    /// Anything else.
    Other,
}

impl Codec {
    /// From `stream_type` and the descriptors of the elementary stream.
    pub fn new(stream_type: u8, descriptors: &[u8]) -> Self {
        match stream_type {
            0x01 | 0x02 => Self::Mpeg2Video,
            0x03 | 0x04 => Self::MpegAudio,
            0x0F => Self::Aac,
            0x10 => Self::Mpeg4Video,
            0x11 => Self::AacLatm,
            0x1B => Self::H264,
            0x24 => Self::H265,
            0x33 => Self::H266,
            0x81 | 0x87 => Self::Ac3,
            0x06 => Self::private(descriptors),
            0x05 | 0x0A..=0x0E | 0x14 | 0x15 | 0x86 => Self::Data,
            _ => Self::Other,
        }
    }

    /// PES private data says what it is by its descriptors alone.
    fn private(descriptors: &[u8]) -> Self {
        crate::psi::descriptors(descriptors)
            .find_map(|(tag, body)| match tag {
                0x05 => match body.get(..4)? {
                    b"AC-3" | b"EAC3" => Some(Self::Ac3),
                    b"DTS1" | b"DTS2" | b"DTS3" => Some(Self::Dts),
                    b"Opus" => Some(Self::Opus),
                    b"HEVC" => Some(Self::H265),
                    _ => None,
                },
                0x6A | 0x7A => Some(Self::Ac3),
                0x7B => Some(Self::Dts),
                // Teletext, subtitles, and ARIB's data_component_descriptor of captions.
                0x56 | 0x59 | 0xFD => Some(Self::Subtitles),
                _ => None,
            })
            .unwrap_or(Self::Other)
    }

    /// It is video.
    pub fn is_video(self) -> bool {
        matches!(self, Self::Mpeg2Video | Self::Mpeg4Video | Self::H264 | Self::H265 | Self::H266)
    }

    /// It is audio.
    pub fn is_audio(self) -> bool {
        matches!(self, Self::MpegAudio | Self::Aac | Self::AacLatm | Self::Ac3 | Self::Dts | Self::Opus)
    }

    /// Whether the beginning of a PES packet shows that decoding can begin there: an intra picture, or the sequence
    /// header or parameter sets that stand before one. Audio can be decoded from any frame on.
    pub(crate) fn begins(self, payload: &[u8]) -> bool {
        match self {
            Self::H264 => start_codes(payload).any(|byte| matches!(byte & 0x1F, 5 | 7)),
            Self::H265 => start_codes(payload).any(|byte| matches!(byte >> 1 & 0x3F, 16..=23 | 32 | 33)),
            Self::Mpeg2Video => start_codes(payload).any(|byte| byte == 0xB3),
            Self::Mpeg4Video => start_codes(payload).any(|byte| byte == 0xB0 || byte == 0xB6),
            _ => self.is_audio(),
        }
    }
}

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Mpeg2Video => "MPEG-2 video",
            Self::Mpeg4Video => "MPEG-4 video",
            Self::H264 => "H.264",
            Self::H265 => "H.265",
            Self::H266 => "H.266",
            Self::MpegAudio => "MPEG audio",
            Self::Aac => "AAC",
            Self::AacLatm => "AAC (LATM)",
            Self::Ac3 => "AC-3",
            Self::Dts => "DTS",
            Self::Opus => "Opus",
            Self::Subtitles => "subtitles",
            Self::Data => "data",
            Self::Other => "other",
        })
    }
}

/// The byte after each start code 00 00 01.
fn start_codes(bytes: &[u8]) -> impl Iterator<Item = u8> + '_ {
    bytes.windows(4).filter(|window| window[..3] == [0, 0, 1]).map(|window| window[3])
}
