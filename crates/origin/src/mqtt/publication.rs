//! A message as it came to the broker.

use weir_mqtt::{Property, PropertyBuffer, Publish, Qos};

/// Bytes beside its own that a message takes: where it is shared, and its place in a queue.
const KEPT_WITH_EACH: usize = 192;

/// A message as it arrived, shared by all subscribers that receive it.
#[derive(Debug)]
pub(crate) struct Publication {
    pub(crate) topic: Box<str>,
    pub(crate) payload: Box<[u8]>,
    pub(crate) qos: Qos,
    pub(crate) retain: bool,
    /// Those that go on to subscribers.
    pub(crate) properties: PropertyBuffer,
}

impl Publication {
    /// Bytes that are kept for it.
    pub(crate) fn weight(&self) -> usize {
        self.topic.len() + self.payload.len() + self.properties.memory() + KEPT_WITH_EACH
    }

    pub(crate) fn of(publish: &Publish<'_>) -> Self {
        let mut properties = PropertyBuffer::new();
        for property in publish.properties {
            // An alias is between two; a subscription has identifiers of its own (MQTT 5 section 3.3.2.3).
            if !matches!(property, Property::TopicAlias(_) | Property::SubscriptionIdentifier(_)) {
                // What was read can be written.
                let _ = properties.push(property);
            }
        }
        Self {
            topic: publish.topic.into(),
            payload: publish.payload.into(),
            qos: publish.qos,
            retain: publish.retain,
            properties,
        }
    }
}
