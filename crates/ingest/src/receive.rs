//! The session with the broker. Messages go into the inbox, and are acknowledged when the saving thread has saved them.

use crate::counts::Counts;
use crate::inbound::{InboundMessage, KEPT_OF_LARGE, Origin, ReadBuffer};
use crate::inbox::Inbox;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_mqtt::client::{Message, Session as MqttSession};
use weir_mqtt::delivery::{Arrival, DeliveryTracker};
use weir_mqtt::packet::{Disconnect, PacketId, RetainHandling, Subscription, SubscriptionOptions};
use weir_mqtt::property::Properties;
use weir_mqtt::{
    Client, ClientEvent, ClientOptions, Mark, PacketKind, Property, PropertyBuffer, Qos, ReasonCode, Version,
};
use weir_setting::{CLIENT_ID, MQTT_VERSION, QOS_OF_INGEST, WS_PATH, named};
use weir_shard::{Context, Event, Session, SessionId, World, clock};
use weir_web::websocket::OpeningError;
use weir_web::{Carrier, CarrierError, SocketRequest};

/// How long the broker may take for the connection, and for its answers to CONNECT and SUBSCRIBE.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the end of a connection may take: the last acknowledgements and DISCONNECT are sent, and the broker closes the
/// link.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A message of the saving thread to this one.
#[derive(Debug)]
pub(crate) enum SaverMessage {
    /// These messages are saved.
    Settled(Vec<(u32, PacketId)>),
    /// The inbox has room again.
    Room,
    /// The connection has ended.
    Finished,
}

/// What the shard's only session shares with the loop around it.
#[derive(Debug, Default)]
pub(crate) struct ReceiverState {
    pub(crate) session: Option<SessionId>,
    settled: Vec<(u32, PacketId)>,
    room: bool,
    /// Whether the saving thread has ended.
    pub(crate) finished: bool,
    /// How the last session ended.
    pub(crate) ended: Option<ConnectionEnd>,
    /// The first connection of the session that the broker has now.
    session_since: u32,
    /// Which messages came.
    deliveries: DeliveryTracker,
}

/// The end of a connection.
#[derive(Debug)]
pub(crate) struct ConnectionEnd {
    pub(crate) session: MqttSession,
    pub(crate) words: String,
    /// Whether another attempt would end the same way.
    pub(crate) for_good: bool,
    /// Whether the subscription had been granted.
    pub(crate) was_subscribed: bool,
}

impl World for ReceiverState {
    type Message = SaverMessage;

    fn receive(&mut self, message: SaverMessage, _: Moment, wake: &mut Vec<SessionId>) {
        match message {
            SaverMessage::Settled(packets) if self.settled.is_empty() => self.settled = packets,
            SaverMessage::Settled(packets) => self.settled.extend(packets),
            SaverMessage::Room => self.room = true,
            SaverMessage::Finished => self.finished = true,
        }
        wake.extend(self.session);
    }
}

/// What all connections share.
#[derive(Debug)]
pub(crate) struct ReceiverOptions {
    pub(crate) client: Arc<ClientOptions>,
    pub(crate) socket: Option<Arc<SocketRequest>>,
    pub(crate) filter: String,
    /// Whether others may get what this client does not (MQTT 5 section 4.8.2).
    pub(crate) is_shared: bool,
    pub(crate) qos: Qos,
    /// Whether the session ends when all is done (MQTT 5 section 3.14.2.2.2).
    pub(crate) ends_session: bool,
    pub(crate) max_message: usize,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) counts: Arc<Counts>,
}

/// How far a connection has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ReceiverPhase {
    Connecting,
    Handshaking,
    Subscribing,
    Subscribed,
    /// Nothing more is taken; what was is being saved.
    Stopping,
    /// DISCONNECT is sent.
    Leaving,
    Over,
}

/// One connection.
pub(crate) struct Receiver {
    client: Client,
    carrier: Carrier,
    /// What the carrier has to send, kept for its memory.
    wire: Vec<u8>,
    options: Arc<ReceiverOptions>,
    phase: ReceiverPhase,
    /// Its number.
    connection: u32,
    /// Whether the broker may hold a session with the subscription in it.
    resuming: bool,
    buffer: ReadBuffer,
    large: Option<Large>,
    paused: bool,
    /// When the present phase must be over.
    deadline: Option<Moment>,
    /// When reading began again; what waits to be read may hold the answer to a PINGREQ.
    read_again: Option<Moment>,
    was_subscribed: bool,
}

