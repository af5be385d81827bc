//! An RTMP player.

use super::figures::{
    AUDIO_FRAMES, DATA_MESSAGES, DIGEST_HANDSHAKES, ENHANCED, SEQUENCE_HEADERS, SERVER_ACKS, STATUSES,
    STREAM_ENDS, UNREADABLE_TAGS,
};
use super::refusal::{Verdict, verdict};
use crate::host_clock::{self, HostClock, UNKNOWN_OFFSET};
use crate::ledger::{Ledger, Slot};
use crate::life::{Life, Phase, Timeouts};
use crate::playout::Playout;
use crate::sequence::Sequence;
use crate::timeline::{Timeline, Track};
use crate::viewing::{Reading, Seen, Viewing};
use std::sync::Arc;
use std::time::Duration;
use weir_media::{Framing, STAMP_SEARCH_LEN, Stamp};
use weir_metrics::common::{
    DUPLICATE, FRAMES, KEYFRAMES, LOST, MEDIA, READS, RECEIVED, REORDERED, SENT, UNITS, WITNESSES,
};
use weir_metrics::{Failure, Moment};
use weir_rtmp::client::{HEAD_LEN, Media};
use weir_rtmp::flv::{AudioTag, FourCc, VideoCodec, VideoTag};
use weir_rtmp::handshake::Scheme;
use weir_rtmp::message::{MediaKind, Status};
use weir_rtmp::{Client, ClientEvent, ClientOptions};
use weir_shard::{Context, Event, Session};

/// How long a stream may bring sound only before it is taken to have no pictures. Servers send sound while
/// they wait for the next keyframe, so this is no less than a usual group of pictures.
const PICTURES_MAY_COME: Duration = Duration::from_secs(5);

/// Names in metadata by which a stream promises pictures.
const PICTURES: &[&[u8]] = &[b"width", b"videocodecid", b"videodatarate", b"framerate"];

/// The longest video tag in front of a frame of one track.
const LONGEST_TAG: usize = 16;

// All of a frame that is searched for a stamp is in its head.
const _: () = assert!(HEAD_LEN >= LONGEST_TAG + STAMP_SEARCH_LEN);

/// The bit of a video tag's first byte, and the sound format in an audio tag's, that say: the codec is named by a
/// FourCC (E-RTMP v2, "Enhanced Video" and "Enhanced Audio").
const ENHANCED_VIDEO: u8 = 0x80;
const ENHANCED_AUDIO: u8 = 9 << 4;

/// What all players of a workload share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) timeouts: Timeouts,
    pub(super) playout: Playout,
    pub(super) end_grace: Duration,
    pub(super) clock: HostClock,
}

/// One virtual viewer.
pub(super) struct Player {
    client: Client,
    viewer: Viewer,
}

/// All of a player but the protocol's machine.
struct Viewer {
    life: Life,
    common: Arc<Common>,
    reading: Reading,
    viewing: Viewing,
    sequence: Sequence,
    /// When the first sound came.
    first_sound: Option<Moment>,
    /// Pictures have come, or metadata says that they will.
    has_pictures: bool,
    stopping: bool,
    /// The server said that the stream has ended: when that becomes a failure, and its words.
    ended: Option<Box<(Moment, String)>>,
    /// A refusal met while reading, to be booked when the read is over.
    refused: Option<Box<(Failure, String)>>,
    tally: Tally,
}

/// What one read adds, so that the ledger is written once a read.
#[derive(Clone, Copy, Default)]
struct Tally {
    media: u64,
    units: u64,
    frames: u64,
    keyframes: u64,
    sounds: u64,
}

