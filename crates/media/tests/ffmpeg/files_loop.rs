//! Files made by ffmpeg are read as ffprobe reads them, and go round without a gap.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use weir_media::{FileFault, Frame, FrameRate, LoopedFile, MediaFile, PictureCodec, Source, Track};

use crate::judge::{decode, ffmpeg, ffprobe, write};

const VIDEO: &str = "-f lavfi -i testsrc=size=320x240:rate=30000/1001:duration=3";
const AUDIO: &str = "-f lavfi -i sine=frequency=440:sample_rate=44100:duration=3";
const H264: &str = "-c:v libx264 -pix_fmt yuv420p -bf 3 -g 30";

/// Makes a file of this name with B pictures and sound.
fn made(directory: &Path, name: &str, more: &str) -> PathBuf {
    let path = directory.join(name);
    ffmpeg(&format!("{VIDEO} {AUDIO} {H264} -c:a aac {more} {}", path.display()));
    path
}

/// The frames of a track in one pass, with sizes for payloads.
fn one_pass(path: &Path, track: Track) -> Vec<(Frame, usize)> {
    let file = Arc::new(MediaFile::open_of(path, &PictureCodec::ALL).unwrap());
    let mut source = LoopedFile::new(file.clone());
    let mut frames = Vec::new();
    let mut frame = Frame::empty();
    while frames.len() < file.frame_count(track) {
        source.next(&mut frame).unwrap();
        if frame.track == track {
            frames.push((Frame { payload: Vec::new(), ..frame.clone() }, frame.payload.len()));
        }
    }
    frames
}

/// What ffprobe sees of a packet: seconds, seconds, keyframe, bytes.
type Packet = (f64, f64, bool, usize);

fn packets(path: &Path, stream: &str) -> Vec<Packet> {
    ffprobe(path, &format!("-select_streams {stream} -show_entries packet=pts_time,dts_time,size,flags"))
        .iter()
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let seconds = |field: &str| field.parse().unwrap();
            (seconds(fields[0]), seconds(fields[1]), fields[3].starts_with('K'), fields[2].parse().unwrap())
        })
        .collect()
}

/// The frames of both tracks are those that ffprobe sees, with one shift for all timestamps.
fn agrees_with_ffprobe(path: &Path) {
    let video = packets(path, "v");
    let audio = packets(path, "a");
    let start = video.iter().chain(&audio).map(|packet| packet.1).fold(f64::MAX, f64::min);
    for (track, packets) in [(Track::Video, video), (Track::Audio, audio)] {
        let frames = one_pass(path, track);
        assert_eq!(frames.len(), packets.len());
        for (index, ((frame, size), (presentation, decode, keyframe, bytes))) in
            frames.into_iter().zip(packets).enumerate()
        {
            let close = |time: Duration, seconds: f64| (time.as_secs_f64() - (seconds - start)).abs() < 2e-6;
            let context = format!("{track:?} {index} of {}", path.display());
            assert!(close(frame.decode_time, decode), "{context}: {frame:?} {decode}");
            assert!(close(frame.presentation_time, presentation), "{context}: {frame:?} {presentation}");
            assert_eq!((frame.keyframe, size), (keyframe, bytes), "{context}");
        }
    }
}

#[test]
fn frames_are_those_that_ffprobe_sees() {
    let directory = tempfile::tempdir().unwrap();
    for (name, more) in [
        ("plain.mp4", ""),
        ("moov_first.mp4", "-movflags +faststart"),
        ("no_edit_list.mp4", "-use_editlist 0"),
        ("negative_offsets.mp4", "-movflags +negative_cts_offsets"),
        ("quicktime.mov", "-tag:a mp4a"),
        ("plain.flv", ""),
    ] {
        made(directory.path(), name, more);
        agrees_with_ffprobe(&directory.path().join(name));
    }
}

