//! The account of one track: each packet once, by its header.

use std::time::Duration;

use weir_metrics::Moment;

use super::arrival::{Arrival, Hints};
use super::drift::Drift;
use super::frame_time::FrameTime;
use super::frames::{FrameCounts, FrameEffect, Frames};
use super::freezes::Freezes;
use super::jitter::Jitter;
use super::keyframes::Keyframes;
use super::sequence::{Loss, Position, Sequence};
use crate::nack::{self, Nack};
use crate::rtcp::{ReportBlock, SenderFigures};
use crate::rtp::Packet;
use crate::time::to_short;

/// A number far ahead goes on with its sequence when media time has moved on by what the clock has, within this, and
/// within an eighth of it.
const CONTINUITY_SLACK: i64 = 500_000;

/// The rest of a frame comes within this time, or not at all.
const ON_ITS_WAY: Duration = Duration::from_millis(100);

/// What a track carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Frames of one packet each.
    Audio,
    /// Frames of several packets.
    Video,
}

/// What is agreed of a track before its first packet.
#[derive(Clone, Copy, Debug)]
pub struct TrackSettings {
    /// What it carries.
    pub kind: Kind,
    /// Ticks of its time stamps a second, at least 1.
    pub clock_rate: u32,
    /// Whether, and how, lost packets are asked for again.
    pub nack: nack::NackSettings,
}

/// The totals of a track that are counted packet by packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackCounts {
    /// Packets, duplicates and retransmissions in the stream itself included, strays apart.
    pub packets: u64,
    /// Bytes of these, whole packets with header and authentication tag.
    pub bytes: u64,
    /// Bytes of these behind the header.
    pub body_bytes: u64,
    /// Packets that came after one with a higher number and had not been requested again.
    pub reordered: u64,
    /// Packets whose number is here already.
    pub duplicate: u64,
    /// Missing packets that came after they had been asked for, in the stream itself or in one of retransmissions.
    pub recovered: u64,
    /// Retransmitted packets that were not missing any more.
    pub needless_retransmissions: u64,
    /// Packets of no sequence that was proven, counted once another one shows that they were.
    pub strays: u64,
    /// Times that the sequence numbers restarted, with the same source or another one.
    pub restarts: u64,
    /// Of these, how often the source was another one.
    pub source_changes: u64,
}

/// A packet that may be the first of another sequence.
#[derive(Clone, Copy, Debug)]
struct Candidate {
    ssrc: u32,
    number: u16,
    timestamp: u32,
    marker: bool,
    bytes: usize,
    body_bytes: usize,
    at: Moment,
    hints: Hints,
}

/// The account of one track.
#[derive(Clone, Debug)]
pub struct Track {
    settings: TrackSettings,
    source: Option<Source>,
    candidate: Option<Candidate>,
    /// The loss of sequences that ended.
    settled: Loss,
    counts: TrackCounts,
    jitter: Jitter,
    frames: Frames,
    freezes: Freezes,
    keyframes: Keyframes,
    drift: Drift,
    nack: Nack,
    frame_time: FrameTime,
}

/// The sequence under way.
#[derive(Clone, Debug)]
struct Source {
    ssrc: u32,
    sequence: Sequence,
    /// Packets of this sequence, as appendix A.3 counts them.
    packets: u64,
    /// The newest time stamp of media, and the media time that it stands for, in ticks since the sequence's first.
    timestamp: u32,
    media_ticks: i64,
    /// Whether anything but padding has come.
    has_media: bool,
    newest_at: Moment,
    /// Expected and received at the last report.
    reported: (u64, u64),
    sender_report: Option<(SenderFigures, Moment)>,
}

impl Track {
    /// An account of nothing.
    pub fn new(settings: TrackSettings) -> Self {
        Self {
            settings: TrackSettings { clock_rate: settings.clock_rate.max(1), ..settings },
            source: None,
            candidate: None,
            settled: Loss::default(),
            counts: TrackCounts::default(),
            jitter: Jitter::default(),
            frames: Frames::new(),
            freezes: Freezes::default(),
            keyframes: Keyframes::default(),
            drift: Drift::default(),
            nack: Nack::new(settings.nack),
            frame_time: FrameTime::default(),
        }
    }

