//! A WebRTC viewer: it accounts for what comes.

use super::RtcOptions;
use super::account::{Extent, Numbers};
use super::client::{Client, Line, Role};
use super::connection::{Connection, Keys, Terms, ssrc};
use super::figures::{FIRST_KEYFRAME, FIRST_PACKET, WITHOUT_PICTURES};
use super::receiver::beginning::nal_codec;
use super::receiver::{ReadTotals, Receiver};
use super::request::Request;
use crate::client_session::End;
use crate::client_state::{ClientPhase, ClientState, Timeouts, undecodable};
use crate::decoding::DecodedWitness;
use crate::host_clock::{self, HostClock, UNKNOWN_OFFSET};
use crate::playback_model::{Continuation, PlaybackModel, Reading};
use crate::playout::Playout;
use crate::shard_recorder::{ClientRecord, ShardRecorder};
use crate::timeline::{Timeline, Track};
use crate::track_format::TrackFormat;
use crate::workload::NewClient;
use std::sync::Arc;
use weir_media::{Framing, PictureCodec, PictureFormat, STAMP_SEARCH_LEN, Stamp, append_obus, units};
use weir_metrics::common::{AHEAD, FRAMES_AHEAD, WITNESSES};
use weir_metrics::{Failure, Moment, Recorder};
use weir_rtc::sdp::{Format, MediaKind};
use weir_rtc::{AccessUnit, VideoCodec};
use weir_shard::Context;

/// The longest picture that is put together for a decoder: larger than any of H.264 up to level 5.2 (ITU-T H.264 table A-1, MinCR).
const LONGEST_PICTURE: usize = 8 * 1024 * 1024;

/// Units that are looked at for what describes the pictures.
const MOST_UNITS: usize = 16;

/// What all viewers of a workload share.
pub(super) struct SharedOptions {
    pub(super) terms: Arc<Terms>,
    pub(super) timeouts: Timeouts,
    pub(super) playout: Playout,
    pub(super) rtc: RtcOptions,
    pub(super) clock: HostClock,
}

/// One virtual viewer.
pub(super) struct Player {
    options: Arc<SharedOptions>,
    witness: bool,
    /// What a decoder is given, if this viewer is decoded.
    decoded: Option<Box<DecodedWitness>>,
    playback: PlaybackModel,
    receiver: Option<Box<Receiver>>,
    /// What has come since it was last settled.
    totals: ReadTotals,
    /// The moment up to which the modelled player has been fed.
    media: i64,
    /// Bytes of payload that it has not been fed yet.
    untold: u64,
    /// How often the sequence of its packets has begun again, and whether it has since the last frame.
    restarts: u64,
    jumps: bool,
    /// The media time at which the sequence under way has begun.
    base: i64,
    latency: Extent,
    /// What it has counted in sessions that are over.
    numbers: Option<Numbers>,
    /// What it reads, of the workload's targets.
    target: u32,
    /// What a keyframe says of the pictures.
    pictures: Option<(VideoCodec, PictureFormat)>,
    /// The payload type of the pictures whose format was told: as soon as it plays, and when another codec comes.
    told: Option<u8>,
    /// A keyframe came to it while it waited for one, and was not whole.
    missed_keyframe: bool,
    /// Whether it plays sound, since the pictures that were agreed on do not come.
    without_pictures: bool,
    /// Since when anything comes, since when a keyframe does, and since when it plays.
    opened_at: Option<Moment>,
    keyframe_at: Option<Moment>,
    playing_since: Option<Moment>,
}

