//! A transport stream is the same in one piece and in two, every byte of it is accounted for, and memory is bounded.

#![no_main]

mod halves;

use halves::halves;
use libfuzzer_sys::fuzz_target;
use weir_ts::remux::Loop;
use weir_ts::{Analyser, Options, PacketSize, Report, crc};

fn read(pieces: [&[u8]; 2], packet_size: Option<PacketSize>) -> Report {
    let mut analyser = Analyser::new(Options { packet_size, ..Options::default() });
    for piece in pieces {
        analyser.feed(piece);
    }
    analyser.finish();
    assert!(analyser.memory() < 8 << 20);
    analyser.report()
}

/// Packets out of what the fuzzer made: chunks of 24 bytes become a packet each, with a sync byte, a PID of a few,
/// and, where the first byte says so, a section with a checksum that is right.
fn packets(data: &[u8]) -> Vec<u8> {
    let mut stream = Vec::new();
    for chunk in data.chunks_exact(24) {
        let mut packet = [0xFF; 188];
        packet[4..28].copy_from_slice(chunk);
        packet[..4].copy_from_slice(&[0x47, chunk[0] & 0xC1, chunk[1] & 0x13, chunk[2]]);
        if chunk[3] & 1 != 0 {
            // A pointer of zero, and a section over the rest of the chunk.
            packet[1] |= 0x40;
            packet[3] = 0x10 | chunk[2] & 15;
            packet[4..8].copy_from_slice(&[0, chunk[3] >> 1 & 3, 0xB0, 20 + 4 - 3]);
            let sum = crc(&packet[5..25]).to_be_bytes();
            packet[25..29].copy_from_slice(&sum);
        }
        stream.extend(packet);
    }
    stream
}

fuzz_target!(|data: &[u8]| {
    let Some((whole, [first, _])) = halves(data) else { return };
    let made = packets(whole);
    for stream in [whole, &made] {
        let cut = stream.split_at(first.len().min(stream.len()));
        for packet_size in [None, Some(PacketSize::Plain)] {
            let report = read([stream, &[]], packet_size);
            assert_eq!(read([cut.0, cut.1], packet_size), report);
            let counts = report.counts;
            if report.packet_size == Some(PacketSize::Plain) && packet_size.is_some() {
                assert_eq!(counts.bytes, counts.packets * 188 + counts.skipped_bytes + counts.trailing_bytes);
            }
        }
        if let Ok(looped) = Loop::new(stream, None) {
            let mut out = Vec::new();
            looped.extend(7, 0..looped.packets(), &mut out);
            assert_eq!(out.len(), looped.packets() * 188);
        }
    }
});