    /// A packet came.
    #[inline]
    pub fn receive(&mut self, now: Moment, packet: &Packet<'_>, hints: Hints) -> Arrival {
        let candidate = Candidate {
            ssrc: packet.ssrc(),
            number: packet.sequence_number(),
            timestamp: packet.timestamp(),
            marker: packet.marker(),
            bytes: packet.bytes().len(),
            body_bytes: packet.body().len(),
            at: now,
            hints,
        };
        self.take(&candidate)
    }

    #[inline]
    fn take(&mut self, packet: &Candidate) -> Arrival {
        let clock_rate = self.settings.clock_rate;
        let place = match &mut self.source {
            None => {
                let (number, framed) = self.begin(packet);
                return Arrival::Ahead { number, missing: 0, completed: framed.completed };
            }
            Some(source) if source.ssrc == packet.ssrc => {
                let (timestamp, newest_at) = (source.timestamp, source.newest_at);
                source.sequence.place(packet.number, || {
                    let ticks = i64::from(packet.timestamp.wrapping_sub(timestamp) as i32);
                    let media = ticks * 1_000_000 / i64::from(clock_rate);
                    let clock = packet.at.micros_since(newest_at);
                    media > 0 && (media - clock).abs() <= CONTINUITY_SLACK + clock / 8
                })
            }
            Some(_) => Position::Far,
        };
        match place {
            Position::Ahead { number, missing } => {
                if self.candidate.take().is_some() {
                    self.counts.strays += 1;
                }
                if missing > 0 {
                    self.nack.missing(number - missing..number, packet.at);
                }
                let framed = self.count(number, packet, true);
                Arrival::Ahead { number, missing, completed: framed.completed }
            }
            Position::Late(number) => {
                let recovered = self.nack.arrived(number);
                self.counts.recovered += u64::from(recovered);
                self.counts.reordered += u64::from(!recovered);
                let framed = self.count(number, packet, !recovered);
                Arrival::Late { number, recovered, completed: framed.completed }
            }
            Position::Duplicate(_) => {
                self.counts.duplicate += 1;
                self.count_packet(packet);
                Arrival::Duplicate
            }
            Position::Far => self.far(packet),
        }
    }

    /// Appendix A.1: two in a row prove another sequence.
    #[cold]
    fn far(&mut self, packet: &Candidate) -> Arrival {
        let proves =
            |first: &Candidate| first.ssrc == packet.ssrc && packet.number == first.number.wrapping_add(1);
        let first = match self.candidate.take() {
            Some(first) if proves(&first) => first,
            other => {
                self.counts.strays += u64::from(other.is_some());
                self.candidate = Some(*packet);
                return Arrival::Stray;
            }
        };
        self.counts.restarts += 1;
        let new_source = self.source.as_ref().is_some_and(|source| source.ssrc != packet.ssrc);
        self.counts.source_changes += u64::from(new_source);
        self.end_sequence();
        self.begin(&first);
        self.take(packet);
        Arrival::Restart { new_source }
    }

    fn begin(&mut self, packet: &Candidate) -> (u64, FrameEffect) {
        let sequence = Sequence::new(packet.number);
        let number = sequence.highest();
        self.source = Some(Source {
            ssrc: packet.ssrc,
            sequence,
            packets: 0,
            timestamp: packet.timestamp,
            media_ticks: 0,
            has_media: false,
            newest_at: packet.at,
            reported: (0, 0),
            sender_report: None,
        });
        (number, self.count(number, packet, true))
    }

    fn end_sequence(&mut self) {
        if let Some(source) = self.source.take() {
            self.settled.add(&source.sequence.loss());
        }
        self.frames.close();
        self.jitter.restart();
        self.drift.restart();
        self.frame_time.restart();
        self.keyframes.restart();
        self.nack.clear();
    }

    #[inline]
    fn count_packet(&mut self, packet: &Candidate) {
        self.counts.packets += 1;
        self.counts.bytes += packet.bytes as u64;
        self.counts.body_bytes += packet.body_bytes as u64;
        if let Some(source) = &mut self.source {
            source.packets += 1;
        }
    }

