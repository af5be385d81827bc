//! Which payloads the files of a directory hold under an identity: asked only for messages whose publisher and sequence
//! number were there before, so that hashes take no memory for all others.

use crate::column::{Provenance, Table};
use crate::payload_hash::PayloadHash;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{BoolType, ByteArrayType, DataType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::statistics::Statistics;
use parquet::schema::types::TypePtr;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::path::{Path, PathBuf};

/// Publisher and sequence number.
pub(super) type Identity = (u64, u64);

/// Hashes of what is there, by identity.
#[derive(Debug, Default)]
pub(super) struct StoredHashes(HashMap<Identity, Vec<PayloadHash>>);

impl StoredHashes {
    /// Puts one in; `false` if it was there.
    pub(super) fn insert(&mut self, identity: Identity, hash: PayloadHash) -> bool {
        let hashes = self.0.entry(identity).or_default();
        let is_new = !hashes.contains(&hash);
        if is_new {
            hashes.push(hash);
        }
        is_new
    }

    /// Reads those of `wanted` out of files. Those that a store of ours has named are read from the newest on: what comes
    /// again came lately, and a row in conflict is never older than the one that is not, which is where the search for an
    /// identity ends. Files of other names are in no order, so that all of them are read first and end no search.
    pub(super) fn read(
        &mut self,
        files: Vec<PathBuf>,
        schema: &TypePtr,
        table: &Table,
        mut wanted: HashSet<Identity>,
    ) -> Result<(), ParquetError> {
        let (mut ours, others): (Vec<_>, Vec<_>) =
            files.into_iter().partition(|path| time_of(path).is_some());
        for path in others {
            // What is not of this schema came after the directory was opened, and has no row of ours.
            if let Ok(reader) = SerializedFileReader::new(File::open(path)?)
                && has_fields(&reader, schema)
            {
                self.read_file(&reader, table, &wanted)?;
            }
        }
        ours.sort_unstable();
        while !wanted.is_empty()
            && let Some(path) = ours.pop()
        {
            let reader = SerializedFileReader::new(File::open(path)?)?;
            if has_fields(&reader, schema) {
                for identity in self.read_file(&reader, table, &wanted)? {
                    wanted.remove(&identity);
                }
            }
        }
        Ok(())
    }

    /// Reads those of `wanted` in one file; returns those that have a row without a conflict in it.
    fn read_file(
        &mut self,
        reader: &SerializedFileReader<File>,
        table: &Table,
        wanted: &HashSet<Identity>,
    ) -> Result<Vec<Identity>, ParquetError> {
        let mut found = Vec::new();
        for group in 0..reader.num_row_groups() {
            self.read_group(reader, group, table, wanted, &mut found)?;
        }
        Ok(found)
    }

    fn read_group(
        &mut self,
        reader: &SerializedFileReader<File>,
        group: usize,
        table: &Table,
        wanted: &HashSet<Identity>,
        found: &mut Vec<Identity>,
    ) -> Result<(), ParquetError> {
        let place = |provenance: Provenance| position(reader, &table.name_of(provenance));
        let number_column = place(Provenance::SequenceNumber);
        if !may_hold(reader, group, number_column, wanted) {
            return Ok(());
        }
        let (publishers, marked) = values::<Int64Type>(reader, group, place(Provenance::Publisher))?;
        let (numbers, _) = values::<Int64Type>(reader, group, number_column)?;
        let (hashes, _) = values::<ByteArrayType>(reader, group, place(Provenance::PayloadHash))?;
        let (conflicts, _) = values::<BoolType>(reader, group, place(Provenance::Conflict))?;
        // Rows without a mark have a conflict column like all others, and none of the other three.
        let conflicts = marked.iter().zip(conflicts).filter(|(level, _)| **level > 0).map(|(_, it)| it);
        for (((publisher, number), hash), conflict) in
            publishers.into_iter().zip(numbers).zip(hashes).zip(conflicts)
        {
            let identity = (publisher as u64, number as u64);
            if !wanted.contains(&identity) {
                continue;
            }
            if let Ok(hash) = hash.data().try_into() {
                self.insert(identity, PayloadHash(hash));
            }
            if !conflict {
                found.push(identity);
            }
        }
        Ok(())
    }
}

/// The time in the name of a file that a store of ours has written.
pub(super) fn time_of(path: &Path) -> Option<u64> {
    let name = path.file_name()?.to_str()?.strip_suffix(".parquet")?;
    name.strip_prefix("rows-")?.split_once('-')?.0.parse().ok()
}

/// Whether a file's columns are those of the schema.
pub(super) fn has_fields(reader: &SerializedFileReader<File>, schema: &TypePtr) -> bool {
    reader.metadata().file_metadata().schema().get_fields() == schema.get_fields()
}

/// The place of a column of a file that [has](has_fields) it.
pub(super) fn position(reader: &SerializedFileReader<File>, name: &str) -> usize {
    let fields = reader.metadata().file_metadata().schema().get_fields();
    fields.iter().position(|field| field.name() == name).unwrap_or_default()
}

/// Whether a group may hold one of these, by its lowest and highest sequence number.
fn may_hold(
    reader: &SerializedFileReader<File>,
    group: usize,
    column: usize,
    wanted: &HashSet<Identity>,
) -> bool {
    let metadata = reader.metadata().row_group(group).column(column);
    let Some(Statistics::Int64(bounds)) = metadata.statistics() else { return true };
    let (Some(lowest), Some(highest)) = (bounds.min_opt(), bounds.max_opt()) else { return true };
    let bounds = *lowest as u64..=*highest as u64;
    wanted.iter().any(|(_, number)| bounds.contains(number))
}

/// The values of a column, those that are null left out, and which rows have one, if not all must.
pub(super) fn values<T: DataType>(
    reader: &SerializedFileReader<File>,
    group: usize,
    column: usize,
) -> Result<(Vec<T::T>, Vec<i16>), ParquetError> {
    let group = reader.get_row_group(group)?;
    let rows = group.metadata().num_rows() as usize;
    let mut column = get_typed_column_reader::<T>(group.get_column_reader(column)?);
    let (mut values, mut levels) = (Vec::with_capacity(rows), Vec::with_capacity(rows));
    let mut left = rows;
    while left > 0 {
        let (read, _, _) = column.read_records(left, Some(&mut levels), None, &mut values)?;
        if read == 0 {
            break;
        }
        left -= read;
    }
    Ok((values, levels))
}
