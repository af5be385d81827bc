//! An RTMP publisher.

use super::attempts::{Attempts, Request, nonce, seed};
use super::figures::{
    AUDIO_FRAMES, DATA_MESSAGES, DIGEST_HANDSHAKES, SEQUENCE_HEADERS, SERVER_ACKS, STATUSES, STREAM_ENDS,
};
use super::refusal::{StatusMeaning, verdict};
use super::trace;
use crate::client_session::{ClientSession, End};
use crate::client_state::{ClientPhase, ClientState, Timeouts};
use crate::host_clock::HostClock;
use crate::material::Material;
use crate::redirect::Redirects;
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use std::sync::Arc;
use std::time::Duration;
use weir_media::{AudioCodec, Frame, PictureCodec, Source, Stamp, Track};
use weir_metrics::common::{FRAMES, KEYFRAMES, MEDIA, READS, RECEIVED, SEND_LAG, SENT, UNITS};
use weir_metrics::{Failure, Moment};
use weir_rtmp::amf0::Object;
use weir_rtmp::flv::{self, FourCc};
use weir_rtmp::handshake::Scheme;
use weir_rtmp::message::{MediaKind, data};
use weir_rtmp::{Client, ClientEvent};
use weir_shard::Context;

/// Bytes that may wait for a server before the publisher waits as well. The kernel's buffer comes on top.
const UNSENT_LIMIT: usize = 256 * 1024;

/// How often a server that holds a publisher up is looked at before its time is over.
const LOOKS: u32 = 10;

/// What all publishers of a workload share.
pub(super) struct SharedOptions {
    pub(super) timeouts: Timeouts,
    /// How long a server may take nothing.
    pub(super) send_timeout: Duration,
    pub(super) stamp: bool,
    pub(super) material: Material,
    /// The codec of its pictures, and their decoder configuration record.
    pub(super) codec: PictureCodec,
    pub(super) record: Vec<u8>,
    pub(super) clock: HostClock,
    pub(super) redirects: Redirects,
}

/// One virtual publisher. Frame n is due at the moment when the server consented plus the frame's decode
/// time, and is never skipped: what is late is sent as soon as it can be, and its lag recorded.
pub(super) struct Publisher {
    client: Client,
    /// What it asks for first.
    request: Arc<Request>,
    attempts: Attempts,
    state: ClientState,
    options: Arc<SharedOptions>,
    source: Box<dyn Source + Send>,
    /// The next frame to send, once publishing.
    frame: Frame,
    sound: AudioCodec,
    body: Vec<u8>,
    start: Moment,
    sequence_number: u32,
    /// Set while something waits for the server.
    blocked: Option<Blockage>,
    /// Its present link is there.
    is_connected: bool,
}

/// A server that holds a publisher up.
#[derive(Clone, Copy)]
struct Blockage {
    /// What its machine had acknowledged when that last grew.
    acknowledged: u64,
    /// When that was.
    since: Moment,
    /// When to look again.
    look: Moment,
}

/// What the server said in one read.
#[derive(Default)]
struct ReadOutcome {
    publishing: bool,
    refused: Option<(Failure, String)>,
    ended: Option<String>,
}

impl Publisher {
    pub(super) fn new(
        planned: PlannedStart,
        request: Arc<Request>,
        options: Arc<SharedOptions>,
        now: Moment,
        shard: &mut ShardRecorder,
    ) -> Self {
        let attempts = Attempts::new(Arc::clone(&request), options.redirects.clone());
        let source = options.material.source();
        Self {
            client: Client::new(attempts.options(), seed(planned, now)),
            request,
            attempts,
            state: ClientState::begin(planned, options.timeouts, now, shard),
            options,
            sound: source.audio_config().map(|audio| audio.codec).unwrap_or_default(),
            source,
            frame: Frame::empty(),
            body: Vec::new(),
            start: now,
            sequence_number: 0,
            blocked: None,
            is_connected: false,
        }
    }

