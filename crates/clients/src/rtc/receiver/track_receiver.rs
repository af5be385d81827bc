//! One track of a receiver: the account of its packets, the requests to its sender, and its figures.

use super::super::RtcOptions;
use super::super::account::Extent;
use super::super::figures::{
    AUDIO_LOST, AUDIO_PACKETS, FRAMES_BROKEN, FRAMES_COMPLETE, FRAMES_UNPROVEN, FREEZE_LENGTH, FREEZES,
    FROZEN, GAPS, GIVEN_UP, KEYFRAME_INTERVAL, NACKS, PICTURE_REQUESTS, RECOVERED, RESTARTS, STRAYS,
    VIDEO_LOST, VIDEO_PACKETS,
};
use super::beginning::Beginning;
use std::time::Duration;
use weir_metrics::Recorder;
use weir_metrics::common::{DUPLICATE, KEYFRAMES, LOST, REORDERED};
use weir_rtc::account::{self, Hints, Kind, ReceivedTotals, Sent, Track};
use weir_rtc::nack;
use weir_rtc::picture::{self, PictureRequests};
use weir_rtc::rtcp::SenderFigures;
use weir_rtc::rtp::{DependencyDescriptor, FrameMarking, Packet};
use weir_rtc::sdp::{Agreement, Format, MediaKind, extension};
use weir_rtc::{Assembler, VideoCodec};

/// A track.
pub(super) struct TrackReceiver {
    pub(super) kind: MediaKind,
    /// Of what comes now.
    pub(super) payload_type: u8,
    pub(super) codec: Option<VideoCodec>,
    pub(super) clock_rate: u32,
    /// What may come, and the payload types of its retransmissions.
    encodings: Vec<(Format, Option<u8>)>,
    /// What packets say of their frames without being decrypted.
    frame_marking: Option<u8>,
    dependencies: Option<u8>,
    /// A packet has said of its frame whether it is a keyframe: servers agree on extensions that they then do not send.
    pub(super) marks_keyframes: bool,
    pub(super) account: Track,
    settings: account::TrackSettings,
    pub(super) requests: PictureRequests,
    pub(super) asks: bool,
    pub(super) assembler: Option<Box<Assembler>>,
    /// Of pictures.
    pub(super) beginning: Option<Box<Beginning>>,
    /// Bytes that are kept of each picture.
    kept: usize,
    /// Whether a packet with a payload was seen to have padding as well.
    pub(super) pads_media: bool,
    pub(super) jitter: Extent,
    pub(super) booked: Totals,
    /// Missing packets and gaps a second ago.
    pub(super) before: (u64, u64),
    /// Bytes of payload that came, retransmissions included, and what the sender says that it has sent.
    pub(super) media: u64,
    sent: Sent,
    /// The missing bytes that were reported so far.
    told_missing: u64,
}

/// What of a track's account goes into counters.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Totals {
    packets: u64,
    lost: u64,
    gaps: u64,
    reordered: u64,
    duplicate: u64,
    recovered: u64,
    pub(super) frames: u64,
    complete: u64,
    broken: u64,
    unproven: u64,
    keyframes: u64,
    freezes: u64,
    frozen: Duration,
    strays: u64,
    restarts: u64,
    asked: u64,
    given_up: u64,
    pub(super) requests: u64,
}

