//! A place for rows without a broker in front of it: emptied, filled with payloads at hand, and counted.

use crate::batch::Batch;
use crate::column::Table;
use crate::decode::Decode;
use crate::error::StoreError;
use crate::inbound::{InboundMessage, Origin, ReadBuffer};
use crate::store::{Contents, Destination, Durability, Part, Store};
use crate::store_thread::{COUNTING, EMPTYING, OPENING, ThreadOutcome, Waiting};
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_shard::clock;

/// The tables of a destination, by the name under which an ingester knows them.
pub struct Loader {
    /// None once it was left behind with a server that does not answer.
    store: Option<Box<dyn Store>>,
    name: String,
    width: usize,
}

/// How long saving took, and what came of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SaveResult {
    /// Rows that are in the table now, and were not.
    pub rows: u64,
    /// Time spent decoding.
    pub decode: Duration,
    /// Time spent in transactions.
    pub save: Duration,
}

impl Loader {
    /// Nothing is opened yet. `decode` says which columns there are.
    pub fn new(destination: &Destination, table: &str, decode: &Decode, durability: Durability) -> Self {
        let columns = decode.columns();
        let width = columns.len();
        let store = destination.store(Table::new(table.to_owned(), columns), durability);
        let name = store.name();
        Self { store: Some(store), name, width }
    }

    /// Opens the tables as they are, or makes them.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn open(&mut self, waiting: &Waiting<'_>) -> Result<(), StoreError> {
        self.attend(waiting, OPENING, |store| store.open())
    }

    /// Opens the tables, empty: what was in them is gone.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn empty(&mut self, waiting: &Waiting<'_>) -> Result<(), StoreError> {
        self.attend(waiting, EMPTYING, |store| {
            store.clear()?;
            store.open()
        })
    }

    /// What the opened tables hold, by asking them.
    ///
    /// # Errors
    /// See [`StoreError`].
    pub fn contents(&mut self, waiting: &Waiting<'_>) -> Result<Contents, StoreError> {
        self.attend(waiting, COUNTING, |store| store.contents())
    }

    /// Has the store do this for as long as it takes, and as it is waited for.
    fn attend<T: Send + 'static>(
        &mut self,
        waiting: &Waiting<'_>,
        what: &str,
        work: impl FnOnce(&mut dyn Store) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let name = &self.name;
        let away = |words: &str| StoreError::Unavailable(format!("{name}: {words}"));
        let mut store = self.store.take().ok_or_else(|| away("it has not answered before"))?;
        let attended = waiting.attend(&format!("{name}: {what}"), move |_| {
            let done = work(&mut *store);
            (store, done)
        });
        match attended.map_err(|error| away(&error.to_string()))? {
            ThreadOutcome::Done((store, done)) => {
                self.store = Some(store);
                done
            }
            ThreadOutcome::LeftBehind => Err(away(&format!("stopped while it was {what}"))),
            ThreadOutcome::Panicked => Err(away("its thread has panicked; please report this")),
        }
    }

    /// Decodes payloads and saves their records in one transaction, as messages `first` and so on of this publisher.
    ///
    /// # Errors
    /// The store's, or a payload that is no record as [`StoreError::Refused`].
    pub fn fill(
        &mut self,
        decode: &mut Decode,
        payloads: &[Vec<u8>],
        publisher: u64,
        first: u64,
    ) -> Result<SaveResult, StoreError> {
        let received = (clock::wall_nanos() / 1_000) as i64;
        let mut buffer = ReadBuffer::default();
        for (sequence_number, payload) in (first..).zip(payloads) {
            let (topic, payload) = (buffer.put(b"weir"), buffer.put(payload));
            let origin = Some(Origin { publisher, sequence_number });
            buffer.messages.push(InboundMessage {
                topic,
                payload,
                too_large: 0,
                origin,
                packet: None,
                received,
            });
        }
        let mut batch = Batch::new(self.width);
        batch.open(&Arc::new(buffer));
        let began = Instant::now();
        for position in 0..payloads.len() {
            let added = batch.add(position, |message, buffer, rows| {
                decode.decode(buffer.payload(message), message.payload.len().max(1 << 20), rows)
            });
            added.map_err(|failure| StoreError::Refused(failure.words()))?;
        }
        if let Some(dead) = batch.dead_letters(0..batch.dead_count()).next() {
            return Err(StoreError::Refused(dead.reason.to_owned()));
        }
        let decoded = Instant::now();
        let part = Part { rows: 0..batch.rows.len(), dead: 0..0, again: false };
        let Some(store) = &mut self.store else {
            return Err(StoreError::Unavailable(format!("{}: it has not answered before", self.name)));
        };
        let saved = store.save(&batch, &part)?;
        Ok(SaveResult { rows: saved.rows, decode: decoded.duration_since(began), save: decoded.elapsed() })
    }
}

