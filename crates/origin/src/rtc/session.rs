//! One accepted connection of signalling: WHEP and WHIP over HTTP, or OvenMediaEngine's dialogue in a WebSocket.

use super::answer::{Answer, reason, usual_status};
use super::desk::{Desk, Newcomer, remote};
use super::page::{PLAY, PUBLISH};
use super::request::{BadRequest, Request};
use crate::config::MissingStream;
use crate::fault::{Answer as Decree, Cut, LinkFaults, Phase, Subject, Why};
use crate::publisher::Publisher;
use crate::rtmp::retime;
use crate::worker::{Message, Worker};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::Moment;
use weir_rtc::sdp::{Agreement, Description, Direction, Local, MediaKind, Setup, Wishes, agree, extension};
use weir_rtc::signalling::oven::{self, Offer};
use weir_rtc::signalling::websocket::{self, Incoming, Role, WebSocket};
use weir_rtc::transport::{DtlsRole, Settings, Transport};
use weir_shard::{Context, Event, Session};

/// Bytes of answers that may wait for a peer that does not read.
const UNSENT_LIMIT: usize = 256 * 1024;
/// How long a peer may take to hear the last answer and go.
const FAREWELL: Duration = Duration::from_secs(2);
/// Bytes of a request.
const REQUEST_LIMIT: usize = weir_rtc::sdp::MOST_BYTES;

/// What the origin sends: H.264, and Opus where the stream has it.
const WISHES: Wishes<'static> = Wishes {
    direction: Direction::SendOnly,
    setup: Setup::Passive,
    feedback: &["nack", "nack pli", "ccm fir"],
    extensions: &[],
    retransmission: false,
    ..Wishes::VIEWER
};

/// What it takes: the same.
const INTAKE: Wishes<'static> = Wishes {
    direction: Direction::ReceiveOnly,
    setup: Setup::Passive,
    extensions: &[extension::TRANSPORT_CC],
    ..Wishes::VIEWER
};

/// A session of a connection.
pub(crate) struct RtcSession {
    peer: SocketAddr,
    link: u64,
    faults: LinkFaults,
    stage: Stage,
    inbox: Vec<u8>,
    /// The end of the connection, if it is decided.
    cut: Option<Cut>,
}

enum Stage {
    /// Has asked for nothing that is not answered, since then.
    Asking(Moment),
    /// Speaks OvenMediaEngine's dialogue.
    Socket(Box<Socket>),
    /// Was answered for the last time; is closed then.
    Leaving(Moment),
    /// Is never answered again, because of a fault.
    Silent,
}

struct Socket {
    socket: WebSocket,
    stream: Arc<str>,
    /// Media is to come by a relay.
    relayed: bool,
    offered: Option<Offered>,
    /// The session of the viewer that came of it.
    session: Option<u64>,
}

/// What was offered, until it is answered.
struct Offered {
    transport: Transport,
    description: Description,
    sources: [u32; 2],
    number: u64,
    session: u64,
}

impl RtcSession {
    /// The session of a connection that was just accepted.
    pub(crate) fn new(worker: &mut Worker, peer: SocketAddr, now: Moment) -> Self {
        let link = worker.accept();
        Self {
            peer,
            link,
            faults: LinkFaults::of(&worker.settings().faults, link),
            stage: Stage::Asking(now),
            inbox: Vec::new(),
            cut: None,
        }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) {
        match &mut self.stage {
            Stage::Silent | Stage::Leaving(_) => return,
            Stage::Socket(socket) => {
                socket.socket.input(bytes);
                return self.converse(context);
            }
            Stage::Asking(_) => {}
        }
        if self.inbox.is_empty() && self.fault(Phase::Handshake, None, context).is_some() {
            self.stage = Stage::Silent;
            return;
        }
        self.inbox.extend_from_slice(bytes);
        while matches!(self.stage, Stage::Asking(_)) && !self.inbox.is_empty() && self.cut.is_none() {
            match Request::parse(&self.inbox, REQUEST_LIMIT) {
                Ok(Some((request, length))) => {
                    self.inbox.drain(..length);
                    self.stage = Stage::Asking(context.now);
                    self.answer(&request, context);
                }
                Ok(None) => return,
                Err(BadRequest(status)) => self.say(&Answer::new(status, reason(status)), false, context),
            }
        }
        let rest = std::mem::take(&mut self.inbox);
        if let Stage::Socket(socket) = &mut self.stage
            && !rest.is_empty()
        {
            socket.socket.input(&rest);
            self.converse(context);
        }
    }

