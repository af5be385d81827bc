//! Clients of SRT that share UDP sockets: what they count is what those with sockets of their own do.

use super::{ended, free_port, listening, live_transmit};
use crate::support::{Publishing, Run, measure, origin_process, says, shared};
use std::time::Duration;

/// Runs clients through a relay that loses 3 %; what they counted, and what the relay did.
fn through_a_relay(verb: &str, origin: &str, stream: &str, flags: &[&str]) -> (Run, serde_json::Value) {
    let port = free_port("127.0.0.1");
    let (listen, to) = (format!(":{port}"), origin.to_owned());
    let relay = std::thread::spawn(move || {
        let flags = ["--loss", "3%", "--delay", "10ms", "--seed", "5", "-d", "12s", "--json"];
        says(["relay", "--listen", &listen, "--to", &to].into_iter().chain(flags))
    });
    listening(port);
    let url = format!("srt://127.0.0.1:{port}?streamid=#!::r={stream}&latency=1500");
    let run = measure([verb, &url, "-d", "6s", "--warmup", "0s"].into_iter().chain(flags.iter().copied()));
    (run, serde_json::from_str(&relay.join().unwrap().out).unwrap())
}

#[test]
fn clients_on_one_socket_recover_what_a_relay_loses_as_those_on_sockets_of_their_own_do() {
    let _machine = shared();
    let srt = format!("127.0.0.1:{}", free_port("127.0.0.1"));
    let (_origin, _) = origin_process(&["--srt", &srt]);
    listening(srt.rsplit_once(':').unwrap().1.parse().unwrap());
    let live = format!("srt://{srt}?streamid=#!::r=live/a,m=publish");
    let _publishing = Publishing::start(&live, &["--gop", "1s", "--bitrate", "1mbps"]);
    std::thread::sleep(Duration::from_secs(2));
    let of_one: &[&str] = &["--shards", "1", "--sockets", "1"];
    let own: &[&str] = &["--shards", "1"];
    for (sharing, sockets) in [(of_one, 1), (own, 6)] {
        let flags = [&["-c", "6"], sharing].concat();
        let (run, relay) = through_a_relay("play", &srt, "live/a,m=request", &flags);
        // 98: weir was the limit, which a busy machine makes it.
        assert!([0, 98].contains(&run.code), "{}", run.err);
        assert_eq!(run.total("played"), 6.0, "{}", run.err);
        assert_eq!(relay["clients"], sockets, "the relay tells them apart by their addresses");
        for figure in ["srt.dropped", "ts.lost_packets", "srt.malformed", "socket_drops"] {
            assert_eq!(run.total(figure), 0.0, "{figure}");
        }
        let share = run.total("srt.missing") / run.total("srt.received");
        assert!((0.01..0.06).contains(&share), "{share}");
        // What was missing in the last latency, a quarter of the run, has not been delivered.
        assert!(run.total("srt.recovered") > 0.6 * run.total("srt.missing"));

        let flags = [&["--streams", "6", "--bitrate", "1mbps"], sharing].concat();
        let stream = format!("live/{sockets}x{{i}},m=publish");
        let (run, relay) = through_a_relay("publish", &srt, &stream, &flags);
        // 98: weir was the limit, which a busy machine makes it.
        assert!([0, 98].contains(&run.code), "{}", run.err);
        assert_eq!(run.total("played"), 6.0, "{}", run.err);
        assert_eq!(relay["clients"], sockets);
        for figure in ["srt.send_dropped", "srt.send_discarded", "srt.malformed", "socket_drops"] {
            assert_eq!(run.total(figure), 0.0, "{figure}");
        }
        let share = run.total("srt.retransmitted") / run.total("srt.sent");
        assert!(share > 0.01, "{share}");
        let round_trip = run.spread("srt.round_trip")["p50"].as_f64().unwrap();
        assert!(round_trip >= 0.02, "{round_trip}");
    }
}

#[test]
fn listeners_of_libsrt_take_clients_that_share_sockets_and_are_told_of_their_end() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("received.ts");
    let port = free_port("127.0.0.1");
    let server = live_transmit(port, "&passphrase=correct-horse-battery", &file);
    listening(port);
    let url = format!("srt://127.0.0.1:{port}?passphrase=correct-horse-battery");
    let run = measure([
        "publish",
        &url,
        "-c",
        "1",
        "-d",
        "5s",
        "--warmup",
        "1s",
        "--sockets",
        "1",
        "--bitrate",
        "2mbps",
    ]);
    assert!([0, 98].contains(&run.code), "{}", run.err);
    assert_eq!(run.total("played"), 1.0, "{}", run.err);
    assert_eq!((run.total("srt.send_dropped"), run.total("srt.send_discarded")), (0.0, 0.0));
    ended(server);
    let check = says(["check", file.to_str().unwrap(), "--json", "-"]);
    let report: serde_json::Value = serde_json::from_str(&check.out).unwrap();
    let count = |name: &str| report["counts"][name].as_f64().unwrap();
    assert_eq!((count("gap_events"), count("skipped_bytes")), (0.0, 0.0));
    let (sent, arrived) = (run.total("units"), count("packets"));
    assert!(arrived <= sent && arrived > sent * 0.9, "{arrived} of {sent}");
}
