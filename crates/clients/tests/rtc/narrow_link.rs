//! Viewers whose link is narrow: what its queue drops is not lost, and what the server is told is what such a link does.

use crate::stage::{Server, Stage, WHEP, counter, server_address};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_clients::RtcOptions;
use weir_clients::rtc::LinkOptions;
use weir_metrics::{Moment, Recorder};
use weir_rtc::Datagram;
use weir_rtc::rtcp::{Compound, Packet};
use weir_rtc::rtp::Header;
use weir_rtc::sdp::{Setup, extension};
use weir_shard::Event;

const RATE: u64 = 400_000;
const QUEUE: Duration = Duration::from_millis(200);
/// A picture takes this long.
const PICTURE: Duration = Duration::from_millis(50);

/// What a link of [`RATE`] and [`QUEUE`] does, computed apart.
#[derive(Default)]
struct Truth {
    free_at: Moment,
    /// By transport-wide number: when each packet has come, if it has.
    arrivals: BTreeMap<u16, Option<Moment>>,
    drops: Vec<Moment>,
}

impl Truth {
    fn packet(&mut self, now: Moment, bytes: usize, number: u16) {
        let begins = self.free_at.max(now);
        let passes = begins.since(now) <= QUEUE;
        if passes {
            self.free_at = begins + Duration::from_nanos(bytes as u64 * 8_000_000_000 / RATE);
        } else {
            self.drops.push(now);
        }
        self.arrivals.insert(number, passes.then_some(self.free_at));
    }
}

/// What a server was told.
#[derive(Default)]
struct Told {
    /// Ticks of 250 µs, modulo what the reports count to.
    arrivals: BTreeMap<u16, i64>,
    estimates: Vec<u64>,
    fractions: Vec<u8>,
    cumulative: i32,
    nacks: Vec<u16>,
}

const TICKS: i64 = 256 << 24;

fn ticks(moment: Moment) -> i64 {
    (moment.as_nanos() / 250_000) as i64 % TICKS
}

struct Watched {
    stage: Stage,
    truth: Truth,
    told: Told,
    /// The transport-wide number of the next packet.
    next: u16,
    /// What can be sent again.
    sent: BTreeMap<u16, Vec<u8>>,
}

impl Watched {
    fn new(client: u32, nack: bool) -> Self {
        let rate = format!("{RATE}bps").parse().unwrap();
        let link = Some(LinkOptions { rate, queue: QUEUE });
        let options = RtcOptions { link, nack, ..RtcOptions::default() };
        let (mut stage, said) = Stage::of(client, WHEP, &options);
        let offer = said.split_once("\r\n\r\n").unwrap().1;
        let (server, answer) = Server::answering(offer, stage.rig.now, Setup::Passive);
        stage.server = Some(server);
        stage.answer("201 Created", "Location: /session/1\r\n", &answer);
        stage.agree_on_keys();
        stage.rig.take_datagrams();
        let (truth, told) = (Truth::default(), Told::default());
        Self { stage, truth, told, next: 65_500, sent: BTreeMap::new() }
    }

    /// A picture of this many packets of a thousand bytes, of which some never come to the link.
    fn picture(&mut self, packets: usize, lost: &[usize]) {
        let server = self.stage.server.as_mut().unwrap();
        let (payload_type, element) =
            (server.video_payload_type(), server.extension(extension::TRANSPORT_CC));
        let timestamp = server.timestamp;
        server.timestamp += 90 * PICTURE.as_millis() as u32;
        for at in 0..packets {
            let server = self.stage.server.as_mut().unwrap();
            let (sequence_number, marker) = (server.number, at + 1 == packets);
            server.number = server.number.wrapping_add(1);
            let header = Header { marker, payload_type, sequence_number, timestamp, ssrc: 7 };
            let mut packet = Vec::new();
            header.append(&[(element, &self.next.to_be_bytes())], &mut packet).unwrap();
            let bits = if at == 0 { 0x80 } else { 0 } | if marker { 0x40 } else { 0 };
            packet.extend([0x7C, bits | 5, 0x88]);
            packet.resize(984, 1);
            server.keys.as_mut().unwrap().0.protect_rtp(&mut packet, 0).unwrap();
            assert_eq!(packet.len(), 1_000);
            self.sent.insert(sequence_number, packet.clone());
            let number = self.next;
            self.next = self.next.wrapping_add(1);
            if !lost.contains(&at) {
                self.truth.packet(self.stage.rig.now, packet.len(), number);
                self.stage.rig.tell_datagram(&mut *self.stage.viewer, server_address(), &packet);
            }
        }
    }

    fn pass(&mut self, span: Duration, repeats: bool) {
        for _ in 0..span.as_millis() / 10 {
            self.stage.handle_timeout(Duration::from_millis(10));
            for (_, mut bytes) in self.stage.rig.take_datagrams() {
                if Datagram::of(&bytes) == Datagram::Rtcp {
                    let heard = self.stage.server.as_mut().unwrap().heard.as_mut().unwrap();
                    self.told.hear(heard.open_rtcp(&mut bytes).unwrap());
                }
            }
            for number in std::mem::take(&mut self.told.nacks).into_iter().filter(|_| repeats) {
                let packet = self.sent[&number].clone();
                self.truth.packet(self.stage.rig.now, packet.len(), u16::MAX);
                self.stage.rig.tell_datagram(&mut *self.stage.viewer, server_address(), &packet);
            }
        }
    }

    fn ended(&mut self) -> Recorder {
        self.stage.dispatch(Event::Stop);
        self.stage.figures()
    }
}

