//! One accepted HTTP connection: a client that makes requests, or a reader of a stream.

use super::answer::{error, stream_head};
use super::api::{self, Resource};
use crate::fault::{LinkEnd, LinkFaults, LinkPhase, ScriptedAnswer, Subject, Why};
use crate::stream::View;
use crate::tuner;
use crate::viewer::{Standing, Viewer, Watcher};
use crate::worker::Worker;
use std::net::SocketAddr;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Session};
use weir_web::{LAST_CHUNK, Message, Request, Requests};

/// Bytes of answers that may wait for a peer that does not read.
const UNSENT_LIMIT: usize = 256 * 1024;
/// Requests of one peer that are answered before others have their turn.
const ANSWERS_A_TURN: usize = 16;
/// How long a peer may take to go when the kernel has taken the last answer.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A session of an HTTP connection.
pub(crate) struct HttpSession {
    peer: SocketAddr,
    faults: LinkFaults,
    phase: HttpPhase,
    requests: Requests,
    /// Bytes sent before the peer became a reader.
    said: u64,
    /// The end of the connection, if it is decided.
    cut: Option<LinkEnd>,
}

enum HttpPhase {
    /// Has asked for nothing that is not answered.
    Asking,
    Playing(Box<Playing>),
    /// Was answered for the last time; is closed then.
    Leaving(Moment),
    /// Is never answered again, because of a fault.
    Silent,
}

struct Playing {
    viewer: Viewer,
    station: usize,
    chunked: bool,
}

impl HttpSession {
    /// The session of a connection that was just accepted.
    pub(crate) fn new(worker: &mut Worker, peer: SocketAddr) -> Self {
        let link = worker.accept();
        Self {
            peer,
            faults: LinkFaults::of(&worker.settings().faults, link),
            phase: HttpPhase::Asking,
            // Nothing here takes a body.
            requests: Requests::new(0),
            said: 0,
            cut: None,
        }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        // A client that reads a stream or leaves sends nothing that matters.
        if !matches!(self.phase, HttpPhase::Asking) {
            return;
        }
        if self.requests.is_empty() && self.fault(LinkPhase::Handshake, None, None, context).is_some() {
            self.fall_silent(context);
            return;
        }
        let (mut rest, mut answered) = (bytes, 0);
        while matches!(self.phase, HttpPhase::Asking) && self.cut.is_none() && !rest.is_empty() {
            if answered == ANSWERS_A_TURN {
                return context.give_back(rest);
            }
            answered += 1;
            match self.requests.take(&mut rest) {
                Ok(Some(request)) => self.answer(&request, context),
                Ok(None) => {}
                Err(bad) => self.respond(error(bad.status(), None), false, false, context),
            }
        }
    }

    /// Nothing is answered any more, because of a fault, and the link stays.
    fn fall_silent(&mut self, context: &mut Context<'_, Worker>) {
        self.phase = HttpPhase::Silent;
        context.established();
    }

    fn answer(&mut self, request: &Request, context: &mut Context<'_, Worker>) {
        if let Some(answer) = self.fault(LinkPhase::Connect, None, request.basic().as_deref(), context) {
            return self.refuse(answer, request, context);
        }
        let settings = context.world.settings().clone();
        let found = match &settings.tuners {
            _ if !matches!(&*request.method, "GET" | "HEAD") => {
                Resource::Answer(error(405, None).field("Allow", "GET, HEAD"))
            }
            Some(tuners) => api::find(tuners, request),
            None => Resource::Answer(error(404, None)),
        };
        match found {
            Resource::Answer(answer) => self.reply(answer, request, context),
            Resource::Stream(station) => self.play(station, request, context),
        }
    }

