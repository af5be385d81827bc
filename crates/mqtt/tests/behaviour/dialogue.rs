//! The dialogue of a client, with a server that says what each test wants it to say.

use std::num::{NonZeroU16, NonZeroU32};
use std::time::Duration;
use weir_mqtt::client::{Acknowledging, PingUnanswered, PublishError, Session};
use weir_mqtt::packet::{
    Acknowledgement, Connack, Disconnect, Publish, Suback, Subscription, SubscriptionOptions, Unsuback,
};
use weir_mqtt::property::Properties;
use weir_mqtt::{
    Client, ClientEvent, ClientOptions, Event, Limits, Packet, PacketId, PacketKind, Property,
    PropertyBuffer, Qos, Reader, ReasonCode, Version, Violation,
};

const NOW: Duration = Duration::from_secs(100);
const BOTH: [Version; 2] = [Version::V311, Version::V5];

/// A client, and what it has said and heard.
struct Dialogue {
    client: Client,
    version: Version,
    heard: Vec<String>,
}

impl Dialogue {
    /// A connection that the server has accepted with these properties.
    fn open(options: ClientOptions, session: Session, present: bool, properties: &PropertyBuffer) -> Self {
        let version = options.version;
        let client = Client::new(options, session, NOW);
        let mut dialogue = Self { client, version, heard: Vec::new() };
        assert_eq!(dialogue.said().len(), 1, "CONNECT and nothing else");
        let properties = properties.properties();
        let connack = Connack { session_present: present, reason: ReasonCode::Success, properties };
        dialogue.hears(&Packet::Connack(connack)).unwrap();
        assert_eq!(dialogue.heard.remove(0), "connected");
        dialogue
    }

    fn usual(version: Version) -> Self {
        Self::open(ClientOptions::new(version, "c"), Session::new(), false, &PropertyBuffer::new())
    }

    /// The server says something.
    fn hears(&mut self, packet: &Packet<'_>) -> Result<(), weir_mqtt::Error> {
        let mut bytes = Vec::new();
        packet.encode(self.version, &mut bytes).unwrap();
        self.hears_bytes(&bytes)
    }

    fn hears_bytes(&mut self, bytes: &[u8]) -> Result<(), weir_mqtt::Error> {
        let heard = &mut self.heard;
        self.client.input(bytes, NOW, &mut |event| heard.push(words(&event)))
    }

    /// What the client has said since.
    fn said(&mut self) -> Vec<String> {
        let bytes = std::mem::take(self.client.output());
        let mut reader = Reader::new(self.version, Limits::default());
        let (mut input, mut said) = (&bytes[..], Vec::new());
        while let Some(event) = reader.next(&mut input).unwrap() {
            let Event::Packet(packet) = event else { panic!("{event:?}") };
            said.push(match packet {
                Packet::Publish(it) => {
                    let id = it.packet_id.map_or(0, PacketId::get);
                    let dup = if it.dup { " dup" } else { "" };
                    format!("PUBLISH {id}{dup} {:?}", String::from_utf8_lossy(it.payload))
                }
                Packet::Puback(it) | Packet::Pubrec(it) | Packet::Pubrel(it) | Packet::Pubcomp(it) => {
                    format!("{} {} {:?}", packet.kind(), it.packet_id, it.reason)
                }
                Packet::Disconnect(it) => format!("DISCONNECT {:?}", it.reason),
                other => other.kind().to_string(),
            });
        }
        said
    }

    fn heard(&mut self) -> Vec<String> {
        std::mem::take(&mut self.heard)
    }

    fn publish(&mut self, qos: Qos, payload: &str, token: u64) -> Result<Option<PacketId>, PublishError> {
        self.client.publish(&Publish { qos, ..Publish::new("t", payload.as_bytes()) }, token, NOW)
    }
}

