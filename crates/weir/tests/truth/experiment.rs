//! Avro against JSON from publisher to table: each message accounted for, and whatever is lost named with its place.

use crate::support::{Kept, Mosquitto, Postgresql, Said, free_port, says, shared, soon, weir};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use weir_origin::{Origin, OriginConfig};

pub(crate) const SCHEMA: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/schemas/SimpleClass.avsc");

/// A scenario in a directory of its own.
pub(crate) struct Experiment {
    directory: TempDir,
}

impl Experiment {
    /// Messages go to this broker; the other lines are `save:` and what differs.
    pub(crate) fn of(broker: &str, lines: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let experiment = Self { directory };
        let text = format!(
            "name: truth\nexperiment:\n  publish: mqtt://{broker}/e/{{encoding}}/{{seq}}\n  schema: {SCHEMA}\n{}",
            lines.replace("{directory}", &experiment.directory.path().display().to_string())
        );
        std::fs::write(experiment.path("scenario.yaml"), text).unwrap();
        experiment
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn arguments(&self) -> Vec<String> {
        let path = |name: &str| self.path(name).display().to_string();
        vec!["run".into(), path("scenario.yaml"), "-o".into(), path("run"), "--json".into(), "-".into()]
    }

    pub(crate) fn run(&self) -> Ran {
        self.run_with(&[])
    }

    /// With these arguments behind the others.
    pub(crate) fn run_with(&self, more: &[&str]) -> Ran {
        let arguments = self.arguments();
        Ran::of(says(arguments.iter().map(String::as_str).chain(more.iter().copied())))
    }

    /// Starts it; what it says goes into files.
    fn start(&self) -> Kept {
        let file = |name: &str| std::fs::File::create(self.path(name)).unwrap();
        Kept::start(weir().args(self.arguments()).stdout(file("out")).stderr(file("err")))
    }

    /// Waits for the end of one that was started.
    fn said(&self, mut started: Kept) -> Said {
        let code = started.ended().code();
        let read = |name: &str| std::fs::read_to_string(self.path(name)).unwrap();
        Said { code, out: read("out"), err: read("err") }
    }

    /// What it has written.
    pub(crate) fn written(&self) -> Value {
        serde_json::from_slice(&std::fs::read(self.path("run/summary.json")).unwrap()).unwrap()
    }
}

pub(crate) struct Ran {
    pub(crate) summary: Value,
    pub(crate) said: Said,
}

impl Ran {
    fn of(said: Said) -> Self {
        let ran = Self::read(said);
        ran.repetitions().iter().for_each(balanced);
        ran
    }

    /// One whose sums others may have disturbed.
    fn read(said: Said) -> Self {
        assert!(!said.err.contains("panicked"), "{}", said.err);
        let summary = serde_json::from_str(&said.out)
            .unwrap_or_else(|error| panic!("{error}: {:?}; stderr: {}", said.out, said.err));
        Self { summary, said }
    }

    pub(crate) fn repetitions(&self) -> &[Value] {
        self.summary["repetitions"].as_array().unwrap()
    }

    /// A sum of an account over all repetitions.
    pub(crate) fn total(&self, count: &str) -> u64 {
        self.repetitions().iter().map(|it| number(it, count)).sum()
    }

