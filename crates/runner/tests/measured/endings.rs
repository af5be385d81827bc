//! Connections that end badly: each by its name, counted, with the server's own words.

use crate::support::{air, config, measure, play, publish, recompute};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use weir_origin::{MissingStream, Origin};
use weir_runner::ErrorKind::{self, TargetDied, Thresholds};
use weir_testing::free_port;

#[test]
fn three_of_eight_connections_reset_are_three_resets() {
    let air = air(&config(&["reset viewers=3..5 at=1s"]));
    let run = play(&air.url, "clients: 8, duration: 3s");
    let (kind, clients, side, _) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("reset", 3, "remote"));
    assert_eq!((run.slots("planned"), run.well()), (8, 5));
}

#[test]
fn two_of_six_connections_closed_are_two_closed_by_the_peer() {
    let air = air(&config(&["close viewers=1..2 at=1s"]));
    let run = play(&air.url, "clients: 6, duration: 3s");
    let (kind, clients, side, words) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("closed_by_peer", 2, "remote"));
    assert!(!words.is_empty());
    assert_eq!((run.slots("planned"), run.well()), (6, 4));
}

#[test]
fn who_is_not_let_in_is_unauthorized_in_the_servers_words() {
    for phase in ["connect", "play"] {
        let fault = format!("unauthorized phase={phase} words=401 come back with a ticket");
        let origin = Origin::start(&config(&[&fault])).unwrap();
        let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
        let run = play(&url, "clients: 5, duration: 2s");
        let (kind, clients, side, words) = run.failure();
        assert_eq!((kind.as_str(), clients, side.as_str()), ("unauthorized", 5, "remote"), "{phase}");
        assert!(words.contains("come back with a ticket"), "{phase}: {words}");
        assert_eq!((run.slots("planned"), run.well(), run.missed), (5, 0, Some(Thresholds)), "{phase}");
    }
}

#[test]
fn a_publisher_that_is_not_let_in_is_unauthorized_too() {
    let origin = Origin::start(&config(&["unauthorized phase=publish words=403 not yours"])).unwrap();
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    let run = publish(&url, "duration: 2s");
    let (kind, clients, _, words) = run.failure();
    assert_eq!((kind.as_str(), clients), ("unauthorized", 1));
    assert!(words.contains("403 not yours"), "{words}");
}

#[test]
fn a_server_that_falls_silent_is_named_by_its_phase() {
    let faults = ["accept", "handshake", "connect", "play"].map(|phase| format!("silent phase={phase}"));
    let expected = ["handshake_timeout", "handshake_timeout", "request_timeout", "request_timeout"];
    std::thread::scope(|scope| {
        for (fault, expected) in faults.iter().zip(expected) {
            scope.spawn(move || {
                let origin = Origin::start(&config(&[fault])).unwrap();
                // A server that does not even shake hands has given no answer.
                let missed = if expected == "handshake_timeout" { TargetDied } else { Thresholds };
                assert_fails_with(&origin, expected, missed);
            });
        }
    });
}

#[test]
fn a_server_that_falls_silent_and_keeps_its_viewers_is_said_and_does_not_pass() {
    let air = air(&config(&["stall at=3s for=1h"]));
    let run = measure(&format!(
        "warmup: 1s\nworkloads: [{{play: '{}', clients: 6, timeout: 2s, duration: 14s}}]",
        air.url
    ));
    // Nobody failed, and nobody plays: each found out once.
    assert_eq!(
        (run.missed, run.well(), run.total("played"), run.total("starved")),
        (Some(Thresholds), 6, 6.0, 6.0)
    );
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
    let text = run.file("report.txt");
    assert!(warnings.contains("do not describe the target"), "{warnings}");
    assert!(text.contains("the source or the server"), "{text}");
}

#[test]
fn a_server_that_consents_and_sends_nothing_has_no_media() {
    let origin = Origin::start(&config(&[])).unwrap();
    assert_fails_with(&origin, "no_media", Thresholds);
}

fn assert_fails_with(origin: &Origin, expected: &str, missed: ErrorKind) {
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    let run = play(&url, "clients: 3, duration: 4s, timeout: 1s");
    let (kind, clients, side, words) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), (expected, 3, "remote"));
    assert!(words.contains("time"), "{words}");
    assert_eq!((run.missed, run.total("played")), (Some(missed), 0.0));
}

