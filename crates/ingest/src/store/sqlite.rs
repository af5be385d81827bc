//! SQLite: one file, in write-ahead mode, synchronised at each commit unless less is asked for.

use super::checkpoint::Checkpointer;
use super::literal;
use super::{Contents, Durability, Part, SaveOutcome, Saved, Store, indexes, without_indexes};
use crate::batch::{Batch, DeadLetter, RowSource};
use crate::column::{Column, ColumnKind, Provenance, Table, quoted};
use crate::error::StoreError;
use crate::rows::Cell;
use rusqlite::types::Null;
use rusqlite::{
    CachedStatement, Connection, ErrorCode, OpenFlags, OptionalExtension, Statement, TransactionBehavior,
};
use std::path::PathBuf;
use std::time::Duration;
use weir_setting::TABLE;

/// How long another process may keep the file to itself.
const BUSY: Duration = Duration::from_secs(5);

/// Page size of a file that weir makes. Of SQLite's usual 4 KiB a row of 2.3 kB leaves nearly half empty, and what is
/// empty goes into the log and into the file like the rest.
const PAGE_BYTES: u32 = 16 << 10;

/// Memory for pages, in KiB: a batch and its index. Pages that find no room are written one by one, and some of them twice.
const CACHE_KIB: i32 = 16 << 10;

/// Bytes of the log from which on a commit writes into the file what is not there yet, and the log starts over.
const CHECKPOINT_BYTES: u32 = 32 << 20;

/// Bytes of rows after which that is begun beside the commits, so that little is left to be done by one. A commit waits for one
/// that is still being made after twice as many.
const AHEAD_BYTES: usize = 8 << 20;

/// A table in a file.
#[derive(Debug)]
pub(crate) struct Sqlite {
    path: PathBuf,
    table: Table,
    durability: Durability,
    connection: Option<Connection>,
    checkpointer: Option<Checkpointer>,
    /// Whether it was open before: what cannot be opened then was there, and may come back.
    was_open: bool,
    /// Bytes of rows since it was asked.
    fresh: usize,
    /// What each column of the record is written as: [`ColumnKind::Long`] for a date in a column of numbers, for example.
    kinds: Vec<ColumnKind>,
    insert: String,
    insert_dead: String,
    find: Find,
    find_dead: Find,
}

/// Questions for what is there under an identity: its hash and its time of receipt.
#[derive(Debug)]
struct Find {
    /// Of the row that is not in conflict.
    first: String,
    /// Of one that is, by its hash.
    beside: String,
}

impl Sqlite {
    pub(crate) fn new(path: PathBuf, table: Table, durability: Durability) -> Self {
        let (insert, insert_dead) = (insert(&table), insert_dead(&table));
        let (find, find_dead) = (Find::new(&table, &table.name), Find::new(&table, &table.dead_letters()));
        Self {
            path,
            table,
            durability,
            connection: None,
            checkpointer: None,
            was_open: false,
            fresh: 0,
            kinds: Vec::new(),
            insert,
            insert_dead,
            find,
            find_dead,
        }
    }

    fn words(&self, error: &rusqlite::Error) -> String {
        let plain = match error {
            // SQLite says the name once more, and not what to do.
            error if error.sqlite_error_code() == Some(ErrorCode::CannotOpen) => {
                "cannot be opened; name a file, in a directory that is there and may be written".to_owned()
            }
            rusqlite::Error::SqliteFailure(_, Some(words)) => words.clone(),
            other => other.to_string(),
        };
        format!("{}: {plain}", self.path.display())
    }

