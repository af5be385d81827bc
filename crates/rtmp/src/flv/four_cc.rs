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
    /// Opus.
    pub const OPUS: Self = Self(*b"Opus");
    /// AAC.
    pub const AAC: Self = Self(*b"mp4a");
    /// MP3.
    pub const MP3: Self = Self(*b".mp3");
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
