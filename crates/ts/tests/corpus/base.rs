//! The stream without a fault, and operations that put one in.

use std::sync::OnceLock;

use weir_ts::mux::{AccessUnit, MuxSettings, Muxer, NULL_PACKET};
use weir_ts::packet::{AdaptationField, Packet, pid};
use weir_ts::{Analyser, Counts, Options, Report};

pub(crate) type Bytes188 = [u8; 188];

pub(crate) const VIDEO: u16 = 0x0101;
pub(crate) const AUDIO: u16 = 0x0102;
pub(crate) const BIT_RATE: u64 = 8_000_000;

/// 27 MHz ticks of one packet.
pub(crate) const PACKET_TICKS: u64 = 188 * 8 * 27_000_000 / BIT_RATE;

/// Five seconds at 8 Mbit/s: 25 pictures a second, each in about 140 packets, one in 25 a random access point.
/// No byte of a payload looks like a sync byte or a start code.
pub(crate) fn clean() -> &'static [Bytes188] {
    static STREAM: OnceLock<Vec<Bytes188>> = OnceLock::new();
    STREAM.get_or_init(|| {
        let mut muxer = Muxer::new(MuxSettings { bit_rate: Some(BIT_RATE), ..MuxSettings::default() });
        let mut bytes = Vec::new();
        let (mut picture, mut frame) = (0, 0);
        while picture < 125 {
            let (picture_dts, frame_dts) = (90_000 + picture * 3600, 90_000 + frame * 1920);
            if picture_dts <= frame_dts {
                let key = picture % 25 == 0;
                let mut unit = vec![0, 0, 0, 1, 9, 0xF0, 0, 0, 0, 1, if key { 0x65 } else { 0x41 }];
                unit.extend((0..26_000).map(|at: u64| ((at * 31 + picture * 17) % 60) as u8 + 0x80));
                let unit =
                    AccessUnit { pts: picture_dts, dts: picture_dts, random_access: key, bytes: &unit };
                muxer.video(&unit, &mut bytes);
                picture += 1;
            } else {
                let unit: Vec<u8> = (0..341).map(|at| (at % 50) as u8 + 0xA0).collect();
                let unit = AccessUnit { pts: frame_dts, dts: frame_dts, random_access: true, bytes: &unit };
                muxer.audio(&unit, &mut bytes);
                frame += 1;
            }
        }
        assert_eq!(muxer.late_units(), 0);
        bytes.as_chunks().0.to_vec()
    })
}

pub(crate) fn analyse(bytes: &[u8]) -> Report {
    let mut analyser = Analyser::new(Options::default());
    analyser.feed(bytes);
    analyser.finish();
    analyser.report()
}

pub(crate) fn joined(packets: &[Bytes188]) -> Vec<u8> {
    packets.concat()
}

pub(crate) fn pid_of(packet: &Bytes188) -> u16 {
    Packet::new(packet).header().pid()
}

/// A packet of the video PID with a payload and nothing else.
pub(crate) fn is_plain_video(packet: &Bytes188) -> bool {
    let header = Packet::new(packet).header();
    header.pid() == VIDEO
        && header.has_payload()
        && !header.has_adaptation_field()
        && !header.payload_unit_start()
}

/// What a stream of these packets has when nothing is wrong with it: counted by walking it.
pub(crate) fn sound(packets: &[Bytes188]) -> Counts {
    let field = |packet: &Bytes188| -> Option<(bool, bool)> {
        let field = Packet::new(packet).adaptation_field();
        field.map(|field: AdaptationField<'_>| (field.pcr().is_some(), field.random_access()))
    };
    Counts {
        bytes: packets.len() as u64 * 188,
        packets: packets.len() as u64,
        null_packets: packets.iter().filter(|packet| pid_of(packet) == pid::NULL).count() as u64,
        pcrs: packets.iter().filter_map(field).filter(|field| field.0).count() as u64,
        random_access_indicators: packets.iter().filter_map(field).filter(|field| field.1).count() as u64,
        ..Counts::default()
    }
}

/// Ten places, 0.35 s apart from 0.9 s on, each the first at or after its time that `wanted` says yes to.
pub(crate) fn ten_places(packets: &[Bytes188], wanted: impl Fn(usize) -> bool) -> Vec<usize> {
    let per_second = (BIT_RATE / 1504) as usize;
    let places: Vec<usize> = (0..10)
        .map(|number| per_second * 9 / 10 + number * per_second * 7 / 20)
        .map(|from| (from..packets.len()).find(|&place| wanted(place)).expect("a place"))
        .collect();
    assert!(places.windows(2).all(|pair| pair[0] + 400 < pair[1]), "{places:?}");
    places
}

/// Ten video packets with a payload and without a clock, each with the places of `count` null packets that come
/// before the next packet of the PID.
pub(crate) fn before_null_packets(packets: &[Bytes188], count: usize) -> Vec<(usize, Vec<usize>)> {
    let nulls = |place: usize| -> Vec<usize> {
        let end = (place + 1..packets.len()).find(|&next| pid_of(&packets[next]) == VIDEO);
        let between = place + 1..end.unwrap_or(packets.len());
        between.filter(|&place| packets[place] == NULL_PACKET).take(count).collect()
    };
    let places = ten_places(packets, |place| {
        let packet = Packet::new(&packets[place]);
        packet.header().pid() == VIDEO
            && packet.header().has_payload()
            && packet.adaptation_field().is_none_or(|field| field.pcr().is_none() && !field.random_access())
            && nulls(place).len() == count
    });
    places.into_iter().map(|place| (place, nulls(place))).collect()
}

/// Adds `by` to the counters of a PID from `place` on.
pub(crate) fn turn_counters(packets: &mut [Bytes188], place: usize, pid: u16, by: u8) {
    for packet in packets[place..].iter_mut().filter(|packet| pid_of(packet) == pid) {
        packet[3] = packet[3] & 0xF0 | (packet[3] + by) & 15;
    }
}
