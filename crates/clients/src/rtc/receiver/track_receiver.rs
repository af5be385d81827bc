//! One track of a receiver: the account of its packets, the requests to its sender, and its figures.

use super::super::RtcOptions;
use super::super::account::Extent;
use super::super::figures::{
    AUDIO_LOST, AUDIO_PACKETS, FRAMES_BROKEN, FRAMES_COMPLETE, FRAMES_UNPROVEN, FREEZE_LENGTH, FREEZES,
    FROZEN, GAPS, GIVEN_UP, KEYFRAME_INTERVAL, NACKS, PICTURE_REQUESTS, RECOVERED, RESTARTS, STRAYS,
    VIDEO_LOST, VIDEO_PACKETS,
};
use super::ReadTotals;
use super::beginning::{Beginning, NewestKeyframe};
use super::narrow_link::NarrowTrack;
use super::unit_span::UnitSpans;
use std::time::Duration;
use weir_metrics::common::{DUPLICATE, KEYFRAMES, LOST, REORDERED};
use weir_metrics::{Moment, Recorder};
use weir_rtc::account::{self, Arrival, Hints, Kind, Loss, ReceivedTotals, Sent, Track};
use weir_rtc::nack;
use weir_rtc::picture::{PictureRequestSettings, PictureRequests};
use weir_rtc::reorder::Unit;
use weir_rtc::rtcp::SenderFigures;
use weir_rtc::rtp::{DependencyDescriptor, FrameMarking, Packet};
use weir_rtc::sdp::{Agreement, Format, MediaKind, extension};
use weir_rtc::{AccessUnit, Assembler, VideoCodec};

