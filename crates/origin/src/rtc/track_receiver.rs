//! One track of a publisher by WebRTC: what is missing of it is asked for again, the rest is put into its order, taken
//! apart, and given its media time.

use super::encoding::SoundCodec;
use super::remux::{Remux, Take};
use std::time::Duration;
use weir_metrics::Moment;
use weir_rtc::account::{self, Arrival, Hints, Kind, Track};
use weir_rtc::picture::{self, PictureRequests};
use weir_rtc::reorder::{Limits, Reorder, Unit};
use weir_rtc::rtcp::{self, ReportBlock};
use weir_rtc::rtp::Packet;
use weir_rtc::sdp::{Agreement, Format, MediaKind};
use weir_rtc::{Assembler, VideoCodec, nack, rtx};
use weir_rtsp::picture_codec;

/// Bytes of one access unit.
const ACCESS_UNIT: usize = 8 << 20;
/// A publisher that has sent no keyframe for this long is asked for one. Browsers send none unasked, and a new viewer
/// begins at the last one.
const KEYFRAME: Duration = Duration::from_secs(4);
/// What is missing is asked for as long as what came behind it waits.
const NACK: nack::NackSettings = nack::NackSettings {
    tries: 10,
    patience: Duration::from_millis(5),
    interval: Duration::from_millis(50),
    pending: 512,
    lifetime: Duration::from_millis(500),
};

/// What a track has brought, in all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TrackTotals {
    pub(super) packets: u64,
    pub(super) lost: u64,
    pub(super) recovered: u64,
    pub(super) asked: u64,
    pub(super) keyframes_asked: u64,
    pub(super) frames: u64,
    pub(super) early: u64,
    pub(super) broken: u64,
}

/// How a track is coded.
#[derive(Clone, Copy, Debug)]
enum Codec {
    Pictures(VideoCodec),
    Sound(SoundCodec),
}

impl Codec {
    fn of(format: &Format) -> Self {
        match VideoCodec::of(format) {
            Some(codec) => Self::Pictures(codec),
            None => Self::Sound(SoundCodec::of(format).unwrap_or(SoundCodec::Opus)),
        }
    }

    /// Of pictures alone payloads are put together.
    fn assembler(self) -> Assembler {
        match self {
            Self::Pictures(codec) => Assembler::new(codec, ACCESS_UNIT),
            Self::Sound(_) => Assembler::new(VideoCodec::Vp8, 0),
        }
    }

    fn hints(self, payload: &[u8]) -> Hints {
        match self {
            Self::Pictures(codec) => codec.hints(payload),
            Self::Sound(_) => Hints::default(),
        }
    }
}

/// One track.
pub(super) struct TrackReceiver {
    kind: MediaKind,
    codec: Codec,
    payload_type: u8,
    repair: Option<u8>,
    track: Track,
    reorder: Reorder,
    assembler: Assembler,
    clock: MediaClock,
    requests: PictureRequests,
    asks: bool,
    keyframe_due: Moment,
    skipped: u64,
    frames: u64,
    early: u64,
    broken: u64,
    booked: TrackTotals,
}

impl TrackReceiver {
    pub(super) fn new(agreed: &Agreement, now: Moment) -> Self {
        let gives = |what: &str| agreed.format.feedback.iter().any(|this| this == what);
        let is_video = agreed.kind == MediaKind::Video;
        let mut requests = PictureRequests::new(picture::PictureRequestSettings::default());
        if is_video {
            requests.start(now);
        }
        let codec = Codec::of(&agreed.format);
        Self {
            kind: agreed.kind,
            codec,
            payload_type: agreed.format.payload_type,
            repair: agreed.repair,
            track: Track::new(account::TrackSettings {
                kind: if is_video { Kind::Video } else { Kind::Audio },
                clock_rate: agreed.format.clock_rate,
                nack: if gives("nack") { NACK } else { nack::NackSettings::OFF },
            }),
            reorder: Reorder::new(Limits { patience: NACK.lifetime, ..Limits::default() }),
            assembler: codec.assembler(),
            clock: MediaClock::new(agreed.format.clock_rate),
            requests,
            asks: is_video && gives("nack pli"),
            keyframe_due: now + KEYFRAME,
            skipped: 0,
            frames: 0,
            early: 0,
            broken: 0,
            booked: TrackTotals::default(),
        }
    }

