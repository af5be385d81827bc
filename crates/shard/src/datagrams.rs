//! A link of datagrams: UDP, non-blocking, many datagrams a system call both ways (UDP GRO and GSO, `recvmmsg`). The
//! kernel says when each came, so that they need not be read at once.

use crate::link_error::{LinkError, State};
use crate::{clock, sys};
use quinn_udp::{RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::cell::Cell;
use std::io::{self, ErrorKind, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::time::Duration;
use weir_address::networks;
use weir_metrics::Moment;

/// What the kernel may keep for a session that is not read at once: keyframes come in bursts of a hundred packets and
/// more. The kernel cuts it to `net.core.rmem_max`.
const RECEIVE_BUFFER: usize = 1 << 20;
/// What may wait to leave; one socket may serve hundreds of peers. The kernel cuts it to `net.core.wmem_max`.
const SEND_BUFFER: usize = 4 << 20;

/// The most that the kernel puts together of one sender's datagrams (UDP_GRO_CNT_MAX of them, 64 KiB at most).
pub(crate) const PIECE: usize = 64 * 1024;
/// Pieces that one system call reads at most.
pub(crate) const PIECES: usize = 8;

/// A link may wait as long as what comes meanwhile is at most this part of what the kernel keeps for it. The kernel counts
/// its own overhead as well, which doubles what small packets take.
const SHARE: usize = 4;
/// For how long one is read at every event after more than that came.
const HASTE: Duration = Duration::from_secs(1);
/// How many ports are tried for a pair. Every second one is of the wrong parity, and its neighbour is tried then.
const PAIR_TRIES: usize = 16;
/// Two readings of one clock so close together are one.
const TIGHT: Duration = Duration::from_micros(50);

/// The sockets' own work, done by a crate that knows the kernel.
pub(crate) struct DatagramLink {
    socket: UdpSocket,
    state: UdpSocketState,
    /// When nothing was left to read. What is read now came later.
    emptied: Moment,
    /// Bytes that were read since then.
    brought: usize,
    /// Bytes that the kernel keeps.
    room: usize,
    /// Whether the session lets datagrams wait to be read together.
    pub(crate) may_wait: bool,
    /// Whether they do.
    waits: bool,
    /// Until when they are read at every event, because what came might have filled the socket.
    hasty_until: Moment,
    /// What earlier datagrams of a connected socket have met.
    met: Cell<Option<LinkError>>,
    /// Datagrams that did not leave because the socket was full, or because they were longer than the way out takes.
    refused: Cell<u64>,
    /// Sockets at further ports of the session: what comes there is read with what comes here.
    beside: Vec<Self>,
}

/// Datagrams of one sender that came together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    arrived: Moment,
    source: SocketAddr,
    start: usize,
    length: usize,
    /// Length of each but the last.
    stride: usize,
}

/// Where datagrams lie in a buffer.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pieces: Vec<Piece>,
    /// What the kernel said of each, kept for its room only.
    metas: Vec<RecvMeta>,
}

/// Why a datagram did not leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// There was no room in the socket, or in memory.
    Full,
    /// The way out takes no datagram of this length.
    TooLong,
}

/// What became of datagrams that were to be sent together.
pub(crate) struct SendOutcome {
    /// How many the kernel took: the first ones.
    pub(crate) taken: usize,
    /// Why the next one was refused, if it was: what is left of them may be sent again. Otherwise it is gone.
    pub(crate) refusal: Option<Refusal>,
}

/// One datagram that came.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// When this machine had it; not before the one before it.
    pub arrived: Moment,
    /// The sender's address.
    pub source: SocketAddr,
    /// What it says.
    pub bytes: &'a mut [u8],
}

/// Datagrams that were read together, in the shard's one receive buffer. They may be changed where they lie.
#[derive(Debug)]
pub struct Datagrams<'a> {
    buffer: &'a mut [u8],
    batch: &'a Batch,
    /// The piece that is looked at, and how much of it has been taken.
    piece: usize,
    taken: usize,
}

impl Batch {
    /// Datagrams of one length at the front of a buffer, the last of what is left, as a test makes them.
    pub(crate) fn together(arrived: Moment, source: SocketAddr, length: usize, stride: usize) -> Self {
        let pieces = vec![Piece { arrived, source, start: 0, length, stride }];
        Self { pieces, metas: Vec::new() }
    }

    /// Bytes in all.
    pub(crate) fn bytes(&self) -> usize {
        self.pieces.iter().map(|piece| piece.length).sum()
    }

    /// Its datagrams one by one, in the order of arrival.
    pub(crate) fn datagrams(&self) -> impl Iterator<Item = Piece> {
        self.pieces.iter().flat_map(|piece| {
            let stride = piece.stride.max(1);
            (0..piece.length).step_by(stride).map(move |at| {
                let length = stride.min(piece.length - at);
                Piece { start: piece.start + at, length, stride: length, ..*piece }
            })
        })
    }