    fn play(&mut self, station: usize, request: &Request, context: &mut Context<'_, Worker>) {
        let settings = context.world.settings().clone();
        let Some(tuners) = &settings.tuners else { return };
        let chunked = request.modern && request.asks("chunked").map_or(tuners.chunked, |said| said != "0");
        let head = stream_head(&self.peer.to_string(), chunked);
        if request.method == "HEAD" {
            self.said += head.len() as u64;
            context.send(&head);
            return self.after_answer(request.keep_alive && chunked, context);
        }
        let number = settings.next_viewer();
        let (who, offered) = (Some(Subject::Viewer(number)), request.basic());
        if let Some(answer) = self.fault(LinkPhase::Play, who, offered.as_deref(), context) {
            return self.refuse(answer, request, context);
        }
        self.said += head.len() as u64;
        context.send(&head);
        tuner::attend(station, context.world, context.now);
        let view = if chunked { View::Framed } else { View::Bare };
        let watcher = Watcher::Viewer { number, peer: self.peer, said: self.said, view };
        let name = &tuners.stations[station].name;
        let viewer = Viewer::join(
            &watcher,
            name,
            None,
            || Box::new(|packet, by| Some(tuner::remake(packet, by))),
            context,
        );
        self.phase = HttpPhase::Playing(Box::new(Playing { viewer, station, chunked }));
        context.established();
        self.pump(context);
    }

    /// Answers a request as a fault wants it.
    fn refuse(&mut self, answer: ScriptedAnswer, request: &Request, context: &mut Context<'_, Worker>) {
        match answer {
            ScriptedAnswer::Nothing => self.fall_silent(context),
            ScriptedAnswer::Refusal { why, code, words } => {
                let usual = match why {
                    Why::Unauthorized { .. } => 401,
                    Why::Rejected => 503,
                    Why::Moved { .. } => 302,
                };
                let status = code.and_then(|code| code.parse().ok()).unwrap_or(usual);
                let answer = error(status, words.as_deref());
                let answer = match why {
                    Why::Unauthorized { .. } => answer.field("WWW-Authenticate", "Basic realm=\"weir\""),
                    Why::Moved { to } => answer.field("Location", to),
                    Why::Rejected => answer,
                };
                self.reply(answer, request, context);
            }
        }
    }

    fn reply(&mut self, answer: Message, request: &Request, context: &mut Context<'_, Worker>) {
        self.respond(answer, request.method == "HEAD", request.keep_alive, context);
    }

    fn respond(
        &mut self,
        answer: Message,
        head_only: bool,
        keep_alive: bool,
        context: &mut Context<'_, Worker>,
    ) {
        let answer = answer.keep_alive(keep_alive);
        let bytes = if head_only { answer.end_of_head() } else { answer.end() };
        self.said += bytes.len() as u64;
        context.send(&bytes);
        self.after_answer(keep_alive, context);
    }

    fn after_answer(&mut self, keep_alive: bool, context: &mut Context<'_, Worker>) {
        context.answered();
        self.phase =
            if keep_alive { HttpPhase::Asking } else { HttpPhase::Leaving(context.now + CLOSE_TIMEOUT) };
        if context.unsent() > UNSENT_LIMIT {
            self.cut = Some(LinkEnd::Close);
        }
    }

    /// Sends a reader what waits for it.
    fn pump(&mut self, context: &mut Context<'_, Worker>) {
        let HttpPhase::Playing(playing) = &mut self.phase else { return };
        match playing.viewer.pump(context) {
            Standing::Same | Standing::Begun => {}
            Standing::Ended if playing.chunked => {
                playing.viewer.send(LAST_CHUNK, context);
                context.answered();
                self.leave(context);
                self.phase = HttpPhase::Leaving(context.now + CLOSE_TIMEOUT);
            }
            Standing::Ended => self.cut = Some(LinkEnd::Close),
            Standing::LinkEnd(cut) => self.cut = Some(cut),
            Standing::Stuck => self.cut = Some(LinkEnd::Reset),
        }
    }

