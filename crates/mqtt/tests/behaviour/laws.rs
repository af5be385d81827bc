//! Laws of the codec: what is written is what is read, whatever the packet, the version and the splits.

use crate::wire::{hear, pieces};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::num::{NonZeroU16, NonZeroU32};
use weir_mqtt::packet::{
    Acknowledgement, Auth, Connack, Connect, Disconnect, Publish, RetainHandling, Suback, Subscribe,
    Subscription, SubscriptionOptions, Unsuback, Unsubscribe, Will,
};
use weir_mqtt::property::{Properties, SubscriptionIdentifier};
use weir_mqtt::{
    Event, Limits, Packet, PacketId, PacketKind, Property, PropertyBuffer, Qos, Reader, ReasonCode, Version,
};

fn version() -> impl Strategy<Value = Version> {
    prop_oneof![Just(Version::V311), Just(Version::V5)]
}

fn qos() -> impl Strategy<Value = Qos> {
    prop_oneof![Just(Qos::AtMostOnce), Just(Qos::AtLeastOnce), Just(Qos::ExactlyOnce)]
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-zA-Z0-9/€ ]{0,12}", 1 => "[a-z]{120,140}"]
}

fn topic() -> impl Strategy<Value = String> {
    prop_oneof![3 => "[a-z/€]{1,12}", 1 => "[a-z]{120,300}"]
}

fn id() -> impl Strategy<Value = PacketId> {
    (1..=u16::MAX).prop_map(|id| PacketId::new(id).unwrap())
}

fn payload() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![3 => vec(any::<u8>(), 0..40), 1 => vec(any::<u8>(), 100..700)]
}

fn reason(kind: PacketKind, version: Version) -> impl Strategy<Value = ReasonCode> {
    let reasons: Vec<_> =
        ReasonCode::ALL.iter().copied().filter(|reason| reason.code_in(kind, version).is_some()).collect();
    any::<prop::sample::Index>().prop_map(move |index| match reasons.len() {
        0 => ReasonCode::Success,
        _ => *index.get(&reasons),
    })
}

/// Properties that fit a packet; none in MQTT 3.1.1.
fn properties(kind: PacketKind, version: Version) -> BoxedStrategy<PropertyBuffer> {
    if version == Version::V311 {
        return Just(PropertyBuffer::new()).boxed();
    }
    (vec((text(), text()), 0..3), any::<[bool; 8]>(), any::<u32>(), text(), 1..=u16::MAX)
        .prop_map(move |(users, with, number, words, small)| {
            let small = NonZeroU16::new(small).unwrap();
            let mut buffer = PropertyBuffer::new();
            let mut put = |with: bool, property| {
                if with {
                    buffer.push(property).unwrap();
                }
            };
            match kind {
                PacketKind::Publish => {
                    put(with[0], Property::PayloadFormatIndicator(with[7]));
                    put(with[1], Property::MessageExpiryInterval(number));
                    put(with[2], Property::ContentType(&words));
                    put(with[3], Property::CorrelationData(words.as_bytes()));
                    put(with[4], Property::TopicAlias(small));
                    for shift in 0..2 {
                        let identifier = SubscriptionIdentifier::new((number >> (4 + 8 * shift)).max(1));
                        put(with[5], Property::SubscriptionIdentifier(identifier.unwrap()));
                    }
                }
                PacketKind::Connect => {
                    put(with[0], Property::SessionExpiryInterval(number));
                    put(with[1], Property::ReceiveMaximum(small));
                    put(with[2], Property::MaximumPacketSize(NonZeroU32::from(small)));
                    put(with[3], Property::RequestProblemInformation(with[7]));
                    put(with[4], Property::AuthenticationMethod(&words));
                    put(with[4] && with[5], Property::AuthenticationData(words.as_bytes()));
                }
                PacketKind::Connack => {
                    put(with[0], Property::AssignedClientIdentifier(&words));
                    put(with[1], Property::ServerKeepAlive(small.get()));
                    put(with[2], Property::MaximumQos(Qos::AtLeastOnce));
                    put(with[3], Property::RetainAvailable(with[7]));
                    put(with[4], Property::ReasonString(&words));
                    put(with[5], Property::SharedSubscriptionAvailable(with[6]));
                }
                PacketKind::Auth => {
                    put(with[0], Property::AuthenticationMethod(&words));
                    put(with[1], Property::AuthenticationData(words.as_bytes()));
                }
                PacketKind::Disconnect => {
                    put(with[0], Property::SessionExpiryInterval(number));
                    put(with[1], Property::ServerReference(&words));
                }
                PacketKind::Subscribe => {
                    let identifier = SubscriptionIdentifier::new((number >> 4).max(1)).unwrap();
                    put(with[0], Property::SubscriptionIdentifier(identifier));
                }
                PacketKind::Unsubscribe => {}
                _ => put(with[0], Property::ReasonString(&words)),
            }
            for (name, value) in &users {
                put(true, Property::UserProperty((name, value)));
            }
            buffer
        })
        .boxed()
}

