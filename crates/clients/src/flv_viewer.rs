//! What a viewer makes of the bodies of FLV tags, whatever brings them: RTMP's messages are the same.

mod configuration;
mod decoded;

use self::configuration::Configuration;
use self::decoded::DecodedTags;
use crate::client_session::End;
use crate::client_state::{ClientPhase, ClientState, Timeouts, undecodable};
use crate::decoding::DecodedWitness;
use crate::host_clock::{self, HostClock, UNKNOWN_OFFSET};
use crate::options::PlayOptions;
use crate::playback_model::{PlaybackModel, Reading, ReceivedFrame};
use crate::playout::Playout;
use crate::sequence::Sequence;
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use crate::timeline::{Timeline, Track};
use crate::track_format::TrackFormat;
use std::sync::Arc;
use std::time::Duration;
use weir_media::{Framing, STAMP_SEARCH_LEN, Stamp};
use weir_metrics::common::{
    AHEAD, DUPLICATE, FRAMES, FRAMES_AHEAD, KEYFRAMES, LOST, MEDIA, REORDERED, UNITS, WAITED_FRAMES,
    WAITED_MEDIA, WITNESSES,
};
use weir_metrics::{Counter, Moment};
use weir_rtmp::client::HEAD_LEN;
use weir_rtmp::flv::{AudioTag, FourCc, VideoCodec, VideoTag};
use weir_rtmp::message::MediaKind;
use weir_shard::{Context, Edge};

/// How long a stream may bring sound only before it is taken to have no pictures. Servers send sound while
/// they wait for the next keyframe, so this is no less than a usual group of pictures.
const PICTURES_MAY_COME: Duration = Duration::from_secs(5);

/// Names in metadata by which a stream promises pictures.
const PICTURES: &[&[u8]] = &[b"width", b"videocodecid", b"videodatarate", b"framerate"];

/// Names in metadata by which a stream says what its sound is.
const SOUND: &[&[u8]] = &[b"audiocodecid", b"audiodatarate", b"audiosamplerate"];

/// The number 0 in AMF0: servers describe so what is not there.
const NOTHING: [u8; 9] = [0; 9];

/// The longest video tag in front of a frame of one track.
const LONGEST_TAG: usize = 16;

// All of a frame that is searched for a stamp is in its head.
const _: () = assert!(HEAD_LEN >= LONGEST_TAG + STAMP_SEARCH_LEN);

/// The bit of a video tag's first byte, and the sound format in an audio tag's, that say: the codec is named by a
/// FourCC (E-RTMP v2, "Enhanced Video" and "Enhanced Audio").
const ENHANCED_VIDEO: u8 = 0x80;
const ENHANCED_AUDIO: u8 = 9 << 4;

/// What a protocol that carries FLV bodies counts beside the common figures.
#[derive(Clone, Copy, Debug)]
pub struct FlvFigures {
    /// Audio frames.
    pub audio_frames: Counter,
    /// Decoder configurations of audio and video.
    pub sequence_headers: Counter,
    /// Script data: metadata and its like.
    pub data: Counter,
    /// Bodies in the form of enhanced RTMP.
    pub enhanced: Counter,
    /// Bodies whose first bytes are no audio or video tag.
    pub unreadable: Counter,
    /// Whether the numbers in frames' clock stamps are all that shows a loss: the protocol has none of its own.
    pub numbers_frames: bool,
}

/// The body of one tag.
#[derive(Clone, Copy, Debug)]
pub struct FlvBody<'a> {
    /// What it carries.
    pub kind: MediaKind,
    /// Milliseconds, modulo 2³².
    pub timestamp: u32,
    /// Its length in bytes.
    pub length: u32,
    /// Its first bytes: [`HEAD_LEN`] of audio and video, or all if it is shorter; of a viewer that is decoded as much as there is.
    pub head: &'a [u8],
}

impl FlvBody<'_> {
    /// Whether all of it is there.
    fn is_whole(&self) -> bool {
        self.head.len() == self.length as usize
    }
}

