//! Ingesters at agents, which share a subscription and save into one database: each message is a row once, whoever took it,
//! and whoever was lost meanwhile.

use super::reason;
use crate::support::{
    CHECKS_OF_THE_MACHINE, Crew, Measuring, Mosquitto, Postgresql, Run, report, says, shared, soon,
    start_measuring, weir,
};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The password of the database, as the test's server has it.
const PASSWORD: &str = "pass'word";

/// Publishers, ingesters, and the database between them.
struct Shared {
    broker: Mosquitto,
    database: Postgresql,
    folder: tempfile::TempDir,
}

impl Shared {
    fn start() -> Self {
        Self::with("max_inflight_messages 1000\nsys_interval 1")
    }

    /// One whose broker has more lines of configuration.
    fn with(lines: &str) -> Self {
        let lines = format!("persistence false\nmax_queued_messages 0\n{lines}");
        let (broker, database) = (Mosquitto::with(&lines), Postgresql::start());
        Self { broker, database, folder: tempfile::tempdir().unwrap() }
    }

    /// A scenario of four publishers of `count` messages at a rate each, and ingesters.
    fn file(&self, count: u32, rate: u32, publishers: &str, ingesters: &str) -> PathBuf {
        let (address, place) = (self.broker.address(), self.database.place());
        let password = self.database.password_file();
        let text = format!(
            "name: shared\ndrain: 500ms\nworkloads:\n  \
             - {{publish: 'mqtt://{address}/i/{{seq}}', clients: 4, qos: 1, count: {count}, rate: {rate}/s, \
             payload: 'size:200'{publishers}}}\n  \
             - {{ingest: 'mqtt://{address}/$share/g/i/#', {ingesters}, into: {{save: '{place}', \
             save_password_file: '{}', table: rows, empty: true}}}}\n",
            password.display()
        );
        let file = self.folder.path().join("shared.yaml");
        std::fs::write(&file, text).unwrap();
        file
    }

    fn run(&self, file: &Path, more: &[String]) -> Measuring {
        let mut command = weir();
        command.arg("run").arg(file).args(more).args(["--accept", CHECKS_OF_THE_MACHINE]);
        start_measuring(&mut command)
    }

    fn count(&self, what: &str) -> u64 {
        let row = self.database.client().query_one(&format!("SELECT count({what}) FROM rows"), &[]);
        row.map_or(0, |row| row.get::<_, i64>(0) as u64)
    }

    /// Each message is a row, and none is two.
    fn assert_each_once(&self, messages: u64) {
        let found = (self.count("*"), self.count("DISTINCT (publisher, seq)"));
        assert_eq!(found, (messages, messages));
    }

    /// Whether the broker keeps no session of a client that is gone. It counts them once a second.
    fn is_forgotten(&self) -> bool {
        std::thread::sleep(Duration::from_secs(2));
        let address = self.broker.address();
        let (host, port) = address.split_once(':').unwrap();
        let mut ask = crate::support::program("mosquitto_sub", "mosquitto-clients");
        ask.args(["-h", host, "-p", port, "-C", "1", "-W", "5", "-t", "$SYS/broker/clients/disconnected"]);
        String::from_utf8_lossy(&ask.output().unwrap().stdout).trim() == "0"
    }
}

fn account(run: &Run, what: &str) -> u64 {
    let workload = run.workloads().iter().find(|it| !it["ingested"].is_null());
    let ingested = &workload.unwrap_or_else(|| panic!("{:#}", run.summary["warnings"]))["ingested"];
    ingested["account"][what].as_u64().unwrap()
}

fn total(run: &Run, figure: &str) -> f64 {
    run.workloads()[1]["total"][figure]["total"].as_f64().unwrap_or_else(|| panic!("{figure}"))
}