    /// Counts a packet that is here for the first time.
    #[inline]
    fn count(&mut self, number: u64, packet: &Candidate, on_time: bool) -> FrameEffect {
        self.count_packet(packet);
        let clock_rate = self.settings.clock_rate;
        let Some(source) = &mut self.source else { return FrameEffect::default() };
        let newest = number == source.sequence.highest();
        if newest {
            source.newest_at = packet.at;
        }
        if packet.hints.padding {
            return self.fill(number, packet.at);
        }
        if !std::mem::replace(&mut source.has_media, true) {
            source.timestamp = packet.timestamp;
        }
        let step = packet.timestamp.wrapping_sub(source.timestamp) as i32;
        let media_ticks = source.media_ticks + i64::from(step);
        let media_micros = media_ticks * 1_000_000 / i64::from(clock_rate);
        if step > 0 {
            (source.timestamp, source.media_ticks) = (packet.timestamp, media_ticks);
        }
        // A picture that is sent behind one that is shown after it (B-frames) has a time stamp that says nothing of its way.
        let in_order = !newest || step >= 0;
        if on_time && in_order {
            self.jitter.arrive(ticks(packet.at, clock_rate), packet.timestamp);
        }
        let framed = match self.settings.kind {
            Kind::Video => self.frames.packet(number, packet.timestamp, packet.marker, packet.hints.start),
            Kind::Audio => FrameEffect { new: true, completed: 1, follows: newest },
        };
        if framed.new && newest {
            if in_order {
                self.drift.arrive(packet.at, media_micros);
            }
            // Over two seconds it is a pause.
            self.frame_time.frame(packet.timestamp, framed.follows, clock_rate.saturating_mul(2));
        }
        if packet.hints.keyframe == Some(true) {
            self.keyframes.frame(media_micros);
        }
        self.book_freezes(framed, packet.at)
    }

    /// A packet of padding alone, which belongs to no frame: its time stamp is of none to come.
    #[cold]
    fn fill(&mut self, number: u64, at: Moment) -> FrameEffect {
        match self.settings.kind {
            Kind::Video => {
                let framed = self.frames.padding(number);
                self.book_freezes(framed, at)
            }
            Kind::Audio => FrameEffect::default(),
        }
    }

    fn book_freezes(&mut self, framed: FrameEffect, at: Moment) -> FrameEffect {
        // Sound does not freeze: a gap of it is loss, or silence that its sender leaves out.
        if self.settings.kind == Kind::Video {
            (0..framed.completed).for_each(|_| self.freezes.frame(at));
        }
        framed
    }

    /// A retransmission in a stream of its own brought the packet with this number (RFC 4588 section 4). Its extended
    /// number, if it was missing.
    pub fn repair(
        &mut self,
        now: Moment,
        original: u16,
        timestamp: u32,
        marker: bool,
        hints: Hints,
    ) -> Option<u64> {
        let repaired = self.source.as_mut().and_then(|source| source.sequence.repair(original));
        let Some(number) = repaired else {
            self.counts.needless_retransmissions += 1;
            return None;
        };
        self.nack.arrived(number);
        self.counts.recovered += 1;
        if hints.padding {
            self.fill(number, now);
        } else if self.settings.kind == Kind::Video {
            let framed = self.frames.packet(number, timestamp, marker, hints.start);
            self.book_freezes(framed, now);
        }
        Some(number)
    }

    /// A sender report came; one of another source is passed over.
    pub fn sender_report(&mut self, now: Moment, sender: u32, figures: SenderFigures) {
        if let Some(source) = self.source.as_mut().filter(|source| source.ssrc == sender) {
            source.sender_report = Some((figures, now));
        }
    }

    /// The block of a receiver report, with what happened since the last one (section 6.4.1, appendix A.3); `None`
    /// before the first packet.
    pub fn report_block(&mut self, now: Moment) -> Option<ReportBlock> {
        let jitter = self.jitter.ticks();
        let source = self.source.as_mut()?;
        let (expected, packets) = (source.sequence.loss().expected, source.packets);
        let (expected_before, packets_before) = std::mem::replace(&mut source.reported, (expected, packets));
        let in_interval = expected - expected_before.min(expected);
        let lost = in_interval.saturating_sub(packets - packets_before);
        let last = source.sender_report;
        Some(ReportBlock {
            source: source.ssrc,
            fraction_lost: (lost << 8).checked_div(in_interval).map_or(0, |fraction| fraction.min(255) as u8),
            cumulative_lost: (expected as i64 - packets as i64).clamp(-0x80_0000, 0x7F_FFFF) as i32,
            highest_sequence_number: source.sequence.reported_highest(),
            jitter,
            last_sender_report: last.map_or(0, |(figures, _)| figures.ntp_time.middle()),
            delay_since_last_sender_report: last.map_or(0, |(_, at)| to_short(now.since(at))),
        })
    }

