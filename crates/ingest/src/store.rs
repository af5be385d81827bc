//! Where rows go. All that a store promises stands here; what it is stands in its own file.
//!
//! # A store of another crate
//! implements [`Store`], and [`StoreFactory`] makes it once the columns of the records are known. This one keeps rows as text in memory:
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::fmt;
//! use std::sync::{Arc, Mutex};
//! use weir_ingest::store::{Batch, Cell, Contents, Part, RowSource, Saved, Store, StoreFactory, Table};
//! use weir_ingest::{Decode, Destination, Durability, Loader, StoreError, Waiting};
//!
//! /// Publisher, number of the message, position of the record, hash of the payload.
//! type Identity = (u64, u64, u32, [u8; 16]);
//!
//! #[derive(Clone, Debug, Default)]
//! struct Memory(Arc<Mutex<BTreeMap<Identity, String>>>);
//!
//! struct MemoryStore {
//!     memory: Memory,
//!     table: Table,
//! }
//!
//! fn identity(source: &RowSource<'_>) -> Option<Identity> {
//!     let origin = source.origin?;
//!     Some((origin.publisher, origin.sequence_number, source.record, source.hash?.0))
//! }
//!
//! impl Store for MemoryStore {
//!     fn open(&mut self) -> Result<(), StoreError> {
//!         Ok(())
//!     }
//!
//!     fn save(&mut self, batch: &Batch, part: &Part) -> Result<Saved, StoreError> {
//!         let mut rows = self.memory.0.lock().unwrap();
//!         let mut saved = Saved::default();
//!         for row in part.rows.clone() {
//!             let Some(identity) = identity(&batch.source(row)) else {
//!                 return Err(StoreError::Refused("a message without a mark".to_owned()));
//!             };
//!             let columns = self.table.columns.iter().zip(batch.cells(row));
//!             let text = columns.map(|(column, cell)| match cell {
//!                 Cell::Bytes(bytes) => format!("{}={}", column.name, String::from_utf8_lossy(bytes)),
//!                 other => format!("{}={other:?}", column.name),
//!             });
//!             match rows.insert(identity, text.collect()) {
//!                 None => saved.rows += 1,
//!                 Some(_) => saved.duplicate += 1,
//!             }
//!         }
//!         saved.dead = part.dead.len() as u64;
//!         Ok(saved)
//!     }
//!
//!     fn clear(&mut self) -> Result<(), StoreError> {
//!         self.memory.0.lock().unwrap().clear();
//!         Ok(())
//!     }
//!
//!     fn contents(&mut self) -> Result<Contents, StoreError> {
//!         Ok(Contents { rows: self.memory.0.lock().unwrap().len() as u64, ..Contents::default() })
//!     }
//!
//!     fn name(&self) -> String {
//!         self.memory.to_string()
//!     }
//! }
//!
//! impl fmt::Display for Memory {
//!     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
//!         f.write_str("memory")
//!     }
//! }
//!
//! impl StoreFactory for Memory {
//!     fn store(&self, table: Table, _: Durability) -> Box<dyn Store> {
//!         Box::new(MemoryStore { memory: self.clone(), table })
//!     }
//! }
//!
//! let memory = Memory::default();
//! let destination = Destination::Other(Arc::new(memory.clone()));
//! let mut decode = Decode::raw();
//! let mut loader = Loader::new(&destination, "messages", &decode, Durability::Full);
//! let waiting = Waiting { is_over: &|| false, say: &|line| eprintln!("{line}") };
//! loader.open(&waiting)?;
//! let payloads = [b"one".to_vec(), b"two".to_vec()];
//! assert_eq!(loader.fill(&mut decode, &payloads, 7, 0)?.rows, 2);
//! // The same messages of the same publisher are no new rows.
//! assert_eq!(loader.fill(&mut decode, &payloads, 7, 0)?.rows, 0);
//! assert_eq!(loader.contents(&waiting)?.rows, 2);
//! assert!(memory.0.lock().unwrap().values().eq(["payload=one", "payload=two"]));
//! # Ok::<(), StoreError>(())
//! ```
//!
//! [`run`](crate::run) takes such a destination as any other.

mod checkpoint;
mod clear_text;
mod clickhouse;
mod database;
mod destination;
mod durability;
mod encryption;
mod json_row;
mod kafka;
mod literal;
mod parquet;
mod postgres;
mod publisher_numbers;
mod row_counter;
mod sqlite;
mod stored_hashes;
#[cfg(test)]
mod tests;

