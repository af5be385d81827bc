//! What a packet of the server does to a client, and what is answered to it.

use super::event::{ClientEvent, Message};
use super::flight::Awaits;
use super::session::{Arrival, Session};
use super::{Acknowledging, ClientOptions, ClientPhase, ServerLimits};
use crate::error::Violation;
use crate::packet::{Acknowledgement, Connack, Packet, PacketId, PacketKind, Publish};
use crate::property::Properties;
use crate::reader::Event;
use crate::{Aliases, Qos, ReasonCode, Version};
use std::time::Duration;

/// The parts of a client that an event changes, apart from the reader that the event may borrow from.
pub(super) struct Dispatcher<'c> {
    pub(super) options: &'c ClientOptions,
    pub(super) session: &'c mut Session,
    pub(super) phase: &'c mut ClientPhase,
    pub(super) output: &'c mut Vec<u8>,
    pub(super) aliases: &'c mut Aliases,
    pub(super) granted: &'c mut ServerLimits,
    pub(super) large: &'c mut Option<(Qos, Option<PacketId>, bool)>,
    pub(super) pinged: &'c mut Option<Duration>,
}

/// Which packet of the server breaks which rule.
pub(super) type RuleBreach = (PacketKind, Violation);

impl Dispatcher<'_> {
    #[inline]
    pub(super) fn on_event(
        &mut self,
        event: &Event<'_>,
        on: &mut impl FnMut(ClientEvent<'_>),
    ) -> Result<(), RuleBreach> {
        match event {
            Event::Packet(Packet::Publish(publish)) if *self.phase == ClientPhase::Connected => {
                self.message(publish, None, on).map_err(|violation| (PacketKind::Publish, violation))
            }
            Event::Packet(packet) => self.packet(packet, on).map_err(|violation| (packet.kind(), violation)),
            Event::Begin { publish, payload } => self
                .message(publish, Some(*payload), on)
                .map_err(|violation| (PacketKind::Publish, violation)),
            Event::Payload(bytes) => {
                if self.large.is_some_and(|(_, _, fresh)| fresh) {
                    on(ClientEvent::MessagePayload(bytes));
                }
                Ok(())
            }
            Event::End => {
                if let Some((qos, packet_id, fresh)) = self.large.take() {
                    if fresh {
                        on(ClientEvent::MessageEnd { packet_id });
                    }
                    self.answer(qos, packet_id, fresh);
                }
                Ok(())
            }
        }
    }

    /// A message, whole, or the beginning of a large one with this many bytes of payload.
    #[inline]
    fn message(
        &mut self,
        publish: &Publish<'_>,
        payload: Option<u32>,
        on: &mut impl FnMut(ClientEvent<'_>),
    ) -> Result<(), Violation> {
        if *self.phase != ClientPhase::Connected {
            return Err(Violation::ConnackFirst);
        }
        let arrival = self.admit(publish, on)?;
        let fresh = arrival == Arrival::Fresh;
        let topic = self.aliases.resolve(publish, self.options.topic_alias_maximum)?;
        let message = Message { topic, publish: *publish };
        match (payload, publish.packet_id, arrival) {
            (None, _, Arrival::Fresh) => on(ClientEvent::Message(message)),
            (Some(payload), _, Arrival::Fresh) => on(ClientEvent::MessageBegin { message, payload }),
            (_, Some(packet_id), Arrival::Repeated { settled }) => {
                on(ClientEvent::Repeated { packet_id, settled });
            }
            (_, None, Arrival::Repeated { .. }) => {}
        }
        match payload {
            None => self.answer(publish.qos, publish.packet_id, fresh),
            Some(_) => *self.large = Some((publish.qos, publish.packet_id, fresh)),
        }
        Ok(())
    }

    /// Whether a message is a new one, and not one that was received and not yet released: "until it has received the corresponding
    /// PUBREL packet, the receiver MUST acknowledge any subsequent PUBLISH packet with the same Packet Identifier by sending a
    /// PUBREC. It MUST NOT cause duplicate messages to be delivered to any onward recipients in this case" (MQTT-4.3.3-10; 3.1.1:
    /// MQTT-4.3.3-2).
    #[inline]
    fn admit(
        &mut self,
        publish: &Publish<'_>,
        on: &mut impl FnMut(ClientEvent<'_>),
    ) -> Result<Arrival, Violation> {
        let Some(id) = publish.packet_id else { return Ok(Arrival::Fresh) };
        let arrival = self.session.arrive(publish.qos, id);
        let most = usize::from(self.options.receive_maximum);
        if self.options.version == Version::V5 && self.session.unacknowledged() > most {
            if self.options.strict_receive_maximum {
                return Err(Violation::ReceiveMaximum);
            }
            on(ClientEvent::Excess { packet_id: id });
        }
        Ok(arrival)
    }

    /// Acknowledges a message, unless the caller does.
    #[inline]
    fn answer(&mut self, qos: Qos, packet_id: Option<PacketId>, fresh: bool) {
        let Some(id) = packet_id else { return };
        let waits = qos == Qos::ExactlyOnce && self.session.waits_for_caller(id);
        if self.options.acknowledging == Acknowledging::ByCaller && (fresh || waits) {
            return;
        }
        let kind = self.session.answer(id, ReasonCode::Success);
        self.acknowledge(kind, Acknowledgement::success(id));
    }

    #[inline]
    fn acknowledge(&mut self, kind: PacketKind, acknowledgement: Acknowledgement<'_>) {
        let written = acknowledgement.encode(kind, self.options.version, self.output);
        debug_assert_eq!(written, Ok(()), "reasons are chosen for their packets");
    }

    fn packet(&mut self, packet: &Packet<'_>, on: &mut impl FnMut(ClientEvent<'_>)) -> Result<(), Violation> {
        match (*self.phase, packet) {
            // What still comes after a DISCONNECT of either side means nothing (MQTT-3.14.4-1).
            (ClientPhase::Over, _) => Ok(()),
            (ClientPhase::Connecting, Packet::Connack(connack)) => self.connack(connack, on),
            (_, Packet::Auth(auth)) => {
                if self.options.authentication_method.is_none() {
                    return Err(Violation::AuthUnasked);
                }
                on(ClientEvent::Auth(*auth));
                Ok(())
            }
            (ClientPhase::Connecting, _) => Err(Violation::ConnackFirst),
            (ClientPhase::Connected, Packet::Connack(_)) => Err(Violation::SecondConnack),
            (ClientPhase::Connected, packet) => self.connected(packet, on),
        }
    }

    fn connack(
        &mut self,
        connack: &Connack<'_>,
        on: &mut impl FnMut(ClientEvent<'_>),
    ) -> Result<(), Violation> {
        if connack.reason.is_error() {
            *self.phase = ClientPhase::Over;
            on(ClientEvent::Refused(*connack));
            return Ok(());
        }
        if connack.session_present {
            if self.options.clean_start {
                return Err(Violation::SessionUnasked);
            }
            if self.session.is_new() {
                return Err(Violation::SessionUnknown);
            }
        }
        self.granted.read(connack);
        *self.phase = ClientPhase::Connected;
        if connack.session_present {
            for id in self.session.resume() {
                self.acknowledge(PacketKind::Pubrel, Acknowledgement::success(id));
            }
        } else {
            self.session.lose();
        }
        self.session.begin();
        on(ClientEvent::Connected(*connack));
        Ok(())
    }

    fn connected(
        &mut self,
        packet: &Packet<'_>,
        on: &mut impl FnMut(ClientEvent<'_>),
    ) -> Result<(), Violation> {
        match packet {
            Packet::Puback(packet) => {
                return self.acknowledged(packet, Awaits::Puback, Qos::AtLeastOnce, on);
            }
            Packet::Pubrec(Acknowledgement { packet_id, reason, properties }) => {
                self.pubrec(*packet_id, *reason, properties, on);
            }
            Packet::Pubcomp(packet) => {
                return self.acknowledged(packet, Awaits::Pubcomp, Qos::ExactlyOnce, on);
            }
            Packet::Pubrel(Acknowledgement { packet_id, .. }) => {
                let known = self.session.release(*packet_id);
                let reason = if known || self.options.version == Version::V311 {
                    ReasonCode::Success
                } else {
                    ReasonCode::PacketIdentifierNotFound
                };
                self.acknowledge(PacketKind::Pubcomp, Acknowledgement::of(*packet_id, reason));
            }
            Packet::Suback(suback) => {
                let token = self.answered(suback.packet_id, Awaits::Suback(suback.reasons.len() as u16))?;
                on(ClientEvent::Subscribed { token, suback: *suback });
            }
            Packet::Unsuback(unsuback) => {
                let awaits = Awaits::Unsuback(unsuback.reasons.len() as u16);
                let token = self.answered(unsuback.packet_id, awaits)?;
                on(ClientEvent::Unsubscribed { token, unsuback: *unsuback });
            }
            Packet::Pingresp => {
                *self.pinged = None;
                on(ClientEvent::Pong);
            }
            Packet::Disconnect(disconnect) if self.options.version == Version::V5 => {
                *self.phase = ClientPhase::Over;
                on(ClientEvent::Disconnected(*disconnect));
            }
            Packet::Connect(_)
            | Packet::Subscribe(_)
            | Packet::Unsubscribe(_)
            | Packet::Pingreq
            | Packet::Disconnect(_) => return Err(Violation::WrongSide),
            // Handled before.
            Packet::Connack(_) | Packet::Publish(_) | Packet::Auth(_) => {}
        }
        Ok(())
    }

    /// The first acknowledgement of a message of QoS 2: it is released, or over (section 4.3.3).
    fn pubrec(
        &mut self,
        packet_id: PacketId,
        reason: ReasonCode,
        properties: &Properties<'_>,
        on: &mut impl FnMut(ClientEvent<'_>),
    ) {
        let v5 = self.options.version == Version::V5;
        let flight = &mut self.session.flight;
        if let Some(token) = flight.awaited(packet_id, Awaits::Pubrec) {
            if reason.is_error() {
                flight.end(packet_id);
                let qos = Qos::ExactlyOnce;
                on(ClientEvent::Acknowledged { token, qos, reason, properties: *properties });
                return;
            }
            flight.release(packet_id);
            on(ClientEvent::Received { token, reason, properties: *properties });
        } else if flight.awaited(packet_id, Awaits::Pubcomp).is_none() && v5 {
            // Nothing is known of it: PUBREL says so (section 3.6.2.1).
            let lost = Acknowledgement::of(packet_id, ReasonCode::PacketIdentifierNotFound);
            return self.acknowledge(PacketKind::Pubrel, lost);
        }
        self.acknowledge(PacketKind::Pubrel, Acknowledgement::success(packet_id));
    }

    /// The last acknowledgement of a message. One that is repeated does no harm, and a server that resumed a session may not know that
    /// it repeats one; another one for nothing is a violation.
    fn acknowledged(
        &mut self,
        &Acknowledgement { packet_id, reason, properties }: &Acknowledgement<'_>,
        awaits: Awaits,
        qos: Qos,
        on: &mut impl FnMut(ClientEvent<'_>),
    ) -> Result<(), Violation> {
        let flight = &self.session.flight;
        let Some(token) = flight.awaited(packet_id, awaits) else {
            if awaits == Awaits::Puback && flight.awaited(packet_id, Awaits::Pubrec).is_some() {
                return Err(Violation::PubackOfQos2);
            }
            if !flight.was_used(packet_id) && !self.session.was_resumed() {
                return Err(Violation::AcknowledgesNothing);
            }
            on(ClientEvent::AcknowledgedAgain { packet_id });
            return Ok(());
        };
        self.session.flight.end(packet_id);
        on(ClientEvent::Acknowledged { token, qos, reason, properties });
        Ok(())
    }

    fn answered(&mut self, packet_id: PacketId, answer: Awaits) -> Result<u64, Violation> {
        let flight = &mut self.session.flight;
        let v311 = self.options.version == Version::V311;
        let (awaits, token) = flight.state(packet_id).ok_or(Violation::AnswersNothing)?;
        match (awaits, answer) {
            (Awaits::Suback(asked), Awaits::Suback(told)) if asked == told => {}
            // UNSUBACK says no reasons in MQTT 3.1.1.
            (Awaits::Unsuback(asked), Awaits::Unsuback(told)) if asked == told || v311 => {}
            (Awaits::Suback(_), Awaits::Suback(_)) | (Awaits::Unsuback(_), Awaits::Unsuback(_)) => {
                return Err(Violation::ReasonCount);
            }
            _ => return Err(Violation::AnswersNothing),
        }
        flight.end(packet_id);
        Ok(token)
    }
}
