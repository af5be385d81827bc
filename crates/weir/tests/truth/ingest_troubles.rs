//! What goes wrong around an ingester: nothing that was acknowledged is lost, one line says what it is, and memory stays
//! within bounds.

use crate::support::{
    ClickHouseServer, Ingester, Kafka, Mosquitto, Postgresql, Publishing, free_port, measure, program,
    shared, soon,
};
use rusqlite::Connection;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A tmpfs of this many bytes, unmounted when the test ends.
struct SmallDisk(tempfile::TempDir);

impl SmallDisk {
    fn of(size: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(directory.path());
        assert!(mount.status().unwrap().success(), "this test mounts a tmpfs, as root");
        Self(directory)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.path()).status();
    }
}

fn publish(broker: &Mosquitto, topic: &str, rate: &str, count: &str, size: &str) -> u64 {
    let url = broker.url(topic);
    let arguments =
        ["publish", &url, "-q", "1", "--rate", rate, "--count", count, "--payload", size, "--window", "100"];
    let run = measure(arguments.iter());
    run.total("mqtt.acknowledged") as u64
}

fn count(file: &Path, query: &str) -> u64 {
    let Ok(table) = Connection::open(file) else { return 0 };
    table.query_row(query, (), |row| row.get::<_, i64>(0)).unwrap_or(0) as u64
}

/// Starts an ingester into a file, and waits until it is subscribed.
fn into_sqlite(broker: &Mosquitto, topic: &str, file: &Path, more: &[&str]) -> Ingester {
    let (url, place) = (broker.url(topic), format!("sqlite:{}", file.display()));
    let ingester = Ingester::start([&[&*url, "--save", &place][..], more].concat());
    soon("the tables are there", || {
        count(file, "SELECT count(*) FROM sqlite_master WHERE type = 'table'") >= 2
    });
    ingester.wait_for_subscription();
    ingester
}

#[test]
fn a_full_disk_is_one_line_and_saving_goes_on_when_there_is_room() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let disk = SmallDisk::of("6m");
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![0; 4 << 20]).unwrap();
    let file = disk.path().join("rows.db");
    let ingester = into_sqlite(&broker, "f/#", &file, &[]);
    assert_eq!(publish(&broker, "f/{seq}", "2000/s", "1500", "size:955"), 1_500);
    soon("it says so", || ingester.err().contains("full"));
    std::thread::sleep(Duration::from_millis(400));
    assert!(count(&file, "SELECT count(*) FROM messages") < 1_500);
    std::fs::remove_file(&ballast).unwrap();
    soon("all are saved", || count(&file, "SELECT count(*) FROM messages") == 1_500);
    let settled = ingester.stop();
    assert_eq!((settled.total("saved"), settled.total("duplicate"), settled.total("left")), (1_500, 0, 0));
    let lines: Vec<_> = settled.err.lines().filter(|line| line.contains("full")).collect();
    assert!(lines.len() == 1 && lines[0].contains("make room"), "{}", settled.err);
    assert_eq!(settled.total("acknowledged"), 1_500);
}

#[test]
fn an_ingester_that_ends_before_there_is_room_has_acknowledged_what_is_saved_and_no_more() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let disk = SmallDisk::of("2m");
    let file = disk.path().join("rows.db");
    let ingester = into_sqlite(&broker, "e/#", &file, &[]);
    assert_eq!(publish(&broker, "e/{seq}", "3000/s", "3000", "size:955"), 3_000);
    soon("it says so", || ingester.err().contains("full"));
    let settled = ingester.stop();
    assert_eq!(settled.code, Some(1), "{}", settled.err);
    let saved = settled.total("saved");
    assert_eq!(settled.total("acknowledged"), saved);
    assert_eq!(count(&file, "SELECT count(*) FROM messages"), saved);
    assert!(saved < 3_000 && settled.total("left") > 0, "{:#}", settled.summary);
}

