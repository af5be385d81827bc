//! TURN servers that a server's answer names: which is used, when, and what is said of one that is of no use.

use crate::stage::{PHASE_TIMEOUT, Server, Stage, WHEP, server_address};
use crate::whep::{farewell, patched};
use std::time::Duration;
use weir_clients::RtcOptions;
use weir_metrics::Failure;
use weir_rtc::sdp::Setup;
use weir_shard::{Event, Side, Transport};

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
