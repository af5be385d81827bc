//! What MQTT clients do, and how.

use super::filling::Filling;
use super::pace::Arrivals;
use super::published::Published;
use super::start_gate::StartGate;
use super::subscribe::SharedSubscriptions;
use super::template::is_random;
use super::times::PublishTimes;
use crate::target::{Credentials, Password};
use std::sync::Arc;
use std::time::Duration;
use weir_mqtt::packet::RetainHandling;
use weir_mqtt::{EncodeError, Property, PropertyBuffer, Qos, Version};
use weir_setting::{CLIENT_ID, SESSION};
use weir_web::GivenFields;

/// A message that the broker publishes when a client is gone without DISCONNECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Will {
    /// Its topic.
    pub topic: String,
    /// What it says.
    pub payload: Vec<u8>,
    /// Its quality of service.
    pub qos: Qos,
    /// Whether the broker is to keep it.
    pub retain: bool,
    /// How long the broker waits for the client to come back before it publishes it, in whole seconds (MQTT 5 section 3.1.3.2.2).
    pub delay: Duration,
}

/// What a subscriber asks of its subscriptions in MQTT 5 (section 3.8.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscriptionSettings {
    /// Whether it is not to be sent what it has published itself.
    pub no_local: bool,
    /// Whether messages keep the retain flag that they were published with.
    pub retain_as_published: bool,
    /// When it is sent the messages that the broker has kept.
    pub retain_handling: RetainHandling,
}

impl SubscriptionSettings {
    /// What MQTT 3.1.1 does, which has no options.
    pub const USUAL: Self =
        Self { no_local: false, retain_as_published: false, retain_handling: RetainHandling::Always };
}

/// What a publisher says of its messages in MQTT 5 (section 3.3.2.3).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessageProperties {
    /// Names and values that reach the subscribers.
    pub user: Vec<(String, String)>,
    /// What kind of content the payload is.
    pub content_type: Option<String>,
    /// For how long the broker may keep a message for a subscriber, in whole seconds.
    pub expiry: Option<Duration>,
    /// Whether a topic is sent once a connection, and a number in its place from then on.
    pub topic_alias: bool,
}

impl MessageProperties {
    /// Whether there is anything that MQTT 3.1.1 cannot say.
    pub(super) fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Those that are the same in each message.
    pub(super) fn constant(&self) -> Result<PropertyBuffer, EncodeError> {
        let mut buffer = PropertyBuffer::new();
        if let Some(expiry) = self.expiry {
            let seconds = expiry.as_secs().min(u32::MAX.into()) as u32;
            buffer.push(Property::MessageExpiryInterval(seconds))?;
        }
        if let Some(content_type) = &self.content_type {
            buffer.push(Property::ContentType(content_type))?;
        }
        for (name, value) in &self.user {
            buffer.push(Property::UserProperty((name, value)))?;
        }
        Ok(buffer)
    }
}

/// The error about a session that no other client would ever go on with.
pub fn nameless_session() -> String {
    format!(
        "a broker keeps a session of MQTT 3.1.1 for ever, under a name that is to be the same in the next run: \
         say {} without {{random:N}}, leave {} out, or speak version 5",
        CLIENT_ID.beside_flag(" (`client_id`)"),
        SESSION.beside_flag(" (`session`)")
    )
}

