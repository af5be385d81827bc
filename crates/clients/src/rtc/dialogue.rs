//! Signalling with the server: WHEP or WHIP over HTTP, or OvenMediaEngine's dialogue in a WebSocket.

use super::refusal::{of_http, of_oven, of_upgrade};
use super::request::Request;
use crate::client_session::End;
use weir_metrics::Failure;
use weir_rtc::signalling::websocket::{Incoming, Opening, OpeningError, Role, WebSocket, WebSocketError};
use weir_rtc::signalling::{http, oven};
use weir_web::{Ending, Part, Response, Responses};

/// What OvenMediaEngine calls itself, and how its streams are played: it takes publishers by WHIP, and answers 404 to WHEP
/// where that is not set up.
const OVEN: &str = "OvenMediaEngine";
const OVEN_PLAYS: &str = "OvenMediaEngine's viewers usually come by ws://host:3333/app/stream";

/// The longest answer that is read.
const LONGEST: usize = weir_rtc::sdp::MOST_BYTES;

/// The signalling that a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Signalling {
    /// WHEP and WHIP over HTTP: we offer.
    Http,
    /// OvenMediaEngine: it offers.
    Oven,
}

/// What the server has said.
#[derive(Debug)]
pub(super) enum ServerMessage {
    /// The WebSocket is open: nothing to be done but what has been said already.
    Open,
    /// An answer to our offer, and the session's URL with what else the response says of it.
    Answer(Box<http::Session>),
    /// An offer.
    Offer(Box<oven::Offer>),
    /// The end of the session, after an offer.
    Goodbye(String),
}

/// A dialogue under way.
pub(super) enum Dialogue {
    Http(Http),
    Oven(Oven),
}

pub(super) struct Http {
    responses: Responses,
    response: Option<Response>,
    body: Vec<u8>,
}

pub(super) struct Oven {
    opening: Opening,
    socket: Option<Box<WebSocket>>,
    /// The session, once it was offered.
    id: Option<u64>,
}

impl Dialogue {
    pub(super) fn new(signalling: Signalling) -> Self {
        match signalling {
            Signalling::Http => {
                Self::Http(Http { responses: Responses::asked(), response: None, body: Vec::new() })
            }
            Signalling::Oven => Self::Oven(Oven { opening: Opening::new(None), socket: None, id: None }),
        }
    }

    /// The first words; over HTTP they say the offer.
    pub(super) fn begin(&self, request: &Request, offer: &str) -> Vec<u8> {
        match self {
            Self::Http(_) => request.post(offer),
            Self::Oven(oven) => oven.opening.request(request.upgrade()),
        }
    }

    /// Takes bytes off the front and returns the event that they make; an immediate answer is appended to `out`.
    pub(super) fn read(
        &mut self,
        request: &Request,
        bytes: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ServerMessage>, End> {
        match self {
            Self::Http(http) => http.read(request, bytes),
            Self::Oven(oven) => oven.read(request, bytes, out),
        }
    }

    /// The link has ended; whether that ends the answer as well.
    pub(super) fn end(&mut self, request: &Request) -> Option<Result<ServerMessage, End>> {
        match self {
            Self::Http(http) if http.responses.ending() == Ending::Whole => http.judge(request),
            _ => None,
        }
    }

    /// Answers the server's offer.
    pub(super) fn answer(&mut self, sdp: &str, out: &mut Vec<u8>) {
        if let Self::Oven(Oven { socket: Some(socket), id: Some(id), .. }) = self {
            socket.text(&oven::answer(*id, sdp), out);
        }
    }

    /// Ends the session in a WebSocket.
    pub(super) fn goodbye(&mut self, out: &mut Vec<u8>) {
        if let Self::Oven(Oven { socket: Some(socket), id, .. }) = self {
            if let Some(id) = id {
                socket.text(&oven::stop(*id), out);
            }
            socket.close(1000, out);
        }
    }
}

impl Http {
    fn read(&mut self, request: &Request, bytes: &mut &[u8]) -> Result<Option<ServerMessage>, End> {
        loop {
            match self.responses.take(bytes).map_err(malformed)? {
                Some(Part::Head(response)) => self.response = Some(response),
                Some(Part::Piece(piece)) if self.body.len() + piece.len() > LONGEST => {
                    return Err((Failure::MalformedInput, format!("an answer over {LONGEST} bytes")));
                }
                Some(Part::Piece(piece)) => self.body.extend_from_slice(piece),
                Some(Part::End) => return self.judge(request).transpose(),
                None => return Ok(None),
            }
        }
    }

    /// What a whole answer means.
    fn judge(&self, request: &Request) -> Option<Result<ServerMessage, End>> {
        let response = self.response.as_ref()?;
        let body = String::from_utf8_lossy(&self.body);
        let session = http::session(request.url(), response.status, &response.fields, &body);
        Some(session.map(|session| ServerMessage::Answer(Box::new(session))).map_err(|refusal| {
            let text = body.lines().next().unwrap_or_default();
            // A description is no word to a person.
            let text = if text.starts_with("v=0") { "" } else { text };
            let said = format!("{} {text}", response.said());
            let (failure, words) = of_http(&refusal, request.publishes(), said.trim_end());
            let names_itself = response.fields.get("server").is_some_and(|name| name.contains(OVEN));
            let plays_otherwise = names_itself && response.status == 404 && !request.publishes();
            (failure, if plays_otherwise { format!("{words}; {OVEN_PLAYS}") } else { words })
        }))
    }
}

impl Oven {
    fn read(
        &mut self,
        request: &Request,
        bytes: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<ServerMessage>, End> {
        if self.socket.is_none() {
            if !self.opening.take(bytes).map_err(of_opening)? {
                return Ok(None);
            }
            self.socket
                .insert(Box::new(WebSocket::new(Role::Client, oven::MOST_BYTES)))
                .text(oven::REQUEST_OFFER, out);
            return Ok(Some(ServerMessage::Open));
        }
        let Some(socket) = &mut self.socket else { return Ok(None) };
        socket.input(std::mem::take(bytes));
        while let Some(message) = socket.poll(out).map_err(malformed)? {
            let text = match message {
                Incoming::Text(text) => text,
                Incoming::Binary(_) => return Err(malformed(WebSocketError::NoText)),
                Incoming::Close(code, reason) => {
                    let words = format!("the server closed the WebSocket: {code} {reason}");
                    return Ok(Some(ServerMessage::Goodbye(words.trim_end().to_owned())));
                }
            };
            match oven::Message::parse(&text).map_err(malformed)? {
                oven::Message::Offer(offer) => {
                    self.id = Some(offer.id);
                    return Ok(Some(ServerMessage::Offer(Box::new(offer))));
                }
                oven::Message::Refused { code, error } => {
                    return Err(of_oven(code, &error, request.is_signed()));
                }
                oven::Message::Other(_) => {}
            }
        }
        Ok(None)
    }
}

fn of_opening(error: OpeningError) -> End {
    match error {
        OpeningError::Refused { status, .. } => (of_upgrade(status), error.to_string()),
        _ => malformed(error),
    }
}

fn malformed(error: impl std::fmt::Display) -> End {
    (Failure::MalformedInput, error.to_string())
}
