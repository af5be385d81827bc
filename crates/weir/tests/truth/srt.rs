//! SRT: weir plays from ffmpeg and from srt-live-transmit and publishes into srt-live-transmit, all on libsrt; what it says was lost and
//! recovered is what a relay between the two has left out.

mod peers;
mod sockets;

use crate::support::{Publishing, measure, no_file_has, origin_process, program, says, shared};
use std::collections::BTreeSet;
use std::net::{SocketAddr, UdpSocket};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_testing::{KilledOnDrop, soon};

/// Without a sign that URLs escape: srt-live-transmit takes what stands there as it is.
const PASSPHRASE: &str = "correct-horse-battery";

/// A port that no UDP socket of this machine has now.
fn free_port(host: &str) -> u16 {
    UdpSocket::bind((host, 0)).unwrap().local_addr().unwrap().port()
}

/// Waits until a process listens on a port of UDP.
fn listening(port: u16) {
    soon("a listener of SRT", || {
        let sockets = program("ss", "iproute2").args(["-Hlun", "sport", "=", &format!(":{port}")]).output();
        !sockets.unwrap().stdout.is_empty()
    });
}

/// ffmpeg, as a listener that sends to one caller.
fn ffmpeg(url: &str) -> KilledOnDrop {
    let mut command = program("ffmpeg", "ffmpeg");
    command.args(["-v", "error", "-nostdin", "-re", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25"]);
    command.args([
        "-f",
        "lavfi",
        "-i",
        "sine",
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
        "-tune",
        "zerolatency",
    ]);
    command.args(["-g", "25", "-c:a", "aac", "-f", "mpegts", url]).stderr(Stdio::null());
    KilledOnDrop::start(&mut command)
}

/// srt-live-transmit, as a listener that writes what it gets into a file.
fn live_transmit(port: u16, parameters: &str, file: &Path) -> KilledOnDrop {
    let mut command = program("srt-live-transmit", "srt-tools");
    let url = format!("srt://127.0.0.1:{port}?mode=listener{parameters}");
    command.args(["-q", "-a:no", &url, "file://con"]);
    command.stdout(std::fs::File::create(file).unwrap()).stderr(Stdio::null());
    KilledOnDrop::start(&mut command)
}

fn ended(mut process: KilledOnDrop) {
    process.terminate();
    process.ended();
}

#[test]
fn a_stream_of_ffmpeg_is_played_whole_over_both_versions_of_ip() {
    let _machine = shared();
    for (host, name) in [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")] {
        let port = free_port(host);
        let server = ffmpeg(&format!("srt://{name}:{port}?mode=listener&latency=200000"));
        listening(port);
        let url = format!("srt://{name}:{port}");
        let run = measure(["play", &url, "-c", "1", "-d", "6s", "--warmup", "2s"]);
        assert_eq!((run.code, run.total("played")), (0, 1.0), "{}", run.err);
        assert_eq!((run.total("srt.dropped"), run.total("ts.lost_packets")), (0.0, 0.0));
        assert!(run.total("srt.received") > 100.0 && run.total("ts.pcrs") > 50.0);
        // The listener wants more than weir does, and has it.
        let latency = run.spread("srt.latency")["max"].as_f64().unwrap();
        assert!((latency - 0.2).abs() < 0.01, "{latency}");
        drop(server);
    }
}

#[test]
fn what_is_published_arrives_whole_with_and_without_a_passphrase_whose_keys_are_refreshed() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let encrypted = format!("&passphrase={PASSPHRASE}");
    let cases = [
        (String::new(), String::new(), false),
        (encrypted.clone(), format!("{encrypted}&pbkeylen=16&kmrefreshrate=300&kmpreannounce=100"), true),
        (encrypted.clone(), format!("{encrypted}&pbkeylen=24"), false),
        (encrypted.clone(), format!("{encrypted}&pbkeylen=32"), false),
    ];
    for (number, (theirs, ours, refreshes)) in cases.into_iter().enumerate() {
        let (port, file) = (free_port("127.0.0.1"), folder.path().join(format!("{number}.ts")));
        let server = live_transmit(port, &theirs, &file);
        listening(port);
        let url = format!("srt://127.0.0.1:{port}?streamid=live/a{ours}");
        let arguments = ["-c", "1", "-d", "5s", "--warmup", "1s", "--bitrate", "2mbps"];
        let run = measure(["publish", &url].into_iter().chain(arguments));
        assert_eq!((run.code, run.total("played")), (0, 1.0), "{}", run.err);
        ended(server);
        let check = says(["check", file.to_str().unwrap(), "--json", "-"]);
        let report: serde_json::Value = serde_json::from_str(&check.out).unwrap();
        let count = |name: &str| report["counts"][name].as_u64().unwrap();
        assert_eq!((count("gap_events"), count("skipped_bytes")), (0, 0), "{number}");
        // What was under way at the end may be missing at the end.
        let (sent, arrived) = (run.total("units"), count("packets") as f64);
        assert!(arrived <= sent && arrived > sent * 0.9, "{number}: {arrived} of {sent}");
        assert_eq!(run.total("srt.encrypted"), f64::from(u8::from(number > 0)));
        assert_eq!(run.total("srt.key_refreshes") >= 2.0, refreshes, "{number}");
        assert_eq!(run.total("srt.send_dropped"), 0.0);
        no_file_has(run.directory(), PASSPHRASE);
    }
}

#[test]
fn a_refusal_is_said_by_its_name() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let port = free_port("127.0.0.1");
    let server = live_transmit(port, "&passphrase=correcthorse", &folder.path().join("x.ts"));
    listening(port);
    for (parameters, name) in [("", "REJ_UNSECURE"), ("?passphrase=incorrecthorse", "REJ_BADSECRET")] {
        let url = format!("srt://127.0.0.1:{port}{parameters}");
        let run = measure(["publish", &url, "-c", "1", "-d", "3s", "--warmup", "0s"]);
        let (kind, count, _, words) = run.failure();
        assert_eq!((&*kind, count), ("unauthorized", 1));
        assert!(words.contains(name), "{words}");
    }
    drop(server);
}

