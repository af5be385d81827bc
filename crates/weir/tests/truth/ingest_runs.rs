//! Runs whose messages are saved: each accounted for from publisher to table, and whatever is lost named with its place.

use crate::support::experiment::{ASKED, Asked, Experiment, SCHEMA, number};
use crate::support::{
    ClickHouseServer, Kafka, KilledOnDrop, Mosquitto, Postgresql, Said, free_port, says, shared, soon, weir,
};
use serde_json::Value;
use std::path::Path;
use weir_origin::{ANY_PORT, MQTT, Origin, OriginConfig};

/// Both encodings, so often.
const BOTH: &str = "variants: {avro: {encoding: avro}, json: {encoding: json}}\nrepeat: ";

fn rows(file: &Path, table: &str) -> u64 {
    let connection = rusqlite::Connection::open(file).unwrap();
    let query = format!("SELECT count(*) FROM {table}");
    connection.query_row(&query, (), |row| row.get::<_, i64>(0)).unwrap() as u64
}

#[test]
fn each_run_begins_with_an_empty_table_and_ends_with_every_record_in_it() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let server = format!("port={}", broker.address().rsplit(':').next().unwrap());
    let rest = format!("{BOTH}3\nwatch: [{server}]\nthresholds: [insert_time < 60s]");
    let into = format!("{}, batch: 50", ASKED.into);
    let experiment = Experiment::of(&broker.address(), &Asked { into: &into, rest: &rest, ..ASKED });
    let ran = experiment.run();
    assert_eq!(ran.said.code, Some(0), "{}", ran.said.err);
    let order = [(1, "avro"), (1, "json"), (2, "json"), (2, "avro"), (3, "avro"), (3, "json")];
    assert_eq!(ran.order(), order);
    for (it, run) in ran.ingested.iter().zip(&ran.runs) {
        assert_eq!((number(it, "acknowledged"), number(it, "counted")), (300, 300));
        let classic = it["classic"].as_array().unwrap();
        assert_eq!((&classic[0], &classic[1]), (&0.into(), &300.into()));
        let at = |stage: &str, end: &str| it[stage][end].as_f64().unwrap();
        assert_eq!(at("publish", "first_seconds"), 0.0);
        let mut before = 0.0;
        for stage in ["publish", "receive", "decode", "commit"] {
            let (first, last) = (at(stage, "first_seconds"), at(stage, "last_seconds"));
            assert!(before <= first && first <= last, "{stage}: {it:#}");
            before = first;
        }
        assert!(at("commit", "last_seconds") >= at("publish", "last_seconds"));
        assert!(number(it, "counted") * 900 < it["table_bytes"].as_u64().unwrap());
        assert!(it["payload_bytes"].as_u64().unwrap() > 300 * 900);
        // The same by the names that thresholds have, and the broker's process beside it.
        let total = |name: &str| run["workloads"][0]["total"][name]["total"].as_f64().unwrap();
        assert_eq!(
            (total("saved"), total("units"), total("lost"), total("imbalances")),
            (300.0, 300.0, 0.0, 0.0)
        );
        assert!((total("total_time") - at("commit", "last_seconds")).abs() < 1e-5);
        assert_eq!(run["workloads"][0]["stages"][0]["targets"][0]["label"], *server);
    }
    let comparison = &ran.summary["comparisons"][0];
    assert_eq!((&comparison["base"], &comparison["pairs"]), (&"avro".into(), &3.into()));
    let named =
        |name: &str| comparison["differences"].as_array().unwrap().iter().any(|it| it["figure"] == name);
    assert!(
        ["insert_time", "total_time", "decode_time", "payload", &format!("cpu.{server}")]
            .into_iter()
            .all(named)
    );
    for encoding in ["avro", "json"] {
        assert_eq!(rows(&experiment.path("rows.db"), &format!("rows_{encoding}")), 300);
    }
    for name in ["summary.json", "report.txt", "report.md", "report.html", "report.csv", "report.xml"] {
        assert!(experiment.path("run").join(name).metadata().unwrap().len() > 0, "{name}");
    }
    let text = std::fs::read_to_string(experiment.path("run/report.txt")).unwrap();
    assert!(text.contains("[0, 300, ") && text.contains(&format!("CPU of {server}")), "{text}");
    // What was written is read again: a run out of its lines.
    let of_run = experiment.path("run/001-avro");
    let said = says(["report".as_ref(), of_run.as_os_str(), "--format".as_ref(), "json".as_ref()]);
    let again: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, &again["workloads"]), (Some(0), &ran.runs[0]["workloads"]), "{}", said.err);
}

