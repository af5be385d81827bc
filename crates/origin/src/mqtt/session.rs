//! One accepted MQTT connection.

mod carrier;
mod connecting;
mod keep_alive;
mod outbound;
#[cfg(test)]
mod outliving;
#[cfg(test)]
mod properties;
mod publishing;
#[cfg(test)]
mod silence;
#[cfg(test)]
mod sockets;
mod subscribing;
#[cfg(test)]
mod turns;

use super::broker::{Broker, unit_of};
use super::delivery::Delivery;
use super::flight::{AckOutcome, Again};
use super::inbox_key::InboxKey;
use super::publication::Publication;
use super::role::{Role, fault, reason};
use super::wills::Will;
use crate::fault::{Gate, GateFront, GateUnit, LinkEnd, LinkPhase, Script, ScriptedAnswer, Subject, Why};
use carrier::Carrier;
use connecting::kept_for;
use keep_alive::KeepAlive;
use outbound::Outbound;
use std::collections::VecDeque;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_mqtt::packet::{Acknowledgement, Disconnect, Publish};
use weir_mqtt::{
    Aliases, Event as Heard, Limits, Packet, PacketId, PacketKind, Qos, Reader, ReasonCode, Version,
    Violation,
};
use weir_shard::{Context, Session};

/// Bytes that may wait for a client before no more messages are written. The shard reads nothing from it while more wait.
const UNSENT_LIMIT: usize = weir_shard::UNSENT_LIMIT;
/// The largest packet that is taken, in bytes.
const LARGEST_PACKET: u32 = 64 << 20;
/// The same of a client that has not been let in: this much may be kept of anyone.
const LARGEST_BEFORE_CONNECT: u32 = 64 << 10;
/// What a client may have done in one turn before others have theirs, in units of about a microsecond.
const WORK_A_TURN: usize = 2_000;
/// Messages that are looked at for a subscriber in one turn: those that are kept, and those that wait.
const MESSAGES_A_TURN: usize = 1_024;
/// Units that faults may hold back for one subscriber. What is more waits in its queue.
const HELD_BACK: usize = 65_536;
/// Messages in flight to a client that names no maximum.
const WINDOW: u16 = 1_000;
/// Topics that are known by number on a connection, each way: as mosquitto 2 has by default, and some more. A topic has up to 64 KiB.
const TOPIC_ALIASES: u16 = 16;
/// How long a client may take to receive the last packet and close.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A session of an MQTT connection.
pub(crate) struct MqttSession {
    link: u64,
    carrier: Carrier,
    /// What goes on the link in the place of packets, kept for its memory.
    wire: Vec<u8>,
    reader: Reader,
    phase: MqttPhase,
    /// Faults of the link.
    script: Option<Box<Script>>,
    publisher: Option<Role>,
    subscriber: Option<Role>,
    gate: Gate<Delivery>,
    inbox: Option<InboxKey>,
    out: Vec<u8>,
    version: Version,
    client_id: String,
    keep_alive: KeepAlive,
    will: Option<Will>,
    /// Topics that the client has given a number to.
    aliases: Aliases,
    outbound: Outbound,
    /// Bytes of the largest packet that the client takes (MQTT 5 section 3.1.2.11.4).
    largest: u32,
    /// The number of the session with the broker.
    number: u64,
    /// Messages of a session of before that are still to be sent again.
    resend: VecDeque<PacketId>,
    window: u16,
    /// When a message that waits because of a fault may go.
    resume: Option<Moment>,
    cut: Option<LinkEnd>,
    /// What it has had done in this turn.
    work: usize,
    /// The client has said DISCONNECT.
    said_goodbye: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MqttPhase {
    /// Has not said CONNECT.
    Accepted,
    Connected,
    /// Was sent the last packet; the moment at which it is closed.
    Leaving(Moment),
    /// Is never answered again, because of a fault.
    Silent,
}

impl MqttSession {
    /// The session of a connection that was just accepted.
    pub(crate) fn new(broker: &mut Broker, now: Moment) -> Self {
        broker.counts.links += 1;
        let link = broker.settings.registry.next_link();
        let limits = Limits { packet: LARGEST_BEFORE_CONNECT, whole: LARGEST_BEFORE_CONNECT };
        Self {
            link,
            carrier: Carrier::Unknown,
            wire: Vec::new(),
            reader: Reader::new(Version::V5, limits),
            phase: MqttPhase::Accepted,
            script: Script::of(&broker.settings.faults, Subject::Link(link)),
            publisher: None,
            subscriber: None,
            gate: Gate::new(),
            inbox: None,
            out: Vec::new(),
            version: Version::V5,
            client_id: String::new(),
            keep_alive: KeepAlive::new(now),
            will: None,
            aliases: Aliases::default(),
            outbound: Outbound::default(),
            largest: u32::MAX,
            number: 0,
            resend: VecDeque::new(),
            window: WINDOW,
            resume: None,
            cut: None,
            work: 0,
            said_goodbye: false,
        }
    }