/// Carries datagrams between a caller and a listener, and leaves out one first copy of a data packet in `one_in`.
struct Relay {
    address: SocketAddr,
    /// Message numbers of what was left out, of packets that the listener has sent.
    left_out: Arc<Mutex<BTreeSet<u32>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    fn start(listener: SocketAddr, one_in: u32) -> Self {
        let front = UdpSocket::bind("127.0.0.1:0").unwrap();
        let back = UdpSocket::bind("127.0.0.1:0").unwrap();
        back.connect(listener).unwrap();
        for socket in [&front, &back] {
            socket.set_nonblocking(true).unwrap();
        }
        let (address, left_out) = (front.local_addr().unwrap(), Arc::new(Mutex::new(BTreeSet::new())));
        let stop = Arc::new(AtomicBool::new(false));
        let (lost, stopped) = (Arc::clone(&left_out), Arc::clone(&stop));
        let thread = std::thread::spawn(move || {
            let (mut caller, mut buffer, mut seen) = (None, [0; 2_048], 0u32);
            while !stopped.load(Ordering::Relaxed) {
                let mut idle = true;
                while let Ok((length, from)) = front.recv_from(&mut buffer) {
                    (caller, idle) = (Some(from), false);
                    let _ = back.send(&buffer[..length]);
                }
                while let Ok(length) = back.recv(&mut buffer) {
                    idle = false;
                    let message = u32::from_be_bytes([buffer[4], buffer[5], buffer[6], buffer[7]]);
                    let is_first = buffer[0] & 0x80 == 0 && message & 1 << 26 == 0;
                    seen += u32::from(is_first);
                    // Scattered, and the same in each run.
                    if is_first && seen.wrapping_mul(2_654_435_761) % one_in == 0 {
                        lost.lock().unwrap().insert(message & 0x3FF_FFFF);
                    } else if let Some(caller) = caller {
                        let _ = front.send_to(&buffer[..length], caller);
                    }
                }
                if idle {
                    std::thread::sleep(Duration::from_micros(200));
                }
            }
        });
        Self { address, left_out, stop, thread: Some(thread) }
    }

