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
    /// AC-3.
    Ac3,
    /// E-AC-3.
    EAc3,
    /// AC-4.
    Ac4,
    /// DTS.
    Dts,
    /// Opus.
    Opus,
    /// Teletext of ETSI EN 300 472, subtitles among its pages included.
    Teletext,
    /// Subtitles of ETSI EN 300 743.
    DvbSubtitles,
    /// Captions of ARIB STD-B24.
    Captions,
    /// Subtitles of any other kind.
    Subtitles,
    /// Cues of ANSI/SCTE 35.
    Scte35,
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
            0x81 => Self::Ac3,
            0x87 => Self::EAc3,
            0x8A => Self::Dts,
            0x06 => Self::private(descriptors),
            0x05 | 0x0A..=0x0E | 0x14 | 0x15 => Self::Data,
            0x86 => Self::Scte35,
            _ => Self::registered(descriptors).unwrap_or(Self::Other),
        }
    }

    /// PES private data says what it is by its descriptors alone: those of ETSI EN 300 468 table 12, of SMPTE's register,
    /// and ARIB's data_component_descriptor, whose components 0x0008 and 0x0012 are captions (STD-B10 part 2, annex J).
    fn private(descriptors: &[u8]) -> Self {
        let of = |(tag, body): (u8, &[u8])| match (tag, body) {
            (0x6A, _) => Some(Self::Ac3),
            (0x7A, _) => Some(Self::EAc3),
            (0x7B, _) => Some(Self::Dts),
            // Extensions (table 109): DTS-HD, AC-4, TTML; 0x80 is what Opus in MPEG-TS uses.
            (0x7F, [0x0E, ..]) => Some(Self::Dts),
            (0x7F, [0x15, ..]) => Some(Self::Ac4),
            (0x7F, [0x20, ..]) => Some(Self::Subtitles),
            (0x7F, [0x80, ..]) => Some(Self::Opus),
            (0x56 | 0x46, _) => Some(Self::Teletext),
            (0x59, _) => Some(Self::DvbSubtitles),
            (0xFD, [0x00, 0x08 | 0x12, ..]) => Some(Self::Captions),
            _ => None,
        };
        let by_descriptor = crate::psi::descriptors(descriptors).find_map(of);
        by_descriptor.or_else(|| Self::registered(descriptors)).unwrap_or(Self::Other)
    }

    /// By the format_identifier of a registration_descriptor (ISO/IEC 13818-1 section 2.6.8).
    fn registered(descriptors: &[u8]) -> Option<Self> {
        crate::psi::descriptors(descriptors).filter(|(tag, _)| *tag == 0x05).find_map(|(_, body)| match body
            .get(
            ..4,
        )? {
            b"AC-3" => Some(Self::Ac3),
            b"EAC3" => Some(Self::EAc3),
            b"AC-4" => Some(Self::Ac4),
            b"DTS1" | b"DTS2" | b"DTS3" => Some(Self::Dts),
            b"Opus" => Some(Self::Opus),
            b"HEVC" => Some(Self::H265),
            b"VVC " => Some(Self::H266),
            b"CUEI" => Some(Self::Scte35),
            b"ID3 " | b"KLVA" => Some(Self::Data),
            _ => None,
        })
    }

    /// It is video.
    pub fn is_video(self) -> bool {
        matches!(self, Self::Mpeg2Video | Self::Mpeg4Video | Self::H264 | Self::H265 | Self::H266)
    }

    /// It is audio.
    pub fn is_audio(self) -> bool {
        matches!(
            self,
            Self::MpegAudio
                | Self::Aac
                | Self::AacLatm
                | Self::Ac3
                | Self::EAc3
                | Self::Ac4
                | Self::Dts
                | Self::Opus
        )
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

    /// Whether a decoder that has seen nothing before can begin with a PES packet, by what the beginning of its payload shows:
    /// H.264 and H.265 need parameter sets, and no indicator says that they are there. Some encoders send them with each picture:
    /// a slice that needs other pictures (`nal_unit_type` 1 of H.264, 0 to 9 of H.265) is no beginning, unless a recovery point
    /// message says so (ITU-T H.264, section D.2.8).
    pub(crate) fn begins_anew(self, payload: &[u8], random_access: bool) -> bool {
        let has = |is_it: fn(u8) -> bool| start_codes(payload).any(is_it);
        match self {
            Self::H264 => {
                has(|byte| byte & 0x1F == 7) && (!has(|byte| byte & 0x1F == 1) || can_recover(payload))
            }
            Self::H265 => has(|byte| byte >> 1 & 0x3F == 33) && !has(|byte| byte >> 1 & 0x3F <= 9),
            _ => random_access || self.begins(payload),
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
            Self::EAc3 => "E-AC-3",
            Self::Ac4 => "AC-4",
            Self::Dts => "DTS",
            Self::Opus => "Opus",
            Self::Teletext => "teletext",
            Self::DvbSubtitles => "DVB subtitles",
            Self::Captions => "ARIB captions",
            Self::Subtitles => "subtitles",
            Self::Scte35 => "SCTE-35",
            Self::Data => "data",
            Self::Other => "other",
        })
    }
}

