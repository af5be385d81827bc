//! Links that others opened: what they may take of a turn, and when they are ended.

use super::{ACCEPT_AGAIN, Shard, entry_of};
use crate::entry::{Guards, taken};
use crate::guard::{DeadlineOutcome, Deadlines, Guard};
use crate::link::Link;
use crate::link_error::{LinkError, State};
use crate::{Event, SessionId, World, clock};
use std::io;
use weir_metrics::Failure;

/// Connections that are taken of a listener in a turn.
const ACCEPTED_A_TURN: usize = 256;
/// Bytes that are read of an accepted link in a turn: 65,536 short messages of one peer are some milliseconds of the
/// others' time.
const TURN: usize = 64 * 1024;

impl<W: World> Shard<W> {
    /// How long the peers of links may take that are accepted from now on.
    pub fn set_deadlines(&mut self, deadlines: Deadlines) {
        self.deadlines = deadlines;
    }

    /// Takes connections that wait, for their share of this turn.
    pub(super) fn accept(&mut self, position: usize) {
        for _ in 0..ACCEPTED_A_TURN {
            let listening = &mut self.listeners[position];
            let (stream, address) = match listening.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // Usually no descriptor is left. The kernel does not say again that someone waits.
                Err(_) => {
                    self.accept_again = Some(clock::now() + ACCEPT_AGAIN);
                    return;
                }
            };
            let Ok(link) = Link::accepted(stream, listening.tls.as_ref()) else { continue };
            let open = link.state == State::Open;
            let session = (listening.accept)(&mut self.world, address);
            if let Ok(id) = self.insert(link, None, session) {
                self.guard(id);
                if open {
                    self.dispatch(id, Event::Connected);
                }
            }
        }
        // Those who are there already have their turn in between.
        self.accept_again = Some(clock::now());
    }

    /// Bounds what an accepted link may take.
    fn guard(&mut self, id: SessionId) {
        let Some(entry) = entry_of(&mut self.entries, id) else { return };
        entry.turn_limit = TURN;
        let guard = entry.guard.insert(Box::new(Guard::new(self.deadlines, clock::now())));
        let next = guard.poll_timeout();
        self.guards.set(id, &mut guard.deadline, Some(next));
    }

    /// Ends accepted links whose deadline has passed.
    pub(super) fn judge_accepted(&mut self) {
        let now = clock::now();
        while let Some((_, id)) = self.guards.pop(now, &mut Guards(&mut self.entries)) {
            let Some(entry) = entry_of(&mut self.entries, id) else {
                continue;
            };
            let Some(mut guard) = entry.guard.take() else { continue };
            let verdict = guard.judge(now, || taken(entry));
            let (failure, words) = match verdict {
                DeadlineOutcome::GoesOn(at) => {
                    let guard = entry.guard.insert(guard);
                    self.guards.set(id, &mut guard.deadline, Some(at));
                    continue;
                }
                DeadlineOutcome::NoRequest(span) => {
                    (Failure::RequestTimeout, format!("no request within {span:?}"))
                }
                DeadlineOutcome::Idle(span) => (Failure::RequestTimeout, format!("silent for {span:?}")),
            };
            self.end(id, &LinkError { failure, words });
        }
    }
}