impl Receiver {
    /// `resuming`: an earlier connection of this process had the subscription granted.
    pub(crate) fn new(
        options: Arc<ReceiverOptions>,
        session: MqttSession,
        connection: u32,
        resuming: bool,
        now: Moment,
    ) -> Self {
        Self {
            client: Client::new(options.client.clone(), session, since_start(now)),
            carrier: Carrier::new(options.socket.clone()),
            wire: Vec::new(),
            options,
            phase: ReceiverPhase::Connecting,
            connection,
            resuming,
            buffer: ReadBuffer { connection, ..ReadBuffer::default() },
            large: None,
            paused: false,
            deadline: Some(now + CONNECT_TIMEOUT),
            read_again: None,
            was_subscribed: false,
        }
    }

    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, ReceiverState>) -> Result<(), (String, bool)> {
        let now = context.now;
        let received = (clock::wall_nanos() / 1_000) as i64;
        let mut packets = Vec::new();
        let bytes = self.carrier.read(bytes, &mut packets, &mut self.wire);
        let bytes = bytes.map_err(|error| explained(&error, self.resuming))?;
        let mut reading = Reading {
            buffer: &mut self.buffer,
            large: &mut self.large,
            options: &self.options,
            state: &mut *context.world,
            // Of a session that goes on, messages come right behind CONNACK.
            taking: self.phase < ReceiverPhase::Stopping,
            received,
            outcome: ReadOutcome::default(),
        };
        let outcome = self.client.input(bytes, since_start(now), &mut |event| reading.on_event(event));
        let heard = reading.outcome;
        let counts = &self.options.counts;
        Counts::add(&counts.messages, heard.messages);
        Counts::add(&counts.bytes, heard.bytes);
        Counts::add(&counts.acknowledged, heard.settled);
        if heard.messages > 0 {
            counts.receipts.note(now);
        }
        counts.publishers.store(context.world.deliveries.publishers() as u64, Relaxed);
        self.hand_over(context);
        outcome.map_err(|error| (error.to_string(), false))?;
        if let Some(refused) = heard.refused {
            return Err(refused);
        }
        if let Some(session_present) = heard.connected {
            self.connected(session_present, now)?;
            // What was saved while there was no connection.
            self.on_progress(context);
        }
        if heard.granted && self.phase == ReceiverPhase::Subscribing {
            self.subscribed();
        }
        Ok(())
    }

    /// Puts what was read into the inbox, and stops reading if that is full.
    fn hand_over(&mut self, context: &mut Context<'_, ReceiverState>) {
        if self.buffer.messages.is_empty() {
            return;
        }
        let full = self.options.inbox.push(&mut self.buffer);
        self.buffer.connection = self.connection;
        if full && !self.paused {
            self.paused = true;
            context.pause_reading(true);
        }
    }

    fn connected(&mut self, session_present: bool, now: Moment) -> Result<(), (String, bool)> {
        if self.phase != ReceiverPhase::Handshaking {
            return Ok(());
        }
        if session_present && self.resuming {
            // The subscription is part of the session (MQTT 5 section 4.1).
            self.subscribed();
            return Ok(());
        }
        if self.resuming {
            Counts::add(&self.options.counts.sessions_lost, 1);
        }
        // A session of an earlier process was sent already what the broker keeps. 3.1.1 cannot say this.
        let once = self.options.client.version == Version::V5;
        let retain_handling = if once { RetainHandling::New } else { RetainHandling::Always };
        let options = SubscriptionOptions { retain_handling, ..SubscriptionOptions::qos(self.options.qos) };
        let subscription = [Subscription { filter: &self.options.filter, options }];
        self.client
            .subscribe(&subscription, &Properties::NONE, 0, since_start(now))
            .map_err(|error| (error.to_string(), true))?;
        (self.phase, self.deadline) = (ReceiverPhase::Subscribing, Some(now + CONNECT_TIMEOUT));
        Ok(())
    }

    fn subscribed(&mut self) {
        (self.phase, self.deadline, self.was_subscribed) = (ReceiverPhase::Subscribed, None, true);
        self.options.counts.subscribed.store(1, Relaxed);
    }

    /// The saving thread has made progress: acknowledges what is saved, reads on if there is room again, and disconnects when
    /// everything is done.
    fn on_progress(&mut self, context: &mut Context<'_, ReceiverState>) {
        let now = context.now;
        let settled = std::mem::take(&mut context.world.settled);
        let mut acknowledged = 0;
        for (connection, id) in settled {
            if connection == self.connection && self.client.is_connected() {
                // Success is a reason that both packets have.
                let written = self.client.acknowledge(id, ReasonCode::Success, since_start(now));
                acknowledged += u64::from(written.is_ok());
            } else if connection >= context.world.session_since {
                // What came by an earlier connection comes again (MQTT 5 section 4.4), and is acknowledged then: at QoS 1 as a message
                // of its own, at QoS 2 as the one that it is.
                acknowledged += u64::from(self.client.settle(id, since_start(now)));
            }
        }
        Counts::add(&self.options.counts.acknowledged, acknowledged);
        if std::mem::take(&mut context.world.room) && self.paused && self.phase != ReceiverPhase::Leaving {
            self.paused = false;
            self.read_again = Some(now);
            context.pause_reading(false);
        }
        if context.world.finished && self.phase < ReceiverPhase::Leaving {
            let mut properties = PropertyBuffer::new();
            if self.options.ends_session && self.options.client.version == Version::V5 {
                // One property has room.
                let _ = properties.push(Property::SessionExpiryInterval(0));
            }
            // Both versions have a normal disconnection.
            let _ = self
                .client
                .disconnect(&Disconnect { reason: ReasonCode::Success, properties: properties.properties() });
            (self.phase, self.deadline) = (ReceiverPhase::Leaving, Some(now + CLOSE_TIMEOUT));
            // What still comes is read and dropped: a link that is closed with bytes unread is reset, and with it goes
            // what was sent last.
            context.pause_reading(false);
        }
    }

    fn check_deadlines(&mut self, now: Moment) -> Result<(), (String, bool)> {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            let waits_for = match self.phase {
                ReceiverPhase::Connecting => "the connection",
                ReceiverPhase::Handshaking => "CONNACK",
                ReceiverPhase::Subscribing => "SUBACK",
                _ => "the end",
            };
            return Err((format!("{waits_for} did not come within {} s", CONNECT_TIMEOUT.as_secs()), false));
        }
        if self.client.deadline().is_some_and(|deadline| deadline <= since_start(now)) {
            let keep_alive = Duration::from_secs(self.client.granted().keep_alive.into());
            let answer_may_wait =
                self.paused || self.read_again.is_some_and(|again| now.since(again) < keep_alive);
            match self.client.handle_timeout(since_start(now)) {
                Err(_) if answer_may_wait => self.client.ping(since_start(now)),
                Err(error) => return Err((error.to_string(), false)),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    fn flush(&mut self, context: &mut Context<'_, ReceiverState>) {
        let output = self.client.output();
        if !output.is_empty()
            && let Some(bytes) = self.carrier.wrap(output, &mut self.wire)
        {
            context.send(bytes);
            output.clear();
            self.wire.clear();
        }
        if self.phase >= ReceiverPhase::Leaving {
            // Behind DISCONNECT.
            self.carrier.close(&mut self.wire);
        }
        if !self.wire.is_empty() {
            context.send(&self.wire);
            self.wire.clear();
        }
    }

    /// When to look again.
    fn next_timer(&self, now: Moment) -> Option<Moment> {
        let ping = self.client.deadline().map(|at| {
            // A PINGREQ that may have been answered unseen is followed by others, at the pace of the keep-alive.
            let at = Moment::from_nanos(at.as_nanos() as u64);
            if at > now {
                at
            } else {
                now + Duration::from_secs(u64::from(self.client.granted().keep_alive).max(1))
            }
        });
        [self.deadline, ping].into_iter().flatten().min()
    }

    fn disconnect(&mut self, words: String, for_good: bool, context: &mut Context<'_, ReceiverState>) {
        self.phase = ReceiverPhase::Over;
        self.options.counts.subscribed.store(0, Relaxed);
        // The client that is left behind is never used again.
        let spent = Client::new(self.options.client.clone(), MqttSession::new(), Duration::ZERO);
        let session = std::mem::replace(&mut self.client, spent).into_session();
        context.world.ended =
            Some(ConnectionEnd { session, words, for_good, was_subscribed: self.was_subscribed });
        context.close();
    }
}

impl Session<ReceiverState> for Receiver {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, ReceiverState>) {
        if self.phase == ReceiverPhase::Over {
            return;
        }
        let outcome = match event {
            Event::Connected => {
                (self.phase, self.deadline) =
                    (ReceiverPhase::Handshaking, Some(context.now + CONNECT_TIMEOUT));
                self.carrier.begin(&mut self.wire);
                Ok(())
            }
            Event::Bytes(bytes) => self.read(bytes, context),
            Event::Timer => self.check_deadlines(context.now),
            Event::Woken => {
                self.on_progress(context);
                Ok(())
            }
            Event::Stop => {
                if self.phase < ReceiverPhase::Stopping {
                    let (phase, deadline) = match self.phase {
                        ReceiverPhase::Subscribed => (ReceiverPhase::Stopping, None),
                        // There is no connection to end.
                        _ => (ReceiverPhase::Over, None),
                    };
                    (self.phase, self.deadline) = (phase, deadline);
                    if phase == ReceiverPhase::Over {
                        return self.disconnect("stopped".to_owned(), false, context);
                    }
                }
                Ok(())
            }
            Event::Closed { failure, words } => {
                let words = if words.is_empty() { "the broker closed the link" } else { words };
                // Certificates that do not fit at the start will not fit later.
                let for_good = failure == Failure::TlsFailed && !self.resuming;
                let remedy = match failure {
                    Failure::ConnectionRefused => "; start the broker, or correct host and port",
                    _ if self.phase == ReceiverPhase::Handshaking && !self.resuming => {
                        ", before it answered; check that what listens there speaks MQTT, and try {mqtt_version} 3.1.1"
                    }
                    _ => "",
                };
                let remedy = named(remedy);
                Err((format!("{words}{remedy}"), for_good))
            }
            _ => Ok(()),
        };
        if self.phase > ReceiverPhase::Connecting {
            self.flush(context);
        }
        if let Err((words, for_good)) = outcome {
            return self.disconnect(words, for_good, context);
        }
        context.set_timer(self.next_timer(context.now));
    }
}

