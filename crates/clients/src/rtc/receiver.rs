//! The receiving side of a session with keys: each packet once, what is asked back of the sender, and the figures.

pub(super) mod beginning;
mod narrow_link;
mod read_totals;
mod replies;
mod retransmission;
mod source;
mod track_receiver;
mod unit_span;

pub use self::narrow_link::LinkOptions;
use self::narrow_link::NarrowLink;
pub(super) use self::read_totals::ReadTotals;
use self::track_receiver::TrackReceiver;
use super::RtcOptions;
use super::account::{Extent, Numbers, Rates};
use super::connection::Keys;
use super::figures::{
    BYTE_RATE, FRAME_RATE, GAP_LENGTH, JITTER, MALFORMED, OPENED, REPLAYED, ROUND_TRIP, SENDER_REPORTS,
    SILENT_SECONDS, STRANGE, UNAUTHENTIC,
};
use std::time::Duration;
use weir_metrics::common::{FRAMES, MEDIA, NUMBERED, UNITS, WAITED_FRAMES, WAITED_MEDIA};
use weir_metrics::{Moment, Recorder};
use weir_rtc::account::{Arrival, Hints, Track};
use weir_rtc::feedback;
use weir_rtc::reorder::Unit;
use weir_rtc::rtcp::{self, Compound};
use weir_rtc::rtp::{Packet, transport_sequence_number};
use weir_rtc::sdp::{Format, MediaKind, extension};
use weir_rtc::srtp::{Inbound, Outbound, SrtpError};
use weir_rtc::{AccessUnit, NtpTime, VideoCodec, sender};

/// How often receiver reports are sent, and figures of a second are made.
const SECOND: Duration = Duration::from_secs(1);
/// How often the arrival of every packet is reported, where that was agreed on.
const FEEDBACK: Duration = Duration::from_millis(100);
/// The name of all our sources (RFC 3550 section 6.5.1).
const NAME: &str = "weir";

/// The receiving side of a session.
pub(super) struct Receiver {
    tracks: Vec<TrackReceiver>,
    inbound: Inbound,
    outbound: Outbound,
    /// Bytes of each packet that are the tag.
    tag: usize,
    ssrc: u32,
    /// Whether packets are decrypted now, and whether they always are.
    opens: bool,
    witness: bool,
    /// Packets that proved the keys, and packets that did not.
    opened: u64,
    refused: u64,
    transport_sequence: Option<u8>,
    feedback: Option<Box<feedback::Recorder>>,
    feedback_at: Option<Moment>,
    remb: bool,
    /// What everything crosses before it is here, if a viewer's link is narrow.
    link: Option<Box<NarrowLink>>,
    reports: bool,
    report_at: Moment,
    /// When the second under way ends, and what it has brought.
    second_end: Option<Moment>,
    frames_before: u64,
    bytes_before: u64,
    rates: Rates,
    /// By the server's answer to an extended report, and by connectivity checks.
    round_trip: Option<Duration>,
    ice_round_trip: Option<Duration>,
    round_trips: Extent,
    numbers: Vec<u16>,
    out: Vec<u8>,
    last_media: Moment,
    /// Bytes that were sent and did not arrive, not reported yet.
    missing: u64,
    /// Media time, in microseconds, from before the time between frames was known.
    untimed: i64,
    /// Frames of the source, in fractions, not reported yet.
    source_frames: f64,
    /// Ticks of its pauses that were left out.
    paused: u32,
    /// The pictures that were agreed on do not come: the stream is one of sound.
    without_pictures: bool,
}

