//! What of a session outlives its connection, and for how long.

use super::{Broker, MqttSession};
use crate::harness::settings;
use crate::mqtt::broker::Admission;
use crate::mqtt::broker::Message;
use crate::mqtt::inbox_key::InboxKey;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_mqtt::packet::{
    Acknowledgement, Connect, Publish, Subscribe, Subscription, SubscriptionOptions, Will,
};
use weir_mqtt::property::Properties;
use weir_mqtt::topic::Filter;
use weir_mqtt::{
    Event as Heard, Limits, Packet, PacketId, Property, PropertyBuffer, Qos, Reader, ReasonCode, Version,
};
use weir_shard::{Event, Rig, SessionId, World};

/// A client that comes and goes, and its broker.
struct Client {
    rig: Rig<Broker>,
    session: MqttSession,
    version: Version,
    /// For how many seconds its will waits, if it has one.
    will_delay: Option<u32>,
}

impl Client {
    fn new(version: Version) -> Self {
        let mut rig = Rig::new(Broker::new(settings()));
        let session = MqttSession::new(&mut rig.world, rig.now);
        Self { rig, session, version, will_delay: None }
    }

    /// Says CONNECT on another connection; what is answered.
    fn connect(&mut self, clean_start: bool, expiry: u32) -> Vec<String> {
        let broker = std::mem::replace(&mut self.rig.world, Broker::new(settings()));
        let now = self.rig.now;
        self.rig = Rig::new(broker);
        self.rig.now = now;
        self.session = MqttSession::new(&mut self.rig.world, now);
        self.rig.dispatch(&mut self.session, Event::Connected);
        let mut properties = PropertyBuffer::new();
        if self.version == Version::V5 {
            properties.push(Property::SessionExpiryInterval(expiry)).unwrap();
        }
        let of_will = PropertyBuffer::new();
        let of_will = of_will.with(Property::WillDelayInterval(self.will_delay.unwrap_or(0))).unwrap();
        let of_will = of_will.with(Property::UserProperty(("why", "gone"))).unwrap();
        let will = self.will_delay.map(|_| Will {
            topic: "gone",
            payload: b"keeper",
            qos: Qos::AtLeastOnce,
            retain: false,
            properties: of_will.properties(),
        });
        self.say(&Packet::Connect(Connect {
            version: self.version,
            clean_start,
            keep_alive: 0,
            properties: properties.properties(),
            client_id: "keeper",
            will,
            user_name: None,
            password: None,
        }))
    }

    /// Says a packet; what is answered.
    fn say(&mut self, packet: &Packet<'_>) -> Vec<String> {
        let mut bytes = Vec::new();
        packet.encode(self.version, &mut bytes).unwrap();
        self.rig.dispatch(&mut self.session, Event::Bytes(&bytes));
        let sent = self.rig.take_sent();
        let mut reader = Reader::new(self.version, Limits::default());
        let (mut input, mut heard) = (&sent[..], Vec::new());
        while let Some(event) = reader.next(&mut input).unwrap() {
            heard.push(match event {
                Heard::Packet(Packet::Connack(connack)) => format!("CONNACK {}", connack.session_present),
                Heard::Packet(Packet::Publish(it)) => {
                    let again = if it.dup { " again" } else { "" };
                    format!("PUBLISH {}{again}", it.packet_id.map_or(0, PacketId::get))
                }
                Heard::Packet(Packet::Pubrec(it)) => {
                    format!("PUBREC {} {:#x}", it.packet_id, it.reason.code())
                }
                Heard::Packet(Packet::Pubrel(it)) => {
                    format!("PUBREL {} {:#x}", it.packet_id, it.reason.code())
                }
                Heard::Packet(Packet::Pubcomp(it)) => {
                    format!("PUBCOMP {} {:#x}", it.packet_id, it.reason.code())
                }
                Heard::Packet(other) => format!("{:?}", other.kind()),
                other => panic!("{other:?}"),
            });
        }
        heard
    }

    fn subscribe(&mut self) {
        let subscriptions =
            [Subscription { filter: "x", options: SubscriptionOptions::qos(Qos::ExactlyOnce) }];
        let mut bytes = Vec::new();
        Subscribe::write(id(1), &Properties::NONE, &subscriptions, self.version, &mut bytes).unwrap();
        self.rig.dispatch(&mut self.session, Event::Bytes(&bytes));
        self.rig.take_sent();
    }

