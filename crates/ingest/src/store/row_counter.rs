//! Rows of a PostgreSQL table that another program fills, counted by query.

use super::Durability;
use super::database::{Database, Session};
use crate::error::StoreError;
use crate::store_thread::{COUNTING, ThreadOutcome, Waiting};
use postgres::Statement;

/// A table that is asked how many rows it has.
pub struct RowCounter {
    client: Session,
    count: Statement,
    size: Statement,
    database: Database,
}

impl RowCounter {
    /// Connects, and counts the rows and the bytes that are there. `table` is a name as SQL has it, with its schema before a dot if it has
    /// one.
    ///
    /// # Errors
    /// The database cannot be reached, or has no such table, or is no longer waited for.
    pub fn open(
        database: &Database,
        table: &str,
        waiting: &Waiting<'_>,
    ) -> Result<(Self, u64, u64), StoreError> {
        let (place, name) = (database.clone(), table.to_owned());
        let away = |words: &str| StoreError::Unavailable(format!("{database}: {words}"));
        let attended = waiting.attend(&format!("{database}: {COUNTING}"), move |_| {
            let mut counter = Self::connect(&place, &name)?;
            let (rows, bytes) = (counter.rows()?, counter.bytes()?);
            Ok((counter, rows, bytes))
        });
        match attended.map_err(|error| away(&error.to_string()))? {
            ThreadOutcome::Done(counted) => counted,
            ThreadOutcome::LeftBehind => Err(away(&format!("stopped while it was {COUNTING}"))),
            ThreadOutcome::Panicked => Err(away("the thread that counts has panicked; please report this")),
        }
    }

    fn connect(database: &Database, table: &str) -> Result<Self, StoreError> {
        let sort = |error: postgres::Error| database.sort(&error);
        let mut client = database.connect(Durability::Full)?;
        // As the database itself writes it: what it was given is no SQL any more.
        let known = client.query_one("SELECT to_regclass($1)::text", &[&table]).map_err(sort)?;
        let quoted: Option<String> = known.get(0);
        let Some(quoted) = quoted else {
            return Err(StoreError::Unfit(format!(
                "{database} has no table '{table}'; make it first, and put a name with capitals into quotes: \"{table}\""
            )));
        };
        let count = client.prepare(&format!("SELECT count(*) FROM {quoted}")).map_err(sort)?;
        let size = format!("SELECT pg_total_relation_size('{}')", quoted.replace('\'', "''"));
        let size = client.prepare(&size).map_err(sort)?;
        Ok(Self { client, count, size, database: database.clone() })
    }

    /// Rows that it has now.
    ///
    /// # Errors
    /// The database is away.
    pub fn rows(&mut self) -> Result<u64, StoreError> {
        self.number(|it| &it.count)
    }

    /// Bytes that it takes, its indices included.
    ///
    /// # Errors
    /// The database is away.
    pub fn bytes(&mut self) -> Result<u64, StoreError> {
        self.number(|it| &it.size)
    }

    fn number(&mut self, statement: fn(&Self) -> &Statement) -> Result<u64, StoreError> {
        let statement = statement(self).clone();
        let row = self.client.query_one(&statement, &[]).map_err(|error| self.database.sort(&error))?;
        Ok(row.get::<_, i64>(0).max(0) as u64)
    }
}
