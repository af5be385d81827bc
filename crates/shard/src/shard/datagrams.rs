//! Links of datagrams: opened, polled and read.

use super::{DATAGRAMS, READS_A_TURN, Shard, entry_of};
use crate::datagrams::{DatagramLink, Datagrams, local_for};
use crate::endpoint::{Endpoint, Transport};
use crate::link_error::{LinkError, OpenError};
use crate::links::{LinkKind, Links};
use crate::{Event, Session, SessionId, World, clock};
use mio::unix::SourceFd;
use mio::{Interest, Token};
use std::net::{IpAddr, SocketAddr};
use weir_metrics::{Failure, Moment};

/// Reads that empty any socket: what comes meanwhile is not waited for.
const READS_TO_CATCH_UP: usize = 1_024;

impl<W: World> Shard<W> {
    /// Begins a session that has a link of datagrams only, at `local`: [`Event::Opening`]. Port 0 is any free one; says
    /// which it is.
    ///
    /// # Errors
    /// The address is taken, or not of this machine; or no descriptor was left. The session gets no event.
    pub fn open_datagrams(
        &mut self,
        local: SocketAddr,
        session: Box<dyn Session<W>>,
    ) -> Result<(SessionId, SocketAddr), OpenError> {
        let link = DatagramLink::open(local)?;
        let address = SocketAddr::new(local.ip(), link.port());
        let links = Links { datagrams: Some(Box::new(link)), unpolled: true, ..Links::default() };
        let id = self.enter(links, session);
        self.poll_datagrams(id)?;
        self.dispatch(id, Event::Opening);
        Ok((id, address))
    }

    /// Polls the link of datagrams that a session has opened.
    pub(super) fn poll_datagrams(&mut self, id: SessionId) -> Result<(), LinkError> {
        let Some(entry) = entry_of(&mut self.entries, id) else {
            return Ok(());
        };
        if std::mem::take(&mut entry.links.unpolled)
            && let Some(link) = &entry.links.datagrams
        {
            let token = Token(id.key as usize | DATAGRAMS);
            for socket in link.sockets() {
                let descriptor = socket.descriptor();
                self.poll
                    .registry()
                    .register(&mut SourceFd(&descriptor), token, Interest::READABLE)
                    .map_err(|error| LinkError { failure: Failure::SocketError, words: error.to_string() })?;
            }
        }
        Ok(())
    }

    /// Reads datagrams until there are none, or for their share of this turn.
    pub(super) fn read_datagrams(&mut self, id: SessionId) {
        self.read_datagrams_for(id, READS_A_TURN);
    }

    /// Reads what came before `moment`, if the session lets it wait or has not come to its end yet.
    pub(super) fn catch_up(&mut self, id: SessionId, moment: Moment) {
        let entry = self.entries.get(id.key as usize).filter(|entry| entry.id == id);
        let link = entry.and_then(|entry| entry.links.datagrams.as_ref());
        if link.is_some_and(|link| link.is_behind(moment)) {
            self.read_datagrams_for(id, READS_TO_CATCH_UP);
        }
        self.catch_up_shared(id, moment);
    }

    fn read_datagrams_for(&mut self, id: SessionId, reads: usize) {
        for _ in 0..reads {
            let entry = entry_of(&mut self.entries, id);
            let Some(link) = entry.and_then(|entry| entry.links.datagrams.as_mut()) else { return };
            let received = link.receive(&mut self.buffer, &mut self.batch);
            let met = link.take_met();
            let Some(more) = received else { return self.end_of_datagrams(id, met) };
            self.settle_waiting(id);
            let (mut buffer, batch) = (std::mem::take(&mut self.buffer), std::mem::take(&mut self.batch));
            self.dispatch(id, Event::Datagrams(Datagrams::new(&mut buffer, &batch)));
            (self.buffer, self.batch) = (buffer, batch);
            if !more {
                return;
            }
        }
        self.read_next_turn(id, LinkKind::Datagrams);
    }

    /// What a session's datagrams have met is its end if it has nothing else; where they stand beside a link, each of many
    /// paths may be tried, and one that leads nowhere is no news.
    pub(super) fn end_of_datagrams(&mut self, id: SessionId, met: Option<LinkError>) {
        let is_udp = self.alive(id).is_some_and(|entry| entry.links.is_udp);
        if let Some(error) = met.filter(|_| is_udp) {
            self.dispatch(id, Event::Closed { failure: error.failure, words: &error.words });
            if self.alive(id).is_some_and(|entry| !entry.stands_by) {
                self.remove(id);
            }
        }
    }

    /// Lets go of the datagrams of a session that has nothing else.
    pub(super) fn hang_up_datagrams(&mut self, id: SessionId) {
        let Some(entry) = entry_of(&mut self.entries, id).filter(|entry| entry.links.is_udp) else { return };
        entry.links.shared = None;
        let Some(link) = entry.links.datagrams.take() else { return };
        if link.waits() {
            self.batched_reads.leave(id);
        } else {
            // Closing the descriptor deregisters it as well.
            let _ = self.poll.registry().deregister(&mut SourceFd(&link.descriptor()));
        }
    }

