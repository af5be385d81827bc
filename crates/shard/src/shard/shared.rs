//! Sockets of datagrams that sessions share: opened, polled, read, and given what the sessions of a turn have sent.

use super::{READS_A_TURN, SHARED, Shard};
use crate::datagrams::{Batch, Datagrams, Piece};
use crate::endpoint::{Endpoint, Sharing};
use crate::link_error::LinkError;
use crate::links::Links;
use crate::shared::{Membership, SharedSocket};
use crate::{Event, Session, SessionId, World};
use mio::unix::SourceFd;
use mio::{Interest, Token};
use slab::Slab;
use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::{Failure, Moment};

/// Reads that empty any socket: what comes meanwhile is not waited for.
const READS_TO_CATCH_UP: usize = 1_024;
/// When a socket that was full is tried again: at 1 Gbit/s it has room for 600 kB more.
const TRY_AGAIN: Duration = Duration::from_millis(5);

/// The shared sockets of a shard.
pub(crate) struct SharedLinks {
    sockets: Slab<Rc<RefCell<SharedSocket>>>,
    /// Those that were left with something to read.
    unread: Vec<usize>,
    /// The number of this thread, and of all threads that sessions with one [`Sharing`] are spread over.
    thread: (u32, u32),
    assigned: Vec<(SessionId, Piece)>,
    batch: Batch,
    /// The keys of a turn: what is done at a socket may add and remove others.
    keys: Vec<usize>,
}

impl Default for SharedLinks {
    fn default() -> Self {
        Self {
            sockets: Slab::new(),
            unread: Vec::new(),
            thread: (0, 1),
            assigned: Vec::new(),
            batch: Batch::default(),
            keys: Vec::new(),
        }
    }
}

impl SharedLinks {
    /// Whether none of them was left with something to read.
    pub(super) fn are_read(&self) -> bool {
        self.unread.is_empty()
    }

    /// When to try those again that were full.
    pub(super) fn poll_timeout(&self, now: Moment) -> Option<Moment> {
        self.sockets.iter().any(|(_, socket)| socket.borrow().waits()).then_some(now + TRY_AGAIN)
    }

    /// How many of these sockets are this thread's, one at the least.
    fn share(&self, sockets: u32) -> usize {
        let (number, threads) = self.thread;
        (sockets / threads + u32::from(number < sockets % threads)).max(1) as usize
    }
}

impl<W: World> Shard<W> {
    /// Says which of several threads this one is, so that all of them together open as many shared sockets as [`Sharing`] says.
    pub fn set_thread(&mut self, number: usize, threads: usize) {
        self.shared.thread = (number as u32, (threads as u32).max(1));
    }

    /// Begins a session on a socket that others share: [`Event::Opening`], and at once [`Event::Connected`].
    pub(super) fn open_shared(
        &mut self,
        endpoint: &Endpoint,
        sharing: &Arc<Sharing>,
        session: Box<dyn Session<W>>,
    ) -> Result<SessionId, (Box<dyn Session<W>>, LinkError)> {
        let from = endpoint.from;
        let (key, socket) = match self.socket_for(endpoint, from, sharing) {
            Ok(found) => found,
            Err(error) => return Err((session, error)),
        };
        let id = self.enter(Links { is_udp: true, from, ..Links::default() }, session);
        self.join(id, key, &socket);
        self.dispatch(id, Event::Opening);
        self.dispatch(id, Event::Connected);
        Ok(id)
    }

    /// Puts a session on a socket that others share, in the place of the link that it had.
    pub(super) fn reopen_shared(
        &mut self,
        id: SessionId,
        endpoint: &Endpoint,
        sharing: &Arc<Sharing>,
    ) -> Result<(), LinkError> {
        let Some(from) = self.alive(id).map(|entry| entry.links.from) else { return Ok(()) };
        let (key, socket) = self.socket_for(endpoint, from, sharing)?;
        self.join(id, key, &socket);
        Ok(())
    }

    fn join(&mut self, id: SessionId, key: usize, socket: &Rc<RefCell<SharedSocket>>) {
        if let Some(entry) = self.alive(id) {
            entry.links.shared = Some(Box::new(Membership::new(socket, key, id)));
        }
    }

    /// The socket that a further session is put on: another one while this thread has fewer than its share, and then that with the fewest sessions.
    fn socket_for(
        &mut self,
        endpoint: &Endpoint,
        from: Option<IpAddr>,
        sharing: &Arc<Sharing>,
    ) -> Result<(usize, Rc<RefCell<SharedSocket>>), LinkError> {
        let from = from.filter(|from| from.is_ipv4() == endpoint.address.is_ipv4());
        let sockets = self.shared.sockets.iter();
        let fitting = sockets.filter(|(_, socket)| socket.borrow().is_for(endpoint, from, sharing));
        let (mut count, mut emptiest) = (0, None);
        for (key, socket) in fitting {
            let members = socket.borrow().members().len();
            count += 1;
            if emptiest.as_ref().is_none_or(|(_, _, fewest)| members < *fewest) {
                emptiest = Some((key, Rc::clone(socket), members));
            }
        }
        if let Some((key, socket, _)) = emptiest.filter(|_| count >= self.shared.share(sharing.sockets)) {
            return Ok((key, socket));
        }
        let mut socket = SharedSocket::open(endpoint, from, sharing)?;
        let descriptor = socket.link().descriptor();
        let vacant = self.shared.sockets.vacant_entry();
        let key = vacant.key();
        self.poll
            .registry()
            .register(&mut SourceFd(&descriptor), Token(key | SHARED), Interest::READABLE)
            .map_err(|error| LinkError { failure: Failure::SocketError, words: error.to_string() })?;
        let socket = Rc::new(RefCell::new(socket));
        vacant.insert(Rc::clone(&socket));
        Ok((key, socket))
    }

