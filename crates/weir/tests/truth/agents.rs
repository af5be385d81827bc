//! Many machines: what agents count is added up exactly, and what goes wrong with one of them is said.

mod hostile;
mod ingesters;
mod machines;
mod payloads;
mod places;
mod restarts;
mod searches;
mod sharers;
mod watching;

use crate::support::{
    Air, CHECKS_OF_THE_MACHINE, Crew, KilledOnDrop, Measuring, NatsServer, Run, air, config, measure, report,
    says, shared, soon, start_measuring, weir,
};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A counter of the first workload, out of the lines of a run directory.
fn sum_of_lines(directory: &Path, key: &str) -> f64 {
    let text = std::fs::read_to_string(directory.join("intervals.ndjson")).unwrap();
    text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()[key].as_f64().unwrap()).sum()
}

/// A distribution of a workload, out of the log of a run directory. What can be negative has its other half in `FIGURE-`, which is none between
/// machines of one kernel.
fn histogram(directory: &Path, workload: usize, figure: &str) -> Histogram<u64> {
    use base64::Engine as _;
    let log = std::fs::read(directory.join("histograms.hlog")).unwrap();
    let mut sum: Histogram<u64> = Histogram::new(3).unwrap();
    sum.auto(true);
    for entry in IntervalLogIterator::new(&log) {
        let LogEntry::Interval(interval) = entry.unwrap() else { continue };
        let tag = interval.tag().unwrap().as_str();
        let (whose, of) = tag.split_once('/').unwrap();
        if whose.split('@').next() == Some(&workload.to_string()) && of.trim_end_matches('+') == figure {
            let bytes =
                base64::engine::general_purpose::STANDARD.decode(interval.encoded_histogram()).unwrap();
            let one: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
            sum.add(one).unwrap();
        }
    }
    sum
}

fn assert_is(spread: &Value, histogram: &Histogram<u64>) {
    assert_eq!(spread["count"].as_u64().unwrap(), histogram.len());
    for (key, quantile) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p999", 0.999)] {
        let (told, own) =
            (spread[key].as_f64().unwrap(), histogram.value_at_quantile(quantile) as f64 * 1e-6);
        assert!((told - own).abs() < 1e-9, "{key}: {told} of {own}");
    }
}

