//! An RTMP publisher.

use super::figures::{
    AUDIO_FRAMES, DATA_MESSAGES, DIGEST_HANDSHAKES, SEQUENCE_HEADERS, SERVER_ACKS, STATUSES, STREAM_ENDS,
};
use super::refusal::{Verdict, verdict};
use crate::client_state::{ClientState, Phase, Timeouts};
use crate::host_clock::HostClock;
use crate::ledger::{Ledger, Slot};
use std::sync::Arc;
use std::time::Duration;
use weir_media::{AudioCodec, Frame, Source, Stamp, Track};
use weir_metrics::common::{FRAMES, KEYFRAMES, MEDIA, READS, RECEIVED, SEND_LAG, SENT, UNITS};
use weir_metrics::{Failure, Moment};
use weir_rtmp::amf0::Object;
use weir_rtmp::flv::{self, FourCc};
use weir_rtmp::handshake::Scheme;
use weir_rtmp::message::{MediaKind, data};
use weir_rtmp::{Client, ClientEvent, ClientOptions};
use weir_shard::{Context, Event, Session};

/// Bytes that may wait for a server before the publisher waits as well. The kernel's buffer comes on top.
const UNSENT_LIMIT: usize = 256 * 1024;

/// How often a server that holds a publisher up is looked at before its time is over.
const LOOKS: u32 = 10;

/// What all publishers of a workload share.
#[derive(Debug)]
pub(super) struct Common {
    pub(super) timeouts: Timeouts,
    /// How long a server may take nothing.
    pub(super) send_timeout: Duration,
    pub(super) stamp: bool,
    pub(super) clock: HostClock,
}

/// One virtual publisher. Frame n is due at the moment when the server consented plus the frame's decode
/// time, and is never skipped: what is late is sent as soon as it can be, and its lag recorded.
pub(super) struct Publisher {
    client: Client,
    life: ClientState,
    common: Arc<Common>,
    source: Box<dyn Source + Send>,
    /// The next frame to send, once publishing.
    frame: Frame,
    sound: AudioCodec,
    body: Vec<u8>,
    start: Moment,
    sequence_number: u32,
    /// Set while something waits for the server.
    blocked: Option<Blocked>,
}

/// A server that holds a publisher up.
#[derive(Clone, Copy)]
struct Blocked {
    /// What its machine had acknowledged when that last grew.
    acknowledged: u64,
    /// When that was.
    since: Moment,
    /// When to look again.
    look: Moment,
}

/// What the server said in one read.
#[derive(Default)]
struct Heard {
    publishing: bool,
    refused: Option<(Failure, String)>,
    ended: Option<String>,
}

impl Publisher {
    pub(super) fn new(
        slot: Slot,
        options: Arc<ClientOptions>,
        common: Arc<Common>,
        source: Box<dyn Source + Send>,
        now: Moment,
        ledger: &mut Ledger,
    ) -> Self {
        Self {
            client: Client::new(options, u64::from(slot.client) ^ now.as_nanos()),
            life: ClientState::begin(slot, common.timeouts, now, ledger),
            common,
            sound: source.audio_config().map(|audio| audio.codec).unwrap_or_default(),
            source,
            frame: Frame::empty(),
            body: Vec::new(),
            start: now,
            sequence_number: 0,
            blocked: None,
        }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, Ledger>) {
        let (now, ledger) = (context.now, &mut *context.world);
        let slot = self.life.slot();
        ledger.of(slot).count(READS, 1);
        ledger.of(slot).count(RECEIVED, bytes.len() as u64);
        let mut heard = Heard::default();
        let life = &mut self.life;
        let outcome = self.client.input(bytes, &mut |event| heard.hear(event, life, now, ledger));
        if let Err(error) = outcome {
            self.life.fail(Failure::MalformedInput, &error.to_string(), now, ledger);
        } else if let Some((failure, words)) = heard.refused {
            self.life.fail(failure, &words, now, ledger);
        } else if let Some(words) = heard.ended {
            self.life.fail(Failure::StreamEnded, &words, now, ledger);
        } else if heard.publishing {
            self.begin(now, ledger);
        }
    }

