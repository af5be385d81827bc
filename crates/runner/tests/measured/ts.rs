//! MPEG-TS over HTTP: what a server sends, leaves out and refuses is what weir reports.

use crate::support::{Run, measure, play as play_with, recompute};
use crate::transport::{BIT_RATE, Framing, Response, Server, VIDEO_PID, stream, without};
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use weir_runner::ErrorKind::Thresholds;
use weir_testing::{KilledOnDrop, free_port, program, soon, undisturbed};

/// Four viewers for three seconds, with more keys.
fn four_viewers(url: &str, more: &str) -> Run {
    four_viewers_asked(url, more, &[])
}

/// The same, of whom this is asked.
fn four_viewers_asked(url: &str, more: &str, asked: &[&str]) -> Run {
    measure(&format!(
        "drain: 500ms\nthresholds: {asked:?}\nworkloads: [{{play: '{url}', clients: 4, duration: 3s, arrival: 100/s{more}}}]"
    ))
}

fn play(url: &str) -> Run {
    four_viewers(url, "")
}

#[test]
fn packets_that_a_server_leaves_out_are_lost_for_every_viewer() {
    undisturbed(|| {
        let body = without(&stream(20), &[(400, 1), (700, 5), (1_000, 9), (1_400, 1)]);
        for framing in [Framing::Chunked, Framing::Close] {
            let response = Response { pace: Some(BIT_RATE), ..Response::ok(framing, body.clone()) };
            let server = Server::start(move |_| response.clone());
            // By the name that `weir check` has for it.
            let asked = ["ts.skipped_bytes == 0", "ts.lost_packets == 64"];
            let run = four_viewers_asked(&server.url("/x.ts"), "", &asked);
            let judged = &run.summary["thresholds"][0];
            assert_eq!((&judged["passed"], &judged["value"]), (&true.into(), &0.0.into()));
            assert_eq!((run.missed, run.slots("planned"), run.well()), (None, 4, 4), "{:?}", run.failures());
            assert_eq!(run.total("played"), 4.0);
            assert_eq!(run.total("ts.lost_packets"), 4.0 * 16.0, "{framing:?}");
            assert_eq!(run.total("ts.gap_events"), 4.0 * 4.0, "{framing:?}");
            assert_eq!((run.total("ts.resyncs"), run.total("ts.skipped")), (0.0, 0.0));
            assert_eq!(run.total("stalls"), 0.0);
            let rate = |key: &str| run.stage(0)[key].as_f64().unwrap() / (4 * BIT_RATE) as f64;
            assert!((0.9..=1.1).contains(&rate("actual_bps")), "{} of the rate", rate("actual_bps"));
            assert!((0.97..=1.03).contains(&rate("expected_bps")), "{} of the rate", rate("expected_bps"));
        }
    });
}

#[test]
fn who_met_a_gap_says_whether_it_was_made_for_all_or_for_one() {
    let (whole, all) = (stream(20), [(4_100, 2), (4_600, 5)]);
    let one: Vec<_> = all.into_iter().chain([(4_300, 3), (5_200, 1), (5_500, 7)]).collect();
    let bodies = [without(&whole, &all), without(&whole, &one)]
        .map(|body| Response { pace: Some(BIT_RATE), ..Response::ok(Framing::Chunked, body) });
    let asked = AtomicU32::new(0);
    // Of three readers the second loses more than the others.
    let server =
        Server::start(move |_| bodies[usize::from(asked.fetch_add(1, Ordering::Relaxed) == 1)].clone());
    let url = server.url("/x.ts");
    let run = play_with(&url, "clients: 3, duration: 10s, arrival: 100/s");
    assert_eq!(
        (run.missed, run.well(), run.total("ts.gap_events")),
        (Some(Thresholds), 3, 9.0),
        "{:?}",
        run.failures()
    );
    let channel = &run.workloads()[0]["channels"][0];
    let gaps = |key: &str| channel["gaps"][key].as_u64().unwrap();
    assert_eq!((gaps("of_source"), gaps("unknown")), (2, 0), "{channel:#}");
    // A busy machine may close a window of one of them meanwhile; then it is weir's.
    assert_eq!(gaps("of_connection") + gaps("of_generator"), 3, "{channel:#}");
    let again = recompute(run.directory());
    assert_eq!(&again["workloads"][0]["channels"][0], channel, "told again from the run directory");
}

#[test]
fn a_lost_packet_fails_a_threshold() {
    let response =
        Response { pace: Some(BIT_RATE), ..Response::ok(Framing::Close, without(&stream(9), &[(400, 1)])) };
    let server = Server::start(move |_| response.clone());
    let url = server.url("/x.ts");
    let run = measure(&format!(
        "thresholds: ['ts.lost_packets == 0']\nworkloads: [{{play: '{url}', duration: 2s}}]"
    ));
    assert_eq!((run.missed, run.total("ts.lost_packets")), (Some(Thresholds), 1.0));
}