fn agents_of(run: &Run) -> Vec<&str> {
    run.summary["run"]["agents"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect()
}

#[test]
fn what_three_agents_count_is_what_the_server_sent_and_what_their_own_files_say() {
    let _machine = shared();
    let (crew, air) = (Crew::start(3), air(&config(&[])));
    let mut command = weir();
    command.args(["play", &air.url, "-c", "7", "-d", "60s", "--warmup", "0s", "--drain", "200ms"]);
    command.args(["--threshold", "failed.ratio <= 100%", "--threshold", "played.ratio >= 0%"]);
    command.args(["--threshold", "starved.ratio <= 100%"]).args(crew.words(3));
    let measuring = start_measuring(&mut command);
    soon("all play", || air.origin.counts().viewers.len() == 7);
    std::thread::sleep(Duration::from_secs(3));
    // With the stream's end all that was sent has come.
    air.end_publisher();
    let run = measuring.finish();
    assert_eq!(agents_of(&run), ["a", "b", "c"], "{}", run.err);
    let (counts, sent) = (air.origin.counts(), air.origin.counts().sent());
    assert!(sent.video >= 7 * 20, "{sent:?}");
    assert_eq!(run.total("units") as u64, sent.packets());
    assert_eq!(run.total("frames") as u64, sent.video);
    let link_bytes: u64 = counts.viewers.iter().map(|viewer| viewer.link_bytes).sum();
    assert_eq!(run.total("received") as u64, link_bytes);
    let own: Vec<_> = ["a", "b", "c"].iter().flat_map(|name| crew.directories(name)).collect();
    assert_eq!(own.len(), 3);
    let media = own.iter().map(|directory| sum_of_lines(directory, "media_bytes")).sum::<f64>();
    assert_eq!(run.total("media"), media);
    let frames: Vec<_> = own.iter().map(|directory| sum_of_lines(directory, "frames")).collect();
    assert!(frames.iter().all(|frames| *frames > 0.0));
    assert_eq!(frames.iter().sum::<f64>() as u64, sent.video);
    for (figure, told) in [("startup", run.spread("startup")), ("connect", run.spread("connect"))] {
        let mut sum = histogram(&own[0], 0, figure);
        own[1..].iter().for_each(|directory| sum.add(histogram(directory, 0, figure)).unwrap());
        assert_is(told, &sum);
        assert_is(told, &histogram(run.directory(), 0, figure));
    }
    // The run directory tells the same as the run did, and an agent's own what it has counted.
    let again = report(run.directory());
    assert_eq!(again.summary["workloads"], run.summary["workloads"]);
    assert_eq!(again.summary["verdict"], run.summary["verdict"]);
    let parts: Vec<_> = own.iter().map(|directory| report(directory).slots("planned")).collect();
    assert_eq!(parts, [3, 2, 2]);
    // They are free for the next one.
    crew.wait(3);
}

#[test]
fn a_scenario_of_publisher_and_viewers_is_played_by_three_agents_each_where_it_is_to_be() {
    let _machine = shared();
    let mut crew = Crew::start(2);
    crew.add("c", &["--label", "zone=in"]);
    crew.wait(3);
    let origin = weir_origin::Origin::start(&config(&[])).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.yaml");
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    std::fs::write(
        &file,
        format!(
            "name: two\nwarmup: 500ms\ndrain: 400ms\nworkloads:\n  - {{publish: '{url}', gop: 1s, on: zone=in}}\n  \
             - {{play: '{url}', delay: 1s, clients: 6, duration: 3s}}\nthresholds: [slots_failed == 0]\n"
        ),
    )
    .unwrap();
    let mut words = vec!["run".to_owned(), file.to_str().unwrap().to_owned()];
    words.extend(crew.words(3));
    let run = measure(words);
    assert_eq!(run.code, 0, "{}", run.err);
    let planned: Vec<_> = run.workloads().iter().map(|it| it["slots"]["planned"].as_u64().unwrap()).collect();
    assert_eq!(planned, [1, 6]);
    assert_eq!(run.workloads()[1]["stages"][0]["clients"], 6);
    // What publisher and viewers share is the machine's clock, whichever process they are in.
    assert!(run.workloads()[1]["total"]["latency"]["count"].as_u64().unwrap() > 100);
    assert_eq!(
        origin.counts().stream("live/a").unwrap().received.video as f64,
        run.workloads()[0]["total"]["frames"]["total"].as_f64().unwrap()
    );
    // Viewers are where nobody publishes.
    let of = |name: &str| {
        let own = report(&crew.directories(name)[0]);
        own.workloads().iter().map(|it| it["slots"]["planned"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!([of("a"), of("b"), of("c")], [[0, 3], [0, 3], [1, 0]]);
}

#[test]
fn an_agent_refuses_what_its_owner_does_not_allow_before_anything_begins() {
    let _machine = shared();
    let mut crew = Crew::at(NatsServer::start());
    crew.add("a", &["--most", "3"]);
    crew.add("b", &["--most", "3", "--only", "127.0.0.0/8", "--only", "192.0.2.0/24"]);
    crew.wait(2);
    let said = |url: &str, clients: &str, folder: &Path| {
        let mut words = vec!["play", url, "-c", clients, "-d", "1s", "-o", folder.to_str().unwrap()];
        let agents = crew.words(2);
        words.extend(agents.iter().map(String::as_str));
        says(words)
    };
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("run");
    let refused = said("rtmp://192.0.2.1/live/a", "2", &place);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(
        refused.err.contains(
            "agent a: its owner lets it load 127.0.0.0/8, ::1/128 only, and 192.0.2.1 is not there"
        ),
        "{}",
        refused.err
    );
    let origin = weir_origin::Origin::start(&config(&[])).unwrap();
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    let refused = said(&url, "8", &place);
    assert_eq!(refused.code, Some(2), "{}", refused.err);
    assert!(
        refused.err.contains(": its part has 4 clients, and its owner lets it have 3"),
        "{}",
        refused.err
    );
    assert!(!place.exists() && crew.directories("a").is_empty(), "nothing was begun");
    assert_eq!(origin.counts().viewers.len(), 0);
    crew.wait(2);
    assert!(crew.log("b").contains("refused: its part has 4 clients"), "{}", crew.log("b"));
}

#[test]
fn a_server_leads_an_agent_to_no_network_that_its_owner_did_not_name() {
    use std::io::{ErrorKind, Read as _, Write as _};
    use std::net::TcpListener;
    let _machine = shared();
    let elsewhere = TcpListener::bind("127.0.0.2:0").unwrap();
    elsewhere.set_nonblocking(true).unwrap();
    let leads = elsewhere.local_addr().unwrap();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/1.ts", server.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in server.incoming().take(4).flatten() {
            assert!(stream.read(&mut [0; 4_096]).unwrap() > 0);
            let head =
                format!("HTTP/1.1 302 Found\r\nLocation: http://{leads}/1.ts\r\nContent-Length: 0\r\n\r\n");
            let _ = stream.write_all(head.as_bytes());
        }
    });
    let mut crew = Crew::at(NatsServer::start());
    crew.add("a", &["--only", "127.0.0.1/32"]);
    crew.wait(1);
    let words =
        ["play", &url, "-c", "2", "-d", "2s", "--warmup", "0s", "--timeout", "1s", "--drain", "200ms"];
    let words: Vec<_> = words.into_iter().map(str::to_owned).chain(crew.words(1)).collect();
    let run = measure(words);
    assert_eq!(run.total("slots_failed"), 2.0, "{}", run.err);
    let failures = run.workloads()[0]["failures"].to_string();
    assert!(
        failures.contains("redirect_failed") && failures.contains("its owner lets it load 127.0.0.1/32 only"),
        "{failures}"
    );
    let asked = elsewhere.accept().map(drop);
    assert!(asked.is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "it was connected to");
}

/// A run of 5 viewers on 3 agents that goes on for a minute, and the server that it plays from.
fn going_on(crew: &Crew, flags: &[&str]) -> (Air, Measuring) {
    let air = air(&config(&[]));
    let mut command = weir();
    command.args(["play", &air.url, "-c", "5", "-d", "60s", "--warmup", "0s", "--drain", "200ms"]);
    command.args(flags).args(crew.words(3)).args(["--accept", CHECKS_OF_THE_MACHINE]);
    let measuring = start_measuring(&mut command);
    soon("all play", || air.origin.counts().viewers.len() == 5);
    std::thread::sleep(Duration::from_secs(2));
    (air, measuring)
}

fn reason<'a>(run: &'a Run, check: &str) -> &'a Value {
    let reasons = run.summary["verdict"]["reasons"].as_array().unwrap();
    reasons.iter().find(|it| it["check"] == check).unwrap_or_else(|| panic!("{:#}", run.summary["verdict"]))
}

