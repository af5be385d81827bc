//! One accepted RTSP connection: a viewer, a publisher, or a client that has not said yet which.

mod requests;
#[cfg(test)]
mod tests;

use super::counts::RtspCounts;
use super::datagrams::DatagramRoutes;
use super::framer::Framer;
use super::intake::PublishedTracks;
use super::presentation::Presentation;
use crate::fault::{LinkEnd, LinkFaults, LinkPhase, ScriptedAnswer, Subject, Why};
use crate::publisher::Publisher;
use crate::viewer::{Standing, Viewer};
use crate::worker::{StreamKey, Worker};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_rtsp::{Item, Lower, Message, Reader, Request};
use weir_shard::{Context, Datagrams, Incoming, Session};
use weir_web::credentials;

/// Bytes of the dialogue that may wait for a peer that does not read.
const UNSENT_LIMIT: usize = 256 * 1024;
/// Bytes of a stream's name.
const NAME_LIMIT: usize = 1_024;
/// How long a refused peer may take to receive the refusal and close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// How many interleaved packets of one peer are read before others have their turn.
const PACKETS_A_TURN: usize = 1_024;
/// What a session may be without a request, as it is told to clients.
const SESSION_TIMEOUT: Duration = Duration::from_secs(60);
/// What can be asked for.
const METHODS: &str =
    "OPTIONS, DESCRIBE, ANNOUNCE, SETUP, PLAY, PAUSE, RECORD, GET_PARAMETER, SET_PARAMETER, TEARDOWN";
/// How often a publisher is told what came of it (RFC 3550 section 6.2: five seconds at the least).
const REPORT: Duration = Duration::from_secs(5);

/// A session of an RTSP connection.
pub(crate) struct RtspSession {
    reader: Reader,
    handler: Handler,
}

/// The part of a session that decides.
struct Handler {
    peer: SocketAddr,
    faults: LinkFaults,
    phase: RtspPhase,
    /// The session's number, and the source of its first packets.
    number: u32,
    /// Whether a session was begun, by SETUP.
    has_session: bool,
    /// What carries the tracks that were set up: all of them the same.
    lower: Option<Lower>,
    /// The session's ports, once a track was to be carried by datagrams.
    routes: Option<Rc<RefCell<DatagramRoutes>>>,
    /// Bytes sent before the peer became a viewer.
    said: u64,
    /// The viewer's number, once it has asked for a stream.
    viewer: Option<u64>,
    cut: Option<LinkEnd>,
}

enum RtspPhase {
    /// The TCP connection is there, nothing was read.
    Accepted,
    /// Has asked for nothing yet.
    Asking,
    /// Has asked for a description of a stream that has none yet.
    Waiting {
        request: Box<Request>,
        key: StreamKey,
    },
    /// Sets up the tracks of a stream.
    Choosing {
        name: Arc<str>,
        presentation: Box<Presentation>,
        channels: Vec<Option<(u8, u8)>>,
    },
    Playing {
        viewer: Box<Viewer>,
        framer: Rc<RefCell<Framer>>,
    },
    /// Has a stream, and is sent nothing of it until it asks to play again.
    Paused {
        viewer: Box<Viewer>,
        framer: Rc<RefCell<Framer>>,
    },
    /// Sets up the tracks that it has announced.
    Announcing {
        name: Arc<str>,
        tracks: Box<PublishedTracks>,
    },
    Publishing(Box<Publishing>),
    /// Was refused, or has ended; is closed then.
    Leaving(Moment),
    /// Is never answered again, because of a fault.
    Silent,
}

struct Publishing {
    publisher: Publisher,
    tracks: Box<PublishedTracks>,
    /// When a publisher that is read slowly may be read from again.
    resume: Option<Moment>,
    /// Up to when its rate is used up.
    used: Moment,
    /// When it is told next what came of it.
    report_at: Moment,
}

