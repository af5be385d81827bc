//! WebSocket (RFC 6455) behind its handshake: messages both ways, pings answered, a close received and sent. Frames are
//! tungstenite's; messages are bounded, and what a peer must not send is an error.

mod opening;
mod pieces;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use pieces::Pieces;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use tungstenite::error::{CapacityError, Error, ProtocolError};
use tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tungstenite::{Message, WebSocket as Protocol};

pub use opening::{Opening, OpeningError};
pub use tungstenite::protocol::Role;

/// What the server's key is made with (section 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Bytes that are held for each connection, and moved at a time. A description comes in ten such pieces.
const BUFFER: usize = 1024;

/// Bytes of a queue that is kept for the next input.
const KEPT: usize = 4096;

/// What a server answers to a key (section 4.2.2).
pub fn accept(key: &str) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{}{GUID}", key.trim()).as_bytes()))
}

/// One end of an open WebSocket.
#[derive(Debug)]
pub struct WebSocket(Protocol<Wire>);

/// What has come and what is to be sent, in the place of a socket.
#[derive(Debug, Default)]
struct Wire {
    inbox: VecDeque<u8>,
    outbox: Vec<u8>,
    /// What cuts messages, if they are to come in pieces.
    pieces: Option<Pieces>,
}

/// What a peer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A text message.
    Text(String),
    /// A message of bytes, or a piece of one.
    Binary(Vec<u8>),
    /// The end: its code (1005 if there is none) and its reason. The answer is in the output.
    Close(u16, String),
}

/// Why a WebSocket cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum WebSocketError {
    /// More than a message may have.
    #[error("a WebSocket message over {0} bytes")]
    TooLong(usize),
    /// Clients mask, servers do not (section 5.1).
    #[error("a WebSocket frame that is masked by the wrong side")]
    Mask,
    /// Bits or an opcode that mean nothing without an extension, or a control frame that is cut or too long.
    #[error("a WebSocket frame of a kind that was not agreed on")]
    Frame,
    /// A continuation of nothing, or a new message inside another.
    #[error("the frames of WebSocket messages are mixed up")]
    Order,
    /// A text that is not UTF-8, or a binary message where only texts are sent.
    #[error("a WebSocket message that is not text")]
    NoText,
    /// A text where only binary messages are sent.
    #[error("a WebSocket message that is a text")]
    Text,
}

impl WebSocket {
    /// An end of a connection that has just been opened, whose messages have at most `most` bytes.
    pub fn new(role: Role, most: usize) -> Self {
        let config = WebSocketConfig::default()
            .read_buffer_size(BUFFER)
            .write_buffer_size(0)
            .max_message_size(Some(most))
            .max_frame_size(Some(most));
        Self(Protocol::from_raw_socket(Wire::default(), role, Some(config)))
    }

    /// The same for a protocol to which the bounds of binary messages mean nothing: they come in pieces, as they come, and may have
    /// any length.
    pub fn in_pieces(role: Role) -> Self {
        let mut socket = Self::new(role, pieces::PIECE);
        socket.0.get_mut().pieces = Some(Pieces::default());
        socket
    }

    /// Takes what came; [`Self::poll`] follows.
    pub fn input(&mut self, bytes: &[u8]) {
        if self.0.can_read() {
            let Wire { inbox, pieces, .. } = self.0.get_mut();
            match pieces {
                Some(pieces) => pieces.take(bytes, inbox),
                None => inbox.extend(bytes),
            }
        }
    }

    /// The next message. What must be answered at once, pings and the close, is appended to `out`.
    ///
    /// # Errors
    ///
    /// When the peer sends what it may not; the connection is to be closed.
    pub fn poll(&mut self, out: &mut Vec<u8>) -> Result<Option<Incoming>, WebSocketError> {
        let mut outcome = Ok(None);
        while self.0.can_read() {
            outcome = match self.0.read() {
                Ok(Message::Text(text)) => Ok(Some(Incoming::Text(text.as_str().to_owned()))),
                Ok(Message::Close(close)) => {
                    let (code, reason) = close.map_or((1005, String::new()), |close| {
                        (close.code.into(), close.reason.as_str().to_owned())
                    });
                    Ok(Some(Incoming::Close(code, reason)))
                }
                Ok(Message::Binary(bytes)) => Ok(Some(Incoming::Binary(bytes.into()))),
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_)) => continue,
                Err(Error::Io(_) | Error::ConnectionClosed | Error::AlreadyClosed) => Ok(None),
                Err(error) => Err(of(&error)),
            };
            break;
        }
        // Thousands that say little must cost little.
        let inbox = &mut self.0.get_mut().inbox;
        if inbox.is_empty() && inbox.capacity() > KEPT {
            *inbox = VecDeque::new();
        }
        self.flush(out);
        outcome
    }

    /// Appends a text message, unless a close frame was sent.
    pub fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.send(Message::text(text), out);
    }

    /// Appends a message of bytes, unless a close frame was sent.
    pub fn binary(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.send(Message::binary(bytes.to_vec()), out);
    }

    /// Appends a ping, which the peer answers (section 5.5.2).
    pub fn ping(&mut self, out: &mut Vec<u8>) {
        self.send(Message::Ping(Default::default()), out);
    }

    /// Appends a close frame (1000: normal closure).
    pub fn close(&mut self, code: u16, out: &mut Vec<u8>) {
        self.send(Message::Close(Some(CloseFrame { code: code.into(), reason: Default::default() })), out);
    }

    fn send(&mut self, message: Message, out: &mut Vec<u8>) {
        // Writing to memory fails only behind a close frame.
        let _ = self.0.write(message);
        self.flush(out);
    }

    fn flush(&mut self, out: &mut Vec<u8>) {
        // A server gets this error once it has answered a close frame: it may close the link now.
        let _ = self.0.flush();
        out.append(&mut self.0.get_mut().outbox);
    }
}

