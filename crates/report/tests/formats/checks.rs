//! Checked streams as people and programs will read them; the analyser itself counts what is in them.

use crate::fixture;
use insta::assert_snapshot;
use serde_json::Value;
use weir_engine::threshold::Threshold;
use weir_report::{Circumstances, StreamCheck, Text};
use weir_ts::mux::{AccessUnit, MuxSettings, Muxer, adts_header};
use weir_ts::{Analyser, Counts, Options};

const PACKET: usize = 188;

/// Four seconds of one service at 2 Mbit/s.
fn stream(name: &str) -> Vec<u8> {
    let settings = MuxSettings {
        provider: "The Provider".to_owned(),
        name: name.to_owned(),
        bit_rate: Some(2_000_000),
        ..MuxSettings::default()
    };
    let mut muxer = Muxer::new(settings);
    let mut bytes = Vec::new();
    for number in 0..100 {
        let dts = 90_000 + number * 3_600;
        let random_access = number % 25 == 0;
        let length = if random_access { 20_000 } else { 4_000 };
        let mut picture = vec![0x5A; length];
        picture[..5].copy_from_slice(&[0, 0, 0, 1, if random_access { 0x65 } else { 0x41 }]);
        muxer.video(&AccessUnit { pts: dts, dts, random_access, bytes: &picture }, &mut bytes);
        let mut frame = adts_header(2, 3, 2, 400).to_vec();
        frame.resize(407, 0x33);
        muxer.audio(&AccessUnit { pts: dts, dts, random_access: true, bytes: &frame }, &mut bytes);
    }
    bytes
}

/// Where the n-th packet of a PID with a payload begins.
fn place(stream: &[u8], pid: u16, nth: usize) -> usize {
    let is_it = |at: &usize| {
        let packet = &stream[*at..*at + 4];
        u16::from_be_bytes([packet[1] & 0x1F, packet[2]]) == pid && packet[3] & 0x10 != 0
    };
    (0..stream.len()).step_by(PACKET).filter(is_it).nth(nth).unwrap()
}

fn check(source: &str, stream: &[u8], findings_per_kind: u32, thresholds: &[&str]) -> StreamCheck {
    let mut analyser = Analyser::new(Options { findings_per_kind, ..Options::default() });
    analyser.feed(stream);
    analyser.finish();
    let total = |name: &str| analyser.counts().get(name.strip_prefix("ts.")?);
    let judge = |text: &&str| text.parse::<Threshold>().unwrap().judge_total(total);
    let circumstances = Circumstances {
        source: source.to_owned(),
        interrupted: false,
        findings_per_kind,
        thresholds: thresholds.iter().map(judge).collect(),
    };
    let mut check = StreamCheck::new(&analyser.report(), circumstances);
    check.weir_version = "0.0.0".to_owned();
    check
}

fn whole() -> StreamCheck {
    check("/recordings/evening.ts", &stream("Channel 1"), 10, &["ts.lost_packets == 0"])
}

/// Three pictures' packets lost one by one, two damaged, junk in the middle, and an end inside a packet.
fn damaged() -> StreamCheck {
    let mut bytes = stream("Channel 1");
    bytes.truncate(bytes.len() - 100);
    for nth in [40, 41] {
        let at = place(&bytes, 0x0101, nth);
        bytes[at + 1] |= 0x80;
    }
    let at = place(&bytes, 0x0102, 60);
    bytes.splice(at..at, [0xAA; 1_000]);
    for nth in [900, 700, 500] {
        let at = place(&bytes[..place(&bytes, 0x0102, 59)], 0x0101, nth / 4);
        bytes.drain(at..at + PACKET);
    }
    check("-", &bytes, 3, &["ts.lost_packets == 0", "ts.packets > 1000"])
}

