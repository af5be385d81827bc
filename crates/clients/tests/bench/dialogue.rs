//! A client on the rig, in dialogue with weir's own RTMP server, on virtual time.

use std::net::SocketAddr;
use std::time::Duration;
use weir_clients::{ClientFailure, Ending, PlannedStart, ShardRecorder, Turn, Workload};
use weir_metrics::{Moment, Recorder};
use weir_rtmp::message::{MediaKind, Status};
use weir_rtmp::{Server, ServerEvent, ServerOptions, flv};
use weir_shard::{Event, Rig, Session};

/// What the server does with a request to play or publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    Accept,
    Nothing,
    Refuse(&'static str, &'static str),
}

/// How the server behaves.
#[derive(Clone, Copy, Debug)]
pub struct Manners {
    pub handshake: bool,
    pub connect: Answer,
    pub request: Answer,
}

pub const POLITE: Manners = Manners { handshake: true, connect: Answer::Accept, request: Answer::Accept };

/// A media message that the server got.
#[derive(Clone, Debug)]
pub struct Got {
    pub at: Moment,
    pub kind: MediaKind,
    pub timestamp: u32,
    pub payload: Vec<u8>,
}

pub struct Dialogue {
    pub rig: Rig<ShardRecorder>,
    pub client: Box<dyn Session<ShardRecorder>>,
    pub server: Server,
    manners: Manners,
    pub got: Vec<Got>,
    /// The applications that were asked for.
    pub asked: Vec<String>,
    pub closed: bool,
    /// Bytes of the server that its client's kernel holds, below the low-water mark.
    pub waiting: Vec<u8>,
    /// Whether the decoders' configurations of pictures and sound were sent.
    configured: [bool; 2],
}

/// An AVCDecoderConfigurationRecord with an SPS and a PPS, and an AudioSpecificConfig.
pub const AVC_CONFIGURATION: &[u8] = &[1, 66, 0, 30, 0xFF, 0xE1, 0, 4, 0x67, 66, 0, 30, 1, 0, 2, 0x68, 0xCE];
pub const AAC_CONFIGURATION: &[u8] = &[0x11, 0x90];

pub const STREAM: u32 = 1;

impl Dialogue {
    /// Client `client` of a workload, its link not yet established.
    pub fn new(workload: &Workload, client: u32, manners: Manners) -> Self {
        let mut rig = Rig::new(ShardRecorder::new([workload.schema]).keeping_endings());
        let planned = PlannedStart { client, workload: 0, cell: 0, at: rig.now, turn: Turn::default() };
        let client = workload.start(planned, rig.now, &mut rig.world);
        let mut dialogue = Self {
            rig,
            client,
            server: Server::new(ServerOptions::default(), 7),
            manners,
            got: Vec::new(),
            asked: Vec::new(),
            closed: false,
            waiting: Vec::new(),
            configured: [false; 2],
        };
        dialogue.dispatch(Event::Opening);
        dialogue
    }

    pub fn dispatch(&mut self, event: Event<'_>) {
        self.rig.dispatch(&mut *self.client, event);
        self.answer_pull();
    }

    /// Carries bytes to and fro until both are silent, in no time.
    pub fn talk(&mut self) {
        loop {
            let sent = self.rig.take_sent();
            if !sent.is_empty() && self.manners.handshake {
                self.hear(&sent);
            }
            let output = std::mem::take(self.server.output());
            if sent.is_empty() && output.is_empty() {
                return;
            }
            self.deliver(&output);
        }
    }

    /// Bytes reach the client's kernel; the client is told when enough of them wait.
    pub fn deliver(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
        if !self.rig.closed && !self.waiting.is_empty() && self.waiting.len() >= self.rig.low_water {
            let bytes = std::mem::take(&mut self.waiting);
            self.rig.dispatch(&mut *self.client, Event::Bytes(&bytes));
        }
    }

    /// Lets time pass on both sides.
    pub fn advance(&mut self, span: Duration) {
        let end = self.rig.now + span;
        while let Some(at) = self.rig.timer.filter(|at| *at <= end && !self.rig.closed) {
            self.rig.now = self.rig.now.max(at);
            self.rig.timer = None;
            self.dispatch(Event::Timer);
        }
        self.rig.now = end;
        // What a lowered mark uncovers is there at once.
        self.deliver(&[]);
    }

