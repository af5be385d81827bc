//! A session on the bench: byte slices in, a made-up clock, what it sent and asked for out.

use crate::datagrams::Batch;
use crate::session::{Actions, Progress};
use crate::transmit::Transmit;
use crate::{Context, Datagrams, Endpoint, Event, OpenError, Session, SessionId, Side};
use std::io::IoSlice;
use std::net::SocketAddr;
use std::time::Duration;
use weir_metrics::Moment;

/// Drives one session without sockets or threads.
#[derive(Debug)]
pub struct Rig<W> {
    /// What the session shares with others.
    pub world: W,
    /// The made-up clock.
    pub now: Moment,
    /// What the session has sent, the link has taken, and [`Self::take_sent`] has not.
    pub sent: Vec<u8>,
    /// What the session has sent and the link has not taken.
    pub unsent: Vec<u8>,
    /// How many bytes wait to be read, for the session.
    pub unread: usize,
    /// How many bytes the peer's machine has acknowledged, for the session.
    pub acknowledged: u64,
    /// How many bytes the link still takes; unlimited at first.
    pub room: usize,
    /// The session's deadline.
    pub timer: Option<Moment>,
    /// The low-water mark that it asked for.
    pub low_water: usize,
    /// Whether it asked to be closed.
    pub closed: bool,
    /// Whether it asked to be reset.
    pub reset: bool,
    /// Where it asked to be connected to instead, the last time.
    pub reopened: Option<Endpoint>,
    /// Whether it let go of its link.
    pub hung_up: bool,
    /// Whether it lives on without a link.
    pub stands_by: bool,
    /// The address of the peer of its link.
    pub peer_address: SocketAddr,
    /// The local address of its datagrams, if it opened a link of them.
    pub datagram_address: SocketAddr,
    /// Whether it opened one.
    pub hears_datagrams: bool,
    /// The one peer that its datagrams are exchanged with, if it said so.
    pub datagram_peer: Option<SocketAddr>,
    /// The datagrams that it has sent, with their destinations.
    pub datagrams: Vec<(SocketAddr, Vec<u8>)>,
    /// How many datagrams the kernel has dropped, for the session.
    pub dropped: u64,
    /// Where it had a link opened beside its own, the last time.
    pub side: Option<Endpoint>,
    /// What it has sent there.
    pub side_sent: Vec<u8>,
    /// The protocol that TLS has settled on, of either link.
    pub alpn: Option<Vec<u8>>,
    /// Whether its last call asked for a read.
    pub pulled: bool,
    /// The sessions that it woke.
    pub woken: Vec<SessionId>,
    /// Whether it has said that the peer has said what it wants.
    pub established: bool,
    /// How long its peer may be silent, if it has asked for that.
    pub allowed_silence: Option<Duration>,
    /// Events in which it gave bytes back: turns that it left to others.
    pub given_back: usize,
    /// Whether it asked not to be read to.
    pub paused: bool,
    /// What it gave back and did not receive again, because of that.
    pub left: Vec<u8>,
}

impl<W> Rig<W> {
    /// A rig at one second past the clock's zero.
    pub fn new(world: W) -> Self {
        Self {
            world,
            now: Moment::from_nanos(1_000_000_000),
            sent: Vec::new(),
            unsent: Vec::new(),
            unread: 0,
            acknowledged: 0,
            room: usize::MAX,
            timer: None,
            low_water: 1,
            closed: false,
            reset: false,
            reopened: None,
            hung_up: false,
            stands_by: false,
            peer_address: SocketAddr::from(([127, 0, 0, 1], 9)),
            datagram_address: SocketAddr::from(([127, 0, 0, 1], 40_000)),
            hears_datagrams: false,
            datagram_peer: None,
            datagrams: Vec::new(),
            dropped: 0,
            side: None,
            side_sent: Vec::new(),
            alpn: None,
            pulled: false,
            woken: Vec::new(),
            established: false,
            allowed_silence: None,
            given_back: 0,
            paused: false,
            left: Vec::new(),
        }
    }

