//! weir publishes to a real mosquitto and subscribes to it; mosquitto's own clients and counters judge.

mod bench;

use bench::Bench;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use std::time::Duration;
use weir_clients::{
    ClientFailure, Credentials, Ending, Filling, MqttOptions, MqttVersion, PlannedStart, PlayOptions,
    PublishOptions, Published, Qos, ShardRecorder, Turn, Workload, mqtt,
};
use weir_metrics::common::{
    DUPLICATE, LATENCY, LOST, MEDIA, PLAYED, PLAYING, REORDERED, SEND_LAG, STAMPED, UNITS, WALL_LATENCIES,
};
use weir_metrics::{Failure, Moment, Recorder};
use weir_shard::tls::{ClientTls, Identity, Trust};
use weir_testing::{Mosquitto, lines, soon};

const QOS: [Qos; 3] = [Qos::AtMostOnce, Qos::AtLeastOnce, Qos::ExactlyOnce];
const VERSIONS: [MqttVersion; 2] = [MqttVersion::V311, MqttVersion::V5];
const TEST_TIMEOUT: Duration = Duration::from_secs(60);

/// A publisher of N messages, a thousand a second. In MQTT 3.1.1 mosquitto 2.0.11 cannot say how many messages it
/// takes at once: of QoS 2 it acknowledges more than 20 and hands on only some, whoever publishes them.
fn burst(count: u64, qos: Qos, version: MqttVersion) -> MqttOptions {
    MqttOptions { rate: 1_000.0, count: Some(count), qos, version, window: 20, ..MqttOptions::default() }
}

fn publisher(url: &str, options: &MqttOptions) -> Workload {
    mqtt::publish(&[url.to_owned()], &PublishOptions::default(), options).unwrap()
}

fn subscriber(url: &str, options: &MqttOptions) -> Workload {
    mqtt::play(&[url.to_owned()], &PlayOptions::default(), options).unwrap()
}

/// A figure of MQTT's own, by its name.
fn own(recorder: &Recorder, name: &str) -> u64 {
    recorder.number(recorder.schema().position(name).unwrap_or_else(|| panic!("no figure {name}")))
}

fn of(shard: &mut ShardRecorder, workload: u16) -> &Recorder {
    shard.of(PlannedStart {
        client: 0,
        workload,
        cell: workload,
        at: Moment::default(),
        turn: Turn::default(),
    })
}

fn until_playing(bench: &mut Bench<'_>, workload: u16, clients: u64) {
    bench.run_until(TEST_TIMEOUT, "all play", |shard| of(shard, workload).gauge(PLAYING) == clients);
}

fn until_received(bench: &mut Bench<'_>, workload: u16, units: u64) {
    let began = std::time::Instant::now();
    while of(&mut bench.shard.world, workload).counter(UNITS) < units {
        if began.elapsed() >= TEST_TIMEOUT {
            let remarks = bench.shard.world.take_failures();
            let figures = bench.shard.world.take_figures();
            let counts = figures.iter().map(|figures| {
                let own = ["acknowledged", "in_flight", "missing"]
                    .map(|name| own(figures, &format!("mqtt.{name}")));
                (figures.counter(UNITS), own)
            });
            panic!("not {units}: {:?} {remarks:?}", counts.collect::<Vec<_>>());
        }
        bench.run(Duration::from_millis(20));
    }
}

/// Publishers leave by themselves when they have done their work.
fn until_done(bench: &mut Bench<'_>, workload: u16) {
    bench.run_until(TEST_TIMEOUT, "all published", |shard| {
        let figures = of(shard, workload);
        figures.counter(PLAYED) > 0 && figures.gauge(PLAYING) == 0
    });
}

