//! WHEP as servers speak it (draft-ietf-wish-whep, RFC 9725): places, tags, candidates that come later, relays, tokens.

use crate::stage::{PHASE_TIMEOUT, Server, Stage, WHEP, server_address};
use std::time::Duration;
use weir_clients::{Ending, RtcOptions};
use weir_metrics::Failure;
use weir_rtc::sdp::Setup;
use weir_shard::{Event, Side, Transport};

/// What a viewer says when it is stopped, and where.
fn goodbye(stage: &mut Stage) -> (String, String) {
    stage.dispatch(Event::Stop);
    assert_eq!(stage.rig.world.take_ended()[0].1, Ending::OnTime);
    farewell(stage)
}

/// What a viewer that is over says, and where.
fn farewell(stage: &mut Stage) -> (String, String) {
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
fn trickling() -> (Stage, String) {
    let (mut stage, offer) = Stage::new(0);
    let (server, answer) = Server::answer(&offer, stage.rig.now);
    stage.server = Some(server);
    let fields = "Location: /session/1\r\nETag: \"one\"\r\nAccept-Patch: application/trickle-ice-sdpfrag\r\n";
    stage.answer("201 Created", fields, &answer);
    let patch = patched(&mut stage);
    (stage, patch)
}

fn patched(stage: &mut Stage) -> String {
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
    // Who does not offer it is not asked.
    let stage =
        Stage::playing_with(0, Setup::Passive, "Location: /session/1\r\nAccept-Patch: text/plain\r\n");
    assert!(stage.rig.reopened.is_none());
}

const LINK: &str = "Location: /session/1\r\nLink: <stun:h:1>; rel=\"ice-server\"\r\n\
    Link: <turn:127.0.0.7:3479?transport=tcp>; rel=\"ice-server\"; username=\"u\"; credential=\"c\"; credential-type=\"password\"\r\n";

/// The first bytes of an Allocate request without credentials, which is asked for first.
const ALLOCATE: [u8; 4] = [0, 3, 0, 8];

#[test]
fn a_relay_is_left_alone_while_it_is_not_needed() {
    let mut stage = Stage::playing_with(0, Setup::Passive, LINK);
    stage.keyframe(4, server_address());
    stage.handle_timeout(Duration::from_secs(5));
    assert!(stage.rig.side.is_none());
}

#[test]
fn a_relay_is_used_where_the_server_is_not_reached_without() {
    // Its candidates do not answer.
    let (mut stage, offer) = Stage::new(0);
    let (_, answer) = Server::answer(&offer, stage.rig.now);
    stage.answer("201 Created", LINK, &answer);
    stage.handle_timeout(Duration::from_millis(1_500));
    assert!(stage.rig.side.is_none());
    stage.handle_timeout(Duration::from_secs(1));
    let endpoint = stage.rig.side.as_ref().expect("a link to the relay").address.to_string();
    assert_eq!(endpoint, "127.0.0.7:3479");
    stage.dispatch(Event::Side(Side::Connected));
    assert_eq!(stage.rig.side_sent[..4], ALLOCATE);

    // It has none that UDP reaches.
    let (mut stage, offer) = Stage::new(0);
    let (_, answer) = Server::answer(&offer, stage.rig.now);
    let lines = answer.lines().filter(|line| !line.starts_with("a=candidate"));
    let answer: String = lines.map(|line| format!("{line}\r\n")).collect();
    stage.answer("201 Created", LINK, &answer);
    assert!(stage.rig.side.is_some());
    // The relay refuses, where it is said to be, and where the signalling is.
    stage.dispatch(Event::Side(Side::Closed { failure: Failure::ConnectionRefused, words: "refused" }));
    assert_eq!(stage.rig.side.as_ref().unwrap().address.to_string(), "127.0.0.1:3479");
    stage.dispatch(Event::Side(Side::Closed { failure: Failure::ConnectionRefused, words: "refused" }));
    let (failure, words) = stage.failure();
    assert_eq!((failure, &*words), (Failure::ConnectionRefused, "TURN server 127.0.0.7:3479: refused"));
    let (_, said) = farewell(&mut stage);
    assert!(said.starts_with("DELETE /session/1 HTTP/1.1\r\n"), "{said}");
}

#[test]
fn a_relay_that_has_a_name_is_looked_up_and_one_without_an_address_is_sought_at_the_signalling() {
    for (host, address) in [
        ("localhost", "127.0.0.1:3479"),
        ("no-such-host.invalid", "127.0.0.1:3479"),
        ("0.0.0.0", "127.0.0.1:3479"),
        ("127.0.0.8", "127.0.0.8:3479"),
    ] {
        let url = format!("{WHEP}?transport=tcp");
        let (mut stage, said) = Stage::of(0, &url, &RtcOptions::default());
        let (_, answer) = Server::answer(said.split_once("\r\n\r\n").unwrap().1, stage.rig.now);
        stage.answer("201 Created", &LINK.replace("127.0.0.7", host), &answer);
        // Names are resolved beside virtual time.
        for _ in 0..100 {
            if stage.rig.side.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
            stage.handle_timeout(Duration::from_millis(20));
        }
        let mut endpoint = stage.rig.side.as_ref().expect(host).address;
        if endpoint.is_ipv6() && host == "localhost" {
            endpoint.set_ip([127, 0, 0, 1].into());
        }
        assert_eq!(endpoint.to_string(), address, "{host}");
    }
}

#[test]
fn a_relay_over_udp_is_talked_to_by_the_clients_own_socket() {
    let url = format!("{WHEP}?transport=tcp");
    let (mut stage, said) = Stage::of(0, &url, &RtcOptions::default());
    let (_, answer) = Server::answer(said.split_once("\r\n\r\n").unwrap().1, stage.rig.now);
    stage.answer("201 Created", &LINK.replace("transport=tcp", "transport=udp"), &answer);
    assert!(stage.rig.side.is_none(), "there is no link to it");
    let relay = "127.0.0.7:3479".parse().unwrap();
    let sent = stage.rig.take_datagrams();
    let [(to, asked)] = &sent[..] else { panic!("{sent:?}") };
    assert_eq!((*to, &asked[..4]), (relay, &ALLOCATE[..]));
    // It was lost.
    stage.handle_timeout(Duration::from_millis(499));
    assert!(stage.rig.take_datagrams().is_empty());
    stage.handle_timeout(Duration::from_millis(2));
    assert_eq!(stage.rig.take_datagrams(), [(relay, asked.clone())]);

    let granted =
        relay_says(0x0103, &asked[8..20], &[0, 0x16, 0, 8, 0, 1, 0xE1, 0x12, 0xE1, 0x12, 0xA6, 0x45]);
    stage.rig.tell_datagram(&mut *stage.viewer, relay, &granted);
    stage.handle_timeout(Duration::from_millis(100));
    // A permission for the server and a check, each a datagram of its own; nothing goes otherwise.
    let sent = stage.rig.take_datagrams();
    assert!(sent.iter().all(|(to, _)| *to == relay), "{sent:?}");
    let kinds: Vec<_> = sent.iter().map(|(_, bytes)| [bytes[0], bytes[1]]).collect();
    assert_eq!(kinds[..2], [[0, 8], [0, 0x16]]);
    // What comes by another way is nothing, and what the relay sends that is no frame is counted.
    stage.figures();
    stage.rig.tell_datagram(&mut *stage.viewer, server_address(), &[0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7]);
    assert_eq!(crate::stage::counter(&stage.figures(), "rtc.early"), 0);
    for none in [&[0x80, 96, 0, 1][..], &[0x40, 0, 0, 9, 1], &[0x40, 9, 0, 1, 1]] {
        stage.rig.tell_datagram(&mut *stage.viewer, relay, none);
        assert_eq!(crate::stage::counter(&stage.figures(), "rtc.strange"), 1);
    }
}

#[test]
fn a_relay_over_udp_that_does_not_answer_is_sought_at_the_signalling_and_then_named() {
    let url = format!("{WHEP}?transport=tcp");
    let (mut stage, said) = Stage::of(0, &url, &RtcOptions::default());
    let (_, answer) = Server::answer(said.split_once("\r\n\r\n").unwrap().1, stage.rig.now);
    stage.answer("201 Created", &LINK.replace("transport=tcp", "transport=udp"), &answer);
    stage.handle_timeout(Duration::from_millis(2_001));
    let last = stage.rig.take_datagrams().pop().expect("another try").0;
    assert_eq!(last.to_string(), "127.0.0.1:3479");
    stage.handle_timeout(PHASE_TIMEOUT);
    let (failure, words) = stage.failure();
    assert_eq!(failure, Failure::HandshakeTimeout);
    assert_eq!(words, "TURN server 127.0.0.7:3479: it did not answer in time", "not where the signalling is");
}

#[test]
fn a_relay_over_tls_is_linked_to_with_the_name_that_its_certificate_must_have() {
    let url = format!("{WHEP}?transport=tcp");
    // Names are those that the server gives, or that of the signalling.
    for (uri, name, port) in [
        ("turns:localhost:7?transport=tcp", "localhost", 7),
        ("turns:127.0.0.1", "127.0.0.1", 5349),
        ("turns:0.0.0.0", "127.0.0.1", 5349),
    ] {
        let (mut stage, said) = Stage::of(0, &url, &RtcOptions::default());
        let (_, answer) = Server::answer(said.split_once("\r\n\r\n").unwrap().1, stage.rig.now);
        stage.answer("201 Created", &LINK.replace("turn:127.0.0.7:3479?transport=tcp", uri), &answer);
        // Names are resolved, and authorities read, beside virtual time.
        for _ in 0..100 {
            if stage.rig.side.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
            stage.handle_timeout(Duration::from_millis(20));
        }
        let endpoint = stage.rig.side.as_ref().expect(uri);
        let Transport::Tls(_, certified) = &endpoint.transport else { panic!("{uri}") };
        assert_eq!((&*certified.to_str(), endpoint.address.port()), (name, port), "{uri}");
        stage.dispatch(Event::Side(Side::Connected));
        assert_eq!(stage.rig.side_sent[..4], ALLOCATE);
    }
}

#[test]
fn a_path_that_is_found_while_a_relay_is_asked_stays() {
    let (mut stage, offer) = Stage::new(0);
    let (server, answer) = Server::answer(&offer, stage.rig.now);
    stage.answer("201 Created", LINK, &answer);
    stage.handle_timeout(Duration::from_millis(2_100));
    assert!(stage.rig.side.is_some(), "the server is slow");
    stage.dispatch(Event::Side(Side::Connected));
    stage.server = Some(server);
    for _ in 0..100 {
        stage.exchange();
        stage.handle_timeout(Duration::from_millis(5));
    }
    assert!(stage.rig.side.is_none(), "and was there after all");
    stage.keyframe(4, server_address());
    assert_eq!(crate::stage::counter(&stage.figures(), "played"), 1);
}

/// A message of the relay's server, without what it need not say.
fn relay_says(kind: u16, transaction: &[u8], attributes: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_be_bytes().to_vec();
    bytes.extend((attributes.len() as u16).to_be_bytes());
    bytes.extend([0x21, 0x12, 0xA4, 0x42]);
    bytes.extend(transaction);
    bytes.extend(attributes);
    bytes
}

#[test]
fn the_address_of_a_relay_is_told_where_the_server_takes_candidates() {
    let url = format!("{WHEP}?transport=tcp");
    let (mut stage, said) = Stage::of(0, &url, &RtcOptions::default());
    let (_, answer) = Server::answer(said.split_once("\r\n\r\n").unwrap().1, stage.rig.now);
    let fields = format!("{LINK}Accept-Patch: application/trickle-ice-sdpfrag\r\n");
    stage.answer("201 Created", &fields, &answer);
    assert!(stage.rig.reopened.is_none(), "there is nothing to tell yet");
    stage.dispatch(Event::Side(Side::Connected));
    let asked = std::mem::take(&mut stage.rig.side_sent);
    // 192.0.2.7:49152, hidden; in two pieces.
    let granted =
        relay_says(0x0103, &asked[8..20], &[0, 0x16, 0, 8, 0, 1, 0xE1, 0x12, 0xE1, 0x12, 0xA6, 0x45]);
    stage.rig.dispatch_side(&mut *stage.viewer, &granted[..9]);
    stage.rig.dispatch_side(&mut *stage.viewer, &granted[9..]);
    let patch = patched(&mut stage);
    assert!(patch.starts_with("PATCH /session/1 HTTP/1.1\r\n"), "{patch}");
    assert!(patch.contains("192.0.2.7 49152 typ relay") && !patch.contains("typ host"), "{patch}");
    // Checks go by it, and have not gone otherwise: a permission for the server, and the first as an indication.
    stage.handle_timeout(Duration::from_millis(100));
    assert_eq!(stage.rig.side_sent[..2], [0, 8]);
    assert!(stage.rig.take_datagrams().is_empty());
    // What comes by another way is nothing.
    stage.figures();
    stage.rig.tell_datagram(&mut *stage.viewer, server_address(), &[0x80, 96, 0, 1, 0, 0, 0, 0, 0, 0, 0, 7]);
    assert_eq!(crate::stage::counter(&stage.figures(), "rtc.early"), 0);
}

#[test]
fn a_relay_that_says_what_is_no_frame_or_nothing_is_named() {
    let begin = || {
        let url = format!("{WHEP}?transport=tcp");
        let (mut stage, said) = Stage::of(0, &url, &RtcOptions::default());
        let (_, answer) = Server::answer(said.split_once("\r\n\r\n").unwrap().1, stage.rig.now);
        stage.answer("201 Created", LINK, &answer);
        assert!(stage.rig.side.is_some(), "it was asked for");
        stage.dispatch(Event::Side(Side::Connected));
        stage
    };
    let mut stage = begin();
    stage.rig.dispatch_side(&mut *stage.viewer, &[0xFF, 0xFE, 0, 0]);
    let (failure, words) = stage.failure();
    assert_eq!(failure, Failure::MalformedInput);
    assert!(words.starts_with("TURN server 127.0.0.7:3479: ") && words.contains("STUN"), "{words}");

    let mut stage = begin();
    stage.handle_timeout(PHASE_TIMEOUT);
    let (failure, words) = stage.failure();
    assert_eq!(failure, Failure::HandshakeTimeout);
    assert_eq!(words, "TURN server 127.0.0.7:3479: it did not answer in time");

    let mut stage = begin();
    stage.dispatch(Event::Side(Side::Closed { failure: Failure::ClosedByPeer, words: "" }));
    assert_eq!(
        stage.failure(),
        (Failure::ClosedByPeer, "TURN server 127.0.0.7:3479: it closed the link".to_owned())
    );
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

/// A server's list of three relays: by TCP at two places, by UDP at a third.
const LIST: &str = "Location: /session/1\r\n\
    Link: <turn:127.0.0.7:3479?transport=tcp>; rel=\"ice-server\"; username=\"u\"; credential=\"c\"; credential-type=\"password\"\r\n\
    Link: <turn:127.0.0.8:3480>; rel=\"ice-server\"; username=\"u\"; credential=\"c\"; credential-type=\"password\"\r\n\
    Link: <turn:127.0.0.9:3481?transport=tcp>; rel=\"ice-server\"; username=\"u\"; credential=\"c\"; credential-type=\"password\"\r\n";

/// A viewer that goes by one of them.
fn listed() -> Stage {
    let url = format!("{WHEP}?transport=tcp");
    let (mut stage, said) = Stage::of(0, &url, &RtcOptions::default());
    let (_, answer) = Server::answer(said.split_once("\r\n\r\n").unwrap().1, stage.rig.now);
    stage.answer("201 Created", LIST, &answer);
    stage
}

fn linked(stage: &Stage) -> String {
    stage.rig.side.as_ref().map_or("none".to_owned(), |endpoint| endpoint.address.to_string())
}

#[test]
fn each_relay_of_a_list_is_tried_and_what_became_of_each_is_said() {
    let refused = || Event::Side(Side::Closed { failure: Failure::ConnectionRefused, words: "refused" });
    let mut stage = listed();
    assert_eq!(linked(&stage), "127.0.0.7:3479");
    // Where it says that it is, and where signalling is.
    stage.dispatch(refused());
    assert_eq!(linked(&stage), "127.0.0.1:3479");
    stage.dispatch(refused());
    assert_eq!(linked(&stage), "127.0.0.9:3481");
    // It is there, and does not know the name: 401 without anything to sign with.
    stage.dispatch(Event::Side(Side::Connected));
    let asked = std::mem::take(&mut stage.rig.side_sent);
    let mut words = vec![0, 9, 0, 7, 0, 0, 4, 1];
    words.extend(b"no!\0");
    let refusal = relay_says(0x0113, &asked[8..20], &words);
    stage.rig.dispatch_side(&mut *stage.viewer, &refusal);
    // The last one is asked by UDP, at both places.
    assert_eq!(linked(&stage), "none");
    assert_eq!(stage.rig.take_datagrams().pop().unwrap().0.to_string(), "127.0.0.8:3480");
    stage.handle_timeout(PHASE_TIMEOUT);
    let (failure, words) = stage.failure();
    assert_eq!(failure, Failure::ConnectionRefused);
    let part = "no way by 3 TURN servers: 127.0.0.7:3479: refused; 127.0.0.9:3481: 401 no!; 127.0.0.8:3480: ";
    assert!(words.starts_with(part), "{words}");
    assert!(words.ends_with("it did not answer in time"), "{words}");
}

#[test]
fn a_relay_that_is_silent_is_left_for_the_next_one() {
    let mut stage = listed();
    // The link is not established.
    stage.handle_timeout(Duration::from_millis(2_001));
    assert_eq!(linked(&stage), "127.0.0.1:3479");
    let mut stage = listed();
    // It is, and nothing comes.
    stage.dispatch(Event::Side(Side::Connected));
    stage.handle_timeout(Duration::from_millis(2_001));
    assert_eq!(linked(&stage), "127.0.0.9:3481");
}

#[test]
fn a_relay_that_leads_nowhere_is_left_for_the_next_one() {
    let mut stage = listed();
    stage.dispatch(Event::Side(Side::Connected));
    let asked = std::mem::take(&mut stage.rig.side_sent);
    let granted =
        relay_says(0x0103, &asked[8..20], &[0, 0x16, 0, 8, 0, 1, 0xE1, 0x12, 0xE1, 0x12, 0xA6, 0x45]);
    // Some of the next message is there already, and is not the next server's.
    stage.rig.dispatch_side(&mut *stage.viewer, &[&granted[..], &[0, 1]].concat());
    stage.rig.take_datagrams();
    for _ in 0..21 {
        stage.handle_timeout(Duration::from_millis(100));
    }
    assert_eq!(linked(&stage), "127.0.0.9:3481");
    stage.dispatch(Event::Side(Side::Connected));
    let asked = std::mem::take(&mut stage.rig.side_sent);
    assert_eq!(asked[..4], ALLOCATE);
    stage.handle_timeout(Duration::from_millis(200));
    assert!(stage.rig.take_datagrams().is_empty(), "nothing goes otherwise meanwhile");
    let granted =
        relay_says(0x0103, &asked[8..20], &[0, 0x16, 0, 8, 0, 1, 0xE1, 0x12, 0xE1, 0x12, 0xA6, 0x45]);
    stage.rig.dispatch_side(&mut *stage.viewer, &granted);
    stage.handle_timeout(Duration::from_millis(100));
    // A permission for the server: checks go by this one now.
    assert_eq!(stage.rig.side_sent[..2], [0, 8]);
}

/// The viewer's session with a server that describes its candidates like this.
fn answered_with(candidate: impl Fn(&str) -> String) -> Stage {
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
