//! Messages as they are written to one client: with the properties of the connection, and a number in the place of a topic that was
//! sent before.

use super::{Delivery, TOPIC_ALIASES};
use std::collections::HashMap;
use std::num::NonZeroU16;
use weir_metrics::Moment;
use weir_mqtt::packet::Publish;
use weir_mqtt::property::Properties;
use weir_mqtt::{PacketId, Property, PropertyBuffer, Version};

/// Bytes of the shortest topic that gets a number: the property that says it takes three.
const SHORTEST: usize = 8;

/// What a connection knows of the messages that were written to it.
#[derive(Debug, Default)]
pub(super) struct Outbound {
    /// Topics that the client knows by number, the first that were sent.
    aliases: HashMap<Box<str>, NonZeroU16>,
    /// The highest number that it takes.
    most: u16,
    /// Kept for its memory.
    properties: PropertyBuffer,
}

impl Outbound {
    /// To a client that takes aliases up to this one.
    pub(super) fn to(alias_maximum: u16) -> Self {
        Self { most: alias_maximum.min(TOPIC_ALIASES), ..Self::default() }
    }

    /// Writes a message, to a client that takes packets of at most this many bytes; says whether it can be written.
    pub(super) fn write(
        &mut self,
        delivery: &Delivery,
        packet_id: Option<PacketId>,
        dup: bool,
        (version, largest, now): (Version, u32, Moment),
        out: &mut Vec<u8>,
    ) -> bool {
        let publication = &*delivery.publication;
        let alias = self.alias(&publication.topic);
        let own = [
            publication.left(now).map(Property::MessageExpiryInterval),
            delivery.identifier.map(Property::SubscriptionIdentifier),
            alias.map(|(alias, _)| Property::TopicAlias(alias)),
        ];
        let properties = match version {
            Version::V311 => Properties::NONE,
            Version::V5 if own.iter().all(Option::is_none) => publication.properties.properties(),
            Version::V5 => {
                self.properties.copy_from(&publication.properties);
                for property in own.into_iter().flatten() {
                    // A number always fits.
                    let _ = self.properties.push(property);
                }
                self.properties.properties()
            }
        };
        let publish = Publish {
            dup,
            qos: delivery.qos,
            retain: delivery.retain,
            topic: if alias.is_some_and(|(_, is_known)| is_known) { "" } else { &publication.topic },
            packet_id,
            properties,
            payload: &publication.payload,
        };
        let before = out.len();
        let is_written = publish.encode(version, out).is_ok() && out.len() - before <= largest as usize;
        if !is_written {
            out.truncate(before);
            // The client has not learnt the number.
            if alias.is_some_and(|(_, is_known)| !is_known) {
                self.aliases.remove(&*publication.topic);
            }
        }
        is_written
    }

    /// The number of a topic, and whether the client knows it already. A client of MQTT 3.1.1 takes none.
    fn alias(&mut self, topic: &str) -> Option<(NonZeroU16, bool)> {
        if self.most == 0 || topic.len() < SHORTEST {
            return None;
        }
        if let Some(alias) = self.aliases.get(topic) {
            return Some((*alias, true));
        }
        let next = NonZeroU16::new(self.aliases.len() as u16 + 1).filter(|next| next.get() <= self.most)?;
        self.aliases.insert(topic.into(), next);
        Some((next, false))
    }
}