impl Player {
    pub(super) fn client(
        client: NewClient<'_, Request>,
        (witness, decoded): (bool, Option<DecodedWitness>),
        options: Arc<SharedOptions>,
        shard: &mut ShardRecorder,
    ) -> Client<Self> {
        let NewClient { planned, target, request, endpoint, now, .. } = client;
        let state = ClientState::begin(planned, options.timeouts, now, shard);
        if witness {
            shard.of(planned).shift(WITNESSES, 1);
        }
        let connection = Connection::new(planned, options.terms.clone(), request, endpoint.clone(), now);
        let timeline = Timeline::new(90_000, 32);
        let player = Self {
            witness,
            decoded: decoded.map(Box::new),
            // Of every viewer it is known when each packet came.
            playback: PlaybackModel::new(Reading::Witness, planned.client, timeline, options.playout, now),
            options,
            receiver: None,
            totals: ReadTotals::default(),
            media: i64::MIN,
            untold: 0,
            restarts: 0,
            jumps: false,
            base: 0,
            latency: Extent::default(),
            numbers: None,
            target: target as u32,
            pictures: None,
            told: None,
            missed_keyframe: false,
            without_pictures: false,
            opened_at: None,
            keyframe_at: None,
            playing_since: None,
        };
        Client::new(state, connection, player)
    }

    /// Books what the end of a session reveals, and gives what all of them have counted.
    fn end_session(
        &mut self,
        failed: bool,
        line: &mut Line,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Numbers {
        let (now, planned) = (context.now, line.state.planned());
        let mut numbers = self.numbers.take().unwrap_or_else(|| {
            // How a client began is how its first session did.
            let mut numbers = Numbers::new();
            line.connection.account_steps(&mut numbers);
            let since = self.playing_since;
            numbers.duration("startup", since.map(|since| since.since(planned.at)));
            let whole = since.zip(self.keyframe_at).map(|(since, begun)| since.since(begun));
            numbers.duration("rtc.first_whole_frame", whole);
            numbers
        });
        line.connection.account_states(failed, &mut numbers);
        if let Some(mut receiver) = self.receiver.take() {
            line.connection.with_sender(context, |recorder, send| {
                receiver.finish(now, recorder, &mut |bytes| send(bytes, bytes.len()));
            });
            receiver.account(&mut numbers);
        }
        numbers
    }

    /// An RTP packet is here.
    #[inline]
    fn receive(&mut self, bytes: &mut [u8], line: &Line, context: &mut Context<'_, ShardRecorder>) {
        let now = context.now;
        let recorder = context.world.of(line.state.planned());
        let (clock, latency) = (&self.options.clock, &mut self.latency);
        let (witness, pictures) = (self.witness, &mut self.pictures);
        let decoded = &mut self.decoded;
        let mut shown = |codec: VideoCodec, unit: &AccessUnit<'_>, recorder: &mut Recorder| {
            // Parameter sets may come without a picture that is a keyframe (intra refresh).
            let may_tell = unit.keyframe || nal_codec(codec).is_some();
            if may_tell && pictures.as_ref().is_none_or(|(known, _)| *known != codec) {
                *pictures = picture_format(codec, unit.bytes).map(|format| (codec, format));
            }
            // The first keyframe of the others may have waited in the server for them.
            if witness && codec == VideoCodec::H264 {
                stamp(unit.bytes, clock, now, latency, recorder);
            }
            let Some(decoded) = decoded else { return };
            match nal_codec(codec) {
                _ if !unit.complete || unit.bytes.len() != unit.length => decoded.broken_picture(),
                Some(nal_codec) => {
                    decoded.picture(nal_codec, unit.bytes, Framing::LengthPrefixed, now);
                }
                None => frame(codec, unit.bytes, decoded, now),
            }
        };
        if let Some(receiver) = &mut self.receiver {
            receiver.rtp(now, bytes, &mut self.totals, recorder, &mut shown);
        }
    }

    /// An RTP packet has come to a narrow link, which brings it later, or not at all.
    #[cold]
    fn rtp_by_link(&mut self, bytes: &mut [u8], line: &mut Line, context: &mut Context<'_, ShardRecorder>) {
        let (came, recorder) = (context.now, context.world.of(line.state.planned()));
        let arrival = self.receiver.as_mut().and_then(|receiver| receiver.cross(came, bytes, recorder));
        let Some(arrival) = arrival else { return };
        context.now = arrival;
        self.receive(bytes, line, context);
        // What came together leaves such a link packet by packet.
        self.settle(line, context);
        context.now = came;
    }
}

