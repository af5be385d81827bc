//! HTTP/2 (RFC 9113) as a client speaks it: bytes of a link in, parts of answers and bytes for the link out. Frames, compressed
//! heads and windows are the work of `h2`, which is polled here on memory: it gets no socket, no runtime and no thread.

mod pipe;
mod server;

pub use self::server::{Http2Server, PREFACE};

use self::pipe::Pipe;
use crate::{Fields, Response};
use bytes::Bytes;
use h2::client::{Builder, Connection, ResponseFuture, SendRequest};
use h2::{Reason, RecvStream};
use http::header::{self, HeaderName};
use http::{HeaderValue, Method, Uri, Version};
use std::fmt;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

/// What ALPN calls it (RFC 9113, section 3.2).
pub const ALPN: &[u8] = b"h2";

/// Bytes that are [taken](Http2Client::take) at once: what they bring is kept until it is [polled](Http2Client::poll), and of
/// frames that are a few bytes long it is some hundred bytes each. It is the largest frame that a server may send (RFC 9113, section 4.2).
pub const MOST_AT_ONCE: usize = 16 << 10;

/// Bytes that the server may send on a stream, and on all of them, before it is told that they were read: as much as Chromium
/// grants. Nothing of that is kept here: what was taken is polled before more is.
const STREAM_WINDOW: u32 = 6 << 20;
const CONNECTION_WINDOW: u32 = 15 << 20;

/// The longest head of an answer, as by HTTP/1.1.
const LONGEST_HEAD: u32 = 16 << 10;

/// Bytes of fields that the server may refer to again: the size that RFC 7541 begins with, and a bound of what each client keeps.
const HEADER_TABLE: u32 = 4 << 10;

/// The most fields of a request: those of weir, of a person and of what a server has set.
const MOST_FIELDS: usize = 128;

/// Fields that belong to a connection of HTTP/1.1 (RFC 9113, section 8.2.2), and the one that `:authority` replaces.
const OF_HTTP_1: &[&str] =
    &["connection", "host", "keep-alive", "proxy-connection", "te", "transfer-encoding", "upgrade"];

/// A client's connection: several requests beside each other, each with a key that its owner chooses.
pub struct Http2Client {
    pipe: Pipe,
    connection: Connection<Pipe, Bytes>,
    requests: SendRequest<Bytes>,
    /// What is under way: few at a time.
    exchanges: Vec<(usize, Exchange)>,
    /// Bytes have come.
    has_begun: bool,
    /// They begin as an answer of HTTP/1.1 does.
    is_http1: bool,
    /// Why the connection is of no more use, if it is not.
    ended: Option<Http2Error>,
}

enum Exchange {
    Asked(ResponseFuture),
    Answered(RecvStream),
}

/// What comes of an answer.
#[derive(Debug)]
pub enum Http2Part {
    /// Its head. Interim answers (1xx) are passed over.
    Head(Response),
    /// The next piece of its body; never empty.
    Piece(Bytes),
    /// It has ended, as long as its head had announced it.
    End,
}

/// Why there is no answer, or no more of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Http2Error {
    /// Its kind.
    pub kind: Http2Failure,
    words: String,
}

/// The kind of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http2Failure {
    /// The server has not begun with the request, which may be sent again (RFC 9113, section 8.7).
    NotProcessed,
    /// The server has reset the stream of one request.
    Reset,
    /// The server has ended the connection, and said that something was wrong.
    Ended,
    /// What came is not HTTP/2, or more than is taken.
    Malformed,
    /// The request cannot be put into a head of HTTP/2.
    Request,
}

impl fmt::Display for Http2Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.words)
    }
}

impl std::error::Error for Http2Error {}

/// Nothing is woken: whatever may have changed is polled after each call.
fn polling() -> Context<'static> {
    Context::from_waker(Waker::noop())
}

impl Http2Client {
    /// A connection whose preface (RFC 9113, section 3.4) is the first of its [output](Self::output).
    ///
    /// # Errors
    /// The library could not begin.
    pub fn new() -> Result<Self, Http2Error> {
        let pipe = Pipe::default();
        let mut builder = Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(LONGEST_HEAD)
            .header_table_size(HEADER_TABLE);
        // It only writes, which memory never refuses.
        match pin!(builder.handshake::<_, Bytes>(pipe.clone())).poll(&mut polling()) {
            Poll::Ready(Ok((requests, connection))) => {
                let (exchanges, has_begun, is_http1, ended) = (Vec::new(), false, false, None);
                let mut client = Self { pipe, connection, requests, exchanges, has_begun, is_http1, ended };
                client.advance();
                Ok(client)
            }
            Poll::Ready(Err(error)) => Err(Http2Error::of(&error)),
            Poll::Pending => Err(Http2Error::new(Http2Failure::Malformed, "HTTP/2 could not begin")),
        }
    }

