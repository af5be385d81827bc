#![doc = include_str!("../README.md")]

use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Error, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How long a pipe may take to give a secret: a person may have to unlock the keyring that it comes out of.
const PIPE_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes of a secret, at the most: users and passwords of 100,000 clients are 4 MB.
const MOST_SECRET: usize = 16 << 20;
/// Bytes of a scenario, or of a template of a step.
pub const MOST_TEXT: usize = 16 << 20;
/// Bytes of a summary: one of 1,000 stages with each of their figures has a tenth of it.
pub const MOST_DOCUMENT: usize = 256 << 20;
/// Bytes of a line of a run directory: the end of an agent with 1,000 stages, of 64 threads each, is 6 MB.
pub const MOST_LINE: usize = 16 << 20;
/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// The permissions of users who are neither the owner nor of the group to read a file, and to reach what is in a directory (inode(7),
/// `S_IROTH` and `S_IXOTH`).
const READ_BY_OTHERS: u32 = 0o004;
const REACHED_BY_OTHERS: u32 = 0o001;

/// Takes a line for a person.
static WARN: OnceLock<fn(&str)> = OnceLock::new();

/// Secrets of which that was said.
static WARNED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());

/// Has this take each line that [`warn`] is given. Without it they are not said.
pub fn warn_with(warn: fn(&str)) {
    // The first stays: there is one in a process.
    let _ = WARN.set(warn);
}

/// Tells a person, beside whatever else is done.
pub fn warn(line: &str) {
    if let Some(warn) = WARN.get() {
        warn(line);
    }
}

/// Says, once a file, that a secret with this mode can be read by every user, if it can be reached by them.
fn warn_of(path: &Path, mode: u32) {
    if mode & READ_BY_OTHERS == 0 || WARN.get().is_none() {
        return;
    }
    let Ok(real) = path.canonicalize() else { return };
    let is_open = |directory: &Path| directory.metadata().is_ok_and(|it| it.mode() & REACHED_BY_OTHERS != 0);
    if !real.ancestors().skip(1).all(is_open) {
        return;
    }
    let shown = path.display().to_string();
    if WARNED.lock().unwrap_or_else(PoisonError::into_inner).insert(real) {
        warn(&format!("every user of this machine can read the password in {shown}; chmod o-r '{shown}'"));
    }
}

