//! A viewer of a transport stream over HTTP.

use super::viewer::TsViewer;
use crate::client_session::{ClientSession, End, Stop};
use crate::client_state::{ClientPhase, ClientState};
use crate::http_get::{HttpGet, Step};
use crate::http_request::Request;
use crate::redirect::Redirects;
use crate::shard_recorder::{PlannedStart, ShardRecorder};
use std::sync::Arc;
use weir_metrics::common::{READS, RECEIVED};
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Edge};

/// A body in which this many bytes have no packet is not a transport stream: over 5,000 packets might be in them.
pub(super) const LONGEST_SEARCH: u64 = 1 << 20;

/// What all viewers of a workload share.
pub(super) struct SharedOptions {
    /// Where redirects lead.
    pub(super) redirects: Redirects,
    /// Whether a server has just listed what is asked for.
    pub(super) listed: bool,
}

/// One virtual viewer.
pub(super) struct Player {
    viewer: TsViewer,
    options: Arc<SharedOptions>,
    get: HttpGet,
}

impl Player {
    pub(super) fn new(
        planned: PlannedStart,
        request: Arc<Request>,
        options: Arc<SharedOptions>,
        viewer: TsViewer,
    ) -> Self {
        let get = HttpGet::new(planned.number(), request, options.redirects.clone());
        Self { viewer, options, get }
    }

    /// Takes what a read brought: head, body, or both.
    fn take(&mut self, mut bytes: &[u8], now: Moment, shard: &mut ShardRecorder) -> Result<(), End> {
        let before = self.get.body();
        let last = loop {
            match self.get.take(&mut bytes) {
                Step::Piece(piece) => self.viewer.take(piece, now, shard),
                Step::Accepted => self.viewer.state.reach(ClientPhase::Waiting, now, shard),
                last => break last,
            }
        };
        self.viewer.took(self.get.body() - before, now, shard);
        match last {
            // mirakc answers so when its tuners are taken.
            Step::Failed(Failure::StreamNotFound, said) if self.options.listed => Err((
                Failure::Unavailable,
                format!("{said}; the server has just listed it: no free tuner, or gone"),
            )),
            Step::Failed(failure, words) => Err((failure, words)),
            Step::End => {
                let words = format!("the answer ended after {} bytes, as announced", self.get.body());
                Err(self.ended(words, now, shard))
            }
            _ if self.get.body() >= LONGEST_SEARCH && !self.viewer.is_stream() => {
                Err(self.viewer.no_stream())
            }
            Step::Accepted | Step::Piece(_) | Step::More => Ok(()),
        }
    }

    /// The body has ended where it should.
    fn ended(&mut self, words: String, now: Moment, shard: &mut ShardRecorder) -> End {
        self.viewer.finish_stream(now, shard);
        if self.get.body() > 0 && !self.viewer.is_stream() {
            self.viewer.no_stream()
        } else {
            (Failure::StreamEnded, words)
        }
    }
}

impl ClientSession for Player {
    fn state(&self) -> &ClientState {
        &self.viewer.state
    }

    fn state_mut(&mut self) -> &mut ClientState {
        &mut self.viewer.state
    }

    fn handle_connected(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.get.send(&mut self.viewer.state, context);
        Ok(())
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let (now, shard) = (context.now, &mut *context.world);
        let mut outcome = Ok(());
        if !bytes.is_empty() {
            let recorder = shard.of(self.viewer.state.planned());
            recorder.count(READS, 1);
            recorder.count(RECEIVED, bytes.len() as u64);
            outcome = self.take(bytes, now, shard);
        }
        self.viewer.end_of_read(bytes.is_empty(), now, shard);
        outcome
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let unread = if self.viewer.asks(context.now) { context.unread() } else { 0 };
        if self.viewer.handle_timeout(context.now, unread, context.world) {
            context.pull();
        }
        Ok(())
    }

    fn handle_edge(&mut self, edge: Edge, context: &mut Context<'_, ShardRecorder>) {
        self.viewer.edge(edge, context.world);
    }

    fn lacks_only_a_keyframe(&self) -> bool {
        self.viewer.lacks_only_a_keyframe()
    }

    fn overdue(&mut self, _: &mut Context<'_, ShardRecorder>) -> End {
        self.viewer.overdue()
    }

    fn handle_stop(&mut self, _: &mut Context<'_, ShardRecorder>) -> Result<Stop, End> {
        Ok(Stop::WhenRead)
    }

    fn handle_closed(
        &mut self,
        failure: Failure,
        words: &str,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        // The end of the link is the end of the body only where nothing else is, and only in good order.
        if failure != Failure::ClosedByPeer {
            return Err((failure, words.to_owned()));
        }
        Err(match self.get.closed() {
            Ok(words) => self.ended(words, context.now, context.world),
            Err(words) => {
                self.viewer.finish_stream(context.now, context.world);
                (failure, words)
            }
        })
    }

    fn after_event(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.get.go_on(context)?;
        context.set_low_water(self.viewer.batch());
        Ok(())
    }

    fn poll_timeout(&self, context: &Context<'_, ShardRecorder>) -> Option<Moment> {
        [self.viewer.poll_timeout(), self.get.poll_timeout(context.now)].into_iter().flatten().min()
    }

    fn begin_again(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.viewer.begin_again(context.now, context.world);
        self.get.begin_again();
    }

    fn leave(&mut self, failure: Option<Failure>, context: &mut Context<'_, ShardRecorder>) {
        self.viewer.leave(failure, context.now, context.world);
    }
}