    fn sort(&self, error: &rusqlite::Error) -> StoreError {
        let words = self.words(error);
        match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => {
                StoreError::Unavailable(format!("{words}; make room on the disk, and saving goes on"))
            }
            Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig) => {
                StoreError::Refused(words)
            }
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => StoreError::Unfit(words),
            Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly | ErrorCode::PermissionDenied)
                if !self.was_open =>
            {
                StoreError::Unfit(words)
            }
            _ => StoreError::Unavailable(words),
        }
    }

    fn connect(&self) -> rusqlite::Result<Connection> {
        // No URI: that could name what is kept in memory.
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let connection = Connection::open_with_flags(&self.path, flags)?;
        connection.busy_timeout(BUSY)?;
        // A file that is there keeps its own.
        connection.pragma_update(None, "page_size", PAGE_BYTES)?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.pragma_update(None, "synchronous", self.durability.of_sqlite())?;
        connection.pragma_update(None, "cache_size", -CACHE_KIB)?;
        let page: u32 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT_BYTES / page)?;
        Ok(connection)
    }

    /// The columns of a table: name, whether it must be given a value.
    fn columns(connection: &Connection, table: &str) -> rusqlite::Result<Vec<(String, bool)>> {
        let mut statement =
            connection.prepare("SELECT name, \"notnull\", dflt_value, pk FROM pragma_table_info(?)")?;
        let columns = statement.query_map([table], |row| {
            let (not_null, default, key): (bool, Option<String>, bool) =
                (row.get(1)?, row.get(2)?, row.get(3)?);
            Ok((row.get(0)?, not_null && default.is_none() && !key))
        })?;
        columns.collect()
    }

    /// Whether SQLite tells all columns apart: it takes a letter for the same in either case.
    fn check_names(&self) -> Result<(), StoreError> {
        let columns = &self.table.columns;
        let alike = |(at, column): (usize, &Column)| {
            let other = columns[..at].iter().find(|other| other.name.eq_ignore_ascii_case(&column.name));
            other.map(|other| (other.name.clone(), column.name.clone()))
        };
        match columns.iter().enumerate().find_map(alike) {
            None => Ok(()),
            Some((one, other)) => Err(StoreError::Unfit(format!(
                "{}: fields {one} and {other} differ in case alone, and SQLite takes them for one column; save into PostgreSQL, or rename one in \
                 the reader's schema with the other name as an alias",
                self.path.display()
            ))),
        }
    }

    /// What each column of the record is written as, by the types that the columns of the table were declared with.
    fn written_kinds(&self, connection: &Connection) -> rusqlite::Result<Vec<ColumnKind>> {
        let mut statement = connection.prepare("SELECT name, type FROM pragma_table_info(?)")?;
        let declared = statement.query_map([&self.table.name], |row| Ok((row.get(0)?, row.get(1)?)))?;
        let declared = declared.collect::<rusqlite::Result<Vec<(String, String)>>>()?;
        let kinds = self.table.columns.iter().map(|column| {
            let found = declared.iter().find(|(name, _)| name.eq_ignore_ascii_case(&column.name));
            written_as(column.kind, found.map_or("", |(_, declared)| declared))
        });
        Ok(kinds.collect())
    }

    /// Whether the table has a column for each of the record's and of the provenance's, and no other that must be
    /// filled.
    fn fits(&self, columns: &[(String, bool)]) -> Result<(), StoreError> {
        let file = self.path.display();
        let Table { name: table, .. } = &self.table;
        let provenance =
            Provenance::ALL.map(|provenance| (self.table.name_of(provenance), provenance_type(provenance)));
        let fields = self.table.columns.iter().map(|column| (column.name.clone(), type_of(column.kind)));
        let wanted: Vec<_> = fields.chain(provenance).collect();
        for (name, kind) in &wanted {
            if !columns.iter().any(|(column, _)| column.eq_ignore_ascii_case(name)) {
                return Err(StoreError::Unfit(format!(
                    "{file}: table {table} has no column {name}; add it (ALTER TABLE {} ADD COLUMN {} {kind}), or name \
                     another table with {TABLE}",
                    quoted(table),
                    quoted(name),
                )));
            }
        }
        let filled = |column: &str| wanted.iter().any(|(name, _)| name.eq_ignore_ascii_case(column));
        match columns.iter().find(|(column, must)| *must && !filled(column)) {
            Some((column, _)) => Err(StoreError::Unfit(format!(
                "{file}: table {table} has a column {column} that is NOT NULL, and the schema has no such field; give \
                 the column a default, or name another table with {TABLE}"
            ))),
            None => Ok(()),
        }
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        let connection = self.connect().map_err(|error| self.sort(&error))?;
        let fail = |error: rusqlite::Error| self.sort(&error);
        let table = &self.table.name;
        let columns = Self::columns(&connection, table).map_err(fail)?;
        if columns.is_empty() {
            connection.execute_batch(&create(&self.table)).map_err(fail)?;
        } else {
            self.fits(&columns)?;
        }
        connection.execute_batch(&create_indexes(&self.table, table)).map_err(|error| {
            StoreError::Unfit(format!(
                "{}; weir needs publisher, sequence number and record to be unique in table {table} where conflict is 0",
                self.words(&error)
            ))
        })?;
        let kinds = self.written_kinds(&connection).map_err(fail)?;
        let dead = self.table.dead_letters();
        let create_dead = create_dead(&self.table) + &create_indexes(&self.table, &dead);
        connection.execute_batch(&create_dead).map_err(fail)?;
        for name in [table, &dead] {
            let query =
                "SELECT count(*) FROM sqlite_schema WHERE type = 'index' AND tbl_name = ? AND name IN (?, ?)";
            let [first, beside] = indexes(name);
            let found = connection.query_row(query, [name, &first, &beside], |row| row.get::<_, i64>(0));
            if found.map_err(fail)? < 2 {
                return Err(without_indexes(&self.path.display(), name));
            }
        }
        (self.connection, self.kinds) = (Some(connection), kinds);
        self.was_open = true;
        self.checkpointer = Some(Checkpointer::start(&self.path, self.durability));
        Ok(())
    }

    /// Lets go of the file. What is closed last writes the log into it, and takes the log away.
    fn close(&mut self) {
        self.checkpointer = None;
        self.connection = None;
    }

    fn write(&mut self, batch: &Batch, part: &Part) -> rusqlite::Result<Saved> {
        let Some(connection) = &mut self.connection else {
            return Err(rusqlite::Error::InvalidQuery);
        };
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let mut saved = Saved::default();
        if !part.rows.is_empty() {
            let mut insert = Insert {
                statement: transaction.prepare_cached(&self.insert)?,
                connection: &transaction,
                find: &self.find,
                again: part.again,
            };
            for row in part.rows.clone() {
                let mut position = 0;
                for (cell, kind) in batch.cells(row).zip(&self.kinds) {
                    position += 1;
                    bind(&mut insert.statement, position, cell, *kind)?;
                }
                saved.count(insert.put(position, &batch.source(row))?, true);
            }
        }
        for DeadLetter { source, reason, payload, size } in batch.dead_letters(part.dead.clone()) {
            let mut insert = Insert {
                statement: transaction.prepare_cached(&self.insert_dead)?,
                connection: &transaction,
                find: &self.find_dead,
                again: part.again,
            };
            insert.statement.raw_bind_parameter(1, reason)?;
            insert.statement.raw_bind_parameter(2, size as i64)?;
            insert.statement.raw_bind_parameter(3, payload)?;
            saved.count(insert.put(3, &source)?, false);
        }
        transaction.commit()?;
        Ok(saved)
    }

    fn taken(&self) -> rusqlite::Result<Contents> {
        let Some(connection) = &self.connection else {
            return Err(rusqlite::Error::InvalidQuery);
        };
        let count = |name: &str| {
            let query = format!("SELECT count(*) FROM {}", quoted(name));
            connection.query_row(&query, (), |row| row.get::<_, i64>(0))
        };
        let table = &self.table.name;
        let pages = "SELECT total(pgsize) FROM dbstat WHERE name IN (?, ?, ?)";
        let [identity, conflicts] = indexes(table);
        let bytes: f64 = connection.query_row(pages, [table, &identity, &conflicts], |row| row.get(0))?;
        Ok(Contents {
            rows: count(table)? as u64,
            dead: count(&self.table.dead_letters())? as u64,
            bytes: bytes as u64,
        })
    }
}

