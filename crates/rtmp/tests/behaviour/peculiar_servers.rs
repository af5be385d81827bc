//! Servers that leave out, reorder or wrap what a client expects, scripted message by message.

use crate::pair::{client_words, options, payload, summary};
use weir_rtmp::amf0::{Object, Value};
use weir_rtmp::chunk::{MessageHeader, Writer};
use weir_rtmp::client::{Error, HEAD_LEN, MAX_COMMAND_LEN, Role};
use weir_rtmp::message::control::BandwidthLimit;
use weir_rtmp::message::{Command, Control, MessageKind, Status, UserControl};
use weir_rtmp::{AssemblyError, Client, ClientEvent};

/// A server that says what it is told to.
struct Script {
    writer: Writer,
    bytes: Vec<u8>,
}

impl Script {
    /// Begins with a simple handshake.
    fn new() -> Self {
        Self { writer: Writer::new(), bytes: [&[3][..], &[0; 2 * 1536]].concat() }
    }

    /// Goes on where the handshake has been.
    fn after_handshake() -> Self {
        Self { writer: Writer::new(), bytes: Vec::new() }
    }

    fn message(mut self, kind: MessageKind, timestamp: u32, payload: &[u8]) -> Self {
        let length = payload.len() as u32;
        let header = MessageHeader { chunk_stream_id: 5, kind, timestamp, length, message_stream_id: 1 };
        self.writer.write(&header, payload, &mut self.bytes);
        self
    }

    fn command(self, command: &Command<'_>) -> Self {
        let mut payload = Vec::new();
        command.encode(&mut payload);
        self.message(MessageKind::CommandAmf0, 0, &payload)
    }

    fn control(mut self, control: Control) -> Self {
        control.write(&mut self.writer, &mut self.bytes);
        self
    }

    fn event(mut self, event: UserControl) -> Self {
        event.write(&mut self.writer, &mut self.bytes);
        self
    }

    fn connected(self) -> Self {
        self.command(&Command::result(1.0, Value::Null, vec![]))
    }

    fn stream_created(self) -> Self {
        self.command(&Command::result(4.0, Value::Null, vec![Value::Number(1.0)]))
    }

    fn status(self, code: &str) -> Self {
        self.command(&Command::on_status(&Status::new(code, "")))
    }
}

/// What a client hears of a script, the same in pieces of any size.
fn heard(role: Role, script: &Script) -> Result<Vec<String>, Error> {
    let hear = |piece: usize| {
        let mut client = Client::new(options(role), 1);
        let mut heard = Vec::new();
        for bytes in script.bytes.chunks(piece) {
            client.input(bytes, &mut |event| {
                if !matches!(event, ClientEvent::HandshakeDone { .. }) {
                    heard.push(client_words(&event));
                }
            })?;
        }
        Ok(heard)
    };
    let whole = hear(usize::MAX);
    for piece in [1, 2, 3, 5, 17, 100, 129, 1000] {
        assert_eq!(hear(piece), whole, "in pieces of {piece}");
    }
    whole
}

#[test]
fn media_without_play_start_is_playing() {
    let script = Script::new().connected().stream_created().message(MessageKind::Video, 40, &[0x17, 1]);
    assert_eq!(
        heard(Role::Play, &script).unwrap()[2..],
        ["Playing".to_owned(), format!("Video at 40, 2 bytes, head {}", summary(&[0x17, 1]))]
    );
}

#[test]
fn playing_is_told_once() {
    let script = Script::new()
        .connected()
        .stream_created()
        .message(MessageKind::Audio, 0, b"")
        .status("NetStream.Play.Start")
        .status("NetStream.Play.Start");
    let heard = heard(Role::Play, &script).unwrap();
    assert_eq!(heard.iter().filter(|heard| *heard == "Playing").count(), 1);
}

#[test]
fn a_server_need_not_know_the_commands_of_flash_media_live_encoder() {
    let unknown = Status::error("NetConnection.Call.Failed", "unknown");
    let script = Script::new()
        .connected()
        .command(&Command::error(2.0, &unknown))
        .command(&Command::error(3.0, &unknown))
        .command(&Command::new("onFCPublish", 0.0, vec![]))
        .stream_created()
        .status("NetStream.Publish.Start");
    assert_eq!(
        heard(Role::Publish, &script).unwrap(),
        ["Connected", "StreamCreated { message_stream_id: 1 }", "NetStream.Publish.Start", "Publishing"]
    );
}

#[test]
fn an_answer_to_nothing_is_ignored() {
    let script = Script::new()
        .command(&Command::result(4.0, Value::Null, vec![Value::Number(1.0)]))
        .connected()
        .connected()
        .command(&Command::result(9.0, Value::Null, vec![]))
        .command(&Command::new("onBWDone", 0.0, vec![]));
    assert_eq!(heard(Role::Play, &script).unwrap(), ["Connected"]);
}

#[test]
fn an_error_without_an_info_object_is_still_an_error() {
    let refused =
        Command { name: "_error".into(), transaction_id: 1.0, object: Value::Null, arguments: vec![] };
    assert_eq!(heard(Role::Play, &Script::new().command(&refused)).unwrap(), ["error error"]);
    let object = Object::new().with("code", "NetConnection.Connect.Rejected");
    let refused = Command { object: object.into(), ..refused };
    assert_eq!(
        heard(Role::Play, &Script::new().command(&refused)).unwrap(),
        ["error NetConnection.Connect.Rejected"],
        "the info object may stand in the place of the command object"
    );
}