#[test]
fn an_agent_that_is_killed_ends_the_run_and_makes_it_invalid() {
    let _machine = shared();
    let mut crew = Crew::start(3);
    let (_air, measuring) = going_on(&crew, &[]);
    crew.agents[1].kill();
    let killed = Instant::now();
    // One of the same name is another one.
    crew.add("b", &[]);
    let run = measuring.finish();
    assert!(killed.elapsed() < Duration::from_secs(50));
    assert_eq!(run.code, 98);
    let text = reason(&run, "agent_lost")["text"].as_str().unwrap().to_owned();
    assert!(text.starts_with("agent b was lost after ") && text.contains("it was silent for 3 s"), "{text}");
    crew.wait(3);
    assert_eq!(crew.directories("b").len(), 1, "the new one was given nothing");
    assert_eq!(report(run.directory()).code, 98);
}

#[test]
fn a_run_goes_on_without_the_agents_that_may_be_lost() {
    let _machine = shared();
    let mut crew = Crew::start(3);
    let (air, measuring) = going_on(&crew, &["--allow-lost", "1"]);
    crew.agents[2].kill();
    soon("it is lost", || {
        let events = std::fs::read_to_string(measuring.directory().join("events.ndjson")).unwrap();
        events.contains("agent_lost")
    });
    std::thread::sleep(Duration::from_secs(3));
    let seconds = |directory: &Path| {
        let text = std::fs::read_to_string(directory.join("intervals.ndjson")).unwrap();
        let line: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        line["second"].as_u64().unwrap()
    };
    let lost_at = |directory: &Path| {
        let events = std::fs::read_to_string(directory.join("events.ndjson")).unwrap();
        let mut events = events.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        events.find(|it| it["event"] == "agent_lost").unwrap()["at_seconds"].as_f64().unwrap() as u64
    };
    assert!(
        seconds(&measuring.directory()) > lost_at(&measuring.directory()),
        "seconds are complete without it"
    );
    measuring.process.interrupt();
    let run = measuring.finish();
    assert_eq!(run.code, 105);
    assert_eq!(reason(&run, "agent_lost")["state"], "degraded");
    let planned = |second: u64| {
        run.summary["series"].as_array().unwrap()[second as usize]["workloads"][0]["planned"]
            .as_u64()
            .unwrap()
    };
    let lost_at = lost_at(run.directory());
    assert_eq!((planned(1), planned(lost_at + 1)), (5, 4), "{:#}", run.summary["series"]);
    drop(air);
}