    pub(crate) fn imbalances(&self) -> Vec<(String, String)> {
        let all = self.repetitions().iter().flat_map(|it| it["imbalances"].as_array().unwrap());
        all.map(|it| (it["stage"].as_str().unwrap().to_owned(), it["text"].as_str().unwrap().to_owned()))
            .collect()
    }
}

pub(crate) fn number(repetition: &Value, count: &str) -> u64 {
    repetition["account"][count].as_u64().unwrap_or_else(|| panic!("{count}: {repetition:#}"))
}

/// The three sums that hold for each repetition, whatever a broker does.
fn balanced(repetition: &Value) {
    let of = |count| number(repetition, count);
    assert_eq!(of("published"), of("received") - of("duplicate") + of("lost"), "{repetition:#}");
    assert_eq!(of("received"), of("saved") + of("dead_lettered") + of("duplicate"), "{repetition:#}");
    assert_eq!((of("saved"), of("dead_lettered")), (of("counted"), of("counted_dead")), "{repetition:#}");
}

fn rows(file: &Path, table: &str) -> u64 {
    let connection = rusqlite::Connection::open(file).unwrap();
    let query = format!("SELECT count(*) FROM {table}");
    connection.query_row(&query, (), |row| row.get::<_, i64>(0)).unwrap() as u64
}

#[test]
fn each_repetition_begins_with_an_empty_table_and_ends_with_every_record_in_it() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let experiment = Experiment::of(
        &broker.address(),
        "  repetitions: 3\n  count: 300\n  batch: 50\n  settle: 300ms\n  save: sqlite:{directory}/rows.db\nthresholds: [json.insert < 60s]\n",
    );
    let ran = experiment.run();
    assert_eq!(ran.said.code, Some(0), "{}", ran.said.err);
    let order: Vec<_> = ran
        .repetitions()
        .iter()
        .map(|it| (it["repetition"].as_u64().unwrap(), it["encoding"].as_str().unwrap()))
        .collect();
    assert_eq!(order, [(1, "avro"), (1, "json"), (2, "json"), (2, "avro"), (3, "avro"), (3, "json")]);
    for repetition in ran.repetitions() {
        assert_eq!((number(repetition, "acknowledged"), number(repetition, "counted")), (300, 300));
        let classic = repetition["classic"].as_array().unwrap();
        assert_eq!((&classic[0], &classic[1]), (&0.into(), &300.into()));
        let at = |stage: &str, end: &str| repetition[stage][end].as_f64().unwrap();
        assert_eq!(at("publish", "first_seconds"), 0.0);
        let mut before = 0.0;
        for stage in ["publish", "receive", "decode", "commit"] {
            let (first, last) = (at(stage, "first_seconds"), at(stage, "last_seconds"));
            assert!(before <= first && first <= last, "{stage}: {repetition:#}");
            before = first;
        }
        assert!(at("commit", "last_seconds") >= at("publish", "last_seconds"));
        assert!(number(repetition, "counted") * 900 < repetition["table_bytes"].as_u64().unwrap());
    }
    let comparison = &ran.summary["comparison"];
    assert_eq!((&comparison["base"], &comparison["pairs"]), (&"avro".into(), &3.into()));
    assert!(ran.summary["conclusion"].as_str().unwrap().contains("times the bytes"), "{:#}", ran.summary);
    for encoding in ["avro", "json"] {
        assert_eq!(rows(&experiment.path("rows.db"), &format!("weir_experiment_{encoding}")), 300);
    }
    for name in ["summary.json", "report.txt", "report.md", "report.html", "report.csv", "report.xml"] {
        assert!(experiment.path("run").join(name).metadata().unwrap().len() > 0, "{name}");
    }
    // What was written is read again.
    let said =
        says(["report".as_ref(), experiment.path("run").as_os_str(), "--format".as_ref(), "csv".as_ref()]);
    assert_eq!((said.code, said.out.lines().count()), (Some(0), 7), "{}", said.err);
    let text = std::fs::read_to_string(experiment.path("run/report.txt")).unwrap();
    assert!(text.contains("[0, 300, "), "{text}");
}

#[test]
fn rows_go_into_postgresql_and_no_password_into_anything() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let server = Postgresql::start();
    let lines = format!(
        "  repetitions: 2\n  count: 200\n  settle: 300ms\n  save: {}\n  save_password_file: {}\n  user: someone\n",
        server.place(),
        server.password_file().display()
    );
    let experiment = Experiment::of(&broker.address(), &lines);
    let ran = experiment.run();
    assert_eq!((ran.said.code, ran.total("counted")), (Some(0), 800), "{}", ran.said.err);
    let mut client = server.client();
    let row = client.query_one("SELECT count(*) FROM weir_experiment_json", &[]).unwrap();
    assert_eq!(row.get::<_, i64>(0), 200);
    for entry in std::fs::read_dir(experiment.path("run")).unwrap() {
        let text = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!String::from_utf8_lossy(&text).contains("pass'word"));
    }
}

