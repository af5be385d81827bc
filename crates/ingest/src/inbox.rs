//! The bounded queue between the thread that reads the link and the one that decodes. It is locked once a read.

use crate::counts::Counts;
use crate::letter::Parcel;
use std::collections::VecDeque;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Empty parcels that are kept for the next reads.
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
    parcels: VecDeque<Parcel>,
    weight: usize,
    /// Whether the reader was told to stop reading, and waits to hear that there is room.
    full: bool,
    closed: bool,
    spare: Vec<Parcel>,
}

/// What the decoding thread finds.
#[derive(Debug)]
pub(crate) enum Taken {
    /// The next parcel; `room` if the reader waits to be told that it may read again.
    Parcel { parcel: Parcel, room: bool },
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

    /// Hands a parcel over and takes an empty one. `true`: read no more until there is room.
    pub(crate) fn push(&self, parcel: &mut Parcel) -> bool {
        let mut state = self.lock();
        let empty = state.spare.pop().unwrap_or_default();
        let parcel = std::mem::replace(parcel, empty);
        state.weight += parcel.weight();
        state.parcels.push_back(parcel);
        state.full = state.weight > self.limit;
        let full = state.full;
        self.counts.queued.store(state.weight as u64, Relaxed);
        drop(state);
        self.arrived.notify_one();
        full
    }

    /// Takes the next parcel, waiting for it until then.
    pub(crate) fn take(&self, until: Option<Instant>) -> Taken {
        let mut state = self.lock();
        loop {
            if let Some(parcel) = state.parcels.pop_front() {
                state.weight -= parcel.weight();
                let room = state.full && state.weight <= self.limit / 2;
                state.full &= !room;
                self.counts.queued.store(state.weight as u64, Relaxed);
                return Taken::Parcel { parcel, room };
            }
            if state.closed {
                return Taken::Closed;
            }
            let Some(until) = until else {
                state = self.arrived.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Taken::Nothing;
            }
            state = self.arrived.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Gives an empty parcel back.
    pub(crate) fn recycle(&self, mut parcel: Parcel) {
        parcel.clear();
        let mut state = self.lock();
        if state.spare.len() < SPARE {
            state.spare.push(parcel);
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

    fn parcel(bytes: usize) -> Parcel {
        Parcel { bytes: vec![0; bytes], ..Parcel::default() }
    }

    #[test]
    fn a_full_queue_stops_the_reader_and_tells_him_once_that_there_is_room() {
        let inbox = inbox(100);
        assert!(!inbox.push(&mut parcel(60)));
        assert!(inbox.push(&mut parcel(60)));
        let mut rooms = Vec::new();
        for _ in 0..2 {
            let Taken::Parcel { room, .. } = inbox.take(None) else { panic!() };
            rooms.push(room);
        }
        assert_eq!((rooms, inbox.lock().weight), (vec![false, true], 0));
    }

    #[test]
    fn what_was_handed_over_is_taken_before_the_end() {
        let inbox = inbox(100);
        inbox.push(&mut parcel(1));
        inbox.close();
        assert!(matches!(inbox.take(None), Taken::Parcel { .. }));
        assert!(matches!(inbox.take(None), Taken::Closed));
    }

    #[test]
    fn nothing_comes_in_time() {
        assert!(matches!(inbox(1).take(Some(Instant::now())), Taken::Nothing));
    }
}