    /// Reads packets until a client has had its turn: what is left for the next one.
    fn read<'a>(&mut self, bytes: &'a [u8], context: &mut Context<'_, Broker>) -> &'a [u8] {
        // Apart, while packets borrow from it.
        let mut reader = std::mem::replace(&mut self.reader, Reader::new(self.version, Limits::default()));
        let mut input = bytes;
        let mut left: &[u8] = &[];
        while matches!(self.phase, MqttPhase::Accepted | MqttPhase::Connected) && self.cut.is_none() {
            // A client that asks for much work gives others their turn in between.
            if self.work >= WORK_A_TURN {
                left = input;
                break;
            }
            match reader.next(&mut input) {
                Ok(Some(Heard::Packet(packet))) => {
                    self.work += 1;
                    let before = self.phase;
                    if let Err(violation) = self.packet(&packet, context) {
                        self.refuse(violation.reason(), context);
                    }
                    if before == MqttPhase::Accepted && self.phase == MqttPhase::Connected {
                        reader.set_limits(Limits { packet: LARGEST_PACKET, whole: LARGEST_PACKET });
                    }
                }
                // As large as may be is whole.
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(error) => {
                    self.version = reader.version();
                    self.refuse(error.reason(), context);
                }
            }
        }
        self.reader = reader;
        left
    }

    /// Reads packets that come in a WebSocket.
    fn read_socket(&mut self, mut bytes: &[u8], context: &mut Context<'_, Broker>) {
        loop {
            if let Some((packets, read)) = self.carrier.packets() {
                let left = self.read(&packets[read..], context).len();
                let read = packets.len() - left;
                self.carrier.put_back(packets, read);
                if left > 0 {
                    break;
                }
            }
            let mut out = std::mem::take(&mut self.wire);
            let more = self.carrier.take(&mut bytes, &mut out);
            context.send(&out);
            out.clear();
            self.wire = out;
            if !more {
                break;
            }
        }
        if self.carrier.is_over() {
            self.cut = self.cut.or(Some(LinkEnd::Close));
        } else if !bytes.is_empty() {
            context.give_back(bytes);
        } else if self.work >= WORK_A_TURN {
            // The rest is here already.
            let id = context.id();
            context.wake(id);
        }
    }