    /// Something came to a shared socket.
    pub(super) fn on_shared_ready(&mut self, key: usize) {
        self.read_shared(key, READS_A_TURN);
    }

    /// Reads what earlier turns have left, each for its share of this turn.
    pub(super) fn read_shared_left_over(&mut self, unread: &[usize]) {
        unread.iter().for_each(|key| self.read_shared(*key, READS_A_TURN));
    }

    /// Those that earlier turns have left with something to read.
    pub(super) fn take_shared_unread(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.shared.unread)
    }

    /// Reads what came before `moment` to the socket of a session, if it was not read to its end.
    pub(super) fn catch_up_shared(&mut self, id: SessionId, moment: Moment) {
        let entry = self.entries.get(id.key as usize).filter(|entry| entry.id == id);
        let Some(key) = entry.and_then(|entry| entry.links.shared.as_ref()).map(|it| it.key) else { return };
        if self.shared.sockets.get(key).is_some_and(|socket| socket.borrow().is_behind(moment)) {
            self.read_shared(key, READS_TO_CATCH_UP);
        }
    }

    /// Reads a socket until it is empty, or this many times, and hands each session what is for it.
    fn read_shared(&mut self, key: usize, reads: usize) {
        for _ in 0..reads {
            let Some(socket) = self.shared.sockets.get(key).map(Rc::clone) else { return };
            let received = socket.borrow_mut().link().receive(&mut self.buffer, &mut self.batch);
            let met = socket.borrow_mut().link().take_met();
            let Some(more) = received else { return self.end_of_shared(&socket, met) };
            let mut assigned = std::mem::take(&mut self.shared.assigned);
            socket.borrow().assign(&self.buffer, &self.batch, &mut assigned);
            let (mut buffer, mut batch) =
                (std::mem::take(&mut self.buffer), std::mem::take(&mut self.shared.batch));
            for of_one in assigned.chunk_by(|one, next| one.0 == next.0) {
                batch.refill(of_one.iter().map(|(_, piece)| *piece));
                self.dispatch(of_one[0].0, Event::Datagrams(Datagrams::new(&mut buffer, &batch)));
            }
            (self.buffer, self.shared.batch, self.shared.assigned) = (buffer, batch, assigned);
            if !more {
                return;
            }
        }
        if !self.shared.unread.contains(&key) {
            self.shared.unread.push(key);
        }
    }

    /// What the datagrams of a socket have met, all of its sessions have: they have one peer.
    fn end_of_shared(&mut self, socket: &Rc<RefCell<SharedSocket>>, met: Option<LinkError>) {
        let Some(LinkError { failure, words }) = met else { return };
        let members = socket.borrow().members().to_vec();
        for id in members {
            self.end_of_datagrams(id, Some(LinkError { failure, words: words.clone() }));
        }
    }

    /// Gives the kernel what sessions have sent, and lets go of sockets that no session is on.
    pub(super) fn flush_shared(&mut self) {
        if self.shared.sockets.is_empty() {
            return;
        }
        let mut keys = std::mem::take(&mut self.shared.keys);
        keys.extend(self.shared.sockets.iter().map(|(key, _)| key));
        for key in keys.drain(..) {
            let Some(socket) = self.shared.sockets.get(key).map(Rc::clone) else { continue };
            let has_met = {
                let mut socket = socket.borrow_mut();
                if socket.waits() {
                    socket.flush();
                }
                socket.link().has_met()
            };
            if has_met {
                // What came before it is read before it.
                self.read_shared(key, READS_A_TURN);
            }
            if socket.borrow().members().is_empty() {
                let descriptor = socket.borrow_mut().link().descriptor();
                let _ = self.poll.registry().deregister(&mut SourceFd(&descriptor));
                self.shared.sockets.remove(key);
                self.shared.unread.retain(|unread| *unread != key);
            }
        }
        self.shared.keys = keys;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_together_have_as_many_sockets_as_were_asked_for_and_each_has_one() {
        for (sockets, threads, expected) in
            [(7, 3, vec![3, 2, 2]), (4, 2, vec![2, 2]), (1, 1, vec![1]), (1, 3, vec![1, 1, 1])]
        {
            let share =
                |number| SharedLinks { thread: (number, threads), ..SharedLinks::default() }.share(sockets);
            assert_eq!((0..threads).map(share).collect::<Vec<_>>(), expected);
        }
    }
}
