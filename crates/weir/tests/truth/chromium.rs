//! Chromium plays and publishes with the origin's own pages: an independent peer in both directions.

use crate::support::webrtc::{is_on_air, on_air, origin, places};
use crate::support::{Browser, Publishing, play, program, shared, soon};

#[test]
fn chromium_plays_a_stream_of_the_origin_by_whep_and_by_websocket() {
    let _machine = shared();
    let air = on_air(&[]);
    let page = format!("http://{}/live/a", air.origin.address("rtc").unwrap());
    for (number, url) in [page.clone(), format!("{page}?ws")].iter().enumerate() {
        let (_, said) = Browser::open(url).says("connected, ", 50, " frames decoded");
        assert!(said.contains(", 0 packets lost"), "{said}");
        let rtc = air.origin.rtc();
        assert_eq!(rtc.connected, number as u64 + 1);
        assert!(rtc.receiver_reports > 0 && rtc.unauthentic == 0, "{rtc:?}");
    }
}

#[test]
fn chromium_publishes_its_camera_by_whip_and_others_play_it() {
    let _machine = shared();
    let origin = origin(&[]);
    let watch = places(&origin).1;
    let address = origin.address("rtc").unwrap();
    // The viewer waits for its publisher: both start at their own pace.
    let viewer = Browser::open(&format!("http://{address}/live/a"));
    let camera = Browser::open(&format!("http://{address}/whip/live/a?seconds=30"));
    camera.says("connected, ", 1, " frames sent");
    let (_, said) = viewer.says("connected, ", 50, " frames decoded");
    assert!(said.contains(", 0 packets lost"), "{said}");
    let run = play(&watch, "-c 2 -d 5s --warmup 0s --drain 500ms");
    assert_eq!(run.well(), 2, "{:?}", run.failures());
    let total = |figure: &str| run.total(figure);
    assert_eq!(["lost", "rtc.frames_broken", "rtc.unauthentic"].map(total), [0.0; 3]);
    assert!(total("keyframes") >= 2.0 && total("frames") >= 2.0 * 40.0, "{}", total("frames"));
    assert!(total("rtc.audio_packets") >= 2.0 * 100.0, "its fake microphone beeps");
    // It begins at 300 kbit/s, and goes on only if it is told how its packets arrive.
    camera.says("it may send ", 600_000, " bit/s");
    let (frames, said) = camera.says("ended, ", 1, " frames sent");
    assert!(said.contains(", 0 packets lost"), "{said}");
    soon("the stream is off air", || origin.counts().stream("live/a").is_some_and(|stream| !stream.live));
    let intake = origin.rtc().intake;
    assert_eq!((intake.frames + intake.early, intake.lost, intake.broken), (frames, 0, 0), "{intake:?}");
    assert!(intake.early < 50 && intake.keyframes_asked >= 2, "{intake:?}");
    assert_eq!(origin.rtc().unauthentic, 0);
}

/// Codecs beside H.264 that Chromium has of its own.
const OTHERS: [(&str, &[&str]); 3] = [
    ("vp8", &["libvpx", "-deadline", "realtime", "-auto-alt-ref", "0"]),
    ("vp9", &["libvpx-vp9", "-deadline", "realtime", "-lag-in-frames", "0"]),
    ("av1", &["libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-lag-in-frames", "0"]),
];

#[test]
fn chromium_decodes_every_picture_of_files_of_other_codecs_that_the_origin_gives_it() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    for (codec, encoder) in OTHERS {
        let file = folder.path().join(format!("{codec}.mkv"));
        let mut ffmpeg = program("ffmpeg", "ffmpeg");
        ffmpeg.args([
            "-v",
            "error",
            "-f",
            "lavfi",
            "-i",
            "testsrc2=size=320x180:rate=25",
            "-frames:v",
            "250",
        ]);
        ffmpeg.args(["-pix_fmt", "yuv420p", "-b:v", "500k", "-g", "250", "-c:v"]).args(encoder).arg(&file);
        assert!(ffmpeg.status().unwrap().success(), "{codec}");
        let origin = origin(&[]);
        let (publish, watch) = places(&origin);
        // Before there is a stream, the answer has all codecs; behind its beginning, the stream's alone.
        let page = watch.replace("whep+http", "http");
        let first = Browser::open(&page);
        soon("the browser is there", || origin.rtc().connected == 1);
        let publishing = Publishing::start(&publish, &["--file", file.to_str().unwrap()]);
        is_on_air(&origin);
        let (_, said) = first.says("connected, ", 50, " frames decoded");
        assert!(said.contains(", 0 packets lost"), "{codec}: {said}");
        let second = Browser::open(&page);
        let (_, said) = second.says("connected, ", 50, " frames decoded");
        assert!(said.contains(", 0 packets lost"), "{codec}: {said}");
        let published = publishing.finish();
        // Twice no more, and it has counted what there was.
        std::thread::sleep(std::time::Duration::from_secs(2));
        let sent = published.total("frames") as u64;
        let (decoded, said) = first.says("connected, ", sent, " frames decoded");
        assert_eq!(decoded, sent, "{codec}: {said}");
        assert!(said.contains(", 0 packets lost"), "{codec}: {said}");
    }
}
