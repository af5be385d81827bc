//! To the signalling of WebRTC.

use super::{OpenConnections, Origin, ROW, Row, ends, hears, send};
use std::time::Duration;

/// What a browser offers when it publishes: only the lines that an answer needs.
const OFFER: &str = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\na=group:BUNDLE 0\r\n\
    m=video 9 UDP/TLS/RTP/SAVPF 96\r\nc=IN IP4 0.0.0.0\r\na=mid:0\r\na=sendrecv\r\na=rtcp-mux\r\n\
    a=ice-ufrag:abcd\r\na=ice-pwd:abcdefghijklmnopqrstuvwx\r\na=setup:actpass\r\n\
    a=fingerprint:sha-256 00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF:00:11:22:33:44:55:66:77:88:99:AA:BB:CC:DD:EE:FF\r\n\
    a=rtpmap:96 H264/90000\r\na=fmtp:96 packetization-mode=1;profile-level-id=42e01f\r\n";

fn post(path: &str) -> Vec<u8> {
    let length = OFFER.len();
    format!(
        "POST {path} HTTP/1.1\r\nContent-Type: application/sdp\r\nContent-Length: {length}\r\n\r\n{OFFER}"
    )
    .into_bytes()
}

const UPGRADE: &[u8] = b"GET /live/a HTTP/1.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n";

/// A frame of a client, masked with zeros.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    match payload.len() {
        length @ ..126 => bytes.push(0x80 | length as u8),
        length => {
            bytes.push(0x80 | 126);
            bytes.extend((length as u16).to_be_bytes());
        }
    }
    bytes.extend([0; 4]);
    bytes.extend_from_slice(payload);
    bytes
}

/// Thousands of sessions over one connection.
fn many_offers(origin: &Origin) -> OpenConnections {
    let stream = origin.connect("whip+http");
    let bytes: Vec<u8> = (0..5_000).flat_map(|n| post(&format!("/live/{n}/whip"))).collect();
    // The answers are not read: the connection ends when too many wait.
    send(&stream, &bytes);
    vec![stream]
}

/// A publisher that takes a name and never comes: another one may have it when the patience is over.
fn no_media(origin: &Origin) -> OpenConnections {
    let ask = |stream: &std::net::TcpStream| {
        send(stream, &post("/live/a/whip"));
        hears(stream, "\r\n\r\n")
    };
    let first = origin.connect("whip+http");
    assert!(ask(&first).starts_with("HTTP/1.1 201"));
    ends(&first);
    let began = std::time::Instant::now();
    while !ask(&origin.connect("whip+http")).starts_with("HTTP/1.1 201") {
        assert!(began.elapsed() < crate::process::TEST_TIMEOUT, "the name is kept for nobody");
        std::thread::sleep(Duration::from_millis(100));
    }
    OpenConnections::new()
}

fn silent_socket(origin: &Origin) -> OpenConnections {
    let streams: Vec<_> = (0..50).map(|_| origin.connect("ws")).collect();
    for stream in &streams {
        send(stream, UPGRADE);
        hears(stream, "\r\n\r\n");
    }
    streams.iter().for_each(ends);
    OpenConnections::new()
}

fn many_offers_in_a_socket(origin: &Origin) -> OpenConnections {
    let stream = origin.connect("ws");
    send(&stream, UPGRADE);
    hears(&stream, "\r\n\r\n");
    send(&stream, &frame(0x81, br#"{"command":"request_offer"}"#).repeat(20_000));
    vec![stream]
}

/// A message in frames of one byte, up to its greatest length and beyond.
fn continuations(origin: &Origin) -> OpenConnections {
    let stream = origin.connect("ws");
    send(&stream, UPGRADE);
    hears(&stream, "\r\n\r\n");
    let mut bytes = frame(0x01, b"{");
    bytes.extend(frame(0x00, b" ").repeat(400_000));
    send(&stream, &bytes);
    ends(&stream);
    OpenConnections::new()
}

/// Pings whose answers nobody reads.
fn pings(origin: &Origin) -> OpenConnections {
    let stream = origin.connect("ws");
    send(&stream, UPGRADE);
    hears(&stream, "\r\n\r\n");
    let pings = frame(0x89, &[7; 125]).repeat(10_000);
    let taken = (0..100).take_while(|_| send(&stream, &pings)).count();
    assert!(taken < 100, "130 MB of pings were taken");
    vec![stream]
}

pub(super) const ROWS: &[Row] = &[
    Row { name: "WHIP: five thousand offers on one connection", attack: many_offers, ..ROW },
    Row {
        name: "WHIP: a name that is taken for nothing",
        flags: &["--request-timeout", "1s"],
        attack: no_media,
        ..ROW
    },
    Row {
        name: "WebSockets without a word",
        flags: &["--request-timeout", "1s"],
        attack: silent_socket,
        ..ROW
    },
    Row { name: "WebSocket: twenty thousand wishes for an offer", attack: many_offers_in_a_socket, ..ROW },
    Row { name: "WebSocket: a message in frames of one byte", attack: continuations, ..ROW },
    Row { name: "WebSocket: pings whose answers nobody reads", attack: pings, ..ROW },
];