    /// Takes what came on the link, [`MOST_AT_ONCE`] bytes of it or fewer; what it brings of each request is to be
    /// [polled](Self::poll) before the next call.
    pub fn take(&mut self, bytes: &[u8]) {
        let is_first = !std::mem::replace(&mut self.has_begun, true);
        self.is_http1 |= is_first && bytes.starts_with(b"HTTP/");
        self.pipe.feed(bytes);
        self.advance();
    }

    /// What is to go on the link now.
    pub fn output(&mut self) -> Vec<u8> {
        self.pipe.take_output()
    }

    /// Whether the connection is of use: neither side has ended it over something that was wrong.
    pub fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    /// Whether nothing is under way.
    pub fn is_idle(&self) -> bool {
        self.exchanges.is_empty()
    }

    /// Whether another request may be sent now: `false` while as many are under way as the server takes at a time
    /// (SETTINGS_MAX_CONCURRENT_STREAMS; RFC 9113, section 5.1.2).
    ///
    /// # Errors
    /// The connection takes no more requests, now or later: the server has said that it ends it (GOAWAY), or it is malformed.
    pub fn may_request(&mut self) -> Result<bool, Http2Error> {
        if let Some(ended) = &self.ended {
            return Err(ended.clone());
        }
        match self.requests.poll_ready(&mut polling()) {
            Poll::Ready(Ok(())) => Ok(self.exchanges.len() < self.requests.current_max_send_streams()),
            Poll::Ready(Err(error)) => Err(Http2Error::of(&error)),
            Poll::Pending => Ok(false),
        }
    }

    /// Sends a request, given as HTTP/1.1 has it: its head, and no body.
    ///
    /// # Errors
    /// It cannot be sent on this connection.
    pub fn request(&mut self, key: usize, scheme: &str, head: &[u8]) -> Result<(), Http2Error> {
        let request = read_request(scheme, head).ok_or_else(|| {
            Http2Error::new(
                Http2Failure::Request,
                "the request has no head of HTTP/2: look at its URL and fields",
            )
        })?;
        let (response, _) =
            self.requests.send_request(request, true).map_err(|error| Http2Error::of(&error))?;
        self.exchanges.push((key, Exchange::Asked(response)));
        self.advance();
        Ok(())
    }

    /// Gives up a request: the server is told by RST_STREAM (CANCEL), and the connection goes on.
    pub fn cancel(&mut self, key: usize) {
        self.exchanges.retain(|(it, _)| *it != key);
        self.advance();
    }

    /// The next part of the answer to the request with this key; `None` before more bytes come. After the end or an error the
    /// key is free.
    ///
    /// # Errors
    /// There is no answer, or no more of it.
    pub fn poll(&mut self, key: usize) -> Result<Option<Http2Part>, Http2Error> {
        let Some(at) = self.exchanges.iter().position(|(it, _)| *it == key) else { return Ok(None) };
        let part = poll_exchange(&mut self.exchanges[at].1);
        if matches!(part, Ok(Some(Http2Part::End)) | Err(_)) {
            self.exchanges.swap_remove(at);
        }
        if !matches!(part, Ok(Some(Http2Part::Head(_) | Http2Part::Piece(_)))) {
            // What was read makes room in the windows, of which the server is told.
            self.advance();
        }
        // RFC 9113, section 5.4.1: behind a GOAWAY with an error the connection is closed, and what is under way has no answer.
        if let (Ok(None), Err(error)) = (&part, self.may_request())
            && error.kind == Http2Failure::Ended
        {
            self.exchanges.retain(|(it, _)| *it != key);
            return Err(error);
        }
        // What ended the connection says more than what it left of a stream.
        match (part, &self.ended) {
            (Err(error), Some(ended)) if error.kind == Http2Failure::Malformed => Err(ended.clone()),
            (part, _) => part,
        }
    }

    fn advance(&mut self) {
        if self.ended.is_some() {
            return;
        }
        self.ended = match Pin::new(&mut self.connection).poll(&mut polling()) {
            Poll::Pending => return,
            Poll::Ready(Ok(())) => Some(Http2Error::new(
                Http2Failure::NotProcessed,
                "the server has ended the connection (GOAWAY)",
            )),
            Poll::Ready(Err(_)) if self.is_http1 => {
                let words = "the server speaks HTTP/1.1 on this link, and not HTTP/2";
                Some(Http2Error::new(Http2Failure::Malformed, words))
            }
            Poll::Ready(Err(error)) => Some(Http2Error::of(&error)),
        };
    }
}

