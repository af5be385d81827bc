//! What a packet costs a receiver that reads headers only: told apart, parsed, its frame marking looked up, counted.
//!
//! A stream of 1 Mbit/s with 30 frames a second goes to one account, which stays in the cache, and to 2,000 in turn,
//! which do not. Printed are the rounds' medians, in CPU time of this thread.

use std::hint::black_box;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use weir_metrics::Moment;
use weir_rtc::account::{Hints, Kind, Track, TrackSettings};
use weir_rtc::rtp::{FrameMarking, Header, Packet};
use weir_rtc::{Datagram, h264, nack};

const PACKETS: usize = 2_000_000;
const ROUNDS: usize = 7;
const PER_FRAME: usize = 4;
const PAYLOAD: usize = 1040;
const FRAME_MARKING: u8 = 1;

fn main() {
    // `cargo test` runs benches as well, and wants to know only whether this one runs.
    let quick = std::env::args().all(|argument| argument != "--bench");
    let (packets, rounds) = if quick { (PACKETS / 50, 1) } else { (PACKETS, ROUNDS) };
    let stream = stream();
    println!("{:<36} {:>10}", "", "ns/packet");
    for (name, tracks, losing) in [
        ("one track", 1, false),
        ("one track, 1 in 100 late", 1, true),
        ("2,000 tracks in turn", 2000, false),
    ] {
        let seconds = (0..rounds).map(|_| receive(&stream, packets, tracks, losing));
        println!("{name:<36} {:>10.1}", median(seconds.collect()) * 1e9 / packets as f64);
    }
}

/// One packet of each place in a frame; number and time stamp are written over.
fn stream() -> Vec<Vec<u8>> {
    (0..PER_FRAME)
        .map(|at| {
            let (start, end) = (at == 0, at + 1 == PER_FRAME);
            let marking = FrameMarking { start, end, independent: false, discardable: false };
            let header = Header { marker: end, payload_type: 98, sequence_number: 0, timestamp: 0, ssrc: 7 };
            let mut bytes = Vec::new();
            let elements = [(FRAME_MARKING, &marking.write()[..]), (4, &[0; 3])];
            header.append(&elements, &mut bytes).expect("elements that fit");
            bytes.resize(bytes.len() + PAYLOAD, 0x5A);
            bytes
        })
        .collect()
}

/// Seconds of CPU time.
fn receive(stream: &[Vec<u8>], packets: usize, tracks: usize, losing: bool) -> f64 {
    let settings = TrackSettings {
        kind: Kind::Video,
        clock_rate: h264::CLOCK_RATE,
        nack: nack::NackSettings::default(),
    };
    let mut accounts = vec![Track::new(settings); tracks];
    let mut datagrams = stream.to_vec();
    let started = thread_cpu();
    for at in 0..packets {
        let nth = at / tracks;
        let frame = nth / PER_FRAME;
        // One in a hundred changes places with the one behind it.
        let number = match nth % 100 {
            50 if losing => nth + 1,
            51 if losing => nth - 1,
            _ => nth,
        };
        let datagram = &mut datagrams[number % PER_FRAME];
        datagram[2..4].copy_from_slice(&(number as u16).to_be_bytes());
        datagram[4..8].copy_from_slice(&((number / PER_FRAME) as u32 * 3000).to_be_bytes());
        let now = Moment::from_nanos(1 << 30) + Duration::from_millis(33 * frame as u64);
        if Datagram::of(datagram) != Datagram::Rtp {
            continue;
        }
        let Ok(packet) = Packet::parse(datagram) else { continue };
        let marking = packet.extension(FRAME_MARKING).and_then(FrameMarking::parse);
        let hints = Hints {
            start: marking.map(|marking| marking.start),
            keyframe: marking.map(|marking| marking.independent),
            padding: false,
        };
        black_box(accounts[at % tracks].receive(now, &packet, hints));
    }
    let seconds = thread_cpu() - started;
    assert_eq!(accounts[0].loss().lost(), 0);
    seconds
}

fn thread_cpu() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
