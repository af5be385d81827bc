//! PostgreSQL: a batch is one binary COPY into the table, which is the fastest way in. COPY knows no ON CONFLICT: a
//! batch with a row that is there already goes by way of a temporary table.

use super::database::Database;
use super::literal;
use super::{
    Durability, Fate, Part, Saved, Stock, Store, earlier_index, indexes, of_earlier_weir, without_indexes,
};
use crate::batch::{Batch, Source};
use crate::column::{Column, Kind, Provenance, Table, quoted};
use crate::error::StoreError;
use crate::rows::Cell;
use postgres::error::SqlState;
use postgres::types::ToSql;
use postgres::{Client, Error, GenericClient, Row};
use std::borrow::Cow;
use std::io::Write;
use weir_record::TimeUnit;

/// Microseconds from 1970 to 2000, where PostgreSQL's time begins.
const EPOCH: i64 = 946_684_800_000_000;

/// The same in days.
const EPOCH_DAYS: i32 = 10_957;

/// After a batch with a row that was saved already, this many batches are saved by the way that bears such rows. After a
/// reconnection the broker sends the messages in flight again, so more of them are likely.
const CAREFUL: u32 = 16;

/// A row of up to this many bytes stays in one piece; it is the largest `toast_tuple_target` (PostgreSQL, "CREATE TABLE"). From 2 kB on
/// it would be compressed, and if that is of no use, which numbers rarely are, cut up and put into another table.
const INLINE_BYTES: u32 = 8_160;

/// The temporary table.
const STAGE: &str = "weir_stage";

/// Bytes of a piece of a COPY.
const COPY_PIECE: usize = 64 << 10;

/// What every binary COPY begins with ("COPY", "Binary Format").
const COPY_HEADER: &[u8] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// A table in a database.
pub(crate) struct Postgres {
    database: Database,
    table: Table,
    durability: Durability,
    client: Option<Client>,
    /// How the columns are written, those of the record first, then [`Provenance::ALL`].
    types: Vec<Type>,
    statements: Statements,
    /// Batches that still go by way of the temporary table.
    careful: u32,
    buffer: Vec<u8>,
}

struct Statements {
    copy: String,
    stage: String,
    copy_stage: String,
    insert: String,
    insert_beside: String,
    again: String,
    bury: String,
    buried: String,
    buried_beside: String,
}

/// Types of PostgreSQL that rows are written into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    Bool,
    Int4,
    Int8,
    Float4,
    Float8,
    Bytea,
    Text,
    Jsonb,
    Timestamp,
    Date,
    Time,
    Numeric,
    Uuid,
}

impl Type {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "bool" => Self::Bool,
            "int4" => Self::Int4,
            "int8" => Self::Int8,
            "float4" => Self::Float4,
            "float8" => Self::Float8,
            "bytea" => Self::Bytea,
            // JSON has the binary form of text.
            "text" | "varchar" | "json" => Self::Text,
            "jsonb" => Self::Jsonb,
            "timestamptz" | "timestamp" => Self::Timestamp,
            "date" => Self::Date,
            "time" => Self::Time,
            "numeric" => Self::Numeric,
            "uuid" => Self::Uuid,
            _ => return None,
        })
    }

    fn takes(self, kind: Kind) -> bool {
        match kind {
            Kind::Boolean => self == Self::Bool,
            Kind::Integer => matches!(self, Self::Int4 | Self::Int8),
            Kind::Long => self == Self::Int8,
            Kind::Float => matches!(self, Self::Float4 | Self::Float8),
            Kind::Double => self == Self::Float8,
            Kind::Bytes => self == Self::Bytea,
            Kind::Text => self == Self::Text,
            Kind::Json => matches!(self, Self::Text | Self::Jsonb),
            // An earlier weir made columns of numbers, texts and bytes for what has a type of its own.
            Kind::Date => matches!(self, Self::Date | Self::Int4 | Self::Int8),
            Kind::Time(TimeUnit::Millis) => matches!(self, Self::Time | Self::Int4 | Self::Int8),
            Kind::Time(_) => matches!(self, Self::Time | Self::Int8),
            // A timestamp of PostgreSQL ends at microseconds.
            Kind::Timestamp { unit: TimeUnit::Nanos, .. } => self == Self::Int8,
            Kind::Timestamp { .. } => matches!(self, Self::Timestamp | Self::Int8),
            Kind::Decimal { .. } => matches!(self, Self::Numeric | Self::Bytea),
            Kind::Uuid => matches!(self, Self::Uuid | Self::Text | Self::Bytea),
        }
    }

    fn takes_provenance(self, provenance: Provenance) -> bool {
        match provenance {
            Provenance::Topic => self == Self::Text,
            Provenance::Publisher | Provenance::SequenceNumber => self == Self::Int8,
            Provenance::Record => matches!(self, Self::Int4 | Self::Int8),
            Provenance::Received => matches!(self, Self::Timestamp | Self::Int8),
            Provenance::PayloadHash => self == Self::Bytea,
            Provenance::Conflict => self == Self::Bool,
        }
    }
}