#[test]
fn ctrl_c_at_the_coordinator_ends_all_and_at_an_agent_is_its_loss() {
    let _machine = shared();
    let crew = Crew::start(3);
    let (air, measuring) = going_on(&crew, &[]);
    measuring.process.interrupt();
    let run = measuring.finish();
    assert_eq!((run.code, run.slots("planned")), (105, 5));
    assert_eq!(air.origin.counts().viewers.len(), 5);
    crew.wait(3);
    drop(air);
    let (_air, measuring) = going_on(&crew, &[]);
    crew.agents[0].interrupt();
    let run = measuring.finish();
    assert_eq!(run.code, 98);
    let text = reason(&run, "agent_lost")["text"].as_str().unwrap().to_owned();
    assert!(text.ends_with("its owner has ended it"), "{text}");
}

#[test]
fn agents_whose_coordinator_is_gone_end_their_clients_and_keep_what_they_have() {
    let _machine = shared();
    let crew = Crew::start(3);
    let (air, mut measuring) = going_on(&crew, &[]);
    measuring.process.kill();
    soon("they end their clients", || crew.log("a").contains("it ends its clients: its coordinator is gone"));
    crew.wait(3);
    let own: Vec<_> = ["a", "b", "c"].iter().flat_map(|name| crew.directories(name)).collect();
    let words = ["report", "--json", "-", "--merge"].map(OsString::from);
    let merged = says(words.into_iter().chain(own.iter().map(|it| it.as_os_str().to_owned())));
    let merged: Value = serde_json::from_str(&merged.out).unwrap_or_else(|_| panic!("{}", merged.err));
    let total = &merged["workloads"][0]["total"];
    let frames: f64 = own.iter().map(|directory| sum_of_lines(directory, "frames")).sum();
    assert_eq!(
        (&merged["workloads"][0]["slots"]["planned"], &total["frames"]["total"]),
        (&5.into(), &frames.into())
    );
    let mut startup = histogram(&own[0], 0, "startup");
    own[1..].iter().for_each(|directory| startup.add(histogram(directory, 0, "startup")).unwrap());
    assert_is(&total["startup"], &startup);
    let twice = says(["report", "--merge", own[0].to_str().unwrap(), own[0].to_str().unwrap()]);
    assert!(twice.code == Some(2) && twice.err.contains("is a part that is there already"), "{}", twice.err);
    for name in ["a", "b", "c"] {
        let own = report(&crew.directories(name)[0]);
        assert_eq!(own.summary["outcome"], "interrupted");
        assert!(own.total("frames") > 0.0);
    }
    drop(air);
}

