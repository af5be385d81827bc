//! How a stream is cut makes no difference.

use proptest::prelude::*;
use weir_ts::{Analyser, Options, PacketSize, Report};

use crate::base::*;
use crate::{faults, losses};

/// A second out of the middle of faulty streams, laid end to end.
fn faulty() -> Vec<u8> {
    let mut bytes = vec![0x47, 0, 1];
    for packets in [losses::without(5), faults::with_counters_flipped(), faults::with_transport_errors()] {
        bytes.extend(joined(&packets[9000..10_500]));
    }
    bytes.extend(joined(&faults::with_duplicates(|_| {})[9000..11_000]));
    bytes.extend(joined(&faults::with_duplicates(|packet| packet[187] ^= 1)[9000..11_000]));
    for junk in [&[0x47; 300][..], &[0; 700]] {
        let with_junk = faults::with_junk(junk);
        bytes.extend(&with_junk[9000 * 188 + 77..11_500 * 188]);
    }
    bytes
}

fn analyse_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Report {
    let mut analyser = Analyser::new(Options::default());
    pieces.for_each(|piece| analyser.feed(piece));
    analyser.finish();
    analyser.report()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_split_is_the_same(lengths in prop::collection::vec(prop_oneof![1..4usize, 1..500usize, 1..70_000usize], 1..80)) {
        let bytes = faulty();
        let mut rest = &bytes[..];
        let mut lengths = lengths.iter().cycle();
        let pieces = std::iter::from_fn(|| {
            let length = *lengths.next().expect("it goes on for ever");
            let (piece, after) = rest.split_at(length.min(rest.len()));
            rest = after;
            (!piece.is_empty()).then_some(piece)
        });
        prop_assert_eq!(analyse_pieces(pieces), analyse(&bytes));
    }

    #[test]
    fn any_bytes_are_the_same_in_two_pieces_and_in_many(
        bytes in prop::collection::vec(prop_oneof![3 => Just(0x47u8), 1 => any::<u8>()], 0..3000),
        cut in 0..3000usize,
    ) {
        let (first, second) = bytes.split_at(cut.min(bytes.len()));
        let whole = analyse(&bytes);
        prop_assert_eq!(&analyse_pieces([first, second].into_iter()), &whole);
        prop_assert_eq!(&analyse_pieces(bytes.chunks(1)), &whole);
    }
}

proptest! {
    #[test]
    fn no_packet_of_five_in_a_row_is_lost_to_junk(
        runs in prop::collection::vec((5..40usize, prop::collection::vec(0x48..=0xFFu8, 0..900)), 1..12),
        tail in 5..10usize,
    ) {
        let clean = clean();
        let mut bytes = Vec::new();
        let mut packets = 0;
        let mut junk = 0;
        for (run, between) in &runs {
            bytes.extend(joined(&clean[packets..packets + run]));
            bytes.extend(between);
            packets += run;
            junk += between.len() as u64;
        }
        bytes.extend(joined(&clean[packets..packets + tail]));
        let report = analyse(&bytes);
        prop_assert_eq!(report.counts.packets as usize, packets + tail);
        prop_assert_eq!(report.counts.skipped_bytes, junk);
        prop_assert_eq!((report.counts.gap_events, report.counts.trailing_bytes), (0, 0));
    }
}

proptest! {
    /// A packet that goes on with its PID is known behind junk in which no byte looks like the beginning of one.
    #[test]
    fn no_packet_is_lost_to_junk_without_a_sync_byte(
        runs in prop::collection::vec((1..6usize, prop::collection::vec(0x48..=0xFFu8, 0..900)), 1..40),
        tail in 1..10usize,
    ) {
        let clean = clean();
        // By then each PID has had a packet, but for the service description.
        let mut packets = 300;
        let mut bytes = joined(&clean[..packets]);
        let mut junk = 0;
        for (run, between) in &runs {
            bytes.extend(between);
            bytes.extend(joined(&clean[packets..packets + run]));
            packets += run;
            junk += between.len() as u64;
        }
        bytes.extend(joined(&clean[packets..packets + tail]));
        let report = analyse(&bytes);
        prop_assert_eq!(report.counts.packets as usize, packets + tail);
        prop_assert_eq!(report.counts.skipped_bytes, junk);
        prop_assert_eq!((report.counts.gap_events, report.counts.trailing_bytes), (0, 0));
        let second_half = bytes.len() / 2;
        prop_assert_eq!(analyse_pieces([&bytes[..second_half], &bytes[second_half..]].into_iter()), report);
    }
}

#[test]
fn byte_by_byte_is_the_same() {
    let bytes = faulty();
    assert_eq!(analyse_pieces(bytes.chunks(1)), analyse(&bytes));
}

#[test]
fn every_byte_is_accounted_for() {
    let counts = analyse(&faulty()).counts;
    assert_eq!(counts.bytes, counts.packets * 188 + counts.skipped_bytes + counts.trailing_bytes);
}

#[test]
fn packets_of_192_and_204_bytes_are_found_and_counted_alike() {
    let clean = &clean()[..4000];
    let timestamped: Vec<u8> =
        clean.iter().zip(0u32..).flat_map(|(packet, at)| [&at.to_be_bytes()[..], packet].concat()).collect();
    let with_parity: Vec<u8> = clean.iter().flat_map(|packet| [&packet[..], &[0x47; 16]].concat()).collect();
    let plain = analyse(&joined(clean));
    for (bytes, size) in [(timestamped, PacketSize::Timestamped), (with_parity, PacketSize::ReedSolomon)] {
        let report = analyse(&bytes);
        assert_eq!(report.packet_size, Some(size));
        assert_eq!(report.counts.bytes, bytes.len() as u64);
        assert_eq!((report.counts - plain.counts).named().filter(|total| total.1 > 0).count(), 1);
        let counted = |report: &Report| -> Vec<_> {
            report.pids.iter().map(|pid| (pid.pid, pid.kind, pid.counts, pid.bit_rate, pid.pcr)).collect()
        };
        assert_eq!(counted(&report), counted(&plain));
    }
}