    /// The server takes media: describe it.
    fn begin(&mut self, now: Moment, ledger: &mut Ledger) {
        self.life.reach(Phase::Playing, now, ledger);
        self.start = now;
        self.body.clear();
        data::set_metadata(metadata(&*self.source), &mut self.body);
        self.put(MediaKind::Data, 0, ledger);
        let recorder = ledger.of(self.life.slot());
        recorder.count(DATA_MESSAGES, 1);
        if let Some(video) = self.source.video_config() {
            self.body.clear();
            flv::avc_sequence_header(&video.decoder_configuration, &mut self.body);
            self.put(MediaKind::Video, 0, ledger);
            ledger.of(self.life.slot()).count(SEQUENCE_HEADERS, 1);
        }
        if let Some(audio) = self.source.audio_config() {
            self.body.clear();
            match audio.codec {
                AudioCodec::Aac => flv::aac_sequence_header(&audio.specific_config, &mut self.body),
                AudioCodec::Opus => flv::opus_sequence_header(audio.channels, &mut self.body),
            }
            self.put(MediaKind::Audio, 0, ledger);
            ledger.of(self.life.slot()).count(SEQUENCE_HEADERS, 1);
        }
        self.fetch(now, ledger);
    }

    /// Sends all frames that are due.
    fn send_due(&mut self, context: &mut Context<'_, Ledger>) {
        let now = context.now;
        while self.life.phase() == Phase::Playing && self.due() <= now {
            if self.client.output().len() + context.unsent() > UNSENT_LIMIT {
                // A pause after which everything that is due goes out, with its lag.
                self.flush(context);
                if context.unsent() > UNSENT_LIMIT {
                    return;
                }
            }
            self.send_frame(now, context.world);
            self.fetch(now, context.world);
        }
    }

    fn send_frame(&mut self, now: Moment, ledger: &mut Ledger) {
        let lag = now.since(self.due());
        // Milliseconds modulo 2³², RTMP 1.0 section 4.
        let timestamp = self.frame.decode_time.as_millis() as u32;
        self.body.clear();
        let recorder = ledger.of(self.life.slot());
        recorder.record(SEND_LAG, lag.as_micros() as u64);
        match self.frame.track {
            Track::Video => {
                if self.common.stamp {
                    let stamp =
                        Stamp { captured: self.common.clock.at(now), sequence_number: self.sequence_number };
                    stamp.put(&mut self.frame.payload);
                    self.sequence_number = self.sequence_number.wrapping_add(1);
                }
                let composition_time = self.frame.composition_offset().as_millis() as i32;
                flv::avc_frame(self.frame.keyframe, composition_time, &self.frame.payload, &mut self.body);
                recorder.count(FRAMES, 1);
                recorder.count(KEYFRAMES, u64::from(self.frame.keyframe));
                self.put(MediaKind::Video, timestamp, ledger);
            }
            Track::Audio => {
                match self.sound {
                    AudioCodec::Aac => flv::aac_frame(&self.frame.payload, &mut self.body),
                    AudioCodec::Opus => flv::opus_frame(&self.frame.payload, &mut self.body),
                }
                recorder.count(AUDIO_FRAMES, 1);
                self.put(MediaKind::Audio, timestamp, ledger);
            }
        }
    }

    /// Frames the body as a message.
    fn put(&mut self, kind: MediaKind, timestamp: u32, ledger: &mut Ledger) {
        if self.client.send(kind, timestamp, &self.body).is_ok() {
            let recorder = ledger.of(self.life.slot());
            recorder.count(UNITS, 1);
            recorder.count(MEDIA, self.body.len() as u64);
        }
    }

    fn fetch(&mut self, now: Moment, ledger: &mut Ledger) {
        if let Err(error) = self.source.next(&mut self.frame) {
            self.life.fail(Failure::SourceFailed, &error.to_string(), now, ledger);
        }
    }

    fn due(&self) -> Moment {
        self.start + self.frame.decode_time
    }

    fn flush(&mut self, context: &mut Context<'_, Ledger>) {
        let output = self.client.output();
        if !output.is_empty() {
            context.send(output);
            context.world.of(self.life.slot()).count(SENT, output.len() as u64);
            output.clear();
        }
    }

    /// Notes whether the server takes anything: what waits here says little, since it grows while frames come due,
    /// and the kernel takes more only in lumps.
    fn watch_server(&mut self, context: &Context<'_, Ledger>) {
        let now = context.now;
        self.blocked = match self.blocked {
            _ if context.unsent() == 0 => None,
            Some(blocked) if now < blocked.look => Some(blocked),
            before => {
                let acknowledged = context.acknowledged();
                let idle = before.filter(|before| before.acknowledged == acknowledged);
                let since = idle.map_or(now, |before| before.since);
                Some(Blocked { acknowledged, since, look: now + self.common.send_timeout / LOOKS })
            }
        };
    }