    /// Sets the one deadline of the session.
    fn arm(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        let deadline = match &mut self.phase {
            HttpPhase::Playing(playing) => playing.viewer.deadline(context.world, now),
            HttpPhase::Leaving(at) => Some(*at),
            HttpPhase::Asking | HttpPhase::Silent => None,
        };
        context.set_timer([deadline, self.faults.next_cut()].into_iter().flatten().min());
    }

    fn fault(
        &mut self,
        phase: LinkPhase,
        who: Option<Subject>,
        offered: Option<&str>,
        context: &mut Context<'_, Worker>,
    ) -> Option<ScriptedAnswer> {
        self.faults.answer(phase, who, offered, context.world, context.now)
    }

    /// Takes the peer off its stream.
    fn leave(&mut self, context: &mut Context<'_, Worker>) {
        match std::mem::replace(&mut self.phase, HttpPhase::Asking) {
            HttpPhase::Playing(playing) => {
                playing.viewer.leave(context);
                tuner::leave(playing.station, context.world);
            }
            other => self.phase = other,
        }
    }

    fn end(&mut self, cut: Option<LinkEnd>, context: &mut Context<'_, Worker>) {
        self.leave(context);
        if let Some(cut) = cut {
            cut.carry_out(context);
        }
    }
}

impl Session<Worker> for HttpSession {
    fn handle_connected(&mut self, context: &mut Context<'_, Worker>) {
        self.faults.begin(context.now);
        if self.fault(LinkPhase::Accept, None, None, context).is_some() {
            self.fall_silent(context);
        }
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        self.read(bytes, context);
    }

    fn handle_writable(&mut self, context: &mut Context<'_, Worker>) {
        self.pump(context);
    }

    fn handle_woken(&mut self, context: &mut Context<'_, Worker>) {
        if let HttpPhase::Playing(playing) = &mut self.phase {
            playing.viewer.woken();
        }
        self.pump(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        if let Some(cut) = self.faults.cut(context.world, now) {
            self.cut = Some(cut);
            return;
        }
        match &mut self.phase {
            HttpPhase::Playing(_) => self.pump(context),
            // What a slow reader has not taken would be lost; the shard ends one that takes nothing.
            HttpPhase::Leaving(at) if now >= *at && context.unsent() > 0 => *at = now + CLOSE_TIMEOUT,
            HttpPhase::Leaving(at) if now >= *at => self.cut = Some(LinkEnd::Close),
            HttpPhase::Asking | HttpPhase::Leaving(_) | HttpPhase::Silent => {}
        }
    }

    fn handle_stop(&mut self, context: &mut Context<'_, Worker>) {
        self.end(Some(LinkEnd::Close), context);
    }

    fn handle_closed(&mut self, _: Failure, _: &str, context: &mut Context<'_, Worker>) {
        self.end(None, context);
    }

    fn after_event(&mut self, context: &mut Context<'_, Worker>) {
        match self.cut.take() {
            Some(cut) => self.end(Some(cut), context),
            None => self.arm(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::settings;
    use weir_shard::{Event, Rig};

    #[test]
    fn who_takes_its_last_answer_slowly_is_sent_all_of_it() {
        let mut rig = Rig::new(Worker::new(settings()));
        let mut session = HttpSession::new(&mut rig.world, SocketAddr::from(([127, 0, 0, 1], 50_000)));
        rig.dispatch(&mut session, Event::Connected);
        rig.room = 10;
        rig.dispatch(&mut session, Event::Bytes(b"GET /api/version HTTP/1.1\r\nConnection: close\r\n\r\n"));
        rig.advance(&mut session, 10 * CLOSE_TIMEOUT);
        assert!(!rig.closed, "{} bytes wait", rig.unsent.len());
        rig.make_room(&mut session, 1 << 20);
        assert!(rig.sent.ends_with(b"}"));
        rig.advance(&mut session, CLOSE_TIMEOUT);
        assert!(rig.closed);
    }
}
