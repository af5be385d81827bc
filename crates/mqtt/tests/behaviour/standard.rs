//! The bytes of the standards, and what they forbid, clause by clause.

use weir_mqtt::packet::{Connect, Publish, Subscribe, Subscription, SubscriptionOptions, Will};
use weir_mqtt::property::{Properties, Property, PropertyBuffer};
use weir_mqtt::{
    EncodeError, Error, Event, Limits, Packet, PacketId, PacketKind, Qos, Reader, ReasonCode, Version,
    Violation,
};

fn read(bytes: &[u8], version: Version) -> Result<String, Error> {
    let mut reader = Reader::new(version, Limits::default());
    let mut input = bytes;
    match reader.next(&mut input)? {
        Some(Event::Packet(packet)) => Ok(format!("{packet:?}")),
        other => panic!("{bytes:x?}: {other:?}"),
    }
}

/// MQTT 5 sections 3.1.2 and 3.1.3: figure 3-6, the variable header of the non-normative example, with a payload.
#[test]
fn connect_is_written_as_figure_3_6_shows() {
    let properties = PropertyBuffer::new().with(Property::SessionExpiryInterval(10)).unwrap();
    let connect = Connect {
        version: Version::V5,
        clean_start: true,
        keep_alive: 10,
        properties: properties.properties(),
        client_id: "",
        will: Some(Will {
            topic: "w",
            payload: b"!",
            qos: Qos::AtLeastOnce,
            retain: false,
            properties: Properties::NONE,
        }),
        user_name: Some("u"),
        password: Some(b"p"),
    };
    let mut bytes = Vec::new();
    connect.encode(&mut bytes).unwrap();
    let header = [
        0x00,
        0x04,
        b'M',
        b'Q',
        b'T',
        b'T',
        0x05,
        0b1100_1110,
        0x00,
        0x0A,
        0x05,
        0x11,
        0x00,
        0x00,
        0x00,
        0x0A,
    ];
    let payload = [0, 0, 0, 0, 1, b'w', 0, 1, b'!', 0, 1, b'u', 0, 1, b'p'];
    assert_eq!(bytes[..2], [0x10, (header.len() + payload.len()) as u8]);
    assert_eq!(bytes[2..][..header.len()], header);
    assert_eq!(bytes[2 + header.len()..], payload);
}

/// MQTT 5 section 3.3.2.4, figure 3-9: topic a/b, packet identifier 10, no properties.
#[test]
fn publish_is_written_as_figure_3_9_shows() {
    let publish = Publish { qos: Qos::AtLeastOnce, packet_id: PacketId::new(10), ..Publish::new("a/b", b"") };
    let mut bytes = Vec::new();
    publish.encode(Version::V5, &mut bytes).unwrap();
    assert_eq!(bytes, [0x32, 8, 0x00, 0x03, 0x61, 0x2F, 0x62, 0x00, 0x0A, 0x00]);
    bytes.clear();
    publish.encode(Version::V311, &mut bytes).unwrap();
    assert_eq!(bytes, [0x32, 7, 0x00, 0x03, 0x61, 0x2F, 0x62, 0x00, 0x0A]);
}

/// MQTT 3.1.1 section 3.8.3, figure 3.23: a/b at QoS 1, c/d at QoS 2; MQTT 5 figure 3-21 has the same payload.
#[test]
fn subscribe_is_written_as_figure_3_23_shows() {
    let filters = [("a/b", Qos::AtLeastOnce), ("c/d", Qos::ExactlyOnce)]
        .map(|(filter, qos)| Subscription { filter, options: SubscriptionOptions::qos(qos) });
    let id = PacketId::new(10).unwrap();
    let mut bytes = Vec::new();
    Subscribe::write(id, &Properties::NONE, &filters, Version::V311, &mut bytes).unwrap();
    let payload = [0x00, 0x03, 0x61, 0x2F, 0x62, 0x01, 0x00, 0x03, 0x63, 0x2F, 0x64, 0x02];
    assert_eq!(bytes[..4], [0x82, 14, 0x00, 0x0A]);
    assert_eq!(bytes[4..], payload);
}

#[test]
fn what_may_be_left_out_is_left_out_and_understood() {
    // MQTT 5 sections 3.4.2.1, 3.14.2.1 and 3.15.2.1.
    for (bytes, words) in [
        (&[0x40, 2, 0, 1][..], "Puback"),
        (&[0x40, 3, 0, 1, 0x10], "NoMatchingSubscribers"),
        (&[0x40, 4, 0, 1, 0x10, 0], "NoMatchingSubscribers"),
        (&[0xE0, 0], "Success"),
        (&[0xE0, 1, 0x8E], "SessionTakenOver"),
        (&[0xF0, 0], "Success"),
        // A server that speaks only 3.1.1 refuses so.
        (&[0x20, 2, 0, 0x01], "UnsupportedProtocolVersion"),
        (&[0x20, 2, 0, 0x84], "UnsupportedProtocolVersion"),
    ] {
        assert!(read(bytes, Version::V5).unwrap().contains(words), "{bytes:x?}");
    }
}

