//! SRT with other peers and the other way round: weir listens and publishes, and GStreamer's elements send and receive.

use super::{ended, free_port, listening};
use crate::support::{measure, program, says, shared};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use weir_testing::KilledOnDrop;

/// What `weir check` counts in a file.
fn counted(file: &Path) -> impl Fn(&str) -> f64 {
    let check = says(["check", file.to_str().unwrap(), "--json", "-"]);
    let report: Value = serde_json::from_str(&check.out).unwrap();
    move |name| report["counts"][name].as_f64().unwrap()
}

#[test]
fn a_listener_publishes_to_callers_of_others() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("received");
    for is_ffmpeg in [false, true] {
        let port = free_port("127.0.0.1");
        let theirs = format!("srt://127.0.0.1:{port}?mode=caller");
        let mut command = if is_ffmpeg {
            let mut command = program("ffmpeg", "ffmpeg");
            // A line for each picture, without decoding it.
            command.args([
                "-v", "error", "-nostdin", "-i", &theirs, "-map", "0:v", "-c", "copy", "-f", "framecrc",
            ]);
            command.arg("-");
            command
        } else {
            let mut command = program("srt-live-transmit", "srt-tools");
            command.args(["-q", "-a:no", &theirs, "file://con"]);
            command
        };
        command.stdout(std::fs::File::create(&file).unwrap()).stderr(Stdio::null());
        let url = format!("srt://127.0.0.1:{port}?mode=listener");
        let flags = ["-c", "1", "-d", "8s", "--warmup", "2s", "--bitrate", "1mbps"];
        let (run, mut caller) = std::thread::scope(|scope| {
            let publishing = scope.spawn(|| measure(["publish", &*url].into_iter().chain(flags)));
            listening(port);
            let caller = KilledOnDrop::start(&mut command);
            (publishing.join().unwrap(), caller)
        });
        assert_eq!((run.code, run.total("played")), (0, 1.0), "{}", run.err);
        assert_eq!((run.total("srt.send_dropped"), run.total("srt.send_discarded")), (0.0, 0.0));
        // It is told of the end.
        caller.ended();
        // What was under way at the end may be missing at the end.
        let (sent, arrived) = if is_ffmpeg {
            let lines = std::fs::read_to_string(&file).unwrap();
            (run.total("frames"), lines.lines().filter(|line| !line.starts_with('#')).count() as f64)
        } else {
            let count = counted(&file);
            assert_eq!((count("gap_events"), count("skipped_bytes")), (0.0, 0.0));
            (run.total("units"), count("packets"))
        };
        assert!(arrived <= sent && arrived > sent * 0.7, "ffmpeg: {is_ffmpeg}, {arrived} of {sent}");
    }
}

/// GStreamer, which writes what it has counted into a file when it ends.
fn gstreamer(arguments: &[&str], statistics: &Path) -> KilledOnDrop {
    // Debian's Python has the bindings, and no other.
    let mut command = Command::new("/usr/bin/python3");
    command.args(["-c", include_str!("../support/gst_srt.py")]).args(arguments);
    command.stdout(std::fs::File::create(statistics).unwrap());
    KilledOnDrop::start(&mut command)
}

fn said(statistics: &Path, name: &str) -> f64 {
    let text = std::fs::read_to_string(statistics).unwrap();
    let said: Value = serde_json::from_str(&text).unwrap();
    said[name].as_f64().unwrap_or_else(|| panic!("{name} is not in {text}"))
}