impl TrackReceiver {
    pub(super) fn new(agreed: &Agreement, options: &RtcOptions, kept: usize) -> Self {
        let gives = |what: &str| agreed.format.feedback.iter().any(|this| this == what);
        let is_video = agreed.kind == MediaKind::Video;
        let asks_again = options.nack && gives("nack");
        let settings = account::TrackSettings {
            kind: if is_video { Kind::Video } else { Kind::Audio },
            clock_rate: agreed.format.clock_rate,
            nack: if asks_again { nack::NackSettings::default() } else { nack::NackSettings::OFF },
        };
        let extension = |name: &str| {
            let named = agreed.extensions.iter().find(|it| it.name == name);
            named.map(|it| it.identifier).filter(|_| is_video)
        };
        let codec = VideoCodec::of(&agreed.format).filter(|_| is_video);
        let first = (agreed.format.clone(), agreed.repair);
        Self {
            kind: agreed.kind,
            payload_type: agreed.format.payload_type,
            codec,
            clock_rate: agreed.format.clock_rate,
            encodings: std::iter::once(first).chain(agreed.others.iter().cloned()).collect(),
            frame_marking: extension(extension::FRAME_MARKING),
            dependencies: extension(extension::DEPENDENCY_DESCRIPTOR),
            marks_keyframes: false,
            account: Track::new(settings),
            settings,
            requests: PictureRequests::new(picture::PictureRequestSettings::default()),
            asks: options.pli && is_video && gives("nack pli"),
            assembler: codec.map(|codec| Box::new(Assembler::new(codec, kept))),
            beginning: codec.map(|codec| Box::new(Beginning::new(codec, &agreed.format))),
            kept,
            pads_media: false,
            jitter: Extent::default(),
            booked: Totals::default(),
            before: (0, 0),
            media: 0,
            sent: Sent::default(),
            told_missing: 0,
        }
    }

    /// Whether packets of this type may come.
    pub(super) fn has(&self, payload_type: u8) -> bool {
        self.encodings.iter().any(|(format, _)| format.payload_type == payload_type)
    }

    /// The codec that packets of this type retransmit, if they retransmit this track's.
    pub(super) fn repaired_by(&self, payload_type: u8) -> Option<Option<VideoCodec>> {
        let repaired = self.encodings.iter().find(|(_, repair)| *repair == Some(payload_type));
        repaired.map(|(format, _)| VideoCodec::of(format))
    }

    /// The format of what comes now.
    pub(super) fn format(&self) -> Option<&Format> {
        let format = self.encodings.iter().map(|(format, _)| format);
        format.into_iter().find(|format| format.payload_type == self.payload_type)
    }

    /// Another encoding of those agreed on comes from now on. Whether it can be counted: numbers go on, but not with another clock.
    #[cold]
    pub(super) fn change(&mut self, payload_type: u8) -> bool {
        let Some((format, _)) = self.encodings.iter().find(|(format, _)| format.payload_type == payload_type)
        else {
            return false;
        };
        if format.clock_rate != self.clock_rate {
            if self.account.ssrc().is_some() {
                return false;
            }
            self.settings.clock_rate = format.clock_rate;
            self.account = Track::new(self.settings);
            self.clock_rate = format.clock_rate;
        }
        self.payload_type = payload_type;
        let codec = VideoCodec::of(format).filter(|_| self.kind == MediaKind::Video);
        // Another profile of the same codec has the same payloads; its parameter sets may be described apart.
        if let Some(codec) = codec {
            if self.assembler.is_some() {
                self.assembler = Some(Box::new(Assembler::new(codec, self.kept)));
            }
            if self.beginning.is_some() {
                self.beginning = Some(Box::new(Beginning::new(codec, format)));
            }
        }
        self.codec = codec;
        true
    }

    /// Numbers have begun again: what was put together of those before is in front of none of them.
    pub(super) fn restart_frames(&mut self) {
        if let Some(assembler) = &mut self.assembler {
            assembler.restart();
        }
    }

    /// What a packet says of its frame without being decrypted.
    #[inline]
    pub(super) fn extension_hints(&self, packet: &Packet<'_>) -> Hints {
        let element = |identifier: Option<u8>| identifier.and_then(|identifier| packet.extension(identifier));
        if let Some(marking) = element(self.frame_marking).and_then(FrameMarking::parse) {
            return Hints { start: Some(marking.start), keyframe: Some(marking.independent), padding: false };
        }
        match element(self.dependencies).and_then(DependencyDescriptor::parse) {
            // "Note that this frame might not be the first frame of a temporal unit": of one that begins nothing more is known.
            Some(dependencies) => Hints {
                start: if dependencies.start {
                    Some(true).filter(|_| dependencies.begins_sequence)
                } else {
                    Some(false)
                },
                keyframe: Some(dependencies.start && dependencies.begins_sequence),
                padding: false,
            },
            None => Hints::default(),
        }
    }

    /// Whether a packet that is not decrypted is padding alone, `tag` bytes of it apart. How long padding is, at most 255
    /// bytes (RFC 3550 section 5.1), is encrypted; of a sender that has been seen to pad media, nothing is known.
    #[inline]
    pub(super) fn is_padding(&self, packet: &Packet<'_>, tag: usize) -> bool {
        packet.has_padding() && !self.pads_media && packet.body().len() <= usize::from(u8::MAX) + tag
    }

