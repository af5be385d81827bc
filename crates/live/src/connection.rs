//! One accepted connection: one that makes requests, a tab that receives changes, or one that is about to close.

use crate::encode::Exposition;
use crate::page::{GREETING, STILL_HERE};
use crate::site::Site;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Session};
use weir_web::{Message, Request, Requests};

/// How often a tab without changes receives a sign of life: well below [`crate::listener::IDLE`].
const STILL: Duration = Duration::from_secs(5);
/// How long a peer may take to go when the kernel has taken the last answer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct Connection {
    requests: Requests,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Asking,
    /// A tab; the moment of its next sign of life.
    Tab(Moment),
    /// Has its last answer; the moment at which it is closed.
    Leaving(Moment),
}

impl Connection {
    pub(crate) fn new() -> Self {
        // Nothing here takes a body.
        Self { requests: Requests::new(0), phase: Phase::Asking }
    }

    fn answer(&mut self, request: &Request, context: &mut Context<'_, Site>) {
        let host = request.fields.get("host");
        let answer = if host.is_none() && request.modern {
            // RFC 9112, section 3.2.
            plain(context.world.guarded(400), "HTTP/1.1 has a Host field.\n".to_owned())
        } else if host.is_some_and(|host| !context.world.is_host(host)) {
            let here = context.world.address();
            let words = format!("This is {here}: ask for it by that address.\n");
            plain(context.world.guarded(421), words)
        } else if !matches!(request.method.as_str(), "GET" | "HEAD") {
            plain(
                context.world.guarded(405).field("Allow", "GET, HEAD"),
                "Only GET is answered.\n".to_owned(),
            )
        } else {
            match request.path.as_str() {
                "/metrics" => {
                    let form = Exposition::accepted(request.fields.get("accept").unwrap_or_default());
                    let body = context.world.metrics(form);
                    let head = Message::response(200).field("X-Content-Type-Options", "nosniff");
                    head.field("Content-Type", form.content_type()).body(&*body)
                }
                "/healthz" => plain(Message::response(200), "ok\n".to_owned()),
                path => match context.world.behind_token(path) {
                    Some("") => context.world.shell(),
                    Some("events") if request.method == "GET" => return self.open_tab(request, context),
                    _ => plain(
                        context.world.guarded(404),
                        "Nothing is here: the page has the address that weir printed, and metrics are at /metrics.\n"
                            .to_owned(),
                    ),
                },
            }
        };
        self.reply(answer, request.method == "HEAD", request.keep_alive, context);
    }

    fn reply(&mut self, answer: Message, head_only: bool, keep_alive: bool, context: &mut Context<'_, Site>) {
        let answer = answer.keep_alive(keep_alive);
        context.send(&if head_only { answer.end_of_head() } else { answer.end() });
        context.answered();
        // A client that sends requests without reading is disconnected: only one answer is kept for it.
        let goes_on = keep_alive && context.unsent() == 0;
        if goes_on {
            let id = context.id();
            context.world.answered(id);
        }
        self.phase = if goes_on { Phase::Asking } else { Phase::Leaving(context.now + CLOSE_TIMEOUT) };
    }

    fn open_tab(&mut self, request: &Request, context: &mut Context<'_, Site>) {
        let head = context.world.guarded(200).field("Content-Type", "text/event-stream; charset=utf-8");
        context.send(&head.keep_alive(false).end_of_head());
        context.send(GREETING.as_bytes());
        let seen = request.fields.get("last-event-id").and_then(|id| id.parse().ok());
        let id = context.id();
        if let Some(other) = context.world.open_tab(id, seen) {
            context.wake(other);
        }
        context.established();
        self.phase = Phase::Tab(context.now + STILL);
        self.pump(context);
    }

    /// Sends a tab what it has not seen, once it has taken what it was sent before.
    fn pump(&mut self, context: &mut Context<'_, Site>) {
        let (Phase::Tab(still), 0) = (&mut self.phase, context.unsent()) else { return };
        let id = context.id();
        if let Some(events) = context.world.news(id) {
            context.send(events.as_bytes());
            *still = context.now + STILL;
        }
        if context.world.is_leaving && context.unsent() == 0 {
            context.close();
        }
    }
}

impl Session<Site> for Connection {
    fn handle_connected(&mut self, context: &mut Context<'_, Site>) {
        let id = context.id();
        if let Some(other) = context.world.enter(id) {
            context.wake(other);
        }
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, Site>) {
        let mut rest = bytes;
        // A tab and one that leaves send nothing that matters.
        while matches!(self.phase, Phase::Asking) && !rest.is_empty() {
            match self.requests.take(&mut rest) {
                Ok(Some(request)) => {
                    self.answer(&request, context);
                    // A client that asks for nothing more and was sent all of it is disconnected at once. Unread bytes would make a reset of the
                    // end, and a reset can take the answer away from a peer that has not read it yet.
                    let is_done = !request.keep_alive && rest.is_empty() && context.unread() == 0;
                    if is_done && matches!(self.phase, Phase::Leaving(_)) && context.unsent() == 0 {
                        return context.close();
                    }
                    return context.give_back(rest);
                }
                Ok(None) => {}
                Err(bad) => {
                    self.reply(plain(Message::response(bad.status()), String::new()), false, false, context);
                }
            }
        }
    }

    fn handle_writable(&mut self, context: &mut Context<'_, Site>) {
        self.pump(context);
    }

    fn handle_woken(&mut self, context: &mut Context<'_, Site>) {
        if context.world.condemned.contains(&context.id()) {
            return context.close();
        }
        self.pump(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Site>) {
        let now = context.now;
        match &mut self.phase {
            Phase::Tab(at) if now >= *at => {
                *at = now + STILL;
                if context.unsent() == 0 {
                    context.send(STILL_HERE.as_bytes());
                }
            }
            // What a slow reader has not taken would be lost; the shard ends one that takes nothing.
            Phase::Leaving(at) if now >= *at && context.unsent() > 0 => *at = now + CLOSE_TIMEOUT,
            Phase::Leaving(at) if now >= *at => context.close(),
            Phase::Asking | Phase::Tab(_) | Phase::Leaving(_) => {}
        }
    }

    fn handle_stop(&mut self, context: &mut Context<'_, Site>) {
        context.close();
    }

    fn handle_closed(&mut self, _: Failure, _: &str, context: &mut Context<'_, Site>) {
        let id = context.id();
        context.world.leave(id);
    }

    fn after_event(&mut self, context: &mut Context<'_, Site>) {
        match self.phase {
            Phase::Tab(at) | Phase::Leaving(at) => context.set_timer(at),
            Phase::Asking => context.set_timer(None),
        }
    }
}

fn plain(answer: Message, words: String) -> Message {
    answer.field("Content-Type", "text/plain; charset=utf-8").body(words)
}
