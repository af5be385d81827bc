//! What a payload of each codec costs beside one of H.264: read as a witness does (what it is, and put together, of which the first bytes are kept)
//! and as one that is decoded does (all is kept), and cut from pictures as a publisher does.
//!
//! Pictures of 4,160 bytes in four packets, one in 60 a keyframe. Codecs take turns, so that a busy core is busy for all of them; printed are
//! the rounds' medians, in CPU time of this thread.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use weir_rtc::{Assembler, Packetiser, VideoCodec};

const FRAMES: usize = 100_000;
const ROUNDS: usize = 9;
const PICTURE: usize = 4_160;
const PAYLOAD: usize = 1_100;
/// One in so many frames is a keyframe.
const GROUP: usize = 60;
/// What a witness keeps of a picture that is not decoded.
const KEPT: usize = 528;

/// The units of a picture.
fn picture(codec: VideoCodec, is_key: bool) -> Vec<Vec<u8>> {
    let heads: &[&[u8]] = match (codec, is_key) {
        (VideoCodec::H264, true) => &[&[0x67, 66, 0, 30], &[0x68, 0xCE], &[0x65, 0x88]],
        (VideoCodec::H264, false) => &[&[0x41, 0x9A]],
        (VideoCodec::H265, true) => &[&[0x40, 1, 9], &[0x42, 1, 9], &[0x44, 1, 9], &[0x26, 1, 0xAF]],
        (VideoCodec::H265, false) => &[&[0x02, 1, 0xD0]],
        (VideoCodec::Av1, true) => &[&[0x08, 0, 0], &[0x30, 0x10]],
        (VideoCodec::Av1, false) => &[&[0x30, 0x30]],
        (VideoCodec::Vp8, true) => &[&[0x10]],
        (VideoCodec::Vp8, false) => &[&[0x11]],
        (VideoCodec::Vp9, true) => &[&[0x82]],
        (VideoCodec::Vp9, false) => &[&[0x86]],
    };
    let mut units: Vec<Vec<u8>> = heads.iter().map(|head| head.to_vec()).collect();
    if let Some(last) = units.last_mut() {
        last.resize(PICTURE, 0x5A);
    }
    units
}

/// The payloads of a group of pictures: frame, whether it is the last, bytes.
fn payloads(codec: VideoCodec) -> Vec<(usize, bool, Vec<u8>)> {
    let mut packetiser = Packetiser::new(codec, PAYLOAD, 7);
    let mut all = Vec::new();
    for frame in 0..GROUP {
        let units = picture(codec, frame == 0);
        let units = units.iter().map(Vec::as_slice);
        packetiser.packetise(units, frame == 0, |bytes, last| all.push((frame, last, bytes.to_vec())));
    }
    all
}

/// Seconds of CPU time of so many groups, and their packets.
fn read(codec: VideoCodec, payloads: &[(usize, bool, Vec<u8>)], groups: usize, kept: usize) -> f64 {
    let mut assembler = Assembler::new(codec, kept);
    let (mut number, mut whole) = (0, 0);
    let started = thread_cpu();
    for group in 0..groups {
        for (frame, last, bytes) in payloads {
            black_box(codec.hints(bytes));
            let timestamp = ((group * GROUP + frame) * 3_000) as u32;
            assembler.push(number, timestamp, *last, bytes, |unit| {
                whole += usize::from(black_box(unit).complete);
            });
            number += 1;
        }
    }
    let seconds = thread_cpu() - started;
    assert_eq!(whole, groups * GROUP, "{codec}");
    seconds
}

/// The same of pictures that are cut.
fn write(codec: VideoCodec, groups: usize) -> f64 {
    let pictures: Vec<_> = [true, false].map(|is_key| picture(codec, is_key)).into();
    let mut packetiser = Packetiser::new(codec, PAYLOAD, 7);
    let started = thread_cpu();
    for frame in 0..groups * GROUP {
        let is_key = frame % GROUP == 0;
        let units = pictures[usize::from(!is_key)].iter().map(Vec::as_slice);
        packetiser.packetise(units, is_key, |bytes, last| _ = black_box((bytes, last)));
    }
    thread_cpu() - started
}

fn main() {
    // `cargo test` runs benches as well, and wants to know only whether this one runs.
    let quick = std::env::args().all(|argument| argument != "--bench");
    let (frames, rounds) = if quick { (FRAMES / 50, 1) } else { (FRAMES, ROUNDS) };
    let groups = frames / GROUP;
    let streams = VideoCodec::ALL.map(|codec| (codec, payloads(codec)));
    let mut seconds: Vec<[Vec<f64>; 3]> = vec![Default::default(); streams.len()];
    for _ in 0..rounds {
        for ((codec, payloads), seconds) in streams.iter().zip(&mut seconds) {
            seconds[0].push(read(*codec, payloads, groups, KEPT));
            seconds[1].push(read(*codec, payloads, groups, usize::MAX));
            seconds[2].push(write(*codec, groups));
        }
    }
    println!("{:<24} {:>10} {:>10} {:>10} {:>10}", "ns/packet", "packets", "read", "kept", "written");
    for ((codec, payloads), seconds) in streams.iter().zip(seconds) {
        let packets = (payloads.len() * groups) as f64;
        let [read, kept, written] = seconds.map(|seconds| median(seconds) * 1e9 / packets);
        println!("{:<24} {:>10} {read:>10.1} {kept:>10.1} {written:>10.1}", codec.name(), payloads.len());
    }
}

fn thread_cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
