//! One track of a viewer: the account of its packets, and its frames.

use super::figures::{
    BROKEN_FRAMES, GAPS, JITTER, MALFORMED, OTHER_FRAMES, OTHER_PACKETS, PACKETS, RECEIVER_REPORTS, RESTARTS,
    SENDER_REPORTS, STRAYS,
};
use crate::client_state::ClientPhase;
use crate::flv_viewer::{FlvBody, FlvViewer};
use crate::shard_recorder::ShardRecorder;
use std::time::Duration;
use weir_metrics::common::{DUPLICATE, LOST, NUMBERED, REORDERED};
use weir_metrics::{Moment, Recorder};
use weir_rtc::VideoCodec;
use weir_rtc::account::{Arrival, Hints, Kind, Track, TrackSettings};
use weir_rtc::nack;
use weir_rtc::reorder::{Limits, Reorder, Unit};
use weir_rtc::rtcp::{self, Compound};
use weir_rtc::rtp::Packet;
use weir_rtc::sdp::Format;
use weir_rtmp::client::HEAD_LEN;
use weir_rtmp::message;
use weir_rtsp::{MediaKind, Payload, Tag, TagReader, append_frame_header};

/// The longest picture that is put together for a decoder: larger than any of H.264 up to level 5.2 (ITU-T H.264 table A-1, MinCR).
const LONGEST_PICTURE: usize = 8 * 1024 * 1024;

/// How long a packet may be missing that comes late and is not lost.
const SETTLE: Duration = Duration::from_secs(1);

/// How long a datagram waits for one that it may have overtaken. What is behind a lost one is late by that.
const REORDER_TIMEOUT: Duration = Duration::from_millis(100);

/// Formats that accompany sound and pictures: their packets are no frames (RFC 3389, RFC 4733, RFC 2198, RFC 4588, RFC 5109,
/// RFC 8627).
const COMPANIONS: [&str; 6] = ["CN", "telephone-event", "red", "rtx", "ulpfec", "flexfec"];

/// The type of an RTCP packet that says goodbye (RFC 3550 section 6.6).
const GOODBYE: u8 = 203;

/// What a viewer has of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The pictures that it shows.
    Pictures,
    /// The sound that it plays.
    Sound,
    /// What is counted only.
    Beside,
}

/// A track.
pub(super) struct TrackReceiver {
    role: Role,
    /// The formats that its packets may have, which share one sequence of numbers.
    formats: Vec<Format>,
    /// The one whose payloads are frames: that of the first packet which is not of a companion.
    played: Option<u8>,
    is_decoded: bool,
    /// The channels, or the server's ports, of RTP and RTCP.
    pub(super) route: Option<(u16, u16)>,
    /// The source that its packets are to have, if the server has said so.
    pub(super) announced: Option<u32>,
    account: Track,
    /// What makes frames of its payloads; none of what is counted only.
    tags: Option<Box<TagReader>>,
    /// What puts datagrams back into their order; interleaved packets have theirs.
    reorder: Option<Box<Reorder>>,
    booked: Totals,
    /// The fewest missing packets and gaps since they were looked at last, and in the second before that; when to look again.
    fewest: (u64, u64),
    settled: (u64, u64),
    settle_at: Option<Moment>,
    /// The server has said goodbye.
    pub(super) has_ended: bool,
}

/// What of a track's account goes into counters.
#[derive(Clone, Copy, Debug, Default)]
struct Totals {
    packets: u64,
    lost: u64,
    gaps: u64,
    reordered: u64,
    duplicate: u64,
    strays: u64,
    restarts: u64,
}

impl TrackReceiver {
    /// A track of these formats, at least one. Of a viewer that is decoded, all of each picture is kept.
    pub(super) fn new(role: Role, formats: &[Format], is_decoded: bool) -> Self {
        let kind = if role == Role::Sound { Kind::Audio } else { Kind::Video };
        let settings = TrackSettings {
            kind,
            clock_rate: formats.first().map_or(1, |it| it.clock_rate),
            nack: nack::NackSettings::OFF,
        };
        Self {
            role,
            route: None,
            announced: None,
            account: Track::new(settings),
            formats: formats.to_vec(),
            played: None,
            is_decoded,
            tags: None,
            reorder: None,
            booked: Totals::default(),
            fewest: (0, 0),
            settled: (0, 0),
            settle_at: None,
            has_ended: false,
        }
    }

