//! The analyser with all counters, against a loop that does nothing but step from sync byte to sync byte.
//!
//! One gigabyte of packets lies in memory: a constant bit rate of 15 Mbit/s with H.264, AAC, tables, clock and null
//! packets. Both take it in turns in this process, the analyser in pieces of 64 KiB, as sockets give them, and in
//! one piece. Printed are the rounds' medians, in CPU time of this thread, and the ratio.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use weir_ts::mux::{AccessUnit, MuxSettings, Muxer};
use weir_ts::{Analyser, Options};

const BYTES: usize = 1_000_000_000;
const PIECE: usize = 64 << 10;
const ROUNDS: usize = 7;

fn main() {
    // `cargo test` runs benches as well, and wants to know only whether this one runs.
    let quick = std::env::args().all(|argument| argument != "--bench");
    let (bytes, rounds) = if quick { (BYTES / 50, 1) } else { (BYTES, ROUNDS) };
    let stream = stream(bytes);
    let packets = (stream.len() / 188) as f64;
    let mut seconds = [const { Vec::new() }; 3];
    for _ in 0..rounds {
        seconds[0].push(timed(|| stride(&stream)));
        seconds[1].push(timed(|| analyse(&stream, PIECE)));
        seconds[2].push(timed(|| analyse(&stream, usize::MAX)));
    }
    println!("{:<24} {:>8} {:>12} {:>8}", "", "GB/s", "ns/packet", "ratio");
    let medians = seconds.map(median);
    for (name, median) in
        ["stride of 188 bytes", "analyser, 64 KiB", "analyser, one piece"].iter().zip(medians)
    {
        let rate = stream.len() as f64 / median / 1e9;
        println!("{name:<24} {rate:>8.2} {:>12.1} {:>8.2}", median * 1e9 / packets, medians[0] / median);
    }
}

/// Seconds of CPU time: another process on this machine costs nothing.
fn timed(work: impl FnOnce() -> u64) -> f64 {
    let started = thread_cpu();
    black_box(work());
    thread_cpu() - started
}

fn thread_cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn stride(stream: &[u8]) -> u64 {
    let mut packets = 0;
    let mut at = 0;
    while at + 188 <= stream.len() {
        packets += u64::from(stream[at] == 0x47);
        at += 188;
    }
    packets
}

fn analyse(stream: &[u8], piece: usize) -> u64 {
    let mut analyser = Analyser::new(Options::default());
    for piece in stream.chunks(piece) {
        analyser.feed(piece);
    }
    analyser.finish();
    let counts = analyser.counts();
    assert_eq!(counts.packets, stream.len() as u64 / 188);
    assert_eq!((counts.gap_events, counts.skipped_bytes), (0, 0));
    counts.packets
}

/// 15 Mbit/s, of which 13 are video.
fn stream(bytes: usize) -> Vec<u8> {
    let mut muxer = Muxer::new(MuxSettings { bit_rate: Some(15_000_000), ..MuxSettings::default() });
    let mut stream = Vec::with_capacity(bytes + (1 << 20));
    let mut noise = 1u64;
    let mut picture: Vec<u8> = vec![0, 0, 0, 1, 9, 0xF0, 0, 0, 0, 1, 0x65];
    picture.extend((0..54_000).map(|_| {
        noise = noise.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (noise >> 56) as u8 | 1
    }));
    let frame = [0x5A; 512];
    let (mut pictures, mut frames) = (0u64, 0u64);
    while stream.len() < bytes {
        let (picture_dts, frame_dts) = (pictures * 3003, frames * 1920);
        if picture_dts <= frame_dts {
            let random_access = pictures % 30 == 0;
            let unit = AccessUnit { pts: picture_dts, dts: picture_dts, random_access, bytes: &picture };
            muxer.video(&unit, &mut stream);
            pictures += 1;
        } else {
            let unit = AccessUnit { pts: frame_dts, dts: frame_dts, random_access: true, bytes: &frame };
            muxer.audio(&unit, &mut stream);
            frames += 1;
        }
    }
    stream
}