#[test]
fn every_message_of_every_quality_arrives_once_and_is_counted_once() {
    const COUNT: u64 = 300;
    let broker = Mosquitto::with("sys_interval 1\nlog_dest file {directory}/log\nlog_type subscribe");
    for version in VERSIONS {
        for qos in QOS {
            let topic = format!("x/{version:?}/{qos:?}");
            let count = COUNT.to_string();
            let pattern = format!("{topic}/#");
            let judge =
                broker.subscriber(&["-t", &pattern, "-q", "2", "-C", &count, "-W", "60", "-F", "%t %l"]);
            let watch = subscriber(&broker.url(&pattern), &burst(0, qos, version));
            let sender = publisher(&broker.url(&format!("{topic}/{{seq}}")), &burst(COUNT, qos, version));
            let mut bench = Bench::new(vec![&watch, &sender]);
            bench.start(0, 0..2);
            until_playing(&mut bench, 0, 2);
            bench.start(1, 0..1);
            until_received(&mut bench, 0, 2 * COUNT);
            bench.run(Duration::from_millis(100));
            let (figures, ended, mut shard) = bench.stop();

            let heard = judge.lines();
            let mut topics: Vec<_> =
                heard.iter().map(|line| line.split(' ').next().unwrap().to_owned()).collect();
            topics.sort();
            topics.dedup();
            assert_eq!((heard.len() as u64, topics.len() as u64), (COUNT, COUNT), "{version:?} {qos:?}");
            let (received, sent) = (&figures[0], &figures[1]);
            let size = 256 + if version == MqttVersion::V311 { 56 } else { 0 };
            assert!(heard[0].ends_with(&format!(" {size}")), "{}", heard[0]);
            assert_eq!((sent.counter(UNITS), sent.counter(MEDIA)), (COUNT, COUNT * size));
            assert_eq!((received.counter(UNITS), received.counter(MEDIA)), (2 * COUNT, 2 * COUNT * size));
            assert_eq!((received.counter(STAMPED), received.signed(LATENCY).len()), (2 * COUNT, 2 * COUNT));
            assert_eq!(received.counter(LOST) + received.counter(DUPLICATE) + received.counter(REORDERED), 0);
            assert_eq!(received.counter(WALL_LATENCIES), 0);
            let acknowledged = if qos == Qos::AtMostOnce { 0 } else { COUNT };
            assert_eq!(own(sent, "mqtt.acknowledged"), acknowledged);
            assert_eq!(undelivered(sent), [0; 3]);
            assert_eq!((sent.spread(SEND_LAG).len(), own(sent, "mqtt.in_flight")), (COUNT, 0));
            assert!(ended.iter().all(|(_, ending)| *ending == Ending::OnTime), "{:?}", shard.take_failures());
        }
    }
    // The broker counts what weir has counted, once a second: COUNT from weir, to two of weir's and one of its own. mosquitto 2.0.11
    // leaves QoS 2 out of this counter.
    soon("the broker has counted", || said_by(&broker, "received") == 4 * COUNT);
}

/// What mosquitto says of messages under this topic of `$SYS`.
fn said_by(broker: &Mosquitto, name: &str) -> u64 {
    let topic = format!("$SYS/broker/publish/messages/{name}");
    let counter = broker.client("mosquitto_sub", &["-t", &topic, "-C", "1", "-W", "60"]);
    lines(&counter.wait_with_output().unwrap())[0].parse().unwrap()
}

