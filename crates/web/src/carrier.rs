//! What carries the bytes of a client's protocol: its link as it is, or a WebSocket on it whose messages have bounds that mean
//! nothing, as those of MQTT have (MQTT 5 section 6). However long a message is, its bytes come in pieces, as they come.

use crate::websocket::{Incoming, Opening, OpeningError, Role, WebSocket, WebSocketError};
use crate::{GivenFields, Message};
use std::sync::Arc;

/// Where a WebSocket is asked for, and for what.
#[derive(Debug, PartialEq, Eq)]
pub struct SocketRequest {
    /// Host, and port if it is not the scheme's own.
    pub authority: String,
    /// Path and query.
    pub path: String,
    /// What a person adds to the request.
    pub fields: GivenFields,
    /// What is spoken in it (RFC 6455 section 1.9).
    pub subprotocol: &'static str,
}

/// What carries a client's bytes.
#[derive(Debug)]
pub struct Carrier(Option<Box<Socket>>);

#[derive(Debug)]
struct Socket {
    request: Arc<SocketRequest>,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    /// There is no link, or nothing more is said on it.
    Closed,
    Opening(Opening),
    Open(WebSocket),
}

/// Why a carrier cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CarrierError {
    /// There is no WebSocket.
    #[error(transparent)]
    Opening(#[from] OpeningError),
    /// The server sends what it may not.
    #[error(transparent)]
    Frames(#[from] WebSocketError),
    /// The server ends the WebSocket, with this code (1005 if there is none) and reason.
    #[error("the server closed the WebSocket: {0}")]
    Closed(String),
}

impl Carrier {
    /// The link itself, or a WebSocket that is asked for on it.
    pub fn new(request: Option<Arc<SocketRequest>>) -> Self {
        Self(request.map(|request| Box::new(Socket { request, phase: Phase::Closed })))
    }

    /// There is a link, the first or another. What is to be said on it first is appended to `wire`.
    pub fn begin(&mut self, wire: &mut Vec<u8>) {
        let Some(socket) = &mut self.0 else { return };
        let request = &*socket.request;
        let opening = Opening::new(Some(request.subprotocol));
        wire.extend(
            opening
                .request(Message::request("GET", &request.path, &request.authority).given(&request.fields)),
        );
        socket.phase = Phase::Opening(opening);
    }

    /// The link, or an attempt at one, is gone.
    pub fn end(&mut self) {
        if let Some(socket) = &mut self.0 {
            socket.phase = Phase::Closed;
        }
    }

    /// The protocol's bytes in those of the link: the same, or what is appended to `data`. What must be answered at once is appended
    /// to `wire`.
    ///
    /// # Errors
    /// There is no WebSocket, or none any more; the connection is to be closed.
    pub fn read<'a>(
        &mut self,
        bytes: &'a [u8],
        data: &'a mut Vec<u8>,
        wire: &mut Vec<u8>,
    ) -> Result<&'a [u8], CarrierError> {
        let Some(socket) = &mut self.0 else { return Ok(bytes) };
        socket.read(bytes, data, wire)?;
        Ok(data)
    }

    /// The protocol's bytes as they go on the link: the same, or as a message, which stands in `wire`. `None`: there is no way for
    /// them yet.
    pub fn wrap<'a>(&mut self, data: &'a [u8], wire: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        let Some(socket) = &mut self.0 else { return Some(data) };
        let Phase::Open(socket) = &mut socket.phase else { return None };
        socket.binary(data, wire);
        Some(wire)
    }

    /// Ends a WebSocket behind the last byte (RFC 6455 section 7.1.1). What still comes of it is left alone.
    pub fn close(&mut self, wire: &mut Vec<u8>) {
        if let Some(socket) = &mut self.0
            && let Phase::Open(mut open) = std::mem::replace(&mut socket.phase, Phase::Closed)
        {
            open.close(1000, wire);
        }
    }
}

