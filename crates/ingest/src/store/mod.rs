//! Where rows go. All that a store promises stands here; what it is stands in its own file.

mod checkpoint;
mod database;
mod encryption;
mod parquet;
mod postgres;
mod seen;
mod sqlite;
mod tally;

pub use database::{Database, DatabaseError};
pub use tally::Tally;

use parquet::Parquet;
use postgres::Postgres;
use sqlite::Sqlite;

use crate::batch::Batch;
use crate::column::Table;
use crate::error::StoreError;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;

/// What became of records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Saved {
    /// Rows that are in the table now, and were not.
    pub(crate) rows: u64,
    /// Dead letters that are in their table now, and were not.
    pub(crate) dead: u64,
    /// Rows and dead letters that were there before: the message came again.
    pub(crate) duplicate: u64,
}

impl std::ops::AddAssign for Saved {
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.dead += other.dead;
        self.duplicate += other.duplicate;
    }
}

/// Which part of a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) rows: Range<usize>,
    pub(crate) dead: Range<usize>,
    /// Whether this was tried before, and may have been done though it was not said so. A row that is there with the
    /// same time of receipt is then one that was saved, and no duplicate.
    pub(crate) again: bool,
}

/// A place that keeps rows.
///
/// A row with a publisher and a sequence number that are there already is not saved again.
pub(crate) trait Store: Send {
    /// Connects, and makes the tables or finds them to fit. Called again after [`StoreError::Unavailable`].
    ///
    /// # Errors
    /// See [`StoreError`].
    fn open(&mut self) -> Result<(), StoreError>;

    /// Saves a part of a batch, all or nothing. When this returns, what was saved is there after a crash of this
    /// process, of the store and of the machine.
    ///
    /// # Errors
    /// See [`StoreError`]. Nothing was saved, unless the connection broke while the store answered.
    fn save(&mut self, batch: &Batch, part: &Part) -> Result<Saved, StoreError>;

    /// Takes the tables away, with all that is in them. [`Store::open`] makes them anew.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn clear(&mut self) -> Result<(), StoreError>;

    /// Counts what the opened tables hold, by asking them.
    ///
    /// # Errors
    /// See [`StoreError`].
    fn stock(&mut self) -> Result<Stock, StoreError>;

    /// How it is called in a message: without a password.
    fn name(&self) -> String;
}

/// What the tables of a place hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stock {
    /// Rows: `SELECT count(*)`.
    pub rows: u64,
    /// Dead letters.
    pub dead: u64,
    /// Bytes that the table of the rows takes, its index included; of files, their lengths.
    pub bytes: u64,
}

/// Where rows go, as a person writes it.
#[derive(Clone, Debug)]
pub enum Destination {
    /// `sqlite:FILE`
    Sqlite(PathBuf),
    /// `postgres://user@host:port/database`
    Postgres(Box<Database>),
    /// `parquet:DIR`
    Parquet(PathBuf),
}

/// A text that names no store. Does not show it: there may be a password in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// None of the three.
    #[error(
        "this is no place to save to; write sqlite:FILE, postgres://user@host:port/database or parquet:DIR"
    )]
    Unknown,
    /// What is kept in memory is not saved.
    #[error("what is in memory is not saved; write sqlite:FILE")]
    Memory,
    /// A database, but not how to reach it.
    #[error(transparent)]
    Database(DatabaseError),
}

impl From<DatabaseError> for DestinationError {
    fn from(error: DatabaseError) -> Self {
        match error {
            DatabaseError::Unknown => Self::Unknown,
            error => Self::Database(error),
        }
    }
}

impl FromStr for Destination {
    type Err = DestinationError;

    fn from_str(text: &str) -> Result<Self, DestinationError> {
        match text.split_once(':') {
            Some(("sqlite", ":memory:")) => Err(DestinationError::Memory),
            Some(("sqlite", file)) if !file.is_empty() => Ok(Self::Sqlite(file.into())),
            Some(("parquet", directory)) if !directory.is_empty() => Ok(Self::Parquet(directory.into())),
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(Box::new(text.parse()?))),
            _ => Err(DestinationError::Unknown),
        }
    }
}

impl Destination {
    /// The store, not opened yet.
    pub(crate) fn store(&self, table: Table) -> Box<dyn Store> {
        match self {
            Self::Sqlite(path) => Box::new(Sqlite::new(path.clone(), table)),
            Self::Parquet(directory) => Box::new(Parquet::new(directory.clone(), table)),
            Self::Postgres(database) => Box::new(Postgres::new((**database).clone(), table)),
        }
    }
}

/// Without a password.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(database) => database.fmt(f),
            Self::Parquet(directory) => write!(f, "parquet:{}", directory.display()),
        }
    }
}