    /// Has it hold these and no others.
    pub(crate) fn refill(&mut self, pieces: impl Iterator<Item = Piece>) {
        self.pieces.clear();
        self.pieces.extend(pieces);
    }
}

impl Piece {
    /// What it says, in the buffer that it was read into.
    pub(crate) fn bytes<'a>(&self, buffer: &'a [u8]) -> &'a [u8] {
        &buffer[self.start..self.start + self.length]
    }
}

impl<'a> Datagrams<'a> {
    pub(crate) fn new(buffer: &'a mut [u8], batch: &'a Batch) -> Self {
        Self { buffer, batch, piece: 0, taken: 0 }
    }

    /// The next datagram, in the order of arrival.
    pub fn take_next(&mut self) -> Option<Incoming<'_>> {
        loop {
            let piece = self.batch.pieces.get(self.piece)?;
            let left = piece.length - self.taken;
            if left == 0 {
                self.piece += 1;
                self.taken = 0;
                continue;
            }
            let length = left.min(piece.stride.max(1));
            let start = piece.start + self.taken;
            self.taken += length;
            let bytes = &mut self.buffer[start..start + length];
            return Some(Incoming { arrived: piece.arrived, source: piece.source, bytes });
        }
    }
}

impl DatagramLink {
    /// A socket at `local`; an unspecified address takes what comes to any of this machine's.
    pub(crate) fn open(local: SocketAddr) -> Result<Self, LinkError> {
        Self::bound(local).map_err(|error| LinkError::io(&error, State::Connecting))
    }

    /// Sockets at `pairs` pairs of ports, at least one.
    pub(crate) fn open_pairs(local: IpAddr, pairs: usize) -> Result<Self, LinkError> {
        let [mut first, second] = Self::open_pair(local)?;
        first.beside.push(second);
        for _ in 1..pairs {
            first.beside.extend(Self::open_pair(local)?);
        }
        Ok(first)
    }

    /// Two sockets at ports that follow each other, the first of them even.
    ///
    /// RFC 3550 section 11: "For UDP and similar protocols, RTP SHOULD use an even destination port number and the corresponding
    /// RTCP stream SHOULD use the next higher (odd) destination port number."
    fn open_pair(local: IpAddr) -> Result<[Self; 2], LinkError> {
        let open = |port| Self::open(SocketAddr::new(local, port));
        let mut outcome = Err(LinkError::io(&ErrorKind::AddrInUse.into(), State::Connecting));
        for _ in 0..PAIR_TRIES {
            let one = open(0)?;
            match open(one.port() ^ 1) {
                Ok(other) if other.port() < one.port() => return Ok([other, one]),
                Ok(other) => return Ok([one, other]),
                // The neighbour is another's.
                Err(error) => outcome = Err(error),
            }
        }
        outcome
    }

    fn bound(local: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(
            Domain::for_address(local),
            Type::DGRAM.nonblocking().cloexec(),
            Some(Protocol::UDP),
        )?;
        // Both only tune: what a smaller buffer drops is counted.
        let _ = socket.set_recv_buffer_size(RECEIVE_BUFFER);
        let _ = socket.set_send_buffer_size(SEND_BUFFER);
        socket.bind(&local.into())?;
        // Without an answer nothing waits.
        let room = socket.recv_buffer_size().unwrap_or(0);
        // The kernel stamps what comes from here on.
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // quinn-udp asks the kernel for a packet's local address, which is not used here. If this fails it costs a little and
        // does no harm.
        let _ = sys::leave_out_packet_information(socket.as_fd(), local.is_ipv4());
        let _ =
            if local.is_ipv4() { socket.set_recv_tos_v4(false) } else { socket.set_recv_tclass_v6(false) };
        let now = clock::now();
        Ok(Self {
            socket: socket.into(),
            state,
            emptied: now,
            brought: 0,
            room,
            may_wait: false,
            waits: false,
            hasty_until: now,
            met: Cell::new(None),
            refused: Cell::new(0),
            beside: Vec::new(),
        })
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// The sockets of all its ports, in their order.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = &Self> {
        std::iter::once(self).chain(&self.beside)
    }

    pub(crate) fn port(&self) -> u16 {
        // A bound socket has an address.
        self.socket.local_addr().map_or(0, |address| address.port())
    }

    /// Reads what waits, by one system call. `None`: nothing waited; or whether more may wait.
    pub(crate) fn receive(&mut self, buffer: &mut [u8], batch: &mut Batch) -> Option<bool> {
        let received = self.receive_here(buffer, batch);
        if self.beside.is_empty() || received == Some(true) {
            return received;
        }
        // One event tells of all ports: there may be more until none of them has anything.
        let is_read = received.is_some()
            || self.beside.iter_mut().any(|socket| socket.receive_here(buffer, batch).is_some());
        is_read.then_some(true)
    }