pub use clickhouse::ClickHouse;
pub use database::Database;
pub use destination::{Destination, DestinationError, StoreFactory};
pub use durability::{Durability, UnknownDurability};
pub use kafka::Cluster;
pub use row_counter::RowCounter;

pub use crate::batch::{Batch, DeadLetter, RowSource};
pub use crate::column::{Column, ColumnKind, Provenance, Table};
pub use crate::error::StoreError;
pub use crate::inbound::Origin;
pub use crate::payload_hash::PayloadHash;
pub use crate::rows::Cell;
pub use weir_record::TimeUnit;

use std::fmt;
use std::ops::Range;

/// What became of the rows and dead letters of a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Saved {
    /// Rows that are in the table now, and were not.
    pub rows: u64,
    /// Dead letters that are in their table now, and were not.
    pub dead: u64,
    /// Rows and dead letters that were there before: the message came again.
    pub duplicate: u64,
    /// Of `rows` and `dead`, those whose publisher and number were there with another payload.
    pub conflict: u64,
}

/// What became of one record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SaveOutcome {
    /// The row is in the table now.
    Kept,
    /// The row is in the table now, beside another with its publisher and number.
    KeptBeside,
    /// The row was there before.
    Duplicate,
}

impl Saved {
    /// Counts a row, or a dead letter.
    fn count(&mut self, outcome: SaveOutcome, is_row: bool) {
        let kept = u64::from(outcome != SaveOutcome::Duplicate);
        *(if is_row { &mut self.rows } else { &mut self.dead }) += kept;
        self.duplicate += 1 - kept;
        self.conflict += u64::from(outcome == SaveOutcome::KeptBeside);
    }
}

impl std::ops::AddAssign for Saved {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.dead += other.dead;
        self.duplicate += other.duplicate;
        self.conflict += other.conflict;
    }
}

/// Which part of a batch is to be saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// Which rows, for [`Batch::cells`] and [`Batch::source`].
    pub rows: Range<usize>,
    /// Which dead letters, for [`Batch::dead_letters`].
    pub dead: Range<usize>,
    /// Whether this was tried before, and may have been done though it was not said so. A row that is there with the
    /// same time of receipt is then one that was saved, and no duplicate.
    pub again: bool,
}

/// A table whose indexes have not come to be: another table has theirs, as after `ALTER TABLE … RENAME`, which keeps them.
fn without_indexes(place: &dyn fmt::Display, table: &str) -> StoreError {
    let [first, beside] = indexes(table);
    StoreError::Unfit(format!(
        "{place}: an index {first} or {beside} is on another table, so that table {table} cannot have its own, and what came \
         twice would be in it twice; drop the index there, or give it another name"
    ))
}

/// The index of the rows that are not in conflict, and that of those that are.
fn indexes(table: &str) -> [String; 2] {
    [format!("{table}_identity"), format!("{table}_conflicts")]
}

/// A place that keeps rows.
///
/// A row with a publisher, a sequence number and a payload that are there already is not saved again. One with another
/// payload is kept beside it, with `conflict` set: anyone can forge a mark, and a store cannot know which of the two is
/// genuine. One row of an identity at most has `conflict` not set.
pub trait Store: Send {
    /// Connects, and makes the tables or finds them to fit. Called again after [`StoreError::Unavailable`].
    ///
    /// # Errors
    /// See [`StoreError`].
    fn open(&mut self) -> Result<(), StoreError>;

    /// Saves a part of a batch, all or nothing. After [`StoreError::Refused`] it is called again with smaller parts, until the row that
    /// is refused stands alone; that row becomes a dead letter. When this returns, what was saved is there after a crash of this
    /// process and of the store; with [`Durability::Full`] after one of the machine as well.
    ///
    /// # Errors
    /// See [`StoreError`]. Nothing was saved, unless the connection broke while the store answered.
    fn save(&mut self, batch: &Batch, part: &Part) -> Result<Saved, StoreError>;

    /// Drops the tables with their rows. [`Store::open`] creates them again.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn clear(&mut self) -> Result<(), StoreError>;

    /// Counts what the opened tables hold, by asking them.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn contents(&mut self) -> Result<Contents, StoreError>;

    /// How it is called in a message: without a password.
    fn name(&self) -> String;
}

/// What the tables of a place hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Rows: `SELECT count(*)`.
    pub rows: u64,
    /// Dead letters.
    pub dead: u64,
    /// Bytes that the table of the rows takes, its index included; of files, their lengths.
    pub bytes: u64,
}
