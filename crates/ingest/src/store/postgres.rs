//! PostgreSQL: a batch is one binary COPY into the table, which is the fastest way in. COPY knows no ON CONFLICT: a
//! batch with a row that is there already goes by way of a temporary table.

mod outcome;
mod partitions;
mod statements;
mod types;

use super::database::{Database, Session};
use super::{Contents, Durability, Part, SaveOutcome, Saved, Store, indexes, without_indexes};
use crate::batch::{Batch, DeadLetter, RowSource};
use crate::column::{Provenance, Table, quoted};
use crate::error::StoreError;
use outcome::{Commit, Outcome};
use partitions::{Partitions, day_of};
use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client, Error, GenericClient, Row, Transaction};
use statements::Statements;
use std::io::Write;
use std::time::Duration;
use types::{PROVENANCE, Type, provenance_type, put, put_identity, put_source, type_of};
use weir_setting::{PARTITION, STATEMENT_TIMEOUT, TABLE};

/// After a batch with a row that was saved already, this many batches are saved by the way that bears such rows. After a
/// reconnection the broker sends the messages in flight again, so more of them are likely.
const CAREFUL: u32 = 16;

/// A row of up to this many bytes stays in one piece; it is the largest `toast_tuple_target` (PostgreSQL, "CREATE TABLE"). From 2 kB on
/// it would be compressed, and if that is of no use, which numbers rarely are, cut up and put into another table.
const INLINE_BYTES: u32 = 8_160;

/// Bytes of a piece of a COPY.
const COPY_PIECE: usize = 64 << 10;

/// What every binary COPY begins with ("COPY", "Binary Format").
const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// A table in a database.
pub(crate) struct Postgres {
    database: Database,
    table: Table,
    durability: Durability,
    client: Option<Session>,
    /// How the columns are written, those of the record first, then [`Provenance::ALL`].
    types: Vec<Type>,
    statements: Statements,
    partitions: Partitions,
    /// Batches that still go by way of the temporary table.
    careful: u32,
    /// The transaction whose COMMIT was sent, until its answer is there, of rows that have nothing to be recognised by.
    unanswered: Option<Commit>,
    /// Whether the server can say what became of a transaction.
    names_transactions: bool,
    buffer: Vec<u8>,
}

impl Postgres {
    pub(crate) fn new(database: Database, table: Table, durability: Durability) -> Self {
        let statements = Statements::new(&table, database.is_by_day());
        Self {
            database,
            table,
            durability,
            client: None,
            types: Vec::new(),
            statements,
            partitions: Partitions::default(),
            careful: 0,
            unanswered: None,
            names_transactions: false,
            buffer: Vec::new(),
        }
    }

    fn create(&self) -> String {
        let table = &self.table;
        let provenance = Provenance::ALL
            .map(|it| format!("{} {}", quoted(&table.name_of(it)), provenance_type(it)))
            .join(", ");
        let fields: String = table
            .columns
            .iter()
            .map(|column| {
                let not_null = if column.nullable { "" } else { " NOT NULL" };
                format!("{} {}{not_null}, ", quoted(&column.name), type_of(column.kind))
            })
            .collect();
        let rest = if self.database.is_by_day() {
            format!("PARTITION BY RANGE ({})", quoted(&table.name_of(Provenance::Received)))
        } else {
            format!("WITH (toast_tuple_target = {INLINE_BYTES})")
        };
        format!("CREATE TABLE IF NOT EXISTS {} ({fields}{provenance}) {rest}", quoted(&table.name))
    }

    /// The table whose indexes say which rows are there.
    fn known_in(&self) -> String {
        if self.database.is_by_day() { self.table.identities() } else { self.table.name.clone() }
    }

