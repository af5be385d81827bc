//! A stream that one GET asks for: the answer's head, redirects, and the body piece by piece.

use crate::client_state::{ClientPhase, ClientState};
use crate::http_request::{MOST_REDIRECTS, Request};
use crate::redirect::{Redirect, Redirects};
use crate::shard_recorder::ShardRecorder;
use std::sync::Arc;
use std::time::Duration;
use tracing::debug;
use weir_metrics::common::SENT;
use weir_metrics::{Failure, Moment};
use weir_shard::Context;
use weir_web::uri::shown_location;
use weir_web::{Ending, Part, Response, Responses};

/// How often to ask whether the place that a redirect leads to has been found.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// One GET, and what has come of it.
pub struct HttpGet {
    /// Whose it is.
    client: u32,
    /// What it asks for first, and now.
    first: Arc<Request>,
    request: Arc<Request>,
    redirects: Redirects,
    /// How often it was sent on.
    followed: u32,
    answer: Answer,
    /// Bytes of the body so far.
    body: u64,
}

/// What the server has answered.
#[derive(Debug)]
enum Answer {
    /// What is read.
    Here(Responses),
    /// It leads elsewhere, to what the request now asks for; the way there is sought.
    Elsewhere,
}

/// What bytes of the link brought.
#[derive(Debug)]
pub enum Step<'a> {
    /// The server sends what was asked for.
    Accepted,
    /// A piece of it.
    Piece(&'a [u8]),
    /// All of it has come, as announced.
    End,
    /// Nothing before more bytes come.
    More,
    /// What was asked for does not come.
    Failed(Failure, String),
}

impl HttpGet {
    /// A request that client number `client` is to send when the link is there.
    pub fn new(client: u32, request: Arc<Request>, redirects: Redirects) -> Self {
        let answer = Answer::Here(Responses::asked());
        Self { client, first: Arc::clone(&request), request, redirects, followed: 0, answer, body: 0 }
    }

    /// Another link is sought, on which it asks as at first.
    pub fn begin_again(&mut self) {
        *self = Self::new(self.client, Arc::clone(&self.first), self.redirects.clone());
    }

    /// Sends it on a link that is there.
    pub fn send(&self, state: &mut ClientState, context: &mut Context<'_, ShardRecorder>) {
        // The path may be a key.
        debug!(target: "http", client = self.client, "sends GET");
        // HTTP has no handshake of its own.
        state.reach(ClientPhase::Requesting, context.now, context.world);
        let bytes = self.request.bytes();
        context.send(bytes);
        context.world.of(state.planned()).count(SENT, bytes.len() as u64);
    }

    /// Bytes of the body so far.
    pub fn body(&self) -> u64 {
        self.body
    }

    /// Takes bytes off the front of what a read brought.
    pub fn take<'a>(&mut self, bytes: &mut &'a [u8]) -> Step<'a> {
        let Answer::Here(responses) = &mut self.answer else { return Step::More };
        match responses.take(bytes) {
            Ok(Some(Part::Piece(piece))) => {
                self.body += piece.len() as u64;
                Step::Piece(piece)
            }
            Ok(Some(Part::Head(response))) => {
                debug!(target: "http", client = self.client, status = response.status, "answered");
                match refusal(response.status) {
                    _ if response.is_redirect() => self.send_on(&response),
                    None => match compression(&response) {
                        None => Step::Accepted,
                        Some(words) => Step::Failed(Failure::MalformedInput, words),
                    },
                    Some(failure) => Step::Failed(failure, response.said()),
                }
            }
            Ok(Some(Part::End)) => Step::End,
            Ok(None) => Step::More,
            Err(error) => Step::Failed(Failure::MalformedInput, error.to_string()),
        }
    }

    /// The server sends the client elsewhere.
    fn send_on(&mut self, response: &Response) -> Step<'static> {
        let location = response.location();
        let led = if self.followed == MOST_REDIRECTS {
            Err(format!("{MOST_REDIRECTS} redirects in a row came before it"))
        } else {
            self.request.redirected(location, response.fields.all("set-cookie"))
        };
        match led {
            Ok(request) => {
                self.request = Arc::new(request);
                self.followed += 1;
                self.answer = Answer::Elsewhere;
                Step::More
            }
            Err(cause) => {
                let place = location.map_or("nowhere".to_owned(), shown_location);
                let words = format!("{} leads to {place}: {cause}", response.said());
                Step::Failed(Failure::RedirectFailed, words)
            }
        }
    }

    /// Goes where the server has sent it, if it has, as soon as the way is known.
    ///
    /// # Errors
    /// There is no way.
    pub fn go_on(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), (Failure, String)> {
        if matches!(self.answer, Answer::Here(_)) {
            return Ok(());
        }
        match self.redirects.find(self.request.target()) {
            Redirect::Sought => context.pause_reading(true),
            Redirect::Found(endpoint) => {
                self.answer = Answer::Here(Responses::asked());
                context.reopen(endpoint);
            }
            Redirect::None(cause) => {
                let words = format!("a redirect leads to {}: {cause}", self.request.target());
                return Err((Failure::RedirectFailed, words));
            }
        }
        Ok(())
    }

    /// When [`Self::go_on`] is to be called, if nothing happens before.
    pub fn poll_timeout(&self, now: Moment) -> Option<Moment> {
        matches!(self.answer, Answer::Elsewhere).then(|| now + ASK_AGAIN)
    }

    /// The link has ended in good order. `Ok` if that is the end of the body, with what there is to say of it; else the words
    /// of a failure.
    ///
    /// # Errors
    /// The answer is not whole.
    pub fn closed(&self) -> Result<String, String> {
        let Answer::Here(responses) = &self.answer else {
            return Err("the server closed the link behind a redirect".to_owned());
        };
        let body = self.body;
        match responses.ending() {
            Ending::Whole => Ok(format!("the server ended the answer after {body} bytes")),
            ending @ (Ending::Unanswered | Ending::InHead) => {
                Err(format!("the server closed the link {ending}"))
            }
            ending @ (Ending::Short(_) | Ending::Unfinished) => {
                Err(format!("the server closed the link after {body} bytes, {ending}"))
            }
        }
    }
}

/// What is wrong with an answer whose body is coded (RFC 9110, section 8.4), although the request takes `identity` alone.
pub(crate) fn compression(response: &Response) -> Option<String> {
    let codings = response.fields.all("content-encoding").flat_map(|value| value.split(',')).map(str::trim);
    let coding = codings.into_iter().find(|it| !it.is_empty() && !it.eq_ignore_ascii_case("identity"))?;
    let known = ["gzip", "x-gzip", "deflate", "compress", "br", "zstd"];
    let name =
        known.into_iter().find(|name| coding.eq_ignore_ascii_case(name)).unwrap_or("a coding of its own");
    Some(format!(
        "the body is compressed (Content-Encoding: {name}), and the request asked for it as it is: let the server, or the proxy before it, not compress streams"
    ))
}

/// What kind of failure an answer is; `None` for one with a stream.
pub fn refusal(status: u16) -> Option<Failure> {
    match status {
        200..=299 => None,
        401 | 403 | 407 => Some(Failure::Unauthorized),
        404 | 410 => Some(Failure::StreamNotFound),
        503 => Some(Failure::Unavailable),
        _ => Some(Failure::Rejected),
    }
}
