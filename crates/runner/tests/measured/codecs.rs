//! Every codec through the origin: in by WHIP, RTSP and enhanced RTMP, out by WHEP, RTSP and RTMP, to the last picture; ffmpeg is the
//! judge where it reads them.

use crate::support::{CODECS, Publishing, clip, config, measure, play, start};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use weir_origin::{ANY_PORT, HLS, Origin, RTC, RTSP};
use weir_testing::{KilledOnDrop, program, soon};

/// Ways into the origin and out of it, with the schemes of their URLs.
const INTO: [(&str, &str, &str); 3] =
    [("by-whip", "rtc", "whip+http"), ("by-rtsp", "rtsp", "rtsp"), ("by-rtmp", "rtmp", "rtmp")];
const OUT: [(&str, &str); 3] = [("rtc", "whep+http"), ("rtsp", "rtsp"), ("rtmp", "rtmp")];

fn origin() -> Origin {
    let config = config(&[]).listening(&RTC, ANY_PORT).listening(&RTSP, ANY_PORT);
    Origin::start(&config.listening(&HLS, ANY_PORT)).unwrap()
}

fn url(origin: &Origin, listener: &str, scheme: &str, stream: &str) -> String {
    format!("{scheme}://{}/live/{stream}", origin.address(listener).unwrap())
}

/// The URL of a publisher.
fn place(origin: &Origin, (way, listener, scheme): (&str, &str, &str)) -> String {
    let url = url(origin, listener, scheme, way);
    if way == "by-whip" { url.replace("/live/", "/whip/live/") } else { url }
}

fn is_on_air(origin: &Origin, stream: &str) {
    let name = format!("live/{stream}");
    soon("the stream is on air", || {
        origin.counts().stream(&name).is_some_and(|stream| stream.live && stream.received.video > 0)
    });
}

#[test]
fn every_codec_goes_in_and_out_by_every_protocol_to_the_last_picture() {
    let folder = tempfile::tempdir().unwrap();
    for (codec, name) in CODECS {
        let file = clip(folder.path(), codec);
        let origin = origin();
        let ways: Vec<_> = INTO.iter().flat_map(|into| OUT.iter().map(move |out| (into.0, out))).collect();
        let players = ways.iter().map(|(stream, (listener, scheme))| {
            let url = url(&origin, listener, scheme, stream);
            format!("{{play: '{url}', duration: 10s, witness_every: 1}}")
        });
        // Viewers come first and stay to the end, so that each is sent all there is.
        let watching =
            start(&format!("drain: 500ms\nworkloads: [{}]", players.collect::<Vec<_>>().join(", ")));
        std::thread::sleep(Duration::from_millis(1_500));
        let publishers = INTO.iter().map(|into| {
            format!("{{publish: '{}', file: '{}', duration: 4s}}", place(&origin, *into), file.display())
        });
        let published =
            measure(&format!("drain: 500ms\nworkloads: [{}]", publishers.collect::<Vec<_>>().join(", ")));
        let watched = watching.finish();
        for (at, (into, ..)) in INTO.iter().enumerate() {
            let sent = published.figure_of(at, "frames");
            let stream = format!("live/{into}");
            let received = origin.counts().stream(&stream).unwrap().received.video;
            assert!(sent >= 90 && sent == received, "{codec} by {into}: {received} of {sent}");
            for (at, (_, out)) in ways.iter().enumerate().filter(|(_, way)| way.0 == *into) {
                let frames = watched.figure_of(at, "frames");
                let lost = if out.0 == "rtmp" { 0 } else { watched.figure_of(at, "lost") };
                let what = format!("{codec} by {into} to {}: {frames} of {sent}", out.1);
                assert_eq!(lost, 0, "{what}");
                // A viewer by RTSP asks for a description when there is one, and may begin a keyframe later.
                let least = if out.0 == "rtsp" { sent - 31 } else { sent };
                assert!((least..=sent).contains(&frames), "{what}");
                let tracks = watched.workloads()[at]["tracks"].to_string();
                assert!(tracks.contains(name), "{what}: {tracks}");
            }
        }
        assert_eq!((origin.rtc().intake.lost, origin.rtc().intake.broken, origin.rtsp().lost), (0, 0, 0));
    }
}

/// Puts a file on air by a way in.
fn on_air(origin: &Origin, way: usize, file: &Path) -> Publishing {
    let publishing = Publishing::start(&place(origin, INTO[way]), &format!("file: '{}'", file.display()));
    is_on_air(origin, INTO[way].0);
    publishing
}