/// What a client that plays FLV bodies has beside its protocol.
pub struct FlvViewer {
    /// Its phases.
    pub state: ClientState,
    reading: Reading,
    playback: PlaybackModel,
    /// That of all viewers of its workload: a copy would be a fortieth of each.
    clock: Arc<HostClock>,
    figures: &'static FlvFigures,
    sequence: Sequence,
    /// When the first sound came.
    first_sound: Option<Moment>,
    /// What of the decoders' configurations has come.
    configuration: Configuration,
    /// What a decoder is given, if this viewer is decoded.
    decoded: Option<Box<DecodedTags>>,
    pictures: Pictures,
    /// Whether it is told what pictures and sound are.
    told: [bool; 2],
    /// Media and frames of the reads before it played.
    waited: u32,
    waited_frames: u32,
    totals: ReadTotals,
}

/// What is known of a stream's pictures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pictures {
    /// None has come, and nothing says whether there are any.
    Unknown,
    /// Some have come, or metadata says that they will.
    Promised,
    /// The stream is described to have none.
    Absent,
}

/// What one read adds, so that the shard's recorder is written once a read.
#[derive(Clone, Copy, Default)]
struct ReadTotals {
    media: u64,
    units: u32,
    frames: u32,
    keyframes: u32,
    sounds: u32,
}

impl FlvViewer {
    /// A viewer that begins to connect.
    pub fn new(
        planned: PlannedStart,
        (timeouts, playout, clock): (Timeouts, Playout, Arc<HostClock>),
        figures: &'static FlvFigures,
        reading: Reading,
        now: Moment,
        shard: &mut ShardRecorder,
    ) -> Self {
        if reading == Reading::Witness {
            shard.of(planned).shift(WITNESSES, 1);
        }
        Self {
            state: ClientState::begin(planned, timeouts, now, shard).waiting_for_keyframes(),
            reading,
            playback: PlaybackModel::new(reading, planned.client, Timeline::new(1_000, 32), playout, now),
            clock,
            figures,
            sequence: Sequence::default(),
            first_sound: None,
            configuration: Configuration::default(),
            decoded: None,
            pictures: Pictures::Unknown,
            told: [false; 2],
            waited: 0,
            waited_frames: 0,
            totals: ReadTotals::default(),
        }
    }

    /// The viewer of a workload with these options.
    pub fn of(
        planned: PlannedStart,
        playing: (Timeouts, Playout, Arc<HostClock>),
        figures: &'static FlvFigures,
        options: &PlayOptions,
        now: Moment,
        shard: &mut ShardRecorder,
    ) -> Self {
        let (reading, decoded) = (options.reading(planned.client), options.decoded(planned.client));
        Self::new(planned, playing, figures, reading, now, shard).decoded(decoded)
    }

    /// The same, whose frames a decoder is given.
    pub(crate) fn decoded(mut self, witness: Option<DecodedWitness>) -> Self {
        self.decoded = witness.map(|witness| Box::new(DecodedTags::new(witness)));
        self
    }

    /// Whether [`FlvBody::head`] should be all of a frame.
    pub fn is_decoded(&self) -> bool {
        self.decoded.is_some()
    }

    /// The stream is described to have pictures.
    pub(crate) fn expect_pictures(&mut self) {
        self.pictures = Pictures::Promised;
    }

    /// The stream is described to have no pictures.
    pub(crate) fn expect_sound_alone(&mut self) {
        self.pictures = Pictures::Absent;
    }

    /// Frames and sounds that came since the last [`Self::end_of_read`].
    #[inline]
    pub fn came(&self) -> u64 {
        u64::from(self.totals.frames) + u64::from(self.totals.sounds)
    }

