//! Where rows go, as a person writes it, and the store that this names.

use super::clickhouse::{ClickHouse, ClickHouseTable};
use super::database::Database;
use super::kafka::{Cluster, Kafka};
use super::parquet::Parquet;
use super::postgres::Postgres;
use super::sqlite::Sqlite;
use super::{Durability, Store};
use crate::column::Table;
use crate::error::{ClusterError, DatabaseError};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

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
    /// A store of another crate.
    Other(Arc<dyn StoreFactory>),
}

/// Makes a store of another crate. Its `Display` names it in messages, without a password.
pub trait StoreFactory: fmt::Debug + fmt::Display + Send + Sync {
    /// The store, not opened yet.
    fn store(&self, table: Table, durability: Durability) -> Box<dyn Store>;

    /// Names or addresses of the servers that it connects to; none for a place on this machine.
    fn hosts(&self) -> Vec<String> {
        Vec::new()
    }
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
            Self::Other(factory) => factory.store(table, durability),
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
            Self::Other(factory) => factory.hosts(),
        }
    }

    /// Whether the URL names a password.
    pub fn has_password(&self) -> bool {
        match self {
            Self::Postgres(database) => database.has_password(),
            Self::ClickHouse(server) => server.has_password(),
            Self::Kafka(cluster) => cluster.has_password(),
            Self::Sqlite(_) | Self::Parquet(_) | Self::Other(_) => false,
        }
    }

    /// Has a batch of a database cancelled that takes longer. `false`: a store of this kind has no such bound.
    pub fn set_statement_timeout(&mut self, timeout: Duration) -> bool {
        match self {
            Self::Postgres(database) => database.set_statement_timeout(timeout),
            Self::ClickHouse(server) => server.set_statement_timeout(timeout),
            Self::Sqlite(_) | Self::Parquet(_) | Self::Kafka(_) | Self::Other(_) => return false,
        }
        true
    }

    /// Whether it is a server, which may be away, and no place on this machine.
    pub fn is_server(&self) -> bool {
        match self {
            Self::Postgres(_) | Self::ClickHouse(_) | Self::Kafka(_) => true,
            Self::Sqlite(_) | Self::Parquet(_) => false,
            Self::Other(factory) => !factory.hosts().is_empty(),
        }
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
            Self::Other(factory) => factory.fmt(f),
        }
    }
}