    /// Puts another link of datagrams in the place of a session's.
    pub(super) fn reopen_udp(&mut self, id: SessionId, endpoint: &Endpoint) {
        self.hang_up_datagrams(id);
        let Some(entry) = entry_of(&mut self.entries, id) else { return };
        entry.stands_by = false;
        if let Transport::SharedUdp(sharing) = &endpoint.transport {
            return match self.reopen_shared(id, endpoint, sharing) {
                Ok(()) => self.dispatch(id, Event::Connected),
                Err(error) => self.end_of_datagrams(id, Some(error)),
            };
        }
        match link_to(endpoint, entry.links.from) {
            Ok(link) => (entry.links.datagrams, entry.links.unpolled) = (Some(Box::new(link)), true),
            Err(error) => return self.end_of_datagrams(id, Some(error)),
        }
        match self.poll_datagrams(id) {
            Ok(()) => self.dispatch(id, Event::Connected),
            Err(error) => self.end_of_datagrams(id, Some(error)),
        }
    }

    /// Begins a session whose link to its peer is UDP: [`Event::Opening`], and at once [`Event::Connected`].
    pub(super) fn open_udp(
        &mut self,
        endpoint: &Endpoint,
        session: Box<dyn Session<W>>,
    ) -> Result<SessionId, (Box<dyn Session<W>>, LinkError)> {
        let link = match link_to(endpoint, endpoint.from) {
            Ok(link) => link,
            Err(error) => return Err((session, error)),
        };
        let (from, datagrams) = (endpoint.from, Some(Box::new(link)));
        let links = Links { datagrams, unpolled: true, is_udp: true, from, ..Links::default() };
        let id = self.enter(links, session);
        if let Err(error) = self.poll_datagrams(id) {
            return Err((self.entries.remove(id.key as usize).session, error));
        }
        self.dispatch(id, Event::Opening);
        self.dispatch(id, Event::Connected);
        Ok(id)
    }

    /// Whether datagrams of a session wait to be read together.
    pub(super) fn lets_wait(&self, id: SessionId) -> bool {
        let entry = self.entries.get(id.key as usize).filter(|entry| entry.id == id);
        entry.and_then(|entry| entry.links.datagrams.as_ref()).is_some_and(|link| link.waits())
    }

    /// A session's wish: its datagrams are read in batched_reads from now on, or at every event.
    pub(super) fn wish_to_wait(&mut self, id: SessionId, wait: bool) {
        let Some(entry) = entry_of(&mut self.entries, id) else { return };
        if let Some(link) = &mut entry.links.datagrams {
            link.may_wait = wait;
            self.settle_waiting(id);
        }
    }

    /// Takes the datagrams of a session out of the poll, or puts them back, as is best now.
    fn settle_waiting(&mut self, id: SessionId) {
        let Some(entry) = entry_of(&mut self.entries, id) else { return };
        let Some(link) = &mut entry.links.datagrams else { return };
        let Some(wait) = link.change() else { return };
        let descriptor = link.descriptor();
        let registry = self.poll.registry();
        let done = if wait {
            registry.deregister(&mut SourceFd(&descriptor))
        } else {
            registry.register(
                &mut SourceFd(&descriptor),
                Token(id.key as usize | DATAGRAMS),
                Interest::READABLE,
            )
        };
        // Otherwise all stays as it was, and goes on.
        if done.is_ok() {
            link.set_waits(wait);
            if wait {
                self.batched_reads.join(id, clock::now());
            } else {
                self.batched_reads.leave(id);
            }
        }
    }

    /// Reads those whose turn it is.
    pub(super) fn hold_rounds(&mut self) {
        let mut turns = std::mem::take(&mut self.turns);
        let now = clock::now();
        self.batched_reads.take(now, &mut turns);
        for id in turns.drain(..) {
            // One that is queued has had its share of this turn, or has it in the next.
            if !self.is_queued(id, LinkKind::Datagrams) {
                self.read_datagrams(id);
            }
            if self.lets_wait(id) {
                self.batched_reads.join(id, now);
            }
        }
        self.turns = turns;
    }
}

/// A link to a peer, from this address if it is of the peer's family; or one at an address of this machine.
fn link_to(endpoint: &Endpoint, from: Option<IpAddr>) -> Result<DatagramLink, LinkError> {
    if let Transport::BoundUdp = endpoint.transport {
        return DatagramLink::open(endpoint.address);
    }
    let from = from.filter(|from| from.is_ipv4() == endpoint.address.is_ipv4());
    let link = DatagramLink::open(local_for(endpoint.address.ip(), from))?;
    link.connect(endpoint.address);
    Ok(link)
}