#[test]
fn a_password_that_a_scenario_lacks_is_a_mistake_of_the_scenario() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let server = Postgresql::start();
    let experiment = Experiment::of(&broker.address(), &format!("  save: {}\n", server.place()));
    let said = says(experiment.arguments());
    assert_eq!(said.code, Some(104), "{}", said.err);
    assert!(said.err.contains("PGPASSWORD") && said.err.contains("save_password_file"), "{}", said.err);
}

#[test]
fn an_experiment_speaks_3_1_1_to_a_broker_that_knows_nothing_else_and_says_how_durable_its_rows_were() {
    let _machine = shared();
    // What it counts as a session that outlives its connection would still get messages in the next repetition.
    let broker = Mosquitto::with(
        "persistence false\nmax_queued_messages 0\nlog_dest file {directory}/log\nlog_type all",
    );
    let experiment = Experiment::of(
        &broker.address(),
        "  mqtt_version: 3.1.1\n  durability: normal\n  repetitions: 2\n  count: 100\n  batch: 1\n  settle: 300ms\n  save: sqlite:{directory}/rows.db\n",
    );
    let ran = experiment.run();
    assert_eq!((ran.said.code, ran.total("counted")), (Some(0), 400), "{}", ran.said.err);
    assert_eq!((ran.total("lost"), ran.total("duplicate")), (0, 0));
    let log = broker.log();
    // mosquitto calls 3.1.1 p2 and 5 p5, a clean session c1.
    assert!(log.contains("(p2, c1,") && !log.contains("(p5,") && !log.contains("(p2, c0,"), "{log}");
    let text = std::fs::read_to_string(experiment.path("run/report.txt")).unwrap();
    // Its lines are broken where the terminal ends.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("less than full: a crash of the machine could have taken the last commits"),
        "{text}"
    );
    for (lines, words) in [
        ("  save: parquet:{directory}/p\n  durability: off\n", "a file of Parquet is on the disk"),
        ("  save: sqlite:{directory}/p.db\n  durability: some\n", "write full, normal or off"),
        ("  save: sqlite:{directory}/p.db\n  mqtt_version: 4.2\n", "write 5 or 3.1.1"),
        ("  save: sqlite:{directory}/p.db\ninsecure: true\ncacert: ca.pem\n", "leave one out"),
    ] {
        let refused = Experiment::of(&broker.address(), lines);
        let said = says(refused.arguments().iter().map(String::as_str));
        assert_eq!((said.code, said.err.lines().count()), (Some(104), 1), "{lines}: {}", said.err);
        assert!(said.err.contains(words), "{lines}: {}", said.err);
    }
}

#[test]
fn what_a_broker_drops_before_a_slow_saver_is_lost_to_the_last_message_and_the_broker_is_named() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 10");
    let lines = "  repetitions: 1\n  count: 3000\n  batch: 1\n  receive_window: 5\n  settle: 500ms\n  save: sqlite:{directory}/rows.db\n";
    let experiment = Experiment::of(&broker.address(), lines);
    let ran = experiment.run();
    assert_eq!(ran.said.code, Some(99), "{}", ran.said.err);
    for repetition in ran.repetitions() {
        let encoding = repetition["encoding"].as_str().unwrap();
        let saved = rows(&experiment.path("rows.db"), &format!("weir_experiment_{encoding}"));
        assert!(saved < 3_000, "the broker dropped none");
        assert_eq!((number(repetition, "published"), number(repetition, "lost")), (3_000, 3_000 - saved));
        assert_eq!(repetition["classic"][0], 1);
    }
    let imbalances = ran.imbalances();
    assert_eq!(imbalances.len(), 2, "{imbalances:?}");
    for (stage, text) in imbalances {
        assert_eq!(stage, "broker");
        assert!(text.starts_with(&format!("mqtt://{} did not deliver ", broker.address())), "{text}");
    }
    assert!(ran.summary["conclusion"].as_str().unwrap().starts_with("No comparison: "));
}

