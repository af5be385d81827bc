//! Encoding and decoding of messages, and a client's whole dialogue, beside the floor, touching the bytes once, and beside
//! the libraries that there are: rumqttc's codec, and the clients of mqtt-protocol-core.
//!
//! The message is that of the measurement that weir replaces: 955 bytes of payload, QoS 1, a topic with a number,
//! and in MQTT 5 a user property with sequence number and time. All take turns in this process, in rounds, in pieces of
//! 64 KiB as a shard reads them. Printed are the rounds' medians in CPU time of this thread.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use weir_mqtt::client::Session;
use weir_mqtt::packet::{Acknowledgement, Connack};
use weir_mqtt::property::Properties;
use weir_mqtt::{
    Client, ClientEvent, ClientOptions, Event, Limits, Packet, PacketId, PacketKind, Property,
    PropertyBuffer, Publish, Qos, Reader, ReasonCode, Version,
};

const MESSAGES: usize = 200_000;
const PAYLOAD: usize = 955;
const PIECE: usize = 64 << 10;
const ROUNDS: usize = 9;
/// How many messages a client sends before it looks for acknowledgements.
const BURST: usize = 64;

/// One way to spend time on the messages.
type Work<'w> = (&'static str, Box<dyn FnMut() -> u64 + 'w>);

fn main() {
    // `cargo test` runs benches as well, and wants to know only whether this one runs.
    let quick = std::env::args().all(|argument| argument != "--bench");
    let (messages, rounds) = if quick { (MESSAGES / 100, 1) } else { (MESSAGES, ROUNDS) };
    let payload = [0x5A; PAYLOAD];
    let streams = [Version::V311, Version::V5].map(|version| stream(version, messages, &payload));
    let acknowledgements = acknowledgements(messages);
    let mut out = vec![0; 2 * PIECE];
    let mut work: Vec<Work<'_>> = vec![
        ("floor: copy of the bytes", Box::new(|| copy(&streams[1], &mut out))),
        ("floor: sum of the bytes", Box::new(|| streams[1].iter().map(|byte| u64::from(*byte)).sum())),
        ("decode 3.1.1", Box::new(|| decode(&streams[0], Version::V311))),
        ("decode 5", Box::new(|| decode(&streams[1], Version::V5))),
        ("encode 3.1.1", Box::new(|| encode(Version::V311, messages, &payload))),
        ("encode 5", Box::new(|| encode(Version::V5, messages, &payload))),
        ("decode PUBACK", Box::new(|| decode(&acknowledgements, Version::V5))),
        ("client: subscriber, QoS 1", Box::new(|| subscribe(&streams[1]))),
        ("client: publisher, QoS 1", Box::new(|| publish(messages, &payload))),
        ("rumqttc: decode 5", Box::new(|| rumqttc_decode(&streams[1]))),
        ("rumqttc: encode 5", Box::new(|| rumqttc_encode(messages, &payload))),
        ("mqtt-protocol-core: subscriber", Box::new(|| core_subscribe(&streams[1]))),
        ("mqtt-protocol-core: publisher", Box::new(|| core_publish(messages, &payload))),
    ];
    let mut seconds = vec![Vec::new(); work.len()];
    for _ in 0..rounds {
        for ((_, work), seconds) in work.iter_mut().zip(&mut seconds) {
            let started = thread_cpu();
            black_box(work());
            seconds.push(thread_cpu() - started);
        }
    }
    println!("{:<32} {:>12}", "", "ns/message");
    for ((name, _), mut seconds) in work.into_iter().zip(seconds) {
        seconds.sort_by(f64::total_cmp);
        println!("{name:<32} {:>12.1}", seconds[seconds.len() / 2] * 1e9 / messages as f64);
    }
}

fn thread_cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn stream(version: Version, messages: usize, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut maker = MessageWriter::new(version);
    for number in 0..messages {
        let id = PacketId::new(1 + (number % 20) as u16);
        maker.with(number, payload, |message| {
            Publish { packet_id: id, ..*message }.encode(version, &mut out).expect("it fits");
        });
    }
    out
}

fn acknowledgements(messages: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for number in 0..messages {
        let id = PacketId::new(1 + number as u16 % 100).expect("not 0");
        let acknowledgement = Acknowledgement::success(id);
        acknowledgement.encode(PacketKind::Puback, Version::V5, &mut out).expect("it fits");
    }
    out
}

/// Makes one message after the other, as a publisher does.
struct MessageWriter {
    version: Version,
    topic: String,
    properties: PropertyBuffer,
    stamp: String,
}

impl MessageWriter {
    fn new(version: Version) -> Self {
        Self { version, topic: String::new(), properties: PropertyBuffer::new(), stamp: String::new() }
    }