#[test]
fn nats_that_is_started_again_costs_nothing_and_counts_nothing_twice() {
    let _machine = shared();
    let mut crew = Crew::start(3);
    let air = air(&config(&[]));
    let mut command = weir();
    command.args(["play", &air.url, "-c", "5", "-d", "60s", "--warmup", "0s", "--drain", "200ms"]);
    command.args(["--threshold", "failed.ratio <= 100%", "--threshold", "played.ratio >= 0%"]);
    command.args(["--threshold", "starved.ratio <= 100%"]).args(crew.words(3));
    let measuring = start_measuring(command.args(["--accept", CHECKS_OF_THE_MACHINE]));
    soon("all play", || air.origin.counts().viewers.len() == 5);
    crew.nats.kill();
    std::thread::sleep(Duration::from_secs(5));
    crew.nats.go_on();
    std::thread::sleep(Duration::from_secs(3));
    air.end_publisher();
    let run = measuring.finish();
    let sent = air.origin.counts().sent();
    assert_eq!(run.summary["verdict"]["reasons"], Value::Array(Vec::new()), "{:#}", run.summary["verdict"]);
    assert_eq!(run.total("frames") as u64, sent.video);
    assert_eq!(run.total("units") as u64, sent.packets());
}

#[test]
fn garbage_and_intervals_of_another_run_change_nothing() {
    let _machine = shared();
    let crew = Crew::start(3);
    let (air, measuring) = going_on(&crew, &[]);
    let mut nats = crew.nats.client();
    for subject in ["weir.up.a", "weir.up.nobody", "weir.up.", "weir.down.a", "weir.call"] {
        nats.publish(subject, b"\xff\0 no JSON");
        nats.publish(subject, b"{\"from\":1,\"to\":null,\"run\":\"x\",\"message\":\"stop\"}");
        let ended = br#"{"from":1,"run":"x","message":{"item":{"number":1,"oldest":1,"item":{"ended":{"cut_short":null,"clock_bound_seconds":0.0,"reasons":[],"loads":[]}}}}}"#;
        nats.publish(subject, ended);
    }
    nats.flush();
    std::thread::sleep(Duration::from_secs(2));
    air.end_publisher();
    let run = measuring.finish();
    assert_eq!(run.total("frames") as u64, air.origin.counts().sent().video);
    let warnings = run.summary["warnings"].to_string();
    assert!(warnings.contains("a malformed message was sent as agent a"), "{warnings}");
}

#[test]
fn a_wrong_token_and_a_server_that_is_not_there_are_named() {
    let nats = NatsServer::with(&["--auth", "s3cret"]);
    let url = nats.url();
    for words in [
        vec!["agents", "--nats", &url],
        vec!["agent", "--join", &url],
        vec!["play", "rtmp://127.0.0.1/live/a", "--agents", "1", "--nats", &url],
    ] {
        let output = weir().args(&words).env("WEIR_NATS_TOKEN", "wrong").output().unwrap();
        let err = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {err}");
        assert!(err.contains(&format!("NATS at {url} refuses these credentials")), "{err}");
    }
    let listed = weir().args(["agents", "--nats", &url]).env("WEIR_NATS_TOKEN", "s3cret").output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).starts_with("no agent is connected; start one with"));
    drop(nats);
    let said = says(["agents", "--nats", &url]);
    assert_eq!(said.code, Some(97));
    assert!(said.err.contains("is a nats-server there?"), "{}", said.err);
}