    /// A body came.
    #[inline]
    pub fn take(&mut self, body: &FlvBody<'_>, now: Moment, shard: &mut ShardRecorder) {
        self.totals.units += 1;
        self.totals.media += u64::from(body.length);
        match body.kind {
            MediaKind::Video => self.video(body, now, shard),
            MediaKind::Audio => self.audio(body, now, shard),
            MediaKind::Data => self.data(body, shard),
        }
    }

    #[inline]
    fn video(&mut self, body: &FlvBody<'_>, now: Moment, shard: &mut ShardRecorder) {
        self.begin_media(now, shard);
        self.pictures = Pictures::Promised;
        let Ok(tag) = VideoTag::parse(body.head) else { return self.unreadable(body, shard) };
        if body.head[0] & ENHANCED_VIDEO != 0 {
            shard.of(self.state.planned()).count(self.figures.enhanced, 1);
        }
        if !tag.is_frame() {
            if tag.is_sequence_header() {
                self.configuration.video_header(&tag, body.head);
                if let Some(decoded) = &mut self.decoded {
                    decoded.video_header(&tag, body);
                }
                self.tell(TrackFormat::of_video(&tag, body.head), shard);
                shard.of(self.state.planned()).count(self.figures.sequence_headers, 1);
            }
            return;
        }
        let keyframe = tag.is_keyframe();
        self.totals.frames += 1;
        self.totals.keyframes += u32::from(keyframe);
        if self.state.phase() == ClientPhase::Opening
            && self.configuration.picture(&tag, body.head)
            && !self.configuration.lacks_sound()
        {
            if !self.told[Track::Video as usize] {
                self.tell(TrackFormat::of_video(&tag, body.head), shard);
            }
            self.play(now, shard);
            let recorder = shard.of(self.state.planned());
            recorder.count(AHEAD, u64::from(self.waited) + self.totals.media);
            recorder.count(FRAMES_AHEAD, u64::from(self.waited_frames) + u64::from(self.totals.frames));
        }
        if self.state.phase() != ClientPhase::Playing {
            return;
        }
        if keyframe {
            self.state.note_keyframe(now, body.timestamp, shard);
        }
        if let Some(decoded) = &mut self.decoded {
            decoded.picture(&tag, body, now);
        }
        let timestamp = u64::from(body.timestamp);
        let seen = ReceivedFrame { track: Track::Video, timestamp, bytes: body.length, keyframe };
        self.playback.frame(now, seen, shard.of(self.state.planned()));
        if self.reading == Reading::Witness && tag.codec == VideoCodec::FourCc(FourCc::AVC) {
            self.stamp(&body.head[tag.payload_offset.min(body.head.len())..], now, shard);
        }
    }

    /// It plays, since `at`: for the first time, or again.
    fn play(&mut self, at: Moment, shard: &mut ShardRecorder) {
        if self.state.is_away() {
            self.playback.come_back(at);
        }
        self.state.reach(ClientPhase::Playing, at, shard);
    }

    #[inline]
    fn audio(&mut self, body: &FlvBody<'_>, now: Moment, shard: &mut ShardRecorder) {
        self.begin_media(now, shard);
        let Ok(tag) = AudioTag::parse(body.head) else { return self.unreadable(body, shard) };
        if body.head[0] & 0xF0 == ENHANCED_AUDIO {
            shard.of(self.state.planned()).count(self.figures.enhanced, 1);
        }
        if !tag.is_frame() {
            if tag.is_sequence_header() {
                self.configuration.audio_header(&tag, body.length);
                if let Some(decoded) = &mut self.decoded {
                    decoded.audio_header(&tag, body);
                }
                self.tell(TrackFormat::of_audio(&tag, body.head), shard);
                shard.of(self.state.planned()).count(self.figures.sequence_headers, 1);
            }
            return;
        }
        self.totals.sounds += 1;
        self.first_sound.get_or_insert(now);
        self.configuration.sound(&tag);
        if !self.told[Track::Audio as usize] {
            self.tell(TrackFormat::of_audio(&tag, body.head), shard);
        }
        if self.state.phase() == ClientPhase::Playing {
            let timestamp = u64::from(body.timestamp);
            let seen = ReceivedFrame { track: Track::Audio, timestamp, bytes: body.length, keyframe: false };
            if let Some(decoded) = &mut self.decoded {
                decoded.sound(&tag, body, self.pictures != Pictures::Promised, now);
            }
            self.playback.frame(now, seen, shard.of(self.state.planned()));
        }
    }