/// What one read came to, beside its messages.
#[derive(Debug, Default)]
struct ReadOutcome {
    messages: u64,
    bytes: u64,
    /// Messages that came again, and had been saved meanwhile.
    settled: u64,
    /// CONNACK came, and says whether there is a session.
    connected: Option<bool>,
    granted: bool,
    /// The broker says no: why, and whether it would again.
    refused: Option<(String, bool)>,
}

/// One read.
struct Reading<'a> {
    buffer: &'a mut ReadBuffer,
    large: &'a mut Option<Large>,
    options: &'a ReceiverOptions,
    state: &'a mut ReceiverState,
    /// Whether messages are taken.
    taking: bool,
    received: i64,
    outcome: ReadOutcome,
}

impl Reading<'_> {
    #[inline]
    fn on_event(&mut self, event: ClientEvent<'_>) {
        match event {
            ClientEvent::Message(message) => self.message(&message),
            ClientEvent::MessageBegin { message, payload } => {
                let mark = Mark::of(&message.publish).0;
                *self.large = Some(Large {
                    topic: message.topic.to_owned(),
                    origin: mark.map(origin),
                    packet: message.publish.packet_id,
                    size: payload,
                    kept: Vec::new(),
                });
            }
            ClientEvent::MessagePayload(piece) => {
                if let Some(large) = &mut *self.large {
                    let left = KEPT_OF_LARGE - large.kept.len();
                    large.kept.extend_from_slice(&piece[..piece.len().min(left)]);
                }
            }
            ClientEvent::MessageEnd { .. } => {
                if let Some(large) = self.large.take() {
                    // 3.1.1 has the mark in front of the payload.
                    let front = Mark::from_payload(&large.kept).map(origin);
                    let origin = large.origin.or(front);
                    self.take(&large.topic, &large.kept, large.size, origin, large.packet);
                }
            }
            other => self.answer(&other),
        }
    }

    #[inline]
    fn message(&mut self, message: &Message<'_>) {
        let publish = &message.publish;
        let (mark, payload) = Mark::of(publish);
        let size = payload.len();
        let origin = mark.map(origin);
        if size > self.options.max_message {
            let kept = &payload[..size.min(KEPT_OF_LARGE)];
            self.take(message.topic, kept, size as u32, origin, publish.packet_id);
        } else {
            self.take(message.topic, payload, 0, origin, publish.packet_id);
        }
    }

    #[inline]
    fn take(
        &mut self,
        topic: &str,
        payload: &[u8],
        too_large: u32,
        origin: Option<Origin>,
        packet: Option<PacketId>,
    ) {
        // What comes after the request to stop stays with the broker.
        if !self.taking {
            return;
        }
        self.outcome.messages += 1;
        self.outcome.bytes += if too_large > 0 { too_large.into() } else { payload.len() as u64 };
        if let Some(Origin { publisher, sequence_number }) = origin {
            match self.state.deliveries.take(publisher, sequence_number, || sequence_number) {
                // What others of a shared subscription got is no gap.
                _ if self.options.is_shared => {}
                Some(Arrival::Ahead { missing: 0 } | Arrival::Again | Arrival::Early) | None => {}
                Some(Arrival::Ahead { missing }) => {
                    self.options.counts.gaps.open(publisher, missing, self.received);
                }
                Some(Arrival::Late) => self.options.counts.gaps.fill(publisher),
            }
        }
        let topic = self.buffer.put(topic.as_bytes());
        let payload = self.buffer.put(payload);
        let received = self.received;
        self.buffer.messages.push(InboundMessage { topic, payload, too_large, origin, packet, received });
    }

    #[cold]
    fn answer(&mut self, event: &ClientEvent<'_>) {
        let version = self.options.client.version;
        match event {
            ClientEvent::Connected(connack) => {
                if !connack.session_present {
                    // Identifiers of before are those of other messages from now on.
                    self.state.session_since = self.buffer.connection;
                }
                self.outcome.connected = Some(connack.session_present);
            }
            ClientEvent::Repeated { settled, .. } => self.outcome.settled += u64::from(*settled),
            ClientEvent::Refused(connack) => {
                let mut words = connack.reason.words(PacketKind::Connack, &connack.properties, version);
                if connack.reason == ReasonCode::UnsupportedProtocolVersion && version == Version::V5 {
                    words.push_str(&format!("; try {}", MQTT_VERSION.to("3.1.1")));
                }
                let for_good = !matches!(
                    connack.reason,
                    ReasonCode::ServerUnavailable
                        | ReasonCode::ServerBusy
                        | ReasonCode::ConnectionRateExceeded
                );
                self.outcome.refused = Some((words, for_good));
            }
            ClientEvent::Disconnected(disconnect) => {
                let words = disconnect.reason.words(PacketKind::Disconnect, &disconnect.properties, version);
                let taken_over = disconnect.reason == ReasonCode::SessionTakenOver;
                let remedy = if taken_over {
                    format!("; another client has the same name: give one of them another with {CLIENT_ID}")
                } else {
                    String::new()
                };
                self.outcome.refused = Some((format!("{words}{remedy}"), taken_over));
            }
            ClientEvent::Subscribed { suback, .. } => {
                self.outcome.granted = true;
                for reason in suback.reasons.iter() {
                    if reason.is_error() {
                        let words = reason.words(PacketKind::Suback, &suback.properties, version);
                        self.outcome.refused = Some((words, true));
                    } else if reason.code() < self.options.qos.bits() {
                        let words = format!(
                            "SUBACK grants QoS {} instead of {}: messages could be lost; ask for less with {QOS_OF_INGEST}",
                            reason.code(),
                            self.options.qos.bits()
                        );
                        self.outcome.refused = Some((words, true));
                    }
                }
            }
            _ => {}
        }
    }
}

/// Why there is no carrier, and whether another attempt would end the same way: a WebSocket that was open once is there again when
/// its server, or what stands before it, is.
fn explained(error: &CarrierError, resuming: bool) -> (String, bool) {
    let (words, is_lasting) = match error {
        CarrierError::Opening(OpeningError::Refused { status, .. }) => {
            (format!("{error}; see {WS_PATH}"), *status < 500 && *status != 429)
        }
        CarrierError::Opening(OpeningError::Subprotocol(_)) => (error.to_string(), true),
        _ => (error.to_string(), false),
    };
    (words, is_lasting && !resuming)
}

fn origin(mark: Mark) -> Origin {
    Origin { publisher: mark.publisher, sequence_number: mark.sequence_number }
}

fn since_start(now: Moment) -> Duration {
    Duration::from_nanos(now.as_nanos())
}

/// A message that comes in pieces, over the limit.
#[derive(Debug)]
struct Large {
    topic: String,
    origin: Option<Origin>,
    packet: Option<PacketId>,
    size: u32,
    /// The beginning of its payload.
    kept: Vec<u8>,
}