impl RtspSession {
    /// The session of a connection that was just accepted.
    pub(crate) fn new(worker: &mut Worker, peer: SocketAddr) -> Self {
        let link = worker.accept();
        Self {
            reader: Reader::new(),
            handler: Handler {
                peer,
                faults: LinkFaults::of(&worker.settings().faults, link),
                phase: RtspPhase::Accepted,
                number: (link as u32).wrapping_add(1).wrapping_mul(0x9E37_79B9),
                has_session: false,
                lower: None,
                routes: None,
                said: 0,
                viewer: None,
                cut: None,
            },
        }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        let Self { reader, handler } = self;
        if matches!(handler.phase, RtspPhase::Accepted) {
            handler.phase = RtspPhase::Asking;
            if handler.fault(LinkPhase::Handshake, None, None, context).is_some() {
                handler.fall_silent(context);
            }
        }
        let (mut rest, mut packets) = (bytes, 0);
        loop {
            if matches!(handler.phase, RtspPhase::Silent | RtspPhase::Leaving(_)) || handler.cut.is_some() {
                return;
            }
            if packets >= PACKETS_A_TURN {
                context.give_back(rest);
                break;
            }
            match reader.take(&mut rest) {
                Ok(Some(Item::Request(request))) => handler.on_request(request, context),
                Ok(Some(Item::Frame { channel, bytes })) => {
                    packets += 1;
                    handler.on_packet(channel, bytes, context);
                }
                Ok(Some(Item::Response(_) | Item::Rest(_))) => {}
                Ok(None) => break,
                Err(_) => return handler.cut = Some(LinkEnd::Close),
            }
        }
        handler.pace(bytes.len() - rest.len(), context);
        handler.after_packets(context);
        handler.pump(context);
    }
}

impl Handler {
    fn on_request(&mut self, request: Request, context: &mut Context<'_, Worker>) {
        let number = number(&request).to_owned();
        if matches!(self.phase, RtspPhase::Asking) && !self.has_session {
            let offered = offered(&request);
            if let Some(answer) = self.fault(LinkPhase::Connect, None, offered.as_deref(), context) {
                return self.refuse(answer, &number, context);
            }
        }
        match &*request.method {
            "OPTIONS" | "GET_PARAMETER" | "SET_PARAMETER" => {
                let answer = self.response(200, &number).field("Public", METHODS);
                self.say(answer, context);
            }
            "DESCRIBE" => self.describe(request, context),
            "ANNOUNCE" => self.announce(&request, &number, context),
            "SETUP" => self.set_up(&request, &number, context),
            "PLAY" => self.play(&request, &number, context),
            "PAUSE" => self.pause(&number, context),
            "RECORD" => self.record(&request, &number, context),
            "TEARDOWN" => {
                let answer = self.response(200, &number);
                self.say(answer, context);
                self.leave(context);
                self.phase = RtspPhase::Leaving(context.now + CLOSE_TIMEOUT);
            }
            _ => self.error(501, &number, context),
        }
    }

    fn on_packet(&mut self, channel: u8, bytes: &[u8], context: &mut Context<'_, Worker>) {
        // Of viewers only reports come.
        let RtspPhase::Publishing(publishing) = &mut self.phase else { return };
        let Publishing { publisher, tracks, .. } = &mut **publishing;
        let (now, worker, mut cut) = (context.now, &mut *context.world, None);
        tracks.packet(channel, bytes, now, &mut |packet, opening| {
            cut = cut.take().or(publisher.take(packet, opening, worker, now));
        });
        self.cut = cut;
    }

    /// Datagrams came: packets and reports of a publisher, reports of a viewer, and what opens the peer's firewall.
    fn on_datagrams(&mut self, mut datagrams: Datagrams<'_>, context: &mut Context<'_, Worker>) {
        let peer = self.peer.ip().to_canonical();
        while let Some(Incoming { arrived, source, bytes }) = datagrams.take_next() {
            let RtspPhase::Publishing(publishing) = &mut self.phase else { continue };
            if source.ip().to_canonical() != peer {
                continue;
            }
            let Publishing { publisher, tracks, .. } = &mut **publishing;
            let (worker, cut) = (&mut *context.world, &mut self.cut);
            tracks.datagram(source.port(), bytes, arrived, &mut |packet, opening| {
                *cut = cut.take().or(publisher.take(packet, opening, worker, arrived));
            });
        }
        self.after_packets(context);
    }

    /// Passes on what packets of a publisher have brought.
    fn after_packets(&mut self, context: &mut Context<'_, Worker>) {
        if let RtspPhase::Publishing(publishing) = &mut self.phase {
            context.world.count(|counts| publishing.tracks.book(counts));
            let wakes = publishing.publisher.flush(context.world);
            context.wake_all(wakes);
        }
    }

    /// Tells a publisher what came of it, where it is time to.
    fn report(&mut self, context: &mut Context<'_, Worker>) {
        let RtspPhase::Publishing(publishing) = &mut self.phase else { return };
        if publishing.report_at > context.now {
            return;
        }
        publishing.report_at = context.now + REPORT;
        let report = publishing.tracks.report(self.number, context.now);
        match &self.routes {
            Some(routes) if self.lower == Some(Lower::Udp) => {
                routes.borrow_mut().send(&report, &mut context.split().1);
            }
            // A publisher that reads nothing is told no more.
            _ if context.unsent() > 0 => {}
            _ => context.send(&report),
        }
    }

