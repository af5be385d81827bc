//! WHEP as servers speak it (draft-ietf-wish-whep, RFC 9725): places, tags, candidates that come later, relays, tokens.

use crate::stage::{PHASE_TIMEOUT, Server, Stage, WHEP, server_address};
use std::time::Duration;
use weir_clients::{Ending, RtcOptions};
use weir_metrics::Failure;
use weir_rtc::sdp::Setup;
use weir_shard::Event;

/// What a viewer says when it is stopped, and where.
pub(crate) fn goodbye(stage: &mut Stage) -> (String, String) {
    stage.dispatch(Event::Stop);
    assert_eq!(stage.rig.world.take_ended()[0].1, Ending::OnTime);
    farewell(stage)
}

/// What a viewer that is over says, and where.
pub(crate) fn farewell(stage: &mut Stage) -> (String, String) {
    let endpoint = stage.rig.reopened.take().expect("a link for the goodbye");
    stage.rig.take_sent();
    stage.dispatch(Event::Connected);
    (endpoint.address.to_string(), stage.said())
}

#[test]
fn a_session_is_deleted_where_the_server_says_that_it_is() {
    for (location, place, line) in [
        ("/session/1", "127.0.0.1:9", "DELETE /session/1 HTTP/1.1\r\n"),
        ("session/1", "127.0.0.1:9", "DELETE /live/session/1 HTTP/1.1\r\n"),
        ("http://127.0.0.1:9/s?t=1", "127.0.0.1:9", "DELETE /s?t=1 HTTP/1.1\r\n"),
        ("http://127.0.0.2:10/s", "127.0.0.2:10", "DELETE /s HTTP/1.1\r\n"),
    ] {
        let mut stage = Stage::playing_with(0, Setup::Passive, &format!("Location: {location}\r\n"));
        stage.keyframe(4, server_address());
        let (endpoint, said) = goodbye(&mut stage);
        assert!(endpoint == place && said.starts_with(line), "{location}: {endpoint} {said}");
    }
    // A server that says no place can only be left.
    let mut stage = Stage::playing_with(0, Setup::Passive, "");
    stage.dispatch(Event::Stop);
    assert!(stage.rig.reopened.is_none() && stage.rig.closed);
}

#[test]
fn the_dialect_of_srs_needs_no_flag() {
    let url = "whep+http://127.0.0.1:9/rtc/v1/whep/?app=live&stream=x";
    let (mut stage, said) = Stage::of(0, url, &RtcOptions::default());
    assert!(said.starts_with("POST /rtc/v1/whep/?app=live&stream=x HTTP/1.1\r\n"), "{said}");
    let (_, offer) = said.split_once("\r\n\r\n").unwrap();
    let (server, answer) = Server::answer(offer, stage.rig.now);
    stage.server = Some(server);
    let location = "/rtc/v1/whep/?action=delete&token=5a8d&app=live&stream=x&session=7b:9c";
    // No content type, as some of its versions have it; an answer of ice-lite, passive.
    assert!(answer.contains("a=ice-lite\r\n") && answer.contains("a=setup:passive\r\n"), "{answer}");
    stage.answer("201 Created", &format!("Location: {location}\r\n"), &answer);
    for _ in 0..100 {
        stage.exchange();
        stage.handle_timeout(Duration::from_millis(5));
    }
    stage.keyframe(4, server_address());
    let (_, said) = goodbye(&mut stage);
    assert!(said.starts_with(&format!("DELETE {location} HTTP/1.1\r\n")), "{said}");
}

#[test]
fn servers_that_begin_with_dtls_and_those_that_wait_are_played() {
    for setup in [Setup::Active, Setup::Passive] {
        let mut stage = Stage::playing_with(0, setup, "Location: /session/1\r\n");
        stage.keyframe(4, server_address());
        let figures = stage.figures();
        assert_eq!(crate::stage::counter(&figures, "played"), 1, "{setup:?}");
    }
}

