//! ClickHouse, by its HTTP interface: a batch is one INSERT in `RowBinary`. It has no unique index and no transactions: before
//! a batch goes in, the table is asked for the identities that it has of it. What two ingesters insert at the same moment
//! has one key in a `ReplacingMergeTree`, which keeps one row of a key.

mod columns;
mod server;
mod stored;

pub use server::ClickHouse;

use super::{Contents, Durability, Part, Saved, Store};
use crate::batch::{Batch, DeadLetter, RowSource};
use crate::column::{Provenance, Table};
use crate::error::StoreError;
use aws_lc_rs::rand;
use columns::{
    ColumnType, NO_HASH, provenance_type, put, put_bytes, put_source, quoted, text, texts, type_of,
};
use server::Link;
use std::ops::Range;
use stored::StoredRows;
use weir_setting::{DURABILITY, Setting, TABLE};

/// From this version on there are `DateTime64` and `Date32` of the years 1900 to 2299, `fsync_after_insert` and `async_insert`: the
/// first with long-term support that has them all.
const MODERN: (u32, u32) = (22, 3);

/// Records whose identities are looked for at once: what is found takes 45 bytes each, and an answer may have 8 MiB.
const LOOKED_FOR: usize = 50_000;

/// The table of identities that goes with a question.
const WANTED: &str = "weir_wanted";

/// A table in a database.
pub(crate) struct ClickHouseTable {
    server: ClickHouse,
    table: Table,
    durability: Durability,
    opened: Option<OpenServer>,
    /// What the next batch numbers its records without a mark from. It stays while a batch is tried again, so that its records
    /// have the same keys.
    unmarked: u64,
    buffer: Vec<u8>,
}

/// What is known of the server and of its tables.
struct OpenServer {
    link: Link,
    is_modern: bool,
    /// The columns of the record.
    fields: Vec<ColumnType>,
    /// Whether each of both tables, of rows and of dead letters, keeps times as times.
    has_times: [bool; 2],
    /// Whether the table of rows is one that `FINAL` can be said of.
    is_replacing: bool,
}

fn normal_durability() -> Setting<'static> {
    DURABILITY.to("normal").beside_flag(" (durability: normal)")
}

impl ClickHouseTable {
    pub(crate) fn new(server: ClickHouse, table: Table, durability: Durability) -> Self {
        let mut start = [0; 8];
        // Without it two processes could number alike; a system without random numbers makes no TLS and no publishers either.
        let _ = rand::fill(&mut start);
        let unmarked = u64::from_le_bytes(start);
        Self { server, table, durability, opened: None, unmarked, buffer: Vec::new() }
    }

    /// The statement that makes a table of these columns and those that say where a row came from.
    fn create(&self, name: &str, columns: &[String], is_modern: bool) -> String {
        let of = |it| quoted(&self.table.name_of(it));
        let provenance = Provenance::ALL.map(|it| format!("{} {}", of(it), provenance_type(it, is_modern)));
        let key = Provenance::IDENTITY.into_iter().chain([Provenance::PayloadHash]).map(of);
        let settings = match self.durability {
            Durability::Full if is_modern => " SETTINGS fsync_after_insert = 1, fsync_part_directory = 1",
            _ => "",
        };
        format!(
            "CREATE TABLE IF NOT EXISTS {} ({}) ENGINE = ReplacingMergeTree() ORDER BY ({}){settings}",
            quoted(name),
            columns.iter().chain(&provenance).cloned().collect::<Vec<_>>().join(", "),
            key.collect::<Vec<_>>().join(", ")
        )
    }

    /// What is wrong with a table, for good.
    fn unfit(&self, name: &str, words: &str) -> StoreError {
        StoreError::Unfit(format!("{}: table {name} {words}", self.server))
    }

    fn ask_texts(&self, link: &Link, query: &str) -> Result<Vec<String>, StoreError> {
        let answer = link.ask(format!("{query} FORMAT RowBinary").as_bytes())?;
        texts(&answer).ok_or_else(|| self.cut_off())
    }

    fn cut_off(&self) -> StoreError {
        StoreError::Unavailable(format!("{}: its answer is not whole", self.server))
    }