impl Role for Player {
    fn begin(
        &mut self,
        keys: &Keys,
        line: &mut Line,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let now = context.now;
        let ssrc = ssrc(line.state.planned().client, now);
        let kept = match &mut self.decoded {
            Some(decoded) => {
                // Of an answer with several codecs the first one is described; sets of others are in front of their keyframes.
                let mut formats = keys.agreed.iter().filter(|agreed| agreed.kind == MediaKind::Video);
                if let Some((codec, format)) =
                    formats.find_map(|agreed| Some((VideoCodec::of(&agreed.format)?, &agreed.format)))
                    && let Some(nal_codec) = nal_codec(codec)
                {
                    let sets = codec.described_sets(format);
                    decoded.describe(nal_codec, sets.iter().map(Vec::as_slice));
                }
                LONGEST_PICTURE
            }
            None => STAMP_SEARCH_LEN,
        };
        let receiver = Receiver::new(keys, &self.options.rtc, self.witness, kept, ssrc, now);
        let failed = |error| (Failure::DtlsFailed, format!("{error}"));
        let receiver = receiver.map_err(failed)?;
        if receiver.has_video() {
            // It asks for keyframes, but servers whose sources cannot be asked have none for it before the source's next.
            line.state.wait_for_keyframes();
        }
        self.receiver = Some(Box::new(receiver));
        Ok(())
    }

    fn has_begun(&self) -> bool {
        self.receiver.is_some()
    }

    #[inline]
    fn rtp(&mut self, bytes: &mut [u8], line: &mut Line, context: &mut Context<'_, ShardRecorder>) {
        if self.receiver.as_ref().is_some_and(|receiver| receiver.has_link()) {
            return self.rtp_by_link(bytes, line, context);
        }
        self.receive(bytes, line, context);
        // Frames that were held up come together: the first of them shows for how long.
        if self.totals.frame_ended {
            self.settle(line, context);
        }
    }

    fn rtcp(&mut self, bytes: &mut [u8], line: &mut Line, context: &mut Context<'_, ShardRecorder>) {
        let Some(receiver) = &mut self.receiver else { return };
        let recorder = context.world.of(line.state.planned());
        if let Some(arrival) = receiver.cross_link(context.now, bytes.len(), recorder) {
            receiver.rtcp(arrival, bytes, recorder);
        }
    }

