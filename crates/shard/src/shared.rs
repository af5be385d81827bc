//! A socket of datagrams that sessions of one shard share. Each datagram that comes is for the session that has claimed its recipient, and what
//! sessions send leaves together. Knows no protocol: whom a datagram is for, [`Sharing`] says.

use crate::SessionId;
use crate::datagrams::{Batch, DatagramLink, Piece, Refusal, local_for};
use crate::endpoint::{Endpoint, Sharing};
use crate::link_error::LinkError;
use std::cell::{Cell, RefCell};
use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use weir_metrics::Moment;

/// What the kernel may keep for the clients of one socket: eight times what it may for one of its own. The kernel cuts it to
/// `net.core.rmem_max`.
const RECEIVE_BUFFER: usize = 8 << 20;
/// What waits for the end of a turn at the most before it is given to the kernel, so that it is still in the processor's cache.
const FLUSH_AT: usize = 256 << 10;
/// What may wait here for a socket that is full: as much as the socket itself was asked to hold.
const MOST_WAITING: usize = 4 << 20;
/// Bytes that leave in one system call at the most: with its headers, what UDP GSO puts together is one datagram of IP.
const MOST_RUN: usize = 60_000;

/// A socket with its sessions.
pub(crate) struct SharedSocket {
    link: DatagramLink,
    sharing: Arc<Sharing>,
    endpoint: SocketAddr,
    from: Option<IpAddr>,
    members: Vec<SessionId>,
    recipients: HashMap<u32, SessionId>,
    /// Where the sessions send to: the endpoint, by an address that datagrams come from.
    to: SocketAddr,
    long: SendQueue,
    /// Datagrams that leave behind the others.
    short: SendQueue,
    /// Whether the socket took no more when it was tried last.
    is_full: bool,
    /// Longer datagrams than this one are longer than the way out takes.
    longest: usize,
    /// Bytes that it has taken from its sessions.
    given: u64,
    /// Datagrams that were not taken, or were too long.
    refused: u64,
    /// Dropped and refused datagrams that a session was told of.
    told: u64,
}

/// Datagrams that wait to leave, in their order.
#[derive(Default)]
struct SendQueue {
    bytes: Vec<u8>,
    runs: VecDeque<Run>,
}

/// Datagrams of one length, of which the last may be shorter.
struct Run {
    bytes: usize,
    length: usize,
}

/// A session's part in a shared socket; it ends when this is dropped.
pub(crate) struct Membership {
    socket: Rc<RefCell<SharedSocket>>,
    /// The key of the socket among those of the shard.
    pub(crate) key: usize,
    id: SessionId,
    recipient: Option<u32>,
    /// Dropped datagrams that this session was told of.
    dropped: Cell<u64>,
}

impl SharedSocket {
    /// A socket that is connected to the endpoint: the kernel drops what comes from elsewhere.
    pub(crate) fn open(
        endpoint: &Endpoint,
        from: Option<IpAddr>,
        sharing: &Arc<Sharing>,
    ) -> Result<Self, LinkError> {
        let mut link = DatagramLink::open(local_for(endpoint.address.ip(), from))?;
        link.keep(RECEIVE_BUFFER);
        link.connect(endpoint.address);
        Ok(Self {
            link,
            sharing: Arc::clone(sharing),
            endpoint: endpoint.address,
            from,
            members: Vec::new(),
            recipients: HashMap::new(),
            to: endpoint.address,
            long: SendQueue::default(),
            short: SendQueue::default(),
            is_full: false,
            longest: usize::MAX,
            given: 0,
            refused: 0,
            told: 0,
        })
    }

    /// Whether sessions to this endpoint may be on this socket.
    pub(crate) fn is_for(&self, endpoint: &Endpoint, from: Option<IpAddr>, sharing: &Arc<Sharing>) -> bool {
        Arc::ptr_eq(&self.sharing, sharing) && self.endpoint == endpoint.address && self.from == from
    }

    /// The socket itself.
    pub(crate) fn link(&mut self) -> &mut DatagramLink {
        &mut self.link
    }

    /// Its sessions.
    pub(crate) fn members(&self) -> &[SessionId] {
        &self.members
    }

    /// Whether something may be left to read that came before `moment`.
    pub(crate) fn is_behind(&self, moment: Moment) -> bool {
        self.link.is_behind(moment)
    }

    /// Finds the session of each datagram that came: those of one session follow each other, in the order of arrival. What is for none of them
    /// is left out, as a late one for a session that is gone.
    pub(crate) fn assign(&self, buffer: &[u8], batch: &Batch, assigned: &mut Vec<(SessionId, Piece)>) {
        assigned.clear();
        assigned.extend(batch.datagrams().filter_map(|piece| {
            let recipient = (self.sharing.recipient)(piece.bytes(buffer))?;
            Some((*self.recipients.get(&recipient)?, piece))
        }));
        assigned.sort_by_key(|(id, _)| *id);
    }

    fn waiting(&self) -> usize {
        self.long.bytes.len() + self.short.bytes.len()
    }

    /// Whether something waits for a socket that was full.
    pub(crate) fn waits(&self) -> bool {
        self.waiting() > 0
    }