    /// Whether packets of this payload type are the track's own, or repeat such.
    pub(super) fn has(&self, payload_type: u8) -> bool {
        self.payload_type == payload_type || self.repair == Some(payload_type)
    }

    /// The source of the packets, once there were any.
    pub(super) fn source(&self) -> Option<u32> {
        self.track.ssrc()
    }

    /// Takes a decrypted packet that came `at` microseconds after the publication began.
    pub(super) fn receive(
        &mut self,
        now: Moment,
        at: i64,
        packet: &Packet<'_>,
        remux: &mut Remux,
        take: Take<'_>,
    ) {
        let Some(mut payload) = packet.payload() else { return };
        let (timestamp, marker) = (packet.timestamp(), packet.marker());
        let codec = self.codec;
        let hints = |payload: &[u8]| codec.hints(payload);
        let number = if packet.payload_type() == self.payload_type {
            let hints = hints(payload);
            match self.track.receive(now, packet, hints) {
                Arrival::Ahead { number, .. } | Arrival::Late { number, .. } => number,
                Arrival::Duplicate | Arrival::Stray => return,
                Arrival::Restart { .. } => return self.restart(now, at, remux, take),
            }
        } else {
            let Some((original, repeated)) = rtx::parse(payload) else { return };
            let hints = hints(repeated);
            payload = repeated;
            match self.track.repair(now, original, timestamp, marker, hints) {
                Some(number) => number,
                None => return,
            }
        };
        let unit = Unit { number, timestamp, marker, payload };
        let (mut out, reorder) = Out::of(self, now, at, remux, take);
        reorder.push(now, unit, |unit| out.take(&unit));
        self.judge(now);
    }

    /// The moment of [`Self::poll_timeout`] passed: packets that were waited for are given up, and a keyframe is requested if it
    /// is time.
    pub(super) fn handle_timeout(&mut self, now: Moment, at: i64, remux: &mut Remux, take: Take<'_>) {
        if self.reorder.due().is_some_and(|due| due <= now) {
            let (mut out, reorder) = Out::of(self, now, at, remux, take);
            reorder.handle_timeout(now, |unit| out.take(&unit));
            self.judge(now);
        }
        if self.keyframe_due <= now {
            self.keyframe_due = now + KEYFRAME;
            self.wants_keyframe(now);
        }
    }

    /// Another sequence begins: what waits is taken, and the next packets have nothing to do with it.
    fn restart(&mut self, now: Moment, at: i64, remux: &mut Remux, take: Take<'_>) {
        let (mut out, reorder) = Out::of(self, now, at, remux, take);
        reorder.restart(|unit| out.take(&unit));
        self.assembler = self.codec.assembler();
        self.clock.restart();
        self.wants_keyframe(now);
    }

    /// Asks for a keyframe after what was not waited for any longer.
    fn judge(&mut self, now: Moment) {
        let skipped = self.reorder.skipped();
        if std::mem::replace(&mut self.skipped, skipped) < skipped {
            self.wants_keyframe(now);
        }
    }

    /// A keyframe is needed: by a viewer, or after a loss.
    pub(super) fn wants_keyframe(&mut self, now: Moment) {
        if self.kind == MediaKind::Video {
            self.requests.lost(now);
        }
    }

    /// Appends what is to be asked of the publisher now; `begin` puts a report before it.
    pub(super) fn append_requests(
        &mut self,
        now: Moment,
        us: u32,
        numbers: &mut Vec<u16>,
        out: &mut Vec<u8>,
        begin: impl Fn(&mut Vec<u8>),
    ) {
        let Some(media) = self.track.ssrc() else { return };
        if self.track.next_request().is_some_and(|due| due <= now) {
            self.track.nack().poll(now, numbers);
            if !numbers.is_empty() {
                begin(out);
                rtcp::append_nack(us, media, numbers, out);
            }
        }
        if self.asks && self.requests.poll(now) {
            begin(out);
            rtcp::append_picture_loss(us, media, out);
        }
    }

    /// A sender report came.
    pub(super) fn sender_report(&mut self, now: Moment, report: &rtcp::SenderReport<'_>) {
        self.track.sender_report(now, report.sender, report.figures);
    }

    /// What a receiver report says of it.
    pub(super) fn report_block(&mut self, now: Moment) -> Option<ReportBlock> {
        self.track.report_block(now)
    }

