//! What answers an HTTP connection of a client that loads playlists and segments: one after the other by HTTP/1.1, beside each other
//! by HTTP/2.

mod answer;
mod http2;
mod outcome;
mod peer;

use self::answer::{Answer, Sending, Waiting, words};
use self::http2::{Flow, Http2};
use self::peer::{HlsPeer, RequestOutcome};
use crate::fault::{LinkEnd, LinkPhase};
use crate::http::{HttpLink, Responder};
use crate::worker::Worker;
use std::io::IoSlice;
use weir_metrics::Moment;
use weir_shard::Context;
use weir_web::Request;
use weir_web::http2::{ALPN, PREFACE};

/// Buffers that one write takes at most.
const BUFFERS: usize = 32;

/// What answers a client that loads.
pub(crate) struct HlsResponder {
    peer: HlsPeer,
    exchange: Exchange,
    /// What came while an answer was under way, and is read behind it.
    has_unread: bool,
}

/// What is under way on a connection.
enum Exchange {
    /// There is no request that is not answered.
    Idle,
    /// What was asked for is not there yet, or held back by a fault.
    Waiting(Box<Waiting>),
    Sending(Box<Sending>),
    /// Any of these, several at a time.
    Http2(Box<Http2>),
}

impl HlsResponder {
    /// Nothing is answered any more, because of a fault, and the link stays.
    fn fall_silent(&mut self, context: &mut Context<'_, Worker>) {
        self.peer.watch_only(|_| false, context);
        self.exchange = Exchange::Idle;
        self.peer.link.fall_silent(context);
    }

    fn speak_http2(&mut self) {
        self.exchange = Exchange::Http2(Box::new(Http2::new()));
        self.peer.link.take_over();
    }

    /// Hands an event to a connection of HTTP/2, if it is one.
    fn by_http2(
        &mut self,
        context: &mut Context<'_, Worker>,
        event: impl FnOnce(&mut Http2, &mut HlsPeer, &mut Context<'_, Worker>) -> Flow,
    ) {
        let Exchange::Http2(http2) = &mut self.exchange else { return };
        match event(http2, &mut self.peer, context) {
            Flow::GoesOn => {}
            Flow::Silence => self.fall_silent(context),
            Flow::Over => {
                if let Exchange::Http2(http2) = std::mem::replace(&mut self.exchange, Exchange::Idle) {
                    http2.finish(&mut self.peer, context);
                }
                self.peer.link.after_answer(false, context.now);
            }
        }
    }

    /// Answers what waits, if it can be answered now.
    fn go_on(&mut self, context: &mut Context<'_, Worker>) {
        let Exchange::Waiting(waiting) = &mut self.exchange else {
            return self.by_http2(context, Http2::on_woken);
        };
        self.peer.watch_only(|_| false, context);
        if let Some(answer) = self.peer.look(waiting, context) {
            self.send(answer, context);
        }
    }

    fn send(&mut self, answer: Answer, context: &mut Context<'_, Worker>) {
        let Answer { head, body, media, keep_alive } = answer;
        let buffers = [head.into()].into_iter().chain(body).collect();
        let patience = context.world.settings().patience;
        let sending = Sending::new(buffers, media, keep_alive, patience, context.now);
        self.exchange = Exchange::Sending(Box::new(sending));
        self.peer.link.take_over();
        self.pump(context);
    }

    /// Sends what the link takes of an answer.
    fn pump(&mut self, context: &mut Context<'_, Worker>) {
        let Exchange::Sending(sending) = &mut self.exchange else {
            return self.by_http2(context, Http2::on_writable);
        };
        while !sending.is_over() {
            let (number, offset) = sending.sent;
            let mut slices = [IoSlice::new(&[]); BUFFERS];
            let mut asked = 0;
            let left = &sending.buffers[number..];
            for (place, (slice, buffer)) in slices.iter_mut().zip(left).enumerate() {
                let piece = if place == 0 { &buffer[offset..] } else { &buffer[..] };
                *slice = IoSlice::new(piece);
                asked += piece.len();
            }
            let taken = context.write(&slices[..left.len().min(BUFFERS)]);
            self.peer.count_link(taken, context);
            sending.advance(taken);
            if taken < asked {
                if taken > 0 || sending.blocked.is_none() {
                    sending.blocked = Some(context.now);
                }
                return;
            }
        }
        let (media, keep_alive) = (sending.media, sending.keep_alive);
        self.after_answer(media, keep_alive, context);
    }

    fn after_answer(&mut self, media: Option<u64>, keep_alive: bool, context: &mut Context<'_, Worker>) {
        self.exchange = Exchange::Idle;
        self.peer.count_answer(media, context);
        self.peer.link.after_answer(keep_alive, context.now);
        if std::mem::take(&mut self.has_unread) {
            context.pause_reading(false);
        }
    }
}

impl Responder for HlsResponder {
    // Nothing here takes a body.
    const MOST_BODY: usize = 0;
    const ANSWERS_A_TURN: usize = 16;

