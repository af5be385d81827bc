//! Where rows go. All that a store promises stands here; what it is stands in its own file.

mod checkpoint;
mod clear_text;
mod clickhouse;
mod database;
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
pub use kafka::Cluster;
pub use row_counter::RowCounter;

use clickhouse::ClickHouseTable;
use kafka::Kafka;
use parquet::Parquet;
use postgres::Postgres;
use sqlite::Sqlite;

use crate::batch::Batch;
use crate::column::Table;
use crate::error::{ClusterError, DatabaseError, StoreError};
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

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

/// What of a commit is on the disk when it returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// All of it: it is there after a crash of the machine.
    #[default]
    Full,
    /// Nothing need be. A crash of the machine may take the last commits, and leaves the others whole.
    Normal,
    /// As `Normal`, and SQLite waits for the disk nowhere: a crash of the machine may damage the file.
    Off,
}

/// A text that is no durability.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a durability level; write full, normal or off")]
pub struct UnknownDurability(String);

impl FromStr for Durability {
    type Err = UnknownDurability;

    fn from_str(text: &str) -> Result<Self, UnknownDurability> {
        match text {
            "full" => Ok(Self::Full),
            "normal" => Ok(Self::Normal),
            "off" => Ok(Self::Off),
            other => Err(UnknownDurability(other.to_owned())),
        }
    }
}

impl Durability {
    /// As SQLite calls it (`PRAGMA synchronous`).
    fn of_sqlite(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Normal => "normal",
            Self::Off => "off",
        }
    }

    /// As PostgreSQL calls it (`synchronous_commit`). It has nothing that a session could switch off beyond that.
    fn of_postgresql(self) -> &'static str {
        match self {
            Self::Full => "on",
            Self::Normal | Self::Off => "off",
        }
    }
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
    /// `clickhouse://user@host:port/database`
    ClickHouse(Box<ClickHouse>),
    /// `kafka://user@host:port/topic`
    Kafka(Cluster),
}

/// A text that names no store. Does not show it: there may be a password in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DestinationError {
    /// None of those that there are.
    #[error(
        "this is no place to save to; write sqlite:FILE, postgres://user@host:port/database, \
         clickhouse://user@host:port/database, parquet:DIR or kafka(s)://user@host:port/topic"
    )]
    Unknown,
    /// What is kept in memory is not saved.
    #[error("what is in memory is not saved; write sqlite:FILE")]
    Memory,
    /// A database, but not how to reach it.
    #[error(transparent)]
    Database(DatabaseError),
    /// A cluster of Kafka, but not how to reach it.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
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
            Some(("clickhouse" | "clickhouses", _)) => Ok(Self::ClickHouse(Box::new(text.parse()?))),
            Some(("kafka" | "kafkas", _)) => Ok(Self::Kafka(text.parse()?)),
            _ => Err(DestinationError::Unknown),
        }
    }
}

impl Destination {
    /// The store, not opened yet.
    pub(crate) fn store(&self, table: Table, durability: Durability) -> Box<dyn Store> {
        match self {
            Self::Sqlite(path) => Box::new(Sqlite::new(path.clone(), table, durability)),
            // A file there has its name when it is on the disk, whatever is asked for.
            Self::Parquet(directory) => Box::new(Parquet::new(directory.clone(), table)),
            Self::Postgres(database) => Box::new(Postgres::new((**database).clone(), table, durability)),
            Self::ClickHouse(server) => Box::new(ClickHouseTable::new((**server).clone(), table, durability)),
            // A batch there counts when all replicas in sync have it, whatever is asked for.
            Self::Kafka(cluster) => Box::new(Kafka::new(cluster.clone(), table)),
        }
    }

    /// Names or addresses of the servers that it is connected by, or the path of a socket; none of a place on this machine. They are
    /// out of what the store itself has read, so that no other reading of the URL can name another host.
    pub fn hosts(&self) -> Vec<String> {
        match self {
            Self::Sqlite(_) | Self::Parquet(_) => Vec::new(),
            Self::Postgres(database) => database.hosts(),
            Self::ClickHouse(server) => vec![server.host().to_owned()],
            Self::Kafka(cluster) => cluster.hosts(),
        }
    }

    /// Whether the URL names a password.
    pub fn has_password(&self) -> bool {
        match self {
            Self::Postgres(database) => database.has_password(),
            Self::ClickHouse(server) => server.has_password(),
            Self::Kafka(cluster) => cluster.has_password(),
            Self::Sqlite(_) | Self::Parquet(_) => false,
        }
    }

    /// Has a batch of a database cancelled that takes longer. `false`: a store of this kind has no such bound.
    pub fn set_statement_timeout(&mut self, timeout: Duration) -> bool {
        match self {
            Self::Postgres(database) => database.set_statement_timeout(timeout),
            Self::ClickHouse(server) => server.set_statement_timeout(timeout),
            Self::Sqlite(_) | Self::Parquet(_) | Self::Kafka(_) => return false,
        }
        true
    }

    /// Whether it is a server, which may be away, and no place on this machine.
    pub fn is_server(&self) -> bool {
        matches!(self, Self::Postgres(_) | Self::ClickHouse(_) | Self::Kafka(_))
    }
}

/// Without a password.
impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(database) => database.fmt(f),
            Self::ClickHouse(server) => server.fmt(f),
            Self::Parquet(directory) => write!(f, "parquet:{}", directory.display()),
            Self::Kafka(cluster) => cluster.fmt(f),
        }
    }
}
