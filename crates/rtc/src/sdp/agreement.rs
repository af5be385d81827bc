//! Answering an offer, making one, and what both sides have agreed on.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Description, Direction, Extension, Format, Media, MediaKind, Setup};
use crate::transport::{DtlsRole, Fingerprint};
use crate::{h264, opus};

/// Our side of the transport, as a session description states it.
#[derive(Clone, Debug)]
pub struct Local {
    /// `a=ice-ufrag`.
    pub user_fragment: String,
    /// `a=ice-pwd`.
    pub password: String,
    /// Of our certificate.
    pub fingerprint: Fingerprint,
    /// Our candidates.
    pub candidates: Vec<String>,
    /// We answer connectivity checks only.
    pub lite: bool,
}

/// What we want of a session.
#[derive(Clone, Debug)]
pub struct OfferOptions<'a> {
    /// Which sides send, seen from us.
    pub direction: Direction,
    /// Which side begins the DTLS handshake, if the choice is ours.
    pub setup: Setup,
    /// Encodings of pictures, the best first.
    pub video: &'a [&'a str],
    /// Encodings of sound, the best first.
    pub audio: &'a [&'a str],
    /// Kinds of feedback, as in `a=rtcp-fb`.
    pub feedback: &'a [&'a str],
    /// Header extensions by name.
    pub extensions: &'a [&'a str],
    /// Whether retransmissions may have a stream of their own.
    pub retransmission: bool,
}

impl OfferOptions<'static> {
    /// A viewer of H.264 and Opus that gives all the feedback there is.
    pub const VIEWER: Self = Self {
        direction: Direction::ReceiveOnly,
        setup: Setup::Active,
        video: &["H264"],
        audio: &["opus"],
        feedback: &["nack", "nack pli", "ccm fir", "transport-cc", "goog-remb"],
        extensions: &[
            super::extension::FRAME_MARKING,
            super::extension::TRANSPORT_CC,
            super::extension::ABSOLUTE_SEND_TIME,
            super::extension::MID,
        ],
        retransmission: true,
    };

    /// A publisher of the same.
    pub const PUBLISHER: Self = Self { direction: Direction::SendOnly, setup: Setup::Either, ..Self::VIEWER };
}

impl Local {
    /// Answers an offer: the same media in the same order, the first encoding of each that we want.
    pub fn answer(&self, offer: &Description, offer_options: &OfferOptions<'_>) -> Description {
        let media: Vec<Media> =
            offer.media.iter().map(|media| self.answer_media(media, offer_options)).collect();
        let kept = |identifier: &&String| {
            media.iter().any(|media| !media.rejected && media.identifier == **identifier)
        };
        let bundle = offer.bundle.iter().filter(kept).cloned().collect();
        let extensions_mixed = offer.extensions_mixed;
        Description { session: self.session(), ice_lite: self.lite, extensions_mixed, bundle, media }
    }

    fn answer_media(&self, offered: &Media, offer_options: &OfferOptions<'_>) -> Media {
        let names = match offered.kind {
            MediaKind::Video => offer_options.video,
            MediaKind::Audio => offer_options.audio,
            MediaKind::Other => &[],
        };
        let formats = choose(&offered.formats, names, offer_options);
        let identifier = offered.identifier.clone();
        if formats.is_empty() || offered.rejected {
            // A section must have a format even when it is rejected.
            let formats = offered.formats.first().cloned().into_iter().collect();
            let kind = offered.kind;
            return Media {
                kind,
                rejected: true,
                identifier,
                formats,
                direction: Direction::Inactive,
                ..Media::default()
            };
        }
        let wanted = |extension: &&Extension| offer_options.extensions.contains(&&*extension.name);
        Media {
            kind: offered.kind,
            identifier,
            direction: offer_options.direction,
            setup: Some(match offered.setup {
                Some(Setup::Active) => Setup::Passive,
                Some(Setup::Passive) => Setup::Active,
                // `actpass` may not be answered with itself (RFC 5763 section 5).
                Some(Setup::Either) | None if offer_options.setup == Setup::Either => Setup::Active,
                Some(Setup::Either) | None => offer_options.setup,
            }),
            formats,
            extensions: offered.extensions.iter().filter(wanted).cloned().collect(),
            ..self.media()
        }
    }