    fn answer(&mut self, request: &Request, context: &mut Context<'_, Worker>) {
        if let Some(decree) = self.fault(Phase::Connect, None, context) {
            return self.refuse(decree, request.keep_alive, context);
        }
        let stream = request.stream();
        let answer = match (&*request.method, stream) {
            ("OPTIONS", _) => Answer::new(204, "")
                .with("Access-Control-Allow-Methods", "OPTIONS, GET, POST, PATCH, DELETE")
                .with("Access-Control-Allow-Headers", "*"),
            ("DELETE", _) => self.delete(request, context),
            // All of the origin's candidates are in its answer, and it needs none of its peers'.
            ("PATCH", _) => Answer::new(405, "trickling is of no use here: the answer has all candidates"),
            ("POST", Some(stream)) => {
                let stream = stream.into();
                let made = if request.publishes() {
                    self.publish(&stream, &request.body, context)
                } else {
                    self.watch(&stream, &request.body, context)
                };
                return match made {
                    Ok(answer) => self.say(&answer, request.keep_alive, context),
                    Err(decree) => self.refuse(decree, request.keep_alive, context),
                };
            }
            ("GET", Some(stream)) => match &request.socket_key {
                Some(key) => return self.open(&stream.into(), key, request.wants_relay(), context),
                None => {
                    let page = if request.publishes() { PUBLISH } else { PLAY };
                    Answer::new(200, page).of("text/html; charset=utf-8")
                }
            },
            ("GET", None) => Answer::new(404, "ask for a stream: /APP/STREAM"),
            _ => Answer::new(405, reason(405)).with("Allow", "OPTIONS, GET, POST, PATCH, DELETE"),
        };
        self.say(&answer, request.keep_alive, context);
    }

    /// WHEP: an offer is answered, and a viewer comes.
    fn watch(
        &mut self,
        stream: &Arc<str>,
        offer: &str,
        context: &mut Context<'_, Worker>,
    ) -> Result<Answer, Decree> {
        let number = self.number(stream, context)?;
        let (newcomer, answer) = match self.negotiate(number, stream, offer, &WISHES, context) {
            Ok(made) => made,
            Err(answer) => return Ok(answer),
        };
        if let Some(mut desk) = context.world.rtc.take() {
            desk.admit(newcomer, context.world, context.now);
            context.wake(desk.port);
            context.world.rtc = Some(desk);
        }
        Ok(answer)
    }

    /// WHIP: an offer is answered, and a publisher comes (RFC 9725 section 4.2).
    fn publish(
        &mut self,
        stream: &Arc<str>,
        offer: &str,
        context: &mut Context<'_, Worker>,
    ) -> Result<Answer, Decree> {
        let now = context.now;
        let number = context.world.settings().registry.next_publisher();
        if let Some(decree) = self.fault(Phase::Publish, Some(Subject::Publisher(number)), context) {
            return Err(decree);
        }
        let (newcomer, answer) = match self.negotiate(number, stream, offer, &INTAKE, context) {
            Ok(made) => made,
            Err(answer) => return Ok(answer),
        };
        let claimed = Publisher::claim(stream, Some(number), retime, context.world, now);
        let Some(mut publisher) = claimed else {
            return Ok(Answer::new(409, format!("{stream} is being published")));
        };
        let wakes = publisher.flush(context.world);
        context.wake_all(wakes);
        if let Some(mut desk) = context.world.rtc.take() {
            desk.admit_publisher(newcomer, publisher, context.world, now);
            context.wake(desk.port);
            context.world.rtc = Some(desk);
        }
        Ok(answer)
    }