    /// When [`Self::handle_timeout`] and [`Self::append_requests`] are to be called.
    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        let is_video = self.kind == MediaKind::Video;
        let asks = (self.asks && self.track.ssrc().is_some()).then(|| self.requests.poll_timeout()).flatten();
        let keyframe = is_video.then_some(self.keyframe_due);
        [self.track.next_request(), self.reorder.due(), asks, keyframe].into_iter().flatten().min()
    }

    /// What it has brought before the last call, and until now.
    pub(super) fn book(&mut self) -> (TrackTotals, TrackTotals) {
        let (loss, counts) = (self.track.loss(), self.track.counts());
        let now = TrackTotals {
            packets: loss.received,
            lost: loss.lost(),
            recovered: counts.recovered,
            asked: self.track.nack().asked(),
            keyframes_asked: self.requests.sent(),
            frames: self.frames,
            early: self.early,
            broken: self.broken,
        };
        (std::mem::replace(&mut self.booked, now), now)
    }
}

/// Where packets go that are in their order.
struct Out<'a, 'b> {
    now: Moment,
    at: i64,
    codec: Codec,
    assembler: &'a mut Assembler,
    clock: &'a mut MediaClock,
    requests: &'a mut PictureRequests,
    keyframe_due: &'a mut Moment,
    frames: &'a mut u64,
    early: &'a mut u64,
    broken: &'a mut u64,
    remux: &'a mut Remux,
    take: Take<'b>,
}

impl<'a, 'b> Out<'a, 'b> {
    fn of(
        receiver: &'a mut TrackReceiver,
        now: Moment,
        at: i64,
        remux: &'a mut Remux,
        take: Take<'b>,
    ) -> (Self, &'a mut Reorder) {
        let out = Self {
            now,
            at,
            codec: receiver.codec,
            assembler: &mut receiver.assembler,
            clock: &mut receiver.clock,
            requests: &mut receiver.requests,
            keyframe_due: &mut receiver.keyframe_due,
            frames: &mut receiver.frames,
            early: &mut receiver.early,
            broken: &mut receiver.broken,
            remux,
            take,
        };
        (out, &mut receiver.reorder)
    }

    fn take(&mut self, unit: &Unit<'_>) {
        let codec = match self.codec {
            Codec::Pictures(codec) => picture_codec(codec),
            Codec::Sound(codec) => {
                let heard = self.clock.micros(unit.timestamp, self.at);
                let passed = self.remux.sound(codec, unit.payload, heard, self.take);
                *if passed { &mut *self.frames } else { &mut *self.early } += 1;
                return;
            }
        };
        let Self { assembler, clock, requests, remux, take, .. } = self;
        assembler.push(unit.number, unit.timestamp, unit.marker, unit.payload, |frame| {
            if !frame.complete || frame.bytes.len() < frame.length {
                *self.broken += 1;
                return requests.lost(self.now);
            }
            if frame.keyframe {
                requests.keyframe();
                *self.keyframe_due = self.now + KEYFRAME;
            }
            let shown = clock.micros(frame.timestamp, self.at);
            let passed = remux.picture(codec, frame.bytes, frame.keyframe, shown, take);
            *if passed { &mut *self.frames } else { &mut *self.early } += 1;
        });
    }
}

/// The latest media time: what comes to it has jumped, and days fit before it.
const MOST_MICROS: i64 = u32::MAX as i64 * 1_000;

/// RTP time stamps as media time: the first one is what the clock says when it comes.
#[derive(Clone, Copy, Debug)]
struct MediaClock {
    rate: u32,
    /// The last time stamp, its ticks since the first one, and the first one's media time in microseconds.
    last: Option<(u32, i64, i64)>,
}

impl MediaClock {
    fn new(rate: u32) -> Self {
        Self { rate: rate.max(1), last: None }
    }

    fn restart(&mut self) {
        self.last = None;
    }

