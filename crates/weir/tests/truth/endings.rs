//! Connections that end badly: each by its name, counted, with the server's own words.

use crate::support::{air, config, free_port, measure, play, report, shared};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use weir_origin::{MissingStream, Origin};

#[test]
fn three_of_eight_connections_reset_are_three_resets() {
    let _machine = shared();
    let air = air(&config(&["reset viewers=3..5 at=1s"]));
    let run = play(&air.url, "-c 8 -d 3s --warmup 0s --drain 200ms");
    let (kind, clients, side, _) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("reset", 3, "remote"));
    assert_eq!((run.slots("planned"), run.well()), (8, 5));
}

#[test]
fn two_of_six_connections_closed_are_two_closed_by_the_peer() {
    let _machine = shared();
    let air = air(&config(&["close viewers=1..2 at=1s"]));
    let run = play(&air.url, "-c 6 -d 3s --warmup 0s --drain 200ms");
    let (kind, clients, side, words) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("closed_by_peer", 2, "remote"));
    assert!(!words.is_empty());
    assert_eq!((run.slots("planned"), run.well()), (6, 4));
}

#[test]
fn who_is_not_let_in_is_unauthorized_in_the_servers_words() {
    let _machine = shared();
    for phase in ["connect", "play"] {
        let fault = format!("unauthorized phase={phase} words=401 come back with a ticket");
        let origin = Origin::start(&config(&[&fault])).unwrap();
        let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
        let run = play(&url, "-c 5 -d 2s --warmup 0s --drain 200ms");
        let (kind, clients, side, words) = run.failure();
        assert_eq!((kind.as_str(), clients, side.as_str()), ("unauthorized", 5, "remote"), "{phase}");
        assert!(words.contains("come back with a ticket"), "{phase}: {words}");
        assert_eq!((run.slots("planned"), run.well(), run.code), (5, 0, 99), "{phase}");
    }
}

#[test]
fn a_publisher_that_is_not_let_in_is_unauthorized_too() {
    let _machine = shared();
    let origin = Origin::start(&config(&["unauthorized phase=publish words=403 not yours"])).unwrap();
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    let run = measure(["publish", &url, "-d", "2s", "--warmup", "0s", "--drain", "200ms"]);
    let (kind, clients, _, words) = run.failure();
    assert_eq!((kind.as_str(), clients), ("unauthorized", 1));
    assert!(words.contains("403 not yours"), "{words}");
}

#[test]
fn a_server_that_falls_silent_is_named_by_its_phase() {
    let _machine = shared();
    let faults = ["accept", "handshake", "connect", "play"].map(|phase| format!("silent phase={phase}"));
    let expected = ["handshake_timeout", "handshake_timeout", "request_timeout", "request_timeout"];
    std::thread::scope(|scope| {
        for (fault, expected) in faults.iter().zip(expected) {
            scope.spawn(move || {
                let origin = Origin::start(&config(&[fault])).unwrap();
                // A server that does not even shake hands has given no answer.
                let code = if expected == "handshake_timeout" { 97 } else { 99 };
                assert_fails_with(&origin, expected, code);
            });
        }
    });
}

#[test]
fn a_server_that_falls_silent_and_keeps_its_viewers_is_said_and_does_not_pass() {
    let _machine = shared();
    let air = air(&config(&["stall at=3s for=1h"]));
    let run = measure("-c 6 --timeout 2s -d 14s --warmup 1s --drain 200ms".split(' ').fold(
        vec!["play", &air.url],
        |mut all, word| {
            all.push(word);
            all
        },
    ));
    // Nobody failed, and nobody plays: each found out once.
    assert_eq!((run.code, run.well(), run.total("played"), run.total("starved")), (99, 6, 6.0, 6.0));
    assert_eq!(run.stage(0)["window_is_void"], true);
    assert!(run.stage(0)["playing_mean"].as_f64().unwrap() < 4.0, "{}", run.stage(0)["playing_mean"]);
    let warnings = run.summary["warnings"].to_string();
    assert!(warnings.contains("no media since second"), "{warnings}");
    let judged = run.summary["thresholds"].as_array().unwrap();
    let failed: Vec<_> =
        judged.iter().filter(|it| it["passed"] == false).map(|it| &it["expression"]).collect();
    assert_eq!(
        failed,
        [
            "bitrate.ratio >= 90%",
            "frames.ratio >= 90%",
            "stalled.ratio <= 1%",
            "starved.ratio <= 1%",
            "blackouts == 0",
            "drift.growth <= 1s"
        ]
    );
    let text = std::fs::read_to_string(run.directory().join("report.txt")).unwrap();
    assert!(warnings.contains("do not describe the target"), "{warnings}");
    assert!(text.contains("the source or the server"), "{text}");
}

#[test]
fn a_server_that_consents_and_sends_nothing_has_no_media() {
    let _machine = shared();
    let origin = Origin::start(&config(&[])).unwrap();
    assert_fails_with(&origin, "no_media", 99);
}