impl Receiver {
    /// A receiver of what was agreed on, which keeps up to `kept` bytes of each picture.
    pub(super) fn new(
        keys: &Keys,
        options: &RtcOptions,
        witness: bool,
        kept: usize,
        ssrc: u32,
        now: Moment,
    ) -> Result<Self, SrtpError> {
        let Keys { agreed, inbound, outbound, profile, .. } = keys;
        let named = |name| agreed.iter().flat_map(|it| &it.extensions).find(|it| it.name == name);
        let transport_sequence =
            named(extension::TRANSPORT_CC).map(|it| it.identifier).filter(|_| options.bandwidth);
        let gives = |what: &str| agreed.iter().any(|it| it.format.feedback.iter().any(|this| this == what));
        let tracks = agreed.iter().map(|agreed| TrackReceiver::new(agreed, options, kept)).collect();
        Ok(Self {
            tracks,
            inbound: Inbound::new(inbound)?,
            outbound: Outbound::new(outbound)?,
            tag: profile.rtp_overhead(),
            ssrc,
            opens: true,
            witness,
            opened: 0,
            refused: 0,
            feedback: transport_sequence.map(|_| Box::default()),
            feedback_at: None,
            transport_sequence,
            remb: options.bandwidth && gives("goog-remb"),
            link: options.link.map(|link| Box::new(NarrowLink::new(link))),
            reports: options.reports,
            // Each client at its own phase.
            report_at: now + Duration::from_nanos(u64::from(ssrc) % 1_000_000_000),
            second_end: None,
            frames_before: 0,
            bytes_before: 0,
            rates: Rates::default(),
            round_trip: None,
            ice_round_trip: None,
            round_trips: Extent::default(),
            numbers: Vec::new(),
            out: Vec::new(),
            last_media: now,
            missing: 0,
            untimed: 0,
            source_frames: 0.0,
            paused: 0,
            without_pictures: false,
        })
    }

