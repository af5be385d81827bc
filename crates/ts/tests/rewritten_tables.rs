//! Tables that are written again with the version and the continuity counter of those before: what SRS sends over HTTP
//! when sound appears in a stream of pictures.

use weir_ts::mux::{self, AccessUnit, MuxSettings, Muxer, Packetiser};
use weir_ts::packet::{Header, pid};
use weir_ts::{Analyser, Codec, Counts, FindingKind, Options, PidKind, Report};

type Bytes188 = [u8; 188];

const AUDIO: u16 = 0x0102;
const PMT: u16 = 0x0100;

fn pid_of(packet: &Bytes188) -> u16 {
    Header(u32::from_be_bytes([packet[0], packet[1], packet[2], packet[3]])).pid()
}

/// A PAT and a PMT, each under counter 0 and as version 0.
fn tables(settings: &MuxSettings) -> Vec<Bytes188> {
    let mut bytes = Vec::new();
    Packetiser::new(pid::PAT).section(&mux::pat(settings, 0), &mut bytes);
    Packetiser::new(PMT).section(&mux::pmt(settings, 0), &mut bytes);
    bytes.as_chunks().0.to_vec()
}

/// Four seconds of pictures, and sound from the place on that is returned, which has both tables.
fn stream() -> (Vec<Bytes188>, usize) {
    let mut muxer = Muxer::new(MuxSettings::default());
    let mut bytes = Vec::new();
    for picture in 0..100 {
        let dts = 90_000 + picture * 3_600;
        let unit = [&[0, 0, 0, 1, if picture % 25 == 0 { 0x65 } else { 0x41 }][..], &[0x80; 3_000]].concat();
        muxer.video(&AccessUnit { pts: dts, dts, random_access: false, bytes: &unit }, &mut bytes);
        if picture >= 50 {
            muxer.audio(&AccessUnit { pts: dts, dts, random_access: false, bytes: &[0x55; 200] }, &mut bytes);
        }
    }
    let is_media = |packet: &&Bytes188| pid_of(packet) > PMT;
    let media: Vec<Bytes188> = bytes.as_chunks().0.iter().filter(is_media).copied().collect();
    let sound = media.iter().position(|packet| pid_of(packet) == AUDIO).expect("sound");
    let whole = MuxSettings::default();
    let silent = MuxSettings { audio: None, ..whole.clone() };
    let packets = [&tables(&silent)[..], &media[..sound], &tables(&whole), &media[sound..]].concat();
    (packets, sound + 2)
}

fn analyse(packets: &[Bytes188]) -> Report {
    let mut analyser = Analyser::new(Options::default());
    analyser.feed(&packets.concat());
    analyser.finish();
    analyser.report()
}

fn losses(counts: &Counts) -> [u64; 5] {
    let Counts { gap_events, lost_packets, lost_estimate, illegal_duplicates, aribts_drops, .. } = *counts;
    [gap_events, lost_packets, lost_estimate, illegal_duplicates, aribts_drops]
}

#[test]
fn a_table_that_is_written_anew_under_the_same_counter_is_a_counter_error_and_no_loss() {
    let report = analyse(&stream().0);
    assert_eq!(losses(&report.counts), [1, 0, 0, 0, 0], "{:?}", report.counts);
    assert_eq!(report.counts.continuity_count_error, 1);
    let gap = report.findings.iter().find(|finding| matches!(finding.kind, FindingKind::Gap { .. }));
    assert!(gap.is_some_and(|gap| gap.to_string().ends_with("nothing is missing")), "{gap:?}");
}

#[test]
fn a_second_map_of_the_same_version_is_read_and_told() {
    let report = analyse(&stream().0);
    let sound = report.pids.iter().find(|pid| pid.pid == AUDIO).expect("sound");
    assert_eq!(sound.kind, PidKind::Component(Codec::Aac));
    assert_eq!(report.programs[0].components.len(), 2);
    assert_eq!(report.counts.version_changes, 1);
    let kept = |finding: &&weir_ts::Finding| finding.kind == FindingKind::VersionKept { table_id: 2 };
    assert_eq!(report.findings.iter().filter(kept).count(), 1);
}

#[test]
fn it_is_read_whatever_its_counter_is() {
    let (mut packets, place) = stream();
    packets[place + 1][3] += 1;
    let report = analyse(&packets);
    assert_eq!(losses(&report.counts), [0; 5]);
    assert_eq!(report.programs[0].components.len(), 2);
}

#[test]
fn where_another_pid_lost_packets_meanwhile_fifteen_are_missing() {
    let (mut packets, place) = stream();
    let gone = packets[..place].iter().position(|packet| packet[1] & 0x5F == 1 && packet[2] == 1);
    packets.remove(gone.expect("a packet of a picture") + 20);
    assert_eq!(losses(&analyse(&packets).counts)[..2], [2, 16]);
}

#[test]
fn what_is_no_new_table_is_missing_fifteen() {
    let (packets, place) = stream();
    // A damaged section; another section of the table; a packet that begins none.
    let damaged = |packet: &mut Bytes188| packet[12] ^= 1;
    let another = |packet: &mut Bytes188| {
        packet[11] = 1;
        let length = 3 + usize::from(packet[7]);
        let checksum = weir_ts::crc(&packet[5..5 + length - 4]);
        packet[5 + length - 4..5 + length].copy_from_slice(&checksum.to_be_bytes());
    };
    let inner = |packet: &mut Bytes188| packet[1] &= !0x40;
    for change in [damaged as fn(&mut Bytes188), another, inner] {
        let mut packets = packets.clone();
        change(&mut packets[place + 1]);
        assert_eq!(losses(&analyse(&packets).counts)[..2], [1, 15]);
    }
}

/// A PAT that changes under its version leads to other maps.
#[test]
fn a_second_list_of_programs_of_the_same_version_is_read_as_well() {
    let (mut packets, place) = stream();
    let mut bytes = Vec::new();
    let moved = MuxSettings { pmt_pid: 0x0200, ..MuxSettings::default() };
    Packetiser::new(pid::PAT).section(&mux::pat(&moved, 0), &mut bytes);
    Packetiser::new(0x0200).section(&mux::pmt(&moved, 0), &mut bytes);
    packets.splice(place..place + 2, bytes.as_chunks().0.iter().copied());
    let report = analyse(&packets);
    assert_eq!((report.programs.len(), report.programs[0].pmt_pid), (1, 0x0200));
    assert_eq!(report.programs[0].components.len(), 2);
    assert_eq!(losses(&report.counts)[..2], [1, 0]);
}