/// What kind of error it is.
fn of(error: &Error) -> WebSocketError {
    match error {
        Error::Capacity(CapacityError::MessageTooLong { max_size, .. }) => WebSocketError::TooLong(*max_size),
        Error::Utf8(_) => WebSocketError::NoText,
        Error::Protocol(ProtocolError::UnmaskedFrameFromClient | ProtocolError::MaskedFrameFromServer) => {
            WebSocketError::Mask
        }
        Error::Protocol(ProtocolError::UnexpectedContinueFrame | ProtocolError::ExpectedFragment(_)) => {
            WebSocketError::Order
        }
        _ => WebSocketError::Frame,
    }
}

impl Read for Wire {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.inbox.is_empty() { Err(ErrorKind::WouldBlock.into()) } else { self.inbox.read(buffer) }
    }
}

impl Write for Wire {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.outbox.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a message may have here.
    const MOST: usize = 256 << 10;

    fn end(role: Role) -> WebSocket {
        WebSocket::new(role, MOST)
    }

    /// Section 1.3.
    #[test]
    fn a_key_is_accepted_as_in_the_standards_example() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    }

    #[test]
    fn fragments_are_put_together_and_pings_between_them_answered() {
        let mut client = end(Role::Client);
        client.input(&[0x01, 2, b'a', b'b', 0x89, 1, b'p', 0x00, 1, b'c', 0x80, 0]);
        let mut out = Vec::new();
        assert_eq!(client.poll(&mut out), Ok(Some(Incoming::Text("abc".to_owned()))));
        let mut server = end(Role::Server);
        assert_eq!(out[..2], [0x8A, 0x81]);
        server.input(&out);
        assert_eq!(server.poll(&mut Vec::new()), Ok(None));
    }

    #[test]
    fn bytes_are_a_message_of_their_own_kind() {
        let (mut client, mut server, mut wire) = (end(Role::Client), end(Role::Server), Vec::new());
        client.binary(&[0xFF, 0], &mut wire);
        assert_eq!(wire[..2], [0x82, 0x82]);
        server.input(&wire);
        assert_eq!(server.poll(&mut Vec::new()), Ok(Some(Incoming::Binary(vec![0xFF, 0]))));
    }

    #[test]
    fn a_letter_may_be_cut_by_the_end_of_a_frame() {
        let mut client = end(Role::Client);
        client.input(&[0x01, 1, 0xC3, 0x89, 0, 0x80, 1, 0xA9]);
        assert_eq!(client.poll(&mut Vec::new()), Ok(Some(Incoming::Text("\u{e9}".to_owned()))));
    }

    /// To take each frame off the front, or to copy the message for each, would take time by the square of their number.
    #[test]
    fn a_message_in_very_many_frames_is_read_once() {
        let mut client = end(Role::Client);
        let mut wire = vec![0x01, 0];
        (0..MOST).for_each(|_| wire.extend([0x00, 1, b'x']));
        (0..600_000).for_each(|_| wire.extend([0x00, 0]));
        wire.extend([0x80, 0, 0x81, 1, b'y']);
        client.input(&wire);
        let Ok(Some(Incoming::Text(text))) = client.poll(&mut Vec::new()) else { panic!("no text") };
        assert_eq!(text.len(), MOST);
        assert_eq!(client.poll(&mut Vec::new()), Ok(Some(Incoming::Text("y".to_owned()))));
        assert_eq!((client.poll(&mut Vec::new()), client.0.get_ref().inbox.len()), (Ok(None), 0));
    }

    #[test]
    fn a_close_is_answered_and_is_the_last() {
        let (mut client, mut server) = (end(Role::Client), end(Role::Server));
        let mut out = Vec::new();
        client.close(1000, &mut out);
        server.input(&out);
        out.clear();
        assert_eq!(server.poll(&mut out), Ok(Some(Incoming::Close(1000, String::new()))));
        assert_eq!(out, [0x88, 2, 0x03, 0xE8]);
        server.input(&[0x81, 0x80, 0, 0, 0, 0]);
        assert_eq!(server.poll(&mut Vec::new()), Ok(None));
        client.input(&[0x88, 0]);
        assert_eq!(client.poll(&mut Vec::new()), Ok(Some(Incoming::Close(1005, String::new()))));
    }

    #[test]
    fn what_a_server_may_not_send_is_named() {
        for (bytes, error) in [
            (&[0x81, 0x80, 0, 0, 0, 0][..], WebSocketError::Mask),
            (&[0xC1, 0], WebSocketError::Frame),
            (&[0x83, 0], WebSocketError::Frame),
            (&[0x09, 0], WebSocketError::Frame),
            (&[&[0x89, 126, 0, 126][..], &[0; 126]].concat(), WebSocketError::Frame),
            (&[0x80, 0], WebSocketError::Order),
            (&[0x01, 0, 0x01, 0], WebSocketError::Order),
            (&[0x81, 1, 0xFF], WebSocketError::NoText),
            (&[0x81, 127, 0, 0, 0, 0, 0, 4, 0, 1], WebSocketError::TooLong(MOST)),
            (&[0x81, 127, 255, 255, 255, 255, 255, 255, 255, 255], WebSocketError::TooLong(MOST)),
        ] {
            let mut client = end(Role::Client);
            client.input(bytes);
            assert_eq!(client.poll(&mut Vec::new()), Err(error), "{bytes:?}");
        }
    }

    /// First bytes of frames: whole texts and those in fragments, pings and pongs between them; seldom a close, a
    /// binary message or something that means nothing.
    fn first_bytes() -> impl Strategy<Value = u8> {
        prop::sample::select(vec![
            0x81, 0x81, 0x81, 0x81, 0x01, 0x01, 0x00, 0x00, 0x80, 0x80, 0x89, 0x89, 0x8A, 0x88, 0x82, 0x83,
            0xC1,
        ])
    }

    /// A frame as the other side of this role sends it.
    fn frame(to: Role, first: u8, payload: &[u8], mask: [u8; 4]) -> Vec<u8> {
        let masks = to == Role::Server;
        let mut frame = vec![first, payload.len() as u8 | if masks { 0x80 } else { 0 }];
        frame.extend(mask.iter().filter(|_| masks));
        let key = if masks { mask } else { [0; 4] };
        frame.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
        frame
    }

    /// What these pieces contain, how they end, and how many bytes are answered.
    fn hear(role: Role, pieces: &[&[u8]]) -> (Vec<Incoming>, Option<WebSocketError>, usize) {
        let (mut socket, mut heard, mut out) = (end(role), Vec::new(), Vec::new());
        for piece in pieces {
            socket.input(piece);
            loop {
                match socket.poll(&mut out) {
                    Ok(Some(message)) => heard.push(message),
                    Ok(None) => break,
                    Err(error) => return (heard, Some(error), out.len()),
                }
            }
        }
        (heard, None, out.len())
    }

    proptest! {
        #[test]
        fn both_sides_read_what_the_other_writes_in_any_pieces(
            texts in prop::collection::vec(".{0,300}", 1..4), long in 0usize..80_000, piece in 1usize..2_000,
            from_client: bool,
        ) {
            let (from, to) = if from_client { (Role::Client, Role::Server) } else { (Role::Server, Role::Client) };
            let texts: Vec<String> = texts.into_iter().chain(["x".repeat(long)]).collect();
            let (mut from, mut to) = (end(from), end(to));
            let mut wire = Vec::new();
            texts.iter().for_each(|text| from.text(text, &mut wire));
            let mut read = Vec::new();
            for bytes in wire.chunks(piece) {
                to.input(bytes);
                while let Some(message) = to.poll(&mut Vec::new()).unwrap() {
                    let Incoming::Text(text) = message else { panic!("{message:?}") };
                    read.push(text);
                }
            }
            prop_assert_eq!(read, texts);
        }

        #[test]
        fn every_split_of_a_stream_reads_the_same(
            frames in prop::collection::vec((first_bytes(), ".{0,25}", any::<[u8; 4]>()), 1..12),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..60),
            role in prop::sample::select(vec![Role::Client, Role::Server]),
        ) {
            let mut wire = Vec::new();
            for (first, text, mask) in &frames {
                wire.extend(frame(role, *first, text.as_bytes(), *mask));
            }
            let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(wire.len() + 1)).chain([0, wire.len()]).collect();
            cuts.sort_unstable();
            let whole = hear(role, &[&wire]);
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &wire[cut[0]..cut[1]]).collect();
            prop_assert_eq!(hear(role, &pieces), whole);
        }

        #[test]
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..60), server: bool) {
            let mut socket = end(if server { Role::Server } else { Role::Client });
            socket.input(&bytes);
            while let Ok(Some(_)) = socket.poll(&mut Vec::new()) {}
        }
    }
}