#[test]
fn frames_of_every_codec_are_those_that_ffprobe_sees() {
    let directory = tempfile::tempdir().unwrap();
    for (codec, encoder, names) in [
        (
            PictureCodec::Vp8,
            "libvpx -b:v 500k -deadline realtime -auto-alt-ref 0",
            &["vp8.ivf", "vp8.webm"][..],
        ),
        (
            PictureCodec::Vp9,
            "libvpx-vp9 -b:v 500k -deadline realtime -lag-in-frames 0",
            &["vp9.ivf", "vp9.mp4", "vp9.webm"],
        ),
        (
            PictureCodec::Av1,
            "libaom-av1 -b:v 500k -usage realtime -cpu-used 8 -lag-in-frames 0",
            &["av1.ivf", "av1.mp4", "av1.mkv"],
        ),
        (
            PictureCodec::H265,
            "libx265 -x265-params log-level=error:bframes=0",
            &["hvc1.mp4", "hev1.mp4", "h265.mkv"],
        ),
    ] {
        for name in names {
            let path = directory.path().join(name);
            let tag = if name.starts_with("h") && name.ends_with("mp4") {
                format!("-tag:v {}", &name[..4])
            } else {
                String::new()
            };
            ffmpeg(&format!("{VIDEO} -c:v {encoder} -pix_fmt yuv420p -g 30 {tag} {}", path.display()));
            agrees_with_ffprobe(&path);
            let file = MediaFile::open_of(&path, &PictureCodec::ALL).unwrap();
            let source = LoopedFile::new(Arc::new(file));
            let video = source.video_config().unwrap();
            assert_eq!((video.codec, video.resolution), (codec, Some((320, 240))), "{name}");
            assert_eq!(video.frame_rate, FrameRate::new(30000, 1001), "{name}");
            let described = if codec == PictureCodec::H265 {
                3
            } else {
                usize::from(["av1.mp4", "av1.mkv"].contains(name))
            };
            assert_eq!(video.parameter_sets().len(), described, "{name}");
            let refused = MediaFile::open(&path).unwrap_err().to_string();
            assert!(refused.contains("is not supported; re-encode it with ffmpeg -c:v libx264"), "{refused}");
        }
    }
}

#[test]
fn the_tracks_are_described() {
    let directory = tempfile::tempdir().unwrap();
    let mp4 = LoopedFile::new(Arc::new(MediaFile::open(made(directory.path(), "a.mp4", "")).unwrap()));
    let flv = LoopedFile::new(Arc::new(MediaFile::open(made(directory.path(), "a.flv", "")).unwrap()));
    let video = mp4.video_config().unwrap();
    for source in [&mp4, &flv] {
        let video = source.video_config().unwrap();
        assert_eq!(video.resolution, Some((320, 240)));
        assert_eq!(video.frame_rate, FrameRate::new(30000, 1001));
        assert!(video.bit_rate.is_some());
        let audio = source.audio_config().unwrap();
        assert_eq!((audio.sample_rate, audio.channels), (44_100, 1));
        let kbps = audio.bit_rate.unwrap().whole_bps() / 1000;
        assert!((50..90).contains(&kbps), "{kbps}");
    }
    assert_eq!(video.decoder_configuration, flv.video_config().unwrap().decoder_configuration);
    assert_eq!(mp4.audio_config().unwrap().specific_config, flv.audio_config().unwrap().specific_config);
}

#[test]
fn loops_are_continuous() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["loop.mp4", "loop.flv", "loop.mkv"] {
        let path = made(directory.path(), name, "");
        let file = Arc::new(MediaFile::open(&path).unwrap());
        let mut source = LoopedFile::new(file.clone());
        let written = write(&mut source, 3 * file.duration(), directory.path(), |_| {});
        assert!(written.frames.windows(2).all(|pair| pair[0].decode_time <= pair[1].decode_time));
        // The sound is up to two access units longer than the pictures, which wait for it.
        for (track, most) in [(Track::Video, 0.080), (Track::Audio, 0.080)] {
            let times: Vec<_> = written
                .frames
                .iter()
                .filter(|frame| frame.track == track)
                .map(|frame| frame.decode_time)
                .collect();
            for pair in times.windows(2) {
                let step = (pair[1] - pair[0]).as_secs_f64();
                assert!(step > 0.0 && step < most, "{name} {track:?}: {step} s at {:?}", pair[0]);
            }
        }
        decode(&written.video);
        decode(&written.audio);
        let pictures = ffprobe(&written.video, "-count_frames -show_entries stream=nb_read_frames");
        assert_eq!(pictures, ["270"], "{name}");
    }
}

#[test]
fn a_file_may_have_one_track_only() {
    let directory = tempfile::tempdir().unwrap();
    for extension in ["mp4", "flv", "mkv"] {
        let silent = directory.path().join(format!("silent.{extension}"));
        ffmpeg(&format!("{VIDEO} {H264} {}", silent.display()));
        let source = LoopedFile::new(Arc::new(MediaFile::open(silent).unwrap()));
        assert!(source.video_config().is_some() && source.audio_config().is_none());
        let blind = directory.path().join(format!("blind.{extension}"));
        ffmpeg(&format!("{AUDIO} -c:a aac {}", blind.display()));
        let source = LoopedFile::new(Arc::new(MediaFile::open(blind).unwrap()));
        assert!(source.video_config().is_none() && source.audio_config().is_some());
    }
}