/// A packet that breaks a rule, and the rule.
type Case = (&'static [u8], Violation, &'static str);

fn judge(version: Version, cases: &[Case]) {
    for (bytes, violation, clause) in cases {
        let error = read(bytes, version).expect_err("a violation");
        assert_eq!((error.violation, error.clause()), (*violation, *clause), "{bytes:x?}");
        assert!(error.to_string().contains(clause), "{error}");
        assert_eq!(error.packet, PacketKind::from_bits(bytes[0] >> 4));
    }
}

#[test]
fn mqtt_5_forbids() {
    judge(
        Version::V5,
        &[
            (&[0x00, 0], Violation::PacketType, "section 2.1.2"),
            (&[0x42, 2, 0, 1], Violation::Flags, "MQTT-2.1.3-1"),
            (&[0x60, 2, 0, 1], Violation::Flags, "MQTT-2.1.3-1"),
            (&[0x80, 6, 0, 1, 0, 0, 1, b'a'], Violation::Flags, "MQTT-2.1.3-1"),
            (&[0xC0, 0x80, 0x00], Violation::IntegerNotMinimal, "MQTT-1.5.5-1"),
            (&[0xC0, 0xFF, 0xFF, 0xFF, 0xFF], Violation::IntegerTooLong, "section 1.5.5"),
            (&[0xC0, 1, 0], Violation::TrailingBytes, "section 2.1.4"),
            (&[0x40, 1, 0], Violation::Truncated, "section 2.1.4"),
            (&[0x40, 2, 0, 0], Violation::PacketIdentifierZero, "MQTT-2.2.1-3"),
            (&[0x40, 3, 0, 1, 0x11], Violation::UnknownReason, "section 2.4"),
            (&[0x36, 5, 0, 1, b'a', 0, 1], Violation::QosBits, "MQTT-3.3.1-4"),
            (&[0x38, 4, 0, 1, b'a', 0], Violation::DuplicateOfQos0, "MQTT-3.3.1-2"),
            (&[0x30, 4, 0, 1, b'+', 0], Violation::TopicWildcard, "MQTT-3.3.2-2"),
            (&[0x30, 4, 0, 1, b'#', 0], Violation::TopicWildcard, "MQTT-3.3.2-2"),
            (&[0x30, 4, 0, 1, 0, 0], Violation::NullCharacter, "MQTT-1.5.4-2"),
            (&[0x30, 4, 0, 1, 0xFF, 0], Violation::IllFormedText, "MQTT-1.5.4-1"),
            (&[0x30, 3, 0, 0, 0], Violation::TopicEmpty, "section 3.3.2.1"),
            (&[0x32, 6, 0, 1, b'a', 0, 0, 0], Violation::PacketIdentifierZero, "MQTT-2.2.1-3"),
            (&[0x30, 5, 0, 1, b'a', 2, 1], Violation::PropertyLength, "section 2.2.2.1"),
            (&[0x20, 3, 2, 0, 0], Violation::ConnackFlags, "MQTT-3.2.2-1"),
            (&[0x20, 3, 1, 0x87, 0], Violation::SessionOfRefusal, "MQTT-3.2.2-6"),
            (&[0x20, 3, 0, 1, 0], Violation::UnknownReason, "section 2.4"),
            (&[0x82, 3, 0, 1, 0], Violation::NothingToSubscribe, "MQTT-3.8.3-2"),
            (&[0x82, 7, 0, 1, 0, 0, 1, b'a', 0x40], Violation::SubscriptionOptions, "MQTT-3.8.3-5"),
            (&[0x82, 7, 0, 1, 0, 0, 1, b'a', 0x03], Violation::SubscriptionOptions, "MQTT-3.8.3-5"),
            (&[0x82, 7, 0, 1, 0, 0, 1, b'a', 0x30], Violation::RetainHandling, "section 3.8.3.1"),
            (b"\x82\x10\0\x01\0\0\x0a$share/g/a\x04", Violation::SharedNoLocal, "MQTT-3.8.3-4"),
            (&[0xA2, 3, 0, 1, 0], Violation::NothingToUnsubscribe, "MQTT-3.10.3-2"),
            (&[0x90, 4, 0, 1, 0, 3], Violation::UnknownReason, "section 2.4"),
            (&[0x90, 3, 0, 1, 0], Violation::ReasonCount, "MQTT-3.8.4-6"),
            (&[0xE0, 1, 0x10], Violation::UnknownReason, "section 2.4"),
        ],
    );
}

