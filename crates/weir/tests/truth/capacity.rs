//! How many clients a server carries: found to the client where a limit is known, and said as it is where nothing is.

use crate::support::{
    A_RUN, CHECKS_OF_THE_MACHINE, KilledOnDrop, Mosquitto, Nginx, Publishing, Said, free_port, row_of, says,
    says_on_its_page, shared, soon, undisturbed, weir,
};
use serde_json::Value;
use std::net::TcpStream;
use std::process::Stdio;

/// Short trials, and nothing asked that depends on time: how many failed is the same on a busy machine.
const BRIEF: [&str; 16] = [
    "--threshold",
    "failed.ratio == 0",
    "--threshold",
    "played.ratio >= 0%",
    "--slice",
    "1s",
    "--hold",
    "2s",
    "--confirm",
    "2s",
    "--warmup",
    "0s",
    "--drain",
    "200ms",
    "--accept",
    CHECKS_OF_THE_MACHINE,
];

/// An origin that plays to this many viewers at once, and its port.
fn origin_for(viewers: u32) -> (KilledOnDrop, u16) {
    let port = free_port();
    let fault = format!("reject phase=play beyond={viewers} words=the house is full");
    let mut command = weir();
    command.args(["origin", "--rtmp", &format!(":{port}"), "--fault", &fault]).stdout(Stdio::null());
    let origin = KilledOnDrop::start(&mut command);
    soon("the origin listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    (origin, port)
}

fn search(url: &str, more: &[&str]) -> (Said, Value) {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out").display().to_string();
    let said = says(["capacity", url, "--json", "-", "-o", &out].iter().chain(&BRIEF).chain(more));
    let summary = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err));
    // What is on disk says the same again.
    let again = says(["report", &out, "--json", "-"]);
    assert_eq!((again.code, serde_json::from_str::<Value>(&again.out).unwrap()), (said.code, summary));
    let text = says(["report", &out]).out;
    // Lines are broken where the terminal ends.
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    (Said { out: text, ..said }, serde_json::from_str(&again.out).unwrap())
}

#[test]
fn an_origin_that_plays_to_five_viewers_carries_five_and_not_six() {
    let _machine = shared();
    let (_origin, port) = origin_for(5);
    let url = format!("rtmp://127.0.0.1:{port}/live/a");
    let _publishing = Publishing::start(&url, &[]);
    let (said, summary) = search(&url, &["--from", "1"]);
    assert_eq!(said.code, Some(0), "{}", said.err);
    let answer = &summary["answer"];
    assert_eq!(
        (&answer["evidence"], &answer["bounds"]["lower"]),
        (&"found".into(), &5.into()),
        "{}",
        said.err
    );
    assert_eq!((&answer["bounds"]["upper"], &answer["recovers"]), (&6.into(), &true.into()));
    assert!(said.out.contains("Answer carries 5 viewers, not 6"), "{}", said.out);
    assert!(said.out.contains("it admitted 5 of 8 and of 6, and carried them"), "{}", said.out);
    assert!(said.out.contains("the house is full"), "what the server said is told: {}", said.out);
    // Each trial is a run with a directory and a report of its own.
    let trials = summary["trials"].as_array().unwrap();
    assert_eq!((&trials[0]["directory"], &trials[0]["purpose"]), (&"001-climb".into(), &Value::Null));
    assert_eq!(trials.len(), 3, "a server that says its limit is asked once more");
    assert!(said.err.contains("trial 1: climbs from 1, 2 s each, until one fails"), "{}", said.err);
}

#[test]
fn nginx_carries_as_many_viewers_as_its_worker_has_connections_for() {
    let _machine = shared();
    undisturbed(|| {
        let nginx = Nginx::with_connections(200);
        let url = nginx.url("a");
        // A viewer plays from the next keyframe on: each that is admitted does so long before the window.
        let publishing = Publishing::start(&url, &["--gop", "200ms"]);
        let (said, summary) = search(&url, &["--from", "50", "--precision", "0.1%"]);
        let bounds = &summary["answer"]["bounds"];
        let (lower, upper) = (bounds["lower"].as_u64().unwrap(), bounds["upper"].as_u64().unwrap());
        assert_eq!(
            (said.code, &summary["answer"]["evidence"], upper),
            (Some(0), &"found".into(), lower + 1),
            "{}",
            said.err
        );
        // Of 200 connections four are listening sockets, one is the channel to the master process, and one is the publisher's.
        assert_eq!(lower, 200 - 6, "{}", said.out);
        assert_eq!(summary["trials"].as_array().unwrap().len(), 3, "{}", said.err);
        assert!(nginx.errors().contains("200 worker_connections are not enough"));
        assert!(said.out.contains("closed_by_peer") || said.out.contains("reset"), "{}", said.out);
        publishing.finish();
    });
}

