//! Reads the sessions' own links into the shard's one buffer, decrypts what it read, and dispatches it.

use super::{RECEIVE_BUFFER, Shard, entry_of};
use crate::link::Link;
use crate::link_error::State;
use crate::links::{EachKind, LinkKind};
use crate::{Event, SessionId, World, clock};

impl<W: World> Shard<W> {
    /// Has a link read in the next turn: once, however often that is asked for before.
    pub(super) fn read_next_turn(&mut self, id: SessionId, kind: LinkKind) {
        if let Some(entry) = self.alive(id)
            && !std::mem::replace(&mut entry.queued[kind as usize], true)
        {
            self.unread[kind as usize].push(id);
        }
    }

    /// Whether a link is to be read in any case, behind the events of this turn or in the next one.
    pub(super) fn is_queued(&self, id: SessionId, kind: LinkKind) -> bool {
        let entry = self.entries.get(id.key as usize).filter(|entry| entry.id == id);
        entry.is_some_and(|entry| entry.queued[kind as usize])
    }

    /// Reads links that earlier turns have left with something to read, each for its share of this turn.
    pub(super) fn read_left_over(&mut self, unread: EachKind<Vec<SessionId>>) {
        for (kind, ids) in [LinkKind::Stream, LinkKind::Datagrams, LinkKind::Side].into_iter().zip(unread) {
            for id in ids {
                let Some(entry) = self.alive(id) else { continue };
                entry.queued[kind as usize] = false;
                match kind {
                    LinkKind::Stream => self.read(id, true),
                    LinkKind::Datagrams => self.read_datagrams(id),
                    LinkKind::Side => self.read_side(id, true),
                }
            }
        }
    }

    /// Reads a link until it is empty, or for its share of this turn. A short read means empty,
    /// except that a peer's end (`to_end`) still waits behind it.
    pub(super) fn read(&mut self, id: SessionId, to_end: bool) {
        if self.tell_given_back(id) {
            return;
        }
        let Some(entry) = entry_of(&mut self.entries, id) else { return };
        let (mut left, ended) = (entry.turn_limit, entry.ended.take());
        if let Some(error) = ended {
            return self.end(id, &error);
        }
        while left > 0 {
            match self.read_once(id, &mut left) {
                Some(full) if !full && !to_end => return,
                Some(_) => {}
                None => return,
            }
        }
        self.read_next_turn(id, LinkKind::Stream);
    }

    /// Reads once, at most `left` bytes of this turn, and passes them to the session. Returns whether it read all that it may;
    /// `None`: nothing waited, the session has ended, or it has given bytes back.
    fn read_once(&mut self, id: SessionId, left: &mut usize) -> Option<bool> {
        let entry = entry_of(&mut self.entries, id)?;
        entry.choked = entry.is_choked();
        let (paused, limit) = (entry.paused || entry.choked, entry.read_limit.min(*left));
        let link = entry.links.stream.as_mut().filter(|link| !paused && link.state != State::Connecting)?;
        let n = match link.read(&mut self.buffer[..limit]) {
            Ok(Some(n)) => n,
            Ok(None) => return None,
            Err(error) => {
                self.end(id, &error);
                return None;
            }
        };
        *left -= n;
        if let Some(guard) = &mut entry.guard {
            guard.on_input(clock::now());
        }
        if link.is_tls() {
            self.plain.clear();
            let decrypted = link.decrypt(&self.buffer[..n], &mut self.plain);
            let plain = std::mem::take(&mut self.plain);
            if decrypted.opened {
                self.connected(id);
            }
            if !plain.is_empty() {
                self.dispatch(id, Event::Bytes(&plain));
            }
            // The end of a link that its session has let go of is not the end of the next one.
            if let Some(error) = decrypted.end
                && self.stream_of(id).is_some_and(|link| link.state != State::Connecting)
            {
                match self.entries.get_mut(id.key as usize) {
                    Some(entry) if !entry.given_back.is_empty() => entry.ended = Some(Box::new(error)),
                    _ => self.end(id, &error),
                }
            }
            self.plain = plain;
        } else {
            let buffer = std::mem::take(&mut self.buffer);
            self.dispatch(id, Event::Bytes(&buffer[..n]));
            self.buffer = buffer;
        }
        let has_given_back = self.alive(id).is_none_or(|entry| !entry.given_back.is_empty());
        (!has_given_back).then_some(n == limit)
    }

    /// Answers [`Context::pull`]: one read, and [`Event::Bytes`] even if it brought nothing in clear.
    pub(super) fn pull(&mut self, id: SessionId) {
        let mut left = RECEIVE_BUFFER;
        let read = self.read_once(id, &mut left).is_some();
        // A piece of a TLS record brings nothing yet; an empty slice more after a whole one does no harm.
        if !read || self.stream_of(id).is_some_and(Link::is_tls) {
            self.dispatch(id, Event::Bytes(&[]));
        }
    }

    pub(super) fn stream_of(&self, id: SessionId) -> Option<&Link> {
        let entry = self.entries.get(id.key as usize).filter(|entry| entry.id == id)?;
        entry.links.stream.as_ref()
    }

    /// Passes a session again what it has given back. `true`: it has given something back once more, or is not read from.
    fn tell_given_back(&mut self, id: SessionId) -> bool {
        let Some(entry) = entry_of(&mut self.entries, id) else {
            return true;
        };
        if entry.given_back.is_empty() {
            return false;
        }
        // Passed on when it is read from again.
        entry.choked = entry.is_choked();
        if entry.paused || entry.choked {
            return true;
        }
        let bytes = std::mem::take(&mut entry.given_back);
        self.dispatch(id, Event::Bytes(&bytes));
        self.alive(id).is_none_or(|entry| !entry.given_back.is_empty())
    }
}
