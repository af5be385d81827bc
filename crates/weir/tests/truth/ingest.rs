//! `weir ingest` as a service: what Prometheus is told, how it stops, and how it refuses. What becomes of messages is tested
//! in the crate `ingest`.

use crate::support::{Ingester, Mosquitto, free_port, measure, program, says, shared, soon};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use weir_origin::{ANY_PORT, Identity, MQTT, Origin, OriginConfig};

/// Sends a message with mosquitto's own client.
fn send(broker: &Mosquitto, arguments: &[&str]) {
    let address = broker.address();
    let mut command = program("mosquitto_pub", "mosquitto-clients");
    command
        .args(["-h", "127.0.0.1", "-q", "1", "-p", address.split(':').next_back().unwrap()])
        .args(arguments);
    assert!(command.status().unwrap().success(), "{arguments:?}");
}

fn rows(file: &Path, query: &str) -> u64 {
    let Ok(table) = rusqlite::Connection::open(file) else { return 0 };
    table.query_row(query, (), |row| row.get::<_, i64>(0)).unwrap_or(0) as u64
}

#[test]
fn prometheus_is_told_what_is_counted_and_a_stop_is_a_clean_one() {
    let _machine = shared();
    let broker = Mosquitto::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.db");
    let port = free_port();
    let (url, place, metrics) = (broker.url("p/#"), format!("sqlite:{}", file.display()), format!(":{port}"));
    // Nothing but the end of the process can bring the last ones in.
    let ingester = Ingester::start([
        &*url,
        "--save",
        &place,
        "--live",
        &metrics,
        "--linger",
        "600s",
        "--mqtt-version",
        "3.1.1",
    ]);
    let ask = || Ingester::page(port);
    let has = |line: &str| ask().is_some_and(|page| page.lines().any(|it| it == line));
    soon("it is subscribed", || has("weir_ingest_subscribed 1"));
    for n in 0..3 {
        send(&broker, &["-t", "p/1", "-m", &format!("message {n}")]);
    }
    soon("they came", || has("weir_ingest_messages_total 3"));
    assert!(has("weir_ingest_records_saved_total 0") && has("weir_ingest_messages_unsettled 3"));
    assert!(ask().unwrap().starts_with("HTTP/1.1 200 OK\r\n"));
    let settled = ingester.stop();
    assert_eq!((settled.code, settled.total("saved"), settled.total("acknowledged")), (Some(0), 3, 3));
    assert_eq!((settled.total("left"), rows(&file, "SELECT count(*) FROM messages")), (0, 3));
    assert_eq!(settled.summary["classic"].as_array().unwrap()[1], 3);
}

#[test]
fn what_cannot_be_saved_to_is_one_line_with_its_exit_code() {
    let directory = tempfile::tempdir().unwrap();
    let place = format!("sqlite:{}", directory.path().join("rows.db").display());
    for (arguments, code, words) in [
        // What is away is waited for, until the time is over; then it is a server that did not answer.
        (&["--save", &place, "-d", "300ms"][..], 97, "mqtt://127.0.0.1:9/a: Connection refused"),
        (&["--save", "postgres://u:s3cr3t@127.0.0.1:9/d", "-d", "300ms"], 97, "postgres://127.0.0.1:9/d: "),
        (
            &["--save", "clickhouse://u:s3cr3t@127.0.0.1:9/d", "-d", "300ms"],
            97,
            "clickhouse://127.0.0.1:9/d: connection refused",
        ),
        (&["--save", "clickhouse://u:s3cr3t@h/d?x=1"], 2, "--save: a place in ClickHouse has no options"),
        (&["--save", &place, "--partition", "day"], 2, "--partition: only tables of PostgreSQL"),
        (
            &["--save", "parquet:/tmp", "--durability", "off"],
            2,
            "--durability: a file of Parquet is on the disk",
        ),
        (&["--save", "sqlite:/no/such/directory/rows.db"], 1, "cannot be opened; name a file"),
        (&["--save", "postgres:u:s3cr3t@"], 2, "--save: this is no place to save to"),
        (&["--save", "mysql://u:s3cr3t@h/d"], 2, "sqlite:FILE, postgres://"),
        (&["--save", &place, "--schema", "/no/such"], 2, "/no/such"),
        (&["--save", &place, "--format", "xml"], 2, "xml"),
        (&["--save", &place, "--max-message", "1TB"], 2, "'1TB' is not a size"),
    ] {
        let said = says([&["ingest", "mqtt://127.0.0.1:9/a"][..], arguments].concat());
        assert_eq!(said.code, Some(code), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(words) && !said.err.contains("s3cr3t"), "{arguments:?}: {}", said.err);
    }
}

/// Messages of a publisher; of each, more than fits into a piece of a WebSocket's message.
const COUNT: u64 = 100;