    fn receive_here(&mut self, buffer: &mut [u8], batch: &mut Batch) -> Option<bool> {
        let Batch { pieces, metas } = batch;
        metas.resize(PIECES, RecvMeta::default());
        let mut parts = buffer.chunks_exact_mut(PIECE);
        let mut slices: [_; PIECES] =
            std::array::from_fn(|_| IoSliceMut::new(parts.next().unwrap_or_default()));
        let (now, wall) = both_clocks();
        // An error of a connected socket is what an earlier datagram met (ICMP): it is reported once, and does not end the link.
        for _ in 0..PIECES {
            match self.state.recv(UdpSockRef::from(&self.socket), &mut slices, metas) {
                Ok(count) => {
                    let mut least = self.emptied;
                    pieces.clear();
                    pieces.extend(metas.iter().take(count).zip(0..).map(|(meta, at)| {
                        least = arrival(meta.timestamp, now, wall, least);
                        let (length, stride) = (meta.len, meta.stride);
                        Piece { arrived: least, source: meta.addr, start: at * PIECE, length, stride }
                    }));
                    self.brought += batch.bytes();
                    if self.brought > self.room / SHARE {
                        self.hasty_until = now + HASTE;
                    }
                    let more = count == PIECES;
                    if !more {
                        (self.brought, self.emptied) = (0, now);
                    }
                    return Some(more);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    (self.brought, self.emptied) = (0, now);
                    return None;
                }
                Err(error) => self.met.set(Some(LinkError::io(&error, State::Connecting))),
            }
        }
        None
    }

    /// An error that an earlier datagram met, reported once (RFC 1122 section 4.1.3.3).
    pub(crate) fn take_met(&mut self) -> Option<LinkError> {
        self.met.take()
    }

    /// Whether there is such an error that nothing was told of.
    pub(crate) fn has_met(&mut self) -> bool {
        self.met.get_mut().is_some()
    }

    /// Asks the kernel to keep this many bytes for it. It only tunes: what a smaller buffer drops is counted.
    pub(crate) fn keep(&mut self, bytes: usize) {
        let socket = SockRef::from(&self.socket);
        let _ = socket.set_recv_buffer_size(bytes);
        self.room = socket.recv_buffer_size().unwrap_or(self.room);
    }

    pub(crate) fn waits(&self) -> bool {
        self.waits
    }

    pub(crate) fn set_waits(&mut self, waits: bool) {
        self.waits = waits;
    }

    /// Whether datagrams should wait that do not, or should not any more.
    pub(crate) fn change(&self) -> Option<bool> {
        let should = self.may_wait && self.beside.is_empty() && self.emptied >= self.hasty_until;
        (should != self.waits).then_some(should)
    }

    /// Whether something may be left that came before `moment`, and that nothing will tell of.
    pub(crate) fn is_behind(&self, moment: Moment) -> bool {
        self.emptied < moment && self.waits || self.brought > 0
    }

    /// Sends datagrams of `length` bytes each, the last of what is left, in one system call where the kernel can.
    /// How many of them the kernel took: the first ones, for behind one that it does not take none is tried.
    /// None go where this process may not connect to: a peer names its addresses itself (RFC 8445).
    pub(crate) fn send(&self, to: SocketAddr, bytes: &[u8], length: usize) -> usize {
        let SendOutcome { taken, refusal } = self.try_send(to, bytes, length);
        if refusal.is_some() {
            let refused = bytes.len().div_ceil(length.max(1)) - taken;
            self.refused.set(self.refused.get() + refused as u64);
        }
        // What no path of several leads to is no news, and what one peer alone has met is read from the socket.
        self.met.take();
        taken
    }

    /// The same, which counts nothing.
    pub(crate) fn try_send(&self, to: SocketAddr, bytes: &[u8], length: usize) -> SendOutcome {
        if networks::check(to.ip()).is_err() {
            return SendOutcome { taken: 0, refusal: None };
        }
        let length = length.max(1);
        let (mut taken, mut left, mut is_again) = (0, bytes, false);
        while !left.is_empty() {
            let most = length.saturating_mul(self.state.max_gso_segments().max(1));
            let (contents, behind) = left.split_at(left.len().min(most));
            let segment_size = (contents.len() > length).then_some(length);
            let transmit = Transmit { destination: to, ecn: None, contents, segment_size, src_ip: None };
            match self.state.try_send(UdpSockRef::from(&self.socket), &transmit) {
                Ok(()) => {
                    taken += contents.len().div_ceil(length);
                    (left, is_again) = (behind, false);
                }
                // It was full, or the way out takes no datagram of this length. What has no route may be an address that a peer has named.
                Err(error) if is_refusal(&error) => {
                    let is_long = error.raw_os_error() == Some(libc::EMSGSIZE);
                    let refusal = if is_long { Refusal::TooLong } else { Refusal::Full };
                    return SendOutcome { taken, refusal: Some(refusal) };
                }
                // What an earlier datagram has met is reported once (RFC 1122 section 4.1.3.3); and a way out that takes no datagrams
                // together takes them one by one.
                Err(error) if !is_again => {
                    self.met.set(Some(LinkError::io(&error, State::Connecting)));
                    is_again = true;
                }
                Err(_) => break,
            }
        }
        SendOutcome { taken, refusal: None }
    }