    /// Makes a peer of an offer, and an answer to it; or an answer that says why not.
    fn negotiate(
        &self,
        number: u64,
        stream: &Arc<str>,
        offer: &str,
        wishes: &Wishes<'_>,
        context: &Context<'_, Worker>,
    ) -> Result<(Newcomer, Answer), Answer> {
        let mut offer: Description = offer.parse().map_err(|error| Answer::new(400, format!("{error}")))?;
        for kind in [MediaKind::Video, MediaKind::Audio] {
            // A stream has one track of each.
            let more = offer.media.iter_mut().filter(|media| media.kind == kind && !media.rejected).skip(1);
            more.for_each(|media| media.rejected = true);
        }
        let theirs = remote(&offer).ok_or_else(|| Answer::new(400, "no ICE credentials or fingerprint"))?;
        let made = context.world.rtc.as_deref().and_then(|desk| self.transport(desk));
        let (mut transport, local) = made.ok_or_else(|| Answer::new(503, "no transport can be made"))?;
        let sources = sources(number, context.now);
        let mut answer = local.answer(&offer, wishes);
        if wishes.direction == Direction::SendOnly {
            name_sources(&mut answer, sources);
        }
        let theirs_is = match wishes.direction {
            Direction::SendOnly => Direction::ReceiveOnly,
            _ => Direction::SendOnly,
        };
        let of_use = |direction: Direction| direction == Direction::SendReceive || direction == theirs_is;
        if !offer.media.iter().any(|media| media.kind == MediaKind::Video && of_use(media.direction)) {
            return Err(Answer::new(406, "the offer has no pictures that go the right way"));
        }
        let agreed = agree(&offer, &answer, true);
        if !agreed.iter().any(|it| it.kind == MediaKind::Video) {
            return Err(Answer::new(406, "the origin has H.264 with packetization-mode=1 only"));
        }
        transport.connect(context.now, theirs, role(&agreed));
        let session = session_of(number, &sources, context.now);
        let stream = stream.clone();
        let newcomer = Newcomer { transport, agreed, sources, number, peer: self.peer, stream, session };
        let answer = Answer::new(201, answer.to_string())
            .of("application/sdp")
            .with("Location", &format!("/session/{session:016x}"))
            .with("ETag", &format!("\"{session:x}\""))
            .with_links(context.world.settings().turn.as_ref());
        Ok((newcomer, answer))
    }

    /// A transport that others reach at the worker's port.
    fn transport(&self, desk: &Desk) -> Option<(Transport, Local)> {
        let mut local = desk.local;
        if local.ip().is_unspecified() {
            local.set_ip(reached_at(self.peer)?);
        }
        let settings = Settings {
            local,
            certificate: desk.certificate.clone(),
            lite: true,
            controlling: false,
            clock: desk.clock,
        };
        let transport = Transport::new(settings).ok()?;
        let local = Local {
            user_fragment: transport.user_fragment().to_owned(),
            password: transport.password().to_owned(),
            fingerprint: desk.certificate.fingerprint(),
            candidates: transport.candidates().collect(),
            lite: true,
        };
        Some((transport, local))
    }

    /// The number of a viewer who asks now, unless a fault or the lack of a stream is in its way.
    fn number(&mut self, stream: &Arc<str>, context: &mut Context<'_, Worker>) -> Result<u64, Decree> {
        let settings = context.world.settings().clone();
        let number = settings.registry.next_viewer();
        if let Some(decree) = self.fault(Phase::Play, Some(Subject::Viewer(number)), context) {
            return Err(decree);
        }
        if settings.missing_stream == MissingStream::Refuse && !settings.registry.is_live(stream) {
            let words = Some(format!("{stream} is not published"));
            return Err(Decree::Refusal { why: Why::Rejected, code: Some("404".to_owned()), words });
        }
        Ok(number)
    }

    fn delete(&self, request: &Request, context: &mut Context<'_, Worker>) -> Answer {
        let session = request.path.strip_prefix("session/").and_then(|it| u64::from_str_radix(it, 16).ok());
        let Some(session) = session else { return Answer::new(404, reason(404)) };
        self.dismiss(session, context);
        Answer::new(200, "")
    }

    /// Lets a peer go, whichever worker it is with.
    fn dismiss(&self, session: u64, context: &mut Context<'_, Worker>) {
        let now = context.now;
        let mine = context.world.rtc.as_mut().and_then(|desk| desk.dismiss(session, now));
        match mine {
            Some(port) => context.wake(port),
            None => context.world.tell_peers(&|| Message::Dismiss { session }),
        }
    }

    /// A WebSocket is opened.
    fn open(&mut self, stream: &Arc<str>, key: &str, relayed: bool, context: &mut Context<'_, Worker>) {
        let accept = websocket::accept(key);
        let head = format!(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
             Sec-WebSocket-Accept: {accept}\r\n\r\n"
        );
        context.send(head.as_bytes());
        let socket = WebSocket::new(Role::Server);
        let stream = stream.clone();
        self.stage =
            Stage::Socket(Box::new(Socket { socket, stream, relayed, offered: None, session: None }));
    }