fn poll_exchange(exchange: &mut Exchange) -> Result<Option<Http2Part>, Http2Error> {
    let context = &mut polling();
    if let Exchange::Asked(response) = exchange {
        return match Pin::new(response).poll(context) {
            Poll::Pending => Ok(None),
            Poll::Ready(Err(error)) => Err(Http2Error::of(&error)),
            Poll::Ready(Ok(answer)) => {
                let (head, body) = answer.into_parts();
                *exchange = Exchange::Answered(body);
                Ok(Some(Http2Part::Head(read_response(&head))))
            }
        };
    }
    let Exchange::Answered(body) = exchange else { return Ok(None) };
    loop {
        match body.poll_data(context) {
            Poll::Pending => return Ok(None),
            Poll::Ready(None) => return Ok(Some(Http2Part::End)),
            Poll::Ready(Some(Err(error))) => return Err(Http2Error::of(&error)),
            Poll::Ready(Some(Ok(piece))) => {
                body.flow_control().release_capacity(piece.len()).map_err(|error| Http2Error::of(&error))?;
                if !piece.is_empty() {
                    return Ok(Some(Http2Part::Piece(piece)));
                }
            }
        }
    }
}

impl Http2Error {
    fn new(kind: Http2Failure, words: &str) -> Self {
        Self { kind, words: words.to_owned() }
    }

    fn of(error: &h2::Error) -> Self {
        let reason = error.reason().unwrap_or(Reason::INTERNAL_ERROR);
        let (kind, words) = if error.is_reset() && error.is_remote() {
            let kind = match reason {
                Reason::REFUSED_STREAM => Http2Failure::NotProcessed,
                _ => Http2Failure::Reset,
            };
            (kind, format!("the server reset the stream of the request: {reason:?} (RST_STREAM)"))
        } else if error.is_go_away() && error.is_remote() {
            // Streams that the server has taken go on, and get no such error.
            let kind = match reason {
                Reason::NO_ERROR => Http2Failure::NotProcessed,
                _ => Http2Failure::Ended,
            };
            (kind, format!("the server ended the connection: {reason:?} (GOAWAY)"))
        } else if error.is_library() && error.is_reset() {
            let longest = LONGEST_HEAD >> 10;
            let causes = format!(
                "its head is longer than {longest} KiB or malformed, or its body is not as long as that says"
            );
            (Http2Failure::Malformed, format!("the answer is no answer of HTTP/2 ({reason:?}): {causes}"))
        } else if error.is_library() && reason == Reason::ENHANCE_YOUR_CALM {
            let words =
                "the server sent more empty frames, or longer heads, than are taken (ENHANCE_YOUR_CALM)";
            (Http2Failure::Malformed, words.to_owned())
        } else if error.is_library() {
            let words = format!("what the server sent is not HTTP/2 as RFC 9113 defines it: {reason:?}");
            (Http2Failure::Malformed, words)
        } else {
            (Http2Failure::Malformed, format!("HTTP/2 came to an end: {error}"))
        };
        Self { kind, words }
    }
}

/// A head of HTTP/1.1 as one of HTTP/2 (RFC 9113, section 8.3.1).
fn read_request(scheme: &str, head: &[u8]) -> Option<http::Request<()>> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    parsed.parse(head).ok().filter(httparse::Status::is_complete)?;
    let is_host = |field: &&httparse::Header<'_>| field.name.eq_ignore_ascii_case("host");
    let authority = std::str::from_utf8(parsed.headers.iter().find(is_host)?.value).ok()?;
    let uri = Uri::builder().scheme(scheme).authority(authority).path_and_query(parsed.path?).build().ok()?;
    let mut request = http::Request::new(());
    *request.method_mut() = Method::from_bytes(parsed.method?.as_bytes()).ok()?;
    *request.uri_mut() = uri;
    *request.version_mut() = Version::HTTP_2;
    for field in parsed.headers.iter() {
        if OF_HTTP_1.iter().any(|name| field.name.eq_ignore_ascii_case(name)) {
            continue;
        }
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        let mut value = HeaderValue::from_bytes(field.value).ok()?;
        // RFC 7541, section 7.1.3: it is kept in no table.
        value.set_sensitive(name == header::AUTHORIZATION);
        request.headers_mut().append(name, value);
    }
    Some(request)
}

fn read_response(head: &http::response::Parts) -> Response {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
    let fields: Fields = head.headers.iter().map(|(name, value)| (name.as_str(), text(value))).collect();
    // RFC 9113, section 8.3.2: there are no words beside the status.
    Response { status: head.status.as_u16(), reason: String::new(), fields }
}

#[cfg(test)]
mod tests;
