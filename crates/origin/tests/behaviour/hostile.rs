//! Peers that mean no good, or know no better.

use crate::peers::{Peer, Publisher, TEST_TIMEOUT, address, origin, start, until};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;
use weir_origin::{OriginConfig, Patience};
use weir_rtmp::chunk::MessageHeader;
use weir_rtmp::message::MessageKind;

/// Reads until the peer ends the connection.
fn ends(mut stream: &TcpStream) -> bool {
    stream.set_read_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut buffer = [0; 4096];
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

fn still_serves(address: SocketAddr) {
    let mut publisher = Publisher::begin(address, "proof");
    publisher.frames(5, 5, Duration::ZERO);
    let mut viewer = Peer::player(address, "proof");
    viewer.until("five frames", |viewer| viewer.numbers().len() == 5);
}

#[test]
fn garbage_ends_the_connection_and_nothing_else() {
    let origin = origin(&[]);
    for seed in 0..20_u8 {
        let mut stream = TcpStream::connect(address(&origin)).unwrap();
        let mut bytes = vec![3; 3_073];
        bytes.extend((0..100_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8 ^ seed));
        bytes[3_073] |= 0x3F;
        if seed % 2 == 0 {
            bytes[0] = 0x16;
        }
        let _ = stream.write_all(&bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        assert!(ends(&stream), "{seed}");
    }
    still_serves(address(&origin));
}

#[test]
fn who_asks_for_nothing_is_let_go() {
    let patience = Patience { request: Duration::from_millis(300), ..Patience::default() };
    let origin = start(OriginConfig { patience, ..OriginConfig::default() });
    let silent = TcpStream::connect(address(&origin)).unwrap();
    let mut half = TcpStream::connect(address(&origin)).unwrap();
    half.write_all(&[3; 700]).unwrap();
    let mut shaken = TcpStream::connect(address(&origin)).unwrap();
    shaken.write_all(&[3; 3_073]).unwrap();
    for stream in [&silent, &half, &shaken] {
        assert!(ends(stream));
    }
}

#[test]
fn a_publisher_that_falls_silent_gives_its_name_free() {
    let patience = Patience { publisher: Duration::from_millis(300), ..Patience::default() };
    let origin = start(OriginConfig { patience, ..OriginConfig::default() });
    let mut publisher = Publisher::begin(address(&origin), "a");
    publisher.frames(5, 5, Duration::ZERO);
    until("the end", || !origin.counts().stream("live/a").unwrap().live);
    publisher.peer.until("the connection's end", |peer| peer.end.is_some());
}

#[test]
fn a_message_that_is_too_long_is_not_waited_for() {
    let origin = origin(&[]);
    let mut publisher = Publisher::begin(address(&origin), "a");
    let header = MessageHeader {
        chunk_stream_id: 6,
        kind: MessageKind::Video,
        timestamp: 0,
        length: 0,
        message_stream_id: 1,
    };
    let mut bytes = Vec::new();
    weir_rtmp::chunk::frame(&header, &vec![0x17; 9 << 20], 4_096, &mut bytes);
    let _ = publisher.peer.stream.write_all(&bytes);
    publisher.peer.until("the connection's end", |peer| peer.end.is_some());
    until("the name is free", || !origin.counts().stream("live/a").unwrap().live);
    still_serves(address(&origin));
}

#[test]
fn pings_that_are_never_read_fill_no_memory() {
    let origin = origin(&[]);
    let mut viewer = Peer::player(address(&origin), "a");
    viewer.until("consent to play", |viewer| viewer.began);
    // A ping request (user control event 6), again and again; the answers are left lying.
    let header = MessageHeader {
        chunk_stream_id: 2,
        kind: MessageKind::UserControl,
        timestamp: 0,
        length: 0,
        message_stream_id: 0,
    };
    let mut ping = Vec::new();
    weir_rtmp::chunk::frame(&header, &[0, 6, 0, 0, 0, 1], 128, &mut ping);
    let pings = ping.repeat(1_000);
    viewer.stream.set_write_timeout(Some(TEST_TIMEOUT)).unwrap();
    let mut sent = 0_u64;
    while viewer.stream.write_all(&pings).is_ok() {
        sent += pings.len() as u64;
        assert!(sent < 1 << 30, "a gigabyte of pings was taken");
    }
    until("the viewer is let go", || origin.counts().present() == 0);
}

#[test]
fn frames_before_the_first_keyframe_reach_no_one() {
    let origin = origin(&[]);
    let mut viewer = Peer::player(address(&origin), "a");
    viewer.until("consent to play", |viewer| viewer.began);
    let mut publisher = Publisher::begin(address(&origin), "a");
    for n in 1..=10 {
        publisher.frame(n == 6, 500);
    }
    viewer.until("five frames", |viewer| viewer.numbers().len() == 5);
    assert_eq!(viewer.numbers(), [6, 7, 8, 9, 10]);
    assert_eq!(origin.counts().stream("live/a").unwrap().undecodable.video, 5);
}
