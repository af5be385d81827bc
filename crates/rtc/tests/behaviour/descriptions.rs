//! Descriptions as others write them: offers that ours are compared with, and answers that have to be understood.
//!
//! The offers of Chromium, and its answer to a viewer of ours, were recorded with the Chromium that the tests drive, and offer and answer of pion (which MediaMTX
//! and LiveKit are built on) with the pion that they build. Both send one picture and one sound track. The others come from public issues (versatica/mediasoup#213, otalk/sdp-jingle-json#7, obsproject/obs-studio#7926,
//! kevmo314/tinywhip#2, ossrs/srs#4570, centricular/gstwebrtc-demos#159) and from comments in public code (FFmpeg's muxer
//! for WHIP). Their addresses are replaced by those of RFC 5737, and what they were cut short by is missing at the end.

use std::collections::BTreeSet;
use std::path::Path;

use weir_rtc::sdp::{Description, Direction, Format, Local, Media, MediaKind, OfferOptions, Sources, agree};
use weir_rtc::transport::DtlsRole;

fn recorded(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/descriptions").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn local() -> Local {
    Local {
        user_fragment: "user".to_owned(),
        password: "a-password-of-22-signs".to_owned(),
        fingerprint: format!("sha-256 {}", ["AB"; 32].join(":")).parse().unwrap(),
        candidates: vec!["1 1 udp 1 127.0.0.1 4000 typ host".to_owned()],
        lite: false,
    }
}

fn publisher() -> OfferOptions<'static> {
    OfferOptions { extensions: &[], ..OfferOptions::PUBLISHER }
}

/// What a publisher of ours offers.
fn our_offer() -> Description {
    let mut offer = local().offer(&publisher());
    offer.announce(Sources::new(7));
    offer
}

/// The attributes of a description: of the session, of sound, of pictures. What stands behind a source is one of its own.
fn attributes(text: &str) -> BTreeSet<String> {
    let mut section = "session";
    let mut found = BTreeSet::new();
    for line in text.lines() {
        if let Some(media) = line.strip_prefix("m=") {
            section = if media.starts_with("audio") { "audio" } else { "video" };
        }
        let Some(attribute) = line.strip_prefix("a=") else { continue };
        let (name, value) = attribute.split_once(':').unwrap_or((attribute, ""));
        let name = match (name, value.split_once(' ')) {
            // The direction is its value.
            ("sendonly" | "recvonly" | "sendrecv" | "inactive", _) => "direction".to_owned(),
            ("ssrc", Some((_, of))) => format!("ssrc {}", of.split(':').next().unwrap_or_default()),
            // Transport attributes may stand in either place (RFC 8859).
            ("ice-ufrag" | "ice-pwd" | "ice-options" | "fingerprint" | "setup", _)
                if section == "session" =>
            {
                continue;
            }
            _ => name.to_owned(),
        };
        found.insert(format!("{section} {name}"));
    }
    found
}

/// What others have and we have not, and why not.
const LEFT_OUT: &[(&str, &str)] = &[
    ("audio extmap", "our packets have no header extensions, so that none is offered"),
    ("video extmap", "the same"),
    ("audio rtcp-fb", "transport-wide numbers are a header extension"),
    ("audio rtcp-xr", "a publisher does not measure by extended reports; Chromium alone has it"),
    ("video rtcp-xr", "the same"),
    ("session direction", "each section has its own"),
    ("audio ssrc label", "of Plan B, which nobody offers any more"),
    ("audio ssrc mslabel", "the same"),
    ("video ssrc label", "of Plan B, which nobody offers any more"),
    ("video ssrc mslabel", "the same"),
];