/// A packet as bytes, and as words.
type WrittenPacket = (Vec<u8>, String);

fn written(packet: &Packet<'_>, version: Version) -> WrittenPacket {
    let mut bytes = Vec::new();
    packet.encode(version, &mut bytes).unwrap();
    (bytes, format!("{packet:?}"))
}

fn publish(version: Version) -> BoxedStrategy<WrittenPacket> {
    (topic(), payload(), qos(), id(), any::<[bool; 2]>(), properties(PacketKind::Publish, version))
        .prop_map(move |(topic, payload, qos, id, [dup, retain], properties)| {
            let acknowledged = qos != Qos::AtMostOnce;
            let publish = Publish {
                dup: dup && acknowledged,
                qos,
                retain,
                topic: &topic,
                packet_id: acknowledged.then_some(id),
                properties: properties.properties(),
                payload: &payload,
            };
            written(&Packet::Publish(publish), version)
        })
        .boxed()
}

fn connect(version: Version) -> BoxedStrategy<WrittenPacket> {
    let will = option::of((topic(), vec(any::<u8>(), 0..20), qos(), any::<bool>()));
    let properties = properties(PacketKind::Connect, version);
    (any::<bool>(), any::<u16>(), text(), will, option::of(text()), option::of(text()), properties)
        .prop_map(move |(clean_start, keep_alive, client_id, will, user, password, properties)| {
            let alone = version == Version::V311 && user.is_none();
            let password = password.filter(|_| !alone);
            let connect = Connect {
                version,
                clean_start,
                keep_alive,
                properties: properties.properties(),
                client_id: &client_id,
                will: will.as_ref().map(|(topic, payload, qos, retain)| Will {
                    topic,
                    payload,
                    qos: *qos,
                    retain: *retain,
                    properties: Properties::NONE,
                }),
                user_name: user.as_deref(),
                password: password.as_deref().map(str::as_bytes),
            };
            written(&Packet::Connect(connect), version)
        })
        .boxed()
}

fn acknowledgement(version: Version) -> BoxedStrategy<WrittenPacket> {
    static KINDS: [PacketKind; 4] =
        [PacketKind::Puback, PacketKind::Pubrec, PacketKind::Pubrel, PacketKind::Pubcomp];
    prop::sample::select(&KINDS[..])
        .prop_flat_map(move |kind| (Just(kind), id(), reason(kind, version), properties(kind, version)))
        .prop_map(move |(kind, packet_id, reason, properties)| {
            let it = Acknowledgement { packet_id, reason, properties: properties.properties() };
            let packet = match kind {
                PacketKind::Puback => Packet::Puback(it),
                PacketKind::Pubrec => Packet::Pubrec(it),
                PacketKind::Pubrel => Packet::Pubrel(it),
                _ => Packet::Pubcomp(it),
            };
            written(&packet, version)
        })
        .boxed()
}

fn connack(version: Version) -> BoxedStrategy<WrittenPacket> {
    let kind = PacketKind::Connack;
    (any::<bool>(), reason(kind, version), properties(kind, version))
        .prop_map(move |(present, reason, properties)| {
            let session_present = present && reason == ReasonCode::Success;
            let connack = Connack { session_present, reason, properties: properties.properties() };
            written(&Packet::Connack(connack), version)
        })
        .boxed()
}

fn handling() -> impl Strategy<Value = RetainHandling> {
    prop_oneof![Just(RetainHandling::Always), Just(RetainHandling::New), Just(RetainHandling::Never)]
}

