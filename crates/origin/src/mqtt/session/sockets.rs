//! Packets in WebSockets, on the rig.

use super::{Broker, MqttSession, WORK_A_TURN};
use crate::harness::settings;
use std::time::Duration;
use weir_mqtt::packet::Publish;
use weir_mqtt::{Qos, Version};
use weir_shard::{Event, Rig, SessionId};
use weir_web::websocket::{Incoming, Role, WebSocket};

/// CONNECT of MQTT 5, a clean start.
const CONNECT: &[u8] = &[0x10, 13, 0, 4, b'M', b'Q', b'T', b'T', 5, 2, 0, 60, 0, 0, 0];

fn session() -> (Rig<Broker>, MqttSession) {
    let mut rig = Rig::new(Broker::new(settings()));
    let mut session = MqttSession::new(&mut rig.world, rig.now);
    rig.dispatch(&mut session, Event::Connected);
    (rig, session)
}

fn request(fields: &str) -> Vec<u8> {
    let key = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    format!("GET /mqtt HTTP/1.1\r\nHost: h\r\n{key}\r\n{fields}\r\n").into_bytes()
}

/// A client that was let in, and its end of the WebSocket.
fn connected() -> (Rig<Broker>, MqttSession, WebSocket) {
    let (mut rig, mut session) = session();
    let mut client = WebSocket::new(Role::Client, 1 << 20);
    let mut bytes = request("Sec-WebSocket-Protocol: chat, mqtt\r\n");
    // The first half of CONNECT comes with the request, the other half in a frame of its own.
    client.binary(&CONNECT[..7], &mut bytes);
    client.binary(&CONNECT[7..], &mut bytes);
    for byte in bytes {
        rig.dispatch(&mut session, Event::Bytes(&[byte]));
    }
    let sent = rig.take_sent();
    let head = String::from_utf8_lossy(&sent);
    assert!(head.starts_with("HTTP/1.1 101 ") && head.contains("Sec-WebSocket-Protocol: mqtt\r\n"), "{head}");
    let end = sent.windows(4).position(|four| four == b"\r\n\r\n").unwrap() + 4;
    let packets = heard(&mut client, &sent[end..]);
    assert_eq!(packets[0], 0x20, "CONNACK");
    (rig, session, client)
}

fn heard(client: &mut WebSocket, bytes: &[u8]) -> Vec<u8> {
    client.input(bytes);
    let mut packets = Vec::new();
    while let Ok(Some(Incoming::Binary(message))) = client.poll(&mut Vec::new()) {
        packets.extend(message);
    }
    packets
}

#[test]
fn packets_come_in_frames_that_are_cut_anywhere_and_many_have_their_turns() {
    let (mut rig, mut session, mut client) = connected();
    let mut frames = Vec::new();
    // As many pings in one message as need several turns, between two messages of a topic.
    let mut packets = vec![0x82, 7, 0, 1, 0, 0, 1, b'x', 0];
    Publish { qos: Qos::AtMostOnce, ..Publish::new("x", b"first") }
        .encode(Version::V5, &mut packets)
        .unwrap();
    packets.extend([0xC0, 0].repeat(20_000));
    Publish::new("x", b"last").encode(Version::V5, &mut packets).unwrap();
    client.binary(&packets, &mut frames);
    rig.dispatch(&mut session, Event::Bytes(&frames));
    // What is not read yet is given back, and it wakes itself for the rest of a piece that was.
    let mut turns = rig.given_back;
    while !std::mem::take(&mut rig.woken).is_empty() {
        rig.dispatch(&mut session, Event::Woken);
        turns += 1;
    }
    assert!(turns > 5, "{turns} turns");
    let sent = rig.take_sent();
    let packets = heard(&mut client, &sent);
    assert_eq!(
        packets.windows(2).filter(|two| *two == [0xD0, 0]).count(),
        20_000,
        "each ping has its answer"
    );
    assert_eq!(rig.world.counts.received, 2);
    assert!(packets.windows(4).any(|four| four == b"last"));
}