/// The type that a new table gets.
fn type_of(kind: Kind) -> Cow<'static, str> {
    let name = match kind {
        Kind::Boolean => "boolean",
        Kind::Integer => "integer",
        Kind::Long | Kind::Timestamp { unit: TimeUnit::Nanos, .. } => "bigint",
        Kind::Float => "real",
        Kind::Double => "double precision",
        Kind::Bytes => "bytea",
        Kind::Text => "text",
        Kind::Json => "json",
        Kind::Date => "date",
        Kind::Time(_) => "time",
        Kind::Timestamp { utc: true, .. } => "timestamptz",
        Kind::Timestamp { utc: false, .. } => "timestamp",
        Kind::Decimal { precision, scale } => return format!("numeric({precision}, {scale})").into(),
        Kind::Uuid => "uuid",
    };
    name.into()
}

fn provenance_type(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Topic => "text",
        Provenance::Publisher | Provenance::SequenceNumber => "bigint",
        Provenance::Record => "integer",
        Provenance::Received => "timestamptz",
        Provenance::PayloadHash => "bytea",
        Provenance::Conflict => "boolean",
    }
}

impl Statements {
    fn new(table: &Table) -> Self {
        let names = Provenance::ALL.map(|provenance| quoted(&table.name_of(provenance)));
        let provenance = names.join(", ");
        let [_, publisher, number, record, received, hash, conflict] = names;
        let identity = table.identity();
        let fields: String = table.columns.iter().map(|column| quoted(&column.name) + ", ").collect();
        let (name, dead) = (quoted(&table.name), quoted(&table.dead_letters()));
        let columns = format!("{fields}{provenance}");
        // `Conflict` is the last of all.
        let staged = columns.strip_suffix(&conflict).unwrap_or(&columns);
        let same =
            [&publisher, &number, &record].map(|column| format!("t.{column} = s.{column}")).join(" AND ");
        // Of these two the one finds rows that are not in conflict, the other those that are. A row without a hash was
        // inserted by another program: only its identity can be compared.
        let first = format!("ON CONFLICT ({identity}) WHERE NOT {conflict} DO NOTHING");
        let beside = format!("ON CONFLICT ({identity}, {hash}) WHERE {conflict} DO NOTHING");
        let known = format!("{publisher} = $1 AND {number} = $2 AND {record} = $3");
        let microseconds = format!("(extract(epoch FROM {received}) * 1000000)::bigint");
        Self {
            copy: format!("COPY {name} ({columns}) FROM STDIN BINARY"),
            stage: format!(
                "CREATE TEMPORARY TABLE IF NOT EXISTS {STAGE} ON COMMIT DELETE ROWS AS SELECT {columns} FROM {name} \
                 WITH NO DATA"
            ),
            copy_stage: format!("COPY {STAGE} ({columns}) FROM STDIN BINARY"),
            insert: format!("INSERT INTO {name} ({columns}) SELECT {columns} FROM {STAGE} {first}"),
            insert_beside: format!(
                "INSERT INTO {name} ({columns}) SELECT {staged}true FROM {STAGE} s WHERE s.{publisher} IS NOT NULL \
                 AND NOT EXISTS (SELECT 1 FROM {name} t WHERE {same} AND NOT t.{conflict} \
                 AND (t.{hash} = s.{hash} OR t.{hash} IS NULL)) {beside}"
            ),
            again: format!(
                "SELECT count(*), count(*) FILTER (WHERE beside) FROM (SELECT bool_or(t.{conflict}) AS beside \
                 FROM {STAGE} s JOIN {name} t ON {same} AND t.{hash} = s.{hash} AND t.{received} = s.{received} \
                 GROUP BY s.{publisher}, s.{number}, s.{record}, s.{hash}) AS found"
            ),
            bury: format!(
                "INSERT INTO {dead} ({provenance}, reason, size, payload) VALUES ($1, $2, $3, $4, \
                 to_timestamp(0) + $5::bigint * interval '1 microsecond', $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING"
            ),
            buried: format!("SELECT {hash}, {microseconds} FROM {dead} WHERE {known} AND NOT {conflict}"),
            buried_beside: format!(
                "SELECT {hash}, {microseconds} FROM {dead} WHERE {known} AND {conflict} AND {hash} = $4"
            ),
        }
    }
}