    /// Whether a table that is there is partitioned as it is to be.
    fn check_partitions(&self, client: &mut Client) -> Result<(), StoreError> {
        let query = "SELECT relkind = 'p' FROM pg_class WHERE oid = to_regclass($1)";
        let name = &self.table.name;
        let found = client.query_opt(query, &[&quoted(name)]).map_err(|error| self.database.sort(&error))?;
        let words = match (found.map(|row| row.get::<_, bool>(0)), self.database.is_by_day()) {
            (Some(true), false) => {
                format!("is partitioned; say {}", PARTITION.to("day").beside_flag(" (partition: day)"))
            }
            (Some(false), true) => {
                format!("is not partitioned; leave out {}", PARTITION.beside_flag(" (partition)"))
            }
            _ => return Ok(()),
        };
        Err(StoreError::Unfit(format!(
            "{}: table {name} is there and {words}, or name another table with {TABLE}",
            self.database
        )))
    }

    fn create_others(&self) -> String {
        let table = &self.table;
        let provenance =
            Provenance::ALL.map(|it| format!("{} {}", quoted(&table.name_of(it)), provenance_type(it)));
        let known_in = self.known_in();
        let identities = if known_in == table.name {
            String::new()
        } else {
            format!("CREATE TABLE IF NOT EXISTS {} ({});", quoted(&known_in), provenance[1..].join(", "))
        };
        format!(
            "{identities} {} CREATE TABLE IF NOT EXISTS {} ({}, reason text NOT NULL, size bigint NOT NULL, \
             payload bytea NOT NULL); {}",
            self.create_indexes(&known_in),
            quoted(&table.dead_letters()),
            provenance.join(", "),
            self.create_indexes(&table.dead_letters()),
        )
    }

    /// Indexes of the table of this name, that of rows or that of dead letters.
    fn create_indexes(&self, name: &str) -> String {
        let [first, beside] = indexes(name).map(|index| quoted(&index));
        let [hash, conflict] =
            [Provenance::PayloadHash, Provenance::Conflict].map(|it| quoted(&self.table.name_of(it)));
        let (identity, name) = (self.table.identity(), quoted(name));
        format!(
            "CREATE UNIQUE INDEX IF NOT EXISTS {first} ON {name} ({identity}) WHERE NOT {conflict}; \
             CREATE UNIQUE INDEX IF NOT EXISTS {beside} ON {name} ({identity}, {hash}) WHERE {conflict};"
        )
    }

