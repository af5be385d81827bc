//! ffmpeg decodes made material without a warning, and finds in it what was asked for.

use std::sync::Arc;
use std::time::Duration;

use crate::judge::{WrittenFile, decode, ffmpeg, ffprobe, write};
use weir_media::{AudioSettings, Clip, ClipSettings, FrameRate, Synthetic, Track, VideoSettings};
use weir_metrics::BitRate;

/// Three whole GOPs of a clip, decoded without a warning.
fn made(settings: &ClipSettings, directory: &std::path::Path) -> (WrittenFile, u64) {
    let clip = Arc::new(Clip::prepare(settings).unwrap());
    let frames = 3 * u64::from(settings.video.gop_frames);
    let written = write(&mut Synthetic::new(clip.clone()), clip.time_of(frames), directory, |_| {});
    decode(&written.video);
    if settings.audio.is_some() {
        decode(&written.audio);
    }
    (written, frames)
}

fn check(settings: &ClipSettings) {
    let directory = tempfile::tempdir().unwrap();
    let (written, frames) = made(settings, directory.path());
    let video = &settings.video;
    let rate = video.frame_rate;

    let stream = ffprobe(
        &written.video,
        "-count_frames -show_entries stream=profile,width,height,has_b_frames,r_frame_rate,nb_read_frames",
    );
    let expected = format!(
        "Constrained Baseline,{},{},0,{}/{},{frames}",
        video.width,
        video.height,
        rate.numerator(),
        rate.denominator()
    );
    assert_eq!(stream, [expected]);

    let pictures = ffprobe(&written.video, "-show_entries frame=key_frame,pict_type");
    for (index, picture) in pictures.iter().enumerate() {
        let key = (index as u32).is_multiple_of(video.gop_frames);
        assert_eq!(picture, if key { "1,I" } else { "0,P" }, "picture {index}");
    }

    let seconds = frames as f64 / rate.as_f64();
    let actual = written.video_bytes as f64 * 8.0 / seconds / video.bit_rate.bps();
    assert!((0.99..=1.0).contains(&actual), "{actual} of the video bit rate");
    if let Some(audio) = &settings.audio {
        let units = written.frames.iter().filter(|frame| frame.track == Track::Audio).count();
        let decoded = ffprobe(&written.audio, "-count_frames -show_entries stream=nb_read_frames");
        assert_eq!(decoded, [units.to_string()]);
        let seconds = units as f64 * 1024.0 / f64::from(audio.sample_rate);
        let actual = written.audio_bytes as f64 * 8.0 / seconds / audio.bit_rate.bps();
        assert!((0.99..=1.0).contains(&actual), "{actual} of the audio bit rate");
    }
}

fn video(width: u16, height: u16, rate: &str, gop_frames: u32, kbps: u64) -> ClipSettings {
    ClipSettings {
        video: VideoSettings {
            width,
            height,
            frame_rate: rate.parse().unwrap(),
            gop_frames,
            bit_rate: BitRate::from_kbps(kbps),
            ..VideoSettings::default()
        },
        audio: None,
        seed: 7,
    }
}

#[test]
fn the_default_settings() {
    check(&ClipSettings::default());
}

#[test]
fn a_very_low_bit_rate() {
    check(&video(320, 180, "25", 50, 50));
}

#[test]
fn a_very_high_bit_rate() {
    check(&video(1920, 1080, "30", 60, 20_000));
}

#[test]
fn a_picture_of_noise_all_over() {
    check(&video(320, 240, "30", 10, 20_000));
}

#[test]
fn the_smallest_picture() {
    check(&video(128, 96, "15", 15, 60));
}

#[test]
fn a_picture_off_the_macroblock_grid() {
    check(&video(854, 480, "25", 25, 800));
    check(&video(426, 242, "25", 25, 300));
}

#[test]
fn a_picture_higher_than_wide() {
    check(&video(720, 1280, "30", 30, 1500));
}

#[test]
fn the_rates_of_ntsc() {
    check(&video(640, 360, "23.976", 48, 700));
    check(&video(640, 360, "29.97", 59, 700));
    check(&video(640, 360, "59.94", 120, 1500));
}

#[test]
fn nothing_but_keyframes() {
    check(&video(640, 360, "25", 1, 2000));
}

#[test]
fn a_gop_of_two() {
    check(&video(3840, 2160, "30", 2, 12_000));
}

#[test]
fn a_gop_beyond_the_range_of_frame_num() {
    check(&video(320, 180, "50", 600, 400));
}

#[test]
fn keyframes_no_larger_than_others() {
    let mut settings = video(640, 360, "25", 25, 3000);
    settings.video.keyframe_ratio = 1.0;
    check(&settings);
}

