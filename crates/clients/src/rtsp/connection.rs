//! One connection of a client: its dialogue, what comes over it, and the way to where a redirect leads.

use super::figures::{
    ANNOUNCE_TIME, DESCRIBE_TIME, KEEP_ALIVE_TIME, KEEP_ALIVES, LOGINS, OPTIONS_TIME, PLAY_TIME, RECORD_TIME,
    SETUP_TIME,
};
use super::request::Request;
use crate::client_session::End;
use crate::http_request::MOST_REDIRECTS;
use crate::redirect::{Redirect, Redirects};
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use std::sync::Arc;
use std::time::Duration;
use tracing::debug;
use weir_address::shown;
use weir_metrics::common::SENT;
use weir_metrics::{Failure, Moment, Spread};
use weir_rtsp::{Answer, Dialogue, Item, Message, Method, Reader, Response};
use weir_shard::Context;

/// How often to ask whether the place that a redirect leads to has been found.
const ASK_AGAIN: Duration = Duration::from_millis(20);

/// A session is kept alive well before its time is over: in this part of it.
const KEEP_ALIVE_PART: u32 = 2;

/// No more often than this, however short a server's time is.
const SHORTEST_KEEP_ALIVE: Duration = Duration::from_secs(1);

/// How long the rest of a description may take whose announced length has not come: what a camera sends lies in one packet or two.
const BODY_TIMEOUT: Duration = Duration::from_secs(2);

/// A client's side of its connection.
pub(super) struct Connection {
    planned: PlannedStart,
    first: Arc<Request>,
    request: Arc<Request>,
    redirects: Redirects,
    followed: u32,
    pub(super) dialogue: Dialogue,
    /// The link is there.
    is_up: bool,
    /// Another link is to be opened, to where a redirect leads.
    is_next: bool,
    asked_at: Moment,
    pinged_at: Moment,
    keep_alive_at: Option<Moment>,
    /// What has come of a body that is not whole, and until when the rest is waited for.
    body: Option<(usize, Moment)>,
    /// Whether it is known when a response came: the client reads at every event.
    is_exact: bool,
}

impl Connection {
    /// A connection of a client that reads at every event, or not.
    pub(super) fn new(
        planned: PlannedStart,
        request: Arc<Request>,
        redirects: Redirects,
        is_exact: bool,
        now: Moment,
    ) -> Self {
        Self {
            planned,
            dialogue: dialogue(&request, planned, now),
            first: Arc::clone(&request),
            request,
            redirects,
            followed: 0,
            is_up: false,
            is_next: false,
            asked_at: now,
            pinged_at: now,
            keep_alive_at: None,
            body: None,
            is_exact,
        }
    }

    /// Another link is sought, on which it asks as at first.
    pub(super) fn begin_again(&mut self, now: Moment) {
        *self = Self::new(self.planned, Arc::clone(&self.first), self.redirects.clone(), self.is_exact, now);
    }

    /// The link is there: asks what the server can do.
    pub(super) fn connected(&mut self, now: Moment) {
        self.is_up = true;
        let uri = self.request.uri.clone();
        self.ask(Method::Options, &uri, Vec::new(), now);
    }

    /// The link has ended, and the client goes on without: nothing is asked any more.
    pub(super) fn hung_up(&mut self) {
        (self.is_up, self.keep_alive_at, self.body) = (false, None, None);
    }

    pub(super) fn is_up(&self) -> bool {
        self.is_up
    }

    /// The URL that was asked for.
    pub(super) fn uri(&self) -> &str {
        &self.request.uri
    }

