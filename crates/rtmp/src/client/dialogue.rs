//! What a client says, and what it makes of the answers.

use std::sync::Arc;

use super::{ClientEvent, ClientOptions, Error, HEAD_LEN, Media, Role};
use crate::acknowledgement::Acknowledger;
use crate::amf0::{Object, Value};
use crate::chunk::{MediaFraming, MessageHeader, Writer};
use crate::message::control::BandwidthLimit;
use crate::message::{Command, Control, Level, MediaKind, MessageKind, Status, UserControl, data};

/// The chunk streams for commands: any ids would do, these are librtmp's and ffmpeg's.
const CONNECTION_CHUNK_STREAM: u32 = 3;
const STREAM_CHUNK_STREAM: u32 = 8;

/// Transaction ids, in the order of the dialogue. Only `connect` and `createStream` wait for an answer.
const CONNECT: f64 = 1.0;
const RELEASE_STREAM: f64 = 2.0;
const FC_PUBLISH: f64 = 3.0;
const CREATE_STREAM: f64 = 4.0;
const START: f64 = 5.0;
const FC_UNPUBLISH: f64 = 6.0;
const DELETE_STREAM: f64 = 7.0;

/// `play` from the live stream, and from a recording if there is none: −2 s in the specification, −2,000 in what
/// ffmpeg and librtmp send. Servers look at the sign.
const LIVE_OR_RECORDED: f64 = -2000.0;

/// What `connect` says that the client takes: anything, and by name what enhanced RTMP v2 has a FourCC for.
const FOUR_CC_LIST: [&str; 12] =
    ["*", "avc1", "hvc1", "av01", "vp08", "vp09", "mp4a", "Opus", "ac-3", "ec-3", "fLaC", ".mp3"];

/// The window that players ask servers to acknowledge.
const USUAL_WINDOW: u32 = 2_500_000;

#[derive(Clone, Debug)]
pub(super) struct Dialogue {
    options: Arc<ClientOptions>,
    pub(super) output: Vec<u8>,
    writer: Writer,
    acknowledger: Acknowledger,
    state: State,
    message_stream_id: u32,
    /// The window that the server has been told to acknowledge, and whether it insisted on it.
    sending_window: u32,
    sending_window_is_hard: bool,
    /// Bytes of each audio and video message that are kept.
    pub(super) head: u32,
}

/// What the client waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The end of the handshake.
    Handshake,
    /// The answer to `connect`.
    Connect,
    /// The answer to `createStream`.
    CreateStream,
    /// The answer to `play` or `publish`.
    Start,
    /// Media, or nothing.
    Streaming,
    /// Nothing: it has deleted its stream.
    Closed,
}

impl Dialogue {
    pub(super) fn new(options: Arc<ClientOptions>) -> Self {
        Self {
            acknowledger: Acknowledger::new(options.acknowledgement_window),
            options,
            output: Vec::new(),
            writer: Writer::new(),
            state: State::Handshake,
            message_stream_id: 0,
            sending_window: u32::MAX,
            sending_window_is_hard: false,
            head: HEAD_LEN as u32,
        }
    }

    pub(super) fn is_streaming(&self) -> bool {
        self.state == State::Streaming
    }

    pub(super) fn framing(&self) -> Option<MediaFraming> {
        matches!(self.state, State::Start | State::Streaming).then(|| MediaFraming {
            chunk_size: self.writer.chunk_size(),
            message_stream_id: self.message_stream_id,
        })
    }

    /// Counts received bytes, and acknowledges them when a window is full.
    pub(super) fn acknowledge(&mut self, bytes: usize) {
        if let Some(received) = self.acknowledger.receive(bytes) {
            self.control(Control::Acknowledgement(received));
        }
    }

