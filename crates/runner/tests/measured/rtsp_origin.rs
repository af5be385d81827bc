//! RTSP: players and publishers of others at weir's origin: ffmpeg by TLS, GStreamer as a publisher and as a viewer that pauses.

use crate::support::{Publishing, config};
use std::io::{BufRead, BufReader, Lines};
use std::process::{ChildStdout, Stdio};
use std::time::Duration;
use weir_origin::{ANY_PORT, Identity, Origin, RTSP};
use weir_testing::{KilledOnDrop, program, self_signed, soon};

fn origin() -> (Origin, String) {
    let origin = Origin::start(&config(&[]).listening(&RTSP, ANY_PORT)).unwrap();
    let url = format!("rtsp://{}/live/a", origin.address("rtsp").unwrap());
    (origin, url)
}

fn is_on_air(origin: &Origin) {
    soon("the stream is on air", || {
        origin.counts().stream("live/a").is_some_and(|stream| stream.live && stream.received.video > 0)
    });
}

/// GStreamer as a client, and the lines that it says.
fn gstreamer(arguments: &[&str]) -> (KilledOnDrop, Lines<BufReader<ChildStdout>>) {
    let mut command = program("/usr/bin/python3", "gir1.2-gst-rtsp-server-1.0");
    command.args(["-c", include_str!("support/gst_rtsp_client.py")]).args(arguments);
    let mut client = KilledOnDrop::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let said = BufReader::new(client.0.stdout.take().unwrap()).lines();
    (client, said)
}

#[test]
fn ffmpeg_publishes_and_plays_by_tls() {
    let folder = tempfile::tempdir().unwrap();
    let [chain, key] = self_signed(folder.path());
    let identity = Identity { chain: chain.into(), key: key.into() };
    let origin = Origin::start(&config(&[]).listening_secure(&RTSP, ANY_PORT, identity)).unwrap();
    let url = format!("rtsps://{}/live/a", origin.address("rtsps").unwrap());
    let mut ffmpeg = program("ffmpeg", "ffmpeg");
    ffmpeg.args(["-v", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=320x240:rate=25", "-g", "25"]);
    ffmpeg.args(["-c:v", "libx264", "-preset", "ultrafast", "-tune", "zerolatency", "-pix_fmt", "yuv420p"]);
    let _publisher = KilledOnDrop::start(ffmpeg.args(["-f", "rtsp", "-rtsp_transport", "tcp", &url]));
    is_on_air(&origin);
    let mut ffmpeg = program("ffmpeg", "ffmpeg");
    ffmpeg.args(["-v", "error", "-rtsp_transport", "tcp", "-i", &url, "-t", "3", "-c", "copy"]);
    let output = ffmpeg.args(["-f", "framecrc", "-"]).output().unwrap();
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let frames = out.lines().filter(|line| line.starts_with("0,")).count();
    assert!(output.status.success() && frames >= 60, "{frames}: {err}");
    let rtsp = origin.rtsp();
    assert!(rtsp.packets > 60 && rtsp.lost == 0, "{rtsp:?}");
}

#[test]
fn gstreamer_publishes_by_udp_and_by_tcp_and_nothing_is_lost() {
    for protocol in ["udp", "tcp"] {
        let (origin, url) = origin();
        let (mut client, _) = gstreamer(&["publish", &url, protocol]);
        is_on_air(&origin);
        std::thread::sleep(Duration::from_secs(3));
        drop(client.0.stdin.take());
        soon("it is off air", || origin.counts().stream("live/a").is_some_and(|stream| !stream.live));
        let (rtsp, received) = (origin.rtsp(), origin.counts().streams[0].received);
        assert_eq!((rtsp.publishers, rtsp.lost), (1, 0), "{protocol}: {rtsp:?}");
        // 1,400 bytes of G.711, 175 ms, are in a packet.
        assert!(received.video >= 60 && received.audio >= 12, "{protocol}: {received:?}");
    }
}

#[test]
fn a_viewer_of_gstreamer_pauses_and_plays_on() {
    for protocol in ["tcp", "udp"] {
        let (origin, url) = origin();
        let publishing = Publishing::start(&url, "gop: 1s, audio_bitrate: 0");
        is_on_air(&origin);
        let (mut client, mut said) = gstreamer(&["play", &url, protocol]);
        assert_eq!(said.next().unwrap().unwrap(), "ready", "{protocol}");
        assert_eq!(said.next().unwrap().unwrap(), "paused", "{protocol}");
        let before = origin.counts().sent().video;
        std::thread::sleep(Duration::from_millis(1_500));
        assert_eq!(origin.counts().sent().video, before, "{protocol}: nothing is sent meanwhile");
        std::thread::sleep(Duration::from_millis(2_500));
        assert!(origin.counts().sent().video >= before + 30, "{protocol}");
        drop(client.0.stdin.take());
        let counts = said.next().unwrap().unwrap();
        let count = |name: &str| -> u64 {
            let mut words = counts.split_whitespace();
            words.find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok()).unwrap()
        };
        assert!(
            count("before") >= 30 && count("meanwhile") == 0 && count("after") >= 20,
            "{protocol}: {counts}"
        );
        publishing.finish();
    }
}