#[test]
fn what_the_origin_drops_doubles_and_withholds_is_told_exactly() {
    let _machine = shared();
    for (fault, lost, duplicate, unacknowledged, code) in [
        ("drop unit=every:10", 20, 0, 0, 99),
        ("duplicate unit=every:10 viewer=1", 0, 20, 0, 0),
        ("withhold unit=every:10", 0, 0, 20, 0),
    ] {
        let mqtt = Some("127.0.0.1:0".parse().unwrap());
        let faults = vec![fault.parse().unwrap()];
        let origin = Origin::start(&OriginConfig { mqtt, faults, ..OriginConfig::default() }).unwrap();
        let lines = "  encodings: [avro]\n  repetitions: 1\n  count: 205\n  settle: 300ms\n  save: sqlite:{directory}/rows.db\n";
        let ran = Experiment::of(&origin.addresses().mqtt.unwrap().to_string(), lines).run();
        assert_eq!(ran.said.code, Some(code), "{fault}: {:#}", ran.summary);
        let found = (ran.total("lost"), ran.total("duplicate"), 205 - ran.total("acknowledged"));
        assert_eq!(found, (lost, duplicate, unacknowledged), "{fault}");
        assert_eq!(ran.total("saved"), 205 - lost, "{fault}");
    }
}

#[test]
fn an_interrupted_experiment_leaves_what_was_complete() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let lines = "  repetitions: 1000\n  count: 50\n  settle: 100ms\n  save: sqlite:{directory}/rows.db\n";
    let experiment = Experiment::of(&broker.address(), lines);
    let started = experiment.start();
    let file = experiment.path("run/summary.json");
    let made = || {
        let text = std::fs::read(&file).unwrap_or_default();
        let summary: Value = serde_json::from_slice(&text).unwrap_or_default();
        summary["repetitions"].as_array().map_or(0, Vec::len)
    };
    soon("two repetitions are made", || made() >= 2);
    started.interrupt();
    let ran = Ran::of(experiment.said(started));
    assert_eq!((ran.said.code, &ran.summary["ending"]), (Some(105), &"interrupted".into()));
    assert_eq!(ran.summary, experiment.written());
    assert!(ran.repetitions().len() >= 2 && ran.total("saved") == 50 * ran.repetitions().len() as u64);
}

#[test]
fn a_broker_or_a_database_that_is_gone_is_one_line_and_the_artefacts_are_there() {
    let _machine = shared();
    let nobody = format!("127.0.0.1:{}", free_port());
    let experiment = Experiment::of(&nobody, "  save: sqlite:{directory}/rows.db\n");
    let said = says(experiment.arguments());
    assert_eq!(said.code, Some(97), "{}", said.err);
    assert!(said.err.contains(&format!("broker: mqtt://{nobody}: Connection refused")), "{}", said.err);
    assert!(experiment.written()["ending"]["failed"].as_str().unwrap().contains("refused"));

    let broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let place = format!("postgres://u:s3cr3t@127.0.0.1:{}/d", free_port());
    let experiment = Experiment::of(&broker.address(), &format!("  save: {place}\n"));
    let said = says(experiment.arguments());
    assert_eq!(said.code, Some(97), "{}", said.err);
    assert!(
        said.err.contains("table: postgres://127.0.0.1:") && !said.err.contains("s3cr3t"),
        "{}",
        said.err
    );
    assert!(!experiment.written().to_string().contains("s3cr3t"));

    // One that goes while it works.
    let mut broker = Mosquitto::with("persistence false\nmax_queued_messages 0");
    let lines = "  repetitions: 1\n  count: 100000\n  rate: 500/s\n  save: sqlite:{directory}/rows.db\n";
    let experiment = Experiment::of(&broker.address(), lines);
    let started = experiment.start();
    let count = || {
        let connection = rusqlite::Connection::open(experiment.path("rows.db")).ok()?;
        let query = "SELECT count(*) FROM weir_experiment_avro";
        connection.query_row(query, (), |row| row.get::<_, i64>(0)).ok()
    };
    soon("rows come", || count().unwrap_or(0) > 0);
    broker.stop();
    let said = experiment.said(started);
    assert_eq!(said.code, Some(97), "{}", said.err);
    // A broker that ends with messages unread resets its links; one that has read all closes them.
    let ended = said.err.contains("closed") || said.err.contains("reset");
    assert!(said.err.contains("publish: mqtt://") && ended, "{}", said.err);
    assert!(experiment.written()["ending"]["failed"].is_string());
}