fn words(event: &ClientEvent<'_>) -> String {
    match event {
        ClientEvent::Connected(_) => "connected".into(),
        ClientEvent::Refused(connack) => format!("refused {:?}", connack.reason),
        ClientEvent::Message(message) => {
            let dup = if message.publish.dup { " dup" } else { "" };
            format!("message {}{dup} {:?}", message.topic, String::from_utf8_lossy(message.publish.payload))
        }
        ClientEvent::MessageBegin { message, payload } => format!("begin {} {payload}", message.topic),
        ClientEvent::MessagePayload(bytes) => format!("piece {}", bytes.len()),
        ClientEvent::MessageEnd { .. } => "end".into(),
        ClientEvent::Excess { packet_id } => format!("excess {packet_id}"),
        ClientEvent::Repeated { packet_id, settled: false } => format!("repeated {packet_id}"),
        ClientEvent::Repeated { packet_id, settled: true } => format!("repeated {packet_id}, settled"),
        ClientEvent::Received { token, .. } => format!("received {token}"),
        ClientEvent::AcknowledgedAgain { packet_id } => format!("{packet_id} again"),
        ClientEvent::Acknowledged { token, reason, .. } => format!("acknowledged {token} {reason:?}"),
        ClientEvent::Subscribed { token, suback } => format!("subscribed {token} {:?}", suback.reasons),
        ClientEvent::Unsubscribed { token, .. } => format!("unsubscribed {token}"),
        ClientEvent::Pong => "pong".into(),
        ClientEvent::Auth(_) => "auth".into(),
        ClientEvent::Disconnected(disconnect) => format!("disconnected {:?}", disconnect.reason),
    }
}

fn id(number: u16) -> PacketId {
    PacketId::new(number).unwrap()
}

fn ok(number: u16) -> Acknowledgement<'static> {
    Acknowledgement::success(id(number))
}

/// A session that outlives its connection.
fn lasting(version: Version) -> ClientOptions {
    ClientOptions { clean_start: false, session_expiry: 60, ..ClientOptions::new(version, "c") }
}

fn message(qos: Qos, number: u16, payload: &str) -> Publish<'_> {
    let packet_id = PacketId::new(number).filter(|_| qos != Qos::AtMostOnce);
    Publish { qos, packet_id, ..Publish::new("t", payload.as_bytes()) }
}

/// Section 4.3: the flows of figures 4.1 to 4.3, the client sending.
#[test]
fn a_message_is_acknowledged_as_its_quality_says() {
    for version in BOTH {
        let mut it = Dialogue::usual(version);
        assert_eq!(it.publish(Qos::AtMostOnce, "zero", 7), Ok(None));
        assert_eq!(it.publish(Qos::AtLeastOnce, "one", 8), Ok(Some(id(1))));
        assert_eq!(it.publish(Qos::ExactlyOnce, "two", 9), Ok(Some(id(2))));
        assert_eq!(it.said(), ["PUBLISH 0 \"zero\"", "PUBLISH 1 \"one\"", "PUBLISH 2 \"two\""]);
        assert_eq!(it.client.session().in_flight(), 2);
        it.hears(&Packet::Puback(ok(1))).unwrap();
        it.hears(&Packet::Pubrec(ok(2))).unwrap();
        assert_eq!(it.said(), ["PUBREL 2 Success"]);
        it.hears(&Packet::Pubcomp(ok(2))).unwrap();
        assert_eq!(it.heard(), ["acknowledged 8 Success", "received 9", "acknowledged 9 Success"]);
        assert_eq!(it.client.session().in_flight(), 0);
    }
}

/// The same figures, the client receiving.
#[test]
fn a_message_that_comes_is_answered_as_its_quality_says() {
    for version in BOTH {
        let mut it = Dialogue::usual(version);
        it.hears(&Packet::Publish(message(Qos::AtMostOnce, 0, "zero"))).unwrap();
        it.hears(&Packet::Publish(message(Qos::AtLeastOnce, 5, "one"))).unwrap();
        it.hears(&Packet::Publish(message(Qos::ExactlyOnce, 6, "two"))).unwrap();
        assert_eq!(it.said(), ["PUBACK 5 Success", "PUBREC 6 Success"]);
        // Again before it is released: not handed out (MQTT-4.3.3-10), and again after: a new one.
        it.hears(&Packet::Publish(Publish { dup: true, ..message(Qos::ExactlyOnce, 6, "two") })).unwrap();
        it.hears(&Packet::Pubrel(ok(6))).unwrap();
        it.hears(&Packet::Publish(message(Qos::ExactlyOnce, 6, "new"))).unwrap();
        assert_eq!(it.said(), ["PUBREC 6 Success", "PUBCOMP 6 Success", "PUBREC 6 Success"]);
        assert_eq!(
            it.heard(),
            [
                "message t \"zero\"",
                "message t \"one\"",
                "message t \"two\"",
                "repeated 6",
                "message t \"new\""
            ]
        );
    }
}

