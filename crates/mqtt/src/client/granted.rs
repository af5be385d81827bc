//! What the server takes, as its CONNACK says it.

use super::ClientOptions;
use crate::Qos;
use crate::packet::Connack;
use std::num::{NonZeroU16, NonZeroU32};

/// What the server takes, by its CONNACK (MQTT 5 section 3.2.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Messages of QoS 1 and 2 that it takes before it has acknowledged the first.
    pub receive_maximum: u16,
    /// The largest packet.
    pub maximum_packet_size: u32,
    /// The highest QoS.
    pub maximum_qos: Qos,
    /// Whether messages may be kept.
    pub retain_available: bool,
    /// The highest topic alias.
    pub topic_alias_maximum: u16,
    /// The keep-alive that is in force, in seconds; 0 for none.
    pub keep_alive: u16,
}

impl ServerLimits {
    /// As long as the server has not said anything else.
    pub(super) fn before(options: &ClientOptions) -> Self {
        Self {
            receive_maximum: u16::MAX,
            maximum_packet_size: crate::MAX_PACKET_SIZE,
            maximum_qos: Qos::ExactlyOnce,
            retain_available: true,
            topic_alias_maximum: 0,
            keep_alive: options.keep_alive,
        }
    }

    pub(super) fn read(&mut self, connack: &Connack<'_>) {
        let properties = &connack.properties;
        let size = properties.maximum_packet_size().map_or(self.maximum_packet_size, NonZeroU32::get);
        *self = Self {
            receive_maximum: properties.receive_maximum().map_or(self.receive_maximum, NonZeroU16::get),
            maximum_packet_size: size,
            maximum_qos: properties.maximum_qos().unwrap_or(self.maximum_qos),
            retain_available: properties.retain_available().unwrap_or(true),
            topic_alias_maximum: properties.topic_alias_maximum().unwrap_or(0),
            keep_alive: properties.server_keep_alive().unwrap_or(self.keep_alive),
        };
    }
}