fn subscribe(version: Version) -> BoxedStrategy<WrittenPacket> {
    let one = (topic(), qos(), any::<[bool; 2]>(), handling());
    (id(), vec(one, 1..4), properties(PacketKind::Subscribe, version))
        .prop_map(move |(id, all, properties)| {
            let all: Vec<_> = all
                .iter()
                .map(|(filter, qos, [no_local, retain_as_published], retain_handling)| Subscription {
                    filter,
                    options: match version {
                        Version::V311 => SubscriptionOptions::qos(*qos),
                        Version::V5 => SubscriptionOptions {
                            qos: *qos,
                            no_local: *no_local,
                            retain_as_published: *retain_as_published,
                            retain_handling: *retain_handling,
                        },
                    },
                })
                .collect();
            let mut bytes = Vec::new();
            Subscribe::write(id, &properties.properties(), &all, version, &mut bytes).unwrap();
            let read = read_one(&bytes, version, |packet| {
                let Packet::Subscribe(read) = packet else { panic!("{packet:?}") };
                assert_eq!((read.packet_id, read.properties), (id, properties.properties()));
                assert!(read.subscriptions.iter().eq(all.iter().copied()));
                format!("{packet:?}")
            });
            (bytes, read)
        })
        .boxed()
}

fn unsubscribe(version: Version) -> BoxedStrategy<WrittenPacket> {
    (id(), vec(topic(), 1..4), properties(PacketKind::Unsubscribe, version))
        .prop_map(move |(id, filters, properties)| {
            let filters: Vec<_> = filters.iter().map(String::as_str).collect();
            let mut bytes = Vec::new();
            Unsubscribe::write(id, &properties.properties(), &filters, version, &mut bytes).unwrap();
            let read = read_one(&bytes, version, |packet| {
                let Packet::Unsubscribe(read) = packet else { panic!("{packet:?}") };
                assert!(read.filters.iter().eq(filters.iter().copied()));
                format!("{packet:?}")
            });
            (bytes, read)
        })
        .boxed()
}

fn answers(version: Version) -> BoxedStrategy<WrittenPacket> {
    let subscribed = (id(), vec(reason(PacketKind::Suback, version), 1..5)).prop_map(move |(id, reasons)| {
        let mut bytes = Vec::new();
        Suback::write(id, &reasons, version, &mut bytes).unwrap();
        let read = read_one(&bytes, version, |packet| {
            let Packet::Suback(read) = packet else { panic!("{packet:?}") };
            assert!(read.packet_id == id && read.reasons.iter().eq(reasons.iter().copied()));
            format!("{packet:?}")
        });
        (bytes, read)
    });
    let unsubscribed =
        (id(), vec(reason(PacketKind::Unsuback, Version::V5), 1..5)).prop_map(move |(id, reasons)| {
            let mut bytes = Vec::new();
            Unsuback::write(id, &reasons, version, &mut bytes).unwrap();
            let read = read_one(&bytes, version, |packet| format!("{packet:?}"));
            (bytes, read)
        });
    prop_oneof![subscribed, unsubscribed].boxed()
}

fn ends(version: Version) -> BoxedStrategy<WrittenPacket> {
    let kind = PacketKind::Disconnect;
    let reasons = match version {
        Version::V311 => Just(ReasonCode::Success).boxed(),
        Version::V5 => reason(kind, version).boxed(),
    };
    let disconnect = (reasons, properties(kind, version)).prop_map(move |(reason, properties)| {
        let disconnect = Disconnect { reason, properties: properties.properties() };
        written(&Packet::Disconnect(disconnect), version)
    });
    let pings = prop_oneof![Just(Packet::Pingreq), Just(Packet::Pingresp)]
        .prop_map(move |packet| written(&packet, version));
    if version == Version::V311 {
        return prop_oneof![disconnect, pings].boxed();
    }
    let kind = PacketKind::Auth;
    let auth = (reason(kind, version), properties(kind, version)).prop_map(move |(reason, properties)| {
        written(&Packet::Auth(Auth { reason, properties: properties.properties() }), version)
    });
    prop_oneof![disconnect, pings, auth].boxed()
}

fn packet(version: Version) -> BoxedStrategy<WrittenPacket> {
    prop_oneof![
        4 => publish(version),
        1 => connect(version),
        1 => connack(version),
        2 => acknowledgement(version),
        1 => subscribe(version),
        1 => unsubscribe(version),
        1 => answers(version),
        1 => ends(version),
    ]
    .boxed()
}