    fn publish(&mut self, packet_id: u16, qos: Qos, dup: bool) -> Vec<String> {
        let packet_id = (qos != Qos::AtMostOnce).then(|| id(packet_id));
        self.say(&Packet::Publish(Publish { qos, packet_id, dup, ..Publish::new("x", b"hello") }))
    }

    fn break_off(&mut self) {
        let event = Event::Closed { failure: Failure::ClosedByPeer, words: "" };
        self.rig.dispatch(&mut self.session, event);
    }
}

fn id(id: u16) -> PacketId {
    PacketId::new(id).unwrap()
}

fn of(packet_id: u16) -> Acknowledgement<'static> {
    Acknowledgement::success(id(packet_id))
}

#[test]
fn a_message_of_qos_2_is_handed_on_once_and_its_exchange_goes_on_after_a_break() {
    for version in [Version::V5, Version::V311] {
        let mut client = Client::new(version);
        assert_eq!(client.connect(false, 60), ["CONNACK false"]);
        client.subscribe();
        assert_eq!(client.publish(7, Qos::ExactlyOnce, false), ["PUBREC 7 0x0", "PUBLISH 1"]);
        assert_eq!(client.publish(7, Qos::ExactlyOnce, true), ["PUBREC 7 0x0"], "it came before");
        client.break_off();
        assert_eq!(client.connect(false, 60), ["CONNACK true", "PUBLISH 1 again"]);
        assert_eq!(client.publish(7, Qos::ExactlyOnce, true), ["PUBREC 7 0x0"], "it came before the break");
        assert_eq!(client.say(&Packet::Pubrel(of(7))), ["PUBCOMP 7 0x0"]);
        assert_eq!(client.say(&Packet::Pubrec(of(1))), ["PUBREL 1 0x0"]);
        client.break_off();
        assert_eq!(client.connect(false, 60), ["CONNACK true", "PUBREL 1 0x0"]);
        assert!(client.say(&Packet::Pubcomp(of(1))).is_empty());
        client.break_off();
        assert_eq!(client.connect(false, 60), ["CONNACK true"]);
        let unknown = if version == Version::V5 { "0x92" } else { "0x0" };
        assert_eq!(client.say(&Packet::Pubrel(of(7))), [format!("PUBCOMP 7 {unknown}")]);
        assert_eq!(client.say(&Packet::Pubrec(of(1))), [format!("PUBREL 1 {unknown}")]);
        let counts = client.rig.world.counts;
        assert_eq!((counts.received, counts.sent, counts.acknowledged, counts.confirmed), (1, 1, 1, 1));
    }
}

#[test]
fn a_session_ends_with_its_time_or_with_a_clean_start() {
    let mut client = Client::new(Version::V5);
    client.connect(false, 60);
    client.subscribe();
    client.break_off();
    client.rig.now = client.rig.now + Duration::from_secs(59);
    assert_eq!(client.connect(false, 60), ["CONNACK true"]);
    client.break_off();
    client.rig.now = client.rig.now + Duration::from_secs(60);
    assert_eq!(client.connect(false, 60), ["CONNACK false"]);
    assert_eq!(client.publish(1, Qos::AtLeastOnce, false), ["Puback"], "nothing is subscribed to");
    client.subscribe();
    client.break_off();
    assert_eq!(client.connect(true, 60), ["CONNACK false"]);
    client.break_off();
    // One without a time ends with its connection.
    assert_eq!(client.connect(false, 0), ["CONNACK true"]);
    client.break_off();
    assert_eq!(client.connect(false, 0), ["CONNACK false"]);
}

#[test]
fn a_client_may_give_its_session_up_as_it_leaves() {
    let mut client = Client::new(Version::V5);
    client.connect(false, 60);
    let mut properties = PropertyBuffer::new();
    properties.push(Property::SessionExpiryInterval(0)).unwrap();
    let properties = properties.properties();
    let reason = ReasonCode::Success;
    client.say(&Packet::Disconnect(weir_mqtt::packet::Disconnect { reason, properties }));
    client.break_off();
    assert_eq!(client.connect(false, 60), ["CONNACK false"]);
}

#[test]
fn messages_wait_for_a_client_that_is_away_unless_nobody_asked_for_that() {
    let mut client = Client::new(Version::V5);
    client.connect(false, 60);
    client.subscribe();
    client.break_off();
    let mut wake = Vec::new();
    for qos in [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce] {
        let packet_id = (qos != Qos::AtMostOnce).then(|| id(1));
        let publish = Publish { qos, packet_id, ..Publish::new("x", b"hello") };
        let publication = crate::mqtt::publication::Publication::of(&publish);
        let now = client.rig.now;
        client.rig.world.publish(None, publication, now, &mut wake);
    }
    assert!(wake.is_empty());
    assert_eq!(client.connect(false, 60), ["CONNACK true", "PUBLISH 1", "PUBLISH 2"]);
}