impl Postgres {
    pub(crate) fn new(database: Database, table: Table, durability: Durability) -> Self {
        let statements = Statements::new(&table);
        Self {
            database,
            table,
            durability,
            client: None,
            types: Vec::new(),
            statements,
            careful: 0,
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
        format!(
            "CREATE TABLE IF NOT EXISTS {} ({fields}{provenance}) WITH (toast_tuple_target = {INLINE_BYTES})",
            quoted(&table.name)
        )
    }

    fn create_others(&self) -> String {
        let table = &self.table;
        let provenance = Provenance::ALL
            .map(|it| format!("{} {}", quoted(&table.name_of(it)), provenance_type(it)))
            .join(", ");
        format!(
            "{} CREATE TABLE IF NOT EXISTS {} ({provenance}, reason text NOT NULL, size bigint NOT NULL, \
             payload bytea NOT NULL); {}",
            self.create_indexes(&table.name),
            quoted(&table.dead_letters()),
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

    /// Whether an earlier weir made the table, or the one of its dead letters.
    fn is_of_earlier_weir(&self, client: &mut Client) -> Result<bool, Error> {
        let query = "SELECT EXISTS (SELECT 1 FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
                     WHERE i.indrelid = to_regclass($1) AND c.relname = $2::text::name) \
                     OR to_regclass($3) IS NOT NULL AND NOT EXISTS (SELECT 1 FROM pg_attribute \
                     WHERE attrelid = to_regclass($3) AND attname = $4)";
        let [rows, dead] = [&self.table.name, &self.table.dead_letters()].map(|name| quoted(name));
        let hash = self.table.name_of(Provenance::PayloadHash);
        Ok(client.query_one(query, &[&rows, &earlier_index(&self.table), &dead, &hash])?.get(0))
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
                     --table",
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
                 another table with --table"
            ))),
            None => Ok(types),
        }
    }

    /// Copies rows into a table, piece by piece: the server takes one in while the next is made.
    fn copy(
        client: &mut impl GenericClient,
        statement: &str,
        types: &[Type],
        columns: &[Column],
        batch: &Batch,
        part: &Part,
        buffer: &mut Vec<u8>,
    ) -> Result<(), Failed> {
        let mut writer = client.copy_in(statement)?;
        let mut put_rows = || {
            buffer.clear();
            buffer.extend_from_slice(COPY_HEADER);
            let (fields, provenance) = types.split_at(types.len() - Provenance::ALL.len());
            for row in part.rows.clone() {
                buffer.extend_from_slice(&(types.len() as i16).to_be_bytes());
                for ((cell, kind), column) in batch.rows.cells(row).zip(fields).zip(columns) {
                    put(cell, *kind, column.kind, buffer);
                }
                put_source(&batch.source(row), provenance, buffer);
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
            return Err(writer.finish().err().map_or(Failed::Link(error), Failed::Database));
        }
        writer.finish()?;
        Ok(())
    }

    fn write(&mut self, batch: &Batch, part: &Part) -> Result<Saved, Failed> {
        let Self { client, types, table: Table { columns, .. }, statements, careful, buffer, .. } = self;
        let Some(client) = client else {
            return Err(Failed::Link(std::io::ErrorKind::NotConnected.into()));
        };
        let rows = part.rows.len() as u64;
        if rows > 0 && part.dead.is_empty() && !part.again && *careful == 0 {
            match Self::copy(client, &statements.copy, types, columns, batch, part, buffer) {
                Ok(()) => return Ok(Saved { rows, ..Saved::default() }),
                Err(Failed::Database(error)) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {}
                Err(error) => return Err(error),
            }
        }
        *careful = careful.saturating_sub(1);
        let mut saved = Saved::default();
        let mut transaction = client.transaction()?;
        if rows > 0 {
            transaction.batch_execute(&statements.stage)?;
            Self::copy(&mut transaction, &statements.copy_stage, types, columns, batch, part, buffer)?;
            if part.again {
                let before = transaction.query_one(&statements.again, &[])?;
                saved.rows += before.get::<_, i64>(0) as u64;
                saved.conflict += before.get::<_, i64>(1) as u64;
            }
            saved.rows += transaction.execute(&statements.insert, &[])?;
            if saved.rows < rows {
                let beside = transaction.execute(&statements.insert_beside, &[])?;
                saved.rows += beside;
                saved.conflict += beside;
            }
            saved.duplicate += rows.saturating_sub(saved.rows);
            if saved.duplicate + saved.conflict > 0 {
                *careful = CAREFUL;
            }
        }
        for dead in &batch.dead[part.dead.clone()] {
            let (source, payload, size) = batch.dead_source(dead);
            // No text of PostgreSQL holds U+0000.
            let reason = dead.reason.replace('\0', "");
            let letter = DeadLetterRow { source, reason: &reason, size: size as i64, payload };
            saved.count(letter.bury(&mut transaction, statements, part.again)?, false);
        }
        transaction.commit()?;
        Ok(saved)
    }
}