    /// Takes datagrams of this peer only from now on.
    pub(crate) fn connect(&self, to: SocketAddr) {
        // Without it datagrams of other senders arrive as well, which sessions drop.
        let _ = self.socket.connect(to);
    }

    /// Datagrams that came and were dropped, or did not leave, because this socket was full.
    pub(crate) fn dropped(&self) -> u64 {
        // A socket that cannot be asked has dropped nothing that is known.
        let dropped = |socket: &Self| sys::dropped(socket.socket.as_fd()).unwrap_or(0) + socket.refused.get();
        self.sockets().map(dropped).sum()
    }

    /// Bytes that the kernel has taken and not sent yet, with what it needs beside them.
    pub(crate) fn unsent(&self) -> u64 {
        // Of a socket that cannot be asked, all has left.
        let unsent = |socket: &Self| sys::memory(socket.socket.as_fd()).map_or(0, |memory| memory.unsent);
        self.sockets().map(unsent).sum()
    }
}

/// Whether a datagram did not leave for want of room, in the socket or in memory, or because of its length.
fn is_refusal(error: &io::Error) -> bool {
    let of_system = error.raw_os_error();
    error.kind() == ErrorKind::WouldBlock || matches!(of_system, Some(libc::EMSGSIZE | libc::ENOBUFS))
}

/// Now, by the monotonic clock and by the wall clock, in nanoseconds: as nearly at one moment as a few tries give.
fn both_clocks() -> (Moment, u64) {
    let mut both = (clock::now(), clock::wall_nanos());
    for _ in 0..3 {
        let after = clock::now();
        if after.since(both.0) < TIGHT {
            break;
        }
        both = (after, clock::wall_nanos());
    }
    both
}

/// When a datagram came that the kernel has stamped so, by the wall clock, which says `wall` now. It was not before
/// `least`: that holds even if the wall clock was set meanwhile.
fn arrival(stamp: Option<Duration>, now: Moment, wall: u64, least: Moment) -> Moment {
    let age = stamp.map_or(0, |stamp| u128::from(wall).saturating_sub(stamp.as_nanos()));
    (now - Duration::from_nanos(u64::try_from(age).unwrap_or(u64::MAX))).max(least)
}

/// Where to bind a socket whose peers are like `like`: to `from`, or to any address.
pub(crate) fn local_for(like: IpAddr, from: Option<IpAddr>) -> SocketAddr {
    let any = if like.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    SocketAddr::new(from.unwrap_or(any), 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_that_the_kernel_put_together_come_apart_again() {
        let source = "127.0.0.1:9".parse().unwrap();
        let mut buffer: Vec<u8> = (0..=255).cycle().take(2 * PIECE).collect();
        let piece =
            |start, length, stride| Piece { arrived: Moment::default(), source, start, length, stride };
        let batch = Batch { pieces: vec![piece(0, 25, 10), piece(PIECE, 7, 7)], metas: Vec::new() };
        let mut datagrams = Datagrams::new(&mut buffer, &batch);
        let mut lengths = Vec::new();
        while let Some(Incoming { bytes, .. }) = datagrams.take_next() {
            lengths.push((bytes[0], bytes.len()));
        }
        assert_eq!(lengths, [(0, 10), (10, 10), (20, 5), (0, 7)]);
    }

    #[test]
    fn a_datagram_came_when_the_kernel_says_but_not_before_what_was_read_before_it() {
        let [least, now] = [5_000, 9_000].map(Moment::from_nanos);
        let wall = 1_000_000;
        let at = |stamp: Option<u64>| arrival(stamp.map(Duration::from_nanos), now, wall, least).as_nanos();
        assert_eq!(at(Some(wall - 1_500)), 7_500);
        // While it was read; the clock was set back; it was set forward; the kernel says nothing.
        assert_eq!((at(Some(wall + 10)), at(Some(u64::MAX))), (9_000, 9_000));
        assert_eq!((at(Some(wall - 5_000)), at(Some(0))), (5_000, 5_000));
        assert_eq!(at(None), 9_000);
    }
}