impl Store for Sqlite {
    fn open(&mut self) -> Result<(), StoreError> {
        self.close();
        self.check_names()?;
        self.begin()
    }

    fn save(&mut self, batch: &Batch, part: &Part) -> Result<Saved, StoreError> {
        if self.fresh > 2 * AHEAD_BYTES
            && let Some(checkpointer) = &mut self.checkpointer
        {
            checkpointer.wait();
        }
        let saved = self.write(batch, part).map_err(|error| self.sort(&error))?;
        self.fresh += batch.rows.weight();
        if self.fresh > AHEAD_BYTES
            && let Some(checkpointer) = &mut self.checkpointer
            && checkpointer.request()
        {
            self.fresh = 0;
        }
        Ok(saved)
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        self.close();
        let connection = self.connect().map_err(|error| self.sort(&error))?;
        let [rows, dead] = [&self.table.name, &self.table.dead_letters()].map(|name| quoted(name));
        let drop = format!("DROP TABLE IF EXISTS {rows}; DROP TABLE IF EXISTS {dead}");
        connection.execute_batch(&drop).map_err(|error| self.sort(&error))
    }

    fn contents(&mut self) -> Result<Contents, StoreError> {
        self.taken().map_err(|error| self.sort(&error))
    }

    fn name(&self) -> String {
        format!("sqlite:{}", self.path.display())
    }
}

