//! Answering an offer, making one, and what both sides have agreed on.

use std::hash::{DefaultHasher, Hash, Hasher};

use super::encodings::{FIRST_DYNAMIC, choose, encoding, variants};
use super::{Description, Direction, Extension, Format, Media, MediaKind, Profile, Setup};
use crate::VideoCodec;
use crate::transport::{DtlsRole, Fingerprint};

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
    /// Of a sender: the profile of its pictures, if it is known. Otherwise they are described as the most compatible ones.
    pub profile: Option<Profile>,
    /// Encodings of sound, the best first.
    pub audio: &'a [&'a str],
    /// Whether an answer has all encodings of the offer that are wanted, in the order in which they are, and not the best alone: any of them
    /// may be sent then (RFC 3264 section 6.1).
    pub several: bool,
    /// Kinds of feedback, as in `a=rtcp-fb`.
    pub feedback: &'a [&'a str],
    /// Header extensions by name.
    pub extensions: &'a [&'a str],
    /// Whether retransmissions may have a stream of their own.
    pub retransmission: bool,
}

impl OfferOptions<'static> {
    /// A viewer of all that is read, in the order of [`VideoCodec::ALL`], that gives all the feedback there is.
    pub const VIEWER: Self = Self {
        direction: Direction::ReceiveOnly,
        setup: Setup::Active,
        video: &["VP8", "H264", "AV1", "VP9", "H265"],
        profile: None,
        audio: &["opus", "G722", "PCMU", "PCMA"],
        several: false,
        feedback: &["nack", "nack pli", "ccm fir", "transport-cc", "goog-remb"],
        extensions: &[
            super::extension::FRAME_MARKING,
            super::extension::TRANSPORT_CC,
            super::extension::ABSOLUTE_SEND_TIME,
            super::extension::MID,
            super::extension::DEPENDENCY_DESCRIPTOR,
        ],
        retransmission: true,
    };

    /// A publisher of H.264 and Opus.
    pub const PUBLISHER: Self = Self {
        direction: Direction::SendOnly,
        setup: Setup::Either,
        video: &["H264"],
        audio: &["opus"],
        ..Self::VIEWER
    };

    /// The same, of one codec of pictures, if there is one.
    pub fn of_codec(self, codec: Option<VideoCodec>) -> Self {
        let video: &[&str] = match codec {
            None => self.video,
            Some(VideoCodec::Vp8) => &["VP8"],
            Some(VideoCodec::H264) => &["H264"],
            Some(VideoCodec::Av1) => &["AV1"],
            Some(VideoCodec::Vp9) => &["VP9"],
            Some(VideoCodec::H265) => &["H265"],
        };
        Self { video, ..self }
    }
}

