//! Where rows go. All that a store promises stands here; what it is stands in its own file.

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
pub use destination::{Destination, DestinationError};
pub use durability::{Durability, UnknownDurability};
pub use kafka::Cluster;
pub use row_counter::RowCounter;

use crate::batch::Batch;
use crate::error::StoreError;
use std::fmt;
use std::ops::Range;

/// What became of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Saved {
    /// Rows that are in the table now, and were not.
    pub(crate) rows: u64,
    /// Dead letters that are in their table now, and were not.
    pub(crate) dead: u64,
    /// Rows and dead letters that were there before: the message came again.
    pub(crate) duplicate: u64,
    /// Of `rows` and `dead`, those whose publisher and number were there with another payload.
    pub(crate) conflict: u64,
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

/// Which part of a batch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) rows: Range<usize>,
    pub(crate) dead: Range<usize>,
    /// Whether this was tried before, and may have been done though it was not said so. A row that is there with the
    /// same time of receipt is then one that was saved, and no duplicate.
    pub(crate) again: bool,
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
pub(crate) trait Store: Send {
    /// Connects, and makes the tables or finds them to fit. Called again after [`StoreError::Unavailable`].
    ///
    /// # Errors
    /// See [`StoreError`].
    fn open(&mut self) -> Result<(), StoreError>;

    /// Saves a part of a batch, all or nothing. When this returns, what was saved is there after a crash of this
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
