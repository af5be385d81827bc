//! What SRTP costs a packet of 1,040 bytes of payload, each way, and a receiver report, in CPU time of this thread.
//!
//! One transport stays in the cache; 300 in turn are the sessions of an origin.

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};
use weir_rtc::rtcp::append_receiver_report;
use weir_rtc::rtp::Header;
use weir_rtc::srtp::{Inbound, KeyingMaterial, Outbound, Profile};

const PACKETS: usize = 300_000;
const ROUNDS: usize = 7;
const PAYLOAD: usize = 1040;
const TRANSPORTS: usize = 300;

fn main() {
    // `cargo test` runs benches as well, and wants to know only whether this one runs.
    let quick = std::env::args().all(|argument| argument != "--bench");
    let (packets, rounds) = if quick { (PACKETS / 100, 1) } else { (PACKETS, ROUNDS) };
    println!("{:<22} {:>10} {:>10} {:>14} {:>10}", "ns/packet", "protect", "open", "protect, 300", "report");
    for profile in Profile::ALL {
        let mut columns = [const { Vec::new() }; 4];
        for _ in 0..rounds {
            let (protect, protected) = protect(profile, packets, 1);
            columns[0].push(protect);
            columns[1].push(open(profile, protected));
            columns[2].push(self::protect(profile, packets, TRANSPORTS).0);
            columns[3].push(report(profile, packets));
        }
        let [protect, open, many, report] = columns.map(|seconds| median(seconds) * 1e9 / packets as f64);
        let name = format!("{profile:?}");
        println!("{name:<22} {protect:>10.0} {open:>10.0} {many:>14.0} {report:>10.0}");
    }
}

fn keys(profile: Profile) -> KeyingMaterial {
    let material: Vec<u8> = (0..KeyingMaterial::length(profile) as u8).collect();
    KeyingMaterial::split(profile, &material).expect("material of the right length")
}

/// Copies each packet into the send buffer, as a server of many sessions does, and protects it there.
fn protect(profile: Profile, packets: usize, transports: usize) -> (f64, Vec<Vec<u8>>) {
    let key = keys(profile).server;
    let mut outbound: Vec<_> = (0..transports).map(|_| Outbound::new(&key).expect("a key")).collect();
    let header = Header { marker: false, payload_type: 98, sequence_number: 0, timestamp: 0, ssrc: 7 };
    let mut plain = Vec::new();
    header.append(&[], &mut plain).expect("no elements");
    plain.resize(plain.len() + PAYLOAD, 0x5A);
    let mut buffer = Vec::with_capacity(64 << 10);
    let started = thread_cpu();
    for at in 0..packets {
        plain[2..4].copy_from_slice(&((at / transports) as u16).to_be_bytes());
        buffer.clear();
        buffer.extend_from_slice(&plain);
        outbound[at % transports].protect_rtp(&mut buffer, 0).expect("a packet");
        black_box(&buffer);
    }
    let seconds = thread_cpu() - started;
    if transports > 1 {
        return (seconds, Vec::new());
    }
    let mut outbound = Outbound::new(&key).expect("a key");
    let protected = (0..packets).map(|at| {
        plain[2..4].copy_from_slice(&(at as u16).to_be_bytes());
        let mut packet = plain.clone();
        outbound.protect_rtp(&mut packet, 0).expect("a packet");
        packet
    });
    (seconds, protected.collect())
}

fn open(profile: Profile, mut packets: Vec<Vec<u8>>) -> f64 {
    let mut inbound = Inbound::new(&keys(profile).server).expect("a key");
    let started = thread_cpu();
    for packet in &mut packets {
        black_box(inbound.open_rtp(packet).expect("an authentic packet"));
    }
    thread_cpu() - started
}

fn report(profile: Profile, packets: usize) -> f64 {
    let mut outbound = Outbound::new(&keys(profile).client).expect("a key");
    let mut buffer = Vec::with_capacity(1500);
    let started = thread_cpu();
    for _ in 0..packets {
        buffer.clear();
        append_receiver_report(1, &[Default::default(); 2], &mut buffer);
        outbound.protect_rtcp(&mut buffer, 0).expect("a report");
        black_box(&buffer);
    }
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
