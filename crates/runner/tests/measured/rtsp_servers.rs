//! RTSP: weir plays from GStreamer's server, by TLS as well, and publishes to it and to an ffmpeg that listens.

use crate::support::{Run, measure};
use std::io::{BufRead, BufReader};
use std::process::Stdio;
use weir_testing::{KilledOnDrop, free_port, program, self_signed, undisturbed};

/// GStreamer's RTSP server.
struct GstServer {
    _process: KilledOnDrop,
    port: u16,
}

impl GstServer {
    /// One that asks for a login by this scheme: `basic`, `digest`, or none.
    fn start(login: &[&str]) -> Self {
        let mut command = program("/usr/bin/python3", "gir1.2-gst-rtsp-server-1.0");
        command.args(["-c", include_str!("support/gst_rtsp_server.py")]).args(login);
        let mut process = KilledOnDrop::start(command.stdout(Stdio::piped()));
        let mut line = String::new();
        BufReader::new(process.0.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let port = line.trim().parse();
        let port = port
            .expect("GStreamer's RTSP server; on Debian: apt install gir1.2-gst-rtsp-server-1.0 python3-gi");
        Self { _process: process, port }
    }

    fn url(&self, login: &str, path: &str) -> String {
        format!("rtsp://{login}127.0.0.1:{}/{path}", self.port)
    }

    /// Plays a stream. Clients start one after another: GStreamer 1.22 may abort when two PLAYs of a shared stream with pictures
    /// out of order come at once.
    fn measure(&self, path: &str, keys: &str) -> Run {
        let url = self.url("", path);
        measure(&format!("warmup: 1s\nworkloads: [{{play: '{url}', arrival: 2/s, {keys}}}]"))
    }
}

#[test]
fn rtsps_of_a_camera_is_played_where_its_own_certificate_is_trusted_or_none_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let [chain, key] = self_signed(folder.path());
    let server = GstServer::start(&["tls", &chain, &key]);
    let url = server.url("", "av").replace("rtsp://", "rtsps://");
    let play =
        |trust: &str| measure(&format!("{trust}\nwarmup: 1s\nworkloads: [{{play: '{url}', duration: 5s}}]"));
    for trust in ["insecure: true", &format!("cacert: '{chain}'")] {
        let run = play(trust);
        assert_eq!((run.missed, run.total("played")), (None, 1.0), "{trust:?}: {:?}", run.failures());
        assert_eq!((run.total("lost"), run.total("rtsp.malformed")), (0.0, 0.0), "{trust:?}");
        assert!(run.total("frames") >= 70.0 && run.total("rtsp.audio_frames") > 0.0, "{trust:?}");
    }
    let run = play("");
    assert_eq!((run.total("played"), run.slots("failed")), (0.0, 1), "{:?}", run.failures());
    assert!(run.failure().3.contains("certificate"), "{:?}", run.failure());
}

/// GStreamer's server records what weir publishes by either transport.
#[test]
fn a_server_that_records_gets_every_frame_by_tcp_and_by_udp() {
    for transport in ["tcp", "udp"] {
        let mut command = program("/usr/bin/python3", "gir1.2-gst-rtsp-server-1.0");
        command.args(["-c", include_str!("support/gst_rtsp_recorder.py")]);
        let mut server = KilledOnDrop::start(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let mut said = BufReader::new(server.0.stdout.take().unwrap()).lines();
        let port = said.next().unwrap().unwrap();
        let url = format!("rtsp://127.0.0.1:{}/live", port.trim());
        let run = measure(&format!(
            "warmup: 0s\nworkloads: [{{publish: '{url}', transport: {transport}, duration: 6s}}]"
        ));
        assert_eq!(run.total("played"), 1.0, "{transport}: {:?}", run.failures());
        std::thread::sleep(std::time::Duration::from_secs(1));
        drop(server.0.stdin.take());
        let counts = said.next().unwrap().unwrap();
        let count = |name: &str| -> f64 {
            let mut words = counts.split_whitespace();
            words.find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok()).unwrap()
        };
        let (frames, sounds) = (run.total("frames"), run.total("rtsp.audio_frames"));
        // It begins when both tracks are there, and what it holds back at the end is not handed on.
        let came = (count("frames"), count("sounds"));
        assert!(came.0 <= frames && came.0 >= frames - 15.0, "{transport}: {counts} of {frames}");
        assert!(came.1 <= sounds && came.1 >= sounds - 30.0, "{transport}: {counts} of {sounds}");
        assert_eq!((run.total("rtsp.reported_lost"), run.total("socket_drops")), (0.0, 0.0), "{transport}");
    }
}

