//! Writes what a log of SQLite holds into its file, while the next rows go into the log.
//!
//! This takes as long as writing the log does. Left to a commit it would stand between rows and their acknowledgement.

use super::Durability;
use rusqlite::{Connection, OpenFlags};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

/// A thread with a connection of its own; ends when it is dropped.
#[derive(Debug)]
pub(super) struct Checkpointer {
    requests: Option<Sender<()>>,
    done: Receiver<()>,
    is_busy: bool,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// For the log of this file, which is open already, and so is never another one of its name. Without a connection or
    /// a thread the commits do it.
    pub(super) fn start(path: &Path, durability: Durability) -> Self {
        let (requests, inbox) = channel();
        let (outbox, done) = channel();
        let thread = open(path, durability).ok().and_then(|connection| {
            let builder = std::thread::Builder::new().name("weir-checkpoint".to_owned());
            builder.spawn(move || work(&connection, &inbox, &outbox)).ok()
        });
        Self { requests: Some(requests), done, is_busy: false, thread }
    }

    /// Has a checkpoint begun, unless one is being made.
    pub(super) fn request(&mut self) -> bool {
        if self.is_busy && self.done.try_recv().is_err() {
            return false;
        }
        self.is_busy = self.requests.as_ref().is_some_and(|requests| requests.send(()).is_ok());
        self.is_busy
    }

    /// Waits for the checkpoint that is being made. While one is, a commit can make none, and a log that no checkpoint has
    /// read to its end never starts over: with a disk slower than the commits it would grow without a bound.
    pub(super) fn wait(&mut self) {
        if std::mem::take(&mut self.is_busy) {
            // Without its thread there is nothing to wait for.
            let _ = self.done.recv();
        }
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.requests = None;
        // A panic there is of no concern here.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn work(connection: &Connection, requests: &Receiver<()>, done: &Sender<()>) {
    while requests.recv().is_ok() {
        // PASSIVE waits for no other connection, and none waits for it. A failure is met again, and reported, by a commit.
        let _ = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(()));
        let _ = done.send(());
    }
}

fn open(path: &Path, durability: Durability) -> rusqlite::Result<Connection> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    // Unless durability is off, the log is on the disk before the file is touched, and the file before the log starts over.
    connection.pragma_update(None, "synchronous", durability.of_sqlite())?;
    // SQLite opens what it has only when it is first asked for something.
    connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))?;
    Ok(connection)
}

#[cfg(test)]
mod tests {
    /// Before 3.51.3 a log could start over unseen by a checkpoint of another connection, which then lost commits
    /// (SQLite, "Write-Ahead Logging", "The WAL-Reset Bug").
    #[test]
    fn this_sqlite_stands_two_connections_that_checkpoint() {
        assert!(rusqlite::version_number() >= 3_051_003);
    }
}