#[test]
fn a_session_is_deleted_after_a_failure_as_well() {
    // A place, and an answer that nothing can come of.
    let (mut stage, _) = Stage::new(0);
    stage.answer("201 Created", "Location: /session/2\r\n", "v=0\r\nm=video x\r\n");
    assert_eq!(stage.failure().0, Failure::MalformedInput);
    let (_, said) = farewell(&mut stage);
    assert!(said.starts_with("DELETE /session/2 HTTP/1.1\r\n"), "{said}");
    stage.answer("200 OK", "", "");
    assert!(stage.rig.closed);

    // Keys, and nothing else.
    let mut stage = Stage::playing(0);
    stage.handle_timeout(PHASE_TIMEOUT);
    assert_eq!(stage.failure().0, Failure::NoMedia);
    let (_, said) = farewell(&mut stage);
    assert!(said.starts_with("DELETE /session/1 HTTP/1.1\r\n"), "{said}");
    // Whoever does not answer is not waited for.
    stage.handle_timeout(Duration::from_secs(1));
    assert!(stage.rig.closed);
}

/// A viewer whose server takes candidates by PATCH; and the first patch.
pub(crate) fn trickling() -> (Stage, String) {
    let (mut stage, offer) = Stage::new(0);
    let (server, answer) = Server::answer(&offer, stage.rig.now);
    stage.server = Some(server);
    let fields = "Location: /session/1\r\nETag: \"one\"\r\nAccept-Patch: application/trickle-ice-sdpfrag\r\n";
    stage.answer("201 Created", fields, &answer);
    let patch = patched(&mut stage);
    (stage, patch)
}

pub(crate) fn patched(stage: &mut Stage) -> String {
    assert!(stage.rig.reopened.take().is_some(), "a link for a patch");
    stage.dispatch(Event::Connected);
    stage.said()
}

#[test]
fn candidates_are_told_where_the_server_takes_them() {
    let (mut stage, patch) = trickling();
    let (head, body) = patch.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("PATCH /session/1 HTTP/1.1\r\n"), "{head}");
    for field in ["Content-Type: application/trickle-ice-sdpfrag", "If-Match: \"one\""] {
        assert!(head.lines().any(|line| line == field), "{field} is not in {head}");
    }
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    assert!(body.starts_with(&format!("a=ice-ufrag:{}\r\n", stage.user_fragment)), "{body}");
    assert!(body.contains("127.0.0.1 40000 typ host") && body.ends_with("a=end-of-candidates\r\n"), "{body}");
    stage.answer("204 No Content", "", "");
    assert!(stage.rig.hung_up && stage.rig.reopened.is_none());
    // It does not hold the session up, and is not in the way of its end.
    for _ in 0..100 {
        stage.exchange();
        stage.handle_timeout(Duration::from_millis(5));
    }
    stage.keyframe(4, server_address());
    let (_, said) = goodbye(&mut stage);
    assert!(said.starts_with("DELETE /session/1 HTTP/1.1\r\n"), "{said}");
}

#[test]
fn a_tag_that_has_changed_is_named_once_more() {
    let (mut stage, _) = trickling();
    stage.answer("412 Precondition Failed", "ETag: \"two\"\r\n", "");
    assert!(patched(&mut stage).contains("\r\nIf-Match: \"two\"\r\n"));
    stage.answer("412 Precondition Failed", "ETag: \"three\"\r\n", "");
    assert!(stage.rig.hung_up && stage.rig.reopened.is_none(), "and not for ever");
    assert!(!stage.rig.closed);
}

/// A viewer of a server that takes patches, which plays; and the patch with which it asks for a restart once its checks are not answered.
fn without_a_path() -> (Stage, String) {
    let (mut stage, _) = trickling();
    stage.answer("204 No Content", "ETag: \"two\"\r\n", "");
    stage.agree_on_keys();
    stage.keyframe(4, server_address());
    stage.rig.hung_up = false;
    for _ in 0..600 {
        stage.handle_timeout(Duration::from_millis(50));
        stage.rig.take_datagrams();
        // Media goes on to come.
        stage.keyframe(1, server_address());
        if stage.rig.reopened.is_some() {
            let patch = patched(&mut stage);
            return (stage, patch);
        }
    }
    panic!("no restart is asked for");
}