#[test]
fn what_is_no_websocket_of_mqtt_is_refused() {
    for (bytes, status) in [
        (request(""), "400"),
        (request("Sec-WebSocket-Protocol: chat\r\n"), "400"),
        (request("Sec-WebSocket-Protocol: mqtt\r\nOrigin: http://elsewhere\r\n"), "403"),
        (b"GET / HTTP/1.1\r\n\r\n".to_vec(), "400"),
        (b"GET nonsense\r\n\r\n".to_vec(), "400"),
    ] {
        let (mut rig, mut session) = session();
        rig.dispatch(&mut session, Event::Bytes(&bytes));
        let said = String::from_utf8_lossy(&rig.sent).into_owned();
        assert!(rig.closed && said.starts_with(&format!("HTTP/1.1 {status} ")), "{said}");
    }
}

#[test]
fn a_text_ends_a_connection_and_of_a_packet_that_no_client_may_send_yet_nothing_is_kept() {
    let (mut rig, mut session, mut client) = connected();
    let mut frames = Vec::new();
    client.text("hello", &mut frames);
    rig.dispatch(&mut session, Event::Bytes(&frames));
    assert!(rig.closed, "MQTT-6.0.0-1");
    let (mut rig, mut session) = self::session();
    rig.dispatch(&mut session, Event::Bytes(&request("Sec-WebSocket-Protocol: mqtt\r\n")));
    let mut frames = Vec::new();
    // CONNECT of 2 MiB.
    let packet = [&[0x10, 0x80, 0x80, 0x80, 0x01][..], &[0; 100_000]].concat();
    WebSocket::new(Role::Client, 1 << 20).binary(&packet, &mut frames);
    rig.take_sent();
    rig.dispatch(&mut session, Event::Bytes(&frames));
    assert!(!rig.sent.is_empty(), "it is told why");
    assert!(session.carrier.packets().is_none() && session.reader.memory() == 0);
}

/// Another connection takes the client's name, and may be gone again before the client is told.
fn take_over(rig: &mut Rig<Broker>, session: &MqttSession, leaves: bool) {
    let (other, now) = (SessionId::made_up(9), rig.now);
    let entered = rig.world.enter(other, &session.client_id, true, Duration::ZERO, now);
    assert!(entered.other.is_some() && !entered.is_resumed);
    if leaves {
        assert!(rig.world.leave((entered.key, entered.number), other, None, now).is_none());
    }
}

#[test]
fn a_websocket_whose_name_is_taken_while_its_packets_wait_is_told_so() {
    for leaves in [false, true] {
        let (mut rig, mut session, mut client) = connected();
        // As many pings as a turn has, and then what asks for the session.
        let mut packets = [0xC0, 0].repeat(WORK_A_TURN);
        packets.extend([0x82, 7, 0, 1, 0, 0, 1, b'x', 0]);
        let mut frames = Vec::new();
        client.binary(&packets, &mut frames);
        rig.dispatch(&mut session, Event::Bytes(&frames));
        let sent = rig.take_sent();
        assert_eq!(heard(&mut client, &sent).len(), 2 * WORK_A_TURN, "SUBSCRIBE has its turn later");
        take_over(&mut rig, &session, leaves);
        rig.dispatch(&mut session, Event::Woken);
        let sent = rig.take_sent();
        assert_eq!(heard(&mut client, &sent), [0xE0, 2, 0x8E, 0], "DISCONNECT, Session taken over");
        assert_eq!(rig.world.counts.subscribers, 0);
    }
}

#[test]
fn a_link_that_has_room_again_after_its_name_was_taken_is_sent_nothing_of_the_session() {
    for leaves in [false, true] {
        let (mut rig, mut session, mut client) = connected();
        take_over(&mut rig, &session, leaves);
        rig.dispatch(&mut session, Event::Writable);
        let sent = rig.take_sent();
        assert_eq!(heard(&mut client, &sent), [0xE0, 2, 0x8E, 0], "DISCONNECT, Session taken over");
    }
}