    /// The server takes media: describe it.
    fn begin(&mut self, now: Moment, shard: &mut ShardRecorder) -> Result<(), End> {
        self.state.reach(ClientPhase::Playing, now, shard);
        self.start = now;
        self.body.clear();
        data::set_metadata(metadata(&*self.source), &mut self.body);
        self.put(MediaKind::Data, 0, shard);
        let recorder = shard.of(self.state.planned());
        recorder.count(DATA_MESSAGES, 1);
        if self.source.video_config().is_some() {
            self.body.clear();
            flv::picture_configuration(self.options.codec.four_cc(), &self.options.record, &mut self.body);
            self.put(MediaKind::Video, 0, shard);
            shard.of(self.state.planned()).count(SEQUENCE_HEADERS, 1);
        }
        if let Some(audio) = self.source.audio_config() {
            self.body.clear();
            match audio.codec {
                AudioCodec::Aac => flv::aac_sequence_header(&audio.specific_config, &mut self.body),
                AudioCodec::Opus => flv::opus_sequence_header(audio.channels, &mut self.body),
            }
            self.put(MediaKind::Audio, 0, shard);
            shard.of(self.state.planned()).count(SEQUENCE_HEADERS, 1);
        }
        self.fetch()
    }

    /// Sends all frames that are due.
    fn send_due(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        while self.state.phase() == ClientPhase::Playing && self.due() <= now {
            if self.client.output().len() + context.unsent() > UNSENT_LIMIT {
                // A pause after which everything that is due goes out, with its lag.
                self.flush(context);
                if context.unsent() > UNSENT_LIMIT {
                    break;
                }
            }
            self.send_frame(now, context.world);
            self.fetch()?;
        }
        Ok(())
    }

    fn send_frame(&mut self, now: Moment, shard: &mut ShardRecorder) {
        let lag = now.since(self.due());
        // Milliseconds modulo 2³², RTMP 1.0 section 4.
        let timestamp = self.frame.decode_time.as_millis() as u32;
        self.body.clear();
        let recorder = shard.of(self.state.planned());
        recorder.record(SEND_LAG, lag.as_micros() as u64);
        match self.frame.track {
            Track::Video => {
                if self.options.stamp {
                    let stamp =
                        Stamp { captured: self.options.clock.at(now), sequence_number: self.sequence_number };
                    stamp.put(&mut self.frame.payload);
                    self.sequence_number = self.sequence_number.wrapping_add(1);
                }
                let composition_time = self.frame.composition_offset().as_millis() as i32;
                let codec = self.options.codec;
                flv::picture_header(codec.four_cc(), self.frame.keyframe, composition_time, &mut self.body);
                if codec == PictureCodec::Av1 {
                    // Frames are as in MP4 (enhanced RTMP v1), where delimiters of temporal units are left out ("AV1 Codec ISO Media File
                    // Format Binding" section 2.4).
                    let obus = codec.units_of(&self.frame.payload).filter(|obu| !codec.is_delimiter(obu));
                    obus.for_each(|obu| self.body.extend_from_slice(obu));
                } else {
                    self.body.extend_from_slice(&self.frame.payload);
                }
                recorder.count(FRAMES, 1);
                recorder.count(KEYFRAMES, u64::from(self.frame.keyframe));
                self.put(MediaKind::Video, timestamp, shard);
            }
            Track::Audio => {
                match self.sound {
                    AudioCodec::Aac => flv::aac_frame(&self.frame.payload, &mut self.body),
                    AudioCodec::Opus => flv::opus_frame(&self.frame.payload, &mut self.body),
                }
                recorder.count(AUDIO_FRAMES, 1);
                self.put(MediaKind::Audio, timestamp, shard);
            }
        }
    }

    /// Frames the body as a message.
    fn put(&mut self, kind: MediaKind, timestamp: u32, shard: &mut ShardRecorder) {
        if self.client.send(kind, timestamp, &self.body).is_ok() {
            let recorder = shard.of(self.state.planned());
            recorder.count(UNITS, 1);
            recorder.count(MEDIA, self.body.len() as u64);
        }
    }