fn read_one<T>(bytes: &[u8], version: Version, look: impl FnOnce(Packet<'_>) -> T) -> T {
    let mut reader = Reader::new(version, Limits::default());
    let mut input = bytes;
    let looked = match reader.next(&mut input) {
        Ok(Some(Event::Packet(packet))) => look(packet),
        other => panic!("{other:?}"),
    };
    assert!(input.is_empty());
    looked
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_written_is_what_is_read_in_any_split(
        (version, packets) in version().prop_flat_map(|version| (Just(version), vec(packet(version), 0..8))),
        cuts in vec(any::<usize>(), 0..12),
    ) {
        let bytes: Vec<u8> = packets.iter().flat_map(|(bytes, _)| bytes.iter().copied()).collect();
        let words: Vec<String> = packets.into_iter().map(|(_, words)| words).collect();
        prop_assert_eq!(hear(&bytes, &cuts, version, Limits::default()), (words, None));
    }

    #[test]
    fn a_message_in_pieces_is_the_message_in_any_split(
        (version, messages) in version().prop_flat_map(|version| (Just(version), vec(publish(version), 0..5))),
        cuts in vec(any::<usize>(), 0..12), whole in 0..600_u32,
    ) {
        let limits = Limits { whole, ..Limits::default() };
        let bytes: Vec<u8> = messages.iter().flat_map(|(bytes, _)| bytes.iter().copied()).collect();
        let heard = hear(&bytes, &[], version, limits);
        prop_assert_eq!(hear(&bytes, &cuts, version, limits), heard.clone());
        // Those whose head fits come, those whose head does not are refused, and nothing else is.
        if let Some(error) = heard.1 {
            prop_assert_eq!(error.violation, weir_mqtt::Violation::PacketTooLarge);
        } else {
            prop_assert_eq!(heard.0.len(), messages.len());
        }
    }

    #[test]
    fn any_bytes_are_read_the_same_in_any_split(
        version in version(), bytes in vec(likely(), 0..300), cuts in vec(any::<usize>(), 0..12), whole in 8..64_u32,
    ) {
        let limits = Limits { packet: 200, whole };
        let heard = hear(&bytes, &[], version, limits);
        prop_assert_eq!(hear(&bytes, &cuts, version, limits), heard);
        prop_assert_eq!(pieces(&bytes, &cuts).concat(), bytes);
    }

    #[test]
    fn what_can_be_read_can_be_written_and_says_the_same(version in version(), bytes in vec(likely(), 2..40)) {
        if let Ok(packet) = Packet::decode(bytes[0], &bytes[1..], version) {
            let mut again = Vec::new();
            packet.encode(version, &mut again).unwrap();
            read_one(&again, version, |read| assert_eq!(read, packet));
        }
    }
}

/// Found by the fuzz target: a PUBLISH larger than is kept, whose properties are longer than the packet.
#[test]
fn a_head_that_is_longer_than_its_packet_is_refused_alike_in_any_split() {
    let mut bytes = vec![0x3D, 81, 0, 65];
    bytes.resize(2 + 69, b'a');
    bytes.extend([0x85, 0x00]);
    bytes.resize(2 + 81, 0);
    let limits = Limits { packet: 4096, whole: 64 };
    for cut in 0..bytes.len() {
        let (heard, error) = hear(&bytes, &[cut], Version::V5, limits);
        let violation = error.map(|error| error.violation);
        assert_eq!((heard, violation), (Vec::new(), Some(weir_mqtt::Violation::PacketTooLarge)), "{cut}");
    }
}

/// Bytes that often look like the beginning of a packet, and numbers that are often small.
fn likely() -> impl Strategy<Value = u8> {
    prop_oneof![
        3 => 0..6_u8,
        1 => Just(b'a'),
        2 => prop::sample::select(&[0x20_u8, 0x30, 0x32, 0x34, 0x40, 0x50, 0x62, 0x70, 0x82, 0x90, 0xA2, 0xB0, 0xC0, 0xD0, 0xE0, 0xF0][..]),
        1 => prop::sample::select(&[0x01_u8, 0x0B, 0x1F, 0x23, 0x26][..]),
        1 => any::<u8>(),
    ]
}
