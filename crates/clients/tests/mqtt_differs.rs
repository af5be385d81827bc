//! What MQTT clients say that differs from client to client, from message to message and by what carries it; on the rig.

use std::io::Write;
use weir_clients::{
    Credentials, Ending, Filling, MqttOptions, MqttVersion, PlannedStart, PlayOptions, PublishOptions, Qos,
    ShardRecorder, Turn, Workload, mqtt,
};
use weir_metrics::Failure;
use weir_metrics::common::{MEDIA, PLAYING, UNITS};
use weir_mqtt::{Event as Read, Limits, Packet, Reader, Version};
use weir_shard::{Event, Rig, Session};
use weir_web::websocket::{self, Incoming, Role, WebSocket};

/// CONNACK with a Topic Alias Maximum of 10.
const CONNACK: [u8; 8] = [0x20, 6, 0, 0, 3, 0x22, 0, 10];

fn client(workload: &Workload, client: u32) -> (Rig<ShardRecorder>, Box<dyn Session<ShardRecorder>>) {
    let mut rig = Rig::new(ShardRecorder::new([workload.schema]).keeping_endings());
    let planned = PlannedStart { client, workload: 0, cell: 0, at: rig.now, turn: Turn::default() };
    let mut client = workload.start(planned, rig.now, &mut rig.world);
    rig.dispatch(&mut *client, Event::Opening);
    rig.dispatch(&mut *client, Event::Connected);
    (rig, client)
}

/// What was said, in short.
fn said(bytes: &[u8]) -> Vec<String> {
    let mut reader = Reader::new(Version::V5, Limits::default());
    let (mut input, mut said) = (bytes, Vec::new());
    while let Some(event) = reader.next(&mut input).unwrap() {
        said.push(match event {
            Read::Packet(Packet::Connect(connect)) => {
                let password = connect.password.map(String::from_utf8_lossy).unwrap_or_default();
                format!("{} {}:{password}", connect.client_id, connect.user_name.unwrap_or_default())
            }
            Read::Packet(Packet::Subscribe(it)) => {
                it.subscriptions.iter().map(|it| it.filter).collect::<Vec<_>>().join(" ")
            }
            Read::Packet(Packet::Publish(it)) => {
                let alias = it.properties.topic_alias().map_or(0, u16::from);
                let user: Vec<_> = it.properties.user_properties().filter(|it| it.0 != "weir").collect();
                let kind = it.properties.content_type().unwrap_or_default();
                let expiry = it.properties.message_expiry_interval().unwrap_or_default();
                let payload = String::from_utf8_lossy(it.payload);
                format!("{} {alias} {user:?} {kind} {expiry} {payload}", it.topic)
            }
            other => format!("{other:?}"),
        });
    }
    said
}

#[test]
fn clients_have_names_users_and_topics_of_their_own() {
    let options = MqttOptions {
        client_id: Some("dev-{client}".into()),
        credentials: vec![Credentials::parse("kim:1"), Credentials::parse("lee:2")],
        filters: vec!["{user}/#".into(), "c".into()],
        ..MqttOptions::default()
    };
    let url = ["mqtt://127.0.0.1:1/of/{id}".to_owned()];
    let workload = mqtt::play(&url, &PlayOptions::default(), &options).unwrap();
    for (number, connect, filters) in [
        (0, "dev-1 kim:1", "of/dev-1 kim/# c"),
        (1, "dev-2 lee:2", "of/dev-2 lee/# c"),
        (2, "dev-3 kim:1", "of/dev-3 kim/# c"),
    ] {
        let (mut rig, mut client) = client(&workload, number);
        assert_eq!(said(&rig.take_sent()), [connect]);
        rig.dispatch(&mut *client, Event::Bytes(&CONNACK));
        assert_eq!(said(&rig.take_sent()), [filters]);
        // All three are granted.
        rig.dispatch(&mut *client, Event::Bytes(&[0x90, 6, 0, 1, 0, 0, 0, 0]));
        assert!(!rig.closed);
    }
    let user = MqttOptions { credentials: vec![Credentials::parse("a+b:1")], ..options };
    assert!(mqtt::play(&url, &PlayOptions::default(), &user).is_err(), "a name that no filter can have");
}

