//! A connection of HTTP/2 (RFC 9113): each request is a stream of its own, and one that waits holds up no other.

use super::answer::{Answer, Sending, Waiting};
use super::peer::{HlsPeer, RequestOutcome};
use crate::fault::LinkEnd;
use crate::worker::Worker;
use bytes::Bytes;
use std::io::IoSlice;
use weir_metrics::Moment;
use weir_shard::Context;
use weir_web::Request;
use weir_web::http2::{Http2Server, MOST_AT_ONCE};

/// Requests of one peer that are answered before others have their turn.
const ANSWERS_A_TURN: u64 = 16;
/// Bytes that wait for a link that takes none, before nothing more is read or sent.
const MOST_OUTPUT: usize = 64 << 10;
/// Bytes of all answers under way with which another request is refused, to be sent again: two segments of 4 s at 30 Mbit/s. A peer
/// that takes nothing keeps segments in memory with them that the playlist names no longer.
const MOST_UNDER_WAY: usize = 32 << 20;
/// Requests that a peer may give up beside as many as were answered to it. What asks and gives up without end (CVE-2023-44487) is cut
/// off; a player gives up a few requests when it seeks or changes the variant.
const MOST_GIVEN_UP: u64 = 200;

/// Codes of RFC 9113, section 7.
const REFUSED_STREAM: u32 = 7;
const CANCEL: u32 = 8;
const ENHANCE_YOUR_CALM: u32 = 11;

/// A connection.
pub(super) struct Http2 {
    server: Http2Server,
    exchanges: Vec<(u32, Exchange)>,
    /// Bytes for the link, how many of them it has taken, and since when it takes none.
    output: Vec<u8>,
    taken: usize,
    blocked: Option<Moment>,
    /// What came while more was not to be read.
    has_unread: bool,
    /// Requests: all, those that were answered, those that the peer has given up.
    asked: u64,
    answered: u64,
    given_up: u64,
}

enum Exchange {
    /// What was asked for is not there yet, or held back by a fault.
    Waiting(Box<Waiting>),
    Sending(Box<Sending>),
}

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    GoesOn,
    /// Nothing is answered any more, because of a fault.
    Silence,
    /// It was ended, by a peer that keeps to RFC 9113 or over one that does not.
    Over,
}

impl Http2 {
    pub(super) fn new() -> Self {
        Self {
            server: Http2Server::holding(MOST_OUTPUT),
            exchanges: Vec::new(),
            output: Vec::new(),
            taken: 0,
            blocked: None,
            has_unread: false,
            asked: 0,
            answered: 0,
            given_up: 0,
        }
    }

    /// Takes what came: nothing at first, which has the settings sent.
    pub(super) fn read(
        &mut self,
        peer: &mut HlsPeer,
        bytes: &[u8],
        context: &mut Context<'_, Worker>,
    ) -> Flow {
        let mut rest = bytes;
        let before = self.asked;
        loop {
            if self.is_behind() {
                self.has_unread = true;
                context.pause_reading(true);
                context.give_back(rest);
                return Flow::GoesOn;
            }
            if self.asked - before >= ANSWERS_A_TURN {
                context.give_back(rest);
                return Flow::GoesOn;
            }
            let (piece, behind) = rest.split_at(rest.len().min(MOST_AT_ONCE));
            rest = behind;
            self.server.take(piece);
            let flow = self.go_on(peer, context);
            if flow != Flow::GoesOn || rest.is_empty() || peer.link.has_ended() {
                return flow;
            }
        }
    }

    /// The link takes bytes again.
    pub(super) fn on_writable(&mut self, peer: &mut HlsPeer, context: &mut Context<'_, Worker>) -> Flow {
        self.pump(peer, context);
        self.go_on(peer, context)
    }

