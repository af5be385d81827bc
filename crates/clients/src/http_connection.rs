//! An HTTP connection that carries several requests, one after the other: kept open between them, opened again where the server has
//! closed it or where the next request goes to another server. Bodies are handed on in pieces and never held. It is the session's own
//! link, or the one beside it.

use crate::client_session::End;
use crate::cookie_jar::CookieJar;
use crate::host_clock::HostClock;
use crate::http_get::compression;
use crate::http_request::{MOST_REDIRECTS, Request};
use crate::redirect::{Redirect, Redirects};
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tracing::debug;
use weir_metrics::common::SENT;
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Endpoint};
use weir_web::uri::shown_location;
use weir_web::{Ending, Part, Response, Responses};

/// How often to ask whether the place of the next request has been found.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// The longest body of a redirect that is read for the sake of its connection: a page of a server's is 1 kB.
const LONGEST_REDIRECT: u64 = 64 << 10;

/// One client's connection, with the one request that is under way on it.
pub struct HttpConnection {
    /// Whose it is.
    client: u32,
    redirects: Redirects,
    /// Where its first link leads: a name may have several addresses, and this client keeps to its own.
    home: (String, Endpoint),
    /// Whether it is the link beside the session's own.
    is_beside: bool,
    /// The server that the link leads to.
    server: String,
    link: Link,
    /// The link ended in the present event, in which no other can be opened.
    just_ended: bool,
    responses: Responses,
    request: Option<Arc<Request>>,
    is_sent: bool,
    /// Bytes of an answer have come.
    is_answered: bool,
    /// An answer has ended on this link: what is asked next may cross with the server closing it.
    is_used: bool,
    /// The request was sent again because of that.
    is_repeated: bool,
    /// How often it was sent on.
    followed: u32,
    /// The request that a redirect leads to, while the rest of its answer comes.
    next: Option<Arc<Request>>,
    /// Bytes of the body so far.
    body: u64,
    /// Links that were begun since [`Self::take_opened`].
    opened: u64,
    /// What servers have set, for all connections of this client and for no other's: requests are shared, and have none.
    cookies: Rc<RefCell<CookieJar>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Opening,
    Up,
    Down,
}

/// What bytes of the link brought.
#[derive(Debug)]
pub enum Answer<'a> {
    /// The head of the answer.
    Head(Response),
    /// A piece of its body.
    Piece(&'a [u8]),
    /// All of it has come, as announced. Another request may follow.
    End,
    /// Nothing before more bytes come.
    More,
    /// What came is no answer, or leads nowhere.
    Failed(Failure, String),
}

/// What the end of a link means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEnd {
    /// Nothing is lost: the next request opens another. The session has to [stand by](Context::stand_by).
    Idle,
    /// The same, and it was the end of the answer under way.
    Whole,
    /// The request under way fails.
    Failed(Failure, String),
}

impl HttpConnection {
    /// A connection whose first link is being opened to the server of this request, by this way.
    pub fn new(client: u32, first: &Request, endpoint: Endpoint, redirects: Redirects) -> Self {
        let server = first.target().base();
        Self {
            client,
            redirects,
            home: (server.clone(), endpoint),
            is_beside: false,
            server,
            link: Link::Opening,
            just_ended: false,
            responses: Responses::new(),
            request: None,
            is_sent: false,
            is_answered: false,
            is_used: false,
            is_repeated: false,
            followed: 0,
            next: None,
            body: 0,
            opened: 1,
            cookies: Rc::default(),
        }
    }

