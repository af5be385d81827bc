//! What answers a connection of signalling: WHEP and WHIP over HTTP, or OvenMediaEngine's dialogue in a WebSocket.

mod socket;

use super::answer::{of_kind, plain, usual, with_links};
use super::hub::{Hub, HubMessage, NewPeer, remote};
use super::identity::Identity;
use super::offers::Purpose;
use super::page::{PLAY, PUBLISH};
use super::request::{has_description, path, publishes, stream, wants_relay};
use crate::fault::{LinkEnd, LinkPhase, ScriptedAnswer, Subject, Why};
use crate::http::{HttpLink, HttpRefusal, Responder, UNSENT_LIMIT, is_of_another_site, socket_key};
use crate::policy::MissingStream;
use crate::publisher::Publisher;
use crate::rtmp::retime;
use crate::worker::Worker;
use socket::Socket;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use weir_metrics::Moment;
use weir_rtc::sdp::{Agreement, Description, Direction, Local, MediaKind, agree};
use weir_rtc::signalling::http::SDP;
use weir_rtc::transport::{DtlsRole, Transport, TransportSettings};
use weir_shard::Context;
use weir_web::{Message as Answer, PRODUCT, Request};

/// Bytes of a WebSocket that are looked at before others have their turn.
const SOCKET_PIECE: usize = 4 * 1024;
/// Sessions that may be begun over one connection within the patience for a request: more than any page of players.
const BEGUN_OVER_ONE: usize = 64;
/// The status that names another place: the offer is to be made again there (RFC 9725 section 4.2).
const MOVED: u16 = 307;

/// What may be asked.
const METHODS: &str = "OPTIONS, GET, POST, PATCH, DELETE";

/// What answers signalling.
pub(crate) struct SignallingResponder {
    link: HttpLink,
    /// OvenMediaEngine's dialogue, if the connection speaks it.
    socket: Option<Box<Socket>>,
    /// When sessions were begun over this connection that may not have their keys yet.
    begun: VecDeque<Moment>,
}

impl SignallingResponder {
    /// WHEP: an offer is answered, and a viewer comes.
    fn watch(
        &mut self,
        stream: &Arc<str>,
        offer: &str,
        context: &mut Context<'_, Worker>,
    ) -> Result<Answer, ScriptedAnswer> {
        let number = self.number(stream, context)?;
        let pictures = context.world.settings().registry.pictures(stream);
        let purpose = Purpose::Watch(pictures);
        let (new_peer, answer) = match self.negotiate(number, stream, offer, purpose, context) {
            Ok(made) => made,
            Err(answer) => return Ok(answer),
        };
        if let Some(mut hub) = context.world.take_state::<Hub>() {
            hub.admit(new_peer, context.world, context.now);
            context.wake(hub.port);
            context.world.put_state(hub);
        }
        Ok(answer)
    }

    /// WHIP: an offer is answered, and a publisher comes (RFC 9725 section 4.2).
    fn publish(
        &mut self,
        stream: &Arc<str>,
        offer: &str,
        context: &mut Context<'_, Worker>,
    ) -> Result<Answer, ScriptedAnswer> {
        let now = context.now;
        let number = context.world.settings().registry.next_publisher();
        if let Some(answer) = self.fault(LinkPhase::Publish, Some(Subject::Publisher(number)), context) {
            return Err(answer);
        }
        let (new_peer, answer) = match self.negotiate(number, stream, offer, Purpose::Publish, context) {
            Ok(made) => made,
            Err(answer) => return Ok(answer),
        };
        let claimed = Publisher::claim(stream, Some(number), retime, context.world, now);
        let Some(mut publisher) = claimed else {
            return Ok(plain(409, format!("{stream} is being published")));
        };
        let wakes = publisher.flush(context.world);
        context.wake_all(wakes);
        if let Some(mut hub) = context.world.take_state::<Hub>() {
            hub.admit_publisher(new_peer, publisher, context.world, now);
            context.wake(hub.port);
            context.world.put_state(hub);
        }
        Ok(answer)
    }