    fn settle(&mut self, line: &mut Line, context: &mut Context<'_, ShardRecorder>) {
        let totals = std::mem::take(&mut self.totals);
        let Some(receiver) = self.receiver.as_mut().filter(|_| totals.packets > 0) else { return };
        let now = context.now;
        let Line { state, connection } = line;
        if state.phase() < ClientPhase::Opening {
            connection.step(FIRST_PACKET, now, context.world);
            state.reach(ClientPhase::Opening, now, context.world);
            self.opened_at = Some(now);
        }
        if totals.keyframe_begun && self.keyframe_at.is_none() {
            self.keyframe_at = Some(now);
            connection.step(FIRST_KEYFRAME, now, context.world);
        }
        let plays = totals.start_whole || totals.sound && !receiver.has_video();
        let begins = state.phase() == ClientPhase::Opening && plays;
        let comes_back = begins && state.is_away();
        if begins {
            for (kind, format) in receiver.formats() {
                if let Some(format) = track_format(kind, format, self.pictures.as_ref()) {
                    context.world.track(state.planned(), format);
                }
            }
            self.told = receiver.picture_type();
            state.reach(ClientPhase::Playing, now, context.world);
            self.playing_since.get_or_insert(now);
            receiver.begin_seconds(now);
            // A witness asks for what is missing at once, as a browser does. Of the others it is enough to know when what
            // they have came.
            context.let_datagrams_wait(!self.witness);
        }
        if totals.keyframe && !plays && state.waited_for_keyframe(now) {
            // Packets that come late, or again, make it whole for a browser. This decoder of ours takes none back, which is not the server's
            // doing.
            receiver.await_keyframe();
        }
        self.missed_keyframe |= receiver.is_keyframe_broken();
        if self.missed_keyframe {
            state.miss_keyframe(now, context.world);
        }
        if self.told.is_some() && self.told != receiver.picture_type() {
            // The server has changed to another codec that was agreed on.
            self.told = receiver.picture_type();
            let comes = receiver.formats().find(|(kind, _)| *kind == MediaKind::Video);
            let format = comes.and_then(|(kind, format)| track_format(kind, format, None));
            format.into_iter().for_each(|format| context.world.track(state.planned(), format));
        }
        state.fed(now, context.world);
        let waits = state.is_excused();
        connection.with_sender(context, |recorder, send| {
            receiver.after_batch(now, &totals, waits, recorder, &mut |bytes| send(bytes, bytes.len()));
        });
        self.untold += totals.media + receiver.take_missing();
        let restarts = receiver.restarts();
        let pictures_come = self.without_pictures && receiver.has_video();
        self.without_pictures &= !pictures_come;
        if std::mem::replace(&mut self.restarts, restarts) != restarts || comes_back || pictures_come {
            self.jumps = true;
            // Another publication, or session, goes on where this one has stopped, as with timestamps of frames that jump.
            self.base = self.media.max(0) - receiver.media_micros().unwrap_or_default();
        }
        if totals.keyframe && state.phase() == ClientPhase::Playing {
            let media = receiver.media_micros().unwrap_or_default() + self.base;
            state.note_keyframe(now, (media / 1_000) as u32, context.world);
        }
        if comes_back {
            self.playback.come_back(now);
            let recorder = context.world.of(state.planned());
            recorder.count(AHEAD, std::mem::take(&mut self.untold));
            recorder.count(FRAMES_AHEAD, receiver.frames());
        }
        // Of the others it is not known what is a keyframe.
        if self.witness && state.phase() == ClientPhase::Playing && receiver.is_frame(&totals) {
            let (jumps, begins) = (std::mem::take(&mut self.jumps), receiver.has_begun(&totals));
            let recorder = context.world.of(state.planned());
            self.playback.came(now, || Continuation { jumps, begins }, recorder);
        }
        if state.phase() == ClientPhase::Playing
            && let Some(media) = receiver.media_micros().map(|media| media + self.base)
            && media > self.media
        {
            // The first step is where counting begins.
            let step = if self.media == i64::MIN { 0 } else { media - self.media };
            self.media = media;
            let frames = receiver.source_frames(step);
            let bytes = u32::try_from(std::mem::take(&mut self.untold)).unwrap_or(u32::MAX);
            let recorder = context.world.of(state.planned());
            if step == 0 {
                recorder.count(AHEAD, bytes.into());
                recorder.count(FRAMES_AHEAD, receiver.frames());
            }
            self.playback.progress(now, media, bytes, frames, recorder);
            self.playback.end_of_read(now, false, recorder);
        }
    }

