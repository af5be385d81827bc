//! Faults in packets, between them, and in the times that they carry.

use weir_ts::mux::{NULL_PACKET, Packetiser};
use weir_ts::packet::{AdaptationField, Packet, Pcr, pid};
use weir_ts::pes::PesHeader;
use weir_ts::{Counts, FindingKind};

use crate::base::*;

pub(crate) fn with_counters_flipped() -> Vec<Bytes188> {
    let mut packets = clean().to_vec();
    for place in ten_places(clean(), |place| is_plain_video(&clean()[place])) {
        packets[place][3] ^= 8;
    }
    packets
}

#[test]
fn a_flipped_counter_is_two_gaps_of_eight() {
    let expected = Counts {
        gap_events: 20,
        lost_packets: 160,
        lost_estimate: 160,
        aribts_drops: 20,
        continuity_count_error: 20,
        ..sound(clean())
    };
    assert_eq!(analyse(&joined(&with_counters_flipped())).counts, expected);
}

pub(crate) fn with_transport_errors() -> Vec<Bytes188> {
    let mut packets = clean().to_vec();
    for place in ten_places(clean(), |place| is_plain_video(&clean()[place])) {
        packets[place][1] |= 0x80;
    }
    packets
}

#[test]
fn a_packet_that_is_marked_as_damaged_is_not_lost() {
    // aribts passes it over, and then finds the next one out of sequence.
    let expected = Counts { transport_errors: 10, transport_error: 10, aribts_drops: 10, ..sound(clean()) };
    assert_eq!(analyse(&joined(&with_transport_errors())).counts, expected);
}

pub(crate) fn scrambled(control: u8) -> Vec<Bytes188> {
    let mut packets = clean().to_vec();
    for place in ten_places(clean(), |place| is_plain_video(&clean()[place])) {
        packets[place][3] |= control << 6;
    }
    packets
}

#[test]
fn both_keys_are_scrambled_and_the_reserved_control_is_told_apart() {
    for control in [2, 3] {
        // There is no CAT in the stream.
        let expected = Counts { scrambled_packets: 10, cat_error: 1, ..sound(clean()) };
        assert_eq!(analyse(&joined(&scrambled(control))).counts, expected);
    }
    let expected = Counts { reserved_scrambling_packets: 10, cat_error: 1, ..sound(clean()) };
    assert_eq!(analyse(&joined(&scrambled(1))).counts, expected);
}

/// Each of ten packets again, in place of a null packet before the next one of its PID.
pub(crate) fn with_duplicates(change: impl Fn(&mut Bytes188)) -> Vec<Bytes188> {
    let mut packets = clean().to_vec();
    for (place, nulls) in before_null_packets(clean(), 1) {
        packets[nulls[0]] = packets[place];
        change(&mut packets[nulls[0]]);
    }
    packets
}

#[test]
fn one_repetition_byte_by_byte_is_legal() {
    let packets = with_duplicates(|_| {});
    let expected = Counts { legal_duplicates: 10, ..sound(&packets) };
    assert_eq!(analyse(&joined(&packets)).counts, expected);
}

#[test]
fn a_counter_that_repeats_with_another_byte_is_a_gap_of_fifteen() {
    let packets = with_duplicates(|packet| packet[187] ^= 1);
    // aribts does not look at the bytes.
    let expected = Counts {
        gap_events: 10,
        lost_packets: 150,
        lost_estimate: 150,
        continuity_count_error: 10,
        aribts_drops: 10,
        aribts_missed: 10,
        ..sound(&packets)
    };
    assert_eq!(analyse(&joined(&packets)).counts, expected);
}