/// A dead letter as its table has it.
struct DeadLetterRow<'a> {
    source: Source<'a>,
    reason: &'a str,
    size: i64,
    payload: &'a [u8],
}

impl DeadLetterRow<'_> {
    fn bury<C: GenericClient>(
        &self,
        client: &mut C,
        statements: &Statements,
        again: bool,
    ) -> Result<Fate, Error> {
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
            client.execute(&statements.bury, &parameters)
        };
        if put(client, false)? > 0 {
            return Ok(Fate::Kept);
        }
        // As in SQLite: see `put_beside` there.
        let there = |row: &Row| (row.get::<_, Option<Vec<u8>>>(0), row.get::<_, i64>(1));
        let kept_before = |received: Option<i64>| again && received == Some(source.received);
        let first = client.query_opt(&statements.buried, &[&publisher, &number, &record])?;
        if let Some((stored, received)) = first.as_ref().map(there)
            && (stored.is_none() || stored.as_deref() == hash)
        {
            return Ok(if kept_before(Some(received)) { Fate::Kept } else { Fate::Duplicate });
        }
        if put(client, true)? > 0 {
            return Ok(Fate::KeptBeside);
        }
        let beside = client.query_opt(&statements.buried_beside, &[&publisher, &number, &record, &hash])?;
        let received = beside.as_ref().map(|row| there(row).1);
        Ok(if kept_before(received) { Fate::KeptBeside } else { Fate::Duplicate })
    }
}

/// Why a batch did not go in.
enum Failed {
    Database(Error),
    Link(std::io::Error),
}

impl From<Error> for Failed {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

impl Store for Postgres {
    fn open(&mut self) -> Result<(), StoreError> {
        self.client = None;
        let mut client =
            self.database.connect(self.durability).map_err(|error| self.database.sort(&error))?;
        // Two ingesters that start at once may both try to create a table, and one of them would fail because it exists.
        let lock = "SELECT pg_advisory_lock(hashtext('weir ingest'))";
        let unlock = "SELECT pg_advisory_unlock(hashtext('weir ingest'))";
        client.batch_execute(lock).map_err(|error| self.database.sort(&error))?;
        if self.is_of_earlier_weir(&mut client).map_err(|error| self.database.sort(&error))? {
            return Err(of_earlier_weir(&self.database, &self.table));
        }
        client.batch_execute(&self.create()).map_err(|error| self.database.sort(&error))?;
        self.types = self.fit(&mut client)?;
        client.batch_execute(&self.create_others()).map_err(|error| self.database.sort(&error))?;
        for name in [&self.table.name, &self.table.dead_letters()] {
            let query = "SELECT count(*) FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid \
                         WHERE i.indrelid = to_regclass($1) AND c.relname IN ($2::text::name, $3::text::name)";
            let [first, beside] = indexes(name);
            let found = client.query_one(query, &[&quoted(name), &first, &beside]);
            if found.map_err(|error| self.database.sort(&error))?.get::<_, i64>(0) < 2 {
                return Err(without_indexes(&self.database, name));
            }
        }
        client.batch_execute(unlock).map_err(|error| self.database.sort(&error))?;
        self.client = Some(client);
        Ok(())
    }

    fn save(&mut self, batch: &Batch, part: &Part) -> Result<Saved, StoreError> {
        self.write(batch, part).map_err(|failed| match failed {
            Failed::Database(error) => self.database.sort(&error),
            Failed::Link(error) => StoreError::Unavailable(format!("{}: {error}", self.database)),
        })
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        self.client = None;
        let mut client =
            self.database.connect(self.durability).map_err(|error| self.database.sort(&error))?;
        let [rows, dead] = [&self.table.name, &self.table.dead_letters()].map(|name| quoted(name));
        client
            .batch_execute(&format!("DROP TABLE IF EXISTS {rows}, {dead}"))
            .map_err(|error| self.database.sort(&error))
    }

