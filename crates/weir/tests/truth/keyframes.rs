//! A source whose keyframes are as far apart as x264 puts them unless it is told otherwise: what viewers wait for is its doing, and
//! nginx, which begins wherever the stream is, is not blamed for it.

mod everywhere;

use crate::support::{CHECKS_OF_THE_MACHINE, KilledOnDrop, Nginx, play, program, says, shared, soon};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Pictures a second: 250 of them take 16.7 s, longer than a viewer waits for anything else.
const RATE: u32 = 15;

/// How long what ffmpeg sends again and again is.
const SECONDS: u32 = 75;

/// Pictures and sound in a file of this kind, with a keyframe and `keyint` - 1 other pictures alternately.
fn clip(folder: &Path, rate: u32, keyint: u32, kind: &str) -> PathBuf {
    let clip = folder.join(format!("clip.{kind}"));
    let picture = format!("testsrc=size=320x180:rate={rate}:duration={SECONDS}");
    let sound = format!("sine=duration={SECONDS}");
    let made = program("ffmpeg", "ffmpeg")
        .args(["-v", "error", "-f", "lavfi", "-i", &picture, "-f", "lavfi", "-i", &sound])
        .args(["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-x264-params"])
        .arg(format!("scenecut=0:keyint={keyint}"))
        .args(["-c:a", "aac"])
        .arg(&clip)
        .status()
        .unwrap();
    assert!(made.success());
    clip
}

/// ffmpeg publishes a file again and again.
fn feed(clip: &Path, url: &str) -> KilledOnDrop {
    let mut ffmpeg = program("ffmpeg", "ffmpeg");
    ffmpeg.args(["-v", "quiet", "-re", "-stream_loop", "-1", "-i"]).arg(clip);
    ffmpeg.args(["-c", "copy", "-f", "flv", url]).stdin(Stdio::null());
    KilledOnDrop::start(&mut ffmpeg)
}

/// ffmpeg publishes pictures with keyframes as far apart as x264 puts them.
fn publish(folder: &Path, nginx: &Nginx) -> KilledOnDrop {
    let ffmpeg = feed(&clip(folder, RATE, 250, "mp4"), &nginx.url("a"));
    soon("it is published", || nginx.statistics().contains("<publishing/>"));
    ffmpeg
}

#[test]
fn viewers_wait_for_keyframes_that_are_far_apart_and_nginx_is_not_blamed() {
    let _machine = shared();
    let (nginx, folder) = (Nginx::start(), tempfile::tempdir().unwrap());
    let _ffmpeg = publish(folder.path(), &nginx);
    let run = play(&nginx.url("a"), "-c 20 -d 30s");
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!((run.total("played"), run.slots("failed")), (20.0, 0));
    assert_eq!((run.total("keyframe_waits"), run.total("keyframe_waits_over")), (20.0, 20.0));
    // All wait for the same one.
    let waited = run.total("waited_time") / 20.0;
    let startup = run.spread("first_frame")["mean"].as_f64().unwrap();
    assert!((waited - startup).abs() < 0.5, "{waited} s, {startup} s");

    // Too short for one in most cases: then nothing is measured, or some played. It is no fault of the server's either.
    let run = play(&nginx.url("a"), "-c 20 -d 2s --warmup 0s");
    let waits = run.total("keyframe_waits") - run.total("keyframe_waits_over");
    assert_eq!((run.total("played") + waits, run.slots("failed")), (20.0, 0), "{}", run.err);
    assert!(
        waits == 0.0 || format!("{}{}", run.summary["warnings"], run.err).contains("keyframe"),
        "{}",
        run.err
    );
}

#[test]
fn a_search_gives_viewers_the_time_that_keyframes_take() {
    let _machine = shared();
    let (nginx, folder) = (Nginx::start(), tempfile::tempdir().unwrap());
    let _ffmpeg = publish(folder.path(), &nginx);
    let out = folder.path().join("out").display().to_string();
    let brief = [
        "--from",
        "20",
        "--most",
        "20",
        "--slice",
        "2s",
        "--hold",
        "4s",
        "--confirm",
        "4s",
        "--budget",
        "5m",
    ];
    let beside = ["--json", "-", "-o", &out, "--accept", CHECKS_OF_THE_MACHINE];
    let url = nginx.url("a");
    let said = says(["capacity", &url].into_iter().chain(brief).chain(beside));
    let summary: Value =
        serde_json::from_str(&said.out).unwrap_or_else(|error| panic!("{error}: {}", said.err));
    assert_eq!(summary["answer"]["evidence"], "at_least", "{}", said.err);
    assert_eq!(summary["answer"]["bounds"]["lower"], 20);
    let trials = summary["trials"].as_array().unwrap();
    let loads: Vec<_> = trials.iter().flat_map(|it| it["loads"].as_array().unwrap()).collect();
    assert!(loads.iter().all(|it| it["verdict"] != "fail"), "{}", said.err);
    let carried = loads.iter().filter(|it| it["verdict"] == "pass");
    assert!(
        carried.clone().count() >= 3 && carried.clone().all(|it| it["playing"].as_f64().unwrap() >= 17.0),
        "{}",
        said.err
    );
}
