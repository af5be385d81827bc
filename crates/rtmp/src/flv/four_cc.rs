//! The four characters that name a codec in E-FLV.

use std::fmt;

/// A codec's name (enhanced RTMP v1 "Defining Additional Video Codecs", v2 "Enhanced Audio").
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FourCc(pub [u8; 4]);

impl FourCc {
    /// H.264.
    pub const AVC: Self = Self(*b"avc1");
    /// H.265.
    pub const HEVC: Self = Self(*b"hvc1");
    /// VP8.
    pub const VP8: Self = Self(*b"vp08");
    /// VP9.
    pub const VP9: Self = Self(*b"vp09");
    /// AV1.
    pub const AV1: Self = Self(*b"av01");
    /// Opus.
    pub const OPUS: Self = Self(*b"Opus");
    /// AAC.
    pub const AAC: Self = Self(*b"mp4a");
    /// MP3.
    pub const MP3: Self = Self(*b".mp3");

    /// The codec's usual name; `None` of one that Enhanced RTMP does not list.
    pub fn name(self) -> Option<&'static str> {
        Some(match &self.0 {
            b"avc1" => "H.264",
            b"hvc1" => "H.265",
            b"vvc1" => "H.266",
            b"av01" => "AV1",
            b"vp08" => "VP8",
            b"vp09" => "VP9",
            b"mp4a" => "AAC",
            b"Opus" => "Opus",
            b"ac-3" => "AC-3",
            b"ec-3" => "E-AC-3",
            b"fLaC" => "FLAC",
            b".mp3" => "MP3",
            _ => return None,
        })
    }

    /// Its usual name, or that it is unknown, with its four characters.
    pub(super) fn describe(self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "unknown codec `{self}`"),
        }
    }
}

impl fmt::Display for FourCc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.escape_ascii())
    }
}

impl fmt::Debug for FourCc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
