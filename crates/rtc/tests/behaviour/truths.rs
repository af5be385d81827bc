//! What a server does to a stream is what the account says of it, to the packet.

use std::time::Duration;

use weir_metrics::Moment;
use weir_rtc::account::{Arrival, Hints, Kind, Track, TrackSettings};
use weir_rtc::rtp::{Header, Packet};
use weir_rtc::{h264, nack, opus};

const FRAME: Duration = Duration::from_millis(40);
const TICKS: u32 = 3600;
const PER_FRAME: u64 = 4;
const BODY: usize = 1000;

/// A packet of a stream of 25 frames a second, four packets each, on its way.
#[derive(Clone, Copy, Debug)]
struct Sent {
    number: u64,
    at: Moment,
}

fn start() -> Moment {
    Moment::from_nanos(5_000_000_000)
}

fn sent(packets: u64) -> Vec<Sent> {
    let due = |number: u64| start() + FRAME * (number / PER_FRAME) as u32;
    (0..packets).map(|number| Sent { number, at: due(number) }).collect()
}

fn track(nack: nack::NackSettings) -> Track {
    Track::new(TrackSettings { kind: Kind::Video, clock_rate: h264::CLOCK_RATE, nack })
}

/// The datagram of a packet. The numbers and the time stamps wrap on the way.
fn datagram(number: u64, ssrc: u32) -> Vec<u8> {
    let header = Header {
        marker: number % PER_FRAME == PER_FRAME - 1,
        payload_type: 98,
        sequence_number: 65_000u16.wrapping_add(number as u16),
        timestamp: (u32::MAX - 40 * TICKS).wrapping_add((number / PER_FRAME) as u32 * TICKS),
        ssrc,
    };
    let mut bytes = Vec::new();
    header.append(&[], &mut bytes).unwrap();
    bytes.resize(bytes.len() + BODY, 0);
    bytes
}

fn receive(track: &mut Track, packet: Sent) -> Arrival {
    let bytes = datagram(packet.number, 7);
    track.receive(packet.at, &Packet::parse(&bytes).unwrap(), Hints::default())
}

fn account(packets: &[Sent]) -> Track {
    let mut track = track(nack::NackSettings::OFF);
    for packet in packets {
        receive(&mut track, *packet);
    }
    track.finish(packets.last().unwrap().at + FRAME);
    track
}

#[test]
fn fifty_one_lost_in_bursts_of_five_are_fifty_one_lost_in_eleven_gaps() {
    let mut packets = sent(10_000);
    let mut left = 51;
    packets.retain(|packet| {
        let lost = packet.number >= 97 && packet.number % 97 < 5 && left > 0;
        left -= u64::from(lost);
        !lost
    });
    let track = account(&packets);
    let loss = track.loss();
    assert_eq!((loss.lost(), loss.expected), (51, 10_000));
    let classes: Vec<_> = loss.gap_lengths.classes().filter(|(.., count)| *count > 0).collect();
    assert_eq!(classes, [(1, Some(1), 1), (5, Some(5), 10)]);
    assert_eq!(loss.gaps, 11);
    let counts = track.counts();
    assert_eq!((counts.reordered, counts.duplicate, counts.recovered), (0, 0, 0));
    assert_eq!((counts.packets, counts.bytes), (9_949, 9_949 * (BODY as u64 + 12)));
}

#[test]
fn ten_swaps_are_no_loss_and_ten_out_of_order() {
    let mut packets = sent(2_000);
    for swap in 1..=10 {
        let at = swap * 150;
        let (first, second) = (packets[at].number, packets[at + 1].number);
        (packets[at].number, packets[at + 1].number) = (second, first);
    }
    let track = account(&packets);
    assert_eq!((track.loss().lost(), track.loss().gaps), (0, 0));
    assert_eq!((track.counts().reordered, track.counts().duplicate), (10, 0));
    assert_eq!((track.frames().received, track.frames().complete), (500, 500));
}

#[test]
fn duplicates_are_neither_received_twice_nor_out_of_order() {
    let mut packets = sent(2_000);
    for at in (0..2_000).rev().step_by(100) {
        packets.insert(at + 1, packets[at]);
    }
    let track = account(&packets);
    assert_eq!((track.loss().lost(), track.loss().received), (0, 2_000));
    assert_eq!((track.counts().duplicate, track.counts().reordered), (20, 0));
    assert_eq!(track.counts().packets, 2_020);
}

