//! Streams of ffmpeg of many kinds, all of which a decoder can begin with, from their first packet on and joined in their midst.

use super::{CROWD, Framing, Response, Viewer, WITNESS, ms, without_units};
use std::process::Command;
use weir_metrics::Failure;
use weir_metrics::common::PLAYED;
use weir_shard::Event;
use weir_ts::{Analyser, Options};

/// Four seconds of pictures and sound, with these options of their encoders.
fn muxed(options: &[&str]) -> Vec<u8> {
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25"])
        .args(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000", "-t", "4", "-g", "25"])
        .args(["-c:v", "libx264", "-preset", "ultrafast", "-c:a", "aac"])
        .args(options)
        .args(["-f", "mpegts", "pipe:1"])
        .output()
        .expect("ffmpeg");
    assert!(output.status.success(), "{options:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Has a viewer read a stream, at 4 s for its whole, and wait for its timeout.
fn read(client: u32, stream: &[u8]) -> Viewer {
    let mut viewer = Viewer::connected(client);
    viewer.deliver(Response::ok(Framing::Close, Vec::new()).head().as_bytes());
    for piece in stream.chunks(stream.len() / 40) {
        viewer.deliver(piece);
        viewer.advance(ms(100));
    }
    viewer
}

fn plays(client: u32, stream: &[u8]) -> bool {
    let mut viewer = read(client, stream);
    viewer.dispatch(Event::Stop);
    viewer.outcome().2.counter(PLAYED) == 1
}

#[test]
fn a_decoder_can_begin_with_healthy_streams_of_many_kinds() {
    for options in [
        &[][..],
        &["-preset", "veryfast", "-bf", "2", "-x264-params", "open-gop=1"],
        &["-x264-params", "intra-refresh=1"],
        &["-flags", "+ilme+ildct"],
        &["-c:v", "libx265", "-x265-params", "log-level=error"],
        &["-c:v", "mpeg2video", "-c:a", "mp2"],
        &["-mpegts_flags", "latm"],
        &["-c:a", "ac3"],
        &["-vn"],
        &["-vn", "-mpegts_flags", "latm"],
        &["-an"],
        &["-muxrate", "4M"],
    ] {
        let stream = muxed(options);
        let middle = stream.len() * 2 / 5 / 188 * 188;
        for client in [WITNESS, CROWD] {
            assert!(plays(client, &stream), "{options:?}");
            // With the tables in front, which come ten times a second, or once in a time that ffmpeg has for itself.
            assert!(plays(client, &stream[middle..]), "{options:?}, joined");
        }
    }
}

#[test]
fn parameter_sets_that_come_once_are_enough_and_none_are_not() {
    let stream = muxed(&["-an"]);
    let second = stream.len() / 4;
    let once = [stream[..second].to_vec(), without_units(stream[second..].to_vec(), &[7, 8])].concat();
    assert!(plays(WITNESS, &once));
    let mut viewer = read(WITNESS, &without_units(stream, &[7, 8]));
    viewer.advance(ms(10_000));
    viewer.assert_failed(Failure::NoMedia, "without SPS and PPS of the H.264 on PID 256");
}

/// How far apart the places are at which decoding can begin, by the beginnings of units alone: of ffmpeg's keyframes a second, of
/// sound alone as little as its packets are.
#[test]
fn keyframes_are_found_by_the_first_packets_of_pictures() {
    for (options, longest) in [
        (&[][..], 1.0),
        (&["-preset", "veryfast", "-bf", "2", "-x264-params", "open-gop=1"], 1.0),
        (&["-x264-params", "intra-refresh=1"], 1.0),
        (&["-c:v", "libx265", "-x265-params", "log-level=error:keyint=25:min-keyint=25:scenecut=0"], 1.0),
        (&["-c:v", "mpeg2video", "-c:a", "mp2"], 1.0),
        (&["-c:a", "ac3"], 1.0),
        (&["-an"], 1.0),
        (&["-muxrate", "4M"], 1.0),
        (&["-vn"], 0.4),
        (&["-vn", "-c:a", "mp2"], 0.4),
    ] {
        let mut analyser = Analyser::new(Options::default());
        analyser.feed(&muxed(options));
        analyser.finish();
        let found = analyser.beginnings();
        let seconds = found.longest as f64 / 27e6;
        assert!(seconds <= longest + 0.1, "{options:?}: {seconds}");
        assert!(longest < 1.0 || (3..=4).contains(&found.units) && seconds > 0.8, "{options:?}: {found:?}");
    }
}
