//! Messages that another consumer takes: what became of them is what it has in its table.

use crate::support::experiment::{ASKED, Asked, Experiment, SCHEMA, number};
use crate::support::{Gateway, Ingester, Mosquitto, Postgresql, free_port, says, shared, soon};
use std::path::Path;
use weir_origin::{ANY_PORT, MQTT, Origin, OriginConfig};

pub(crate) const LOSSLESS: &str = "persistence false\nmax_queued_messages 0";

/// The other consumer: takes Avro, one insert a message, into this place.
pub(crate) fn consumer(url: &str, place: &str, more: &[&str]) -> Ingester {
    let port = free_port();
    let metrics = format!(":{port}");
    let mut arguments = vec![url, "--schema", SCHEMA, "--save", place, "--batch", "1", "--table", "other"];
    arguments.extend(["--live", &metrics].iter().chain(more));
    let ingester = Ingester::start(arguments);
    let granted = || Ingester::page(port).is_some_and(|page| page.contains("weir_ingest_subscribed 1"));
    soon("the other consumer is there", granted);
    ingester
}

/// The other consumer's table, which it makes beside its subscription and in its own time.
pub(crate) fn wait_for_table(server: &Postgresql) {
    soon("the other consumer's table is there", || server.client().query("SELECT 1 FROM other", &[]).is_ok());
}

/// The same in a file of SQLite.
fn wait_for_file(file: &Path) {
    let is_there = || {
        let connection = rusqlite::Connection::open(file).unwrap();
        connection.query_row("SELECT count(*) FROM other", (), |row| row.get::<_, i64>(0)).is_ok()
    };
    soon("the other consumer's table is there", is_there);
}

#[test]
fn what_does_not_come_to_another_consumers_table_is_lost_to_the_last_message() {
    let _machine = shared();
    let (broker, server) =
        (Mosquitto::with("persistence false\nmax_queued_messages 10"), Postgresql::start());
    let file = server.password_file();
    let slow = ["--save-password-file", file.to_str().unwrap(), "--window", "5"];
    let other = consumer(&broker.url("e/avro/+"), &server.place(), &slow);
    wait_for_table(&server);
    let probe = format!("sql:{}#other", server.place());
    let into = format!("save_password_file: {}", file.display());
    let workload = "    timeout: 5s\n";
    let asked = Asked { probe: Some(&probe), into: &into, workload, count: 3_000, ..ASKED };
    let ran = Experiment::of(&broker.address(), &asked).run();
    let rows = other.stop().total("saved");
    assert!(rows < 3_000, "the broker dropped none");
    assert_eq!(ran.said.code, Some(99), "{}", ran.said.err);
    assert_eq!((ran.total("counted"), ran.total("lost")), (rows, 3_000 - rows));
    let imbalances = ran.imbalances();
    assert_eq!(imbalances.len(), 1, "{imbalances:?}");
    assert_eq!(imbalances[0].0, "consumer");
    let words = format!("has {rows} of 3000 messages; the broker or its consumer lost {}", 3_000 - rows);
    assert!(imbalances[0].1.contains(&words), "{imbalances:?}");
}

#[test]
fn a_gateway_is_reset_waited_for_and_asked_as_the_original_does_it() {
    let _machine = shared();
    let broker = Mosquitto::with(LOSSLESS);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.db");
    let other = consumer(&broker.url("e/avro/+"), &format!("sqlite:{}", file.display()), &[]);
    wait_for_file(&file);
    let gateway = Gateway::start(&file, "other");
    let into = "save: 'sqlite:unused.db'";
    let asked = Asked { into, count: 200, settle: "500ms", rest: "repeat: 2", ..ASKED };
    let experiment = Experiment::of(&broker.address(), &asked);
    let ran = experiment.run_with(&["--probe", &gateway.url()]);
    assert_eq!(ran.said.code, Some(0), "{}", ran.said.err);
    assert_eq!((ran.total("published"), ran.total("counted"), ran.total("lost")), (400, 400, 0));
    assert_eq!(gateway.calls()[..3], ["reset/avro/200", "wait/NotifyAVRO/30", "measure"]);
    assert_eq!(gateway.calls().len(), 6);
    for repetition in &ran.ingested {
        assert_eq!((number(repetition, "saved"), &repetition["classic"][0]), (200, &0.into()));
        let stretch = |edge| repetition["commit"][edge].as_f64().unwrap();
        let inserted = (stretch("last_seconds") - stretch("first_seconds")) * 1e3;
        assert!((inserted - repetition["classic"][2].as_f64().unwrap()).abs() < 1.0, "{repetition:#}");
    }
    assert!(!experiment.path("unused.db").exists());
    other.stop();
}

#[test]
fn a_gateway_that_refuses_or_is_no_gateway_is_one_line_in_its_own_words() {
    let _machine = shared();
    let broker = Mosquitto::with(LOSSLESS);
    let asked = Asked { into: "save: 'sqlite:unused.db'", count: 10, ..ASKED };
    let said = |probe: &str| {
        let experiment = Experiment::of(&broker.address(), &asked);
        let mut arguments = experiment.arguments();
        arguments.extend(["--probe".to_owned(), probe.to_owned()]);
        let said = says(arguments);
        let summary = std::fs::read_to_string(experiment.path("run/run.json")).unwrap_or_default();
        assert!(!summary.contains("s3cret"), "{summary}");
        said
    };
    let gone = said(&format!("http://me:s3cret@127.0.0.1:{}", free_port()));
    assert_eq!(gone.code, Some(97), "{}", gone.err);
    assert!(gone.err.contains("consumer: http://127.0.0.1:") && gone.err.contains("refused"), "{}", gone.err);

    let refusing = Gateway::refusing("ERROR #5540: SQLCODE: -30 Table not found");
    let refused = said(&refusing.url());
    assert_eq!(refused.code, Some(97), "{}", refused.err);
    assert!(refused.err.contains("reset/avro/10: ERROR #5540: SQLCODE: -30"), "{}", refused.err);

    for (probe, words) in [
        ("sql:postgres://u:s3cret@127.0.0.1/d", "say which table the other consumer fills"),
        ("ftp://h", "this is no probe; write http://HOST:PORT/csp/mqtt/rest"),
    ] {
        let wrong = said(probe);
        assert_eq!((wrong.code, wrong.err.lines().count()), (Some(104), 1), "{}", wrong.err);
        assert!(wrong.err.contains(words) && !wrong.err.contains("s3cret"), "{}", wrong.err);
    }
}

#[test]
fn acknowledgements_that_never_come_do_not_keep_a_gateway_from_being_asked() {
    let _machine = shared();
    let faults = vec!["withhold unit=every:10".parse().unwrap()];
    let origin =
        Origin::start(&OriginConfig { faults, ..OriginConfig::default() }.listening(&MQTT, ANY_PORT))
            .unwrap();
    let address = origin.address("mqtt").unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("rows.db");
    let other = consumer(&format!("mqtt://{address}/e/avro/+"), &format!("sqlite:{}", file.display()), &[]);
    wait_for_file(&file);
    let gateway = Gateway::start(&file, "other");
    let probe = gateway.url();
    let asked = Asked { probe: Some(&probe), into: "empty: false", count: 50, settle: "500ms", ..ASKED };
    let ran = Experiment::of(&address, &asked).run();
    assert_eq!((ran.total("counted"), ran.total("acknowledged")), (50, 45), "{}", ran.said.err);
    let imbalances = ran.imbalances();
    assert!(matches!(&imbalances[..], [(stage, _)] if stage == "publish"), "{imbalances:?}");
    other.stop();
}
