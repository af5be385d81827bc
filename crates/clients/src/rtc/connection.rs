//! A client's connection from signalling over ICE and DTLS to the keys of its session, and its end.

mod ending;
mod way;

pub(in crate::rtc) use way::Relayed;

use super::account::Numbers;
use super::dialogue::{Dialogue, ServerMessage, Signalling};
use super::figures::{DTLS_TIME, FIRST_KEYFRAME, FIRST_PACKET, ICE_TIME, MALFORMED, STRANGE};
use super::negotiation::{Negotiation, read_offer};
use super::refusal::of_transport;
use super::relay::{Relay, Server};
use super::request::Request;
use super::trickle::Trickle;
use crate::client_session::End;
use crate::redirect::Redirects;
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tracing::debug;
use url::Url;
use weir_metrics::common::{READS, RECEIVED, SENT, SOCKET_DROPS};
use weir_metrics::{Failure, Moment, Recorder, Spread};
use weir_rtc::sdp::{Agreement, OfferOptions, Sources};
use weir_rtc::signalling::http::Session;
use weir_rtc::srtp::{MasterKey, Profile};
use weir_rtc::transport::{Certificate, Clock, Event as Reached, Output, Reception};
use weir_rtc::turn::Carrier;
use weir_shard::{Context, Endpoint};

/// How often the kernel is asked what it has dropped.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// What all connections of a workload share.
pub(super) struct Terms {
    pub(super) signalling: Signalling,
    pub(super) offer_options: OfferOptions<'static>,
    pub(super) clock: Clock,
    pub(super) certificate: Certificate,
    /// The way to TURN servers that have names.
    pub(super) redirects: Redirects,
}

/// A step that a connection has reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Milestone {
    /// The server has consented.
    Consent,
    /// The keys are there: [`Connection::take_keys`].
    Keys,
}

/// What both sides have agreed on.
pub(super) struct Keys {
    pub(super) agreed: Vec<Agreement>,
    /// Under which we send.
    pub(super) sources: Sources,
    /// What the server protects with.
    pub(super) inbound: MasterKey,
    /// What we protect with.
    pub(super) outbound: MasterKey,
    pub(super) profile: Profile,
}

/// The connection of one client.
pub(super) struct Connection {
    planned: PlannedStart,
    terms: Arc<Terms>,
    request: Arc<Request>,
    endpoint: Endpoint,
    /// The signalling over the link; over HTTP it ends with the answer.
    dialogue: Option<Box<Dialogue>>,
    /// The session's own place, to be deleted.
    resource: Option<Box<Url>>,
    /// Our candidates that are sent after the offer, if the server takes them.
    trickle: Option<Box<Trickle>>,
    negotiation: Option<Box<Negotiation>>,
    /// The URL asks for one: no other way is sought.
    is_relay_wanted: bool,
    /// It has a socket of its own.
    has_socket: bool,
    /// The way that all datagrams go, if they do not go on their own.
    relay: Option<Box<Relay>>,
    /// Servers that may relay, and from when on one of them is to.
    spare: Option<(Moment, Vec<Server>)>,
    agreed: Vec<Agreement>,
    sources: Sources,
    keys: Option<Box<Keys>>,
    has_keys: bool,
    /// When the transport's next timeout is due.
    transport_due: Option<Moment>,
    path: Option<SocketAddr>,
    path_lost: Option<Moment>,
    /// A restart of ICE was asked for since then.
    has_restarted: bool,
    /// When the last step was reached.
    reached: Moment,
    /// When the server consented.
    consented: Option<Moment>,
    /// What the steps took.
    steps: Vec<(Spread, Duration)>,
    look_at: Moment,
    dropped: u64,
    /// The session is over; its end may be sent and answered until this moment.
    leaving: Option<Moment>,
}

