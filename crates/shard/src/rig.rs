//! A session on the bench: byte slices in, a made-up clock, what it sent and asked for out.

use crate::session::{Orders, Transmit};
use crate::{Context, Door, Event, Session, SessionId};
use std::io::IoSlice;
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
    /// What waits to be read, as the session is told.
    pub unread: usize,
    /// What the peer's machine has acknowledged, as the session is told.
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
    pub reopened: Option<Door>,
    /// Whether its last call asked for a read.
    pub pulled: bool,
    /// Whom it woke.
    pub woken: Vec<SessionId>,
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
            pulled: false,
            woken: Vec::new(),
        }
    }

    /// Tells the session one event.
    pub fn tell(&mut self, session: &mut dyn Session<W>, event: Event<'_>) {
        let mut orders = Orders::default();
        let mut link = Tape {
            sent: &mut self.sent,
            unsent: &mut self.unsent,
            unread: self.unread,
            acknowledged: self.acknowledged,
            room: &mut self.room,
        };
        session.handle(
            event,
            &mut Context {
                now: self.now,
                world: &mut self.world,
                id: SessionId::made_up(0),
                link: &mut link,
                orders: &mut orders,
                wake: &mut self.woken,
            },
        );
        self.timer = orders.timer.unwrap_or(self.timer);
        self.low_water = orders.low_water.unwrap_or(self.low_water);
        self.pulled = orders.pull;
        self.closed |= orders.close;
        self.reset |= orders.reset;
        if let Some(door) = orders.reopen {
            self.reopened = Some(*door);
            self.low_water = 1;
        }
    }

    /// Lets time pass, firing the session's deadlines in order.
    pub fn advance(&mut self, session: &mut dyn Session<W>, span: Duration) {
        let end = self.now + span;
        while let Some(at) = self.timer.filter(|at| *at <= end) {
            self.now = self.now.max(at);
            self.timer = None;
            self.tell(session, Event::Timer);
            if self.pulled {
                self.tell(session, Event::Bytes(&[]));
            }
        }
        self.now = end;
    }

    /// Gives the link room for `bytes` more, and tells the session when that lets everything through.
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
        };
        link.send(&waiting);
        if refused && self.unsent.is_empty() {
            self.tell(session, Event::Writable);
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
}