    /// Holds up the reading of a publisher that a fault has read slowly.
    fn pace(&mut self, bytes: usize, context: &mut Context<'_, Worker>) {
        let RtspPhase::Publishing(publishing) = &mut self.phase else { return };
        let Some(rate) = publishing.publisher.read_rate() else { return };
        let cost = Duration::from_secs_f64(bytes as f64 * 8.0 / rate.bps());
        publishing.used = publishing.used.max(context.now) + cost;
        publishing.resume = Some(publishing.used);
        publishing.publisher.paced(publishing.used, context.world, context.now);
        context.pause_reading(true);
    }

    /// Sends a viewer what waits for it.
    fn pump(&mut self, context: &mut Context<'_, Worker>) {
        let RtspPhase::Playing { viewer, framer } = &mut self.phase else { return };
        match viewer.pump(context) {
            Standing::Same => {}
            // The next publication may have other tracks than were described.
            Standing::Ended | Standing::Begun => {
                let goodbye = framer.borrow().goodbye();
                match &self.routes {
                    Some(routes) if self.lower == Some(Lower::Udp) => {
                        routes.borrow_mut().send(&goodbye, &mut context.split().1);
                    }
                    _ => viewer.send(&goodbye, context),
                }
                self.leave(context);
                self.phase = RtspPhase::Leaving(context.now + CLOSE_TIMEOUT);
            }
            Standing::LinkEnd(cut) => self.cut = Some(cut),
            Standing::Stuck => self.cut = Some(LinkEnd::Reset),
        }
    }

    /// A response, with the session if there is one.
    fn response(&self, status: u16, number: &str) -> Message {
        let session = format!("{:08X};timeout={}", self.number, SESSION_TIMEOUT.as_secs());
        Message::response(status, number).maybe("Session", self.has_session.then_some(session))
    }

    fn error(&mut self, status: u16, number: &str, context: &mut Context<'_, Worker>) {
        let answer = self.response(status, number);
        self.say(answer, context);
    }

    fn say(&mut self, answer: Message, context: &mut Context<'_, Worker>) {
        let bytes = answer.end();
        match &mut self.phase {
            RtspPhase::Playing { viewer, .. } | RtspPhase::Paused { viewer, .. } => {
                viewer.send(&bytes, context);
            }
            phase => {
                self.said += bytes.len() as u64;
                context.send(&bytes);
                // A publisher may say nothing more, and one that waits has said what it wants.
                if !matches!(phase, RtspPhase::Publishing(_) | RtspPhase::Waiting { .. }) {
                    context.answered();
                }
            }
        }
        if context.unsent() > UNSENT_LIMIT && !matches!(self.phase, RtspPhase::Playing { .. }) {
            self.cut = Some(LinkEnd::Close);
        }
    }

    /// Answers a request as a fault wants it.
    fn refuse(&mut self, answer: ScriptedAnswer, number: &str, context: &mut Context<'_, Worker>) {
        match answer {
            ScriptedAnswer::Nothing => self.fall_silent(context),
            ScriptedAnswer::Refusal { why, code, .. } => {
                let usual = match why {
                    Why::Unauthorized { .. } => 401,
                    Why::Rejected => 503,
                    Why::Moved { .. } => 302,
                };
                let status = code.and_then(|code| code.parse().ok()).unwrap_or(usual);
                let answer = self.response(status, number);
                let answer = match why {
                    Why::Unauthorized { .. } => answer.field("WWW-Authenticate", "Basic realm=\"weir\""),
                    Why::Moved { to } => answer.field("Location", to),
                    Why::Rejected => answer,
                };
                self.say(answer, context);
            }
        }
    }

    /// The scripted answer at a phase, for the link or for the viewer or publisher on it.
    fn fault(
        &mut self,
        phase: LinkPhase,
        who: Option<Subject>,
        offered: Option<&str>,
        context: &mut Context<'_, Worker>,
    ) -> Option<ScriptedAnswer> {
        self.faults.answer(phase, who, offered, context.world, context.now)
    }

    /// Nothing is answered any more, because of a fault, and the link stays.
    fn fall_silent(&mut self, context: &mut Context<'_, Worker>) {
        self.leave(context);
        self.phase = RtspPhase::Silent;
        context.established();
    }