#[test]
fn rows_go_into_postgresql_and_no_password_into_anything() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let server = Postgresql::start();
    let (place, password) = (server.place(), server.password_file());
    let into = format!("partition: day, save: '{place}', save_password_file: {}", password.display());
    let rest = format!("{BOTH}2");
    let asked = Asked { into: &into, mqtt: "qos: 1, user: someone", rest: &rest, count: 200, ..ASKED };
    let experiment = Experiment::of(&broker.address(), &asked);
    let ran = experiment.run();
    assert_eq!((ran.said.code, ran.total("counted")), (Some(0), 800), "{}", ran.said.err);
    // Nobody has asked to empty the table: both runs are in it, and each has counted its own.
    let mut client = server.client();
    let row = client.query_one("SELECT count(*) FROM rows_json", &[]).unwrap();
    assert_eq!(row.get::<_, i64>(0), 400);
    let days = "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'rows_json'::regclass";
    let days: Vec<String> = client.query(days, &[]).unwrap().iter().map(|row| row.get(0)).collect();
    // The second day may begin while it runs.
    assert!(
        (1..=2).contains(&days.len()) && days.iter().all(|day| day.starts_with("rows_json_2")),
        "{days:?}"
    );
    let mut folders = vec![experiment.path("run")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let text = std::fs::read(path).unwrap();
                assert!(!String::from_utf8_lossy(&text).contains("pass'word"));
            }
        }
    }
}

#[test]
fn rows_go_into_kafka_as_json_and_are_counted_there() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let server = Kafka::start();
    let into = format!("empty: true, save: 'kafka://{}'", server.address());
    let rest = format!("{BOTH}2");
    let asked = Asked { into: &into, rest: &rest, count: 200, ..ASKED };
    let experiment = Experiment::of(&broker.address(), &asked);
    let ran = experiment.run();
    assert_eq!((ran.said.code, ran.total("counted")), (Some(0), 800), "{}", ran.said.err);
    let records = server.records("rows_json");
    assert_eq!(records.len(), 200, "what the first run left is given up");
    let names = ["topic", "publisher", "seq", "record", "received", "payload_hash"];
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(SCHEMA).unwrap()).unwrap();
    for record in records {
        assert!(record.headers.iter().map(|(name, _)| name.as_str()).eq(names), "{record:?}");
        let row: Value = serde_json::from_str(&record.value).unwrap();
        let fields = schema["fields"].as_array().unwrap();
        assert!(fields.iter().all(|field| row.get(field["name"].as_str().unwrap()).is_some()), "{row}");
    }
}

#[test]
fn rows_go_into_clickhouse_and_are_counted_there() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let server = ClickHouseServer::start();
    let into = format!(
        "save: '{}', save_password_file: {}, empty: true, durability: normal",
        server.place(),
        server.password_file().display()
    );
    let rest = format!("{BOTH}2");
    let asked = Asked { into: &into, count: 200, rest: &rest, ..ASKED };
    let ran = Experiment::of(&broker.address(), &asked).run();
    assert_eq!((ran.said.code, ran.total("counted")), (Some(0), 800), "{}", ran.said.err);
    assert_eq!((ran.total("lost"), ran.total("duplicate")), (0, 0));
    for encoding in ["avro", "json"] {
        let query = format!("SELECT count() FROM rows_{encoding} FINAL");
        assert_eq!(server.number(&query), Ok(200), "it is emptied before each run");
    }
}