#[test]
fn messages_say_what_was_asked_for_and_a_topic_once() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"{client}:{seq}").unwrap();
    let mut options = MqttOptions {
        rate: 10.0,
        filling: Filling::Template(file.path().into()),
        reconnect: true,
        ..MqttOptions::default()
    };
    options.properties.user = vec![("site".into(), "north".into())];
    options.properties.content_type = Some("text/plain".into());
    options.properties.expiry = Some(std::time::Duration::from_secs(30));
    options.properties.topic_alias = true;
    let publish = |options: &MqttOptions, url: &str| {
        mqtt::publish(&[url.to_owned()], &PublishOptions::default(), options)
    };
    let workload = publish(&options, "mqtt://127.0.0.1:1/t/{client}").unwrap();
    let (mut rig, mut client) = client(&workload, 0);
    let rest = r#"1 [("site", "north")] text/plain 30"#;
    for link in 0..2 {
        rig.take_sent();
        rig.dispatch(&mut *client, Event::Bytes(&CONNACK));
        while rig.sent.is_empty() {
            rig.advance(&mut *client, std::time::Duration::from_millis(10));
        }
        let number = link * 2;
        let mut heard = said(&rig.take_sent());
        assert_eq!(heard.remove(0), format!("t/1 {rest} 1:{number}"), "told on each connection");
        while heard.is_empty() {
            rig.advance(&mut *client, std::time::Duration::from_millis(10));
            heard.extend(said(&rig.take_sent()));
        }
        assert_eq!(heard.remove(0), format!(" {rest} 1:{}", number + 1));
        rig.dispatch(&mut *client, Event::Closed { failure: Failure::Reset, words: "" });
        rig.advance(&mut *client, std::time::Duration::from_millis(99));
        rig.dispatch(&mut *client, Event::Connected);
    }
    assert!(publish(&options, "mqtt://127.0.0.1:1/t/{seq}").unwrap_err().to_string().contains("{seq}"));
    options.version = MqttVersion::V311;
    assert!(publish(&options, "mqtt://127.0.0.1:1/t").unwrap_err().to_string().contains("version 5"));
}

/// The answer to a request for a WebSocket.
fn upgraded(request: &[u8], fields: &str) -> Vec<u8> {
    let request = std::str::from_utf8(request).unwrap();
    assert!(request.starts_with("GET /broker HTTP/1.1\r\nHost: 127.0.0.1:1\r\n"), "{request}");
    assert!(request.contains("\r\nSec-WebSocket-Protocol: mqtt\r\n"), "{request}");
    let key = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
    let accept = websocket::accept(key);
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n{fields}\r\n"
    )
    .into_bytes()
}

fn socket_client(reconnect: bool) -> (Rig<ShardRecorder>, Box<dyn Session<ShardRecorder>>) {
    let options = MqttOptions {
        qos: Qos::AtLeastOnce,
        client_id: Some("c".into()),
        socket_path: "/broker".into(),
        reconnect,
        ..MqttOptions::default()
    };
    let url = ["mqtt+ws://127.0.0.1:1/t".to_owned()];
    client(&mqtt::play(&url, &PlayOptions::default(), &options).unwrap(), 0)
}

/// Packets in the frames that a client sent.
fn packets(server: &mut WebSocket, bytes: &[u8]) -> Vec<u8> {
    server.input(bytes);
    let mut packets = Vec::new();
    while let Some(message) = server.poll(&mut Vec::new()).unwrap() {
        let Incoming::Binary(bytes) = message else { return packets };
        packets.extend(bytes);
    }
    packets
}