impl Local {
    /// Answers an offer: the same media in the same order, the first encoding of each that we want, in the order of the offer.
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
        let mut payload_type = FIRST_DYNAMIC - 1;
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
            for (name, parameters) in names.iter().flat_map(|&name| variants(kind, name, offer_options)) {
                let (static_type, clock_rate, channels) = encoding(kind, name);
                let payload_type = static_type.unwrap_or_else(&mut next);
                formats.push(Format {
                    payload_type,
                    name: name.to_owned(),
                    clock_rate,
                    channels,
                    parameters,
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
    /// Other encodings that may come instead of it, at any time (RFC 3264 section 6.1), with the payload types of their retransmissions.
    pub others: Vec<(Format, Option<u8>)>,
    /// Header extensions.
    pub extensions: Vec<Extension>,
    /// Whether we are to begin with DTLS.
    pub role: DtlsRole,
}

/// What an answer makes of an offer, section by section; those that are rejected or inactive are left out. The answer is ours, or theirs.
pub fn agree(offer: &Description, answer: &Description, answer_is_ours: bool) -> Vec<Agreement> {
    // An answer to a section that one side only sends may say that the other has nothing to do with it (RFC 3264 section 6.1), as servers
    // do that have no pictures: nothing is to be waited for.
    let carries = |media: &Media| !media.rejected && media.direction != Direction::Inactive;
    let sections = offer.media.iter().zip(&answer.media).filter(|(_, answered)| carries(answered));
    let agreed = sections.filter_map(|(offered, answered)| {
        // The answer's formats that the offer has, retransmissions apart. "if a particular codec was referenced with a specific payload type
        // number in the offer, that same payload type number SHOULD be used for that codec in the answer" (RFC 3264 section 6.1): need not.
        // Of the first codec, the configuration which was offered comes first. Servers answer with another profile as well; what they send then
        // is read all the same.
        let is_offered = |format: &&Format| offered.formats.iter().any(|offered| offered.is(&format.name));
        let repair = |format: &Format| {
            let repair = answered.formats.iter().find(|other| other.repairs() == Some(format.payload_type));
            repair.map(|repair| repair.payload_type)
        };
        let mut formats: Vec<&Format> =
            answered.formats.iter().filter(|format| !format.is("rtx")).filter(is_offered).collect();
        let name = &formats.first()?.name;
        let was_offered = |format: &&Format| {
            format.is(name) && offered.formats.iter().any(|offered| offered.matches(format))
        };
        if let Some(at) = formats.iter().position(was_offered) {
            formats[..=at].rotate_right(1);
        }
        let (&format, others) = formats.split_first()?;
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
            repair: repair(format),
            others: others.iter().map(|&format| (format.clone(), repair(format))).collect(),
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
    fn where_neither_side_sends_nothing_is_agreed_on() {
        let offer = local().offer(&OfferOptions::VIEWER);
        let mut answer = local().answer(&offer, &OfferOptions::PUBLISHER);
        let pictures = answer.media.iter_mut().find(|media| media.kind == MediaKind::Video).unwrap();
        pictures.direction = Direction::Inactive;
        let answer: Description = answer.to_string().parse().unwrap();
        let kinds: Vec<_> = agree(&offer, &answer, false).iter().map(|agreed| agreed.kind).collect();
        assert_eq!(kinds, [MediaKind::Audio]);
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
    fn a_viewer_offers_every_codec_as_a_browser_does_or_the_one_that_is_asked_for() {
        let names = |offer_options: &OfferOptions<'_>| -> Vec<(u8, String)> {
            let formats = local().offer(offer_options).media.remove(1).formats;
            let formats = formats.into_iter().filter(|format| !format.is("rtx"));
            formats.map(|format| (format.payload_type, format.name)).collect()
        };
        let all = names(&OfferOptions::VIEWER);
        let names_of_all = ["VP8", "H264", "AV1", "VP9", "VP9", "H265"];
        let h264 = (0..6).map(|more| (101 + 2 * more, "H264"));
        let [vp8, first, others @ ..] = names_of_all;
        let others = (0..).zip(others).map(|(at, name)| (113 + 2 * at, name));
        let expected: Vec<_> = [(97, vp8), (99, first)].into_iter().chain(h264).chain(others).collect();
        let all: Vec<_> = all.iter().map(|(payload_type, name)| (*payload_type, &**name)).collect();
        assert_eq!(all, expected);
        for codec in VideoCodec::ALL {
            let names: Vec<String> =
                names(&OfferOptions::VIEWER.of_codec(Some(codec))).into_iter().map(|it| it.1).collect();
            assert!(!names.is_empty() && names.iter().all(|name| name == codec.encoding_name()), "{names:?}");
        }
        let audio = local().offer(&OfferOptions::VIEWER).media.remove(0).formats;
        let audio: Vec<_> = audio.iter().map(|it| (it.payload_type, &*it.name, it.clock_rate)).collect();
        assert_eq!(audio, [(96, "opus", 48_000), (9, "G722", 8_000), (0, "PCMU", 8_000), (8, "PCMA", 8_000)]);
    }

    #[test]
    fn each_codec_of_an_answer_may_come_with_retransmissions_of_its_own() {
        let offer = local().offer(&OfferOptions::VIEWER);
        let mut answer = local().offer(&OfferOptions::VIEWER);
        let formats = &mut answer.media[1].formats;
        formats.retain(|format| [99, 100, 115, 116, 119].contains(&format.payload_type));
        formats.insert(0, Format { payload_type: 120, name: "red".to_owned(), ..Format::default() });
        let agreed = agree(&offer, &answer, false).remove(1);
        assert_eq!((&*agreed.format.name, agreed.repair), ("H264", Some(100)));
        let others: Vec<_> = agreed.others.iter().map(|(format, repair)| (&*format.name, *repair)).collect();
        assert_eq!(others, [("VP9", Some(116)), ("H265", None)]);
    }

    #[test]
    fn an_offer_is_answered_by_the_first_that_the_server_prefers() {
        let offer =
            Description { media: local().offer(&OfferOptions::VIEWER).media, ..OVEN.parse().unwrap() };
        let answered = |offer_options: &OfferOptions<'_>| {
            let media = local().answer(&offer, offer_options).media.remove(1);
            media.formats.iter().map(|format| format.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(answered(&OfferOptions::VIEWER), ["VP8", "rtx"]);
        assert_eq!(answered(&OfferOptions::VIEWER.of_codec(Some(VideoCodec::Vp9))), ["VP9", "rtx"]);
        assert_eq!(answered(&OfferOptions::PUBLISHER), ["H264", "rtx"]);
    }

    #[test]
    fn a_sender_answers_with_its_own_profile_and_a_receiver_takes_the_configuration_that_was_offered_first() {
        let offer = local().offer(&OfferOptions::VIEWER);
        let answer = local().answer(&offer, &OfferOptions::PUBLISHER);
        let formats = &answer.media[1].formats;
        assert_eq!(
            (formats[0].payload_type, formats[0].parameter("profile-level-id")),
            (103, Some("42e01f"))
        );
        // An answer that has what was not offered in front of what was.
        let mut theirs = answer.clone();
        let other = |payload_type, parameters: &str| Format {
            payload_type,
            parameters: parameters.to_owned(),
            ..formats[0].clone()
        };
        theirs.media[1].formats.insert(0, other(120, "packetization-mode=1;profile-level-id=f4001f"));
        let agreed = agree(&offer, &theirs, false).remove(1);
        assert_eq!((agreed.format.payload_type, agreed.others[0].0.payload_type), (103, 120));
        // Where nothing else is answered, it is read.
        theirs.media[1].formats.truncate(1);
        assert_eq!(agree(&offer, &theirs, false)[1].format.payload_type, 120);
    }

    #[test]
    fn a_sender_offers_its_own_profile_and_the_one_that_every_endpoint_decodes() {
        let offered = |profile, codec| -> Vec<String> {
            let options = OfferOptions { profile: Some(profile), ..OfferOptions::PUBLISHER };
            let formats = local().offer(&options.of_codec(Some(codec))).media.remove(1).formats;
            formats.into_iter().filter(|it| !it.is("rtx")).map(|it| it.parameters).collect()
        };
        let h264 = |id: &str| format!("level-asymmetry-allowed=1;packetization-mode=1;profile-level-id={id}");
        let high = Profile::H264([0x64, 0, 0x28]);
        assert_eq!(offered(high, VideoCodec::H264), [h264("640028"), h264("42e01f")]);
        assert_eq!(offered(Profile::H264([0x42, 0xC0, 0x1E]), VideoCodec::H264), [h264("42c01e")]);
        assert_eq!(offered(Profile::Vp9(2), VideoCodec::Vp9), ["profile-id=2"]);
        let av1 = Profile::Av1 { profile: 0, level: 8, tier: 0 };
        assert_eq!(offered(av1, VideoCodec::Av1), ["level-idx=8;profile=0;tier=0"]);
        // A profile of another codec says nothing.
        assert_eq!(offered(high, VideoCodec::Vp9), ["profile-id=0", "profile-id=2"]);
        // In an answer: its own, then Constrained Baseline, then whatever there is.
        let mut offer = local().offer(&OfferOptions::VIEWER);
        let options = OfferOptions { profile: Some(high), ..OfferOptions::PUBLISHER };
        for expected in ["64001f", "42e01f", "42001f"] {
            let chosen = local().answer(&offer, &options).media.remove(1).formats.remove(0);
            assert_eq!(chosen.parameter("profile-level-id"), Some(expected));
            offer.media[1].formats.retain(|it| it.parameter("profile-level-id") != Some(expected));
        }
    }

    #[test]
    fn an_answer_may_have_several_encodings_in_the_order_of_their_worth() {
        let offer = local().offer(&OfferOptions::VIEWER);
        let options =
            OfferOptions { video: &["H264", "VP8", "AV1"], several: true, ..OfferOptions::PUBLISHER };
        let answer = local().answer(&offer, &options);
        let names: Vec<_> = answer.media[1].formats.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["H264", "rtx", "VP8", "rtx", "AV1", "rtx"]);
        let agreed = agree(&offer, &answer, true).remove(1);
        assert_eq!((&*agreed.format.name, agreed.others.len()), ("H264", 2));
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
