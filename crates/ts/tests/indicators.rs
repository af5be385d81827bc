//! What takes time to show: absences, late clocks and time stamps, new versions of tables, and where decoding begins.

use std::time::Duration;

use weir_ts::mux::{self, AccessUnit, MuxSettings, Muxer, Packetiser};
use weir_ts::{Analyser, Codec, Options, PidKind, Report};

/// `pictures` a 40 ms, those in `gone` left out, without null packets.
fn stream(settings: MuxSettings, pictures: u64, gone: std::ops::Range<u64>) -> Vec<u8> {
    let mut muxer = Muxer::new(settings);
    let mut bytes = Vec::new();
    for picture in 0..pictures {
        let dts = 90_000 + picture * 3600;
        let unit = [&[0, 0, 0, 1, if picture % 25 == 0 { 0x65 } else { 0x41 }][..], &[0x80; 3000]].concat();
        if !gone.contains(&picture) {
            muxer.video(&AccessUnit { pts: dts, dts, random_access: false, bytes: &unit }, &mut bytes);
        }
        muxer.audio(&AccessUnit { pts: dts, dts, random_access: false, bytes: &[0x55; 200] }, &mut bytes);
    }
    bytes
}

fn analyse(bytes: &[u8]) -> Report {
    let mut analyser = Analyser::new(Options { pid_timeout: Duration::from_secs(2), ..Options::default() });
    analyser.feed(bytes);
    analyser.finish();
    analyser.report()
}

#[test]
fn pictures_that_stay_away_are_a_pts_error_and_later_a_pid_error() {
    // The clock is on the video's PID, and goes on without it.
    let counts = analyse(&stream(MuxSettings::default(), 200, 50..70)).counts;
    assert_eq!((counts.pts_error, counts.pid_error), (1, 0));
    let counts = analyse(&stream(MuxSettings::default(), 200, 50..60)).counts;
    assert_eq!((counts.pts_error, counts.pid_error), (0, 0));
}

/// TR 101 290 2.5 is for streams in clear: presentation times of a scrambled one cannot be read.
#[test]
fn pictures_that_are_scrambled_for_a_while_are_no_pts_error() {
    let mut bytes = stream(MuxSettings::default(), 200, 0..0);
    let packets = bytes.as_chunks_mut::<188>().0;
    let part = packets.len() / 4..packets.len() * 3 / 4;
    for packet in packets[part].iter_mut().filter(|packet| packet[1] & 0x1F == 1 && packet[3] & 0x10 != 0) {
        packet[3] |= 0x80;
    }
    let counts = analyse(&bytes).counts;
    assert!(counts.scrambled_packets > 1_000, "{counts:?}");
    assert_eq!((counts.pts_error, counts.pts_jumps), (0, 0));
}

#[test]
fn a_pid_that_ends_is_a_pid_error() {
    let audio_goes = |settings: MuxSettings| {
        let mut muxer = Muxer::new(settings);
        let mut bytes = Vec::new();
        for picture in 0..150 {
            let dts = 90_000 + picture * 3600;
            let unit = AccessUnit { pts: dts, dts, random_access: true, bytes: &[0, 0, 0, 1, 0x65, 9] };
            muxer.video(&unit, &mut bytes);
            if picture < 50 {
                muxer.audio(&AccessUnit { bytes: &[0x55; 200], ..unit }, &mut bytes);
            }
        }
        bytes
    };
    let counts = analyse(&audio_goes(MuxSettings::default())).counts;
    assert_eq!((counts.pid_error, counts.pts_error), (1, 1));
}

