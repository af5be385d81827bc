//! The messages of a publisher, with their marks. Knows no link and no schedule.

use super::requests::Requests;
use super::shared_options::SharedOptions;
use crate::mqtt::template::MessageTemplate;
use crate::mqtt::topic::Topic;
use std::num::NonZeroU16;
use weir_metrics::Moment;
use weir_mqtt::client::PublishError;
use weir_mqtt::mark::{Clocks, HEADER_LEN, Mark, PROPERTY, TEXT_LEN};
use weir_mqtt::{Property, PropertyBuffer, Publish, Version};

/// The number of a publisher's one topic.
const ALIAS: NonZeroU16 = NonZeroU16::MIN;

/// Makes messages, one after the other, without new memory.
pub(super) struct MessageWriter {
    pub(super) topic: Topic,
    pub(super) publisher: u64,
    /// Where answers are to go, if any are asked for.
    pub(super) response_topic: Option<String>,
    pub(super) begun: u64,
    pub(super) name: String,
    pub(super) properties: PropertyBuffer,
    /// A payload that is made here: of a template, or with room for a mark in front if the version has no other place for it.
    pub(super) body: Vec<u8>,
    pub(super) template: Option<MessageTemplate>,
    /// What the template makes, kept for its memory.
    pub(super) text: String,
    pub(super) alias: TopicAlias,
}

/// Whether the broker knows the topic by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TopicAlias {
    /// It does not, and is not told.
    Unused,
    /// It is told with the next message.
    ToBeTold,
    Known,
}

impl MessageWriter {
    pub(super) fn mark(&self, sequence_number: u64, options: &SharedOptions, sent: Clocks) -> Mark {
        let last = options.count == Some(sequence_number + 1);
        Mark { publisher: self.publisher, sequence_number, begun: self.begun, sent, last }
    }

    /// Makes a message and hands it over.
    #[inline]
    pub(super) fn make(
        &mut self,
        number: u64,
        mark: Option<Mark>,
        options: &SharedOptions,
        publish: impl FnOnce(&Publish<'_>) -> Result<usize, PublishError>,
    ) -> Result<usize, PublishError> {
        self.topic.write(number, &mut self.name);
        self.properties.copy_from(&options.properties);
        if self.alias != TopicAlias::Unused {
            self.properties.push(Property::TopicAlias(ALIAS))?;
        }
        if let Some(topic) = &self.response_topic {
            self.properties.push(Property::ResponseTopic(topic))?;
            let correlation = Requests::correlation(self.publisher, number);
            self.properties.push(Property::CorrelationData(&correlation))?;
        }
        // MQTT 3.1.1 has no other place for a mark than in front of the payload.
        let in_front = mark.is_some() && options.version == Version::V311;
        if let Some(template) = &self.template {
            self.text.clear();
            template.write(number, weir_shard::clock::wall_nanos(), &mut self.text);
            self.body.clear();
            self.body.resize(if in_front { HEADER_LEN } else { 0 }, 0);
            self.body.extend_from_slice(self.text.as_bytes());
        } else if in_front && options.payloads.differ() {
            self.body.truncate(HEADER_LEN);
            self.body.extend_from_slice(options.payloads.of(number));
        }
        match (mark, options.version) {
            (Some(mark), Version::V5) => {
                let mut room = [0; TEXT_LEN];
                self.properties.push(Property::UserProperty((PROPERTY, mark.text(&mut room))))?;
            }
            (Some(mark), Version::V311) => mark.put(&mut self.body),
            (None, _) => {}
        }
        let is_made = in_front || self.template.is_some();
        let payload = if is_made { &*self.body } else { options.payloads.of(number) };
        let properties = self.properties.properties();
        let (qos, retain) = (options.qos, options.retain);
        let name = if self.alias == TopicAlias::Known { "" } else { &*self.name };
        let published = publish(&Publish { qos, retain, properties, ..Publish::new(name, payload) })?;
        if self.alias == TopicAlias::ToBeTold {
            self.alias = TopicAlias::Known;
        }
        Ok(published)
    }
}

/// A number that no other publisher has, whatever run and machine: the moment, well mixed, and the client.
pub(super) fn publisher_number(now: Moment, client: u32) -> u64 {
    let mut number =
        weir_shard::clock::wall_nanos() ^ now.as_nanos().rotate_left(32) ^ u64::from(client) << 20;
    for _ in 0..2 {
        number = (number ^ number >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    number ^ number >> 29
}
