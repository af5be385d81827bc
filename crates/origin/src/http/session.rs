//! One accepted HTTP connection: someone who asks, or a reader of a stream.

use super::answer::{Answer, stream_head};
use super::api::{self, Resource};
use super::request::{BadHead, HEAD_LIMIT, Method, Request};
use crate::fault::{Answer as Decree, Cut, LinkFaults, Phase, Subject, Why};
use crate::stream::View;
use crate::tuner;
use crate::viewer::{Standing, Viewer, Watcher};
use crate::worker::Worker;
use std::net::SocketAddr;
use std::time::Duration;
use weir_metrics::Moment;
use weir_shard::{Context, Event, Session};

/// Bytes of answers that may wait for a peer that does not read.
const UNSENT_LIMIT: usize = 256 * 1024;
/// How long a peer may take to hear the last answer and go.
const FAREWELL: Duration = Duration::from_secs(2);
/// The end of a body in the chunked coding.
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// A session of an HTTP connection.
pub(crate) struct HttpSession {
    peer: SocketAddr,
    link: u64,
    faults: LinkFaults,
    stage: Stage,
    /// What has come of the next request's head.
    inbox: Vec<u8>,
    /// Bytes sent before the peer became a reader.
    said: u64,
    /// The end of the connection, if it is decided.
    cut: Option<Cut>,
}

enum Stage {
    /// Has asked for nothing that is not answered, since then.
    Asking(Moment),
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
    pub(crate) fn new(worker: &mut Worker, peer: SocketAddr, now: Moment) -> Self {
        let link = worker.accept();
        Self {
            peer,
            link,
            faults: LinkFaults::of(&worker.settings().faults, link),
            stage: Stage::Asking(now),
            inbox: Vec::new(),
            said: 0,
            cut: None,
        }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        // Who reads a stream, or is on the way out, has nothing more to say.
        if !matches!(self.stage, Stage::Asking(_)) {
            return;
        }
        if self.inbox.is_empty() && self.fault(Phase::Handshake, None, None, context).is_some() {
            self.stage = Stage::Silent;
            return;
        }
        let mut rest = bytes;
        while !rest.is_empty() && matches!(self.stage, Stage::Asking(_)) && self.cut.is_none() {
            // One head's worth at a time: the inbox is bounded by that, whatever comes.
            let taken = rest.len().min(HEAD_LIMIT - self.inbox.len());
            self.inbox.extend_from_slice(&rest[..taken]);
            rest = &rest[taken..];
            self.hear(context);
        }
    }

    /// Answers the requests that are whole.
    fn hear(&mut self, context: &mut Context<'_, Worker>) {
        while matches!(self.stage, Stage::Asking(_)) && !self.inbox.is_empty() && self.cut.is_none() {
            match Request::parse(&self.inbox) {
                Ok(Some((request, length))) => {
                    self.inbox.drain(..length);
                    self.answer(&request, context);
                }
                Ok(None) => return,
                Err(bad) => {
                    let status = match bad {
                        BadHead::Malformed => 400,
                        BadHead::TooLong => 431,
                        BadHead::Body => 413,
                    };
                    self.say(&Answer::error(status, None), false, false, context);
                }
            }
        }
        self.inbox.shrink_to(0);
    }

    fn answer(&mut self, request: &Request, context: &mut Context<'_, Worker>) {
        if let Some(decree) = self.fault(Phase::Connect, None, request.credentials(), context) {
            return self.refuse(decree, request, context);
        }
        let settings = context.world.settings().clone();
        let found = match &settings.tuners {
            _ if request.method == Method::Other => {
                Resource::Answer(Answer::error(405, None).with("Allow", "GET, HEAD"))
            }
            Some(tuners) => api::find(tuners, request),
            None => Resource::Answer(Answer::error(404, None)),
        };
        match found {
            Resource::Answer(answer) => self.reply(&answer, request, context),
            Resource::Stream(station) => self.play(station, request, context),
        }
    }

    fn play(&mut self, station: usize, request: &Request, context: &mut Context<'_, Worker>) {
        let settings = context.world.settings().clone();
        let Some(tuners) = &settings.tuners else { return };
        let chunked = request.modern && request.asks("chunked").map_or(tuners.chunked, |said| said != "0");
        let head = stream_head(&self.peer.to_string(), chunked);
        if request.method == Method::Head {
            self.said += head.len() as u64;
            context.send(head.as_bytes());
            return self.after_answer(request.keep_alive && chunked, context);
        }
        let number = settings.registry.next_viewer();
        let (who, offered) = (Some(Subject::Viewer(number)), request.credentials());
        if let Some(decree) = self.fault(Phase::Play, who, offered, context) {
            return self.refuse(decree, request, context);
        }
        self.said += head.len() as u64;
        context.send(head.as_bytes());
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
        self.inbox = Vec::new();
        self.stage = Stage::Playing(Box::new(Playing { viewer, station, chunked }));
        self.pump(context);
    }

