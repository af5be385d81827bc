//! One accepted RTMP connection: a viewer, a publisher, or a client that has not said yet which.

use super::framing::{CHUNK_SIZE, SHARED, retime, rewriter};
use super::intake::Intake;
use super::liveness::{Liveness, Look};
use crate::fault::{LinkEnd, LinkFaults, LinkPhase, ScriptedAnswer, Subject, Why};
use crate::policy::{Departure, MissingStream};
use crate::publisher::Publisher;
use crate::stream::View;
use crate::viewer::{Standing, Viewer, Watcher};
use crate::worker::Worker;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_rtmp::message::Status;
use weir_rtmp::server::{MediaMessage, Server, ServerEvent, ServerOptions};
use weir_shard::{Context, Session};

/// Bytes of the dialogue that may wait for a peer that does not read.
const UNSENT_LIMIT: usize = 256 * 1024;
/// Bytes of an application's and a stream's name together.
const NAME_LIMIT: usize = 1_024;
/// How long a refused peer may take to receive the refusal and close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// The most bytes that are read of one peer before others have their turn. A publisher has some hundred messages a second.
const EVENTS_A_TURN: usize = 1_024;
/// Bytes after which the events are counted.
const PIECE: usize = 16 * 1024;
/// Bytes that are read at a time from a publisher that is read slowly.
const SLOW_READ: usize = 4 * 1024;

/// A session of an RTMP connection.
pub(crate) struct RtmpSession {
    server: Server,
    handler: Handler,
}

/// The part of a session that decides; it receives the server's events while the server reads.
struct Handler {
    peer: SocketAddr,
    faults: LinkFaults,
    app: String,
    phase: RtmpPhase,
    replies: Vec<Reply>,
    /// What arrived in this turn.
    events: usize,
    /// Bytes sent before the peer became a viewer.
    said: u64,
    /// The end of the connection, if it is decided.
    cut: Option<LinkEnd>,
}

enum RtmpPhase {
    /// The TCP connection is there, nothing was read.
    Accepted,
    /// Has asked for nothing yet.
    Asking,
    Playing(Box<Playing>),
    Publishing(Box<Publishing>),
    /// Was refused; is closed then.
    Leaving(Moment),
    /// Is never answered again, because of a fault.
    Silent,
}

struct Playing {
    viewer: Viewer,
    message_stream_id: u32,
    liveness: Liveness,
}

struct Publishing {
    publisher: Publisher,
    intake: Intake,
    /// When a publisher that is read slowly may be read from again.
    resume: Option<Moment>,
    /// Up to when its rate is used up.
    used: Moment,
}