#[test]
fn packets_in_a_websocket_are_cut_anywhere_and_it_is_opened_again_after_a_break() {
    let (mut rig, mut client) = socket_client(true);
    for _ in 0..2 {
        let answer = upgraded(&rig.take_sent(), "Sec-WebSocket-Protocol: mqtt\r\n");
        // In two pieces, with the first frame behind them: half of a CONNACK.
        let (begin, end) = answer.split_at(30);
        rig.dispatch(&mut *client, Event::Bytes(begin));
        assert!(rig.take_sent().is_empty());
        let mut server = WebSocket::new(Role::Server, 1 << 20);
        rig.dispatch(&mut *client, Event::Bytes(end));
        assert_eq!(said(&packets(&mut server, &rig.take_sent())), ["c-1 :"]);
        let mut frames = Vec::new();
        server.binary(&CONNACK[..3], &mut frames);
        server.binary(&CONNACK[3..], &mut frames);
        for byte in frames {
            rig.dispatch(&mut *client, Event::Bytes(&[byte]));
        }
        assert_eq!(said(&packets(&mut server, &rig.take_sent())), ["t"]);
        let mut granted = Vec::new();
        server.binary(&[0x90, 4, 0, 1, 0, 1], &mut granted);
        rig.dispatch(&mut *client, Event::Bytes(&granted));
        rig.dispatch(&mut *client, Event::Closed { failure: Failure::Reset, words: "" });
        rig.advance(&mut *client, std::time::Duration::from_millis(99));
        rig.dispatch(&mut *client, Event::Connected);
    }
}

/// Frames of a message that has no end carry one packet after the other, and a packet that is larger than the link's reads.
#[test]
fn packets_of_a_message_that_goes_on_are_received_as_they_come() {
    let (mut rig, mut client) = socket_client(false);
    let answer = upgraded(&rig.take_sent(), "Sec-WebSocket-Protocol: mqtt\r\n");
    // A frame of 2^40 bytes.
    let head = [&answer[..], &[0x02, 127, 0, 0, 1, 0, 0, 0, 0, 0]].concat();
    let granted = [0x90, 4, 0, 1, 0, 1];
    for bytes in [&head[..], &CONNACK, &granted] {
        rig.dispatch(&mut *client, Event::Bytes(bytes));
    }
    let figures = |rig: &mut Rig<ShardRecorder>| {
        let planned = PlannedStart { client: 0, workload: 0, cell: 0, at: rig.now, turn: Turn::default() };
        let figures = rig.world.of(planned);
        (figures.gauge(PLAYING), figures.counter(UNITS), figures.counter(MEDIA))
    };
    assert_eq!(figures(&mut rig), (1, 0, 0));
    // 200 MB in a packet, and a small one behind it.
    rig.dispatch(&mut *client, Event::Bytes(&[0x30, 0x84, 0x84, 0xAF, 0x5F, 0, 1, b't', 0]));
    for _ in 0..1_000 {
        rig.dispatch(&mut *client, Event::Bytes(&[7; 200_000]));
    }
    assert_eq!(figures(&mut rig), (1, 1, 200_000_000));
    rig.dispatch(&mut *client, Event::Bytes(&[0x30, 6, 0, 1, b't', 0, 1, 2]));
    assert_eq!(figures(&mut rig), (1, 2, 200_000_002));
    assert!(!rig.closed);
}