#[test]
fn a_repetition_may_carry_another_clock_reference() {
    let mut packets = Vec::new();
    let mut repeated = 0;
    for packet in clean() {
        packets.push(*packet);
        let view = Packet::new(packet);
        let field = view.adaptation_field();
        if view.header().has_payload()
            && let Some(pcr) = field.and_then(AdaptationField::pcr)
        {
            let mut again = *packet;
            again[6..12].copy_from_slice(&Pcr::new(pcr.ticks() + PACKET_TICKS).write());
            packets.push(again);
            repeated += 1;
        }
    }
    assert!(repeated > 50);
    let counts = analyse(&joined(&packets)).counts;
    assert_eq!((counts.legal_duplicates, counts.illegal_duplicates, counts.gap_events), (repeated, 0, 0));
    assert_eq!((counts.pcrs, counts.pcr_discontinuities), (sound(clean()).pcrs + repeated, 0));
}

#[test]
fn the_second_repetition_is_illegal() {
    let mut packets = clean().to_vec();
    for (place, nulls) in before_null_packets(clean(), 2) {
        for null in nulls {
            packets[null] = packets[place];
        }
    }
    let expected = Counts {
        legal_duplicates: 10,
        illegal_duplicates: 10,
        continuity_count_error: 10,
        aribts_drops: 10,
        ..sound(&packets)
    };
    assert_eq!(analyse(&joined(&packets)).counts, expected);
}

#[test]
fn a_counter_may_jump_where_the_packet_says_so() {
    let mut packets = clean().to_vec();
    for place in ten_places(clean(), |place| is_plain_video(&clean()[place])) {
        // An adaptation field of two bytes in place of the first two of the payload.
        packets[place][3] |= 0x20;
        packets[place][4..6].copy_from_slice(&[1, 0x80]);
        turn_counters(&mut packets, place, VIDEO, 5);
    }
    let expected = Counts { discontinuity_indicators: 10, ..sound(&packets) };
    assert_eq!(analyse(&joined(&packets)).counts, expected);
}

/// The indicator on a packet without a payload, in place of a null packet; the counter jumps there.
pub(crate) fn with_announcing_packets() -> Vec<Bytes188> {
    let mut packets = clean().to_vec();
    for (place, nulls) in before_null_packets(clean(), 1) {
        let counter = packets[place][3] & 15;
        turn_counters(&mut packets, place + 1, VIDEO, 7);
        let [high, low] = VIDEO.to_be_bytes();
        let mut packet = [0xFF; 188];
        packet[..6].copy_from_slice(&[0x47, high, low, 0x20 | (counter + 7) & 15, 183, 0x80]);
        packets[nulls[0]] = packet;
    }
    packets
}

#[test]
fn the_indicator_holds_on_a_packet_without_a_payload() {
    let packets = with_announcing_packets();
    // aribts looks at the indicator only where there is a payload, and is wrong here.
    let expected = Counts { discontinuity_indicators: 10, aribts_drops: 10, ..sound(&packets) };
    assert_eq!(analyse(&joined(&packets)).counts, expected);
}

#[test]
fn a_packet_without_a_payload_does_not_move_the_counter() {
    let mut packets = clean().to_vec();
    for (place, nulls) in before_null_packets(clean(), 1) {
        let [high, low] = VIDEO.to_be_bytes();
        let mut packet = [0xFF; 188];
        packet[..6].copy_from_slice(&[0x47, high, low, 0x20 | packets[place][3] & 15, 183, 0]);
        packets[nulls[0]] = packet;
    }
    assert_eq!(analyse(&joined(&packets)).counts, sound(&packets));
}

#[test]
fn a_stream_may_begin_inside_a_packet() {
    let bytes = joined(clean());
    let expected = Counts { resyncs: 1, skipped_bytes: 88, ..sound(&clean()[1..]) };
    let expected = Counts { bytes: expected.bytes + 88, ..expected };
    assert_eq!(analyse(&bytes[100..]).counts, expected);
}

#[test]
fn a_stream_may_end_inside_a_packet() {
    let bytes = joined(clean());
    let whole = sound(&clean()[..clean().len() - 1]);
    let expected = Counts { bytes: whole.bytes + 138, truncated_ends: 1, trailing_bytes: 138, ..whole };
    assert_eq!(analyse(&bytes[..bytes.len() - 50]).counts, expected);
}