#[test]
fn the_window_is_the_smaller_of_both_sides_and_opens_with_acknowledgements() {
    let most = PropertyBuffer::new().with(Property::ReceiveMaximum(NonZeroU16::new(2).unwrap())).unwrap();
    let options = ClientOptions { window: 10, ..ClientOptions::new(Version::V5, "c") };
    let mut it = Dialogue::open(options, Session::new(), false, &most);
    assert_eq!(it.client.room(), 2);
    it.publish(Qos::AtLeastOnce, "a", 1).unwrap();
    it.publish(Qos::ExactlyOnce, "b", 2).unwrap();
    assert_eq!(it.publish(Qos::AtLeastOnce, "c", 3), Err(PublishError::WindowFull));
    assert_eq!(it.publish(Qos::AtMostOnce, "d", 4), Ok(None));
    // PUBREC opens nothing, PUBCOMP does, and so does a PUBREC that refuses (MQTT 5 section 4.9).
    it.hears(&Packet::Pubrec(ok(2))).unwrap();
    assert_eq!(it.client.room(), 0);
    it.hears(&Packet::Pubcomp(ok(2))).unwrap();
    let third = it.publish(Qos::ExactlyOnce, "e", 5).unwrap().unwrap();
    assert_eq!(it.client.room(), 0);
    let refusal = Acknowledgement::of(third, ReasonCode::QuotaExceeded);
    it.hears(&Packet::Pubrec(refusal)).unwrap();
    assert_eq!(it.client.room(), 1);
    assert_eq!(it.heard().last().unwrap(), "acknowledged 5 QuotaExceeded");
}

#[test]
fn what_the_server_does_not_take_is_not_sent() {
    let limits = PropertyBuffer::new()
        .with(Property::MaximumQos(Qos::AtLeastOnce))
        .and_then(|all| all.with(Property::RetainAvailable(false)))
        .and_then(|all| all.with(Property::MaximumPacketSize(NonZeroU32::new(20).unwrap())))
        .and_then(|all| all.with(Property::ServerKeepAlive(7)))
        .unwrap();
    let mut it = Dialogue::open(ClientOptions::new(Version::V5, "c"), Session::new(), false, &limits);
    assert_eq!(it.client.granted().keep_alive, 7);
    assert_eq!(it.publish(Qos::ExactlyOnce, "", 1), Err(PublishError::QosNotSupported));
    let retained = Publish { retain: true, ..Publish::new("t", b"") };
    assert_eq!(it.client.publish(&retained, 1, NOW), Err(PublishError::RetainNotSupported));
    let size = 2 + 3 + 2 + 1 + 15;
    let error = it.publish(Qos::AtLeastOnce, "fifteen letters", 1);
    assert_eq!(error, Err(PublishError::TooLarge { size, limit: 20 }));
    let alias = PropertyBuffer::new().with(Property::TopicAlias(NonZeroU16::MIN)).unwrap();
    let aliased = Publish { properties: alias.properties(), ..Publish::new("t", b"") };
    assert_eq!(it.client.publish(&aliased, 1, NOW), Err(PublishError::TopicAliasTooHigh));
    assert_eq!((it.said(), it.client.session().in_flight()), (Vec::new(), 0));
    assert!(it.publish(Qos::AtLeastOnce, "short", 1).is_ok());
}