#[test]
fn a_path_that_is_lost_is_sought_again_with_new_credentials() {
    let (mut stage, patch) = without_a_path();
    assert!(patch.starts_with("PATCH /session/1 HTTP/1.1\r\n"), "{patch}");
    assert!(patch.contains("\r\nIf-Match: *\r\n"), "{patch}");
    let value = |name: &str| {
        patch.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{patch}")).to_owned()
    };
    let (user_fragment, password) = (value("a=ice-ufrag:"), value("a=ice-pwd:"));
    assert!(user_fragment != stage.user_fragment && !patch.contains(&stage.user_fragment), "{patch}");
    let body = stage.server.as_mut().unwrap().restart(stage.rig.now, &user_fragment, &password);
    let fields = "ETag: \"three\"\r\nContent-Type: application/trickle-ice-sdpfrag\r\n";
    stage.answer("200 OK", fields, &body);
    assert!(stage.rig.hung_up);
    for _ in 0..100 {
        stage.exchange();
        stage.handle_timeout(Duration::from_millis(20));
    }
    // It plays on, long after it would have been given up.
    for _ in 0..60 {
        stage.exchange();
        stage.keyframe(1, server_address());
        stage.handle_timeout(Duration::from_millis(100));
    }
    let figures = stage.figures();
    let count = |name| crate::stage::counter(&figures, name);
    assert_eq!(["rtc.ice_restarts", "played", "lost", "rtc.unauthentic"].map(count), [1, 1, 0, 0]);
    let (_, said) = goodbye(&mut stage);
    assert!(said.starts_with("DELETE /session/1 HTTP/1.1\r\n"), "{said}");
}

#[test]
fn a_server_that_restarts_nothing_keeps_its_session_for_as_long_as_media_comes() {
    for status in ["422 Unprocessable Content", "501 Not Implemented", "200 OK", "204 No Content"] {
        let (mut stage, _) = without_a_path();
        stage.answer(status, "", "no");
        for _ in 0..20 {
            stage.keyframe(1, server_address());
            stage.handle_timeout(Duration::from_millis(100));
            stage.rig.take_datagrams();
        }
        assert!(!stage.rig.closed && stage.rig.reopened.is_none(), "{status}: asked once");
        let figures = stage.figures();
        let counts = ["rtc.ice_restarts", "playing"].map(|name| crate::stage::counter(&figures, name));
        assert_eq!(counts, [0, 1], "{status}");
    }
}

#[test]
fn a_server_that_takes_no_candidates_is_told_none_and_played() {
    for status in ["405 Method Not Allowed", "501 Not Implemented", "500 Oh"] {
        let (mut stage, _) = trickling();
        stage.answer(status, "", "no");
        assert!(stage.rig.hung_up && stage.rig.reopened.is_none() && !stage.rig.closed, "{status}");
        for _ in 0..100 {
            stage.exchange();
            stage.handle_timeout(Duration::from_millis(5));
        }
        stage.keyframe(4, server_address());
        assert_eq!(crate::stage::counter(&stage.figures(), "played"), 1);
    }
    let (mut stage, _) = trickling();
    stage.dispatch(Event::HungUp { failure: Failure::ConnectionRefused, words: "refused" });
    assert!(!stage.rig.closed && stage.rig.world.take_ended().is_empty());
    // A server that does not offer it is not asked.
    let stage =
        Stage::playing_with(0, Setup::Passive, "Location: /session/1\r\nAccept-Patch: text/plain\r\n");
    assert!(stage.rig.reopened.is_none());
}

#[test]
fn a_token_goes_with_every_request_and_nowhere_else() {
    let rtc = RtcOptions { token: Some("s3cr3t".to_owned()), ..RtcOptions::default() };
    let (mut stage, said) = Stage::of(0, WHEP, &rtc);
    let proves = |said: &str| said.contains("\r\nAuthorization: Bearer s3cr3t\r\n");
    assert!(proves(&said), "{said}");
    let (server, answer) = Server::answer(said.split_once("\r\n\r\n").unwrap().1, stage.rig.now);
    stage.server = Some(server);
    let fields = "Location: /session/1\r\nAccept-Patch: application/trickle-ice-sdpfrag\r\n";
    stage.answer("201 Created", fields, &answer);
    let patch = patched(&mut stage);
    assert!(proves(&patch) && !patch.contains("If-Match"), "{patch}");
    stage.dispatch(Event::Stop);
    let (_, said) = farewell(&mut stage);
    assert!(proves(&said) && said.starts_with("DELETE"), "{said}");
    // Not to a place that the server makes up elsewhere.
    let rtc = RtcOptions { token: Some("s3cr3t".to_owned()), ..RtcOptions::default() };
    let (mut stage, said) = Stage::of(0, WHEP, &rtc);
    let (_, answer) = Server::answer(said.split_once("\r\n\r\n").unwrap().1, stage.rig.now);
    stage.answer("201 Created", "Location: http://127.0.0.2:10/s\r\n", &answer);
    stage.dispatch(Event::Stop);
    let (endpoint, said) = farewell(&mut stage);
    assert!(endpoint == "127.0.0.2:10" && said.starts_with("DELETE") && !said.contains("s3cr3t"), "{said}");
}