    /// Offers one section of pictures and one of sound.
    pub fn offer(&self, offer_options: &OfferOptions<'_>) -> Description {
        let mut payload_type = 95;
        let mut next = || {
            payload_type += 1;
            payload_type
        };
        let feedback: Vec<String> =
            offer_options.feedback.iter().map(|&feedback| feedback.to_owned()).collect();
        let extensions: Vec<Extension> = (1..)
            .zip(offer_options.extensions)
            .map(|(identifier, &name)| Extension { identifier, name: name.to_owned() })
            .collect();
        let mut media = Vec::new();
        for (kind, names) in
            [(MediaKind::Audio, offer_options.audio), (MediaKind::Video, offer_options.video)]
        {
            let mut formats = Vec::new();
            for &name in names {
                let payload_type = next();
                let (clock_rate, channels, parameters) = encoding(kind, name);
                formats.push(Format {
                    payload_type,
                    name: name.to_owned(),
                    clock_rate,
                    channels,
                    parameters: parameters.to_owned(),
                    feedback: if kind == MediaKind::Video { feedback.clone() } else { Vec::new() },
                });
                if kind == MediaKind::Video && offer_options.retransmission {
                    let parameters = format!("apt={payload_type}");
                    let name = "rtx".to_owned();
                    let payload_type = next();
                    formats.push(Format { payload_type, name, clock_rate, parameters, ..Format::default() });
                }
            }
            if !formats.is_empty() {
                media.push(Media {
                    kind,
                    identifier: media.len().to_string(),
                    direction: offer_options.direction,
                    setup: Some(Setup::Either),
                    formats,
                    extensions: extensions.clone(),
                    ..self.media()
                });
            }
        }
        let bundle = media.iter().map(|media: &Media| media.identifier.clone()).collect();
        Description { session: self.session(), ice_lite: self.lite, extensions_mixed: true, bundle, media }
    }

    /// As random as the user fragment is, within 63 bits, and the same in each description of one transport.
    fn session(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&self.user_fragment, &self.password).hash(&mut hasher);
        hasher.finish() >> 1
    }

    /// What all sections have in common.
    fn media(&self) -> Media {
        Media {
            user_fragment: Some(self.user_fragment.clone()),
            password: Some(self.password.clone()),
            fingerprint: Some(self.fingerprint.clone()),
            candidates: self.candidates.clone(),
            end_of_candidates: !self.candidates.is_empty(),
            rtcp_mux: true,
            rtcp_reduced_size: true,
            ..Media::default()
        }
    }
}

/// Clock rate, channels and parameters of what is offered.
fn encoding(kind: MediaKind, name: &str) -> (u32, Option<u8>, &'static str) {
    match (kind, name) {
        (MediaKind::Audio, _) => (opus::CLOCK_RATE, Some(2), "minptime=10;useinbandfec=1"),
        (_, "H264") => {
            (h264::CLOCK_RATE, None, "level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f")
        }
        _ => (h264::CLOCK_RATE, None, ""),
    }
}

/// The best format, and that of its retransmissions.
fn choose(offered: &[Format], names: &[&str], offer_options: &OfferOptions<'_>) -> Vec<Format> {
    // Mode 0 has no fragments, so that only small pictures fit.
    let fits = |format: &&Format, name: &str| {
        format.is(name) && (!format.is("H264") || format.parameter("packetization-mode") == Some("1"))
    };
    let find = |name: &&str| offered.iter().find(|format| fits(format, name));
    let Some(best) = names.iter().find_map(find) else { return Vec::new() };
    let repair = offered.iter().find(|format| format.repairs() == Some(best.payload_type));
    let formats =
        [Some(best), repair.filter(|_| offer_options.retransmission)].into_iter().flatten().cloned();
    formats
        .map(|mut format| {
            format.feedback.retain(|feedback| offer_options.feedback.contains(&&**feedback));
            format
        })
        .collect()
}

/// What both descriptions together mean for one section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// What it carries.
    pub kind: MediaKind,
    /// `a=mid`.
    pub identifier: String,
    /// The encoding that comes or goes.
    pub format: Format,
    /// The payload type of its retransmissions.
    pub repair: Option<u8>,
    /// Header extensions.
    pub extensions: Vec<Extension>,
    /// Whether we are to begin with DTLS.
    pub role: DtlsRole,
}

