//! A WebRTC publisher: it sends its material in time, and answers what the server asks.

use super::client::{Client, Line, Role};
use super::connection::{Connection, Keys, Terms};
use super::figures::STRANGE;
use super::request::Request;
use super::sending::{Content, Sending};
use crate::client_session::End;
use crate::client_state::{ClientPhase, ClientState, Timeouts};
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use std::sync::Arc;
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Endpoint};

/// What all publishers of a workload share.
pub(super) struct SharedOptions {
    pub(super) terms: Arc<Terms>,
    pub(super) timeouts: Timeouts,
    pub(super) content: Content,
}

/// One virtual publisher. Frame n is due at the moment of the keys plus the frame's decode time, and is never skipped:
/// what is late is sent as soon as it can be, and its lag recorded.
pub(super) struct Publisher {
    options: Arc<SharedOptions>,
    sending: Option<Box<Sending>>,
}

impl Publisher {
    pub(super) fn client(
        planned: PlannedStart,
        request: Arc<Request>,
        endpoint: Endpoint,
        options: Arc<SharedOptions>,
        now: Moment,
        shard: &mut ShardRecorder,
    ) -> Client<Self> {
        let state = ClientState::begin(planned, options.timeouts, now, shard);
        let connection = Connection::new(planned, options.terms.clone(), request, endpoint, now);
        Client::new(state, connection, Self { options, sending: None })
    }

    /// Sends all frames that are due.
    fn send_due(&mut self, line: &mut Line, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        let Some(sending) = &mut self.sending else { return Ok(()) };
        let content = &self.options.content;
        let mut outcome = Ok(());
        line.connection.with_sender(context, |recorder, send| {
            while sending.due() <= now && outcome.is_ok() {
                sending.send_frame(now, content, recorder, send);
                outcome = sending.fetch(content, now);
            }
            sending.report(now, recorder, send);
        });
        outcome
    }
}

impl Role for Publisher {
    fn begin(
        &mut self,
        keys: &Keys,
        line: &mut Line,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let now = context.now;
        self.sending = Some(Box::new(Sending::new(keys, self.options.content.material.source(), now)?));
        line.state.reach(ClientPhase::Playing, now, context.world);
        // The first frame is due, and goes with the time at which it does.
        Ok(())
    }

    fn has_begun(&self) -> bool {
        self.sending.is_some()
    }

    fn rtp(&mut self, _: &mut [u8], line: &mut Line, context: &mut Context<'_, ShardRecorder>) {
        context.world.of(line.state.planned()).count(STRANGE, 1);
    }

    fn rtcp(&mut self, bytes: &mut [u8], line: &mut Line, context: &mut Context<'_, ShardRecorder>) {
        let now = context.now;
        if let Some(sending) = &mut self.sending {
            line.connection
                .with_sender(context, |recorder, send| sending.on_rtcp(now, bytes, recorder, send));
        }
    }

    fn handle_timeout(
        &mut self,
        line: &mut Line,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let patience = self.options.timeouts.media;
        if line.connection.path_lost().is_some_and(|since| since + patience <= context.now) {
            return Err((Failure::PathLost, "no connectivity check is answered".to_owned()));
        }
        self.send_due(line, context)
    }

    fn poll_timeout(&self, _: &Line) -> Option<Moment> {
        self.sending.as_ref().map(|sending| sending.poll_timeout())
    }

    fn begin_again(&mut self, line: &mut Line, context: &mut Context<'_, ShardRecorder>) {
        self.depart(None, line, context);
    }

    fn depart(&mut self, _: Option<Failure>, line: &mut Line, context: &mut Context<'_, ShardRecorder>) {
        if let Some(mut sending) = self.sending.take() {
            line.connection.with_sender(context, |recorder, send| sending.finish(recorder, send));
        }
    }
}