impl Player {
    pub(super) fn new(
        slot: Slot,
        options: Arc<ClientOptions>,
        common: Arc<Common>,
        reading: Reading,
        now: Moment,
        ledger: &mut Ledger,
    ) -> Self {
        let life = Life::begin(slot, common.timeouts, now, ledger);
        if reading == Reading::Witness {
            ledger.of(slot).shift(WITNESSES, 1);
        }
        Self {
            client: Client::new(options, u64::from(slot.client) ^ now.as_nanos()),
            viewer: Viewer {
                life,
                reading,
                viewing: Viewing::new(reading, slot.client, Timeline::new(1_000, 32), common.playout, now),
                common,
                sequence: Sequence::default(),
                first_sound: None,
                has_pictures: false,
                stopping: false,
                ended: None,
                refused: None,
                tally: Tally::default(),
            },
        }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, Ledger>) {
        let (now, ledger) = (context.now, &mut *context.world);
        let viewer = &mut self.viewer;
        if !bytes.is_empty() {
            let recorder = ledger.of(viewer.life.slot());
            recorder.count(READS, 1);
            recorder.count(RECEIVED, bytes.len() as u64);
            let outcome = self.client.input(bytes, &mut |event| viewer.hear(event, now, ledger));
            if viewer.tally.frames + viewer.tally.sounds > 0 {
                viewer.life.fed(now, ledger);
            }
            viewer.tally.book(ledger, viewer.life.slot());
            if let Err(error) = outcome {
                viewer.fail(Failure::MalformedInput, &error.to_string(), now, ledger);
            }
            if let Some(refusal) = viewer.refused.take() {
                viewer.fail(refusal.0, &refusal.1, now, ledger);
            }
        }
        if viewer.life.phase() == Phase::Playing {
            viewer.viewing.end_of_read(now, bytes.is_empty(), ledger.of(viewer.life.slot()));
            viewer.life.end_of_read(bytes.is_empty(), now, ledger);
        }
        if viewer.stopping {
            let connected = viewer.life.phase() > Phase::Connecting;
            viewer.leave(now, ledger);
            viewer.life.finish(ledger);
            if !connected {
                return;
            }
            self.client.close();
        }
        self.send(context);
    }

    fn send(&mut self, context: &mut Context<'_, Ledger>) {
        let output = self.client.output();
        if output.is_empty() {
            return;
        }
        context.send(output);
        context.world.of(self.viewer.life.slot()).count(SENT, output.len() as u64);
        // The handshake made it large; what a player says later is a few bytes a minute.
        *output = Vec::new();
    }
}

impl Session<Ledger> for Player {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Ledger>) {
        let viewer = &mut self.viewer;
        let now = context.now;
        match event {
            Event::Opening
            | Event::Writable
            | Event::Woken
            | Event::Datagrams(_)
            | Event::Side(_)
            | Event::HungUp { .. } => {}
            Event::Connected => {
                viewer.life.reach(Phase::Handshaking, now, context.world);
                self.send(context);
            }
            Event::Bytes(bytes) => self.read(bytes, context),
            Event::Timer => viewer.time(context),
            Event::Stop => {
                viewer.stopping = true;
                context.pull();
                return;
            }
            Event::Closed { failure, words } => viewer.close(failure, words, now, context.world),
        }
        let viewer = &self.viewer;
        if viewer.life.phase() == Phase::Over {
            context.close();
            return;
        }
        context.set_low_water(viewer.batch());
        match viewer.next() {
            Some(next) => context.set_timer(next),
            None => context.clear_timer(),
        }
    }
}

impl Viewer {
    #[inline]
    fn hear(&mut self, event: ClientEvent<'_>, now: Moment, ledger: &mut Ledger) {
        match event {
            ClientEvent::Media(media) => self.media(&media, now, ledger),
            ClientEvent::HandshakeDone { scheme } => {
                self.life.reach(Phase::Requesting, now, ledger);
                ledger.of(self.life.slot()).count(DIGEST_HANDSHAKES, u64::from(scheme == Scheme::Digest));
            }
            ClientEvent::Playing => self.life.reach(Phase::Waiting, now, ledger),
            ClientEvent::Status(status) => self.status(&status, now, ledger),
            ClientEvent::StreamEof { .. } => self.ended("the server said: stream EOF", now, ledger),
            ClientEvent::Acknowledged { .. } => ledger.of(self.life.slot()).count(SERVER_ACKS, 1),
            ClientEvent::Connected
            | ClientEvent::StreamCreated { .. }
            | ClientEvent::Publishing
            | ClientEvent::StreamBegin { .. }
            | ClientEvent::StreamDry { .. } => {}
        }
    }

    fn status(&mut self, status: &Status<'_>, now: Moment, ledger: &mut Ledger) {
        ledger.of(self.life.slot()).count(STATUSES, 1);
        match verdict(status) {
            Verdict::Fine => {}
            Verdict::Ended => {
                self.ended("", now, ledger);
                // Its words say more than the event that may have come before.
                if let Some(ended) = &mut self.ended {
                    ended.1 = status.to_string();
                }
            }
            Verdict::Failed(failure) => {
                self.refused.get_or_insert_with(|| Box::new((failure, status.to_string())));
            }
        }
    }

