//! Parquet: a directory to which each batch adds a file, which is there when it is complete and on the disk.
//!
//! A file is written under a name that begins with a dot, synchronised, and renamed. What the directory holds is read
//! when it is opened, publishers and sequence numbers only, so that nothing is saved twice. One ingester has a directory
//! for itself.

mod columns;

use self::columns::{Fact, fact, put_cells, put_facts};
use super::publisher_numbers::PublisherNumbers;
use super::stored_hashes::{StoredHashes, has_fields, position, time_of, values};
use super::{Contents, Part, SaveOutcome, Saved, Store};
use crate::batch::{Batch, DeadLetter, RowSource};
use crate::column::{ColumnKind, Provenance, Table};
use crate::error::StoreError;
use parquet::data_type::Int64Type;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::TypePtr;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use weir_record::TimeUnit;

/// Where dead letters go, within the directory.
const DEAD: &str = "dead";

/// How often a lock is tried, and how long after each other: for a second.
const TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(20);

/// A directory of files.
pub(crate) struct Parquet {
    directory: PathBuf,
    table: Table,
    rows: Option<TypePtr>,
    dead: Option<TypePtr>,
    seen: PublisherNumbers,
    seen_dead: PublisherNumbers,
    /// Files that this process has written.
    number: u64,
    /// The time in the name of the newest file, in microseconds. Names only ever go up, whatever the wall clock does.
    newest: u64,
    /// Held while the directory is open.
    lock: Option<File>,
}

/// What of a part goes into a file, and whether it is in conflict.
type RowSelection = Vec<(usize, bool)>;

impl Parquet {
    pub(crate) fn new(directory: PathBuf, table: Table) -> Self {
        Self {
            directory,
            table,
            rows: None,
            dead: None,
            seen: PublisherNumbers::default(),
            seen_dead: PublisherNumbers::default(),
            number: 0,
            newest: 0,
            lock: None,
        }
    }

    fn provenance(&self) -> String {
        let columns = Provenance::ALL.map(|provenance| {
            let name = self.table.name_of(provenance);
            match provenance {
                Provenance::Topic => format!("REQUIRED BYTE_ARRAY {name} (STRING);"),
                Provenance::Publisher | Provenance::SequenceNumber => {
                    format!("OPTIONAL INT64 {name} (INTEGER(64,false));")
                }
                Provenance::Record => format!("REQUIRED INT32 {name};"),
                Provenance::Received => format!("REQUIRED INT64 {name} (TIMESTAMP(MICROS,true));"),
                Provenance::PayloadHash => format!("OPTIONAL BYTE_ARRAY {name};"),
                Provenance::Conflict => format!("REQUIRED BOOLEAN {name};"),
            }
        });
        columns.join(" ")
    }

    fn message(&self) -> String {
        let fields: String = self
            .table
            .columns
            .iter()
            .map(|column| {
                let kind = match column.kind {
                    ColumnKind::Boolean => "BOOLEAN",
                    ColumnKind::Integer | ColumnKind::Date | ColumnKind::Time(TimeUnit::Millis) => "INT32",
                    ColumnKind::Long | ColumnKind::Time(_) | ColumnKind::Timestamp { .. } => "INT64",
                    ColumnKind::Float => "FLOAT",
                    ColumnKind::Double => "DOUBLE",
                    ColumnKind::Bytes | ColumnKind::Text | ColumnKind::Json | ColumnKind::Decimal { .. } => {
                        "BYTE_ARRAY"
                    }
                    ColumnKind::Uuid => "FIXED_LEN_BYTE_ARRAY (16)",
                };
                let meaning = match column.kind {
                    ColumnKind::Text => " (STRING)".to_owned(),
                    ColumnKind::Json => " (JSON)".to_owned(),
                    ColumnKind::Date => " (DATE)".to_owned(),
                    ColumnKind::Time(unit) => format!(" (TIME({},true))", unit_name(unit)),
                    ColumnKind::Timestamp { unit, utc } => format!(" (TIMESTAMP({},{utc}))", unit_name(unit)),
                    ColumnKind::Decimal { precision, scale } => format!(" (DECIMAL({precision},{scale}))"),
                    ColumnKind::Uuid => " (UUID)".to_owned(),
                    _ => String::new(),
                };
                let repetition = if column.nullable { "OPTIONAL" } else { "REQUIRED" };
                format!("{repetition} {kind} {}{meaning}; ", column.name)
            })
            .collect();
        format!("message {} {{ {fields}{} }}", self.table.name, self.provenance())
    }

    fn message_of_dead(&self) -> String {
        let more = "REQUIRED BYTE_ARRAY reason (STRING); REQUIRED INT64 size; REQUIRED BYTE_ARRAY payload;";
        format!("message {} {{ {} {more} }}", self.table.dead_letters(), self.provenance())
    }