#[test]
fn media_from_each_address_that_a_check_has_proven_is_the_servers() {
    let other: std::net::SocketAddr = "127.0.0.1:5001".parse().unwrap();
    let silent: std::net::SocketAddr = "127.0.0.1:5002".parse().unwrap();
    for client in [0, 5] {
        let (mut stage, offer) = Stage::new(client);
        let (server, answer) = Server::answer(&offer, stage.rig.now);
        stage.server = Some(server);
        stage.addresses.push(other);
        // Each candidate is there three times, at two addresses that answer and at one that does not.
        let lines = answer.lines().flat_map(|line| {
            let ports: &[&str] =
                if line.starts_with("a=candidate") { &["5000", "5001", "5002"] } else { &["5000"] };
            ports
                .iter()
                .map(|port| format!("{}\r\n", line.replace(" 5000 ", &format!(" {port} "))))
                .collect::<Vec<_>>()
        });
        let answer: String = lines.collect();
        stage.answer("201 Created", "Location: /session/1\r\n", &answer);
        stage.agree_on_keys();
        for _ in 0..100 {
            stage.exchange();
            stage.handle_timeout(Duration::from_millis(5));
        }
        // Kernels would keep away what comes from another address than the one that a socket is connected to.
        assert_eq!(stage.rig.datagram_peer, None);
        stage.figures();
        for source in [server_address(), other, other, server_address()] {
            stage.keyframe(3, source);
        }
        let figures = stage.figures();
        let named = ["units", "frames", "rtc.strange", "lost", "reordered"]
            .map(|name| crate::stage::counter(&figures, name));
        assert_eq!(named, [12, 4, 0, 0, 0], "client {client}");
        // One that has answered no check is a stranger, whatever it was called.
        stage.keyframe(3, silent);
        assert_eq!(crate::stage::counter(&stage.figures(), "rtc.strange"), 3, "client {client}");
    }
    let stage = Stage::playing(0);
    assert_eq!(stage.rig.datagram_peer, Some(server_address()), "which has no other");
}

/// The viewer's session with a server that describes its candidates like this.
pub(crate) fn answered_with(candidate: impl Fn(&str) -> String) -> Stage {
    let (mut stage, offer) = Stage::new(0);
    let (server, answer) = Server::answer(&offer, stage.rig.now);
    stage.server = Some(server);
    let lines = answer
        .lines()
        .map(|line| if line.starts_with("a=candidate") { candidate(line) } else { format!("{line}\r\n") });
    stage.answer("201 Created", "Location: /session/1\r\n", &lines.collect::<String>());
    stage
}

#[test]
fn a_candidate_that_has_a_name_is_looked_up() {
    let mut stage = answered_with(|line| format!("{}\r\n", line.replace("127.0.0.1", "localhost")));
    stage.rig.datagram_address = "127.0.0.1:40000".parse().unwrap();
    // Names are resolved beside virtual time.
    for _ in 0..400 {
        stage.exchange();
        if stage.server.as_ref().unwrap().keys.is_some() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        stage.handle_timeout(Duration::from_millis(5));
    }
    stage.exchange();
    stage.keyframe(4, server_address());
    assert_eq!(crate::stage::counter(&stage.figures(), "played"), 1);
}

