//! `weir ingest` as a service: what Prometheus is told, how it stops, and how it refuses. What becomes of messages is tested
//! in the crate `ingest`.

use crate::support::{Ingester, Mosquitto, free_port, program, says, shared, soon};
use std::path::Path;

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
        (&["--save", &place, "--max-message", "1TB"], 2, "'1TB' is no size"),
    ] {
        let said = says([&["ingest", "mqtt://127.0.0.1:9/a"][..], arguments].concat());
        assert_eq!(said.code, Some(code), "{arguments:?}: {}", said.err);
        assert!(said.err.contains(words) && !said.err.contains("s3cr3t"), "{arguments:?}: {}", said.err);
    }
}
