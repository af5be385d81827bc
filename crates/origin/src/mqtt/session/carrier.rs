//! What carries a client's packets: its link, or a WebSocket on it (MQTT 5 section 6). The first byte of a link says which: that
//! of CONNECT, or the letter of GET.

use crate::http::{is_of_another_site, socket_key};
use weir_web::websocket::{self, Incoming, Role, WebSocket};
use weir_web::{Message, Request, Requests, reason};

/// The subprotocol of MQTT (MQTT-6.0.0-4).
const SUBPROTOCOL: &str = "mqtt";

/// Bytes of a WebSocket that are looked at in one piece.
const PIECE: usize = 16 << 10;

/// What carries a client's packets.
pub(super) enum Carrier {
    /// Nothing has come yet.
    Unknown,
    Link,
    /// A request for a WebSocket is under way.
    Request(Box<Requests>),
    WebSocket(Box<Frames>),
    /// It was refused, or has ended.
    Over,
}

/// An open WebSocket.
pub(super) struct Frames {
    socket: WebSocket,
    /// Packets that came and that were not all looked at.
    packets: Vec<u8>,
    /// How many of their bytes were.
    read: usize,
}

impl Carrier {
    /// Whether bytes are packets as they come.
    pub(super) fn is_link(&mut self, bytes: &[u8]) -> bool {
        if let (Self::Unknown, Some(first)) = (&self, bytes.first()) {
            // A request is a head without a body.
            *self = if *first == b'G' { Self::Request(Box::new(Requests::new(0))) } else { Self::Link };
        }
        matches!(self, Self::Link)
    }

    /// Takes a piece of what came, and appends answers to `out`. `false`: all was taken, or the WebSocket has ended.
    pub(super) fn take(&mut self, bytes: &mut &[u8], out: &mut Vec<u8>) -> bool {
        if bytes.is_empty() {
            return false;
        }
        match self {
            Self::Request(requests) => match requests.take(bytes) {
                Ok(None) => false,
                Ok(Some(request)) => {
                    *self = upgraded(&request, out);
                    true
                }
                Err(error) => {
                    refuse(error.status(), out);
                    *self = Self::Over;
                    false
                }
            },
            Self::WebSocket(frames) => {
                let (piece, rest) = bytes.split_at(bytes.len().min(PIECE));
                *bytes = rest;
                frames.socket.input(piece);
                loop {
                    match frames.socket.poll(out) {
                        Ok(Some(Incoming::Binary(packets))) => frames.packets.extend(packets),
                        Ok(None) => return true,
                        // MQTT-6.0.0-1: a message that is not binary ends the connection.
                        Ok(Some(Incoming::Text(_) | Incoming::Close(..))) | Err(_) => {
                            *self = Self::Over;
                            return false;
                        }
                    }
                }
            }
            Self::Unknown | Self::Link | Self::Over => false,
        }
    }

    /// Whether the client is to be let go.
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Self::Over)
    }

    /// Packets that were not looked at yet, taken out; see [`Self::put_back`].
    pub(super) fn packets(&mut self) -> Option<(Vec<u8>, usize)> {
        let Self::WebSocket(frames) = self else { return None };
        (frames.read < frames.packets.len()).then(|| (std::mem::take(&mut frames.packets), frames.read))
    }

    /// Puts packets back of which `read` bytes were looked at.
    pub(super) fn put_back(&mut self, mut packets: Vec<u8>, read: usize) {
        let Self::WebSocket(frames) = self else { return };
        frames.read = read;
        if read == packets.len() {
            packets.clear();
            packets.shrink_to(PIECE);
            frames.read = 0;
        }
        frames.packets = packets;
    }

    /// Packets as they go on the link, appended to `out`.
    pub(super) fn wrap(&mut self, packets: &[u8], out: &mut Vec<u8>) {
        if let Self::WebSocket(frames) = self {
            frames.socket.binary(packets, out);
        }
    }

    /// Ends a WebSocket.
    pub(super) fn close(&mut self, out: &mut Vec<u8>) {
        if let Self::WebSocket(frames) = self {
            frames.socket.close(1000, out);
        }
    }
}

/// What a request for a WebSocket leads to.
fn upgraded(request: &Request, out: &mut Vec<u8>) -> Carrier {
    let status = match socket_key(request) {
        None => 400,
        Some(_) if !request.fields.lists("sec-websocket-protocol", SUBPROTOCOL) => 400,
        Some(_) if is_of_another_site(request) => 403,
        Some(key) => {
            let answer = Message::response(101)
                .field("Upgrade", "websocket")
                .field("Connection", "Upgrade")
                .field("Sec-WebSocket-Accept", websocket::accept(key))
                .field("Sec-WebSocket-Protocol", SUBPROTOCOL);
            out.extend(answer.end());
            let socket = WebSocket::in_pieces(Role::Server);
            return Carrier::WebSocket(Box::new(Frames { socket, packets: Vec::new(), read: 0 }));
        }
    };
    refuse(status, out);
    Carrier::Over
}

fn refuse(status: u16, out: &mut Vec<u8>) {
    out.extend(Message::response(status).body(reason(status)).keep_alive(false).end());
}