    fn handle_timeout(
        &mut self,
        line: &mut Line,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let now = context.now;
        let Line { state, connection } = line;
        let round_trip = connection.round_trip();
        if let Some(receiver) = &mut self.receiver {
            if receiver.poll_timeout() <= now {
                connection.with_sender(context, |recorder, send| {
                    receiver.handle_timeout(now, round_trip, recorder, &mut |bytes| send(bytes, bytes.len()));
                });
            }
            let patience = self.options.timeouts.media;
            let lost = connection.path_lost();
            if lost.is_some_and(|since| receiver.last_media() < since && since + patience <= now) {
                let words = "no connectivity check is answered, and no media comes".to_owned();
                return Err((Failure::PathLost, words));
            }
        }
        if let Some(receiver) = &mut self.receiver
            // What a narrow link drops did come.
            && !receiver.has_link()
            && receiver.is_sound_alone()
            && state.has_waited_in_vain(now, context.world)
        {
            // A camera that is off: it has been playing since its first sound.
            let first = self.opened_at.unwrap_or(now);
            receiver.give_pictures_up();
            self.without_pictures = true;
            for (kind, format) in receiver.formats().filter(|(kind, _)| *kind != MediaKind::Video) {
                track_format(kind, format, None)
                    .into_iter()
                    .for_each(|it| context.world.track(state.planned(), it));
            }
            context.world.of(state.planned()).count(WITHOUT_PICTURES, 1);
            state.play_without_pictures(first, now, context.world);
            self.playing_since.get_or_insert(first);
            receiver.begin_seconds(now);
            context.let_datagrams_wait(!self.witness);
        }
        let recorder = context.world.of(state.planned());
        if state.has_begun()
            && self.playback.poll_timeout().is_some_and(|next| next <= now)
            && self.playback.handle_timeout(now, 0, recorder)
        {
            self.playback.end_of_read(now, true, recorder);
        }
        Ok(())
    }

    fn edge(&mut self, at: Moment, line: &mut Line, context: &mut Context<'_, ShardRecorder>) {
        if line.state.phase() == ClientPhase::Playing {
            // Media comes as datagrams, each of which is dated: the link beside them has only signalling.
            self.playback.edge(at, None, context.world.of(line.state.planned()));
        }
    }

    fn poll_timeout(&self, line: &Line) -> Option<Moment> {
        let playback = if line.state.has_begun() { self.playback.poll_timeout() } else { None };
        let receiver = self.receiver.as_ref().map(|receiver| receiver.poll_timeout());
        [receiver, playback].into_iter().flatten().min()
    }

    fn overdue(&self) -> Option<End> {
        let receiver = self.receiver.as_ref()?;
        match receiver.proofs() {
            (0, refused @ 1..) => Some((
                Failure::SrtpFailed,
                format!("{refused} packets came, and none of them opens with the keys of the handshake"),
            )),
            _ => {
                let words = receiver.missing().map(|missing| undecodable(&missing));
                words.or_else(|| receiver.link_words()).map(|words| (Failure::NoMedia, words))
            }
        }
    }

    fn lacks_only_a_keyframe(&self) -> bool {
        !self.missed_keyframe && self.receiver.as_ref().is_some_and(|it| it.lacks_only_a_keyframe())
    }

    fn begin_again(&mut self, line: &mut Line, context: &mut Context<'_, ShardRecorder>) {
        self.numbers = Some(self.end_session(false, line, context));
        (self.totals, self.untold, self.restarts) = (ReadTotals::default(), 0, 0);
        (self.keyframe_at, self.missed_keyframe, self.without_pictures) = (None, false, false);
        self.opened_at = None;
    }

    fn depart(
        &mut self,
        failure: Option<Failure>,
        line: &mut Line,
        context: &mut Context<'_, ShardRecorder>,
    ) {
        self.decoded = None;
        let mut numbers = self.end_session(failure.is_some(), line, context);
        numbers.extent("latency", &self.latency);
        let (now, state) = (context.now, &line.state);
        let (planned, since) = (state.planned(), self.playing_since);
        let (target, numbers) = (self.target, numbers.take());
        context.world.record_client(ClientRecord { at: now, planned, target, since, failure, numbers });
        let recorder = context.world.of(planned);
        if state.has_begun() {
            self.playback.leave(now, recorder);
        }
        if self.witness {
            recorder.shift(WITNESSES, -1);
        }
    }
}