impl Connection {
    pub(super) fn new(
        planned: PlannedStart,
        terms: Arc<Terms>,
        request: Arc<Request>,
        endpoint: Endpoint,
        now: Moment,
    ) -> Self {
        Self {
            planned,
            is_relay_wanted: request.wants_relay(),
            request,
            endpoint,
            dialogue: Some(Box::new(Dialogue::new(terms.signalling))),
            terms,
            resource: None,
            trickle: None,
            negotiation: None,
            has_socket: false,
            relay: None,
            spare: None,
            agreed: Vec::new(),
            sources: Sources::new(ssrc(planned.client, now)),
            keys: None,
            has_keys: false,
            transport_due: None,
            path: None,
            path_lost: None,
            has_restarted: false,
            reached: now,
            consented: None,
            steps: Vec::new(),
            look_at: now + POLL_INTERVAL,
            dropped: 0,
            leaving: None,
        }
    }

    /// The link is there: the first words.
    pub(super) fn connected(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let client = self.planned.number();
        if self.leaving.is_some() {
            debug!(target: "rtc", client, "ends its session (DELETE)");
            if let Some(resource) = self.resource.take() {
                self.send(&self.request.delete(&resource), context);
            }
            return Ok(());
        }
        if let (Some(trickle), Some(resource), Some(negotiation)) =
            (&mut self.trickle, &self.resource, &self.negotiation)
        {
            let restarts = trickle.restart().is_some();
            debug!(target: "rtc", client, restarts, "tells its candidates (PATCH)");
            let fragment = negotiation.fragment(trickle.restart());
            let words = trickle.patch(&self.request, resource, &fragment);
            self.send(&words, context);
            return Ok(());
        }
        let offer = match self.terms.signalling {
            Signalling::Http => {
                let mut negotiation = self.negotiate(true, false, context)?;
                let offer = negotiation.offer(&self.terms.offer_options, self.sources);
                self.negotiation = Some(Box::new(negotiation));
                debug!(target: "rtc", client, bytes = offer.len(), "offers (POST)");
                offer
            }
            Signalling::Oven => {
                debug!(target: "rtc", client, "asks for a WebSocket");
                String::new()
            }
        };
        if let Some(dialogue) = &self.dialogue {
            self.send(&dialogue.begin(&self.request, &offer), context);
        }
        Ok(())
    }