#[test]
fn a_database_that_is_restarted_is_found_again_and_nothing_is_lost() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let mut server = Postgresql::start();
    let url = broker.url("d/#");
    let (place, password) = (server.place(), server.password_file());
    let ingester =
        Ingester::start([&url, "--save", &place, "--save-password-file", password.to_str().unwrap()]);
    let there =
        |server: &Postgresql| server.client().query_one("SELECT count(*) FROM messages_dead", &[]).is_ok();
    soon("the table is there", || there(&server));
    ingester.wait_for_subscription();
    assert_eq!(publish(&broker, "d/{seq}", "2000/s", "1000", "size:500"), 1_000);
    server.stop();
    assert_eq!(publish(&broker, "d/{seq}", "2000/s", "1000", "size:500"), 1_000);
    soon("it says so", || ingester.err().contains("nothing is acknowledged until it is saved"));
    server.go_on();
    let rows = || server.client().query_one("SELECT count(*) FROM messages", &[]).unwrap().get::<_, i64>(0);
    soon("all are saved", || rows() == 2_000);
    let settled = ingester.stop();
    assert_eq!((settled.code, settled.total("saved"), settled.total("duplicate")), (Some(0), 2_000, 0));
    assert!(!settled.err.contains("pass'word"), "{}", settled.err);
}

/// Starts an ingester into ClickHouse, and waits until it is subscribed.
fn into_clickhouse(broker: &Mosquitto, topic: &str, server: &ClickHouseServer) -> Ingester {
    let (url, place, password) = (broker.url(topic), server.place(), server.password_file());
    let password = password.to_str().unwrap();
    let ingester = Ingester::start([
        &*url,
        "--save",
        &place,
        "--save-password-file",
        password,
        "--durability",
        "normal",
    ]);
    ingester.wait_for_subscription();
    ingester
}

#[test]
fn a_clickhouse_that_is_killed_is_found_again_and_nothing_is_lost() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let mut server = ClickHouseServer::start();
    let ingester = into_clickhouse(&broker, "h/#", &server);
    let publisher = std::thread::scope(|scope| {
        let publisher = scope.spawn(|| publish(&broker, "h/{seq}", "1000/s", "3000", "size:500"));
        // While it inserts.
        for _ in 0..2 {
            std::thread::sleep(Duration::from_millis(700));
            server.kill();
            soon("it says so", || ingester.err().contains("nothing is acknowledged until it is saved"));
            server.go_on();
        }
        publisher.join().unwrap()
    });
    assert_eq!(publisher, 3_000);
    let rows = |query: &str| server.number(query).unwrap();
    soon("all are saved", || rows("SELECT count() FROM messages FINAL") == 3_000);
    let settled = ingester.stop();
    assert_eq!((settled.code, settled.total("saved"), settled.total("duplicate")), (Some(0), 3_000, 0));
    assert_eq!(rows("SELECT uniqExact(publisher, seq) FROM messages"), 3_000);
    assert!(!settled.err.contains("pass'word"), "{}", settled.err);
}

#[test]
fn a_full_disk_of_clickhouse_is_one_line_and_saving_goes_on_when_there_is_room() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let disk = SmallDisk::of("16m");
    let server = ClickHouseServer::within(disk.path());
    let ingester = into_clickhouse(&broker, "u/#", &server);
    // A part has 20 files, of a page at least.
    let ballast = disk.path().join("ballast");
    std::fs::write(&ballast, vec![0; (16 << 20) - (600 << 10)]).unwrap();
    assert_eq!(publish(&broker, "u/{seq}", "2000/s", "3000", "size:955"), 3_000);
    soon("it says so", || ingester.err().contains("make room on its disk"));
    std::fs::remove_file(&ballast).unwrap();
    soon("all are saved", || server.number("SELECT count() FROM messages FINAL") == Ok(3_000));
    let settled = ingester.stop();
    assert_eq!((settled.total("saved"), settled.total("duplicate"), settled.total("left")), (3_000, 0, 0));
    assert_eq!(settled.total("acknowledged"), 3_000);
}