/// What holds just the values of this kind. A file of SQLite has no NaN and no −0: see [`bind`].
fn type_of(kind: ColumnKind) -> &'static str {
    match kind {
        ColumnKind::Boolean => "BOOLEAN",
        ColumnKind::Integer | ColumnKind::Long => "INTEGER",
        ColumnKind::Float | ColumnKind::Double => "REAL",
        ColumnKind::Bytes => "BLOB",
        ColumnKind::Text | ColumnKind::Json => "TEXT",
        // What SQLite's own functions of dates read; and decimals, of which a number of its own would lose digits.
        ColumnKind::Date
        | ColumnKind::Time(_)
        | ColumnKind::Timestamp { .. }
        | ColumnKind::Decimal { .. }
        | ColumnKind::Uuid => "TEXT",
    }
}

/// What a value is written as into a column of this type: a table that the user made may have numbers or bytes for dates, times and
/// decimals.
fn written_as(kind: ColumnKind, column: &str) -> ColumnKind {
    match kind {
        ColumnKind::Date | ColumnKind::Time(_) | ColumnKind::Timestamp { .. }
            if column.eq_ignore_ascii_case("INTEGER") =>
        {
            ColumnKind::Long
        }
        ColumnKind::Decimal { .. } | ColumnKind::Uuid if column.eq_ignore_ascii_case("BLOB") => {
            ColumnKind::Bytes
        }
        kind => kind,
    }
}

fn provenance_type(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Topic => "TEXT",
        Provenance::PayloadHash => "BLOB",
        Provenance::Conflict => "BOOLEAN",
        Provenance::Publisher | Provenance::SequenceNumber | Provenance::Record | Provenance::Received => {
            "INTEGER"
        }
    }
}

fn provenance_columns(table: &Table) -> String {
    let columns = Provenance::ALL
        .map(|provenance| format!("{} {}", quoted(&table.name_of(provenance)), provenance_type(provenance)));
    columns.join(", ")
}

fn create(table: &Table) -> String {
    let fields = table.columns.iter().map(|column| {
        let not_null = if column.nullable { "" } else { " NOT NULL" };
        format!("{} {}{not_null}", quoted(&column.name), type_of(column.kind))
    });
    let columns: Vec<_> = fields.chain([provenance_columns(table)]).collect();
    format!("CREATE TABLE IF NOT EXISTS {} ({})", quoted(&table.name), columns.join(", "))
}

/// Indexes of the table of this name, that of rows or that of dead letters.
fn create_indexes(table: &Table, name: &str) -> String {
    let [first, beside] = indexes(name).map(|index| quoted(&index));
    let [hash, conflict] =
        [Provenance::PayloadHash, Provenance::Conflict].map(|it| quoted(&table.name_of(it)));
    let (identity, name) = (table.identity(), quoted(name));
    format!(
        "CREATE UNIQUE INDEX IF NOT EXISTS {first} ON {name} ({identity}) WHERE {conflict} = 0; \
         CREATE UNIQUE INDEX IF NOT EXISTS {beside} ON {name} ({identity}, {hash}) WHERE {conflict} = 1;"
    )
}

fn create_dead(table: &Table) -> String {
    format!(
        "CREATE TABLE IF NOT EXISTS {} ({}, reason TEXT NOT NULL, size INTEGER NOT NULL, payload BLOB NOT NULL);",
        quoted(&table.dead_letters()),
        provenance_columns(table),
    )
}