#[test]
fn what_is_asked_for_and_comes_is_recovered_and_breaks_no_frame() {
    let mut track = track(nack::NackSettings::default());
    let mut asked = Vec::new();
    let mut requests = 0;
    for packet in sent(1_000) {
        track.nack().poll(packet.at, &mut asked);
        requests += asked.len();
        for number in &asked {
            // A round trip later; retransmission 501 is lost for good.
            let number = u64::from(number.wrapping_sub(65_000));
            if number != 501 {
                let arrival = receive(&mut track, Sent { number, at: packet.at });
                assert!(matches!(arrival, Arrival::Late { recovered: true, .. }), "{arrival:?}");
            }
        }
        if packet.number % 100 != 1 {
            receive(&mut track, packet);
        }
    }
    track.finish(start() + Duration::from_secs(60));
    assert_eq!((track.loss().lost(), track.loss().gaps), (1, 1));
    assert_eq!((track.counts().recovered, track.counts().reordered), (9, 0));
    assert_eq!((track.frames().received, track.frames().complete, track.frames().broken), (250, 249, 1));
    assert_eq!(requests, 9 + 10);
}

#[test]
fn retransmissions_in_a_stream_of_their_own_repair_once() {
    let mut track = track(nack::NackSettings::OFF);
    for packet in sent(100).into_iter().filter(|packet| packet.number != 50) {
        receive(&mut track, packet);
    }
    assert_eq!(track.loss().lost(), 1);
    let (bytes, now) = (datagram(50, 7), start() + Duration::from_secs(2));
    let lost = Packet::parse(&bytes).unwrap();
    let mut repair =
        || track.repair(now, lost.sequence_number(), lost.timestamp(), lost.marker(), Hints::default());
    assert!(repair().is_some());
    assert!(repair().is_none());
    assert_eq!(track.loss().lost(), 0);
    let counts = track.counts();
    assert_eq!((counts.recovered, counts.needless_retransmissions, counts.packets), (1, 1, 99));
    assert_eq!(track.frames().complete, 25);
}

#[test]
fn stalls_of_a_second_and_a_half_in_every_five_are_drift_and_freezes() {
    let mut packets = sent(25 * 4 * 20);
    for packet in &mut packets {
        // Held for the last 1.5 s of every 5, and then let go at once.
        let phase = (packet.at.since(start()).as_millis() as u64 + 20) % 5_000;
        if phase >= 3_500 {
            packet.at = packet.at + Duration::from_millis(5_000 - phase);
        }
    }
    let track = account(&packets);
    assert_eq!(track.drift().most_micros(), Some(1_500_000));
    assert_eq!(track.drift().least_micros(), Some(0));
    // From the last frame before the stall, 40 ms before it, to its end.
    assert_eq!(track.freezes().count(), 4);
    assert_eq!(track.freezes().longest(), Duration::from_millis(1_540));
    assert_eq!(track.freezes().total(), Duration::from_millis(4 * 1_540));
    assert_eq!(track.loss().lost(), 0);
}

#[test]
fn a_new_source_and_a_restart_are_counted_and_lose_nothing() {
    let mut track = track(nack::NackSettings::OFF);
    let mut numbers: Vec<(u64, u32)> = (0..100).map(|number| (number, 7)).collect();
    numbers.extend((40_000..40_100).map(|number| (number, 8)));
    numbers.extend((9_000..9_100).map(|number| (number, 8)));
    let mut restarts = Vec::new();
    for (at, (number, ssrc)) in numbers.into_iter().enumerate() {
        let bytes = datagram(number, ssrc);
        let now = start() + FRAME * (at as u64 / PER_FRAME) as u32;
        let arrival = track.receive(now, &Packet::parse(&bytes).unwrap(), Hints::default());
        if let Arrival::Restart { new_source } = arrival {
            restarts.push((at, new_source));
        }
    }
    assert_eq!(restarts, [(101, true), (201, false)]);
    assert_eq!((track.loss().expected, track.loss().lost()), (300, 0));
    let counts = track.counts();
    assert_eq!((counts.packets, counts.strays), (300, 0));
    assert_eq!((counts.restarts, counts.source_changes), (2, 1));
    track.finish(start() + FRAME * 75);
    assert_eq!((track.frames().received, track.frames().complete), (75, 75));
}

