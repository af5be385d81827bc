//! Clock references that are seconds apart, at a rate that is never the same: what SRS sends over HTTP.

use weir_ts::mux::{AccessUnit, MuxSettings, Muxer};
use weir_ts::packet::{AdaptationField, Packet, Pcr};
use weir_ts::{Analyser, Counts, Options, TICKS_PER_SECOND};

use crate::base::*;

const SECONDS: u64 = 30;

/// 25 pictures a second, each group of two seconds of another size, in no constant rate, with a clock reference on its
/// keyframe alone.
fn stream() -> Vec<Bytes188> {
    let mut muxer = Muxer::new(MuxSettings { pcr_interval: 2 * TICKS_PER_SECOND, ..MuxSettings::default() });
    let mut bytes = Vec::new();
    for picture in 0..SECONDS * 25 {
        let dts = 90_000 + picture * 3_600;
        let (group, key) = (picture / 50, picture % 50 == 0);
        let length = if key { 30_000 } else { 2_000 + picture * 37 % 1_500 } * (2 + group * 7 % 3) / 2;
        let mut unit = vec![0, 0, 0, 1, 9, 0xF0, 0, 0, 0, 1, if key { 0x65 } else { 0x41 }];
        unit.extend((0..length).map(|at| ((at * 31 + picture * 17) % 60) as u8 + 0x80));
        muxer.video(&AccessUnit { pts: dts, dts, random_access: key, bytes: &unit }, &mut bytes);
        for frame in 0..2 {
            let dts = dts + frame * 1_800;
            muxer.audio(&AccessUnit { pts: dts, dts, random_access: true, bytes: &[0xA5; 300] }, &mut bytes);
        }
    }
    bytes.as_chunks().0.to_vec()
}

#[test]
fn a_reference_every_two_seconds_is_late_and_the_rest_is_sound() {
    let packets = stream();
    let report = analyse(&joined(&packets));
    let sound = sound(&packets);
    assert!((SECONDS / 2..=SECONDS / 2 + 1).contains(&sound.pcrs), "{sound:?}");
    let counts = report.counts;
    assert_eq!(counts.pcr_repetition_error, sound.pcrs - 1);
    assert_eq!(counts.pcr_discontinuity_indicator_error, sound.pcrs - 1);
    let late = Counts {
        pcr_repetition_error: counts.pcr_repetition_error,
        pcr_discontinuity_indicator_error: counts.pcr_discontinuity_indicator_error,
        ..sound
    };
    assert_eq!(counts, late, "no jump, and nothing that stays away");
    let seconds = report.duration.expect("a clock").as_seconds();
    assert!((seconds - SECONDS as f64).abs() < 1.0, "{seconds} s");
    let (rate, whole) = (report.bit_rate.expect("a rate"), packets.len() as f64 * 1_504.0 / SECONDS as f64);
    assert!((rate / whole - 1.0).abs() < 0.05, "{rate} bit/s of {whole}");
}

#[test]
fn between_two_of_them_time_goes_on_with_the_packets() {
    let packets = stream();
    let mut analyser = Analyser::new(Options::default());
    let (mut last, mut longest_step) = (0.0f64, 0.0f64);
    for packet in &packets {
        analyser.feed(packet);
        let Some(time) = analyser.time().filter(|_| analyser.keeps_time()) else { continue };
        longest_step = longest_step.max((time.as_seconds() - last).abs());
        last = time.as_seconds();
    }
    // The first time that is known is that of the second reference.
    assert!(longest_step < 2.1, "{longest_step} s");
    assert!((last - SECONDS as f64).abs() < 1.0, "{last} s");
}

#[test]
fn a_clock_that_jumps_is_seen_to_jump_all_the_same() {
    let mut packets = stream();
    let half = packets.len() / 2;
    for packet in &mut packets[half..] {
        if let Some(pcr) = Packet::new(packet).adaptation_field().and_then(AdaptationField::pcr) {
            let moved = Pcr::new(pcr.ticks() + 3_600 * TICKS_PER_SECOND);
            packet[6..12].copy_from_slice(&moved.write());
        }
    }
    assert_eq!(analyse(&joined(&packets)).counts.pcr_discontinuities, 1);
}