    fn with(&mut self, number: usize, payload: &[u8], on: impl FnOnce(&Publish<'_>)) {
        use std::fmt::Write;
        self.topic.clear();
        let _ = write!(self.topic, "/XGH/PYAVRO/{number}");
        self.properties.clear();
        if self.version == Version::V5 {
            self.stamp.clear();
            let _ = write!(self.stamp, "{number:016x}{:016x}", number * 1000);
            self.properties.push(Property::UserProperty(("weir", &self.stamp))).expect("it fits");
        }
        let properties = self.properties.properties();
        let qos = Qos::AtLeastOnce;
        on(&Publish { qos, properties, ..Publish::new(&self.topic, payload) });
    }
}

fn copy(stream: &[u8], out: &mut [u8]) -> u64 {
    let mut copied = 0;
    for piece in stream.chunks(PIECE) {
        out[..piece.len()].copy_from_slice(piece);
        copied += u64::from(black_box(&*out)[0]);
    }
    copied
}

fn decode(stream: &[u8], version: Version) -> u64 {
    let mut reader = Reader::new(version, Limits::default());
    let mut packets = 0;
    for mut piece in stream.chunks(PIECE) {
        while let Some(event) = reader.next(&mut piece).expect("a packet") {
            if let Event::Packet(packet) = event {
                black_box(&packet);
                packets += 1;
            }
        }
    }
    packets
}

fn encode(version: Version, messages: usize, payload: &[u8]) -> u64 {
    let mut out = Vec::with_capacity(2 * PIECE);
    let mut maker = MessageWriter::new(version);
    let mut bytes = 0;
    for number in 0..messages {
        maker.with(number, payload, |message| {
            let message = Publish { packet_id: PacketId::new(1 + number as u16 % 100), ..*message };
            message.encode(version, &mut out).expect("it fits");
        });
        if out.len() > PIECE {
            bytes += black_box(&out).len() as u64;
            out.clear();
        }
    }
    bytes
}

fn connected(window: u16) -> Client {
    let options = ClientOptions { window, ..ClientOptions::new(Version::V5, "bench") };
    let mut client = Client::new(options, Session::new(), Duration::ZERO);
    let mut connack = Vec::new();
    let accepted =
        Connack { session_present: false, reason: ReasonCode::Success, properties: Properties::NONE };
    accepted.encode(Version::V5, &mut connack).expect("it fits");
    client.input(&connack, Duration::ZERO, &mut |_| ()).expect("accepted");
    client.output().clear();
    client
}

fn subscribe(stream: &[u8]) -> u64 {
    let mut client = connected(100);
    let mut sum = 0;
    for piece in stream.chunks(PIECE) {
        client
            .input(piece, Duration::ZERO, &mut |event| {
                if let ClientEvent::Message(message) = event {
                    let stamp = message.publish.properties.user_property("weir").unwrap_or_default();
                    sum += u64::from_str_radix(&stamp[..16], 16).unwrap_or(0);
                }
            })
            .expect("messages");
        black_box(client.output()).clear();
    }
    sum
}

fn publish(messages: usize, payload: &[u8]) -> u64 {
    let mut client = connected(BURST as u16);
    let mut maker = MessageWriter::new(Version::V5);
    let mut acknowledgements = Vec::new();
    let mut acknowledged = 0;
    for number in 0..messages {
        maker.with(number, payload, |message| {
            let id = client.publish(message, number as u64, Duration::ZERO).expect("room").expect("QoS 1");
            let acknowledgement = Acknowledgement::success(id);
            acknowledgement.encode(PacketKind::Puback, Version::V5, &mut acknowledgements).expect("it fits");
        });
        if client.room() == 0 {
            let answered = client.input(&acknowledgements, Duration::ZERO, &mut |event| {
                acknowledged += u64::from(matches!(event, ClientEvent::Acknowledged { .. }));
            });
            answered.expect("acknowledgements");
            acknowledgements.clear();
            black_box(client.output()).clear();
        }
    }
    black_box(Packet::Pingreq);
    acknowledged
}

fn rumqttc_decode(stream: &[u8]) -> u64 {
    use rumqttc::v5::mqttbytes::{Error, v5};
    let mut buffer = bytes::BytesMut::with_capacity(2 * PIECE);
    let mut packets = 0;
    for piece in stream.chunks(PIECE) {
        buffer.extend_from_slice(piece);
        loop {
            match v5::Packet::read(&mut buffer, None) {
                Ok(packet) => {
                    black_box(&packet);
                    packets += 1;
                }
                Err(Error::InsufficientBytes(_)) => break,
                Err(error) => panic!("{error}"),
            }
        }
    }
    packets
}

fn rumqttc_encode(messages: usize, payload: &[u8]) -> u64 {
    use rumqttc::v5::mqttbytes::{QoS, v5};
    let payload = bytes::Bytes::copy_from_slice(payload);
    let mut out = bytes::BytesMut::with_capacity(2 * PIECE);
    let mut sum = 0;
    for number in 0..messages {
        let properties = v5::PublishProperties {
            user_properties: vec![("weir".to_owned(), format!("{number:016x}{:016x}", number * 1000))],
            ..v5::PublishProperties::default()
        };
        let topic = format!("/XGH/PYAVRO/{number}");
        let mut message = v5::Publish::new(topic, QoS::AtLeastOnce, payload.clone(), Some(properties));
        message.pkid = 1 + number as u16 % 100;
        message.write(&mut out).expect("it fits");
        if out.len() > PIECE {
            sum += black_box(&out).len() as u64;
            out.clear();
        }
    }
    sum
}

type Core = mqtt_protocol_core::mqtt::Connection<mqtt_protocol_core::mqtt::role::Client>;

/// A client of mqtt-protocol-core whose broker has accepted it.
fn core_connected() -> Core {
    use mqtt_protocol_core::mqtt;
    let mut client = Core::new(mqtt::Version::V5_0);
    client.set_auto_pub_response(true);
    let connect = mqtt::packet::v5_0::Connect::builder().client_id("bench").expect("a name").build();
    black_box(client.checked_send(connect.expect("a packet")));
    let mut connack = Vec::new();
    let accepted =
        Connack { session_present: false, reason: ReasonCode::Success, properties: Properties::NONE };
    accepted.encode(Version::V5, &mut connack).expect("it fits");
    client.recv(&mut mqtt::common::Cursor::new(&connack[..]));
    client
}

fn core_subscribe(stream: &[u8]) -> u64 {
    use mqtt_protocol_core::mqtt;
    use mqtt_protocol_core::mqtt::connection::Event;
    use mqtt_protocol_core::mqtt::packet::{Packet, Property};
    use mqtt_protocol_core::mqtt::prelude::*;
    let mut client = core_connected();
    let mut out = Vec::new();
    let mut sum = 0;
    for piece in stream.chunks(PIECE) {
        let mut cursor = mqtt::common::Cursor::new(piece);
        while (cursor.position() as usize) < piece.len() {
            for event in client.recv(&mut cursor) {
                match event {
                    Event::NotifyPacketReceived(Packet::V5_0Publish(message)) => {
                        let stamp = message.props().iter().find_map(|property| match property {
                            Property::UserProperty(pair) if pair.key() == "weir" => Some(pair.val()),
                            _ => None,
                        });
                        sum += u64::from_str_radix(&stamp.unwrap_or_default()[..16], 16).unwrap_or(0);
                    }
                    Event::RequestSendPacket { packet, .. } => {
                        out.extend_from_slice(&packet.to_continuous_buffer());
                    }
                    Event::NotifyError(error) => panic!("{error:?}"),
                    _ => {}
                }
            }
        }
        black_box(&out);
        out.clear();
    }
    sum
}

fn core_publish(messages: usize, payload: &[u8]) -> u64 {
    use mqtt_protocol_core::mqtt;
    use mqtt_protocol_core::mqtt::connection::Event;
    use mqtt_protocol_core::mqtt::packet::{Packet, Property, Qos, UserProperty};
    use mqtt_protocol_core::mqtt::prelude::*;
    let mut client = core_connected();
    let (mut out, mut acknowledgements) = (Vec::new(), Vec::new());
    let mut acknowledged = 0;
    for number in 0..messages {
        let id = client.acquire_packet_id().expect("one is free");
        let stamp = format!("{number:016x}{:016x}", number * 1000);
        let properties = vec![Property::UserProperty(UserProperty::new("weir", stamp).expect("it fits"))];
        let message = mqtt::packet::v5_0::Publish::builder()
            .topic_name(format!("/XGH/PYAVRO/{number}"))
            .expect("a topic")
            .qos(Qos::AtLeastOnce)
            .packet_id(id)
            .props(properties)
            .payload(payload)
            .build()
            .expect("a packet");
        for event in client.checked_send(message) {
            if let Event::RequestSendPacket { packet, .. } = event {
                out.extend_from_slice(&packet.to_continuous_buffer());
            }
        }
        let acknowledgement = Acknowledgement::success(PacketId::new(id).expect("not 0"));
        acknowledgement.encode(PacketKind::Puback, Version::V5, &mut acknowledgements).expect("it fits");
        if (number + 1) % BURST == 0 {
            let mut cursor = mqtt::common::Cursor::new(&acknowledgements[..]);
            while (cursor.position() as usize) < acknowledgements.len() {
                let events = client.recv(&mut cursor);
                let is_answer =
                    |event: &&Event| matches!(event, Event::NotifyPacketReceived(Packet::V5_0Puback(_)));
                acknowledged += events.iter().filter(is_answer).count() as u64;
            }
            acknowledgements.clear();
            black_box(&out);
            out.clear();
        }
    }
    acknowledged
}
