//! Other programs that count, where they are right; and where they are not, in what.
//!
//! `ffmpeg` tells "Continuity check failed" for each packet whose counter is not the next one. It is right for gaps.
//! It is wrong for legal duplicates, which it tells as well, for junk that begins with 0x47, which it takes for a
//! packet, and it counts a packet that is marked as damaged as any other.
//!
//! `aribts` is what weir's `aribts_drops` has to agree with, right or not. Its rule was read in its 1.3.5 and
//! 2.1.12, which agree, and is written down here a second time, as plainly as can be; the test that runs the package
//! itself needs node and is run by hand. Only its rule is right to compare: where alignment breaks, its reader drops
//! up to a whole piece of its input (of 26,525 packets around ten pieces of junk it sees 24,810, and 34 "drops"), and
//! packets without a sync byte are whole ones to it.
//!
//!
//! ```sh
//! npm install --prefix /tmp/aribts aribts@1.3.5
//! ARIBTS=/tmp/aribts/node_modules/aribts cargo test -p weir-ts --test corpus -- --ignored
//! ```

use std::collections::HashMap;
use std::process::Command;

use proptest::prelude::*;
use weir_ts::mux::NULL_PACKET;
use weir_ts::packet::Packet;
use weir_ts::{Analyser, Options};

use crate::base::*;
use crate::{faults, losses};

/// The streams whose packets are all in alignment.
fn corpus() -> Vec<(&'static str, Vec<Bytes188>)> {
    vec![
        ("clean", clean().to_vec()),
        ("1 lost", losses::without(1)),
        ("5 lost", losses::without(5)),
        ("15 lost", losses::without(15)),
        ("16 lost", losses::without(16)),
        ("17 lost", losses::without(17)),
        ("flipped", faults::with_counters_flipped()),
        ("damaged", faults::with_transport_errors()),
        ("scrambled", faults::scrambled(2)),
        ("legal duplicates", faults::with_duplicates(|_| {})),
        ("illegal duplicates", faults::with_duplicates(|packet| packet[187] ^= 1)),
        ("announced", faults::with_announcing_packets()),
    ]
}

/// How often ffmpeg says that continuity fails.
fn told_by_ffmpeg(bytes: &[u8]) -> u64 {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("stream.ts");
    std::fs::write(&file, bytes).expect("a file");
    let output = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "debug", "-f", "mpegts", "-i"])
        .arg(&file)
        .args(["-map", "0", "-c", "copy", "-f", "null", "-"])
        .output()
        .expect("ffmpeg");
    let errors = String::from_utf8_lossy(&output.stderr);
    errors.lines().filter(|line| line.contains("ontinuity check failed")).count() as u64
}

#[test]
fn ffmpeg_tells_as_many_gaps_and_takes_legal_duplicates_for_errors() {
    for (name, packets) in corpus() {
        let bytes = joined(&packets);
        let counts = analyse(&bytes).counts;
        let errors = counts.gap_events + counts.illegal_duplicates;
        assert_eq!(told_by_ffmpeg(&bytes), errors + counts.legal_duplicates, "{name}");
    }
}

#[test]
fn ffmpeg_tells_as_many_gaps_where_alignment_breaks() {
    let places = || ten_places(clean(), |place| is_plain_video(&clean()[place]));
    let mut lost = joined(clean());
    let from = places()[4] * 188 + 100;
    lost.drain(from..from + 32 * 1024);
    let mut zeroed = clean().to_vec();
    places().into_iter().for_each(|place| zeroed[place][0] = 0);
    let streams = [faults::with_junk(&[0; 100]), joined(clean())[100..].to_vec(), lost, joined(&zeroed)];
    for (bytes, gaps) in streams.into_iter().zip([0, 0, 5, 10]) {
        let counts = analyse(&bytes).counts;
        assert_eq!((counts.gap_events, counts.illegal_duplicates), (gaps, 0));
        assert_eq!(told_by_ffmpeg(&bytes), gaps);
    }
    let with_sync_bytes = faults::with_junk(&[0x47; 100]);
    assert_eq!((analyse(&with_sync_bytes).counts.gap_events, told_by_ffmpeg(&with_sync_bytes)), (0, 10));
}

