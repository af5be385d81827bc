//! Messages that a client publishes, and the handshake of QoS 2 in both directions.

use super::{
    AckOutcome, Acknowledgement, Broker, Context, LinkPhase, MqttSession, Packet, PacketKind, Publication,
    Publish, Qos, ReasonCode, Role, ScriptedAnswer, Subject, Version, Why, reason, unit_of,
};

/// Patterns and subscriptions that are looked at for a message in one unit of work.
const MATCHING_STEPS: usize = 16;
/// Bytes of a message that are copied in one unit of work.
const COPIED: usize = 4 << 10;

impl MqttSession {
    pub(super) fn publish(&mut self, publish: &Publish<'_>, context: &mut Context<'_, Broker>) {
        let Some(key) = self.inbox else { return };
        let is_exact = publish.qos == Qos::ExactlyOnce;
        if let Some(id) = publish.packet_id.filter(|_| is_exact)
            && !context.world.receive(key, id)
        {
            // It came before, and was not released (MQTT-4.3.3-10).
            return self.send(&Packet::Pubrec(Acknowledgement::success(id)));
        }
        let now = context.now;
        let counts = &mut context.world.counts;
        counts.received += 1;
        counts.received_bytes += publish.payload.len() as u64;
        if self.publisher.is_none() {
            counts.publishers += 1;
            let number = context.world.settings.registry.next_publisher();
            self.publisher =
                Some(Role::begin(LinkPhase::Publish, Subject::Publisher(number), &mut self.script, context));
        }
        let Some(publisher) = &mut self.publisher else { return };
        let mut withheld = publisher.answer == Some(ScriptedAnswer::Nothing);
        if let Some(script) = &mut publisher.script {
            let unit = unit_of(publish.payload.len());
            withheld |= script.withholds(&unit, now);
            self.cut = script.rule(&unit, now).cut;
            context.world.note(script.take_effects());
        }
        let refusal = match &publisher.answer {
            Some(ScriptedAnswer::Refusal { why, code, .. }) => {
                let usual = match why {
                    Why::Unauthorized { .. } => ReasonCode::NotAuthorized,
                    _ => ReasonCode::QuotaExceeded,
                };
                let kind = if is_exact { PacketKind::Pubrec } else { PacketKind::Puback };
                Some(reason(code.as_deref(), kind, usual))
            }
            _ => None,
        };
        let mut outcome = refusal.unwrap_or(ReasonCode::Success);
        if refusal.is_none() {
            let mut wake = Vec::new();
            let matched = context.world.publish(self.inbox, Publication::of(publish), now, &mut wake);
            self.work += matched.steps / MATCHING_STEPS + publish.payload.len() / COPIED + wake.len();
            for id in wake {
                context.wake(id);
            }
            if !matched.any {
                outcome = ReasonCode::NoMatchingSubscribers;
            }
        }
        if let Some(id) = publish.packet_id {
            if withheld {
                context.world.counts.withheld += 1;
                return;
            }
            // MQTT 3.1.1 has one way to say it.
            let outcome = if self.version == Version::V311 { ReasonCode::Success } else { outcome };
            if is_exact {
                if outcome.is_error() {
                    // The exchange is over (MQTT 5 section 4.3.3).
                    context.world.release(key, id);
                }
                self.send(&Packet::Pubrec(Acknowledgement::of(id, outcome)));
            } else {
                context.world.counts.acknowledged += 1;
                self.send(&Packet::Puback(Acknowledgement::of(id, outcome)));
            }
        }
    }

    /// A subscriber has a message of QoS 2.
    pub(super) fn on_pubrec(&mut self, pubrec: &Acknowledgement<'_>, context: &mut Context<'_, Broker>) {
        let Some(key) = self.inbox else { return };
        let (id, is_error) = (pubrec.packet_id, pubrec.reason.is_error());
        let acknowledged = context.world.acknowledged(key, |flight| flight.on_pubrec(id, is_error));
        let answer = match acknowledged {
            AckOutcome::Over(_) => return,
            AckOutcome::Unknown if is_error => return,
            AckOutcome::Unknown if self.version == Version::V5 => ReasonCode::PacketIdentifierNotFound,
            AckOutcome::Unknown | AckOutcome::Received(_) => ReasonCode::Success,
        };
        self.send(&Packet::Pubrel(Acknowledgement::of(id, answer)));
    }

    /// A publisher releases a message of QoS 2.
    pub(super) fn on_pubrel(&mut self, pubrel: &Acknowledgement<'_>, context: &mut Context<'_, Broker>) {
        let Some(key) = self.inbox else { return };
        let is_known = context.world.release(key, pubrel.packet_id);
        context.world.counts.acknowledged += u64::from(is_known);
        let answer = if is_known || self.version == Version::V311 {
            ReasonCode::Success
        } else {
            ReasonCode::PacketIdentifierNotFound
        };
        self.send(&Packet::Pubcomp(Acknowledgement::of(pubrel.packet_id, answer)));
    }
}
