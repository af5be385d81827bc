//! The same by every protocol, at servers that begin wherever the stream is: viewers by WebRTC ask for keyframes that no source can be
//! asked for, and viewers of a transport stream get what comes.

use super::{SECONDS, clip, feed};
use crate::support::{
    CHECKS_OF_THE_MACHINE, KilledOnDrop, Run, config, play, program, says, shared, soon, webrtc,
};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use weir_origin::{ANY_PORT, Origin, RTC, RTSP};

/// Pictures a second.
const RATE: u32 = 10;
/// Of each stream; by SRT one calls.
const VIEWERS: u64 = 6;
/// The keyframe that the origin has kept is not sent: what comes to a viewer is the rest of the group of pictures.
const BEGINS_ANYWHERE: &str = "drop unit=1 kind=keyframe";

/// An origin with ffmpeg's pictures on `live/a`, and the URLs of WHEP, RTMP and RTSP.
fn on_air(folder: &Path, apart: u32) -> (Origin, KilledOnDrop, [String; 3]) {
    let listening = config(&[BEGINS_ANYWHERE]).listening(&RTC, ANY_PORT).listening(&RTSP, ANY_PORT);
    let origin = Origin::start(&listening).unwrap();
    let [rtmp, rtsp] =
        ["rtmp", "rtsp"].map(|name| format!("{name}://{}/live/a", origin.address(name).unwrap()));
    let ffmpeg = feed(&clip(folder, RATE, apart * RATE, "mp4"), &rtmp);
    webrtc::is_on_air(&origin);
    let whep = webrtc::places(&origin).1;
    (origin, ffmpeg, [whep, rtmp, rtsp])
}

/// One that is sent a stream.
type Viewer = Box<dyn Write + Send>;

/// Bytes that libsrt takes at once.
const DATAGRAM: usize = 7 * 188;

/// A transport stream at the pace of its pictures, to each who wants it from where it is: it begins a second behind a keyframe, as soon
/// as the first has come.
fn relay(file: &Path, viewers: Receiver<Viewer>) {
    let bytes = std::fs::read(file).unwrap();
    std::thread::spawn(move || {
        let datagrams = bytes.len() as f64 / DATAGRAM as f64;
        let place = |time: f64| (datagrams * time / f64::from(SECONDS)) as usize * DATAGRAM;
        let Ok(first) = viewers.recv() else { return };
        let (mut all, began, mut at) = (vec![first], Instant::now(), place(1.0));
        while at < bytes.len() && !all.is_empty() {
            let end = place(1.0 + began.elapsed().as_secs_f64()).min(bytes.len());
            all.extend(viewers.try_iter());
            let next = bytes[at..end].chunks(DATAGRAM);
            next.for_each(|datagram| all.retain_mut(|viewer| viewer.write_all(datagram).is_ok()));
            at = end;
            std::thread::sleep(Duration::from_millis(20));
        }
    });
}

/// Serves it by HTTP; the URL.
fn by_http(file: &Path) -> String {
    let (listener, (sender, viewers)) = (TcpListener::bind("127.0.0.1:0").unwrap(), channel());
    let url = format!("http://{}/a.ts", listener.local_addr().unwrap());
    relay(file, viewers);
    std::thread::spawn(move || {
        for viewer in listener.incoming() {
            let mut viewer = viewer.unwrap();
            _ = viewer.read(&mut [0; 4_096]);
            let head = b"HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\nConnection: close\r\n\r\n";
            if viewer.write_all(head).is_err() || sender.send(Box::new(viewer) as Viewer).is_err() {
                return;
            }
        }
    });
    url
}

/// Datagrams of a stream.
struct Datagrams(UdpSocket);

