//! Directories and files that only their user may read, and that no reader ever sees half of.

use super::{RecordError, io_error};
use crate::date::date;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Addresses, command lines and what servers sent are for the user alone.
const PRIVATE_DIRECTORY: u32 = 0o700;
pub(super) const PRIVATE_FILE: u32 = 0o600;

/// Makes a directory that only this user can look into, and the directories above it as they usually are.
///
/// # Errors
/// The system's, with the path.
pub fn make_private(path: &Path) -> Result<(), RecordError> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(io_error(parent))?;
    }
    match DirBuilder::new().mode(PRIVATE_DIRECTORY).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let source =
                io::Error::new(error.kind(), "is there already, and is not a directory; choose a new one");
            Err(RecordError::Io { path: path.to_owned(), source })
        }
        made => made.map_err(io_error(path)),
    }
}

/// Makes a new directory `parent/name-…` for a run that starts `at_seconds` after the Unix epoch.
///
/// # Errors
/// The system's, with the path.
pub fn make_directory(parent: &Path, name: &str, at_seconds: u64) -> Result<PathBuf, RecordError> {
    fs::create_dir_all(parent).map_err(io_error(parent))?;
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' })
        .take(40)
        .collect();
    for attempt in 0..1_000 {
        let suffix = if attempt == 0 { String::new() } else { format!("-{attempt}") };
        let path = parent.join(format!("{plain}-{}{suffix}", date(at_seconds as f64, "%Y%m%dT%H%M%SZ")));
        match DirBuilder::new().mode(PRIVATE_DIRECTORY).create(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(source) => return Err(RecordError::Io { path, source }),
        }
    }
    let source = io::Error::new(io::ErrorKind::AlreadyExists, "a thousand runs of this second exist already");
    Err(RecordError::Io { path: parent.to_owned(), source })
}

/// Writes `bytes` to `path` under a temporary name first, so that a reader never sees half of it. What stands there
/// under the temporary name, a link of another user's or the rest of a write that was cut short, is not written to.
///
/// # Errors
/// The system's, with the path.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), RecordError> {
    let temporary = path.with_extension("part");
    let write = || {
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = OpenOptions::new();
        // A new file follows no link (open(2), O_EXCL).
        let mut file = options.write(true).create_new(true).mode(PRIVATE_FILE).open(&temporary)?;
        file.write_all(bytes)
    };
    write().and_then(|()| fs::rename(&temporary, path)).map_err(|source| {
        // Half of a file is of no use, and takes what room is left.
        let _ = fs::remove_file(&temporary);
        RecordError::Io { path: path.to_owned(), source }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_runs_of_one_second_have_two_directories() {
        let parent = tempfile::tempdir().unwrap();
        let first = make_directory(parent.path(), "a/b c", 0).unwrap();
        let second = make_directory(parent.path(), "a/b c", 0).unwrap();
        assert_ne!(first, second);
        assert!(first.ends_with("a-b-c-19700101T000000Z"), "{}", first.display());
    }
}
