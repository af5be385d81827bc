//! What is counted equals what ffmpeg itself counts of known streams, whole and damaged.

use super::*;
use crate::parameter_sets::NalCodec;
use std::process::Command;
use weir_media::{Framing, PictureCodec, units};

/// Four seconds of 25 pictures a second with these options, as a byte stream whose access units begin with a delimiter.
fn byte_stream(options: &[&str]) -> Vec<u8> {
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25", "-t", "4"])
        .args(["-g", "25"])
        .args(options)
        .arg("pipe:1")
        .output()
        .expect("ffmpeg");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn h264(options: &[&str]) -> Vec<u8> {
    let fixed =
        ["-c:v", "libx264", "-preset", "veryfast", "-bsf:v", "h264_metadata=aud=insert", "-f", "h264"];
    byte_stream(&[options, &fixed].concat())
}

/// The access units of a byte stream, with a length in front of each NAL unit.
fn access_units(codec: NalCodec, stream: &[u8]) -> Vec<Vec<u8>> {
    let delimiter = if codec == NalCodec::H264 { 9 } else { 35 };
    let mut all: Vec<Vec<u8>> = Vec::new();
    for unit in units(stream, Framing::AnnexB) {
        if codec.unit_type(unit[0]) == delimiter {
            all.push(Vec::new());
        }
        let last = all.last_mut().expect("a delimiter");
        last.extend((unit.len() as u32).to_be_bytes());
        last.extend_from_slice(unit);
    }
    all
}

/// What is booked of a witness that received this.
fn booked(receive: impl FnOnce(&mut DecodedWitness, Moment)) -> [u64; 5] {
    // At the lowest priority, beside other tests: it may wait long for a core.
    let programs = Programs::find().map(|mut it| {
        it.end_timeout = Duration::from_secs(300);
        it
    });
    let decoders = Arc::new(Decoders { programs, at_once: 1, state: Mutex::default() });
    let mut witness = DecodedWitness::new(Arc::clone(&decoders));
    receive(&mut witness, weir_shard::clock::now());
    drop(witness);
    for _ in 0..30_000 {
        if !decoders.is_busy() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut recorder = Recorder::new(weir_metrics::Schema::new(&[]));
    decoders.book(&mut recorder);
    assert_eq!((recorder.counter(DECODERS_MISSING), recorder.counter(DECODERS_FAILED)), (0, 0));
    let count = |counter| recorder.counter(counter);
    [count(HANDED_IN), count(DECODED), count(DECODER_ERRORS), count(NOT_HANDED_IN), {
        recorder.gauge(DECODED_WIDTH) * 10_000 + recorder.gauge(DECODED_HEIGHT)
    }]
}

fn of_pictures(codec: NalCodec, units: &[Vec<u8>]) -> [u64; 5] {
    booked(|witness, now| {
        units.iter().for_each(|unit| witness.picture(codec, unit, Framing::LengthPrefixed, now));
    })
}

#[test]
fn every_picture_of_a_whole_stream_comes_out() {
    for options in [&["-bf", "2"][..], &["-bf", "0", "-tune", "zerolatency"], &["-x264-params", "slices=4"]] {
        let units = access_units(NalCodec::H264, &h264(options));
        assert_eq!(units.len(), 100);
        assert_eq!(of_pictures(NalCodec::H264, &units), [100, 100, 0, 0, 3_200_180], "{options:?}");
        // Joined within the first group of pictures: from the next one on.
        assert_eq!(of_pictures(NalCodec::H264, &units[10..])[..3], [75, 75, 0], "{options:?}");
    }
    let options = [
        "-c:v",
        "libx265",
        "-preset",
        "veryfast",
        "-x265-params",
        "log-level=error",
        "-bsf:v",
        "hevc_metadata=aud=insert",
    ];
    let units = access_units(NalCodec::H265, &byte_stream(&[&options[..], &["-f", "hevc"]].concat()));
    assert_eq!(of_pictures(NalCodec::H265, &units)[..3], [100, 100, 0]);
    let [handed_in, decoded, errors, ..] = of_pictures(NalCodec::H265, &units[10..]);
    assert!(handed_in == decoded && errors == 0 && handed_in > 60, "{handed_in} {decoded} {errors}");
}

#[test]
fn every_picture_comes_out_whatever_rate_a_stream_has_and_when_pictures_change_their_size() {
    let h265: &[&str] = &[
        "-c:v",
        "libx265",
        "-x265-params",
        "log-level=error",
        "-bsf:v",
        "hevc_metadata=aud=insert",
        "-f",
        "hevc",
    ];
    // Four seconds of each, which says its rate itself.
    for rate in [5, 10, 30, 60] {
        let said = rate.to_string();
        let options = ["-r", &*said];
        let units = access_units(NalCodec::H264, &h264(&options));
        assert_eq!(of_pictures(NalCodec::H264, &units)[..3], [4 * rate, 4 * rate, 0], "{rate}");
        let units = access_units(NalCodec::H265, &byte_stream(&[&options[..], h265].concat()));
        assert_eq!(of_pictures(NalCodec::H265, &units)[..3], [4 * rate, 4 * rate, 0], "{rate}");
    }
    let sizes = ["160x90", "320x180", "160x90"].map(|size| h264(&["-s", size]));
    let units = access_units(NalCodec::H264, &sizes.concat());
    assert_eq!(of_pictures(NalCodec::H264, &units)[..3], [300, 300, 0]);
}

#[test]
fn a_damaged_stream_has_errors_and_fails_what_is_asked() {
    let mut units = access_units(NalCodec::H264, &h264(&["-bf", "0"]));
    for unit in units.iter_mut().skip(5).step_by(10) {
        let (at, length) = (unit.len() / 2, unit.len());
        unit[at..(at + 40).min(length)].fill(0x55);
    }
    let [handed_in, decoded, errors, ..] = of_pictures(NalCodec::H264, &units);
    assert_eq!(handed_in, 100);
    assert!(decoded * 100 < handed_in * 99 && errors > 0, "{decoded} of {handed_in}, {errors} errors");
}

#[test]
fn a_picture_that_is_not_whole_leaves_out_its_group() {
    let units = access_units(NalCodec::H264, &h264(&["-bf", "0"]));
    let counts = booked(|witness, now| {
        for (number, unit) in units.iter().enumerate() {
            if number == 30 {
                witness.broken_picture();
            } else {
                witness.picture(NalCodec::H264, unit, Framing::LengthPrefixed, now);
            }
        }
    });
    assert_eq!(counts[..4], [80, 80, 0, 19]);
}

/// Encoders of codecs without NAL units; with frames that are not shown, and without.
const FRAMED: [(PictureCodec, &[&str]); 5] = [
    (PictureCodec::Vp8, &["-c:v", "libvpx", "-deadline", "realtime", "-lag-in-frames", "0"]),
    (
        PictureCodec::Vp8,
        &["-c:v", "libvpx", "-deadline", "good", "-auto-alt-ref", "1", "-lag-in-frames", "16"],
    ),
    (PictureCodec::Vp9, &["-c:v", "libvpx-vp9", "-deadline", "realtime", "-lag-in-frames", "0"]),
    (
        PictureCodec::Vp9,
        &["-c:v", "libvpx-vp9", "-cpu-used", "8", "-auto-alt-ref", "1", "-lag-in-frames", "16"],
    ),
    (PictureCodec::Av1, &["-c:v", "libaom-av1", "-usage", "realtime", "-cpu-used", "8"]),
];

/// The frames of an encoder's IVF.
fn frames(options: &[&str]) -> Vec<Vec<u8>> {
    let stream = byte_stream(&[options, &["-b:v", "500k", "-pix_fmt", "yuv420p", "-f", "ivf"]].concat());
    let mut rest = &stream[32..];
    let mut frames = Vec::new();
    while let Some((length, behind)) = rest.split_first_chunk::<4>() {
        let (frame, behind) = behind[8..].split_at(u32::from_le_bytes(*length) as usize);
        frames.push(frame.to_vec());
        rest = behind;
    }
    frames
}

fn of_frames(codec: PictureCodec, frames: &[Vec<u8>]) -> [u64; 5] {
    booked(|witness, now| frames.iter().for_each(|frame| witness.frame(codec, frame, now)))
}

#[test]
fn every_picture_of_codecs_without_nal_units_comes_out() {
    for (codec, options) in FRAMED {
        let frames = frames(options);
        assert!(frames.len() >= 100, "{options:?}: {}", frames.len());
        assert_eq!(of_frames(codec, &frames), [100, 100, 0, 0, 3_200_180], "{options:?}");
        let [handed_in, decoded, errors, ..] = of_frames(codec, &frames[10..]);
        assert!(handed_in == decoded && errors == 0 && handed_in == 75, "{options:?}: {handed_in} {decoded}");
    }
}

#[test]
fn damaged_frames_of_codecs_without_nal_units_are_found_and_those_that_are_not_whole_left_out() {
    for (codec, options) in [FRAMED[0], FRAMED[2], FRAMED[4]] {
        let whole = frames(options);
        let mut damaged = whole.clone();
        damaged.iter_mut().skip(5).step_by(10).for_each(|frame| frame.truncate(6));
        let [handed_in, decoded, errors, ..] = of_frames(codec, &damaged);
        assert!(
            decoded * 100 < handed_in * 99 && errors > 0,
            "{codec:?}: {decoded} of {handed_in}, {errors}"
        );
        let counts = booked(|witness, now| {
            for (number, frame) in whole.iter().enumerate() {
                if number == 30 { witness.broken_picture() } else { witness.frame(codec, frame, now) }
            }
        });
        assert_eq!(counts[..4], [80, 80, 0, 19], "{codec:?}");
    }
}

#[test]
fn a_change_of_codec_ends_a_turn() {
    let (vp8, vp9) = (frames(FRAMED[0].1), frames(FRAMED[2].1));
    let counts = booked(|witness, now| {
        vp8[..30].iter().for_each(|frame| witness.frame(PictureCodec::Vp8, frame, now));
        // Another turn of the same witness is due once no other has wanted one.
        let later = now + ANOTHERS_CHANCE;
        vp9.iter().for_each(|frame| witness.frame(PictureCodec::Vp9, frame, now));
        vp9.iter().for_each(|frame| witness.frame(PictureCodec::Vp9, frame, later));
    });
    assert_eq!(counts[..3], [130, 130, 0]);
}

#[test]
fn sound_is_decoded_with_pictures_and_alone() {
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", "sine=sample_rate=48000", "-t", "4"])
        .args(["-c:a", "aac", "-f", "adts", "pipe:1"])
        .output()
        .expect("ffmpeg");
    let mut rest = &output.stdout[..];
    let mut frames = Vec::new();
    while let [_, _, _, a, b, c, ..] = *rest {
        let length = usize::from(a & 3) << 11 | usize::from(b) << 3 | usize::from(c >> 5);
        frames.push(&rest[7..length]);
        rest = &rest[length..];
    }
    assert!(frames.len() > 180);
    let counts = booked(|witness, now| {
        // AAC-LC, 48 kHz, one channel.
        witness.describe_sound(&[0x11, 0x88]);
        frames.iter().for_each(|frame| witness.sound(frame, true, now));
    });
    assert_eq!(counts[..3], [frames.len() as u64, frames.len() as u64, 0]);
    let nothing = booked(|witness, now| {
        // Channels that a program config element lists.
        witness.describe_sound(&[0x11, 0x80]);
        frames.iter().for_each(|frame| witness.sound(frame, true, now));
    });
    assert_eq!(nothing[..2], [0, 0]);
}
