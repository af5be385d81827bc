//! One document over HTTP, waited for: what is asked before a run. It goes over the links of runs, with their TLS.

use crate::endpoints::EndpointFinder;
use crate::http_request::{MOST_REDIRECTS, Request};
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Session, SessionId, Shard, World, clock};
use weir_web::{Ending, Part, Response, Responses};

/// Longest wait for a whole document, redirects included.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest document.
const LONGEST: usize = 16 << 20;

/// A document that could not be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The link failed.
    #[error("{}{}{words}", failure.key().replace('_', " "), if words.is_empty() { "" } else { ": " })]
    Link {
        /// The kind.
        failure: Failure,
        /// The system's words.
        words: String,
    },
    /// The server refused.
    #[error("the server answers {0}")]
    Refused(String),
    /// A redirect that leads nowhere.
    #[error("{0}")]
    Redirect(String),
    /// The answer is not HTTP.
    #[error("{0}")]
    Malformed(String),
    /// The answer was not whole in time.
    #[error("no whole answer within {} s", TIMEOUT.as_secs())]
    Timeout,
    /// The answer was longer than any that is asked for.
    #[error("the answer is longer than {} MiB", LONGEST >> 20)]
    TooLong,
}

/// What became of one request.
#[derive(Default)]
struct Outcome(Option<Result<Next, FetchError>>);

enum Next {
    Document(Vec<u8>),
    Elsewhere(Box<Request>),
}

impl World for Outcome {
    type Message = ();

    fn receive(&mut self, (): (), _: Moment, _: &mut Vec<SessionId>) {}
}

/// Gets what a request asks for, over as many redirects as a viewer follows.
///
/// # Errors
/// No link, no answer in time, or one that is no document.
pub(super) fn fetch(mut request: Request, endpoints: &mut EndpointFinder) -> Result<Vec<u8>, FetchError> {
    let end = clock::now() + TIMEOUT;
    for _ in 0..=MOST_REDIRECTS {
        match once(request, endpoints, end)? {
            Next::Document(document) => return Ok(document),
            Next::Elsewhere(next) => request = *next,
        }
    }
    Err(FetchError::Redirect(format!("more than {MOST_REDIRECTS} redirects in a row")))
}

fn once(request: Request, endpoints: &mut EndpointFinder, end: Moment) -> Result<Next, FetchError> {
    let broken = |words: String| FetchError::Link { failure: Failure::SocketError, words };
    let endpoint =
        endpoints.find(request.target()).map_err(|error| FetchError::Redirect(error.to_string()))?;
    let mut shard = Shard::new(Outcome::default()).map_err(|error| broken(error.to_string()))?;
    let session = Fetcher { request, responses: Responses::asked(), document: Vec::new() };
    // A link that cannot be opened has reported that to its session.
    let _ = shard.open(&endpoint, Box::new(session));
    loop {
        if let Some(outcome) = shard.world.0.take() {
            return outcome;
        }
        if clock::now() >= end {
            return Err(FetchError::Timeout);
        }
        shard.turn(end).map_err(|error| broken(error.to_string()))?;
    }
}

struct Fetcher {
    request: Request,
    responses: Responses,
    document: Vec<u8>,
}

impl Fetcher {
    fn read(&mut self, mut bytes: &[u8]) -> Option<Result<Next, FetchError>> {
        loop {
            match self.responses.take(&mut bytes) {
                Ok(Some(Part::Head(response))) => {
                    if let Some(outcome) = self.on_response(&response) {
                        return Some(outcome);
                    }
                }
                Ok(Some(Part::Piece(piece))) if self.document.len() + piece.len() > LONGEST => {
                    return Some(Err(FetchError::TooLong));
                }
                Ok(Some(Part::Piece(piece))) => self.document.extend_from_slice(piece),
                Ok(Some(Part::End)) => return Some(Ok(self.whole())),
                Ok(None) => return None,
                Err(error) => return Some(Err(FetchError::Malformed(error.to_string()))),
            }
        }
    }

    /// What an answer without a document comes to.
    fn on_response(&self, response: &Response) -> Option<Result<Next, FetchError>> {
        match response.status {
            200..=299 => None,
            _ if response.is_redirect() => {
                let led = self.request.redirected(response.location(), response.fields.all("set-cookie"));
                Some(led.map(|it| Next::Elsewhere(Box::new(it))).map_err(FetchError::Redirect))
            }
            _ => Some(Err(FetchError::Refused(response.said()))),
        }
    }

    fn whole(&mut self) -> Next {
        Next::Document(std::mem::take(&mut self.document))
    }

    fn close(&mut self, failure: Failure, words: &str) -> Result<Next, FetchError> {
        match self.responses.ending() {
            Ending::Whole if failure == Failure::ClosedByPeer => Ok(self.whole()),
            _ => Err(FetchError::Link { failure, words: words.to_owned() }),
        }
    }
}

impl Session<Outcome> for Fetcher {
    fn handle_connected(&mut self, context: &mut Context<'_, Outcome>) {
        context.send(self.request.bytes());
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, Outcome>) {
        if let Some(outcome) = self.read(bytes) {
            context.world.0.get_or_insert(outcome);
            context.close();
        }
    }

    fn handle_closed(&mut self, failure: Failure, words: &str, context: &mut Context<'_, Outcome>) {
        let outcome = self.close(failure, words);
        context.world.0.get_or_insert(outcome);
    }
}