fn text(width: u16, check: &StreamCheck) -> String {
    let mut bytes = Vec::new();
    Text { width, ..Text::default() }.write_check(check, &mut bytes).unwrap();
    let page = String::from_utf8(bytes).unwrap();
    for line in page.lines() {
        assert!(line.chars().count() <= usize::from(width), "wider than {width}: {line}");
    }
    page
}

fn json(check: &StreamCheck) -> Value {
    let mut bytes = Vec::new();
    check.write_json(&mut bytes).unwrap();
    serde_json::from_slice(&bytes).unwrap()
}

#[test]
fn a_whole_stream_reads_well_at_every_width() {
    let check = whole();
    assert_snapshot!("check_whole_text_100", text(100, &check));
    assert_snapshot!("check_whole_text_80", text(80, &check));
    assert_snapshot!("check_whole_text_40", text(40, &check));
}

#[test]
fn a_damaged_stream_reads_well_at_every_width() {
    let check = damaged();
    assert_snapshot!("check_damaged_text_100", text(100, &check));
    assert_snapshot!("check_damaged_text_80", text(80, &check));
    assert_snapshot!("check_damaged_text_40", text(40, &check));
}

#[test]
fn the_headline_says_so_when_most_bytes_were_skipped() {
    let bytes = stream("Channel 1");
    let headline = |bytes: &[u8]| text(80, &check("-", bytes, 3, &[])).lines().next().unwrap().to_owned();
    let junk = |share: f64| vec![0; (bytes.len() as f64 * share / (1.0 - share)) as usize];
    let with_junk = |share: f64| headline(&[bytes.clone(), junk(share)].concat());
    assert_eq!(with_junk(0.6), "stdin · 60.0% of the bytes skipped, no packet lost, other findings");
    assert_eq!(with_junk(0.4), "stdin · no packet lost, other findings");
}

#[test]
fn a_weeks_worth_of_packets_still_fits_80_columns() {
    let mut check = damaged();
    for pid in &mut check.pids {
        pid.packets = 6_012_345_678;
        pid.lost_packets = 1_234_567;
        pid.gap_events = 1_234_567;
        pid.illegal_duplicates = 12_345;
        pid.transport_errors = 12_345;
        pid.scrambled_packets = 6_012_345_678;
        pid.aribts_drops = 1_234_567;
    }
    text(80, &check);
    text(40, &check);
}

#[test]
fn every_total_is_printed_by_its_name() {
    for check in [whole(), damaged()] {
        let page = text(80, &check).to_lowercase();
        for name in Counts::NAMES {
            assert!(
                page.split(|it: char| !it.is_alphanumeric() && it != '_').any(|word| word == *name),
                "{name}"
            );
        }
    }
}

#[test]
fn words_out_of_a_hostile_stream_stay_words() {
    let mut check = check("a\u{1b}[31m.ts", &stream("Ch\u{9b}31m\u{202e}1"), 10, &[]);
    check.programs[0].components[0].name = Some("\u{1b}]0;x\u{7}".to_owned());
    check.programs[0].components[0].language = Some("\u{1b}[2".to_owned());
    check.pids[0].language = Some("\r\n\u{7}".to_owned());
    for width in [40, 80] {
        let page = text(width, &check);
        assert_eq!(page.chars().find(|letter| letter.is_control() && *letter != '\n'), None);
        assert!(!page.contains('\u{202e}'));
    }
}

#[test]
fn what_is_written_follows_the_schema_and_says_what_was_counted() {
    for check in [whole(), damaged()] {
        let value = fixture::schema::follows("check", json(&check).to_string().as_bytes());
        for (name, total) in check.counts.0.named() {
            assert_eq!(value["counts"][name], total, "{name}");
        }
    }
    let mut value = json(&damaged());
    assert_eq!(
        (&value["counts"]["lost_packets"], &value["counts"]["trailing_bytes"]),
        (&3.into(), &88.into())
    );
    value["counts"]["lost_packets"] = "three".into();
    assert!(!fixture::schema::published("check").is_valid(&value));
}
