//! WebSocket (RFC 6455), as much as signalling needs: text both ways, pings answered, a close heard and said. Messages
//! are bounded; what a peer may not send is an error.

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::oven::MOST_BYTES;

/// What the server's key is made with (section 1.3).
const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Opcodes (section 5.2).
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The longest payload of a frame that says something about the connection (section 5.5).
const MOST_CONTROL: usize = 125;

/// A key for the request to open a WebSocket, of 16 random bytes.
pub fn key() -> String {
    STANDARD.encode(random::<16>())
}

/// What a server answers to a key (section 4.2.2).
pub fn accept(key: &str) -> String {
    STANDARD.encode(digest(&SHA1_FOR_LEGACY_USE_ONLY, format!("{}{GUID}", key.trim()).as_bytes()))
}

/// Which end of the connection this is: clients mask what they send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The one that opened it.
    Client,
    /// The one that took it.
    Server,
}

/// One end of an open WebSocket.
#[derive(Debug)]
pub struct WebSocket {
    role: Role,
    inbox: Vec<u8>,
    /// The message under way, of several frames.
    message: Option<Vec<u8>>,
    closed: bool,
}

/// What a peer says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// A text message.
    Text(String),
    /// The end: its code (1005 if there is none) and its reason. The answer is in the output.
    Close(u16, String),
}

/// Why a WebSocket cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum WebSocketError {
    /// Nobody needs so much.
    #[error("a WebSocket message over {MOST_BYTES} bytes")]
    TooLong,
    /// Clients mask, servers do not (section 5.1).
    #[error("a WebSocket frame that is masked by the wrong side")]
    Mask,
    /// Bits or an opcode that mean nothing without an extension, or a control frame that is cut or too long.
    #[error("a WebSocket frame of a kind that was not agreed on")]
    Frame,
    /// A continuation of nothing, or a new message inside another.
    #[error("the frames of WebSocket messages are mixed up")]
    Order,
    /// A text that is not UTF-8, or a binary message, which signalling has none of.
    #[error("a WebSocket message that is no text")]
    NoText,
}

impl WebSocket {
    /// An end of a connection that has just been opened.
    pub fn new(role: Role) -> Self {
        Self { role, inbox: Vec::new(), message: None, closed: false }
    }

    /// Takes what came; [`Self::poll`] follows.
    pub fn input(&mut self, bytes: &[u8]) {
        if !self.closed {
            self.inbox.extend_from_slice(bytes);
        }
    }

    /// The next message. What must be answered at once, pings and the close, is appended to `out`.
    ///
    /// # Errors
    ///
    /// When the peer sends what it may not; the connection is to be closed.
    pub fn poll(&mut self, out: &mut Vec<u8>) -> Result<Option<Incoming>, WebSocketError> {
        while !self.closed {
            let Some((head, length)) = self.head()? else { break };
            let frame: Vec<u8> = self.inbox.drain(..head.payload_at + length).collect();
            let mut payload = frame[head.payload_at..].to_vec();
            if let Some(mask) = head.mask {
                apply(mask, &mut payload);
            }
            match head.opcode {
                PING => self.frame(PONG, &payload, out),
                PONG => {}
                CLOSE => {
                    self.closed = true;
                    self.frame(CLOSE, payload.get(..2).unwrap_or_default(), out);
                    let code = payload.first_chunk().map_or(1005, |code| u16::from_be_bytes(*code));
                    let reason = String::from_utf8_lossy(payload.get(2..).unwrap_or_default()).into_owned();
                    return Ok(Some(Incoming::Close(code, reason)));
                }
                opcode => {
                    let whole = match (self.message.take(), opcode) {
                        (None, CONTINUATION) | (Some(_), TEXT | BINARY) => return Err(WebSocketError::Order),
                        (_, BINARY) => return Err(WebSocketError::NoText),
                        (Some(before), _) if before.len() + payload.len() > MOST_BYTES => {
                            return Err(WebSocketError::TooLong);
                        }
                        (before, _) => [before.unwrap_or_default(), payload].concat(),
                    };
                    if head.last {
                        let text = String::from_utf8(whole).map_err(|_| WebSocketError::NoText)?;
                        return Ok(Some(Incoming::Text(text)));
                    }
                    self.message = Some(whole);
                }
            }
        }
        Ok(None)
    }

    /// Appends a text message.
    pub fn text(&self, text: &str, out: &mut Vec<u8>) {
        self.frame(TEXT, text.as_bytes(), out);
    }

    /// Appends a goodbye (1000: all is well).
    pub fn close(&self, code: u16, out: &mut Vec<u8>) {
        if !self.closed {
            self.frame(CLOSE, &code.to_be_bytes(), out);
        }
    }

