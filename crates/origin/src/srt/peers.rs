//! The peers of one port: found by socket, by caller and by deadline, and counted by address and by what they hold. Knows no packet.

use slab::Slab;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::{IpAddr, SocketAddr};
use weir_metrics::Moment;

/// Peers at the most.
const MOST: usize = 4_096;
/// Those of one address: whoever comes from elsewhere finds room.
const MOST_OF_ADDRESS: usize = 2_048;
/// Bytes that all peers hold at the most. Each may hold 32 MiB in each direction, if it has asked for a latency of a minute: their number
/// is no bound. 4,096 publishers of 2 Mbit/s with a latency of a second take as much.
const MOST_HELD: usize = 1 << 30;
/// From here on no other peer is taken, so that those that are there can have what they need.
const ADMITTED_UP_TO: usize = MOST_HELD / 8 * 7;

/// Peers, each with what the port keeps of it.
pub(super) struct Peers<T> {
    entries: Slab<Entry<T>>,
    by_socket: HashMap<u32, usize>,
    by_caller: HashMap<(SocketAddr, u32), usize>,
    of_address: HashMap<IpAddr, usize>,
    /// Bytes that all of them hold.
    held: usize,
    /// Deadlines; an entry that is not its peer's `queued` is over.
    due: BinaryHeap<Reverse<(Moment, usize)>>,
}

struct Entry<T> {
    from: SocketAddr,
    caller: u32,
    socket: u32,
    at: Option<Moment>,
    /// The deadline in the queue. Moving it later leaves it where it is until it comes.
    queued: Option<Moment>,
    /// Bytes that it holds.
    held: usize,
    value: T,
}

/// Those that count as one: of IPv6 a network of 64 bits, which is what one machine has (RFC 6177).
pub(super) fn origin_of(from: SocketAddr) -> IpAddr {
    match from.ip().to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            IpAddr::from([a, b, c, d, 0, 0, 0, 0])
        }
        address => address,
    }
}

impl<T> Peers<T> {
    pub(super) fn new() -> Self {
        Self {
            entries: Slab::new(),
            by_socket: HashMap::new(),
            by_caller: HashMap::new(),
            of_address: HashMap::new(),
            held: 0,
            due: BinaryHeap::new(),
        }
    }

    /// Peers that are there.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// A peer holds this many bytes now.
    pub(super) fn hold(&mut self, key: usize, bytes: usize) {
        if let Some(entry) = self.entries.get_mut(key) {
            self.held = self.held - std::mem::replace(&mut entry.held, bytes) + bytes;
        }
    }

    /// Whether what is held leaves no room for another peer.
    pub(super) fn is_short_of_memory(&self) -> bool {
        self.held > ADMITTED_UP_TO
    }

    /// The peer that holds most, if all of them together hold more than they may.
    pub(super) fn heaviest_of_too_much(&self) -> Option<usize> {
        let heaviest = || self.entries.iter().max_by_key(|(_, entry)| entry.held);
        (self.held > MOST_HELD).then(heaviest)?.map(|(key, _)| key)
    }

    /// Whether another peer of this address finds no room.
    pub(super) fn is_full_for(&self, from: SocketAddr) -> bool {
        let of_address = self.of_address.get(&origin_of(from)).copied().unwrap_or(0);
        self.len() >= MOST || of_address >= MOST_OF_ADDRESS
    }

    /// Adds a peer, by its address, its own socket and the port's for it.
    pub(super) fn insert(&mut self, from: SocketAddr, caller: u32, socket: u32, value: T) -> usize {
        let key = self.entries.insert(Entry { from, caller, socket, at: None, queued: None, held: 0, value });
        self.by_socket.insert(socket, key);
        self.by_caller.insert((from, caller), key);
        *self.of_address.entry(origin_of(from)).or_default() += 1;
        key
    }

    pub(super) fn remove(&mut self, key: usize) -> Option<T> {
        let Entry { from, caller, socket, held, value, .. } = self.entries.try_remove(key)?;
        self.held -= held;
        self.by_socket.remove(&socket);
        self.by_caller.remove(&(from, caller));
        if let Some(count) = self.of_address.get_mut(&origin_of(from)) {
            *count -= 1;
            if *count == 0 {
                self.of_address.remove(&origin_of(from));
            }
        }
        Some(value)
    }

    /// The peer at this address for which the port has this socket.
    pub(super) fn of_socket(&self, socket: u32, from: SocketAddr) -> Option<usize> {
        let key = *self.by_socket.get(&socket)?;
        self.entries.get(key).filter(|entry| entry.from == from).map(|_| key)
    }

    /// The peer that has this socket itself.
    pub(super) fn of_caller(&self, from: SocketAddr, caller: u32) -> Option<usize> {
        self.by_caller.get(&(from, caller)).copied()
    }

    pub(super) fn has_socket(&self, socket: u32) -> bool {
        self.by_socket.contains_key(&socket)
    }

    pub(super) fn get_mut(&mut self, key: usize) -> Option<(SocketAddr, &mut T)> {
        self.entries.get_mut(key).map(|entry| (entry.from, &mut entry.value))
    }

    pub(super) fn keys(&self) -> Vec<usize> {
        self.entries.iter().map(|(key, _)| key).collect()
    }

