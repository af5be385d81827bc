//! The link beside a session's own: polled, read and ended apart from it.

use super::{READS_A_TURN, RECEIVE_BUFFER, SIDE, Shard, entry_of};
use crate::link::Link;
use crate::link_error::{LinkError, State};
use crate::links::LinkKind;
use crate::{Event, SessionId, Side, World};
use mio::{Interest, Token};
use weir_metrics::Failure;

impl<W: World> Shard<W> {
    /// Polls the link that a session has opened beside its own.
    pub(super) fn poll_side(&mut self, id: SessionId) {
        let Some(entry) = entry_of(&mut self.entries, id) else { return };
        entry.links.side_unpolled = false;
        let Some(link) = &mut entry.links.side else { return };
        let interest = Interest::READABLE | Interest::WRITABLE;
        let token = Token(id.key as usize | SIDE);
        if let Err(error) = self.poll.registry().register(&mut link.stream, token, interest) {
            self.end_side(id, &LinkError { failure: Failure::SocketError, words: error.to_string() });
        }
    }

    pub(super) fn on_side_ready(&mut self, key: usize, event: &mio::event::Event) {
        let Some(id) = self.entries.get(key).map(|entry| entry.id) else { return };
        let has_share = self.is_queued(id, LinkKind::Side);
        if event.is_writable() || event.is_error() {
            match self.side_of(id).map(Link::writable) {
                Some(Ok(true)) => self.dispatch(id, Event::Side(Side::Connected)),
                Some(Err(error)) => self.end_side(id, &error),
                Some(Ok(false)) | None => {}
            }
        }
        if (event.is_readable() || event.is_read_closed()) && !has_share {
            self.read_side(id, event.is_read_closed());
        }
    }

    fn side_of(&mut self, id: SessionId) -> Option<&mut Link> {
        self.alive(id)?.links.side.as_deref_mut()
    }

    /// Reads until there is nothing, or for its share of this turn.
    pub(super) fn read_side(&mut self, id: SessionId, to_end: bool) {
        for _ in 0..READS_A_TURN {
            match self.read_side_once(id) {
                Some(full) if !full && !to_end => return,
                Some(_) => {}
                None => return,
            }
        }
        self.read_next_turn(id, LinkKind::Side);
    }

    /// Reads once and passes that to the session. Returns whether it read all that it may; `None`: nothing waited, or the link has
    /// ended.
    fn read_side_once(&mut self, id: SessionId) -> Option<bool> {
        let entry = entry_of(&mut self.entries, id)?;
        let link = entry.links.side.as_mut().filter(|link| link.state != State::Connecting)?;
        let n = match link.read(&mut self.buffer[..RECEIVE_BUFFER]) {
            Ok(Some(n)) => n,
            Ok(None) => return None,
            Err(error) => {
                self.end_side(id, &error);
                return None;
            }
        };
        if link.is_tls() {
            self.plain.clear();
            let decrypted = link.decrypt(&self.buffer[..n], &mut self.plain);
            let mut plain = std::mem::take(&mut self.plain);
            if decrypted.opened {
                self.dispatch(id, Event::Side(Side::Connected));
            }
            if !plain.is_empty() {
                self.dispatch(id, Event::Side(Side::Bytes(&mut plain)));
            }
            self.plain = plain;
            // The end of a link that its session has replaced is not the end of the next one.
            if let Some(error) = decrypted.end
                && self.side_of(id).is_some_and(|link| link.state != State::Connecting)
            {
                self.end_side(id, &error);
            }
        } else {
            let mut buffer = std::mem::take(&mut self.buffer);
            self.dispatch(id, Event::Side(Side::Bytes(&mut buffer[..n])));
            self.buffer = buffer;
        }
        Some(n == RECEIVE_BUFFER)
    }

    fn end_side(&mut self, id: SessionId, error: &LinkError) {
        self.hang_up_side(id);
        self.dispatch(id, Event::Side(Side::Closed { failure: error.failure, words: &error.words }));
    }

    pub(super) fn hang_up_side(&mut self, id: SessionId) {
        if let Some(mut link) = self.alive(id).and_then(|entry| entry.links.side.take()) {
            link.close();
            // Closing the descriptor deregisters it as well.
            let _ = self.poll.registry().deregister(&mut link.stream);
        }
    }
}