/// For as long as a viewer waits for a keyframe it asks for one, as browsers do: once a second for a minute, if a time-out is 10 s.
const PICTURE_REQUESTS_AT_START: PictureRequestSettings =
    PictureRequestSettings { interval: Duration::from_secs(1), tries: u8::MAX };

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
    pub(super) newest_keyframe: NewestKeyframe,
    /// Which packets the latest pictures have, while it waits for a keyframe.
    pub(super) spans: UnitSpans,
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
    /// Of a viewer whose link is narrow.
    pub(super) narrow: Option<Box<NarrowTrack>>,
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
        let asking = nack::NackSettings::default();
        // "A round trip, and some": what was asked for waits in front of a narrow link as everything does.
        let queue = options.link.map_or(Duration::ZERO, |link| link.queue);
        let asking = nack::NackSettings { interval: asking.interval + queue, ..asking };
        let settings = account::TrackSettings {
            kind: if is_video { Kind::Video } else { Kind::Audio },
            clock_rate: agreed.format.clock_rate,
            nack: if asks_again { asking } else { nack::NackSettings::OFF },
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
            requests: PictureRequests::new(PICTURE_REQUESTS_AT_START),
            asks: options.pli && is_video && gives("nack pli"),
            assembler: codec.map(|codec| Box::new(Assembler::new(codec, kept))),
            beginning: codec.map(|codec| Box::new(Beginning::new(codec, &agreed.format))),
            newest_keyframe: NewestKeyframe::default(),
            spans: UnitSpans::default(),
            kept,
            pads_media: false,
            jitter: Extent::default(),
            booked: Totals::default(),
            before: (0, 0),
            media: 0,
            sent: Sent::default(),
            told_missing: 0,
            narrow: options.link.map(|_| Box::new(NarrowTrack::new(settings))),
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
        self.encoding(self.payload_type)
    }

    /// Whether a packet of this type can be counted: numbers go on with another encoding, but not with another clock.
    #[inline]
    pub(super) fn admits(&mut self, payload_type: u8) -> bool {
        payload_type == self.payload_type || self.admits_other(payload_type)
    }

    #[cold]
    fn admits_other(&mut self, payload_type: u8) -> bool {
        let Some(format) = self.encoding(payload_type) else { return false };
        let clock_rate = format.clock_rate;
        if clock_rate != self.clock_rate {
            if self.account.ssrc().is_some() {
                return false;
            }
            self.settings.clock_rate = clock_rate;
            self.account = Track::new(self.settings);
            self.clock_rate = clock_rate;
        }
        true
    }

    fn encoding(&self, payload_type: u8) -> Option<&Format> {
        let formats = self.encodings.iter().map(|(format, _)| format);
        formats.into_iter().find(|format| format.payload_type == payload_type)
    }

    /// The codec of packets of this type.
    #[inline]
    pub(super) fn codec_of(&self, payload_type: u8) -> Option<VideoCodec> {
        if payload_type == self.payload_type {
            return self.codec;
        }
        self.encoding(payload_type).and_then(VideoCodec::of).filter(|_| self.kind == MediaKind::Video)
    }

    /// A packet was counted. If it is of another type than those before, another encoding comes from now on, unless the packet is one from
    /// before the change that comes late, padding, or the rest of a frame whose beginning did not come. Gives the payload if it is of the
    /// encoding that comes now; to the others of the track, one that is not is a gap.
    #[inline]
    pub(super) fn arrived<'p>(
        &mut self,
        packet: &Packet<'_>,
        arrival: &Arrival,
        hints: Hints,
        payload: Option<&'p [u8]>,
    ) -> Option<&'p [u8]> {
        let payload_type = packet.payload_type();
        if payload_type != self.payload_type {
            let is_newest = matches!(arrival, Arrival::Ahead { .. } | Arrival::Restart { .. });
            if is_newest && !hints.padding && hints.start != Some(false) {
                self.change(payload_type);
            }
            if self.codec_of(payload_type) != self.codec && !hints.padding {
                return None;
            }
        }
        if let (Some(beginning), Some(payload)) = (&mut self.beginning, payload) {
            beginning.payload(packet.timestamp(), payload);
        }
        payload
    }

    #[cold]
    fn change(&mut self, payload_type: u8) {
        let codec = self.codec_of(payload_type);
        let Some((format, _)) = self.encodings.iter().find(|(format, _)| format.payload_type == payload_type)
        else {
            return;
        };
        self.payload_type = payload_type;
        if codec == self.codec {
            // Another profile of the same codec has the same payloads, and frames go on; its parameter sets may be described apart.
            if let Some(beginning) = &mut self.beginning {
                beginning.describe(format);
            }
            return;
        }
        self.codec = codec;
        if let Some(codec) = codec {
            if self.assembler.is_some() {
                self.assembler = Some(Box::new(Assembler::new(codec, self.kept)));
            }
            if self.beginning.is_some() {
                self.beginning = Some(Box::new(Beginning::new(codec, format)));
            }
        }
    }

    /// Numbers have begun again: what was put together of those before is in front of none of them.
    pub(super) fn restart_frames(&mut self) {
        (self.newest_keyframe, self.spans) = (NewestKeyframe::default(), UnitSpans::default());
        if let Some(assembler) = &mut self.assembler {
            assembler.restart();
        }
        if let Some(narrow) = &mut self.narrow {
            narrow.restart();
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

    /// What the source or the way from it has lost. What a narrow link drops behind that way is not in it.
    pub(super) fn loss(&self) -> Loss {
        self.narrow.as_ref().map_or_else(|| self.account.loss(), |narrow| narrow.came.loss())
    }

    /// Puts a packet into the pictures that are put together. `shown` gets each access unit that ends with it.
    #[inline]
    pub(super) fn assemble(
        &mut self,
        now: Moment,
        packet: Unit<'_>,
        totals: &mut ReadTotals,
        recorder: &mut Recorder,
        shown: &mut dyn FnMut(VideoCodec, &AccessUnit<'_>, &mut Recorder),
    ) {
        let (Some(assembler), Some(codec)) = (&mut self.assembler, self.codec) else { return };
        let (beginning, newest) = (&mut self.beginning, &mut self.newest_keyframe);
        let spans = &mut self.spans;
        let mut still_waits = false;
        let mut take = |it: Unit<'_>| {
            assembler.push(it.number, it.timestamp, it.marker, it.payload, |unit| {
                if let Some(beginning) = beginning.as_mut() {
                    let is_new = beginning.is_keyframe(&unit) && newest.is_new(unit.timestamp);
                    totals.keyframe |= is_new;
                    if is_new {
                        spans.keyframe(unit.timestamp);
                    }
                    totals.start_whole |= beginning.begins(&unit);
                    still_waits = !beginning.has_begun();
                }
                shown(codec, &unit, recorder);
            });
        };
        match self.narrow.as_mut().and_then(|narrow| narrow.order()) {
            Some(order) => order.push(now, packet, take),
            None => take(packet),
        }
        // A keyframe that is not whole, or parameter sets without one, are not what was asked for.
        if still_waits && self.asks {
            self.requests.start(now);
        }
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

    /// A packet that was missing has come: what has been missing since the second before is no more than what is missing now.
    pub(super) fn note_repair(&mut self) {
        self.before.0 = self.before.0.min(self.loss().lost());
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

#[cfg(test)]
mod tests {
    use super::*;
    use weir_rtc::rtp::Header;
    use weir_rtc::transport::DtlsRole;

    const H264: u8 = 96;
    const OTHER_H264: u8 = 98;
    const VP8: u8 = 100;

    /// A slice of an IDR picture in two fragments, and another picture; a keyframe of VP8, and the rest of one.
    const IDR: [&[u8]; 2] = [&[0x7C, 0x85, 0x88], &[0x7C, 0x45, 7]];
    const KEY: &[u8] = &[0x10, 0x10, 1];
    const REST: &[u8] = &[0x00, 2];

    fn track() -> TrackReceiver {
        let format = |payload_type, name: &str| Format {
            payload_type,
            name: name.to_owned(),
            clock_rate: 90_000,
            ..Format::default()
        };
        let agreed = Agreement {
            kind: MediaKind::Video,
            identifier: String::new(),
            format: format(H264, "H264"),
            repair: None,
            others: vec![(format(OTHER_H264, "H264"), None), (format(VP8, "VP8"), None)],
            extensions: Vec::new(),
            role: DtlsRole::Client,
        };
        TrackReceiver::new(&agreed, &RtcOptions::default(), 1_000)
    }

    /// Counts a packet as a receiver does; whether each frame that ends with it is whole.
    fn push(
        track: &mut TrackReceiver,
        payload_type: u8,
        number: u16,
        marker: bool,
        payload: &[u8],
    ) -> Vec<bool> {
        let timestamp = if marker { u32::from(number) } else { u32::from(number) + 1 };
        let header = Header { marker, payload_type, sequence_number: number, timestamp, ssrc: 9 };
        let mut bytes = Vec::new();
        header.append(&[], &mut bytes).unwrap();
        bytes.extend_from_slice(payload);
        let packet = Packet::parse(&bytes).unwrap();
        assert!(track.admits(payload_type));
        let hints = track.codec_of(payload_type).unwrap().hints(payload);
        let now = Moment::from_nanos(u64::from(number) * 1_000_000);
        let arrival = track.account.receive(now, &packet, hints);
        let payload = track.arrived(&packet, &arrival, hints, Some(payload));
        let mut whole = Vec::new();
        if let (Arrival::Ahead { number, .. }, Some(payload)) = (arrival, payload) {
            let assembler = track.assembler.as_mut().unwrap();
            assembler.push(number, timestamp, marker, payload, |unit| whole.push(unit.complete));
        }
        whole
    }

    #[test]
    fn another_payload_type_of_the_same_codec_goes_on_with_the_frame_under_way() {
        let mut track = track();
        assert!(push(&mut track, H264, 1, false, IDR[0]).is_empty());
        assert_eq!(push(&mut track, OTHER_H264, 2, true, IDR[1]), [true]);
        // A later part of a slice alone begins nothing: the type changes with the next picture.
        assert_eq!(track.format().unwrap().payload_type, H264);
        assert_eq!(push(&mut track, OTHER_H264, 3, true, &[0x41, 0x9A]), [true]);
        assert_eq!(track.format().unwrap().payload_type, OTHER_H264);
    }

    #[test]
    fn another_codec_comes_with_the_beginning_of_a_frame_and_not_with_what_is_late() {
        let mut track = track();
        assert_eq!(push(&mut track, H264, 1, true, &[0x65, 0x88]), [true]);
        assert!(push(&mut track, VP8, 2, true, REST).is_empty());
        assert_eq!(track.codec, Some(VideoCodec::H264));
        assert_eq!(push(&mut track, VP8, 4, true, KEY), [true], "a new codec waits for no packet before it");
        assert_eq!(track.codec, Some(VideoCodec::Vp8));
        assert!(push(&mut track, H264, 3, true, &[0x65, 0x88]).is_empty());
        assert_eq!(track.codec, Some(VideoCodec::Vp8), "a packet from before the change");
        assert!(push(&mut track, H264, 5, true, &[]).is_empty(), "padding");
        assert_eq!(track.codec, Some(VideoCodec::Vp8));
        assert_eq!(push(&mut track, VP8, 6, true, KEY), [true]);
    }
}