#[test]
fn what_clients_have_not_released_is_kept_for_so_many_of_them() {
    let mut broker = Broker::new(settings());
    let (now, hour) = (Moment::default(), Duration::from_secs(3_600));
    let connection = SessionId::made_up(0);
    let names: Vec<_> = (0..1_000).map(|number| number.to_string()).collect();
    for name in &names {
        let Admission { key, number, .. } = broker.enter(connection, name, false, hour, now);
        for packet_id in 1..=u16::MAX {
            assert!(broker.receive(key, id(packet_id)));
        }
        broker.leave((key, number), connection, None, now);
    }
    let resumed = names.iter().filter(|name| broker.enter(connection, name, false, hour, now).is_resumed);
    let resumed = resumed.count();
    assert!((64..=256).contains(&resumed), "{resumed} of 1,000 sessions with 65,535 identifiers each");
}

#[test]
fn long_names_of_clients_that_are_away_are_kept_for_so_many_of_them() {
    let mut broker = Broker::new(settings());
    let (now, hour) = (Moment::default(), Duration::from_secs(3_600));
    let connection = SessionId::made_up(0);
    let names: Vec<_> = (0..2_000).map(|number| format!("{number}-{}", "x".repeat(60_000))).collect();
    for name in &names {
        let Admission { key, number, .. } = broker.enter(connection, name, false, hour, now);
        broker.leave((key, number), connection, None, now);
    }
    let resumed = names.iter().filter(|name| broker.enter(connection, name, false, hour, now).is_resumed);
    let resumed = resumed.count();
    assert!((400..=560).contains(&resumed), "{resumed} of 2,000 sessions whose names take 64 MiB twice");
}

/// Another client, which receives wills.
fn watcher(client: &mut Client) -> InboxKey {
    let (broker, now) = (&mut client.rig.world, client.rig.now);
    let key = broker.enter(SessionId::made_up(9), "watcher", true, Duration::ZERO, now).key;
    let options = SubscriptionOptions::qos(Qos::AtLeastOnce);
    assert!(broker.subscribe(key, &Filter::parse("gone").unwrap(), options, None));
    key
}

/// The wills that have come to it when this much more time has passed.
fn wills(client: &mut Client, watcher: InboxKey, seconds: u64) -> Vec<String> {
    client.rig.now = client.rig.now + Duration::from_secs(seconds);
    let (broker, now) = (&mut client.rig.world, client.rig.now);
    if broker.next_will().is_some_and(|at| at <= now) {
        World::receive(broker, Message::Wills, now, &mut Vec::new());
    }
    let deliveries = std::iter::from_fn(|| broker.next_delivery(watcher, &mut 9, now));
    let properties =
        deliveries.map(|it| it.publication.properties.properties().user_property("why").map(str::to_owned));
    properties.map(Option::unwrap).collect()
}

#[test]
fn a_will_waits_for_its_delay_or_the_end_of_the_session_and_not_at_all_if_its_client_comes_back() {
    let mut client = Client::new(Version::V5);
    let watcher = watcher(&mut client);
    client.will_delay = Some(10);
    client.connect(false, 60);
    client.break_off();
    assert!(wills(&mut client, watcher, 9).is_empty());
    assert_eq!(wills(&mut client, watcher, 1), ["gone"]);
    // MQTT-3.1.3-9.
    client.connect(false, 60);
    client.break_off();
    assert!(wills(&mut client, watcher, 9).is_empty());
    assert_eq!(client.connect(false, 4), ["CONNACK true"]);
    assert!(wills(&mut client, watcher, 9).is_empty());
    // The session ends before the delay is over: by its time, by a clean start, with its connection.
    client.break_off();
    assert_eq!(wills(&mut client, watcher, 4), ["gone"]);
    client.connect(false, 60);
    client.break_off();
    client.connect(true, 60);
    assert_eq!(wills(&mut client, watcher, 0), ["gone"]);
    client.break_off();
    client.connect(true, 0);
    assert_eq!(wills(&mut client, watcher, 0), ["gone"]);
    client.break_off();
    assert_eq!(wills(&mut client, watcher, 0), ["gone"]);
    client.will_delay = Some(0);
    client.connect(false, 60);
    client.break_off();
    assert_eq!(wills(&mut client, watcher, 0), ["gone"], "no delay");
}