/// Section 4.4: a session that the server has kept goes on where it was.
#[test]
fn a_resumed_session_sends_again_in_order_and_only_what_is_not_acknowledged() {
    for version in BOTH {
        let mut it = Dialogue::open(lasting(version), Session::new(), false, &PropertyBuffer::new());
        for (token, qos) in
            [(1, Qos::AtLeastOnce), (2, Qos::ExactlyOnce), (3, Qos::AtLeastOnce), (4, Qos::ExactlyOnce)]
        {
            it.publish(qos, "x", token).unwrap();
        }
        it.hears(&Packet::Puback(ok(1))).unwrap();
        it.hears(&Packet::Pubrec(ok(4))).unwrap();
        // A message of QoS 2 has been received, and is not released.
        it.hears(&Packet::Publish(message(Qos::ExactlyOnce, 50, "in"))).unwrap();
        let session = it.client.into_session();

        let mut it = Dialogue::open(lasting(version), session, true, &PropertyBuffer::new());
        assert_eq!(it.said(), ["PUBREL 4 Success"]);
        let mut asked = Vec::new();
        while let Some(resend) = it.client.next_resend() {
            let message = Publish { qos: resend.qos, ..Publish::new("t", b"again") };
            it.client.resend(resend, &message, NOW).unwrap();
            asked.push((resend.token, resend.qos));
        }
        assert_eq!(asked, [(2, Qos::ExactlyOnce), (3, Qos::AtLeastOnce)]);
        assert_eq!(it.said(), ["PUBLISH 2 dup \"again\"", "PUBLISH 3 dup \"again\""]);
        it.hears(&Packet::Publish(Publish { dup: true, ..message(Qos::ExactlyOnce, 50, "in") })).unwrap();
        it.hears(&Packet::Pubrec(ok(2))).unwrap();
        it.hears(&Packet::Puback(ok(3))).unwrap();
        it.hears(&Packet::Pubcomp(ok(4))).unwrap();
        it.hears(&Packet::Pubcomp(ok(2))).unwrap();
        assert_eq!(
            it.heard(),
            [
                "repeated 50",
                "received 2",
                "acknowledged 3 Success",
                "acknowledged 4 Success",
                "acknowledged 2 Success"
            ]
        );
        assert_eq!(it.client.session().in_flight(), 0);
        // A new message gets no identifier that an old one still had.
        assert!(it.publish(Qos::AtLeastOnce, "new", 9).is_ok());
    }
}

#[test]
fn a_session_that_the_server_lost_says_what_may_not_have_come() {
    let mut it = Dialogue::open(lasting(Version::V5), Session::new(), false, &PropertyBuffer::new());
    for token in 1..=3 {
        it.publish(Qos::ExactlyOnce, "x", token).unwrap();
    }
    it.hears(&Packet::Pubrec(ok(2))).unwrap();
    let mut it =
        Dialogue::open(lasting(Version::V5), it.client.into_session(), false, &PropertyBuffer::new());
    assert_eq!((it.client.next_resend(), it.said()), (None, Vec::new()));
    let mut session = it.client.into_session();
    assert_eq!((session.lost(), session.in_flight()), (vec![1, 3], 0));
}

#[test]
fn the_caller_may_acknowledge_when_it_has_done_its_work() {
    for version in BOTH {
        let acknowledging = Acknowledging::ByCaller;
        let options = ClientOptions { acknowledging, ..lasting(version) };
        let mut it = Dialogue::open(options.clone(), Session::new(), false, &PropertyBuffer::new());
        it.hears(&Packet::Publish(message(Qos::AtLeastOnce, 1, "one"))).unwrap();
        it.hears(&Packet::Publish(message(Qos::ExactlyOnce, 2, "two"))).unwrap();
        it.hears(&Packet::Publish(message(Qos::ExactlyOnce, 3, "three"))).unwrap();
        assert!(it.said().is_empty());
        it.client.acknowledge(id(1), ReasonCode::Success, NOW).unwrap();
        it.client.acknowledge(id(2), ReasonCode::Success, NOW).unwrap();
        assert_eq!(it.said(), ["PUBACK 1 Success", "PUBREC 2 Success"]);
        // What was not acknowledged comes again in the next connection, and is not handed out again (MQTT-4.3.3-10).
        let mut it = Dialogue::open(options, it.client.into_session(), true, &PropertyBuffer::new());
        it.hears(&Packet::Publish(Publish { dup: true, ..message(Qos::ExactlyOnce, 3, "three") })).unwrap();
        it.hears(&Packet::Pubrel(ok(2))).unwrap();
        assert_eq!(it.heard(), ["repeated 3"]);
        assert_eq!(it.said(), ["PUBCOMP 2 Success"]);
        assert!(it.client.settle(id(3), NOW));
        assert_eq!(it.said(), ["PUBREC 3 Success"]);
    }
}