    fn new(link: HttpLink) -> Self {
        Self { peer: HlsPeer::new(link), exchange: Exchange::Idle, has_unread: false }
    }

    fn link(&mut self) -> &mut HttpLink {
        &mut self.peer.link
    }

    fn handle_connected(&mut self, context: &mut Context<'_, Worker>) {
        if context.alpn() == Some(ALPN) {
            self.speak_http2();
            // A server's preface waits for nothing (RFC 9113, section 3.4).
            self.by_http2(context, |http2, peer, context| http2.read(peer, &[], context));
        }
    }

    fn take(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) -> bool {
        match &self.exchange {
            // Answers go in the order of requests (RFC 9112, section 9.3.2).
            Exchange::Waiting(_) | Exchange::Sending(_) => {
                self.has_unread = true;
                context.pause_reading(true);
                context.give_back(bytes);
                return true;
            }
            // RFC 9113, section 3.3: who knows that a server speaks HTTP/2 may begin with it, without TLS.
            Exchange::Idle if bytes.starts_with(PREFACE) => self.speak_http2(),
            Exchange::Idle => return false,
            Exchange::Http2(_) => {}
        }
        if self.peer.link.fault(LinkPhase::Handshake, None, None, context).is_some() {
            self.fall_silent(context);
        } else {
            self.by_http2(context, |http2, peer, context| http2.read(peer, bytes, context));
        }
        true
    }

    fn answer(&mut self, request: &Request, context: &mut Context<'_, Worker>) {
        match self.peer.ask(request, context) {
            RequestOutcome::Answer(answer) => self.send(answer, context),
            RequestOutcome::Waits(waiting) => {
                self.exchange = Exchange::Waiting(waiting);
                self.peer.link.take_over();
                self.go_on(context);
            }
            RequestOutcome::Silence => self.fall_silent(context),
        }
    }

    fn answer_bad_request(&mut self, status: u16, context: &mut Context<'_, Worker>) {
        self.send(Answer::status(words(status), status, false, false), context);
    }

    fn handle_writable(&mut self, context: &mut Context<'_, Worker>) {
        self.pump(context);
    }

    fn handle_woken(&mut self, context: &mut Context<'_, Worker>) {
        self.go_on(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Worker>) {
        if let Some(cut) = self.peer.overdue_cut(context) {
            self.peer.link.end(cut);
            return;
        }
        let (now, patience) = (context.now, context.world.settings().patience.viewer);
        match &self.exchange {
            Exchange::Waiting(_) => self.go_on(context),
            Exchange::Http2(_) => self.by_http2(context, Http2::on_timeout),
            Exchange::Sending(sending) if now >= sending.due(patience) => {
                self.peer.link.end(LinkEnd::Reset);
            }
            Exchange::Sending(_) | Exchange::Idle => {}
        }
    }

    fn deadline(&mut self, context: &mut Context<'_, Worker>) -> Option<Moment> {
        let due = match &self.exchange {
            Exchange::Waiting(waiting) => waiting.due(),
            Exchange::Sending(sending) => Some(sending.due(context.world.settings().patience.viewer)),
            Exchange::Http2(http2) => http2.due(context),
            Exchange::Idle => None,
        };
        [due, self.peer.next_cut()].into_iter().flatten().min()
    }

    fn leave(&mut self, context: &mut Context<'_, Worker>) {
        self.peer.depart(context);
    }
}

#[cfg(test)]
mod tests;