    /// One complete message, as much of it as was wanted.
    #[inline]
    pub(super) fn message(
        &mut self,
        header: &MessageHeader,
        kept: &[u8],
        on: &mut impl FnMut(ClientEvent<'_>),
    ) -> Result<(), Error> {
        if let Some(kind) = MediaKind::from_message_kind(header.kind) {
            self.media(kind, header, kept, on);
            return Ok(());
        }
        match header.kind {
            MessageKind::CommandAmf0 | MessageKind::CommandAmf3 => {
                self.command(&Command::parse(header.kind, kept)?, on)
            }
            MessageKind::UserControl => {
                self.user_control(UserControl::parse(kept)?, on);
                Ok(())
            }
            kind => {
                if let Some(control) = Control::parse(kind, kept)? {
                    self.hear_control(control, on);
                }
                Ok(())
            }
        }
    }

    #[inline]
    fn media(
        &mut self,
        kind: MediaKind,
        header: &MessageHeader,
        kept: &[u8],
        on: &mut impl FnMut(ClientEvent<'_>),
    ) {
        // Some servers send media without NetStream.Play.Start. Data may be about the connection, and proves nothing.
        if self.state == State::Start && self.options.role == Role::Play && kind != MediaKind::Data {
            self.started();
            on(ClientEvent::Playing);
        }
        let head = if kind == MediaKind::Data { data::values(header.kind, kept) } else { kept };
        on(ClientEvent::Media(Media {
            kind,
            timestamp: header.timestamp,
            length: header.length,
            message_stream_id: header.message_stream_id,
            head,
        }));
    }

    fn hear_control(&mut self, control: Control, on: &mut impl FnMut(ClientEvent<'_>)) {
        match control {
            Control::WindowAcknowledgementSize(window) => self.acknowledger.set_window(window),
            Control::SetPeerBandwidth { window, limit } => self.limit_window(window, limit),
            Control::Acknowledgement(bytes) => on(ClientEvent::Acknowledged { bytes }),
            // The reader has seen to these.
            Control::SetChunkSize(_) | Control::Abort { .. } => {}
        }
    }

    /// Answers a Set Peer Bandwidth with the window it leads to, if that is news (section 5.4.5).
    fn limit_window(&mut self, window: u32, limit: BandwidthLimit) {
        let window = match limit {
            BandwidthLimit::Hard => window,
            BandwidthLimit::Soft => window.min(self.sending_window),
            BandwidthLimit::Dynamic if self.sending_window_is_hard => window,
            BandwidthLimit::Dynamic => return,
        };
        self.sending_window_is_hard = limit != BandwidthLimit::Soft;
        if window != self.sending_window {
            self.announce_window(window);
        }
    }

    fn user_control(&mut self, event: UserControl, on: &mut impl FnMut(ClientEvent<'_>)) {
        match event {
            UserControl::PingRequest { timestamp } => {
                UserControl::PingResponse { timestamp }.write(&mut self.writer, &mut self.output);
            }
            UserControl::StreamBegin { message_stream_id } => {
                on(ClientEvent::StreamBegin { message_stream_id });
            }
            UserControl::StreamEof { message_stream_id } => on(ClientEvent::StreamEof { message_stream_id }),
            UserControl::StreamDry { message_stream_id } => on(ClientEvent::StreamDry { message_stream_id }),
            UserControl::SetBufferLength { .. }
            | UserControl::StreamIsRecorded { .. }
            | UserControl::PingResponse { .. }
            | UserControl::Other { .. } => {}
        }
    }

    fn command(&mut self, command: &Command<'_>, on: &mut impl FnMut(ClientEvent<'_>)) -> Result<(), Error> {
        match &*command.name {
            "_result" => match self.state {
                State::Connect if command.transaction_id == CONNECT => {
                    on(ClientEvent::Connected);
                    self.ask_for_stream();
                }
                State::CreateStream if command.transaction_id == CREATE_STREAM => {
                    self.message_stream_id = stream_number(command.number(0))?;
                    on(ClientEvent::StreamCreated { message_stream_id: self.message_stream_id });
                    self.start();
                }
                _ => {}
            },
            // Flash Media Live Encoder's own commands are often not known, and that does no harm.
            "_error" if [RELEASE_STREAM, FC_PUBLISH].contains(&command.transaction_id) => {}
            "_error" => on(ClientEvent::Status(status_of(command, Level::Error))),
            "onStatus" => self.on_status(status_of(command, Level::Status), on),
            _ => {}
        }
        Ok(())
    }

    fn on_status(&mut self, status: Status<'_>, on: &mut impl FnMut(ClientEvent<'_>)) {
        let started = match (&*status.code, self.state, self.options.role) {
            ("NetStream.Play.Start", State::Start, Role::Play) => Some(ClientEvent::Playing),
            ("NetStream.Publish.Start", State::Start, Role::Publish) => Some(ClientEvent::Publishing),
            _ => None,
        };
        on(ClientEvent::Status(status));
        if let Some(started) = started {
            self.started();
            on(started);
        }
    }

    fn started(&mut self) {
        self.state = State::Streaming;
        // A player has little to say from here on; thousands of them need not hold what the handshake took.
        if self.options.role == Role::Play && self.output.is_empty() {
            self.output = Vec::new();
        }
    }
}

/// What the client says.
impl Dialogue {
    pub(super) fn connect(&mut self) {
        let options = Arc::clone(&self.options);
        let mut properties = Object::new()
            .with("app", &*options.app)
            .with("flashVer", &*options.flash_version)
            .with("tcUrl", &*options.tc_url)
            .with("objectEncoding", 0.0)
            // Enhanced RTMP v1, "Enhancing NetConnection connect Command": any codec will do. MediaMTX looks for names only,
            // and leaves out the tracks whose name is not there.
            .with("fourCcList", Value::StrictArray(FOUR_CC_LIST.iter().map(|name| (*name).into()).collect()));
        properties = match options.role {
            // What Flash Player said it could; some servers send nothing that is not in here.
            Role::Play => properties
                .with("fpad", false)
                .with("capabilities", 239.0)
                .with("audioCodecs", 3575.0)
                .with("videoCodecs", 252.0)
                .with("videoFunction", 1.0),
            Role::Publish => properties.with("type", "nonprivate"),
        };
        self.send_on_connection(&Command::connect(CONNECT, properties));
        self.state = State::Connect;
    }

    fn ask_for_stream(&mut self) {
        let options = Arc::clone(&self.options);
        if options.role == Role::Publish {
            self.writer.set_chunk_size(options.chunk_size, &mut self.output);
            self.send_on_connection(&Command::release_stream(RELEASE_STREAM, &options.stream));
            self.send_on_connection(&Command::fc_publish(FC_PUBLISH, &options.stream));
        } else {
            self.announce_window(USUAL_WINDOW);
        }
        self.send_on_connection(&Command::create_stream(CREATE_STREAM));
        self.state = State::CreateStream;
    }

    fn start(&mut self) {
        let options = Arc::clone(&self.options);
        let message_stream_id = self.message_stream_id;
        match options.role {
            Role::Play => {
                let milliseconds = options.buffer_length;
                UserControl::SetBufferLength { message_stream_id, milliseconds }
                    .write(&mut self.writer, &mut self.output);
                self.tell_stream(&Command::play(START, &options.stream, LIVE_OR_RECORDED));
            }
            Role::Publish => self.tell_stream(&Command::publish(START, &options.stream)),
        }
        self.state = State::Start;
    }

    pub(super) fn close(&mut self) {
        let options = Arc::clone(&self.options);
        if matches!(self.state, State::Start | State::Streaming) {
            if options.role == Role::Publish {
                self.send_on_connection(&Command::fc_unpublish(FC_UNPUBLISH, &options.stream));
            }
            self.send_on_connection(&Command::delete_stream(DELETE_STREAM, self.message_stream_id));
        }
        self.state = State::Closed;
    }

    fn send_on_connection(&mut self, command: &Command<'_>) {
        self.send_command(CONNECTION_CHUNK_STREAM, 0, command);
    }

    fn tell_stream(&mut self, command: &Command<'_>) {
        self.send_command(STREAM_CHUNK_STREAM, self.message_stream_id, command);
    }

    fn send_command(&mut self, chunk_stream_id: u32, message_stream_id: u32, command: &Command<'_>) {
        let mut payload = Vec::new();
        command.encode(&mut payload);
        let header = MessageHeader {
            chunk_stream_id,
            kind: MessageKind::CommandAmf0,
            timestamp: 0,
            length: payload.len() as u32,
            message_stream_id,
        };
        self.writer.write(&header, &payload, &mut self.output);
    }

    fn announce_window(&mut self, window: u32) {
        self.sending_window = window;
        self.control(Control::WindowAcknowledgementSize(window));
    }

    fn control(&mut self, control: Control) {
        control.write(&mut self.writer, &mut self.output);
    }
}

/// The info object of an answer; some servers leave out the null before it.
fn status_of<'a>(command: &Command<'a>, otherwise: Level) -> Status<'a> {
    Status::from_value(command.arguments.first().unwrap_or(&command.object), otherwise)
}

fn stream_number(number: Option<f64>) -> Result<u32, Error> {
    match number {
        Some(number) if number >= 0.0 && number <= f64::from(u32::MAX) && number.fract() == 0.0 => {
            Ok(number as u32)
        }
        _ => Err(Error::StreamNumber),
    }
}
