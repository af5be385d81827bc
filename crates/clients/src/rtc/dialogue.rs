//! What is said to the server before there is a path: WHEP or WHIP over HTTP, or OvenMediaEngine's dialogue in a WebSocket.

use super::refusal::{End, of_http, of_oven, of_upgrade};
use super::request::Request;
use crate::http::{Answer, Body, Head};
use weir_metrics::Failure;
use weir_rtc::signalling::websocket::{self, Incoming, Role, WebSocket};
use weir_rtc::signalling::{http, oven};

/// The longest answer that is read.
const LONGEST: usize = weir_rtc::sdp::MOST_BYTES;

/// Who talks how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Manner {
    /// WHEP and WHIP over HTTP: we offer.
    Http,
    /// OvenMediaEngine: it offers.
    Oven,
}

/// What the server has said.
#[derive(Debug)]
pub(super) enum Heard {
    /// The WebSocket is open: nothing to be done but what has been said already.
    Open,
    /// An answer to our offer, and what is said about the session.
    Answer(Box<http::Session>),
    /// An offer.
    Offer(Box<oven::Offer>),
    /// The goodbye, after an offer.
    Goodbye(String),
}

/// A dialogue under way.
pub(super) enum Dialogue {
    Http(Http),
    Oven(Oven),
}

#[derive(Default)]
pub(super) struct Http {
    head: Head,
    answer: Option<Answer>,
    body: Vec<u8>,
}

pub(super) struct Oven {
    head: Head,
    key: String,
    socket: Option<WebSocket>,
    /// The session, once it was offered.
    id: Option<u64>,
}

impl Dialogue {
    pub(super) fn new(manner: Manner) -> Self {
        match manner {
            Manner::Http => Self::Http(Http::default()),
            Manner::Oven => {
                Self::Oven(Oven { head: Head::default(), key: websocket::key(), socket: None, id: None })
            }
        }
    }

    /// The first words; over HTTP they say the offer.
    pub(super) fn begin(&self, request: &Request, offer: &str) -> Vec<u8> {
        match self {
            Self::Http(_) => request.post(offer),
            Self::Oven(oven) => request.upgrade(&oven.key),
        }
    }

    /// Takes bytes off the front, and says what was heard; what is to be said at once is appended to `out`.
    pub(super) fn read(
        &mut self,
        request: &Request,
        bytes: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Heard>, End> {
        match self {
            Self::Http(http) => http.read(request, bytes),
            Self::Oven(oven) => oven.read(bytes, out),
        }
    }

    /// The link has ended; whether that ends the answer as well.
    pub(super) fn end(&mut self, request: &Request) -> Option<Result<Heard, End>> {
        match self {
            Self::Http(Http { answer: Some(answer), body, .. }) if answer.body == Body::UntilClose => {
                Some(judge(request, answer, body))
            }
            _ => None,
        }
    }

    /// Answers the server's offer.
    pub(super) fn answer(&mut self, sdp: &str, out: &mut Vec<u8>) {
        if let Self::Oven(Oven { socket: Some(socket), id: Some(id), .. }) = self {
            socket.text(&oven::answer(*id, sdp), out);
        }
    }

    /// Says goodbye in a WebSocket.
    pub(super) fn goodbye(&self, out: &mut Vec<u8>) {
        if let Self::Oven(Oven { socket: Some(socket), id, .. }) = self {
            if let Some(id) = id {
                socket.text(&oven::stop(*id), out);
            }
            socket.close(1000, out);
        }
    }
}

impl Http {
    fn read(&mut self, request: &Request, bytes: &mut &[u8]) -> Result<Option<Heard>, End> {
        if self.answer.is_none() {
            self.answer = self.head.take(bytes).map_err(malformed)?;
        }
        let Some(answer) = &mut self.answer else { return Ok(None) };
        while let Some(piece) = answer.body.take(bytes).map_err(malformed)? {
            if self.body.len() + piece.len() > LONGEST {
                let words = format!("an answer over {LONGEST} bytes");
                return Err((Failure::MalformedInput, words));
            }
            self.body.extend_from_slice(piece);
        }
        if answer.body != Body::Over {
            return Ok(None);
        }
        judge(request, answer, &self.body).map(Some)
    }
}

/// What a whole answer means.
fn judge(request: &Request, answer: &Answer, body: &[u8]) -> Result<Heard, End> {
    let fields: Vec<(&str, &str)> =
        answer.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let body = String::from_utf8_lossy(body);
    match http::session(request.url(), answer.status, &fields, &body) {
        Ok(session) => Ok(Heard::Answer(Box::new(session))),
        Err(refusal) => {
            let text = body.lines().next().unwrap_or_default();
            // A description is no word to a person.
            let text = if text.starts_with("v=0") { "" } else { text };
            let said = format!("{} {text}", answer.said());
            Err(of_http(&refusal, request.publishes(), said.trim_end()))
        }
    }
}

impl Oven {
    fn read(&mut self, bytes: &mut &[u8], out: &mut Vec<u8>) -> Result<Option<Heard>, End> {
        if self.socket.is_none() {
            let Some(answer) = self.head.take(bytes).map_err(malformed)? else { return Ok(None) };
            self.open(&answer)?;
            self.socket = Some(WebSocket::new(Role::Client));
            if let Some(socket) = &self.socket {
                socket.text(oven::REQUEST_OFFER, out);
            }
            return Ok(Some(Heard::Open));
        }
        let Some(socket) = &mut self.socket else { return Ok(None) };
        socket.input(std::mem::take(bytes));
        while let Some(message) = socket.poll(out).map_err(malformed)? {
            let text = match message {
                Incoming::Text(text) => text,
                Incoming::Close(code, reason) => {
                    let words = format!("the server closed the WebSocket: {code} {reason}");
                    return Ok(Some(Heard::Goodbye(words.trim_end().to_owned())));
                }
            };
            match oven::Message::parse(&text).map_err(malformed)? {
                oven::Message::Offer(offer) => {
                    self.id = Some(offer.id);
                    return Ok(Some(Heard::Offer(Box::new(offer))));
                }
                oven::Message::Refused { code, error } => return Err(of_oven(code, &error)),
                oven::Message::Other(_) => {}
            }
        }
        Ok(None)
    }

    fn open(&self, answer: &Answer) -> Result<(), End> {
        if answer.status != 101 {
            return Err((of_upgrade(answer.status), format!("no WebSocket: {}", answer.said())));
        }
        let accept = answer.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("sec-websocket-accept"));
        if accept.is_none_or(|(_, accept)| *accept != websocket::accept(&self.key)) {
            let words = "the server's Sec-WebSocket-Accept is not that of the key".to_owned();
            return Err((Failure::MalformedInput, words));
        }
        Ok(())
    }
}

fn malformed(error: impl std::fmt::Display) -> End {
    (Failure::MalformedInput, error.to_string())
}