    fn answer_pull(&mut self) {
        if std::mem::take(&mut self.rig.pulled) && !self.rig.closed {
            let bytes = std::mem::take(&mut self.waiting);
            self.rig.dispatch(&mut *self.client, Event::Bytes(&bytes));
        }
    }

    /// Connects, and takes what there is to take before media.
    pub fn connect(&mut self) {
        self.dispatch(Event::Connected);
        self.talk();
    }

    /// The client has begun another link: to where, and what it meets there.
    pub fn begin_again(&mut self, manners: Manners) -> SocketAddr {
        let endpoint = self.rig.reopened.take().expect("another link");
        (self.server, self.manners) = (Server::new(ServerOptions::default(), 7), manners);
        self.waiting.clear();
        self.configured = [false; 2];
        self.connect();
        endpoint.address
    }

    fn hear(&mut self, bytes: &[u8]) {
        let (mut connect, mut request) = (false, None);
        let now = self.rig.now;
        let (got, asked, closed) = (&mut self.got, &mut self.asked, &mut self.closed);
        let heard = self.server.input(bytes, &mut |event| match event {
            ServerEvent::Connect(request) => {
                connect = true;
                asked.push(request.app.to_string());
            }
            ServerEvent::Play { message_stream_id, .. } => request = Some((message_stream_id, true)),
            ServerEvent::Publish { message_stream_id, .. } => request = Some((message_stream_id, false)),
            ServerEvent::Media(media) | ServerEvent::Metadata(media) => got.push(Got {
                at: now,
                kind: media.kind,
                timestamp: media.timestamp,
                payload: media.payload.to_vec(),
            }),
            ServerEvent::Closed { .. } => *closed = true,
            _ => {}
        });
        heard.unwrap();
        if connect {
            match self.manners.connect {
                Answer::Accept => self.server.accept_connect(),
                Answer::Refuse(code, words) => self.server.reject_connect(&Status::error(code, words)),
                Answer::Nothing => {}
            }
        }
        if let Some((stream, plays)) = request {
            match self.manners.request {
                Answer::Accept if plays => self.server.accept_play(stream),
                Answer::Accept => self.server.accept_publish(stream),
                Answer::Refuse(code, words) => self.server.send_status(stream, &Status::error(code, words)),
                Answer::Nothing => {}
            }
        }
    }

    /// The server sends the decoder's configuration of pictures, once.
    pub fn configure_video(&mut self) {
        if !std::mem::replace(&mut self.configured[0], true) {
            let mut body = Vec::new();
            flv::avc_sequence_header(AVC_CONFIGURATION, &mut body);
            self.server.send(STREAM, MediaKind::Video, 0, &body);
            self.talk();
        }
    }

    /// The server sends the decoder's configuration of sound, once.
    pub fn configure_audio(&mut self) {
        if !std::mem::replace(&mut self.configured[1], true) {
            let mut body = Vec::new();
            flv::aac_sequence_header(AAC_CONFIGURATION, &mut body);
            self.server.send(STREAM, MediaKind::Audio, 0, &body);
            self.talk();
        }
    }

    /// The server sends a frame of video of `length` bytes.
    pub fn video(&mut self, timestamp: u32, keyframe: bool, length: usize) {
        self.configure_video();
        let mut body = Vec::new();
        flv::avc_frame(keyframe, 0, &vec![0x55; length], &mut body);
        self.server.send(STREAM, MediaKind::Video, timestamp, &body);
        self.talk();
    }

    /// The server sends a frame of audio.
    pub fn audio(&mut self, timestamp: u32) {
        self.configure_audio();
        let mut body = Vec::new();
        flv::aac_frame(&[0x21; 100], &mut body);
        self.server.send(STREAM, MediaKind::Audio, timestamp, &body);
        self.talk();
    }

    /// How the client ended, with the words kept of it, and its figures.
    pub fn outcome(&mut self) -> (Option<Ending>, Vec<ClientFailure>, Recorder) {
        let ended = self.rig.world.take_ended();
        assert!(ended.len() <= 1, "one client, one end: {ended:?}");
        let figures = self.rig.world.take_figures().remove(0);
        (ended.first().map(|(_, ending)| *ending), self.rig.world.take_failures(), figures)
    }
}
