//! pion as a peer in all four directions, and each packet that one side has counted found in the other's count. It shares
//! nothing with weir: ICE, DTLS, SRTP, RTCP and H.264 payloads of its own.

use crate::support::webrtc::{is_on_air, origin, places};
use crate::support::{Pion, Publishing, measure, play, program, shared, soon, undisturbed};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// A URL as others write it.
fn http(url: &str) -> &str {
    url.split_once('+').unwrap().1
}

#[test]
fn a_publisher_of_others_is_heard_to_the_packet_and_asked_for_what_is_missing() {
    let _machine = shared();
    for drop in [0, 50] {
        let origin = origin(&[]);
        let (publish, watch) = places(&origin);
        let pion = Pion::client(&["publish", http(&publish), &drop.to_string()]);
        is_on_air(&origin);
        let run = play(&watch, "-c 3 -d 5s --warmup 0s --drain 1s");
        assert_eq!(run.well(), 3, "{:?}", run.failures());
        let total = |figure: &str| run.total(figure);
        let zeros = ["lost", "reordered", "duplicate", "rtc.frames_broken", "rtc.unauthentic"];
        assert_eq!(zeros.map(total), [0.0; 5], "what was lost before the origin is whole behind it");
        assert!(total("frames") > 3.0 * 50.0 && total("rtc.audio_packets") > 3.0 * 100.0);
        let seen = pion.end();
        soon("the stream is off air", || origin.counts().stream("live/a").is_some_and(|stream| !stream.live));
        let (rtc, counts) = (origin.rtc(), origin.counts());
        let intake = rtc.intake;
        assert_eq!((intake.packets, intake.lost, intake.broken), (seen["sent"], 0, 0), "{seen:?} {intake:?}");
        assert_eq!(intake.recovered, seen["withheld"], "{seen:?} {intake:?}");
        assert_eq!((intake.asked, intake.asked), (seen["nacks"], seen["repeated"]), "{seen:?} {intake:?}");
        assert_eq!(drop > 0, seen["withheld"] > 5, "{seen:?}");
        assert_eq!((seen["reported_lost"], rtc.unauthentic), (0, 0), "{seen:?} {rtc:?}");
        assert!(
            seen["reports"] >= 8 && seen["keyframes_asked"] == intake.keyframes_asked,
            "{seen:?} {intake:?}"
        );
        let received = counts.stream("live/a").unwrap().received;
        assert_eq!((received.video, received.video + received.audio), (seen["frames"], intake.frames));
        assert!(intake.early < 10, "sound before the first picture: {intake:?}");
    }
}

#[test]
fn a_viewer_of_others_gets_what_the_origin_has_sent_and_what_it_asks_for_again() {
    let _machine = shared();
    let origin = origin(&["drop unit=300..304 kind=video viewer=1"]);
    let (publish, watch) = places(&origin);
    let publishing = Publishing::start(&publish, &["--gop", "1s"]);
    is_on_air(&origin);
    let pion = Pion::client(&["play", http(&watch)]);
    std::thread::sleep(Duration::from_secs(6));
    // A packet on its way while the viewer says goodbye is one that it does not count.
    publishing.finish();
    std::thread::sleep(Duration::from_secs(1));
    let seen = pion.end();
    let (counts, rtc) = (origin.counts(), origin.rtc());
    let [viewer] = &counts.viewers[..] else { panic!("{:?}", counts.viewers) };
    assert_eq!((viewer.dropped.video, seen["recovered"], seen["lost"]), (5, 5, 0), "{seen:?}");
    assert_eq!(seen["received"], viewer.sent.units() + rtc.repeated, "{seen:?} {viewer:?} {rtc:?}");
    assert_eq!((rtc.repeated, rtc.unauthentic), (rtc.nacks, 0), "{rtc:?}");
    assert!(seen["frames"] > 100 && seen["keyframes"] >= 3, "{seen:?}");
    assert!(rtc.receiver_reports >= 3 && rtc.picture_losses >= 1, "{rtc:?}");
    assert!(!viewer.present, "it has said goodbye");
}