#[test]
fn a_scenario_of_an_experiment_says_what_is_wrong_with_it() {
    for (lines, words) in [
        ("  save: sqlite:x.db\n  repetitons: 3\n", "unknown key `repetitons`; did you mean `repetitions`?"),
        ("  save: mysql:x\n", "experiment: save: this is no place to save to"),
        ("  save: sqlite:x.db\n  encodings: [avro, xml]\n", "'xml' is no encoding; write avro or json"),
        ("  save: sqlite:x.db\nthresholds: [losses == 0]\n", "there is no figure 'losses'"),
        ("  save: sqlite:x.db\nworkloads: [{play: 'mqtt://h/x'}]\n", "`workloads` is of workloads"),
        ("  save: sqlite:x.db\n  qos: 4\n", "'4' is no QoS"),
    ] {
        let said = says(Experiment::of("127.0.0.1:9", lines).arguments());
        assert_eq!((said.code, said.err.lines().count()), (Some(104), 1), "{}", said.err);
        assert!(said.err.contains(words), "{lines}: {}", said.err);
    }
}

#[test]
fn what_is_late_beside_what_came_twice_is_not_lost() {
    let _machine = shared();
    let mqtt = Some("127.0.0.1:0".parse().unwrap());
    let faults = ["duplicate unit=every:2 viewer=1", "stall unit=150 for=700ms"];
    let faults = faults.map(|fault| fault.parse().unwrap()).into();
    let origin = Origin::start(&OriginConfig { mqtt, faults, ..OriginConfig::default() }).unwrap();
    let lines = "  encodings: [avro]\n  repetitions: 1\n  count: 205\n  rate: 300/s\n  settle: 3s\n  save: sqlite:{directory}/rows.db\n";
    let ran = Experiment::of(&origin.addresses().mqtt.unwrap().to_string(), lines).run();
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
    let _other = Kept::start(other.arg(directory.path().join("run")));
    let lines = "  encodings: [avro]\n  repetitions: 1\n  count: 100\n  save: sqlite:{directory}/rows.db\n";
    let experiment = Experiment::of(&broker.address(), &format!("{lines}  rate: 200/s\n"));
    let ran = Ran::read(says(experiment.arguments()));
    let imbalances = ran.imbalances();
    assert!(
        imbalances.iter().any(|(stage, text)| stage == "broker" && text.contains("topics of its own")),
        "{imbalances:?}: {}",
        ran.said.err
    );
    assert_eq!(ran.repetitions()[0]["classic"][0], 1);
}

#[test]
fn a_password_with_signs_of_urls_in_it_is_in_nothing() {
    let _machine = shared();
    let broker = Mosquitto::with("persistence false");
    for (key, place) in [
        ("save", "postgres://me:s3/cr3t@127.0.0.1:9/d"),
        ("save", "postgres://me:s3?cr3t@127.0.0.1:9/d"),
        ("probe", "sql:postgres://me:33#cr3t@127.0.0.1:9/d#t"),
        ("probe", "http://me:33#cr3t@127.0.0.1:9"),
    ] {
        let experiment = Experiment::of(&broker.address(), &format!("  {key}: '{place}'\n"));
        let said = says(experiment.arguments());
        let written = std::fs::read_to_string(experiment.path("run/summary.json")).unwrap_or_default();
        for text in [&said.err, &said.out, &written] {
            assert!(!text.contains("cr3t") && !text.contains("me:"), "{place}: {text}");
        }
        assert!(said.code != Some(0) && said.err.lines().count() == 1, "{place}: {}", said.err);
    }
}