    /// The track ends: what is open is judged, and a freeze that goes on is one. A frame whose packets were coming just
    /// now is not: a viewer that leaves in the middle of it is no fault of the sender.
    pub fn finish(&mut self, now: Moment) {
        self.counts.strays += u64::from(self.candidate.take().is_some());
        if self.source.as_ref().is_some_and(|source| now.since(source.newest_at) < ON_ITS_WAY) {
            self.frames.leave_newest();
        }
        self.frames.close();
        self.freezes.finish(now);
    }

    /// The source of the sequence under way.
    pub fn ssrc(&self) -> Option<u32> {
        self.source.as_ref().map(|source| source.ssrc)
    }

    /// Totals by packet.
    pub fn counts(&self) -> TrackCounts {
        self.counts
    }

    /// What is lost, of all sequences so far.
    pub fn loss(&self) -> Loss {
        let mut loss = self.settled;
        if let Some(source) = &self.source {
            loss.add(&source.sequence.loss());
        }
        loss
    }

    /// Frames; of audio every packet is one, whole.
    pub fn frames(&self) -> FrameCounts {
        match self.settings.kind {
            Kind::Video => self.frames.counts(),
            Kind::Audio => {
                let received = self.loss().received;
                FrameCounts { received, complete: received, ..FrameCounts::default() }
            }
        }
    }

    /// Interarrival jitter (appendix A.8). Packets that came because they were asked for again are not in it.
    pub fn jitter(&self) -> Duration {
        let ticks = u64::from(self.jitter.ticks());
        Duration::from_nanos(ticks * 1_000_000_000 / u64::from(self.settings.clock_rate))
    }

    /// Media time of the newest packet, in microseconds since the first of its sequence.
    pub fn media_micros(&self) -> Option<i64> {
        let source = self.source.as_ref()?;
        Some(source.media_ticks * 1_000_000 / i64::from(self.settings.clock_rate))
    }

    /// The source's time from one frame to the next as they are shown, in ticks of its clock: smoothed over frames that
    /// followed each other without a gap. `None` before the first two.
    pub fn frame_ticks(&self) -> Option<u32> {
        self.frame_time.ticks()
    }

    /// Whether nearly all of them are as far apart: it is not known of a screen, which is sent when there is something new.
    pub fn is_frame_rate_steady(&self) -> bool {
        self.frame_time.is_steady()
    }

    /// How long the source had no frames so far, in ticks of its clock modulo 2³²: more than two seconds between two frames, of which nothing
    /// is missing.
    pub fn paused_ticks(&self) -> u32 {
        self.frame_time.paused()
    }

    /// Delay drift, by the first packet of each frame.
    pub fn drift(&self) -> &Drift {
        &self.drift
    }

    /// Freezes.
    pub fn freezes(&self) -> &Freezes {
        &self.freezes
    }

    /// Keyframes that hints announced.
    pub fn keyframes(&self) -> &Keyframes {
        &self.keyframes
    }

    /// When to ask for lost packets next: [`Nack::poll`].
    pub fn next_request(&self) -> Option<Moment> {
        self.nack.poll_timeout()
    }

    /// The requests for lost packets.
    pub fn nack(&mut self) -> &mut Nack {
        &mut self.nack
    }
}

/// A moment in ticks of a clock, modulo 2³².
#[inline]
fn ticks(moment: Moment, clock_rate: u32) -> u32 {
    let micros = moment.as_nanos() / 1000;
    // Whole seconds apart, so that nothing overflows.
    let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
    (seconds.wrapping_mul(clock_rate.into()) + rest * u64::from(clock_rate) / 1_000_000) as u32
}
