//! The encodings that the origin sends and takes by WebRTC, each with a number that a unit carries.

use weir_rtc::VideoCodec;
use weir_rtc::sdp::Format;

/// A codec of sound that browsers play.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SoundCodec {
    /// RFC 7587.
    Opus,
    /// RFC 3551 section 4.5.14.
    G711 { is_a_law: bool },
}

impl SoundCodec {
    const ALL: [Self; 3] = [Self::Opus, Self::G711 { is_a_law: false }, Self::G711 { is_a_law: true }];

    /// Those of [`Self::ALL`], the best first.
    pub(super) const NAMES: [&'static str; 3] = ["opus", "PCMU", "PCMA"];

    /// The codec of a format.
    pub(super) fn of(format: &Format) -> Option<Self> {
        let at = Self::NAMES.iter().position(|name| format.is(name))?;
        Some(Self::ALL[at])
    }
}

/// How many encodings a track may have.
pub(super) const MOST_ENCODINGS: usize = VideoCodec::ALL.len();

/// The number of a codec of pictures.
pub(super) fn of_pictures(codec: VideoCodec) -> u8 {
    VideoCodec::ALL.iter().position(|it| *it == codec).unwrap_or_default() as u8
}

/// The number of a codec of sound.
pub(super) fn of_sound(codec: SoundCodec) -> u8 {
    SoundCodec::ALL.iter().position(|it| *it == codec).unwrap_or_default() as u8
}

/// The number of a format.
pub(super) fn of_format(format: &Format) -> Option<u8> {
    VideoCodec::of(format).map(of_pictures).or_else(|| SoundCodec::of(format).map(of_sound))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_encoding_of_a_track_has_a_number_of_its_own() {
        let format = |name: &str| Format { name: name.to_owned(), ..Format::default() };
        let numbers =
            |names: &[&str]| -> Vec<_> { names.iter().map(|name| of_format(&format(name))).collect() };
        assert_eq!(numbers(&["VP8", "H264", "AV1", "VP9", "h265"]), [0, 1, 2, 3, 4].map(Some));
        assert_eq!(
            numbers(&["opus", "pcmu", "PCMA", "G722", "rtx"]),
            [Some(0), Some(1), Some(2), None, None]
        );
        assert!(SoundCodec::ALL.len() <= MOST_ENCODINGS);
    }
}