    fn came(&self) -> ReceivedTotals {
        let (counts, loss) = (self.account.counts(), self.account.loss());
        ReceivedTotals {
            expected: loss.expected,
            lost: loss.lost(),
            packets: counts.packets,
            bytes: self.media,
        }
    }

    /// A sender report came; one of another source is passed over.
    pub(super) fn sender_report(&mut self, sender: u32, figures: &SenderFigures) {
        if self.account.ssrc() == Some(sender) {
            let came = self.came();
            self.sent.report(figures, came);
        }
    }

    /// Bytes that were sent and are missing, beyond those that were reported before.
    pub(super) fn take_missing(&mut self) -> u64 {
        let missing = self.sent.missing_bytes(self.came());
        let more = missing.saturating_sub(self.told_missing);
        self.told_missing += more;
        more
    }

    pub(super) fn book_freezes(&mut self, recorder: &mut Recorder) {
        let freezes = self.account.freezes();
        if freezes.count() > self.booked.freezes {
            let count = freezes.count() - self.booked.freezes;
            let length = freezes.total() - self.booked.frozen;
            recorder.count(FREEZES, count);
            recorder.count(FROZEN, length.as_micros() as u64);
            // Two between two looks are rare, and alike then.
            (0..count)
                .for_each(|_| recorder.record(FREEZE_LENGTH, (length / count as u32).as_micros() as u64));
            (self.booked.freezes, self.booked.frozen) = (freezes.count(), freezes.total());
        }
    }

    /// Records what has come since the last call, and `lost` packets in `gaps` gaps as missing.
    pub(super) fn book(&mut self, lost: u64, gaps: u64, recorder: &mut Recorder) {
        let (counts, frames, keyframes) =
            (self.account.counts(), self.account.frames(), *self.account.keyframes());
        let nack = self.account.nack();
        let now = Totals {
            packets: counts.packets,
            lost: lost.max(self.booked.lost),
            gaps: gaps.max(self.booked.gaps),
            reordered: counts.reordered,
            duplicate: counts.duplicate,
            recovered: counts.recovered,
            complete: frames.complete,
            broken: frames.broken,
            unproven: frames.unproven,
            keyframes: keyframes.count(),
            strays: counts.strays,
            restarts: counts.restarts,
            asked: nack.asked(),
            given_up: nack.given_up(),
            requests: self.requests.sent(),
            ..self.booked
        };
        let before = std::mem::replace(&mut self.booked, now);
        let is_video = self.kind == MediaKind::Video;
        let (packets, missing) =
            if is_video { (VIDEO_PACKETS, VIDEO_LOST) } else { (AUDIO_PACKETS, AUDIO_LOST) };
        recorder.count(packets, now.packets - before.packets);
        recorder.count(missing, now.lost - before.lost);
        recorder.count(LOST, now.lost - before.lost);
        recorder.count(GAPS, now.gaps - before.gaps);
        recorder.count(REORDERED, now.reordered - before.reordered);
        recorder.count(DUPLICATE, now.duplicate - before.duplicate);
        recorder.count(RECOVERED, now.recovered - before.recovered);
        recorder.count(STRAYS, now.strays - before.strays);
        recorder.count(RESTARTS, now.restarts - before.restarts);
        recorder.count(NACKS, now.asked - before.asked);
        recorder.count(GIVEN_UP, now.given_up - before.given_up);
        if is_video {
            recorder.count(FRAMES_COMPLETE, now.complete - before.complete);
            recorder.count(FRAMES_BROKEN, now.broken - before.broken);
            recorder.count(FRAMES_UNPROVEN, now.unproven - before.unproven);
            recorder.count(PICTURE_REQUESTS, now.requests - before.requests);
            recorder.count(KEYFRAMES, now.keyframes - before.keyframes);
            if now.keyframes > before.keyframes
                && let Some(interval) = keyframes.last_interval()
            {
                recorder.record(KEYFRAME_INTERVAL, interval.as_micros() as u64);
            }
        }
    }
}