    /// Calls the session with one event, and then with what it gives back, unless it has paused.
    pub fn dispatch(&mut self, session: &mut dyn Session<W>, event: Event<'_>) {
        self.tell_once(session, event);
        while !self.left.is_empty() && !self.paused && !self.closed {
            let bytes = std::mem::take(&mut self.left);
            self.tell_once(session, Event::Bytes(&bytes));
        }
    }

    fn tell_once(&mut self, session: &mut dyn Session<W>, event: Event<'_>) {
        let mut actions = Actions::default();
        let mut link = Tape {
            sent: &mut self.sent,
            unsent: &mut self.unsent,
            unread: self.unread,
            acknowledged: self.acknowledged,
            room: &mut self.room,
            peer_address: self.peer_address,
            address: self.datagram_address,
            hears_datagrams: &mut self.hears_datagrams,
            datagram_peer: &mut self.datagram_peer,
            datagrams: &mut self.datagrams,
            dropped: self.dropped,
            side: &mut self.side,
            side_sent: &mut self.side_sent,
            alpn: self.alpn.as_deref(),
        };
        session.handle(
            event,
            &mut Context {
                now: self.now,
                world: &mut self.world,
                id: SessionId::made_up(0),
                link: &mut link,
                actions: &mut actions,
                wake: &mut self.woken,
            },
        );
        self.timer = actions.timer.unwrap_or(self.timer);
        self.low_water = actions.low_water.unwrap_or(self.low_water);
        self.pulled = actions.pull;
        self.closed |= actions.close;
        self.reset |= actions.reset;
        self.hung_up |= actions.hang_up;
        self.established =
            actions.progress.map_or(self.established, |progress| progress == Progress::Established);
        self.allowed_silence = actions.silence.or(self.allowed_silence);
        self.paused = actions.paused.unwrap_or(self.paused);
        self.given_back += usize::from(!actions.given_back.is_empty());
        self.left.append(&mut actions.given_back);
        self.stands_by |= actions.stand_by;
        if let Some(endpoint) = actions.reopen {
            self.reopened = Some(*endpoint);
            (self.hung_up, self.stands_by) = (false, false);
            self.low_water = 1;
        }
    }

    /// Calls the session with one datagram.
    pub fn tell_datagram(&mut self, session: &mut dyn Session<W>, source: SocketAddr, bytes: &[u8]) {
        self.tell_datagrams(session, source, bytes, bytes.len());
    }

    /// Calls the session with datagrams of `length` bytes each that came together.
    pub fn tell_datagrams(
        &mut self,
        session: &mut dyn Session<W>,
        source: SocketAddr,
        bytes: &[u8],
        length: usize,
    ) {
        let mut bytes = bytes.to_vec();
        let batch = Batch::together(self.now, source, bytes.len(), length);
        self.dispatch(session, Event::Datagrams(Datagrams::new(&mut bytes, &batch)));
    }

    /// Calls the session with bytes of its second link.
    pub fn dispatch_side(&mut self, session: &mut dyn Session<W>, bytes: &[u8]) {
        let mut bytes = bytes.to_vec();
        self.dispatch(session, Event::Side(Side::Bytes(&mut bytes)));
    }

    /// Hands out the datagrams that were sent since the last call.
    pub fn take_datagrams(&mut self) -> Vec<(SocketAddr, Vec<u8>)> {
        std::mem::take(&mut self.datagrams)
    }

    /// Lets time pass, firing the session's deadlines in order.
    pub fn advance(&mut self, session: &mut dyn Session<W>, span: Duration) {
        let end = self.now + span;
        while let Some(at) = self.timer.filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.timer = None;
            self.dispatch(session, Event::Timer);
            if self.pulled {
                self.dispatch(session, Event::Bytes(&[]));
            }
        }
        self.now = end;
    }

    /// Gives the link room for `bytes` more, and notifies the session if that lets everything through.
    pub fn make_room(&mut self, session: &mut dyn Session<W>, bytes: usize) {
        let refused = self.room == 0 || !self.unsent.is_empty();
        self.room = self.room.saturating_add(bytes);
        let waiting = std::mem::take(&mut self.unsent);
        let mut link = Tape {
            sent: &mut self.sent,
            unsent: &mut self.unsent,
            unread: self.unread,
            acknowledged: self.acknowledged,
            room: &mut self.room,
            peer_address: self.peer_address,
            address: self.datagram_address,
            hears_datagrams: &mut self.hears_datagrams,
            datagram_peer: &mut self.datagram_peer,
            datagrams: &mut self.datagrams,
            dropped: self.dropped,
            side: &mut self.side,
            side_sent: &mut self.side_sent,
            alpn: self.alpn.as_deref(),
        };
        link.send(&waiting);
        if refused && self.unsent.is_empty() {
            self.dispatch(session, Event::Writable);
        }
    }

    /// Hands out what was sent since the last call.
    pub fn take_sent(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.sent)
    }
}