    /// The stream has ended, unless media comes again within the grace.
    fn ended(&mut self, words: &str, now: Moment, ledger: &mut Ledger) {
        if self.ended.is_none() {
            ledger.of(self.life.slot()).count(STREAM_ENDS, 1);
            self.ended = Some(Box::new((now + self.common.end_grace, words.to_owned())));
        }
    }

    #[inline]
    fn media(&mut self, media: &Media<'_>, now: Moment, ledger: &mut Ledger) {
        self.tally.units += 1;
        self.tally.media += u64::from(media.length);
        match media.kind {
            MediaKind::Video => self.video(media, now, ledger),
            MediaKind::Audio => self.audio(media, now, ledger),
            MediaKind::Data => self.data(media, ledger),
        }
    }

    #[inline]
    fn video(&mut self, media: &Media<'_>, now: Moment, ledger: &mut Ledger) {
        self.begin_media(now, ledger);
        self.has_pictures = true;
        let Ok(tag) = VideoTag::parse(media.head) else { return self.unreadable(media, ledger) };
        if media.head[0] & ENHANCED_VIDEO != 0 {
            ledger.of(self.life.slot()).count(ENHANCED, 1);
        }
        if !tag.is_frame() {
            ledger.of(self.life.slot()).count(SEQUENCE_HEADERS, u64::from(tag.is_sequence_header()));
            return;
        }
        let keyframe = tag.is_keyframe();
        self.tally.frames += 1;
        self.tally.keyframes += u64::from(keyframe);
        self.ended = None;
        if self.life.phase() == Phase::Opening && keyframe {
            self.life.reach(Phase::Playing, now, ledger);
        }
        if self.life.phase() != Phase::Playing {
            return;
        }
        let seen = Seen {
            track: Track::Video,
            timestamp: u64::from(media.timestamp),
            bytes: media.length,
            keyframe,
        };
        self.viewing.frame(now, seen, ledger.of(self.life.slot()));
        if self.reading == Reading::Witness && tag.codec == VideoCodec::FourCc(FourCc::AVC) {
            self.stamp(&media.head[tag.payload_offset.min(media.head.len())..], now, ledger);
        }
    }

    #[inline]
    fn audio(&mut self, media: &Media<'_>, now: Moment, ledger: &mut Ledger) {
        self.begin_media(now, ledger);
        let Ok(tag) = AudioTag::parse(media.head) else { return self.unreadable(media, ledger) };
        if media.head[0] & 0xF0 == ENHANCED_AUDIO {
            ledger.of(self.life.slot()).count(ENHANCED, 1);
        }
        if !tag.is_frame() {
            ledger.of(self.life.slot()).count(SEQUENCE_HEADERS, u64::from(tag.is_sequence_header()));
            return;
        }
        self.tally.sounds += 1;
        self.ended = None;
        self.first_sound.get_or_insert(now);
        if self.life.phase() == Phase::Playing {
            let seen = Seen {
                track: Track::Audio,
                timestamp: u64::from(media.timestamp),
                bytes: media.length,
                keyframe: false,
            };
            self.viewing.frame(now, seen, ledger.of(self.life.slot()));
        }
    }

    #[cold]
    fn data(&mut self, media: &Media<'_>, ledger: &mut Ledger) {
        ledger.of(self.life.slot()).count(DATA_MESSAGES, 1);
        // The head may end inside the metadata, so it is searched and not decoded.
        let names = |name: &&[u8]| media.head.windows(name.len()).any(|bytes| bytes == *name);
        self.has_pictures |= PICTURES.iter().any(names);
    }

    /// Media is consent, whether the server says so or not.
    #[inline]
    fn begin_media(&mut self, now: Moment, ledger: &mut Ledger) {
        if self.life.phase() < Phase::Opening {
            self.life.reach(Phase::Opening, now, ledger);
        }
    }

    /// An empty message is what some servers keep a connection alive with.
    #[cold]
    fn unreadable(&mut self, media: &Media<'_>, ledger: &mut Ledger) {
        ledger.of(self.life.slot()).count(UNREADABLE_TAGS, u64::from(media.length > 0));
    }