#[test]
fn what_a_server_answers_is_a_named_failure_with_its_words() {
    let server = Server::start(|request| {
        let granted = request.contains("\r\nAuthorization: Basic bWU6c2VjcmV0\r\n");
        match request.split(' ').nth(1).unwrap() {
            "/busy" => Response::refusal("503 Tuner Resource Unavailable"),
            "/circle" | "/circle?token=secret" => moved("/circle?token=secret"),
            "/away" => moved("http://me:secret@no-such-host.invalid/y.ts?token=secret"),
            "/moved" => moved("../mine?key=secret"),
            "/mine?key=secret" if granted => Response::ok(Framing::Length, stream(4)),
            "/mine?key=secret" => Response::refusal("401 Who are you"),
            _ => Response::refusal("404 No such service"),
        }
    });
    for (path, failure, words) in [
        ("/busy", "unavailable", "503 Tuner Resource Unavailable"),
        ("/circle", "redirect_failed", "302 Found leads to /circle?…: 5 redirects in a row"),
        ("/away", "redirect_failed", "no-such-host.invalid has no address"),
        ("/mine?key=secret", "unauthorized", "401 Who are you"),
        ("/nothing", "stream_not_found", "404 No such service"),
    ] {
        let run = play(&server.url(path));
        let (kind, clients, side, said) = run.failure();
        assert_eq!(
            (kind.as_str(), clients, side.as_str(), run.missed),
            (failure, 4, "remote", Some(Thresholds)),
            "{path}"
        );
        assert!(said.contains(words), "{said}");
        assert_keeps_secrets(&run);
    }
    // A redirect to the same server takes credentials along.
    let run = play(&server.url("/moved").replace("http://", "http://me:secret@"));
    let (kind, clients, _, said) = run.failure();
    assert_eq!((kind.as_str(), clients, run.total("played")), ("stream_ended", 4, 4.0), "{said}");
    assert!(said.contains("as announced"), "{said}");
    assert_keeps_secrets(&run);
}

fn moved(location: &str) -> Response {
    Response { fields: format!("Location: {location}\r\n"), ..Response::refusal("302 Found") }
}

#[test]
fn a_server_that_dies_has_closed_and_one_that_hangs_has_answered_nothing() {
    let short = 500_000;
    let cut = Response { pace: Some(BIT_RATE), short, ..Response::ok(Framing::Chunked, stream(4)) };
    let server = Server::start(move |_| cut.clone());
    let (kind, clients, side, words) = play(&server.url("/x.ts")).failure();
    assert_eq!((kind.as_str(), clients, side.as_str()), ("closed_by_peer", 4, "remote"), "{words}");
    assert!(words.contains("before its last chunk"), "{words}");

    let silent = Server::start(|_| {
        std::thread::sleep(Duration::from_secs(20));
        Response::refusal("200 OK")
    });
    let run = four_viewers(&silent.url("/x.ts"), ", timeout: 1s");
    let (kind, clients, _, words) = run.failure();
    assert_eq!((kind.as_str(), clients), ("request_timeout", 4), "{words}");

    let scrambled = Server::start(|_| Response {
        pace: Some(BIT_RATE),
        ..Response::ok(Framing::Close, stream(4).chunks(188).map(scramble).collect::<Vec<_>>().concat())
    });
    let run = four_viewers(&scrambled.url("/x.ts"), ", timeout: 1s");
    let (kind, clients, _, words) = run.failure();
    assert_eq!((kind.as_str(), clients), ("no_media", 4), "{words}");
    assert!(words.contains("scrambled"), "{words}");
    assert!(run.total("ts.scrambled_packets") > 0.0);
}

/// The packet with the even key, if it carries pictures.
fn scramble(packet: &[u8]) -> Vec<u8> {
    let mut packet = packet.to_vec();
    if u16::from_be_bytes([packet[1], packet[2]]) & 0x1FFF == VIDEO_PID {
        packet[3] |= 0x80;
    }
    packet
}

fn assert_keeps_secrets(run: &Run) {
    for file in std::fs::read_dir(run.directory()).unwrap() {
        let path = file.unwrap().path();
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        assert!(!text.contains("secret"), "{} holds a secret", path.display());
    }
    assert!(!run.summary.to_string().contains("secret"));
}

#[test]
fn a_stream_of_ffmpegs_plays_without_loss() {
    let port = free_port();
    let url = format!("http://127.0.0.1:{port}/x.ts");
    let mut ffmpeg = program("ffmpeg", "ffmpeg");
    ffmpeg.args(
        "-nostdin -v error -re -f lavfi -i testsrc2=s=320x180:r=25 -f lavfi -i sine=r=48000".split(' '),
    );
    ffmpeg.args("-c:v libx264 -preset ultrafast -b:v 500k -g 25 -pix_fmt yuv420p -c:a aac -t 20".split(' '));
    ffmpeg.args(["-f", "mpegts", "-listen", "1", &url]).stdout(Stdio::null()).stderr(Stdio::null());
    let _ffmpeg = KilledOnDrop::start(&mut ffmpeg);
    // It serves one connection only, so it must not be tried.
    let listens = format!(":{port:04X} 00000000:0000 0A ");
    soon("ffmpeg listens", || std::fs::read_to_string("/proc/net/tcp").unwrap().contains(&listens));
    let run = measure(&format!("drain: 500ms\nworkloads: [{{play: '{url}', duration: 4s}}]"));
    assert_eq!((run.missed, run.well(), run.total("played")), (None, 1, 1.0), "{:?}", run.failures());
    for figure in ["ts.lost_packets", "ts.illegal_duplicates", "ts.resyncs", "ts.crc_error", "ts.pts_jumps"] {
        assert_eq!(run.total(figure), 0.0, "{figure}");
    }
    assert!(run.total("ts.pcrs") > 20.0 && run.total("units") > 500.0);
}
