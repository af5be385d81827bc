//! Killed at any moment, an ingester loses nothing that the broker was told, and saves nothing twice.

use crate::support::{
    ClickHouseServer, Ingester, KAFKA, Kafka, Listener, Mosquitto, Postgresql, measure, shared, soon,
    start_measuring, weir,
};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;
use std::time::Duration;

/// Messages of a test, and how many come in a second.
const MESSAGES: u64 = 6_000;
const RATE: &str = "1500/s";

/// Kills ingesters with these arguments ten times while messages come; then `rows` is what the table must have:
/// messages, and different ones.
fn killed_ten_times(broker: &Mosquitto, place: &[&str], mut rows: impl FnMut() -> Option<(u64, u64)>) {
    let url = broker.url("k/#");
    let arguments = [&[url.as_str(), "--batch", "200", "--linger", "20ms"][..], place].concat();
    // The session begins before the first message.
    let first = Ingester::start(&arguments);
    soon("the table is there", || rows().is_some());
    first.wait_for_subscription();
    let publisher = start_measuring(weir().args([
        "publish",
        &broker.url("k/{seq}"),
        "-q",
        "1",
        "--rate",
        RATE,
        "--count",
        &MESSAGES.to_string(),
        "--payload",
        "size:955",
    ]));
    let mut ingester = first;
    // Moments without a rhythm, between a tenth and half a second.
    let mut random = 0x9e37_79b9_7f4a_7c15_u64 ^ u64::from(std::process::id());
    for _ in 0..10 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(Duration::from_millis(100 + (random >> 33) % 400));
        ingester.process.kill();
        ingester = Ingester::start(&arguments);
    }
    let published = publisher.finish();
    assert_eq!(published.total("mqtt.acknowledged") as u64, MESSAGES);
    soon("all are saved", || rows().is_some_and(|(_, different)| different >= MESSAGES));
    let settled = ingester.stop();
    assert_eq!((settled.code, rows()), (Some(0), Some((MESSAGES, MESSAGES))), "{}", settled.err);
    assert_eq!((settled.total("dead_lettered"), settled.total("unmarked")), (0, 0));
}

#[test]
fn an_ingester_that_is_killed_ten_times_leaves_each_message_once_in_sqlite() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.db");
    killed_ten_times(&broker, &["--save", &format!("sqlite:{}", file.display())], || {
        let table = rusqlite::Connection::open(&file).ok()?;
        let query = "SELECT count(*), count(DISTINCT publisher || ' ' || seq) FROM messages";
        table
            .query_row(query, (), |row| Ok((row.get::<_, i64>(0)? as u64, row.get::<_, i64>(1)? as u64)))
            .ok()
    });
}

#[test]
fn an_ingester_that_is_killed_ten_times_leaves_each_message_once_in_postgresql() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let server = Postgresql::start();
    let password = server.password_file();
    let place = server.place();
    let mut client = server.client();
    killed_ten_times(
        &broker,
        &["--save", &place, "--save-password-file", password.to_str().unwrap()],
        || {
            let query = "SELECT count(*), count(DISTINCT (publisher, seq)) FROM messages";
            let row = client.query_one(query, &[]).ok()?;
            Some((row.get::<_, i64>(0) as u64, row.get::<_, i64>(1) as u64))
        },
    );
}

#[test]
fn an_ingester_that_is_killed_ten_times_leaves_each_message_once_in_clickhouse() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let server = ClickHouseServer::start();
    let (place, password) = (server.place(), server.password_file());
    let place =
        ["--save", &place, "--save-password-file", password.to_str().unwrap(), "--durability", "normal"];
    killed_ten_times(&broker, &place, || {
        // One that is killed may still be inserting when the next looks: what has one key is one row.
        let row = server.ask("SELECT count(), uniqExact(publisher, seq) FROM messages FINAL").ok()?;
        let (rows, different) = row.trim().split_once('\t')?;
        server.ask("SELECT 1 FROM messages_dead").ok()?;
        Some((rows.parse().ok()?, different.parse().ok()?))
    });
}

#[test]
fn an_ingester_that_is_killed_ten_times_leaves_each_message_once_in_parquet() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let directory = tempfile::tempdir().unwrap();
    let place = format!("parquet:{}", directory.path().display());
    killed_ten_times(&broker, &["--save", &place], || {
        let (mut rows, mut different) = (0, std::collections::HashSet::new());
        for entry in std::fs::read_dir(directory.path()).ok()?.flatten() {
            let path = entry.path();
            if path.extension().is_none_or(|extension| extension != "parquet") {
                continue;
            }
            // What has its name is complete.
            let reader = SerializedFileReader::new(std::fs::File::open(&path).unwrap()).unwrap();
            for row in reader.get_row_iter(None).unwrap() {
                let row = row.unwrap();
                rows += 1;
                different.insert((row.get_ulong(2).unwrap(), row.get_ulong(3).unwrap()));
            }
        }
        directory.path().join("dead").exists().then_some((rows, different.len() as u64))
    });
}

#[test]
fn an_ingester_that_is_killed_ten_times_leaves_each_message_once_in_kafka() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    // By TLS and a login, into a topic that compresses: what is read back is what the broker has made of it.
    let server = Kafka::guarded(KAFKA);
    server.create("kills", &["compression.type=zstd"]);
    let place = format!("kafkas://me:s3cr3t@{}/kills", server.address_of(Listener::TlsLogin));
    let certificate = server.certificate();
    killed_ten_times(&broker, &["--save", &place, "--cacert", certificate.to_str().unwrap()], || {
        // The last of what is created.
        let (count, _) = (server.count("kills")?, server.count("kills_dead")?);
        if count < MESSAGES {
            return Some((count, count));
        }
        let records = server.heads("kills");
        let different: std::collections::HashSet<_> =
            records.iter().map(|record| (record.header("publisher"), record.header("seq"))).collect();
        Some((records.len() as u64, different.len() as u64))
    });
}

#[test]
fn ingesters_that_share_a_stream_save_each_message_once() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let server = Postgresql::start();
    let (place, password) = (server.place(), server.password_file());
    let url = broker.url("$share/group/s/#");
    let start = |name: &str| {
        let arguments = [&url, "--save", &place, "--client-id", name, "--save-password-file"];
        Ingester::start(arguments.into_iter().chain([password.to_str().unwrap()]))
    };
    let ingesters = ["one", "two"].map(start);
    let mut client = server.client();
    soon("the table is there", || client.query_one("SELECT count(*) FROM messages_dead", &[]).is_ok());
    ingesters.iter().for_each(Ingester::wait_for_subscription);
    let run =
        measure(["publish", &broker.url("s/{seq}"), "-q", "1", "--rate", "4000/s", "--count", "4000"].iter());
    assert_eq!(run.total("mqtt.acknowledged") as u64, 4_000);
    let mut rows = || client.query_one("SELECT count(*) FROM messages", &[]).unwrap().get::<_, i64>(0);
    soon("all are saved", || rows() == 4_000);
    let saved = ingesters.map(|ingester| ingester.stop().total("saved"));
    assert_eq!((saved.iter().sum::<u64>(), rows()), (4_000, 4_000));
    assert!(saved.iter().all(|saved| *saved > 0), "{saved:?}");
}