    /// The first table that lacks one of its indexes.
    fn without_indexes(&self, client: &mut Client) -> Result<Option<String>, StoreError> {
        let query = "SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
                     WHERE i.indrelid = to_regclass($1) AND c.relname IN ($2::text::name, $3::text::name)";
        for name in [self.known_in(), self.table.dead_letters()] {
            let [first, beside] = indexes(&name);
            let found = client.query_one(query, &[&quoted(&name), &first, &beside]);
            if found.map_err(|error| self.database.sort(&error))?.get::<_, i64>(0) < 2 {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    /// What is said of a batch whose server is silent.
    fn too_late(&self, batch: Duration) -> String {
        format!(
            "{}: a batch may take {} s, and the server did not even say that it has cancelled it; give it more ({STATEMENT_TIMEOUT}), or \
             see what holds it up",
            self.database,
            batch.as_secs_f64()
        )
    }

    /// Reads the types of the table's columns, and whether the record's fit.
    fn fit(&self, client: &mut Client) -> Result<Vec<Type>, StoreError> {
        let Table { name: table, columns: fields, .. } = &self.table;
        let unfit = |words: String| StoreError::Unfit(format!("{}: table {table} {words}", self.database));
        let columns = client
            .query(
                "SELECT a.attname, t.typname, a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' \
                 FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid \
                 WHERE a.attrelid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped",
                &[&quoted(table)],
            )
            .map_err(|error| self.database.sort(&error))?;
        let columns: Vec<(String, String, bool)> =
            columns.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect();
        let find = |name: &str, wanted: &str| {
            let found = columns.iter().find(|(column, _, _)| column == name);
            found.map(|(_, kind, _)| kind.as_str()).ok_or_else(|| {
                unfit(format!(
                    "has no column {name}; add it (ALTER TABLE {} ADD COLUMN {} {wanted}), or name another table with \
                     {TABLE}",
                    quoted(table),
                    quoted(name)
                ))
            })
        };
        let wrong = |name: &str, found: &str, wanted: &str| {
            unfit(format!("has a column {name} of type {found}; the schema's field needs {wanted}"))
        };
        let mut types = Vec::new();
        for field in fields {
            let wanted = type_of(field.kind);
            let found = find(&field.name, &wanted)?;
            let fitting = Type::named(found).filter(|found| found.takes(field.kind));
            types.push(fitting.ok_or_else(|| wrong(&field.name, found, &wanted))?);
        }
        for provenance in Provenance::ALL {
            let (name, wanted) = (self.table.name_of(provenance), provenance_type(provenance));
            let found = find(&name, wanted)?;
            let fitting = Type::named(found).filter(|found| found.takes_provenance(provenance));
            types.push(fitting.ok_or_else(|| wrong(&name, found, wanted))?);
        }
        let filled = |column: &str| {
            fields.iter().any(|field| field.name == column)
                || Provenance::ALL.iter().any(|it| self.table.name_of(*it) == column)
        };
        match columns.iter().find(|(column, _, must)| *must && !filled(column)) {
            Some((column, _, _)) => Err(unfit(format!(
                "has a column {column} that is NOT NULL, and the schema has no such field; give it a default, or name \
                 another table with {TABLE}"
            ))),
            None => Ok(types),
        }
    }

    /// Copies rows of this many columns into a table, piece by piece: the server takes one in while the next is made.
    fn copy(
        client: &mut impl GenericClient,
        statement: &str,
        width: usize,
        rows: impl Iterator<Item = usize>,
        put_row: impl Fn(usize, &mut Vec<u8>),
        buffer: &mut Vec<u8>,
    ) -> Result<(), BatchFailure> {
        let mut writer = client.copy_in(statement)?;
        let put_rows = || {
            buffer.clear();
            buffer.extend_from_slice(COPY_HEADER);
            for row in rows {
                buffer.extend_from_slice(&(width as i16).to_be_bytes());
                put_row(row, buffer);
                if buffer.len() > COPY_PIECE {
                    writer.write_all(buffer)?;
                    buffer.clear();
                }
            }
            buffer.extend_from_slice(&(-1_i16).to_be_bytes());
            writer.write_all(buffer)
        };
        if let Err(error) = put_rows() {
            // The reason is in what the server answers, if it still does.
            return Err(writer.finish().err().map_or(BatchFailure::Link(error), BatchFailure::Database));
        }
        writer.finish()?;
        Ok(())
    }

    fn write(&mut self, batch: &Batch, part: &Part) -> Result<Saved, BatchFailure> {
        if let Some(saved) = self.saved_before(part)? {
            return Ok(saved);
        }
        let Self { client, types, table, statements, partitions, careful, buffer, database, .. } = self;
        let unanswered = &mut self.unanswered;
        let Some(client) = client else {
            return Err(BatchFailure::Link(std::io::ErrorKind::NotConnected.into()));
        };
        let rows = part.rows.len() as u64;
        let (fields, provenance) = types.split_at(types.len() - Provenance::ALL.len());
        let put_row = |row: usize, out: &mut Vec<u8>| {
            for ((cell, kind), column) in batch.cells(row).zip(fields).zip(&table.columns) {
                put(cell, *kind, column.kind, out);
            }
            put_source(&batch.source(row), provenance, out);
        };
        let is_by_day = database.is_by_day();
        if is_by_day {
            let days = part.rows.clone().map(|row| day_of(batch.source(row).received));
            partitions.make(client, database, table, days).map_err(BatchFailure::Store)?;
        }
        let unmarked = part.rows.clone().filter(|row| batch.source(*row).origin.is_none()).count() as u64;
        let mut dead = batch.dead_letters(part.dead.clone());
        let is_marked = unmarked == 0 && dead.all(|dead| dead.source.origin.is_some());
        let is_named = !is_marked && self.names_transactions;
        if rows > 0 && part.dead.is_empty() && !part.again && *careful == 0 {
            let copy = &statements.copy;
            let saved = Saved { rows, ..Saved::default() };
            let copied = if is_by_day || is_named {
                client.transaction().map_err(BatchFailure::Database).and_then(|mut transaction| {
                    let commit = commit_of(&mut transaction, part, is_named)?;
                    Self::copy(&mut transaction, copy, types.len(), part.rows.clone(), put_row, buffer)?;
                    if is_by_day {
                        let marked = part.rows.clone().filter(|row| batch.source(*row).origin.is_some());
                        let (statement, width) = (&statements.copy_identities, PROVENANCE.len() - 1);
                        let put_row = |row, out: &mut _| put_identity(&batch.source(row), &PROVENANCE, out);
                        Self::copy(&mut transaction, statement, width, marked, put_row, buffer)?;
                    }
                    committed(transaction, unanswered, commit, saved)
                })
            } else {
                Self::copy(&mut **client, copy, types.len(), part.rows.clone(), put_row, buffer)
            };
            match copied {
                Ok(()) => return Ok(saved),
                Err(BatchFailure::Database(error)) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {}
                Err(error) => return Err(error),
            }
        }
        *careful = careful.saturating_sub(1);
        let mut saved = Saved::default();
        let mut transaction = client.transaction()?;
        let commit = commit_of(&mut transaction, part, is_named)?;
        if rows > 0 {
            transaction.batch_execute(&statements.stage)?;
            let copy = &statements.copy_stage;
            Self::copy(&mut transaction, copy, types.len(), part.rows.clone(), put_row, buffer)?;
            saved.rows = transaction.execute(&statements.insert, &[])?;
            if saved.rows < rows {
                let beside = transaction.execute(&statements.insert_beside, &[])?;
                saved.rows += beside;
                saved.conflict += beside;
            }
            if part.again && saved.rows < rows {
                // Whatever of it is there now with the same time of receipt was saved by this attempt or by the one before, which may
                // have been over only while the rows were inserted.
                let there = transaction.query_one(&statements.again, &[])?;
                saved.rows = unmarked + there.get::<_, i64>(0) as u64;
                saved.conflict = there.get::<_, i64>(1) as u64;
            }
            saved.duplicate += rows.saturating_sub(saved.rows);
            if saved.duplicate + saved.conflict > 0 {
                *careful = CAREFUL;
            }
        }
        for DeadLetter { source, reason, payload, size } in batch.dead_letters(part.dead.clone()) {
            // No text of PostgreSQL holds U+0000.
            let reason = reason.replace('\0', "");
            let letter = DeadLetterRow { source, reason: &reason, size: size as i64, payload };
            saved.count(letter.insert(&mut transaction, statements, part.again)?, false);
        }
        committed(transaction, unanswered, commit, saved)?;
        Ok(saved)
    }

    /// What the transaction saved whose COMMIT got no answer, if this is the same part again and it was committed.
    fn saved_before(&mut self, part: &Part) -> Result<Option<Saved>, BatchFailure> {
        let Some(commit) = self.unanswered.take().filter(|commit| part.again && commit.is_of(part)) else {
            return Ok(None);
        };
        let asked = self.client.as_mut().map(|client| commit.outcome(&mut **client));
        match asked {
            Some(Ok(Outcome::Committed(saved))) => Ok(Some(saved)),
            Some(Ok(Outcome::RolledBack | Outcome::Unknown)) => Ok(None),
            Some(Ok(Outcome::InProgress)) => {
                self.unanswered = Some(commit);
                let words = "the last commit got no answer, and is not over; it is asked again before anything is sent twice";
                Err(BatchFailure::Store(StoreError::Unavailable(format!("{}: {words}", self.database))))
            }
            Some(Err(error)) => {
                self.unanswered = Some(commit);
                Err(BatchFailure::Database(error))
            }
            None => {
                self.unanswered = Some(commit);
                Err(BatchFailure::Link(std::io::ErrorKind::NotConnected.into()))
            }
        }
    }
}

/// Names a transaction, if it is to have a name.
fn commit_of(
    transaction: &mut Transaction<'_>,
    part: &Part,
    is_named: bool,
) -> Result<Option<Commit>, Error> {
    if is_named { Commit::of(transaction, part) } else { Ok(None) }
}

/// Commits, and keeps what is asked for if there is no answer.
fn committed(
    transaction: Transaction<'_>,
    unanswered: &mut Option<Commit>,
    commit: Option<Commit>,
    saved: Saved,
) -> Result<(), BatchFailure> {
    *unanswered = commit.map(|commit| commit.with(saved));
    let outcome = transaction.commit();
    // A server that refuses a COMMIT has rolled it back.
    let is_unanswered = outcome.as_ref().is_err_and(|error| error.as_db_error().is_none());
    if !is_unanswered {
        *unanswered = None;
    }
    Ok(outcome?)
}

/// A dead letter as its table has it.
struct DeadLetterRow<'a> {
    source: RowSource<'a>,
    reason: &'a str,
    size: i64,
    payload: &'a [u8],
}

impl DeadLetterRow<'_> {
    fn insert<C: GenericClient>(
        &self,
        client: &mut C,
        statements: &Statements,
        again: bool,
    ) -> Result<SaveOutcome, Error> {
        let Self { source, reason, size, payload } = self;
        let publisher = source.origin.map(|origin| origin.publisher as i64);
        let number = source.origin.map(|origin| origin.sequence_number as i64);
        let record = source.record as i32;
        let hash = source.hash.as_ref().map(|hash| &hash.0[..]);
        let put = |client: &mut C, conflict: bool| {
            let parameters: [&(dyn ToSql + Sync); 10] = [
                &source.topic,
                &publisher,
                &number,
                &record,
                &source.received,
                &hash,
                &conflict,
                reason,
                size,
                payload,
            ];
            client.execute(&statements.insert_dead, &parameters)
        };
        if put(client, false)? > 0 {
            return Ok(SaveOutcome::Kept);
        }
        // As in SQLite: see `put_beside` there.
        let there = |row: &Row| (row.get::<_, Option<Vec<u8>>>(0), row.get::<_, i64>(1));
        let kept_before = |received: Option<i64>| again && received == Some(source.received);
        let first = client.query_opt(&statements.find_dead, &[&publisher, &number, &record])?;
        if let Some((stored, received)) = first.as_ref().map(there)
            && (stored.is_none() || stored.as_deref() == hash)
        {
            return Ok(if kept_before(Some(received)) { SaveOutcome::Kept } else { SaveOutcome::Duplicate });
        }
        if put(client, true)? > 0 {
            return Ok(SaveOutcome::KeptBeside);
        }
        let beside =
            client.query_opt(&statements.find_dead_beside, &[&publisher, &number, &record, &hash])?;
        let received = beside.as_ref().map(|row| there(row).1);
        Ok(if kept_before(received) { SaveOutcome::KeptBeside } else { SaveOutcome::Duplicate })
    }
}

/// Why a batch did not go in.
enum BatchFailure {
    Database(Error),
    Link(std::io::Error),
    Store(StoreError),
}

impl From<Error> for BatchFailure {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl Store for Postgres {
    fn open(&mut self) -> Result<(), StoreError> {
        self.client = None;
        let mut client = self.database.connect(self.durability)?;
        // Two ingesters that start at once may both try to create a table, and one of them would fail because it exists.
        let lock = "SELECT pg_advisory_lock(hashtext('weir ingest'))";
        let unlock = "SELECT pg_advisory_unlock(hashtext('weir ingest'))";
        client.batch_execute(lock).map_err(|error| self.database.sort(&error))?;
        self.partitions.forget();
        self.check_partitions(&mut client)?;
        client.batch_execute(&self.create()).map_err(|error| self.database.sort(&error))?;
        self.types = self.fit(&mut client)?;
        self.names_transactions = match Commit::of(&mut *client, &Part::default()) {
            Ok(commit) => commit.is_some(),
            Err(error) if error.as_db_error().is_some() => false,
            Err(error) => return Err(self.database.sort(&error)),
        };
        // Making an index that is there would wait for whoever holds the table.
        if self.without_indexes(&mut client)?.is_some() {
            client.batch_execute(&self.create_others()).map_err(|error| self.database.sort(&error))?;
            if let Some(name) = self.without_indexes(&mut client)? {
                return Err(without_indexes(&self.database, &name));
            }
        }
        // From here on the server itself ends a batch that takes too long, so that no rows are held by a client that has given up.
        let timeout = self.database.statement_timeout().as_millis();
        let end = format!("{unlock}; SET statement_timeout = {timeout}");
        client.batch_execute(&end).map_err(|error| self.database.sort(&error))?;
        self.client = Some(client);
        Ok(())
    }