    /// A transport with a socket of its own, unless all is to go by a relay.
    fn negotiate(
        &mut self,
        controlling: bool,
        relayed: bool,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<Negotiation, End> {
        let local = if relayed { None } else { Some(self.open_socket(context)?) };
        Negotiation::new(local, &self.terms.certificate, controlling, self.terms.clock)
    }

    /// Opens the socket; the address to be reached at.
    fn open_socket(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<SocketAddr, End> {
        let address = context.open_datagrams().map_err(|error| (error.failure, error.words))?;
        self.has_socket = true;
        Ok(address)
    }

    /// Bytes of the dialogue came.
    pub(super) fn read(
        &mut self,
        mut bytes: &[u8],
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<Option<Milestone>, End> {
        let recorder = context.world.of(self.planned);
        recorder.count(READS, 1);
        recorder.count(RECEIVED, bytes.len() as u64);
        if self.leaving.is_some() {
            // Any answer shows that it has received the end.
            self.leaving = Some(context.now);
            return Ok(None);
        }
        if let Some(trickle) = self.trickle.as_mut().filter(|trickle| trickle.is_asking()) {
            let next = trickle.read(bytes);
            self.on_trickle_answer(next, context)?;
            return Ok(None);
        }
        let mut milestone = None;
        while !bytes.is_empty() {
            let Some(dialogue) = &mut self.dialogue else { break };
            let mut out = Vec::new();
            let heard = dialogue.read(&self.request, &mut bytes, &mut out);
            self.send(&out, context);
            match heard? {
                Some(heard) => milestone = milestone.or(self.on_signalling(heard, context)?),
                None => break,
            }
        }
        Ok(milestone)
    }

    fn on_signalling(
        &mut self,
        heard: ServerMessage,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<Option<Milestone>, End> {
        let (now, client) = (context.now, self.planned.number());
        match heard {
            ServerMessage::Open => {
                debug!(target: "rtc", client, "the WebSocket is open, asks for an offer");
                return Ok(None);
            }
            ServerMessage::Answer(session) => {
                let Session { sdp, resource, entity_tag, ice_servers, trickles } = *session;
                self.resource = resource.map(Box::new);
                self.dialogue = None;
                if let Some(negotiation) = &mut self.negotiation {
                    // The offer had to have candidates, or the server would have given up.
                    if self.is_relay_wanted {
                        negotiation.transport.withdraw_candidates();
                    }
                    self.agreed = negotiation.take_answer(now, &sdp)?;
                    let (media, reachable) = (self.agreed.len(), negotiation.reachable);
                    debug!(target: "rtc", client, media, reachable, "answered");
                }
                // The signalling connection is not needed any more; open, it would cost a descriptor for each client.
                context.hang_up();
                self.consider(&ice_servers, context)?;
                if trickles {
                    self.trickle = Some(Box::new(Trickle::new(entity_tag)));
                    if !self.is_relay_wanted {
                        self.send_candidates(context);
                    }
                }
            }
            ServerMessage::Offer(offer) => {
                // A second one would be another session: weir has asked for one.
                if self.negotiation.is_some() {
                    return Ok(None);
                }
                let description = read_offer(&offer)?;
                // OvenMediaEngine names its relay to those that asked for TCP, and with `TcpForce` to everybody: its own
                // players take no other path then.
                self.is_relay_wanted |= Server::all(&offer.ice_servers)
                    .is_ok_and(|servers| servers.iter().any(|server| server.carrier() == Carrier::Tcp));
                let relayed = self.is_relay_wanted;
                let mut negotiation = self.negotiate(description.ice_lite, relayed, context)?;
                let (answer, agreed) =
                    negotiation.answer(now, &description, &offer.candidates, &self.terms.offer_options)?;
                let (media, reachable) = (agreed.len(), negotiation.reachable);
                debug!(target: "rtc", client, media, reachable, relayed, "offered, answers");
                self.agreed = agreed;
                self.negotiation = Some(Box::new(negotiation));
                let mut out = Vec::new();
                if let Some(dialogue) = &mut self.dialogue {
                    dialogue.answer(&answer, &mut out);
                }
                self.send(&out, context);
                self.consider(&offer.ice_servers, context)?;
            }
            ServerMessage::Goodbye(words) => return Err((Failure::StreamEnded, words)),
        }
        self.reached = now;
        self.consented.get_or_insert(now);
        // Keys cannot come before a datagram has.
        self.drain(context)?;
        Ok(Some(Milestone::Consent))
    }

    fn send(&self, words: &[u8], context: &mut Context<'_, ShardRecorder>) {
        if !words.is_empty() {
            context.send(words);
            context.world.of(self.planned).count(SENT, words.len() as u64);
        }
    }

    /// STUN or DTLS came.
    pub(super) fn receive(
        &mut self,
        source: SocketAddr,
        bytes: &[u8],
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<Option<Milestone>, End> {
        let Some(negotiation) = &mut self.negotiation else { return Ok(None) };
        match negotiation.transport.receive(context.now, source, bytes) {
            Reception::Taken => self.drain(context),
            Reception::Strange => {
                context.world.of(self.planned).count(STRANGE, 1);
                Ok(None)
            }
            Reception::Malformed => {
                context.world.of(self.planned).count(MALFORMED, 1);
                Ok(None)
            }
        }
    }

    /// Sends what the transport has to send, and takes its events.
    fn drain(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<Option<Milestone>, End> {
        let (now, client) = (context.now, self.planned.number());
        let mut milestone = None;
        while let Some(output) = self.negotiation.as_mut().and_then(|it| it.transport.poll()) {
            match output {
                Output::Send { destination, datagram } => self.deliver(destination, &datagram, context),
                Output::Event(Reached::Path(path)) => {
                    debug!(target: "rtc", client, %path, "ICE has a path");
                    if self.path.is_none() {
                        self.step(ICE_TIME, now, context.world);
                    } else {
                        self.settle(path, context);
                    }
                    self.spare_relay(context);
                    if let Some(relay) = &mut self.relay {
                        relay.stay();
                    }
                    self.path = Some(path);
                    (self.path_lost, self.has_restarted) = (None, false);
                }
                Output::Event(Reached::PathLost) => {
                    debug!(target: "rtc", client, "checks of the path are not answered any more");
                    self.path_lost.get_or_insert(now);
                    self.request_restart(context);
                }
                Output::Event(Reached::Keys { inbound, outbound, profile }) => {
                    debug!(target: "rtc", client, ?profile, "DTLS has keys");
                    self.step(DTLS_TIME, now, context.world);
                    if let Some(path) = self.path {
                        self.settle(path, context);
                    }
                    let agreed = std::mem::take(&mut self.agreed);
                    self.keys =
                        Some(Box::new(Keys { agreed, sources: self.sources, inbound, outbound, profile }));
                    self.has_keys = true;
                    milestone = Some(Milestone::Keys);
                }
                Output::Event(Reached::Closed) => {
                    let words = "the server closed the session (DTLS close_notify)".to_owned();
                    return Err((Failure::StreamEnded, words));
                }
                Output::Event(Reached::Failed(error)) => return Err(of_transport(&error)),
            }
        }
        self.transport_due = self.negotiation.as_mut().and_then(|it| it.transport.due());
        Ok(milestone)
    }

    /// Books the time since the last step.
    pub(super) fn step(&mut self, step: Spread, now: Moment, shard: &mut ShardRecorder) {
        let took = now.since(std::mem::replace(&mut self.reached, now));
        shard.of(self.planned).record(step, took.as_micros() as u64);
        self.steps.push((step, took));
    }

    /// What a step took, once it was made.
    fn took(&self, step: Spread) -> Option<Duration> {
        self.steps.iter().find(|(made, _)| *made == step).map(|(_, took)| *took)
    }

    /// How far it came; a client that has failed has failed at the next step.
    pub(super) fn account_states(&self, failed: bool, numbers: &mut Numbers) {
        let ice = match (self.consented, self.path, self.path_lost) {
            (None, _, _) => "new",
            (_, None, _) if failed => "failed",
            (_, None, _) => "checking",
            (_, Some(_), Some(_)) => "disconnected",
            (_, Some(_), None) => "connected",
        };
        let dtls = match (self.path, self.has_keys) {
            (None, _) => "new",
            (Some(_), true) => "connected",
            (Some(_), false) if failed => "failed",
            (Some(_), false) => "connecting",
        };
        numbers.word("rtc.ice_state", ice);
        numbers.word("rtc.dtls_state", dtls);
        let relay = self.relay.as_ref().filter(|relay| relay.is_in_use());
        numbers.word(
            "rtc.path",
            match self.path {
                None => "none",
                Some(_) => relay.map_or("UDP", |relay| relay.path()),
            },
        );
    }

    /// How fast it came so far.
    pub(super) fn account_steps(&self, numbers: &mut Numbers) {
        numbers.duration("rtc.signalling_time", self.consented.map(|at| at.since(self.planned.at)));
        for (figure, step) in [
            ("rtc.ice_time", ICE_TIME),
            ("rtc.dtls_time", DTLS_TIME),
            ("rtc.first_packet", FIRST_PACKET),
            ("rtc.first_keyframe", FIRST_KEYFRAME),
        ] {
            numbers.duration(figure, self.took(step));
        }
    }

    /// The keys, once.
    pub(super) fn take_keys(&mut self) -> Option<Box<Keys>> {
        self.keys.take()
    }

    /// Whether media from there is the server's: of the path, or of another of its candidates that a check has proven. A
    /// server with several addresses sends from any of them (RFC 8445 section 12.2).
    #[inline]
    pub(super) fn takes_media_of(&self, source: SocketAddr) -> bool {
        self.path.is_none_or(|path| path == source)
            || self.negotiation.as_ref().is_some_and(|it| it.transport.is_validated(source))
    }

    /// Since when no connectivity check has been answered, if that is so.
    pub(super) fn path_lost(&self) -> Option<Moment> {
        self.path_lost
    }

    /// The round trip of connectivity checks.
    pub(super) fn round_trip(&self) -> Option<Duration> {
        self.negotiation.as_ref().and_then(|it| it.transport.round_trip())
    }

    /// Lets `act` book, and say something to the server.
    pub(super) fn with_sender(
        &mut self,
        context: &mut Context<'_, ShardRecorder>,
        act: impl FnOnce(&mut Recorder, &mut dyn FnMut(&[u8], usize)),
    ) {
        let Some(path) = self.path else { return };
        let mut sent = 0;
        let now = context.now;
        let (world, mut link) = context.split();
        let recorder = world.of(self.planned);
        match self.relay.as_mut().filter(|relay| relay.is_in_use()) {
            Some(relay) => {
                act(recorder, &mut |bytes, length| {
                    bytes.chunks(length.max(1)).for_each(|datagram| relay.send(now, path, datagram));
                });
                sent = relay.flush(&mut link);
            }
            None => act(recorder, &mut |bytes, length| {
                link.send_datagrams(path, bytes, length);
                sent += bytes.len() as u64;
            }),
        }
        recorder.count(SENT, sent);
    }

    /// Time has passed.
    pub(super) fn handle_timeout(
        &mut self,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<Option<Milestone>, End> {
        let now = context.now;
        if self.look_at <= now {
            self.look_at = now + POLL_INTERVAL;
            self.look(context);
        }
        if let Some((_, servers)) = self.spare.take_if(|(at, _)| *at <= now) {
            self.begin_relay(servers, context)?;
        }
        self.resolve_candidates(context)?;
        if let Some(relay) = self.relay.as_mut().filter(|relay| relay.due().is_some_and(|due| due <= now)) {
            relay.handle_timeout(&self.terms.redirects, context)?;
            self.flush_relay(context);
        }
        if self.transport_due.is_some_and(|due| due <= now)
            && let Some(negotiation) = &mut self.negotiation
        {
            negotiation.transport.handle_timeout(now);
            return self.drain(context);
        }
        Ok(None)
    }

    /// Asks the kernel what it has dropped.
    fn look(&mut self, context: &mut Context<'_, ShardRecorder>) {
        if self.negotiation.is_some() {
            let dropped = context.dropped_datagrams();
            let new = dropped - std::mem::replace(&mut self.dropped, dropped).min(dropped);
            context.world.of(self.planned).count(SOCKET_DROPS, new);
        }
    }

    /// When to call [`Self::handle_timeout`].
    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        let look = self.negotiation.is_some().then_some(self.look_at);
        let spare = self.spare.as_ref().map(|(at, _)| *at);
        let relay = self.relay.as_ref().and_then(|relay| relay.due());
        let names = self.negotiation.as_ref().and_then(|it| it.names.poll_timeout());
        [self.transport_due, look, spare, relay, names].into_iter().flatten().min()
    }
}

/// An SSRC for a client: different for all clients of a run, and from run to run (RFC 3550 section 8.1).
pub(super) fn ssrc(client: u32, now: Moment) -> u32 {
    let mixed = (u64::from(client) ^ now.as_nanos()).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 32) as u32 | 1
}
