//! A table that somebody else's consumer fills: asked how many rows it has, again and again.

use crate::attendant::{AFTER_INTERRUPT, Attendant};
use crate::error::{ProbeError, of_store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_engine::ingest::{Consumed, Consumer, ConsumerError, IngestStage, RowStore, SaveCounts};
use weir_ingest::{Database, RowCounter, StoreError};
use weir_metrics::MomentRange;
use weir_shard::clock;

/// Shortest time between two questions.
const INTERVAL: Duration = Duration::from_millis(10);

/// The time between two questions, in answers' lengths: counting is not to take the database's time.
const SHARE: u32 = 4;

/// A table of a database.
#[derive(Clone, Debug)]
pub struct ProbedTable {
    database: Database,
    table: String,
}

/// What the questions have brought.
#[derive(Default)]
struct RowsSeen {
    /// Rows that were not there before.
    rows: AtomicU64,
    /// When there were more than before.
    growth: MomentRange,
}

/// A table that is asked, on a thread of its own.
pub(crate) struct TableConsumer {
    name: String,
    seen: Arc<RowsSeen>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Result<u64, StoreError>>,
    attendant: Attendant,
}

impl ProbedTable {
    pub(crate) fn parse(text: &str, password: Option<&str>) -> Result<Self, ProbeError> {
        let (place, table) = text.rsplit_once('#').unwrap_or((text, ""));
        if !place.starts_with("postgres://") && !place.starts_with("postgresql://") {
            return Err(ProbeError::Unknown);
        }
        // What looks like a host behind the sign is one, and the sign is in a password.
        if table.is_empty() || table.contains(['@', '/']) {
            return Err(ProbeError::Table);
        }
        let mut database: Database = place.parse()?;
        if let Some(password) = password.filter(|_| !database.has_password()) {
            database.set_password(password);
        }
        Ok(Self { database, table: table.to_owned() })
    }

    pub(crate) fn name(&self) -> String {
        format!("{} table {}", self.database, self.table)
    }
}

impl TableConsumer {
    /// Counts what is there, and asks from now on.
    pub(crate) fn start(watched: &ProbedTable, attendant: Attendant) -> Result<Self, ConsumerError> {
        let trouble = |words: String| ConsumerError::new(IngestStage::Consumer, words);
        let of_store = |error: StoreError| of_store(IngestStage::Consumer, &error);
        let counted = attendant
            .wait(Duration::ZERO, |waiting| RowCounter::open(&watched.database, &watched.table, waiting));
        let (mut counter, rows, bytes) = counted.map_err(of_store)?;
        let (seen, stop) = (Arc::<RowsSeen>::default(), Arc::new(AtomicBool::new(false)));
        let (theirs, halt) = (seen.clone(), stop.clone());
        let thread = std::thread::Builder::new()
            .name("weir-probe".to_owned())
            .spawn(move || {
                watch(&mut counter, rows, &theirs, &halt)?;
                Ok(counter.bytes()?.saturating_sub(bytes))
            })
            .map_err(|error| trouble(error.to_string()))?;
        Ok(Self { name: watched.name(), seen, stop, thread, attendant })
    }
}

/// Asks until `stop` is set, and once more.
fn watch(counter: &mut RowCounter, base: u64, seen: &RowsSeen, stop: &AtomicBool) -> Result<(), StoreError> {
    let mut last = false;
    while !last {
        last = stop.load(Relaxed);
        let asked = Instant::now();
        let rows = counter.rows()?.saturating_sub(base);
        if rows > seen.rows.load(Relaxed) {
            seen.growth.note(clock::now());
        }
        seen.rows.store(rows, Relaxed);
        if !last {
            std::thread::sleep(INTERVAL.max(asked.elapsed() * SHARE));
        }
    }
    Ok(())
}

impl Consumer for TableConsumer {
    fn counted(&self) -> SaveCounts {
        let rows = self.seen.rows.load(Relaxed);
        SaveCounts { delivered: Some(rows), settled: rows, saved: rows, ..SaveCounts::default() }
    }

    fn patience(&self, _settle: Duration, timeout: Duration) -> Duration {
        timeout
    }

    fn has_ended(&self) -> bool {
        self.thread.is_finished()
    }

    fn end(self: Box<Self>) -> Result<Consumed, ConsumerError> {
        self.stop.store(true, Relaxed);
        let trouble = |words: String| ConsumerError::new(IngestStage::Consumer, words);
        let what = format!("{}: waiting until the rows are counted", self.name);
        let thread = &self.thread;
        let is_counted =
            self.attendant.wait(AFTER_INTERRUPT, |waiting| waiting.until(&what, || thread.is_finished()));
        if !is_counted {
            return Err(trouble(format!("{}: stopped while its rows were counted", self.name)));
        }
        let table_bytes = match self.thread.join() {
            Ok(Ok(bytes)) => bytes,
            Ok(Err(error)) => return Err(trouble(error.to_string())),
            Err(_) => return Err(trouble("the probe has panicked; please report this".to_owned())),
        };
        let rows = self.seen.rows.load(Relaxed);
        let commits = self.seen.growth.get();
        Ok(Consumed {
            received: rows,
            saved: rows,
            counted: rows,
            milliseconds: commits.map_or(0, |(first, last)| last.since(first).as_millis() as u64),
            commits,
            table_bytes,
            ..Consumed::nothing(RowStore::Elsewhere(self.name))
        })
    }

    fn leave(self: Box<Self>) {
        self.stop.store(true, Relaxed);
    }
}
