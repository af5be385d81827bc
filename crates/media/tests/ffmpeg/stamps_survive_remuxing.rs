//! A stream with a stamp on every frame goes FLV → MP4 → transport stream and back through ffmpeg; every
//! stamp is found again, whatever ffmpeg puts around it.

use std::path::Path;
use std::sync::Arc;

use weir_media::{
    Clip, ClipSettings, ClockReading, Frame, Framing, LoopedFile, MediaFile, Source, Stamp, Synthetic, Track,
    UnitType, VideoSettings, units,
};
use weir_metrics::BitRate;
use weir_rtmp::flv;
use weir_rtmp::message::MediaKind;

use crate::judge::{decode, ffmpeg, ffprobe};

const FRAMES: u32 = 60;

fn stamp(sequence_number: u32) -> Stamp {
    let boot_id = *b"\0\0\0\x01\0\0\x03\xff\xfe\x80boots\0";
    let nanos = u64::from(sequence_number) * 33_333_333;
    let captured = ClockReading { boot_id, monotonic_nanos: nanos << 20, wall_nanos: u64::MAX - nanos };
    Stamp { captured, sequence_number }
}

fn settings(stamped: bool) -> ClipSettings {
    let video = VideoSettings {
        width: 320,
        height: 180,
        gop_frames: 20,
        bit_rate: BitRate::from_kbps(300),
        stamped,
        ..VideoSettings::default()
    };
    ClipSettings { video, ..ClipSettings::default() }
}

/// Writes stamped frames as FLV.
fn write_flv(path: &Path, stamped: bool) {
    let mut source = Synthetic::new(Arc::new(Clip::prepare(&settings(stamped)).unwrap()));
    let mut file = Vec::new();
    flv::write_header(true, true, &mut file);
    let mut body = Vec::new();
    flv::avc_sequence_header(&source.video_config().unwrap().decoder_configuration, &mut body);
    flv::write_tag(MediaKind::Video, 0, &body, &mut file);
    body.clear();
    flv::aac_sequence_header(&source.audio_config().unwrap().specific_config, &mut body);
    flv::write_tag(MediaKind::Audio, 0, &body, &mut file);
    let mut frame = Frame::empty();
    let mut pictures = 0;
    while pictures < FRAMES {
        source.next(&mut frame).unwrap();
        body.clear();
        let kind = match frame.track {
            Track::Video => {
                stamp(pictures).put(&mut frame.payload);
                pictures += 1;
                flv::avc_frame(frame.keyframe, 0, &frame.payload, &mut body);
                MediaKind::Video
            }
            Track::Audio => {
                flv::aac_frame(&frame.payload, &mut body);
                MediaKind::Audio
            }
        };
        flv::write_tag(kind, frame.decode_time.as_millis() as u32, &body, &mut file);
    }
    std::fs::write(path, file).unwrap();
}

/// The stamps in a file, as this crate reads it.
fn stamps_in(path: &Path) -> Vec<Option<Stamp>> {
    let file = Arc::new(MediaFile::open(path).unwrap());
    let mut source = LoopedFile::new(file.clone());
    let mut frame = Frame::empty();
    let mut stamps = Vec::new();
    while stamps.len() < file.frame_count(Track::Video) {
        source.next(&mut frame).unwrap();
        if frame.track == Track::Video {
            stamps.push(Stamp::find(&frame.payload, Framing::LengthPrefixed));
        }
    }
    stamps
}

/// The stamps in a stream of Annex B whose access units start with delimiters, as in a transport stream.
fn stamps_in_annex_b(stream: &[u8]) -> Vec<Option<Stamp>> {
    let mut starts: Vec<usize> = stream
        .windows(5)
        .enumerate()
        .filter(|(_, bytes)| {
            bytes[..4] == [0, 0, 0, 1] && UnitType::of(&bytes[4..]) == Some(UnitType::AccessUnitDelimiter)
        })
        .map(|(at, _)| at)
        .collect();
    starts.push(stream.len());
    starts.windows(2).map(|pair| Stamp::find(&stream[pair[0]..pair[1]], Framing::AnnexB)).collect()
}

#[test]
fn through_flv_mp4_and_transport_stream() {
    for stamped in [true, false] {
        let expected: Vec<_> = (0..FRAMES).map(|number| Some(stamp(number))).collect();
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let copy = |from: &str, to: &str| {
            ffmpeg(&format!("-i {} -c copy {}", path(from).display(), path(to).display()));
        };
        write_flv(&path("a.flv"), stamped);
        decode(&path("a.flv"));
        assert_eq!(stamps_in(&path("a.flv")), expected);

        copy("a.flv", "b.mp4");
        ffmpeg(&format!("-i {} -f null -", path("b.mp4").display()));
        assert_eq!(stamps_in(&path("b.mp4")), expected);

        copy("b.mp4", "c.ts");
        decode(&path("c.ts"));
        ffmpeg(&format!("-i {} -c copy -f h264 {}", path("c.ts").display(), path("c.h264").display()));
        assert_eq!(stamps_in_annex_b(&std::fs::read(path("c.h264")).unwrap()), expected);

        copy("c.ts", "d.flv");
        assert_eq!(stamps_in(&path("d.flv")), expected);
        let pictures =
            ffprobe(&path("d.flv"), "-count_frames -select_streams v -show_entries stream=nb_read_frames");
        assert_eq!(pictures, [FRAMES.to_string()]);
    }
}

#[test]
fn in_one_unit_with_the_messages_of_others() {
    let mut merged = vec![6, 5, 17];
    merged.extend_from_slice(b"\0\0\x03\0\0\x03\0\0\x03\0\0\x03another\xff\xff\xff\xff\xff\xff");
    let others = merged.len();
    merged.extend_from_slice(&stamp(3).to_nal()[1..]);
    assert_eq!(Stamp::from_nal(&merged), None, "the other message is shorter than it says");
    merged[2] = (others - 3 - 4) as u8; // four emulation prevention bytes
    assert_eq!(Stamp::from_nal(&merged), Some(stamp(3)));
}

#[test]
fn a_stamped_clip_weighs_what_an_unstamped_one_does() {
    let bytes = |stamped| {
        let clip = Clip::prepare(&settings(stamped)).unwrap();
        (0..20).map(|index| clip.picture(index).len()).sum::<usize>()
    };
    assert!(bytes(true).abs_diff(bytes(false)) < 100);
    let clip = Clip::prepare(&settings(true)).unwrap();
    for index in 0..20 {
        let first = units(clip.picture(index), Framing::LengthPrefixed).next().unwrap();
        assert_eq!(Stamp::from_nal(first), Some(Stamp { captured: ClockReading::ZERO, sequence_number: 0 }));
    }
}