    fn end(mut self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        let left_out = self.left_out.lock().unwrap();
        left_out.len()
    }
}

#[test]
fn what_a_relay_leaves_out_is_what_was_recovered() {
    let _machine = shared();
    let port = free_port("127.0.0.1");
    let server = ffmpeg(&format!("srt://127.0.0.1:{port}?mode=listener"));
    listening(port);
    let relay = Relay::start(([127, 0, 0, 1], port).into(), 20);
    let url = format!("srt://{}?latency=600", relay.address);
    let run = measure(["play", &url, "-c", "1", "-d", "8s", "--warmup", "0s", "--drain", "1s"]);
    assert_eq!((run.code, run.total("played")), (0, 1.0), "{}", run.err);
    let left_out = relay.end() as f64;
    drop(server);
    assert!(left_out >= 20.0, "{left_out}");
    assert_eq!((run.total("srt.dropped"), run.total("ts.lost_packets")), (0.0, 0.0));
    // What the relay left out in the last latency has not been delivered.
    let recovered = run.total("srt.recovered");
    assert!(recovered <= left_out && recovered >= left_out * 0.8, "{recovered} of {left_out}");
    assert!(run.total("srt.missing") >= recovered && run.total("srt.loss_reports_sent") > 0.0);
}

#[test]
fn a_file_goes_out_as_it_is() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let [made, received] = ["made.ts", "received.ts"].map(|name| folder.path().join(name));
    let mut command: Command = program("ffmpeg", "ffmpeg");
    command.args(["-v", "error", "-f", "lavfi", "-i", "testsrc2=size=160x90:rate=25:d=2", "-c:v", "libx264"]);
    assert!(command.args(["-g", "25", "-f", "mpegts"]).arg(&made).status().unwrap().success());
    let port = free_port("127.0.0.1");
    let server = live_transmit(port, "", &received);
    listening(port);
    let url = format!("srt://127.0.0.1:{port}");
    let file = made.to_str().unwrap();
    let run = measure(["publish", &url, "--file", file, "-c", "1", "-d", "7s", "--warmup", "1s"]);
    assert_eq!((run.code, run.total("played")), (0, 1.0), "{}", run.err);
    ended(server);
    let check = says(["check", received.to_str().unwrap(), "--json", "-"]);
    let report: serde_json::Value = serde_json::from_str(&check.out).unwrap();
    // Three passes, and no break between them.
    assert_eq!(report["counts"]["gap_events"], 0);
    assert_eq!(report["counts"]["pcr_discontinuities"], 0);
    let (made, received) = (made.metadata().unwrap().len(), received.metadata().unwrap().len());
    assert!(received > made * 5 / 2, "{received} of {made} bytes a pass");
}

