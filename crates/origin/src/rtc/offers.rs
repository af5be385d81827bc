//! What the origin sends to viewers and takes of publishers, and what it says where an offer has none of it.

use super::encoding::SoundCodec;
use crate::pictures::Pictures;
use weir_rtc::VideoCodec;
use weir_rtc::sdp::{Description, Direction, Format, MediaKind, OfferOptions, Setup, extension};

/// H.264 first, which viewers of every protocol play.
const PICTURES: &[&str] = &["H264", "VP8", "VP9", "AV1", "H265"];

/// What a viewer may be sent: any of these while its stream is not known.
const SENT: OfferOptions<'static> = OfferOptions {
    direction: Direction::SendOnly,
    setup: Setup::Passive,
    video: PICTURES,
    profile: None,
    audio: &SoundCodec::NAMES,
    several: true,
    feedback: &["nack", "nack pli", "ccm fir"],
    extensions: &[],
    retransmission: false,
};

/// What a publisher may send: the first of its offer.
const TAKEN: OfferOptions<'static> = OfferOptions {
    direction: Direction::ReceiveOnly,
    setup: Setup::Passive,
    video: PICTURES,
    audio: &SoundCodec::NAMES,
    extensions: &[extension::TRANSPORT_CC],
    ..OfferOptions::VIEWER
};

/// Whose offer it is.
#[derive(Clone, Copy, Debug)]
pub(super) enum Purpose {
    /// A viewer's, of a stream with these pictures, if they are known.
    Watch(Option<Pictures>),
    /// A publisher's.
    Publish,
}

impl Purpose {
    /// What is wanted of an offer. Of a publisher's H.264 wherever it is, because all viewers can be sent it; otherwise the first that the
    /// publisher prefers.
    pub(super) fn options(self, offer: &Description) -> OfferOptions<'static> {
        match self {
            Self::Watch(pictures) => sent(pictures),
            Self::Publish if pictures_of(offer).any(is_usable_h264) => TAKEN.of_codec(Some(VideoCodec::H264)),
            Self::Publish => TAKEN,
        }
    }

    /// Which way media goes, seen from the other side.
    pub(super) fn direction(self) -> Direction {
        match self {
            Self::Watch(_) => Direction::ReceiveOnly,
            Self::Publish => Direction::SendOnly,
        }
    }

    /// Why nothing of an offer's pictures is of use.
    pub(super) fn refusal(self, offer: &Description) -> String {
        let offered = offered(offer);
        match self {
            Self::Watch(Some(Pictures { codec, .. })) => {
                format!("the stream is {}, and the offer has {offered}", with_mode(codec))
            }
            Self::Watch(None) => format!("the origin sends {}, and the offer has {offered}", all()),
            Self::Publish => format!("the origin takes {}, and the offer has {offered}", all()),
        }
    }
}

/// What a viewer of these pictures is sent, or is offered.
pub(super) fn sent(pictures: Option<Pictures>) -> OfferOptions<'static> {
    match pictures {
        Some(Pictures { codec, profile, sound }) => {
            let audio: &[&str] = match sound {
                Some("opus") => &["opus"],
                Some("PCMA") => &["PCMA"],
                Some("PCMU") => &["PCMU"],
                _ => SENT.audio,
            };
            OfferOptions { profile, audio, ..SENT.of_codec(Some(codec)) }
        }
        None => SENT,
    }
}

fn pictures_of(offer: &Description) -> impl Iterator<Item = &Format> {
    let media = offer.media.iter().filter(|media| media.kind == MediaKind::Video && !media.rejected);
    media.flat_map(|media| &media.formats)
}

/// Mode 0 has no fragments, so that only small pictures fit (RFC 6184 section 6.2).
fn is_usable_h264(format: &Format) -> bool {
    format.is("H264") && format.parameter("packetization-mode") == Some("1")
}

/// The codecs of an offer, each once; of those that are not known only that there are some.
fn offered(offer: &Description) -> String {
    let mut names: Vec<&str> = Vec::new();
    for format in pictures_of(offer) {
        let name = match VideoCodec::of(format) {
            Some(VideoCodec::H264) if is_usable_h264(format) => with_mode(VideoCodec::H264),
            Some(VideoCodec::H264) => "H.264 with packetization-mode=0",
            Some(codec) => codec.name(),
            None if ["rtx", "red", "ulpfec", "flexfec-03"].iter().any(|name| format.is(name)) => continue,
            None => "codecs that are not known here",
        };
        if !names.contains(&name) {
            names.push(name);
        }
    }
    if names.is_empty() { "no pictures".to_owned() } else { names.join(", ") }
}

fn all() -> String {
    let named =
        PICTURES.iter().filter_map(|name| VideoCodec::ALL.into_iter().find(|it| it.encoding_name() == *name));
    named.map(with_mode).collect::<Vec<_>>().join(", ")
}

fn with_mode(codec: VideoCodec) -> &'static str {
    if codec == VideoCodec::H264 { "H.264 with packetization-mode=1" } else { codec.name() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Chromium, with all codecs.
    const CHROMIUM: &str = include_str!("../../../rtc/tests/descriptions/offer-chromium-156.sdp");

    fn offer(names: &[(u8, &str, &str)]) -> Description {
        let mut offer: Description = CHROMIUM.parse().unwrap();
        for media in offer.media.iter_mut().filter(|media| media.kind == MediaKind::Video) {
            media.formats = names
                .iter()
                .map(|&(payload_type, name, parameters)| Format {
                    payload_type,
                    name: name.to_owned(),
                    clock_rate: 90_000,
                    parameters: parameters.to_owned(),
                    ..Format::default()
                })
                .collect();
        }
        offer
    }

    #[test]
    fn a_publisher_is_asked_for_h264_if_it_has_it_and_for_what_it_prefers_otherwise() {
        let browser: Description = CHROMIUM.parse().unwrap();
        assert_eq!(Purpose::Publish.options(&browser).video, ["H264"]);
        let others = offer(&[(96, "VP9", ""), (97, "H264", "packetization-mode=0"), (98, "VP8", "")]);
        assert_eq!(Purpose::Publish.options(&others).video, PICTURES);
    }

    #[test]
    fn a_refusal_says_what_the_stream_is_and_what_was_offered() {
        let odd = offer(&[(96, "H264", ""), (97, "rtx", "apt=96"), (98, "x\u{1b}[2J", ""), (99, "y", "")]);
        let vp9 = Purpose::Watch(Some(Pictures { codec: VideoCodec::Vp9, profile: None, sound: None }));
        assert_eq!(
            vp9.refusal(&odd),
            "the stream is VP9, and the offer has H.264 with packetization-mode=0, codecs that are not known here"
        );
        assert_eq!(
            Purpose::Publish.refusal(&offer(&[])),
            "the origin takes H.264 with packetization-mode=1, VP8, VP9, AV1, H.265, and the offer has no pictures"
        );
    }
}