    fn packet(&mut self, packet: &Packet<'_>, context: &mut Context<'_, Broker>) -> Result<(), Violation> {
        match (packet, self.phase) {
            (Packet::Connect(connect), MqttPhase::Accepted) => self.connect(connect, context),
            (_, MqttPhase::Accepted) => return Err(Violation::FirstPacket),
            (Packet::Connect(_), _) => return Err(Violation::SecondConnect),
            (Packet::Publish(publish), _) => {
                // Apart, while the message has its topic from them.
                let mut aliases = std::mem::take(&mut self.aliases);
                let topic = aliases.resolve(publish, TOPIC_ALIASES);
                let topic = topic.map(|topic| self.publish(&Publish { topic, ..*publish }, context));
                self.aliases = aliases;
                return topic;
            }
            (Packet::Puback(puback), _) => {
                if let Some(key) = self.inbox {
                    context.world.acknowledged(key, |flight| flight.on_puback(puback.packet_id));
                }
            }
            (Packet::Pubrec(pubrec), _) => self.on_pubrec(pubrec, context),
            (Packet::Pubrel(pubrel), _) => self.on_pubrel(pubrel, context),
            (Packet::Pubcomp(pubcomp), _) => {
                if let Some(key) = self.inbox {
                    context.world.acknowledged(key, |flight| flight.on_pubcomp(pubcomp.packet_id));
                }
            }
            (Packet::Subscribe(subscribe), _) => self.subscribe(subscribe, context),
            (Packet::Unsubscribe(unsubscribe), _) => self.unsubscribe(unsubscribe, context),
            (Packet::Pingreq, _) => self.send(&Packet::Pingresp),
            (Packet::Disconnect(disconnect), _) => {
                if disconnect.reason != ReasonCode::DisconnectWithWill {
                    self.will = None;
                }
                let expiry = disconnect.properties.session_expiry_interval();
                if let (Some(key), Some(seconds)) = (self.inbox, expiry) {
                    context.world.keep_for(key, kept_for(seconds));
                }
                self.said_goodbye = true;
                self.cut = Some(LinkEnd::Close);
            }
            _ => return Err(Violation::WrongSide),
        }
        Ok(())
    }

    /// Sends a subscriber what waits for it, until its link takes no more.
    fn pump(&mut self, context: &mut Context<'_, Broker>) {
        let (Some(key), MqttPhase::Connected) = (self.inbox, self.phase) else { return };
        let now = context.now;
        let window = usize::from(self.window);
        let script = self.subscriber.as_mut().and_then(|subscriber| subscriber.script.as_mut());
        let rules = script.as_ref().is_some_and(|script| script.rules_units());
        if let Some(script) = script.filter(|_| rules) {
            let mut steps = MESSAGES_A_TURN;
            while self.gate.len() < HELD_BACK
                && let Some(delivery) = context.world.next_delivery(key, &mut steps, now)
            {
                let unit = unit_of(delivery.publication.payload.len());
                let ruling = script.rule(&unit, now);
                context.world.counts.dropped_for_one += u64::from(ruling.dropped);
                self.gate.push(GateUnit { packet: unit, owner: delivery }, &ruling, now);
            }
            context.world.note(script.take_effects());
            if self.gate.len() < HELD_BACK && context.world.has_more(key) {
                let id = context.id();
                context.wake(id);
            }
        }
        self.resume = None;
        let mut steps = MESSAGES_A_TURN;
        let mut sent = 0;
        while self.cut.is_none() && self.out.len() + context.unsent() < UNSENT_LIMIT {
            // Messages that are to be sent again are none that the client has to acknowledge yet.
            if context.world.in_flight(key).saturating_sub(self.resend.len()) >= window {
                return;
            }
            if steps == 0 || sent == MESSAGES_A_TURN {
                let id = context.id();
                return context.wake(id);
            }
            sent += 1;
            if let Some(id) = self.resend.pop_front() {
                match context.world.again(key, id) {
                    Some(Again::Publish(delivery)) => {
                        self.deliver(key, &delivery, Some(id), true, context);
                    }
                    Some(Again::Pubrel) => self.send(&Packet::Pubrel(Acknowledgement::success(id))),
                    None => {}
                }
                continue;
            }
            let delivery = if rules {
                let script = self.subscriber.as_mut().and_then(|subscriber| subscriber.script.as_deref_mut());
                match self.gate.front(script, now) {
                    GateFront::Units(_) => self.gate.pop().map(|unit| unit.owner),
                    GateFront::LinkEnd(cut) => {
                        self.cut = Some(cut);
                        return;
                    }
                    GateFront::Wait(at) => {
                        self.resume = at;
                        return;
                    }
                }
            } else {
                let next = context.world.next_delivery(key, &mut steps, now);
                if next.is_none() && context.world.has_more(key) {
                    continue;
                }
                next
            };
            let Some(delivery) = delivery else { return };
            let is_exchange = delivery.qos != Qos::AtMostOnce;
            let id = is_exchange.then(|| context.world.begin_flight(key, &delivery));
            let is_sent = self.deliver(key, &delivery, id, false, context);
            context.world.counts.sent += u64::from(is_sent);
        }
    }