#[test]
fn the_origin_takes_a_stream_of_ffmpeg_and_of_weir_and_plays_it_by_srt_and_by_rtmp() {
    let _machine = shared();
    let port = free_port("127.0.0.1");
    let srt = format!("127.0.0.1:{port}");
    let (_origin, rtmp) = origin_process(&["--srt", &srt]);
    listening(port);
    for (name, is_ours) in [("live/theirs", false), ("live/ours", true)] {
        let publish = format!("srt://{srt}?streamid=#!::r={name},m=publish");
        let _ours = is_ours.then(|| Publishing::start(&publish, &["--gop", "1s"]));
        let _theirs = (!is_ours).then(|| ffmpeg(&format!("srt://{srt}?streamid=publish:{name}")));
        std::thread::sleep(Duration::from_secs(4));
        let play = format!("srt://{srt}?streamid=#!::r={name},m=request");
        let run = measure(["play", &play, "-c", "3", "-d", "6s", "--warmup", "2s"]);
        assert_eq!((run.code, run.total("played")), (0, 3.0), "{name}: {}", run.err);
        assert_eq!((run.total("srt.dropped"), run.total("ts.lost_packets")), (0.0, 0.0), "{name}");
        let run = measure(["play", &format!("{rtmp}/{name}"), "-c", "1", "-d", "6s", "--warmup", "2s"]);
        assert_eq!((run.code, run.total("played")), (0, 1.0), "{name}: {}", run.err);
        assert!(run.total("rtmp.audio_frames") > 100.0 && run.total("keyframes") >= 4.0, "{name}");
    }
    let taken = format!("srt://{srt}?streamid=#!::r=live/ours,m=steal");
    let run = measure(["play", &taken, "-c", "1", "-d", "3s", "--warmup", "0s"]);
    assert!(run.failure().3.contains("REJX_BAD_MODE"), "{:?}", run.failure());
}

/// As `weir origin` prints its address, which is pasted behind `srt://`.
#[test]
fn a_listener_at_every_address_is_called_by_the_unspecified_one() {
    let _machine = shared();
    for (host, loopback) in [("0.0.0.0", "127.0.0.1"), ("[::]", "[::1]")] {
        let srt = format!("{host}:{}", free_port(host.trim_matches(['[', ']'])));
        let (_origin, _) = origin_process(&["--srt", &srt]);
        listening(srt.rsplit_once(':').unwrap().1.parse().unwrap());
        let url = |host: &str, mode: &str| {
            let port = srt.rsplit_once(':').unwrap().1;
            format!("srt://{host}:{port}?streamid=#!::r=live/a,m={mode}")
        };
        let _publishing = Publishing::start(&url(host, "publish"), &["--gop", "1s"]);
        std::thread::sleep(Duration::from_secs(2));
        for called in [host, loopback] {
            let run = measure(["play", &url(called, "request"), "-c", "1", "-d", "3s", "--warmup", "1s"]);
            assert_eq!((run.code, run.total("played")), (0, 1.0), "{called}: {}", run.err);
            assert_eq!(run.total("ts.lost_packets"), 0.0, "{called}");
        }
    }
}

#[test]
fn faults_of_the_origin_are_what_its_callers_count() {
    let _machine = shared();
    let port = free_port("127.0.0.1");
    let srt = format!("127.0.0.1:{port}");
    let faults = [
        "latency 900ms link=1",
        "reject phase=publish publisher=2 code=2403",
        "withhold unit=1.. publisher=3",
        "silent phase=publish publisher=4",
    ];
    let faults = faults.iter().flat_map(|fault| ["--fault", fault]);
    let (_origin, rtmp) = origin_process(&["--srt", &srt].into_iter().chain(faults).collect::<Vec<_>>());
    listening(port);
    let publish = |name: &str, flags: &str| {
        let url = format!("srt://{srt}?streamid=#!::r=live/{name},m=publish");
        measure(["publish", &url, "-c", "1", "--warmup", "0s"].into_iter().chain(flags.split(' ')))
    };
    let run = publish("a", "-d 3s");
    assert_eq!((run.code, run.total("played")), (0, 1.0), "{}", run.err);
    let latency = run.spread("srt.latency")["max"].as_f64().unwrap();
    assert!((latency - 0.9).abs() < 0.02, "{latency}");
    let (kind, _, _, words) = publish("b", "-d 2s").failure();
    assert_eq!(&*kind, "unauthorized");
    assert!(words.contains("REJX_FORBIDDEN, 2403"), "{words}");
    // What is not acknowledged is taken all the same: viewers get it, and the publisher gives it up.
    std::thread::scope(|scope| {
        let publishing = scope.spawn(|| publish("c", "-d 8s"));
        std::thread::sleep(Duration::from_secs(2));
        let run = measure(["play", &format!("{rtmp}/live/c"), "-c", "1", "-d", "4s", "--warmup", "1s"]);
        assert_eq!((run.code, run.total("played")), (0, 1.0), "{}", run.err);
        let run = publishing.join().unwrap();
        assert_eq!(run.code, 99, "{}", run.err);
        assert_eq!(run.total("srt.acks_received"), 0.0);
        assert!(run.total("srt.send_dropped") > 100.0);
    });
    let (kind, ..) = publish("d", "-d 3s --timeout 1s").failure();
    assert_eq!(&*kind, "handshake_timeout");
}