fn saving(version: Version) -> ClientOptions {
    ClientOptions { acknowledging: Acknowledging::ByCaller, ..lasting(version) }
}

/// MQTT-4.3.3-10 and section 4.1: received identifiers outlive the connection with the session.
#[test]
fn a_message_of_qos_2_that_its_caller_settles_between_two_connections_is_acknowledged_when_it_comes_again() {
    for version in BOTH {
        let mut it = Dialogue::open(saving(version), Session::new(), false, &PropertyBuffer::new());
        it.hears(&Packet::Publish(message(Qos::ExactlyOnce, 7, "x"))).unwrap();
        it.hears(&Packet::Publish(message(Qos::AtLeastOnce, 8, "y"))).unwrap();
        let session = it.client.into_session();
        let mut it = Dialogue::open(saving(version), session, true, &PropertyBuffer::new());
        // PUBREC answers a PUBLISH, and there is none on this connection yet.
        assert!(!it.client.settle(id(7), NOW) && !it.client.settle(id(8), NOW));
        assert!(it.said().is_empty());
        for again in ["repeated 7, settled", "repeated 7"] {
            it.hears(&Packet::Publish(Publish { dup: true, ..message(Qos::ExactlyOnce, 7, "x") })).unwrap();
            assert_eq!(
                (it.heard(), it.said()),
                (vec![again.to_owned()], vec!["PUBREC 7 Success".to_owned()])
            );
        }
        it.hears(&Packet::Publish(Publish { dup: true, ..message(Qos::AtLeastOnce, 8, "y") })).unwrap();
        assert_eq!(it.heard(), ["message t dup \"y\""], "at QoS 1 it comes once or more");
        it.hears(&Packet::Pubrel(ok(7))).unwrap();
        it.hears(&Packet::Publish(message(Qos::ExactlyOnce, 7, "another"))).unwrap();
        assert_eq!(it.heard(), ["message t \"another\""]);
        assert_eq!(it.said(), ["PUBCOMP 7 Success"]);
    }
}

#[test]
fn identifiers_of_a_session_that_the_server_has_lost_are_those_of_new_messages() {
    for version in BOTH {
        let mut it = Dialogue::open(saving(version), Session::new(), false, &PropertyBuffer::new());
        it.hears(&Packet::Publish(message(Qos::ExactlyOnce, 1, "old"))).unwrap();
        it.client.acknowledge(id(1), ReasonCode::Success, NOW).unwrap();
        it.hears(&Packet::Publish(message(Qos::ExactlyOnce, 2, "old"))).unwrap();
        let session = it.client.into_session();
        let mut it = Dialogue::open(saving(version), session, false, &PropertyBuffer::new());
        for number in [1, 2] {
            it.hears(&Packet::Publish(message(Qos::ExactlyOnce, number, "new"))).unwrap();
        }
        assert_eq!(it.heard(), ["message t \"new\"", "message t \"new\""]);
    }
}

#[test]
fn a_large_message_of_qos_2_that_was_cut_off_is_handed_out_when_it_comes_again() {
    let options = ClientOptions { whole: 16, ..saving(Version::V5) };
    let mut it = Dialogue::open(options.clone(), Session::new(), false, &PropertyBuffer::new());
    let payload = "x".repeat(100);
    let mut bytes = Vec::new();
    Packet::Publish(message(Qos::ExactlyOnce, 5, &payload)).encode(Version::V5, &mut bytes).unwrap();
    it.hears_bytes(&bytes[..60]).unwrap();
    assert_eq!(it.heard()[0], "begin t 100");
    let mut it = Dialogue::open(options, it.client.into_session(), true, &PropertyBuffer::new());
    it.hears_bytes(&bytes).unwrap();
    assert_eq!((it.heard()[0].as_str(), it.said()), ("begin t 100", Vec::new()));
}

