//! weir's own ingester beside a publisher: the service of [`weir_ingest`], on threads of its own.

use crate::bench::Trouble;
use crate::consumer::{Consumed, Consumer};
use crate::setup::{Encoding, Saving, Setup};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use weir_clients::{MqttSource, MqttVersion};
use weir_engine::experiment::Stage;
use weir_ingest::{
    ClientOptions, Counts, Decode, Depot, Destination, IngestError, Outcome, Settings, Source, Stock,
    StoreError,
};

/// Bytes that may wait to be saved.
const QUEUE: usize = 16 << 20;

/// The largest message that is taken.
const MAX_MESSAGE: usize = 64 << 20;

/// An ingester on its threads.
pub(crate) struct Ingester {
    counts: Arc<Counts>,
    stop: Arc<AtomicBool>,
    said: Arc<Mutex<Vec<String>>>,
    thread: JoinHandle<Result<Outcome, IngestError>>,
    broker: String,
    tables: Tables,
}

/// The tables of an encoding.
struct Tables {
    destination: Destination,
    table: String,
    columns: Decode,
}

impl Tables {
    fn depot(&self) -> Depot {
        Depot::new(&self.destination, &self.table, &self.columns)
    }

    fn stock(&self) -> Result<Stock, StoreError> {
        let mut depot = self.depot();
        depot.open().and_then(|()| depot.stock())
    }
}

fn of_table(error: &StoreError) -> Trouble {
    Trouble::of_store(Stage::Table, error)
}

impl Ingester {
    /// Empties the tables, and starts an ingester with a session of its own, which ends with it.
    ///
    /// # Errors
    /// What cannot be emptied or begun.
    pub(crate) fn start(
        setup: &Setup,
        saving: &Saving,
        encoding: Encoding,
        client_id: String,
    ) -> Result<Self, Trouble> {
        let decode = || Decode::records(&setup.schema, encoding.format());
        let tables = Tables {
            destination: saving.destination(encoding),
            table: saving.table(encoding),
            columns: decode(),
        };
        // Parquet's directory has one user at a time: what empties it is gone before the ingester comes.
        tables.depot().empty().map_err(|error| of_table(&error))?;
        let failed = |words: String| Trouble::new(Stage::Broker, words);
        let source = MqttSource::find(&setup.filter(encoding), &setup.tls)
            .map_err(|error| failed(error.to_string()))?;
        let mut options = ClientOptions::new(setup.version, client_id);
        // MQTT 5 ends a session with its connection; 3.1.1 has only the clean session for that.
        options.clean_start = setup.version == MqttVersion::V311;
        options.receive_maximum = saving.receive_window;
        if let Some(credentials) = source.credentials.or_else(|| setup.credentials.clone()) {
            options.password =
                Some(credentials.password.into_bytes()).filter(|password| !password.is_empty());
            options.user_name = Some(credentials.user);
        }
        let broker = source.target.base();
        let settings = Settings {
            source: Source {
                door: source.door,
                filter: source.filter,
                name: broker.clone(),
                options,
                qos: setup.qos,
            },
            destination: tables.destination.clone(),
            durability: saving.durability,
            table: tables.table.clone(),
            batch: saving.batch,
            linger: saving.linger,
            count: None,
            max_message: MAX_MESSAGE,
            queue: QUEUE,
            // A measurement of what is away is none.
            waits: false,
        };
        let (counts, stop) = (Arc::new(Counts::default()), Arc::new(AtomicBool::new(false)));
        let said = Arc::new(Mutex::new(Vec::new()));
        let (theirs, halt, lines) = (counts.clone(), stop.clone(), said.clone());
        let mut decode = decode();
        let work = move || {
            let say = |line: &str| {
                lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.to_owned());
            };
            weir_ingest::run(&settings, &mut decode, &theirs, &halt, &say)
        };
        let thread = std::thread::Builder::new()
            .name("weir-ingest".to_owned())
            .spawn(work)
            .map_err(|error| failed(error.to_string()))?;
        Ok(Self { counts, stop, said, thread, broker, tables })
    }

    /// Whether the broker has granted the subscription.
    pub(crate) fn is_subscribed(&self) -> bool {
        self.counts.subscribed.load(Relaxed) > 0
    }

    /// Has what came saved; what it said meanwhile comes with it.
    fn stop(self) -> (Result<Outcome, Trouble>, Arc<Counts>, Tables, Vec<String>) {
        self.stop.store(true, Relaxed);
        let outcome = self.thread.join();
        let said = std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner));
        let failed = |stage, words: String| Trouble::new(stage, words);
        let outcome = match outcome {
            Err(_) => Err(failed(Stage::Ingest, "the ingester has panicked; please report this".to_owned())),
            Ok(Err(IngestError::Store(error))) => Err(of_table(&error)),
            Ok(Err(error)) => Err(failed(Stage::Ingest, error.to_string())),
            Ok(Ok(outcome)) => match &outcome.ended {
                Ok(_) => Ok(outcome),
                Err(words) if words.starts_with(&self.broker) => Err(failed(Stage::Broker, words.clone())),
                Err(words) => Err(failed(Stage::Table, words.clone())),
            },
        };
        (outcome, self.counts, self.tables, said)
    }
}

impl Consumer for Ingester {
    fn delivered(&self) -> Option<u64> {
        Some(self.counts.messages.load(Relaxed))
    }

    fn settled(&self) -> u64 {
        self.counts.settled.load(Relaxed)
    }

    fn distinct(&self) -> u64 {
        self.settled().saturating_sub(self.counts.duplicate.load(Relaxed))
    }

    fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    fn last_line(&self) -> Option<String> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).last().cloned()
    }

    fn end(self: Box<Self>) -> Result<Consumed, Trouble> {
        let (outcome, counts, tables, remarks) = self.stop();
        let totals = outcome?.totals;
        let stock = tables.stock().map_err(|error| of_table(&error))?;
        Ok(Consumed {
            received: totals.messages,
            saved: totals.saved,
            dead_lettered: totals.dead_lettered,
            duplicate: totals.duplicate,
            counted: stock.rows,
            counted_dead: stock.dead,
            publishers: totals.publishers,
            unmarked: totals.unmarked,
            code: 0,
            milliseconds: totals.first_to_last_commit.as_millis() as u64,
            receipts: counts.receipts.get(),
            decodings: counts.decodings.get(),
            commits: counts.committals.get(),
            decode_seconds: Some(totals.decode.as_secs_f64()),
            save_seconds: Some(totals.save.as_secs_f64()),
            transactions: totals.commits,
            table_bytes: stock.bytes,
            remarks,
        })
    }

    fn leave(self: Box<Self>) {
        let _ = self.stop();
    }
}