#[test]
fn a_passphrase_of_the_origin_is_asked_of_its_callers_and_is_in_no_artefact() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("passphrase");
    std::fs::write(&file, format!("{PASSPHRASE}\n")).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let port = free_port("127.0.0.1");
    let srt = format!("127.0.0.1:{port}");
    let (_origin, _) = origin_process(&["--srt", &srt, "--srt-passphrase-file", file.to_str().unwrap()]);
    listening(port);
    let publish = format!(
        "srt://{srt}?streamid=#!::r=live/a,m=publish&passphrase={PASSPHRASE}&kmrefreshrate=300&kmpreannounce=100"
    );
    let _publishing = Publishing::start(&publish, &["--gop", "1s", "--bitrate", "2mbps"]);
    std::thread::sleep(Duration::from_secs(3));
    for (parameters, name) in [("", "REJ_UNSECURE"), ("&passphrase=incorrect-horse", "REJ_BADSECRET")] {
        let play = format!("srt://{srt}?streamid=#!::r=live/a,m=request{parameters}");
        let run = measure(["play", &play, "-c", "1", "-d", "2s", "--warmup", "0s"]);
        let (kind, _, _, words) = run.failure();
        assert_eq!(&*kind, "unauthorized");
        assert!(words.contains(name), "{words}");
    }
    // Of three hundred wrong ones at once fifty are looked at, which takes the time of a twentieth of a second at the most.
    let play = format!("srt://{srt}?streamid=#!::r=live/a,m=request&passphrase=incorrect-horse");
    let began = Instant::now();
    let run = measure(["play", &play, "-c", "300", "--arrival", "3000/s", "-d", "2s", "--warmup", "0s"]);
    let failures = run.failures();
    assert_eq!(failures.values().sum::<u64>(), 300, "{failures:?}");
    let [wrong, too_many] =
        ["unauthorized", "unavailable"].map(|kind| failures.get(kind).copied().unwrap_or(0));
    // They may come in more than one second.
    let most = 50 * (began.elapsed().as_secs() + 2);
    assert!((50..=most).contains(&wrong) && wrong + too_many == 300, "{failures:?}, at most {most}");
    std::thread::sleep(Duration::from_millis(1_100));
    let play = format!("srt://{srt}?streamid=#!::r=live/a,m=request");
    let secret = file.to_str().unwrap();
    let run =
        measure(["play", &play, "--srt-passphrase-file", secret, "-c", "2", "-d", "4s", "--warmup", "1s"]);
    assert_eq!((run.code, run.total("played")), (0, 2.0), "{}", run.err);
    assert_eq!((run.total("srt.undecrypted"), run.total("srt.encrypted")), (0.0, 2.0));
    assert_eq!(run.total("ts.lost_packets"), 0.0);
    no_file_has(run.directory(), PASSPHRASE);
}

