//! Streams of another muxer at ten constant rates, as it writes them and as servers send them that take the null packets
//! out, whole and with losses.

use std::process::Command;
use std::sync::OnceLock;

use weir_ts::packet::{Packet, pid};

use crate::base::*;

/// kbit/s. Encoded at six tenths of it, so that intervals are full and empty alternately: at 1,500, once the null packets are
/// gone, nearly all are full, and of the others some lack a multiple of 16.
const RATES: [u32; 10] = [700, 1_000, 1_200, 1_500, 2_000, 3_100, 4_000, 6_000, 8_000, 20_000];

/// Each rate with 15 s of pictures and sound from ffmpeg, made once.
fn streams() -> &'static [(u32, Vec<Bytes188>)] {
    static STREAMS: OnceLock<Vec<(u32, Vec<Bytes188>)>> = OnceLock::new();
    STREAMS.get_or_init(|| RATES.map(|rate| (rate, muxed(rate))).into())
}

fn muxed(rate: u32) -> Vec<Bytes188> {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("stream.ts");
    let (video, muxed) = (format!("{}k", rate * 6 / 10), format!("{rate}k"));
    let status = Command::new("ffmpeg")
        .args(["-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25"])
        .args(["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=48000", "-t", "15", "-c:v", "mpeg2video"])
        .args([
            "-g", "12", "-b:v", &video, "-maxrate", &video, "-bufsize", &video, "-c:a", "aac", "-b:a", "96k",
        ])
        .args(["-muxrate", &muxed, "-f", "mpegts"])
        .arg(&file)
        .status()
        .expect("ffmpeg");
    assert!(status.success(), "{rate} kbit/s");
    std::fs::read(&file).expect("a stream").as_chunks().0.to_vec()
}

/// ffmpeg's PID of pictures, which has the clock.
const PICTURES: u16 = 0x0100;

fn is_null(packet: &Bytes188) -> bool {
    pid_of(packet) == pid::NULL
}

fn without_nulls(packets: &[Bytes188]) -> Vec<Bytes188> {
    packets.iter().filter(|packet| !is_null(packet)).copied().collect()
}

fn without(packets: &[Bytes188], is_gone: impl Fn(usize) -> bool) -> Vec<Bytes188> {
    packets.iter().enumerate().filter(|(place, _)| !is_gone(*place)).map(|(_, packet)| *packet).collect()
}

/// A packet of ffmpeg's first PID, pictures, with a payload and nothing else.
fn is_plain(packet: &Bytes188) -> bool {
    pid_of(packet) == PICTURES && Packet::new(packet).adaptation_field().is_none()
}

/// `packets` without `length` in a row at each of five places, from a packet of a picture on.
fn cut(packets: &[Bytes188], length: usize) -> Vec<Bytes188> {
    let begins =
        |part: usize| (packets.len() * part / 8..packets.len()).find(|&place| is_plain(&packets[place]));
    let begins: Vec<usize> = (2..7).filter_map(begins).collect();
    without(packets, |place| begins.iter().any(|begin| (*begin..begin + length).contains(&place)))
}

#[test]
fn an_intact_stream_has_lost_nothing_with_its_null_packets_or_without() {
    for (rate, packets) in streams() {
        for packets in [packets, &without_nulls(packets)] {
            let counts = analyse(&joined(packets)).counts;
            let wrong = (counts.gap_events, counts.lost_estimate, counts.pcr_accuracy_error);
            assert_eq!(wrong, (0, 0, 0), "{rate} kbit/s, {} null packets", counts.null_packets);
        }
    }
}

/// Bursts that the counters hide, of a rate that is known: the clock says how many.
#[test]
fn real_losses_at_a_constant_rate_are_estimated_within_a_fifth() {
    for (rate, packets) in streams() {
        for length in [32, 40, 100, 174] {
            let bytes = joined(&cut(packets, length));
            let (lost, estimate) = (5 * length as u64, analyse(&bytes).counts.lost_estimate);
            assert!(estimate.abs_diff(lost) * 5 <= lost, "{rate} kbit/s: {estimate} of 5 x {length}");
        }
    }
}

