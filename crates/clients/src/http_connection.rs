//! An HTTP connection that carries several requests, one after the other: kept open between them, opened again where the server has
//! closed it or where the next request goes to another server. Bodies are handed on in pieces and never held. By HTTP/1.1 it is the
//! session's own link, or the one beside it; by HTTP/2 the connections of a client that go to one server are streams of one link.

mod link_end;
mod received;

pub use self::link_end::{EndedLink, LinkEnd};

use self::received::AnswerProgress;
use crate::client_session::End;
use crate::cookie_jar::CookieJar;
use crate::host_clock::HostClock;
use crate::http_answer::Answer;
use crate::http_get::compression;
use crate::http_links::{HttpLinks, HttpVersion, LinkPhase, Sharing, may_be_http2, speaks_http2};
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
use weir_web::http2::Http2Client;
use weir_web::uri::shown_location;
use weir_web::{Response, Responses};

/// How often to ask whether the place of the next request has been found.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// The longest body of a redirect that is read for the sake of its connection: a page of a server's is 1 kB.
const LONGEST_REDIRECT: u64 = 64 << 10;

/// Bytes that may wait for a server to read them. Requests and updates of windows are a few hundred at a time: what is more are answers
/// to frames that want one (PING, SETTINGS), of a server that reads none of them.
const MOST_UNSENT: usize = 256 << 10;

/// The place of a link among those of its client: the session's own, and the one beside it.
const OWN: usize = 0;
const BESIDE: usize = 1;

/// One client's connection, with the one request that is under way on it.
pub struct HttpConnection {
    /// Whose it is.
    client: u32,
    redirects: Redirects,
    version: HttpVersion,
    /// Where its first link leads: a name may have several addresses, and this client keeps to its own.
    home: (String, Endpoint),
    /// The links of the client, and the place of its own among them.
    links: HttpLinks,
    place: usize,
    /// By HTTP/1.1.
    responses: Responses,
    request: Option<Arc<Request>>,
    /// The link that it was sent on.
    sent: Option<usize>,
    /// Bytes of an answer have come.
    is_answered: bool,
    /// How often the request was sent again, because its link was closed before an answer or the server had not begun with it.
    repeats: u32,
    /// It waits for the end of another one: the server takes no more at a time on their link.
    waits_for_stream: bool,
    /// How often it was sent on.
    followed: u32,
    /// The request that a redirect leads to, while the rest of its answer comes.
    next: Option<Arc<Request>>,
    /// Bytes of the body so far.
    body: u64,
    /// Links that were begun since [`Self::take_opened`].
    opened: u64,
    /// Requests that were sent by HTTP/2 since [`Self::take_sent_by_http2`].
    sent_by_http2: u64,
    /// Requests that began to wait for the end of another one since [`Self::take_stream_waits`].
    stream_waits: u64,
    /// What servers have set, for all connections of this client and for no other's: requests are shared, and have none.
    cookies: Rc<RefCell<CookieJar>>,
}

impl HttpConnection {
    /// A connection whose first link is being opened to the server of this request, by this way. What that offers by ALPN is
    /// [`HttpVersion::offered`].
    pub fn new(
        client: u32,
        first: &Request,
        endpoint: Endpoint,
        redirects: Redirects,
        version: HttpVersion,
    ) -> Self {
        let server = first.target().base();
        let links = HttpLinks::default();
        links.borrow_mut()[OWN].begin(server.clone());
        Self {
            client,
            redirects,
            version,
            home: (server, endpoint),
            links,
            place: OWN,
            responses: Responses::new(),
            request: None,
            sent: None,
            is_answered: false,
            repeats: 0,
            waits_for_stream: false,
            followed: 0,
            next: None,
            body: 0,
            opened: 1,
            sent_by_http2: 0,
            stream_waits: 0,
            cookies: Rc::default(),
        }
    }