    fn send(&mut self, to: SocketAddr, bytes: &[u8], length: usize) -> usize {
        let length = length.max(1);
        let count = bytes.len().div_ceil(length);
        if length > self.longest || self.waiting() + bytes.len() > MOST_WAITING {
            self.refused += count as u64;
            return 0;
        }
        self.to = to;
        self.given += bytes.len() as u64;
        let is_short = length <= self.sharing.short;
        let lane = if is_short { &mut self.short } else { &mut self.long };
        lane.add(bytes, length);
        if self.waiting() > FLUSH_AT && !self.is_full {
            self.flush();
        }
        count
    }

    /// Gives the kernel what waits. What it has no room for waits on.
    pub(crate) fn flush(&mut self) {
        self.is_full = false;
        for lane in [&mut self.long, &mut self.short] {
            let mut left = 0;
            while let Some(run) = lane.runs.front_mut().filter(|_| !self.is_full) {
                let sent = self.link.try_send(self.to, &lane.bytes[left..left + run.bytes], run.length);
                let taken = run.bytes.min(sent.taken * run.length);
                if let Some(Refusal::Full) = sent.refusal {
                    run.bytes -= taken;
                    left += taken;
                    self.is_full = true;
                    break;
                }
                if let Some(Refusal::TooLong) = sent.refusal {
                    self.refused += (run.bytes - taken).div_ceil(run.length) as u64;
                    self.longest = self.longest.min(run.length - 1);
                }
                left += run.bytes;
                lane.runs.pop_front();
            }
            lane.bytes.drain(..left);
            // One burst would else cost megabytes for as long as the socket lasts.
            lane.bytes.shrink_to(FLUSH_AT);
        }
    }

    /// What this socket has dropped and refused in all.
    fn dropped(&self) -> u64 {
        self.link.dropped() + self.refused
    }
}

impl Drop for SharedSocket {
    /// What still waits is tried once: the last words of the last sessions.
    fn drop(&mut self) {
        self.flush();
    }
}

impl SendQueue {
    fn add(&mut self, bytes: &[u8], length: usize) {
        self.bytes.extend_from_slice(bytes);
        // Behind a datagram that is shorter than the others nothing can follow, and one that is longer than they are cannot either.
        let goes_on = |last: &&mut Run| {
            let is_whole = last.bytes.is_multiple_of(last.length);
            let fits = length == last.length || bytes.len() == length && length < last.length;
            is_whole && fits && last.bytes + bytes.len() <= MOST_RUN
        };
        match self.runs.back_mut().filter(goes_on) {
            Some(last) => last.bytes += bytes.len(),
            None => self.runs.push_back(Run { bytes: bytes.len(), length }),
        }
    }
}

impl Membership {
    /// A session joins.
    pub(crate) fn new(socket: &Rc<RefCell<SharedSocket>>, key: usize, id: SessionId) -> Self {
        socket.borrow_mut().members.push(id);
        Self { socket: Rc::clone(socket), key, id, recipient: None, dropped: Cell::new(0) }
    }

    pub(crate) fn send(&self, to: SocketAddr, bytes: &[u8], length: usize) -> usize {
        self.socket.borrow_mut().send(to, bytes, length)
    }

    pub(crate) fn claim(&mut self, recipient: u32) -> bool {
        let mut socket = self.socket.borrow_mut();
        if socket.recipients.get(&recipient).is_some_and(|id| *id != self.id) {
            return false;
        }
        if let Some(before) = self.recipient.replace(recipient) {
            socket.recipients.remove(&before);
        }
        socket.recipients.insert(recipient, self.id);
        true
    }

    pub(crate) fn given(&self) -> u64 {
        self.socket.borrow().given
    }

    pub(crate) fn unsent(&self) -> u64 {
        let socket = self.socket.borrow();
        socket.link.unsent() + socket.waiting() as u64
    }

    /// Those that no other session was told of, and those that this one was told of before.
    pub(crate) fn dropped(&self) -> u64 {
        let mut socket = self.socket.borrow_mut();
        let all = socket.dropped();
        let new = all - std::mem::replace(&mut socket.told, all).min(all);
        self.dropped.set(self.dropped.get() + new);
        self.dropped.get()
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut socket = self.socket.borrow_mut();
        socket.members.retain(|member| *member != self.id);
        if let Some(recipient) = self.recipient {
            socket.recipients.remove(&recipient);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(lane: &SendQueue) -> Vec<(usize, usize)> {
        lane.runs.iter().map(|run| (run.bytes, run.length)).collect()
    }

    #[test]
    fn datagrams_of_several_sessions_leave_in_one_call_as_far_as_their_lengths_allow() {
        let mut lane = SendQueue::default();
        lane.add(&[0; 250], 100);
        // Nothing follows a short one, and a shorter one ends a run.
        lane.add(&[0; 200], 100);
        lane.add(&[0; 30], 30);
        lane.add(&[0; 30], 30);
        lane.add(&[0; 30], 30);
        lane.add(&[0; 40], 40);
        assert_eq!(runs(&lane), [(250, 100), (230, 100), (60, 30), (40, 40)]);
        assert_eq!(lane.bytes.len(), 580);
        let mut lane = SendQueue::default();
        (0..100).for_each(|_| lane.add(&[0; 1_332], 1_332));
        assert_eq!(runs(&lane), [(45 * 1_332, 1_332), (45 * 1_332, 1_332), (10 * 1_332, 1_332)]);
    }
}
