//! What MQTT 5 says of messages, on its way through a broker: aliases of topics, and how long a message is of use.

use super::turns::connected;
use super::{Broker, MqttSession, TOPIC_ALIASES};
use crate::harness::settings;
use std::num::{NonZeroU16, NonZeroU32};
use std::time::Duration;
use weir_mqtt::packet::{Connect, Publish, Subscribe, Subscription, SubscriptionOptions};
use weir_mqtt::property::Properties;
use weir_mqtt::{Event as Heard, Limits, Packet, PacketId, Property, PropertyBuffer, Qos, Reader, Version};
use weir_shard::{Event, Rig};

const LONG: &str = "a/topic/that/is/long";

/// A client that takes this many aliases, subscribed to everything.
fn client(aliases: u16) -> (Rig<Broker>, MqttSession) {
    let (mut rig, mut session) = connecting(&[Property::TopicAliasMaximum(aliases)]);
    subscribe(&mut rig, &mut session);
    (rig, session)
}

/// A client that has said CONNECT with these properties.
fn connecting(own: &[Property<'_>]) -> (Rig<Broker>, MqttSession) {
    let mut rig = Rig::new(Broker::new(settings()));
    let mut session = MqttSession::new(&mut rig.world, rig.now);
    rig.dispatch(&mut session, Event::Connected);
    let mut properties = PropertyBuffer::new();
    own.iter().for_each(|it| properties.push(*it).unwrap());
    let connect = Connect {
        version: Version::V5,
        clean_start: true,
        keep_alive: 0,
        properties: properties.properties(),
        client_id: "a",
        will: None,
        user_name: None,
        password: None,
    };
    let mut bytes = Vec::new();
    Packet::Connect(connect).encode(Version::V5, &mut bytes).unwrap();
    rig.dispatch(&mut session, Event::Bytes(&bytes));
    (rig, session)
}

/// The property by which a client says how large a packet it takes.
fn largest(bytes: u32) -> Property<'static> {
    Property::MaximumPacketSize(NonZeroU32::new(bytes).unwrap())
}

fn subscribe(rig: &mut Rig<Broker>, session: &mut MqttSession) {
    subscribe_at(rig, session, Qos::AtMostOnce);
}

fn subscribe_at(rig: &mut Rig<Broker>, session: &mut MqttSession, qos: Qos) {
    let all = [Subscription { filter: "#", options: SubscriptionOptions::qos(qos) }];
    let mut bytes = Vec::new();
    let id = PacketId::new(1).unwrap();
    Subscribe::write(id, &Properties::NONE, &all, Version::V5, &mut bytes).unwrap();
    rig.dispatch(session, Event::Bytes(&bytes));
    rig.take_sent();
}