/// MQTT 5 section 3.3.4 and MQTT-3.3.4-9.
#[test]
fn a_server_that_exceeds_receive_maximum_is_told_so() {
    let options = ClientOptions {
        receive_maximum: 2,
        acknowledging: Acknowledging::ByCaller,
        ..ClientOptions::new(Version::V5, "c")
    };
    let mut it = Dialogue::open(options.clone(), Session::new(), false, &PropertyBuffer::new());
    it.hears(&Packet::Publish(message(Qos::AtLeastOnce, 1, ""))).unwrap();
    it.hears(&Packet::Publish(message(Qos::ExactlyOnce, 2, ""))).unwrap();
    let error = it.hears(&Packet::Publish(message(Qos::AtLeastOnce, 3, ""))).unwrap_err();
    assert_eq!((error.violation, error.clause()), (Violation::ReceiveMaximum, "MQTT-3.3.4-9"));
    assert_eq!(it.said(), ["DISCONNECT ReceiveMaximumExceeded"]);
    assert!(!it.client.is_connected());
    // Unless the client puts up with it.
    let options = ClientOptions { strict_receive_maximum: false, ..options };
    let mut it = Dialogue::open(options, Session::new(), false, &PropertyBuffer::new());
    for id in 1..=3 {
        it.hears(&Packet::Publish(message(Qos::AtLeastOnce, id, ""))).unwrap();
    }
    assert_eq!(it.heard(), ["message t \"\"", "message t \"\"", "excess 3", "message t \"\""]);
    assert_eq!(it.said(), [""; 0]);
    assert!(it.client.is_connected());
}

/// MQTT 5 section 3.3.2.3.4.
#[test]
fn a_topic_alias_stands_for_the_topic_that_it_was_given_last() {
    let options = ClientOptions { topic_alias_maximum: 2, ..ClientOptions::new(Version::V5, "c") };
    let mut it = Dialogue::open(options, Session::new(), false, &PropertyBuffer::new());
    let aliased = |it: &mut Dialogue, topic: &str, alias: u16| {
        let buffer =
            PropertyBuffer::new().with(Property::TopicAlias(NonZeroU16::new(alias).unwrap())).unwrap();
        it.hears(&Packet::Publish(Publish { properties: buffer.properties(), ..Publish::new(topic, b"") }))
    };
    for (topic, alias) in [("a", 1), ("", 1), ("b", 2), ("", 2), ("", 1), ("c", 1), ("", 1)] {
        aliased(&mut it, topic, alias).unwrap();
    }
    let topics: Vec<_> = it.heard().iter().map(|heard| heard.split(' ').nth(1).unwrap().to_owned()).collect();
    assert_eq!(topics, ["a", "a", "b", "b", "a", "c", "c"]);
    let error = aliased(&mut it, "d", 3).unwrap_err();
    assert_eq!(error.violation, Violation::TopicAliasTooHigh);
    assert_eq!(it.said(), ["DISCONNECT TopicAliasInvalid"]);
    let mut it = Dialogue::usual(Version::V5);
    assert_eq!(aliased(&mut it, "a", 1).unwrap_err().violation, Violation::TopicAliasTooHigh);
}

#[test]
fn subscriptions_are_answered_filter_by_filter() {
    for version in BOTH {
        let mut it = Dialogue::usual(version);
        let filters = ["a/#", "b"]
            .map(|filter| Subscription { filter, options: SubscriptionOptions::qos(Qos::AtLeastOnce) });
        let one = it.client.subscribe(&filters, &Properties::NONE, 1, NOW).unwrap();
        let two = it.client.unsubscribe(&["a/#"], &Properties::NONE, 2, NOW).unwrap();
        assert_ne!(one, two);
        assert_eq!(it.said(), ["SUBSCRIBE", "UNSUBSCRIBE"]);
        let mut bytes = Vec::new();
        let reasons = [ReasonCode::GrantedQos1, ReasonCode::UnspecifiedError];
        Suback::write(one, &reasons, version, &mut bytes).unwrap();
        Unsuback::write(two, &[ReasonCode::Success], version, &mut bytes).unwrap();
        it.hears_bytes(&bytes).unwrap();
        assert_eq!(it.heard(), ["subscribed 1 [GrantedQos1, UnspecifiedError]", "unsubscribed 2"]);
        // Nothing waits any more; and an answer with too few codes answers nothing.
        let mut bytes = Vec::new();
        Suback::write(one, &reasons, version, &mut bytes).unwrap();
        assert_eq!(it.hears_bytes(&bytes).unwrap_err().violation, Violation::AnswersNothing);
        let mut it = Dialogue::usual(version);
        let one = it.client.subscribe(&filters, &Properties::NONE, 1, NOW).unwrap();
        let mut bytes = Vec::new();
        Suback::write(one, &reasons[..1], version, &mut bytes).unwrap();
        assert_eq!(it.hears_bytes(&bytes).unwrap_err().violation, Violation::ReasonCount);
    }
}

