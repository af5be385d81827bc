//! What a server sends, and how it handles what it receives.

use super::{
    ConnectRequest, Error, MAX_STREAMS, MOST_HELD_BEFORE_CONNECT, MediaMessage, ServerEvent, ServerOptions,
};
use crate::acknowledgement::Acknowledger;
use crate::amf0::{Object, Value};
use crate::chunk::{MediaFraming, MessageHeader, Writer};
use crate::message::control::BandwidthLimit;
use crate::message::{Command, Control, MediaKind, MessageKind, Status, UserControl, data};

/// The chunk streams for commands: any ids would do, these are what other servers use.
const CONNECTION_CHUNK_STREAM: u32 = 3;
const STREAM_CHUNK_STREAM: u32 = 5;

/// What the server calls itself. Flash Media Live Encoder and its like want to see a version of 3 or more.
const SERVER_VERSION: &str = "FMS/3,5,3,888";

#[derive(Clone, Debug)]
pub(super) struct Dialogue {
    options: ServerOptions,
    pub(super) output: Vec<u8>,
    writer: Writer,
    acknowledger: Acknowledger,
    /// The transaction that waits for the owner's answer to `connect`.
    connecting: Option<f64>,
    /// Whether the client has ever said `connect`.
    introduced: bool,
    /// The message streams in use.
    streams: Vec<u32>,
}

impl Dialogue {
    pub(super) fn new(options: ServerOptions) -> Self {
        Self {
            options,
            output: Vec::new(),
            writer: Writer::new(),
            acknowledger: Acknowledger::new(0),
            connecting: None,
            introduced: false,
            streams: Vec::new(),
        }
    }

    pub(super) fn framing(&self, message_stream_id: u32) -> MediaFraming {
        MediaFraming { chunk_size: self.writer.chunk_size(), message_stream_id }
    }

    /// Bytes of unfinished messages that are kept of the client.
    pub(super) fn most_held(&self) -> usize {
        if self.introduced { self.options.max_unfinished } else { MOST_HELD_BEFORE_CONNECT }
    }

    /// Counts received bytes, and acknowledges them when a window is full.
    pub(super) fn acknowledge(&mut self, bytes: usize) {
        if let Some(received) = self.acknowledger.receive(bytes) {
            self.control(Control::Acknowledgement(received));
        }
    }

    /// One complete message.
    pub(super) fn message(
        &mut self,
        header: &MessageHeader,
        payload: &[u8],
        on: &mut impl FnMut(ServerEvent<'_>),
    ) -> Result<(), Error> {
        if let Some(kind) = MediaKind::from_message_kind(header.kind) {
            on(media_event(kind, header, payload));
            return Ok(());
        }
        match header.kind {
            MessageKind::CommandAmf0 | MessageKind::CommandAmf3 => {
                self.command(header.message_stream_id, &Command::parse(header.kind, payload)?, on)
            }
            MessageKind::UserControl => {
                self.user_control(UserControl::parse(payload)?, on);
                Ok(())
            }
            kind => {
                match Control::parse(kind, payload)? {
                    Some(Control::WindowAcknowledgementSize(window)) => self.acknowledger.set_window(window),
                    Some(Control::Acknowledgement(bytes)) => on(ServerEvent::Acknowledged { bytes }),
                    _ => {}
                }
                Ok(())
            }
        }
    }

    fn user_control(&mut self, event: UserControl, on: &mut impl FnMut(ServerEvent<'_>)) {
        match event {
            UserControl::SetBufferLength { message_stream_id, milliseconds } => {
                on(ServerEvent::BufferLength { message_stream_id, milliseconds });
            }
            UserControl::PingRequest { timestamp } => {
                UserControl::PingResponse { timestamp }.write(&mut self.writer, &mut self.output);
            }
            UserControl::PingResponse { timestamp } => on(ServerEvent::Pong { timestamp }),
            _ => {}
        }
    }

    fn command(
        &mut self,
        message_stream_id: u32,
        command: &Command<'_>,
        on: &mut impl FnMut(ServerEvent<'_>),
    ) -> Result<(), Error> {
        let id = command.transaction_id;
        match &*command.name {
            "connect" => {
                self.connecting = Some(id);
                self.introduced = true;
                let text = |name| command.object.get(name).and_then(Value::as_str).unwrap_or_default();
                on(ServerEvent::Connect(ConnectRequest {
                    app: text("app"),
                    tc_url: text("tcUrl"),
                    flash_version: text("flashVer"),
                }));
            }
            "createStream" => {
                let created = self.create_stream()?;
                self.answer(id, vec![f64::from(created).into()]);
            }
            "publish" => {
                let stream = command.text(0).unwrap_or_default();
                on(ServerEvent::Publish { message_stream_id, stream });
            }
            "play" => {
                let stream = command.text(0).unwrap_or_default();
                let start = command.number(1).unwrap_or(-2.0);
                on(ServerEvent::Play { message_stream_id, stream, start });
            }
            "closeStream" => on(ServerEvent::Closed { message_stream_id }),
            "deleteStream" => {
                let message_stream_id = command.number(0).unwrap_or_default() as u32;
                self.streams.retain(|&stream| stream != message_stream_id);
                on(ServerEvent::Closed { message_stream_id });
            }
            "FCPublish" => {
                self.answer(id, Vec::new());
                self.fc_status("onFCPublish", "NetStream.Publish.Start", command.text(0));
            }
            "FCUnpublish" => {
                self.answer(id, Vec::new());
                self.fc_status("onFCUnpublish", "NetStream.Unpublish.Success", command.text(0));
            }
            // How long the stream is, in seconds: a live one has no length.
            "getStreamLength" => self.answer(id, vec![0.0.into()]),
            "_result" | "_error" | "onStatus" => {}
            // releaseStream, FCSubscribe, _checkbw, receiveAudio and what else clients come up with: yes, and nothing.
            _ => self.answer(id, vec![Value::Undefined]),
        }
        Ok(())
    }

    /// The lowest number that is free: almost always 1, so that viewers can be sent the same bytes.
    fn create_stream(&mut self) -> Result<u32, Error> {
        if self.streams.len() == MAX_STREAMS {
            return Err(Error::TooManyStreams);
        }
        let mut created = 1;
        while self.streams.contains(&created) {
            created += 1;
        }
        self.streams.push(created);
        Ok(created)
    }
}

fn media_event<'a>(kind: MediaKind, header: &MessageHeader, payload: &'a [u8]) -> ServerEvent<'a> {
    let MessageHeader { message_stream_id, timestamp, .. } = *header;
    if kind != MediaKind::Data {
        return ServerEvent::Media(MediaMessage { message_stream_id, kind, timestamp, payload });
    }
    let payload = data::for_viewers(data::values(header.kind, payload));
    let message = MediaMessage { message_stream_id, kind, timestamp, payload };
    if data::is_metadata(payload) { ServerEvent::Metadata(message) } else { ServerEvent::Media(message) }
}

/// What the server says.
impl Dialogue {
    pub(super) fn accept_connect(&mut self) {
        let Some(id) = self.connecting.take() else { return };
        let ServerOptions { chunk_size, acknowledgement_window, peer_bandwidth, .. } = self.options;
        self.control(Control::WindowAcknowledgementSize(acknowledgement_window));
        self.control(Control::SetPeerBandwidth { window: peer_bandwidth, limit: BandwidthLimit::Dynamic });
        self.user(UserControl::StreamBegin { message_stream_id: 0 });
        self.writer.set_chunk_size(chunk_size, &mut self.output);

        let properties = Object::new().with("fmsVer", SERVER_VERSION).with("capabilities", 31.0);
        let information = Object::new()
            .with("level", "status")
            .with("code", "NetConnection.Connect.Success")
            .with("description", "Connection succeeded.")
            .with("objectEncoding", 0.0)
            .with("fourCcList", Value::StrictArray(vec!["*".into()]));
        self.send_on_connection(&Command::result(id, properties.into(), vec![information.into()]));
        self.send_on_connection(&Command::new("onBWDone", 0.0, Vec::new()));
    }