/// No file below this directory has the password in it.
fn assert_without_secret(directory: &Path) {
    for entry in std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            assert_without_secret(&entry);
        } else {
            let text = String::from_utf8_lossy(&std::fs::read(&entry).unwrap()).into_owned();
            assert!(!text.contains(PASSWORD), "{}", entry.display());
        }
    }
}

#[test]
fn ingesters_of_one_process_share_a_subscription_and_each_message_is_one_row() {
    let _machine = shared();
    let shared = Shared::start();
    let run = shared.run(&shared.file(500, 1_000, "", "clients: 3"), &[]).finish();
    assert_eq!(run.code, 0, "{}", run.err);
    shared.assert_each_once(2_000);
    assert_eq!(
        (account(&run, "published"), account(&run, "saved"), account(&run, "lost")),
        (2_000, 2_000, 0)
    );
    assert_eq!(run.workloads()[1]["slots"]["planned"], 3);
    assert!(run.workloads()[1]["total"]["lag"]["count"].as_u64().unwrap() >= 3);
    // Each would get all messages, and two would write into one file.
    let file = shared.folder.path().join("wrong.yaml");
    let said = |filter: &str, save: &str| {
        let text = format!(
            "workloads:\n  - {{ingest: 'mqtt://{}/{filter}', clients: 2, duration: 1s, into: {{save: '{save}'}}}}\n",
            shared.broker.address()
        );
        std::fs::write(&file, text).unwrap();
        says(["run", file.to_str().unwrap()]).err
    };
    let place = shared.database.place();
    assert!(said("i/#", &place).contains("$share/NAME/i/#"), "{}", said("i/#", &place));
    assert!(said("$share/g/i/#", "sqlite:rows.db").contains("one database"));
}

#[test]
fn ingesters_at_two_agents_add_up_to_what_one_machine_would_have_saved() {
    let _machine = shared();
    let (crew, shared) = (Crew::start(3), Shared::start());
    let file = shared.file(600, 300, ", on: c", "clients: 4, on: [a, b]");
    let run = shared.run(&file, &crew.words(3)).finish();
    assert_eq!(run.code, 0, "{}", run.err);
    shared.assert_each_once(2_400);
    for (what, count) in [
        ("planned", 2_400),
        ("published", 2_400),
        ("acknowledged", 2_400),
        ("received", 2_400),
        ("saved", 2_400),
        ("counted", 2_400),
        ("lost", 0),
        ("duplicate", 0),
        ("dead_lettered", 0),
    ] {
        assert_eq!(account(&run, what), count, "{what}");
    }
    let figures = (total(&run, "saved"), total(&run, "units"), total(&run, "counted"), total(&run, "lost"));
    assert_eq!(figures, (2_400.0, 2_400.0, 2_400.0, 0.0));
    assert!(total(&run, "commits") >= 4.0 && total(&run, "insert_time") > 0.0);
    assert!(run.workloads()[1]["total"]["lag"]["count"].as_f64() == Some(total(&run, "commits")));
    assert_eq!(run.workloads()[1]["slots"]["planned"], 4);
    // Both have taken some of them, and what is written down says the same as the run did.
    let saved = |name: &str| total(&report(&crew.directories(name)[0]), "saved");
    assert!(saved("a") > 0.0 && saved("b") > 0.0 && saved("a") + saved("b") == 2_400.0);
    let again = report(run.directory());
    assert_eq!(again.summary["workloads"], run.summary["workloads"]);
    assert_without_secret(run.directory());
    ["a", "b", "c"].iter().flat_map(|name| crew.directories(name)).for_each(|it| assert_without_secret(&it));
    soon("the broker has forgotten the ingesters", || shared.is_forgotten());
    crew.wait(3);
}

