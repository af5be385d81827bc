//! One accepted HTTP connection of a client that loads playlists and segments: one after the other by HTTP/1.1, beside each other
//! by HTTP/2.

mod answer;
mod http2;
mod outcome;
mod peer;

use self::answer::{Answer, Sending, Waiting, words};
use self::http2::{Flow, Http2};
use self::peer::{HlsPeer, RequestOutcome};
use crate::fault::{LinkEnd, LinkFaults, LinkPhase};
use crate::worker::Worker;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Session};
use weir_web::Requests;
use weir_web::http2::{ALPN, PREFACE};

/// How long a peer may take to go when the kernel has taken the last answer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Requests of one peer that are answered before others have their turn.
const ANSWERS_A_TURN: usize = 16;
/// Buffers that one write takes at most.
const BUFFERS: usize = 32;

/// A session of an HTTP connection.
pub(crate) struct HlsSession {
    peer: HlsPeer,
    phase: HlsPhase,
    requests: Requests,
    /// What came while an answer was under way, and is read behind it.
    has_unread: bool,
}

enum HlsPhase {
    /// Has asked for nothing that is not answered.
    Asking,
    /// What it has asked for is not there yet, or held back by a fault.
    Waiting(Box<Waiting>),
    Sending(Box<Sending>),
    /// Any of these, several at a time.
    Http2(Box<Http2>),
    /// Was answered for the last time; is closed then.
    Leaving(Moment),
    /// Is never answered again, because of a fault.
    Silent,
}

impl HlsSession {
    /// The session of a connection that was just accepted.
    pub(crate) fn new(worker: &mut Worker, peer: SocketAddr) -> Self {
        let link = worker.accept();
        let faults = LinkFaults::of(&worker.settings().faults, link);
        Self {
            peer: HlsPeer::new(peer, faults),
            phase: HlsPhase::Asking,
            // Nothing here takes a body.
            requests: Requests::new(0),
            has_unread: false,
        }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        if matches!(self.phase, HlsPhase::Leaving(_) | HlsPhase::Silent) {
            return;
        }
        if self.requests.is_empty()
            && self.peer.faults.answer(LinkPhase::Handshake, None, None, context.world, context.now).is_some()
        {
            self.fall_silent(context);
            return;
        }
        // RFC 9113, section 3.3: who knows that a server speaks HTTP/2 may begin with it, without TLS.
        if matches!(self.phase, HlsPhase::Asking) && self.requests.is_empty() && bytes.starts_with(PREFACE) {
            self.phase = HlsPhase::Http2(Box::new(Http2::new()));
        }
        if matches!(self.phase, HlsPhase::Http2(_)) {
            return self.by_http2(context, |http2, peer, context| http2.read(peer, bytes, context));
        }
        let (mut rest, mut answered) = (bytes, 0);
        while self.peer.cut.is_none() && !rest.is_empty() {
            if matches!(self.phase, HlsPhase::Waiting(_) | HlsPhase::Sending(_)) {
                // Answers go in the order of requests (RFC 9112, section 9.3.2).
                self.has_unread = true;
                context.pause_reading(true);
                return context.give_back(rest);
            }
            if !matches!(self.phase, HlsPhase::Asking) {
                return;
            }
            if answered == ANSWERS_A_TURN {
                return context.give_back(rest);
            }
            answered += 1;
            match self.requests.take(&mut rest) {
                Ok(Some(request)) => match self.peer.ask(&request, context) {
                    RequestOutcome::Answer(answer) => self.send(answer, context),
                    RequestOutcome::Waits(waiting) => {
                        self.phase = HlsPhase::Waiting(waiting);
                        self.go_on(context);
                    }
                    RequestOutcome::Silence => self.fall_silent(context),
                },
                Ok(None) => {}
                Err(bad) => {
                    let status = bad.status();
                    self.send(Answer::status(words(status), status, false, false), context);
                }
            }
        }
    }

    /// Nothing is answered any more, because of a fault, and the link stays.
    fn fall_silent(&mut self, context: &mut Context<'_, Worker>) {
        self.peer.watch_only(|_| false, context);
        self.phase = HlsPhase::Silent;
        context.established();
    }