impl Socket {
    fn read(&mut self, mut bytes: &[u8], data: &mut Vec<u8>, wire: &mut Vec<u8>) -> Result<(), CarrierError> {
        if let Phase::Opening(opening) = &mut self.phase
            && opening.take(&mut bytes)?
        {
            self.phase = Phase::Open(WebSocket::in_pieces(Role::Client));
        }
        let Phase::Open(socket) = &mut self.phase else { return Ok(()) };
        socket.input(bytes);
        while let Some(incoming) = socket.poll(wire)? {
            match incoming {
                Incoming::Binary(piece) => data.extend_from_slice(&piece),
                Incoming::Text(_) => return Err(WebSocketError::Text.into()),
                // What came before the end counts; the server then closes the link as well.
                Incoming::Close(..) if !data.is_empty() => break,
                Incoming::Close(code, reason) => {
                    return Err(CarrierError::Closed(format!("{code} {reason}").trim_end().to_owned()));
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::websocket::accept;
    use proptest::prelude::*;

    /// A client that has asked, and the answer of a server that speaks this subprotocol.
    fn asked(subprotocol: &str) -> (Carrier, Vec<u8>) {
        let (authority, path) = ("host:81".to_owned(), "/broker".to_owned());
        let fields = GivenFields::parse(&["X-Token: a"]).unwrap();
        let request = SocketRequest { authority, path, fields, subprotocol: "mqtt" };
        let (mut carrier, mut wire) = (Carrier::new(Some(Arc::new(request))), Vec::new());
        carrier.begin(&mut wire);
        let request = String::from_utf8(wire).unwrap();
        assert!(request.starts_with("GET /broker HTTP/1.1\r\nHost: host:81\r\n"), "{request}");
        assert!(request.contains("\r\nX-Token: a\r\n"), "{request}");
        let key = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: ")).unwrap();
        let answer = Message::response(101)
            .field("Upgrade", "websocket")
            .field("Connection", "Upgrade")
            .field("Sec-WebSocket-Accept", accept(key))
            .field("Sec-WebSocket-Protocol", subprotocol);
        (carrier, answer.end())
    }

    /// The data in these pieces, and what is answered.
    fn read<'a>(
        carrier: &mut Carrier,
        pieces: impl IntoIterator<Item = &'a [u8]>,
    ) -> Result<(Vec<u8>, Vec<u8>), CarrierError> {
        let (mut all, mut wire) = (Vec::new(), Vec::new());
        for piece in pieces {
            let mut data = Vec::new();
            all.extend_from_slice(carrier.read(piece, &mut data, &mut wire)?);
        }
        Ok((all, wire))
    }

    /// A frame of a server.
    fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![first];
        match payload.len() {
            length @ 0..126 => frame.push(length as u8),
            length => {
                frame.push(126);
                frame.extend((length as u16).to_be_bytes());
            }
        }
        frame.extend(payload);
        frame
    }

    #[test]
    fn a_link_carries_bytes_as_they_are() {
        let (mut carrier, mut wire) = (Carrier::new(None), Vec::new());
        carrier.begin(&mut wire);
        assert_eq!(carrier.wrap(b"ab", &mut Vec::new()), Some(&b"ab"[..]));
        assert_eq!(carrier.read(b"cd", &mut Vec::new(), &mut wire), Ok(&b"cd"[..]));
        carrier.close(&mut wire);
        assert!(wire.is_empty());
    }

    #[test]
    fn bytes_wait_for_the_answer_and_are_masked_messages_then() {
        let (mut carrier, answer) = asked("mqtt");
        let mut wire = Vec::new();
        assert_eq!(carrier.wrap(b"ab", &mut wire), None);
        assert_eq!(read(&mut carrier, [&answer[..]]), Ok((Vec::new(), Vec::new())));
        let sent = carrier.wrap(b"ab", &mut wire).unwrap();
        assert_eq!((&sent[..2], sent.len()), (&[0x82, 0x82][..], 8));
        wire.clear();
        carrier.close(&mut wire);
        assert_eq!(wire[..2], [0x88, 0x82]);
        // The other's answer, and a link after this one.
        assert_eq!(read(&mut carrier, [&[0x88, 2, 3, 0xE8][..]]), Ok((Vec::new(), Vec::new())));
        assert_eq!(carrier.wrap(b"ab", &mut wire), None);
        wire.clear();
        carrier.begin(&mut wire);
        assert!(wire.starts_with(b"GET "));
    }

    #[test]
    fn why_there_is_no_websocket_is_named() {
        let (mut carrier, _) = asked("mqtt");
        let refused = read(&mut carrier, [&b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"[..]]);
        assert_eq!(refused.unwrap_err().to_string(), "no WebSocket: 404 Not Found");
        let (mut carrier, answer) = asked("chat");
        let refused = read(&mut carrier, [&answer[..]]);
        assert_eq!(refused, Err(OpeningError::Subprotocol("mqtt").into()));
        let ((mut carrier, _), (_, of_another)) = (asked("mqtt"), asked("mqtt"));
        assert_eq!(read(&mut carrier, [&of_another[..]]), Err(OpeningError::Accept.into()));
        let (mut carrier, answer) = asked("mqtt");
        let text = [&answer[..], &frame(0x81, b"x")].concat();
        assert_eq!(read(&mut carrier, [&text[..]]), Err(WebSocketError::Text.into()));
    }

    #[test]
    fn an_end_is_one_unless_something_came_before_it() {
        let end = frame(0x88, b"\x03\xE9away");
        let (mut carrier, answer) = asked("mqtt");
        read(&mut carrier, [&answer[..]]).unwrap();
        let said = read(&mut carrier, [&end[..]]).unwrap_err().to_string();
        assert_eq!(said, "the server closed the WebSocket: 1001 away");
        let (mut carrier, answer) = asked("mqtt");
        let all = [&answer[..], &frame(0x82, b"last"), &end].concat();
        assert_eq!(read(&mut carrier, [&all[..]]).unwrap().0, b"last");
    }

    /// What has come of a message does not wait for its end, or a client would have to keep it.
    #[test]
    fn a_message_without_an_end_is_read_as_it_comes() {
        let (mut carrier, answer) = asked("mqtt");
        // Of 2^62 bytes.
        let head = [&answer[..], &[0x82, 127, 0x40, 0, 0, 0, 0, 0, 0, 0]].concat();
        read(&mut carrier, [&head[..]]).unwrap();
        for byte in 0..=255 {
            let (data, _) = read(&mut carrier, [&[byte; 40_000][..]]).unwrap();
            assert_eq!(data, [byte; 40_000]);
        }
    }

    #[test]
    fn answer_and_frames_may_be_cut_at_every_byte() {
        let frames = [
            frame(0x02, b"be"),
            frame(0x89, b"ping"),
            frame(0x00, b""),
            frame(0x80, b"gin"),
            frame(0x82, &[7; 300]),
        ];
        let expected = [b"begin", &[7; 300][..]].concat();
        let length = asked("mqtt").1.len() + frames.concat().len();
        for cut in 0..=length {
            let (mut carrier, answer) = asked("mqtt");
            let all = [answer, frames.concat()].concat();
            let (front, back) = all.split_at(cut);
            let (data, answered) = read(&mut carrier, [front, back]).unwrap();
            assert_eq!((data, answered.len()), (expected.clone(), 10), "at {cut}");
        }
    }

    proptest! {
        #[test]
        fn data_in_any_frames_and_any_pieces_reads_the_same(
            payloads in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..400), any::<bool>()), 1..8),
            cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        ) {
            let (mut carrier, mut all) = asked("mqtt");
            let mut inside = false;
            for (payload, ends) in &payloads {
                all.extend(frame(u8::from(!inside) << 1 | u8::from(*ends) << 7, payload));
                inside = !ends;
            }
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(all.len() + 1)).chain([0, all.len()]).collect();
            cuts.sort_unstable();
            let (data, _) = read(&mut carrier, cuts.windows(2).map(|cut| &all[cut[0]..cut[1]])).unwrap();
            prop_assert_eq!(data, payloads.iter().flat_map(|(payload, _)| payload.clone()).collect::<Vec<_>>());
        }
    }
}