    /// Chooses the format of a packet to be played, unless one is. Whether it is what is played.
    fn plays(&mut self, payload_type: u8) -> bool {
        if self.played.is_none()
            && let Some(format) = self.formats.iter().find(|format| format.payload_type == payload_type)
            && !COMPANIONS.iter().any(|name| format.is(name))
        {
            self.played = Some(payload_type);
            let kind = match self.role {
                Role::Pictures => Some(MediaKind::Video),
                Role::Sound => Some(MediaKind::Audio),
                Role::Beside => None,
            };
            let kept = if self.is_decoded { LONGEST_PICTURE } else { HEAD_LEN };
            self.tags = kind.map(|kind| Box::new(TagReader::new(kind, format, kept)));
        }
        self.played == Some(payload_type)
    }

    /// Its packets are datagrams. Those of several formats share one sequence, of which not all are played: their order stays.
    pub(super) fn expect_datagrams(&mut self) {
        if self.formats.len() == 1 {
            let limits = Limits { patience: REORDER_TIMEOUT, ..Limits::default() };
            self.reorder = Some(Box::new(Reorder::new(limits)));
        }
    }

    pub(super) fn role(&self) -> Role {
        self.role
    }

    /// The source of its packets, or the one that was announced as long as none has come.
    pub(super) fn source(&self) -> Option<u32> {
        self.account.ssrc().or(self.announced)
    }

    /// Whether packets of this type are of this track.
    pub(super) fn has(&self, payload_type: u8) -> bool {
        self.formats.iter().any(|format| format.payload_type == payload_type)
    }

    /// An RTP packet came, this long after the first of the stream.
    #[inline]
    pub(super) fn rtp(
        &mut self,
        bytes: &[u8],
        since: Duration,
        flv: &mut FlvViewer,
        now: Moment,
        shard: &mut ShardRecorder,
    ) {
        let Ok(packet) = Packet::parse(bytes) else {
            return shard.of(flv.state.planned()).count(MALFORMED, 1);
        };
        if !self.has(packet.payload_type()) {
            return shard.of(flv.state.planned()).count(STRAYS, 1);
        }
        let Some(payload) = packet.payload() else {
            return shard.of(flv.state.planned()).count(MALFORMED, 1);
        };
        let payload_type = packet.payload_type();
        let format = self.formats.iter().find(|format| format.payload_type == payload_type);
        let codec = format.filter(|_| self.role == Role::Pictures).and_then(VideoCodec::of);
        let hints = codec.map_or_else(Hints::default, |codec| codec.hints(payload));
        self.has_ended = false;
        let number = match self.account.receive(now, &packet, hints) {
            Arrival::Ahead { number, .. } => number,
            Arrival::Late { number, .. } => {
                self.note_missing();
                number
            }
            Arrival::Duplicate | Arrival::Stray => return,
            Arrival::Restart { .. } => {
                self.release_all(since, flv, now, shard);
                return self.tags.iter_mut().for_each(|tags| tags.restart());
            }
        };
        // Comfort noise, keys and repairs have numbers of the same sequence.
        let is_played = self.plays(payload_type);
        let Some(tags) = self.tags.as_mut().filter(|_| is_played) else {
            return shard.of(flv.state.planned()).count(OTHER_PACKETS, 1);
        };
        let unit = Unit { number, timestamp: packet.timestamp(), marker: packet.marker(), payload };
        match &mut self.reorder {
            Some(reorder) => reorder.push(now, unit, |unit| read(tags, &unit, since, flv, now, shard)),
            None => read(tags, &unit, since, flv, now, shard),
        }
    }