/// What a track is by the session's description, and by what a keyframe said of its pictures.
fn track_format(
    kind: MediaKind,
    format: &Format,
    pictures: Option<&(VideoCodec, PictureFormat)>,
) -> Option<TrackFormat> {
    let (kind, name) = match (kind, &*format.name.to_ascii_lowercase()) {
        (MediaKind::Video, _) => match VideoCodec::of(format) {
            Some(codec) => {
                let told = TrackFormat::new(Track::Video, codec.name());
                return Some(match pictures.filter(|(known, _)| *known == codec) {
                    Some((_, PictureFormat { profile, size })) => {
                        TrackFormat { profile: Some(profile.clone()), size: Some(*size), ..told }
                    }
                    None if codec == VideoCodec::H264 => {
                        TrackFormat { profile: profile_of(&format.parameters), ..told }
                    }
                    None => told,
                });
            }
            None => (Track::Video, format.name.clone()),
        },
        (MediaKind::Audio, "opus") => (Track::Audio, "Opus".to_owned()),
        (MediaKind::Audio, "pcmu") => (Track::Audio, "G.711 mu-law".to_owned()),
        (MediaKind::Audio, "pcma") => (Track::Audio, "G.711 A-law".to_owned()),
        (MediaKind::Audio, "g722") => (Track::Audio, "G.722".to_owned()),
        (MediaKind::Audio, _) => (Track::Audio, format.name.clone()),
        _ => return None,
    };
    let sample_rate = Some(format.clock_rate).filter(|_| kind == Track::Audio && !format.is("G722"));
    let channels = format.channels.filter(|_| kind == Track::Audio);
    Some(TrackFormat { sample_rate, channels, ..TrackFormat::new(kind, name) })
}

/// What the first bytes of a keyframe say: a parameter set, a sequence header, or the header of the frame.
fn picture_format(codec: VideoCodec, bytes: &[u8]) -> Option<PictureFormat> {
    let of_units = |codec: PictureCodec| {
        units(bytes, Framing::LengthPrefixed).take(MOST_UNITS).find_map(|unit| codec.format(unit))
    };
    match codec {
        VideoCodec::H264 => of_units(PictureCodec::H264),
        VideoCodec::H265 => of_units(PictureCodec::H265),
        VideoCodec::Av1 => of_units(PictureCodec::Av1),
        VideoCodec::Vp8 => PictureCodec::Vp8.format(bytes),
        VideoCodec::Vp9 => PictureCodec::Vp9.format(bytes),
    }
}

/// Hands in a frame of a codec without NAL units.
fn frame(codec: VideoCodec, bytes: &[u8], decoded: &mut DecodedWitness, now: Moment) {
    match codec {
        VideoCodec::Vp8 => decoded.frame(PictureCodec::Vp8, bytes, now),
        VideoCodec::Vp9 => decoded.frame(PictureCodec::Vp9, bytes, now),
        VideoCodec::Av1 => {
            let mut unit = Vec::with_capacity(bytes.len());
            append_obus(units(bytes, Framing::LengthPrefixed), &mut unit);
            decoded.frame(PictureCodec::Av1, &unit, now);
        }
        VideoCodec::H264 | VideoCodec::H265 => {}
    }
}

/// `profile-level-id` of RFC 6184 section 8.1, three bytes in hexadecimal.
fn profile_of(parameters: &str) -> Option<String> {
    let value = parameters.split(';').find_map(|it| it.trim().strip_prefix("profile-level-id="))?;
    let bytes = u32::from_str_radix(value.trim(), 16).ok().filter(|_| value.trim().len() == 6)?;
    let [_, bytes @ ..] = bytes.to_be_bytes();
    PictureCodec::H264.profile_of(bytes)
}

/// Looks for a clock stamp in the beginning of an access unit.
fn stamp(unit: &[u8], clock: &HostClock, now: Moment, all: &mut Extent, recorder: &mut Recorder) {
    let Some(stamp) = Stamp::find(unit, Framing::LengthPrefixed) else { return };
    let latency = stamp.latency(&clock.at(now), UNKNOWN_OFFSET);
    all.add(host_clock::record_latency(recorder, latency));
}