#[test]
fn viewers_of_a_server_of_others_get_every_packet_of_it() {
    let _machine = shared();
    // 100 frames are four seconds; then nothing is under way.
    let (pion, port) = Pion::start(&["serve", "100"]);
    let run = play(&format!("whep+http://127.0.0.1:{port}/whep"), "-c 3 -d 7s --warmup 0s --drain 500ms");
    assert_eq!(run.well(), 3, "{:?}", run.failures());
    let seen = pion.end();
    let total = |figure: &str| run.total(figure) as u64;
    assert_eq!((seen["peers"], seen["connected"], seen["frames"]), (3, 3, 300), "{seen:?}");
    assert_eq!((total("units"), total("frames")), (seen["sent"], seen["frames"]), "{seen:?}");
    assert_eq!(total("rtc.audio_packets"), 3 * 200);
    let zeros = ["lost", "reordered", "duplicate", "rtc.frames_broken", "rtc.unauthentic", "rtc.strange"];
    assert_eq!(zeros.map(total), [0; 6]);
    assert_eq!((seen["nacks"], seen["reported_lost"]), (0, 0), "{seen:?}");
    assert!(seen["reports"] >= 3 * 3 && seen["keyframes_asked"] == total("rtc.plis"), "{seen:?}");
}

/// A clip of 100 frames that ffmpeg has made, and how many of them are keyframes by ffprobe.
fn clip(folder: &Path, codec: &str) -> (PathBuf, u64) {
    let (encoder, file): (&[&str], _) = match codec {
        "VP8" => (&["libvpx", "-deadline", "realtime", "-auto-alt-ref", "0"], "a.ivf"),
        "VP9" => (&["libvpx-vp9", "-deadline", "realtime", "-lag-in-frames", "0"], "a.ivf"),
        "AV1" => (&["libaom-av1", "-usage", "realtime", "-cpu-used", "8", "-lag-in-frames", "0"], "a.ivf"),
        _ => (
            &["libx265", "-preset", "ultrafast", "-x265-params", "aud=1:repeat-headers=1:scenecut=0"],
            "a.hevc",
        ),
    };
    let path = folder.join(file);
    let source = "testsrc2=size=320x180:rate=25,noise=alls=20:allf=t";
    let mut ffmpeg = program("ffmpeg", "ffmpeg");
    ffmpeg.args([
        "-v",
        "error",
        "-y",
        "-f",
        "lavfi",
        "-i",
        source,
        "-frames:v",
        "100",
        "-pix_fmt",
        "yuv420p",
    ]);
    ffmpeg.args(["-b:v", "1M", "-g", "30", "-bf", "0", "-c:v"]).args(encoder).arg(&path);
    assert!(ffmpeg.stderr(Stdio::null()).status().unwrap().success(), "{codec}");
    let mut probe = program("ffprobe", "ffmpeg");
    probe.args(["-v", "error", "-show_entries", "packet=flags", "-of", "csv=p=0"]).arg(&path);
    let output = String::from_utf8(probe.output().unwrap().stdout).unwrap();
    assert_eq!(output.lines().count(), 100, "{codec}");
    (path, output.lines().filter(|line| line.starts_with('K')).count() as u64)
}

#[test]
fn viewers_count_every_frame_and_keyframe_of_each_codec_that_a_server_sends() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    for (codec, name) in [("VP8", "VP8"), ("VP9", "VP9"), ("AV1", "AV1"), ("H265", "H.265")] {
        undisturbed(|| {
            let (path, keyframes) = clip(folder.path(), codec);
            assert!(keyframes >= 4, "{codec}: {keyframes}");
            let (pion, port) = Pion::start(&["serve", "100", codec, path.to_str().unwrap()]);
            // A witness decrypts all; the others read no more than headers once they play.
            let options = "-c 3 -d 7s --warmup 0s --drain 10s --witness-every 1 --decode";
            let run = play(&format!("whep+http://127.0.0.1:{port}/whep"), options);
            assert_eq!(run.well(), 3, "{codec}: {:?}", run.failures());
            let seen = pion.end();
            let total = |figure: &str| run.total(figure) as u64;
            assert_eq!((seen["connected"], seen["frames"]), (3, 300), "{codec}: {seen:?}");
            assert_eq!((total("units"), total("frames")), (seen["sent"], 300), "{codec}: {seen:?}");
            assert_eq!((total("keyframes"), total("rtc.frames_complete")), (3 * keyframes, 300), "{codec}");
            let zeros = [
                "lost",
                "rtc.frames_broken",
                "rtc.unauthentic",
                "rtc.strange",
                "rtc.malformed",
                "not_handed_in",
            ];
            assert_eq!(zeros.map(total), [0; 6], "{codec}");
            assert!(total("handed_in") >= 90 && total("decoded") == total("handed_in"), "{codec}: decoded");
            let tracks = run.summary["workloads"][0]["tracks"].to_string();
            assert!(tracks.contains(name) && tracks.contains("[320,180]"), "{codec}: {tracks}");
            // Asked for alone, and asked for another.
            let (pion, port) = Pion::start(&["serve", "100", codec, path.to_str().unwrap()]);
            let url = format!("whep+http://127.0.0.1:{port}/whep");
            let run =
                play(&url, &format!("-c 1 -d 3s --warmup 0s --drain 200ms --codec {}", codec.to_lowercase()));
            assert_eq!(run.well(), 1, "{codec}: {:?}", run.failures());
            pion.end();
        });
    }
}