/// Opens a regular file.
///
/// # Errors
/// The system's, or what is there is no file.
pub fn open(path: &Path) -> io::Result<File> {
    let file = open_at_once(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_file() {
        Ok(file)
    } else {
        Err(if kind.is_dir() {
            no_file(ErrorKind::IsADirectory, "a directory")
        } else {
            no_file(ErrorKind::InvalidInput, "a pipe or a device")
        })
    }
}

/// Reads a regular file whole.
///
/// # Errors
/// The system's, what is there is no file, or one of more bytes than this.
pub fn read(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > most { Err(too_large(most)) } else { Ok(bytes) }
}

/// The same as text.
///
/// # Errors
/// As [`read`], or it is not UTF-8.
pub fn read_text(path: &Path, most: usize) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

/// Reads a regular file of lines whole: however many there are, none is longer than this.
///
/// # Errors
/// The system's, what is there is no file, or one with a longer line.
pub fn read_lines(path: &Path, most: usize) -> io::Result<Vec<u8>> {
    let (mut file, mut bytes, mut line) = (open(path)?, Vec::new(), 0);
    loop {
        let before = bytes.len();
        if (&mut file).take(CHUNK as u64).read_to_end(&mut bytes)? == 0 {
            return Ok(bytes);
        }
        for part in bytes[before..].split_inclusive(|byte| *byte == b'\n') {
            line += part.len();
            if line > most {
                let words = format!("a line of more than {} MiB", most >> 20);
                return Err(Error::new(ErrorKind::InvalidData, words));
            }
            if part.ends_with(b"\n") {
                line = 0;
            }
        }
    }
}

/// Reads a secret: out of a file, or out of a pipe or a terminal, whose writer has ten seconds.
///
/// # Errors
/// The system's, nothing in time, or more than a secret is.
pub fn read_secret(path: &Path) -> io::Result<String> {
    let mut file = open_at_once(path)?;
    let found = file.metadata()?;
    let kind = found.file_type();
    if kind.is_dir() {
        return Err(no_file(ErrorKind::IsADirectory, "a directory"));
    }
    if kind.is_file() {
        warn_of(path, found.mode());
    }
    let waits = kind.is_fifo() || kind.is_char_device() || kind.is_socket();
    let (end, mut bytes, mut chunk) = (Instant::now() + PIPE_TIMEOUT, Vec::new(), vec![0; 4_096]);
    loop {
        if waits && !is_ready(&file, end)? {
            let words = format!("nothing came within {} s", PIPE_TIMEOUT.as_secs());
            return Err(Error::new(ErrorKind::TimedOut, words));
        }
        match file.read(&mut chunk) {
            Ok(0) => break,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        if bytes.len() > MOST_SECRET {
            return Err(too_large(MOST_SECRET));
        }
    }
    String::from_utf8(bytes).map_err(|error| Error::new(ErrorKind::InvalidData, error))
}

/// Whether there is something to read, or an end, before this moment. A pipe that was never opened by a writer has neither.
fn is_ready(file: &File, end: Instant) -> io::Result<bool> {
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&left)) {
            Ok(count) => return Ok(count > 0),
            Err(error) if error == rustix::io::Errno::INTR => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A pipe is opened whether or not anybody writes to it (fifo(7)).
fn open_at_once(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

fn no_file(kind: ErrorKind, what: &str) -> Error {
    Error::new(kind, format!("it is {what}; give a file"))
}

fn too_large(most: usize) -> Error {
    let size = if most < 1 << 20 { format!("{} KiB", most >> 10) } else { format!("{} MiB", most >> 20) };
    Error::new(ErrorKind::FileTooLarge, format!("it is larger than {size}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_is_said_of_a_secret_that_every_user_can_read() {
        use std::os::unix::fs::PermissionsExt;
        static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
        warn_with(|line| SAID.lock().unwrap().push(line.to_owned()));
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("secret");
        fs::write(&path, "s3cr3t").unwrap();
        let permit = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        for (directory_mode, mode) in
            [(0o755, 0o600), (0o755, 0o640), (0o700, 0o644), (0o755, 0o644), (0o755, 0o644)]
        {
            permit(directory.path(), directory_mode);
            permit(&path, mode);
            assert_eq!(read_secret(&path).unwrap(), "s3cr3t");
        }
        let said = SAID.lock().unwrap().clone();
        let said: Vec<_> = said.iter().filter(|line| line.contains(path.to_str().unwrap())).collect();
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains("chmod o-r") && !said[0].contains("s3cr3t"), "{said:?}");
    }
    use std::fs;
    use std::io::Write;
    use std::path::PathBuf;
    use std::process::Command;

    fn fifo(folder: &Path) -> PathBuf {
        let path = folder.join("pipe");
        assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
        path
    }

    #[test]
    fn a_pipe_that_nobody_writes_to_a_device_and_a_directory_are_no_files() {
        let folder = tempfile::tempdir().unwrap();
        for path in [&*fifo(folder.path()), Path::new("/dev/zero")] {
            assert_eq!(read(path, 10).unwrap_err().to_string(), "it is a pipe or a device; give a file");
            assert!(read_lines(path, 10).is_err());
        }
        assert_eq!(read(folder.path(), 10).unwrap_err().to_string(), "it is a directory; give a file");
        assert_eq!(read_secret(folder.path()).unwrap_err().to_string(), "it is a directory; give a file");
        assert_eq!(read(&folder.path().join("none"), 10).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_link_leads_to_its_file_and_a_file_has_so_many_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "0123456789").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read_text(&link, 10).unwrap(), "0123456789");
        assert_eq!(read_secret(&link).unwrap(), "0123456789");
        assert_eq!(read(&link, 9).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn lines_are_bounded_and_their_number_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lines");
        let lines = "0123456\n".repeat(100_000);
        fs::write(&path, &lines).unwrap();
        assert_eq!(read_lines(&path, 8).unwrap(), lines.as_bytes());
        assert!(read_lines(&path, 7).is_err());
        // Ten terabytes that take no room on a disk.
        File::create(&path).unwrap().set_len(10 << 40).unwrap();
        assert_eq!(read_lines(&path, 1 << 20).unwrap_err().to_string(), "a line of more than 1 MiB");
    }

    #[test]
    fn a_secret_comes_out_of_a_pipe_and_has_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = fifo(folder.path());
        let writing = path.clone();
        let writer = std::thread::spawn(move || {
            let mut pipe = OpenOptions::new().write(true).open(writing).unwrap();
            pipe.write_all(b"open ").unwrap();
            std::thread::sleep(Duration::from_millis(20));
            pipe.write_all(b"sesame\n").unwrap();
        });
        assert_eq!(read_secret(&path).unwrap(), "open sesame\n");
        writer.join().unwrap();
        assert_eq!(read_secret(Path::new("/dev/zero")).unwrap_err().kind(), ErrorKind::FileTooLarge);
    }
}
