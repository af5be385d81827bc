//! A message as it came to the broker.

use std::time::Duration;
use weir_metrics::Moment;
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
    /// Those that go on to subscribers as they are.
    pub(crate) properties: PropertyBuffer,
    /// For how many seconds it is of use, if not for ever (section 3.3.2.3.3).
    pub(super) expiry: Option<u32>,
    /// Since when that counts: it came, or was published as a will.
    pub(super) since: Moment,
}

impl Publication {
    /// Bytes that are kept for it.
    pub(crate) fn weight(&self) -> usize {
        self.topic.len() + self.payload.len() + self.properties.memory() + KEPT_WITH_EACH
    }

    pub(crate) fn of(publish: &Publish<'_>) -> Self {
        let mut properties = PropertyBuffer::new();
        for property in publish.properties {
            match property {
                // An alias is between two; a subscription has identifiers of its own (MQTT 5 section 3.3.2.3).
                Property::TopicAlias(_) | Property::SubscriptionIdentifier(_) => {}
                // What is left of it is said to each subscriber, and nothing of a will's delay.
                Property::MessageExpiryInterval(_) | Property::WillDelayInterval(_) => {}
                // What was read can be written.
                other => drop(properties.push(other)),
            }
        }
        Self {
            topic: publish.topic.into(),
            payload: publish.payload.into(),
            qos: publish.qos,
            retain: publish.retain,
            properties,
            expiry: publish.properties.message_expiry_interval(),
            since: Moment::default(),
        }
    }

    /// For how many seconds it is of use yet, if not for ever (MQTT-3.3.2-6).
    pub(super) fn left(&self, now: Moment) -> Option<u32> {
        let waited = u32::try_from(now.since(self.since).as_secs()).unwrap_or(u32::MAX);
        self.expiry.map(|seconds| seconds.saturating_sub(waited))
    }

    /// Whether it is of no use any more: subscribers that were not sent it get none (MQTT-3.3.2-5).
    pub(super) fn is_over(&self, now: Moment) -> bool {
        let waited = now.since(self.since);
        self.expiry.is_some_and(|seconds| waited >= Duration::from_secs(seconds.into()))
    }
}