/// Messages that fit into a piece of a WebSocket's message, and ones that do not; from weir's publisher and from mosquitto's own. mosquitto
/// 2.0.11 sends no more in a WebSocket once it could not write a packet in one piece, whoever reads there, so that little is on its way at a time.
#[test]
fn what_goes_through_websockets_is_what_goes_over_links() {
    const COUNT: u64 = 60;
    let broker =
        Mosquitto::with("max_inflight_messages 2\nlistener {sockets} 127.0.0.1\nprotocol websockets");
    for version in VERSIONS {
        for (qos, size) in [(Qos::AtMostOnce, 0), (Qos::AtLeastOnce, 300), (Qos::ExactlyOnce, 20_000)] {
            let topic = format!("ws/{version:?}/{qos:?}");
            let filter = format!("{topic}/#");
            let options =
                MqttOptions { filling: Filling::Size(size), window: 2, ..burst(COUNT, qos, version) };
            let (links, sockets) = (broker.url(&filter), broker.socket_url(&filter));
            let (on_link, in_socket) = (subscriber(&links, &options), subscriber(&sockets, &options));
            let sender = publisher(&broker.socket_url(&format!("{topic}/{{seq}}")), &options);
            let mut bench = Bench::new(vec![&on_link, &in_socket, &sender]);
            for workload in 0..2 {
                bench.start(workload, 0..1);
                until_playing(&mut bench, workload, 1);
            }
            bench.start(2, 0..1);
            until_done(&mut bench, 2);
            for workload in 0..2 {
                until_received(&mut bench, workload, COUNT);
            }
            let large = broker.file("large");
            std::fs::write(&large, [7; 40_000]).unwrap();
            let arguments = ["-q", "1", "-t", &format!("{topic}/large"), "-f", large.to_str().unwrap()];
            lines(&broker.client("mosquitto_pub", &arguments).wait_with_output().unwrap());
            for workload in 0..2 {
                until_received(&mut bench, workload, COUNT + 1);
            }
            let (figures, ended, mut shard) = bench.stop();
            let sent = &figures[2];
            assert_eq!((sent.counter(UNITS), undelivered(sent)), (COUNT, [0; 3]), "{version:?} {qos:?}");
            for received in &figures[..2] {
                let (bytes, all) = (received.counter(MEDIA), sent.counter(MEDIA) + 40_000);
                // Where mosquitto was silent for too long, its messages come again on another link, and in part for the second time.
                let again = received.counter(DUPLICATE);
                assert_eq!(received.counter(UNITS), COUNT + 1 + again);
                assert_eq!((received.counter(STAMPED), received.counter(LOST)), (COUNT + again, 0));
                let is_whole = own(received, "mqtt.reconnects") == 0;
                assert!(if is_whole { (bytes, again) == (all, 0) } else { bytes >= all }, "{bytes} of {all}");
            }
            assert!(ended.iter().all(|(_, ending)| *ending == Ending::OnTime), "{:?}", shard.take_failures());
        }
    }
}

/// What a publisher did not send, or was not told of.
fn undelivered(sent: &Recorder) -> [u64; 3] {
    ["mqtt.unsent", "mqtt.unacknowledged", "mqtt.refused"].map(|name| own(sent, name))
}

#[test]
fn what_mosquittos_own_publisher_sends_is_received_and_has_no_mark() {
    let broker = Mosquitto::start();
    for (version, name) in [(MqttVersion::V311, "mqttv311"), (MqttVersion::V5, "mqttv5")] {
        for qos in ["0", "1", "2"] {
            let topic = format!("y/{name}/{qos}");
            let watch = subscriber(&broker.url(&topic), &burst(0, Qos::ExactlyOnce, version));
            let mut bench = Bench::new(vec![&watch]);
            bench.start(0, 0..1);
            until_playing(&mut bench, 0, 1);
            let sender = broker.client(
                "mosquitto_pub",
                &["-V", name, "-q", qos, "-t", &topic, "-m", "hello", "--repeat", "50"],
            );
            until_received(&mut bench, 0, 50);
            lines(&sender.wait_with_output().unwrap());
            bench.run(Duration::from_millis(100));
            let (figures, _, _) = bench.stop();
            assert_eq!((figures[0].counter(UNITS), figures[0].counter(MEDIA)), (50, 250));
            assert_eq!((own(&figures[0], "mqtt.unmarked"), figures[0].counter(LOST)), (50, 0));
        }
    }
}

#[test]
fn clients_that_only_connect_keep_their_connections_and_subscribe_to_nothing() {
    let broker = Mosquitto::with("log_dest file {directory}/log\nlog_type all");
    for version in VERSIONS {
        let keep_alive = Duration::from_secs(1);
        let options = MqttOptions { connect_only: true, keep_alive, ..burst(0, Qos::AtLeastOnce, version) };
        let clients = subscriber(&format!("mqtt://{}", broker.address()), &options);
        let mut bench = Bench::new(vec![&clients]);
        bench.start(0, 0..20);
        until_playing(&mut bench, 0, 20);
        bench.run_until(TEST_TIMEOUT, "all ping", |shard| own(of(shard, 0), "mqtt.pings") >= 40);
        let (figures, ended, mut shard) = bench.stop();
        let counted =
            ["mqtt.connects", "mqtt.reconnects", "units", "lost"].map(|name| own(&figures[0], name));
        // mosquitto ends a connection that was silent for one and a half times its keep-alive, as behind a machine that stood still.
        assert_eq!(counted[0], 20 + counted[1]);
        assert_eq!(counted[2..], [0, 0]);
        assert!(ended.iter().all(|(_, ending)| *ending == Ending::OnTime), "{:?}", shard.take_failures());
    }
    let log = broker.log();
    let count = |words: &str| log.matches(words).count();
    assert!(count(" as weir-sub-") >= 40 && count("Received SUBSCRIBE") == 0, "{log}");
    assert!(count("Received PINGREQ from weir-sub-") >= 80, "{log}");
}