fn assert_fails_with(origin: &Origin, expected: &str, code: i32) {
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    let run = play(&url, "-c 3 -d 4s --timeout 1s --warmup 0s --drain 200ms");
    let (kind, clients, side, words) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), (expected, 3, "remote"));
    assert!(words.contains("time"), "{words}");
    assert_eq!((run.code, run.total("played")), (code, 0.0));
}

#[test]
fn a_server_that_accepts_no_connection_is_a_connect_timeout() {
    let _machine = shared();
    // A queue of one, filled: the system drops whatever else comes.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let _waiting = TcpStream::connect(address).unwrap();
    let url = format!("rtmp://{address}/live/a");
    let run = play(&url, "-c 2 -d 3s --timeout 1s --warmup 0s --drain 200ms");
    assert_eq!(run.failures().into_iter().collect::<Vec<_>>(), [("connect_timeout".to_owned(), 2)]);
}

#[test]
fn nobody_listening_is_a_refused_connection_and_fails_the_run() {
    let _machine = shared();
    let url = format!("rtmp://127.0.0.1:{}/live/a", free_port());
    let run = play(&url, "-c 7 -d 1s --warmup 0s --drain 200ms");
    let (kind, clients, side, _) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("connection_refused", 7, "remote"));
    assert_eq!(run.code, 97);
}

#[test]
fn a_stream_that_nobody_publishes_is_not_found() {
    let _machine = shared();
    let origin =
        Origin::start(&weir_origin::OriginConfig { missing_stream: MissingStream::Refuse, ..config(&[]) })
            .unwrap();
    let url = format!("rtmp://{}/live/nobody", origin.address("rtmp").unwrap());
    let run = play(&url, "-c 4 -d 1s --warmup 0s --drain 200ms");
    let (kind, clients, side, words) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("stream_not_found", 4, "remote"));
    assert!(words.contains("NetStream.Play.StreamNotFound"), "{words}");
}

#[test]
fn a_run_without_clients_ends_and_says_what_became_of_them() {
    let _machine = shared();
    let url = format!("rtmp://127.0.0.1:{}/live/a", free_port());
    let began = Instant::now();
    let run = play(&url, "-c 7 -d 90s --warmup 0s --drain 200ms -v");
    assert!(began.elapsed() < Duration::from_secs(45), "{:?}", began.elapsed());
    assert_eq!((run.code, &run.summary["outcome"]), (97, &"nobody_left".into()));
    assert!(run.err.contains("7 failed (connection_refused: "), "{}", run.err);
    let text = std::fs::read_to_string(run.directory().join("report.txt")).unwrap();
    assert!(text.contains("every client had failed"), "{text}");
    // Nothing is valid of it, and nothing has passed, in whatever format.
    assert_eq!(run.summary["verdict"]["state"], "nothing_measured");
    for name in ["report.txt", "report.md", "report.html", "report.xml"] {
        let page = std::fs::read_to_string(run.directory().join(name)).unwrap();
        let words: Vec<_> = page.split(|c: char| !c.is_alphanumeric()).collect();
        assert!(page.contains("nothing measured"), "{name}: {page}");
        assert!(!words.contains(&"valid") && !words.contains(&"passed"), "{name}: {page}");
    }
    // Read again, it ended in the same way, and at the same second.
    let again = report(run.directory());
    assert_eq!(again.summary["outcome"], run.summary["outcome"]);
    assert_eq!(again.stage(0)["window_end_seconds"], run.stage(0)["window_end_seconds"]);
}

#[test]
fn a_server_that_loses_every_viewer_does_not_pass() {
    let _machine = shared();
    let air = air(&config(&["close viewers=1..4 at=2s"]));
    let run = play(&air.url, "-c 4 -d 90s --warmup 0s --drain 200ms");
    assert_eq!((run.code, &run.summary["outcome"]), (99, &"nobody_left".into()));
    assert_eq!((run.total("played"), run.slots("failed")), (4.0, 4));
    let judged = run.summary["thresholds"].as_array().unwrap();
    let failed: Vec<_> =
        judged.iter().filter(|it| it["passed"] == false).map(|it| &it["expression"]).collect();
    assert_eq!(failed, ["failed.ratio <= 1%"]);
}

#[test]
fn a_server_that_reads_slowly_holds_its_publisher_up_and_is_not_given_up() {
    let _machine = shared();
    let origin = Origin::start(&config(&["read rate=300kbps"])).unwrap();
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    let run =
        measure(["publish", &url, "--bitrate", "8mbps", "-d", "22s", "--warmup", "0s", "--drain", "200ms"]);
    assert_eq!((run.failures().len(), run.well()), (0, 1), "{:?}", run.failures());
    assert!(run.total("frames") < 0.8 * 22.0 * 25.0, "held up: {} frames", run.total("frames"));
}
