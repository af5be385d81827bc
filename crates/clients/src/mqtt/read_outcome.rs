//! What a broker says to a publisher, read by read.

use super::connection_answer::ConnectionAnswer;
use super::figures::{
    ACKNOWLEDGE_TIME, ACKNOWLEDGED, ACKNOWLEDGED_AGAIN, PINGS, REFUSED, RESPONSE_TIME, UNMATCHED,
};
use super::pace::Pace;
use super::{refusal, trace};
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use weir_metrics::Moment;
use weir_mqtt::{ClientEvent, ReasonCode, Version};

/// What the broker said in one read.
#[derive(Default)]
pub(super) struct ReadOutcome {
    pub(super) connection: ConnectionAnswer,
    /// Numbers of messages that the broker did not take.
    pub(super) not_taken: Vec<u64>,
    pub(super) acknowledged: bool,
    /// Whether it acknowledged a message, or received one of QoS 2.
    pub(super) has_answered: bool,
    /// Messages that the broker took.
    pub(super) taken: u64,
    /// A subscription was granted: that to a publisher's answers.
    pub(super) granted: bool,
    /// What the broker said of the first message that it did not take.
    pub(super) refusal: Option<String>,
}

impl ReadOutcome {
    #[inline]
    pub(super) fn on_event(
        &mut self,
        event: &ClientEvent<'_>,
        pace: &Pace,
        version: Version,
        now: Moment,
        shard: &mut ShardRecorder,
        planned: PlannedStart,
    ) {
        trace::heard(planned.number(), event);
        let recorder = shard.of(planned);
        match event {
            ClientEvent::Acknowledged { token, reason, qos, properties } => {
                (self.acknowledged, self.has_answered) = (true, true);
                if reason.is_error() {
                    recorder.count(REFUSED, 1);
                    self.not_taken.push(number_of(*token));
                    self.refusal.get_or_insert_with(|| refusal::of_message(*reason, *qos, properties));
                } else {
                    self.taken += 1;
                    recorder.count(ACKNOWLEDGED, 1);
                    recorder.count(UNMATCHED, u64::from(*reason == ReasonCode::NoMatchingSubscribers));
                }
                if let Some(due) = pace.due(number_of(*token)) {
                    let response = now.since(due).as_micros() as u64;
                    recorder.record(RESPONSE_TIME, response);
                    recorder.record(ACKNOWLEDGE_TIME, response.saturating_sub(token >> 32));
                }
            }
            ClientEvent::Received { .. } => self.has_answered = true,
            ClientEvent::AcknowledgedAgain { .. } => recorder.count(ACKNOWLEDGED_AGAIN, 1),
            ClientEvent::Subscribed { suback, .. } => match suback.reasons.iter().find(|it| it.is_error()) {
                Some(reason) => {
                    let refused = refusal::of_subscription(reason, &suback.properties, version);
                    self.connection.refused = Some(refused);
                }
                None => self.granted = true,
            },
            ClientEvent::Pong => recorder.count(PINGS, 1),
            other => self.connection.on_event(other, version),
        }
    }
}

/// The number of a message, out of its token: the lag is in the upper half, the number in the lower, which is enough for
/// an hour, and for four thousand million.
pub(super) fn number_of(token: u64) -> u64 {
    token & u64::from(u32::MAX)
}