    fn stamp(&mut self, access_unit: &[u8], now: Moment, ledger: &mut Ledger) {
        let Some(stamp) = Stamp::find(access_unit, Framing::LengthPrefixed) else { return };
        let recorder = ledger.of(self.life.slot());
        let latency = stamp.latency(&self.common.clock.at(now), UNKNOWN_OFFSET);
        host_clock::record_latency(recorder, latency);
        let finding = self.sequence.take(stamp.sequence_number);
        recorder.count(LOST, u64::from(finding.lost));
        recorder.count(REORDERED, u64::from(finding.reordered));
        recorder.count(DUPLICATE, u64::from(finding.duplicate));
    }

    /// A deadline passed: one of several.
    fn time(&mut self, context: &mut Context<'_, Ledger>) {
        let unread = if self.viewing.asks(context.now) { context.unread() } else { 0 };
        let (now, ledger) = (context.now, &mut *context.world);
        if self.sound_judged_at().is_some_and(|at| at <= now)
            && let Some(first) = self.first_sound
        {
            // It has been playing since its first frame.
            self.life.reach(Phase::Playing, first, ledger);
            self.life.fed(now, ledger);
        }
        let hungry = self.life.is_hungry(now);
        if !hungry && self.life.deadline().is_some_and(|deadline| deadline <= now) {
            let (failure, words) = self.life.overdue();
            return self.fail(failure, words, now, ledger);
        }
        if let Some(ended) = self.ended.take_if(|ended| ended.0 <= now) {
            return self.fail(Failure::StreamEnded, &ended.1, now, ledger);
        }
        if self.life.phase() == Phase::Playing
            && self.viewing.next().is_some_and(|next| next <= now)
            && self.viewing.pass(now, unread, ledger.of(self.life.slot()))
            || hungry
        {
            context.pull();
        }
    }

    /// When a stream that has brought only sound so far is taken to have nothing else.
    fn sound_judged_at(&self) -> Option<Moment> {
        let first = self.first_sound.filter(|_| self.life.phase() == Phase::Opening && !self.has_pictures)?;
        Some(self.life.deadline().map_or(first, |deadline| deadline.min(first + PICTURES_MAY_COME)))
    }

    /// When to be told the time.
    fn next(&self) -> Option<Moment> {
        let viewing = if self.life.phase() == Phase::Playing { self.viewing.next() } else { None };
        let ended = self.ended.as_ref().map(|ended| ended.0);
        [self.life.deadline(), ended, self.sound_judged_at(), viewing].into_iter().flatten().min()
    }

    fn batch(&self) -> usize {
        let crowd = self.life.phase() == Phase::Playing && self.ended.is_none();
        if crowd { self.viewing.batch() } else { 1 }
    }

    fn close(&mut self, failure: Failure, words: &str, now: Moment, ledger: &mut Ledger) {
        match self.ended.take() {
            // A server that says goodbye first has not broken off.
            Some(ended) => self.fail(Failure::StreamEnded, &ended.1, now, ledger),
            None => {
                let words = if words.is_empty() { "the server closed the link" } else { words };
                self.fail(failure, words, now, ledger);
            }
        }
    }

    fn fail(&mut self, failure: Failure, words: &str, now: Moment, ledger: &mut Ledger) {
        self.leave(now, ledger);
        self.life.fail(failure, words, now, ledger);
    }

    /// Books what only the end reveals.
    fn leave(&mut self, now: Moment, ledger: &mut Ledger) {
        if self.life.phase() == Phase::Over {
            return;
        }
        let recorder = ledger.of(self.life.slot());
        recorder.count(LOST, u64::from(self.sequence.end()));
        if self.life.phase() == Phase::Playing {
            self.viewing.leave(now, recorder);
        }
        if self.reading == Reading::Witness {
            recorder.shift(WITNESSES, -1);
        }
    }
}

impl Tally {
    fn book(&mut self, ledger: &mut Ledger, slot: Slot) {
        let recorder = ledger.of(slot);
        recorder.count(MEDIA, self.media);
        recorder.count(UNITS, self.units);
        recorder.count(FRAMES, self.frames);
        recorder.count(KEYFRAMES, self.keyframes);
        recorder.count(AUDIO_FRAMES, self.sounds);
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_of_players_fit_into_memory() {
        // Beside this a player keeps its reader's chunk streams and the head of a frame, some 2 kB.
        assert!(size_of::<Player>() <= 1_024, "{} bytes", size_of::<Player>());
    }
}
