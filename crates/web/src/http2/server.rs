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

/// A server's side of a connection. It takes heads alone: a body that follows one is passed over.
pub struct Http2Server {
    pipe: Pipe,
    state: State,
    exchanges: Vec<(u32, Exchange)>,
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
        let pipe = Pipe::default();
        let mut builder = Builder::new();
        builder
            .max_concurrent_streams(streams)
            .max_header_list_size(LONGEST_HEAD)
            .header_table_size(HEADER_TABLE);
        let state = State::Opening(Box::new(builder.handshake(pipe.clone())));
        Self { pipe, state, exchanges: Vec::new() }
    }

    /// Takes what came on the link.
    pub fn take(&mut self, bytes: &[u8]) {
        self.pipe.feed(bytes);
    }

    /// What is to go on the link now.
    pub fn output(&mut self) -> Vec<u8> {
        self.pipe.take_output()
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
        let State::Open(connection) = &mut self.state else { return Ok(None) };
        match connection.poll_accept(context) {
            Poll::Pending => Ok(None),
            Poll::Ready(None) => {
                self.state = State::Over;
                Err(Http2Error::new(Http2Failure::Ended, "the client has ended the connection (GOAWAY)"))
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
        Http2Error::of(error)
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
        let unknown = || Http2Error::new(Http2Failure::Reset, "the client has given up the request");
        let at = self.position(key).ok_or_else(unknown)?;
        let Exchange::Answered(body) = &mut self.exchanges[at].1 else { return Err(unknown()) };
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

    fn advance(&mut self) {
        if let State::Open(connection) = &mut self.state
            && connection.poll_closed(&mut polling()).is_ready()
        {
            self.state = State::Over;
        }
    }
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