#[test]
fn a_password_that_a_scenario_lacks_is_a_mistake_of_the_scenario() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let server = Postgresql::start();
    let into = format!("save: '{}'", server.place());
    let said = says(Experiment::of(&broker.address(), &Asked { into: &into, ..ASKED }).arguments());
    assert_eq!(said.code, Some(104), "{}", said.err);
    assert!(said.err.contains("PGPASSWORD") && said.err.contains("save_password_file"), "{}", said.err);
}

#[test]
fn a_run_speaks_3_1_1_to_a_broker_that_knows_nothing_else_and_says_how_durable_its_rows_were() {
    let _machine = shared();
    // What it counts as a session that outlives its connection would still get messages in the next repetition.
    let broker = Mosquitto::with(
        "persistence false\nmax_queued_messages 0\nlog_dest file {directory}/log\nlog_type all",
    );
    let into = format!("{}, durability: normal, batch: 1", ASKED.into);
    let rest = format!("{BOTH}2");
    let asked = Asked { into: &into, mqtt: "qos: 1, mqtt_version: 3.1.1", count: 100, rest: &rest, ..ASKED };
    let experiment = Experiment::of(&broker.address(), &asked);
    let ran = experiment.run();
    assert_eq!((ran.said.code, ran.total("counted")), (Some(0), 400), "{}", ran.said.err);
    assert_eq!((ran.total("lost"), ran.total("duplicate")), (0, 0));
    let log = broker.log();
    // mosquitto calls 3.1.1 p2 and 5 p5, a clean session c1.
    assert!(log.contains("(p2, c1,") && !log.contains("(p5,") && !log.contains("(p2, c0,"), "{log}");
    let text = std::fs::read_to_string(experiment.path("run/001-avro/report.txt")).unwrap();
    // Its lines are broken where the terminal ends.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("less than full: a crash of the machine could have taken the last commits"),
        "{text}"
    );
    const CONTRADICTION: &str = "insecure: true\ncacert: ca.pem\nnode_exporter: 'https://127.0.0.1:9'";
    for (into, mqtt, rest, words) in [
        ("save: 'parquet:{directory}/p', durability: off", "qos: 1", "", "a file of Parquet is on the disk"),
        ("save: 'sqlite:{directory}/p.db', durability: some", "qos: 1", "", "write full, normal or off"),
        ("save: 'sqlite:{directory}/p.db'", "mqtt_version: 4.2", "", "write 5 or 3.1.1"),
        ("save: 'sqlite:{directory}/p.db'", "qos: 1", CONTRADICTION, "leave one out"),
    ] {
        let refused = Experiment::of(&broker.address(), &Asked { into, mqtt, rest, ..ASKED });
        let said = says(refused.arguments().iter().map(String::as_str));
        assert_eq!((said.code, said.err.lines().count()), (Some(104), 1), "{words}: {}", said.err);
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
}

#[test]
fn what_a_broker_drops_before_a_slow_saver_is_lost_to_the_last_message_and_the_broker_is_named() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 10");
    let into = format!("{}, batch: 1", ASKED.into);
    let rest = format!("{BOTH}1");
    // The window is of both: of the publisher it says how many may be unacknowledged, which the broker acknowledges at once.
    let asked =
        Asked { into: &into, mqtt: "qos: 1, window: 5", settle: "500ms", count: 3_000, rest: &rest, ..ASKED };
    let experiment = Experiment::of(&broker.address(), &asked);
    let ran = experiment.run();
    assert_eq!(ran.said.code, Some(99), "{}", ran.said.err);
    for (it, encoding) in ran.ingested.iter().zip(["avro", "json"]) {
        let saved = rows(&experiment.path("rows.db"), &format!("rows_{encoding}"));
        assert!(saved < 3_000, "the broker dropped none");
        assert_eq!((number(it, "published"), number(it, "lost")), (3_000, 3_000 - saved));
        assert_eq!(it["classic"][0], 1);
    }
    let imbalances = ran.imbalances();
    assert_eq!(imbalances.len(), 2, "{imbalances:?}");
    for (stage, text) in imbalances {
        assert_eq!(stage, "broker");
        assert!(text.starts_with(&format!("mqtt://{} did not deliver ", broker.address())), "{text}");
    }
    // Times of a part are none of the whole, and are not compared.
    let differences = ran.summary["comparisons"][0]["differences"].as_array().unwrap();
    assert!(differences.iter().all(|it| it["figure"] != "insert_time"), "{differences:?}");
}