    /// When packets have waited long enough for others.
    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        self.reorder.as_ref()?.due()
    }

    /// Packets that have waited long enough are read, this long after the first of the stream.
    pub(super) fn handle_timeout(
        &mut self,
        since: Duration,
        flv: &mut FlvViewer,
        now: Moment,
        shard: &mut ShardRecorder,
    ) {
        if let (Some(reorder), Some(tags)) = (&mut self.reorder, &mut self.tags) {
            reorder.handle_timeout(now, |unit| read(tags, &unit, since, flv, now, shard));
        }
    }

    /// No packet waits for others any more.
    pub(super) fn release_all(
        &mut self,
        since: Duration,
        flv: &mut FlvViewer,
        now: Moment,
        shard: &mut ShardRecorder,
    ) {
        if let (Some(reorder), Some(tags)) = (&mut self.reorder, &mut self.tags) {
            reorder.restart(|unit| read(tags, &unit, since, flv, now, shard));
        }
    }

    /// A compound RTCP packet came.
    pub(super) fn rtcp(&mut self, now: Moment, bytes: &[u8], recorder: &mut Recorder) {
        for packet in Compound::new(bytes) {
            match packet {
                Ok(rtcp::Packet::SenderReport(report)) => {
                    recorder.count(SENDER_REPORTS, 1);
                    self.account.sender_report(now, report.sender, report.figures);
                }
                Ok(rtcp::Packet::Other { kind: GOODBYE, .. }) => self.has_ended = true,
                Ok(_) => {}
                Err(_) => return recorder.count(MALFORMED, 1),
            }
        }
    }

    /// Appends a report on what came, framed for its channel if it has one; whether there is any.
    pub(super) fn report(&mut self, now: Moment, ssrc: u32, is_framed: bool, out: &mut Vec<u8>) -> bool {
        let Some(block) = self.account.report_block(now) else { return false };
        let mut report = Vec::new();
        rtcp::append_receiver_report(ssrc, &[block], &mut report);
        rtcp::append_canonical_name(ssrc, "weir", &mut report);
        if is_framed {
            let channel = self.route.map_or(1, |route| route.1) as u8;
            append_frame_header(channel, report.len() as u16, out);
        }
        out.append(&mut report);
        true
    }

    /// Jitter of its packets so far.
    pub(super) fn record_jitter(&self, recorder: &mut Recorder) {
        if self.account.ssrc().is_some() {
            recorder.record(JITTER, self.account.jitter().as_micros() as u64);
        }
    }

    pub(super) fn count_report(recorder: &mut Recorder) {
        recorder.count(RECEIVER_REPORTS, 1);
    }

    fn missing(&self) -> (u64, u64) {
        let loss = self.account.loss();
        (loss.lost(), loss.gaps)
    }

    /// A packet that was missing has come: notes how few are missing now. Fewer than are booked as lost do not matter.
    fn note_missing(&mut self) {
        if self.fewest.0 > self.booked.lost || self.fewest.1 > self.booked.gaps {
            let now = self.missing();
            self.fewest = (self.fewest.0.min(now.0), self.fewest.1.min(now.1));
        }
    }

    /// Looks at what is missing: as many as were at every moment since it was looked at before are lost. Where packets overtake each
    /// other all the time, one may be on its way at each look.
    fn settle(&mut self) {
        self.note_missing();
        let now = self.missing();
        self.settled = std::mem::replace(&mut self.fewest, now);
    }

    /// What is missing at the end does not come any more.
    pub(super) fn settle_all(&mut self) {
        self.settled = self.missing();
        self.settle_at = None;
    }

    /// Records what has come since the last call, and as lost what has been missing for a second.
    pub(super) fn book(&mut self, now: Moment, recorder: &mut Recorder) {
        if self.account.ssrc().is_some() && *self.settle_at.get_or_insert(now + SETTLE) <= now {
            self.settle();
            self.settle_at = Some(now + SETTLE);
        }
        let (counts, (lost, gaps)) = (self.account.counts(), self.settled);
        let now = Totals {
            packets: counts.packets,
            // What came late is not lost.
            lost: lost.max(self.booked.lost),
            gaps: gaps.max(self.booked.gaps),
            reordered: counts.reordered,
            duplicate: counts.duplicate,
            strays: counts.strays,
            restarts: counts.restarts,
        };
        let before = std::mem::replace(&mut self.booked, now);
        recorder.count(PACKETS, now.packets - before.packets);
        recorder.count(NUMBERED, now.packets - before.packets);
        if (now.lost, now.reordered, now.duplicate, now.strays, now.restarts)
            != (before.lost, before.reordered, before.duplicate, before.strays, before.restarts)
        {
            recorder.count(LOST, now.lost - before.lost);
            recorder.count(GAPS, now.gaps - before.gaps);
            recorder.count(REORDERED, now.reordered - before.reordered);
            recorder.count(DUPLICATE, now.duplicate - before.duplicate);
            recorder.count(STRAYS, now.strays - before.strays);
            recorder.count(RESTARTS, now.restarts - before.restarts);
        }
    }
}

/// Reads a packet that is played: its frames go to the viewer.
#[inline]
fn read(
    tags: &mut TagReader,
    unit: &Unit<'_>,
    since: Duration,
    flv: &mut FlvViewer,
    now: Moment,
    shard: &mut ShardRecorder,
) {
    let planned = flv.state.planned();
    let is_opaque = tags.is_opaque();
    let Unit { number, timestamp, marker, payload: bytes } = *unit;
    let packet = Payload { number, timestamp, marker, bytes, since };
    let is_read = tags.push(&packet, &mut |tag: &Tag<'_>| {
        shard.of(planned).count(OTHER_FRAMES, u64::from(is_opaque));
        if tag.is_broken {
            shard.of(planned).count(BROKEN_FRAMES, 1);
            if flv.state.phase() < ClientPhase::Playing {
                return;
            }
        }
        let kind = match tag.kind {
            MediaKind::Audio => message::MediaKind::Audio,
            _ => message::MediaKind::Video,
        };
        // A broken picture may have come up to its last packets: a decoder is not given it as if it were whole.
        let is_cut = tag.is_broken && tag.head.len() == tag.length;
        let head = &tag.head[..tag.head.len() - usize::from(is_cut)];
        let body = FlvBody { kind, timestamp: tag.timestamp, length: tag.length as u32, head };
        flv.take(&body, now, shard);
    });
    shard.of(planned).count(MALFORMED, u64::from(!is_read));
}