#[test]
fn what_gstreamer_sends_is_played_whole() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let statistics = folder.path().join("statistics");
    let port = free_port("127.0.0.1");
    let url = format!("srt://127.0.0.1:{port}?mode=listener&latency=200");
    let server = gstreamer(&["send", &url], &statistics);
    listening(port);
    let url = format!("srt://127.0.0.1:{port}");
    let run = measure(["play", &url, "-c", "1", "-d", "6s", "--warmup", "1s"]);
    assert_eq!((run.code, run.total("played")), (0, 1.0), "{}", run.err);
    ended(server);
    assert_eq!((run.total("srt.dropped"), run.total("ts.lost_packets")), (0.0, 0.0));
    let latency = run.spread("srt.latency")["max"].as_f64().unwrap();
    assert!((latency - 0.2).abs() < 0.01, "{latency}");
    // It counts the bytes of payloads until the viewer went, of which the last were never delivered: those of the latency.
    let (sent, received) = (said(&statistics, "bytes-sent-total"), run.total("srt.received") * 1_316.0);
    let delivered = run.total("units") * 188.0;
    assert!(delivered <= sent && delivered > sent * 0.8, "{delivered} of {sent} bytes");
    assert!(received > sent * 0.9 && received < sent * 1.1, "{received} of {sent} bytes");
}

#[test]
fn what_gstreamer_receives_is_what_was_published() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let [file, statistics] = ["received.ts", "statistics"].map(|name| folder.path().join(name));
    let port = free_port("127.0.0.1");
    let url = format!("srt://127.0.0.1:{port}?mode=listener&passphrase=correct-horse-battery");
    let server = gstreamer(&["receive", &url, file.to_str().unwrap()], &statistics);
    listening(port);
    let url = format!("srt://127.0.0.1:{port}?passphrase=correct-horse-battery");
    let run = measure(["publish", &url, "-c", "1", "-d", "6s", "--warmup", "1s", "--bitrate", "2mbps"]);
    assert_eq!((run.code, run.total("played")), (0, 1.0), "{}", run.err);
    ended(server);
    assert_eq!((run.total("srt.send_dropped"), run.total("srt.send_discarded")), (0.0, 0.0));
    let count = counted(&file);
    assert_eq!((count("gap_events"), count("skipped_bytes")), (0.0, 0.0));
    let (sent, arrived) = (run.total("units"), count("packets"));
    assert!(arrived <= sent && arrived > sent * 0.9, "{arrived} of {sent}");
    assert_eq!(said(&statistics, "bytes-received-total"), arrived * 188.0);
}

#[test]
fn every_datagram_that_came_to_the_relay_is_in_one_of_its_counts() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let peer = UdpSocket::bind("127.0.0.1:0").unwrap();
    let (port, to) = (free_port("127.0.0.1"), peer.local_addr().unwrap().to_string());
    let mut command = crate::support::weir();
    command.args(["relay", "--listen", &format!("127.0.0.1:{port}"), "--to", &to, "--json"]);
    command.args(["--loss", "20%", "--delay", "1s", "--rate", "1mbps", "--queue", "500ms"]);
    command.stdout(std::fs::File::create(&out).unwrap()).stderr(Stdio::null());
    let mut relay = KilledOnDrop::start(&mut command);
    listening(port);
    let client = UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |count: usize| {
        (0..count).for_each(|_| assert_eq!(client.send_to(&[7; 1_000], ("127.0.0.1", port)).unwrap(), 1_000));
    };
    send(200);
    std::thread::sleep(Duration::from_millis(1_500));
    let signal = |signal| kill_process(Pid::from_child(&relay.0), signal).unwrap();
    // While it stands still nothing is read; when it goes on it is to end.
    signal(Signal::STOP);
    send(300);
    signal(Signal::INT);
    signal(Signal::CONT);
    relay.ended();
    let account: Value = serde_json::from_str(&std::fs::read_to_string(&out).unwrap()).unwrap();
    let names = ["forwarded", "dropped", "overflowed", "lost_here", "unread", "on_its_way"];
    let counts = names.map(|name| account["to_peer"][name].as_u64().unwrap());
    assert_eq!(counts.iter().sum::<u64>(), 500, "{account}");
    assert!(counts[0] > 0 && counts[1] > 0 && counts[2] > 0, "{account}");
    assert_eq!((&account["clients"], &account["refused_clients"]), (&1.into(), &0.into()));
    assert_eq!(account["failed_clients"], 0);
}