    fn frame(&self, opcode: u8, payload: &[u8], out: &mut Vec<u8>) {
        let masked = if self.role == Role::Client { 0x80 } else { 0 };
        out.push(0x80 | opcode);
        match payload.len() {
            length @ 0..=MOST_CONTROL => out.push(masked | length as u8),
            length @ 126..=0xFFFF => {
                out.push(masked | 126);
                out.extend((length as u16).to_be_bytes());
            }
            length => {
                out.push(masked | 127);
                out.extend((length as u64).to_be_bytes());
            }
        }
        let mask = (masked != 0).then(random::<4>);
        out.extend(mask.iter().flatten());
        let at = out.len();
        out.extend_from_slice(payload);
        if let Some(mask) = mask {
            apply(mask, &mut out[at..]);
        }
    }

    /// The head of the frame at the front, and the length of its payload, once all of it is here.
    fn head(&self) -> Result<Option<(Head, usize)>, WebSocketError> {
        let [first, second, rest @ ..] = &self.inbox[..] else { return Ok(None) };
        let (opcode, last) = (first & 0x0F, first & 0x80 != 0);
        let is_control = opcode >= 8;
        if first & 0x70 != 0 || !matches!(opcode, CONTINUATION | TEXT | BINARY | CLOSE | PING | PONG) {
            return Err(WebSocketError::Frame);
        }
        let is_masked = second & 0x80 != 0;
        if is_masked != (self.role == Role::Server) {
            return Err(WebSocketError::Mask);
        }
        let (length, mut payload_at) = match second & 0x7F {
            126 => match rest.first_chunk() {
                Some(length) => (u64::from(u16::from_be_bytes(*length)), 4),
                None => return Ok(None),
            },
            127 => match rest.first_chunk() {
                Some(length) => (u64::from_be_bytes(*length), 10),
                None => return Ok(None),
            },
            length => (u64::from(length), 2),
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if is_control && (length > MOST_CONTROL || !last) {
            return Err(WebSocketError::Frame);
        }
        if length > MOST_BYTES {
            return Err(WebSocketError::TooLong);
        }
        let mut mask = None;
        if is_masked {
            mask = self.inbox.get(payload_at..).and_then(<[u8]>::first_chunk).copied();
            payload_at += 4;
        }
        let is_here = self.inbox.len() >= payload_at + length;
        Ok(is_here.then_some((Head { opcode, last, mask, payload_at }, length)))
    }
}

struct Head {
    opcode: u8,
    last: bool,
    mask: Option<[u8; 4]>,
    payload_at: usize,
}

/// Section 5.3; twice is not at all.
fn apply(mask: [u8; 4], payload: &mut [u8]) {
    for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
}

fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Masks are against caches between the peers, and keys against the same: no secret is lost without randomness.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Section 1.3.
    #[test]
    fn a_key_is_accepted_as_in_the_standards_example() {
        assert_eq!(accept("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        assert_ne!(key(), key());
    }

    #[test]
    fn fragments_are_put_together_and_pings_between_them_answered() {
        let mut client = WebSocket::new(Role::Client);
        client.input(&[0x01, 2, b'a', b'b', 0x89, 1, b'p', 0x00, 1, b'c', 0x80, 0]);
        let mut out = Vec::new();
        assert_eq!(client.poll(&mut out), Ok(Some(Incoming::Text("abc".to_owned()))));
        let mut server = WebSocket::new(Role::Server);
        assert_eq!(out[..2], [0x8A, 0x81]);
        server.input(&out);
        assert_eq!(server.poll(&mut Vec::new()), Ok(None));
    }

    #[test]
    fn a_close_is_answered_and_is_the_last() {
        let (mut client, mut server) = (WebSocket::new(Role::Client), WebSocket::new(Role::Server));
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
            (&[0x89, 126, 0, 126], WebSocketError::Frame),
            (&[0x80, 0], WebSocketError::Order),
            (&[0x01, 0, 0x01, 0], WebSocketError::Order),
            (&[0x82, 0], WebSocketError::NoText),
            (&[0x81, 1, 0xFF], WebSocketError::NoText),
            (&[0x81, 127, 0, 0, 0, 0, 0, 4, 0, 1], WebSocketError::TooLong),
            (&[0x81, 127, 255, 255, 255, 255, 255, 255, 255, 255], WebSocketError::TooLong),
        ] {
            let mut client = WebSocket::new(Role::Client);
            client.input(bytes);
            assert_eq!(client.poll(&mut Vec::new()), Err(error), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn both_sides_read_what_the_other_writes_in_any_pieces(
            texts in prop::collection::vec(".{0,300}", 1..4), long in 0usize..80_000, piece in 1usize..2_000,
            from_client: bool,
        ) {
            let (from, to) = if from_client { (Role::Client, Role::Server) } else { (Role::Server, Role::Client) };
            let texts: Vec<String> = texts.into_iter().chain(["x".repeat(long)]).collect();
            let (from, mut to) = (WebSocket::new(from), WebSocket::new(to));
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
        fn any_bytes_are_read_without_harm(bytes in prop::collection::vec(any::<u8>(), 0..60), server: bool) {
            let mut end = WebSocket::new(if server { Role::Server } else { Role::Client });
            end.input(&bytes);
            while let Ok(Some(_)) = end.poll(&mut Vec::new()) {}
        }
    }
}
