//! Servers that probe for bandwidth with packets of padding alone, and pictures that are sent in another order than they are
//! shown in: what is counted of either is what a decoder sees.

use crate::stage::{Server, Stage, counter, server_address};
use std::time::Duration;
use weir_metrics::Recorder;
use weir_metrics::common::{DRIFT, STALLS};
use weir_rtc::rtp::Header;
use weir_shard::Event;

/// A picture takes this long.
const PICTURE: Duration = Duration::from_millis(100);

impl Server {
    /// A packet of padding alone, as libwebrtc sends them: behind a picture, with its time stamp and no marker; or as others
    /// do, with the time stamp of a picture that never comes, and a marker.
    fn padding(&mut self, with_marker: bool) -> Vec<u8> {
        let payload_type = self.video_payload_type();
        let timestamp = if with_marker { self.timestamp - 4_500 } else { self.timestamp - 9_000 };
        let header =
            Header { marker: with_marker, payload_type, sequence_number: self.number, timestamp, ssrc: 7 };
        self.number = self.number.wrapping_add(1);
        let mut packet = Vec::new();
        header.append(&[], &mut packet).unwrap();
        packet[0] |= 0x20;
        packet.resize(packet.len() + 224, 0);
        *packet.last_mut().unwrap() = 224;
        self.keys.as_mut().unwrap().0.protect_rtp(&mut packet, 0).unwrap();
        packet
    }
}

impl Stage {
    /// Pictures of `packets` packets each in the order in which they are sent, and what comes behind each.
    fn pictures(&mut self, packets: usize, count: usize, padding: impl Fn(&mut Server) -> Vec<Vec<u8>>) {
        for _ in 0..count {
            let server = self.server.as_mut().unwrap();
            let mut datagrams = server.keyframe(packets);
            datagrams.extend(padding(server));
            for datagram in &datagrams {
                self.rig.tell_datagram(&mut *self.viewer, server_address(), datagram);
            }
            self.handle_timeout(PICTURE);
            self.rig.take_datagrams();
        }
    }

    fn ended(&mut self) -> Recorder {
        self.dispatch(Event::Stop);
        self.figures()
    }
}

fn named<const N: usize>(figures: &Recorder, names: [&str; N]) -> [u64; N] {
    names.map(|name| counter(figures, name))
}

const FRAMES: [&str; 5] = ["played", "frames", "rtc.frames_complete", "rtc.frames_broken", "timestamp_jumps"];
const LOSS: [&str; 4] = ["lost", "reordered", "duplicate", "rtc.freezes"];

#[test]
fn padding_behind_each_picture_is_no_picture_and_breaks_none() {
    // A witness, and one that reads headers.
    for client in [0, 5] {
        for with_marker in [false, true] {
            let mut stage = Stage::playing(client);
            stage.pictures(3, 30, |server| (0..4).map(|_| server.padding(with_marker)).collect());
            let figures = stage.ended();
            let what = format!("client {client}, marker {with_marker}");
            assert_eq!(named(&figures, FRAMES), [1, 30, 30, 0, 0], "{what}");
            assert_eq!(named(&figures, LOSS), [0; 4], "{what}");
            // All packets are units, and those of padding have no payload.
            assert_eq!(named(&figures, ["units", "media"]), [30 * 7, 30 * 3 * 188], "{what}");
            // Pictures of the source: none before the first was whole.
            assert_eq!(figures.counter(STALLS), 0, "{what}");
            assert_eq!(counter(&figures, "source_frames"), 29, "{what}");
            let drift = figures.signed(DRIFT);
            assert!((-1_000..=1_000).contains(&drift.value_at_quantile(1.0)), "{what}: {}", drift.max());
        }
    }
}