/// Section 3.1.2.10: silence is broken by PINGREQ, and a server that does not answer is gone.
#[test]
fn keep_alive_is_kept_and_demanded() {
    let options = ClientOptions { keep_alive: 40, ..ClientOptions::new(Version::V311, "c") };
    let mut it = Dialogue::open(options, Session::new(), false, &PropertyBuffer::new());
    let seconds = Duration::from_secs;
    assert_eq!(it.client.deadline(), Some(NOW + seconds(30)));
    it.client.publish(&Publish::new("t", b""), 0, NOW + seconds(29)).unwrap();
    it.client.handle_timeout(NOW + seconds(31)).unwrap();
    assert_eq!(it.said(), ["PUBLISH 0 \"\""]);
    assert_eq!(it.client.deadline(), Some(NOW + seconds(59)));
    it.client.handle_timeout(NOW + seconds(59)).unwrap();
    assert_eq!(it.said(), ["PINGREQ"]);
    assert_eq!(it.client.deadline(), Some(NOW + seconds(99)));
    it.hears(&Packet::Pingresp).unwrap();
    assert_eq!(it.heard(), ["pong"]);
    it.client.handle_timeout(NOW + seconds(100)).unwrap();
    assert_eq!(it.said(), ["PINGREQ"]);
    assert_eq!(it.client.handle_timeout(NOW + seconds(140)), Err(PingUnanswered { seconds: 40 }));
    let options = ClientOptions { keep_alive: 0, ..ClientOptions::new(Version::V5, "c") };
    let it = Dialogue::open(options, Session::new(), false, &PropertyBuffer::new());
    assert_eq!(it.client.deadline(), None);
}

#[test]
fn a_refusal_and_an_end_are_heard_with_their_reasons() {
    let refuse = |version, reason| {
        let mut client = Client::new(ClientOptions::new(version, "c"), Session::new(), NOW);
        let mut bytes = Vec::new();
        let connack = Connack { session_present: false, reason, properties: Properties::NONE };
        connack.encode(version, &mut bytes).unwrap();
        let mut heard = Vec::new();
        client.input(&bytes, NOW, &mut |event| heard.push(words(&event))).unwrap();
        assert!(!client.is_connected());
        heard
    };
    assert_eq!(refuse(Version::V311, ReasonCode::NotAuthorized), ["refused NotAuthorized"]);
    assert_eq!(refuse(Version::V5, ReasonCode::Banned), ["refused Banned"]);
    let mut it = Dialogue::usual(Version::V5);
    it.hears(&Packet::Disconnect(Disconnect::of(ReasonCode::SessionTakenOver))).unwrap();
    assert_eq!(it.heard(), ["disconnected SessionTakenOver"]);
    assert_eq!(it.publish(Qos::AtMostOnce, "", 0), Err(PublishError::NotConnected));
    let mut it = Dialogue::usual(Version::V5);
    it.client.disconnect(&Disconnect::of(ReasonCode::DisconnectWithWill)).unwrap();
    assert_eq!(it.said(), ["DISCONNECT DisconnectWithWill"]);
}