#[test]
fn a_clock_that_is_moved_by_an_hour_moves_neither_the_start_nor_a_latency() {
    let _machine = shared();
    let mut crew = Crew::start(1);
    // Another boot's clock, to all appearances: a time namespace of its own.
    crew.add_in(&["unshare", "--time", "--monotonic", "3600"], "b", &[]);
    crew.wait(2);
    let origin = weir_origin::Origin::start(&config(&[])).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.yaml");
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    // Both may publish and have viewers: where `on:` says so, publishers are beside viewers. All are witnesses.
    let text = format!(
        "warmup: 500ms\ndrain: 400ms\nworkloads:\n  - {{publish: '{url}', gop: 500ms}}\n  \
         - {{play: '{url}', delay: 1s, clients: 5, duration: 4s, witness_every: 1, on: [a, b]}}\nthresholds: [slots_failed == 0]\n"
    );
    std::fs::write(&file, text).unwrap();
    let mut words = vec!["run".to_owned(), file.to_str().unwrap().to_owned()];
    words.extend(crew.words(2));
    let run = measure(words);
    assert_eq!(run.code, 0, "{}", run.err);
    let viewers = |of: &Value| of["workloads"][1]["total"].clone();
    let total = viewers(&run.summary);
    assert!(total["wall_latencies"]["total"].as_f64().unwrap() > 0.0, "{total:#}");
    let uncertainty = run.workloads()[1]["clock_uncertainty_seconds"].as_f64().unwrap();
    assert!(uncertainty > 0.0 && uncertainty < 0.5, "{uncertainty}");
    let p50 =
        |name: &str| viewers(&report(&crew.directories(name)[0]).summary)["latency"]["p50"].as_f64().unwrap();
    let (exact, by_offset) = (p50("a"), p50("b"));
    assert!((exact - by_offset).abs() < uncertainty + 0.25, "{exact} and {by_offset}");
    let startup = run.workloads()[1]["total"]["startup"]["max"].as_f64().unwrap();
    assert!(startup < 30.0, "both began at the same moment: {startup}");
}

#[test]
fn an_agent_that_stands_still_is_lost_and_gets_nothing_more_when_it_goes_on() {
    let _machine = shared();
    let crew = Crew::start(3);
    let (_air, measuring) = going_on(&crew, &[]);
    let signal = |signal| kill_process(Pid::from_child(&crew.agents[1].0), signal).unwrap();
    signal(Signal::STOP);
    let run = measuring.finish();
    assert_eq!((run.code, &run.summary["outcome"]), (98, &"agent_lost".into()));
    assert!(reason(&run, "agent_lost")["text"].as_str().unwrap().starts_with("agent b was lost after "));
    signal(Signal::CONT);
    soon("it ends its clients", || crew.log("b").contains("it ends its clients"));
    crew.wait(3);
    assert!(report(&crew.directories("b")[0]).total("frames") > 0.0, "it has kept what it had");
}

#[test]
fn an_agent_refuses_another_version_and_whatever_is_no_load() {
    let crew = Crew::start(1);
    let mut nats = crew.nats.client();
    let mut offer = |run: &str, version: &str, figures: &str, scenario: &Value| {
        let offer = json!({
            "version": version, "figures": figures, "scenario": scenario, "targets": [[]], "files": [],
            "segment": {"index": 0, "of": 1},
        });
        let frame = json!({"from": 1, "to": null, "run": run, "message": {"offer": offer}});
        nats.publish("weir.down.a", frame.to_string().as_bytes());
        nats.flush();
    };
    let said = |words: &str| soon(words, || crew.log("a").contains(words));
    let play = json!({"workloads": [{"play": ["rtmp://127.0.0.1/live/a"], "clients": 1, "duration": "1s"}]});
    offer("1", "0.0.9", "", &play);
    said("refused: it runs weir 0.1.0, and the coordinator 0.0.9; install the same version");
    offer("2", env!("CARGO_PKG_VERSION"), "0123456789abcdef", &play);
    said("refused: it counts other figures than the coordinator");
    crew.wait(1);
}