impl std::fmt::Debug for Loader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Loader({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENT: Waiting<'_> = Waiting { is_over: &|| false, say: &|_| {} };

    #[test]
    fn a_depot_is_filled_counted_and_emptied() {
        let directory = tempfile::tempdir().unwrap();
        let sqlite = Destination::Sqlite(directory.path().join("rows.db"));
        let parquet = Destination::Parquet(directory.path().join("files"));
        for destination in [sqlite, parquet] {
            let mut decode = Decode::raw();
            let mut loader = Loader::new(&destination, "t", &decode, Durability::Full);
            let payloads = vec![vec![7; 1_000]; 50];
            loader.empty(&PATIENT).unwrap();
            assert_eq!(loader.fill(&mut decode, &payloads, 1, 0).unwrap().rows, 50);
            // The same messages again are no new rows.
            assert_eq!(loader.fill(&mut decode, &payloads, 1, 25).unwrap().rows, 25, "{loader:?}");
            let contents = loader.contents(&PATIENT).unwrap();
            assert_eq!((contents.rows, contents.dead), (75, 0));
            assert!(contents.bytes > 1_000, "{contents:?}");
            loader.empty(&PATIENT).unwrap();
            assert_eq!(loader.contents(&PATIENT).unwrap().rows, 0, "{loader:?}");
            assert_eq!(loader.fill(&mut decode, &payloads, 1, 0).unwrap().rows, 50);
        }
    }

    #[test]
    fn a_file_of_sqlite_that_is_moved_keeps_what_is_saved_and_no_other_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let [path, moved] = ["rows.db", "moved.db"].map(|name| directory.path().join(name));
        let mut decode = Decode::raw();
        let mut loader = Loader::new(&Destination::Sqlite(path.clone()), "t", &decode, Durability::Full);
        loader.open(&PATIENT).unwrap();
        std::fs::rename(&path, &moved).unwrap();
        // Several checkpoints.
        let payloads = vec![vec![7; 4_000]; 1_000];
        for batch in 0..10 {
            loader.fill(&mut decode, &payloads, 1, batch * 1_000).unwrap();
        }
        drop(loader);
        assert!(!path.exists());
        // SQLite leaves the log of a file that was moved where it is.
        let [log, moved_log] = ["rows.db-wal", "moved.db-wal"].map(|name| directory.path().join(name));
        std::fs::rename(log, moved_log).unwrap();
        let file = rusqlite::Connection::open(moved).unwrap();
        let count = file.query_row("SELECT count(*) FROM t", (), |row| row.get::<_, u32>(0));
        assert_eq!(count.unwrap(), 10_000);
    }

    #[test]
    fn a_log_of_sqlite_does_not_grow_with_what_is_saved() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("rows.db");
        let mut decode = Decode::raw();
        let mut loader = Loader::new(&Destination::Sqlite(path.clone()), "t", &decode, Durability::Full);
        loader.open(&PATIENT).unwrap();
        let payloads = vec![vec![7; 4_000]; 1_000];
        for batch in 0..25 {
            loader.fill(&mut decode, &payloads, 1, batch * 1_000).unwrap();
        }
        let log = std::fs::metadata(directory.path().join("rows.db-wal")).unwrap().len();
        assert!(log < 64 << 20, "{log}");
        drop(loader);
        let file = rusqlite::Connection::open(path).unwrap();
        let answer = |question: &str| file.query_row(question, (), |row| row.get::<_, String>(0)).unwrap();
        assert_eq!(answer("PRAGMA integrity_check"), "ok");
        assert_eq!(answer("SELECT CAST(count(*) AS TEXT) FROM t"), "25000");
    }
}
