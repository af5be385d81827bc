//! HTTP/2 as a server speaks it: bytes of a link in, requests and bytes for the link out.

use super::pipe::Pipe;
use super::{HEADER_TABLE, Http2Error, Http2Failure, LONGEST_HEAD, OF_HTTP_1, polling};
use crate::Request;
use crate::head::MOST_FIELDS;
use bytes::Bytes;
use h2::server::{Builder, Connection, Handshake, SendResponse};
use h2::{Reason, SendStream};
use http::{HeaderName, HeaderValue, StatusCode};
use std::future::Future;
use std::pin::Pin;
use std::task::Poll;

/// Requests that a client may have under way at a time: RFC 9113, section 6.5.2, recommends no fewer than 100.
const MOST_STREAMS: u32 = 100;

/// Bytes of a body that the library holds for a stream while the link or other streams are in the way.
const MOST_BUFFERED: usize = 64 << 10;

/// What the first bytes of a client are (RFC 9113, section 3.4), up to the end of the line that a request of HTTP/1.1 would have.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n";

/// A server's side of a connection. It takes heads alone: a body that follows one is passed over.
pub struct Http2Server {
    pipe: Pipe,
    state: State,
    exchanges: Vec<(u32, Exchange)>,
    /// Why the connection is of no more use, if that was found before a request was polled for.
    failure: Option<Http2Error>,
}

enum State {
    Opening(Box<Handshake<Pipe, Bytes>>),
    Open(Box<Connection<Pipe, Bytes>>),
    Over,
}

enum Exchange {
    Asked(SendResponse<Bytes>),
    Answered(SendStream<Bytes>),
}

impl Default for Http2Server {
    fn default() -> Self {
        Self::new()
    }
}

impl Http2Server {
    /// A connection that was just accepted.
    pub fn new() -> Self {
        Self::taking(MOST_STREAMS)
    }

    /// The same, with this many requests at a time (SETTINGS_MAX_CONCURRENT_STREAMS).
    pub fn taking(streams: u32) -> Self {
        Self::begin(streams, Pipe::default())
    }

    /// A connection whose output is held back while more than this many bytes of it were not taken. It reads nothing then, so that
    /// a client that asks and does not read (PING, SETTINGS) is kept nothing for. Bodies are sent with [`Self::room`].
    pub fn holding(most_output: usize) -> Self {
        Self::begin(MOST_STREAMS, Pipe::holding(most_output))
    }

    fn begin(streams: u32, pipe: Pipe) -> Self {
        let mut builder = Builder::new();
        builder
            .max_concurrent_streams(streams)
            .max_header_list_size(LONGEST_HEAD)
            .max_send_buffer_size(MOST_BUFFERED)
            .header_table_size(HEADER_TABLE);
        let state = State::Opening(Box::new(builder.handshake(pipe.clone())));
        Self { pipe, state, exchanges: Vec::new(), failure: None }
    }

    /// Takes what came on the link.
    pub fn take(&mut self, bytes: &[u8]) {
        self.pipe.feed(bytes);
    }

    /// What is to go on the link now.
    pub fn output(&mut self) -> Vec<u8> {
        self.pipe.take_output()
    }

    /// Whether some of what came waits until output was taken: no more is to be [taken](Self::take) before.
    pub fn is_behind(&self) -> bool {
        self.pipe.has_input()
    }