#[test]
fn the_permissions_of_the_guide_let_a_run_through_and_hold_an_agent_to_its_own_subjects() {
    let _machine = shared();
    let guide = include_str!("../../../../docs/guide/many-machines.md");
    let block = guide.split("```text not-run\n").find(|block| block.starts_with("accounts:")).unwrap();
    let block = block.split("```").next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("nats.conf");
    std::fs::write(&file, block.replace("$COORDINATOR", "c0").replace("$A", "a0")).unwrap();
    let crew = Crew::at(NatsServer::with(&["-c", file.to_str().unwrap()]));
    let (place, _) = (crew.nats.url().replace("nats://", ""), ());
    let agent = |user: &str, name: &str| {
        let mut command = weir();
        command
            .args(["agent", "--join", &format!("nats://{user}@{place}"), "--name", name, "-o"])
            .arg(folder.path());
        KilledOnDrop::start(command.stdout(Stdio::null()).stderr(Stdio::null()))
    };
    // One of them says that it is another.
    let _agents = [agent("a:a0", "a"), agent("a:a0", "z")];
    let url = format!("nats://coordinator:c0@{place}");
    soon("it waits", || says(["agents", "--nats", &url]).out.contains("\na "));
    let listed = says(["agents", "--nats", &url]).out;
    assert_eq!(listed.lines().count(), 2, "{listed}");
    let air = air(&config(&[]));
    let run = measure(["play", &air.url, "-d", "2s", "--warmup", "0s", "--agents", "1", "--nats", &url]);
    assert_eq!((run.slots("planned"), agents_of(&run)), (1, vec!["a"]));
    let written = std::fs::read_to_string(run.directory().join("run.json")).unwrap();
    assert!(!written.contains("c0@") && !run.err.contains("c0@"));
}

#[test]
fn a_nats_server_of_the_runs_own_lets_in_who_knows_its_token_and_its_certificate() {
    let _machine = shared();
    let air = air(&config(&[]));
    let folder = tempfile::tempdir().unwrap();
    let mut command = weir();
    command.args([
        "play", &air.url, "-c", "2", "-d", "2s", "--warmup", "0s", "--agents", "1", "--nats", "spawn",
    ]);
    let measuring = start_measuring(command.args(["--accept", CHECKS_OF_THE_MACHINE]));
    let said = || measuring.said();
    soon("how to join is said", || said().contains("--tls-fingerprint ") && said().ends_with('\n'));
    let line = said().lines().next().unwrap().to_owned();
    let words: Vec<_> = line.split_once("WEIR_NATS_TOKEN=").unwrap().1.split(' ').collect();
    let [token, "weir", "agent", "--join", url, "--tls-fingerprint", fingerprint] = words[..] else {
        panic!("{line}")
    };
    let list = |token: &str, fingerprint: &str| {
        let arguments = ["agents", "--nats", url, "--tls-fingerprint", fingerprint];
        let output = weir().args(arguments).env("WEIR_NATS_TOKEN", token).output().unwrap();
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, err) = list("wrong", fingerprint);
    assert!(code == Some(2) && err.contains("refuses these credentials"), "{err}");
    let (code, err) = list(token, &"0".repeat(64));
    assert_eq!(code, Some(97), "{err}");
    let mut agent = weir();
    agent
        .args(["agent", "--join", url, "--name", "a", "--tls-fingerprint", fingerprint, "-o"])
        .arg(folder.path());
    let _agent =
        KilledOnDrop::start(agent.env("WEIR_NATS_TOKEN", token).stdout(Stdio::null()).stderr(Stdio::null()));
    let port: u16 = url.rsplit_once(':').unwrap().1.parse().unwrap();
    let run = measuring.finish();
    assert_eq!((run.code, run.slots("planned"), agents_of(&run)), (0, 2, vec!["a"]), "{}", run.err);
    let written = std::fs::read_to_string(run.directory().join("run.json")).unwrap();
    assert!(!written.contains(token));
    soon("the server has ended", || std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
}
