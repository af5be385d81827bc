//! How long a client may be silent, and the DISCONNECT that it gets after that.

use super::MqttSession;
use super::turns::connected;
use std::time::Duration;
use weir_mqtt::packet::Publish;
use weir_mqtt::{Event as Heard, Limits, Packet, Reader, Version};
use weir_shard::{Event, Rig};

type Client = (Rig<super::Broker>, MqttSession);

fn server_keep_alive(version: Version, connack: &[u8]) -> Option<u16> {
    let mut reader = Reader::new(version, Limits::default());
    match reader.next(&mut &*connack) {
        Ok(Some(Heard::Packet(Packet::Connack(connack)))) => connack.properties.server_keep_alive(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_client_that_may_be_silent_for_longer_than_the_origin_waits_is_told_or_waited_for() {
    for (version, asked, told, allowed) in [
        (Version::V5, 60, None, Some(92)),
        (Version::V5, 0, Some(400), Some(602)),
        (Version::V5, 3_600, Some(400), Some(602)),
        (Version::V311, 3_600, None, Some(5_402)),
        // The silence of one that promises nothing is for the shard to end.
        (Version::V311, 0, None, None),
    ] {
        let (mut rig, mut session, connack) = connected(version, asked);
        assert_eq!(server_keep_alive(version, &connack), told, "{version:?} {asked}");
        assert_eq!(rig.allowed_silence, allowed.map(Duration::from_secs), "{version:?} {asked}");
        let Some(allowed) = allowed else { continue };
        rig.advance(&mut session, Duration::from_secs(allowed) - Duration::from_millis(2_001));
        assert!(rig.sent.is_empty() && !rig.closed);
        rig.advance(&mut session, Duration::from_millis(2_002));
        assert!(rig.closed, "{version:?} {asked}");
    }
}

/// A subscriber with a keep-alive of 10 s whose link takes nothing of a message of 8 MiB.
fn choked() -> Client {
    let (mut rig, mut session, _) = connected(Version::V5, 10);
    rig.dispatch(&mut session, Event::Bytes(&[0x82, 7, 0, 1, 0, 0, 1, b'x', 0]));
    rig.room = 0;
    let mut bytes = Vec::new();
    Publish::new("x", &vec![7; 8 << 20]).encode(Version::V5, &mut bytes).unwrap();
    rig.dispatch(&mut session, Event::Bytes(&bytes));
    assert!(rig.unsent.len() > 8 << 20);
    rig.sent.clear();
    (rig, session)
}

#[test]
fn who_takes_a_long_message_slowly_lives_though_its_pings_are_not_read() {
    let (mut rig, mut session) = choked();
    for _ in 0..100 {
        rig.acknowledged += 1_000;
        rig.advance(&mut session, Duration::from_secs(10));
    }
    assert!(!rig.closed);
    // Then it has all, and its pings are read.
    rig.make_room(&mut session, 9 << 20);
    rig.sent.clear();
    rig.dispatch(&mut session, Event::Bytes(&[0xC0, 0]));
    assert_eq!(rig.take_sent(), [0xD0, 0]);
    rig.advance(&mut session, Duration::from_secs(14));
    assert!(!rig.closed && rig.sent.is_empty());
    rig.acknowledged += 1_000;
    rig.advance(&mut session, Duration::from_secs(4));
    assert!(rig.closed, "it is read, and silent");
}

#[test]
fn who_takes_nothing_of_a_long_message_is_ended() {
    let (mut rig, mut session) = choked();
    rig.advance(&mut session, Duration::from_secs(33));
    assert!(rig.closed);
}
