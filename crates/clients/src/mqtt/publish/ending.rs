//! How a publisher ends: when it leaves, and what is booked of what it has not done.

use super::requests::Requests;
use super::{PublishPhase, Publisher, number_of};
use crate::client_state::ClientPhase;
use crate::mqtt::figures::{IN_FLIGHT, NO_ANSWER, UNACKNOWLEDGED, UNANSWERED, UNSENT};
use crate::shard_recorder::ShardRecorder;
use std::sync::atomic::Ordering::Relaxed;
use weir_metrics::Moment;
use weir_metrics::common::UNITS_SHORT;
use weir_mqtt::ReasonCode;
use weir_mqtt::packet::Disconnect;
use weir_shard::Context;

impl Publisher {
    /// Sends DISCONNECT when all is acknowledged and answered, or when the time for that is over.
    pub(super) fn leave_when_done(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let now = context.now;
        let in_flight = self.resending
            || self.client.session().in_flight() > 0
            || self.requests.as_ref().is_some_and(Requests::are_waiting);
        let done = match self.phase {
            PublishPhase::Working => self.pace.due(self.next).is_none() && !in_flight,
            PublishPhase::Stopping(since) => !in_flight || now >= since + self.options.linger,
            PublishPhase::Leaving | PublishPhase::Booked => false,
        };
        if done && self.state.phase() == ClientPhase::Playing {
            // Both versions have a normal disconnection.
            let _ = self.client.disconnect(&Disconnect::of(ReasonCode::Success));
            self.flush(context);
            self.carrier.close(self.state.planned(), context);
            self.book(now, context.world);
            self.phase = PublishPhase::Leaving;
        }
        if self.phase == PublishPhase::Leaving && context.unsent() == 0 {
            self.state.finish(context.now, context.world);
        }
    }

    /// Books what was not done.
    pub(super) fn book(&mut self, now: Moment, shard: &mut ShardRecorder) {
        let until = match self.phase {
            PublishPhase::Working => now,
            PublishPhase::Stopping(since) => since,
            PublishPhase::Leaving | PublishPhase::Booked => return,
        };
        let recorder = shard.of(self.state.planned());
        recorder.count(UNITS_SHORT, self.options.count.map_or(0, |count| count.saturating_sub(self.next)));
        if self.writer.begun > 0 {
            recorder.count(UNSENT, self.pace.due_by(until).saturating_sub(self.next));
        }
        let waiting = self.client.in_flight();
        if !self.broken_by_run {
            recorder.count(UNACKNOWLEDGED, waiting.len() as u64);
        }
        if !self.reconnecting.is_away() {
            recorder.count(UNANSWERED, waiting.len() as u64);
        }
        recorder.count(NO_ANSWER, self.requests.as_mut().map_or(0, Requests::end));
        recorder.shift(IN_FLIGHT, -i64::from(self.in_flight));
        self.in_flight = 0;
        self.phase = PublishPhase::Booked;
        if let Some(times) = &self.options.times {
            times.ended.fetch_add(1, Relaxed);
        }
        if let Some(sent) = &self.sent {
            sent.not_taken(waiting.into_iter().map(number_of));
            sent.end(self.next);
        }
    }

    pub(super) fn book_in_flight(&mut self, shard: &mut ShardRecorder) {
        let in_flight = self.client.session().in_flight();
        let before = std::mem::replace(&mut self.in_flight, in_flight);
        shard.of(self.state.planned()).shift(IN_FLIGHT, i64::from(in_flight) - i64::from(before));
    }
}
