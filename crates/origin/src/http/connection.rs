//! One accepted HTTP connection: reads requests, hands each to what answers it, and closes behind the last.

use super::refusal::{BASIC, FOUND, HttpRefusal};
use crate::fault::{LinkEnd, LinkFaults, LinkPhase, ScriptedAnswer, Subject};
use crate::worker::Worker;
use std::net::SocketAddr;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Session};
use weir_web::{Request, Requests};

/// Bytes of answers that may wait for a peer that does not read.
pub(crate) const UNSENT_LIMIT: usize = 256 * 1024;
/// How long a peer may take to go when the kernel has taken the last answer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// What answers the requests of a connection.
pub trait Responder: Sized {
    /// Bytes that the body of a request may have.
    const MOST_BODY: usize;
    /// Requests of one peer that are answered before others have their turn.
    const ANSWERS_A_TURN: usize;

    /// What answers the requests of a connection that was just accepted.
    fn new(link: HttpLink) -> Self;

    /// The connection.
    fn link(&mut self) -> &mut HttpLink;

    /// Answers a request, or takes the connection over.
    fn answer(&mut self, request: &Request, context: &mut Context<'_, Worker>);

    /// Answers what is no request with this status, and for the last time.
    fn answer_bad_request(&mut self, status: u16, context: &mut Context<'_, Worker>);

    /// The connection stands, and TLS has agreed on what is spoken.
    fn handle_connected(&mut self, _context: &mut Context<'_, Worker>) {}

    /// Takes bytes that came while the connection was taken over, or where a request would begin; `false` leaves them to be read as
    /// requests.
    fn take(&mut self, _bytes: &[u8], _context: &mut Context<'_, Worker>) -> bool {
        self.link().is_taken_over()
    }

    /// The link takes bytes again.
    fn handle_writable(&mut self, _context: &mut Context<'_, Worker>) {}

    /// There is something new of a stream that is waited for.
    fn handle_woken(&mut self, _context: &mut Context<'_, Worker>) {}

    /// A deadline has passed, perhaps of another.
    fn handle_timeout(&mut self, _context: &mut Context<'_, Worker>) {}

    /// When [`Self::handle_timeout`] has something to do next.
    fn deadline(&mut self, _context: &mut Context<'_, Worker>) -> Option<Moment> {
        None
    }

    /// The connection has ended.
    fn leave(&mut self, _context: &mut Context<'_, Worker>) {}
}

/// A connection, as what answers its requests sees it.
pub struct HttpLink {
    peer: SocketAddr,
    faults: LinkFaults,
    phase: HttpPhase,
    cut: Option<LinkEnd>,
}

enum HttpPhase {
    /// Requests are read.
    Asking,
    /// What answers them takes what comes.
    TakenOver,
    /// Was answered for the last time; is closed then.
    Leaving(Moment),
    /// Is never answered again, because of a fault.
    Silent,
}

impl HttpLink {
    /// Who has connected.
    pub fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// What a fault has the first request of a connection answered with.
    ///
    /// # Errors
    ///
    /// The refusal, or `None` if nothing is to be answered any more. The challenge is for credentials of `Basic` (RFC 7617).
    pub fn admit(
        &mut self,
        request: &Request,
        context: &mut Context<'_, Worker>,
    ) -> Result<(), Option<HttpRefusal>> {
        let offered = request.basic();
        let Some(answer) = self.fault(LinkPhase::Connect, None, offered.as_deref(), context) else {
            return Ok(());
        };
        Err(HttpRefusal::of(answer, BASIC, FOUND))
    }

    /// The connection is closed behind this event, or reset.
    pub fn end(&mut self, end: LinkEnd) {
        self.cut = Some(end);
    }

    /// Whether the end of the connection is decided.
    pub(crate) fn has_ended(&self) -> bool {
        self.cut.is_some()
    }

    /// The scripted answer at a phase, for the link or for `who`, which asks with these credentials.
    pub(crate) fn fault(
        &mut self,
        phase: LinkPhase,
        who: Option<Subject>,
        offered: Option<&str>,
        context: &mut Context<'_, Worker>,
    ) -> Option<ScriptedAnswer> {
        self.faults.answer(phase, who, offered, context.world, context.now)
    }

    /// Nothing is answered any more, because of a fault, and the link stays.
    pub fn fall_silent(&mut self, context: &mut Context<'_, Worker>) {
        self.phase = HttpPhase::Silent;
        context.established();
    }

    /// What comes is not read as requests from here on.
    pub fn take_over(&mut self) {
        self.phase = HttpPhase::TakenOver;
    }

    /// All of an answer is on its way: another request is read, or the connection closed.
    pub fn after_answer(&mut self, keep_alive: bool, now: Moment) {
        self.phase = if keep_alive { HttpPhase::Asking } else { HttpPhase::Leaving(now + CLOSE_TIMEOUT) };
    }

    /// Whether what answers requests takes what comes.
    pub fn is_taken_over(&self) -> bool {
        matches!(self.phase, HttpPhase::TakenOver)
    }

    fn is_asking(&self) -> bool {
        matches!(self.phase, HttpPhase::Asking)
    }
}

/// A session of an HTTP connection.
pub struct HttpConnection<R> {
    responder: R,
    requests: Requests,
}

impl<R: Responder> HttpConnection<R> {
    /// The session of a connection that was just accepted.
    pub fn new(worker: &mut Worker, peer: SocketAddr) -> Self {
        let number = worker.accept();
        let faults = LinkFaults::of(&worker.settings().faults, number);
        let link = HttpLink { peer, faults, phase: HttpPhase::Asking, cut: None };
        Self { responder: R::new(link), requests: Requests::new(R::MOST_BODY) }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        let link = self.responder.link();
        if matches!(link.phase, HttpPhase::Leaving(_) | HttpPhase::Silent) {
            return;
        }
        let begins = self.requests.is_empty();
        if begins && link.is_asking() && link.fault(LinkPhase::Handshake, None, None, context).is_some() {
            return link.fall_silent(context);
        }
        if (begins || link.is_taken_over()) && self.responder.take(bytes, context) {
            return;
        }
        let (mut rest, mut answered) = (bytes, 0);
        while !rest.is_empty() && answered < R::ANSWERS_A_TURN && self.is_asking() {
            match self.requests.take(&mut rest) {
                Ok(Some(request)) => {
                    answered += 1;
                    self.responder.answer(&request, context);
                }
                Ok(None) => {}
                Err(bad) => self.responder.answer_bad_request(bad.status(), context),
            }
        }
        let link = self.responder.link();
        if !rest.is_empty() && (link.is_asking() || link.is_taken_over()) {
            context.give_back(rest);
        }
    }

    /// Whether another request is read.
    fn is_asking(&mut self) -> bool {
        let link = self.responder.link();
        link.is_asking() && link.cut.is_none()
    }

    /// Sets the one deadline of the session.
    fn arm(&mut self, context: &mut Context<'_, Worker>) {
        let deadline = self.responder.deadline(context);
        let link = self.responder.link();
        let leaving = match link.phase {
            HttpPhase::Leaving(at) => Some(at),
            _ => None,
        };
        context.set_timer([deadline, leaving, link.faults.next_cut()].into_iter().flatten().min());
    }

    fn end(&mut self, cut: Option<LinkEnd>, context: &mut Context<'_, Worker>) {
        self.responder.leave(context);
        if let Some(cut) = cut {
            cut.carry_out(context);
        }
    }
}

impl<R: Responder> Session<Worker> for HttpConnection<R> {
    fn handle_connected(&mut self, context: &mut Context<'_, Worker>) {
        let link = self.responder.link();
        link.faults.begin(context.now);
        if link.fault(LinkPhase::Accept, None, None, context).is_some() {
            return link.fall_silent(context);
        }
        self.responder.handle_connected(context);
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        self.read(bytes, context);
    }

    fn handle_writable(&mut self, context: &mut Context<'_, Worker>) {
        self.responder.handle_writable(context);
    }

    fn handle_woken(&mut self, context: &mut Context<'_, Worker>) {
        self.responder.handle_woken(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        let link = self.responder.link();
        if let Some(cut) = link.faults.cut(context.world, now) {
            link.cut = Some(cut);
            return;
        }
        match &mut link.phase {
            // What a slow reader has not taken would be lost; the shard ends one that takes nothing.
            HttpPhase::Leaving(at) if now >= *at && context.unsent() > 0 => *at = now + CLOSE_TIMEOUT,
            HttpPhase::Leaving(at) if now >= *at => link.cut = Some(LinkEnd::Close),
            _ => {}
        }
        self.responder.handle_timeout(context);
    }

    fn handle_stop(&mut self, context: &mut Context<'_, Worker>) {
        self.end(Some(LinkEnd::Close), context);
    }

    fn handle_closed(&mut self, _: Failure, _: &str, context: &mut Context<'_, Worker>) {
        self.end(None, context);
    }

    fn after_event(&mut self, context: &mut Context<'_, Worker>) {
        match self.responder.link().cut.take() {
            Some(cut) => self.end(Some(cut), context),
            None => self.arm(context),
        }
    }
}
