//! What one client may take of a broker's time and memory.

use super::{Broker, LARGEST_BEFORE_CONNECT, MqttSession};
use crate::harness::settings;
use weir_metrics::Moment;
use weir_mqtt::packet::{Connect, Publish};
use weir_mqtt::property::Properties;
use weir_mqtt::{Packet, Version};
use weir_shard::{Event, Rig};

/// A client that was let in, and its CONNACK.
pub(super) fn connected(version: Version, keep_alive: u16) -> (Rig<Broker>, MqttSession, Vec<u8>) {
    let mut rig = Rig::new(Broker::new(settings()));
    let mut session = MqttSession::new(&mut rig.world, rig.now);
    rig.dispatch(&mut session, Event::Connected);
    assert!(!rig.established);
    let mut bytes = Vec::new();
    let connect = Connect {
        version,
        clean_start: true,
        keep_alive,
        properties: Properties::NONE,
        client_id: "a",
        will: None,
        user_name: None,
        password: None,
    };
    Packet::Connect(connect).encode(version, &mut bytes).unwrap();
    rig.dispatch(&mut session, Event::Bytes(&bytes));
    assert!(rig.established && !rig.closed);
    let connack = rig.take_sent();
    (rig, session, connack)
}

#[test]
fn what_a_few_bytes_ask_for_is_done_in_several_turns() {
    let (mut rig, mut session, _) = connected(Version::V5, 60);
    let mut bytes = Vec::new();
    for id in 0..4_096_u16 {
        // Each level is the topic's or a wildcard, so that each filter matches.
        let levels: Vec<_> = (0..12).map(|level| if id >> level & 1 == 0 { "a" } else { "+" }).collect();
        let filter = levels.join("/");
        let id = id + 1;
        let [high, low] = id.to_be_bytes();
        bytes.extend([0x82, 6 + filter.len() as u8, high, low, 0, 0, filter.len() as u8]);
        bytes.extend_from_slice(filter.as_bytes());
        bytes.push(0);
    }
    rig.dispatch(&mut session, Event::Bytes(&bytes));
    let turns = rig.given_back;
    assert!(turns > 5, "4,096 subscriptions in {turns} turns");
    // Each message goes to all of them.
    let mut bytes = Vec::new();
    Publish::new(&["a"; 12].join("/"), b"hello").encode(Version::V5, &mut bytes).unwrap();
    rig.dispatch(&mut session, Event::Bytes(&bytes.repeat(200)));
    assert!(rig.given_back - turns > 50, "two hundred messages in {} turns", rig.given_back - turns);
    assert_eq!(rig.world.counts.received, 200);
}

#[test]
fn a_packet_before_connect_is_no_longer_than_that_may_be() {
    let mut rig = Rig::new(Broker::new(settings()));
    let mut session = MqttSession::new(&mut rig.world, Moment::default());
    rig.dispatch(&mut session, Event::Connected);
    // CONNECT of 2 MiB.
    rig.dispatch(&mut session, Event::Bytes(&[0x10, 0x80, 0x80, 0x80, 0x01]));
    assert_eq!(session.reader.memory(), 0, "nothing of it is waited for; {LARGEST_BEFORE_CONNECT} might be");
    assert!(!rig.sent.is_empty(), "it is told why");
}