    fn fetch(&mut self) -> Result<(), End> {
        self.source.next(&mut self.frame).map_err(|error| (Failure::SourceFailed, error.to_string()))
    }

    fn due(&self) -> Moment {
        self.start + self.frame.decode_time
    }

    fn flush(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let output = self.client.output();
        if !output.is_empty() {
            context.send(output);
            context.world.of(self.state.planned()).count(SENT, output.len() as u64);
            output.clear();
        }
    }

    /// Notes whether the server takes anything: what waits here says little, since it grows while frames come due,
    /// and the kernel takes more only in lumps.
    fn watch_server(&mut self, context: &Context<'_, ShardRecorder>) {
        let now = context.now;
        self.blocked = match self.blocked {
            _ if context.unsent() == 0 => None,
            Some(blocked) if now < blocked.look => Some(blocked),
            before => {
                let acknowledged = context.acknowledged();
                let idle = before.filter(|before| before.acknowledged == acknowledged);
                let since = idle.map_or(now, |before| before.since);
                Some(Blockage { acknowledged, since, look: now + self.options.send_timeout / LOOKS })
            }
        };
    }

    fn blocked_until(&self) -> Option<Moment> {
        self.blocked.map(|blocked| blocked.since + self.options.send_timeout)
    }
}

impl ClientSession for Publisher {
    fn state(&self) -> &ClientState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ClientState {
        &mut self.state
    }

    fn handle_connected(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.state.reach(ClientPhase::Handshaking, context.now, context.world);
        self.is_connected = true;
        Ok(())
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let (now, shard) = (context.now, &mut *context.world);
        let planned = self.state.planned();
        shard.of(planned).count(READS, 1);
        shard.of(planned).count(RECEIVED, bytes.len() as u64);
        if self.attempts.is_next() {
            return Ok(());
        }
        let mut heard = ReadOutcome::default();
        let (state, attempts) = (&mut self.state, &mut self.attempts);
        let outcome =
            self.client.input(bytes, &mut |event| heard.on_event(event, state, attempts, now, shard));
        outcome.map_err(|error| (Failure::MalformedInput, error.to_string()))?;
        match heard {
            ReadOutcome { refused: Some(end), .. } => Err(end),
            ReadOutcome { ended: Some(words), .. } => Err((Failure::StreamEnded, words)),
            ReadOutcome { publishing: true, .. } => self.begin(now, shard),
            _ => Ok(()),
        }
    }