    pub(super) fn ask(
        &mut self,
        method: Method,
        uri: &str,
        fields: Vec<(&'static str, String)>,
        now: Moment,
    ) {
        // The URL may be a key.
        debug!(target: "rtsp", client = self.planned.number(), "sends {}", method.name());
        self.asked_at = now;
        self.dialogue.request(method, uri, fields);
    }

    pub(super) fn announce(&mut self, description: String, now: Moment) {
        debug!(target: "rtsp", client = self.planned.number(), "sends ANNOUNCE");
        self.asked_at = now;
        self.dialogue.announce(&self.request.uri.clone(), description);
    }

    /// Takes a response; what it answers, if the client goes on with it. A redirect is followed.
    pub(super) fn on_response(
        &mut self,
        response: Response,
        now: Moment,
        shard: &mut ShardRecorder,
    ) -> Result<Option<(Method, Response)>, End> {
        let recorder = shard.of(self.planned);
        let status = response.status;
        let (method, response) = match self.dialogue.on_response(response) {
            Answer::Of(method, response) => (method, response),
            Answer::Again(_) => {
                recorder.count(LOGINS, 1);
                return Ok(None);
            }
            Answer::Strange => return Ok(None),
        };
        debug!(target: "rtsp", client = self.planned.number(), status, "{} is answered", method.name());
        let is_ping =
            self.keep_alive_at.is_some() && matches!(method, Method::GetParameter | Method::Options);
        let (since, spread) =
            if is_ping { (self.pinged_at, Some(KEEP_ALIVE_TIME)) } else { (self.asked_at, spread(method)) };
        if let Some(spread) = spread.filter(|_| self.is_exact || !is_ping) {
            recorder.record(spread, now.since(since).as_micros() as u64);
        }
        if is_ping {
            return Ok(None);
        }
        if matches!(response.status, 301 | 302 | 303 | 305 | 307 | 308) {
            self.send_on(&response)?;
            return Ok(None);
        }
        Ok(Some((method, response)))
    }

    /// RFC 2326 section 11.3.0: redirects are those of HTTP.
    fn send_on(&mut self, response: &Response) -> Result<(), End> {
        let location = response.fields.get("location");
        let led = if self.followed == MOST_REDIRECTS {
            Err(format!("{MOST_REDIRECTS} redirects in a row came before it"))
        } else {
            self.request.redirected(location)
        };
        let request = led.map_err(|cause| {
            let place = location.map_or_else(|| "nowhere".to_owned(), shown);
            (Failure::RedirectFailed, format!("{} leads to {place}: {cause}", response.said()))
        })?;
        self.request = Arc::new(request);
        self.followed += 1;
        self.is_next = true;
        Ok(())
    }

    /// Answers a request of the server.
    pub(super) fn on_request(&mut self, request: &weir_rtsp::Request) {
        let number = request.fields.get("cseq").unwrap_or("0");
        let known = ["OPTIONS", "GET_PARAMETER", "SET_PARAMETER", "ANNOUNCE"];
        let status = if known.iter().any(|it| *it == request.method) { 200 } else { 501 };
        let answer = Message::response(status, number).end();
        self.dialogue.output().extend(answer);
    }

    /// Whether the response to PLAY is awaited.
    pub(super) fn awaits_play(&self) -> bool {
        self.dialogue.awaits(Method::Play)
    }

    /// Whether what comes on the present link is of no use any more.
    pub(super) fn is_next(&self) -> bool {
        self.is_next
    }

    /// Opens the next link, if there is to be one, as soon as the way is known; whether it did.
    ///
    /// # Errors
    /// There is no way.
    pub(super) fn go_on(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<bool, End> {
        if !self.is_next {
            return Ok(false);
        }
        match self.redirects.find(&self.request.target) {
            Redirect::Sought => {
                context.pause_reading(true);
                Ok(false)
            }
            Redirect::Found(endpoint) => {
                (self.is_next, self.is_up, self.body) = (false, false, None);
                self.dialogue = dialogue(&self.request, self.planned, context.now);
                context.reopen(endpoint);
                Ok(true)
            }
            Redirect::None(cause) => Err((
                Failure::RedirectFailed,
                format!("a redirect leads to {}: {cause}", self.request.target),
            )),
        }
    }

    /// The session has begun: it is to be kept alive from now on.
    pub(super) fn begin_session(&mut self, now: Moment) {
        let timeout = self.dialogue.timeout();
        self.keep_alive_at =
            timeout.map(|timeout| now + (timeout / KEEP_ALIVE_PART).max(SHORTEST_KEEP_ALIVE));
    }

    /// A read has ended. The message that did not come whole, if its time is over.
    pub(super) fn overdue_body(&mut self, reader: &mut Reader, now: Moment) -> Option<Response> {
        let Some(length) = reader.body_so_far() else {
            self.body = None;
            return None;
        };
        match self.body {
            Some((before, until)) if before == length && until <= now => self.body = None,
            Some((before, _)) if before == length => return None,
            // It goes on.
            _ => {
                self.body = Some((length, now + BODY_TIMEOUT));
                return None;
            }
        }
        match reader.give_up_body() {
            Some(Item::Response(response)) => Some(response),
            _ => None,
        }
    }

    /// Keeps the session alive, where it is time to.
    pub(super) fn handle_timeout(&mut self, uri: &str, now: Moment, shard: &mut ShardRecorder) {
        if self.keep_alive_at.is_some_and(|at| at <= now) {
            self.begin_session(now);
            self.pinged_at = now;
            self.dialogue.keep_alive(uri);
            shard.of(self.planned).count(KEEP_ALIVES, 1);
        }
    }

    /// When there is something to do.
    pub(super) fn poll_timeout(&self, now: Moment) -> Option<Moment> {
        let next = self.is_next.then(|| now + ASK_AGAIN);
        [next, self.keep_alive_at, self.body.map(|body| body.1)].into_iter().flatten().min()
    }

    /// Sends what has been said.
    pub(super) fn flush(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let output = self.dialogue.output();
        if !output.is_empty() && self.is_up {
            context.send(output);
            context.world.of(self.planned).count(SENT, output.len() as u64);
            // What is said after the beginning is a few bytes a minute.
            *output = Vec::new();
        }
    }

    /// Ends the session, if there is one.
    pub(super) fn tear_down(&mut self, uri: &str, context: &mut Context<'_, ShardRecorder>) {
        if self.is_up && !self.is_next && self.dialogue.has_session() {
            self.ask(Method::Teardown, uri, Vec::new(), context.now);
            self.flush(context);
        }
    }
}

fn dialogue(request: &Request, planned: PlannedStart, now: Moment) -> Dialogue {
    let random = u64::from(planned.client).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ now.as_nanos();
    Dialogue::new(request.login(), random)
}

fn spread(method: Method) -> Option<Spread> {
    Some(match method {
        Method::Options => OPTIONS_TIME,
        Method::Describe => DESCRIBE_TIME,
        Method::Announce => ANNOUNCE_TIME,
        Method::Setup => SETUP_TIME,
        Method::Play => PLAY_TIME,
        Method::Record => RECORD_TIME,
        Method::Pause | Method::GetParameter | Method::Teardown => return None,
    })
}