/// RFC 6416: what cameras call MP4A-LATM. Its frames are counted; what is in them is not read.
#[test]
fn sound_in_latm_is_counted_and_named() {
    let server = GstServer::start(&[]);
    let run =
        measure(&format!("warmup: 1s\nworkloads: [{{play: '{}', duration: 6s}}]", server.url("", "latm")));
    assert_eq!(run.total("played"), 1.0, "{:?}", run.failures());
    let (sounds, seconds) = (run.total("rtsp.audio_frames"), 5.0);
    // 44,100 samples a second in frames of 1,024.
    assert!(sounds >= 40.0 * seconds, "{sounds}");
    assert_eq!(sounds, run.total("rtsp.other_codecs"));
    assert_eq!((run.total("lost"), run.total("rtsp.malformed")), (0.0, 0.0));
}

/// Default thresholds hold, and nothing was lost.
#[test]
fn a_healthy_server_passes_with_pictures_in_and_out_of_order_few_of_them_and_sound() {
    let server = GstServer::start(&[]);
    for (path, frames, sound) in
        [("av", 200.0, true), ("reordered", 240.0, false), ("slow", 40.0, false), ("g711", 0.0, true)]
    {
        let run = server.measure(path, "clients: 3, duration: 12s");
        assert_eq!((run.missed, run.total("played")), (None, 3.0), "{path}: {:?}", run.failures());
        assert_eq!((run.total("lost"), run.total("rtsp.malformed")), (0.0, 0.0), "{path}");
        assert_eq!(run.total("timestamp_jumps"), 0.0, "{path}");
        assert!(run.total("frames") >= 3.0 * frames, "{path}: {}", run.total("frames"));
        assert_eq!(run.total("rtsp.audio_frames") > 0.0, sound, "{path}");
    }
}

#[test]
fn what_a_healthy_server_sends_by_udp_is_counted_and_none_of_it_is_lost() {
    let server = GstServer::start(&[]);
    for (path, frames, sound) in [("av", 120.0, true), ("reordered", 140.0, false)] {
        let run = server.measure(path, "transport: udp, clients: 3, duration: 8s");
        assert_eq!((run.missed, run.total("played")), (None, 3.0), "{path}: {:?}", run.failures());
        assert_eq!((run.total("lost"), run.total("socket_drops")), (0.0, 0.0), "{path}");
        assert_eq!((run.total("rtsp.malformed"), run.total("rtsp.strays")), (0.0, 0.0), "{path}");
        assert_eq!(run.total("timestamp_jumps"), 0.0, "{path}");
        assert!(run.total("frames") >= 3.0 * frames, "{path}: {}", run.total("frames"));
        assert_eq!(run.total("rtsp.audio_frames") > 0.0, sound, "{path}");
    }
}

#[test]
fn pictures_of_every_codec_that_is_read_are_counted_with_their_keyframes() {
    let server = GstServer::start(&[]);
    for (path, name) in [("vp8", "VP8"), ("vp9", "VP9"), ("h265", "H.265")] {
        undisturbed(|| {
            let url = server.url("", path);
            let run = measure(&format!(
                "warmup: 0s\ndrain: 10s\nworkloads: [{{play: '{url}', clients: 1, duration: 8s, decode: 1}}]"
            ));
            assert_eq!(run.total("played"), 1.0, "{path}: {:?}", run.failures());
            let decoded = run.total("decoded");
            let handed_in = run.total("handed_in");
            assert!(decoded >= 50.0 && decoded == handed_in, "{path}: {decoded} of {handed_in} decoded");
            let zeros =
                ["lost", "rtsp.other_frames", "rtsp.broken_frames", "rtsp.malformed", "timestamp_jumps"];
            assert_eq!(zeros.map(|figure| run.total(figure)), [0.0; 5], "{path}");
            let (frames, keyframes) = (run.total("frames"), run.total("keyframes"));
            assert!(frames >= 60.0, "{path}: {frames}");
            // One in ten pictures: those of a part of a group at either end may be more or less.
            assert!((keyframes - frames / 10.0).abs() <= 1.0, "{path}: {keyframes} of {frames}");
            let tracks = run.workloads()[0]["tracks"].to_string();
            assert!(tracks.contains(name), "{path}: {tracks}");
        });
    }
}

#[test]
fn pictures_of_a_codec_that_is_not_read_are_counted_and_named() {
    let server = GstServer::start(&[]);
    let run = measure(&format!(
        "warmup: 1s\nworkloads: [{{play: '{}', clients: 2, duration: 6s}}]",
        server.url("", "jpeg")
    ));
    assert_eq!(run.total("played"), 2.0, "{:?}", run.failures());
    assert_eq!(run.total("frames"), run.total("rtsp.other_frames"));
    assert!(run.total("frames") >= 70.0, "{}", run.total("frames"));
}