#[test]
fn a_stream_needs_a_number() {
    for number in [Value::Null, Value::Number(-1.0), Value::Number(0.5), Value::Number(f64::NAN)] {
        let script = Script::new().connected();
        let script = script.command(&Command::result(4.0, Value::Null, vec![number]));
        assert_eq!(heard(Role::Play, &script), Err(Error::StreamNumber));
    }
}

#[test]
fn commands_may_come_in_amf3_clothes() {
    let mut result = vec![0];
    Command::result(1.0, Value::Null, vec![]).encode(&mut result);
    let script = Script::new().message(MessageKind::CommandAmf3, 0, &result);
    assert_eq!(heard(Role::Play, &script).unwrap(), ["Connected"]);
}

#[test]
fn messages_in_an_aggregate_are_heard_like_any_others() {
    let lengths = [10, HEAD_LEN + 50, 3000];
    let mut aggregate = Vec::new();
    for (number, length) in lengths.into_iter().enumerate() {
        aggregate.extend([9 - (number % 2) as u8, 0]);
        aggregate.extend((length as u16).to_be_bytes());
        aggregate.extend([0, 0, 100 + 20 * number as u8, 0, 0, 0, 0]);
        aggregate.extend(payload(length));
        aggregate.extend((11 + length as u32).to_be_bytes());
    }
    let script = Script::new()
        .connected()
        .stream_created()
        .status("NetStream.Play.Start")
        .message(MessageKind::Aggregate, 5000, &aggregate)
        .message(MessageKind::Audio, 6000, b"after");
    let heard = heard(Role::Play, &script).unwrap();
    let words = |kind, timestamp, length: usize| {
        let head = summary(&payload(length.min(HEAD_LEN)));
        format!("{kind} at {timestamp}, {length} bytes, head {head}")
    };
    assert_eq!(
        heard[4..],
        [
            words("Video", 5000, lengths[0]),
            words("Audio", 5020, lengths[1]),
            words("Video", 5040, lengths[2]),
            format!("Audio at 6000, 5 bytes, head {}", summary(b"after")),
        ]
    );
}

#[test]
fn frames_may_interleave_and_be_given_up() {
    // Chunks of 128: two of video, one of audio, an abort of the video, the rest of the audio.
    let video = payload(400);
    let audio = payload(200);
    let mut framed = [Vec::new(), Vec::new()];
    for (id, kind, payload, out) in [(6, MessageKind::Video, &video, 0), (4, MessageKind::Audio, &audio, 1)] {
        let header =
            MessageHeader { chunk_stream_id: id, kind, timestamp: 7, length: 0, message_stream_id: 1 };
        Writer::new().write(&header, payload, &mut framed[out]);
    }
    let mut script = Script::new().connected().stream_created().status("NetStream.Play.Start");
    script.bytes.extend(&framed[0][..12 + 128 + 1 + 128]);
    script.bytes.extend(&framed[1][..12 + 128]);
    let mut script = script.control(Control::Abort { chunk_stream_id: 6 });
    script.bytes.extend(&framed[1][12 + 128..]);
    let heard = heard(Role::Play, &script).unwrap();
    assert_eq!(heard[4..], [format!("Audio at 7, 200 bytes, head {}", summary(&audio))]);
}

#[test]
fn a_command_may_not_be_too_long() {
    let script = Script::new().message(MessageKind::CommandAmf0, 0, &vec![0; MAX_COMMAND_LEN as usize + 1]);
    assert_eq!(
        heard(Role::Play, &script),
        Err(Error::Assembly(AssemblyError::TooLong {
            kind: MessageKind::CommandAmf0,
            length: MAX_COMMAND_LEN + 1,
            limit: MAX_COMMAND_LEN
        }))
    );
}

#[test]
fn what_the_protocol_wants_answered_is_answered() {
    let mut client = Client::new(options(Role::Play), 1);
    client.input(&Script::new().bytes, &mut |_| ()).unwrap();
    client.output().clear();
    let mut expected = Script::after_handshake();
    let mut script = Script::after_handshake();
    for (said, answer) in [
        (Control::SetPeerBandwidth { window: 5000, limit: BandwidthLimit::Dynamic }, None),
        (Control::SetPeerBandwidth { window: 5000, limit: BandwidthLimit::Hard }, Some(5000)),
        (Control::SetPeerBandwidth { window: 5000, limit: BandwidthLimit::Hard }, None),
        (Control::SetPeerBandwidth { window: 4000, limit: BandwidthLimit::Dynamic }, Some(4000)),
        (Control::SetPeerBandwidth { window: 6000, limit: BandwidthLimit::Soft }, None),
        (Control::SetPeerBandwidth { window: 3000, limit: BandwidthLimit::Soft }, Some(3000)),
    ] {
        script = script.control(said);
        if let Some(window) = answer {
            expected = expected.control(Control::WindowAcknowledgementSize(window));
        }
    }
    script = script.event(UserControl::PingRequest { timestamp: 77 });
    expected = expected.event(UserControl::PingResponse { timestamp: 77 });
    client.input(&script.bytes, &mut |_| ()).unwrap();
    assert_eq!(*client.output(), expected.bytes);
}