#[test]
fn what_the_origin_drops_doubles_and_withholds_is_told_exactly() {
    let _machine = shared();
    for (fault, lost, duplicate, unacknowledged, code) in [
        ("drop unit=every:10", 20, 0, 0, 99),
        ("duplicate unit=every:10 viewer=1", 0, 20, 0, 0),
        // What the broker never acknowledges fails the run of its publishers.
        ("withhold unit=every:10", 0, 0, 20, 99),
    ] {
        let faults = vec![fault.parse().unwrap()];
        let origin =
            Origin::start(&OriginConfig { faults, ..OriginConfig::default() }.listening(&MQTT, ANY_PORT))
                .unwrap();
        let address = origin.address("mqtt").unwrap().to_string();
        let ran = Experiment::of(&address, &Asked { count: 205, ..ASKED }).run();
        assert_eq!(ran.said.code, Some(code), "{fault}: {:#}", ran.summary);
        let found = (ran.total("lost"), ran.total("duplicate"), 205 - ran.total("acknowledged"));
        assert_eq!(found, (lost, duplicate, unacknowledged), "{fault}");
        assert_eq!(ran.total("saved"), 205 - lost, "{fault}");
    }
}

#[test]
fn an_interrupted_series_leaves_what_was_complete() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let rest = format!("{BOTH}1000");
    let experiment =
        Experiment::of(&broker.address(), &Asked { count: 50, settle: "100ms", rest: &rest, ..ASKED });
    let started = experiment.start();
    let file = experiment.path("run/summary.json");
    let made = || {
        let text = std::fs::read(&file).unwrap_or_default();
        let summary: Value = serde_json::from_slice(&text).unwrap_or_default();
        summary["runs"].as_array().map_or(0, Vec::len)
    };
    soon("two runs are made", || made() >= 2);
    started.interrupt();
    let ran = experiment.ran(experiment.said(started));
    assert_eq!((ran.said.code, &ran.summary["ending"]), (Some(105), &"interrupted".into()));
    assert_eq!(ran.summary, experiment.written("run"));
    let whole = ran.summary["runs"].as_array().unwrap().iter().zip(&ran.ingested);
    let whole: Vec<_> = whole.filter(|(run, _)| run["outcome"] == "completed").collect();
    assert!(whole.len() >= 2 && whole.iter().all(|(_, it)| number(it, "saved") == 50), "{:#}", ran.summary);
}

