//! The opening handshake as a client does it (RFC 6455 section 4.1): a request like any other, and what its answer has to say.

use super::accept;
use crate::{HttpError, Message, Part, Responses};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A request for a WebSocket that is not answered yet.
#[derive(Debug)]
pub struct Opening {
    key: String,
    subprotocol: Option<&'static str>,
    responses: Responses,
}

/// Why there is no WebSocket.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpeningError {
    /// The answer is not HTTP.
    #[error(transparent)]
    Http(#[from] HttpError),
    /// The server answers otherwise.
    #[error("no WebSocket: {said}")]
    Refused {
        /// Such as 404.
        status: u16,
        /// The status and the server's words.
        said: String,
    },
    /// The answer is one to another request.
    #[error("the server's Sec-WebSocket-Accept is not that of the key")]
    Accept,
    /// The server does not say that it speaks the subprotocol.
    #[error("the server did not take the WebSocket subprotocol {0}")]
    Subprotocol(&'static str),
}

impl Opening {
    /// One with a key of its own, for a subprotocol that the server must take.
    pub fn new(subprotocol: Option<&'static str>) -> Self {
        let mut key = [0; 16];
        // Keys are against caches between the peers: no secret is lost without randomness.
        let _ = aws_lc_rs::rand::fill(&mut key);
        Self { key: STANDARD.encode(key), subprotocol, responses: Responses::asked() }
    }

    /// The request, of one that says where.
    pub fn request(&self, place: Message) -> Vec<u8> {
        place
            .field("Upgrade", "websocket")
            .field("Connection", "Upgrade")
            .field("Sec-WebSocket-Key", &self.key)
            .field("Sec-WebSocket-Version", 13)
            .maybe("Sec-WebSocket-Protocol", self.subprotocol)
            .end()
    }

    /// Takes the answer off the front of `bytes`. `true`: the WebSocket is open, and what is left belongs to it.
    ///
    /// # Errors
    /// The server does not open one; the connection is to be closed.
    pub fn take(&mut self, bytes: &mut &[u8]) -> Result<bool, OpeningError> {
        let Some(Part::Head(response)) = self.responses.take(bytes)? else { return Ok(false) };
        if response.status != 101 {
            return Err(OpeningError::Refused { status: response.status, said: response.said() });
        }
        if response.fields.get("sec-websocket-accept") != Some(&accept(&self.key)) {
            return Err(OpeningError::Accept);
        }
        match self.subprotocol {
            Some(asked) if response.fields.get("sec-websocket-protocol") != Some(asked) => {
                Err(OpeningError::Subprotocol(asked))
            }
            _ => Ok(true),
        }
    }
}
