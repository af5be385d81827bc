//! Packets that are missing.

use std::collections::BTreeMap;

use weir_ts::Counts;
use weir_ts::packet::{Packet, pid};

use crate::base::*;

/// Takes `count` packets of the video PID away at ten places, none of which begins anything or carries a clock.
pub(crate) fn without(count: usize) -> Vec<Bytes188> {
    let clean = clean();
    let videos =
        |from: usize| (from..clean.len()).filter(|&place| pid_of(&clean[place]) == VIDEO).take(count);
    let places = ten_places(clean, |place| {
        pid_of(&clean[place]) == VIDEO && videos(place).all(|place| is_plain_video(&clean[place]))
    });
    let gone: Vec<usize> = places.into_iter().flat_map(videos).collect();
    assert_eq!(gone.len(), 10 * count);
    let kept = |&(place, _): &(usize, _)| !gone.contains(&place);
    clean.iter().enumerate().filter(kept).map(|(_, packet)| *packet).collect()
}

/// What the counters of each PID must say when these packets are missing at one place: 16 are hidden, anything else is
/// a gap of the rest. One counter a PID; aribts takes 15 for a repetition. The rate says how many are missing in truth.
pub(crate) fn expected_of_one_loss(gone: &[Bytes188]) -> Counts {
    let mut missing: BTreeMap<u16, u64> = BTreeMap::new();
    for packet in gone {
        let header = Packet::new(packet).header();
        if header.has_payload() && header.pid() != pid::NULL {
            *missing.entry(header.pid()).or_default() += 1;
        }
    }
    let mut counts = Counts { lost_estimate: gone.len() as u64, ..Counts::default() };
    for lost in missing.into_values().map(|count| count % 16).filter(|lost| *lost > 0) {
        counts.gap_events += 1;
        counts.lost_packets += lost;
        counts.aribts_drops += 1;
        counts.aribts_missed += u64::from(lost == 15);
        counts.continuity_count_error += 1;
    }
    counts
}

/// Beside the counters, each loss makes one clock reference come too early for a constant rate, which says how many
/// packets are missing.
fn check(count: usize, by_counters: Counts) {
    let packets = without(count);
    let by_rate = Counts { pcr_accuracy_error: 10, lost_estimate: 10 * count as u64, ..Counts::default() };
    let expected = sound(&packets) + by_counters + by_rate;
    assert_eq!(analyse(&joined(&packets)).counts, expected);
}

#[test]
fn nothing_is_wrong_with_the_clean_stream() {
    let report = analyse(&joined(clean()));
    assert_eq!(report.counts, sound(clean()));
    assert_eq!(report.findings, []);
}

#[test]
fn one_lost_packet_is_one_gap_of_one() {
    let ten = Counts { gap_events: 10, lost_packets: 10, aribts_drops: 10, ..Counts::default() };
    check(1, Counts { continuity_count_error: 10, ..ten });
}

#[test]
fn five_lost_packets_are_one_gap_of_five() {
    let ten = Counts { gap_events: 10, lost_packets: 50, aribts_drops: 10, ..Counts::default() };
    check(5, Counts { continuity_count_error: 10, ..ten });
}

#[test]
fn fifteen_lost_packets_are_a_gap_of_fifteen_although_the_counter_stands_still() {
    let ten = Counts { gap_events: 10, lost_packets: 150, aribts_drops: 10, ..Counts::default() };
    check(15, Counts { continuity_count_error: 10, aribts_missed: 10, ..ten });
}

/// A packet without a payload repeats the counter, and is nothing to compare with.
#[test]
fn fifteen_lost_packets_behind_one_without_a_payload_are_a_gap_as_well() {
    let mut packets = clean().to_vec();
    let [high, low] = VIDEO.to_be_bytes();
    let videos: Vec<usize> =
        (2_000..2_200).filter(|&place| pid_of(&clean()[place]) == VIDEO).take(16).collect();
    assert!(videos.iter().all(|place| is_plain_video(&clean()[*place])));
    let mut empty = [0xFF; 188];
    empty[..6].copy_from_slice(&[0x47, high, low, 0x20 | packets[videos[0]][3] & 15, 183, 0]);
    packets[videos[1]] = empty;
    for (gone, place) in videos[2..].iter().enumerate() {
        packets.remove(place - gone);
    }
    let counts = analyse(&joined(&packets)).counts;
    assert_eq!((counts.gap_events, counts.lost_packets, counts.illegal_duplicates), (1, 15, 0));
}

/// A PID of clock references alone, whose counter should stand still (2.4.3.3): some multiplexers have it go on.
#[test]
fn on_a_pid_without_payload_nothing_can_be_missing() {
    let mut packets = Vec::new();
    for (place, packet) in clean().iter().enumerate() {
        packets.push(*packet);
        if place % 200 == 0 {
            let mut empty = [0xFF; 188];
            empty[..6].copy_from_slice(&[0x47, 2, 0, 0x20 | (place / 200 % 16) as u8, 183, 0]);
            packets.push(empty);
        }
    }
    let counts = analyse(&joined(&packets)).counts;
    let wrong = clean().len().div_ceil(200) as u64 - 1;
    assert_eq!((counts.gap_events, counts.lost_packets, counts.lost_estimate), (wrong, 0, 0));
}