#[test]
fn ingesters_in_websockets_are_what_they_are_on_links_here_and_at_agents() {
    let _machine = shared();
    // mosquitto 2.0.11 sends no more in a WebSocket once it could not write a packet in one piece, so that little is on its way at a time.
    let lines = "max_inflight_messages 2\nlog_dest file {directory}/log\nlog_type subscribe\n\
                 listener {sockets} 127.0.0.1\nprotocol websockets";
    let (crew, shared) = (Crew::start(3), Shared::with(lines));
    for (publishers, ingesters, words) in [
        ("", "clients: 2, client_id: here", Vec::new()),
        (", on: c", "clients: 2, on: [a, b], client_id: there", crew.words(3).to_vec()),
    ] {
        let file = shared.file(100, 100, publishers, ingesters);
        let text = std::fs::read_to_string(&file).unwrap();
        let (link, socket) = (shared.broker.url("$share"), shared.broker.socket_url("$share"));
        assert!(text.contains(&link), "{text}");
        std::fs::write(&file, text.replace(&link, &socket)).unwrap();
        let run = shared.run(&file, &words).finish();
        assert_eq!(run.code, 0, "{}", run.err);
        shared.assert_each_once(400);
        assert_eq!((account(&run, "saved"), account(&run, "lost"), account(&run, "duplicate")), (400, 0, 0));
    }
    let log = shared.broker.log();
    for subscriber in ["here-1", "here-2", "there-1", "there-2"] {
        assert!(log.contains(&format!("{subscriber} 1 $share/g/i/#")), "{log}");
    }
    crew.wait(3);
}

#[test]
fn a_message_that_came_to_an_ingester_of_a_killed_agent_is_saved_by_another_and_only_once() {
    let _machine = shared();
    let (mut crew, shared) = (Crew::start(3), Shared::start());
    let file = shared.file(1_000, 100, ", on: c", "clients: 4, on: [a, b]");
    let words = [&crew.words(3)[..], &["--allow-lost".to_owned(), "1".to_owned()]].concat();
    let measuring = shared.run(&file, &words);
    soon("some are saved", || shared.count("*") > 800);
    crew.agents[1].kill();
    let run = measuring.finish();
    assert_eq!(run.code, 0, "{}", run.err);
    shared.assert_each_once(4_000);
    let lost = reason(&run, "agent_lost");
    let text = lost["text"].as_str().unwrap();
    assert!(text.starts_with("agent b was lost after ") && lost["state"] == "degraded", "{lost}");
    assert_eq!((account(&run, "saved"), account(&run, "counted"), account(&run, "lost")), (4_000, 4_000, 0));
    let ingested = &run.workloads()[1]["ingested"];
    assert_eq!(ingested["imbalances"], Value::Array(Vec::new()), "{ingested:#}");
    let remarks = ingested["remarks"].to_string();
    assert!(
        remarks.contains("the sessions of 2 ingesters of 1 lost agent were taken over here"),
        "{remarks}"
    );
    soon("the broker has forgotten the ingesters", || shared.is_forgotten());
}

#[test]
fn what_agents_cannot_save_into_is_refused_before_anything_begins() {
    let _machine = shared();
    let (crew, mut shared) = (Crew::start(2), Shared::start());
    let file = shared.file(10, 100, ", on: a", "clients: 1, on: b");
    let text = std::fs::read_to_string(&file).unwrap();
    let said = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let words = ["run".to_owned(), file.display().to_string()];
        says(words.into_iter().chain(crew.words(2)))
    };
    let place = shared.database.place();
    let begin = text.find("into:").unwrap();
    let into = format!("{}into: {{save: 'sqlite:rows.db'}}}}\n", &text[..begin]);
    let file_of_its_own = said(&into);
    assert!(file_of_its_own.err.contains("agents save into one database"), "{}", file_of_its_own.err);
    let more = said(&text.replace(&place, &format!("{place}?sslmode=disable&application_name=x")));
    assert!(more.err.contains(": an agent takes a database by"), "{}", more.err);
    shared.database.stop();
    let gone = said(&text);
    assert_eq!(gone.code, Some(97), "{}", gone.err);
    assert!(crew.directories("a").is_empty() && crew.directories("b").is_empty(), "nothing was begun");
    crew.wait(2);
}