/// Puts `junk` before ten packets.
pub(crate) fn with_junk(junk: &[u8]) -> Vec<u8> {
    let places = ten_places(clean(), |place| is_plain_video(&clean()[place]));
    let mut bytes = Vec::new();
    for (place, packet) in clean().iter().enumerate() {
        if places.contains(&place) {
            bytes.extend(junk);
        }
        bytes.extend(packet);
    }
    bytes
}

#[test]
fn no_packet_is_lost_to_junk() {
    let mixed: Vec<u8> = (0..100).map(|at| if at % 9 == 4 { 0x47 } else { at }).collect();
    for junk in [vec![0; 100], vec![0x47; 100], mixed, vec![0; 1000], vec![0x47]] {
        let all = 10 * junk.len() as u64;
        let counts = analyse(&with_junk(&junk)).counts;
        let sound = sound(clean());
        // How many of the wrong places count as sync bytes depends on what the junk holds.
        assert!((10..=20).contains(&counts.sync_byte_error), "{counts:?}");
        let expected = Counts {
            bytes: sound.bytes + all,
            skipped_bytes: all,
            resyncs: 10,
            ts_sync_loss: 10,
            sync_byte_error: counts.sync_byte_error,
            ..sound
        };
        assert_eq!(counts, expected, "{} bytes {:?}", junk.len(), &junk[..1]);
    }
}

#[test]
fn a_zeroed_sync_byte_costs_its_packet_and_no_alignment() {
    let mut packets = clean().to_vec();
    let places = ten_places(clean(), |place| is_plain_video(&clean()[place]));
    for &place in &places {
        packets[place][0] = 0;
    }
    let expected = Counts {
        packets: packets.len() as u64 - 10,
        sync_byte_error: 10,
        skipped_bytes: 1880,
        gap_events: 10,
        lost_packets: 10,
        lost_estimate: 10,
        aribts_drops: 10,
        continuity_count_error: 10,
        ..sound(clean())
    };
    assert_eq!(analyse(&joined(&packets)).counts, expected);
}

#[test]
fn two_zeroed_sync_bytes_in_a_row_are_a_loss_of_sync() {
    let both = |place: usize| is_plain_video(&clean()[place]) && is_plain_video(&clean()[place + 1]);
    let mut packets = clean().to_vec();
    for place in ten_places(clean(), both) {
        packets[place][0] = 0;
        packets[place + 1][0] = 0;
    }
    let expected = Counts {
        packets: packets.len() as u64 - 20,
        ts_sync_loss: 10,
        sync_byte_error: 20,
        skipped_bytes: 3760,
        gap_events: 10,
        lost_packets: 20,
        lost_estimate: 20,
        aribts_drops: 10,
        continuity_count_error: 10,
        ..sound(clean())
    };
    assert_eq!(analyse(&joined(&packets)).counts, expected);
}

/// Moves every clock reference from the middle on.
fn with_clock_moved(by: i64, announced: bool) -> Vec<Bytes188> {
    let mut packets = clean().to_vec();
    let mut first = announced;
    for packet in packets.iter_mut().skip(clean().len() / 2) {
        if let Some(pcr) = Packet::new(packet).adaptation_field().and_then(AdaptationField::pcr) {
            let moved = (pcr.ticks() as i64 + by).rem_euclid(Pcr::WRAP as i64);
            packet[6..12].copy_from_slice(&Pcr::new(moved as u64).write());
            packet[5] |= u8::from(std::mem::take(&mut first)) << 7;
        }
    }
    packets
}

#[test]
fn a_clock_that_jumps_is_told_once_and_an_announced_jump_is_none() {
    for by in [5 * 27_000_000, -5 * 27_000_000, 3 * 2_700_000] {
        let expected =
            Counts { pcr_discontinuities: 1, pcr_discontinuity_indicator_error: 1, ..sound(clean()) };
        assert_eq!(analyse(&joined(&with_clock_moved(by, false))).counts, expected, "{by}");
        let expected = Counts { discontinuity_indicators: 1, ..sound(clean()) };
        assert_eq!(analyse(&joined(&with_clock_moved(by, true))).counts, expected, "{by}");
    }
}