#[test]
fn mqtt_3_1_1_forbids() {
    judge(
        Version::V311,
        &[
            (&[0x00, 0], Violation::PacketType, "section 2.2.1"),
            (&[0xF0, 0], Violation::PacketType, "section 2.2.1"),
            (&[0x60, 2, 0, 1], Violation::Flags, "MQTT-2.2.2-2"),
            (&[0x40, 3, 0, 1, 0], Violation::TrailingBytes, "section 2.2.3"),
            (&[0x40, 2, 0, 0], Violation::PacketIdentifierZero, "MQTT-2.3.1-1"),
            (&[0x36, 5, 0, 1, b'a', 0, 1], Violation::QosBits, "MQTT-3.3.1-4"),
            (&[0x38, 3, 0, 1, b'a'], Violation::DuplicateOfQos0, "MQTT-3.3.1-2"),
            (&[0x30, 3, 0, 1, b'+'], Violation::TopicWildcard, "MQTT-3.3.2-2"),
            (&[0x30, 2, 0, 0], Violation::TopicEmpty, "MQTT-4.7.3-1"),
            (&[0x30, 3, 0, 1, 0xC0], Violation::IllFormedText, "MQTT-1.5.3-1"),
            (&[0x20, 2, 0, 6], Violation::UnknownReason, "section 3.2.2.3"),
            (&[0x82, 2, 0, 1], Violation::NothingToSubscribe, "MQTT-3.8.3-3"),
            (&[0x82, 6, 0, 1, 0, 1, b'a', 0x04], Violation::SubscriptionOptions, "MQTT-3-8.3-4"),
            (&[0xA2, 2, 0, 1], Violation::NothingToUnsubscribe, "MQTT-3.10.3-2"),
        ],
    );
    // Nothing in 3.1.1 demands that a Remaining Length is as short as can be.
    assert_eq!(read(&[0xC0, 0x80, 0x00], Version::V311).unwrap(), "Pingreq");
}

/// Sections 3.1.2.1 to 3.1.2.9 of both standards. A CONNECT says itself by which it is judged.
#[test]
fn a_connect_is_judged_by_its_own_standard() {
    let connect = |level: u8, flags: u8, rest: &[u8]| {
        let body = [&[0, 4, b'M', b'Q', b'T', b'T', level, flags, 0, 0], rest].concat();
        [&[0x10, body.len() as u8][..], &body].concat()
    };
    let cases = [
        (connect(5, 0b0000_0001, &[0, 0, 0]), Violation::ConnectFlags, "MQTT-3.1.2-3"),
        (connect(4, 0b0000_1000, &[0, 0]), Violation::WillFlags, "MQTT-3.1.2-13"),
        (connect(5, 0b0010_0000, &[0, 0, 0]), Violation::WillFlags, "MQTT-3.1.2-11"),
        (connect(4, 0b0001_1100, &[0, 0, 0, 1, b'w', 0, 0]), Violation::WillQos, "MQTT-3.1.2-14"),
        (connect(4, 0b0100_0000, &[0, 0, 0, 1, b'p']), Violation::PasswordAlone, "MQTT-3.1.2-22"),
        (connect(5, 0b1000_0000, &[0, 0, 0]), Violation::Truncated, "section 2.1.4"),
        (connect(5, 0b0000_0100, &[0, 0, 0, 0, 0, 1, b'#', 0, 0]), Violation::TopicWildcard, "MQTT-3.3.2-2"),
        (connect(5, 0, &[4, 0x16, 0, 1, b'x', 0, 0]), Violation::AuthenticationData, "section 3.1.2.11.10"),
        (connect(6, 0, &[0, 0, 0]), Violation::ProtocolVersion, "MQTT-3.1.2-2"),
    ];
    for (bytes, violation, clause) in cases {
        for version in [Version::V311, Version::V5] {
            let error = read(&bytes, version).expect_err("a violation");
            assert_eq!((error.violation, error.clause()), (violation, clause), "{bytes:x?}");
        }
    }
    let old = [0x10, 14, 0, 6, b'M', b'Q', b'I', b's', b'd', b'p', 3, 2, 0, 60, 0, 0];
    let error = read(&old, Version::V5).expect_err("MQTT 3.1 is not spoken");
    assert_eq!(error.violation, Violation::ProtocolName);
    assert_eq!(error.reason(), ReasonCode::UnsupportedProtocolVersion);
    // MQTT 5 allows a password without a user name (section 3.1.2.9).
    assert!(read(&connect(5, 0b0100_0000, &[0, 0, 0, 0, 1, b'p']), Version::V311).is_ok());
}