    /// Sets a peer's deadline.
    pub(super) fn schedule(&mut self, key: usize, at: Option<Moment>) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.at = at;
        if let Some(at) = at
            && entry.queued.is_none_or(|queued| at < queued)
        {
            entry.queued = Some(at);
            self.due.push(Reverse((at, key)));
        }
    }

    /// The next deadline.
    pub(super) fn next_due(&mut self) -> Option<Moment> {
        loop {
            let Reverse((at, key)) = *self.due.peek()?;
            let entry = self.entries.get_mut(key).filter(|entry| entry.queued == Some(at));
            if entry.as_ref().is_some_and(|entry| entry.at == Some(at)) {
                return Some(at);
            }
            self.due.pop();
            if let Some(entry) = entry {
                entry.queued = None;
                let later = entry.at;
                self.schedule(key, later);
            }
        }
    }

    /// A peer whose deadline has come; it has none then.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<usize> {
        self.next_due().filter(|at| *at <= now)?;
        let Reverse((_, key)) = self.due.pop()?;
        let entry = self.entries.get_mut(key)?;
        (entry.at, entry.queued) = (None, None);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u64) -> Moment {
        Moment::from_nanos(nanos)
    }

    fn address(host: u8, port: u16) -> SocketAddr {
        ([192, 0, 2, host], port).into()
    }

    #[test]
    fn deadlines_come_in_order_however_often_they_were_moved() {
        let mut peers = Peers::new();
        let keys: Vec<usize> = (1..=3).map(|n| peers.insert(address(1, n), 7, u32::from(n), n)).collect();
        for (key, moment) in keys.iter().zip([30, 10, 20]) {
            peers.schedule(*key, Some(at(moment)));
        }
        peers.schedule(keys[1], Some(at(40)));
        peers.schedule(keys[0], Some(at(5)));
        peers.schedule(keys[2], None);
        assert_eq!((peers.next_due(), peers.take_due(at(4))), (Some(at(5)), None));
        assert_eq!((peers.take_due(at(50)), peers.take_due(at(50))), (Some(keys[0]), Some(keys[1])));
        assert_eq!(peers.next_due(), None);
        // One that comes into the place of another has no deadline of it.
        peers.schedule(keys[0], Some(at(60)));
        peers.remove(keys[0]);
        peers.insert(address(1, 9), 7, 9, 9);
        assert_eq!(peers.next_due(), None);
    }

    #[test]
    fn a_peer_is_found_by_its_address_only() {
        let mut peers = Peers::new();
        let key = peers.insert(address(1, 1), 7, 70, ());
        assert_eq!(
            (peers.of_socket(70, address(1, 1)), peers.of_socket(70, address(1, 2))),
            (Some(key), None)
        );
        assert_eq!((peers.of_caller(address(1, 1), 7), peers.of_caller(address(2, 1), 7)), (Some(key), None));
        peers.remove(key);
        assert!(peers.of_socket(70, address(1, 1)).is_none() && !peers.has_socket(70));
    }

    #[test]
    fn the_heaviest_peer_is_named_once_all_hold_too_much_and_no_other_is_taken_before_that() {
        const PART: usize = MOST_HELD / 16;
        let mut peers = Peers::new();
        let keys: Vec<usize> = (0..16).map(|n| peers.insert(address(1, n), 7, u32::from(n) + 1, n)).collect();
        keys[..14].iter().for_each(|key| peers.hold(*key, PART));
        assert!(!peers.is_short_of_memory());
        peers.hold(keys[14], 1);
        assert!(peers.is_short_of_memory());
        keys[14..].iter().for_each(|key| peers.hold(*key, PART));
        assert_eq!(peers.heaviest_of_too_much(), None);
        peers.hold(keys[5], 2 * PART);
        assert_eq!(peers.heaviest_of_too_much(), Some(keys[5]));
        peers.hold(keys[5], 0);
        assert_eq!(peers.heaviest_of_too_much(), None);
        keys.iter().take(3).for_each(|key| assert!(peers.remove(*key).is_some()));
        assert_eq!(peers.len(), 13);
        assert!(!peers.is_short_of_memory(), "a peer that is gone holds nothing");
    }

    #[test]
    fn one_address_does_not_take_all_the_room() {
        let mut peers = Peers::new();
        let mut keys = Vec::new();
        let mut socket = 0;
        while !peers.is_full_for(address(1, 1)) {
            socket += 1;
            keys.push(peers.insert(address(1, 1), socket, socket, ()));
        }
        assert_eq!(keys.len(), MOST_OF_ADDRESS);
        assert!(!peers.is_full_for(address(2, 1)));
        let one_network = |host: u16| SocketAddr::from(([0x2001, 0xDB8, 0, 1, 0, 0, 0, host], 1));
        for n in 0..MOST - MOST_OF_ADDRESS {
            assert!(!peers.is_full_for(one_network(n as u16)));
            socket += 1;
            peers.insert(one_network(n as u16), socket, socket, ());
        }
        assert!(peers.is_full_for(address(2, 1)), "there is no room for anyone");
        peers.remove(keys[0]);
        assert!(!peers.is_full_for(address(1, 1)) && peers.is_full_for(one_network(1)));
    }
}