    /// An RTP packet came. `shown` gets each access unit that was decrypted, and its codec.
    #[inline]
    pub(super) fn rtp(
        &mut self,
        now: Moment,
        bytes: &mut [u8],
        totals: &mut ReadTotals,
        recorder: &mut Recorder,
        shown: &mut dyn FnMut(VideoCodec, &AccessUnit<'_>, &mut Recorder),
    ) {
        let Ok(packet) = Packet::parse(bytes) else { return recorder.count(MALFORMED, 1) };
        if let (Some(identifier), Some(feedback)) = (self.transport_sequence, &mut self.feedback)
            && let Some(number) = packet.extension(identifier).and_then(transport_sequence_number)
        {
            feedback.arrive(now, number);
            self.feedback_at.get_or_insert(now + FEEDBACK);
        }
        let payload_type = packet.payload_type();
        let comes = self.tracks.iter().position(|track| track.payload_type == payload_type);
        let Some(at) = comes.or_else(|| self.tracks.iter().position(|track| track.has(payload_type))) else {
            return self.repair(now, bytes, totals, recorder, shown);
        };
        let track = &mut self.tracks[at];
        let mut hints = track.extension_hints(&packet);
        track.marks_keyframes |= hints.keyframe.is_some();
        let (packet, payload) = if self.opens {
            let header_length = packet.header_length();
            let length = match self.inbound.open_rtp(bytes) {
                Ok(opened) => {
                    self.opened += 1;
                    recorder.count(OPENED, 1);
                    Packet::parse(opened).ok().and_then(|it| it.payload()).map(<[u8]>::len)
                }
                Err(SrtpError::Replayed | SrtpError::TooOld) => {
                    recorder.count(REPLAYED, 1);
                    None
                }
                Err(_) => {
                    self.refused += 1;
                    return recorder.count(UNAUTHENTIC, 1);
                }
            };
            // The header is as it was, and lengths are those on the wire.
            let Ok(packet) = Packet::parse(bytes) else { return };
            (packet, length.and_then(|length| bytes.get(header_length..header_length + length)))
        } else {
            (packet, None)
        };
        if !track.admits(payload_type) {
            return recorder.count(STRANGE, 1);
        }
        if track.kind == MediaKind::Video {
            match payload {
                Some(payload) => {
                    if let Some(codec) = track.codec_of(payload_type) {
                        let own = codec.hints(payload);
                        let start = own.start.or(hints.start).filter(|_| !own.padding);
                        hints = Hints { start, keyframe: own.keyframe.or(hints.keyframe), ..own };
                    }
                    track.pads_media |= packet.has_padding() && !payload.is_empty();
                }
                None if !self.opens => {
                    hints.padding = track.is_padding(&packet, self.tag);
                    // A mark is all that is known then.
                    let is_key = hints.keyframe == Some(true) && !hints.padding;
                    totals.keyframe |= is_key && track.newest_keyframe.is_new(packet.timestamp());
                }
                None => {}
            }
        }
        self.end_seconds(now, recorder);
        let track = &mut self.tracks[at];
        totals.packets += 1;
        let payload_length =
            if hints.padding { 0 } else { packet.body().len().saturating_sub(self.tag) as u64 };
        totals.media += payload_length;
        track.media += payload_length;
        self.last_media = now;
        let given_up = track.account.nack().given_up();
        let first = track.account.ssrc().is_none();
        let arrival = track.account.receive(now, &packet, hints);
        let payload = track.arrived(&packet, &arrival, hints, payload);
        if track.kind != MediaKind::Video {
            totals.sound = true;
            return;
        }
        if first && track.asks {
            track.requests.start(now);
        }
        // A server that looks for more bandwidth sends padding where pictures would be.
        self.without_pictures &= hints.padding;
        if hints.keyframe == Some(true) {
            track.requests.keyframe();
            totals.keyframe_begun = true;
        }
        let number = match arrival {
            Arrival::Ahead { number, missing, .. } => {
                if track.beginning.is_some() {
                    track.spans.ahead(number, Some(packet.timestamp()).filter(|_| !hints.padding));
                }
                let lost = track.account.nack().given_up() > given_up
                    || missing > 0 && !track.account.nack().is_on();
                if lost && track.asks {
                    track.requests.lost(now);
                }
                number
            }
            Arrival::Late { number, .. } => {
                track.note_repair();
                track.spans.late(number);
                number
            }
            Arrival::Duplicate | Arrival::Stray => return,
            Arrival::Restart { .. } => return track.restart_frames(),
        };
        let (timestamp, marker) = (packet.timestamp(), packet.marker());
        totals.frame_ended = marker && !hints.padding;
        if let Some(payload) = payload {
            track.assemble(now, Unit { number, timestamp, marker, payload }, totals, recorder, shown);
        }
    }

    /// A compound RTCP packet came.
    pub(super) fn rtcp(&mut self, now: Moment, bytes: &mut [u8], recorder: &mut Recorder) {
        let opened = match self.inbound.open_rtcp(bytes) {
            Ok(opened) => &*opened,
            Err(SrtpError::Replayed | SrtpError::TooOld) => return recorder.count(REPLAYED, 1),
            Err(_) => return recorder.count(UNAUTHENTIC, 1),
        };
        for packet in Compound::new(opened) {
            match packet {
                Ok(rtcp::Packet::SenderReport(report)) => {
                    recorder.count(SENDER_REPORTS, 1);
                    for track in &mut self.tracks {
                        track.account.sender_report(now, report.sender, report.figures);
                        track.sender_report(report.sender, &report.figures);
                    }
                }
                Ok(rtcp::Packet::Extended(extended)) => {
                    for last in extended.last_reports().filter(|last| last.receiver == self.ssrc) {
                        let sent = (last.last_receiver_time, last.delay);
                        self.round_trip = sender::round_trip_of(NtpTime::of(now), sent.0, sent.1);
                    }
                }
                Ok(_) => {}
                Err(_) => recorder.count(MALFORMED, 1),
            }
        }
    }

    /// Books what a batch has brought to a viewer that waits for a keyframe or does not; `send` gets what must be said at once.
    pub(super) fn after_batch(
        &mut self,
        now: Moment,
        totals: &ReadTotals,
        waits: bool,
        recorder: &mut Recorder,
        send: &mut dyn FnMut(&[u8]),
    ) {
        recorder.count(UNITS, totals.packets);
        recorder.count(NUMBERED, totals.packets);
        recorder.count(MEDIA, totals.media);
        recorder.count(WAITED_MEDIA, if waits { totals.media } else { 0 });
        for track in &mut self.tracks {
            if track.kind == MediaKind::Video {
                let frames = track.account.frames().received;
                let frames = frames - std::mem::replace(&mut track.booked.frames, frames);
                recorder.count(FRAMES, frames);
                recorder.count(WAITED_FRAMES, if waits { frames } else { 0 });
                track.book_freezes(recorder);
            }
        }
        // What a narrow link brings is dated by its arrival, which lies ahead: requests leave when their time has come.
        let is_now = |due: Moment| due <= now && self.link.is_none();
        if self.tracks.iter().any(|track| track.requests.poll_timeout().is_some_and(is_now)) {
            self.request_missing(now, send);
        }
    }

    /// A client plays: its seconds begin. One that is no witness decrypts nothing more.
    pub(super) fn begin_seconds(&mut self, now: Moment) {
        self.second_end.get_or_insert(now + SECOND);
        if !self.witness {
            self.opens = false;
            self.tracks.iter_mut().for_each(|track| (track.assembler, track.beginning) = (None, None));
        }
        self.tracks.iter_mut().filter_map(|track| track.narrow.as_mut()).for_each(|narrow| narrow.begin());
        (self.frames_before, self.bytes_before) = self.so_far();
    }

    /// Video frames and bytes of all tracks so far.
    fn so_far(&self) -> (u64, u64) {
        let frames = self.video().map_or(0, |track| track.frames().received);
        (frames, self.tracks.iter().map(|track| track.account.counts().bytes).sum())
    }

    /// Time passes: reports, requests, figures of a second.
    pub(super) fn handle_timeout(
        &mut self,
        now: Moment,
        ice_round_trip: Option<Duration>,
        recorder: &mut Recorder,
        send: &mut dyn FnMut(&[u8]),
    ) {
        if self.report_at <= now {
            self.report(now, send, recorder);
            self.report_at = (self.report_at + SECOND).max(now);
        }
        if self.feedback_at.take_if(|at| *at <= now).is_some()
            && let Some(feedback) = &mut self.feedback
        {
            self.out.clear();
            let media = self.tracks.iter().find_map(|track| track.account.ssrc()).unwrap_or(0);
            feedback.append(now, self.ssrc, media, &mut self.out);
            self.feedback_at = feedback.has_more().then_some(now + FEEDBACK);
            if !self.out.is_empty() && self.outbound.protect_rtcp(&mut self.out, 0).is_ok() {
                send(&self.out);
            }
        }
        self.request_missing(now, send);
        self.ice_round_trip = ice_round_trip;
        self.end_seconds(now, recorder);
    }

    /// Ends the seconds that are over. What comes after them is not in them, whenever it is read.
    fn end_seconds(&mut self, now: Moment, recorder: &mut Recorder) {
        while let Some(end) = self.second_end.filter(|end| *end <= now) {
            self.second_end = Some(end + SECOND);
            self.end_second(end, recorder);
        }
    }

    fn end_second(&mut self, end: Moment, recorder: &mut Recorder) {
        let round_trip = self.round_trip.or(self.ice_round_trip);
        let (frames, bytes) = self.so_far();
        let in_second = frames - std::mem::replace(&mut self.frames_before, frames);
        let bytes = bytes - std::mem::replace(&mut self.bytes_before, bytes);
        recorder.record(BYTE_RATE, bytes);
        if let Some(link) = &mut self.link {
            link.end_second(end, bytes, recorder);
        }
        self.rates.second(in_second, bytes);
        if let Some(track) = self.video() {
            recorder.record(FRAME_RATE, in_second);
            recorder.count(SILENT_SECONDS, u64::from(in_second == 0));
            recorder.record(JITTER, track.jitter().as_micros() as u64);
        }
        if let Some(round_trip) = round_trip {
            recorder.record(ROUND_TRIP, round_trip.as_micros() as u64);
            self.round_trips.add(round_trip.as_micros() as i64);
        }
        for track in &mut self.tracks {
            if track.account.ssrc().is_some() {
                track.jitter.add(track.account.jitter().as_micros() as i64);
            }
            let loss = track.loss();
            // What comes late is not lost: a packet counts once it has been missing for a second.
            let (lost, gaps) = std::mem::replace(&mut track.before, (loss.lost(), loss.gaps));
            track.book(loss.lost().min(lost), loss.gaps.min(gaps), recorder);
            self.missing += track.take_missing();
        }
    }

    /// When to call [`Self::handle_timeout`].
    pub(super) fn poll_timeout(&self) -> Moment {
        let mut next = self.report_at;
        for at in [self.second_end, self.feedback_at].into_iter().flatten() {
            next = next.min(at);
        }
        for track in &self.tracks {
            for at in [track.account.next_request(), track.requests.poll_timeout()].into_iter().flatten() {
                next = next.min(at);
            }
        }
        next
    }

    /// The session ends: frames that are open are judged, and BYE is sent.
    pub(super) fn finish(&mut self, now: Moment, recorder: &mut Recorder, send: &mut dyn FnMut(&[u8])) {
        for track in &mut self.tracks {
            track.account.finish(now);
            let loss = track.loss();
            track.book_freezes(recorder);
            track.book(loss.lost(), loss.gaps, recorder);
            for (from, _, count) in loss.gap_lengths.classes() {
                (0..count).for_each(|_| recorder.record(GAP_LENGTH, from));
            }
        }
        self.out.clear();
        rtcp::append_receiver_report(self.ssrc, &[], &mut self.out);
        rtcp::append_canonical_name(self.ssrc, NAME, &mut self.out);
        rtcp::append_bye(self.ssrc, &mut self.out);
        if self.outbound.protect_rtcp(&mut self.out, 0).is_ok() {
            send(&self.out);
        }
    }

    /// What it has counted in all, once it is finished.
    pub(super) fn account(&mut self, numbers: &mut Numbers) {
        let has_video = self.has_video();
        for track in &mut self.tracks {
            let is_video = track.kind == MediaKind::Video;
            let seen = self.witness || track.marks_keyframes;
            let loss = track.loss();
            numbers.track(&mut track.account, &loss, is_video, seen, track.requests.sent());
            numbers.extent(if is_video { "rtc.video_jitter" } else { "rtc.audio_jitter" }, &track.jitter);
        }
        let timed = self.timed();
        let burst = timed.and_then(|track| track.drift().burst_micros());
        numbers.duration("burst", burst.map(Duration::from_micros));
        numbers.rates(&self.rates, has_video);
        if let Some(link) = &self.link {
            link.account(numbers);
        }
        numbers.extent("rtc.round_trip", &self.round_trips);
    }

    fn video(&self) -> Option<&Track> {
        let mut tracks = self.tracks.iter().filter(|_| !self.without_pictures);
        tracks.find(|track| track.kind == MediaKind::Video).map(|track| &track.account)
    }

    /// The track whose time is that of the stream: pictures, or else sound.
    fn timed(&self) -> Option<&Track> {
        let sound = || self.tracks.iter().find(|track| track.kind != MediaKind::Video);
        self.video().or_else(|| sound().map(|track| &track.account))
    }

    /// Whether sound came alone, although pictures were agreed on.
    pub(super) fn is_sound_alone(&self) -> bool {
        self.video().is_some_and(|it| it.ssrc().is_none())
            && self
                .tracks
                .iter()
                .any(|track| track.kind != MediaKind::Video && track.account.ssrc().is_some())
    }

    /// No pictures are waited for any more.
    pub(super) fn give_pictures_up(&mut self) {
        self.without_pictures = true;
    }

    /// Whether pictures were agreed on, and not given up.
    pub(super) fn has_video(&self) -> bool {
        self.video().is_some()
    }

    /// Media time of the newest packet of the pictures, or else of the sound, in microseconds.
    pub(super) fn media_micros(&self) -> Option<i64> {
        self.timed()?.media_micros()
    }

    /// Video frames of which a packet came.
    pub(super) fn frames(&self) -> u64 {
        self.so_far().0
    }

    /// Whether a batch has brought the end of a frame: of pictures, or of sound where there are none.
    pub(super) fn is_frame(&self, totals: &ReadTotals) -> bool {
        totals.frame_ended || totals.sound && !self.has_video()
    }

    /// Whether a decoder can begin with what a batch has brought.
    pub(super) fn has_begun(&self, totals: &ReadTotals) -> bool {
        totals.start_whole || !self.has_video()
    }

    /// How often the sequence of pictures, or of sound where there are none, has begun again.
    pub(super) fn restarts(&self) -> u64 {
        self.timed().map_or(0, |track| track.counts().restarts)
    }

    /// What of a track is missing that decoding could have begun with.
    pub(super) fn missing(&self) -> Option<String> {
        self.tracks.iter().find_map(|track| track.beginning.as_ref()?.missing())
    }

    /// The latest keyframe was waited for, and no decoder can begin with it.
    pub(super) fn await_keyframe(&mut self) {
        self.tracks.iter_mut().for_each(|track| track.spans.await_keyframe());
    }

    /// Whether a packet of such a keyframe is missing that will not come any more.
    pub(super) fn is_keyframe_broken(&mut self) -> bool {
        self.tracks.iter_mut().any(|track| track.spans.is_broken(track.account.nack()))
    }

    /// Whether keyframes of the pictures are known when they come, and what decoders need has come with those that came.
    pub(super) fn lacks_only_a_keyframe(&self) -> bool {
        let mut beginnings = self.tracks.iter().filter_map(|track| track.beginning.as_ref());
        beginnings.any(|beginning| !beginning.lacks())
    }

    /// What comes, track by track.
    pub(super) fn formats(&self) -> impl Iterator<Item = (MediaKind, &Format)> {
        self.tracks.iter().filter_map(|track| Some((track.kind, track.format()?)))
    }

    /// The payload type of the pictures that come.
    pub(super) fn picture_type(&self) -> Option<u8> {
        self.tracks.iter().find(|track| track.kind == MediaKind::Video).map(|track| track.payload_type)
    }

    /// Packets that the keys have opened, and those that they have not.
    pub(super) fn proofs(&self) -> (u64, u64) {
        (self.opened, self.refused)
    }

    /// When the last RTP packet came.
    pub(super) fn last_media(&self) -> Moment {
        self.last_media
    }
}