/// What an answer makes of an offer, section by section; rejected ones are left out. The answer is ours, or theirs.
pub fn agree(offer: &Description, answer: &Description, answer_is_ours: bool) -> Vec<Agreement> {
    let sections = offer.media.iter().zip(&answer.media);
    let agreed = sections.filter(|(_, answered)| !answered.rejected).filter_map(|(offered, answered)| {
        // The answer's first format that the offer has, retransmissions apart.
        let is_offered = |format: &&Format| {
            offered.format(format.payload_type).is_some_and(|offered| offered.is(&format.name))
        };
        let format = answered.formats.iter().filter(|format| !format.is("rtx")).find(is_offered)?;
        let repair = answered.formats.iter().find(|other| other.repairs() == Some(format.payload_type));
        let answerer_begins = match answered.setup {
            Some(Setup::Passive) => false,
            // No answer may leave it open (RFC 5763 section 5). Servers that do wait for the other side.
            Some(Setup::Either) => answer_is_ours,
            Some(Setup::Active) | None => true,
        };
        Some(Agreement {
            kind: answered.kind,
            identifier: offered.identifier.clone(),
            format: format.clone(),
            repair: repair.map(|repair| repair.payload_type),
            extensions: answered.extensions.clone(),
            role: if answerer_begins == answer_is_ours { DtlsRole::Client } else { DtlsRole::Server },
        })
    });
    agreed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sdp::extension;
    use proptest::prelude::*;

    fn local() -> Local {
        let fingerprint = format!("sha-256 {}", ["AB"; 32].join(":")).parse().unwrap();
        Local {
            user_fragment: "user".to_owned(),
            password: "a-password-of-22-signs".to_owned(),
            fingerprint,
            candidates: vec!["1 1 udp 1 127.0.0.1 4000 typ host".to_owned()],
            lite: false,
        }
    }

    /// As OvenMediaEngine 0.19 makes it, shortened.
    const OVEN: &str = "v=0\r\no=OvenMediaEngine 101 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n\
        a=group:BUNDLE 1pgOfr B4Oz2u\r\na=group:LS 1pgOfr B4Oz2u\r\na=msid-semantic:WMS *\r\n\
        a=fingerprint:sha-256 00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF\r\n\
        a=ice-options:trickle\r\na=ice-ufrag:gS0vMd\r\na=ice-pwd:7L8cNEVoCHWJAvUlBTDpZe5bY12wfxgK\r\n\
        m=video 9 UDP/TLS/RTP/SAVPF 98 99\r\nc=IN IP4 0.0.0.0\r\na=sendonly\r\na=mid:1pgOfr\r\na=setup:actpass\r\n\
        a=rtcp-mux\r\na=msid:G6VIf0 1jQ3x4\r\na=extmap:1 urn:ietf:params:rtp-hdrext:framemarking\r\n\
        a=extmap:4 http://www.webrtc.org/experiments/rtp-hdrext/abs-send-time\r\na=rtpmap:98 H264/90000\r\n\
        a=fmtp:98 packetization-mode=1;profile-level-id=42e01f;level-asymmetry-allowed=1\r\n\
        a=rtcp-fb:98 nack\r\na=rtcp-fb:98 nack pli\r\na=rtcp-fb:98 goog-remb\r\na=rtpmap:99 rtx/90000\r\n\
        a=fmtp:99 apt=98\r\na=ssrc-group:FID 1000 1001\r\na=ssrc:1000 cname:0Ax\r\na=ssrc:1001 cname:0Ax\r\n\
        m=audio 9 UDP/TLS/RTP/SAVPF 110\r\nc=IN IP4 0.0.0.0\r\na=sendonly\r\na=mid:B4Oz2u\r\na=setup:actpass\r\n\
        a=rtcp-mux\r\na=rtpmap:110 OPUS/48000/2\r\na=fmtp:110 sprop-stereo=1;stereo=1;useinbandfec=1\r\n\
        m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\na=mid:data\r\na=sctp-port:5000\r\n";

    #[test]
    fn an_offer_of_ovenmediaengine_is_answered() {
        let offer: Description = OVEN.parse().unwrap();
        assert_eq!(offer.bundle, ["1pgOfr", "B4Oz2u"]);
        assert_eq!(
            (offer.media[0].sources.clone(), offer.media[0].repairs.clone()),
            (vec![1000, 1001], vec![(1000, 1001)])
        );
        assert_eq!(offer.media[1].user_fragment.as_deref(), Some("gS0vMd"));
        let answer = local().answer(&offer, &OfferOptions::VIEWER);
        assert_eq!(answer.to_string().parse(), Ok(answer.clone()));
        let sections: Vec<_> =
            answer.media.iter().map(|media| (media.rejected, media.setup, media.direction)).collect();
        let taken = (false, Some(Setup::Active), Direction::ReceiveOnly);
        assert_eq!(sections, [taken, taken, (true, None, Direction::Inactive)]);
        let agreed = agree(&offer, &answer, true);
        let [video, audio] = &agreed[..] else { panic!("{agreed:?}") };
        assert_eq!((video.format.payload_type, video.repair, video.role), (98, Some(99), DtlsRole::Client));
        assert_eq!(video.format.feedback, ["nack", "nack pli", "goog-remb"]);
        assert_eq!(answer.media[0].extension(extension::FRAME_MARKING), Some(1));
        assert_eq!((audio.format.payload_type, audio.format.channels, audio.repair), (110, Some(2), None));
    }

    #[test]
    fn our_offer_is_answered_by_ourselves() {
        for (setup, role) in [(Setup::Active, DtlsRole::Server), (Setup::Passive, DtlsRole::Client)] {
            let offer = local().offer(&OfferOptions::VIEWER);
            assert_eq!(offer.to_string().parse(), Ok(offer.clone()));
            let answer = local().answer(&offer, &OfferOptions { setup, ..OfferOptions::PUBLISHER });
            let agreed = agree(&offer, &answer, false);
            let names: Vec<_> = agreed.iter().map(|agreed| &*agreed.format.name).collect();
            assert_eq!(names, ["opus", "H264"]);
            assert!(agreed.iter().all(|agreed| agreed.role == role));
            assert_eq!(agreed[1].repair, Some(agreed[1].format.payload_type + 1));
        }
    }

    #[test]
    fn what_is_not_wanted_is_rejected_and_not_bundled() {
        let offer: Description = OVEN.parse().unwrap();
        let answer = local().answer(&offer, &OfferOptions { audio: &[], ..OfferOptions::VIEWER });
        assert_eq!(answer.bundle, ["1pgOfr"]);
        assert!(answer.media[1].rejected);
        assert!(answer.to_string().contains("m=audio 0 UDP/TLS/RTP/SAVPF 110\r\n"));
    }

    #[test]
    fn faults_are_named_with_their_lines() {
        use crate::sdp::ParseError;
        let error = |text: &str| text.parse::<Description>().unwrap_err();
        assert_eq!(error("hello"), ParseError::Version);
        assert_eq!(error("v=0\n\nwhat"), ParseError::Line(3));
        assert_eq!(error("v=0\r\nm=video x RTP 1"), ParseError::Value { line: 2, attribute: "m=" });
        assert_eq!(error("v=0\nm=video 9 RTP 200"), ParseError::Value { line: 2, attribute: "m=" });
        let many = format!("v=0\nm=video 9 RTP 1\n{}", "a=candidate:x\n".repeat(200));
        assert_eq!(error(&many), ParseError::TooMany { line: 131, attribute: "candidate" });
        assert_eq!(error(&"v".repeat(1 << 20)), ParseError::TooLong(1 << 20));
    }

    proptest! {
        #[test]
        fn any_lines_are_read_without_harm_and_what_is_read_can_be_written(
            lines in prop::collection::vec(prop_oneof![
                "a=(rtpmap|fmtp|rtcp-fb|extmap|ssrc|ssrc-group|setup|mid|group|fingerprint|candidate):[ -~]{0,30}",
                "a=(rtpmap|fmtp):9[0-9] [a-zA-Z0-9/=; ]{0,20}",
                "m=(audio|video|application) [0-9]{1,5} UDP/TLS/RTP/SAVPF( [0-9]{1,3}){0,4}",
                "[a-z]=[ -~]{0,10}",
            ], 0..30),
        ) {
            let text = format!("v=0\r\n{}\r\n", lines.join("\r\n"));
            if let Ok(description) = text.parse::<Description>() {
                let again: Description = description.to_string().parse().unwrap();
                prop_assert_eq!(again.media.len(), description.media.len());
                let answer = local().answer(&description, &OfferOptions::VIEWER);
                prop_assert_eq!(answer.media.len(), description.media.len());
                agree(&description, &answer, true);
            }
        }
    }
}