    /// Writes a message, unless it is larger than the client takes: then it is as if it had been sent and acknowledged
    /// (MQTT-3.1.2-25).
    fn deliver(
        &mut self,
        key: InboxKey,
        delivery: &Delivery,
        id: Option<PacketId>,
        dup: bool,
        context: &mut Context<'_, Broker>,
    ) -> bool {
        let to = (self.version, self.largest, context.now);
        let is_sent = self.outbound.write(delivery, id, dup, to, &mut self.out);
        if let Some(id) = id.filter(|_| !is_sent) {
            context.world.acknowledged(key, |flight| flight.discard(id));
        }
        is_sent
    }

    fn send(&mut self, packet: &Packet<'_>) {
        let before = self.out.len();
        let written = packet.encode(self.version, &mut self.out);
        debug_assert_eq!(written, Ok(()), "{packet:?}");
        self.hold_to_largest(before);
    }

    /// Lets a client go that does not take a packet as large as the one written behind `before`, which an answer cannot be left out
    /// of (MQTT-3.1.2-24).
    fn hold_to_largest(&mut self, before: usize) {
        if self.out.len() - before > self.largest as usize {
            self.out.truncate(before);
            (self.phase, self.cut) = (MqttPhase::Silent, Some(LinkEnd::Close));
        }
    }

    /// Ends a connection that breaks the standard, or asks for what there is not (MQTT 5 section 4.13).
    fn refuse(&mut self, reason: ReasonCode, context: &Context<'_, Broker>) {
        let now = context.now;
        match (self.version, self.phase) {
            (Version::V5, MqttPhase::Accepted)
                if reason.code_in(PacketKind::Connack, Version::V5).is_some() =>
            {
                self.turn_away(reason, None, now);
            }
            (Version::V5, MqttPhase::Connected) => self.farewell(reason),
            _ => {}
        }
        self.phase = MqttPhase::Leaving(now + CLOSE_TIMEOUT);
    }

    /// The last word of MQTT 5; 3.1.1 has none.
    fn farewell(&mut self, reason: ReasonCode) {
        if self.version == Version::V5 {
            let before = self.out.len();
            // A reason that DISCONNECT does not have is left to the closing of the link.
            let _ = Disconnect::of(reason).encode(Version::V5, &mut self.out);
            if self.out.len() - before > self.largest as usize {
                self.out.truncate(before);
            }
        }
    }

    fn flush(&mut self, context: &mut Context<'_, Broker>) {
        if self.out.is_empty() {
            return;
        }
        match self.carrier {
            Carrier::Unknown | Carrier::Link => context.send(&self.out),
            Carrier::WebSocket(_) => {
                self.carrier.wrap(&self.out, &mut self.wire);
                context.send(&self.wire);
                self.wire.clear();
                self.wire.shrink_to(64 << 10);
            }
            // There is no way for packets.
            Carrier::Request(_) | Carrier::Over => {}
        }
        self.out.clear();
        self.out.shrink_to(64 << 10);
    }

    /// When [`Self::time`] has to be asked, or [`Self::pump`].
    fn next_moment(&self) -> Option<Moment> {
        let phase = match self.phase {
            MqttPhase::Connected => self.keep_alive.deadline(),
            MqttPhase::Leaving(at) => Some(at),
            MqttPhase::Accepted | MqttPhase::Silent => None,
        };
        let roles = [&self.publisher, &self.subscriber].into_iter().flatten();
        let scripts = roles.filter_map(|role| role.script.as_ref()).chain(&self.script);
        let cut = scripts.filter_map(|script| script.next_cut()).min();
        [phase, cut, self.resume].into_iter().flatten().min()
    }