#[test]
fn sixteen_lost_packets_are_seen_by_the_clock_alone() {
    // Only the estimate says so.
    check(16, Counts::default());
}

#[test]
fn seventeen_lost_packets_look_like_one() {
    let ten = Counts { gap_events: 10, lost_packets: 10, aribts_drops: 10, ..Counts::default() };
    check(17, Counts { continuity_count_error: 10, ..ten });
}

#[test]
fn a_burst_over_all_pids_is_told_for_each() {
    let clean = clean();
    let burst = |place: usize| place..place + 61;
    let no_clock = |place: usize| sound(&clean[burst(place)]).pcrs == 0;
    let places = ten_places(clean, |place| is_plain_video(&clean[place]) && no_clock(place));
    let mut packets = clean.to_vec();
    let mut expected = Counts { pcr_accuracy_error: 10, ..Counts::default() };
    for &place in places.iter().rev() {
        let gone: Vec<Bytes188> = packets.drain(burst(place)).collect();
        expected += expected_of_one_loss(&gone);
    }
    assert!(expected.gap_events > 10);
    assert_eq!(analyse(&joined(&packets)).counts, expected + sound(&packets));
}

#[test]
fn thirty_two_kibibytes_lost_off_alignment_are_a_resync_and_a_gap_on_each_pid() {
    const LOST: usize = 32 * 1024;
    let clean = clean();
    let place = ten_places(clean, |place| is_plain_video(&clean[place]))[4];
    let mut bytes = joined(clean);
    let from = place * 188 + 100;
    bytes.drain(from..from + LOST);
    // The packet that was cut and the one that is left of it are gone as well.
    let gone = place..(from + LOST).div_ceil(188);
    let kept = [&clean[..gone.start], &clean[gone.end..]].concat();
    let skipped = (100 + gone.end * 188 - (from + LOST)) as u64;
    let expected = sound(&kept)
        + expected_of_one_loss(&clean[gone])
        + Counts {
            bytes: skipped,
            skipped_bytes: skipped,
            resyncs: 1,
            ts_sync_loss: 1,
            // Where the next two sync bytes were due there were others.
            sync_byte_error: 2,
            pcr_accuracy_error: 1,
            ..Counts::default()
        };
    assert_eq!(analyse(&bytes).counts, expected);
}

/// Three or 31 packets of the video PID gone from the place on, none of which begins anything or carries a clock.
fn without_early(count: usize) -> Vec<Bytes188> {
    let videos = || (500..clean().len()).filter(|&place| is_plain_video(&clean()[place])).take(count);
    let kept = |&(place, _): &(usize, _)| !videos().any(|gone| gone == place);
    clean().iter().enumerate().filter(kept).map(|(_, packet)| *packet).collect()
}

#[test]
fn a_loss_before_the_rate_is_known_spoils_no_later_reference() {
    for (count, lost) in [(3, 3), (31, 15)] {
        let packets = without_early(count);
        let gap = Counts { gap_events: 1, lost_packets: lost, aribts_drops: 1, ..Counts::default() };
        let hidden = Counts { aribts_missed: u64::from(lost == 15), ..Counts::default() };
        let expected = sound(&packets)
            + gap
            + hidden
            + Counts { continuity_count_error: 1, lost_estimate: lost, lost_unknown: 1, ..Counts::default() };
        let report = analyse(&joined(&packets));
        assert_eq!(report.counts, expected, "{count} lost");
        let clock = report.pids.iter().find_map(|pid| pid.pcr).expect("a clock");
        // Rounded to ticks of 37 ns.
        assert!(clock.jitter_max_nanoseconds.is_some_and(|most| most < 75.0), "{clock:?}");
    }
}

#[test]
fn packets_that_were_filtered_out_are_no_fault_of_the_clock() {
    let without = |is_gone: &dyn Fn(usize) -> bool| -> Vec<Bytes188> {
        let kept = |&(place, _): &(usize, _)| !is_gone(place);
        clean().iter().enumerate().filter(kept).map(|(_, packet)| *packet).collect()
    };
    let pid = |place: usize| pid_of(&clean()[place]);
    let tables = without(&|place| pid(place) == pid::SDT);
    let audio = without(&|place| pid(place) == AUDIO);
    let nulls = without(&|place| pid(place) == pid::NULL);
    // One now and then: the rate is constant for many intervals in between.
    let few = ten_places(clean(), |place| pid(place) == pid::NULL);
    let few = without(&|place| few.contains(&place));
    for packets in [tables, audio, nulls, few] {
        let counts = analyse(&joined(&packets)).counts;
        assert_eq!((counts.gap_events, counts.pcr_accuracy_error), (0, 0), "{} packets", packets.len());
    }
}