impl Told {
    fn hear(&mut self, compound: &[u8]) {
        for packet in Compound::new(compound) {
            match packet.unwrap() {
                Packet::TransportFeedback(feedback) => {
                    for status in feedback.statuses() {
                        if let Some(ticks) = status.ticks {
                            let at = (feedback.reference_ticks + ticks).rem_euclid(TICKS);
                            let before = self.arrivals.insert(status.sequence_number, at);
                            assert!(before.is_none_or(|before| before == at));
                        }
                    }
                }
                Packet::Bitrate(estimate) => self.estimates.push(estimate.bits_per_second),
                Packet::ReceiverReport(report) => {
                    for block in report.blocks {
                        self.fractions.push(block.fraction_lost);
                        self.cumulative = block.cumulative_lost;
                    }
                }
                Packet::Nack(nack) => self.nacks.extend(nack.sequence_numbers()),
                _ => {}
            }
        }
    }
}

#[test]
fn drops_and_delays_and_what_the_server_is_told_are_those_of_the_link_and_nothing_is_lost() {
    // A witness, and one that reads headers once it plays.
    for client in [0, 5] {
        let mut watched = Watched::new(client, false);
        // Twice as much as the link takes, and then two fifths of it.
        for _ in 0..200 {
            watched.picture(5, &[]);
            watched.pass(PICTURE, false);
        }
        let fraction = *watched.told.fractions.last().unwrap();
        for _ in 0..200 {
            watched.picture(1, &[]);
            watched.pass(PICTURE, false);
        }
        watched.pass(QUEUE, false);
        let figures = watched.ended();
        let Watched { truth, told, .. } = watched;
        let count = |name| counter(&figures, name);
        let dropped = truth.drops.len() as u64;
        let passed = truth.arrivals.len() as u64 - dropped;
        assert!((480..=500).contains(&dropped), "{dropped}");
        assert_eq!(
            [count("link.dropped"), count("units"), count("played")],
            [dropped, passed, 1],
            "client {client}"
        );
        assert_eq!(
            ["lost", "rtc.gaps", "reordered", "duplicate", "rtc.nacks"].map(count),
            [0; 5],
            "client {client}"
        );
        assert!(count("rtc.frames_broken") > 100);
        // Transport-wide feedback has each arrival to the tick, and nothing that was dropped.
        let arrived = truth.arrivals.iter().filter_map(|(number, at)| Some((*number, ticks((*at)?))));
        assert_eq!(told.arrivals, arrived.collect());
        // Receiver reports have as many, and the estimate is 0.85 of what the link takes.
        assert_eq!(told.cumulative as u64, dropped);
        assert!((115..=145).contains(&fraction), "{fraction} of 256");
        let estimates = &told.estimates;
        assert!(estimates[2..9].iter().all(|it| it.abs_diff(340_000) < 4_000), "{estimates:?}");
        assert!(estimates[10..].iter().all(|it| (200_000..RATE).contains(it)), "{estimates:?}");
        // From the first drop to the last.
        assert_eq!(count("link.overloads"), 1);
        let span = truth.drops.last().unwrap().since(truth.drops[0]).as_micros() as u64;
        let spread = |name: &str| {
            let position = weir_clients::rtc::SCHEMA.position(name).unwrap();
            figures.spread(weir_metrics::Spread(position as u16)).clone()
        };
        let took = spread("link.adapt_time");
        assert_eq!(took.len(), 1);
        assert!(took.max().abs_diff(span) <= span / 500, "{} of {span}", took.max());
        let kept = spread("link.adapted_bytes_per_second");
        let (seconds, median) = (kept.len(), kept.value_at_quantile(0.5));
        assert!(seconds >= 8 && median.abs_diff(20_000) <= 1_100, "{median} in {seconds} seconds");
        let delays = spread("link.delay");
        assert_eq!(delays.len(), passed);
        assert!((19_900..=20_100).contains(&delays.min()) && (200_000..=221_000).contains(&delays.max()));
    }
}

#[test]
fn what_was_lost_before_the_link_is_lost_and_only_that() {
    for client in [0, 5] {
        let mut watched = Watched::new(client, false);
        for picture in 0..200 {
            watched.picture(5, if picture % 10 == 9 { &[1, 2] } else { &[] });
            watched.pass(PICTURE, false);
        }
        let figures = watched.ended();
        let count = |name| counter(&figures, name);
        assert_eq!((count("lost"), count("rtc.gaps")), (40, 20), "client {client}");
        assert_eq!(count("link.dropped"), watched.truth.drops.len() as u64);
    }
}

#[test]
fn a_first_keyframe_is_whole_with_what_the_link_dropped_and_comes_again() {
    for client in [0, 5] {
        let mut watched = Watched::new(client, true);
        // Thirty packets at once, of which eleven find room.
        watched.picture(30, &[]);
        assert_eq!(watched.truth.drops.len(), 19);
        for _ in 0..60 {
            watched.pass(PICTURE, true);
            watched.picture(1, &[]);
        }
        let figures = watched.ended();
        let count = |name| counter(&figures, name);
        assert_eq!(["played", "lost", "duplicate"].map(count), [1, 0, 0], "client {client}");
        assert_eq!(count("link.dropped"), watched.truth.drops.len() as u64);
        assert!(count("rtc.recovered") >= 19 && count("rtc.frames_broken") == 0, "client {client}");
    }
}

#[test]
fn a_viewer_to_whom_no_keyframe_comes_whole_is_told_what_its_link_has_dropped() {
    let mut watched = Watched::new(0, false);
    for _ in 0..100 {
        watched.picture(30, &[]);
        watched.pass(PICTURE, false);
    }
    let (failure, words) = watched.stage.failure();
    assert_eq!(failure, weir_metrics::Failure::NoMedia);
    assert!(words.contains("link of 400 kbit/s with a queue of 200 ms, which dropped"), "{words}");
}