fn insert(table: &Table) -> String {
    let fields = table.columns.iter().map(|column| quoted(&column.name));
    let names: Vec<_> =
        fields.chain(Provenance::ALL.map(|provenance| quoted(&table.name_of(provenance)))).collect();
    insert_into(table, &table.name, &names)
}

fn insert_dead(table: &Table) -> String {
    let names: Vec<_> = ["reason", "size", "payload"]
        .map(quoted)
        .into_iter()
        .chain(Provenance::ALL.map(|provenance| quoted(&table.name_of(provenance))))
        .collect();
    insert_into(table, &table.dead_letters(), &names)
}

/// What is there under its identity stays, and is no error. Any other constraint of the table is one.
fn insert_into(table: &Table, name: &str, names: &[String]) -> String {
    let places = vec!["?"; names.len()].join(", ");
    let [hash, conflict] =
        [Provenance::PayloadHash, Provenance::Conflict].map(|it| quoted(&table.name_of(it)));
    let identity = table.identity();
    format!(
        "INSERT INTO {} ({}) VALUES ({places}) ON CONFLICT ({identity}) WHERE {conflict} = 0 DO NOTHING \
         ON CONFLICT ({identity}, {hash}) WHERE {conflict} = 1 DO NOTHING",
        quoted(name),
        names.join(", ")
    )
}

impl Find {
    fn new(table: &Table, name: &str) -> Self {
        let [hash, conflict, received] =
            [Provenance::PayloadHash, Provenance::Conflict, Provenance::Received]
                .map(|provenance| quoted(&table.name_of(provenance)));
        let identity =
            Provenance::IDENTITY.map(|provenance| format!("{} = ?", quoted(&table.name_of(provenance))));
        let select =
            format!("SELECT {hash}, {received} FROM {} WHERE {}", quoted(name), identity.join(" AND "));
        Self {
            first: format!("{select} AND {conflict} = 0"),
            beside: format!("{select} AND {conflict} = 1 AND {hash} = ?"),
        }
    }
}

/// The insertion of one row: all but where it came from is bound.
struct Insert<'a> {
    statement: CachedStatement<'a>,
    connection: &'a Connection,
    find: &'a Find,
    again: bool,
}

impl Insert<'_> {
    /// Inserts the row whose own values are bound to the first `bound` parameters.
    #[inline]
    fn put(&mut self, bound: usize, source: &RowSource<'_>) -> rusqlite::Result<SaveOutcome> {
        bind_source(&mut self.statement, bound, source)?;
        if self.statement.raw_execute()? > 0 {
            return Ok(SaveOutcome::Kept);
        }
        self.put_beside(bound, source)
    }

    /// The same, when the identity is there already.
    #[cold]
    fn put_beside(&mut self, bound: usize, source: &RowSource<'_>) -> rusqlite::Result<SaveOutcome> {
        let (Some(origin), Some(hash)) = (source.origin, source.hash) else {
            return Ok(SaveOutcome::Duplicate);
        };
        let (publisher, number) = (origin.publisher as i64, origin.sequence_number as i64);
        let fields = |row: &rusqlite::Row<'_>| Ok((row.get::<_, Option<Vec<u8>>>(0)?, row.get::<_, i64>(1)?));
        // What was tried before and is there with the same time of receipt was saved then.
        let kept_before = |received: Option<i64>| self.again && received == Some(source.received);
        let mut first = self.connection.prepare_cached(&self.find.first)?;
        let first = first.query_row((publisher, number, source.record), fields).optional()?;
        // A row without a hash was inserted by another program: only its identity can be compared.
        if let Some((stored, received)) = first
            && stored.is_none_or(|stored| stored == hash.0)
        {
            return Ok(if kept_before(Some(received)) { SaveOutcome::Kept } else { SaveOutcome::Duplicate });
        }
        self.statement.raw_bind_parameter(bound + Provenance::ALL.len(), true)?;
        if self.statement.raw_execute()? > 0 {
            return Ok(SaveOutcome::KeptBeside);
        }
        let mut beside = self.connection.prepare_cached(&self.find.beside)?;
        let beside = beside.query_row((publisher, number, source.record, &hash.0[..]), fields).optional()?;
        Ok(if kept_before(beside.map(|it| it.1)) { SaveOutcome::KeptBeside } else { SaveOutcome::Duplicate })
    }
}