#[test]
fn what_cannot_be_played_says_what_would_help() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let fault = |name: &str| {
        let error = MediaFile::open(path(name)).unwrap_err();
        assert!(error.to_string().starts_with(&path(name).display().to_string()), "{error}");
        error.fault
    };
    for (name, arguments, expected) in [
        (
            "hevc.mp4",
            format!("{VIDEO} -c:v libx265 -x265-params log-level=error -tag:v hvc1"),
            "video codec hvc1 is not supported; re-encode it with ffmpeg -c:v libx264",
        ),
        (
            "mpeg4.mp4",
            format!("{VIDEO} -c:v mpeg4"),
            "video codec mp4v is not supported; re-encode it with ffmpeg -c:v libx264",
        ),
        (
            "mp3.mp4",
            format!("{AUDIO} -c:a libmp3lame"),
            "audio codec mp4a.6b is not supported; re-encode it with ffmpeg -c:a aac",
        ),
        (
            "opus.mp4",
            format!("{AUDIO} -ar 48000 -c:a libopus -b:a 64k"),
            "audio codec Opus is not supported; re-encode it with ffmpeg -c:a aac",
        ),
        (
            "fragmented.mp4",
            format!("{VIDEO} {H264} -movflags +frag_keyframe+empty_moov"),
            "fragmented MP4 is not supported; rewrite it with ffmpeg -c copy",
        ),
        (
            "sorenson.flv",
            format!("{VIDEO} -c:v flv"),
            "video codec 2 is not supported; re-encode it with ffmpeg -c:v libx264",
        ),
        (
            "mp3.flv",
            format!("{AUDIO} -c:a libmp3lame"),
            "audio codec .mp3 is not supported; re-encode it with ffmpeg -c:a aac",
        ),
        (
            "plain.avi",
            format!("{VIDEO} {H264}"),
            "neither MP4, Matroska, FLV nor IVF; convert it with ffmpeg -c copy",
        ),
        (
            "vorbis.webm",
            format!("{AUDIO} -c:a libvorbis"),
            "audio codec A_VORBIS is not supported; re-encode it with ffmpeg -c:a aac",
        ),
    ] {
        ffmpeg(&format!("{arguments} {}", path(name).display()));
        assert_eq!(fault(name).to_string(), expected, "{name}");
    }
    std::fs::write(path("empty.mp4"), "").unwrap();
    assert!(matches!(fault("empty.mp4"), FileFault::Format));
    assert!(matches!(fault("absent.mp4"), FileFault::Read(_)));

    let whole = std::fs::read(made(directory.path(), "cut.mp4", "-movflags +faststart")).unwrap();
    std::fs::write(path("cut.mp4"), &whole[..whole.len() - 1000]).unwrap();
    assert!(fault("cut.mp4").to_string().contains("lies beyond the end"));
    let whole = std::fs::read(made(directory.path(), "cut.mp4", "")).unwrap();
    std::fs::write(path("cut.mp4"), &whole[..whole.len() / 2]).unwrap();
    assert!(fault("cut.mp4").to_string().contains("no moov box"));
}

#[test]
fn a_cut_flv_is_played_as_far_as_it_goes() {
    let directory = tempfile::tempdir().unwrap();
    let path = made(directory.path(), "cut.flv", "");
    let whole = MediaFile::open(&path).unwrap().frame_count(Track::Video);
    let bytes = std::fs::read(&path).unwrap();
    std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
    let half = MediaFile::open(&path).unwrap().frame_count(Track::Video);
    assert!((whole / 4..whole * 3 / 4).contains(&half), "{half} of {whole}");
}

#[test]
fn damage_is_an_error_or_another_film_but_never_a_panic() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["damaged.mp4", "damaged.flv", "damaged.mkv", "damaged.ivf"] {
        let path = directory.path().join(name);
        if name == "damaged.ivf" {
            ffmpeg(&format!("{VIDEO} -t 0.5 -c:v libvpx -b:v 500k {}", path.display()));
        } else {
            made(directory.path(), name, "-t 0.5 -movflags +faststart");
        }
        let whole = std::fs::read(path).unwrap();
        let path = directory.path().join(name);
        // The tables of the MP4 are in its first kilobytes.
        let changes = prop::collection::vec((0..whole.len().min(4000), any::<u8>()), 1..4);
        proptest!(ProptestConfig::with_cases(300), |(changes in changes)| {
            let mut bytes = whole.clone();
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            std::fs::write(&path, &bytes).unwrap();
            if let Ok(file) = MediaFile::open_of(&path, &PictureCodec::ALL) {
                let count = file.frame_count(Track::Video) + file.frame_count(Track::Audio);
                let mut source = LoopedFile::new(Arc::new(file));
                let mut frame = Frame::empty();
                let mut before = Duration::ZERO;
                for _ in 0..(2 * count).min(1000) {
                    source.next(&mut frame).unwrap();
                    prop_assert!(frame.decode_time >= before && frame.presentation_time >= frame.decode_time);
                    before = frame.decode_time;
                }
            }
        });
    }
}