    /// Another connection of the same client, on the link beside the session's own, which is opened for its first request.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self {
            client: self.client,
            redirects: self.redirects.clone(),
            home: self.home.clone(),
            is_beside: true,
            server: String::new(),
            link: Link::Down,
            just_ended: false,
            responses: Responses::new(),
            request: None,
            is_sent: false,
            is_answered: false,
            is_used: false,
            is_repeated: false,
            followed: 0,
            next: None,
            body: 0,
            opened: 0,
            cookies: Rc::clone(&self.cookies),
        }
    }

    /// Gives up what is asked for. What of it has not come is of no use to anybody, so that its link goes with it.
    pub fn abort(&mut self, context: &mut Context<'_, ShardRecorder>) {
        if self.is_sent && self.link == Link::Up {
            self.drop_link(context);
        }
        self.next = None;
        self.end();
    }

    /// Whether nothing is asked for: the next request may be made.
    pub fn is_idle(&self) -> bool {
        self.request.is_none()
    }

    /// Whether a link is there.
    pub fn is_up(&self) -> bool {
        self.link == Link::Up
    }

    /// Whether bytes of the answer to the request under way have come.
    pub fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// What is asked for, or was the last time, where redirects have led.
    pub fn request(&self) -> Option<&Arc<Request>> {
        self.request.as_ref()
    }

    /// Links that were begun since the last call.
    pub fn take_opened(&mut self) -> u64 {
        std::mem::take(&mut self.opened)
    }

    /// Asks for something else, when the connection [is idle](Self::is_idle); [`Self::go_on`] sends it.
    pub fn get(&mut self, request: Arc<Request>) {
        (self.followed, self.is_repeated) = (0, false);
        self.ask(request);
    }

    fn ask(&mut self, request: Arc<Request>) {
        self.request = Some(request);
        (self.is_sent, self.is_answered, self.body) = (false, false, 0);
    }

    /// The link is there.
    pub fn on_connected(&mut self) {
        self.link = Link::Up;
    }

    /// A deadline of [`Self::poll_timeout`] has come.
    pub fn handle_timeout(&mut self) {
        self.just_ended = false;
    }

    /// Behind every event: sends the request that waits, or opens a link for it.
    ///
    /// # Errors
    /// There is no way to its server.
    pub fn go_on(
        &mut self,
        planned: PlannedStart,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let Some(request) = self.request.as_ref().filter(|_| !self.is_sent && !self.just_ended) else {
            return Ok(());
        };
        let server = request.target().base();
        let is_there = server == self.server;
        match self.link {
            Link::Opening if is_there => return Ok(()),
            Link::Up if is_there && self.responses.may_request() => {
                // The path may be a key.
                debug!(target: "http", client = self.client, "sends GET");
                let cookies = self.cookies.borrow();
                let pairs = if cookies.is_empty() {
                    Vec::new()
                } else {
                    cookies.pairs(request.target(), context.now)
                };
                let with_cookies = (!pairs.is_empty()).then(|| request.with_cookies(&pairs));
                let bytes = with_cookies.as_ref().unwrap_or(request).bytes();
                if self.is_beside {
                    context.send_side(bytes);
                } else {
                    context.send(bytes);
                }
                context.world.of(planned).count(SENT, bytes.len() as u64);
                self.responses.on_request("GET");
                self.is_sent = true;
                return Ok(());
            }
            _ => {}
        }
        let endpoint = if server == self.home.0 {
            self.home.1.clone()
        } else {
            match self.redirects.find(request.target()) {
                Redirect::Sought => return Ok(()),
                Redirect::Found(endpoint) => endpoint,
                Redirect::None(cause) => {
                    let words = format!("{} cannot be reached: {cause}", request.target());
                    return Err((Failure::RedirectFailed, words));
                }
            }
        };
        if self.is_beside {
            context.open_side(&endpoint).map_err(|error| (error.failure, error.words))?;
        } else {
            context.reopen(endpoint);
        }
        self.opened += 1;
        (self.server, self.link, self.is_used, self.responses) =
            (server, Link::Opening, false, Responses::new());
        Ok(())
    }

    /// When to call [`Self::handle_timeout`] and then [`Self::go_on`], if nothing happens before.
    pub fn poll_timeout(&self, now: Moment) -> Option<Moment> {
        let waits = self.request.is_some() && !self.is_sent && self.link != Link::Opening;
        let after = if self.just_ended { Duration::ZERO } else { ASK_AGAIN };
        (self.just_ended || waits).then(|| now + after)
    }

    /// Takes bytes off the front of what a read brought.
    pub fn take<'a>(&mut self, bytes: &mut &'a [u8], context: &mut Context<'_, ShardRecorder>) -> Answer<'a> {
        loop {
            if !self.is_sent {
                if !bytes.is_empty() {
                    // Some servers say 408 before they close a connection that waits.
                    *bytes = &[];
                    self.drop_link(context);
                }
                return Answer::More;
            }
            self.is_answered |= !bytes.is_empty();
            match self.responses.take(bytes) {
                Ok(Some(Part::Piece(piece))) => {
                    self.body += piece.len() as u64;
                    if self.next.is_none() {
                        return Answer::Piece(piece);
                    }
                    if self.body > LONGEST_REDIRECT {
                        *bytes = &[];
                        self.drop_link(context);
                        self.follow();
                    }
                }
                Ok(Some(Part::Head(response))) => {
                    debug!(target: "http", client = self.client, status = response.status, "answered");
                    self.keep_cookies(&response, context.now);
                    if !response.is_redirect() {
                        return match compression(&response) {
                            None => Answer::Head(response),
                            Some(words) => Answer::Failed(Failure::MalformedInput, words),
                        };
                    }
                    match self.led(&response) {
                        Ok(request) => self.next = Some(request),
                        Err(words) => return Answer::Failed(Failure::RedirectFailed, words),
                    }
                }
                Ok(Some(Part::End)) => {
                    self.is_used = true;
                    if self.next.is_none() {
                        self.end();
                        return Answer::End;
                    }
                    self.follow();
                }
                Ok(None) => return Answer::More,
                Err(error) => return Answer::Failed(Failure::MalformedInput, error.to_string()),
            }
        }
    }

    /// RFC 6265, section 3: those of every answer count, whatever its status.
    fn keep_cookies(&mut self, response: &Response, now: Moment) {
        let mut fields = response.fields.all("set-cookie").peekable();
        let Some(request) = self.request.as_ref().filter(|_| fields.peek().is_some()) else { return };
        let wall = (HostClock::read().at(now).wall_nanos / 1_000_000_000) as i64;
        let mut cookies = self.cookies.borrow_mut();
        fields.for_each(|field| cookies.set(field, request.target(), now, wall));
    }

    /// What is asked for where an answer leads.
    fn led(&self, response: &Response) -> Result<Arc<Request>, String> {
        let location = response.location();
        let led = match &self.request {
            Some(request) if self.followed < MOST_REDIRECTS => {
                // Cookies are kept, and go along where they are for.
                request.redirected(location, std::iter::empty())
            }
            _ => Err(format!("{MOST_REDIRECTS} redirects in a row came before it")),
        };
        let place = || location.map_or("nowhere".to_owned(), shown_location);
        led.map(Arc::new).map_err(|cause| format!("{} leads to {}: {cause}", response.said(), place()))
    }

    fn follow(&mut self) {
        if let Some(next) = self.next.take() {
            self.followed += 1;
            self.ask(next);
        }
    }

    /// The answer is whole.
    fn end(&mut self) {
        (self.request, self.is_sent, self.is_answered) = (None, false, false);
    }

    fn drop_link(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.link = Link::Down;
        if self.is_beside {
            context.close_side();
        } else {
            context.stand_by();
        }
    }

    /// The link has ended.
    pub fn on_closed(&mut self, failure: Failure, words: &str) -> LinkEnd {
        let was = std::mem::replace(&mut self.link, Link::Down);
        self.just_ended = true;
        if was == Link::Opening {
            return LinkEnd::Failed(failure, words.to_owned());
        }
        if !self.is_sent {
            return LinkEnd::Idle;
        }
        let ending = self.responses.ending();
        if self.next.is_some() {
            self.follow();
            return LinkEnd::Idle;
        }
        match ending {
            Ending::Whole if failure == Failure::ClosedByPeer => {
                self.end();
                LinkEnd::Whole
            }
            // RFC 9112, section 9.3.1: a client may send a request again whose connection was closed before an answer.
            Ending::Unanswered if self.is_used && !self.is_repeated => {
                (self.is_sent, self.is_repeated) = (false, true);
                LinkEnd::Idle
            }
            Ending::Unanswered | Ending::InHead if failure == Failure::ClosedByPeer => {
                LinkEnd::Failed(failure, format!("the server closed the link {ending}"))
            }
            _ if failure == Failure::ClosedByPeer => {
                let body = self.body;
                LinkEnd::Failed(failure, format!("the server closed the link after {body} bytes, {ending}"))
            }
            _ => LinkEnd::Failed(failure, words.to_owned()),
        }
    }
}