#[test]
fn what_is_no_websocket_of_mqtt_is_named() {
    for fields in ["", "Sec-WebSocket-Protocol: chat\r\n"] {
        let (mut rig, mut client) = socket_client(false);
        let answer = upgraded(&rig.take_sent(), fields);
        rig.dispatch(&mut *client, Event::Bytes(&answer));
        let words = "the server did not take the WebSocket subprotocol mqtt";
        assert!(rig.closed && rig.world.take_failures()[0].words == words);
    }
    let (mut rig, mut client) = socket_client(false);
    rig.dispatch(&mut *client, Event::Bytes(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"));
    assert_eq!(rig.world.take_ended()[0].1, Ending::Failed(Failure::Rejected));
    assert_eq!(rig.world.take_failures()[0].words, "no WebSocket: 404 Not Found; see `ws_path`");
    let (mut rig, mut client) = socket_client(false);
    let answer = upgraded(&rig.take_sent(), "Sec-WebSocket-Protocol: mqtt\r\n");
    rig.dispatch(&mut *client, Event::Bytes(&[&answer[..], &[0x81, 1, b'x']].concat()));
    assert!(rig.world.take_failures()[0].words.contains("a WebSocket message that is a text"));
}

#[test]
fn a_will_has_its_quality_of_service_flag_and_delay_and_a_subscription_its_options() {
    let will = mqtt::Will {
        topic: "gone".into(),
        payload: b"bye".to_vec(),
        qos: Qos::ExactlyOnce,
        retain: true,
        delay: std::time::Duration::from_secs(7),
    };
    let subscription = mqtt::SubscriptionSettings {
        no_local: true,
        retain_as_published: true,
        retain_handling: mqtt::RetainHandling::Never,
    };
    let options =
        MqttOptions { will: Some(will), subscription, qos: Qos::AtLeastOnce, ..MqttOptions::default() };
    let play =
        |url: &str, options: &MqttOptions| mqtt::play(&[url.to_owned()], &PlayOptions::default(), options);
    let (mut rig, mut client) = client(&play("mqtt://127.0.0.1:1/a", &options).unwrap(), 0);
    let mut bytes = rig.take_sent();
    rig.dispatch(&mut *client, Event::Bytes(&CONNACK));
    bytes.extend(rig.take_sent());
    let mut reader = Reader::new(Version::V5, Limits::default());
    let mut input = &bytes[..];
    let Ok(Some(Read::Packet(Packet::Connect(connect)))) = reader.next(&mut input) else { panic!() };
    let will = connect.will.unwrap();
    assert_eq!(
        (will.topic, will.payload, will.qos, will.retain),
        ("gone", &b"bye"[..], Qos::ExactlyOnce, true)
    );
    assert_eq!(will.properties.will_delay_interval(), Some(7));
    let Ok(Some(Read::Packet(Packet::Subscribe(subscribe)))) = reader.next(&mut input) else { panic!() };
    let asked = subscribe.subscriptions.iter().next().unwrap().options;
    assert_eq!((asked.qos, asked.no_local, asked.retain_as_published), (Qos::AtLeastOnce, true, true));
    assert_eq!(asked.retain_handling, mqtt::RetainHandling::Never);
    for (url, options, words) in [
        ("mqtt://127.0.0.1:1/$share/g/a", options.clone(), "no_local is not of shared subscriptions"),
        (
            "mqtt://127.0.0.1:1/a",
            MqttOptions { version: MqttVersion::V311, will: None, ..options },
            "speak version 5",
        ),
    ] {
        let refused = play(url, &options).unwrap_err().to_string();
        assert!(refused.contains(words), "{refused}");
    }
}

#[test]
fn fields_are_in_the_request_for_a_websocket_and_of_nothing_else() {
    let given = weir_web::GivenFields::parse(&["X-Token: s3cr3t"]).unwrap();
    let options = MqttOptions { given, ..MqttOptions::default() };
    let play = |url: &str| mqtt::play(&[url.to_owned()], &PlayOptions::default(), &options);
    let (mut rig, _client) = client(&play("mqtt+ws://127.0.0.1:1/a").unwrap(), 0);
    let request = String::from_utf8(rig.take_sent()).unwrap();
    assert!(request.contains("\r\nX-Token: s3cr3t\r\n"), "{request}");
    let refused = play("mqtt://127.0.0.1:1/a").unwrap_err().to_string();
    assert!(refused.contains("write mqtt+ws://") && !refused.contains("s3cr3t"), "{refused}");
}