/// mosquitto drops silently what does not fit into its queue; weir's lost is published minus received.
#[test]
fn what_the_broker_drops_is_counted_to_the_message() {
    let broker = Mosquitto::with("max_queued_messages 10\nmax_inflight_messages 5");
    let options = |count| MqttOptions {
        session: Some(Duration::from_secs(60)),
        client_id: Some("sleeper".into()),
        ..burst(count, Qos::AtLeastOnce, MqttVersion::V5)
    };
    let watch = subscriber(&broker.url("q/#"), &options(0));
    let own_name = MqttOptions { client_id: None, session: None, ..options(500) };
    let sender = publisher(&broker.url("q/{seq}"), &own_name);
    let mut bench = Bench::new(vec![&watch, &sender]);
    // It subscribes, sleeps while messages go by, and comes back before they end.
    let first = bench.start(0, 0..1);
    until_playing(&mut bench, 0, 1);
    bench.shard.stop(first[0]);
    bench.run(Duration::from_millis(200));
    bench.start(1, 0..1);
    bench.run(Duration::from_millis(250));
    bench.start(0, 0..1);
    until_done(&mut bench, 1);
    bench.run_until(TEST_TIMEOUT, "each has come or is missing", |shard| {
        let figures = of(shard, 0);
        figures.counter(UNITS) + own(figures, "mqtt.missing") == 500
    });
    let (figures, _, mut shard) = bench.stop();
    let (received, sent) = (&figures[0], &figures[1]);
    assert_eq!(
        (sent.counter(UNITS), own(sent, "mqtt.acknowledged")),
        (500, 500),
        "{:?}",
        shard.take_failures()
    );
    assert!(received.counter(UNITS) < 400, "the broker dropped nothing: {}", received.counter(UNITS));
    assert_eq!(received.counter(LOST), 500 - received.counter(UNITS));
    assert_eq!((received.counter(DUPLICATE), own(received, "mqtt.missing")), (0, 0));
}

/// What does not fit into the queue is dropped at the tail too, where no later message tells; mosquitto's own counter is the
/// second witness.
#[test]
fn what_the_broker_drops_at_the_tail_is_counted_to_the_message() {
    let broker = Mosquitto::with("max_queued_messages 10\nmax_inflight_messages 5\nsys_interval 1");
    let published = Some(std::sync::Arc::new(Published::default()));
    let all_at_once = MqttOptions {
        rate: 1e9,
        window: 5_000,
        published,
        linger: Duration::from_millis(300),
        // In MQTT 5 mosquitto takes no more at a time than it hands on.
        ..burst(5_000, Qos::AtLeastOnce, MqttVersion::V311)
    };
    let watch = subscriber(&broker.url("q/#"), &all_at_once);
    let sender = publisher(&broker.url("q/{seq}"), &all_at_once);
    let mut bench = Bench::new(vec![&watch, &sender]);
    let watching = bench.start(0, 0..1);
    until_playing(&mut bench, 0, 1);
    bench.start(1, 0..1);
    until_done(&mut bench, 1);
    bench.shard.stop(watching[0]);
    bench.run_until(TEST_TIMEOUT, "it leaves", |shard| of(shard, 0).gauge(PLAYING) == 0);
    let (figures, _, _) = bench.stop();
    let (received, sent) = (&figures[0], &figures[1]);
    assert_eq!(own(sent, "mqtt.acknowledged"), 5_000);
    assert!(received.counter(UNITS) < 5_000, "the broker dropped nothing");
    assert_eq!(received.counter(LOST), 5_000 - received.counter(UNITS));
    assert_eq!((own(received, "open_ends"), received.counter(DUPLICATE)), (0, 0));
    soon("the broker has counted", || said_by(&broker, "dropped") == received.counter(LOST));
}