    fn connect(&self) -> Result<OpenServer, StoreError> {
        let link = self.server.connect()?;
        let version = texts(&link.ask_version()?).ok_or_else(|| self.cut_off())?.join("");
        let mut numbers = version.split('.').map_while(|number| number.parse().ok());
        let is_modern = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= MODERN;
        if self.durability == Durability::Full && !is_modern {
            return Err(StoreError::Unfit(format!(
                "{}: ClickHouse {version} answers before what it has inserted is on its disk, and has no setting for that ({}.{} \
                 and later have); say {} to go without",
                self.server,
                MODERN.0,
                MODERN.1,
                normal_durability()
            )));
        }
        let Table { name, columns, .. } = &self.table;
        let fields = columns.iter().map(|column| {
            format!("{} {}", quoted(&column.name), type_of(column.kind, column.nullable, is_modern))
        });
        link.ask(self.create(name, &fields.collect::<Vec<_>>(), is_modern).as_bytes())?;
        let dead = self.table.dead_letters();
        let letter = ["reason String", "size UInt64", "payload String"].map(str::to_owned);
        link.ask(self.create(&dead, &letter, is_modern).as_bytes())?;
        let is_replacing = self.check_engine(&link)?;
        let (fields, rows_have_times) = self.fit(&link, name, true)?;
        let (_, dead_have_times) = self.fit(&link, &dead, false)?;
        Ok(OpenServer {
            link,
            is_modern,
            fields,
            has_times: [rows_have_times, dead_have_times],
            is_replacing,
        })
    }

    /// Whether the table of rows keeps what is inserted, and as safely as is asked for. Returns whether it replaces.
    fn check_engine(&self, link: &Link) -> Result<bool, StoreError> {
        let name = &self.table.name;
        let query = format!(
            "SELECT engine, engine_full FROM system.tables WHERE database = currentDatabase() AND name = {}",
            text(name)
        );
        let found = self.ask_texts(link, &query)?;
        let [engine, full] = &found[..] else {
            return Err(self.unfit(name, "is not to be seen in system.tables"));
        };
        if !engine.ends_with("MergeTree") {
            return Err(self.unfit(
                name,
                &format!("is of the engine {engine}; weir saves into a MergeTree: name another with {TABLE}"),
            ));
        }
        if self.durability == Durability::Full && !full.contains("fsync_after_insert = 1") {
            return Err(self.unfit(
                name,
                &format!(
                    "does not wait for the disk; ALTER TABLE {} MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1, \
                     or say {} to go without",
                    quoted(name),
                    normal_durability()
                ),
            ));
        }
        Ok(engine.contains("Replacing"))
    }

    /// Reads the types of a table's columns: those of the record, if it is the table of rows, and whether the time of receipt is
    /// one.
    fn fit(&self, link: &Link, name: &str, is_rows: bool) -> Result<(Vec<ColumnType>, bool), StoreError> {
        let query = format!(
            "SELECT name, type FROM system.columns WHERE database = currentDatabase() AND table = {}",
            text(name)
        );
        let found = self.ask_texts(link, &query)?;
        let (columns, _) = found.as_chunks::<2>();
        let find = |column: &str, wanted: &str, takes: &dyn Fn(ColumnType) -> bool| {
            let Some([_, kind]) = columns.iter().find(|[name, _]| name == column) else {
                return Err(self.unfit(
                    name,
                    &format!(
                        "has no column {column}; add it (ALTER TABLE {} ADD COLUMN {} {wanted}), or name another table \
                         with {TABLE}",
                        quoted(name),
                        quoted(column)
                    ),
                ));
            };
            ColumnType::named(kind).filter(|kind| takes(*kind)).ok_or_else(|| {
                self.unfit(name, &format!("has a column {column} of type {kind}; weir needs {wanted}"))
            })
        };
        let mut types = Vec::new();
        for field in self.table.columns.iter().filter(|_| is_rows) {
            let wanted = type_of(field.kind, field.nullable, true);
            types.push(find(&field.name, &wanted, &|found| found.takes(field.kind))?);
        }
        let mut has_times = false;
        for provenance in Provenance::ALL {
            let wanted = provenance_type(provenance, true);
            let found =
                find(&self.table.name_of(provenance), wanted, &|found| found.takes_provenance(provenance))?;
            has_times |= found.is_time();
        }
        Ok((types, has_times))
    }