/// What only MQTT has.
#[derive(Clone, Debug)]
pub struct MqttOptions {
    /// The version to speak.
    pub version: Version,
    /// Users and passwords for URLs that name none: each client has the next, and the first again behind the last. User names may
    /// be templates.
    pub credentials: Vec<Credentials>,
    /// The password of users that URLs name without one.
    pub password: Option<Password>,
    /// What client identifiers begin with; the client's number follows. Or a template of them. Without it, a name of this
    /// run's own.
    pub client_id: Option<String>,
    /// Topic filters of each subscriber beside that of its URL; they may be templates.
    pub filters: Vec<String>,
    /// Whether clients that would subscribe only connect, and keep their connections.
    pub connect_only: bool,
    /// For how long the broker keeps the session of a client that is gone, in whole seconds; `None` for a clean one. In
    /// 3.1.1 for any time.
    pub session: Option<Duration>,
    /// The path at which a broker is asked for a WebSocket.
    pub socket_path: String,
    /// What a person adds to the request for it.
    pub given: GivenFields,
    /// Longest silence of a client, in whole seconds; zero for any.
    pub keep_alive: Duration,
    /// Quality of service, of publishing and of subscribing.
    pub qos: Qos,
    /// How many messages of QoS 1 and 2 may be unacknowledged, both ways.
    pub window: u16,
    /// Whether a client whose broker or link breaks connects again.
    pub reconnect: bool,
    /// Whether a client whose first connection fails tries again as well.
    pub retry_connect: bool,
    /// Every how long all clients lose their links at the same moment, if they are to.
    pub break_every: Option<Duration>,
    /// How long a stopped publisher waits for acknowledgements, and a stopped subscriber for what publishers of its run have
    /// published.
    pub linger: Duration,
    /// Where publishers and subscribers of one run meet, if they are to.
    pub published: Option<Arc<Published>>,
    /// Where those of one run that share a subscription find each other; each workload by itself without it.
    pub shared_subscriptions: Option<Arc<SharedSubscriptions>>,
    /// Whether members of shared subscriptions may be in other processes of the run: then what is lost of them is unknown here.
    pub members_elsewhere: bool,
    /// Where the clients of one run wait for each other, if they have it in common; and whether publishers wait there.
    pub start_gate: Option<Arc<StartGate>>,
    /// See `start_gate`.
    pub wait_before_publishing: bool,
    /// Where publishers want answers to their messages (MQTT 5 section 4.10): a template of a topic.
    pub response_topic: Option<String>,
    /// Whether subscribers answer messages that want it.
    pub respond: bool,
    /// Topic aliases that a broker may use towards a client (MQTT 5 section 3.1.2.11.5).
    pub topic_alias_maximum: u16,
    /// A last will.
    pub will: Option<Will>,
    /// What subscribers ask of their subscriptions.
    pub subscription: SubscriptionSettings,
    /// Messages a second of each publisher.
    pub rate: f64,
    /// How they are spread over the time.
    pub arrivals: Arrivals,
    /// Messages of each publisher; `None` for as many as the time allows.
    pub count: Option<u64>,
    /// What the messages are filled with.
    pub filling: Filling,
    /// Whether the broker is to keep the messages.
    pub retain: bool,
    /// What MQTT 5 says of each message.
    pub properties: MessageProperties,
    /// Seed of the filling.
    pub seed: u64,
    /// Where publishers record when they sent their first and their last message, if the run measures that.
    pub times: Option<Arc<PublishTimes>>,
}

impl MqttOptions {
    /// Whether a broker would keep sessions for ever under names that no client comes back with (MQTT 3.1.1 section 3.1.2.4).
    pub fn leaves_sessions(&self) -> bool {
        let is_named = self.client_id.as_deref().is_some_and(|id| !is_random(id));
        self.version == Version::V311 && self.session.is_some() && !is_named
    }
}

impl Default for MqttOptions {
    fn default() -> Self {
        Self {
            version: Version::V5,
            credentials: Vec::new(),
            password: None,
            client_id: None,
            filters: Vec::new(),
            connect_only: false,
            session: None,
            socket_path: "/mqtt".to_owned(),
            given: GivenFields::default(),
            keep_alive: Duration::from_secs(60),
            qos: Qos::AtMostOnce,
            window: 1_000,
            reconnect: false,
            retry_connect: false,
            break_every: None,
            linger: Duration::ZERO,
            published: None,
            shared_subscriptions: None,
            members_elsewhere: false,
            start_gate: None,
            wait_before_publishing: false,
            response_topic: None,
            respond: false,
            topic_alias_maximum: 64,
            will: None,
            subscription: SubscriptionSettings::USUAL,
            rate: 1.0,
            arrivals: Arrivals::Even,
            count: None,
            filling: Filling::default(),
            retain: false,
            properties: MessageProperties::default(),
            seed: 0,
            times: None,
        }
    }
}
