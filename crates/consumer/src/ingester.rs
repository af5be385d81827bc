//! weir's own ingester beside publishers: the service of [`weir_ingest`], on threads of its own.

use crate::error::of_store;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_engine::ingest::{Consumed, Consumer, ConsumerError, Counted, IngestStage, MakeConsumer, RowStore};
use weir_ingest::{
    Counts, Decode, Destination, Durability, IngestError, IngestSettings, Loader, Outcome, Stock, StoreError,
};
use weir_shard::clock;

/// How often it is asked whether its subscription was granted.
const LOOK: Duration = Duration::from_millis(2);

/// An ingester on its threads.
struct Ingester {
    counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
    said: Arc<Mutex<Vec<String>>>,
    thread: JoinHandle<Result<Outcome, IngestError>>,
    /// How the broker and the tables are called in messages.
    names: [String; 2],
    durability: &'static str,
    tables: Loader,
    /// What was in the tables before.
    before: Stock,
}

fn of_table(error: &StoreError) -> ConsumerError {
    of_store(IngestStage::Table, error)
}

/// Makes an ingester to whose subscription the broker has consented within `timeout`; its tables are emptied before, if they
/// are to be. Its session should end with it.
pub fn ingester(
    settings: IngestSettings,
    decode: Decode,
    empty: bool,
    timeout: Duration,
) -> Box<MakeConsumer> {
    Box::new(move |interrupt| {
        let ingester = Ingester::start(settings, decode, empty)?;
        let began = clock::now();
        let broker = ingester.names[0].clone();
        // One that has ended says why at its end.
        while ingester.counts.subscribed.load(Relaxed) == 0 && !ingester.has_ended() {
            if interrupt.load(Relaxed) {
                Box::new(ingester).leave();
                return Ok(None);
            }
            if clock::now().since(began) > timeout {
                Box::new(ingester).leave();
                let words = format!("{broker} did not grant the subscription in time");
                return Err(ConsumerError::new(IngestStage::Broker, words));
            }
            std::thread::sleep(LOOK);
        }
        if ingester.has_ended() {
            Box::new(ingester).end()?;
            return Err(ConsumerError::new(IngestStage::Broker, format!("{broker} ended the session")));
        }
        Ok(Some(Box::new(ingester)))
    })
}

impl Ingester {
    fn start(settings: IngestSettings, mut decode: Decode, empty: bool) -> Result<Self, ConsumerError> {
        let loader = |decode: &Decode| {
            Loader::new(&settings.destination, &settings.table, decode, settings.durability)
        };
        let tables = loader(&decode);
        let before = {
            // Parquet's directory has one user at a time: what empties it is gone before the ingester comes.
            let mut tables = loader(&decode);
            let made = if empty { tables.empty() } else { tables.open() };
            made.and_then(|()| tables.stock()).map_err(|error| of_table(&error))?
        };
        let names = [settings.source.name.clone(), settings.destination.to_string()];
        let durability = match settings.durability {
            Durability::Full if matches!(settings.destination, Destination::Kafka(_)) => {
                "full: all replicas in sync had each record when it was counted"
            }
            Durability::Full => "full: each commit was on the disk when it was counted",
            Durability::Off if matches!(settings.destination, Destination::Sqlite(_)) => {
                "off: a crash of the machine could have damaged the file"
            }
            _ => "less than full: a crash of the machine could have taken the last commits",
        };
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
        Ok(Self { counts, stop, said, thread, names, durability, tables, before })
    }

    /// Has what came saved; what it said meanwhile comes with it.
    fn stop(self) -> Result<Consumed, ConsumerError> {
        let Self { counts, stop, said, thread, names: [broker, place], durability, mut tables, before } =
            self;
        stop.store(true, Relaxed);
        let outcome = thread.join();
        let remarks = std::mem::take(&mut *said.lock().unwrap_or_else(PoisonError::into_inner));
        let failed = |stage, words: String| Err(ConsumerError::new(stage, words));
        let totals = match outcome {
            Err(_) => {
                return failed(
                    IngestStage::Ingest,
                    "the ingester has panicked; please report this".to_owned(),
                );
            }
            Ok(Err(IngestError::Store(error))) => return Err(of_table(&error)),
            Ok(Err(error)) => return failed(IngestStage::Ingest, error.to_string()),
            Ok(Ok(outcome)) => match outcome.ended {
                Ok(_) => outcome.totals,
                Err(words) if words.starts_with(&broker) => return failed(IngestStage::Broker, words),
                Err(words) => return failed(IngestStage::Table, words),
            },
        };
        let stock = tables.open().and_then(|()| tables.stock()).map_err(|error| of_table(&error))?;
        Ok(Consumed {
            received: totals.messages,
            saved: totals.saved,
            dead_lettered: totals.dead_lettered,
            duplicate: totals.duplicate,
            counted: stock.rows.saturating_sub(before.rows),
            counted_dead: stock.dead.saturating_sub(before.dead),
            publishers: totals.publishers,
            unmarked: totals.unmarked,
            milliseconds: totals.first_to_last_commit.as_millis() as u64,
            receipts: counts.receipts.get(),
            decodings: counts.decodings.get(),
            commits: counts.committals.get(),
            decode_seconds: Some(totals.decode.as_secs_f64()),
            save_seconds: Some(totals.save.as_secs_f64()),
            transactions: totals.commits,
            table_bytes: stock.bytes.saturating_sub(before.bytes),
            durability: Some(durability.to_owned()),
            remarks,
            ..Consumed::nothing(RowStore::Own(place))
        })
    }
}

impl Consumer for Ingester {
    fn counted(&self) -> Counted {
        let of = |counter: &std::sync::atomic::AtomicU64| counter.load(Relaxed);
        // What is settled is read first: it is never more than what was delivered by then.
        let settled = of(&self.counts.settled);
        Counted {
            settled,
            saved: of(&self.counts.saved),
            dead_lettered: of(&self.counts.dead_lettered),
            duplicate: of(&self.counts.duplicate),
            delivered: Some(of(&self.counts.messages)),
            bytes: of(&self.counts.bytes),
        }
    }

    fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    fn last_line(&self) -> Option<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).last().cloned()
    }

    fn end(self: Box<Self>) -> Result<Consumed, ConsumerError> {
        self.stop()
    }

    fn leave(self: Box<Self>) {
        let _ = self.stop();
    }
}