#[test]
fn our_offers_have_what_those_of_others_have() {
    let ours = attributes(&our_offer().to_string());
    let mut theirs = BTreeSet::new();
    for name in ["chromium-156", "firefox-38", "firefox-63", "obs-30", "pion-4.2", "webrtc-rs"] {
        let text = recorded(&format!("offer-{name}.sdp"));
        let parsed: Description = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!parsed.media.is_empty() && parsed.media[0].stream.is_some(), "{name}");
        for attribute in attributes(&text) {
            let is_left_out = LEFT_OUT.iter().any(|(left, _)| *left == attribute);
            assert!(ours.contains(&attribute) != is_left_out, "{name} has {attribute}");
            theirs.insert(attribute);
        }
    }
    for (attribute, why) in LEFT_OUT {
        assert!(theirs.contains(*attribute), "nobody has {attribute} ({why})");
    }
    let alone: Vec<_> = ours.difference(&theirs).collect();
    assert_eq!(alone, [""; 0], "what only we have");
}

#[test]
fn a_browsers_order_of_lines_is_ours() {
    // Servers that search line by line were tried with browsers: of a section, what Chromium has in front of something
    // else has ours as well.
    let order = |text: &str, media: &str| {
        let section = text.split("m=").find(|section| section.starts_with(media)).unwrap().to_owned();
        let name =
            |line: &str| line.strip_prefix("a=").map(|it| it.split([':', ' ']).next().unwrap().to_owned());
        let mut names: Vec<String> = section.lines().filter_map(name).collect();
        names.dedup();
        names
    };
    let (theirs, ours) = (recorded("offer-chromium-156.sdp"), our_offer().to_string());
    for media in ["audio", "video"] {
        let (theirs, ours) = (order(&theirs, media), order(&ours, media));
        let at = |name: &String| theirs.iter().position(|it| it == name);
        let places: Vec<_> = ours.iter().filter(|name| !name.starts_with("rtcp-fb")).filter_map(at).collect();
        let first: Vec<_> = places.iter().enumerate().filter(|(n, at)| !places[..*n].contains(at)).collect();
        assert!(first.is_sorted_by_key(|(_, at)| **at), "{media}: {ours:?} after {theirs:?}");
    }
}

#[test]
fn a_publisher_names_its_stream_in_each_section_and_for_each_source() {
    let offer = our_offer();
    let text = offer.to_string();
    assert_eq!(text.parse(), Ok(offer.clone()));
    let streams: Vec<_> = offer.media.iter().map(|media| media.stream.clone().unwrap()).collect();
    let [first, second] = &streams[..] else { panic!("{streams:?}") };
    let stream = |value: &str| value.split(' ').next().unwrap().to_owned();
    assert_eq!(stream(first), stream(second), "one stream (RFC 9725 section 4.4.2)");
    assert_ne!(first, second, "and two tracks of it");
    for media in &offer.media {
        for source in &media.sources {
            let line = format!("a=ssrc:{source} msid:{}\r\n", media.stream.as_deref().unwrap());
            assert!(text.contains(&line), "{line}{text}");
        }
    }
    let viewer = local().offer(&OfferOptions::VIEWER).to_string();
    assert!(!viewer.contains("msid:") && viewer.contains("a=recvonly\r\n"), "{viewer}");
}

/// Payload types of an answer to another's offer, as they would be to ours.
fn renumbered(answer: &str, offer: &Description) -> Description {
    let mut answer: Description = answer.parse().unwrap();
    for (answered, offered) in answer.media.iter_mut().zip(&offer.media) {
        for format in &mut answered.formats {
            let ours = offered.formats.iter().find(|ours| ours.is(&format.name));
            format.payload_type = ours.map_or(format.payload_type, |ours| ours.payload_type);
        }
    }
    answer
}

