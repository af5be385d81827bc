//! What a viewer is sent that it should not be sent: each kind has a name and is counted, and nothing else happens.

use crate::stage::{Server, Stage, counter, server_address};
use std::time::Instant;
use weir_clients::RtcOptions;
use weir_metrics::Failure;
use weir_rtc::rtp::Header;
use weir_rtc::sdp::MOST_BYTES;
use weir_rtc::signalling::oven::{self, IceServer, Offer};
use weir_rtc::signalling::websocket::{self, Role, WebSocket};
use weir_rtc::srtp::Outbound;
use weir_rtc::transport::{Certificate, Clock, DtlsRole, Output, Remote, Transport, TransportSettings};
use weir_shard::{Event, clock};

fn stranger() -> std::net::SocketAddr {
    "127.0.0.9:9".parse().unwrap()
}

impl Stage {
    /// A client that plays, of which nothing is counted yet.
    fn quiet(client: u32) -> Self {
        let mut stage = Self::playing(client);
        stage.keyframe(4, server_address());
        stage.figures();
        stage
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.rig.tell_datagram(&mut *self.viewer, server_address(), bytes);
    }

    /// What is counted beside packets that play, by name.
    fn oddities(&mut self) -> [u64; 4] {
        let figures = self.figures();
        ["rtc.strange", "rtc.replayed", "rtc.unauthentic", "rtc.malformed"]
            .map(|name| counter(&figures, name))
    }

    /// It plays on as if nothing had been.
    fn plays_on(&mut self) {
        self.figures();
        self.keyframe(4, server_address());
        assert_eq!((counter(&self.figures(), "units"), self.rig.closed), (4, false));
    }
}

#[test]
fn packets_from_a_strangers_address_are_strange_however_genuine() {
    for client in [0, 5] {
        let mut stage = Stage::quiet(client);
        stage.keyframe(4, stranger());
        let figures = stage.figures();
        assert_eq!((counter(&figures, "rtc.strange"), counter(&figures, "units")), (4, 0));
        stage.plays_on();
    }
}

#[test]
fn replayed_packets_are_told_by_who_decrypts_and_by_who_does_not() {
    let mut witness = Stage::quiet(0);
    let genuine = witness.keyframe(4, server_address());
    witness.figures();
    genuine.iter().for_each(|datagram| witness.hear(datagram));
    assert_eq!(witness.oddities(), [0, 4, 0, 0]);
    witness.plays_on();

    // Whoever reads headers only sees numbers that have been.
    let mut crowd = Stage::quiet(5);
    let genuine = crowd.keyframe(4, server_address());
    genuine.iter().for_each(|datagram| crowd.hear(datagram));
    crowd.dispatch(Event::Stop);
    let figures = crowd.figures();
    assert_eq!((counter(&figures, "duplicate"), counter(&figures, "lost")), (4, 0));
}

#[test]
fn packets_of_another_key_are_unauthentic() {
    let mut stage = Stage::quiet(0);
    let (_, key) = Stage::playing(1).server.unwrap().keys.unwrap();
    let mut others = Outbound::new(&key).unwrap();
    let payload_type = stage.server.as_ref().unwrap().video_payload_type();
    for sequence_number in 10..15 {
        let header = Header { marker: true, payload_type, sequence_number, timestamp: 90_000, ssrc: 7 };
        let mut packet = Vec::new();
        header.append(&[], &mut packet).unwrap();
        packet.resize(200, 1);
        others.protect_rtp(&mut packet, 0).unwrap();
        stage.hear(&packet);
    }
    let mut report = vec![0x80, 201, 0, 1, 0, 0, 0, 7];
    others.protect_rtcp(&mut report, 0).unwrap();
    stage.hear(&report);
    assert_eq!(stage.oddities(), [0, 0, 6, 0]);
    stage.plays_on();
}

#[test]
fn reports_that_are_authentic_and_none_are_malformed() {
    let mut stage = Stage::quiet(0);
    for report in [
        // Longer than there is of it; a sender's without its figures; of another version.
        vec![0x80, 201, 0, 200, 0, 0, 0, 7],
        vec![0x80, 200, 0, 1, 0, 0, 0, 7],
        vec![0x80, 201, 0, 1, 0, 0, 0, 7, 0x40, 200, 0, 0],
    ] {
        let mut report = report;
        let (keys, _) = stage.server.as_mut().unwrap().keys.as_mut().unwrap();
        keys.protect_rtcp(&mut report, 0).unwrap();
        stage.hear(&report);
    }
    assert_eq!(stage.oddities(), [0, 0, 0, 3]);
    stage.plays_on();
}