#[cfg(test)]
mod tests {
    use super::super::SCHEMA;
    use super::super::play::FIGURES;
    use super::*;
    use crate::client_state::Timeouts;
    use crate::host_clock::HostClock;
    use crate::playback_model::Reading;
    use crate::playout::Playout;
    use crate::shard_recorder::{PlannedStart, Turn};
    use std::sync::Arc;
    use weir_rtc::rtp::Header;

    const SECOND: Duration = Duration::from_secs(1);

    /// A track of G.711 with comfort noise, and what is booked of it.
    struct Sound {
        track: TrackReceiver,
        flv: FlvViewer,
        shard: ShardRecorder,
        began: Moment,
    }

    impl Sound {
        fn new() -> Self {
            let mut shard = ShardRecorder::new([SCHEMA]);
            let began = Moment::from_nanos(7_000_000_000);
            let planned = PlannedStart { client: 0, workload: 0, cell: 0, at: began, turn: Turn::default() };
            let clock = Arc::new(HostClock::read());
            let playing = (Timeouts::all(10 * SECOND), Playout::new(SECOND, SECOND), clock);
            let flv = FlvViewer::new(planned, playing, &FIGURES, Reading::Witness, began, &mut shard);
            let format = |payload_type, name: &str| Format {
                payload_type,
                name: name.to_owned(),
                clock_rate: 8_000,
                ..Format::default()
            };
            let track = TrackReceiver::new(Role::Sound, &[format(0, "PCMU"), format(13, "CN")], false);
            Self { track, flv, shard, began }
        }

        fn packet(&mut self, number: u16, payload_type: u8, after: Duration) {
            let timestamp = u32::from(number) * 160;
            let header = Header { marker: false, payload_type, sequence_number: number, timestamp, ssrc: 9 };
            let mut bytes = Vec::new();
            header.append(&[], &mut bytes).unwrap();
            bytes.extend([0x55; 20]);
            let now = self.began + after;
            self.track.rtp(&bytes, after, &mut self.flv, now, &mut self.shard);
            self.track.book(now, self.shard.of(self.flv.state.planned()));
        }

        fn lost(&mut self) -> u64 {
            self.shard.of(self.flv.state.planned()).counter(LOST)
        }
    }

    #[test]
    fn comfort_noise_has_numbers_of_the_same_sequence_and_is_no_sound() {
        let mut sound = Sound::new();
        for (number, payload_type) in [(1, 13), (2, 0), (3, 13), (4, 13), (5, 0)] {
            sound.packet(number, payload_type, Duration::from_millis(20) * number.into());
        }
        sound.track.settle_all();
        sound.track.book(sound.began + SECOND, sound.shard.of(sound.flv.state.planned()));
        assert_eq!((sound.lost(), sound.flv.came()), (0, 2));
        assert_eq!(sound.shard.of(sound.flv.state.planned()).counter(OTHER_PACKETS), 3);
    }

    #[test]
    fn what_comes_late_is_not_lost_and_what_does_not_come_is_after_a_second() {
        let mut sound = Sound::new();
        for (number, millis) in [(1, 0), (2, 20), (4, 60), (3, 90), (5, 1_200), (6, 2_400)] {
            sound.packet(number, 0, Duration::from_millis(millis));
        }
        assert_eq!(sound.lost(), 0);
        for (number, millis) in [(8, 2_500), (9, 3_500), (10, 4_600)] {
            sound.packet(number, 0, Duration::from_millis(millis));
        }
        assert_eq!(sound.lost(), 1);
    }

    #[test]
    fn where_packets_overtake_each_other_all_the_time_none_is_lost_by_that() {
        let mut sound = Sound::new();
        sound.packet(1, 0, Duration::ZERO);
        for pair in 1..300 {
            for (number, millis) in [(2 * pair + 1, 20), (2 * pair, 35)] {
                sound.packet(number, 0, Duration::from_millis(40 * u64::from(pair) + millis));
            }
        }
        assert_eq!(sound.lost(), 0);
        // And one that is.
        for number in 603..1_000 {
            sound.packet(number, 0, Duration::from_millis(12_000 + 20 * u64::from(number - 600)));
        }
        assert_eq!(sound.lost(), 3);
    }
}