/// A scenario in a folder of its own, on an origin that is started before each trial with this fault.
fn search_of(workloads: &str, fault: &str, more: &[&str]) -> (Said, Value) {
    let folder = tempfile::tempdir().unwrap();
    let (file, port) = (folder.path().join("s.yaml"), free_port());
    let weir = env!("CARGO_BIN_EXE_weir");
    let text = format!(
        "before:\n  - start: exec {weir} origin --rtmp :{port} --fault '{fault}'\n  - wait: 127.0.0.1:{port}\n\
         warmup: 0s\ndrain: 200ms\nworkloads:\n{}",
        workloads.replace("HOST", &format!("127.0.0.1:{port}"))
    );
    std::fs::write(&file, text).unwrap();
    // What BRIEF says of clients stands in the file.
    let brief = BRIEF.chunks(2).filter(|it| !["--warmup", "--drain"].contains(&it[0])).flatten();
    let out = folder.path().join("out").display().to_string();
    let words = ["capacity", file.to_str().unwrap(), "--json", "-", "-o", &out];
    let said = says(words.iter().chain(brief).chain(more));
    let summary = serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err));
    let text = says(["report", &out]).out;
    (Said { out: text.split_whitespace().collect::<Vec<_>>().join(" "), ..said }, summary)
}

#[test]
fn publishers_are_counted_beside_who_plays_and_each_has_a_stream() {
    let _machine = shared();
    let workloads = "  - {publish: 'rtmp://HOST/live/s{i}', streams: 1, bitrate: 200kbps}
  - {play: 'rtmp://HOST/live/s0', clients: 2, delay: 500ms}\n";
    let fault = "reject phase=publish publishers=5.. words=four are enough";
    let (said, summary) = search_of(workloads, fault, &["--of", "publishers", "--from", "2"]);
    let answer = &summary["answer"];
    assert_eq!((said.code, &answer["evidence"]), (Some(0), &"found".into()), "{}", said.err);
    assert_eq!(
        (&answer["bounds"]["lower"], &answer["bounds"]["upper"]),
        (&4.into(), &5.into()),
        "{}",
        said.err
    );
    assert_eq!(
        (&summary["sought"]["kind"], &summary["sought"]["of"]),
        (&"publishers".into(), &"publishers".into())
    );
    assert!(
        said.out.contains("carries 4 publishers") && said.out.contains("four are enough"),
        "{}",
        said.out
    );
}

#[test]
fn streams_are_counted_with_their_viewers_and_each_load_is_a_trial_of_its_own() {
    let _machine = shared();
    let workloads = "  - {publish: 'rtmp://HOST/live/s{i}', streams: 1, bitrate: 200kbps}
  - {play: 'rtmp://HOST/live/s{i}', streams: 1, clients: 2, delay: 500ms}\n";
    // Six viewers are three streams of two.
    let fault = "reject phase=play beyond=6";
    let (said, summary) = search_of(workloads, fault, &["--of", "streams", "--from", "2"]);
    let bounds = &summary["answer"]["bounds"];
    assert_eq!((&bounds["lower"], &bounds["upper"]), (&3.into(), &4.into()), "{}", said.err);
    assert!(
        said.out.contains("carries 3 streams") && said.out.contains("6 clients of 3 streams"),
        "{}",
        said.out
    );
    let places: Vec<_> = summary["trials"].as_array().unwrap().iter().map(|it| &it["directory"]).collect();
    assert_eq!(places[..2], ["001-climb-2", "002-climb-4"], "{places:?}");
}

#[test]
fn arrivals_are_of_a_number_of_clients_that_all_may_come_within_a_second() {
    let _machine = shared();
    let (_origin, port) = origin_for(50);
    let url = format!("rtmp://127.0.0.1:{port}/live/a");
    let _publishing = Publishing::start(&url, &[]);
    let (said, summary) = search(&url, &["--of", "arrivals", "--clients", "20", "--from", "10"]);
    let answer = &summary["answer"];
    assert_eq!(
        (said.code, &answer["evidence"], &answer["bounds"]["lower"]),
        (Some(0), &"at_least".into(), &20.into()),
        "{}",
        said.err
    );
    assert!(said.out.contains("carries at least 20 viewers a second"), "{}", said.out);
    assert!(said.out.contains("20 that came at 20 a second"), "{}", said.out);
    // Of those who come when the house is full some are refused, at any rate.
    let (said, summary) =
        search(&url, &["--of", "arrivals", "--clients", "60", "--from", "30", "--budget", "15s"]);
    assert_eq!(summary["answer"]["evidence"], "at_most", "{}", said.err);
}