#[test]
fn clients_come_back_when_their_server_does() {
    let _machine = shared();
    let port = free_port("127.0.0.1");
    let srt = format!("127.0.0.1:{port}");
    let (first, _) = origin_process(&["--srt", &srt]);
    listening(port);
    let publish = format!("srt://{srt}?streamid=#!::r=live/a,m=publish&peeridletimeo=1000");
    let play = format!("srt://{srt}?streamid=#!::r=live/a,m=request&peeridletimeo=1000");
    let flags = ["-c", "1", "-d", "30s", "--warmup", "0s", "--reconnect"];
    std::thread::scope(|scope| {
        let publishing =
            scope.spawn(|| measure(["publish", &*publish, "--gop", "1s"].into_iter().chain(flags)));
        std::thread::sleep(Duration::from_millis(1_500));
        let playing = scope.spawn(|| measure(["play", &*play].into_iter().chain(flags)));
        std::thread::sleep(Duration::from_secs(4));
        // Killed, it says nothing: the silence ends the connections.
        drop(first);
        std::thread::sleep(Duration::from_secs(2));
        let (_second, _) = origin_process(&["--srt", &srt]);
        for run in [publishing.join().unwrap(), playing.join().unwrap()] {
            assert_eq!(run.total("played"), 1.0, "{}", run.err);
            assert!(run.failures().is_empty(), "{:?}", run.failures());
            assert!(run.total("cut_off") >= 1.0 && run.total("returned") >= 1.0, "{}", run.err);
        }
    });
}

#[test]
fn a_listener_takes_what_a_caller_of_others_sends() {
    let _machine = shared();
    let port = free_port("127.0.0.1");
    let url = format!("srt://127.0.0.1:{port}?mode=listener&passphrase={PASSPHRASE}");
    std::thread::scope(|scope| {
        let playing = scope.spawn(|| measure(["play", &*url, "-c", "1", "-d", "7s", "--warmup", "2s"]));
        listening(port);
        let _caller = ffmpeg(&format!("srt://127.0.0.1:{port}?mode=caller&passphrase={PASSPHRASE}"));
        let run = playing.join().unwrap();
        assert_eq!((run.code, run.total("played")), (0, 1.0), "{}", run.err);
        assert_eq!((run.total("srt.dropped"), run.total("ts.lost_packets")), (0.0, 0.0));
        assert_eq!((run.total("srt.encrypted"), run.total("srt.undecrypted")), (1.0, 0.0));
    });
}

#[test]
fn the_verb_relay_loses_by_a_seed_what_its_viewer_recovers() {
    let _machine = shared();
    let port = free_port("127.0.0.1");
    let server = ffmpeg(&format!("srt://127.0.0.1:{port}?mode=listener"));
    listening(port);
    let relay_port = free_port("127.0.0.1");
    let (listen, to) = (format!(":{relay_port}"), format!("127.0.0.1:{port}"));
    let relay = std::thread::spawn(move || {
        let flags =
            ["--loss", "5%", "--delay", "20ms", "--jitter", "5ms", "--seed", "3", "-d", "16s", "--json"];
        says(["relay", "--listen", &listen, "--to", &to].into_iter().chain(flags))
    });
    listening(relay_port);
    let url = format!("srt://127.0.0.1:{relay_port}?latency=2000");
    let run = measure(["play", &url, "-c", "1", "-d", "8s", "--warmup", "0s", "--drain", "1s"]);
    assert_eq!((run.code, run.total("played")), (0, 1.0), "{}", run.err);
    let said = relay.join().unwrap();
    drop(server);
    let account: serde_json::Value = serde_json::from_str(&said.out).unwrap();
    let count = |way: &str, name: &str| account[way][name].as_f64().unwrap();
    let (forwarded, dropped) = (count("to_clients", "forwarded"), count("to_clients", "dropped"));
    let share = dropped / (forwarded + dropped);
    assert!((0.02..0.09).contains(&share), "{share}");
    assert!(count("to_clients", "mean_delay") >= 0.02 && account["clients"] == 1, "{account}");
    assert_eq!(count("to_clients", "overflowed"), 0.0);
    assert_eq!((run.total("srt.dropped"), run.total("ts.lost_packets")), (0.0, 0.0));
    // Copies and control packets are lost as well.
    let recovered = run.total("srt.recovered");
    assert!(recovered > 10.0 && recovered <= dropped, "{recovered} of {dropped}");
    let round_trip = run.spread("srt.round_trip")["max"].as_f64().unwrap();
    assert!(round_trip >= 0.04, "{round_trip}");
}