/// The second map names another PID for the sound: the first of them has ended, and is not late.
#[test]
fn a_pid_that_a_new_map_no_longer_names_is_no_pts_error() {
    let settings = MuxSettings::default();
    let sound = settings.audio.expect("sound");
    let mut bytes = stream(settings.clone(), 50, 0..0);
    let moved = MuxSettings { audio: Some(mux::Elementary { pid: sound.pid + 1, ..sound }), ..settings };
    let mut muxer = Muxer::new(moved.clone());
    let mut tail = Vec::new();
    for picture in 50..150 {
        let dts = 90_000 + picture * 3600;
        let unit = [&[0, 0, 0, 1, 0x41][..], &[0x80; 3000]].concat();
        muxer.video(&AccessUnit { pts: dts, dts, random_access: false, bytes: &unit }, &mut tail);
        muxer.audio(&AccessUnit { pts: dts, dts, random_access: false, bytes: &[0x55; 200] }, &mut tail);
    }
    // The map of the second half is a new version of the first one's.
    let map = mux::pmt(&moved, 1);
    let of_map = |packet: &[u8]| u16::from_be_bytes([packet[1] & 0x1F, packet[2]]) == moved.pmt_pid;
    let mut maps = Packetiser::new(moved.pmt_pid);
    for packet in tail.as_chunks_mut::<188>().0.iter_mut().filter(|packet| of_map(&packet[..])) {
        let mut other = Vec::new();
        maps.section(&map, &mut other);
        packet.copy_from_slice(&other);
    }
    bytes.extend(tail);
    let counts = analyse(&bytes).counts;
    assert_eq!((counts.version_changes, counts.pts_error, counts.pid_error), (1, 0, 0), "{counts:?}");
}

#[test]
fn clock_references_over_100_ms_apart_are_late() {
    let settings = MuxSettings { pcr_interval: 27_000 * 110, ..MuxSettings::default() };
    let counts = analyse(&stream(settings, 100, 0..0)).counts;
    assert!(counts.pcrs > 20);
    assert_eq!(counts.pcr_discontinuity_indicator_error, counts.pcrs - 1);
    assert_eq!((counts.pcr_repetition_error, counts.pcr_discontinuities), (counts.pcrs - 1, 0), "{counts:?}");
}

#[test]
fn tables_give_names_kinds_and_the_place_where_decoding_begins() {
    let settings = MuxSettings { provider: "weir".into(), name: "放送 1".into(), ..MuxSettings::default() };
    let report = analyse(&stream(settings, 60, 0..0));
    assert_eq!(report.counts.named().filter(|(_, count)| *count > 0).count(), 3, "{:?}", report.counts);
    let [service] = &report.services[..] else { panic!("{:?}", report.services) };
    assert_eq!((service.id, &*service.provider, &*service.name), (1, "weir", "放送 1"));
    let kinds: Vec<_> = report.pids.iter().map(|pid| (pid.pid, pid.kind)).collect();
    let expected = [
        (0, PidKind::Pat),
        (0x11, PidKind::ServiceInformation),
        (0x100, PidKind::Pmt),
        (0x101, PidKind::Component(Codec::H264)),
        (0x102, PidKind::Component(Codec::Aac)),
    ];
    assert_eq!(kinds, expected);
    // PAT, PMT, SDT, and then the first picture.
    let decodable = report.decodable.expect("a picture to begin with");
    assert_eq!((decodable.packet, decodable.byte, decodable.pid), (3, 3 * 188, 0x101));
    let total: f64 = report.pids.iter().filter_map(|pid| pid.bit_rate).sum();
    assert!((total / report.bit_rate.expect("a clock") - 1.0).abs() < 1e-9);
}

#[test]
fn decoding_begins_at_a_picture_that_needs_no_other() {
    let bytes = stream(MuxSettings::default(), 60, 0..10);
    let decodable = analyse(&bytes).decodable.expect("the next intra picture");
    assert_eq!(decodable.time.map(|time| (time.as_seconds() * 25.0).round()), Some(25.0));
}

#[test]
fn a_new_version_of_a_table_is_told_and_taken() {
    let mut bytes = stream(MuxSettings::default(), 30, 0..0);
    let changed = MuxSettings { video: None, ..MuxSettings::default() };
    let mut packetiser = Packetiser::new(0x100);
    packetiser.section(&mux::pmt(&changed, 1), &mut bytes);
    let report = analyse(&bytes);
    assert_eq!(report.counts.version_changes, 1);
    assert_eq!(report.programs[0].components.len(), 1);
    assert_eq!(report.programs[0].version, Some(1));
}
