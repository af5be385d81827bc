//! Bulk TCP streams: what `iperf3 -P` does beside a load, or alone. The peer is `weir origin --bulk`.

use crate::client_session::{ClientSession, End};
use crate::client_state::{ClientPhase, ClientState, Timeouts};
use crate::endpoints::{EndpointFinder, Endpoints};
use crate::options::{PlayOptions, PublishOptions};
use crate::shard_recorder::ShardRecorder;
use crate::target::Scheme;
use crate::workload::{NewClient, Workload};
use crate::workload_error::WorkloadError;
use std::io::IoSlice;
use weir_bulk::{CONSENT, Request, Totals, ZEROS};
use weir_metrics::common::{MEDIA, READS, RECEIVED, SENT, UNITS};
use weir_metrics::{Failure, Moment, Schema};
use weir_shard::Context;

/// The scheme of both.
pub const SCHEMES: &[Scheme] = &[Scheme::tcp("bulk", 5201)];

/// Streams have the common figures only.
pub const SCHEMA: Schema = Schema::new(&[]);

/// What only bulk streams have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BulkOptions {
    /// Bytes a block, 1 to [`Self::LARGEST_BLOCK`].
    pub block: u32,
}

impl BulkOptions {
    /// The largest block, in bytes.
    pub const LARGEST_BLOCK: u32 = weir_bulk::LARGEST_BLOCK as u32;

    /// The URL of a peer, `host:port`.
    pub fn url(place: &str) -> String {
        format!("bulk://{place}")
    }
}

impl Default for BulkOptions {
    /// 128 KiB, as iperf3 has it.
    fn default() -> Self {
        Self { block: 128 << 10 }
    }
}

/// Streams on which the peer sends. Resolves names, so it may take a while.
///
/// # Errors
/// A URL that leads nowhere.
pub fn play(urls: &[String], options: &PlayOptions, bulk: BulkOptions) -> Result<Workload, WorkloadError> {
    let request = Request::Down { block: bulk.block };
    streams(
        "play",
        urls,
        EndpointFinder::new(SCHEMES, &options.tls).resolving(options.resolve),
        options.timeouts,
        request,
        bulk.block,
    )
}

/// Streams on which the clients send. Resolves names, so it may take a while.
///
/// # Errors
/// A URL that leads nowhere.
pub fn publish(
    urls: &[String],
    options: &PublishOptions,
    bulk: BulkOptions,
) -> Result<Workload, WorkloadError> {
    streams(
        "publish",
        urls,
        EndpointFinder::new(SCHEMES, &options.tls).resolving(options.resolve),
        options.timeouts,
        Request::Up,
        bulk.block,
    )
}

fn streams(
    verb: &'static str,
    urls: &[String],
    mut finder: EndpointFinder,
    timeouts: Timeouts,
    request: Request,
    block: u32,
) -> Result<Workload, WorkloadError> {
    let endpoints = Endpoints::find(verb, urls, &mut finder, |_| Ok(()))?;
    let block = (block as usize).clamp(1, ZEROS.len());
    Ok(Workload::new(SCHEMA, endpoints, move |NewClient { planned, now, .. }, shard| Stream {
        state: ClientState::begin(planned, timeouts, now, shard),
        request,
        block,
        left: block,
        goes_on: false,
        heard: Vec::with_capacity(CONSENT.len()),
        totals: Totals::default(),
        carried: 0,
    }))
}

/// One stream.
struct Stream {
    state: ClientState,
    request: Request,
    block: usize,
    /// What is left of the block that is being sent.
    left: usize,
    /// Whether a whole block was sent: the next one has its turn behind the others'.
    goes_on: bool,
    /// The peer's answer, until it is whole.
    heard: Vec<u8>,
    totals: Totals,
    /// Bytes that have come to the other end.
    carried: u64,
}

impl Stream {
    /// Counts what the stream has carried.
    fn count(&mut self, bytes: &[u8], shard: &mut ShardRecorder) {
        let more = match self.request {
            Request::Up => self.totals.read(bytes),
            Request::Down { .. } => bytes.len() as u64,
        };
        let block = self.block as u64;
        let blocks = (self.carried + more) / block - self.carried / block;
        self.carried += more;
        let recorder = shard.of(self.state.planned());
        recorder.count(MEDIA, more);
        recorder.count(UNITS, blocks);
    }

    /// Sends what the link takes of a block. After a whole one it leaves the others their turn.
    fn send(&mut self, context: &mut Context<'_, ShardRecorder>) {
        if self.request != Request::Up || self.state.phase() != ClientPhase::Playing {
            return;
        }
        let sent = context.write(&[IoSlice::new(&ZEROS[..self.left])]);
        context.world.of(self.state.planned()).count(SENT, sent as u64);
        self.left -= sent;
        if self.left == 0 {
            (self.left, self.goes_on) = (self.block, true);
        }
    }
}

impl ClientSession for Stream {
    fn state(&self) -> &ClientState {
        &self.state
    }

    fn state_mut(&mut self) -> &mut ClientState {
        &mut self.state
    }

    fn handle_connected(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.state.reach(ClientPhase::Requesting, context.now, context.world);
        let line = self.request.line();
        context.send(line.as_bytes());
        context.world.of(self.state.planned()).count(SENT, line.len() as u64);
        Ok(())
    }

    fn handle_input(&mut self, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let recorder = context.world.of(self.state.planned());
        recorder.count(READS, 1);
        recorder.count(RECEIVED, bytes.len() as u64);
        if self.state.phase() == ClientPhase::Playing {
            self.count(bytes, context.world);
            return Ok(());
        }
        let (answer, rest) = bytes.split_at(bytes.len().min(CONSENT.len() - self.heard.len()));
        self.heard.extend_from_slice(answer);
        let consented = weir_bulk::consent(&self.heard);
        if consented.map_err(|error| (Failure::MalformedInput, error.to_string()))? {
            self.state.reach(ClientPhase::Playing, context.now, context.world);
            self.count(rest, context.world);
            self.send(context);
        }
        Ok(())
    }

    fn handle_writable(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        self.send(context);
        Ok(())
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        if std::mem::take(&mut self.goes_on) {
            self.send(context);
        }
        Ok(())
    }

    fn poll_timeout(&self, context: &Context<'_, ShardRecorder>) -> Option<Moment> {
        self.goes_on.then_some(context.now)
    }

    /// What the kernel still holds must not go on after the stream's end.
    fn close(&mut self, context: &mut Context<'_, ShardRecorder>) {
        context.reset();
    }
}