struct Tape<'a> {
    sent: &'a mut Vec<u8>,
    unsent: &'a mut Vec<u8>,
    unread: usize,
    acknowledged: u64,
    room: &'a mut usize,
    peer_address: SocketAddr,
    address: SocketAddr,
    hears_datagrams: &'a mut bool,
    datagram_peer: &'a mut Option<SocketAddr>,
    datagrams: &'a mut Vec<(SocketAddr, Vec<u8>)>,
    dropped: u64,
    side: &'a mut Option<Endpoint>,
    side_sent: &'a mut Vec<u8>,
    alpn: Option<&'a [u8]>,
}

impl Tape<'_> {
    fn take(&mut self, bytes: &[u8]) -> usize {
        let taken = bytes.len().min(*self.room);
        self.sent.extend_from_slice(&bytes[..taken]);
        *self.room -= taken;
        taken
    }
}

impl Transmit for Tape<'_> {
    fn write(&mut self, slices: &[IoSlice<'_>]) -> usize {
        if !self.unsent.is_empty() {
            return 0;
        }
        slices.iter().map(|slice| self.take(slice)).sum()
    }

    fn send(&mut self, bytes: &[u8]) {
        self.unsent.extend_from_slice(bytes);
        let waiting = std::mem::take(self.unsent);
        let taken = self.take(&waiting);
        self.unsent.extend_from_slice(&waiting[taken..]);
    }

    fn unsent(&self) -> usize {
        self.unsent.len()
    }

    fn unread(&self) -> usize {
        self.unread
    }

    fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        Some(self.peer_address)
    }

    fn open_datagrams(&mut self) -> Result<SocketAddr, OpenError> {
        *self.hears_datagrams = true;
        Ok(self.address)
    }

    fn open_datagram_pairs(&mut self, pairs: usize) -> Result<Vec<u16>, OpenError> {
        let first = self.open_datagrams()?.port();
        Ok((first..).step_by(2).take(pairs).collect())
    }

    fn send_datagrams_from(&mut self, _: usize, to: SocketAddr, bytes: &[u8], length: usize) -> usize {
        self.send_datagrams(to, bytes, length)
    }

    fn send_datagrams(&mut self, to: SocketAddr, bytes: &[u8], length: usize) -> usize {
        let before = self.datagrams.len();
        self.datagrams.extend(bytes.chunks(length.max(1)).map(|bytes| (to, bytes.to_vec())));
        self.datagrams.len() - before
    }

    fn unsent_datagrams(&self) -> u64 {
        0
    }

    fn connect_datagrams(&mut self, to: SocketAddr) {
        *self.datagram_peer = Some(to);
    }

    fn dropped_datagrams(&self) -> u64 {
        self.dropped
    }

    fn claim_datagrams(&mut self, _: u32) -> bool {
        true
    }

    fn given_datagrams(&self) -> Option<u64> {
        None
    }

    fn open_side(&mut self, endpoint: &Endpoint) -> Result<(), OpenError> {
        *self.side = Some(endpoint.clone());
        self.side_sent.clear();
        Ok(())
    }

    fn send_side(&mut self, bytes: &[u8]) {
        self.side_sent.extend_from_slice(bytes);
    }

    fn unsent_side(&self) -> usize {
        0
    }

    fn close_side(&mut self) {
        *self.side = None;
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.alpn
    }

    fn alpn_side(&self) -> Option<&[u8]> {
        self.alpn
    }
}