    #[cold]
    fn tell(&mut self, format: TrackFormat, shard: &mut ShardRecorder) {
        self.told[format.kind as usize] = true;
        shard.track(self.state.planned(), format);
    }

    #[cold]
    fn data(&mut self, body: &FlvBody<'_>, shard: &mut ShardRecorder) {
        shard.of(self.state.planned()).count(self.figures.data, 1);
        // The head may end inside the metadata, so it is searched and not decoded.
        let says = |name: &&[u8]| {
            let at = body.head.windows(name.len()).position(|bytes| bytes == *name);
            at.is_some_and(|at| !body.head[at + name.len()..].starts_with(&NOTHING))
        };
        if PICTURES.iter().any(says) {
            self.pictures = Pictures::Promised;
        } else if self.pictures == Pictures::Unknown && body.is_whole() && SOUND.iter().any(says) {
            // What is described in full, and has sound alone, is all that there is.
            self.pictures = Pictures::Absent;
        }
    }

    /// Media is consent, whether the server says so or not.
    #[inline]
    fn begin_media(&mut self, now: Moment, shard: &mut ShardRecorder) {
        if self.state.phase() < ClientPhase::Opening {
            self.state.reach(ClientPhase::Opening, now, shard);
        }
    }

    /// An empty body is what some servers keep a connection alive with.
    #[cold]
    fn unreadable(&mut self, body: &FlvBody<'_>, shard: &mut ShardRecorder) {
        shard.of(self.state.planned()).count(self.figures.unreadable, u64::from(body.length > 0));
    }

    fn stamp(&mut self, access_unit: &[u8], now: Moment, shard: &mut ShardRecorder) {
        let Some(stamp) = Stamp::find(access_unit, Framing::LengthPrefixed) else { return };
        let recorder = shard.of(self.state.planned());
        let latency = stamp.latency(&self.clock.at(now), UNKNOWN_OFFSET);
        host_clock::record_latency(recorder, latency);
        if !self.figures.numbers_frames {
            return;
        }
        let finding = self.sequence.take(stamp.sequence_number);
        recorder.count(LOST, u64::from(finding.lost));
        recorder.count(REORDERED, u64::from(finding.reordered));
        recorder.count(DUPLICATE, u64::from(finding.duplicate));
    }

    /// Books what a read brought, before a failure that it brought, too, may end the client.
    pub fn book(&mut self, now: Moment, shard: &mut ShardRecorder) {
        if self.came() > 0 {
            self.state.fed(now, shard);
        }
        let totals = std::mem::take(&mut self.totals);
        let recorder = shard.of(self.state.planned());
        if self.state.phase() < ClientPhase::Playing {
            self.waited = self.waited.saturating_add(u32::try_from(totals.media).unwrap_or(u32::MAX));
            self.waited_frames = self.waited_frames.saturating_add(totals.frames);
            if self.state.is_excused() {
                recorder.count(WAITED_MEDIA, totals.media);
                recorder.count(WAITED_FRAMES, totals.frames.into());
            }
        }
        recorder.count(MEDIA, totals.media);
        recorder.count(UNITS, totals.units.into());
        recorder.count(FRAMES, totals.frames.into());
        recorder.count(KEYFRAMES, totals.keyframes.into());
        recorder.count(self.figures.audio_frames, totals.sounds.into());
    }

