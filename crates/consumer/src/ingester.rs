//! One of weir's own ingesters: the service of [`weir_ingest`], on threads of its own.

use crate::error::of_store;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_engine::ingest::{Consumed, ConsumerError, IngestStage, RowStore, SaveCounts};
use weir_ingest::{Counts, Decode, IngestError, IngestSettings, Outcome, StoreError};

/// What an ingester does and how it reads payloads, by its number in the plan; or why it cannot be.
pub type MakeIngester = dyn Fn(u32) -> Result<(IngestSettings, Decode), String> + Send;

/// An ingester on its threads. It is told to stop when it is dropped.
pub(crate) struct Ingester {
    counts: Arc<Counts>,
    stop: Stop,
    said: Arc<Mutex<Vec<String>>>,
    thread: JoinHandle<Result<Outcome, IngestError>>,
    /// How the broker and the tables are called in messages.
    broker: String,
    place: String,
}

/// Has an ingester stop when it is dropped.
struct Stop(Arc<AtomicBool>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

pub(crate) fn of_table(error: &StoreError) -> ConsumerError {
    of_store(IngestStage::Table, error)
}

impl Ingester {
    /// Starts it; its subscription is not granted yet.
    pub(crate) fn start(settings: IngestSettings, mut decode: Decode) -> Result<Self, ConsumerError> {
        let (broker, place) = (settings.source.name.clone(), settings.destination.to_string());
        let (counts, stop) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(false)));
        let said = Arc::new(Mutex::new(Vec::new()));
        let (theirs, halt, lines) = (counts.clone(), stop.clone(), said.clone());
        let work = move || {
            let say = |line: &str| {
                lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
            };
            weir_ingest::run(&settings, &mut decode, &theirs, &halt, &say)
        };
        let thread = std::thread::Builder::new()
            .name("weir-ingest".to_owned())
            .spawn(work)
            .map_err(|error| ConsumerError::new(IngestStage::Ingest, error.to_string()))?;
        Ok(Self { counts, stop: Stop(stop), said, thread, broker, place })
    }

    pub(crate) fn is_subscribed(&self) -> bool {
        self.counts.is_subscribed()
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    pub(crate) fn broker(&self) -> &str {
        &self.broker
    }

    pub(crate) fn last_line(&self) -> Option<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).last().cloned()
    }

    /// What it has counted until now.
    pub(crate) fn counted(&self) -> SaveCounts {
        let of = |counter: &AtomicU64| counter.load(Relaxed);
        // What is settled is read first: it is never more than what was delivered by then.
        let settled = of(&self.counts.settled);
        SaveCounts {
            settled,
            saved: of(&self.counts.saved),
            dead_lettered: of(&self.counts.dead_lettered),
            duplicate: of(&self.counts.duplicate),
            delivered: Some(of(&self.counts.messages)),
            bytes: of(&self.counts.bytes),
        }
    }

    pub(crate) fn take_lags(&self) -> impl Iterator<Item = Duration> + use<> {
        self.counts.lag.take()
    }

    /// Tells it to stop, without waiting for that.
    pub(crate) fn tell_to_stop(&self) {
        self.stop.0.store(true, Relaxed);
    }

    /// Has what came saved. What it counted comes with what it said, and without what is in the tables.
    pub(crate) fn end(self) -> Result<Consumed, ConsumerError> {
        let Self { counts, stop, said, thread, broker, place } = self;
        drop(stop);
        let outcome = thread.join();
        let remarks = std::mem::take(&mut *said.lock().unwrap_or_else(PoisonError::into_inner));
        let failed = |stage, words: String| Err(ConsumerError::new(stage, words));
        let outcome = match outcome {
            Err(_) => {
                return failed(
                    IngestStage::Ingest,
                    "the ingester has panicked; please report this".to_owned(),
                );
            }
            Ok(Err(IngestError::Store(error))) => return Err(of_table(&error)),
            Ok(Err(error)) => return failed(IngestStage::Ingest, error.to_string()),
            Ok(Ok(outcome)) => outcome,
        };
        if let Err(words) = outcome.ended {
            let is_of_broker = words.starts_with(&broker);
            return failed(if is_of_broker { IngestStage::Broker } else { IngestStage::Table }, words);
        }
        let totals = outcome.totals;
        let missing = Some(outcome.missing).filter(|missing| missing.messages > 0);
        let missing = missing.map(|missing| missing.line(&broker, outcome.cause));
        Ok(Consumed {
            received: totals.messages,
            saved: totals.saved,
            dead_lettered: totals.dead_lettered,
            duplicate: totals.duplicate,
            publishers: totals.publishers,
            unmarked: totals.unmarked,
            receipts: counts.receipts.get(),
            decodings: counts.decodings.get(),
            commits: counts.committals.get(),
            decode_seconds: Some(totals.decode.as_secs_f64()),
            save_seconds: Some(totals.save.as_secs_f64()),
            transactions: totals.commits,
            drop_cause: Some(missing.unwrap_or_else(|| outcome.cause.to_string())),
            remarks,
            ..Consumed::nothing(RowStore::Own(place))
        })
    }
}
