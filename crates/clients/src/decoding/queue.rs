//! What waits for a decoder: whole frames, bounded in bytes.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that wait at most: four seconds of 16 Mbit/s.
pub(super) const MOST_WAITING: usize = 8 * 1024 * 1024;

/// Where frames are put in. Dropped: the stream has ended.
#[derive(Debug)]
pub(super) struct Feed {
    queue: Arc<Queue>,
    /// Frames do not fit since a group of pictures, which is left out to its end.
    leaves_out: bool,
}

/// Where frames are taken out.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    bytes: usize,
    handed_in: u64,
    left_out: u64,
    has_ended: bool,
    /// Nothing is taken out any more.
    is_deserted: bool,
}

/// A feed, and the queue that it fills.
pub(super) fn new() -> (Feed, Arc<Queue>) {
    let queue = Arc::new(Queue::default());
    (Feed { queue: Arc::clone(&queue), leaves_out: false }, queue)
}

impl Feed {
    /// Puts `frames` frames in, which are these bytes together; `is_start`: with the first of them a decoder can begin.
    pub(super) fn put(&mut self, bytes: Vec<u8>, frames: u64, is_start: bool) {
        let mut state = self.queue.state();
        self.leaves_out &= !is_start;
        self.leaves_out |= state.bytes + bytes.len() > MOST_WAITING;
        if self.leaves_out {
            state.left_out += frames;
            return;
        }
        state.handed_in += frames;
        if !state.is_deserted {
            state.bytes += bytes.len();
            state.waiting.push_back(bytes);
            self.queue.changed.notify_all();
        }
    }

    /// Frames up to the next with which a decoder can begin are left out: some are missing.
    pub(super) fn interrupt(&mut self) {
        self.leaves_out = true;
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.queue.state().has_ended = true;
        self.queue.changed.notify_all();
    }
}

impl Queue {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next frame; waits for it. `None`: there will be no other.
    pub(super) fn take(&self) -> Option<Vec<u8>> {
        let mut state = self.state();
        loop {
            if let Some(bytes) = state.waiting.pop_front() {
                state.bytes -= bytes.len();
                return Some(bytes);
            }
            if state.has_ended {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for the end of the stream, whatever still waits to be taken.
    pub(super) fn wait_for_end(&self) {
        let mut state = self.state();
        while !state.has_ended {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Nothing is taken out any more: what comes is counted and not kept.
    pub(super) fn desert(&self) {
        let mut state = self.state();
        state.is_deserted = true;
        state.waiting.clear();
        state.bytes = 0;
    }

    /// Frames that were put in, and that were left out.
    pub(super) fn counts(&self) -> (u64, u64) {
        let state = self.state();
        (state.handed_in, state.left_out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_up_to_the_next_start() {
        let (mut feed, queue) = new();
        let frame = || vec![0; MOST_WAITING / 4];
        for number in 0..4 {
            feed.put(frame(), 1, number == 0);
        }
        assert_eq!(queue.counts(), (4, 0));
        feed.put(vec![0], 1, false);
        assert!(queue.take().is_some());
        feed.put(vec![0], 1, false);
        assert_eq!(queue.counts(), (4, 2), "room alone does not help within a group of pictures");
        feed.put(frame(), 1, true);
        assert_eq!(queue.counts(), (5, 2));
        feed.interrupt();
        feed.put(vec![0], 1, false);
        assert_eq!(queue.counts(), (5, 3));
        drop(feed);
        assert_eq!(std::iter::from_fn(|| queue.take()).count(), 4);
    }

    #[test]
    fn what_nobody_takes_is_not_kept() {
        let (mut feed, queue) = new();
        feed.put(vec![0; 9], 1, true);
        queue.desert();
        for _ in 0..100 {
            feed.put(vec![0; MOST_WAITING / 2], 1, false);
        }
        assert_eq!((queue.counts(), queue.state().waiting.len()), ((101, 0), 0));
    }
}
