//! Servers and tools of others: nginx with its RTMP module, ffmpeg, ffprobe.

use crate::support::{Publishing, measure, start};
use std::path::Path;
use std::process::Command;
use weir_runner::ErrorKind::Interrupted;
use weir_testing::{Nginx, number_in, program, soon};

/// Bytes of C0 + C1 + C2, or S0 + S1 + S2 (RTMP 1.0, section 5.2): nginx counts messages only.
const HANDSHAKE: f64 = 3_073.0;

#[test]
fn nginx_counts_the_same_bytes_and_viewers_count_the_same_frames() {
    let nginx = Nginx::start();
    let url = nginx.url("a");
    // They wait for the publisher, so they get all that it sends; then they see its end.
    let watching = start(&format!("drain: 500ms\nworkloads: [{{play: '{url}', clients: 6, duration: 10s}}]"));
    soon("six wait", || number_in(&nginx.statistics(), "nclients") == Some(6.0));
    let sent = measure(&format!("warmup: 0s\ndrain: 500ms\nworkloads: [{{publish: '{url}', duration: 3s}}]"));
    let stream = nginx.statistics();
    let got = watching.finish();

    let (kind, clients, _, words) = got.failure();
    assert_eq!((kind.as_str(), clients), ("stream_ended", 6), "{words}");
    assert!(sent.total("frames") >= 50.0);
    for figure in ["frames", "keyframes", "rtmp.audio_frames"] {
        assert_eq!(got.total(figure), 6.0 * sent.total(figure), "{figure}");
    }
    // nginx's page: of the stream, frames to six viewers; beside them each got codec settings and metadata.
    let (_, of_stream) = stream.split_once("<stream>").expect("the stream is on nginx's page");
    let of_frames = number_in(of_stream, "bytes_out").unwrap();
    let beside = (got.total("media") - of_frames) / 6.0;
    assert!((0.0..1_000.0).contains(&beside), "{} of {of_frames} bytes", got.total("media"));
    assert_eq!(beside.fract(), 0.0, "the same for each viewer");
    // Of the whole server, every byte after the handshake; the publisher left before nginx's goodbye.
    let of_server = number_in(&nginx.statistics(), "bytes_out").unwrap();
    let received = got.total("received") + sent.total("received") - 7.0 * HANDSHAKE;
    assert!((0.0..=300.0).contains(&(of_server - received)), "{received} of {of_server} bytes");
}

#[test]
fn a_file_that_ffmpeg_publishes_to_nginx_has_as_many_frames_as_ffprobe_counts() {
    let nginx = Nginx::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("clip.flv");
    make_clip(&file, 4);
    let url = nginx.url("clip");
    let watching = start(&format!("drain: 500ms\nworkloads: [{{play: '{url}', clients: 6, duration: 11s}}]"));
    soon("six wait", || number_in(&nginx.statistics(), "nclients") == Some(6.0));
    quiet(program("ffmpeg", "ffmpeg").args(["-v", "warning", "-re", "-i"]).arg(&file).args([
        "-c",
        "copy",
        "-flvflags",
        "no_duration_filesize",
        "-f",
        "flv",
        &url,
    ]));
    let run = watching.finish();
    let counted = quiet(
        program("ffprobe", "ffmpeg")
            .args(["-v", "warning", "-count_packets", "-select_streams", "v", "-of", "csv=p=0"])
            .args(["-show_entries", "stream=nb_read_packets"])
            .arg(&file),
    );
    let frames: f64 = counted.trim().trim_end_matches(',').parse().unwrap();
    assert_eq!(frames, 100.0, "four seconds of 25");
    assert_eq!(run.total("frames"), 6.0 * frames);
    assert_eq!((run.total("played"), run.total("timestamp_jumps")), (6.0, 0.0));
}

#[test]
fn ffmpeg_and_ffprobe_play_what_weir_publishes_to_nginx_without_a_warning() {
    let nginx = Nginx::start();
    let url = nginx.url("a");
    let publishing = Publishing::start(&url, "gop: 1s");
    soon("nginx has the stream", || nginx.statistics().contains("<publishing/>"));
    let entries = "stream=codec_name,width,height,r_frame_rate,channels";
    let probed = quiet(program("ffprobe", "ffmpeg").args([
        "-v",
        "warning",
        "-show_entries",
        entries,
        "-of",
        "compact",
        &url,
    ]));
    for words in ["codec_name=h264", "width=640|height=360", "r_frame_rate=25/1", "codec_name=aac"] {
        assert!(probed.contains(words), "{words} is not in {probed}");
    }
    quiet(program("ffmpeg", "ffmpeg").args(["-v", "warning", "-i", &url, "-t", "3", "-f", "null", "-"]));
    let sent = publishing.finish();
    assert_eq!((sent.missed, sent.well()), (Some(Interrupted), 1));
}

#[test]
fn a_file_of_ffmpegs_is_looped_with_continuous_timestamps() {
    let nginx = Nginx::start();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("clip.flv");
    make_clip(&file, 2);
    let url = nginx.url("loop");
    let _publishing = Publishing::start(&url, &format!("file: '{}'", file.display()));
    soon("nginx has the stream", || nginx.statistics().contains("<publishing/>"));
    let watching =
        start(&format!("drain: 200ms\nworkloads: [{{play: '{url}', clients: 2, duration: 8s, buffer: 2s}}]"));
    let packets = quiet(
        program("ffprobe", "ffmpeg")
            .args(["-v", "warning", "-select_streams", "v", "-read_intervals", "%+6", "-of", "csv=p=0"])
            .args(["-show_entries", "packet=dts_time", &url]),
    );
    let times: Vec<f64> =
        packets.lines().filter_map(|line| line.trim().trim_end_matches(',').parse().ok()).collect();
    assert!(times.len() >= 120, "{} packets in six seconds", times.len());
    // The file comes round when its longest track is over: its sound ends within three frames of the picture.
    let steps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let seams: Vec<usize> = (0..steps.len()).filter(|at| !(0.039..=0.041).contains(&steps[*at])).collect();
    assert!(
        seams.iter().all(|at| (0.040..0.040 + 3.0 * 1024.0 / 44_100.0).contains(&steps[*at])),
        "{steps:?}"
    );
    assert!(seams.windows(2).all(|pair| pair[1] - pair[0] == 50), "once in 50 frames: {seams:?}");
    let run = watching.finish();
    assert_eq!((run.well(), run.total("timestamp_jumps")), (2, 0.0));
    // The clip's keyframe comes back with every loop.
    assert!(run.total("keyframes") >= 2.0 * 2.0);
}

/// A clip of 25 frames a second with sound.
fn make_clip(file: &Path, seconds: u32) {
    let picture = format!("testsrc=size=320x180:rate=25:duration={seconds}");
    let sound = format!("sine=frequency=440:sample_rate=44100:duration={seconds}");
    quiet(
        program("ffmpeg", "ffmpeg")
            .args(["-v", "error", "-y", "-f", "lavfi", "-i", &picture, "-f", "lavfi", "-i", &sound])
            .args(["-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-g", "50", "-pix_fmt", "yuv420p"])
            .args(["-c:a", "aac", "-b:a", "64k", "-f", "flv"])
            .arg(file),
    );
}

/// Runs a tool that must succeed and say nothing but its result.
fn quiet(command: &mut Command) -> String {
    let mut limited = program("timeout", "coreutils");
    limited.arg("40").arg(command.get_program()).args(command.get_args());
    let output = limited.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && err.is_empty(), "{command:?}: {} {err}", output.status);
    String::from_utf8(output.stdout).unwrap()
}