    /// Hears what has come over a WebSocket.
    fn converse(&mut self, context: &mut Context<'_, Worker>) {
        let mut out = Vec::new();
        while let Stage::Socket(socket) = &mut self.stage {
            match socket.socket.poll(&mut out) {
                Ok(Some(Incoming::Text(text))) => {
                    if let Some(said) = self.hear(&text, context)
                        && let Stage::Socket(socket) = &self.stage
                    {
                        socket.socket.text(&said, &mut out);
                    }
                }
                Ok(None) => break,
                Ok(Some(Incoming::Close(..))) | Err(_) => {
                    self.cut = Some(Cut::Close);
                    break;
                }
            }
        }
        context.send(&out);
        if context.unsent() > UNSENT_LIMIT {
            self.cut = Some(Cut::Close);
        }
    }

    /// What is answered to a message.
    fn hear(&mut self, text: &str, context: &mut Context<'_, Worker>) -> Option<String> {
        let request = match oven::Request::parse(text) {
            Ok(request) => request,
            Err(error) => return Some(oven::refusal(400, &error.to_string())),
        };
        match request {
            oven::Request::Offer => self.offer(context),
            oven::Request::Answer { sdp, .. } => {
                self.answered(&sdp, context).err().map(|words| oven::refusal(400, &words))
            }
            oven::Request::Stop => {
                self.leave(context);
                None
            }
            oven::Request::Other(_) => None,
        }
    }

    fn offer(&mut self, context: &mut Context<'_, Worker>) -> Option<String> {
        let Stage::Socket(socket) = &self.stage else { return None };
        let (stream, relayed) = (socket.stream.clone(), socket.relayed);
        let number = match self.number(&stream, context) {
            Ok(number) => number,
            Err(Decree::Nothing) => {
                self.stage = Stage::Silent;
                return None;
            }
            Err(Decree::Refusal { why, code, words }) => {
                let status = code.and_then(|code| code.parse().ok()).unwrap_or(usual_status(&why));
                let words = words.unwrap_or_else(|| reason(status).to_owned());
                return Some(oven::refusal(status.into(), &words));
            }
        };
        let made = {
            let desk = context.world.rtc.take()?;
            let made = self.transport(&desk);
            context.world.rtc = Some(desk);
            made
        };
        let Some((transport, local)) = made else {
            return Some(oven::refusal(503, "no transport can be made"));
        };
        let sources = sources(number, context.now);
        let session = session_of(number, &sources, context.now);
        let mut description = local.offer(&WISHES);
        name_sources(&mut description, sources);
        let offer = Offer {
            // OvenMediaEngine's are of 32 bits.
            id: session & 0x7FFF_FFFF,
            sdp: description.to_string(),
            candidates: local.candidates.clone(),
            ice_servers: context.world.settings().turn.iter().filter(|_| relayed).cloned().collect(),
        };
        if let Stage::Socket(socket) = &mut self.stage {
            socket.offered = Some(Offered { transport, description, sources, number, session });
        }
        Some(oven::offer(&offer))
    }

    fn answered(&mut self, sdp: &str, context: &mut Context<'_, Worker>) -> Result<(), String> {
        let Stage::Socket(socket) = &mut self.stage else { return Ok(()) };
        let Some(offered) = socket.offered.take() else { return Err("nothing was offered".to_owned()) };
        let answer: Description = sdp.parse().map_err(|error| format!("{error}"))?;
        let theirs = remote(&answer).ok_or("no ICE credentials or fingerprint")?;
        let agreed = agree(&offered.description, &answer, false);
        if agreed.is_empty() {
            return Err("nothing of the offer was taken".to_owned());
        }
        let Offered { mut transport, sources, number, session, .. } = offered;
        transport.connect(context.now, theirs, role(&agreed));
        socket.session = Some(session);
        let stream = socket.stream.clone();
        let newcomer = Newcomer { transport, agreed, sources, number, peer: self.peer, stream, session };
        if let Some(mut desk) = context.world.rtc.take() {
            desk.admit(newcomer, context.world, context.now);
            context.wake(desk.port);
            context.world.rtc = Some(desk);
        }
        Ok(())
    }

    /// The viewer of a WebSocket leaves.
    fn leave(&mut self, context: &mut Context<'_, Worker>) {
        let session = match &mut self.stage {
            Stage::Socket(socket) => socket.session.take(),
            _ => None,
        };
        if let Some(session) = session {
            self.dismiss(session, context);
        }
    }