/// Without null packets no rate is constant, and the counters are what there is, unless a lot is gone.
#[test]
fn real_losses_without_null_packets_are_estimated_within_a_fifth() {
    for (rate, packets) in streams() {
        let packets = without_nulls(packets);
        let pictures: Vec<usize> = (0..packets.len()).filter(|&place| is_plain(&packets[place])).collect();
        // Five packets of pictures in a row, at ten places.
        let gone: Vec<usize> =
            (2..12).flat_map(|part| &pictures[pictures.len() * part / 12 - 20..][..5]).copied().collect();
        let packets = without(&packets, |place| gone.contains(&place));
        let counts = analyse(&joined(&packets)).counts;
        assert!((40..=60).contains(&counts.lost_estimate), "{rate} kbit/s: {counts:?}");
    }
}

/// Of a burst the counter hides each 16, and without null packets the clock shows the rest only if it is much of what came.
#[test]
fn bursts_without_null_packets_are_estimated_within_a_fifth_or_called_unknown() {
    for (rate, packets) in streams() {
        let packets = without_nulls(packets);
        let pictures: Vec<usize> = (0..packets.len()).filter(|&place| is_plain(&packets[place])).collect();
        for length in [17, 21, 40, 100, 310] {
            let burst = |part: usize| &pictures[pictures.len() * part / 12 - 320..][..length];
            let gone: Vec<usize> = (2..12).flat_map(burst).copied().collect();
            let counts = analyse(&joined(&without(&packets, |place| gone.contains(&place)))).counts;
            let (lost, estimate) = (gone.len() as u64, counts.lost_estimate);
            let known = estimate.abs_diff(lost) * 5 <= lost;
            assert!(known || counts.lost_unknown > 0, "{rate} kbit/s, {length}: {counts:?}");
            assert!(
                (counts.lost_packets..=lost * 6 / 5).contains(&estimate),
                "{rate} kbit/s, {length}: {counts:?}"
            );
        }
    }
}

/// Without 352 packets of the PID that has the clock, what it has between them without a payload, and two null packets: no
/// counter shows it. With how many are gone.
fn without_a_piece(packets: &[Bytes188], clock: u16) -> (Vec<Bytes188>, u64) {
    let has_payload = |place: &usize| Packet::new(&packets[*place]).header().has_payload();
    let half = packets.len() / 2..packets.len();
    let of_clock: Vec<usize> = half.filter(|&place| pid_of(&packets[place]) == clock).collect();
    let last = *of_clock.iter().filter(|place| has_payload(place)).nth(351).expect("352 packets");
    let nulls: Vec<usize> = (of_clock[0]..last).filter(|&place| is_null(&packets[place])).take(2).collect();
    let is_gone = |place: usize| nulls.contains(&place) || place <= last && of_clock.contains(&place);
    let left = without(packets, is_gone);
    let gone = (packets.len() - left.len()) as u64;
    (left, gone)
}

#[test]
fn a_cut_that_every_counter_hides_is_found_at_a_constant_rate() {
    let whole = streams()
        .iter()
        .filter(|stream| stream.0 > 2_000)
        .map(|(rate, packets)| (*rate, &packets[..], PICTURES));
    for (rate, packets, clock) in whole.chain([(8_000, clean(), VIDEO)]) {
        let (left, gone) = without_a_piece(packets, clock);
        let counts = analyse(&joined(&left)).counts;
        assert_eq!((counts.gap_events, counts.lost_packets), (0, 0), "{rate} kbit/s");
        assert!(
            gone >= 354 && counts.lost_estimate == gone,
            "{rate} kbit/s: {} of {gone}",
            counts.lost_estimate
        );
    }
}

/// A filter takes packets out in any number, and lets the clock through.
#[test]
fn what_a_filter_takes_out_beside_other_null_packets_is_not_lost() {
    for (rate, packets) in streams() {
        let counts = analyse(&joined(&without(packets, |place| {
            is_null(&packets[place]) && place % 1_000 < 60 && place % 2 == 0
        })));
        let counts = counts.counts;
        let wrong = (counts.gap_events, counts.lost_estimate, counts.pcr_accuracy_error);
        assert_eq!(wrong, (0, 0, 0), "{rate} kbit/s");
    }
}