    /// What a table has under the identities of these records.
    fn stored<'a>(
        &self,
        opened: &OpenServer,
        is_rows: bool,
        sources: impl Iterator<Item = RowSource<'a>>,
    ) -> Result<StoredRows, StoreError> {
        let [publisher, number, record, received, hash, conflict] = [
            Provenance::Publisher,
            Provenance::SequenceNumber,
            Provenance::Record,
            Provenance::Received,
            Provenance::PayloadHash,
            Provenance::Conflict,
        ]
        .map(|it| quoted(&self.table.name_of(it)));
        let has_times = opened.has_times[usize::from(!is_rows)];
        let microseconds = if has_times { format!("toUnixTimestamp64Micro({received})") } else { received };
        let dead = self.table.dead_letters();
        let name = quoted(if is_rows { &self.table.name } else { &dead });
        // A row in conflict is asked for by its hash: anyone can put any number of them under one identity.
        let query = format!(
            "SELECT {publisher}, {number}, {record}, {hash}, {conflict}, {microseconds} FROM {name} \
             WHERE ({publisher}, {number}) IN (SELECT p, s FROM {WANTED}) \
             AND ({conflict} = 0 OR ({publisher}, {number}, {hash}) IN (SELECT p, s, h FROM {WANTED})) FORMAT RowBinary"
        );
        let mut stored = StoredRows::default();
        let mut wanted = Vec::new();
        let mut ask = |wanted: &mut Vec<u8>| {
            let rows =
                opened.link.ask_with(&query, WANTED, "p UInt64, s UInt64, h FixedString(16)", wanted)?;
            wanted.clear();
            stored.read(&rows).ok_or_else(|| self.cut_off())
        };
        for source in sources {
            if let Some(origin) = source.origin {
                wanted.extend_from_slice(&origin.publisher.to_le_bytes());
                wanted.extend_from_slice(&origin.sequence_number.to_le_bytes());
                wanted.extend_from_slice(&source.hash.map_or(NO_HASH, |hash| hash.0));
            }
            if wanted.len() >= LOOKED_FOR * (16 + NO_HASH.len()) {
                ask(&mut wanted)?;
            }
        }
        if !wanted.is_empty() {
            ask(&mut wanted)?;
        }
        Ok(stored)
    }

    /// Inserts what is written behind the statement, if anything is.
    fn insert(opened: &OpenServer, statement: usize, buffer: &[u8]) -> Result<(), StoreError> {
        if buffer.len() == statement {
            return Ok(());
        }
        // What is inserted asynchronously may be answered before it is in the table.
        let settings: &[_] = if opened.is_modern { &[("async_insert", "0")] } else { &[] };
        opened.link.insert(settings, buffer)
    }

    fn save_rows(
        &self,
        opened: &OpenServer,
        batch: &Batch,
        rows: Range<usize>,
        again: bool,
        out: &mut Vec<u8>,
    ) -> Result<Saved, StoreError> {
        let mut stored = self.stored(opened, true, rows.clone().map(|row| batch.source(row)))?;
        let columns = self.table.columns.iter().map(|column| quoted(&column.name));
        let statement = self.begin_insert(&self.table.name, columns, out);
        let mut saved = Saved::default();
        for row in rows {
            let source = batch.source(row);
            let (outcome, conflict) = stored.place(&source, again);
            if let Some(conflict) = conflict {
                for ((cell, kind), column) in batch.cells(row).zip(&opened.fields).zip(&self.table.columns) {
                    put(cell, *kind, column.kind, out).map_err(|words| {
                        StoreError::Refused(format!("{}: column {}: {words}", self.server, column.name))
                    })?;
                }
                put_source(&source, self.unmarked.wrapping_add(row as u64), conflict, out);
            }
            saved.count(outcome, true);
        }
        Self::insert(opened, statement, out)?;
        Ok(saved)
    }

    fn save_dead(
        &self,
        opened: &OpenServer,
        batch: &Batch,
        dead: Range<usize>,
        again: bool,
        out: &mut Vec<u8>,
    ) -> Result<Saved, StoreError> {
        let sources = batch.dead_letters(dead.clone()).map(|letter| letter.source);
        let mut stored = self.stored(opened, false, sources)?;
        let columns = ["reason", "size", "payload"].map(str::to_owned).into_iter();
        let statement = self.begin_insert(&self.table.dead_letters(), columns, out);
        let mut saved = Saved::default();
        for position in dead {
            let DeadLetter { source, reason, payload, size } = batch.dead_letter(position);
            let (outcome, conflict) = stored.place(&source, again);
            if let Some(conflict) = conflict {
                put_bytes(reason.as_bytes(), out);
                out.extend_from_slice(&size.to_le_bytes());
                put_bytes(payload, out);
                put_source(&source, self.unmarked.wrapping_add(position as u64), conflict, out);
            }
            saved.count(outcome, false);
        }
        Self::insert(opened, statement, out)?;
        Ok(saved)
    }

    /// Writes the statement that rows of these columns stand behind, and returns its length.
    fn begin_insert(&self, name: &str, columns: impl Iterator<Item = String>, out: &mut Vec<u8>) -> usize {
        let provenance = Provenance::ALL.map(|it| quoted(&self.table.name_of(it)));
        let columns: Vec<_> = columns.chain(provenance).collect();
        out.clear();
        out.extend_from_slice(
            format!("INSERT INTO {} ({}) FORMAT RowBinary\n", quoted(name), columns.join(", ")).as_bytes(),
        );
        out.len()
    }

    fn opened(&self) -> Result<&OpenServer, StoreError> {
        let gone = || StoreError::Unavailable(format!("{}: not connected", self.server));
        self.opened.as_ref().ok_or_else(gone)
    }
}

