//! What MQTT clients do, and how.

use super::filling::Filling;
use super::published::Published;
use super::times::PublishTimes;
use crate::target::Credentials;
use std::sync::Arc;
use std::time::Duration;
use weir_mqtt::{Qos, Version};

/// A message that the broker publishes when a client is gone without DISCONNECT.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Will {
    /// Its topic.
    pub topic: String,
    /// What it says.
    pub payload: Vec<u8>,
}

/// What only MQTT has.
#[derive(Clone, Debug)]
pub struct MqttOptions {
    /// The version to speak.
    pub version: Version,
    /// User and password for URLs that name none.
    pub credentials: Option<Credentials>,
    /// What client identifiers begin with; the client's number follows. Without it, a name of this run's own.
    pub client_id: Option<String>,
    /// For how long the broker keeps the session of a client that is gone, in whole seconds; `None` for a clean one. In
    /// 3.1.1 for any time.
    pub session: Option<Duration>,
    /// Longest silence of a client, in whole seconds; zero for any.
    pub keep_alive: Duration,
    /// Quality of service, of publishing and of subscribing.
    pub qos: Qos,
    /// How many messages of QoS 1 and 2 may be unacknowledged, both ways.
    pub window: u16,
    /// Whether a client whose broker or link breaks connects again.
    pub reconnect: bool,
    /// How long a stopped subscriber waits for what publishers of its run have published.
    pub linger: Duration,
    /// Where publishers and subscribers of one run meet, if they are to.
    pub published: Option<Arc<Published>>,
    /// A last will.
    pub will: Option<Will>,
    /// Messages a second of each publisher.
    pub rate: f64,
    /// Messages of each publisher; `None` for as many as the time allows.
    pub count: Option<u64>,
    /// What the messages are filled with.
    pub filling: Filling,
    /// Whether the broker is to keep the messages.
    pub retain: bool,
    /// Seed of the filling.
    pub seed: u64,
    /// Where publishers record when they sent their first and their last message, if the run measures that.
    pub times: Option<Arc<PublishTimes>>,
}

impl Default for MqttOptions {
    fn default() -> Self {
        Self {
            version: Version::V5,
            credentials: None,
            client_id: None,
            session: None,
            keep_alive: Duration::from_secs(60),
            qos: Qos::AtMostOnce,
            window: 1_000,
            reconnect: false,
            linger: Duration::ZERO,
            published: None,
            will: None,
            rate: 1.0,
            count: None,
            filling: Filling::default(),
            retain: false,
            seed: 0,
            times: None,
        }
    }
}