/// aribts' rule, a packet at a time.
#[derive(Default)]
struct Aribts {
    /// By PID: the last counter, and how often a counter has been repeated.
    pids: HashMap<u16, (Option<u8>, u32)>,
    drops: u64,
}

impl Aribts {
    fn packet(&mut self, packet: &Bytes188) {
        let header = Packet::new(packet).header();
        if header.transport_error() {
            return;
        }
        let (last, repeats) = self.pids.entry(header.pid()).or_default();
        if !header.has_payload() {
            return;
        }
        if header.has_adaptation_field() && packet[4] > 0 && packet[5] & 0x80 != 0 {
            *last = None;
        }
        let counter = header.continuity_counter();
        if let Some(last) = *last
            && header.pid() != 0x1FFF
        {
            if counter == last {
                *repeats += 1;
                self.drops += u64::from(*repeats > 1);
            } else {
                *repeats = 0;
                self.drops += u64::from(counter != (last + 1) % 16);
            }
        }
        *last = Some(counter);
    }
}

proptest! {
    #[test]
    fn any_sequence_of_packets_drops_as_many_as_aribts_says(
        headers in prop::collection::vec((0..4u8, 0..40u8, 0..16u8, 0..6u8), 1..400),
    ) {
        let mut model = Aribts::default();
        let mut analyser = Analyser::new(Options::default());
        let mut counters = [0u8; 4];
        // So that there is alignment, which a reserved adaptation_field_control is no part of.
        analyser.feed(&[NULL_PACKET; 3].concat());
        for (pid, kind, flags, counter) in headers {
            let next = &mut counters[usize::from(pid)];
            // Mostly the next counter, sometimes the same, sometimes another.
            *next = match counter { 0 => *next, 1 => *next + flags, _ => *next + 1 } & 15;
            let mut packet = [0xFFu8; 188];
            let (high, low) = if pid == 3 { (0x1F, 0xFF) } else { (1, pid) };
            packet[..6].copy_from_slice(&[0x47, high, low, 0x10 | *next, 1, 0]);
            match kind {
                0 => packet[1] |= 0x80,
                1 => packet[3] = 0x20 | *next,
                2 | 3 => (packet[3], packet[5]) = (0x30 | *next, 0x80),
                4 => (packet[3], packet[4], packet[5]) = (0x20 | *next, 183, 0x80),
                5 => packet[3] |= 0x80,
                6 => packet[3] = *next,
                _ => {}
            }
            model.packet(&packet);
            analyser.feed(&packet);
        }
        analyser.finish();
        prop_assert_eq!(analyser.counts().aribts_drops, model.drops);
    }
}

#[test]
fn the_corpus_drops_as_many_as_aribts_says() {
    for (name, packets) in corpus() {
        let mut model = Aribts::default();
        packets.iter().for_each(|packet| model.packet(packet));
        assert_eq!(analyse(&joined(&packets)).counts.aribts_drops, model.drops, "{name}");
    }
}

#[test]
#[ignore = "needs node, and the npm package aribts where ARIBTS says"]
fn the_package_aribts_counts_the_same_drops() {
    const SCRIPT: &str = "const { TsStream } = require(process.env.ARIBTS);
        const stream = new TsStream();
        let drops = 0;
        stream.on('drop', () => drops++);
        stream.on('data', () => {});
        stream.on('end', () => console.log(drops));
        require('fs').createReadStream(process.argv[1]).pipe(stream);";
    assert!(std::env::var_os("ARIBTS").is_some(), "set ARIBTS to the directory of the package");
    let directory = tempfile::tempdir().expect("a directory");
    for (name, packets) in corpus() {
        let file = directory.path().join("stream.ts");
        std::fs::write(&file, joined(&packets)).expect("a file");
        let output = Command::new("node").args(["-e", SCRIPT]).arg(&file).output().expect("node");
        let said = String::from_utf8_lossy(&output.stdout);
        let drops = analyse(&joined(&packets)).counts.aribts_drops.to_string();
        assert_eq!(said.trim(), drops, "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
