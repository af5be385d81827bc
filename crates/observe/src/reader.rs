//! Small files of `/proc` and `/sys`, read into one buffer that is kept.

use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{self, Read as _};

use rustix::io::Errno;

/// Reads whole files without allocating, once it has seen the largest.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    path: String,
    text: Vec<u8>,
}

impl Reader {
    /// The content of the file, valid until the next call.
    pub(crate) fn read(&mut self, path: fmt::Arguments<'_>) -> io::Result<&[u8]> {
        self.path.clear();
        // Writing to a `String` fails only if a `Display` does, and numbers and paths do not.
        let _ = self.path.write_fmt(path);
        let mut file = File::open(&self.path)?;
        if self.text.is_empty() {
            self.text.resize(16 * 1024, 0);
        }
        let mut filled = 0;
        loop {
            if filled == self.text.len() {
                self.text.resize(2 * filled, 0);
            }
            match file.read(&mut self.text[filled..]) {
                Ok(0) => return Ok(&self.text[..filled]),
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Whether a file of `/proc/PID` could not be read because the process has ended: no such file on opening
/// it, no such process on reading it. Anything else (no descriptor left, not allowed) says nothing of it.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(Errno::SRCH.raw_os_error())
}

/// The numbers among the names of a directory: pids of `/proc`, tids of `task`, descriptors of `fd`.
pub(crate) fn numbered(path: &str) -> io::Result<impl Iterator<Item = u32> + use<>> {
    Ok(std::fs::read_dir(path)?.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_longer_than_the_buffer_is_read_whole() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text: Vec<u8> = (0..100_000u32).map(|number| number as u8).collect();
        std::fs::write(file.path(), &text).unwrap();
        let mut reader = Reader::default();
        assert_eq!(reader.read(format_args!("{}", file.path().display())).unwrap(), text);
        std::fs::write(file.path(), b"short").unwrap();
        assert_eq!(reader.read(format_args!("{}", file.path().display())).unwrap(), b"short");
        assert!(is_gone(&reader.read(format_args!("/proc/0/stat")).unwrap_err()));
        assert!(!is_gone(&reader.read(format_args!("/proc")).unwrap_err()));
    }
}