#[test]
fn those_that_share_a_subscription_receive_each_message_once_between_them() {
    let broker = Mosquitto::start();
    for version in [MqttVersion::V5, MqttVersion::V311] {
        let mqtt = burst(400, Qos::AtLeastOnce, version);
        let watch = subscriber(&broker.url("$share/g/s/#"), &mqtt);
        let sender = publisher(&broker.url("s/{client}/{seq}"), &mqtt);
        let mut bench = Bench::new(vec![&watch, &sender]);
        bench.start(0, 0..3);
        until_playing(&mut bench, 0, 3);
        bench.start(1, 0..2);
        until_received(&mut bench, 0, 800);
        until_done(&mut bench, 1);
        let (figures, ended, _) = bench.stop();
        let received = &figures[0];
        assert_eq!((received.counter(UNITS), received.counter(LOST)), (800, 0), "{version:?}");
        assert_eq!((received.counter(DUPLICATE), received.counter(REORDERED)), (0, 0));
        assert_eq!(ended.len(), 5);
    }
}

/// The failure of the only client of a workload, and its words.
fn failure(workload: &Workload) -> (Failure, String) {
    let mut bench = Bench::new(vec![workload]);
    bench.start(0, 0..1);
    bench.run_until(TEST_TIMEOUT, "the client ends", |shard| of(shard, 0).failures().next().is_some());
    let (_, ended, mut shard) = bench.stop();
    let [(_, Ending::Failed(failure))] = ended[..] else { panic!("{ended:?}") };
    (failure, shard.take_failures().remove(0).words)
}

#[test]
fn credentials_are_checked_and_a_refusal_has_the_brokers_code() {
    let broker = Mosquitto::with_files(
        "allow_anonymous false\npassword_file {directory}/users\nacl_file {directory}/acl",
        |directory| {
            let users = directory.join("users");
            std::fs::write(&users, "").unwrap();
            let made = std::process::Command::new("mosquitto_passwd")
                .args(["-b"])
                .arg(&users)
                .args(["me", "s/e c@ret"])
                .status();
            assert!(made.expect("mosquitto_passwd is missing; apt-get install mosquitto").success());
            std::fs::write(directory.join("acl"), "user me\ntopic readwrite open/#\n").unwrap();
        },
    );
    let me = Credentials { user: "me".into(), password: "s/e c@ret".into() };
    for version in VERSIONS {
        let v5 = version == MqttVersion::V5;
        let stranger = burst(1, Qos::AtLeastOnce, version);
        let known = MqttOptions { credentials: vec![me.clone()], ..stranger.clone() };
        let no = if v5 {
            "CONNACK 0x87 Not authorized"
        } else {
            "CONNACK 0x05 Connection Refused, not authorized"
        };
        for workload in [
            subscriber(&broker.url("open/a"), &stranger),
            publisher(&broker.url("open/a"), &stranger),
            subscriber(&format!("mqtt://me:wrong@{}/open/a", broker.address()), &stranger),
        ] {
            assert_eq!(failure(&workload), (Failure::Unauthorized, no.to_owned()));
        }
        let watch = subscriber(&broker.url("open/#"), &known);
        let url = format!("mqtt://me:s%2Fe%20c%40ret@{}/open/{{seq}}", broker.address());
        let sender = publisher(&url, &stranger);
        let closed = publisher(&broker.url("closed/{seq}"), &known);
        let mut bench = Bench::new(vec![&watch, &sender, &closed]);
        bench.start(0, 0..1);
        until_playing(&mut bench, 0, 1);
        bench.start(1, 0..1);
        bench.start(2, 0..1);
        until_received(&mut bench, 0, 1);
        until_done(&mut bench, 2);
        let (figures, _, _) = bench.stop();
        assert_eq!(figures[0].counter(UNITS), 1);
        // MQTT 3.1.1 has no way to say that a message was not taken.
        assert_eq!(own(&figures[2], "mqtt.refused"), u64::from(v5));
    }
}

