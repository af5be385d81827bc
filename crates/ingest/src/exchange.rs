//! Two batches that go to and fro between the thread that fills them and the one that saves them.

use crate::batch::Batch;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// One is filled while the other is saved.
const BATCHES: usize = 2;

/// How often it is looked whether the saver was left behind.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The side that fills.
pub(crate) struct Filling {
    full: Sender<Batch>,
    emptied: Receiver<Batch>,
    spare: Vec<Batch>,
    /// Records of the batches that are being saved, the oldest first.
    away: VecDeque<u64>,
    /// Whether the saver does not answer, and no batch comes back.
    left_behind: Arc<AtomicBool>,
}

/// The side that saves.
pub(crate) struct Saving {
    full: Receiver<Batch>,
    emptied: Sender<Batch>,
    left_behind: Arc<AtomicBool>,
}

/// There is no batch to wait for: none is being saved, or the saver has ended.
#[derive(Debug)]
pub(crate) struct PeerGone;

/// Both sides, for rows with this many columns. `left_behind` is set when the saver is not waited for any more.
pub(crate) fn exchange(columns: usize, left_behind: Arc<AtomicBool>) -> (Filling, Saving) {
    let (full, to_save) = channel();
    let (emptied, to_fill) = channel();
    let spare = (0..BATCHES).map(|_| Batch::new(columns)).collect();
    let saving = Saving { full: to_save, emptied, left_behind: left_behind.clone() };
    (Filling { full, emptied: to_fill, spare, away: VecDeque::new(), left_behind }, saving)
}

impl Filling {
    /// An empty batch, waited for if need be, and how many records are being saved meanwhile; all others are in the
    /// counts by now. `None`: the other side has ended.
    pub(crate) fn take_empty(&mut self) -> Option<(Batch, u64)> {
        while let Ok(batch) = self.emptied.try_recv() {
            self.came_back(batch);
        }
        if self.spare.is_empty() {
            self.wait().ok()?;
        }
        Some((self.spare.pop()?, self.away.iter().sum()))
    }

    /// Waits until a batch is saved.
    pub(crate) fn wait(&mut self) -> Result<(), PeerGone> {
        if self.away.is_empty() {
            return Err(PeerGone);
        }
        loop {
            match self.emptied.recv_timeout(POLL_INTERVAL) {
                Ok(batch) => {
                    self.came_back(batch);
                    return Ok(());
                }
                Err(RecvTimeoutError::Timeout) if !self.left_behind.load(Relaxed) => {}
                Err(_) => return Err(PeerGone),
            }
        }
    }

    /// Keeps an empty batch for the next time.
    pub(crate) fn keep(&mut self, batch: Batch) {
        self.spare.push(batch);
    }

    /// Has a batch saved.
    pub(crate) fn hand_over(&mut self, batch: Batch) -> Result<(), PeerGone> {
        self.away.push_back(batch.records() as u64);
        self.full.send(batch).map_err(|_| PeerGone)
    }

    fn came_back(&mut self, batch: Batch) {
        self.away.pop_front();
        self.spare.push(batch);
    }
}

impl Saving {
    /// The next batch. `None`: there will be no more.
    pub(crate) fn take(&self) -> Option<Batch> {
        self.full.recv().ok().filter(|_| !self.left_behind.load(Relaxed))
    }

    /// Gives an emptied batch back, whose records are counted.
    pub(crate) fn give_back(&self, batch: Batch) {
        // The filling side may be gone; then it needs no more batches.
        let _ = self.emptied.send(batch);
    }
}