#[test]
fn messages_are_counted_with_who_subscribes_to_them() {
    let _machine = shared();
    let broker = Mosquitto::start();
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (folder.path().join("s.yaml"), folder.path().join("out").display().to_string());
    let text = format!(
        "warmup: 0s\nfind: capacity of messages\nworkloads:\n  - {{publish: '{}', streams: 2, qos: 1}}\n  - {{play: '{}', qos: 1}}\n",
        broker.url("t/{i}"),
        broker.url("t/#")
    );
    std::fs::write(&file, text).unwrap();
    let brief = BRIEF.chunks(2).filter(|it| !["--warmup", "--drain"].contains(&it[0])).flatten();
    let words = ["capacity", file.to_str().unwrap(), "--json", "-", "-o", &out];
    let more = ["--from", "100", "--most", "400", "--threshold", "lost == 0"];
    let said = says(words.iter().chain(brief).chain(&more));
    let summary: Value =
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err));
    let answer = &summary["answer"];
    assert_eq!(
        (said.code, &answer["evidence"], &answer["bounds"]["lower"]),
        (Some(0), &"at_least".into(), &400.into()),
        "{}",
        said.err
    );
    // The climb is a run a rate, and what came is counted in messages.
    let last =
        summary["trials"].as_array().unwrap().iter().rfind(|it| it["loads"][0]["load"] == 400).unwrap();
    let rate = last["loads"][0]["units_per_second"].as_f64().unwrap();
    assert!((200.0..=800.0).contains(&rate), "{rate}");
    assert!(says(["report", &out]).out.contains("messages a second of 2 publishers"));
}

#[test]
fn a_server_that_carries_all_that_may_be_tried_carries_at_least_that_and_its_page_shows_trial_by_trial() {
    let _machine = shared();
    let (_origin, port) = origin_for(50);
    let url = format!("rtmp://127.0.0.1:{port}/live/a");
    let _publishing = Publishing::start(&url, &[]);
    let words = ["capacity", &url, "--from", "1", "--most", "3"];
    let (said, page) = says_on_its_page(words.iter().chain(&BRIEF));
    let answer = "carries at least 3 viewers; more was not tried (--most)";
    assert_eq!(said.code, Some(0), "{}", said.err);
    let told = said.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains(answer), "{told}");
    // The search alone, then its first trial below it, then the second one below what the first came to.
    let climbs = page.first_with(&["id=\"search-part-0\"", A_RUN]);
    let confirms = page.first_with(&[&row_of("001-climb"), A_RUN]);
    assert!(climbs < confirms, "{climbs} {confirms}");
    assert!(
        page.last().contains(answer) && page.last().contains(&row_of("002-confirm-3")),
        "{}",
        page.last()
    );
    assert_eq!(page.end, "all runs are complete; weir is gone, and this page stays as it is");
}

#[test]
fn where_nobody_answers_the_answer_says_so() {
    let _machine = shared();
    let url = format!("rtmp://127.0.0.1:{}/live/a", free_port());
    let (said, summary) = search(&url, &["--from", "2"]);
    // A server that is not there carries nothing, and its capacity is not known to be small.
    assert_eq!((said.code, &summary["answer"]["evidence"]), (Some(97), &"void".into()), "{}", said.err);
    for words in ["no result", "nothing answered at rtmp://127.0.0.1:", "(connection refused, 2 of 2)"] {
        assert!(said.out.contains(words), "{}", said.out);
    }
}

#[test]
fn a_stream_that_nobody_publishes_ends_the_search_with_what_its_first_run_says() {
    let _machine = shared();
    // The origin lets viewers in, and sends them nothing.
    let (_origin, port) = origin_for(50);
    let folder = tempfile::tempdir().unwrap();
    let (url, out) = (format!("rtmp://127.0.0.1:{port}/live/a"), folder.path().join("out"));
    let words = ["capacity", &url, "--from", "2", "-q", "-o", out.to_str().unwrap()];
    let brief = ["--slice", "1s", "--hold", "3s", "--warmup", "0s", "--accept", CHECKS_OF_THE_MACHINE];
    let said = says(words.iter().chain(&brief));
    // As of `weir play`: the server answers, and nothing was measured.
    assert_eq!((said.code, said.err.lines().count()), (Some(99), 1), "{}", said.err);
    let kept: Value = serde_json::from_slice(&std::fs::read(out.join("summary.json")).unwrap()).unwrap();
    let took = kept["run"]["duration_seconds"].as_f64().unwrap();
    assert!(took >= 3.0, "its trial was held for three seconds, and the search says {took} s");
    let played = says(["play", &url, "-c", "2", "-d", "3s", "--warmup", "0s", "-q"]);
    assert_eq!(played.code, said.code, "{}", played.err);
    for words in ["no client played at rtmp://127.0.0.1:", "check its name, and that it is being published"] {
        assert!(said.err.contains(words), "{words}: {}", said.err);
    }
}