    fn save(&mut self, batch: &Batch, part: &Part) -> Result<Saved, StoreError> {
        if let Some(client) = &self.client {
            let [batch, answer] = [self.database.statement_timeout(), self.database.answer_timeout()];
            client.allow(batch + answer, self.too_late(batch));
        }
        let written = self.write(batch, part);
        let expired = self.client.as_ref().and_then(Session::expired);
        if expired.is_none()
            && let Some(client) = &self.client
        {
            client.wait();
        }
        written.map_err(|failed| match failed {
            // A partition that has been dropped is made again; what breaks a constraint of the user's own names it.
            BatchFailure::Database(error) => match error.as_db_error() {
                Some(db) if *db.code() == SqlState::CHECK_VIOLATION && db.constraint().is_none() => {
                    StoreError::Unavailable(format!("{}: {}", self.database, db.message()))
                }
                None => expired.unwrap_or_else(|| self.database.sort(&error)),
                Some(_) => self.database.sort(&error),
            },
            BatchFailure::Store(error) => error,
            BatchFailure::Link(error) => {
                expired.unwrap_or_else(|| StoreError::Unavailable(format!("{}: {error}", self.database)))
            }
        })
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        self.client = None;
        let mut client = self.database.connect(self.durability)?;
        let mut names = vec![self.table.name.clone(), self.table.dead_letters()];
        names.extend(self.database.is_by_day().then(|| self.table.identities()));
        let names: Vec<_> = names.iter().map(|name| quoted(name)).collect();
        client
            .batch_execute(&format!("DROP TABLE IF EXISTS {}", names.join(", ")))
            .map_err(|error| self.database.sort(&error))
    }