    /// Hands an event to a connection of HTTP/2, if it is one.
    fn by_http2(
        &mut self,
        context: &mut Context<'_, Worker>,
        event: impl FnOnce(&mut Http2, &mut HlsPeer, &mut Context<'_, Worker>) -> Flow,
    ) {
        let HlsPhase::Http2(http2) = &mut self.phase else { return };
        match event(http2, &mut self.peer, context) {
            Flow::GoesOn => {}
            Flow::Silence => self.fall_silent(context),
            Flow::Over => {
                let leaving = HlsPhase::Leaving(context.now + CLOSE_TIMEOUT);
                if let HlsPhase::Http2(http2) = std::mem::replace(&mut self.phase, leaving) {
                    http2.finish(&mut self.peer, context);
                }
            }
        }
    }

    /// Answers what waits, if it can be answered now.
    fn go_on(&mut self, context: &mut Context<'_, Worker>) {
        let HlsPhase::Waiting(waiting) = &mut self.phase else {
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
        self.phase = HlsPhase::Sending(Box::new(sending));
        self.pump(context);
    }

    /// Sends what the link takes of an answer.
    fn pump(&mut self, context: &mut Context<'_, Worker>) {
        let HlsPhase::Sending(sending) = &mut self.phase else {
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
        self.phase = HlsPhase::Asking;
        self.peer.count_answer(media, context);
        if !keep_alive {
            self.phase = HlsPhase::Leaving(context.now + CLOSE_TIMEOUT);
        }
        if std::mem::take(&mut self.has_unread) {
            context.pause_reading(false);
        }
    }

    /// Sets the one deadline of the session.
    fn arm(&mut self, context: &mut Context<'_, Worker>) {
        let deadline = match &self.phase {
            HlsPhase::Waiting(waiting) => waiting.due(),
            HlsPhase::Sending(sending) => Some(sending.due(context.world.settings().patience.viewer)),
            HlsPhase::Http2(http2) => http2.due(context),
            HlsPhase::Leaving(at) => Some(*at),
            HlsPhase::Asking | HlsPhase::Silent => None,
        };
        context.set_timer([deadline, self.peer.next_cut()].into_iter().flatten().min());
    }

    fn end(&mut self, cut: Option<LinkEnd>, context: &mut Context<'_, Worker>) {
        self.peer.depart(context);
        if let Some(cut) = cut {
            cut.carry_out(context);
        }
    }
}

impl Session<Worker> for HlsSession {
    fn handle_connected(&mut self, context: &mut Context<'_, Worker>) {
        self.peer.faults.begin(context.now);
        if self.peer.faults.answer(LinkPhase::Accept, None, None, context.world, context.now).is_some() {
            self.fall_silent(context);
        } else if context.alpn() == Some(ALPN) {
            self.phase = HlsPhase::Http2(Box::new(Http2::new()));
            // A server's preface waits for nothing (RFC 9113, section 3.4).
            self.by_http2(context, |http2, peer, context| http2.read(peer, &[], context));
        }
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        self.read(bytes, context);
    }

    fn handle_writable(&mut self, context: &mut Context<'_, Worker>) {
        self.pump(context);
    }

    fn handle_woken(&mut self, context: &mut Context<'_, Worker>) {
        self.go_on(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Worker>) {
        if let Some(cut) = self.peer.overdue_cut(context) {
            self.peer.cut = Some(cut);
            return;
        }
        let (now, patience) = (context.now, context.world.settings().patience.viewer);
        match &self.phase {
            HlsPhase::Waiting(_) => self.go_on(context),
            HlsPhase::Http2(_) => {
                self.by_http2(context, Http2::on_timeout);
            }
            HlsPhase::Sending(sending) if now >= sending.due(patience) => {
                self.peer.cut = Some(LinkEnd::Reset);
            }
            HlsPhase::Leaving(at) if now >= *at => self.peer.cut = Some(LinkEnd::Close),
            _ => {}
        }
    }

    fn handle_stop(&mut self, context: &mut Context<'_, Worker>) {
        self.end(Some(LinkEnd::Close), context);
    }

    fn handle_closed(&mut self, _: Failure, _: &str, context: &mut Context<'_, Worker>) {
        self.end(None, context);
    }

    fn after_event(&mut self, context: &mut Context<'_, Worker>) {
        match self.peer.cut.take() {
            Some(cut) => self.end(Some(cut), context),
            None => self.arm(context),
        }
    }
}

#[cfg(test)]
mod tests;