    fn micros(&mut self, timestamp: u32, at: i64) -> i64 {
        let (before, ticks, first) = self.last.unwrap_or((timestamp, 0, at));
        let ticks = ticks.saturating_add(i64::from(timestamp.wrapping_sub(before) as i32));
        self.last = Some((timestamp, ticks, first));
        // However far a publisher jumps, nothing runs over.
        let micros = i128::from(first) + i128::from(ticks) * 1_000_000 / i128::from(self.rate);
        micros.clamp(0, i128::from(MOST_MICROS)) as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stream::Kind as PacketKind;
    use weir_rtc::h264::Packetiser;
    use weir_rtc::rtcp::Compound;
    use weir_rtc::rtp::Header;
    use weir_rtc::transport::DtlsRole;

    const REPAIRS: u8 = 97;

    fn agreed() -> Agreement {
        Agreement {
            kind: MediaKind::Video,
            identifier: "0".to_owned(),
            format: Format {
                payload_type: 96,
                name: "H264".to_owned(),
                clock_rate: 90_000,
                feedback: vec!["nack".to_owned(), "nack pli".to_owned()],
                ..Format::default()
            },
            others: Vec::new(),
            repair: Some(REPAIRS),
            extensions: Vec::new(),
            role: DtlsRole::Server,
        }
    }

    fn at(millis: u64) -> Moment {
        Moment::from_nanos(1_000_000_000 + millis * 1_000_000)
    }

    /// Packets of frames every 40 ms, each of several packets, every tenth a keyframe; numbers over their wrap.
    fn packets(frames: u32) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        for frame in 0..frames {
            let slice = [&[if frame % 10 == 0 { 0x65 } else { 0x41 }, 0x88][..], &[7; 90]].concat();
            let parameters: &[&[u8]] =
                if frame % 10 == 0 { &[&[0x67, 66, 0xE0, 31, 1], &[0x68, 2]] } else { &[] };
            let units = parameters.iter().copied().chain([&slice[..]]);
            Packetiser::new(30).packetise(units, |payload, marker| {
                let sequence_number = 65_530_u16.wrapping_add(packets.len() as u16);
                let header =
                    Header { marker, payload_type: 96, sequence_number, timestamp: frame * 3_600, ssrc: 5 };
                let mut bytes = Vec::new();
                header.append(&[], &mut bytes).unwrap();
                bytes.extend_from_slice(payload);
                packets.push(bytes);
            });
        }
        packets
    }

    /// A receiver and what it passes on.
    struct Bench {
        receiver: TrackReceiver,
        remux: Remux,
        /// Media times of pictures, in microseconds.
        shown: Vec<i64>,
    }

    impl Bench {
        fn new() -> Self {
            Self {
                receiver: TrackReceiver::new(&agreed(), at(0)),
                remux: Remux::default(),
                shown: Vec::new(),
            }
        }

        fn receive(&mut self, millis: u64, packet: &[u8]) {
            let packet = Packet::parse(packet).unwrap();
            let (shown, now) = (&mut self.shown, at(millis));
            self.receiver.receive(now, 0, &packet, &mut self.remux, &mut |packet, _| {
                shown.extend((packet.kind == PacketKind::Video).then_some(packet.timestamp));
            });
        }

        fn handle_timeout(&mut self, millis: u64) {
            let shown = &mut self.shown;
            self.receiver.handle_timeout(at(millis), 0, &mut self.remux, &mut |packet, _| {
                shown.extend((packet.kind == PacketKind::Video).then_some(packet.timestamp));
            });
        }

        /// What is asked for: numbers, and whether a keyframe.
        fn asked(&mut self, millis: u64) -> (Vec<u16>, bool) {
            let mut out = Vec::new();
            self.receiver.append_requests(at(millis), 1, &mut Vec::new(), &mut out, |_| {});
            let (mut numbers, mut keyframe) = (Vec::new(), false);
            for packet in Compound::new(&out) {
                match packet.unwrap() {
                    rtcp::Packet::Nack(nack) => numbers.extend(nack.sequence_numbers()),
                    rtcp::Packet::PictureLoss { media: 5, .. } => keyframe = true,
                    other => panic!("{other:?}"),
                }
            }
            (numbers, keyframe)
        }
    }

