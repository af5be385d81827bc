//! A viewer of OvenMediaEngine, as far as its signalling is known from the wire: the server offers in a WebSocket.

use crate::stage::{Server, Stage, server_address};
use weir_clients::RtcOptions;
use weir_metrics::Failure;
use weir_rtc::signalling::oven::{self, Offer, Request};
use weir_rtc::signalling::websocket::{self, Incoming, Role, WebSocket};
use weir_shard::Event;

/// What the server has said last.
enum Farewell {
    /// The WebSocket is closed, and then the link.
    WebSocket,
    /// The DTLS association.
    Association,
    /// The link alone.
    Link,
}

/// A viewer that plays, and the server's end of its WebSocket.
fn playing() -> (Stage, WebSocket) {
    let (mut stage, asked) = Stage::of(0, "ws://127.0.0.1:9/app/stream", &RtcOptions::default());
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
    assert_eq!(heard(&mut stage, &mut socket), Request::Offer);
    let (mut server, sdp) = Server::offering();
    let mut out = Vec::new();
    let offer = Offer { id: 7, sdp, candidates: Vec::new(), ice_servers: Vec::new() };
    socket.text(&oven::offer(&offer), &mut out);
    stage.dispatch(Event::Bytes(&out));
    let Request::Answer { id: 7, sdp, .. } = heard(&mut stage, &mut socket) else { panic!("no answer") };
    server.accept(&sdp, stage.rig.now);
    stage.server = Some(server);
    stage.agree_on_keys();
    stage.keyframe(4, server_address());
    assert_eq!(crate::stage::counter(&stage.figures(), "played"), 1);
    (stage, socket)
}

#[test]
fn a_publisher_that_leaves_is_one_ending_however_the_server_says_it() {
    for farewell in [Farewell::WebSocket, Farewell::Association, Farewell::Link] {
        let (mut stage, mut socket) = playing();
        match farewell {
            Farewell::WebSocket => {
                let mut out = Vec::new();
                socket.close(1000, &mut out);
                stage.dispatch(Event::Bytes(&out));
            }
            Farewell::Association => {
                stage.server.as_mut().unwrap().transport.close();
                stage.exchange();
            }
            Farewell::Link => stage.dispatch(Event::HungUp { failure: Failure::ClosedByPeer, words: "" }),
        }
        let (failure, words) = stage.failure();
        assert_eq!(failure, Failure::StreamEnded, "{words}");
    }
    // A link that breaks is none.
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