#[test]
fn a_broker_or_a_database_that_is_gone_is_one_line_and_the_artefacts_are_there() {
    let _machine = shared();
    let nobody = format!("127.0.0.1:{}", free_port());
    let twice = Asked { rest: "repeat: 2", ..ASKED };
    let line = |said: &Said| said.err.lines().filter(|line| line.starts_with("weir: ")).count();
    let experiment = Experiment::of(&nobody, &twice);
    let said = says(experiment.arguments());
    assert_eq!((said.code, line(&said)), (Some(97), 1), "{}", said.err);
    assert!(said.err.contains(&format!("broker: mqtt://{nobody}: Connection refused")), "{}", said.err);
    assert!(experiment.written("run")["ending"]["failed"]["words"].as_str().unwrap().contains("refused"));

    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let into = format!("save: 'postgres://u:s3cr3t@127.0.0.1:{}/d'", free_port());
    let experiment = Experiment::of(&broker.address(), &Asked { into: &into, ..twice });
    let said = says(experiment.arguments());
    assert_eq!((said.code, line(&said)), (Some(97), 1), "{}", said.err);
    assert!(
        said.err.contains("table: postgres://127.0.0.1:") && !said.err.contains("s3cr3t"),
        "{}",
        said.err
    );
    assert!(!experiment.written("run").to_string().contains("s3cr3t"));

    // One that goes while it works.
    let mut broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let asked = Asked { count: 100_000, rate: "500/s", mqtt: "qos: 1, no_reconnect: true", ..ASKED };
    let experiment = Experiment::of(&broker.address(), &asked);
    let started = experiment.start();
    let count = || {
        let connection = rusqlite::Connection::open(experiment.path("rows.db")).ok()?;
        let query = "SELECT count(*) FROM rows_avro";
        connection.query_row(query, (), |row| row.get::<_, i64>(0)).ok()
    };
    soon("rows come", || count().unwrap_or(0) > 0);
    broker.stop();
    let ran = experiment.ran(experiment.said(started));
    assert_eq!(ran.said.code, Some(99), "{}", ran.said.err);
    let failed = &ran.summary["workloads"][1]["failures"][0];
    // A broker that ends with messages unread resets its links; one that has read all closes them.
    assert!(
        ["closed", "reset"].iter().any(|word| failed["kind"].as_str().unwrap().contains(word)),
        "{failed}"
    );
    let imbalances = ran.imbalances();
    assert!(imbalances[0].0 == "publish" && imbalances[0].1.contains("of 100000 messages"), "{imbalances:?}");
    assert_eq!(rows(&experiment.path("rows.db"), "rows_avro"), ran.total("saved"));
}

#[test]
fn a_scenario_that_saves_says_what_is_wrong_with_it() {
    let of = |asked: &Asked<'_>| says(Experiment::of("127.0.0.1:9", asked).arguments());
    let into = |into| Asked { into, ..ASKED };
    for (asked, words) in [
        (into("save: 'sqlite:x.db', bach: 3"), "unknown key `bach`; did you mean `batch`?"),
        (into("save: 'mysql:x'"), "save: this is no place to save to"),
        (into("batch: 3"), "say where rows go"),
        (Asked { rest: "thresholds: [losses == 0]", ..ASKED }, "there is no figure 'losses'"),
        (Asked { mqtt: "qos: 4", ..ASKED }, "4 is not in 0..=2"),
        (
            Asked { workload: "    play: 'mqtt://h/x'\n", ..ASKED },
            "give one of `play`, `publish`, `ingest` and `probe`",
        ),
    ] {
        let said = of(&asked);
        assert_eq!((said.code, said.err.lines().count()), (Some(104), 1), "{words}: {}", said.err);
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
}

#[test]
fn what_is_late_beside_what_came_twice_is_not_lost() {
    let _machine = shared();
    let faults = ["duplicate unit=every:2 viewer=1", "stall unit=150 for=700ms"];
    let faults = faults.map(|fault| fault.parse().unwrap()).into();
    let origin =
        Origin::start(&OriginConfig { faults, ..OriginConfig::default() }.listening(&MQTT, ANY_PORT))
            .unwrap();
    let asked = Asked { count: 205, rate: "300/s", settle: "3s", ..ASKED };
    let ran = Experiment::of(&origin.address("mqtt").unwrap().to_string(), &asked).run();
    assert_eq!((ran.said.code, ran.total("lost"), ran.total("saved")), (Some(0), 0, 205), "{}", ran.said.err);
    assert!(ran.total("duplicate") > 50, "{:#}", ran.summary);
}

#[test]
fn another_publisher_on_the_topic_is_named_and_does_not_go_on_for_ever() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let url = broker.url("e/avro/{seq}");
    let directory = tempfile::tempdir().unwrap();
    let mut other = weir();
    other.args([
        "publish",
        &url,
        "--payload",
        &format!("avro:{SCHEMA}"),
        "--rate",
        "50/s",
        "-d",
        "60s",
        "-o",
    ]);
    let _other = KilledOnDrop::start(other.arg(directory.path().join("run")));
    // Its first second is over, however long it took to come so far.
    let published = directory.path().join("run/intervals.ndjson");
    soon("the other one publishes", || published.metadata().is_ok_and(|it| it.len() > 0));
    let asked = Asked { count: 100, rate: "200/s", settle: "1s", ..ASKED };
    let experiment = Experiment::of(&broker.address(), &asked);
    let ran = experiment.ran(says(experiment.arguments()));
    let imbalances = ran.imbalances();
    assert!(
        imbalances.iter().any(|(stage, text)| stage == "broker" && text.contains("topics of its own")),
        "{imbalances:?}: {}",
        ran.said.err
    );
    assert_eq!(ran.ingested[0]["classic"][0], 1);
}