#[test]
fn a_server_that_accepts_no_connection_is_a_connect_timeout() {
    // A queue of one, filled: the system drops whatever else comes.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    let any: std::net::SocketAddr = "127.0.0.1:0".parse().unwrap();
    socket.bind(&any.into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let _waiting = TcpStream::connect(address).unwrap();
    let url = format!("rtmp://{address}/live/a");
    let run = play(&url, "clients: 2, duration: 3s, timeout: 1s");
    assert_eq!(run.failures().into_iter().collect::<Vec<_>>(), [("connect_timeout".to_owned(), 2)]);
}

#[test]
fn nobody_listening_is_a_refused_connection_and_fails_the_run() {
    let url = format!("rtmp://127.0.0.1:{}/live/a", free_port());
    let run = play(&url, "clients: 7, duration: 1s");
    let (kind, clients, side, _) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("connection_refused", 7, "remote"));
    assert_eq!(run.missed, Some(TargetDied));
}

#[test]
fn a_stream_that_nobody_publishes_is_not_found() {
    let origin =
        Origin::start(&weir_origin::OriginConfig { missing_stream: MissingStream::Refuse, ..config(&[]) })
            .unwrap();
    let url = format!("rtmp://{}/live/nobody", origin.address("rtmp").unwrap());
    let run = play(&url, "clients: 4, duration: 1s");
    let (kind, clients, side, words) = run.failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("stream_not_found", 4, "remote"));
    assert!(words.contains("NetStream.Play.StreamNotFound"), "{words}");
}

#[test]
fn a_run_without_clients_ends_and_says_what_became_of_them() {
    let url = format!("rtmp://127.0.0.1:{}/live/a", free_port());
    let began = Instant::now();
    let run = play(&url, "clients: 7, duration: 90s");
    assert!(began.elapsed() < Duration::from_secs(45), "{:?}", began.elapsed());
    assert_eq!((run.missed, &run.summary["outcome"]), (Some(TargetDied), &"nobody_left".into()));
    let (kind, clients, ..) = run.failure();
    assert_eq!((&*kind, clients), ("connection_refused", 7));
    let text = run.file("report.txt");
    assert!(text.contains("every client had failed"), "{text}");
    // Nothing is valid of it, and nothing has passed, in whatever format.
    assert_eq!(run.summary["verdict"]["state"], "nothing_measured");
    for name in ["report.txt", "report.md", "report.html", "report.xml"] {
        let page = run.file(name);
        let words: Vec<_> = page.split(|c: char| !c.is_alphanumeric()).collect();
        assert!(page.contains("nothing measured"), "{name}: {page}");
        assert!(!words.contains(&"valid") && !words.contains(&"passed"), "{name}: {page}");
    }
    // Read again, it ended in the same way, and at the same second.
    let again = recompute(run.directory());
    assert_eq!(again["outcome"], run.summary["outcome"]);
    assert_eq!(again["workloads"][0]["stages"][0]["window_end_seconds"], run.stage(0)["window_end_seconds"]);
}

#[test]
fn a_server_that_loses_every_viewer_does_not_pass() {
    let air = air(&config(&["close viewers=1..4 at=2s"]));
    let run = play(&air.url, "clients: 4, duration: 90s");
    assert_eq!((run.missed, &run.summary["outcome"]), (Some(Thresholds), &"nobody_left".into()));
    assert_eq!((run.total("played"), run.slots("failed")), (4.0, 4));
    let judged = run.summary["thresholds"].as_array().unwrap();
    let failed: Vec<_> =
        judged.iter().filter(|it| it["passed"] == false).map(|it| &it["expression"]).collect();
    assert_eq!(failed, ["failed.ratio <= 1%"]);
}

#[test]
fn a_server_that_reads_slowly_holds_its_publisher_up_and_is_not_given_up() {
    let origin = Origin::start(&config(&["read rate=300kbps"])).unwrap();
    let url = format!("rtmp://{}/live/a", origin.address("rtmp").unwrap());
    let run = publish(&url, "bitrate: 8mbps, duration: 22s");
    assert_eq!((run.failures().len(), run.well()), (0, 1), "{:?}", run.failures());
    assert!(run.total("frames") < 0.8 * 22.0 * 25.0, "held up: {} frames", run.total("frames"));
}