/// The byte after each start code 00 00 01.
fn start_codes(bytes: &[u8]) -> impl Iterator<Item = u8> + '_ {
    bytes.windows(4).filter(|window| window[..3] == [0, 0, 1]).map(|window| window[3])
}

/// Whether there is a recovery point message of H.264 (`payloadType` 6) at the beginning of a NAL unit of messages.
fn can_recover(bytes: &[u8]) -> bool {
    bytes.windows(5).any(|window| window[..3] == [0, 0, 1] && window[3] & 0x1F == 6 && window[4] == 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameter_sets_with_each_picture_make_no_beginnings() {
        let unit = |types: &[&[u8]]| {
            types.iter().flat_map(|it| [&[0, 0, 1], *it, &[0x80; 4]].concat()).collect::<Vec<_>>()
        };
        for (codec, types, begins) in [
            (Codec::H264, &[&[0x67][..], &[0x68], &[0x65]][..], true),
            (Codec::H264, &[&[0x67], &[0x68], &[0x06, 5]], true),
            (Codec::H264, &[&[0x67], &[0x68], &[0x41]], false),
            (Codec::H264, &[&[0x67], &[0x68], &[0x06, 1], &[0x41]], false),
            // An open group of pictures, and intra refresh.
            (Codec::H264, &[&[0x67], &[0x68], &[0x06, 6], &[0x41]], true),
            (Codec::H264, &[&[0x65]], false),
            (Codec::H265, &[&[0x40], &[0x42], &[0x44], &[0x2A]], true),
            (Codec::H265, &[&[0x40], &[0x42], &[0x44], &[0x02]], false),
        ] {
            assert_eq!(codec.begins_anew(&unit(types), true), begins, "{codec} {types:02x?}");
        }
    }

    /// Names as ffprobe has them, by what it goes by: stream type, descriptor, registration.
    #[test]
    fn a_component_is_named_by_its_type_its_descriptors_or_its_registration() {
        for (stream_type, descriptors, name) in [
            (0x81, &[][..], "AC-3"),
            (0x87, &[], "E-AC-3"),
            (0x8A, &[], "DTS"),
            (0x86, &[], "SCTE-35"),
            (0x06, &[0x6A, 1, 0], "AC-3"),
            (0x06, &[0x7A, 1, 0], "E-AC-3"),
            (0x06, &[0x7B, 1, 0], "DTS"),
            (0x06, &[0x7F, 2, 0x15, 0], "AC-4"),
            (0x06, &[0x56, 5, b'd', b'e', b'u', 9, 0], "teletext"),
            (0x06, &[0x0A, 0, 0x59, 8, b'd', b'e', b'u', 0x10, 0, 1, 0, 1], "DVB subtitles"),
            (0x06, &[0x52, 1, 0x30, 0xFD, 3, 0, 8, 0x3D], "ARIB captions"),
            (0x06, b"\x05\x04EAC3", "E-AC-3"),
            (0x06, b"\x05\x04AC-4", "AC-4"),
            (0x06, b"\x05\x04DTS1", "DTS"),
            // Types for users of their own (table 2-34): only the registration says whose.
            (0xC0, b"\x05\x04AC-3", "AC-3"),
            (0xC0, &[], "other"),
            (0x06, &[], "other"),
        ] {
            assert_eq!(
                Codec::new(stream_type, descriptors).to_string(),
                name,
                "{stream_type:#04x} {descriptors:?}"
            );
        }
    }
}