    #[test]
    fn what_is_missing_is_asked_for_and_nothing_is_lost_when_it_comes() {
        for in_a_stream_of_its_own in [false, true] {
            let (mut bench, packets) = (Bench::new(), packets(5));
            let missing = 9;
            for (number, packet) in packets.iter().enumerate().filter(|(number, _)| *number != missing) {
                bench.receive(number as u64, packet);
            }
            assert_eq!(bench.shown.len(), 2, "what is behind the gap waits");
            assert_eq!(bench.asked(40), (vec![3], false));
            let mut again = packets[missing].clone();
            if in_a_stream_of_its_own {
                again[1] = again[1] & 0x80 | REPAIRS;
                again.splice(12..12, 3_u16.to_be_bytes());
            }
            bench.receive(41, &again);
            assert_eq!(bench.shown, [0, 40_000, 80_000, 120_000, 160_000]);
            assert_eq!(bench.asked(100), (vec![], false));
            let (_, brought) = bench.receiver.book();
            let all = packets.len() as u64;
            let expected =
                TrackTotals { packets: all, recovered: 1, asked: 1, frames: 5, ..TrackTotals::default() };
            assert_eq!(brought, expected);
        }
    }

    #[test]
    fn what_never_comes_costs_its_frame_and_a_keyframe_is_asked_for() {
        let (mut bench, packets) = (Bench::new(), packets(5));
        for (number, packet) in packets.iter().enumerate().filter(|(number, _)| *number != 9) {
            bench.receive(number as u64, packet);
        }
        let asked: usize = (40..500).map(|millis| bench.asked(millis).0.len()).sum();
        assert_eq!(asked, 10, "again and again, but not for ever");
        bench.handle_timeout(600);
        assert_eq!(bench.shown, [0, 40_000, 120_000, 160_000]);
        assert_eq!(bench.asked(600), (vec![], true));
        assert_eq!(bench.asked(700), (vec![], false));
        let (_, brought) = bench.receiver.book();
        assert_eq!((brought.lost, brought.broken, brought.frames, brought.keyframes_asked), (1, 1, 4, 1));
    }

    #[test]
    fn a_publisher_that_sends_no_keyframe_is_asked_until_it_does() {
        let (mut bench, packets) = (Bench::new(), packets(20));
        let first_key = packets.iter().position(|packet| packet[13] & 0x1F == 5 && packet[12] == 0x7C);
        assert!(first_key.is_some());
        // From the second frame on: no keyframe yet.
        let (before, behind) = packets.split_at(packets.len() / 2);
        for packet in &before[8..] {
            bench.receive(0, packet);
        }
        let asked = (0..3_000).filter(|millis| bench.asked(*millis).1).count();
        assert_eq!((asked, bench.shown.len()), (3, 0), "once a second");
        for packet in behind {
            bench.receive(3_000, packet);
        }
        assert_eq!(bench.shown.len(), 10);
        assert_eq!((3_000..6_900).filter(|millis| bench.asked(*millis).1).count(), 0);
        bench.handle_timeout(7_000);
        assert!(bench.asked(7_001).1, "browsers send none of themselves");
    }

    #[test]
    fn another_sequence_goes_on_with_a_keyframe() {
        let (mut bench, packets) = (Bench::new(), packets(10));
        for packet in &packets {
            bench.receive(0, packet);
        }
        assert!(!bench.asked(0).1);
        for packet in &packets {
            let mut other = packet.clone();
            other[2..4].copy_from_slice(
                &(u16::from_be_bytes([packet[2], packet[3]]).wrapping_add(30_000)).to_be_bytes(),
            );
            bench.receive(1, &other);
        }
        assert!(bench.asked(1_000).1);
        assert_eq!(bench.receiver.track.counts().restarts, 1);
    }

    #[test]
    fn time_stamps_are_media_time_from_the_first_on_over_their_wrap() {
        let mut clock = MediaClock::new(90_000);
        assert_eq!(clock.micros(u32::MAX - 8_999, 5_000), 5_000);
        assert_eq!(clock.micros(9_000, 900_000), 205_000);
        assert_eq!(clock.micros(0, 900_000), 105_000);
        clock.restart();
        assert_eq!(clock.micros(77, 1_000_000), 1_000_000);
    }

    #[test]
    fn time_stamps_that_jump_as_far_as_they_can_run_over_nothing() {
        let mut clock = MediaClock::new(1);
        let mut timestamp = 0_u32;
        for _ in 0..20_000 {
            let heard = clock.micros(timestamp, 0);
            assert!((0..=MOST_MICROS).contains(&heard));
            timestamp = timestamp.wrapping_add(i32::MAX as u32);
        }
        assert_eq!(clock.micros(timestamp, 0), MOST_MICROS);
    }
}