#[test]
fn somebody_elses_messages_are_saved_for_a_time() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let directory = tempfile::tempdir().unwrap();
    let payload = format!("avro:{SCHEMA}");
    let url = broker.url("e/avro/{seq}");
    let mut other = weir();
    other.args(["publish", &url, "--payload", &payload, "--rate", "200/s", "-d", "60s", "-o"]);
    let first = broker.client("mosquitto_sub", &["-t", "e/avro/+", "-C", "1"]);
    let _other = KilledOnDrop::start(other.arg(directory.path().join("other")));
    // A busy machine takes seconds to start it.
    assert!(first.wait_with_output().unwrap().status.success());
    let scenario = directory.path().join("scenario.yaml");
    let file = directory.path().join("rows.db");
    let text = format!(
        "workloads: [{{ingest: '{}', duration: 2s, into: {{schema: {SCHEMA}, table: t, save: 'sqlite:{}'}}}}]",
        broker.url("e/avro/+"),
        file.display()
    );
    std::fs::write(&scenario, text).unwrap();
    let said = says([
        "run".as_ref(),
        scenario.as_os_str(),
        "--json".as_ref(),
        "-".as_ref(),
        "-o".as_ref(),
        directory.path().join("run").as_os_str(),
    ]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let summary: Value = serde_json::from_str(&said.out).unwrap();
    let ingested = &summary["workloads"][0]["ingested"];
    let saved = number(ingested, "saved");
    assert!(saved > 0 && saved == rows(&file, "t"), "{ingested:#}");
    assert_eq!((number(ingested, "lost"), &ingested["imbalances"]), (0, &Value::Array(Vec::new())));
}

#[test]
fn a_password_with_signs_of_urls_in_it_is_in_nothing() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false");
    for (probe, place) in [
        (false, "postgres://me:s3/cr3t@127.0.0.1:9/d"),
        (false, "postgres://me:s3?cr3t@127.0.0.1:9/d"),
        (true, "sql:postgres://me:33#cr3t@127.0.0.1:9/d#t"),
        (true, "http://me:33#cr3t@127.0.0.1:9"),
    ] {
        let into = if probe { "empty: false".to_owned() } else { format!("save: '{place}'") };
        let asked = Asked { probe: probe.then_some(place), into: &into, ..ASKED };
        let experiment = Experiment::of(&broker.address(), &asked);
        let said = says(experiment.arguments());
        let written = std::fs::read_to_string(experiment.path("run/run.json")).unwrap_or_default();
        for text in [&said.err, &said.out, &written] {
            assert!(!text.contains("cr3t") && !text.contains("me:"), "{place}: {text}");
        }
        assert!(said.code != Some(0) && said.err.lines().count() == 1, "{place}: {}", said.err);
    }
}