    /// There is something new of a stream, or a moment that was waited for.
    pub(super) fn on_woken(&mut self, peer: &mut HlsPeer, context: &mut Context<'_, Worker>) -> Flow {
        peer.watch_only(|_| false, context);
        for (key, exchange) in std::mem::take(&mut self.exchanges) {
            match exchange {
                Exchange::Waiting(mut waiting) => match peer.look(&mut waiting, context) {
                    Some(answer) => self.send(key, answer, peer, context),
                    None => self.exchanges.push((key, Exchange::Waiting(waiting))),
                },
                sending @ Exchange::Sending(_) => self.exchanges.push((key, sending)),
            }
        }
        self.go_on(peer, context)
    }

    /// A deadline has passed, perhaps of one stream alone.
    pub(super) fn on_timeout(&mut self, peer: &mut HlsPeer, context: &mut Context<'_, Worker>) -> Flow {
        let (now, patience) = (context.now, context.world.settings().patience.viewer);
        if self.blocked.is_some_and(|since| now >= since + patience) {
            peer.link.end(LinkEnd::Reset);
            return Flow::GoesOn;
        }
        let is_late = |(_, exchange): &mut (u32, Exchange)| match exchange {
            Exchange::Sending(sending) => now >= sending.due(patience),
            Exchange::Waiting(_) => false,
        };
        for (key, _) in self.exchanges.extract_if(.., is_late) {
            self.server.reset(key, CANCEL);
        }
        self.on_woken(peer, context)
    }

    /// When [`Self::on_timeout`] is to be called.
    pub(super) fn due(&self, context: &Context<'_, Worker>) -> Option<Moment> {
        let patience = context.world.settings().patience.viewer;
        let exchanges = self.exchanges.iter().filter_map(|(_, exchange)| match exchange {
            Exchange::Waiting(waiting) => waiting.due(),
            Exchange::Sending(sending) => Some(sending.due(patience)),
        });
        exchanges.chain(self.blocked.map(|since| since + patience)).min()
    }

    /// Leaves what is still to be sent to the link, and nothing else: the connection is over.
    pub(super) fn finish(mut self, peer: &mut HlsPeer, context: &mut Context<'_, Worker>) {
        self.output.drain(..self.taken);
        self.output.append(&mut self.server.output());
        peer.count_link(self.output.len(), context);
        context.send(&self.output);
        peer.watch_only(|_| false, context);
    }

    /// Whether nothing more is to be read now.
    fn is_behind(&self) -> bool {
        self.blocked.is_some() || self.server.is_behind()
    }

    /// Answers what was asked, and sends what is to be sent.
    fn go_on(&mut self, peer: &mut HlsPeer, context: &mut Context<'_, Worker>) -> Flow {
        loop {
            let before = self.asked;
            loop {
                if peer.link.has_ended() {
                    return Flow::GoesOn;
                }
                match self.server.poll_request() {
                    Ok(None) => break,
                    Err(_) => return Flow::Over,
                    Ok(Some((key, request))) => {
                        self.asked += 1;
                        if self.answer(key, &request, peer, context) == Flow::Silence {
                            return Flow::Silence;
                        }
                    }
                }
            }
            self.forget_given_up(peer, context);
            // What the link has taken may have made room for more to be read.
            self.pump(peer, context);
            if self.asked == before {
                break;
            }
        }
        if self.given_up > self.answered + MOST_GIVEN_UP {
            self.server.end(Some(ENHANCE_YOUR_CALM));
        }
        if self.server.is_over() {
            return Flow::Over;
        }
        if !self.is_behind() && std::mem::take(&mut self.has_unread) {
            context.pause_reading(false);
        }
        Flow::GoesOn
    }

    fn answer(
        &mut self,
        key: u32,
        request: &Request,
        peer: &mut HlsPeer,
        context: &mut Context<'_, Worker>,
    ) -> Flow {
        let under_way = self.exchanges.iter().map(|(_, exchange)| match exchange {
            Exchange::Sending(sending) => sending.left(),
            Exchange::Waiting(_) => 0,
        });
        if under_way.sum::<usize>() > MOST_UNDER_WAY {
            // RFC 9113, section 8.7: such a request "can be safely retried".
            self.server.reset(key, REFUSED_STREAM);
            return Flow::GoesOn;
        }
        match peer.ask(request, context) {
            RequestOutcome::Answer(answer) => self.send(key, answer, peer, context),
            RequestOutcome::Waits(mut waiting) => match peer.look(&mut waiting, context) {
                Some(answer) => self.send(key, answer, peer, context),
                None => self.exchanges.push((key, Exchange::Waiting(waiting))),
            },
            RequestOutcome::Silence => return Flow::Silence,
        }
        Flow::GoesOn
    }