/// What the server is to say when it has read on.
enum Reply {
    AcceptConnect,
    RejectConnect(Status<'static>),
    AcceptPlay(u32),
    AcceptPublish(u32),
    Status(u32, Status<'static>),
}

impl RtmpSession {
    /// The session of a connection that was just accepted.
    pub(crate) fn new(worker: &mut Worker, peer: SocketAddr) -> Self {
        let link = worker.accept();
        let options = ServerOptions { chunk_size: CHUNK_SIZE, ..ServerOptions::default() };
        Self {
            server: Server::new(options, link),
            handler: Handler {
                peer,
                faults: LinkFaults::of(&worker.settings().faults, link),
                app: String::new(),
                phase: RtmpPhase::Accepted,
                replies: Vec::new(),
                events: 0,
                said: 0,
                cut: None,
            },
        }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        if matches!(self.handler.phase, RtmpPhase::Accepted) {
            self.handler.phase = RtmpPhase::Asking;
            if self.handler.fault(LinkPhase::Handshake, None, context).is_some() {
                self.handler.fall_silent(context);
            }
        }
        if matches!(self.handler.phase, RtmpPhase::Silent | RtmpPhase::Leaving(_)) {
            return;
        }
        if let RtmpPhase::Playing(playing) = &mut self.handler.phase {
            playing.liveness.on_bytes();
        }
        let Self { server, handler } = self;
        handler.events = 0;
        let (mut rest, mut outcome) = (bytes, Ok(()));
        while !rest.is_empty() && outcome.is_ok() {
            if handler.events >= EVENTS_A_TURN {
                context.give_back(rest);
                break;
            }
            let (piece, more) = rest.split_at(rest.len().min(PIECE));
            rest = more;
            outcome = server.input(piece, &mut |event| handler.on_event(&event, context));
        }
        let bytes = &bytes[..bytes.len() - rest.len()];
        if matches!(handler.phase, RtmpPhase::Silent) {
            return;
        }
        if outcome.is_err() {
            return self.end(Some(LinkEnd::Close), context);
        }
        self.reply(context);
        self.handler.pace(bytes.len(), context);
        if let RtmpPhase::Publishing(publishing) = &mut self.handler.phase {
            let wakes = publishing.publisher.flush(context.world);
            context.wake_all(wakes);
        }
    }

    /// Says what has been decided, and then sends a new viewer what waits for it.
    fn reply(&mut self, context: &mut Context<'_, Worker>) {
        let mut plays = false;
        for reply in self.handler.replies.drain(..) {
            match reply {
                Reply::AcceptConnect => self.server.accept_connect(),
                Reply::RejectConnect(status) => self.server.reject_connect(&status),
                Reply::AcceptPlay(id) => {
                    self.server.accept_play(id);
                    plays = true;
                }
                Reply::AcceptPublish(id) => self.server.accept_publish(id),
                Reply::Status(id, status) => self.server.send_status(id, &status),
            }
        }
        self.send_output(context);
        if plays {
            self.pump(context);
        }
    }

    /// Sends the dialogue's output.
    fn send_output(&mut self, context: &mut Context<'_, Worker>) {
        let words = std::mem::take(self.server.output());
        if words.is_empty() {
            return;
        }
        match &mut self.handler.phase {
            RtmpPhase::Playing(playing) => playing.viewer.send(&words, context),
            _ => {
                self.handler.said += words.len() as u64;
                context.send(&words);
            }
        }
        if context.unsent() > UNSENT_LIMIT {
            self.handler.cut = Some(LinkEnd::Close);
        }
    }

    /// Sends a viewer what waits for it.
    fn pump(&mut self, context: &mut Context<'_, Worker>) {
        let RtmpPhase::Playing(playing) = &mut self.handler.phase else { return };
        let id = playing.message_stream_id;
        match playing.viewer.pump(context) {
            Standing::Same => {}
            Standing::Begun => {
                self.server
                    .send_status(id, &status("NetStream.Play.PublishNotify", "The stream is published."));
                self.send_output(context);
            }
            Standing::Ended => {
                self.server.end_play(id);
                self.send_output(context);
                if context.world.settings().departure == Departure::Close {
                    self.handler.leave(context);
                    self.handler.phase = RtmpPhase::Leaving(context.now + CLOSE_TIMEOUT);
                }
            }
            Standing::LinkEnd(cut) => self.handler.cut = Some(cut),
            Standing::Stuck => self.handler.cut = Some(LinkEnd::Reset),
        }
    }

    /// Asks a viewer that is sent nothing whether it is there, and lets it go if it does not answer.
    fn look(&mut self, context: &mut Context<'_, Worker>) {
        let RtmpPhase::Playing(playing) = &mut self.handler.phase else { return };
        let sent = playing.viewer.link_bytes(context.world);
        match playing.liveness.look(context.now, sent) {
            Look::Wait => {}
            Look::Gone => self.handler.cut = Some(LinkEnd::Close),
            Look::Ask => {
                // The server's time in milliseconds, which goes round.
                self.server.ping((context.now.as_nanos() / 1_000_000) as u32);
                self.send_output(context);
                if let RtmpPhase::Playing(playing) = &mut self.handler.phase {
                    let sent = playing.viewer.link_bytes(context.world);
                    playing.liveness.on_asked(sent);
                }
            }
        }
    }

    fn end(&mut self, cut: Option<LinkEnd>, context: &mut Context<'_, Worker>) {
        self.handler.leave(context);
        if let Some(cut) = cut {
            cut.carry_out(context);
        }
    }

    /// Sets the one deadline of the session.
    fn arm(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        let deadline = match &mut self.handler.phase {
            RtmpPhase::Playing(playing) => {
                let look = Some(playing.liveness.poll_timeout());
                playing.viewer.deadline(context.world, now).into_iter().chain(look).min()
            }
            RtmpPhase::Publishing(publishing) => {
                let deadline = publishing.publisher.deadline(context.world, now);
                Some(publishing.resume.map_or(deadline, |resume| resume.min(deadline)))
            }
            RtmpPhase::Leaving(at) => Some(*at),
            RtmpPhase::Accepted | RtmpPhase::Asking | RtmpPhase::Silent => None,
        };
        let cut = self.handler.faults.next_cut();
        context.set_timer([deadline, cut].into_iter().flatten().min());
    }
}

impl Session<Worker> for RtmpSession {
    fn handle_connected(&mut self, context: &mut Context<'_, Worker>) {
        self.handler.faults.begin(context.now);
        if self.handler.fault(LinkPhase::Accept, None, context).is_some() {
            self.handler.fall_silent(context);
        }
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        self.read(bytes, context);
    }

    fn handle_writable(&mut self, context: &mut Context<'_, Worker>) {
        self.pump(context);
    }

    fn handle_woken(&mut self, context: &mut Context<'_, Worker>) {
        if let RtmpPhase::Playing(playing) = &mut self.handler.phase {
            playing.viewer.woken();
        }
        self.pump(context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        if let Some(cut) = self.handler.faults.cut(context.world, now) {
            self.handler.cut = Some(cut);
            return;
        }
        match &mut self.handler.phase {
            RtmpPhase::Playing(_) => {
                self.pump(context);
                self.look(context);
            }
            RtmpPhase::Publishing(publishing) => {
                let publisher = &mut publishing.publisher;
                publisher.release(context.world, now);
                let wakes = publisher.flush(context.world);
                context.wake_all(wakes);
                self.handler.cut = publisher.cut(context.world, now);
                if publishing.resume.is_some_and(|at| at <= now) {
                    publishing.resume = None;
                    context.pause_reading(false);
                } else if publisher.is_silent(context.world, now) {
                    self.handler.cut = Some(LinkEnd::Close);
                }
            }
            RtmpPhase::Leaving(at) if now >= *at => self.handler.cut = Some(LinkEnd::Close),
            RtmpPhase::Accepted | RtmpPhase::Asking | RtmpPhase::Leaving(_) | RtmpPhase::Silent => {}
        }
    }

    fn handle_stop(&mut self, context: &mut Context<'_, Worker>) {
        self.end(Some(LinkEnd::Close), context);
    }

    fn handle_closed(&mut self, _: Failure, _: &str, context: &mut Context<'_, Worker>) {
        self.end(None, context);
    }

    fn after_event(&mut self, context: &mut Context<'_, Worker>) {
        match self.handler.cut.take() {
            Some(cut) => self.end(Some(cut), context),
            None => self.arm(context),
        }
    }
}

impl Handler {
    fn on_event(&mut self, event: &ServerEvent<'_>, context: &mut Context<'_, Worker>) {
        // Bytes that follow a refusal or a scripted silence are dropped.
        self.events += 1;
        if matches!(self.phase, RtmpPhase::Silent | RtmpPhase::Leaving(_)) {
            return;
        }
        match event {
            ServerEvent::Connect(request) => self.connect(request.app, context),
            ServerEvent::Play { message_stream_id, stream, .. } => {
                self.play(*message_stream_id, stream, context);
            }
            ServerEvent::Publish { message_stream_id, stream } => {
                self.publish(*message_stream_id, stream, context);
            }
            ServerEvent::Media(message) => self.media(message, false, context),
            ServerEvent::Metadata(message) => self.media(message, true, context),
            ServerEvent::Closed { .. } => {
                if matches!(self.phase, RtmpPhase::Playing(_) | RtmpPhase::Publishing(_)) {
                    self.leave(context);
                    self.phase = RtmpPhase::Asking;
                    context.await_request();
                }
            }
            _ => {}
        }
    }

    fn connect(&mut self, app: &str, context: &mut Context<'_, Worker>) {
        let app = app.split('?').next().unwrap_or_default().trim_matches('/');
        app.clone_into(&mut self.app);
        match self.fault(LinkPhase::Connect, None, context) {
            None => self.replies.push(Reply::AcceptConnect),
            Some(ScriptedAnswer::Nothing) => self.fall_silent(context),
            Some(ScriptedAnswer::Refusal { why, code, words }) => {
                // Clients know the authentication of Adobe's plug-in, which is negotiated in the description's text.
                let usual = match why {
                    Why::Unauthorized { .. } => {
                        "[ AccessManager.Reject ] : [ code=401 need auth; authmod=adobe ] : Unauthorized"
                            .into()
                    }
                    Why::Rejected => "[ Server.Reject ] : Connection refused.".into(),
                    Why::Moved { to } => format!("[ Server.Reject ] : Moved to {to}"),
                };
                let status = Status::error(
                    code.unwrap_or_else(|| "NetConnection.Connect.Rejected".into()),
                    words.unwrap_or(usual),
                );
                self.replies.push(Reply::RejectConnect(status));
                self.phase = RtmpPhase::Leaving(context.now + CLOSE_TIMEOUT);
            }
        }
    }

    fn play(&mut self, id: u32, stream: &str, context: &mut Context<'_, Worker>) {
        let settings = context.world.settings().clone();
        let number = settings.next_viewer();
        let fault = self.fault(LinkPhase::Play, Some(Subject::Viewer(number)), context);
        let name = match fault {
            None => self.name_of(stream),
            Some(answer) => return self.refuse(id, answer, "NetStream.Play.Failed", context),
        };
        let missing = settings.missing_stream == MissingStream::Refuse;
        let name = name.filter(|name| !missing || settings.registry.is_live(name));
        let Some(name) = name else {
            let words = format!("No such stream: {stream}");
            return self.turn_away(id, Status::error("NetStream.Play.StreamNotFound", words), context);
        };
        self.leave(context);
        let watcher = Watcher::Viewer { number, peer: self.peer, said: self.said, view: View::Framed };
        let own = (id != SHARED.message_stream_id).then_some(id);
        let rewrite = own.map(|message_stream_id| {
            rewriter(weir_rtmp::chunk::MediaFraming { message_stream_id, ..SHARED }, false)
        });
        let viewer = Viewer::join(&watcher, &name, rewrite, || rewriter(SHARED, false), context);
        let liveness = Liveness::new(settings.patience.idle, context.now);
        self.phase = RtmpPhase::Playing(Box::new(Playing { viewer, message_stream_id: id, liveness }));
        context.established();
        self.replies.push(Reply::AcceptPlay(id));
    }

    fn publish(&mut self, id: u32, stream: &str, context: &mut Context<'_, Worker>) {
        let registry = &context.world.settings().clone().registry;
        let number = registry.next_publisher();
        let fault = self.fault(LinkPhase::Publish, Some(Subject::Publisher(number)), context);
        if let Some(answer) = fault {
            return self.refuse(id, answer, "NetStream.Publish.Denied", context);
        }
        let Some(name) = self.name_of(stream) else {
            let status =
                Status::error("NetStream.Publish.BadName", "A stream needs a name, and not a long one.");
            return self.turn_away(id, status, context);
        };
        self.leave(context);
        let Some(mut publisher) = Publisher::claim(&name, Some(number), retime, context.world, context.now)
        else {
            let status = Status::error("NetStream.Publish.BadName", format!("{name} is being published."));
            return self.turn_away(id, status, context);
        };
        let wakes = publisher.flush(context.world);
        context.wake_all(wakes);
        if publisher.read_rate().is_some() {
            context.limit_reads(SLOW_READ);
        }
        self.phase = RtmpPhase::Publishing(Box::new(Publishing {
            publisher,
            intake: Intake::default(),
            resume: None,
            used: context.now,
        }));
        context.established();
        self.replies.push(Reply::AcceptPublish(id));
    }

    fn media(&mut self, message: &MediaMessage<'_>, metadata: bool, context: &mut Context<'_, Worker>) {
        let RtmpPhase::Publishing(publishing) = &mut self.phase else { return };
        if self.cut.is_some() {
            return;
        }
        let (packet, opening) = if metadata {
            (publishing.intake.metadata(message), None)
        } else {
            publishing.intake.media(message)
        };
        self.cut = publishing.publisher.take(packet, opening, context.world, context.now);
    }

    /// Holds up the reading of a publisher that a fault has read slowly.
    fn pace(&mut self, bytes: usize, context: &mut Context<'_, Worker>) {
        let RtmpPhase::Publishing(publishing) = &mut self.phase else { return };
        let Some(rate) = publishing.publisher.read_rate() else { return };
        let cost = Duration::from_secs_f64(bytes as f64 * 8.0 / rate.bps());
        publishing.used = publishing.used.max(context.now) + cost;
        publishing.resume = Some(publishing.used);
        publishing.publisher.paced(publishing.used, context.world, context.now);
        context.pause_reading(true);
    }

    /// Takes the peer off its stream.
    fn leave(&mut self, context: &mut Context<'_, Worker>) {
        match std::mem::replace(&mut self.phase, RtmpPhase::Asking) {
            RtmpPhase::Playing(playing) => playing.viewer.leave(context),
            RtmpPhase::Publishing(publishing) => {
                let wakes = publishing.publisher.end(context.world, context.now);
                context.wake_all(wakes);
            }
            other => self.phase = other,
        }
    }

    /// Nothing is answered any more, because of a fault, and the link stays.
    fn fall_silent(&mut self, context: &mut Context<'_, Worker>) {
        self.phase = RtmpPhase::Silent;
        context.established();
    }

    fn turn_away(&mut self, id: u32, status: Status<'static>, context: &mut Context<'_, Worker>) {
        self.replies.push(Reply::Status(id, status));
        self.leave(context);
        self.phase = RtmpPhase::Leaving(context.now + CLOSE_TIMEOUT);
    }

    /// Answers a request as a fault wants it.
    fn refuse(
        &mut self,
        id: u32,
        answer: ScriptedAnswer,
        usual: &'static str,
        context: &mut Context<'_, Worker>,
    ) {
        match answer {
            ScriptedAnswer::Nothing => {
                self.leave(context);
                self.fall_silent(context);
            }
            ScriptedAnswer::Refusal { why, code, words } => {
                let usual_words = match why {
                    Why::Unauthorized { .. } => "401 Unauthorized".into(),
                    Why::Rejected => "Refused.".into(),
                    Why::Moved { to } => format!("Moved to {to}"),
                };
                let status =
                    Status::error(code.unwrap_or_else(|| usual.into()), words.unwrap_or(usual_words));
                self.turn_away(id, status, context);
            }
        }
    }

    /// The scripted answer at a phase, for the link or for the viewer or publisher on it.
    fn fault(
        &mut self,
        phase: LinkPhase,
        who: Option<Subject>,
        context: &mut Context<'_, Worker>,
    ) -> Option<ScriptedAnswer> {
        self.faults.answer(phase, who, None, context.world, context.now)
    }

    /// The name that a stream goes by: application and stream, without queries.
    fn name_of(&self, stream: &str) -> Option<Arc<str>> {
        let stream = stream.split('?').next().unwrap_or_default().trim_matches('/');
        let long = self.app.len() + stream.len() > NAME_LIMIT;
        match (&*self.app, stream) {
            (_, "") => None,
            _ if long => None,
            ("", stream) => Some(stream.into()),
            (app, stream) => Some(format!("{app}/{stream}").into()),
        }
    }
}

fn status(code: &'static str, words: &'static str) -> Status<'static> {
    Status::new(code, words)
}
