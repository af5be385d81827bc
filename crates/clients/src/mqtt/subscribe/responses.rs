//! Answers to messages that want one (MQTT 5 section 4.10): to their Response Topic, with their Correlation Data, without a payload and at
//! QoS 0.

use crate::mqtt::figures::{RESPONSES, UNANSWERABLE};
use crate::mqtt::session_time::since_start;
use weir_metrics::{Moment, Recorder};
use weir_mqtt::{Client, Property, PropertyBuffer, Publish};

/// Bytes that may wait to be sent. A client that asks and does not read gets no more answers.
const MOST_WAITING: usize = 256 * 1024;

/// The answers to what one read brought.
#[derive(Debug, Default)]
pub(super) struct Responses {
    /// Topics and Correlation Data, one behind the other.
    bytes: Vec<u8>,
    /// Of each, where its topic and its Correlation Data end; it has none if that is `None`.
    ends: Vec<(usize, Option<usize>)>,
    left_out: u64,
}

impl Responses {
    /// A message came.
    pub(super) fn take(&mut self, publish: &Publish<'_>) {
        let Some(topic) = publish.properties.response_topic() else { return };
        let correlation = publish.properties.correlation_data();
        if self.bytes.len() + topic.len() + correlation.map_or(0, <[u8]>::len) > MOST_WAITING {
            self.left_out += 1;
            return;
        }
        self.bytes.extend_from_slice(topic.as_bytes());
        let topic_end = self.bytes.len();
        let end = correlation.map(|correlation| {
            self.bytes.extend_from_slice(correlation);
            self.bytes.len()
        });
        self.ends.push((topic_end, end));
    }

    /// Writes them out.
    pub(super) fn send(&self, client: &mut Client, now: Moment, recorder: &mut Recorder) {
        let (mut sent, mut begin) = (0, 0);
        let mut properties = PropertyBuffer::new();
        for &(topic_end, end) in &self.ends {
            let topic = std::str::from_utf8(&self.bytes[begin..topic_end]).unwrap_or_default();
            begin = end.unwrap_or(topic_end);
            properties.clear();
            let correlation = end.map(|end| Property::CorrelationData(&self.bytes[topic_end..end]));
            let is_made = correlation.into_iter().all(|it| properties.push(it).is_ok());
            let answer = Publish { properties: properties.properties(), ..Publish::new(topic, &[]) };
            let has_room = client.output().len() < MOST_WAITING;
            sent += u64::from(is_made && has_room && client.publish(&answer, 0, since_start(now)).is_ok());
        }
        if !self.ends.is_empty() || self.left_out > 0 {
            recorder.count(RESPONSES, sent);
            recorder.count(UNANSWERABLE, self.ends.len() as u64 + self.left_out - sent);
        }
    }
}
