//! Streams that mean harm: memory stays bounded, nothing panics, and what is right in them still counts.

use weir_ts::mux::{NULL_PACKET, Packetiser};
use weir_ts::{Analyser, Options, crc};

const LIMIT: usize = 8 << 20;

fn noise(seed: u64) -> impl FnMut() -> u8 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    }
}

fn long_section(table_id: u8, extension: u16, version: u8, number: u8, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() + 9) as u16;
    let mut section = vec![table_id, 0xB0 | (length >> 8) as u8, length as u8];
    section.extend(extension.to_be_bytes());
    section.extend([0xC1 | version << 1, number, 0xFF]);
    section.extend(payload);
    section.extend(crc(&section).to_be_bytes());
    section
}

/// A PAT of many sections that names `programs` programs, the map of each on a PID of its own.
fn pat(programs: u16) -> Vec<u8> {
    let mut packetiser = Packetiser::new(0);
    let mut out = Vec::new();
    let numbers: Vec<u16> = (1..=programs).collect();
    for (section, numbers) in numbers.chunks(250).enumerate() {
        let entries = numbers.iter().flat_map(|&number| {
            let [a, b] = number.to_be_bytes();
            let [c, d] = (0xE000 | (0x20 + number % 0x1F00)).to_be_bytes();
            [a, b, c, d]
        });
        let entries: Vec<u8> = entries.collect();
        packetiser.section(&long_section(0, 1, 0, section as u8, &entries), &mut out);
    }
    out
}

#[test]
fn random_bytes_stay_bounded() {
    let mut next = noise(1);
    let bytes: Vec<u8> = (0..4 << 20).map(|_| next()).collect();
    let mut analyser = Analyser::new(Options::default());
    for piece in bytes.chunks(1500) {
        analyser.feed(piece);
        assert!(analyser.memory() < LIMIT);
    }
    analyser.finish();
    let counts = analyser.counts();
    assert_eq!(counts.bytes, counts.packets * 188 + counts.skipped_bytes + counts.trailing_bytes);
}

#[test]
fn random_packets_on_every_pid_stay_bounded() {
    let mut next = noise(2);
    let mut analyser = Analyser::new(Options::default());
    for _ in 0..200_000 {
        let mut packet = [0u8; 188];
        packet.fill_with(&mut next);
        packet[0] = 0x47;
        analyser.feed(&packet);
    }
    analyser.finish();
    assert!(analyser.memory() < LIMIT, "{}", analyser.memory());
    assert_eq!(analyser.counts().packets + analyser.counts().skipped_bytes / 188, 200_000);
    let per_kind = Options::default().findings_per_kind as usize;
    assert!(analyser.findings().len() <= 25 * per_kind);
}

#[test]
fn a_map_of_8000_pids_stays_bounded() {
    let mut stream = pat(8000);
    // Each map names 816 components, as many as its 12 bits of length hold, on PIDs of all kinds.
    for number in 1..=600u16 {
        let mut payload = vec![0xE1, 0x00, 0xF0, 0x00];
        for component in 0..816u16 {
            payload.push(0x1B);
            payload.extend((0xE000 | (number * 13 + component) & 0x1FFF).to_be_bytes());
            payload.extend([0xF0, 0]);
        }
        Packetiser::new(0x20 + number % 0x1F00)
            .section(&long_section(2, number, 0, 0, &payload), &mut stream);
    }
    let mut analyser = Analyser::new(Options::default());
    analyser.feed(&stream);
    analyser.finish();
    let report = analyser.report();
    assert!(analyser.memory() < LIMIT, "{}", analyser.memory());
    assert!(report.programs.len() <= 512);
    assert!(report.programs.iter().map(|program| program.components.len()).sum::<usize>() <= 8192);
}

#[test]
fn sections_that_never_end_stay_bounded() {
    let mut analyser = Analyser::new(Options::default());
    analyser.feed(&pat(8000));
    for counter in 0..100u8 {
        for pid in 0..0x1FFFu16 {
            let [high, low] = pid.to_be_bytes();
            let mut packet = [0u8; 188];
            let start = if counter == 0 { 0x40 } else { 0 };
            packet[..8].copy_from_slice(&[0x47, high | start, low, 0x10 | counter & 15, 0, 2, 0xBF, 0xFF]);
            analyser.feed(&packet);
        }
        assert!(analyser.memory() < LIMIT, "{}", analyser.memory());
    }
}

#[test]
fn the_packets_after_a_megabyte_of_noise_count() {
    let mut next = noise(3);
    let mut bytes: Vec<u8> = (0..1 << 20).map(|_| next()).collect();
    bytes.extend([NULL_PACKET; 50].concat());
    let mut analyser = Analyser::new(Options::default());
    bytes.chunks(777).for_each(|piece| analyser.feed(piece));
    analyser.finish();
    assert!(analyser.counts().null_packets >= 50);
}