#[test]
fn a_viewer_that_cannot_play_the_codec_is_told_what_the_stream_is() {
    let folder = tempfile::tempdir().unwrap();
    let (origin, file) = (origin(), clip(folder.path(), "vp9"));
    let publishing = on_air(&origin, 0, &file);
    let whep = url(&origin, "rtc", "whep+http", "by-whip");
    let (kind, clients, side, words) = play(&whep, "clients: 1, duration: 2s, codec: h264").failure();
    assert_eq!((&*kind, clients, &*side), ("rejected", 1, "remote"), "{words}");
    let expected = "the stream is VP9, and the offer has H.264 with packetization-mode=1";
    assert!(words.contains(expected), "{words}");
    let segments = format!("{}.m3u8", url(&origin, "hls", "http", "by-whip"));
    let (kind, _, _, words) = play(&segments, "clients: 1, duration: 2s").failure();
    let expected = "406 the stream is VP9, and segments are made of H.264 alone";
    assert!(words.contains(expected), "{kind}: {words}");
    let run = play(&whep, "clients: 1, duration: 2s, codec: vp9");
    assert_eq!((run.well(), run.figure_of(0, "lost")), (1, 0), "{:?}", run.failures());
    publishing.finish();
}

#[test]
fn ffmpeg_counts_as_many_pictures_by_rtsp_as_were_published() {
    let folder = tempfile::tempdir().unwrap();
    // ffmpeg 5.1 reads no AV1 from RTP, and copies no VP9, of which it does not know what is a keyframe.
    for codec in ["h265", "vp8"] {
        let (origin, file) = (origin(), clip(folder.path(), codec));
        let watch = url(&origin, "rtsp", "rtsp", "by-rtmp");
        let mut ffmpeg = program("ffmpeg", "ffmpeg");
        ffmpeg.args(["-v", "error", "-rtsp_transport", "tcp", "-i", &watch, "-map", "0:v", "-c", "copy"]);
        let mut player = KilledOnDrop::start(ffmpeg.args(["-f", "framecrc", "-"]).stdout(Stdio::piped()));
        let output = player.0.stdout.take().unwrap();
        let reading = std::thread::spawn(move || std::io::read_to_string(output).unwrap());
        std::thread::sleep(Duration::from_secs(1));
        let url = place(&origin, INTO[2]);
        let published = measure(&format!(
            "drain: 500ms\nworkloads: [{{publish: '{url}', file: '{}', duration: 4s}}]",
            file.display()
        ));
        let said = reading.join().unwrap();
        let frames = said.lines().filter(|line| line.starts_with("0,")).count() as u64;
        let sent = published.figure_of(0, "frames");
        // It may begin with the keyframe behind the first, and leaves the last picture away where nothing ends it.
        assert!((sent - 31..=sent).contains(&frames), "{codec}: {frames} of {sent}");
    }
}

/// ffmpeg, publishing by RTSP pictures of VP8 beside sound of this codec.
fn with_sound(url: &str, sound: &[&str]) -> KilledOnDrop {
    let mut ffmpeg = program("ffmpeg", "ffmpeg");
    ffmpeg.args(["-v", "error", "-re", "-f", "lavfi", "-i", "testsrc=size=320x180:rate=25"]);
    ffmpeg.args(["-re", "-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000"]);
    ffmpeg.args(["-c:v", "libvpx", "-deadline", "realtime", "-g", "25", "-auto-alt-ref", "0"]);
    ffmpeg.args(["-c:a"]).args(sound).args(["-f", "rtsp", "-rtsp_transport", "tcp", url]);
    KilledOnDrop::start(&mut ffmpeg)
}

#[test]
fn sound_of_opus_and_of_g711_goes_beside_pictures_of_another_codec() {
    for (sound, name) in [
        (&["libopus"][..], "Opus"),
        (&["pcm_alaw", "-ar", "8000", "-ac", "1"], "G.711"),
        (&["pcm_mulaw", "-ar", "8000", "-ac", "1"], "G.711"),
    ] {
        let origin = origin();
        let _publisher = with_sound(&place(&origin, INTO[1]), sound);
        is_on_air(&origin, "by-rtsp");
        let players = OUT.map(|(listener, scheme)| {
            let url = url(&origin, listener, scheme, "by-rtsp");
            format!("{{play: '{url}', duration: 4s}}")
        });
        let run = measure(&format!("drain: 500ms\nworkloads: [{}]", players.join(", ")));
        for (at, figure) in ["rtc.audio_packets", "rtsp.audio_frames", "rtmp.audio_frames"].iter().enumerate()
        {
            let what = format!("{sound:?} by {}", OUT[at].1);
            assert!(run.figure_of(at, figure) >= 10, "{what}: {}", run.figure_of(at, figure));
            let tracks = run.workloads()[at]["tracks"].to_string();
            assert!(tracks.contains(name) && tracks.contains("VP8"), "{what}: {tracks}");
        }
    }
}