/// The file that pion sends of a codec: of H.264 none.
fn content(folder: &Path, codec: &str) -> PathBuf {
    if codec == "H264" { PathBuf::from("-") } else { clip(folder, codec).0 }
}

#[test]
fn what_is_lost_of_each_codec_is_counted_to_the_packet_and_to_the_frame() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    for codec in ["H264", "H265", "VP8", "VP9", "AV1"] {
        undisturbed(|| {
            let path = content(folder.path(), codec);
            let (pion, port) = Pion::start(&["serve", "100", codec, path.to_str().unwrap(), "4"]);
            // What is not asked for does not come again.
            let options = "-c 1 -d 7s --warmup 0s --drain 10s --witness-every 1 --decode --rtcp-off nack";
            let run = play(&format!("whep+http://127.0.0.1:{port}/whep"), options);
            assert_eq!(run.well(), 1, "{codec}: {:?}", run.failures());
            let seen = pion.end();
            let total = |figure: &str| run.total(figure) as u64;
            assert!(
                seen["withheld"] > 5 && seen["frames_hit"] > 3 && seen["frames_gone"] > 0,
                "{codec}: {seen:?}"
            );
            assert_eq!(
                (seen["repeated"], total("lost"), total("duplicate")),
                (0, seen["withheld"], 0),
                "{codec}"
            );
            assert_eq!(total("frames"), 100 - seen["frames_gone"], "{codec}: {seen:?}");
            let (broken, unproven) = (total("rtc.frames_broken"), total("rtc.frames_unproven"));
            // A frame of AV1 does not say that it begins: behind a loss it may have lost its beginning.
            let is_told = codec != "AV1";
            assert_eq!(broken - unproven, seen["frames_hit"], "{codec}: {unproven} unproven, {seen:?}");
            assert!(unproven == 0 || !is_told, "{codec}: {unproven} unproven, {seen:?}");
            if codec != "H264" {
                // Each picture that was handed in came out; those behind a loss wait for a keyframe.
                assert_eq!(total("decoded"), total("handed_in"), "{codec}");
                assert!(total("not_handed_in") > 0 && total("handed_in") > 10, "{codec}");
            }
        });
    }
}

#[test]
fn what_comes_again_in_a_stream_of_its_own_is_recovered_and_neither_lost_nor_there_twice() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    for codec in ["H264", "H265", "VP8", "VP9", "AV1"] {
        let path = content(folder.path(), codec);
        let (pion, port) = Pion::start(&["serve", "100", codec, path.to_str().unwrap(), "4"]);
        // A witness, and one that reads headers only once it plays.
        let options = "-c 2 -d 7s --warmup 0s --drain 500ms";
        let run = play(&format!("whep+http://127.0.0.1:{port}/whep"), options);
        assert_eq!(run.well(), 2, "{codec}: {:?}", run.failures());
        let seen = pion.end();
        let total = |figure: &str| run.total(figure) as u64;
        assert!(seen["withheld"] > 10 && seen["retransmissions"] == seen["repeated"], "{codec}: {seen:?}");
        assert_eq!((total("rtc.recovered"), total("lost")), (seen["withheld"], 0), "{codec}: {seen:?}");
        let zeros = ["duplicate", "reordered", "rtc.frames_broken", "rtc.strange", "rtc.given_up"];
        assert_eq!(zeros.map(total), [0; 5], "{codec}: {seen:?}");
        assert_eq!((total("frames"), total("rtc.frames_complete")), (200, 200), "{codec}: {seen:?}");
    }
}