#[test]
fn kafka_that_comes_late_and_is_restarted_is_found_again_and_nothing_is_lost() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let mut server = Kafka::start();
    server.kill();
    let (url, place) = (broker.url("q/#"), server.url("troubles"));
    let ingester = Ingester::start([&url, "--save", &place, "--batch", "100"]);
    soon("it waits for Kafka", || ingester.err().contains("waiting until there is a place to save to"));
    server.go_on();
    ingester.wait_for_subscription();
    assert_eq!(publish(&broker, "q/{seq}", "2000/s", "1000", "size:500"), 1_000);
    server.kill();
    assert_eq!(publish(&broker, "q/{seq}", "2000/s", "1000", "size:500"), 1_000);
    soon("it says so", || ingester.err().contains("nothing is acknowledged until it is saved"));
    server.go_on();
    soon("saving goes on", || ingester.err().contains("saving goes on"));
    soon("all are saved", || server.count("troubles") == Some(2_000));
    let settled = ingester.stop();
    assert_eq!((settled.code, settled.total("saved"), settled.total("duplicate")), (Some(0), 2_000, 0));
    assert_eq!(settled.total("acknowledged"), 2_000);
    let records = server.heads("troubles");
    let different: std::collections::HashSet<_> =
        records.iter().map(|record| (record.header("publisher"), record.header("seq"))).collect();
    assert_eq!((records.len(), different.len()), (2_000, 2_000));
    // One publisher is one key in one partition, in the order of its messages.
    let mut partitions = std::collections::HashMap::<_, Vec<u64>>::new();
    for record in &records {
        assert_eq!(record.key, record.header("publisher"));
        let number = record.header("seq").parse().unwrap();
        partitions.entry((&record.key, record.partition)).or_default().push(number);
    }
    assert!(
        partitions.len() == 2 && partitions.values().all(|numbers| numbers.is_sorted()),
        "{partitions:?}"
    );
}

#[test]
fn a_broker_that_is_restarted_is_found_again_and_nothing_is_lost() {
    let _machine = shared();
    let mut broker = Mosquitto::with(
        "persistence true\npersistence_location {directory}\nmax_queued_messages 0\nmax_inflight_messages 0",
    );
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.db");
    let ingester = into_sqlite(&broker, "r/#", &file, &["--batch", "100"]);
    // While another holds the file, what comes is in flight.
    let lock = Connection::open(&file).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(publish(&broker, "r/{seq}", "2000/s", "1000", "size:500"), 1_000);
    broker.stop();
    lock.execute_batch("COMMIT").unwrap();
    broker.go_on();
    soon("it is connected again", || ingester.err().contains("connected again"));
    assert_eq!(publish(&broker, "r/{seq}", "2000/s", "1000", "size:500"), 1_000);
    soon("all are saved", || count(&file, "SELECT count(*) FROM messages") == 2_000);
    let settled = ingester.stop();
    assert_eq!((settled.code, settled.total("saved")), (Some(0), 2_000), "{}", settled.err);
    assert!(settled.total("reconnects") >= 1);
    assert_eq!(count(&file, "SELECT count(DISTINCT publisher || ' ' || seq) FROM messages"), 2_000);
}

#[test]
fn a_broker_and_a_database_that_come_after_the_ingester_are_waited_for() {
    let _machine = shared();
    let mut broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let mut server = Postgresql::start();
    let (url, place, password) = (broker.url("w/#"), server.place(), server.password_file());
    broker.stop();
    server.stop();
    let ingester =
        Ingester::start([&url, "--save", &place, "--save-password-file", password.to_str().unwrap()]);
    soon("it waits for the database", || {
        ingester
            .err()
            .contains("; start PostgreSQL, or correct host and port; waiting until there is a place")
    });
    server.go_on();
    soon("it waits for the broker", || {
        ingester.err().contains("; start the broker, or correct host and port; waiting until it is there")
    });
    broker.go_on();
    soon("it is connected", || ingester.err().contains(": connected"));
    assert_eq!(publish(&broker, "w/{seq}", "2000/s", "200", "size:500"), 200);
    let rows = || server.client().query_one("SELECT count(*) FROM messages", &[]).unwrap().get::<_, i64>(0);
    soon("all are saved", || rows() == 200);
    let settled = ingester.stop();
    assert_eq!((settled.code, settled.total("saved"), settled.total("reconnects")), (Some(0), 200, 0));
    // One line each for what is away and for what is there, and one on the subscription; a server that takes its time to start
    // says so itself, and every ten seconds a line says how saving goes.
    let is_said = |line: &&str| !line.contains("is starting up") && !line.contains(" rows/s · ");
    let lines: Vec<_> = settled.err.lines().filter(is_said).collect();
    assert_eq!(lines.len(), 5, "{}", settled.err);
    let subscribed = lines.iter().any(|line| line.starts_with("weir: subscribed to mqtt://"));
    assert!(subscribed, "{}", settled.err);
}