#[test]
fn a_picture_with_padding_that_is_lost_or_late_or_comes_twice_is_counted_exactly() {
    for client in [0, 5] {
        let mut stage = Stage::playing(client);
        stage.pictures(3, 10, |_| Vec::new());
        // The marker comes behind the padding, which comes twice.
        let server = stage.server.as_mut().unwrap();
        let mut datagrams = server.keyframe(3);
        let padding = server.padding(false);
        datagrams.extend([padding.clone(), padding]);
        datagrams.swap(2, 3);
        // Of the next one a packet of padding is lost.
        let server = stage.server.as_mut().unwrap();
        datagrams.extend(server.keyframe(3));
        server.padding(false);
        datagrams.push(server.padding(false));
        for datagram in &datagrams {
            stage.rig.tell_datagram(&mut *stage.viewer, server_address(), datagram);
        }
        stage.pictures(3, 10, |_| Vec::new());
        let figures = stage.ended();
        // Who reads headers does not know that what is missing was padding, and no beginning of the next one.
        let unproven = u64::from(client == 5);
        assert_eq!(named(&figures, FRAMES), [1, 22, 22 - unproven, unproven, 0], "client {client}");
        assert_eq!(counter(&figures, "rtc.frames_unproven"), unproven);
        assert_eq!(named(&figures, ["lost", "reordered", "duplicate"]), [1, 1, 1], "client {client}");
        // Who decrypts knows it as a replay as well.
        assert_eq!(counter(&figures, "rtc.replayed"), u64::from(client == 0));
    }
}

#[test]
fn a_sender_that_pads_its_pictures_is_not_taken_for_one_that_sends_padding_alone() {
    // Seen while the first keyframe is decrypted.
    let mut stage = Stage::playing(5);
    let padded = |server: &mut Server| {
        let payload_type = server.video_payload_type();
        let (sequence_number, timestamp) = (server.number, server.timestamp);
        let header = Header { marker: true, payload_type, sequence_number, timestamp, ssrc: 7 };
        (server.number, server.timestamp) = (sequence_number.wrapping_add(1), timestamp + 9_000);
        let mut packet = Vec::new();
        header.append(&[], &mut packet).unwrap();
        packet[0] |= 0x20;
        packet.extend([0x65, 0x88, 0x80, 0, 0, 0, 0, 5]);
        server.keys.as_mut().unwrap().0.protect_rtp(&mut packet, 0).unwrap();
        packet
    };
    for _ in 0..20 {
        let datagram = padded(stage.server.as_mut().unwrap());
        stage.rig.tell_datagram(&mut *stage.viewer, server_address(), &datagram);
        stage.handle_timeout(PICTURE);
    }
    let figures = stage.ended();
    assert_eq!(named(&figures, FRAMES), [1, 20, 20, 0, 0]);
}

#[test]
fn pictures_that_are_sent_before_their_turn_are_counted_by_their_time_stamps() {
    for client in [0, 5] {
        for group in [&[0_u32, 3, 1, 2, 6, 4, 5, 7][..], &[0, 4, 2, 1, 3, 7, 6, 5]] {
            let mut stage = Stage::playing(client);
            for at in 0..30 {
                for picture in group {
                    let server = stage.server.as_mut().unwrap();
                    server.timestamp = 90_000 + (at * group.len() as u32 + picture) * 9_000;
                    stage.pictures(2, 1, |_| Vec::new());
                }
            }
            let figures = stage.ended();
            let what = format!("client {client}, {group:?}");
            assert_eq!(named(&figures, FRAMES), [1, 240, 240, 0, 0], "{what}");
            assert_eq!(named(&figures, LOSS), [0; 4], "{what}");
            let source = counter(&figures, "source_frames");
            assert!((233..=242).contains(&source), "{what}: {source}");
            // Pictures come in time: how far out of order they are sent is no drift and no jitter of the way.
            let drift = figures.signed(DRIFT);
            let spread = drift.value_at_quantile(1.0) - drift.value_at_quantile(0.1);
            assert!(spread < 350_000, "{what}: {spread}");
            assert_eq!(figures.counter(STALLS), 0, "{what}");
        }
    }
}
