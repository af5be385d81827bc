//! A publisher: a caller that sends a transport stream in time.

use super::SCHEMES;
use super::address::{Request, SrtFields};
use super::caller::{self, Caller, Role};
use super::figures::SCHEMA;
use super::material::{Content, Feed, PACKET};
use super::payloads::Payloads;
use std::sync::Arc;
use weir_clients::{
    ClientPhase, ClientSession, ClientState, End, EndpointFinder, NewClient, PublishOptions, ShardRecorder,
    Workload, WorkloadError,
};
use weir_media::SourceError;
use weir_metrics::common::{FRAMES, KEYFRAMES, MEDIA, SEND_LAG, UNITS};
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Datagrams};

/// Publishers to these URLs.
pub(super) fn publish(
    urls: &[String],
    options: &PublishOptions,
    fields: &SrtFields,
) -> Result<Workload, WorkloadError> {
    let finder = EndpointFinder::new(SCHEMES, &options.tls).resolving(options.resolve);
    let endpoints = caller::endpoints("publish", urls, finder, fields)?;
    let (content, warning) = Content::prepare(options)?;
    let (content, timeouts) = (Arc::new(content), options.timeouts);
    let new = move |client: NewClient<'_, Request>, shard: &mut ShardRecorder| {
        let NewClient { planned, request, endpoint, now, .. } = client;
        Publisher {
            state: ClientState::begin(planned, timeouts, now, shard),
            caller: Caller::new(Role::Publisher, request, endpoint.address, planned, now),
            content: Arc::clone(&content),
            feed: None,
            start: now,
            payloads: Payloads::default(),
        }
    };
    let mut workload = Workload::new(SCHEMA, endpoints, new).returning(options.returns);
    workload.warnings.extend(warning);
    Ok(workload)
}

/// One virtual publisher. What is due at a moment is never skipped: what is late is sent as soon as it can be, and its lag recorded.
struct Publisher {
    state: ClientState,
    caller: Caller,
    content: Arc<Content>,
    feed: Option<Feed>,
    start: Moment,
    payloads: Payloads,
}

impl Publisher {
    fn advance(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        if let Some(agreement) = self.caller.settle(&mut self.state, context)? {
            self.state.reach(ClientPhase::Playing, context.now, context.world);
            self.start = context.now;
            let most = agreement.most_payload;
            if most < PACKET {
                let words = format!(
                    "the server takes payloads of {most} bytes, and a packet of MPEG-TS has {PACKET}"
                );
                return Err((Failure::Rejected, words));
            }
            self.payloads = Payloads::new((most / PACKET).min(7) * PACKET);
            self.feed = Some(self.content.feed().map_err(|error| source_failed(&error))?);
        }
        let sent = self.send_due(context);
        self.caller.flush(context);
        sent
    }

    fn send_due(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        let recorder = context.world.of(self.state.planned());
        let (Some(feed), Some(connection)) = (&mut self.feed, self.caller.connection()) else {
            return Ok(());
        };
        let mut taken = 0;
        let mut send = |payload: &[u8]| {
            if connection.send(payload, now) {
                taken += payload.len();
            }
        };
        let mut result = Ok(());
        while self.start + feed.due() <= now {
            recorder.record(SEND_LAG, now.since(self.start + feed.due()).as_micros() as u64);
            let sent = match feed.take(now, self.payloads.packets()) {
                Ok(sent) => sent,
                Err(error) => {
                    result = Err(source_failed(&error));
                    break;
                }
            };
            recorder.count(FRAMES, sent.frames);
            recorder.count(KEYFRAMES, sent.keyframes);
            self.payloads.leave(sent.frames > 0, now, &mut send);
        }
        self.payloads.leave_late(now, &mut send);
        recorder.count(UNITS, (taken / PACKET) as u64);
        recorder.count(MEDIA, taken as u64);
        result
    }
}

fn source_failed(error: &SourceError) -> End {
    (Failure::SourceFailed, error.to_string())
}

impl ClientSession for Publisher {
    fn state(&self) -> &ClientState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ClientState {
        &mut self.state
    }

    fn handle_connected(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.caller.call(context);
        Ok(())
    }

    fn handle_datagrams(
        &mut self,
        datagrams: Datagrams<'_>,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        self.caller.receive(datagrams, context);
        // What a listener sends to a publisher is of no use.
        if let Some(connection) = self.caller.connection() {
            connection.deliver(context.now, &mut |_| {});
        }
        self.advance(context)
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.caller.handle_timeout(context);
        self.advance(context)
    }

    fn poll_timeout(&self, _: &Context<'_, ShardRecorder>) -> Option<Moment> {
        let due = self.feed.as_ref().map(|feed| self.start + feed.due());
        [due, self.payloads.due(), self.caller.poll_timeout()].into_iter().flatten().min()
    }

    fn begin_again(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.caller.begin_again(context);
        (self.feed, self.payloads) = (None, Payloads::default());
    }

    fn leave(&mut self, _: Option<Failure>, context: &mut Context<'_, ShardRecorder>) {
        self.caller.leave(context);
    }
}