    fn contents(&mut self) -> Result<Contents, StoreError> {
        let [rows, dead] = [&self.table.name, &self.table.dead_letters()].map(|name| quoted(name));
        // A partitioned table takes no room itself; its partitions and the table of identities do.
        let size = if self.database.is_by_day() {
            format!(
                "(SELECT coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint FROM pg_inherits \
                 WHERE inhparent = to_regclass($1)) + pg_total_relation_size('{}')",
                quoted(&self.known_in()).replace('\'', "''")
            )
        } else {
            "pg_total_relation_size(to_regclass($1))".to_owned()
        };
        let query = format!("SELECT (SELECT count(*) FROM {rows}), (SELECT count(*) FROM {dead}), {size}");
        let Some(client) = &mut self.client else {
            return Err(StoreError::Unavailable(format!("{}: not connected", self.database)));
        };
        // A large table takes minutes to count.
        let sort = |error| self.database.sort(&error);
        client.batch_execute("SET statement_timeout = 0").map_err(sort)?;
        let row = client.query_one(&query, &[&rows]).map_err(sort)?;
        let timeout = self.database.statement_timeout().as_millis();
        client.batch_execute(&format!("SET statement_timeout = {timeout}")).map_err(sort)?;
        let number = |column| row.get::<_, i64>(column) as u64;
        Ok(Contents { rows: number(0), dead: number(1), bytes: number(2) })
    }

    fn name(&self) -> String {
        self.database.to_string()
    }
}

#[cfg(test)]
mod tests;
