//! Any datagrams are told apart and counted; what the account says adds up, and its memory is bounded.

#![no_main]

use libfuzzer_sys::fuzz_target;
use weir_metrics::Moment;
use weir_rtc::account::{Hints, Kind, Track, TrackSettings};
use weir_rtc::rtp::{FrameMarking, Packet, transport_sequence_number};
use weir_rtc::{Datagram, feedback, nack};

/// A header out of four bytes, with a number and a time stamp near the last ones.
fn near(chunk: [u8; 4], number: &mut u16, timestamp: &mut u32) -> [u8; 12] {
    let step = i16::from(chunk[0] as i8) * if chunk[3] & 1 == 0 { 1 } else { 255 };
    *number = number.wrapping_add_signed(step);
    *timestamp = timestamp.wrapping_add_signed(i32::from(chunk[1] as i8 >> 4) * 3000);
    let mut header = [0x80, 98 | chunk[1] << 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, chunk[3] >> 6];
    header[2..4].copy_from_slice(&number.to_be_bytes());
    header[4..8].copy_from_slice(&timestamp.to_be_bytes());
    header
}

fn account(datagrams: impl Iterator<Item = (u64, Vec<u8>)>, kind: Kind) {
    let nack = nack::NackSettings { pending: 64, ..nack::NackSettings::default() };
    let mut track = Track::new(TrackSettings { kind, clock_rate: 90_000, nack });
    let mut recorder = feedback::Recorder::new();
    let (mut now, mut numbers, mut out) = (0, Vec::new(), Vec::new());
    for (wait, datagram) in datagrams {
        now += wait * 1_000_000;
        let moment = Moment::from_nanos(now);
        if Datagram::of(&datagram) != Datagram::Rtp {
            continue;
        }
        let Ok(packet) = Packet::parse(&datagram) else { continue };
        assert_eq!(packet.header_length() + packet.body().len(), datagram.len());
        let mut hints = Hints::default();
        for (identifier, element) in packet.extensions() {
            assert!(element.len() <= 255);
            let marking = FrameMarking::parse(element).filter(|_| identifier == 1);
            hints.start = hints.start.or(marking.map(|marking| marking.start));
            hints.keyframe = hints.keyframe.or(marking.map(|marking| marking.independent));
            if let Some(number) = transport_sequence_number(element) {
                recorder.arrive(moment, number);
            }
        }
        let _ = packet.payload();
        track.receive(moment, &packet, hints);
        track.nack().poll(moment, &mut numbers);
        assert!(numbers.len() <= 64);
        let loss = track.loss();
        assert!(loss.received <= loss.expected);
        assert_eq!(loss.gap_lengths.total(), loss.gaps);
        assert!(loss.gaps <= loss.lost() && (loss.gaps > 0) == (loss.lost() > 0));
        if wait > 100 {
            out.clear();
            recorder.append(moment, 1, 2, &mut out);
            let _ = track.report_block(moment);
        }
    }
    track.finish(Moment::from_nanos(now));
    let (counts, loss, frames) = (track.counts(), track.loss(), track.frames());
    assert_eq!(counts.packets, loss.received + counts.duplicate);
    // The last may have been on its way.
    assert!(frames.received - frames.complete - frames.broken <= 1);
}

fuzz_target!(|data: &[u8]| {
    // As it is, cut into datagrams of up to 40 bytes, and as headers that are right.
    let raw = data.chunks(40).map(|chunk| (u64::from(chunk[0]), chunk.to_vec()));
    account(raw, Kind::Audio);
    let (mut number, mut timestamp) = (65_500, u32::MAX - 9000);
    let made = data
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&chunk| (u64::from(chunk[2]), near(chunk, &mut number, &mut timestamp).to_vec()));
    account(made, Kind::Video);
});