#[test]
fn a_reader_learns_the_version_from_connect() {
    for (version, connect) in [
        (Version::V311, &[0x10, 12, 0, 4, b'M', b'Q', b'T', b'T', 4, 2, 0, 0, 0, 0][..]),
        (Version::V5, &[0x10, 13, 0, 4, b'M', b'Q', b'T', b'T', 5, 2, 0, 0, 0, 0, 0]),
    ] {
        for cut in 0..connect.len() {
            let mut reader = Reader::new(Version::V5, Limits::default());
            for mut piece in [&connect[..cut], &connect[cut..]] {
                while reader.next(&mut piece).unwrap().is_some() {}
            }
            assert_eq!(reader.version(), version);
        }
    }
}

#[test]
fn secrets_are_not_in_what_is_written_down() {
    let connect = [
        0x10, 30, 0, 4, b'M', b'Q', b'T', b'T', 4, 0xC2, 0, 0, 0, 0, 0, 8, b'm', b'y', b'-', b'n', b'a',
        b'm', b'e', b'!', 0, 6, b's', b'e', b'c', b'r', b'e', b't',
    ];
    let words = read(&connect, Version::V311).unwrap();
    assert!(!words.contains("my-name") && !words.contains("115, 101, 99"), "{words}");
}

/// A message of 256 MB: refused from its first bytes, or handed on in pieces; never kept.
#[test]
fn the_largest_message_takes_no_memory() {
    let head = [0x30, 0xFF, 0xFF, 0xFF, 0x7F, 0, 1, b't', 0];
    let refuses = Limits { packet: 1 << 20, ..Limits::default() };
    let error = Reader::new(Version::V5, refuses).next(&mut &head[..5]).unwrap_err();
    assert_eq!((error.violation, error.reason()), (Violation::PacketTooLarge, ReasonCode::PacketTooLarge));

    let mut reader = Reader::new(Version::V5, Limits::default());
    let mut most = 0;
    for byte in &head {
        let mut input = std::slice::from_ref(byte);
        while let Some(event) = reader.next(&mut input).unwrap() {
            assert!(matches!(event, Event::Begin { payload: 268_435_451, .. }), "{event:?}");
        }
        most = most.max(reader.memory());
    }
    let piece = [7; 65_536];
    let (mut left, mut ended) = (268_435_451_usize, false);
    while left > 0 {
        let mut input = &piece[..left.min(piece.len())];
        while let Some(event) = reader.next(&mut input).unwrap() {
            match event {
                Event::Payload(bytes) => left -= bytes.len(),
                Event::End => ended = true,
                other => panic!("{other:?}"),
            }
        }
        most = most.max(reader.memory());
    }
    assert!(ended && most < 4096, "{most}");
}

/// Bytes are announced and do not come: memory follows what came.
#[test]
fn an_announcement_takes_no_memory() {
    let limits = Limits { whole: 268_435_460, ..Limits::default() };
    let mut reader = Reader::new(Version::V5, limits);
    let mut input = &[0x30, 0xFF, 0xFF, 0xFF, 0x7F, 0, 1, b't', 0][..];
    assert_eq!(reader.next(&mut input), Ok(None));
    assert!(reader.memory() < 4096);
}

#[test]
fn what_a_packet_has_no_room_for_is_not_written() {
    let mut out = vec![1, 2, 3];
    let long = "x".repeat(65_536);
    let property = PropertyBuffer::new().with(Property::ReasonString("no")).unwrap();
    let misplaced = Publish { properties: property.properties(), ..Publish::new("a", b"") };
    for (publish, version, error) in [
        (Publish::new(&long, b""), Version::V5, EncodeError::FieldTooLong { length: 65_536 }),
        (Publish::new("", b""), Version::V5, EncodeError::Forbidden(Violation::TopicEmpty)),
        (Publish::new("a/#", b""), Version::V5, EncodeError::Forbidden(Violation::TopicWildcard)),
        (misplaced, Version::V5, EncodeError::Forbidden(Violation::PropertyMisplaced)),
        (misplaced, Version::V311, EncodeError::NeedsVersion5),
        (
            Publish { qos: Qos::AtLeastOnce, ..Publish::new("a", b"") },
            Version::V5,
            EncodeError::Forbidden(Violation::PacketIdentifierZero),
        ),
        (
            Publish { dup: true, ..Publish::new("a", b"") },
            Version::V5,
            EncodeError::Forbidden(Violation::DuplicateOfQos0),
        ),
    ] {
        assert_eq!(publish.encode(version, &mut out), Err(error));
    }
    let length = weir_mqtt::MAX_REMAINING_LENGTH - 3;
    let publish = Publish::new("a", b"");
    assert_eq!(
        publish.encode_head(length, Version::V5, &mut out),
        Err(EncodeError::PacketTooLong { length: weir_mqtt::MAX_REMAINING_LENGTH + 1 })
    );
    assert_eq!(out, [1, 2, 3]);
    assert_eq!(Packet::Pingreq.encode(Version::V5, &mut out), Ok(()));
}