    /// A read is over; whether nothing had waited.
    pub fn end_of_read(&mut self, was_empty: bool, now: Moment, shard: &mut ShardRecorder) {
        if self.state.phase() == ClientPhase::Playing {
            let ended = self.playback.end_of_read(now, was_empty, shard.of(self.state.planned()));
            shard.track_ended(self.state.planned(), ended);
            self.state.end_of_read(was_empty, now, shard);
        }
    }

    /// The link is lost, and another is sought: the player goes on with what it has.
    pub fn begin_again(&mut self, shard: &mut ShardRecorder) {
        let lost = std::mem::take(&mut self.sequence).end();
        shard.of(self.state.planned()).count(LOST, u64::from(lost));
        (self.first_sound, self.pictures) = (None, Pictures::Unknown);
        (self.configuration, self.told) = (Configuration::default(), [false; 2]);
        (self.waited, self.waited_frames) = (0, 0);
    }

    /// A moment of [`Self::poll_timeout`] has come: pulls, if it is time to read.
    pub fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let unread = if self.playback.asks(context.now) { context.unread() } else { 0 };
        let (now, shard) = (context.now, &mut *context.world);
        if self.sound_judged_at().is_some_and(|at| at <= now)
            && let Some(first) = self.first_sound
        {
            // It has been playing since its first frame.
            self.play(first, shard);
            self.state.fed(now, shard);
        }
        let recorder = shard.of(self.state.planned());
        if self.state.has_begun()
            && self.playback.poll_timeout().is_some_and(|next| next <= now)
            && self.playback.handle_timeout(now, unread, recorder)
        {
            if self.state.is_away() {
                // What comes before the stream can be shown again is no media of the player's.
                self.playback.end_of_read(now, true, recorder);
            } else {
                context.pull();
            }
        }
    }

    /// An edge of what is judged has come, and what had come up to it was read.
    pub fn edge(&mut self, edge: Edge, shard: &mut ShardRecorder) {
        if self.state.phase() == ClientPhase::Playing {
            self.playback.edge(edge.at, edge.arrived, shard.of(self.state.planned()));
        }
    }

    /// When a stream that has brought only sound so far is taken to have nothing else.
    fn sound_judged_at(&self) -> Option<Moment> {
        let is_sound = self.state.phase() == ClientPhase::Opening && self.pictures != Pictures::Promised;
        let first = self.first_sound.filter(|_| is_sound && !self.configuration.lacks_sound())?;
        if self.pictures == Pictures::Absent {
            return Some(first);
        }
        Some(self.state.deadline().map_or(first, |deadline| deadline.min(first + PICTURES_MAY_COME)))
    }

    /// When [`Self::handle_timeout`] is to be called.
    pub fn poll_timeout(&self) -> Option<Moment> {
        let playback = if self.state.has_begun() { self.playback.poll_timeout() } else { None };
        [self.sound_judged_at(), playback].into_iter().flatten().min()
    }

    /// Whether nothing that a decoder needs is known to be missing but a keyframe.
    pub fn lacks_only_a_keyframe(&self) -> bool {
        self.configuration.missing().is_none()
    }

    /// How a viewer fails that has waited too long: what was missing of a stream that came.
    pub fn overdue(&self) -> End {
        let (failure, words) = self.state.overdue();
        match self.configuration.missing().filter(|_| self.state.phase() == ClientPhase::Opening) {
            Some(missing) => (failure, undecodable(missing)),
            None => (failure, words.to_owned()),
        }
    }

    /// Bytes to wait for before reading.
    pub fn batch(&self) -> usize {
        if self.state.phase() == ClientPhase::Playing { self.playback.batch() } else { 1 }
    }

    /// Books what only the end reveals.
    pub fn leave(&mut self, now: Moment, shard: &mut ShardRecorder) {
        self.decoded = None;
        let recorder = shard.of(self.state.planned());
        recorder.count(LOST, u64::from(self.sequence.end()));
        if self.state.has_begun() {
            self.playback.leave(now, recorder);
        }
        if self.reading == Reading::Witness {
            recorder.shift(WITNESSES, -1);
        }
    }
}