#[test]
fn a_database_keeps_what_comes_under_a_forged_mark_beside_what_is_genuine() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let server = Postgresql::start();
    let directory = tempfile::tempdir().unwrap();
    let (url, place, password) = (broker.url("g/#"), server.place(), server.password_file());
    let ingester =
        Ingester::start([&url, "--save", &place, "--save-password-file", password.to_str().unwrap()]);
    let mut client = server.client();
    soon("the table is there", || client.query_one("SELECT count(*) FROM messages_dead", &[]).is_ok());
    ingester.wait_for_subscription();
    // A mark as MQTT 3.1.1 has it: publisher, sequence number, and four clocks.
    let sent = |number: u64, payload: &str| {
        let fields = [7, number, 0, 0, 0, 0].map(u64::to_be_bytes).concat();
        let file = directory.path().join("payload");
        std::fs::write(&file, [b"weirmqt\x01".to_vec(), fields, payload.into()].concat()).unwrap();
        let port = broker.address().split(':').next_back().unwrap().to_owned();
        let mut command = program("mosquitto_pub", "mosquitto-clients");
        command.args(["-h", "127.0.0.1", "-p", &port, "-q", "1", "-t", "g/1", "-f", file.to_str().unwrap()]);
        assert!(command.status().unwrap().success());
    };
    let messages =
        [(0, "forged"), (0, "genuine"), (1, "x"), (0, "genuine"), (0, "forged"), (1, "y"), (1, "x")];
    for (number, payload) in messages {
        sent(number, payload);
    }
    let mut rows = || {
        let query =
            "SELECT seq, convert_from(payload, 'UTF8'), conflict FROM messages ORDER BY seq, conflict";
        let rows = client.query(query, &[]).unwrap().into_iter();
        rows.map(|row| (row.get(0), row.get(1), row.get(2))).collect::<Vec<(i64, String, bool)>>()
    };
    soon("all are saved", || rows().len() == 4);
    let settled = ingester.stop();
    let row = |number, payload: &str, conflict| (number, payload.to_owned(), conflict);
    let expected = [row(0, "forged", false), row(0, "genuine", true), row(1, "x", false), row(1, "y", true)];
    assert_eq!(rows(), expected);
    let totals = ["saved", "duplicate", "conflict", "acknowledged"].map(|name| settled.total(name));
    assert_eq!(totals, [4, 3, 2, 7], "{:#}", settled.summary);
}

#[test]
fn what_a_broker_drops_is_missing_to_the_last_message() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 10");
    // In memory: where others write to the disk, each commit waits for them, and the broker drops the last message as well.
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let file = directory.path().join("rows.db");
    let ingester = into_sqlite(&broker, "l/#", &file, &["--batch", "50", "--window", "50"]);
    // A slow one: the file is held by another for half of the time.
    let holder = {
        let file = file.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(1_000));
            let lock = Connection::open(&file).unwrap();
            lock.execute_batch("BEGIN IMMEDIATE").unwrap();
            std::thread::sleep(Duration::from_millis(1_500));
            lock.execute_batch("COMMIT").unwrap();
        })
    };
    // Slow enough, and for long enough, for what comes last to be delivered: after the hold it may be two seconds until
    // the next attempt.
    let published = publish(&broker, "l/{seq}", "400/s", "4800", "size:200");
    holder.join().unwrap();
    soon("what came last is saved", || count(&file, "SELECT max(seq) FROM messages") == 4_799);
    let settled = ingester.stop();
    let saved = count(&file, "SELECT count(*) FROM messages");
    assert_eq!((published, settled.total("saved")), (4_800, saved), "{}", settled.err);
    assert!(saved < published, "the broker dropped none");
    assert_eq!(settled.total("missing"), published - saved, "{:#}", settled.summary);
}