    /// Another connection of the same client: a stream beside those of the session's own link where HTTP/2 is spoken there, or else
    /// the link beside it, which is opened for its first request.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self {
            client: self.client,
            redirects: self.redirects.clone(),
            version: self.version,
            home: self.home.clone(),
            links: Rc::clone(&self.links),
            place: BESIDE,
            responses: Responses::new(),
            request: None,
            sent: None,
            is_answered: false,
            repeats: 0,
            waits_for_stream: false,
            followed: 0,
            next: None,
            body: 0,
            opened: 0,
            sent_by_http2: 0,
            stream_waits: 0,
            cookies: Rc::clone(&self.cookies),
        }
    }

    /// Gives up what is asked for. What of it has not come is of no use to anybody, so that by HTTP/1.1 its link goes with it.
    pub fn abort(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.give_up(context);
        self.next = None;
        self.end();
    }

    /// The rest of the answer under way is not read.
    fn give_up(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let Some(place) = self.sent else { return };
        let mut links = self.links.borrow_mut();
        if let Some(http2) = &mut links[place].http2 {
            http2.cancel(self.place);
        } else if links[place].phase == LinkPhase::Up {
            drop(links);
            self.drop_link(context);
        }
    }

    /// Whether nothing is asked for: the next request may be made.
    pub fn is_idle(&self) -> bool {
        self.request.is_none()
    }

    /// Whether the link is there that it is, or was last, asked on.
    pub fn is_up(&self) -> bool {
        self.links.borrow()[self.sent.unwrap_or(self.place)].phase == LinkPhase::Up
    }

    /// Whether what is asked for comes on the session's own link.
    pub fn is_on_own_link(&self) -> bool {
        self.sent.unwrap_or(self.place) == OWN
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

    /// Requests that were sent by HTTP/2 since the last call, those of redirects and those that were sent again apart.
    pub fn take_sent_by_http2(&mut self) -> u64 {
        std::mem::take(&mut self.sent_by_http2)
    }

    /// Requests that began to wait since the last call, because the server takes no more at a time on one link
    /// (SETTINGS_MAX_CONCURRENT_STREAMS; RFC 9113, section 5.1.2).
    pub fn take_stream_waits(&mut self) -> u64 {
        std::mem::take(&mut self.stream_waits)
    }

    /// Whether the request that is under way waits so, and was not sent yet.
    pub fn waits_for_stream(&self) -> bool {
        self.waits_for_stream
    }

    /// Whether HTTP/2 is spoken on its link.
    pub fn is_http2(&self) -> bool {
        self.links.borrow()[self.place].http2.is_some()
    }

    /// Asks for something else, when the connection [is idle](Self::is_idle); [`Self::go_on`] sends it.
    pub fn get(&mut self, request: Arc<Request>) {
        (self.followed, self.repeats) = (0, 0);
        self.ask(request);
    }

    fn ask(&mut self, request: Arc<Request>) {
        self.request = Some(request);
        (self.sent, self.is_answered, self.waits_for_stream, self.body) = (None, false, false, 0);
    }

    /// Its link is there, and TLS has settled on this protocol.
    ///
    /// # Errors
    /// HTTP/2 was asked for, and is not spoken.
    pub fn on_connected(&mut self, alpn: Option<&[u8]>) -> Result<(), End> {
        let link = &mut self.links.borrow_mut()[self.place];
        link.phase = LinkPhase::Up;
        let Some(speaks_http2) = speaks_http2(&link.server, self.version, alpn) else {
            let chosen = alpn.map_or("nothing".into(), String::from_utf8_lossy);
            let words = format!(
                "the server does not speak HTTP/2: of what was offered (h2) it chose {chosen} (ALPN)"
            );
            return Err((Failure::TlsFailed, words));
        };
        if speaks_http2 {
            let http2 = Http2Client::new().map_err(|error| (Failure::MalformedInput, error.to_string()))?;
            link.http2 = Some(Box::new(http2));
        }
        Ok(())
    }

    /// A deadline of [`Self::poll_timeout`] has come.
    pub fn handle_timeout(&mut self) {
        self.links.borrow_mut()[self.place].just_ended = false;
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
        self.flush(self.place, planned, context)?;
        let is_spent = {
            let link = &self.links.borrow()[self.place];
            link.is_spent() && !link.is_in_use()
        };
        if is_spent {
            self.drop_link(context);
        }
        let Some(request) = self.request.clone().filter(|_| self.sent.is_none()) else { return Ok(()) };
        let server = request.target().base();
        let other = OWN + BESIDE - self.place;
        // One that has a link of HTTP/1.1 to this server keeps to it.
        let is_alone = self.links.borrow()[self.place].is_http1(&server);
        for place in [self.place, other].into_iter().filter(|_| !is_alone) {
            let sharing = self.links.borrow_mut()[place].sharing(&server, self.version);
            match sharing {
                Sharing::Ready => return self.send_by_http2(place, &request, planned, context),
                Sharing::Wait => return Ok(()),
                Sharing::Full => {
                    self.stream_waits += u64::from(!std::mem::replace(&mut self.waits_for_stream, true));
                    return Ok(());
                }
                Sharing::No => {}
            }
        }
        self.go_on_alone(&request, server, planned, context)
    }

    /// Sends a request as a stream of a link on which HTTP/2 is spoken.
    fn send_by_http2(
        &mut self,
        place: usize,
        request: &Request,
        planned: PlannedStart,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        debug!(target: "http", client = self.client, "sends GET by HTTP/2");
        let with_cookies = self.with_cookies(request, context.now);
        let bytes = with_cookies.as_ref().unwrap_or(request).bytes();
        if let Some(http2) = &mut self.links.borrow_mut()[place].http2 {
            let sent = http2.request(self.place, request.target().scheme.name, bytes);
            sent.map_err(|error| (Failure::MalformedInput, error.to_string()))?;
        }
        (self.sent, self.waits_for_stream) = (Some(place), false);
        self.sent_by_http2 += u64::from(self.followed == 0 && self.repeats == 0);
        self.flush(place, planned, context)
    }

    /// The request with the cookies that are for it, if there are any.
    fn with_cookies(&self, request: &Request, now: Moment) -> Option<Request> {
        let cookies = self.cookies.borrow();
        let pairs = if cookies.is_empty() { Vec::new() } else { cookies.pairs(request.target(), now) };
        (!pairs.is_empty()).then(|| request.with_cookies(&pairs))
    }

    /// Hands a link what HTTP/2 has to send on it.
    fn flush(
        &self,
        place: usize,
        planned: PlannedStart,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let bytes = match &mut self.links.borrow_mut()[place].http2 {
            Some(http2) => http2.output(),
            None => return Ok(()),
        };
        if !bytes.is_empty() {
            self.send(place, &bytes, planned, context);
            let unsent = if place == BESIDE { context.split().1.unsent_side() } else { context.unsent() };
            if unsent > MOST_UNSENT {
                let words = "the server sends frames that want an answer (PING, SETTINGS) and does not read the answers";
                return Err((Failure::MalformedInput, words.to_owned()));
            }
        }
        Ok(())
    }

    fn send(
        &self,
        place: usize,
        bytes: &[u8],
        planned: PlannedStart,
        context: &mut Context<'_, ShardRecorder>,
    ) {
        if place == BESIDE {
            context.send_side(bytes);
        } else {
            context.send(bytes);
        }
        context.world.of(planned).count(SENT, bytes.len() as u64);
    }

    /// Sends a request by HTTP/1.1 on the connection's own link, or opens one.
    fn go_on_alone(
        &mut self,
        request: &Request,
        server: String,
        planned: PlannedStart,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let is_there = self.links.borrow()[self.place].is_http1(&server);
        if is_there && self.responses.may_request() {
            // The path may be a key.
            debug!(target: "http", client = self.client, "sends GET");
            let with_cookies = self.with_cookies(request, context.now);
            let bytes = with_cookies.as_ref().unwrap_or(request).bytes();
            self.send(self.place, bytes, planned, context);
            self.responses.on_request("GET");
            (self.sent, self.waits_for_stream) = (Some(self.place), false);
            return Ok(());
        }
        let Some(place) = self.place_to_open(&server) else { return Ok(()) };
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
        if place == BESIDE {
            context.open_side(&endpoint).map_err(|error| (error.failure, error.words))?;
        } else {
            context.reopen(endpoint);
        }
        self.opened += 1;
        self.responses = Responses::new();
        self.links.borrow_mut()[place].begin(server);
        Ok(())
    }

    /// In whose place a link to this server can be opened now. The connection's own link may still carry what the client's other
    /// connection asks for: a server that ends a link answers first what it has taken (RFC 9113, section 6.8). Then it is the other
    /// place, if that is free, and if HTTP/2 may be spoken there, without which it cannot be shared.
    fn place_to_open(&self, server: &str) -> Option<usize> {
        let links = self.links.borrow();
        let beside = OWN + BESIDE - self.place;
        let (own, other) = (&links[self.place], &links[beside]);
        if own.just_ended || (own.phase == LinkPhase::Opening && own.server == server) {
            return None;
        }
        if !own.is_in_use() {
            return Some(self.place);
        }
        let is_free = match other.phase {
            LinkPhase::Down => !other.just_ended,
            LinkPhase::Opening => false,
            LinkPhase::Up => other.http2.is_some() && !other.is_in_use(),
        };
        (is_free && may_be_http2(server, self.version)).then_some(beside)
    }

    /// When to call [`Self::handle_timeout`] and then [`Self::go_on`], if nothing happens before.
    pub fn poll_timeout(&self, now: Moment) -> Option<Moment> {
        let links = self.links.borrow();
        let (own, other) = (&links[self.place], &links[OWN + BESIDE - self.place]);
        let is_opening =
            |server: &str| own.phase == LinkPhase::Opening || other.is_awaited(server, self.version);
        let asks = |request: &&Arc<Request>| self.sent.is_none() && !is_opening(&request.target().base());
        let waits = self.request.as_ref().filter(asks).is_some();
        let after = if own.just_ended { Duration::ZERO } else { ASK_AGAIN };
        (own.just_ended || waits).then(|| now + after)
    }

    /// Takes what came on its link, where [HTTP/2 is spoken](Self::is_http2), at most
    /// [`http2::MOST_AT_ONCE`](weir_web::http2::MOST_AT_ONCE) bytes: each connection of the client that has asked there then has its
    /// answer from [`Self::take`], of no bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        if let Some(http2) = &mut self.links.borrow_mut()[self.place].http2 {
            http2.take(bytes);
        }
    }

    /// Takes bytes off the front of what a read brought.
    pub fn take<'a>(&mut self, bytes: &mut &'a [u8], context: &mut Context<'_, ShardRecorder>) -> Answer<'a> {
        loop {
            let Some(place) = self.sent else {
                if !bytes.is_empty() {
                    // Some servers say 408 before they close a connection that waits.
                    *bytes = &[];
                    self.drop_link(context);
                }
                return Answer::More;
            };
            match self.receive(place, bytes) {
                AnswerProgress::Piece(piece) => {
                    self.body += piece.len() as u64;
                    if self.next.is_none() {
                        return Answer::Piece(piece);
                    }
                    if self.body > LONGEST_REDIRECT {
                        *bytes = &[];
                        self.give_up(context);
                        self.follow();
                    }
                }
                AnswerProgress::Head(response) => {
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
                AnswerProgress::End => {
                    self.links.borrow_mut()[place].is_used = true;
                    if self.next.is_none() {
                        self.end();
                        return Answer::End;
                    }
                    self.follow();
                }
                AnswerProgress::More => return Answer::More,
                AnswerProgress::Failed(answer) => return answer,
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
        (self.request, self.sent, self.is_answered, self.waits_for_stream) = (None, None, false, false);
    }

    fn drop_link(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let link = &mut self.links.borrow_mut()[self.place];
        (link.phase, link.http2) = (LinkPhase::Down, None);
        if self.place == BESIDE {
            context.close_side();
        } else {
            context.stand_by();
        }
    }
}