impl Write for Datagrams {
    fn write(&mut self, datagram: &[u8]) -> std::io::Result<usize> {
        self.0.send(datagram)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Serves it by SRT, to one who calls; the URL. What comes before is passed over.
fn by_srt(file: &Path) -> (KilledOnDrop, String) {
    let free = || UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (source, port) = (free(), free());
    let mut command = program("srt-live-transmit", "srt-tools");
    let url = format!("srt://127.0.0.1:{port}");
    command.args(["-q", "-a:no", &format!("udp://127.0.0.1:{source}"), &format!("{url}?mode=listener")]);
    let server = KilledOnDrop::start(command.stdout(Stdio::null()).stderr(Stdio::null()));
    let sockets = || program("ss", "iproute2").args(["-Hlun", "sport", "=", &format!(":{port}")]).output();
    soon("srt-live-transmit listens", || !sockets().unwrap().stdout.is_empty());
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(("127.0.0.1", source)).unwrap();
    let (sender, viewers) = channel();
    relay(file, viewers);
    sender.send(Box::new(Datagrams(socket)) as Viewer).unwrap();
    (server, url)
}

/// Runs at each server of a stream whose keyframes are this many seconds apart, beside each other, and how many viewers they have.
fn runs(apart: u32, duration: &str) -> Vec<(&'static str, f64, Run)> {
    let folder = tempfile::tempdir().unwrap();
    let file = clip(folder.path(), RATE, apart * RATE, "ts");
    let (_srt, srt) = by_srt(&file);
    let (_origin, _ffmpeg, [whep, rtmp, rtsp]) = on_air(folder.path(), apart);
    let servers = [
        ("whep", whep, VIEWERS),
        ("rtmp", rtmp, VIEWERS),
        ("rtsp", rtsp, VIEWERS),
        ("http", by_http(&file), VIEWERS),
        ("srt", srt, 1),
    ];
    std::thread::scope(|scope| {
        let runs = servers.map(|(name, url, viewers)| {
            let flags = format!("-c {viewers} -d {duration}");
            scope.spawn(move || (name, viewers as f64, play(&url, &flags)))
        });
        runs.map(|run| run.join().unwrap()).into()
    })
}

#[test]
fn viewers_of_every_protocol_wait_for_keyframes_that_are_far_apart_and_no_server_is_blamed() {
    let _machine = shared();
    let all = std::thread::scope(|scope| {
        let runs = [12, 25].map(|apart| scope.spawn(move || (apart, runs(apart, "32s"))));
        runs.map(|runs| runs.join().unwrap())
    });
    for (apart, runs) in all {
        for (name, viewers, run) in runs {
            assert_eq!(run.code, 0, "{name}, {apart} s: {}", run.err);
            assert_eq!((run.total("played"), run.slots("failed")), (viewers, 0), "{name}, {apart} s");
            let [waits, over] = ["keyframe_waits", "keyframe_waits_over"].map(|figure| run.total(figure));
            assert_eq!((waits, over), (viewers, viewers), "{name}, {apart} s");
            if name == "whep" {
                // Asked once a second, the server has none.
                assert!(run.total("rtc.plis") > run.total("waited_time") * 0.8, "{apart} s");
            }
        }
    }
}

#[test]
fn a_run_that_is_too_short_for_a_keyframe_blames_no_server_and_passes_nothing() {
    let _machine = shared();
    for (name, viewers, run) in runs(25, "23s") {
        let waits = run.total("keyframe_waits") - run.total("keyframe_waits_over");
        assert_eq!((run.total("played") + waits, run.slots("failed")), (viewers, 0), "{name}: {}", run.err);
        if run.total("played") == 0.0 {
            assert_eq!(run.code, 99, "{name}: {}", run.err);
            assert!(run.err.contains("viewers still waited for the stream's next keyframe"), "{}", run.err);
            let thresholds = run.summary["thresholds"].as_array().unwrap();
            assert!(thresholds.iter().all(|it| it["passed"] == false), "{name}: {thresholds:?}");
            let played = thresholds.iter().find(|it| it["expression"] == "played.ratio >= 99%");
            assert_eq!(played.map(|it| &it["value"]), Some(&Value::Null), "{name}: {thresholds:?}");
        }
    }
}

#[test]
fn a_server_that_never_sends_a_keyframe_is_blamed() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let (_origin, _ffmpeg, urls) = on_air(folder.path(), SECONDS);
    std::thread::scope(|scope| {
        for url in urls {
            scope.spawn(move || {
                // Within six of them.
                let run = play(&url, &format!("-c {VIEWERS} -d 30s --timeout 3s"));
                let (kind, clients, side, words) = run.failure();
                assert_eq!((run.code, &*kind, clients, &*side), (99, "no_media", VIEWERS, "remote"), "{url}");
                assert!(words.contains("media came, "), "{words}");
            });
        }
    });
}

#[test]
fn a_search_at_a_server_that_has_no_keyframe_for_those_who_ask_holds_nothing_against_it() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    let (_origin, _ffmpeg, [whep, ..]) = on_air(folder.path(), 12);
    let out = folder.path().join("out").display().to_string();
    let brief = "--from 4 --most 8 --slice 2s --hold 4s --confirm 4s --budget 5m --accept";
    let beside = ["--json", "-", "-o", &out];
    let arguments = ["capacity", &whep].into_iter().chain(brief.split(' ')).chain([CHECKS_OF_THE_MACHINE]);
    let said = says(arguments.chain(beside));
    let summary: Value =
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err));
    assert_eq!(summary["answer"]["evidence"], "at_least", "{}", said.err);
    assert_eq!(summary["answer"]["bounds"]["lower"], 8, "{}", said.err);
    let trials = summary["trials"].as_array().unwrap();
    let mut loads = trials.iter().flat_map(|it| it["loads"].as_array().unwrap());
    assert!(loads.all(|it| it["verdict"] != "fail"), "{}", said.err);
}