#[test]
fn ctrl_c_in_a_trial_leaves_what_was_known() {
    let _machine = shared();
    let (_origin, port) = origin_for(50);
    let url = format!("rtmp://127.0.0.1:{port}/live/a");
    let _publishing = Publishing::start(&url, &[]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut command = weir();
    command.args(["capacity", &url, "--from", "1", "--most", "2", "-o"]).arg(&out).args(BRIEF);
    let searching = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    soon("the climb is over", || out.join("002-confirm-2").exists());
    crate::support::interrupt(&searching);
    let said = Said::from(searching.wait_with_output().unwrap());
    assert_eq!(said.code, Some(105), "{}", said.err);
    assert!(said.out.contains("interrupted") && said.out.contains("001-climb"), "{}", said.out);
    let summary: Value = serde_json::from_slice(&std::fs::read(out.join("summary.json")).unwrap()).unwrap();
    assert_eq!((&summary["ending"], summary["trials"].as_array().unwrap().len()), (&"interrupted".into(), 1));
}

#[test]
fn ctrl_c_in_the_climb_leaves_the_loads_that_were_carried() {
    let _machine = shared();
    let (_origin, port) = origin_for(5_000);
    let url = format!("rtmp://127.0.0.1:{port}/live/a");
    let _publishing = Publishing::start(&url, &[]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let mut command = weir();
    command.args(["capacity", &url, "--from", "1", "--most", "4000", "-o"]).arg(&out).args(BRIEF);
    let searching = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = || std::fs::read_to_string(out.join("001-climb/intervals.ndjson")).unwrap_or_default();
    // Two seconds at each load: two loads are over, and the climb goes on.
    soon("two loads were held", || lines().lines().count() >= 8);
    crate::support::interrupt(&searching);
    let said = Said::from(searching.wait_with_output().unwrap());
    assert_eq!(said.code, Some(105), "{}", said.err);
    let last = said.err.lines().last().unwrap_or_default();
    assert!(last.contains("interrupted after ") && last.contains("carried"), "{}", said.err);
    assert!(last.ends_with("; it was interrupted"), "{}", said.err);
    let summary: Value = serde_json::from_slice(&std::fs::read(out.join("summary.json")).unwrap()).unwrap();
    assert!(summary["answer"]["bounds"]["lower"].as_u64() >= Some(2), "{summary:#}");
}

#[test]
fn what_cannot_be_searched_for_is_one_line() {
    // A process that is there, whatever other tests have started.
    let myself = format!("pid={}", std::process::id());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.yaml").display().to_string();
    let of = |text: &str, arguments: &[&str]| {
        std::fs::write(&file, text).unwrap();
        says(["capacity", &file].iter().chain(arguments))
    };
    let plain = "workloads: [{play: 'rtmp://127.0.0.1:1/a/b'}]";
    for (said, code, words) in [
        (
            says(["capacity", "rtmp://127.0.0.1:1/a/b", "--from", "9", "--most", "5"]),
            2,
            "--from 9 is more than 5",
        ),
        (
            says(["capacity", "rtmp://127.0.0.1:1/a/b", "--set", "seed=3"]),
            2,
            "--set seed is of a scenario file",
        ),
        (says(["capacity", "rtmp://127.0.0.1:1/a/b", "--threshold", "startup.p98 < 1s"]), 2, "startup"),
        (
            says([
                "capacity",
                "rtmp://127.0.0.1:1/a/b",
                "--watch",
                &myself,
                "--threshold",
                "server.descriptors.per_client < 1",
            ]),
            2,
            "is known of a whole run",
        ),
        (
            says(["capacity", "/no/such/file"]),
            2,
            "give a URL such as rtmp://host/app/stream, or a scenario file",
        ),
        (of(plain, &["--timeout", "3s"]), 2, "change one with --set KEY=VALUE"),
        (
            of("variants: {a: {v: 1}, b: {v: 2}}\nworkloads: [{play: 'rtmp://h/a/b{v}'}]", &[]),
            104,
            "`variants` and `repeat`",
        ),
        (of("workloads: [{ingest: 'mqtt://h/t', duration: 1s}]", &[]), 104, "leave `ingest` and `probe` out"),
        (of(plain, &["--of", "arrivals"]), 104, "say how many come: --clients N"),
        (of(plain, &["--of", "messages"]), 104, "not one workload that publishes"),
        (of(plain, &["--of", "streams"]), 104, "write {i} for its number"),
        (of(plain, &["--clients", "5"]), 2, "--clients is of --of arrivals"),
        (of(&format!("{}, {}", &plain[..plain.len() - 1], &plain[12..]), &[]), 104, "not one workload"),
    ] {
        assert_eq!(said.code, Some(code), "{words}: {}", said.err);
        assert!(said.err.contains(words) && said.err.lines().count() == 1, "{words}: {}", said.err);
    }
}