    fn fail(&self, error: &ParquetError) -> StoreError {
        match error {
            ParquetError::External(cause) => match cause.downcast_ref::<io::Error>() {
                Some(error) => self.fail_io(error),
                None => StoreError::Unavailable(format!("{}: {error}", self.name())),
            },
            _ => StoreError::Unavailable(format!("{}: {error}", self.name())),
        }
    }

    fn fail_io(&self, error: &io::Error) -> StoreError {
        let remedy = if error.kind() == ErrorKind::StorageFull {
            "; make room on the disk, and saving goes on"
        } else {
            ""
        };
        let words = format!("{}: {error}{remedy}", self.name());
        let is_wrong = matches!(
            error.kind(),
            ErrorKind::NotADirectory
                | ErrorKind::PermissionDenied
                | ErrorKind::ReadOnlyFilesystem
                | ErrorKind::AlreadyExists
        );
        // What could be written once may come back; what never could is not waited for.
        if self.lock.is_none() && is_wrong {
            StoreError::Unfit(words)
        } else {
            StoreError::Unavailable(words)
        }
    }

    /// Makes the directory its own, and reads what is in it.
    fn begin(&mut self) -> Result<(), StoreError> {
        let schema = |text: &str| {
            let parsed = parse_message_type(text);
            parsed
                .map(Arc::new)
                .map_err(|error| StoreError::Unfit(format!("Parquet cannot store this schema: {error}")))
        };
        let (rows, dead) = (schema(&self.message())?, schema(&self.message_of_dead())?);
        let dead_directory = self.directory.join(DEAD);
        std::fs::create_dir_all(&dead_directory).map_err(|error| self.fail_io(&error))?;
        if self.lock.is_none() {
            let lock = File::create(self.directory.join(".lock")).map_err(|error| self.fail_io(&error))?;
            if !is_locked(&lock) {
                return Err(StoreError::Unfit(format!(
                    "{}: another ingester writes there; give each a directory of its own",
                    self.name()
                )));
            }
            self.lock = Some(lock);
        }
        self.seen.clear();
        self.seen_dead.clear();
        let (mut seen, mut seen_dead) = (PublisherNumbers::default(), PublisherNumbers::default());
        self.read(&self.directory, &rows, &mut seen)?;
        self.read(&dead_directory, &dead, &mut seen_dead)?;
        (self.seen, self.seen_dead) = (seen, seen_dead);
        (self.rows, self.dead) = (Some(rows), Some(dead));
        for directory in [&self.directory, &dead_directory] {
            let files = files(directory).map_err(|error| self.fail_io(&error))?;
            self.newest = files.iter().filter_map(|path| time_of(path)).fold(self.newest, u64::max);
        }
        Ok(())
    }

    /// Reads which messages the files of a directory hold; removes what was never completed.
    fn read(
        &self,
        directory: &Path,
        schema: &TypePtr,
        seen: &mut PublisherNumbers,
    ) -> Result<(), StoreError> {
        for entry in std::fs::read_dir(directory).map_err(|error| self.fail_io(&error))? {
            let path = entry.map_err(|error| self.fail_io(&error))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with('.') && name.ends_with(".tmp") {
                // What cannot be removed takes room, and does no other harm.
                let _ = std::fs::remove_file(&path);
            } else if name.ends_with(".parquet") {
                self.read_file(&path, schema, seen)?;
            }
        }
        Ok(())
    }

    fn read_file(
        &self,
        path: &Path,
        schema: &TypePtr,
        seen: &mut PublisherNumbers,
    ) -> Result<(), StoreError> {
        let wrong = |words: String| StoreError::Unfit(format!("{}: {words}", path.display()));
        let file = File::open(path).map_err(|error| self.fail_io(&error))?;
        let reader = SerializedFileReader::new(file).map_err(|error| wrong(error.to_string()))?;
        if !has_fields(&reader, schema) {
            let found = reader.metadata().file_metadata().schema();
            let named = |fields: &[TypePtr]| {
                fields.iter().map(|field| field.name().to_owned()).collect::<Vec<_>>().join(", ")
            };
            return Err(wrong(format!(
                "it has other columns or types ({}) than the schema ({}); name another directory",
                named(found.get_fields()),
                named(schema.get_fields())
            )));
        }
        let place = |provenance: Provenance| position(&reader, &self.table.name_of(provenance));
        let (publisher, number) = (place(Provenance::Publisher), place(Provenance::SequenceNumber));
        for group in 0..reader.num_row_groups() {
            let read = |column: usize| {
                let read = values::<Int64Type>(&reader, group, column);
                read.map(|(numbers, _)| numbers).map_err(|error| wrong(error.to_string()))
            };
            for (publisher, number) in read(publisher)?.into_iter().zip(read(number)?) {
                seen.insert(publisher as u64, number as u64);
            }
        }
        Ok(())
    }