#[test]
fn a_server_of_others_gets_every_packet_of_publishers() {
    let _machine = shared();
    let (pion, port) = Pion::start(&["serve", "0"]);
    let url = format!("whip+http://127.0.0.1:{port}/whip");
    let run =
        measure(["publish", &url, "-c", "2", "-d", "5s", "--warmup", "0s", "--drain", "1s", "--gop", "1s"]);
    assert_eq!(run.well(), 2, "{:?}", run.failures());
    let seen = pion.end();
    let total = |figure: &str| run.total(figure) as u64;
    assert_eq!((seen["peers"], seen["connected"], seen["lost"]), (2, 2, 0), "{seen:?}");
    assert_eq!(total("units"), seen["arrived"], "{seen:?}");
    // At a goodbye pion forgets what it has not read yet, which is not lost by the numbers of what came: each frame that it
    // does not know was in one of these packets at the least.
    let forgotten = total("units") - seen["received"];
    for (theirs, ours) in [("frames", "frames"), ("keyframes", "keyframes")] {
        let (came, sent) = (seen[theirs], total(ours));
        assert!(came <= sent && sent - came <= forgotten, "{theirs}: {came} of {sent}: {seen:?}");
    }
    assert!(total("rtc.reports_heard") >= 2 && total("rtc.plis_heard") >= 1);
    assert_eq!((total("rtc.reported_lost"), total("rtc.unauthentic")), (0, 0));
}

/// The MD5 of each picture of a file, as ffmpeg decodes it.
fn pictures(path: &Path) -> Vec<String> {
    let mut ffmpeg = program("ffmpeg", "ffmpeg");
    ffmpeg.args(["-v", "error", "-xerror", "-i"]).arg(path).args(["-map", "0:v", "-vsync", "passthrough"]);
    let output = ffmpeg.args(["-f", "framemd5", "-"]).output().unwrap();
    assert!(output.status.success(), "{}: {}", path.display(), String::from_utf8_lossy(&output.stderr));
    let lines = String::from_utf8(output.stdout).unwrap();
    let pictures = lines.lines().filter(|line| !line.starts_with('#'));
    pictures.map(|line| line.rsplit(',').next().unwrap().trim().to_owned()).collect()
}

#[test]
fn a_server_of_others_gets_files_of_each_codec_whole() {
    let _machine = shared();
    let folder = tempfile::tempdir().unwrap();
    for (codec, container) in [("VP8", "ivf"), ("VP9", "webm"), ("AV1", "mkv"), ("H265", "mp4")] {
        let (made, _) = clip(folder.path(), codec);
        let path = folder.path().join(format!("published.{container}"));
        let mut ffmpeg = program("ffmpeg", "ffmpeg");
        ffmpeg.args(["-v", "error", "-y", "-i"]).arg(made).args(["-c", "copy"]).arg(&path);
        assert!(ffmpeg.stderr(Stdio::null()).status().unwrap().success(), "{codec}");
        let recorded = folder.path().join(if codec == "H265" { "a.h265" } else { "recorded.ivf" });
        let (pion, port) = Pion::start(&["serve", "0", "into", recorded.to_str().unwrap()]);
        let url = format!("whip+http://127.0.0.1:{port}/whip");
        let run = measure([
            "publish",
            &url,
            "-d",
            "4s",
            "--warmup",
            "0s",
            "--drain",
            "1s",
            "--file",
            path.to_str().unwrap(),
        ]);
        assert_eq!(run.well(), 1, "{codec}: {:?} {}", run.failures(), run.err);
        let warnings = run.summary["warnings"].to_string();
        assert!(warnings.contains("carry no clock stamp"), "{codec}: {warnings}");
        let seen = pion.end();
        let total = |figure: &str| run.total(figure) as u64;
        assert_eq!((seen["connected"], seen["lost"]), (1, 0), "{codec}: {seen:?}");
        assert_eq!(total("units"), seen["arrived"], "{codec}: {seen:?}");
        let forgotten = total("units") - seen["received"];
        for (theirs, ours) in [("frames", "frames"), ("keyframes", "keyframes")] {
            let (came, sent) = (seen[theirs], total(ours));
            assert!(came <= sent && sent - came <= forgotten, "{codec} {theirs}: {came} of {sent}: {seen:?}");
        }
        assert!(total("frames") > 80 && total("keyframes") >= 3, "{codec}");
        assert_eq!((total("rtc.reported_lost"), total("rtc.unauthentic")), (0, 0), "{codec}");
        // Each picture is one of the file's; where a keyframe was asked for, the file begins again.
        let (whole, came) = (pictures(&path), pictures(&recorded));
        assert!(
            came.len() as u64 >= seen["frames"] - 1 && came.len() > 80,
            "{codec}: {} {seen:?}",
            came.len()
        );
        assert!(came.iter().all(|picture| whole.contains(picture)), "{codec}");
    }
}
