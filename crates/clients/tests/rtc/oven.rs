//! A viewer of OvenMediaEngine, by what is known of its signalling from the wire: the server offers in a WebSocket.

use crate::stage::{Server, Stage, server_address};
use std::time::Duration;
use weir_clients::{Return, RtcOptions};
use weir_metrics::Failure;
use weir_metrics::common::RECOVERY;
use weir_rtc::signalling::oven::{self, Offer, Request};
use weir_rtc::signalling::websocket::{self, Incoming, Role, WebSocket};
use weir_shard::Event;

/// What the server has said last.
enum LastMessage {
    /// The WebSocket is closed, and then the link.
    WebSocket,
    /// The DTLS association.
    Association,
    /// The link alone.
    Link,
}

/// A viewer that plays, and the server's end of its WebSocket.
fn playing() -> (Stage, WebSocket) {
    let (mut stage, asked) = Stage::of(0, URL, &RtcOptions::default());
    let socket = play(&mut stage, &asked);
    assert_eq!(crate::stage::counter(&stage.figures(), "played"), 1);
    (stage, socket)
}

const URL: &str = "ws://127.0.0.1:9/app/stream";

/// The server consents to what a viewer has asked on its link, and sends it a keyframe.
fn play(stage: &mut Stage, asked: &str) -> WebSocket {
    let key = asked.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
    let accept = websocket::accept(key);
    let head = format!("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {accept}\r\n\r\n");
    stage.dispatch(Event::Bytes(head.as_bytes()));
    let mut socket = WebSocket::new(Role::Server, 256 << 10);
    let heard = |stage: &mut Stage, socket: &mut WebSocket| {
        socket.input(&stage.rig.take_sent());
        match socket.poll(&mut Vec::new()) {
            Ok(Some(Incoming::Text(text))) => Request::parse(&text).unwrap(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(heard(stage, &mut socket), Request::Offer);
    let (mut server, sdp) = Server::offering();
    let mut out = Vec::new();
    let offer = Offer { id: 7, sdp, candidates: Vec::new(), ice_servers: Vec::new() };
    socket.text(&oven::offer(&offer), &mut out);
    stage.dispatch(Event::Bytes(&out));
    let Request::Answer { id: 7, sdp, .. } = heard(stage, &mut socket) else { panic!("no answer") };
    server.accept(&sdp, stage.rig.now);
    stage.server = Some(server);
    stage.agree_on_keys();
    stage.keyframe(4, server_address());
    socket
}

#[test]
fn a_publisher_that_leaves_is_one_ending_however_the_server_says_it() {
    for farewell in [LastMessage::WebSocket, LastMessage::Association, LastMessage::Link] {
        let (mut stage, mut socket) = playing();
        match farewell {
            LastMessage::WebSocket => {
                let mut out = Vec::new();
                socket.close(1000, &mut out);
                stage.dispatch(Event::Bytes(&out));
            }
            LastMessage::Association => {
                stage.server.as_mut().unwrap().transport.close();
                stage.exchange();
            }
            LastMessage::Link => stage.dispatch(Event::HungUp { failure: Failure::ClosedByPeer, words: "" }),
        }
        let (failure, words) = stage.failure();
        assert_eq!(failure, Failure::StreamEnded, "{words}");
    }
    // A link that breaks is not the end of the stream.
    let (mut stage, _) = playing();
    stage.dispatch(Event::HungUp { failure: Failure::Reset, words: "reset" });
    assert_eq!(stage.failure().0, Failure::Reset);
}

/// How a viewer of this URL fails whose server says this in place of an offer.
fn refused(url: &str, text: &str) -> (Failure, String) {
    let (mut stage, asked) = Stage::of(0, url, &RtcOptions::default());
    let key = asked.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
    let accept = websocket::accept(key);
    let head = format!("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {accept}\r\n\r\n");
    let mut out = head.into_bytes();
    WebSocket::new(Role::Server, 256 << 10).text(text, &mut out);
    stage.dispatch(Event::Bytes(&out));
    stage.failure()
}

#[test]
fn a_signed_policy_that_is_refused_is_no_missing_stream() {
    let refusal = r#"{"code":404,"error":"Cannot create offer"}"#;
    let plain = "ws://127.0.0.1:9/app/stream";
    assert_eq!(refused(plain, refusal), (Failure::StreamNotFound, "404 Cannot create offer".to_owned()));
    let (failure, words) = refused(&format!("{plain}?policy=eyJ1cmx&signature=dvVdBpoxAeC"), refusal);
    assert_eq!(failure, Failure::Rejected);
    assert!(words.starts_with("404 Cannot create offer: the signed policy"), "{words}");
    assert!(!words.contains("dvVdBpoxAeC"), "{words}");
}

/// The next attempt of a viewer that is away, within a second: what it asks.
fn attempt(stage: &mut Stage) -> String {
    for _ in 0..100 {
        if stage.rig.reopened.take().is_some() {
            stage.rig.take_sent();
            stage.dispatch(Event::Connected);
            return stage.said();
        }
        stage.handle_timeout(Duration::from_millis(10));
    }
    panic!("no attempt");
}

fn close(stage: &mut Stage, socket: &mut WebSocket) {
    let mut out = Vec::new();
    socket.close(1000, &mut out);
    stage.dispatch(Event::Bytes(&out));
}

fn counted<const N: usize>(stage: &mut Stage, names: [&str; N]) -> [u64; N] {
    let figures = stage.figures();
    names.map(|name| crate::stage::counter(&figures, name))
}

const AWAY: [&str; 5] = ["playing", "cut_off", "returned", "played", "slots_failed"];

#[test]
fn a_viewer_comes_back_when_its_stream_does_and_was_without_frames_for_so_long() {
    for client in [0, 5] {
        let returns = Return { after_end: Some(Duration::from_secs(20)), ..Return::default() };
        let (mut stage, asked) = Stage::returning(client, URL, &RtcOptions::default(), returns);
        let mut socket = play(&mut stage, &asked);
        for _ in 0..20 {
            stage.handle_timeout(Duration::from_millis(100));
            stage.keyframe(4, server_address());
        }
        close(&mut stage, &mut socket);
        assert_eq!(counted(&mut stage, AWAY), [0, 1, 0, 1, 0], "client {client}");
        // What still comes on the old path is of no session.
        stage.keyframe(4, server_address());
        assert_eq!(counted(&mut stage, ["units"]), [0]);
        // The publisher is away: the server does not know the stream.
        let asked = attempt(&mut stage);
        assert!(asked.starts_with("GET /app/stream HTTP/1.1\r\n"), "{asked}");
        let refusal = r#"{"code":404,"error":"Cannot create offer"}"#;
        let key = asked.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
        let head = "HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: ";
        let mut out = format!("{head}{}\r\n\r\n", websocket::accept(key)).into_bytes();
        WebSocket::new(Role::Server, 256 << 10).text(refusal, &mut out);
        stage.dispatch(Event::Bytes(&out));
        assert!(stage.rig.world.take_ended().is_empty() && !stage.rig.closed);
        // Nor does it listen for a moment.
        stage.handle_timeout(Duration::from_secs(1));
        stage.rig.reopened.take().expect("another attempt");
        stage.dispatch(Event::Closed { failure: Failure::ConnectionRefused, words: "refused" });
        stage.figures();
        let asked = attempt(&mut stage);
        play(&mut stage, &asked);
        let figures = stage.figures();
        let named = ["returned", "played", "slots_failed"].map(|name| crate::stage::counter(&figures, name));
        assert_eq!(named, [1, 0, 0], "client {client}");
        let recovery = figures.spread(RECOVERY);
        assert_eq!(recovery.len(), u64::from(client == 0));
        if client == 0 {
            assert!((1_000_000..3_000_000).contains(&recovery.max()), "{}", recovery.max());
        }
        // It plays on, and can be stopped as any other.
        stage.keyframe(4, server_address());
        assert_eq!(counted(&mut stage, ["units"]), [4]);
        stage.dispatch(Event::Stop);
        assert_eq!(stage.rig.world.take_ended()[0].1, weir_clients::Ending::OnTime);
    }
}

#[test]
fn a_viewer_whose_stream_stays_away_gives_up_with_what_broke_its_session() {
    let returns = Return { after_end: Some(Duration::from_secs(2)), ..Return::default() };
    let (mut stage, asked) = Stage::returning(0, URL, &RtcOptions::default(), returns);
    let mut socket = play(&mut stage, &asked);
    close(&mut stage, &mut socket);
    for _ in 0..100 {
        stage.handle_timeout(Duration::from_millis(100));
        if stage.rig.reopened.take().is_some() {
            stage.dispatch(Event::Closed { failure: Failure::ConnectionRefused, words: "refused" });
        }
        if stage.rig.closed {
            break;
        }
    }
    let (failure, words) = stage.failure();
    assert_eq!(failure, Failure::StreamEnded);
    assert!(
        words.contains("the server closed the WebSocket") && words.contains("no connection again in"),
        "{words}"
    );
    // One that is stopped meanwhile has left by plan. Without a grace, the end is the end.
    let (mut stage, asked) = Stage::returning(0, URL, &RtcOptions::default(), returns);
    let mut socket = play(&mut stage, &asked);
    close(&mut stage, &mut socket);
    stage.dispatch(Event::Stop);
    assert_eq!(stage.rig.world.take_ended()[0].1, weir_clients::Ending::OnTime);
    assert_eq!(counted(&mut stage, ["left_away", "cut_off"]), [1, 1]);
    // What breaks otherwise is not the end of a stream.
    let (mut stage, asked) = Stage::returning(0, URL, &RtcOptions::default(), returns);
    play(&mut stage, &asked);
    stage.dispatch(Event::HungUp { failure: Failure::Reset, words: "reset" });
    assert_eq!(stage.failure().0, Failure::Reset);
}