    /// Writes a file under its first name: complete, and on the disk.
    fn write(
        &self,
        directory: &Path,
        schema: &TypePtr,
        mut column: impl FnMut(usize, &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError>,
    ) -> Result<(PathBuf, PathBuf), ParquetError> {
        let name = format!("rows-{:016}-{}-{}.parquet", self.newest, std::process::id(), self.number);
        let (first, last) = (directory.join(format!(".{name}.tmp")), directory.join(name));
        let mut writer = SerializedFileWriter::new(
            File::create(&first)?,
            schema.clone(),
            Arc::new(WriterProperties::builder().build()),
        )?;
        let mut group = writer.next_row_group()?;
        let mut position = 0;
        while let Some(mut writer) = group.next_column()? {
            column(position, &mut writer)?;
            writer.close()?;
            position += 1;
        }
        group.close()?;
        writer.into_inner()?.sync_all()?;
        Ok((first, last))
    }

    fn write_rows(&self, batch: &Batch, rows: &[(usize, bool)]) -> Result<(PathBuf, PathBuf), ParquetError> {
        let Some(schema) = &self.rows else { return Err(ParquetError::General("not open".to_owned())) };
        let fields = &self.table.columns;
        // The cells of a row lie beside each other, those of a column far apart: once over all rows a column.
        self.write(&self.directory, schema, |position, writer| match fields.get(position) {
            Some(field) => {
                let cells = || rows.iter().filter_map(|(row, _)| batch.cells(*row).nth(position));
                put_cells(writer, field.kind, field.nullable, cells)
            }
            None => {
                let facts = rows
                    .iter()
                    .map(|(row, conflict)| fact(&batch.source(*row), *conflict, position - fields.len()));
                put_facts(writer, facts)
            }
        })
    }

    fn write_dead(&self, batch: &Batch, dead: &[(usize, bool)]) -> Result<(PathBuf, PathBuf), ParquetError> {
        let Some(schema) = &self.dead else { return Err(ParquetError::General("not open".to_owned())) };
        self.write(&self.directory.join(DEAD), schema, |position, writer| {
            put_facts(
                writer,
                dead.iter().map(|(letter, conflict)| {
                    let DeadLetter { source, reason, payload, size } = batch.dead_letter(*letter);
                    match position.checked_sub(Provenance::ALL.len()) {
                        None => fact(&source, *conflict, position),
                        Some(0) => Fact::Text(reason),
                        Some(1) => Fact::Number(Some(size as i64)),
                        Some(_) => Fact::Bytes(payload),
                    }
                }),
            )
        })
    }

    /// What is to be written of consecutive records. The records of a message are all there, or none is.
    fn pick(
        &self,
        seen: &mut PublisherNumbers,
        directory: &Path,
        sources: &[RowSource<'_>],
        first: usize,
        saved: &mut Saved,
    ) -> Result<RowSelection, ParquetError> {
        let mut is_new = vec![true; sources.len()];
        let mut before = HashSet::new();
        for (source, is_new) in sources.iter().zip(&mut is_new).filter(|(source, _)| source.record == 0) {
            if let Some(it) = source.origin {
                *is_new = seen.insert(it.publisher, it.sequence_number);
                if !*is_new {
                    before.insert((it.publisher, it.sequence_number));
                }
            }
        }
        let is_row = std::ptr::eq(directory, &*self.directory);
        if before.is_empty() {
            sources.iter().for_each(|_| saved.count(SaveOutcome::Kept, is_row));
            return Ok((first..first + sources.len()).map(|place| (place, false)).collect());
        }
        let mut known = StoredHashes::default();
        // What came for the first time in this part is in no file.
        let mut wanted = before.clone();
        for (source, _) in sources.iter().zip(&is_new).filter(|(_, is_new)| **is_new) {
            if let (0, Some(it)) = (source.record, source.origin) {
                wanted.remove(&(it.publisher, it.sequence_number));
            }
        }
        if let Some(schema) = if is_row { &self.rows } else { &self.dead } {
            known.read(parquet_files(directory)?, schema, &self.table, wanted)?;
        }
        let mut outcome = SaveOutcome::Kept;
        let mut picked = Vec::new();
        for ((source, is_new), place) in sources.iter().zip(&is_new).zip(first..) {
            if let (0, Some(it), Some(hash)) = (source.record, source.origin, source.hash) {
                let identity = (it.publisher, it.sequence_number);
                let is_known = before.contains(&identity) && !known.insert(identity, hash);
                outcome = match (is_new, is_known) {
                    (true, _) => SaveOutcome::Kept,
                    (false, false) => SaveOutcome::KeptBeside,
                    (false, true) => SaveOutcome::Duplicate,
                };
            } else if source.record == 0 {
                outcome = SaveOutcome::Kept;
            }
            saved.count(outcome, is_row);
            if outcome != SaveOutcome::Duplicate {
                picked.push((place, outcome == SaveOutcome::KeptBeside));
            }
        }
        Ok(picked)
    }

    fn add(&mut self, batch: &Batch, part: &Part) -> Result<Saved, ParquetError> {
        let mut saved = Saved::default();
        let dead_directory = self.directory.join(DEAD);
        let (mut seen, mut seen_dead) = (std::mem::take(&mut self.seen), std::mem::take(&mut self.seen_dead));
        let sources: Vec<_> = part.rows.clone().map(|row| batch.source(row)).collect();
        let rows = self.pick(&mut seen, &self.directory, &sources, part.rows.start, &mut saved);
        let sources: Vec<_> = batch.dead_letters(part.dead.clone()).map(|letter| letter.source).collect();
        let dead = self.pick(&mut seen_dead, &dead_directory, &sources, part.dead.start, &mut saved);
        (self.seen, self.seen_dead) = (seen, seen_dead);
        let (rows, dead) = (rows?, dead?);
        self.number += 1;
        self.newest = self.newest.saturating_add(1).max(weir_shard::clock::wall_nanos() / 1_000);
        let mut names = Vec::new();
        if !dead.is_empty() {
            names.push((self.write_dead(batch, &dead)?, dead_directory));
        }
        if !rows.is_empty() {
            names.push((self.write_rows(batch, &rows)?, self.directory.clone()));
        }
        for ((first, last), directory) in names {
            std::fs::rename(first, last)?;
            // A name is on the disk when its directory is.
            File::open(directory)?.sync_all()?;
        }
        Ok(saved)
    }
}

impl Store for Parquet {
    fn open(&mut self) -> Result<(), StoreError> {
        self.begin()
    }

    fn save(&mut self, batch: &Batch, part: &Part) -> Result<Saved, StoreError> {
        // After a failure this is opened again, which reads again what is there.
        self.add(batch, part).map_err(|error| self.fail(&error))
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        for directory in [self.directory.join(DEAD), self.directory.clone()] {
            for path in files(&directory).map_err(|error| self.fail_io(&error))? {
                std::fs::remove_file(path).map_err(|error| self.fail_io(&error))?;
            }
        }
        Ok(())
    }

    fn contents(&mut self) -> Result<Contents, StoreError> {
        let (rows, bytes) = taken(&self.directory).map_err(|error| self.fail(&error))?;
        let (dead, _) = taken(&self.directory.join(DEAD)).map_err(|error| self.fail(&error))?;
        Ok(Contents { rows, dead, bytes })
    }

    fn name(&self) -> String {
        format!("parquet:{}", self.directory.display())
    }
}

/// Locks a file, which may take a moment although no process writes there any more: a process that another thread of the earlier holder
/// has just forked holds the lock as well, until it has become another program (flock(2)).
fn is_locked(file: &File) -> bool {
    (0..TRIES).any(|attempt| {
        if attempt > 0 {
            std::thread::sleep(BETWEEN_TRIES);
        }
        file.try_lock().is_ok()
    })
}

/// The files of a directory that such a store has written; none if there is no such directory.
fn files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let is_ours = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("rows-") && name.ends_with(".parquet")
    };
    Ok(paths.collect::<io::Result<Vec<_>>>()?.into_iter().filter(is_ours).collect())
}

/// Rows and bytes of the files of a directory.
fn taken(directory: &Path) -> Result<(u64, u64), ParquetError> {
    let (mut rows, mut bytes) = (0, 0);
    for path in files(directory)? {
        let file = File::open(path)?;
        bytes += file.metadata()?.len();
        rows += SerializedFileReader::new(file)?.metadata().file_metadata().num_rows() as u64;
    }
    Ok((rows, bytes))
}

/// All Parquet files in a directory, also those that another program wrote.
fn parquet_files(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files = entries.collect::<io::Result<Vec<_>>>()?;
    files.retain(|path| path.file_name().unwrap_or_default().to_string_lossy().ends_with(".parquet"));
    Ok(files)
}

/// As the text of a schema has it.
fn unit_name(unit: TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Millis => "MILLIS",
        TimeUnit::Micros => "MICROS",
        TimeUnit::Nanos => "NANOS",
    }
}