    /// Makes a peer of an offer, and an answer to it; or an answer that says why not.
    fn negotiate(
        &self,
        number: u64,
        stream: &Arc<str>,
        offer: &str,
        purpose: Purpose,
        context: &Context<'_, Worker>,
    ) -> Result<(NewPeer, Answer), Answer> {
        let mut offer: Description = offer.parse().map_err(|error| plain(400, format!("{error}")))?;
        for kind in [MediaKind::Video, MediaKind::Audio] {
            // A stream has one track of each.
            let more = offer.media.iter_mut().filter(|media| media.kind == kind && !media.rejected).skip(1);
            more.for_each(|media| media.rejected = true);
        }
        let theirs = remote(&offer).ok_or_else(|| plain(400, "no ICE credentials or fingerprint"))?;
        let made = context.world.state::<Hub>().and_then(|hub| self.transport(hub));
        let made = made.and_then(|made| Some((made, Identity::new()?)));
        let ((mut transport, local), identity) =
            made.ok_or_else(|| plain(503, "no transport can be made"))?;
        let mut answer = local.answer(&offer, &purpose.options(&offer));
        let theirs_is = purpose.direction();
        if theirs_is == Direction::ReceiveOnly {
            identity.name_sources(&mut answer);
        }
        let of_use = |direction: Direction| direction == Direction::SendReceive || direction == theirs_is;
        if !offer.media.iter().any(|media| media.kind == MediaKind::Video && of_use(media.direction)) {
            return Err(plain(
                406,
                "the offer has no pictures that go the right way: publishers ask at …/whip, viewers at …/whep",
            ));
        }
        let agreed = agree(&offer, &answer, true);
        if !agreed.iter().any(|it| it.kind == MediaKind::Video) {
            return Err(plain(406, purpose.refusal(&offer)));
        }
        transport.connect(context.now, theirs, role(&agreed));
        let Identity { session, sources } = identity;
        let stream = stream.clone();
        let new_peer =
            NewPeer { transport, agreed, sources, number, peer: self.link.peer(), stream, session };
        let answer = of_kind(SDP, 201, answer.to_string())
            .field("Location", format_args!("/session/{session:016x}"))
            .field("ETag", format_args!("\"{session:x}\""));
        Ok((new_peer, with_links(answer, context.world.settings().turn.as_ref())))
    }

    /// A transport that others reach at the worker's port.
    fn transport(&self, hub: &Hub) -> Option<(Transport, Local)> {
        let mut local = hub.local;
        if local.ip().is_unspecified() {
            local.set_ip(reached_at(self.link.peer())?);
        }
        let settings = TransportSettings {
            local,
            certificate: hub.certificate.clone(),
            lite: true,
            controlling: false,
            clock: hub.clock,
        };
        let transport = Transport::new(settings).ok()?;
        let local = Local {
            user_fragment: transport.user_fragment().to_owned(),
            password: transport.password().to_owned(),
            fingerprint: hub.certificate.fingerprint(),
            candidates: transport.candidates().collect(),
            lite: true,
        };
        Some((transport, local))
    }

    /// The number of a viewer that asks now, unless a fault or a missing stream prevents it.
    fn number(
        &mut self,
        stream: &Arc<str>,
        context: &mut Context<'_, Worker>,
    ) -> Result<u64, ScriptedAnswer> {
        let settings = context.world.settings().clone();
        let number = settings.next_viewer();
        if let Some(answer) = self.fault(LinkPhase::Play, Some(Subject::Viewer(number)), context) {
            return Err(answer);
        }
        if settings.missing_stream == MissingStream::Refuse && !settings.registry.is_live(stream) {
            let words = Some(format!("{stream} is not published"));
            return Err(ScriptedAnswer::Refusal { why: Why::Rejected, code: Some("404".to_owned()), words });
        }
        Ok(number)
    }

    fn delete(&self, request: &Request, context: &mut Context<'_, Worker>) -> Answer {
        let path = path(request);
        let session = path.strip_prefix("session/").and_then(|it| u64::from_str_radix(it, 16).ok());
        let Some(session) = session else { return usual(404) };
        self.dismiss(session, context);
        plain(200, "")
    }

    /// Lets a peer go, whichever worker it is with.
    fn dismiss(&self, session: u64, context: &mut Context<'_, Worker>) {
        let now = context.now;
        let hub = context.world.state_mut::<Hub>();
        let mine = hub.and_then(|hub| hub.dismiss(session, now));
        match mine {
            Some(port) => context.wake(port),
            None => context.world.tell_peers(&HubMessage::Dismiss { session }.into()),
        }
    }

    /// Whether one session more may be begun over this connection. Each costs a good millisecond and some memory, until
    /// it has keys or is given up.
    fn may_begin(&mut self, context: &Context<'_, Worker>) -> bool {
        let patience = context.world.settings().patience.request;
        while self.begun.front().is_some_and(|at| *at + patience <= context.now) {
            self.begun.pop_front();
        }
        let may = self.begun.len() < BEGUN_OVER_ONE;
        if may {
            self.begun.push_back(context.now);
        }
        may
    }