    pub(super) fn reject_connect(&mut self, status: &Status<'_>) {
        if let Some(id) = self.connecting.take() {
            self.send_on_connection(&Command::error(id, status));
        }
    }

    pub(super) fn accept_publish(&mut self, message_stream_id: u32) {
        self.user(UserControl::StreamBegin { message_stream_id });
        self.send_status(
            message_stream_id,
            &Status::new("NetStream.Publish.Start", "Publishing has started."),
        );
    }

    /// Without `|RtmpSampleAccess` and `NetStream.Data.Start`, which were for Flash Player: ffmpeg takes them for
    /// a data track, and ffprobe warns of a codec that it does not know.
    pub(super) fn accept_play(&mut self, message_stream_id: u32) {
        self.user(UserControl::StreamBegin { message_stream_id });
        for (code, description) in [
            ("NetStream.Play.Reset", "Playing and resetting."),
            ("NetStream.Play.Start", "Playing has started."),
        ] {
            self.send_status(message_stream_id, &Status::new(code, description));
        }
    }

    pub(super) fn end_play(&mut self, message_stream_id: u32) {
        self.user(UserControl::StreamEof { message_stream_id });
        for (code, description) in [
            ("NetStream.Play.UnpublishNotify", "The stream is no longer published."),
            ("NetStream.Play.Stop", "Playing has stopped."),
        ] {
            self.send_status(message_stream_id, &Status::new(code, description));
        }
    }

    pub(super) fn send_status(&mut self, message_stream_id: u32, status: &Status<'_>) {
        self.send_command(STREAM_CHUNK_STREAM, message_stream_id, &Command::on_status(status));
    }

    pub(super) fn ping(&mut self, timestamp: u32) {
        self.user(UserControl::PingRequest { timestamp });
    }

    /// The answer to a command, if it asks for one.
    fn answer(&mut self, transaction_id: f64, arguments: Vec<Value<'_>>) {
        if transaction_id != 0.0 {
            self.send_on_connection(&Command::result(transaction_id, Value::Null, arguments));
        }
    }

    /// The answers to the commands that only Flash Media Live Encoder sends.
    fn fc_status(&mut self, name: &str, code: &str, stream: Option<&str>) {
        let status = Status::new(code, stream.unwrap_or_default());
        self.send_on_connection(&Command::new(name, 0.0, vec![status.to_value()]));
    }

    fn send_on_connection(&mut self, command: &Command<'_>) {
        self.send_command(CONNECTION_CHUNK_STREAM, 0, command);
    }

    fn send_command(&mut self, chunk_stream_id: u32, message_stream_id: u32, command: &Command<'_>) {
        let mut payload = Vec::new();
        command.encode(&mut payload);
        self.write(chunk_stream_id, MessageKind::CommandAmf0, message_stream_id, &payload);
    }

    fn write(&mut self, chunk_stream_id: u32, kind: MessageKind, message_stream_id: u32, payload: &[u8]) {
        let length = payload.len() as u32;
        let header = MessageHeader { chunk_stream_id, kind, timestamp: 0, length, message_stream_id };
        self.writer.write(&header, payload, &mut self.output);
    }

    fn user(&mut self, event: UserControl) {
        event.write(&mut self.writer, &mut self.output);
    }

    fn control(&mut self, control: Control) {
        control.write(&mut self.writer, &mut self.output);
    }
}