/// A connectivity check of somebody who knows the viewer's names, and not its password.
fn check(user_fragment: &str) -> Vec<u8> {
    let certificate = Certificate::generate().unwrap();
    let mut transport = Transport::new(TransportSettings {
        local: stranger(),
        certificate: certificate.clone(),
        lite: false,
        controlling: true,
        clock: Clock::new(clock::now(), Instant::now()),
    })
    .unwrap();
    transport.add_candidate("1 1 udp 1 127.0.0.1 40000 typ host").unwrap();
    let remote = Remote {
        user_fragment: user_fragment.to_owned(),
        password: "a-password-of-nobody-here".to_owned(),
        fingerprint: certificate.fingerprint(),
    };
    transport.connect(clock::now(), remote, DtlsRole::Client);
    let mut sent = std::iter::from_fn(|| transport.poll());
    let request = sent
        .find_map(|output| if let Output::Send { datagram, .. } = output { Some(datagram) } else { None });
    request.expect("a connectivity check")
}

#[test]
fn a_flood_of_connectivity_checks_is_counted_and_not_answered() {
    let mut stage = Stage::quiet(0);
    let user_fragment = stage.user_fragment.clone();
    let mut request = check(&user_fragment);
    stage.rig.take_datagrams();
    for number in 0..10_000_u32 {
        // Each from a place of its own, and with a transaction of its own.
        request[8..12].copy_from_slice(&number.to_be_bytes());
        let source = std::net::SocketAddr::from(([10, 0, (number >> 8) as u8, number as u8], 9));
        stage.rig.tell_datagram(&mut *stage.viewer, source, &request);
    }
    assert_eq!(stage.oddities(), [10_000, 0, 0, 0]);
    assert_eq!(stage.rig.take_datagrams(), []);
    for length in 1..20 {
        stage.hear(&request[..length]);
    }
    // Of one byte nothing can be told.
    assert_eq!(stage.oddities(), [1, 0, 0, 18]);
    stage.plays_on();
}

#[test]
fn rubbish_is_counted_and_nothing_else() {
    let mut stage = Stage::quiet(0);
    let mut random = 1_u32;
    for length in 0..400 {
        let rubbish: Vec<u8> = (0..length % 90)
            .map(|_| {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (random >> 24) as u8
            })
            .collect();
        // STUN, DTLS, RTP, RTCP and something else.
        for first in [0, 22, 0x80, 0xFF] {
            let bytes: Vec<u8> = std::iter::once(first).chain(rubbish.iter().copied()).collect();
            stage.hear(&bytes);
        }
    }
    let counted: u64 = stage.oddities().iter().sum();
    // DTLS passes over what is not a record of its own, except those of one byte, which cannot be distinguished.
    assert_eq!(counted, 3 * 400 + 5);
    stage.plays_on();
}

/// A viewer of OvenMediaEngine whose WebSocket is open, and that is told this.
fn told(texts: &[String]) -> (Failure, String) {
    told_stage(texts).failure()
}

fn told_stage(texts: &[String]) -> Stage {
    let (mut stage, asked) = Stage::of(0, "ws://127.0.0.1:9/app/stream", &RtcOptions::default());
    let key = asked.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
    let accept = websocket::accept(key);
    let head = format!("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {accept}\r\n\r\n");
    stage.dispatch(Event::Bytes(head.as_bytes()));
    let mut out = Vec::new();
    let mut socket = WebSocket::new(Role::Server, 256 << 10);
    texts.iter().for_each(|text| socket.text(text, &mut out));
    out.chunks(10_000).for_each(|piece| stage.dispatch(Event::Bytes(piece)));
    stage
}

fn offer(sdp: &str) -> String {
    oven::offer(&Offer { id: 1, sdp: sdp.to_owned(), candidates: Vec::new(), ice_servers: Vec::new() })
}