    fn stock(&mut self) -> Result<Stock, StoreError> {
        let [rows, dead] = [&self.table.name, &self.table.dead_letters()].map(|name| quoted(name));
        let query = format!(
            "SELECT (SELECT count(*) FROM {rows}), (SELECT count(*) FROM {dead}), \
             pg_total_relation_size(to_regclass($1))"
        );
        let Some(client) = &mut self.client else {
            return Err(StoreError::Unavailable(format!("{}: not connected", self.database)));
        };
        let row = client.query_one(&query, &[&rows]).map_err(|error| self.database.sort(&error))?;
        let number = |column| row.get::<_, i64>(column) as u64;
        Ok(Stock { rows: number(0), dead: number(1), bytes: number(2) })
    }

    fn name(&self) -> String {
        self.database.to_string()
    }
}

/// Writes a value as the type of its column has it; behind its length.
#[inline]
fn put(cell: Cell<'_>, kind: Type, meaning: Kind, out: &mut Vec<u8>) {
    match (cell, kind) {
        (Cell::Null, _) => out.extend_from_slice(&(-1_i32).to_be_bytes()),
        // Of what is far from any date the decoder has made a dead letter.
        (Cell::Integer(days), Type::Date) => put_bytes(&(days - EPOCH_DAYS).to_be_bytes(), out),
        (Cell::Integer(value), Type::Time) => put_bytes(&micros(value.into(), meaning).to_be_bytes(), out),
        (Cell::Long(value), Type::Time) => put_bytes(&micros(value, meaning).to_be_bytes(), out),
        (Cell::Long(value), Type::Timestamp) => {
            put_bytes(&(micros(value, meaning) - EPOCH).to_be_bytes(), out);
        }
        (Cell::Bytes(bytes), Type::Numeric) => {
            let at = out.len();
            out.extend_from_slice(&[0; 4]);
            let scale = if let Kind::Decimal { scale, .. } = meaning { scale } else { 0 };
            literal::put_numeric(bytes, scale, out);
            let length = (out.len() - at - 4) as i32;
            out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
        (Cell::Bytes(bytes), Type::Text) => {
            put_bytes(literal::uuid(bytes).unwrap_or_default().as_bytes(), out);
        }
        (Cell::Boolean(value), _) => put_bytes(&[value.into()], out),
        (Cell::Integer(value), Type::Int8) => put_bytes(&i64::from(value).to_be_bytes(), out),
        (Cell::Integer(value), _) => put_bytes(&value.to_be_bytes(), out),
        (Cell::Long(value), _) => put_bytes(&value.to_be_bytes(), out),
        (Cell::Float(value), Type::Float8) => put_bytes(&f64::from(value).to_bits().to_be_bytes(), out),
        (Cell::Float(value), _) => put_bytes(&value.to_bits().to_be_bytes(), out),
        (Cell::Double(value), _) => put_bytes(&value.to_bits().to_be_bytes(), out),
        (Cell::Bytes(bytes), _) => put_bytes(bytes, out),
        (Cell::Text(text), Type::Jsonb) => {
            out.extend_from_slice(&(text.len() as i32 + 1).to_be_bytes());
            out.push(1);
            out.extend_from_slice(text.as_bytes());
        }
        (Cell::Text(text), _) => put_bytes(text.as_bytes(), out),
    }
}

/// A time in microseconds.
fn micros(value: i64, meaning: Kind) -> i64 {
    match meaning {
        Kind::Time(TimeUnit::Millis) | Kind::Timestamp { unit: TimeUnit::Millis, .. } => value * 1_000,
        _ => value,
    }
}

#[inline]
fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(&(bytes.len() as i32).to_be_bytes());
    out.extend_from_slice(bytes);
}

#[inline]
fn put_source(source: &Source<'_>, types: &[Type], out: &mut Vec<u8>) {
    put_bytes(source.topic.as_bytes(), out);
    match source.origin {
        Some(origin) => {
            put_bytes(&origin.publisher.to_be_bytes(), out);
            put_bytes(&origin.sequence_number.to_be_bytes(), out);
        }
        None => out.extend_from_slice(&[0xff; 8]),
    }
    match types[3] {
        Type::Int8 => put_bytes(&u64::from(source.record).to_be_bytes(), out),
        _ => put_bytes(&source.record.to_be_bytes(), out),
    }
    match types[4] {
        Type::Timestamp => put_bytes(&(source.received - EPOCH).to_be_bytes(), out),
        _ => put_bytes(&source.received.to_be_bytes(), out),
    }
    match &source.hash {
        Some(hash) => put_bytes(&hash.0, out),
        None => out.extend_from_slice(&[0xff; 4]),
    }
    // In conflict is what the table holds already, and that does not come by this way.
    put_bytes(&[false.into()], out);
}