    /// Whether the connection is of no more use; what is left of its output says so to the client.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over)
    }

    /// Writes and reads what it can since output was taken.
    pub fn advance(&mut self) {
        if let State::Open(connection) = &mut self.state
            && let Poll::Ready(ended) = connection.poll_closed(&mut polling())
        {
            self.failure = Some(match ended {
                Ok(()) => ended_by_client(),
                Err(error) => Http2Error::of(&error),
            });
            self.state = State::Over;
        }
    }

    /// The next request, with the key of its answer; `None` before more bytes come.
    ///
    /// # Errors
    /// The connection is of no more use.
    pub fn poll_request(&mut self) -> Result<Option<(u32, Request)>, Http2Error> {
        let context = &mut polling();
        if let State::Opening(handshake) = &mut self.state {
            match Pin::new(handshake).poll(context) {
                Poll::Pending => return Ok(None),
                Poll::Ready(Ok(connection)) => self.state = State::Open(Box::new(connection)),
                Poll::Ready(Err(error)) => return Err(self.fail(&error)),
            }
        }
        let State::Open(connection) = &mut self.state else {
            return self.failure.clone().map_or(Ok(None), Err);
        };
        match connection.poll_accept(context) {
            Poll::Pending => Ok(None),
            Poll::Ready(None) => {
                self.state = State::Over;
                Err(self.failure.insert(ended_by_client()).clone())
            }
            Poll::Ready(Some(Err(error))) => Err(self.fail(&error)),
            Poll::Ready(Some(Ok((request, respond)))) => {
                let key = u32::from(respond.stream_id());
                self.exchanges.push((key, Exchange::Asked(respond)));
                Ok(Some((key, read_request(&request))))
            }
        }
    }

    fn fail(&mut self, error: &h2::Error) -> Http2Error {
        self.state = State::Over;
        self.failure.insert(Http2Error::of(error)).clone()
    }

    /// How many bytes of the body of an answer the client's windows and the buffer of the stream have room for, of this many.
    ///
    /// # Errors
    /// The client has given up the request, or its head was not sent.
    pub fn room(&mut self, key: u32, wanted: usize) -> Result<usize, Http2Error> {
        let at = self.position(key).ok_or_else(given_up)?;
        let Exchange::Answered(body) = &mut self.exchanges[at].1 else { return Err(given_up()) };
        body.reserve_capacity(wanted.min(MOST_BUFFERED));
        Ok(body.capacity().min(wanted))
    }

    /// The requests that the client has given up since it was last asked; their keys are of no more use.
    pub fn given_up(&mut self) -> Vec<u32> {
        let context = &mut polling();
        let mut keys = Vec::new();
        self.exchanges.retain_mut(|(key, exchange)| {
            let is_given_up = match exchange {
                Exchange::Asked(respond) => respond.poll_reset(context).is_ready(),
                Exchange::Answered(body) => body.poll_reset(context).is_ready(),
            };
            if is_given_up {
                keys.push(*key);
            }
            !is_given_up
        });
        keys
    }

    /// Answers with a head, given as HTTP/1.1 has it.
    ///
    /// # Errors
    /// It is no head, the client has given up the request, or it was answered.
    pub fn answer(&mut self, key: u32, head: &[u8], ends: bool) -> Result<(), Http2Error> {
        let malformed = || Http2Error::new(Http2Failure::Request, "the answer has no head of HTTP/2");
        let response = read_response(head).ok_or_else(malformed)?;
        let at = self.position(key).ok_or_else(malformed)?;
        if let Exchange::Asked(respond) = &mut self.exchanges[at].1 {
            let body = respond.send_response(response, ends).map_err(|error| Http2Error::of(&error))?;
            self.exchanges[at].1 = Exchange::Answered(body);
        }
        self.settle(at, ends);
        Ok(())
    }

    /// Sends a piece of the body, as the client's windows allow; what they do not allow yet is kept.
    ///
    /// # Errors
    /// The client has given up the request, or its head was not sent.
    pub fn send(&mut self, key: u32, piece: Bytes, ends: bool) -> Result<(), Http2Error> {
        let at = self.position(key).ok_or_else(given_up)?;
        let Exchange::Answered(body) = &mut self.exchanges[at].1 else { return Err(given_up()) };
        body.send_data(piece, ends).map_err(|error| Http2Error::of(&error))?;
        self.settle(at, ends);
        Ok(())
    }

    /// Resets the stream of a request (RST_STREAM) with this code of RFC 9113, section 7.
    pub fn reset(&mut self, key: u32, code: u32) {
        let Some(at) = self.position(key) else { return };
        match self.exchanges.swap_remove(at).1 {
            Exchange::Asked(mut respond) => respond.send_reset(Reason::from(code)),
            Exchange::Answered(mut body) => body.send_reset(Reason::from(code)),
        }
        self.advance();
    }

    /// Ends the connection (GOAWAY): at once with a code, or, with `None`, when what is under way is answered.
    pub fn end(&mut self, code: Option<u32>) {
        if let State::Open(connection) = &mut self.state {
            match code {
                Some(code) => connection.abrupt_shutdown(Reason::from(code)),
                None => connection.graceful_shutdown(),
            }
        }
        self.advance();
    }

    fn position(&self, key: u32) -> Option<usize> {
        self.exchanges.iter().position(|(it, _)| *it == key)
    }

    fn settle(&mut self, at: usize, ends: bool) {
        if ends {
            self.exchanges.swap_remove(at);
        }
        self.advance();
    }
}

fn given_up() -> Http2Error {
    Http2Error::new(Http2Failure::Reset, "the client has given up the request")
}

fn ended_by_client() -> Http2Error {
    Http2Error::new(Http2Failure::Ended, "the client has ended the connection (GOAWAY)")
}

fn read_request<Body>(request: &http::Request<Body>) -> Request {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).trim().to_owned();
    let fields = request.headers().iter().map(|(name, value)| (name.as_str(), text(value))).collect();
    Request {
        method: request.method().as_str().to_owned(),
        path: request.uri().path().to_owned(),
        query: url::form_urlencoded::parse(request.uri().query().unwrap_or_default().as_bytes())
            .into_owned()
            .collect(),
        fields,
        body: Vec::new(),
        modern: true,
        keep_alive: true,
    }
}

/// A head of HTTP/1.1 as one of HTTP/2 (RFC 9113, section 8.3.2).
fn read_response(head: &[u8]) -> Option<http::Response<()>> {
    let mut fields = [httparse::EMPTY_HEADER; MOST_FIELDS];
    let mut parsed = httparse::Response::new(&mut fields);
    parsed.parse(head).ok().filter(httparse::Status::is_complete)?;
    let mut response = http::Response::new(());
    *response.status_mut() = StatusCode::from_u16(parsed.code?).ok()?;
    for field in parsed.headers.iter() {
        if OF_HTTP_1.iter().any(|name| field.name.eq_ignore_ascii_case(name)) {
            continue;
        }
        let name = HeaderName::from_bytes(field.name.as_bytes()).ok()?;
        response.headers_mut().append(name, HeaderValue::from_bytes(field.value).ok()?);
    }
    Some(response)
}