    /// Sends the head of an answer; its body follows as windows and the link allow.
    fn send(&mut self, key: u32, answer: Answer, peer: &mut HlsPeer, context: &mut Context<'_, Worker>) {
        let Answer { head, body, media, keep_alive } = answer;
        let ends = body.is_empty();
        // A peer that has given up the request is told nothing.
        if self.server.answer(key, &head, ends).is_err() {
            return;
        }
        if ends {
            self.answered += 1;
            return peer.count_answer(media, context);
        }
        let patience = context.world.settings().patience;
        let sending = Sending::new(body, media, keep_alive, patience, context.now);
        self.exchanges.push((key, Exchange::Sending(Box::new(sending))));
    }

    /// Sends what windows and the link take.
    fn pump(&mut self, peer: &mut HlsPeer, context: &mut Context<'_, Worker>) {
        loop {
            let before = self.exchanges.len();
            let mut has_moved = false;
            let (server, answered) = (&mut self.server, &mut self.answered);
            self.exchanges.retain_mut(|(key, exchange)| {
                let Exchange::Sending(sending) = exchange else { return true };
                let Some(taken) = send_some(server, *key, sending) else { return false };
                has_moved |= taken > 0;
                if taken > 0 || sending.blocked.is_none() {
                    sending.blocked = Some(context.now);
                }
                if sending.is_over() {
                    *answered += 1;
                    peer.count_answer(sending.media, context);
                }
                !sending.is_over()
            });
            has_moved |= self.exchanges.len() < before;
            if !self.flush(peer, context) || !has_moved {
                return;
            }
        }
    }

    /// Gives the link what it takes. Whether that is all that there is.
    fn flush(&mut self, peer: &mut HlsPeer, context: &mut Context<'_, Worker>) -> bool {
        loop {
            if self.taken == self.output.len() {
                self.server.advance();
                (self.output, self.taken) = (self.server.output(), 0);
            }
            if self.output.is_empty() {
                self.blocked = None;
                return true;
            }
            let left = &self.output[self.taken..];
            let taken = context.write(&[IoSlice::new(left)]);
            let is_short = taken < left.len();
            self.taken += taken;
            peer.count_link(taken, context);
            if is_short {
                if taken > 0 || self.blocked.is_none() {
                    self.blocked = Some(context.now);
                }
                return false;
            }
        }
    }

    /// Forgets what the peer has given up (RST_STREAM).
    fn forget_given_up(&mut self, peer: &mut HlsPeer, context: &mut Context<'_, Worker>) {
        let keys = self.server.given_up();
        if keys.is_empty() {
            return;
        }
        self.given_up += keys.len() as u64;
        self.exchanges.retain(|(key, _)| !keys.contains(key));
        let exchanges = &self.exchanges;
        let is_awaited = |stream: &_| {
            exchanges.iter().any(
                |(_, exchange)| matches!(exchange, Exchange::Waiting(waiting) if waiting.stream == *stream),
            )
        };
        peer.watch_only(is_awaited, context);
    }
}

/// Hands the library as much of an answer as there is room for. How much that was; `None` if the peer has given it up.
fn send_some(server: &mut Http2Server, key: u32, sending: &mut Sending) -> Option<usize> {
    let mut all = 0;
    while let Some(buffer) = sending.buffers.get(sending.sent.0) {
        let offset = sending.sent.1;
        let room = server.room(key, buffer.len() - offset).ok()?;
        if room == 0 {
            break;
        }
        let piece = Bytes::from_owner(buffer.clone()).slice(offset..offset + room);
        sending.advance(room);
        server.send(key, piece, sending.is_over()).ok()?;
        all += room;
    }
    Some(all)
}
