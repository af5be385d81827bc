//! Other programs that count, where they are right; and where they are not, in what.
//!
//! `ffmpeg` tells "Continuity check failed" for each packet whose counter is not the next one. It is right for gaps.
//! It is wrong for legal duplicates, which it tells as well, for junk that begins with 0x47, which it takes for a
//! packet, and it counts a packet that is marked as damaged as any other.
//!
//! `aribts` is what weir's `aribts_drops` has to agree with, right or not, but for those that `aribts_missed` names: 15
//! lost packets, which it takes for a repetition. What the package itself counts in each stream
//! stands in [`SAID_BY_ARIBTS`]; its rule is written down here a second time, held to the same numbers, for streams
//! of any kind. Only its rule is right to compare: where alignment breaks, its reader drops up to a whole piece of
//! its input (of 26,525 packets around ten pieces of junk it sees 24,810, and 34 "drops"), and packets without a sync
//! byte are whole ones to it. The numbers are asked for again by hand, with node and the package, 1.3.5 or 2.1.12:
//!
//! ```sh
//! npm install --prefix /tmp/aribts aribts@1.3.5
//! ARIBTS=/tmp/aribts/node_modules/aribts cargo test -p weir-ts --test corpus -- --ignored --nocapture
//! ```

use std::collections::HashMap;
use std::process::Command;

use proptest::prelude::*;
use weir_ts::mux::NULL_PACKET;
use weir_ts::packet::Packet;
use weir_ts::{Analyser, Counts, Options};

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

/// What aribts itself tells.
fn own(counts: &Counts) -> u64 {
    counts.aribts_drops - counts.aribts_missed
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

/// Packets of four PIDs, one of them of null packets, out of what is drawn for each.
#[derive(Default)]
struct Mixture {
    counters: [u8; 4],
}

impl Mixture {
    fn packet(&mut self, (pid, kind, flags, counter): (u8, u8, u8, u8)) -> Bytes188 {
        let next = &mut self.counters[usize::from(pid)];
        // Mostly the next counter, sometimes the same, sometimes another.
        *next = match counter {
            0 => *next,
            1 => *next + flags,
            _ => *next + 1,
        } & 15;
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
        packet
    }

    /// The same 20,000 packets each time, behind null packets, so that there is alignment, which a reserved
    /// adaptation_field_control is no part of.
    fn drawn() -> Vec<Bytes188> {
        let mut state = 1u64;
        // Knuth's MMIX generator.
        let mut below = |limit: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % limit) as u8
        };
        let mut mixture = Self::default();
        let mut packets = vec![NULL_PACKET; 5];
        packets.extend((0..20_000).map(|_| mixture.packet((below(4), below(40), below(16), below(6)))));
        packets
    }
}

proptest! {
    #[test]
    fn any_sequence_of_packets_drops_as_many_as_aribts_says(
        headers in prop::collection::vec((0..4u8, 0..40u8, 0..16u8, 0..6u8), 1..400),
    ) {
        let mut model = Aribts::default();
        let mut mixture = Mixture::default();
        let mut analyser = Analyser::new(Options::default());
        // So that there is alignment, which a reserved adaptation_field_control is no part of.
        analyser.feed(&[NULL_PACKET; 5].concat());
        for header in headers {
            let packet = mixture.packet(header);
            model.packet(&packet);
            analyser.feed(&packet);
        }
        analyser.finish();
        prop_assert_eq!(own(&analyser.counts()), model.drops);
    }
}

/// What the npm package aribts itself counted, 1.3.5 and 2.1.12 alike, and Mirakurun's @chinachu/aribts
/// 1.3.5-mirakurun.18, under node 20.20.2.
const SAID_BY_ARIBTS: [(&str, u64); 13] = [
    ("clean", 0),
    ("1 lost", 10),
    ("5 lost", 10),
    ("15 lost", 0),
    ("16 lost", 0),
    ("17 lost", 10),
    ("flipped", 20),
    ("damaged", 10),
    ("scrambled", 0),
    ("legal duplicates", 0),
    ("illegal duplicates", 0),
    ("announced", 10),
    ("drawn", 2945),
];

/// What aribts is asked about.
fn asked() -> Vec<(&'static str, Vec<Bytes188>)> {
    let mut streams = corpus();
    streams.push(("drawn", Mixture::drawn()));
    streams
}

#[test]
fn the_corpus_drops_as_many_as_aribts_said() {
    let streams = asked();
    assert_eq!(streams.len(), SAID_BY_ARIBTS.len());
    for ((name, packets), said) in streams.into_iter().zip(SAID_BY_ARIBTS) {
        let mut model = Aribts::default();
        packets.iter().for_each(|packet| model.packet(packet));
        assert_eq!((name, own(&analyse(&joined(&packets)).counts)), said);
        assert_eq!((name, model.drops), said, "the rule as it is written down here");
    }
}

#[test]
#[ignore = "needs node, and the npm package aribts where ARIBTS says"]
fn the_package_aribts_still_says_the_same() {
    const SCRIPT: &str = "const { TsStream, TsReadableConnector, TsPacketParser, TsPacketAnalyzer } =
            require(process.env.ARIBTS);
        const file = require('fs').createReadStream(process.argv[1]);
        let drops = 0;
        if (TsStream) {
            const stream = new TsStream();
            stream.on('drop', () => drops++);
            stream.on('data', () => {});
            stream.on('end', () => console.log(drops));
            file.pipe(stream);
        } else {
            const [connector, parser, analyzer] =
                [new TsReadableConnector(), new TsPacketParser(), new TsPacketAnalyzer()];
            analyzer.on('packetDrop', () => drops++);
            analyzer.on('finish', () => console.log(drops));
            file.pipe(connector);
            connector.pipe(parser);
            parser.pipe(analyzer);
        }";
    assert!(std::env::var_os("ARIBTS").is_some(), "set ARIBTS to the directory of the package");
    let directory = tempfile::tempdir().expect("a directory");
    let said = asked().into_iter().map(|(name, packets)| {
        let file = directory.path().join("stream.ts");
        std::fs::write(&file, joined(&packets)).expect("a file");
        let output = Command::new("node").args(["-e", SCRIPT]).arg(&file).output().expect("node");
        let drops = String::from_utf8_lossy(&output.stdout).trim().parse::<u64>();
        let drops = drops.unwrap_or_else(|_| panic!("{name}: {}", String::from_utf8_lossy(&output.stderr)));
        println!("    (\"{name}\", {drops}),");
        (name, drops)
    });
    assert_eq!(said.collect::<Vec<_>>(), SAID_BY_ARIBTS);
}