impl Store for ClickHouseTable {
    fn open(&mut self) -> Result<(), StoreError> {
        self.opened = None;
        self.opened = Some(self.connect()?);
        Ok(())
    }

    fn save(&mut self, batch: &Batch, part: &Part) -> Result<Saved, StoreError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let mut write = || {
            let opened = self.opened()?;
            let mut saved = Saved::default();
            if !part.rows.is_empty() {
                saved += self.save_rows(opened, batch, part.rows.clone(), part.again, &mut buffer)?;
            }
            if !part.dead.is_empty() {
                saved += self.save_dead(opened, batch, part.dead.clone(), part.again, &mut buffer)?;
            }
            Ok(saved)
        };
        let saved = write();
        buffer.clear();
        buffer.shrink_to(KEPT);
        self.buffer = buffer;
        if saved.is_ok() {
            self.unmarked = self.unmarked.wrapping_add(batch.records() as u64);
        }
        saved
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        self.opened = None;
        let link = self.server.connect()?;
        for name in [&self.table.name, &self.table.dead_letters()] {
            link.ask(format!("DROP TABLE IF EXISTS {}", quoted(name)).as_bytes())?;
        }
        Ok(())
    }

    fn contents(&mut self) -> Result<Contents, StoreError> {
        let OpenServer { link, is_replacing, .. } = self.opened()?;
        let number = |query: String| {
            let answer = self.ask_texts(link, &format!("SELECT toString({query})"))?;
            answer.first().and_then(|number| number.parse().ok()).ok_or_else(|| self.cut_off())
        };
        let [rows, dead] = [&self.table.name, &self.table.dead_letters()].map(|name| quoted(name));
        let last = if *is_replacing { " FINAL" } else { "" };
        let parts = "FROM system.parts WHERE active AND database = currentDatabase() AND table";
        Ok(Contents {
            rows: number(format!("(SELECT count() FROM {rows}{last})"))?,
            dead: number(format!("(SELECT count() FROM {dead} FINAL)"))?,
            bytes: number(format!("(SELECT sum(bytes_on_disk) {parts} = {})", text(&self.table.name)))?,
        })
    }

    fn name(&self) -> String {
        self.server.to_string()
    }
}

/// Capacity that is kept for the next batch, in bytes: one huge record is not to be paid for ever after.
const KEPT: usize = 16 << 20;