    /// Answers a request as a fault wants it.
    fn refuse(&mut self, decree: Decree, keep_alive: bool, context: &mut Context<'_, Worker>) {
        match decree {
            Decree::Nothing => self.stage = Stage::Silent,
            Decree::Refusal { why, code, words } => {
                let status = code.and_then(|code| code.parse().ok()).unwrap_or(usual_status(&why));
                let mut answer = Answer::new(status, words.unwrap_or_else(|| reason(status).to_owned()));
                answer = match why {
                    Why::Unauthorized { .. } => answer.with("WWW-Authenticate", "Bearer"),
                    Why::Moved { to } => answer.with("Location", &to),
                    Why::Rejected => answer,
                };
                self.say(&answer, keep_alive, context);
            }
        }
    }

    fn say(&mut self, answer: &Answer, keep_alive: bool, context: &mut Context<'_, Worker>) {
        context.send(&answer.bytes(keep_alive));
        if !keep_alive {
            self.inbox = Vec::new();
            self.stage = Stage::Leaving(context.now + FAREWELL);
        }
        if context.unsent() > UNSENT_LIMIT {
            self.cut = Some(Cut::Close);
        }
    }

    fn time(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        if let Some(cut) = self.faults.cut(context.world, now) {
            self.cut = Some(cut);
            return;
        }
        match &self.stage {
            Stage::Leaving(at) if now >= *at => self.cut = Some(Cut::Close),
            Stage::Asking(since) if now >= *since + context.world.settings().patience.request => {
                self.cut = Some(Cut::Close);
            }
            Stage::Asking(_) | Stage::Leaving(_) | Stage::Socket(_) | Stage::Silent => {}
        }
    }

    /// Sets the one deadline of the session.
    fn arm(&self, context: &mut Context<'_, Worker>) {
        let deadline = match &self.stage {
            Stage::Asking(since) => Some(*since + context.world.settings().patience.request),
            Stage::Leaving(at) => Some(*at),
            Stage::Socket(_) | Stage::Silent => None,
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
        context: &mut Context<'_, Worker>,
    ) -> Option<Decree> {
        self.faults.answer(phase, who, None, context.world, context.now)
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

impl Session<Worker> for RtcSession {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Worker>) {
        match event {
            Event::Opening
            | Event::Writable
            | Event::Woken
            | Event::Datagrams(_)
            | Event::Side(_)
            | Event::HungUp { .. } => {}
            Event::Connected => {
                self.faults.begin(context.now);
                if self.fault(Phase::Accept, None, context).is_some() {
                    self.stage = Stage::Silent;
                }
            }
            Event::Bytes(bytes) => self.read(bytes, context),
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

impl std::fmt::Debug for RtcSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RtcSession").field("link", &self.link).finish_non_exhaustive()
    }
}

/// The local address that this peer's datagrams reach.
fn reached_at(peer: SocketAddr) -> Option<std::net::IpAddr> {
    // Connecting a datagram socket sends nothing: it asks the routes.
    let any: SocketAddr = if peer.is_ipv4() { ([0, 0, 0, 0], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = std::net::UdpSocket::bind(any).ok()?;
    socket.connect(peer).ok()?;
    socket.local_addr().ok().map(|address| address.ip())
}

fn role(agreed: &[Agreement]) -> DtlsRole {
    agreed.first().map_or(DtlsRole::Server, |agreed| agreed.role)
}

/// Sources of pictures and sound that no other viewer has.
fn sources(number: u64, now: Moment) -> [u32; 2] {
    let mixed = (number ^ now.as_nanos().rotate_left(24)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    [(mixed >> 32) as u32 | 1, (mixed as u32) | 1]
}

/// Names a session; not to be guessed from another one's.
fn session_of(number: u64, sources: &[u32; 2], now: Moment) -> u64 {
    let seed = now.as_nanos() ^ u64::from(sources[0]) << 32 ^ u64::from(sources[1]);
    (seed ^ number).wrapping_mul(0xD6E8_FEB8_6659_FD93).rotate_left(29).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn name_sources(description: &mut Description, sources: [u32; 2]) {
    for media in description.media.iter_mut().filter(|media| !media.rejected) {
        match media.kind {
            MediaKind::Video => media.sources = vec![sources[0]],
            MediaKind::Audio => media.sources = vec![sources[1]],
            MediaKind::Other => {}
        }
    }
}