#[test]
fn a_client_that_is_sent_away_or_left_alone_says_so() {
    let mut broker = Mosquitto::start();
    let same = MqttOptions { client_id: Some("twin".into()), ..burst(0, Qos::AtMostOnce, MqttVersion::V5) };
    let (one, two) = (subscriber(&broker.url("a"), &same), subscriber(&broker.url("a"), &same));
    let mut bench = Bench::new(vec![&one, &two]);
    bench.start(0, 0..1);
    until_playing(&mut bench, 0, 1);
    bench.start(1, 0..1);
    bench.run_until(TEST_TIMEOUT, "the first is sent away", |shard| of(shard, 0).gauge(PLAYING) == 0);
    until_playing(&mut bench, 1, 1);
    broker.kill();
    bench.run_until(TEST_TIMEOUT, "the second is left alone", |shard| of(shard, 1).gauge(PLAYING) == 0);
    let (_, ended, mut shard) = bench.stop();
    // mosquitto 2.0.11 closes the link of the first without a DISCONNECT; what it has not read of it makes that a reset.
    let gone = |(_, ending): &(PlannedStart, Ending)| {
        matches!(ending, Ending::Failed(Failure::ClosedByPeer | Failure::Reset))
    };
    let remarks = shard.take_failures();
    assert!(ended.len() == 2 && ended.iter().all(gone), "{ended:?} {remarks:?}");
    let named = |remark: &ClientFailure| {
        remark.failure == Failure::Reset || remark.words == "the broker closed the link"
    };
    assert!(remarks.len() == 2 && remarks.iter().all(named), "{remarks:?}");
    let nobody = subscriber(&broker.url("a"), &MqttOptions::default());
    assert_eq!(failure(&nobody).0, Failure::ConnectionRefused);
}

#[test]
fn mqtts_is_mqtt_over_tls() {
    let certified = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let broker =
        Mosquitto::with_files("certfile {directory}/cert.pem\nkeyfile {directory}/key.pem", |directory| {
            std::fs::write(directory.join("cert.pem"), certified.cert.pem()).unwrap();
            std::fs::write(directory.join("key.pem"), certified.signing_key.serialize_pem()).unwrap();
        });
    let url = |topic: &str| [format!("mqtts://{}/{topic}", broker.address())];
    let options = burst(50, Qos::AtLeastOnce, MqttVersion::V5);
    let tls = ClientTls { trust: Trust::File(broker.file("cert.pem")), identity: None };
    let watch =
        mqtt::play(&url("t/#"), &PlayOptions { tls: tls.clone(), ..PlayOptions::default() }, &options);
    let sender =
        mqtt::publish(&url("t/{seq}"), &PublishOptions { tls, ..PublishOptions::default() }, &options);
    let (watch, sender) = (watch.unwrap(), sender.unwrap());
    let mut bench = Bench::new(vec![&watch, &sender]);
    bench.start(0, 0..1);
    until_playing(&mut bench, 0, 1);
    bench.start(1, 0..1);
    until_received(&mut bench, 0, 50);
    until_done(&mut bench, 1);
    let (figures, _, _) = bench.stop();
    assert_eq!((figures[0].counter(UNITS), figures[0].counter(PLAYED)), (50, 1));
    let stranger = mqtt::play(&url("t/#"), &PlayOptions::default(), &options).unwrap();
    assert_eq!(failure(&stranger).0, Failure::TlsFailed);
}