    /// Ends a connection whose name another one has taken: its inbox is that one's, or has been removed.
    fn yield_name(&mut self, context: &mut Context<'_, Broker>) {
        if self.inbox.is_some_and(|key| !context.world.owns(key, context.id())) {
            self.refuse(ReasonCode::SessionTakenOver, context);
            self.leave(context);
        }
    }

    /// The client is gone, or has to go: its will is published unless it sent DISCONNECT.
    fn leave(&mut self, context: &mut Context<'_, Broker>) {
        let Some(key) = self.inbox.take() else { return };
        if context.world.owns(key, context.id()) {
            let held: Vec<_> = std::iter::from_fn(|| self.gate.pop()).map(|unit| unit.owner).collect();
            context.world.put_back(key, held.into_iter());
        }
        let (session, will) = (context.id(), self.will.take());
        if let Some(will) = context.world.leave((key, self.number), session, will, context.now) {
            let mut wake = Vec::new();
            context.world.publish(None, will, context.now, &mut wake);
            for id in wake {
                context.wake(id);
            }
        }
    }
}

/// Whether the shard reads a client: not while it has yet to take what waits for it.
fn is_read(context: &Context<'_, Broker>) -> bool {
    context.unsent() <= UNSENT_LIMIT
}

impl Session<Broker> for MqttSession {
    fn handle_connected(&mut self, context: &mut Context<'_, Broker>) {
        if let Some(script) = &mut self.script {
            script.begin(context.now);
        }
        if fault(&mut self.script, LinkPhase::Accept, None, context).is_some() {
            self.phase = MqttPhase::Silent;
            context.established();
        }
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, Broker>) {
        self.yield_name(context);
        self.keep_alive.on_bytes(context.now);
        self.work = 0;
        if self.carrier.is_link(bytes) {
            let left = self.read(bytes, context);
            context.give_back(left);
        } else {
            self.read_socket(bytes, context);
        }
    }

    fn handle_woken(&mut self, context: &mut Context<'_, Broker>) {
        // Packets that wait in a WebSocket are not of a session that another connection has ended.
        self.yield_name(context);
        if matches!(self.carrier, Carrier::WebSocket(_)) {
            self.work = 0;
            self.read_socket(&[], context);
        }
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Broker>) {
        self.yield_name(context);
        let now = context.now;
        let roles = [&mut self.publisher, &mut self.subscriber].into_iter().flatten();
        let scripts = roles.filter_map(|role| role.script.as_mut()).chain(self.script.as_mut());
        for script in scripts {
            if let Some(cut) = script.cut(now) {
                self.cut = Some(cut);
                context.world.note(script.take_effects());
                return;
            }
        }
        match self.phase {
            MqttPhase::Leaving(at) if now >= at => self.cut = Some(LinkEnd::Close),
            MqttPhase::Connected
                if self.keep_alive.is_over(now, is_read(context), || context.acknowledged()) =>
            {
                // MQTT-3.1.2-22.
                self.refuse(ReasonCode::KeepAliveTimeout, context);
            }
            _ => {}
        }
    }

    fn handle_stop(&mut self, _: &mut Context<'_, Broker>) {
        self.cut = Some(LinkEnd::Close);
    }

    fn handle_closed(&mut self, _: Failure, _: &str, context: &mut Context<'_, Broker>) {
        self.leave(context);
    }

    fn after_event(&mut self, context: &mut Context<'_, Broker>) {
        // Its link may have room before it is woken by the connection that has taken its name.
        self.yield_name(context);
        self.pump(context);
        if self.cut == Some(LinkEnd::Close) && self.phase == MqttPhase::Connected && !self.said_goodbye {
            self.farewell(ReasonCode::ServerShuttingDown);
        }
        self.flush(context);
        self.keep_alive.on_reading(is_read(context));
        match self.cut.take() {
            Some(cut) => {
                self.leave(context);
                if cut == LinkEnd::Close {
                    self.carrier.close(&mut self.wire);
                    context.send(&self.wire);
                }
                cut.carry_out(context);
            }
            None => context.set_timer(self.next_moment()),
        }
    }
}