#[test]
fn signalling_that_is_too_long_or_none_ends_the_client_in_words() {
    let (_, posted) = Stage::new(0);
    let (_, good) = Server::answer(&posted, clock::now());
    let without = |what: &str| {
        let lines = good.lines().filter(|line| !line.contains(what));
        lines.map(|line| format!("{line}\r\n")).collect::<String>()
    };
    for (text, failure, words) in [
        (
            format!("{{\"command\":\"{}\"}}", "x".repeat(oven::MOST_BYTES)),
            Failure::MalformedInput,
            "over 262144 bytes",
        ),
        ("{\"command\":".to_owned(), Failure::MalformedInput, "not a signalling message of OvenMediaEngine"),
        ("[".repeat(10_000), Failure::MalformedInput, "not a signalling message of OvenMediaEngine"),
        ("{\"command\":\"offer\"}".to_owned(), Failure::MalformedInput, "without a session description"),
        (
            offer(&format!("v=0\r\n{}", "a=x\r\n".repeat(MOST_BYTES / 5))),
            Failure::MalformedInput,
            "131072 are read",
        ),
        (offer("v=0\r\nm=video x\r\n"), Failure::MalformedInput, "line 2"),
        (offer("hello"), Failure::MalformedInput, "v=0"),
        (offer(&without("fingerprint")), Failure::MalformedInput, "no fingerprint"),
        (offer(&without("m=")), Failure::Rejected, "has no media"),
    ] {
        let shown: String = text.chars().take(60).collect();
        let (found, said) = told(&[text]);
        assert!(found == failure && said.contains(words), "{shown}: {said}");
    }
    // What is of no use is passed over, and what stands behind it is heard.
    let other = "{\"command\":\"notification\"}".to_owned();
    let (found, _) = told(&[other.clone(), other, oven::refusal(404, "Cannot create offer")]);
    assert_eq!(found, Failure::StreamNotFound);
}

#[test]
fn a_relay_that_ovenmediaengine_names_unasked_is_followed() {
    let (_, posted) = Stage::new(0);
    let (_, sdp) = Server::answer(&posted, clock::now());
    let turn = |url: &str| IceServer {
        urls: vec![url.to_owned()],
        username: "ome".to_owned(),
        credential: "airen".to_owned(),
    };
    // `TcpForce` of its example configuration; and a server that names nothing, or nothing that weir speaks.
    for (servers, follows) in [
        (vec![turn("turn:127.0.0.7:3478?transport=tcp")], true),
        (vec![], false),
        (vec![turn("turn:127.0.0.7:3478?transport=udp")], false),
    ] {
        let candidates = vec!["candidate:0 1 UDP 50 127.0.0.1 10000 typ host".to_owned()];
        let text = oven::offer(&Offer { id: 1, sdp: sdp.clone(), candidates, ice_servers: servers });
        let mut stage = told_stage(&[text]);
        assert_eq!(stage.rig.side.is_some(), follows);
        stage.handle_timeout(std::time::Duration::from_millis(100));
        // Nothing goes by its own socket then.
        assert_eq!(stage.rig.take_datagrams().is_empty(), follows);
    }
}

#[test]
fn a_forged_alert_in_the_set_up_ends_no_viewer() {
    // Fatal, handshake_failure, in a record that nothing protects: 15 bytes from whoever guesses the port.
    let alert = [21, 254, 253, 0, 0, 0, 0, 0, 0, 0, 9, 0, 2, 2, 40];
    for client in [0, 5] {
        let (mut stage, offer) = Stage::new(client);
        let (server, answer) = Server::answer(&offer, stage.rig.now);
        stage.answer("201 Created", "", &answer);
        stage.server = Some(server);
        let mut sent = 0;
        while stage.server.as_ref().is_some_and(|server| server.keys.is_none()) && sent < 200 {
            for source in [stranger(), "127.0.0.1:5001".parse().unwrap()] {
                stage.rig.tell_datagram(&mut *stage.viewer, source, &alert);
                sent += 1;
            }
            // Not even under the server's address.
            stage.rig.tell_datagram(&mut *stage.viewer, server_address(), &alert);
            stage.exchange();
            stage.handle_timeout(std::time::Duration::from_millis(5));
        }
        stage.exchange();
        stage.keyframe(4, server_address());
        let figures = stage.figures();
        assert_eq!((counter(&figures, "played"), stage.rig.closed), (1, false));
        assert!(counter(&figures, "rtc.strange") >= sent, "{} of {sent}", counter(&figures, "rtc.strange"));
    }
}