#[test]
fn presentation_times_that_jump_are_told_once() {
    let mut packets = clean().to_vec();
    for packet in packets.iter_mut().skip(clean().len() / 2).filter(|packet| pid_of(packet) == VIDEO) {
        let view = Packet::new(packet);
        let at = 188 - view.payload().len() + 9;
        if view.header().payload_unit_start()
            && let Some(PesHeader { pts: Some(pts), .. }) = PesHeader::parse(view.payload())
        {
            let pts = pts + 3 * 90_000;
            let part = |shift: u32, bits: u64| (pts >> shift & bits) as u8;
            let field = [
                0x21 | part(30, 7) << 1,
                part(22, 255),
                part(15, 127) << 1 | 1,
                part(7, 255),
                part(0, 127) << 1 | 1,
            ];
            packet[at..at + 5].copy_from_slice(&field);
        }
    }
    let report = analyse(&joined(&packets));
    assert_eq!(report.counts, Counts { pts_jumps: 1, ..sound(&packets) });
    let [finding] = report.findings[..] else { panic!("{:?}", report.findings) };
    assert!(matches!(finding.kind, FindingKind::PtsJump { by } if (by - 270_000).abs() < 9000), "{finding}");
}

/// Without the PATs from 1 s to `end`, with or without a gap in their counters.
fn without_pat(end: f64, renumbered: bool) -> (Vec<Bytes188>, u64) {
    let mut packets = clean().to_vec();
    let second = BIT_RATE as f64 / 1504.0;
    let mut gone = 0;
    for packet in &mut packets[second as usize..(end * second) as usize] {
        if pid_of(packet) == pid::PAT {
            *packet = NULL_PACKET;
            gone += 1;
        }
    }
    if renumbered {
        turn_counters(&mut packets, (end * second) as usize, pid::PAT, (16 - gone) as u8);
    }
    (packets, gone)
}

#[test]
fn a_pat_that_is_away_for_over_half_a_second_is_told_once() {
    let (packets, gone) = without_pat(1.8, true);
    assert_eq!(gone, 8);
    let expected = Counts { pat_error: 1, pat_error_2: 1, ..sound(&packets) };
    assert_eq!(analyse(&joined(&packets)).counts, expected);
    let (packets, _) = without_pat(1.3, true);
    assert_eq!(analyse(&joined(&packets)).counts, sound(&packets));
    let (packets, _) = without_pat(1.8, false);
    let lost = Counts { gap_events: 1, lost_packets: 8, lost_estimate: 8, aribts_drops: 1, ..expected };
    let lost = Counts { continuity_count_error: 1, ..lost };
    assert_eq!(analyse(&joined(&packets)).counts, lost);
}

#[test]
fn other_tables_and_wrong_checksums_on_pid_0_are_told() {
    let place =
        (0..clean().len()).filter(|&place| pid_of(&clean()[place]) == pid::PAT).nth(20).expect("a PAT");
    let mut packets = clean().to_vec();
    packets[place][20] ^= 1;
    assert_eq!(analyse(&joined(&packets)).counts, Counts { crc_error: 1, ..sound(clean()) });
    let mut other = Vec::new();
    let section = weir_ts::mux::sdt(&weir_ts::mux::MuxSettings::default(), 0);
    Packetiser::new(pid::PAT).section(&section, &mut other);
    let mut packets = clean().to_vec();
    let counter = packets[place][3];
    packets[place].copy_from_slice(&other);
    packets[place][3] = counter;
    assert_eq!(analyse(&joined(&packets)).counts, Counts { pat_error: 1, pat_error_2: 1, ..sound(clean()) });
}