#[test]
fn a_login_is_answered_by_basic_and_by_digest() {
    for scheme in ["basic", "digest"] {
        let server = GstServer::start(&[scheme]);
        let run = measure(&format!(
            "warmup: 0s\nworkloads: [{{play: '{}', duration: 3s}}]",
            server.url("me:mine@", "slow")
        ));
        assert_eq!(run.total("played"), 1.0, "{scheme}: {:?}", run.failures());
        let run = measure(&format!(
            "warmup: 0s\nworkloads: [{{play: '{}', duration: 2s}}]",
            server.url("me:other@", "slow")
        ));
        assert_eq!((run.total("played"), run.slots("failed")), (0.0, 1), "{scheme}: {:?}", run.failures());
        assert!(run.failure().3.contains("401"), "{scheme}: {:?}", run.failure());
    }
}

/// Publishes to an ffmpeg that listens: the run, and the codec and packets of each track that ffmpeg has recorded.
fn recorded(keys: &str) -> (Run, String) {
    let (port, folder) = (free_port(), tempfile::tempdir().unwrap());
    let url = format!("rtsp://127.0.0.1:{port}/live/a");
    let recorded = folder.path().join("a.mkv");
    let mut ffmpeg = program("ffmpeg", "ffmpeg");
    ffmpeg.args(["-v", "error", "-nostdin", "-rtsp_flags", "listen", "-rtsp_transport", "tcp", "-i", &url]);
    // Its reader of VP9 says of no packet that it is a keyframe.
    let mut listening = KilledOnDrop::start(ffmpeg.args(["-c", "copy", "-copyinkf"]).arg(&recorded));
    weir_testing::soon("ffmpeg listens", || std::net::TcpListener::bind(("127.0.0.1", port)).is_err());
    let run = measure(&format!("workloads: [{{publish: '{url}', duration: 6s{keys}}}]"));
    assert_eq!(run.total("played"), 1.0, "{:?}", run.failures());
    weir_testing::soon("ffmpeg ends", || listening.0.try_wait().unwrap().is_some());
    let mut decode = program("ffmpeg", "ffmpeg");
    decode.args(["-v", "error", "-xerror", "-i"]).arg(&recorded).args(["-f", "null", "-"]);
    let decoded = decode.output().unwrap();
    assert!(decoded.status.success(), "{}", String::from_utf8_lossy(&decoded.stderr));
    let mut probe = program("ffprobe", "ffmpeg");
    let entries = "stream=codec_name,nb_read_packets";
    probe.args(["-v", "error", "-count_packets", "-show_entries", entries, "-of", "csv=p=0"]);
    let output = probe.arg(&recorded).output().unwrap();
    (run, String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The packets of a track.
fn packets(recorded: &str, codec: &str) -> f64 {
    let mut lines = recorded.lines();
    let line = lines.find_map(|line| line.strip_prefix(codec)).unwrap_or_else(|| panic!("{recorded}"));
    line.trim_start_matches(',').trim().parse().unwrap()
}

#[test]
fn an_ffmpeg_that_listens_records_what_is_published() {
    let (run, out) = recorded("");
    // What it gets before it has both tracks it may leave out.
    let (frames, sounds) = (run.total("frames"), run.total("rtsp.audio_frames"));
    assert!(packets(&out, "h264") >= frames - 5.0 && packets(&out, "h264") <= frames, "{out} of {frames}");
    assert!(packets(&out, "aac") >= sounds - 10.0 && packets(&out, "aac") <= sounds, "{out} of {sounds}");
}

#[test]
fn an_ffmpeg_that_listens_records_files_of_other_codecs() {
    let folder = tempfile::tempdir().unwrap();
    for (codec, encoder, file) in
        [("vp8", "libvpx", "a.ivf"), ("vp9", "libvpx-vp9", "a.mp4"), ("hevc", "libx265", "h265.mp4")]
    {
        let path = folder.path().join(file);
        let mut ffmpeg = program("ffmpeg", "ffmpeg");
        let source = "testsrc2=size=320x180:rate=25:duration=4";
        ffmpeg
            .args(["-v", "error", "-y", "-f", "lavfi", "-i", source, "-pix_fmt", "yuv420p", "-c:v", encoder]);
        ffmpeg.args(["-g", "25", "-bf", "0", "-deadline", "realtime", "-auto-alt-ref", "0"]).arg(&path);
        assert!(ffmpeg.stderr(Stdio::null()).status().unwrap().success(), "{codec}");
        let (run, out) = recorded(&format!(", file: '{}'", path.display()));
        let frames = run.total("frames");
        assert!(frames >= 140.0 && run.total("keyframes") >= 5.0, "{codec}: {frames}");
        let came = packets(&out, codec);
        // It begins with a keyframe of which it knows the size.
        assert!(came >= frames - 30.0 && came <= frames, "{out} of {frames}");
    }
}