    fn after_event(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        if self.attempts.go_on(context)? {
            self.client = Client::new(self.attempts.options(), seed(self.state.planned(), context.now));
            self.blocked = None;
            self.is_connected = false;
        }
        if !self.is_connected {
            return Ok(());
        }
        self.send_due(context)?;
        self.flush(context);
        self.watch_server(context);
        match self.blocked_until() {
            Some(until) if until <= context.now => {
                Err((Failure::SendTimeout, "the server took nothing more of the stream in time".to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn poll_timeout(&self, context: &Context<'_, ShardRecorder>) -> Option<Moment> {
        let sends = self.state.phase() == ClientPhase::Playing && context.unsent() <= UNSENT_LIMIT;
        let due = sends.then(|| self.due());
        let look = self.blocked.map(|blocked| blocked.look);
        [look, due, self.attempts.poll_timeout(context.now)].into_iter().flatten().min()
    }

    fn begin_again(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.attempts = Attempts::new(Arc::clone(&self.request), self.options.redirects.clone());
        self.client = Client::new(self.attempts.options(), seed(self.state.planned(), context.now));
        // Another publication begins with the first frame of the material.
        self.source = self.options.material.source();
        (self.frame, self.blocked, self.is_connected) = (Frame::empty(), None, false);
    }

    fn leave(&mut self, failure: Option<Failure>, context: &mut Context<'_, ShardRecorder>) {
        if !self.is_connected || failure.is_some() {
            return;
        }
        if self.state.phase() == ClientPhase::Playing {
            self.client.close();
        }
        self.flush(context);
    }
}

impl ReadOutcome {
    fn on_event(
        &mut self,
        event: ClientEvent<'_>,
        state: &mut ClientState,
        attempts: &mut Attempts,
        now: Moment,
        shard: &mut ShardRecorder,
    ) {
        trace::heard(state.planned().number(), &event);
        match event {
            ClientEvent::HandshakeDone { scheme } => {
                state.reach(ClientPhase::Requesting, now, shard);
                shard.of(state.planned()).count(DIGEST_HANDSHAKES, u64::from(scheme == Scheme::Digest));
            }
            ClientEvent::Publishing => self.publishing = true,
            ClientEvent::Status(status) => {
                shard.of(state.planned()).count(STATUSES, 1);
                if state.phase() < ClientPhase::Playing
                    && self.refused.is_none()
                    && let Some(next) = attempts.refused(&status, nonce(now))
                {
                    self.refused = next.err();
                    return;
                }
                match verdict(&status) {
                    StatusMeaning::Fine => {}
                    StatusMeaning::Ended => {
                        shard.of(state.planned()).count(STREAM_ENDS, 1);
                        self.ended.get_or_insert_with(|| status.to_string());
                    }
                    StatusMeaning::Failed(failure) => {
                        self.refused.get_or_insert_with(|| (failure, status.to_string()));
                    }
                }
            }
            ClientEvent::Acknowledged { .. } => shard.of(state.planned()).count(SERVER_ACKS, 1),
            ClientEvent::Connected
            | ClientEvent::StreamCreated { .. }
            | ClientEvent::Playing
            | ClientEvent::Media(_)
            | ClientEvent::StreamBegin { .. }
            | ClientEvent::StreamEof { .. }
            | ClientEvent::StreamDry { .. } => {}
        }
    }
}

/// The stream's description, in the words of FLV 10.1 section E.5. Rates are in kbit/s.
fn metadata(source: &dyn Source) -> Object<'static> {
    let mut metadata = Object::new();
    if let Some(video) = source.video_config() {
        if let Some((width, height)) = video.resolution {
            metadata = metadata.with("width", f64::from(width)).with("height", f64::from(height));
        }
        if let Some(frame_rate) = video.frame_rate {
            metadata = metadata.with("framerate", frame_rate.as_f64());
        }
        if let Some(bit_rate) = video.bit_rate {
            metadata = metadata.with("videodatarate", bit_rate.bps() / 1e3);
        }
        metadata = metadata.with("videocodecid", picture_codec_id(video.codec));
    }
    if let Some(audio) = source.audio_config() {
        metadata = metadata
            .with("audiosamplerate", f64::from(audio.sample_rate))
            .with("audiosamplesize", 16.0)
            .with("stereo", audio.channels > 1)
            .with("audiocodecid", codec_id(audio.codec));
        if let Some(bit_rate) = audio.bit_rate {
            metadata = metadata.with("audiodatarate", bit_rate.bps() / 1e3);
        }
    }
    metadata.with("encoder", concat!("weir ", env!("CARGO_PKG_VERSION")))
}

/// `videocodecid`: the number of FLV 10.1 section E.4.3.1, or the FourCC as one (Enhanced RTMP v2, "Metadata Frame").
fn picture_codec_id(codec: PictureCodec) -> f64 {
    match codec {
        PictureCodec::H264 => 7.0,
        other => f64::from(u32::from_be_bytes(other.four_cc().0)),
    }
}

/// `audiocodecid`: the number of FLV 10.1 section E.4.2.1, or the FourCC as one (Enhanced RTMP v2, "Metadata Frame").
fn codec_id(codec: AudioCodec) -> f64 {
    match codec {
        AudioCodec::Aac => 10.0,
        AudioCodec::Opus => f64::from(u32::from_be_bytes(FourCc::OPUS.0)),
    }
}