/// Publishes; what the client is sent: topic, alias and expiry of each message, and the names of other packets.
fn publish(
    rig: &mut Rig<Broker>,
    session: &mut MqttSession,
    topic: &str,
    own: &[Property<'_>],
) -> Vec<String> {
    let mut properties = PropertyBuffer::new();
    own.iter().for_each(|it| properties.push(*it).unwrap());
    let publish = Publish { properties: properties.properties(), ..Publish::new(topic, b"hello") };
    let mut bytes = Vec::new();
    publish.encode(Version::V5, &mut bytes).unwrap();
    rig.dispatch(session, Event::Bytes(&bytes));
    said(&rig.take_sent())
}

fn said(sent: &[u8]) -> Vec<String> {
    let (mut reader, mut input, mut said) = (Reader::new(Version::V5, Limits::default()), sent, Vec::new());
    while let Some(event) = reader.next(&mut input).unwrap() {
        said.push(match event {
            Heard::Packet(Packet::Publish(it)) => {
                let (alias, expiry) = (it.properties.topic_alias(), it.properties.message_expiry_interval());
                format!("{} {:?} {:?}", it.topic, alias.map(NonZeroU16::get), expiry)
            }
            Heard::Packet(Packet::Disconnect(it)) => format!("DISCONNECT {:#x}", it.reason.code()),
            Heard::Packet(other) => format!("{:?}", other.kind()),
            other => panic!("{other:?}"),
        });
    }
    said
}

fn alias(number: u16) -> [Property<'static>; 1] {
    [Property::TopicAlias(NonZeroU16::new(number).unwrap())]
}

#[test]
fn a_client_sends_a_topic_by_number_and_is_let_go_when_it_names_one_that_is_not() {
    let (mut rig, mut session) = client(0);
    assert_eq!(publish(&mut rig, &mut session, LONG, &alias(TOPIC_ALIASES)), [format!("{LONG} None None")]);
    assert_eq!(publish(&mut rig, &mut session, "", &alias(TOPIC_ALIASES)), [format!("{LONG} None None")]);
    assert_eq!(publish(&mut rig, &mut session, "b", &alias(TOPIC_ALIASES)), ["b None None"]);
    assert_eq!(publish(&mut rig, &mut session, "", &alias(TOPIC_ALIASES)), ["b None None"], "the latest");
    for (number, reason) in [(1, "0x82"), (TOPIC_ALIASES + 1, "0x94")] {
        let (mut rig, mut session) = client(0);
        assert_eq!(publish(&mut rig, &mut session, "", &alias(number)), [format!("DISCONNECT {reason}")]);
    }
    let (_, _, connack) = connected(Version::V5, 0);
    let (mut reader, mut input) = (Reader::new(Version::V5, Limits::default()), &connack[..]);
    let Ok(Some(Heard::Packet(Packet::Connack(connack)))) = reader.next(&mut input) else {
        panic!("no CONNACK")
    };
    assert_eq!(connack.properties.topic_alias_maximum(), Some(TOPIC_ALIASES));
}

#[test]
fn a_client_is_sent_the_first_long_topics_by_number_as_many_as_it_takes() {
    let (mut rig, mut session) = client(2);
    let mut send = |topic: &str| publish(&mut rig, &mut session, topic, &[]).remove(0);
    assert_eq!(send("short"), "short None None");
    assert_eq!([send(LONG), send(LONG)], [format!("{LONG} Some(1) None"), " Some(1) None".to_owned()]);
    assert_eq!(send("another/topic"), "another/topic Some(2) None");
    assert_eq!([send("a/third/topic"), send("a/third/topic")], ["a/third/topic None None"; 2]);
    assert_eq!(send("another/topic"), " Some(2) None");
}

#[test]
fn a_message_says_how_long_it_is_of_use_yet_and_is_left_out_when_it_is_not() {
    let (mut rig, mut session) = client(0);
    let expiry = [Property::MessageExpiryInterval(10)];
    assert_eq!(publish(&mut rig, &mut session, "x", &expiry), ["x None Some(10)"]);
    // Another client's messages wait for one that is away; and one is kept.
    let (broker, begin) = (&mut rig.world, rig.now);
    let mut put = |topic: &str, seconds, retain| {
        let properties = PropertyBuffer::new().with(Property::MessageExpiryInterval(seconds)).unwrap();
        let (properties, payload) = (properties.properties(), b"hello");
        let publish = Publish { properties, retain, qos: Qos::AtMostOnce, ..Publish::new(topic, payload) };
        let publication = crate::mqtt::publication::Publication::of(&publish);
        broker.publish(None, publication, begin, &mut Vec::new());
    };
    put("gone", 5, false);
    put("there", 30, false);
    put("kept", 30, true);
    put("not/kept", 5, true);
    rig.now = begin + Duration::from_millis(5_500);
    rig.dispatch(&mut session, Event::Woken);
    assert_eq!(said(&rig.take_sent()), ["there None Some(25)", "kept None Some(25)"]);
    assert_eq!(rig.world.counts.expired, 2);
    let all = [Subscription { filter: "+/#", options: SubscriptionOptions::qos(Qos::AtMostOnce) }];
    let mut bytes = Vec::new();
    let id = PacketId::new(2).unwrap();
    Subscribe::write(id, &Properties::NONE, &all, Version::V5, &mut bytes).unwrap();
    rig.dispatch(&mut session, Event::Bytes(&bytes));
    assert_eq!(said(&rig.take_sent()), ["Suback", "kept None Some(25)"]);
}

#[test]
fn a_message_that_is_larger_than_a_client_takes_is_sent_to_nobody_and_the_next_one_is() {
    // With the topic as long as an alias wants it: the first message that is sent teaches it.
    let room = 4 + LONG.len() as u32 + 8;
    let (mut rig, mut session) = connecting(&[largest(room), Property::TopicAliasMaximum(2)]);
    subscribe_at(&mut rig, &mut session, Qos::ExactlyOnce);
    let mut send = |payload: &[u8], qos, id| {
        let packet_id = PacketId::new(id).filter(|_| qos != Qos::AtMostOnce);
        let mut bytes = Vec::new();
        let publish = Publish { qos, packet_id, ..Publish::new(LONG, payload) };
        publish.encode(Version::V5, &mut bytes).unwrap();
        rig.dispatch(&mut session, Event::Bytes(&bytes));
        let sent = rig.take_sent();
        let mut reader = Reader::new(Version::V5, Limits::default());
        let mut longest = 0;
        let mut input = &sent[..];
        loop {
            let before = input.len();
            let Ok(Some(_)) = reader.next(&mut input) else { break };
            longest = longest.max(before - input.len());
        }
        assert!(longest <= room as usize, "a packet of {longest} bytes");
        said(&sent).into_iter().filter(|it| it.starts_with(LONG) || it.starts_with(' ')).count()
    };
    for (qos, id) in [(Qos::AtMostOnce, 0), (Qos::AtLeastOnce, 1), (Qos::ExactlyOnce, 2)] {
        assert_eq!(send(&[7; 100], qos, id), 0);
    }
    assert_eq!(send(b"a", Qos::AtMostOnce, 0), 1);
    assert_eq!(send(b"b", Qos::AtLeastOnce, 3), 1, "its topic is known by the number");
    let key = session.inbox.unwrap();
    assert_eq!(
        (rig.world.counts.sent, rig.world.in_flight(key)),
        (2, 1),
        "what was left out is not in flight"
    );
}

#[test]
fn an_answer_that_is_larger_than_a_client_takes_ends_its_connection() {
    let (rig, _) = connecting(&[largest(4)]);
    assert!(rig.closed && rig.sent.is_empty(), "CONNACK");
    let (mut rig, mut session) = connecting(&[largest(12)]);
    assert!(!rig.closed);
    rig.take_sent();
    let filters: Vec<_> = (0..20).map(|number| number.to_string()).collect();
    let options = SubscriptionOptions::qos(Qos::AtMostOnce);
    let all: Vec<_> = filters.iter().map(|filter| Subscription { filter, options }).collect();
    let mut bytes = Vec::new();
    Subscribe::write(PacketId::new(1).unwrap(), &Properties::NONE, &all, Version::V5, &mut bytes).unwrap();
    rig.dispatch(&mut session, Event::Bytes(&bytes));
    assert!(rig.closed && rig.sent.is_empty(), "SUBACK of 25 bytes");
}
