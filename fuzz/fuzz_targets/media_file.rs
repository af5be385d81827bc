//! A file of MP4, Matroska, FLV or IVF that is published in a loop: its index lies within the file, and every frame of it can be read,
//! again and again, with times that do not go back. The same bytes as parameter sets, configurations and frames of a peer's tracks say nothing
//! that is too large.

#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::OnceCell;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::Duration;
use weir_media::{
    Frame, LoopedFile, MediaFile, PictureCodec, Source, Track, aac_format, adts_format, append_obus,
};

/// Frames that are read of one file: some of its second and third pass as well, if it is short.
const FRAMES: usize = 64;

thread_local! {
    static FILE: OnceCell<File> = const { OnceCell::new() };
}

/// A file that has no name, so that it is gone whichever way the fuzzer ends.
fn unnamed() -> File {
    let path = std::env::temp_dir().join(format!("weir-fuzz-media-{}", std::process::id()));
    let mut options = File::options();
    let file = options.read(true).write(true).create_new(true).open(&path).expect("a temporary file");
    fs::remove_file(path).expect("the file that was just made");
    file
}

fuzz_target!(|data: &[u8]| FILE.with(|file| {
    for codec in PictureCodec::ALL {
        codec.units_of(data).for_each(drop);
        // Eight frames are the most of a superframe of VP9.
        assert!(codec.pictures_of(data) <= 8);
        codec.begins_with(data);
        for format in [codec.format(data), codec.format_of_record(data)].into_iter().flatten() {
            assert!(format.size.0.max(format.size.1) <= 16_888 && format.profile.len() < 80);
        }
        codec.sets_of_record(data);
        for record in [codec.record_of(codec.units_of(data)), codec.record_of(data.chunks(40))] {
            // Each of its units has a length of a few bytes in front of it.
            assert!(record.is_none_or(|record| record.len() <= 64 + 4 * data.len()));
        }
    }
    let _ = (aac_format(data), adts_format(data));
    let mut unit = Vec::new();
    append_obus(PictureCodec::Av1.units_of(data), &mut unit);
    assert!(unit.len() <= data.len() + 8, "one OBU has no size at the most: the last");
    let file = file.get_or_init(unnamed);
    file.set_len(0).expect("room");
    file.write_all_at(data, 0).expect("room");
    play(&format!("/proc/self/fd/{}", file.as_raw_fd()), data.len());
}));

fn play(path: &str, length: usize) {
    let file = match MediaFile::open_of(path, &PictureCodec::ALL) {
        Ok(file) => file,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    assert!(
        file.frame_count(Track::Video) + file.frame_count(Track::Audio) > 0
            && file.duration() > Duration::ZERO
    );
    let mut source = LoopedFile::new(Arc::new(file));
    let mut frame = Frame::default();
    let mut last = [Duration::ZERO; 2];
    for _ in 0..FRAMES {
        source.next(&mut frame).expect("a frame within the file");
        assert!(frame.payload.len() <= length);
        let last = &mut last[usize::from(frame.track == Track::Audio)];
        assert!(frame.decode_time >= *last && frame.presentation_time >= frame.decode_time);
        *last = frame.decode_time;
    }
}