#[test]
fn of_the_h264_that_chromium_offers_a_sender_takes_its_own_profile_with_fragments() {
    let offer: Description = recorded("offer-chromium-156-play.sdp").parse().unwrap();
    let levels = |media: &Media| -> Vec<(u8, String, String)> {
        let h264 = media.formats.iter().filter(|format| format.is("H264"));
        let parameter = |format: &Format, name| format.parameter(name).unwrap().to_owned();
        h264.map(|it| {
            (it.payload_type, parameter(it, "packetization-mode"), parameter(it, "profile-level-id"))
        })
        .collect()
    };
    assert_eq!(levels(&offer.media[1]).len(), 8);
    let answer = local().answer(&offer, &OfferOptions::PUBLISHER);
    assert_eq!(levels(&answer.media[1]), [(108, "1".to_owned(), "42e01f".to_owned())]);
    let agreed = agree(&offer, &answer, true);
    assert_eq!((agreed[1].format.payload_type, agreed[1].repair), (108, Some(109)));
}

#[test]
fn what_chromium_answers_to_a_viewer_is_what_was_offered_configuration_by_configuration() {
    let offer = local().offer(&OfferOptions::VIEWER);
    let answer: Description = recorded("answer-chromium-156-play.sdp").parse().unwrap();
    let agreed = agree(&offer, &answer, false).remove(1);
    let others = agreed.others.iter().map(|(format, repair)| (format, *repair));
    let formats: Vec<_> = std::iter::once((&agreed.format, agreed.repair)).chain(others).collect();
    for (format, repair) in &formats {
        let matching = offer.media[1].formats.iter().filter(|offered| offered.matches(format));
        let matching: Vec<u8> = matching.map(|offered| offered.payload_type).collect();
        assert_eq!((&matching[..], *repair), (&[format.payload_type][..], Some(format.payload_type + 1)));
    }
    // High is left out: it has no encoder for it. So is H.265.
    let types: Vec<u8> = formats.iter().map(|(format, _)| format.payload_type).collect();
    assert_eq!(types, [97, 99, 101, 103, 105, 107, 109, 113, 115, 117]);
}

#[test]
fn answers_as_servers_give_them_are_understood() {
    for (name, publishes, kinds) in [
        ("pion-4.2-publish", true, &[MediaKind::Audio, MediaKind::Video][..]),
        ("srs-6.0.42-publish", true, &[MediaKind::Audio, MediaKind::Video]),
        ("srs-4.0.122-play", false, &[MediaKind::Audio, MediaKind::Video]),
        ("srs-5.0.146-play", false, &[MediaKind::Audio]),
    ] {
        let offer_options = if publishes { publisher() } else { OfferOptions::VIEWER };
        let offer = local().offer(&offer_options);
        let answer = renumbered(&recorded(&format!("answer-{name}.sdp")), &offer);
        // SRS answers checks only and waits for DTLS; pion does neither.
        let is_srs = name.starts_with("srs");
        assert_eq!(answer.ice_lite, is_srs, "{name}");
        let agreed = agree(&offer, &answer, false);
        assert_eq!(agreed.iter().map(|it| it.kind).collect::<Vec<_>>(), kinds, "{name}");
        let role = if is_srs { DtlsRole::Client } else { DtlsRole::Server };
        assert!(agreed.iter().all(|it| it.role == role), "{name}");
        let wanted = if publishes { Direction::ReceiveOnly } else { Direction::SendOnly };
        for media in &answer.media {
            let Media { user_fragment, password, fingerprint, candidates, direction, .. } = media;
            assert!(user_fragment.is_some() && password.is_some() && fingerprint.is_some(), "{name}");
            assert_eq!(*direction, wanted, "{name}");
            assert!(!candidates.is_empty() || !is_srs, "{name}");
        }
    }
    // An offer without the names of streams, and one without a codec that is wanted.
    for (name, sections) in [("srs-7.0.126-without-media", 0), ("janus-rejected", 1)] {
        let answer: Description = recorded(&format!("answer-{name}.sdp")).parse().unwrap();
        assert_eq!(answer.media.iter().filter(|media| media.rejected).count(), sections, "{name}");
        assert_eq!(agree(&our_offer(), &answer, false), [], "{name}");
    }
}