/// Binds where a row came from to the parameters behind the first `after`.
#[inline]
fn bind_source(statement: &mut Statement<'_>, after: usize, source: &RowSource<'_>) -> rusqlite::Result<()> {
    let number = |number: Option<u64>| number.map(|number| number as i64);
    statement.raw_bind_parameter(after + 1, source.topic)?;
    statement.raw_bind_parameter(after + 2, number(source.origin.map(|origin| origin.publisher)))?;
    statement.raw_bind_parameter(after + 3, number(source.origin.map(|origin| origin.sequence_number)))?;
    statement.raw_bind_parameter(after + 4, source.record)?;
    statement.raw_bind_parameter(after + 5, source.received)?;
    statement.raw_bind_parameter(after + 6, source.hash.as_ref().map(|hash| &hash.0[..]))?;
    statement.raw_bind_parameter(after + 7, false)
}

/// Binds a value so that all its bits come back. SQLite makes NULL of a NaN, and 0 of −0 in a column of numbers: these
/// go in as the eight bytes of the double, most significant first.
#[inline]
fn bind(
    statement: &mut Statement<'_>,
    position: usize,
    cell: Cell<'_>,
    kind: ColumnKind,
) -> rusqlite::Result<()> {
    let double = |statement: &mut Statement<'_>, value: f64| {
        if value.is_nan() || value.to_bits() == (-0.0_f64).to_bits() {
            statement.raw_bind_parameter(position, &value.to_bits().to_be_bytes()[..])
        } else {
            statement.raw_bind_parameter(position, value)
        }
    };
    if let Some(literal) = literal::of(cell, kind) {
        return statement.raw_bind_parameter(position, literal);
    }
    match cell {
        Cell::Null => statement.raw_bind_parameter(position, Null),
        Cell::Boolean(value) => statement.raw_bind_parameter(position, value),
        Cell::Integer(value) => statement.raw_bind_parameter(position, value),
        Cell::Long(value) => statement.raw_bind_parameter(position, value),
        Cell::Float(value) if value.is_nan() => {
            // Not by way of a double, which may change what is in it.
            statement.raw_bind_parameter(position, &value.to_bits().to_be_bytes()[..])
        }
        Cell::Float(value) => double(statement, value.into()),
        Cell::Double(value) => double(statement, value),
        Cell::Bytes(bytes) => statement.raw_bind_parameter(position, bytes),
        Cell::Text(text) => statement.raw_bind_parameter(position, text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_differ_in_case_alone_are_refused_by_their_names() {
        let directory = tempfile::tempdir().unwrap();
        let column = |name: &str| Column { name: name.to_owned(), kind: ColumnKind::Bytes, nullable: false };
        let table = Table::new("t".to_owned(), ["reading", "b", "Reading"].map(column).to_vec());
        let mut store = Sqlite::new(directory.path().join("rows.db"), table, Durability::Full);
        let StoreError::Unfit(line) = store.open().unwrap_err() else { panic!() };
        assert!(line.contains("fields reading and Reading differ in case alone"), "{line}");
    }

    #[test]
    fn a_file_that_is_there_keeps_its_page_size() {
        let directory = tempfile::tempdir().unwrap();
        for (before, after) in [(None, PAGE_BYTES), (Some(4_096), 4_096)] {
            let path = directory.path().join(format!("{after}.db"));
            if let Some(size) = before {
                let there = Connection::open(&path).unwrap();
                there.pragma_update(None, "page_size", size).unwrap();
                there.execute_batch("CREATE TABLE another (a)").unwrap();
            }
            let mut store = Sqlite::new(path, Table::new("t".to_owned(), Vec::new()), Durability::Full);
            store.open().unwrap();
            let connection = store.connection.unwrap();
            let of = |pragma: &str| connection.pragma_query_value(None, pragma, |row| row.get::<_, u32>(0));
            assert_eq!(of("page_size").unwrap(), after);
            assert_eq!(of("wal_autocheckpoint").unwrap(), CHECKPOINT_BYTES / after);
        }
    }
}
