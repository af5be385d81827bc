//! A client's end of a WebSocket that carries another protocol's bytes, from its request on (RFC 6455 section 4.1).

use super::{Incoming, Role, WebSocket, WebSocketError, accept, key};
use crate::{HttpError, Message, Part, Response, Responses};
use std::sync::Arc;

/// Where a WebSocket is asked for, and what is to be spoken in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketRequest {
    /// Host, and port if it is not the scheme's own.
    pub authority: String,
    /// The path.
    pub path: String,
    /// The subprotocol, which the server has to take.
    pub subprotocol: &'static str,
}

/// Why there is no WebSocket, or none any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocketError {
    /// The server answered something else: status, and its words.
    #[error("no WebSocket: {1}")]
    Refused(u16, String),
    /// The answer is not one to this request.
    #[error("the server's Sec-WebSocket-Accept is not that of the key")]
    Accept,
    /// The server does not speak the protocol, or does not say so.
    #[error("the server did not take the WebSocket subprotocol {0}")]
    Subprotocol(&'static str),
    /// The server ends it: code and reason.
    #[error("the server closed the WebSocket: {}", said(.0, .1))]
    Closed(u16, String),
    /// What came is no HTTP.
    #[error("{0}")]
    Http(#[from] HttpError),
    /// What came is no WebSocket, or a text.
    #[error("{0}")]
    WebSocket(#[from] WebSocketError),
}

fn said(code: &u16, reason: &str) -> String {
    format!("{code} {reason}").trim_end().to_owned()
}

/// A client's end.
#[derive(Debug)]
pub struct ClientSocket {
    request: Arc<SocketRequest>,
    key: String,
    state: State,
}

#[derive(Debug)]
enum State {
    /// It is asked for, or is to be.
    Asked(Responses),
    Open(Box<WebSocket>),
    /// A close frame was sent.
    Closed,
}

impl ClientSocket {
    /// One that is to be asked for; see [`Self::begin`].
    pub fn new(request: Arc<SocketRequest>) -> Self {
        Self { request, key: String::new(), state: State::Asked(Responses::asked()) }
    }

    /// There is a link, the first or another: appends the request to `out`.
    pub fn begin(&mut self, out: &mut Vec<u8>) {
        (self.key, self.state) = (key(), State::Asked(Responses::asked()));
        let request = Message::request("GET", &self.request.path, &self.request.authority)
            .field("Upgrade", "websocket")
            .field("Connection", "Upgrade")
            .field("Sec-WebSocket-Key", &self.key)
            .field("Sec-WebSocket-Version", 13)
            .field("Sec-WebSocket-Protocol", self.request.subprotocol);
        out.extend(request.end());
    }

    /// Whether bytes can be sent.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Reads what came: the bytes that it carries are appended to `carried`, what must be answered at once to `out`.
    ///
    /// # Errors
    /// Why there is no WebSocket, or none any more. What came before that is in `carried`.
    pub fn read(
        &mut self,
        mut bytes: &[u8],
        carried: &mut Vec<u8>,
        out: &mut Vec<u8>,
    ) -> Result<(), SocketError> {
        if let State::Asked(responses) = &mut self.state {
            let Some(Part::Head(response)) = responses.take(&mut bytes)? else { return Ok(()) };
            self.check(&response)?;
            self.state = State::Open(Box::new(WebSocket::in_pieces(Role::Client)));
        }
        let State::Open(socket) = &mut self.state else { return Ok(()) };
        socket.input(bytes);
        loop {
            match socket.poll(out)? {
                Some(Incoming::Binary(piece)) => carried.extend(piece),
                Some(Incoming::Text(_)) => return Err(WebSocketError::Text.into()),
                Some(Incoming::Close(code, reason)) => return Err(SocketError::Closed(code, reason)),
                None => return Ok(()),
            }
        }
    }

    /// Appends bytes as they go on the link; says whether it is open.
    pub fn wrap(&mut self, bytes: &[u8], out: &mut Vec<u8>) -> bool {
        let State::Open(socket) = &mut self.state else { return false };
        socket.binary(bytes, out);
        true
    }

    /// Ends it behind the last byte (section 7.1.1): what comes from now on is not read.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        if let State::Open(socket) = &mut self.state {
            socket.close(1000, out);
            self.state = State::Closed;
        }
    }

    /// The link is gone.
    pub fn end(&mut self) {
        self.state = State::Closed;
    }

    fn check(&self, response: &Response) -> Result<(), SocketError> {
        if response.status != 101 {
            return Err(SocketError::Refused(response.status, response.said()));
        }
        if response.fields.get("sec-websocket-accept") != Some(&accept(&self.key)) {
            return Err(SocketError::Accept);
        }
        if response.fields.get("sec-websocket-protocol") != Some(self.request.subprotocol) {
            return Err(SocketError::Subprotocol(self.request.subprotocol));
        }
        Ok(())
    }
}