/// The broker's certificate is one that `openssl req -x509` makes: marked as an authority's, and signed by itself.
#[test]
fn a_broker_that_asks_for_a_certificate_is_shown_one() {
    let made = |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        (CertificateParams::new(names).unwrap(), KeyPair::generate().unwrap())
    };
    let ((mut authority, authority_key), (mut server, server_key)) = (made(&[]), made(&["127.0.0.1"]));
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    server.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let broker = Mosquitto::with_files(
        "certfile {directory}/server.pem\nkeyfile {directory}/server.key\ncafile {directory}/clients.pem\nrequire_certificate true",
        |directory| {
            let write = |name: &str, text: String| std::fs::write(directory.join(name), text).unwrap();
            write("server.pem", server.self_signed(&server_key).unwrap().pem());
            write("server.key", server_key.serialize_pem());
            write("clients.pem", authority.self_signed(&authority_key).unwrap().pem());
            let issuer = Issuer::new(authority, authority_key);
            let (mut client, key) = made(&["me"]);
            // One with the name of its issuer would have signed itself.
            client.distinguished_name.push(DnType::CommonName, "me");
            write("me.pem", client.signed_by(&key, &issuer).unwrap().pem());
            write("me.key", key.serialize_pem());
        },
    );
    let url = |topic: &str| [format!("mqtts://{}/{topic}", broker.address())];
    let trust = Trust::File(broker.file("server.pem"));
    let identity = Identity { chain: broker.file("me.pem"), key: broker.file("me.key") };
    let known = ClientTls { trust: trust.clone(), identity: Some(identity) };
    let options = burst(20, Qos::AtLeastOnce, MqttVersion::V5);
    let sender =
        mqtt::publish(&url("t/{seq}"), &PublishOptions { tls: known, ..PublishOptions::default() }, &options);
    let sender = sender.unwrap();
    let mut bench = Bench::new(vec![&sender]);
    bench.start(0, 0..1);
    until_done(&mut bench, 0);
    let (figures, _, _) = bench.stop();
    assert_eq!(own(&figures[0], "mqtt.acknowledged"), 20);
    let nameless = ClientTls { trust, identity: None };
    let stranger =
        mqtt::play(&url("t/#"), &PlayOptions { tls: nameless, ..PlayOptions::default() }, &options).unwrap();
    let (kind, words) = failure(&stranger);
    assert_eq!(kind, Failure::TlsFailed, "{words}");
    assert!(words.contains("give one with `cert` and `key`"), "{words}");
}

/// Messages keep their schedule though the broker holds them up, and what was not sent is counted.
#[test]
fn a_broker_that_does_not_keep_up_makes_messages_late_and_none_forgotten() {
    let broker = Mosquitto::start();
    // One message a microsecond is more than any broker acknowledges one by one.
    let linger = Duration::from_millis(400);
    let mqtt =
        MqttOptions { rate: 1e6, window: 1, linger, ..burst(1_000_000, Qos::AtLeastOnce, MqttVersion::V5) };
    let sender = publisher(&broker.url("slow"), &mqtt);
    let mut bench = Bench::new(vec![&sender]);
    let running = bench.start(0, 0..1);
    bench.run(Duration::from_millis(700));
    bench.shard.stop(running[0]);
    bench.run(Duration::from_millis(600));
    let (figures, _, _) = bench.stop();
    let sent = &figures[0];
    let (units, unsent) = (sent.counter(UNITS), own(sent, "mqtt.unsent"));
    assert!(units > 100 && unsent > 1_000, "{units} sent, {unsent} not");
    assert_eq!(own(sent, "mqtt.acknowledged"), units);
    assert!(own(sent, "mqtt.held_up") > 10);
    // Half of the time and more stood the window in the way: that lag is the broker's, not weir's.
    let lag = sent.spread(weir_metrics::Spread(sent.schema().position("mqtt.publish_lag").unwrap() as u16));
    assert!(lag.value_at_quantile(0.9) > 10 * sent.spread(SEND_LAG).value_at_quantile(0.5), "{lag:?}");
}

#[test]
fn a_file_is_sent_as_it_is() {
    let broker = Mosquitto::start();
    let path = broker.file("payload");
    std::fs::write(&path, "what is in the file").unwrap();
    let mqtt = MqttOptions {
        filling: Filling::File(path),
        retain: true,
        ..burst(1, Qos::AtLeastOnce, MqttVersion::V5)
    };
    let sender = publisher(&broker.url("kept"), &mqtt);
    let mut bench = Bench::new(vec![&sender]);
    bench.start(0, 0..1);
    until_done(&mut bench, 0);
    bench.stop();
    let judge = broker.client("mosquitto_sub", &["-t", "kept", "-C", "1", "-W", "60", "-F", "%r %p"]);
    assert_eq!(lines(&judge.wait_with_output().unwrap()), ["1 what is in the file"]);
    let watch = subscriber(&broker.url("kept"), &mqtt);
    let mut bench = Bench::new(vec![&watch]);
    bench.start(0, 0..1);
    until_received(&mut bench, 0, 1);
    let (figures, _, _) = bench.stop();
    // How long the broker kept it is no latency.
    assert_eq!((own(&figures[0], "mqtt.retained"), figures[0].signed(LATENCY).len()), (1, 0));
}
