//! A viewer: a caller whose payloads are a transport stream.

use super::SCHEMES;
use super::address::{Request, SrtFields};
use super::caller::{self, Caller, Role};
use super::figures::SCHEMA;
use weir_clients::{
    ClientSession, ClientState, End, EndpointFinder, NewClient, PlayOptions, Reading, ShardRecorder,
    TsViewer, Workload, WorkloadError,
};
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Datagrams, Edge};

/// Bytes without a packet after which what comes is no transport stream.
const LONGEST_SEARCH: u64 = 1 << 20;

/// Viewers of these URLs.
pub(super) fn play(
    urls: &[String],
    options: &PlayOptions,
    fields: &SrtFields,
) -> Result<Workload, WorkloadError> {
    let finder = EndpointFinder::new(SCHEMES, &options.tls).resolving(options.resolve);
    let endpoints = caller::endpoints("play", urls, finder, fields)?;
    let (options, decoders, returns) = (options.clone(), options.decoders.clone(), options.returns);
    let new = move |client: NewClient<'_, Request>, shard: &mut ShardRecorder| {
        let NewClient { planned, target, request, endpoint, now, .. } = client;
        // Of every viewer it is known when each packet came.
        let viewer = TsViewer::new(planned, target as u32, Reading::Witness, &options, now, shard);
        let caller = Caller::new(Role::Viewer, request, endpoint.address, planned, now);
        Player { viewer, caller, due: Vec::new() }
    };
    Ok(Workload::new(SCHEMA, endpoints, new).returning(returns).decoded_by(decoders))
}

/// One virtual viewer.
struct Player {
    viewer: TsViewer,
    caller: Caller,
    /// Payloads that are due together: the viewer looks at the time once a read.
    due: Vec<u8>,
}

impl Player {
    /// Gives the viewer what is due at a moment up to which everything was read.
    fn advance(&mut self, read_up_to: Moment, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.caller.settle(&mut self.viewer.state, context)?;
        let (now, shard) = (context.now, &mut *context.world);
        if let Some(connection) = self.caller.connection() {
            let due = &mut self.due;
            connection.deliver(read_up_to, &mut |payload| due.extend_from_slice(payload));
        }
        if !self.due.is_empty() {
            self.viewer.take(&self.due, now, shard);
            self.viewer.took(self.due.len() as u64, now, shard);
            self.viewer.end_of_read(false, now, shard);
            self.due.clear();
        }
        self.caller.flush(context);
        if self.viewer.taken() >= LONGEST_SEARCH && !self.viewer.is_stream() {
            return Err(self.viewer.no_stream());
        }
        Ok(())
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
        self.caller.call(context);
        Ok(())
    }

    fn handle_datagrams(
        &mut self,
        datagrams: Datagrams<'_>,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let read_up_to = self.caller.receive(datagrams, context);
        self.advance(read_up_to, context)
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let at = self.caller.handle_timeout(context);
        self.advance(at, context)?;
        self.viewer.handle_timeout(context.now, 0, context.world);
        Ok(())
    }

    fn handle_edge(&mut self, edge: Edge, context: &mut Context<'_, ShardRecorder>) {
        self.viewer.edge(edge, context.world);
    }

    fn handle_hunger(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.viewer.state.starve(context.now, context.world);
    }

    fn lacks_only_a_keyframe(&self) -> bool {
        self.viewer.lacks_only_a_keyframe()
    }

    fn overdue(&mut self, _: &mut Context<'_, ShardRecorder>) -> End {
        self.viewer.overdue()
    }

    fn poll_timeout(&self, _: &Context<'_, ShardRecorder>) -> Option<Moment> {
        [self.viewer.poll_timeout(), self.caller.poll_timeout()].into_iter().flatten().min()
    }

    fn begin_again(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.caller.begin_again(context);
        self.due.clear();
        self.viewer.begin_again(context.now, context.world);
    }

    fn leave(&mut self, failure: Option<Failure>, context: &mut Context<'_, ShardRecorder>) {
        self.caller.leave(context);
        self.viewer.finish_stream(context.now, context.world);
        self.viewer.leave(failure, context.now, context.world);
    }
}
