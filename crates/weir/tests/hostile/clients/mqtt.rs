//! Over MQTT. The broker has a thread of its own, and so a witness of its own.

use super::{OpenConnections, Origin, ROW, Row, ends, send};
use crate::witness;
use std::net::TcpStream;
use std::time::Duration;

/// CONNECT of MQTT 5 with a clean start.
fn connect(client_id: &str, keep_alive: u16) -> Vec<u8> {
    let mut body = vec![0, 4, b'M', b'Q', b'T', b'T', 5, 2];
    body.extend(keep_alive.to_be_bytes());
    body.push(0);
    text(client_id, &mut body);
    packet(0x10, &body)
}

fn text(text: &str, out: &mut Vec<u8>) {
    out.extend((text.len() as u16).to_be_bytes());
    out.extend_from_slice(text.as_bytes());
}

fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let (mut bytes, mut length) = (vec![first], body.len());
    loop {
        let more = length >= 128;
        bytes.push((length % 128) as u8 | if more { 128 } else { 0 });
        length /= 128;
        if !more {
            break;
        }
    }
    bytes.extend_from_slice(body);
    bytes
}

fn subscribe(id: u16, filter: &str) -> Vec<u8> {
    let mut body = id.to_be_bytes().to_vec();
    body.push(0);
    text(filter, &mut body);
    body.push(0);
    packet(0x82, &body)
}

fn publish(topic: &str, payload: &[u8], retain: bool) -> Vec<u8> {
    let mut body = Vec::new();
    text(topic, &mut body);
    body.push(0);
    body.extend_from_slice(payload);
    packet(0x30 | u8::from(retain), &body)
}

/// A client that has been let in.
fn client(origin: &Origin, client_id: &str) -> TcpStream {
    let stream = origin.connect("mqtt");
    send(&stream, &connect(client_id, 0));
    let mut connack = [0; 2];
    std::io::Read::read_exact(&mut &stream, &mut connack).unwrap();
    assert_eq!(connack[0], 0x20);
    let mut rest = vec![0; connack[1].into()];
    std::io::Read::read_exact(&mut &stream, &mut rest).unwrap();
    stream
}

fn pings(origin: &Origin) -> OpenConnections {
    let stream = client(origin, "a");
    let pings = [0xC0, 0].repeat(500_000);
    let taken = (0..100).take_while(|_| send(&stream, &pings)).count();
    assert!(taken < 100, "100 MB of pings were taken");
    vec![stream]
}

/// A subscriber that stands still, and a publisher that does not.
fn slow_subscriber(origin: &Origin) -> OpenConnections {
    let subscriber = client(origin, "slow");
    send(&subscriber, &subscribe(1, "#"));
    let publisher = client(origin, "fast");
    let message = publish("a", &vec![7; 1 << 20], false);
    assert!((0..300).all(|_| send(&publisher, &message)), "a publisher is not held up by others");
    vec![publisher, subscriber]
}

fn retained(origin: &Origin) -> OpenConnections {
    let publisher = client(origin, "fast");
    let payload = vec![7; 1 << 20];
    assert!((0..300).all(|n| send(&publisher, &publish(&format!("a/{n}"), &payload, true))));
    let short = (0..100_000).flat_map(|n| publish(&format!("b/{n}"), b"x", true)).collect::<Vec<u8>>();
    assert!(send(&publisher, &short));
    let subscriber = client(origin, "all");
    let bytes: Vec<u8> = (1..=10_000).flat_map(|id| subscribe(id, "#")).collect();
    send(&subscriber, &bytes);
    vec![publisher, subscriber]
}

fn subscriptions(origin: &Origin) -> OpenConnections {
    let mut held = OpenConnections::new();
    for (name, wildcard) in [("one", "/+"), ("other", "")] {
        let stream = client(origin, name);
        let bytes: Vec<u8> =
            (1..=45_000).flat_map(|id| subscribe(id, &format!("topic/{name}/{id}{wildcard}"))).collect();
        send(&stream, &bytes);
        held.push(stream);
    }
    // What each message is compared with.
    let publisher = client(origin, "publisher");
    send(&publisher, &publish("topic/none/x/y", b"x", false).repeat(20_000));
    held.push(publisher);
    held
}

fn large_connect(origin: &Origin) -> OpenConnections {
    let streams: Vec<_> = (0..50).map(|_| origin.connect("mqtt")).collect();
    for stream in &streams {
        // The length of a CONNECT is believed up to 64 KiB.
        send(stream, &[0x10, 0x80, 0x80, 0x80, 0x10]);
        send(stream, &vec![0; 2 << 20]);
    }
    streams.iter().for_each(ends);
    OpenConnections::new()
}

fn idle(origin: &Origin) -> OpenConnections {
    ends(&client(origin, "silent"));
    OpenConnections::new()
}

const MQTT: Row = Row { witness: witness::MQTT, ..ROW };

pub(super) const ROWS: &[Row] = &[
    Row { name: "MQTT: pings whose answers nobody reads", attack: pings, ..MQTT },
    Row { name: "MQTT: a subscriber that stands still", attack: slow_subscriber, memory: 300, ..MQTT },
    Row {
        name: "MQTT: retained messages, and who asks for all of them again and again",
        attack: retained,
        memory: 300,
        ..MQTT
    },
    Row {
        name: "MQTT: ninety thousand subscriptions",
        attack: subscriptions,
        processor: Duration::from_secs(20),
        ..MQTT
    },
    Row { name: "MQTT: a CONNECT of 32 MiB", attack: large_connect, ..MQTT },
    Row { name: "MQTT: silence with keep-alive 0", flags: &["--idle-timeout", "1s"], attack: idle, ..MQTT },
];