#[test]
fn names_of_multicast_dns_and_those_that_nobody_knows_are_said() {
    let hidden = "0f612a90-ee2e-4785-b9b7-72f8434cba27.local";
    let mut stage = answered_with(|line| {
        let [hidden, lost] = [hidden, "no-such-host.invalid"].map(|name| line.replace("127.0.0.1", name));
        format!("{hidden}\r\n{lost}\r\n")
    });
    stage.handle_timeout(PHASE_TIMEOUT);
    let (failure, words) = stage.failure();
    assert_eq!(failure, Failure::IceTimeout);
    assert!(words.contains(&format!("{hidden} (multicast DNS)")), "{words}");
    assert!(words.contains("no-such-host.invalid (not found"), "{words}");
}

#[test]
fn header_extensions_that_packets_cannot_have_are_passed_over() {
    let (mut stage, offer) = Stage::new(0);
    let (server, answer) = Server::answer(&offer, stage.rig.now);
    stage.server = Some(server);
    let lines = answer.lines().map(|line| match line.starts_with("a=mid") {
        true => {
            format!("{line}\r\na=extmap:0 urn:x\r\na=extmap:4096 urn:y\r\na=extmap:300/recvonly urn:z\r\n")
        }
        false => format!("{line}\r\n"),
    });
    stage.answer("201 Created", "", &lines.collect::<String>());
    stage.agree_on_keys();
}

#[test]
fn a_server_whose_pictures_cannot_be_played_is_told_why_whatever_its_sound_is() {
    let (_, offer) = Stage::new(0);
    let (_, answer) = Server::answer(&offer, weir_shard::clock::now());
    let (mut stage, _) = Stage::new(0);
    stage.answer("201 Created", "", &answer.replace("H264/90000", "H266/90000"));
    let (failure, words) = stage.failure();
    assert_eq!(failure, Failure::Rejected);
    assert!(
        words.starts_with("the server offers H266; weir was to play VP8, H.264, AV1, VP9, H.265"),
        "{words}"
    );
}

#[test]
fn an_oven_media_engine_without_whep_says_how_its_streams_are_played() {
    for (server, says) in [("OvenMediaEngine/0.19", true), ("nginx", false)] {
        let (mut stage, _) = Stage::new(0);
        stage.answer("404 Not Found", &format!("Server: {server}\r\n"), "");
        let (failure, words) = stage.failure();
        assert_eq!((failure, words.contains("ws://")), (Failure::StreamNotFound, says), "{words}");
    }
}

#[test]
fn answers_that_bend_the_standard_are_played_and_those_that_break_it_are_told_why() {
    let (_, offer) = Stage::new(0);
    let (_, good) = Server::answer(&offer, weir_shard::clock::now());
    let audio = good.find("m=audio").unwrap();
    let video = good.find("m=video").unwrap();
    assert!(audio < video);
    for (answer, said) in [
        (
            format!("{}{}", &good[..audio], &good[video..]),
            "media section 1 of the answer is video, and audio",
        ),
        (good[..audio].to_owned(), "no media"),
        (
            format!("{}{}{}", &good[..audio], &good[video..], &good[audio..video]),
            "media section 1 of the answer is video, and audio was offered there",
        ),
    ] {
        let (mut stage, _) = Stage::new(0);
        stage.answer("201 Created", "", &answer);
        let (_, words) = stage.failure();
        assert!(words.contains(said), "{words}");
    }
    // Formats without parameters, nothing to be set up for the session, and who begins with DTLS left open.
    for bend in [
        |line: &str| match line.strip_prefix("a=rtpmap:").and_then(|it| it.split(' ').next()) {
            Some(format) => format!("{line}\r\na=fmtp:{format}\r\n"),
            None => format!("{line}\r\n"),
        },
        |line: &str| match line.starts_with("t=") {
            true => format!("{line}\r\na=setup:holdconn\r\n"),
            false => format!("{line}\r\n"),
        },
        |line: &str| match line.starts_with("a=setup:") {
            true => "a=setup:actpass\r\n".to_owned(),
            false => format!("{line}\r\n"),
        },
    ] {
        let (mut stage, offer) = Stage::new(0);
        let (server, answer) = Server::answer(&offer, stage.rig.now);
        stage.server = Some(server);
        stage.answer("201 Created", "", &answer.lines().map(bend).collect::<String>());
        stage.agree_on_keys();
    }
}
