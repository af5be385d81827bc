//! CONNECT: whether a client is let in, and what it is told.

use super::{
    Broker, CLOSE_TIMEOUT, Context, LinkPhase, MqttPhase, MqttSession, Outbound, Packet, PacketKind,
    Publication, Publish, ReasonCode, ScriptedAnswer, TOPIC_ALIASES, Version, WINDOW, Why, fault, reason,
};
use crate::mqtt::broker::{Admission, LONGEST_AWAY};
use crate::mqtt::wills::Will;
use std::num::NonZeroU32;
use std::time::Duration;
use weir_metrics::Moment;
use weir_mqtt::packet::{Connack, Connect};
use weir_mqtt::property::Properties;
use weir_mqtt::{Property, PropertyBuffer};

impl MqttSession {
    pub(super) fn connect(&mut self, connect: &Connect<'_>, context: &mut Context<'_, Broker>) {
        self.version = connect.version;
        self.largest = connect.properties.maximum_packet_size().map_or(u32::MAX, NonZeroU32::get);
        let offered = connect.user_name.map(|user| {
            let password = connect.password.map(String::from_utf8_lossy).unwrap_or_default();
            format!("{user}:{password}")
        });
        match fault(&mut self.script, LinkPhase::Connect, offered.as_deref(), context) {
            Some(ScriptedAnswer::Nothing) => {
                context.established();
                return self.phase = MqttPhase::Silent;
            }
            Some(ScriptedAnswer::Refusal { why, code, words }) => {
                let usual = match why {
                    Why::Unauthorized { .. } => ReasonCode::NotAuthorized,
                    Why::Moved { .. } => ReasonCode::UseAnotherServer,
                    Why::Rejected => ReasonCode::ServerUnavailable,
                };
                return self.turn_away(
                    reason(code.as_deref(), PacketKind::Connack, usual),
                    words,
                    context.now,
                );
            }
            None => {}
        }
        if connect.client_id.is_empty() && connect.version == Version::V311 && !connect.clean_start {
            // MQTT 3.1.1, MQTT-3.1.3-8.
            return self.turn_away(ReasonCode::ClientIdentifierNotValid, None, context.now);
        }
        let mut properties = PropertyBuffer::new();
        let idle = context.world.settings.patience.idle;
        if let Some(seconds) = self.keep_alive.agree(connect.version, connect.keep_alive, idle) {
            tell(&mut properties, Property::ServerKeepAlive(seconds));
        }
        if let Some(limit) = self.keep_alive.limit() {
            // A client that is silent for too long gets a DISCONNECT before the shard ends its link.
            context.allow_silence(limit + CLOSE_TIMEOUT);
        }
        self.client_id = connect.client_id.to_owned();
        if self.client_id.is_empty() {
            self.client_id = format!("weir-origin-{}", self.link);
            if connect.version == Version::V5 {
                tell(&mut properties, Property::AssignedClientIdentifier(&self.client_id));
            }
        }
        let seconds = match connect.version {
            // MQTT 3.1.1 section 3.1.2.4: with or without an end, nothing between.
            Version::V311 if connect.clean_start => 0,
            Version::V311 => u32::MAX,
            Version::V5 => connect.properties.session_expiry_interval().unwrap_or(0),
        };
        let kept_for = kept_for(seconds);
        if connect.version == Version::V5 && u64::from(seconds) > kept_for.as_secs() {
            tell(&mut properties, Property::SessionExpiryInterval(kept_for.as_secs() as u32));
        }
        let clean = connect.clean_start;
        let entered = context.world.enter(context.id(), &self.client_id, clean, kept_for, context.now);
        let Admission { key, other, is_resumed, number } = entered;
        if let Some(other) = other {
            context.wake(other);
        }
        (self.inbox, self.number) = (Some(key), number);
        if is_resumed {
            self.resend = context.world.unacknowledged(key);
            if context.world.is_subscriber(key) {
                self.begin_subscriber(context);
            }
        }
        self.window = connect.properties.receive_maximum().map_or(WINDOW, |most| most.get().min(WINDOW));
        self.will = connect.will.map(|will| {
            let (qos, retain, properties) = (will.qos, will.retain, will.properties);
            let publish = Publish { qos, retain, properties, ..Publish::new(will.topic, will.payload) };
            let delay = properties.will_delay_interval().unwrap_or(0);
            Will { publication: Publication::of(&publish), delay: Duration::from_secs(delay.into()) }
        });
        if connect.version == Version::V5 {
            self.outbound = Outbound::to(connect.properties.topic_alias_maximum().unwrap_or(0));
            tell(&mut properties, Property::TopicAliasMaximum(TOPIC_ALIASES));
        }
        self.phase = MqttPhase::Connected;
        context.established();
        let connack = Connack {
            session_present: is_resumed,
            reason: ReasonCode::Success,
            properties: properties.properties(),
        };
        self.send(&Packet::Connack(connack));
    }

    /// Does not let a client in.
    pub(super) fn turn_away(&mut self, reason: ReasonCode, words: Option<String>, now: Moment) {
        let mut properties = PropertyBuffer::new();
        if let (Some(words), Version::V5) = (words, self.version) {
            // Words that are too long are left out.
            let _ = properties.push(Property::ReasonString(&words));
        }
        let fits = reason.code_in(PacketKind::Connack, self.version).is_some();
        let reason = if fits { reason } else { ReasonCode::ServerUnavailable };
        let connack = Connack { session_present: false, reason, properties: properties.properties() };
        let before = self.out.len();
        // Words for which the client has no room are left out (MQTT-3.2.2-19).
        let fits = Packet::Connack(connack).encode(self.version, &mut self.out).is_ok()
            && self.out.len() - before <= self.largest as usize;
        self.out.truncate(before);
        let properties = if fits { connack.properties } else { Properties::NONE };
        self.send(&Packet::Connack(Connack { properties, ..connack }));
        self.phase = MqttPhase::Leaving(now + CLOSE_TIMEOUT);
    }
}

/// For how long a session is kept whose client asks for this many seconds.
pub(super) fn kept_for(seconds: u32) -> Duration {
    Duration::from_secs(seconds.into()).min(LONGEST_AWAY)
}

fn tell(properties: &mut PropertyBuffer, property: Property<'_>) {
    let told = properties.push(property);
    debug_assert_eq!(told, Ok(()), "a short property");
}