#[test]
fn what_a_server_must_not_say_ends_the_connection() {
    let connack = |session_present| Connack {
        session_present,
        reason: ReasonCode::Success,
        properties: Properties::NONE,
    };
    for (packet, violation, reason) in [
        (Packet::Connack(connack(false)), Violation::SecondConnack, "ProtocolError"),
        (Packet::Pingreq, Violation::WrongSide, "ProtocolError"),
        (Packet::Puback(ok(1)), Violation::AcknowledgesNothing, "ProtocolError"),
        (Packet::Pubcomp(ok(1)), Violation::AcknowledgesNothing, "ProtocolError"),
    ] {
        let mut it = Dialogue::usual(Version::V5);
        let error = it.hears(&packet).unwrap_err();
        assert_eq!((error.violation, error.packet), (violation, Some(packet.kind())));
        assert_eq!(it.said(), [format!("DISCONNECT {reason}")]);
    }
    let mut it = Dialogue::usual(Version::V311);
    assert!(it.hears(&Packet::Pingreq).is_err());
    assert!(it.said().is_empty(), "MQTT 3.1.1 has no word for it");
    for (options, packet, violation) in [
        (lasting(Version::V5), Packet::Connack(connack(true)), Violation::SessionUnknown),
        (ClientOptions::new(Version::V5, "c"), Packet::Connack(connack(true)), Violation::SessionUnasked),
        (lasting(Version::V5), Packet::Publish(message(Qos::AtMostOnce, 0, "")), Violation::ConnackFirst),
        (lasting(Version::V5), Packet::Pingresp, Violation::ConnackFirst),
    ] {
        let mut client = Client::new(options, Session::new(), NOW);
        let mut bytes = Vec::new();
        packet.encode(Version::V5, &mut bytes).unwrap();
        assert_eq!(client.input(&bytes, NOW, &mut |_| ()).unwrap_err().violation, violation);
    }
}

/// MQTT 5 sections 3.5.2.1, 3.6.2.1 and 3.7.2.1: an identifier that one side does not know is no error of the other.
#[test]
fn an_identifier_that_is_not_known_is_said_to_be_so() {
    let mut it = Dialogue::usual(Version::V5);
    it.hears(&Packet::Pubrel(ok(9))).unwrap();
    it.hears(&Packet::Pubrec(ok(8))).unwrap();
    assert_eq!(it.said(), ["PUBCOMP 9 PacketIdentifierNotFound", "PUBREL 8 PacketIdentifierNotFound"]);
    let mut it = Dialogue::usual(Version::V311);
    it.hears(&Packet::Pubrel(ok(9))).unwrap();
    it.hears(&Packet::Pubrec(ok(8))).unwrap();
    assert_eq!(it.said(), ["PUBCOMP 9 Success", "PUBREL 8 Success"]);
}

#[test]
fn a_large_message_comes_in_pieces_and_is_acknowledged_at_its_end() {
    let options = ClientOptions { whole: 64, ..ClientOptions::new(Version::V5, "c") };
    let mut it = Dialogue::open(options, Session::new(), false, &PropertyBuffer::new());
    let payload = "x".repeat(1000);
    let mut bytes = Vec::new();
    message(Qos::ExactlyOnce, 3, &payload).encode(Version::V5, &mut bytes).unwrap();
    it.hears_bytes(&bytes[..500]).unwrap();
    assert!(it.said().is_empty());
    it.hears_bytes(&bytes[500..]).unwrap();
    assert_eq!(it.said(), ["PUBREC 3 Success"]);
    let heard = it.heard();
    assert_eq!((&*heard[0], &*heard[heard.len() - 1]), ("begin t 1000", "end"));
    let pieces: usize = heard
        .iter()
        .filter_map(|words| words.strip_prefix("piece "))
        .map(|n| n.parse::<usize>().unwrap())
        .sum();
    assert_eq!(pieces, 1000);
    it.hears_bytes(&bytes).unwrap();
    assert_eq!((it.heard(), it.said()), (vec!["repeated 3".to_owned()], vec!["PUBREC 3 Success".to_owned()]));
}

/// Ten thousand connections that do nothing must be cheap.
#[test]
fn an_idle_client_takes_little_memory() {
    let mut it = Dialogue::usual(Version::V5);
    for round in 0..50 {
        it.publish(Qos::AtLeastOnce, "x", round).unwrap();
        let number = it.client.session().in_flight();
        assert_eq!(number, 1);
        let said = it.said();
        let number = said[0].split(' ').nth(1).unwrap().parse().unwrap();
        it.hears(&Packet::Puback(ok(number))).unwrap();
    }
    let memory = size_of::<Client>() + it.client.memory();
    assert!(memory < 2048, "{memory}");
    assert_eq!(it.heard().len(), 50);
    assert_eq!(PacketKind::Connect.to_string(), "CONNECT");
}