#[test]
fn packets_of_a_stranger_are_strays() {
    let mut track = track(nack::NackSettings::OFF);
    for packet in sent(1_000) {
        receive(&mut track, packet);
        if packet.number % 100 == 0 {
            let bytes = datagram(packet.number * 37, 99);
            let arrival = track.receive(packet.at, &Packet::parse(&bytes).unwrap(), Hints::default());
            assert_eq!(arrival, Arrival::Stray);
        }
    }
    assert_eq!((track.counts().strays, track.counts().packets), (10, 1_000));
    assert_eq!((track.loss().lost(), track.counts().restarts), (0, 0));
}

#[test]
fn an_outage_of_thousands_of_packets_is_loss_and_no_restart() {
    let mut packets = sent(20_000);
    packets.retain(|packet| !(5_000..15_000).contains(&packet.number));
    let track = account(&packets);
    assert_eq!((track.loss().lost(), track.loss().gaps), (10_000, 1));
    assert_eq!((track.counts().restarts, track.counts().strays), (0, 0));
    assert_eq!(track.drift().most_micros(), Some(0));
}

#[test]
fn receiver_reports_say_what_was_lost_since_the_last_one() {
    let mut track = track(nack::NackSettings::OFF);
    assert_eq!(track.report_block(start()), None);
    for packet in sent(1_000).into_iter().filter(|packet| packet.number % 4 != 2 || packet.number > 500) {
        receive(&mut track, packet);
        if packet.number == 499 {
            let block = track.report_block(packet.at).unwrap();
            assert_eq!((block.fraction_lost, block.cumulative_lost), (64, 125));
        }
    }
    let block = track.report_block(start()).unwrap();
    assert_eq!((block.fraction_lost, block.cumulative_lost), (0, 125));
    // 65,000 + 999 has wrapped once.
    assert_eq!(block.highest_sequence_number, 65_999);
    assert_eq!(block.last_sender_report, 0);
}

#[test]
fn sound_is_counted_frame_by_frame() {
    let settings =
        TrackSettings { kind: Kind::Audio, clock_rate: opus::CLOCK_RATE, nack: nack::NackSettings::OFF };
    let mut track = Track::new(settings);
    for packet in (0..500u32).filter(|packet| *packet != 100) {
        let header = Header {
            marker: packet == 0,
            payload_type: 110,
            sequence_number: packet as u16,
            timestamp: packet * 960,
            ssrc: 1,
        };
        let mut bytes = Vec::new();
        header.append(&[], &mut bytes).unwrap();
        bytes.extend([0xFC; 80]);
        let now = start() + Duration::from_millis(20) * packet;
        track.receive(now, &Packet::parse(&bytes).unwrap(), Hints::default());
    }
    track.finish(start() + Duration::from_secs(10));
    assert_eq!((track.frames().received, track.loss().lost()), (499, 1));
    assert_eq!(track.drift().most_micros(), Some(0));
    assert_eq!(track.jitter(), Duration::ZERO);
}

#[test]
fn keyframes_are_known_by_hints_only() {
    let mut blind = track(nack::NackSettings::OFF);
    let mut seeing = track(nack::NackSettings::OFF);
    for packet in sent(25 * 4 * 10) {
        receive(&mut blind, packet);
        let bytes = datagram(packet.number, 7);
        let keyframe = (packet.number / PER_FRAME).is_multiple_of(50);
        let hints =
            Hints { keyframe: Some(keyframe), start: Some(packet.number % PER_FRAME == 0), padding: false };
        seeing.receive(packet.at, &Packet::parse(&bytes).unwrap(), hints);
    }
    assert_eq!(blind.keyframes().count(), 0);
    assert_eq!(seeing.keyframes().count(), 5);
    assert_eq!(seeing.keyframes().longest_interval(), Some(Duration::from_secs(2)));
    assert_eq!(blind.loss(), seeing.loss());
    assert_eq!(blind.frames(), seeing.frames());
}

#[test]
fn a_track_needs_little_memory() {
    assert!(size_of::<Track>() < 1400, "{}", size_of::<Track>());
}
