//! What a client subscribes to, and what it is answered.

use super::{
    Broker, Context, LinkPhase, MqttSession, Qos, ReasonCode, Role, ScriptedAnswer, Subject, Version, Why,
    reason,
};
use weir_mqtt::PacketKind;
use weir_mqtt::packet::{Suback, Subscribe, Unsuback, Unsubscribe};
use weir_mqtt::topic::Filter;

impl MqttSession {
    pub(super) fn subscribe(&mut self, subscribe: &Subscribe<'_>, context: &mut Context<'_, Broker>) {
        let Some(key) = self.inbox else { return };
        if self.subscriber.is_none() {
            self.begin_subscriber(context);
        }
        let refusal = match self.subscriber.as_ref().and_then(|subscriber| subscriber.answer.as_ref()) {
            Some(ScriptedAnswer::Nothing) => return,
            Some(ScriptedAnswer::Refusal { why, code, .. }) => {
                let usual = match why {
                    Why::Unauthorized { .. } => ReasonCode::NotAuthorized,
                    _ => ReasonCode::UnspecifiedError,
                };
                Some(reason(code.as_deref(), PacketKind::Suback, usual))
            }
            None => None,
        };
        let mut reasons = Vec::new();
        for subscription in subscribe.subscriptions.iter() {
            let filter = Filter::parse(subscription.filter);
            reasons.push(match (refusal, filter) {
                (Some(reason), _) => reason,
                (None, Err(_)) => ReasonCode::TopicFilterInvalid,
                (None, Ok(filter)) => {
                    let options = subscription.options;
                    let identifier = subscribe.properties.subscription_identifier();
                    self.work += 4;
                    if !context.world.subscribe(key, &filter, options, identifier) {
                        ReasonCode::QuotaExceeded
                    } else {
                        match options.qos {
                            Qos::AtMostOnce => ReasonCode::Success,
                            Qos::AtLeastOnce => ReasonCode::GrantedQos1,
                            Qos::ExactlyOnce => ReasonCode::GrantedQos2,
                        }
                    }
                }
            });
        }
        if self.version == Version::V311 {
            reasons.iter_mut().filter(|reason| reason.is_error()).for_each(|reason| {
                *reason = ReasonCode::UnspecifiedError;
            });
        }
        let before = self.out.len();
        let written = Suback::write(subscribe.packet_id, &reasons, self.version, &mut self.out);
        debug_assert_eq!(written, Ok(()), "reasons of SUBACK");
        self.hold_to_largest(before);
    }

    /// The client is a subscriber from now on.
    pub(super) fn begin_subscriber(&mut self, context: &mut Context<'_, Broker>) {
        context.world.counts.subscribers += 1;
        let number = context.world.settings.next_viewer();
        self.subscriber =
            Some(Role::begin(LinkPhase::Play, Subject::Viewer(number), &mut self.script, context));
    }

    pub(super) fn unsubscribe(&mut self, unsubscribe: &Unsubscribe<'_>, context: &mut Context<'_, Broker>) {
        let Some(key) = self.inbox else { return };
        let mut reasons = Vec::new();
        for text in unsubscribe.filters.iter() {
            reasons.push(match Filter::parse(text) {
                Ok(filter) if context.world.unsubscribe(key, &filter) => ReasonCode::Success,
                Ok(_) => ReasonCode::NoSubscriptionExisted,
                Err(_) => ReasonCode::TopicFilterInvalid,
            });
        }
        let before = self.out.len();
        let written = Unsuback::write(unsubscribe.packet_id, &reasons, self.version, &mut self.out);
        debug_assert_eq!(written, Ok(()), "reasons of UNSUBACK");
        self.hold_to_largest(before);
    }
}