#[test]
fn a_message_of_256_megabytes_is_a_dead_letter_and_takes_no_memory() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let directory = tempfile::tempdir().unwrap();
    let (file, large) = (directory.path().join("rows.db"), directory.path().join("large"));
    let ingester = into_sqlite(&broker, "m/#", &file, &["--max-message", "1MiB"]);
    std::fs::File::create(&large).unwrap().set_len(256_000_000).unwrap();
    let port = broker.address().split(':').next_back().unwrap().to_owned();
    let send = |arguments: &[&str]| {
        let mut command = program("mosquitto_pub", "mosquitto-clients");
        command.args(["-h", "127.0.0.1", "-p", &port, "-q", "1"]).args(arguments);
        assert!(command.status().unwrap().success());
    };
    send(&["-t", "m/large", "-f", large.to_str().unwrap()]);
    send(&["-t", "m/small", "-m", "after it"]);
    soon("both are settled", || {
        count(&file, "SELECT count(*) FROM messages") + count(&file, "SELECT count(*) FROM messages_dead")
            == 2
    });
    let peak = ingester.peak_memory();
    assert!(peak < 64 << 20, "{peak} bytes of memory");
    let settled = ingester.stop();
    assert_eq!(
        (settled.total("saved"), settled.total("dead_lettered"), settled.total("acknowledged")),
        (1, 1, 2)
    );
    let table = Connection::open(&file).unwrap();
    let (topic, reason, size, kept): (String, String, i64, Vec<u8>) = table
        .query_row("SELECT topic, reason, size, payload FROM messages_dead", (), |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .unwrap();
    assert_eq!((&*topic, size, kept.len()), ("m/large", 256_000_000, 65_536));
    assert!(reason.contains("256000000 bytes") && reason.contains("--max-message"), "{reason}");
}

/// What mosquitto says of itself under this topic of `$SYS/broker`, once it has said anything.
fn said_by(broker: &Mosquitto, topic: &str) -> u64 {
    let address = broker.address();
    let (host, port) = address.split_once(':').unwrap();
    let mut ask = program("mosquitto_sub", "mosquitto-clients");
    ask.args(["-h", host, "-p", port, "-C", "1", "-W", "60", "-t", &format!("$SYS/broker/{topic}")]);
    String::from_utf8_lossy(&ask.output().unwrap().stdout).trim().parse().unwrap()
}

/// A metric without labels of an ingester with `--live :PORT`.
fn metric(port: u16, name: &str) -> Option<f64> {
    let page = Ingester::page(port)?;
    page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

#[test]
fn what_a_broker_drops_for_a_slow_store_is_counted_and_named_with_publishers_and_cause() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 10\nsys_interval 1");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.db");
    let port = free_port();
    let live = format!("127.0.0.1:{port}");
    let ingester = into_sqlite(&broker, "s/#", &file, &["--window", "20", "--live", &live]);
    // Nothing is saved while another has the file.
    let other = Connection::open(&file).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let url = broker.url("s/a");
    let publishing =
        Publishing::start(&url, &["-c", "2", "-q", "1", "--rate", "25/s", "--payload", "size:100"]);
    soon("a batch waits", || metric(port, "weir_ingest_lag_seconds").is_some_and(|lag| lag > 4.0));
    other.execute_batch("ROLLBACK").unwrap();
    let rows = || count(&file, "SELECT count(*) FROM messages");
    // What was in flight and in the broker's queue, and what came behind the hole.
    // Nothing is dropped any more when the publishers end: what comes last is behind every gap.
    soon("saving goes on", || rows() > 200);
    let page = |name: &str| metric(port, &format!("weir_ingest_{name}"));
    let sent = publishing.finish().total("mqtt.acknowledged") as u64;
    soon("the broker has said what it dropped", || {
        sent == rows() + said_by(&broker, "publish/messages/dropped")
    });
    let missing = sent - rows();
    assert!(missing > 50, "{missing} of {sent}");
    // The page is renewed once a second.
    soon("the gaps are on the page", || page("messages_missing") == Some(missing as f64));
    soon("the rows are on the page", || page("records_saved_total") == Some(rows() as f64));
    assert_eq!(page("publishers_missing"), Some(2.0));
    assert!(page("commits_total") > Some(1.0));
    let settled = ingester.stop();
    assert_eq!((settled.total("missing"), settled.total("missing_publishers")), (missing, 2));
    let most = settled.summary["missing_most"].as_array().unwrap();
    let of = |gap: &serde_json::Value| gap["missing"].as_u64().unwrap();
    assert_eq!(most.iter().map(of).sum::<u64>(), missing);
    let known = "SELECT count(DISTINCT publisher) FROM messages WHERE publisher IN";
    let names: Vec<_> = most.iter().map(|gap| gap["publisher"].to_string()).collect();
    assert_eq!(count(&file, &format!("{known} ({})", names.join(", "))), 2);
    assert!(settled.summary["longest_lag_seconds"].as_f64().unwrap() > 2.0, "{:#}", settled.summary);
    let said: Vec<_> = settled.err.lines().filter(|line| line.contains("missing since")).collect();
    assert!(said.len() == 1 && said[0].contains("max_queued_messages"), "{}", settled.err);
}