    /// Answers a request as a fault wants it.
    fn refuse(&mut self, decree: Decree, request: &Request, context: &mut Context<'_, Worker>) {
        match decree {
            Decree::Nothing => self.stage = Stage::Silent,
            Decree::Refusal { why, code, words } => {
                let usual = match why {
                    Why::Unauthorized { .. } => 401,
                    Why::Rejected => 503,
                    Why::Moved { .. } => 302,
                };
                let status = code.and_then(|code| code.parse().ok()).unwrap_or(usual);
                let mut answer = Answer::error(status, words.as_deref());
                answer = match why {
                    Why::Unauthorized { .. } => answer.with("WWW-Authenticate", "Basic realm=\"weir\""),
                    Why::Moved { to } => answer.with("Location", &to),
                    Why::Rejected => answer,
                };
                self.reply(&answer, request, context);
            }
        }
    }

    fn reply(&mut self, answer: &Answer, request: &Request, context: &mut Context<'_, Worker>) {
        self.say(answer, request.method == Method::Head, request.keep_alive, context);
    }

    fn say(&mut self, answer: &Answer, head_only: bool, keep_alive: bool, context: &mut Context<'_, Worker>) {
        let bytes = answer.bytes(head_only, keep_alive);
        self.said += bytes.len() as u64;
        context.send(&bytes);
        self.after_answer(keep_alive, context);
    }

    fn after_answer(&mut self, keep_alive: bool, context: &mut Context<'_, Worker>) {
        self.stage = if keep_alive {
            Stage::Asking(context.now)
        } else {
            self.inbox = Vec::new();
            Stage::Leaving(context.now + FAREWELL)
        };
        if context.unsent() > UNSENT_LIMIT {
            self.cut = Some(Cut::Close);
        }
    }

    /// Sends a reader what waits for it.
    fn pump(&mut self, context: &mut Context<'_, Worker>) {
        let Stage::Playing(playing) = &mut self.stage else { return };
        match playing.viewer.pump(context) {
            Standing::Same | Standing::Begun => {}
            Standing::Ended if playing.chunked => {
                playing.viewer.say(LAST_CHUNK, context);
                self.leave(context);
                self.stage = Stage::Leaving(context.now + FAREWELL);
            }
            Standing::Ended => self.cut = Some(Cut::Close),
            Standing::Cut(cut) => self.cut = Some(cut),
            Standing::Stuck => self.cut = Some(Cut::Reset),
        }
    }

    fn time(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        if let Some(cut) = self.faults.cut(context.world, now) {
            self.cut = Some(cut);
            return;
        }
        match &self.stage {
            Stage::Playing(_) => self.pump(context),
            Stage::Leaving(at) if now >= *at => self.cut = Some(Cut::Close),
            Stage::Asking(since) if now >= *since + context.world.settings().patience.request => {
                self.cut = Some(Cut::Close);
            }
            Stage::Asking(_) | Stage::Leaving(_) | Stage::Silent => {}
        }
    }

    /// Sets the one deadline of the session.
    fn arm(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        let deadline = match &mut self.stage {
            Stage::Asking(since) => Some(*since + context.world.settings().patience.request),
            Stage::Playing(playing) => playing.viewer.deadline(context.world, now),
            Stage::Leaving(at) => Some(*at),
            Stage::Silent => None,
        };
        match [deadline, self.faults.next_cut()].into_iter().flatten().min() {
            Some(at) => context.set_timer(at),
            None => context.clear_timer(),
        }
    }

    fn fault(
        &mut self,
        phase: Phase,
        who: Option<Subject>,
        offered: Option<&str>,
        context: &mut Context<'_, Worker>,
    ) -> Option<Decree> {
        self.faults.answer(phase, who, offered, context.world, context.now)
    }

    /// Takes the peer off its stream.
    fn leave(&mut self, context: &mut Context<'_, Worker>) {
        match std::mem::replace(&mut self.stage, Stage::Asking(context.now)) {
            Stage::Playing(playing) => {
                playing.viewer.leave(context);
                tuner::leave(playing.station, context.world);
            }
            other => self.stage = other,
        }
    }

    fn end(&mut self, cut: Option<Cut>, context: &mut Context<'_, Worker>) {
        self.leave(context);
        match cut {
            Some(Cut::Reset) => context.reset(),
            Some(Cut::Close) => context.close(),
            None => {}
        }
    }
}

impl Session<Worker> for HttpSession {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Worker>) {
        match event {
            Event::Opening | Event::Datagrams(_) | Event::Side(_) | Event::HungUp { .. } => {}
            Event::Connected => {
                self.faults.begin(context.now);
                if self.fault(Phase::Accept, None, None, context).is_some() {
                    self.stage = Stage::Silent;
                }
            }
            Event::Bytes(bytes) => self.read(bytes, context),
            Event::Writable => self.pump(context),
            Event::Woken => {
                if let Stage::Playing(playing) = &mut self.stage {
                    playing.viewer.woken();
                }
                self.pump(context);
            }
            Event::Timer => self.time(context),
            Event::Stop => return self.end(Some(Cut::Close), context),
            Event::Closed { .. } => return self.end(None, context),
        }
        match self.cut.take() {
            Some(cut) => self.end(Some(cut), context),
            None => self.arm(context),
        }
    }
}

impl std::fmt::Debug for HttpSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpSession").field("link", &self.link).finish_non_exhaustive()
    }
}