    fn blocked_until(&self) -> Option<Moment> {
        self.blocked.map(|blocked| blocked.since + self.common.send_timeout)
    }

    fn next(&self, unsent: usize) -> Option<Moment> {
        let due = (self.life.phase() == Phase::Playing && unsent <= UNSENT_LIMIT).then(|| self.due());
        let look = self.blocked.map(|blocked| blocked.look);
        [self.life.deadline(), look, due].into_iter().flatten().min()
    }
}

impl Session<Ledger> for Publisher {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Ledger>) {
        let now = context.now;
        match event {
            Event::Opening
            | Event::Writable
            | Event::Woken
            | Event::Datagrams(_)
            | Event::Side(_)
            | Event::HungUp { .. } => {}
            Event::Connected => self.life.reach(Phase::Handshaking, now, context.world),
            Event::Bytes(bytes) => self.read(bytes, context),
            Event::Timer => {
                if self.life.deadline().is_some_and(|deadline| deadline <= now) {
                    let (failure, words) = self.life.overdue();
                    self.life.fail(failure, words, now, context.world);
                }
            }
            Event::Stop => {
                if self.life.phase() == Phase::Playing {
                    self.client.close();
                }
                if self.life.phase() > Phase::Connecting {
                    self.flush(context);
                }
                self.life.finish(context.world);
            }
            Event::Closed { failure, words } => {
                let words = if words.is_empty() { "the server closed the link" } else { words };
                self.life.fail(failure, words, now, context.world);
            }
        }
        self.send_due(context);
        if self.life.phase() > Phase::Connecting && self.life.phase() < Phase::Over {
            self.flush(context);
            self.watch_server(context);
            if self.blocked_until().is_some_and(|until| until <= now) {
                let words = "the server took nothing more of the stream in time";
                self.life.fail(Failure::SendTimeout, words, now, context.world);
            }
        }
        if self.life.phase() == Phase::Over {
            context.close();
            return;
        }
        match self.next(context.unsent()) {
            Some(next) => context.set_timer(next),
            None => context.clear_timer(),
        }
    }
}

impl Heard {
    fn hear(&mut self, event: ClientEvent<'_>, life: &mut ClientState, now: Moment, ledger: &mut Ledger) {
        match event {
            ClientEvent::HandshakeDone { scheme } => {
                life.reach(Phase::Requesting, now, ledger);
                ledger.of(life.slot()).count(DIGEST_HANDSHAKES, u64::from(scheme == Scheme::Digest));
            }
            ClientEvent::Publishing => self.publishing = true,
            ClientEvent::Status(status) => {
                ledger.of(life.slot()).count(STATUSES, 1);
                match verdict(&status) {
                    Verdict::Fine => {}
                    Verdict::Ended => {
                        ledger.of(life.slot()).count(STREAM_ENDS, 1);
                        self.ended.get_or_insert_with(|| status.to_string());
                    }
                    Verdict::Failed(failure) => {
                        self.refused.get_or_insert_with(|| (failure, status.to_string()));
                    }
                }
            }
            ClientEvent::Acknowledged { .. } => ledger.of(life.slot()).count(SERVER_ACKS, 1),
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
            metadata = metadata.with("videodatarate", bit_rate.bps() as f64 / 1e3);
        }
        metadata = metadata.with("videocodecid", 7.0);
    }
    if let Some(audio) = source.audio_config() {
        metadata = metadata
            .with("audiosamplerate", f64::from(audio.sample_rate))
            .with("audiosamplesize", 16.0)
            .with("stereo", audio.channels > 1)
            .with("audiocodecid", codec_id(audio.codec));
        if let Some(bit_rate) = audio.bit_rate {
            metadata = metadata.with("audiodatarate", bit_rate.bps() as f64 / 1e3);
        }
    }
    metadata.with("encoder", concat!("weir ", env!("CARGO_PKG_VERSION")))
}

/// `audiocodecid`: the number of FLV 10.1 section E.4.2.1, or the FourCC as one (Enhanced RTMP v2, "Metadata Frame").
fn codec_id(codec: AudioCodec) -> f64 {
    match codec {
        AudioCodec::Aac => 10.0,
        AudioCodec::Opus => f64::from(u32::from_be_bytes(FourCc::OPUS.0)),
    }
}