    /// Takes the peer off its stream.
    fn leave(&mut self, context: &mut Context<'_, Worker>) {
        self.stop_waiting(context);
        if let Some(routes) = &self.routes {
            let sent = std::mem::take(&mut routes.borrow_mut().sent);
            context.world.count(|counts: &mut RtspCounts| counts.datagrams += sent);
        }
        match std::mem::replace(&mut self.phase, RtspPhase::Asking) {
            RtspPhase::Playing { viewer, .. } | RtspPhase::Paused { viewer, .. } => viewer.leave(context),
            RtspPhase::Publishing(mut publishing) => {
                context.world.count(|counts| publishing.tracks.book(counts));
                let wakes = publishing.publisher.end(context.world, context.now);
                context.wake_all(wakes);
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

    /// Sets the one deadline of the session.
    fn arm(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        let deadline = match &mut self.phase {
            RtspPhase::Playing { viewer, .. } => viewer.deadline(context.world, now),
            RtspPhase::Publishing(publishing) => {
                let deadline = publishing.publisher.deadline(context.world, now);
                let deadline = deadline.min(publishing.report_at);
                Some(publishing.resume.map_or(deadline, |resume| resume.min(deadline)))
            }
            RtspPhase::Leaving(at) => Some(*at),
            _ => None,
        };
        context.set_timer([deadline, self.faults.next_cut()].into_iter().flatten().min());
    }
}

impl Session<Worker> for RtspSession {
    fn handle_connected(&mut self, context: &mut Context<'_, Worker>) {
        self.handler.faults.begin(context.now);
        if self.handler.fault(LinkPhase::Accept, None, None, context).is_some() {
            self.handler.fall_silent(context);
        }
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        self.read(bytes, context);
    }

    fn handle_datagrams(&mut self, datagrams: Datagrams<'_>, context: &mut Context<'_, Worker>) {
        self.handler.on_datagrams(datagrams, context);
    }

    fn handle_writable(&mut self, context: &mut Context<'_, Worker>) {
        self.handler.pump(context);
    }

    fn handle_woken(&mut self, context: &mut Context<'_, Worker>) {
        if let RtspPhase::Playing { viewer, .. } | RtspPhase::Paused { viewer, .. } = &mut self.handler.phase
        {
            viewer.woken();
        }
        self.handler.on_stream(context);
        self.handler.pump(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        let handler = &mut self.handler;
        if let Some(cut) = handler.faults.cut(context.world, now) {
            handler.cut = Some(cut);
            return;
        }
        handler.report(context);
        match &mut handler.phase {
            RtspPhase::Playing { .. } => handler.pump(context),
            RtspPhase::Publishing(publishing) => {
                let publisher = &mut publishing.publisher;
                publisher.release(context.world, now);
                let wakes = publisher.flush(context.world);
                context.wake_all(wakes);
                handler.cut = publisher.cut(context.world, now);
                if publishing.resume.is_some_and(|at| at <= now) {
                    publishing.resume = None;
                    context.pause_reading(false);
                } else if publisher.is_silent(context.world, now) {
                    handler.cut = Some(LinkEnd::Close);
                }
            }
            RtspPhase::Leaving(at) if now >= *at => handler.cut = Some(LinkEnd::Close),
            _ => {}
        }
    }

    fn handle_stop(&mut self, context: &mut Context<'_, Worker>) {
        self.handler.end(Some(LinkEnd::Close), context);
    }

    /// The session is that of its connection, also where media goes by datagrams: it ends with it.
    fn handle_hung_up(&mut self, _: Failure, _: &str, context: &mut Context<'_, Worker>) {
        self.handler.end(Some(LinkEnd::Close), context);
    }

    fn handle_closed(&mut self, _: Failure, _: &str, context: &mut Context<'_, Worker>) {
        self.handler.end(None, context);
    }

    fn after_event(&mut self, context: &mut Context<'_, Worker>) {
        match self.handler.cut.take() {
            Some(cut) => self.handler.end(Some(cut), context),
            None => self.handler.arm(context),
        }
    }
}

fn number(request: &Request) -> &str {
    request.fields.get("cseq").unwrap_or("0")
}

/// The login that a request brings.
fn offered(request: &Request) -> Option<String> {
    request.fields.get("authorization").and_then(credentials::basic_in)
}

/// The name that a stream goes by: its path, without query, and without what names a track.
fn name_of(uri: &str) -> Option<Arc<str>> {
    let path =
        uri.split_once("://").map_or(uri, |(_, rest)| rest.split_once('/').map_or("", |(_, path)| path));
    let path = path.split(['?', '#']).next().unwrap_or_default().trim_matches('/');
    (!path.is_empty() && path.len() <= NAME_LIMIT).then(|| path.into())
}
