//! Bulk TCP streams: what `iperf3 -P` does beside a load, or alone. The far end is `weir origin --bulk`.

use crate::client_state::{ClientState, Phase, Timeouts};
use crate::endpoints::{EndpointFinder, Endpoints};
use crate::ledger::Ledger;
use crate::options::{PlayOptions, PublishOptions};
use crate::target::Scheme;
use crate::workload::{NewClient, Workload, WorkloadError};
use std::io::IoSlice;
use weir_bulk::{CONSENT, Request, Totals, ZEROS};
use weir_metrics::common::{MEDIA, READS, RECEIVED, SENT, UNITS};
use weir_metrics::{Failure, Schema};
use weir_shard::tls::ClientTls;
use weir_shard::{Context, Event, Session};

/// The scheme of both.
pub const SCHEMES: &[Scheme] = &[Scheme { name: "bulk", port: 5201, secure: false }];

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

    /// The URL of a far end, `host:port`.
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

/// Streams on which the far end sends. Resolves names, so it may take a while.
///
/// # Errors
/// A URL that leads nowhere.
pub fn play(urls: &[String], options: &PlayOptions, bulk: BulkOptions) -> Result<Workload, WorkloadError> {
    let request = Request::Down { block: bulk.block };
    streams("play", urls, &options.tls, options.timeouts, request, bulk.block)
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
    streams("publish", urls, &options.tls, options.timeouts, Request::Up, bulk.block)
}

fn streams(
    verb: &'static str,
    urls: &[String],
    tls: &ClientTls,
    timeouts: Timeouts,
    request: Request,
    block: u32,
) -> Result<Workload, WorkloadError> {
    let places = Endpoints::find(verb, urls, &mut EndpointFinder::new(SCHEMES, tls), |_| Ok(()))?;
    let block = (block as usize).clamp(1, ZEROS.len());
    Ok(Workload::new(SCHEMA, places, move |NewClient { slot, now, .. }, ledger| {
        Box::new(Stream {
            life: ClientState::begin(slot, timeouts, now, ledger),
            request,
            block,
            left: block,
            heard: Vec::with_capacity(CONSENT.len()),
            totals: Totals::default(),
            carried: 0,
        })
    }))
}

/// One stream.
struct Stream {
    life: ClientState,
    request: Request,
    block: usize,
    /// What is left of the block that is being sent.
    left: usize,
    /// The far end's answer, until it is whole.
    heard: Vec<u8>,
    totals: Totals,
    /// Bytes that have come to the other end.
    carried: u64,
}

impl Stream {
    fn read(&mut self, bytes: &[u8], context: &mut Context<'_, Ledger>) {
        let recorder = context.world.of(self.life.slot());
        recorder.count(READS, 1);
        recorder.count(RECEIVED, bytes.len() as u64);
        if self.life.phase() == Phase::Playing {
            return self.count(bytes, context.world);
        }
        let (answer, rest) = bytes.split_at(bytes.len().min(CONSENT.len() - self.heard.len()));
        self.heard.extend_from_slice(answer);
        match weir_bulk::consent(&self.heard) {
            Ok(false) => {}
            Ok(true) => {
                self.life.reach(Phase::Playing, context.now, context.world);
                self.count(rest, context.world);
                self.send(context);
            }
            Err(error) => {
                self.life.fail(Failure::MalformedInput, &error.to_string(), context.now, context.world);
            }
        }
    }

    /// Counts what the stream has carried.
    fn count(&mut self, bytes: &[u8], ledger: &mut Ledger) {
        let more = match self.request {
            Request::Up => self.totals.read(bytes),
            Request::Down { .. } => bytes.len() as u64,
        };
        let block = self.block as u64;
        let blocks = (self.carried + more) / block - self.carried / block;
        self.carried += more;
        let recorder = ledger.of(self.life.slot());
        recorder.count(MEDIA, more);
        recorder.count(UNITS, blocks);
    }

    /// Sends what the link takes of a block. After a whole one it leaves the others their turn.
    fn send(&mut self, context: &mut Context<'_, Ledger>) {
        if self.request != Request::Up || self.life.phase() != Phase::Playing {
            return;
        }
        let sent = context.write(&[IoSlice::new(&ZEROS[..self.left])]);
        context.world.of(self.life.slot()).count(SENT, sent as u64);
        self.left -= sent;
        if self.left == 0 {
            self.left = self.block;
            context.set_timer(context.now);
        }
    }
}

impl Session<Ledger> for Stream {
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, Ledger>) {
        let now = context.now;
        match event {
            Event::Opening | Event::Woken | Event::Datagrams(_) | Event::Side(_) | Event::HungUp { .. } => {}
            Event::Connected => {
                self.life.reach(Phase::Requesting, now, context.world);
                let line = self.request.line();
                context.send(line.as_bytes());
                context.world.of(self.life.slot()).count(SENT, line.len() as u64);
            }
            Event::Bytes(bytes) => self.read(bytes, context),
            Event::Writable => self.send(context),
            Event::Timer if self.life.phase() == Phase::Playing => self.send(context),
            Event::Timer => {
                if self.life.deadline().is_some_and(|deadline| deadline <= now) {
                    let (failure, words) = self.life.overdue();
                    self.life.fail(failure, words, now, context.world);
                }
            }
            Event::Stop => self.life.finish(context.world),
            Event::Closed { failure, words } => {
                let words = if words.is_empty() { "the far end closed the stream" } else { words };
                self.life.fail(failure, words, now, context.world);
            }
        }
        match (self.life.phase(), self.life.deadline()) {
            // What the kernel still holds must not go on after the stream's end.
            (Phase::Over, _) => context.reset(),
            (_, Some(deadline)) => context.set_timer(deadline),
            (_, None) => {}
        }
    }
}