/// Saves what `kim` publishes, by WebSockets both, until all is saved.
fn each_is_a_row(url: &str, users: &Path, trust: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.db");
    let (url_of_user, place, count) =
        (format!("{url}/{{user}}"), format!("sqlite:{}", file.display()), COUNT.to_string());
    let filter = format!("{url_of_user}/#");
    let users = users.to_str().unwrap();
    let mut arguments =
        vec![&*filter, "--save", &place, "--count", &count, "--ws-path", "/mqtt", "--linger", "1ms"];
    arguments.extend(["--client-id", "saver-{user}", "--credentials", users].iter().chain(trust));
    let ingester = Ingester::start(arguments);
    soon("it is subscribed", || ingester.err().contains("subscribed to"));
    let published = format!("{url_of_user}/{{seq}}");
    let mut publish = vec!["publish", &published, "-q", "1", "--rate", "300/s", "--count", &count];
    publish.extend(["--payload", "size:20000", "--credentials", users].iter().chain(trust));
    let run = measure(publish);
    assert_eq!(run.total("mqtt.acknowledged") as u64, COUNT);
    let settled = ingester.settled();
    assert_eq!((settled.code, settled.total("saved"), settled.total("missing")), (Some(0), COUNT, 0));
    assert_eq!(rows(&file, "SELECT sum(length(payload)) FROM messages"), COUNT * 20_000);
    let different = rows(&file, "SELECT count(DISTINCT publisher || ' ' || seq) FROM messages");
    let of_kim = rows(&file, "SELECT count(*) FROM messages WHERE topic LIKE 'kim/%'");
    assert_eq!((rows(&file, "SELECT count(*) FROM messages"), different, of_kim), (COUNT, COUNT, COUNT));
}

#[test]
fn each_message_that_comes_in_a_websocket_is_a_row() {
    let _machine = shared();
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let users = at("users.csv", "kim,secret\n");
    // mosquitto 2.0.11 sends no more in a WebSocket once it could not write a packet in one piece.
    let broker = Mosquitto::with(
        "max_inflight_messages 2\npersistence false\nlog_dest file {directory}/log\nlog_type subscribe\nlistener {sockets} 127.0.0.1\nprotocol websockets",
    );
    each_is_a_row(broker.socket_url("").trim_end_matches('/'), &users, &[]);
    let log = broker.log();
    assert!(log.lines().any(|line| line.ends_with("saver-kim 1 kim/#")), "{log}");

    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let chain = at("chain.pem", &made.cert.pem());
    let key = at("key.pem", &made.signing_key.serialize_pem());
    let config = OriginConfig::default().listening(&MQTT, ANY_PORT);
    let identity = Identity { chain: chain.clone(), key };
    let origin = Origin::start(&config.listening_secure(&MQTT, ANY_PORT, identity)).unwrap();
    each_is_a_row(&format!("mqtt+ws://{}", origin.address("mqtt").unwrap()), &users, &[]);
    let secure = format!("mqtt+wss://{}", origin.address("mqtts").unwrap());
    each_is_a_row(&secure, &users, &["--cacert", chain.to_str().unwrap()]);
}

#[test]
fn an_ingester_with_another_name_each_time_leaves_no_session_of_mqtt_3_1_1_behind() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nlog_dest file {directory}/log\nlog_type all");
    let directory = tempfile::tempdir().unwrap();
    let place = format!("sqlite:{}", directory.path().join("rows.db").display());
    let url = broker.url("a");
    // In mosquitto's log `c1` is a clean session.
    for (name, is_clean) in [("saver", false), ("saver-{random:4}", true)] {
        let version = ["--mqtt-version", "3.1.1", "--client-id", name, "-d", "500ms"];
        let said = says(["ingest", &url, "--save", &place].into_iter().chain(version));
        assert_eq!(
            (said.code, said.err.contains("so it is a clean one")),
            (Some(0), is_clean),
            "{}",
            said.err
        );
        let log = broker.log();
        let connected = log.lines().rfind(|line| line.contains("New client connected")).unwrap();
        assert!(
            connected.contains(" as saver") && connected.contains(if is_clean { ", c1," } else { ", c0," }),
            "{log}"
        );
    }
    // The name of an ingester of a run is that run's.
    let file = directory.path().join("nameless.yaml");
    let text = format!(
        "workloads:\n  - {{publish: '{url}', count: 1}}\n  - {{ingest: '{url}', mqtt_version: 3.1.1, session: 1h, into: {{save: '{place}'}}}}\n"
    );
    std::fs::write(&file, text).unwrap();
    let said = says(["run", file.to_str().unwrap()]);
    assert_eq!(said.code, Some(104), "{}", said.err);
    assert!(said.err.contains("keeps a session of MQTT 3.1.1 for ever"), "{}", said.err);
}

#[test]
fn a_server_without_a_websocket_is_one_line_that_names_the_flag() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("mqtt+ws://{}/a", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut link, _) = listener.accept().unwrap();
        let mut asked = [0; 4_096];
        let length = link.read(&mut asked).unwrap();
        link.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").unwrap();
        String::from_utf8_lossy(&asked[..length]).into_owned()
    });
    let directory = tempfile::tempdir().unwrap();
    let place = format!("sqlite:{}", directory.path().join("rows.db").display());
    let said = says(["ingest", &url, "--save", &place, "--ws-path", "/broker"]);
    assert!(server.join().unwrap().starts_with("GET /broker HTTP/1.1\r\n"));
    assert!(said.err.contains("no WebSocket: 404 Not Found; see --ws-path"), "{}", said.err);
    assert_eq!(said.code, Some(1));
}
