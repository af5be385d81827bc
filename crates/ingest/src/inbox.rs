//! The bounded queue between the thread that reads the link and the one that decodes. It is locked once a read.

use crate::counts::Counts;
use crate::inbound::ReadBuffer;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Empty buffers that are kept for the next reads.
const SPARE: usize = 8;

/// The queue.
#[derive(Debug)]
pub(crate) struct Inbox {
    state: Mutex<State>,
    arrived: Condvar,
    /// Bytes from which on reading stops.
    limit: usize,
    counts: Arc<Counts>,
}

#[derive(Debug, Default)]
struct State {
    buffers: VecDeque<ReadBuffer>,
    weight: usize,
    /// Whether the reader has stopped reading until there is room.
    full: bool,
    closed: bool,
    spare: Vec<ReadBuffer>,
}

/// What the decoding thread finds.
#[derive(Debug)]
pub(crate) enum InboxItem {
    /// The next buffer; `room` if the reader waits for a signal that it may read again.
    ReadBuffer { buffer: ReadBuffer, room: bool },
    /// Nothing came until then.
    Nothing,
    /// Nothing will come any more.
    Closed,
}

impl Inbox {
    pub(crate) fn new(limit: usize, counts: Arc<Counts>) -> Self {
        Self { state: Mutex::default(), arrived: Condvar::new(), limit, counts }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a buffer over and takes an empty one. `true`: read no more until there is room.
    pub(crate) fn push(&self, buffer: &mut ReadBuffer) -> bool {
        let mut state = self.lock();
        let empty = state.spare.pop().unwrap_or_default();
        let buffer = std::mem::replace(buffer, empty);
        state.weight += buffer.weight();
        state.buffers.push_back(buffer);
        state.full = state.weight > self.limit;
        let full = state.full;
        self.counts.queued.store(state.weight as u64, Relaxed);
        drop(state);
        self.arrived.notify_one();
        full
    }

    /// Takes the next buffer, waiting for it until then.
    pub(crate) fn take(&self, until: Option<Instant>) -> InboxItem {
        let mut state = self.lock();
        loop {
            if let Some(buffer) = state.buffers.pop_front() {
                state.weight -= buffer.weight();
                let room = state.full && state.weight <= self.limit / 2;
                state.full &= !room;
                self.counts.queued.store(state.weight as u64, Relaxed);
                return InboxItem::ReadBuffer { buffer, room };
            }
            if state.closed {
                return InboxItem::Closed;
            }
            let Some(until) = until else {
                state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return InboxItem::Nothing;
            }
            state = self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Gives an empty buffer back.
    pub(crate) fn recycle(&self, mut buffer: ReadBuffer) {
        buffer.clear();
        let mut state = self.lock();
        if state.spare.len() < SPARE {
            state.spare.push(buffer);
        }
    }

    /// Nothing will come any more.
    pub(crate) fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inbox(limit: usize) -> Inbox {
        Inbox::new(limit, Arc::default())
    }

    fn buffer(bytes: usize) -> ReadBuffer {
        ReadBuffer { bytes: vec![0; bytes], ..ReadBuffer::default() }
    }

    #[test]
    fn a_full_queue_stops_the_reader_and_tells_him_once_that_there_is_room() {
        let inbox = inbox(100);
        assert!(!inbox.push(&mut buffer(60)));
        assert!(inbox.push(&mut buffer(60)));
        let mut rooms = Vec::new();
        for _ in 0..2 {
            let InboxItem::ReadBuffer { room, .. } = inbox.take(None) else { panic!() };
            rooms.push(room);
        }
        assert_eq!((rooms, inbox.lock().weight), (vec![false, true], 0));
    }

    #[test]
    fn what_was_handed_over_is_taken_before_the_end() {
        let inbox = inbox(100);
        inbox.push(&mut buffer(1));
        inbox.close();
        assert!(matches!(inbox.take(None), InboxItem::ReadBuffer { .. }));
        assert!(matches!(inbox.take(None), InboxItem::Closed));
    }

    #[test]
    fn nothing_comes_in_time() {
        assert!(matches!(inbox(1).take(Some(Instant::now())), InboxItem::Nothing));
    }
}