#[test]
fn every_kind_of_sound() {
    for (sample_rate, channels, kbps) in
        [(48_000, 1, 24), (44_100, 2, 96), (48_000, 2, 320), (8_000, 1, 8), (96_000, 2, 128)]
    {
        let mut settings = video(128, 96, "25", 25, 100);
        settings.audio = Some(AudioSettings {
            sample_rate,
            channels,
            bit_rate: BitRate::from_kbps(kbps),
            ..AudioSettings::default()
        });
        check(&settings);
    }
}

#[test]
fn a_keyframe_is_as_many_times_larger_as_asked() {
    for ratio in [1.0, 6.0, 15.0] {
        let mut settings = video(1280, 720, "30", 60, 2000);
        settings.video.keyframe_ratio = ratio;
        let clip = Clip::prepare(&settings).unwrap();
        let actual = clip.picture(0).len() as f64 / clip.picture(30).len() as f64;
        assert!((actual / ratio - 1.0).abs() < 0.02, "{actual} instead of {ratio}");
    }
}

#[test]
fn the_block_crosses_the_lane_on_colour_bars() {
    for (width, height, lane) in [(320, 180, 16), (640, 480, 32), (1280, 720, 48)] {
        let directory = tempfile::tempdir().unwrap();
        let settings = video(width, height, "25", 25, 400);
        let (written, _) = made(&settings, directory.path());
        let raw = directory.path().join("raw.yuv");
        ffmpeg(&format!("-i {} -f rawvideo -pix_fmt yuv420p {}", written.video.display(), raw.display()));
        let raw = std::fs::read(raw).unwrap();
        let (width, height) = (usize::from(width), usize::from(height));
        let pixels = width * height;
        for index in 0..25 {
            let picture = &raw[index * pixels * 3 / 2..][..pixels * 3 / 2];
            let block = 16 + (width - 16 - 2 * lane) * index / 25;
            for row in [0, 15, lane / 2, lane - 1] {
                let expected: Vec<u8> = (0..width)
                    .map(|column| if (block..block + 2 * lane).contains(&column) { 235 } else { 40 })
                    .collect();
                assert_eq!(&picture[row * width..][..width], expected, "picture {index}, row {row}");
            }
            let bars = [180, 168, 146, 134, 63, 51, 28, 16];
            let blues = [128, 44, 148, 64, 192, 108, 212, 128];
            let reds = [128, 136, 44, 52, 204, 212, 120, 128];
            let row = lane + 6;
            for macroblock in 0..width / 16 {
                let bar = macroblock * 8 * 16 / width;
                let column = macroblock * 16 + 5;
                assert_eq!(picture[row * width + column], bars[bar], "picture {index}, bar {bar}");
                let chroma = pixels + row / 2 * (width / 2) + column / 2;
                assert_eq!((picture[chroma], picture[chroma + pixels / 4]), (blues[bar], reds[bar]));
            }
        }
    }
}

#[test]
fn the_timeline_rises_through_the_loops() {
    let directory = tempfile::tempdir().unwrap();
    let mut settings = video(128, 96, "29.97", 7, 100);
    settings.audio = Some(AudioSettings::default());
    let mut source = Synthetic::new(Arc::new(Clip::prepare(&settings).unwrap()));
    let written = write(&mut source, Duration::from_secs(20), directory.path(), |_| {});
    assert!(written.frames.windows(2).all(|pair| pair[0].decode_time <= pair[1].decode_time));
    let times = |track| {
        written.frames.iter().filter(move |frame| frame.track == track).map(|frame| frame.decode_time)
    };
    let rate = FrameRate::new(30000, 1001).unwrap();
    assert!(times(Track::Video).eq((0..600).map(|index| rate.time_of(index))));
    assert!(times(Track::Audio).eq((0..938).map(|index| Duration::from_nanos(index * 64_000_000 / 3))));
}

#[test]
fn equal_seeds_give_equal_bytes() {
    let bytes = |seed| {
        let clip = Clip::prepare(&ClipSettings { seed, ..video(640, 360, "25", 5, 2000) }).unwrap();
        (0..5).map(|index| clip.picture(index).to_vec()).collect::<Vec<_>>()
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}

#[test]
fn what_cannot_be_made_says_what_can() {
    let error = |settings: &ClipSettings| Clip::prepare(settings).unwrap_err().to_string();
    starts(&error(&video(1920, 1080, "30", 30, 50)), "50 kbit/s is too little for these pictures; ask for ");
    starts(&error(&video(128, 96, "30", 30, 50_000)), "50 Mbit/s is too much for these pictures; ask for ");
    starts(&error(&video(64, 64, "30", 30, 500)), "a picture of 64x64 cannot be made");
    starts(&error(&video(321, 240, "30", 30, 500)), "a picture of 321x240 cannot be made");
    starts(&error(&video(640, 360, "30", 0, 500)), "a GOP of 0 frames has no keyframe");
    starts(&error(&video(640, 360, "0.001", 60, 500)), "a GOP of ");
}

fn starts(text: &str, start: &str) {
    assert!(text.starts_with(start), "{text}");
}
