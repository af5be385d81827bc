//! Parquet: a directory to which each batch adds a file, which is there when it is complete and on the disk.
//!
//! A file is written under a name that begins with a dot, synchronised, and renamed. What the directory holds is read
//! when it is opened, publishers and sequence numbers only, so that nothing is saved twice. One ingester has a directory
//! for itself.

use super::seen::Seen;
use super::{Part, Saved, Stock, Store};
use crate::batch::{Batch, Source};
use crate::column::{Kind, Provenance, Table};
use crate::error::StoreError;
use crate::rows::Cell;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{
    BoolType, ByteArray, ByteArrayType, DataType, DoubleType, FloatType, Int32Type, Int64Type,
};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::TypePtr;
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where dead letters go, within the directory.
const DEAD: &str = "dead";

/// A directory of files.
pub(crate) struct Parquet {
    directory: PathBuf,
    table: Table,
    rows: Option<TypePtr>,
    dead: Option<TypePtr>,
    seen: Seen,
    seen_dead: Seen,
    /// Files that this process has written.
    number: u64,
    /// Held while the directory is open.
    lock: Option<File>,
}

/// A value of a dead letter, or of where a row came from.
enum Fact<'a> {
    Text(&'a str),
    Bytes(&'a [u8]),
    Number(Option<i64>),
    Small(i32),
}

impl Parquet {
    pub(crate) fn new(directory: PathBuf, table: Table) -> Self {
        Self {
            directory,
            table,
            rows: None,
            dead: None,
            seen: Seen::default(),
            seen_dead: Seen::default(),
            number: 0,
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
                    Kind::Boolean => "BOOLEAN",
                    Kind::Integer => "INT32",
                    Kind::Long => "INT64",
                    Kind::Float => "FLOAT",
                    Kind::Double => "DOUBLE",
                    Kind::Bytes | Kind::Text | Kind::Json => "BYTE_ARRAY",
                };
                let meaning = match column.kind {
                    Kind::Text => " (STRING)",
                    Kind::Json => " (JSON)",
                    _ => "",
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
        StoreError::Unavailable(format!("{}: {error}{remedy}", self.name()))
    }

    /// Makes the directory its own, and reads what is in it.
    fn begin(&mut self) -> Result<(), StoreError> {
        let schema = |text: &str| {
            let parsed = parse_message_type(text);
            parsed
                .map(Arc::new)
                .map_err(|error| StoreError::Unfit(format!("the schema is none to Parquet: {error}")))
        };
        let (rows, dead) = (schema(&self.message())?, schema(&self.message_of_dead())?);
        let dead_directory = self.directory.join(DEAD);
        std::fs::create_dir_all(&dead_directory).map_err(|error| self.fail_io(&error))?;
        if self.lock.is_none() {
            let lock = File::create(self.directory.join(".lock")).map_err(|error| self.fail_io(&error))?;
            if lock.try_lock().is_err() {
                return Err(StoreError::Unfit(format!(
                    "{}: another ingester writes there; give each a directory of its own",
                    self.name()
                )));
            }
            self.lock = Some(lock);
        }
        self.seen.clear();
        self.seen_dead.clear();
        let (mut seen, mut seen_dead) = (Seen::default(), Seen::default());
        self.read(&self.directory, &rows, &mut seen)?;
        self.read(&dead_directory, &dead, &mut seen_dead)?;
        (self.seen, self.seen_dead) = (seen, seen_dead);
        (self.rows, self.dead) = (Some(rows), Some(dead));
        Ok(())
    }

    /// Reads which messages the files of a directory hold; removes what was never completed.
    fn read(&self, directory: &Path, schema: &TypePtr, seen: &mut Seen) -> Result<(), StoreError> {
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

    fn read_file(&self, path: &Path, schema: &TypePtr, seen: &mut Seen) -> Result<(), StoreError> {
        let wrong = |words: String| StoreError::Unfit(format!("{}: {words}", path.display()));
        let file = File::open(path).map_err(|error| self.fail_io(&error))?;
        let reader = SerializedFileReader::new(file).map_err(|error| wrong(error.to_string()))?;
        let found = reader.metadata().file_metadata().schema();
        if found.get_fields() != schema.get_fields() {
            let named = |fields: &[TypePtr]| {
                fields.iter().map(|field| field.name().to_owned()).collect::<Vec<_>>().join(", ")
            };
            return Err(wrong(format!(
                "it has other columns or types ({}) than the schema ({}); name another directory",
                named(found.get_fields()),
                named(schema.get_fields())
            )));
        }
        let place = |provenance: Provenance| {
            let name = self.table.name_of(provenance);
            schema.get_fields().iter().position(|field| field.name() == name).unwrap_or_default()
        };
        let (publisher, number) = (place(Provenance::Publisher), place(Provenance::SequenceNumber));
        for group in 0..reader.num_row_groups() {
            let read =
                |column: usize| numbers(&reader, group, column).map_err(|error| wrong(error.to_string()));
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
        let wall = weir_shard::clock::wall_nanos() / 1_000;
        let name = format!("rows-{wall:016}-{}-{}.parquet", std::process::id(), self.number);
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

    fn write_rows(&self, batch: &Batch, rows: &[usize]) -> Result<(PathBuf, PathBuf), ParquetError> {
        let Some(schema) = &self.rows else { return Err(ParquetError::General("not open".to_owned())) };
        let fields = &self.table.columns;
        // The cells of a row lie beside each other, those of a column far apart: once over all rows a column.
        self.write(&self.directory, schema, |position, writer| match fields.get(position) {
            Some(field) => {
                let cells = || rows.iter().filter_map(|row| batch.rows.cells(*row).nth(position));
                put_cells(writer, field.kind, field.nullable, cells)
            }
            None => {
                put_facts(writer, rows.iter().map(|row| fact(&batch.source(*row), position - fields.len())))
            }
        })
    }

    fn write_dead(&self, batch: &Batch, dead: &[usize]) -> Result<(PathBuf, PathBuf), ParquetError> {
        let Some(schema) = &self.dead else { return Err(ParquetError::General("not open".to_owned())) };
        self.write(&self.directory.join(DEAD), schema, |position, writer| {
            put_facts(
                writer,
                dead.iter().map(|letter| {
                    let letter = &batch.dead[*letter];
                    let (source, payload, size) = batch.dead_source(letter);
                    match position {
                        5 => Fact::Text(&letter.reason),
                        6 => Fact::Number(Some(size as i64)),
                        7 => Fact::Bytes(payload),
                        _ => fact(&source, position),
                    }
                }),
            )
        })
    }

    /// Those that are not there yet, of messages in a row. The records of a message are all there, or none is.
    fn fresh<'a>(seen: &mut Seen, sources: impl Iterator<Item = Source<'a>>, first: usize) -> Vec<usize> {
        let mut fresh = true;
        let mut found = Vec::new();
        for (place, source) in sources.enumerate() {
            if source.record == 0 {
                fresh = source.origin.is_none_or(|it| seen.insert(it.publisher, it.sequence_number));
            }
            if fresh {
                found.push(first + place);
            }
        }
        found
    }

    fn add(&mut self, batch: &Batch, part: &Part) -> Result<Saved, ParquetError> {
        let rows =
            Self::fresh(&mut self.seen, part.rows.clone().map(|row| batch.source(row)), part.rows.start);
        let letters = batch.dead[part.dead.clone()].iter().map(|letter| batch.dead_source(letter).0);
        let dead = Self::fresh(&mut self.seen_dead, letters, part.dead.start);
        self.number += 1;
        let mut names = Vec::new();
        if !dead.is_empty() {
            names.push((self.write_dead(batch, &dead)?, self.directory.join(DEAD)));
        }
        if !rows.is_empty() {
            names.push((self.write_rows(batch, &rows)?, self.directory.clone()));
        }
        for ((first, last), directory) in names {
            std::fs::rename(first, last)?;
            // A name is on the disk when its directory is.
            File::open(directory)?.sync_all()?;
        }
        Ok(Saved {
            rows: rows.len() as u64,
            dead: dead.len() as u64,
            duplicate: (part.rows.len() + part.dead.len() - rows.len() - dead.len()) as u64,
        })
    }
}

impl Store for Parquet {
    fn open(&mut self) -> Result<(), StoreError> {
        self.begin()
    }

    fn save(&mut self, batch: &Batch, part: &Part) -> Result<Saved, StoreError> {
        // After a failure this is opened again, which reads anew what is there.
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

    fn stock(&mut self) -> Result<Stock, StoreError> {
        let (rows, bytes) = taken(&self.directory).map_err(|error| self.fail(&error))?;
        let (dead, _) = taken(&self.directory.join(DEAD)).map_err(|error| self.fail(&error))?;
        Ok(Stock { rows, dead, bytes })
    }

    fn name(&self) -> String {
        format!("parquet:{}", self.directory.display())
    }
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

/// The numbers of a column, those that are null left out.
fn numbers(
    reader: &SerializedFileReader<File>,
    group: usize,
    column: usize,
) -> Result<Vec<i64>, ParquetError> {
    let group = reader.get_row_group(group)?;
    let rows = group.metadata().num_rows() as usize;
    let mut column = get_typed_column_reader::<Int64Type>(group.get_column_reader(column)?);
    let (mut values, mut levels) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    while levels.len() < rows {
        let (read, _, _) = column.read_records(rows - levels.len(), Some(&mut levels), None, &mut values)?;
        if read == 0 {
            break;
        }
    }
    Ok(values)
}

fn fact<'a>(source: &Source<'a>, position: usize) -> Fact<'a> {
    match Provenance::ALL[position] {
        Provenance::Topic => Fact::Text(source.topic),
        Provenance::Publisher => Fact::Number(source.origin.map(|origin| origin.publisher as i64)),
        Provenance::SequenceNumber => Fact::Number(source.origin.map(|origin| origin.sequence_number as i64)),
        Provenance::Record => Fact::Small(source.record as i32),
        Provenance::Received => Fact::Number(Some(source.received)),
    }
}

/// Writes a column of facts; all are of one kind.
fn put_facts<'a>(
    writer: &mut SerializedColumnWriter<'_>,
    facts: impl Iterator<Item = Fact<'a>>,
) -> Result<(), ParquetError> {
    let (mut texts, mut numbers, mut small, mut levels) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for fact in facts {
        match fact {
            Fact::Text(text) => texts.push(ByteArray::from(text)),
            Fact::Bytes(bytes) => texts.push(ByteArray::from(bytes.to_vec())),
            Fact::Small(number) => small.push(number),
            Fact::Number(number) => {
                levels.push(i16::from(number.is_some()));
                numbers.extend(number);
            }
        }
    }
    if !texts.is_empty() {
        writer.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
    } else if !small.is_empty() {
        writer.typed::<Int32Type>().write_batch(&small, None, None)?;
    } else {
        // Of a column that has no nulls, levels are not looked at.
        writer.typed::<Int64Type>().write_batch(&numbers, Some(&levels), None)?;
    }
    Ok(())
}

/// Writes a column of values.
fn put_cells<'a, I: Iterator<Item = Cell<'a>>>(
    writer: &mut SerializedColumnWriter<'_>,
    kind: Kind,
    nullable: bool,
    cells: impl Fn() -> I,
) -> Result<(), ParquetError> {
    let levels: Option<Vec<i16>> =
        nullable.then(|| cells().map(|cell| i16::from(cell != Cell::Null)).collect());
    let levels = levels.as_deref();
    match kind {
        Kind::Boolean => put::<BoolType>(writer, cells(), levels, |cell| match cell {
            Cell::Boolean(value) => Some(value),
            _ => None,
        }),
        Kind::Integer => put::<Int32Type>(writer, cells(), levels, |cell| match cell {
            Cell::Integer(value) => Some(value),
            _ => None,
        }),
        Kind::Long => put::<Int64Type>(writer, cells(), levels, |cell| match cell {
            Cell::Long(value) => Some(value),
            _ => None,
        }),
        Kind::Float => put::<FloatType>(writer, cells(), levels, |cell| match cell {
            Cell::Float(value) => Some(value),
            _ => None,
        }),
        Kind::Double => put::<DoubleType>(writer, cells(), levels, |cell| match cell {
            Cell::Double(value) => Some(value),
            _ => None,
        }),
        Kind::Bytes | Kind::Text | Kind::Json => {
            put::<ByteArrayType>(writer, cells(), levels, |cell| match cell {
                Cell::Bytes(bytes) => Some(ByteArray::from(bytes.to_vec())),
                Cell::Text(text) => Some(ByteArray::from(text)),
                _ => None,
            })
        }
    }
}

fn put<'a, T: DataType>(
    writer: &mut SerializedColumnWriter<'_>,
    cells: impl Iterator<Item = Cell<'a>>,
    levels: Option<&[i16]>,
    of: impl Fn(Cell<'a>) -> Option<T::T>,
) -> Result<(), ParquetError> {
    let values: Vec<T::T> = cells.filter_map(of).collect();
    writer.typed::<T>().write_batch(&values, levels, None)?;
    Ok(())
}