    /// Answers a request as a fault wants it.
    fn refuse(&mut self, answer: ScriptedAnswer, keep_alive: bool, context: &mut Context<'_, Worker>) {
        let Some(refusal) = HttpRefusal::of(answer, "Bearer", MOVED) else {
            return self.link.fall_silent(context);
        };
        let status = refusal.status;
        let answer = refusal.words.as_deref().map_or_else(|| usual(status), |words| plain(status, words));
        self.respond(refusal.complete(answer), keep_alive, context);
    }

    fn respond(&mut self, answer: Answer, keep_alive: bool, context: &mut Context<'_, Worker>) {
        context.send(&answer.keep_alive(keep_alive).end());
        self.link.after_answer(keep_alive, context.now);
        self.close_if_unread(context);
    }

    fn close_if_unread(&mut self, context: &Context<'_, Worker>) {
        if context.unsent() > UNSENT_LIMIT {
            self.link.end(LinkEnd::Close);
        }
    }

    fn fault(
        &mut self,
        phase: LinkPhase,
        who: Option<Subject>,
        context: &mut Context<'_, Worker>,
    ) -> Option<ScriptedAnswer> {
        self.link.fault(phase, who, None, context)
    }
}

impl Responder for SignallingResponder {
    const MOST_BODY: usize = weir_rtc::sdp::MOST_BYTES;
    // Each may begin a session, which takes more than a millisecond.
    const ANSWERS_A_TURN: usize = 4;

    fn new(link: HttpLink) -> Self {
        Self { link, socket: None, begun: VecDeque::new() }
    }

    fn link(&mut self) -> &mut HttpLink {
        &mut self.link
    }

    fn answer(&mut self, request: &Request, context: &mut Context<'_, Worker>) {
        context.await_request();
        if let Some(answer) = self.fault(LinkPhase::Connect, None, context) {
            return self.refuse(answer, request.keep_alive, context);
        }
        let answer = match (&*request.method, stream(request)) {
            ("POST", Some(_)) if !has_description(request) => {
                plain(415, "an offer has Content-Type: application/sdp").field("Accept-Post", SDP)
            }
            ("POST", Some(_)) if !self.may_begin(context) => {
                plain(503, "too many sessions were begun over this connection just now")
            }
            ("OPTIONS", _) => Answer::response(204)
                .field("Server", PRODUCT)
                .field("Allow", METHODS)
                .field("Accept-Post", SDP),
            ("DELETE", _) => self.delete(request, context),
            // All of the origin's candidates are in its answer, and it needs none of its peers'.
            ("PATCH", _) => plain(405, "trickling is of no use here: the answer has all candidates"),
            ("POST", Some(stream)) => {
                let stream = stream.into();
                let offer = String::from_utf8_lossy(&request.body);
                let made = if publishes(request) {
                    self.publish(&stream, &offer, context)
                } else {
                    self.watch(&stream, &offer, context)
                };
                return match made {
                    Ok(answer) => self.respond(answer, request.keep_alive, context),
                    Err(answer) => self.refuse(answer, request.keep_alive, context),
                };
            }
            ("GET", Some(_)) if socket_key(request).is_some() && is_of_another_site(request) => {
                plain(403, "a page of another site may not open a WebSocket here")
            }
            ("GET", Some(stream)) => match socket_key(request) {
                Some(key) => return self.open(&stream.into(), key, wants_relay(request), context),
                None => {
                    let page = if publishes(request) { PUBLISH } else { PLAY };
                    of_kind("text/html; charset=utf-8", 200, page)
                }
            },
            ("GET", None) => plain(404, "ask for a stream: /APP/STREAM"),
            _ => usual(405).field("Allow", METHODS),
        };
        self.respond(answer, request.keep_alive, context);
    }

    fn answer_bad_request(&mut self, status: u16, context: &mut Context<'_, Worker>) {
        self.respond(usual(status), false, context);
    }

    fn take(&mut self, bytes: &[u8], context: &mut Context<'_, Worker>) -> bool {
        let Some(socket) = &mut self.socket else { return false };
        // A message at a time: an offer is made for a few bytes.
        let (piece, rest) = bytes.split_at(bytes.len().min(SOCKET_PIECE));
        socket.socket.input(piece);
        context.give_back(rest);
        self.converse(context);
        true
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Worker>) {
        self.ping(context);
    }

    fn deadline(&mut self, _: &mut Context<'_, Worker>) -> Option<Moment> {
        self.socket.as_ref()?.ping_at
    }

    /// The viewer of a WebSocket leaves.
    fn leave(&mut self, context: &mut Context<'_, Worker>) {
        if let Some(session) = self.socket.as_mut().and_then(|socket| socket.session.take()) {
            self.dismiss(session, context);
        }
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
