//! The loop: polls, reads into one buffer, dispatches events to sessions, carries out their actions.

mod accepted;
mod crowd;
mod datagrams;
mod mail;
mod reading;
mod shared;
mod side;

pub use mail::MessageSender;
use shared::SharedLinks;

use crate::batched_reads::BatchedReads;
use crate::datagrams::{Batch, PIECE, PIECES};
use crate::endpoint::{Endpoint, Transport};
use crate::entry::{Entry, Guards};
use crate::guard::Deadlines;
use crate::lag::Lag;
use crate::link::Link;
use crate::link_error::{LinkError, OpenError};
use crate::links::{EachKind, LinkKind, Links};
use crate::session::Actions;
use crate::timer::{self, Deadline, TimerQueue};
use crate::transmit::NoLink;
use crate::{Context, Event, Session, SessionId, World, clock};
use mio::net::TcpListener;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use rustls::ServerConfig;
use slab::Slab;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use weir_metrics::{Failure, Moment};

/// Bytes that are read of a stream at a time, at most.
const RECEIVE_BUFFER: usize = 256 * 1024;
/// Bytes of the receive buffer that all sessions of a shard share.
const SHARED_BUFFER: usize = if PIECE * PIECES > RECEIVE_BUFFER { PIECE * PIECES } else { RECEIVE_BUFFER };
/// Bytes that may wait for a peer while it is still read. Sessions hold back what they send of their own accord at 256 KiB
/// or less, so that only answers to a peer that does not read them come to more: such a peer is not read either, as TCP
/// wants it, until it has taken what waits.
pub const UNSENT_LIMIT: usize = 1 << 20;
/// Full buffers that one link may fill before the others have their turn.
const READS_A_TURN: usize = 4;
/// How long the loop may take from its poll to its deadlines as if no time had passed: as long as the kernel's own tick at the most.
const STANDSTILL: Duration = Duration::from_millis(10);
/// When to look again at listeners that found no descriptor: others may have let go of theirs.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// Token of the waker; sessions have their slab key, listeners count down from here.
const WAKER: Token = Token(usize::MAX);
/// What the token of a session's datagrams has beside its slab key, which is below any number of descriptors.
const DATAGRAMS: usize = 1 << (usize::BITS - 4);

/// What the token of the link beside a session's own has beside its slab key.
const SIDE: usize = 1 << (usize::BITS - 3);

/// What the token of a shared socket has beside its key.
const SHARED: usize = 1 << (usize::BITS - 5);

/// Makes the session of an accepted connection.
type Accept<W> = Box<dyn FnMut(&mut W, SocketAddr) -> Box<dyn Session<W>> + Send>;

/// One thread's sessions, links and timers.
pub struct Shard<W: World> {
    poll: Poll,
    events: Events,
    entries: Slab<Entry<W>>,
    listeners: Vec<Listening<W>>,
    /// When to take connections that were left waiting.
    accept_again: Option<Moment>,
    /// How long the peers of accepted links may take, and when to look at them.
    deadlines: Deadlines,
    guards: TimerQueue,
    timers: TimerQueue,
    wake: Vec<SessionId>,
    /// Links that were left with something to read, to be read in the next turn; each stands there once.
    unread: EachKind<Vec<SessionId>>,
    /// Sessions whose datagrams wait to be read together.
    batched_reads: BatchedReads,
    /// Those of them that are read in this turn.
    turns: Vec<SessionId>,
    /// Sockets of datagrams that several sessions are on.
    shared: SharedLinks,
    buffer: Box<[u8]>,
    batch: Batch,
    plain: Vec<u8>,
    generation: u32,
    /// For how long nothing was read.
    lag: Lag,
    mail: Receiver<W::Message>,
    /// Whether mail was left for the next turn.
    unread_mail: bool,
    message_sender: MessageSender<W::Message>,
    /// What the sessions share.
    pub world: W,
}

struct Listening<W> {
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    accept: Accept<W>,
}

impl<W: World> Shard<W> {
    /// An empty shard for the calling thread.
    ///
    /// # Errors
    /// The system has no descriptor left for the poll.
    pub fn new(world: W) -> io::Result<Self> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER)?);
        let (sender, mail) = channel();
        Ok(Self {
            poll,
            events: Events::with_capacity(1_024),
            entries: Slab::new(),
            listeners: Vec::new(),
            accept_again: None,
            deadlines: Deadlines::default(),
            guards: TimerQueue::default(),
            timers: TimerQueue::default(),
            wake: Vec::new(),
            unread: EachKind::default(),
            batched_reads: BatchedReads::default(),
            turns: Vec::new(),
            shared: SharedLinks::default(),
            buffer: vec![0; SHARED_BUFFER].into_boxed_slice(),
            batch: Batch::default(),
            plain: Vec::new(),
            generation: 0,
            lag: Lag::default(),
            mail,
            unread_mail: false,
            message_sender: MessageSender { sender, waker },
            world,
        })
    }

    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no session is left.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Begins to connect a session to its peer: [`Event::Opening`], or [`Event::Closed`] and an error. Over UDP there is
    /// nothing to wait for: [`Event::Connected`] follows at once.
    ///
    /// # Errors
    /// No descriptor or port was left, or the address family is missing. The session knows already.
    pub fn open(
        &mut self,
        endpoint: &Endpoint,
        session: Box<dyn Session<W>>,
    ) -> Result<SessionId, OpenError> {
        let opened = match &endpoint.transport {
            Transport::Udp | Transport::BoundUdp => self.open_udp(endpoint, session),
            Transport::SharedUdp(sharing) => self.open_shared(endpoint, sharing, session),
            Transport::Tcp | Transport::Tls(..) => self.open_stream(endpoint, session),
        };
        let (mut session, error) = match opened {
            Ok(id) => return Ok(id),
            Err((session, error)) => (session, OpenError::from(error)),
        };
        session.handle(
            Event::Closed { failure: error.failure, words: &error.words },
            &mut Context {
                now: clock::now(),
                world: &mut self.world,
                id: SessionId { key: u32::MAX, generation: 0 },
                link: &mut NoLink,
                actions: &mut Actions::default(),
                wake: &mut self.wake,
            },
        );
        Err(error)
    }

    fn open_stream(
        &mut self,
        endpoint: &Endpoint,
        session: Box<dyn Session<W>>,
    ) -> Result<SessionId, (Box<dyn Session<W>>, LinkError)> {
        let link = match Link::open(endpoint) {
            Ok(link) => link,
            Err(error) => return Err((session, error)),
        };
        let id = self.insert(link, endpoint.from, session).map_err(|(session, error)| {
            (session, LinkError { failure: Failure::SocketError, words: error.to_string() })
        })?;
        self.dispatch(id, Event::Opening);
        Ok(id)
    }

    /// Takes connections of `listener`, a non-blocking one; `accept` makes their sessions.
    ///
    /// # Errors
    /// The listener cannot be polled.
    pub fn listen(
        &mut self,
        listener: std::net::TcpListener,
        tls: Option<Arc<ServerConfig>>,
        accept: impl FnMut(&mut W, SocketAddr) -> Box<dyn Session<W>> + Send + 'static,
    ) -> io::Result<()> {
        let mut listener = TcpListener::from_std(listener);
        let token = Token(WAKER.0 - 1 - self.listeners.len());
        self.poll.registry().register(&mut listener, token, Interest::READABLE)?;
        self.listeners.push(Listening { listener, tls, accept: Box::new(accept) });
        Ok(())
    }

    /// Wakes sessions, for code that runs between two turns: [`Event::Woken`] comes with the next one.
    pub fn wake_all(&mut self, ids: impl IntoIterator<Item = SessionId>) {
        self.wake.extend(ids);
    }

    /// Asks a session to end; one that has ended already takes no notice.
    pub fn stop(&mut self, id: SessionId) {
        self.dispatch(id, Event::Stop);
    }

    /// Asks every session to end, those as well that were asked before.
    pub fn stop_all(&mut self) {
        let ids: Vec<_> = self.entries.iter().map(|(_, entry)| entry.id).collect();
        ids.into_iter().for_each(|id| self.stop(id));
    }

    /// For how long, since the last call, nothing was read that came.
    pub fn take_lag(&mut self) -> Lag {
        std::mem::take(&mut self.lag)
    }

    /// Sleeps until something happens, `until` at the latest, and handles it.
    ///
    /// # Errors
    /// The poll itself fails, which no session can cause.
    pub fn turn(&mut self, until: Moment) -> io::Result<()> {
        // What sessions have sent between two turns, as when they begin.
        self.flush_shared();
        let guards = self.guards.poll_timeout(&mut Guards(&mut self.entries));
        let next = [
            self.timers.poll_timeout(&mut self.entries),
            self.batched_reads.poll_timeout(),
            self.accept_again,
            self.shared.poll_timeout(clock::now()),
            guards,
        ]
        .into_iter()
        .flatten()
        .fold(until, Moment::min);
        let is_read = self.unread.iter().all(Vec::is_empty) && self.shared.are_read();
        let idle = is_read && self.wake.is_empty() && !self.unread_mail;
        let began = clock::now();
        let timeout = if idle { next.since(began) } else { Duration::ZERO };
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        let polled = self.poll.poll(&mut events, Some(timeout));
        let woke = clock::now();
        self.lag.add(woke.since(began + timeout));
        if let Err(error) = polled {
            self.events = events;
            // What came is not known yet, and no deadline may overtake it.
            return if error.kind() == io::ErrorKind::Interrupted { Ok(()) } else { Err(error) };
        }
        let slept_out = events.is_empty();
        // SendProgress before the events: a link that one of them has read for its share of this turn is read again in the next.
        let (unread, shared_unread) = (std::mem::take(&mut self.unread), self.take_shared_unread());
        events.iter().for_each(|event| self.on_ready(event));
        self.events = events;
        if std::mem::take(&mut self.unread_mail) {
            self.take_mail();
        }
        self.read_left_over(unread);
        self.read_shared_left_over(&shared_unread);
        self.hold_rounds();
        // All that came up to here was told of. A poll that told of something may have returned at any time since it began.
        let told = if slept_out { began + timeout } else { began };
        self.fire_timers(told);
        self.judge_accepted();
        self.wake_sessions();
        if self.accept_again.take_if(|at| *at <= clock::now()).is_some() {
            (0..self.listeners.len()).for_each(|position| self.accept(position));
        }
        self.flush_shared();
        self.lag.add(clock::now().since(woke));
        Ok(())
    }

    fn on_ready(&mut self, event: &mio::event::Event) {
        let token = event.token().0;
        if event.token() == WAKER {
            return self.take_mail();
        }
        if token >= WAKER.0 - self.listeners.len() {
            self.accept(WAKER.0 - 1 - token);
            return;
        }
        if token & SIDE != 0 {
            return self.on_side_ready(token & !SIDE, event);
        }
        if token & SHARED != 0 {
            return self.on_shared_ready(token & !SHARED);
        }
        if token & DATAGRAMS != 0 {
            if let Some(id) = self.entries.get(token & !DATAGRAMS).map(|entry| entry.id)
                && !self.is_queued(id, LinkKind::Datagrams)
            {
                self.read_datagrams(id);
            }
            return;
        }
        let Some(id) = self.entries.get(token).map(|entry| entry.id) else { return };
        // One that was left with something to read has its share of this turn behind the events.
        let has_share = self.is_queued(id, LinkKind::Stream);
        if event.is_writable() || event.is_error() {
            self.writable(id);
        }
        if (event.is_readable() || event.is_read_closed()) && !has_share {
            self.read(id, event.is_read_closed());
        }
    }

    /// Gives the session back when the link cannot be polled.
    fn insert(
        &mut self,
        mut link: Link,
        from: Option<IpAddr>,
        session: Box<dyn Session<W>>,
    ) -> Result<SessionId, (Box<dyn Session<W>>, io::Error)> {
        let token = Token(self.entries.vacant_key());
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().register(&mut link.stream, token, interest) {
            return Err((session, error));
        }
        Ok(self.enter(Links { stream: Some(link), from, ..Links::default() }, session))
    }

    fn enter(&mut self, links: Links, session: Box<dyn Session<W>>) -> SessionId {
        let vacant = self.entries.vacant_entry();
        self.generation = self.generation.wrapping_add(1);
        let id = SessionId { key: vacant.key() as u32, generation: self.generation };
        vacant.insert(Entry {
            id,
            session,
            links,
            deadline: Deadline::default(),
            low_water: 1,
            paused: false,
            read_limit: RECEIVE_BUFFER,
            turn_limit: READS_A_TURN * RECEIVE_BUFFER,
            given_back: Vec::new(),
            ended: None,
            guard: None,
            unsent_limit: UNSENT_LIMIT,
            choked: false,
            stands_by: false,
            queued: EachKind::default(),
        });
        id
    }

    fn alive(&mut self, id: SessionId) -> Option<&mut Entry<W>> {
        entry_of(&mut self.entries, id)
    }

    fn writable(&mut self, id: SessionId) {
        let Some(link) = self.alive(id).and_then(|entry| entry.links.stream.as_mut()) else { return };
        match link.writable() {
            Ok(true) => self.connected(id),
            Ok(false) if link.has_room_again() => self.dispatch(id, Event::Writable),
            Ok(false) => {}
            Err(error) => self.end(id, &error),
        }
        // What arrived meanwhile is not dispatched again.
        if let Some(entry) = self.alive(id)
            && entry.choked
            && !entry.is_choked()
        {
            entry.choked = false;
            self.read_next_turn(id, LinkKind::Stream);
        }
    }

    /// Notifies a session that its link is connected, which implies that it takes bytes.
    fn connected(&mut self, id: SessionId) {
        if let Some(link) = self.alive(id).and_then(|entry| entry.links.stream.as_mut()) {
            link.has_room_again();
            self.dispatch(id, Event::Connected);
        }
    }

    /// A link has ended: so has its session, unless it has others.
    fn end(&mut self, id: SessionId, error: &LinkError) {
        let (failure, words) = (error.failure, &*error.words);
        if self.alive(id).is_some_and(|entry| entry.links.has_more()) {
            self.hang_up(id);
            return self.dispatch(id, Event::HungUp { failure, words });
        }
        self.dispatch(id, Event::Closed { failure, words });
        if self.alive(id).is_some_and(|entry| !entry.stands_by) {
            self.remove(id);
        }
    }

    /// Lets go of the link, not of what stands beside it.
    fn hang_up(&mut self, id: SessionId) {
        if let Some(mut link) = self.alive(id).and_then(|entry| entry.links.stream.take()) {
            link.close();
            // Closing the descriptor deregisters it as well.
            let _ = self.poll.registry().deregister(&mut link.stream);
        }
    }

    fn remove(&mut self, id: SessionId) {
        if self.alive(id).is_some() {
            self.hang_up(id);
            self.hang_up_side(id);
            let entry = self.entries.remove(id.key as usize);
            self.timers.forget(entry.deadline);
            if let Some(guard) = &entry.guard {
                self.guards.forget(guard.deadline);
            }
            if let Some(link) = entry.links.datagrams {
                // Closing the descriptors of further ports deregisters them as well.
                let _ = self.poll.registry().deregister(&mut SourceFd(&link.descriptor()));
            }
        }
    }

    /// Calls a session with one event and carries out what it asks for.
    fn dispatch(&mut self, id: SessionId, event: Event<'_>) {
        let Some(entry) = entry_of(&mut self.entries, id) else { return };
        let is_end = matches!(event, Event::Closed { .. });
        // What is there when a session gets these events follows by itself, or never.
        let may_pull = !is_end && !matches!(event, Event::Bytes(_) | Event::Connected | Event::HungUp { .. });
        let mut actions = Actions::default();
        entry.session.handle(
            event,
            &mut Context {
                now: clock::now(),
                world: &mut self.world,
                id,
                link: &mut entry.links,
                actions: &mut actions,
                wake: &mut self.wake,
            },
        );
        if let Some(at) = actions.timer {
            // A wake-up for each would cost what the batched_reads spare.
            let waits = entry.links.datagrams.as_ref().is_some_and(|link| link.waits());
            let at = if waits { at.map(|at| BatchedReads::turn_from(id, at)) } else { at };
            self.timers.set(id, &mut entry.deadline, at);
        }
        if let Some(bytes) = actions.low_water
            && entry.low_water != bytes
        {
            entry.low_water = bytes;
            if let Some(link) = &entry.links.stream {
                link.set_low_water(bytes);
            }
        }
        let resumed = actions.paused == Some(false) && entry.paused;
        if let Some(paused) = actions.paused {
            entry.paused = paused;
        }
        if let Some(bytes) = actions.read_limit {
            entry.read_limit = bytes.min(RECEIVE_BUFFER);
        }
        if let Some(guard) =
            entry.guard.as_mut().filter(|_| actions.progress.is_some() || actions.silence.is_some())
        {
            if let Some(span) = actions.silence {
                guard.allow_silence(span);
            }
            let next = actions
                .progress
                .map_or(guard.poll_timeout(), |progress| guard.settle(progress, clock::now()));
            self.guards.set(id, &mut guard.deadline, Some(next));
        }
        let gave_back = !actions.given_back.is_empty();
        if gave_back {
            entry.given_back = actions.given_back;
        }
        entry.unsent_limit = actions.unsent_limit.unwrap_or(entry.unsent_limit);
        entry.stands_by |= actions.stand_by;
        if let Some(link) = entry.links.stream.as_mut().filter(|_| actions.reset) {
            link.reset();
        }
        let broken = entry.links.stream.as_ref().is_some_and(Link::is_broken);
        let side_broken = entry.links.side.as_ref().is_some_and(|link| link.is_broken());
        let (unpolled, side_unpolled) = (entry.links.unpolled, entry.links.side_unpolled);
        let alone = !entry.links.has_more();
        if actions.close || actions.hang_up && alone && !is_end {
            return self.remove(id);
        }
        if unpolled && let Err(error) = self.poll_datagrams(id) {
            self.dispatch(id, Event::Closed { failure: error.failure, words: &error.words });
            return self.remove(id);
        }
        if let Some(wait) = actions.datagrams_wait {
            self.wish_to_wait(id, wait);
        }
        if side_unpolled {
            self.poll_side(id);
        } else if side_broken {
            self.read_next_turn(id, LinkKind::Side);
        }
        if let Some(endpoint) = actions.reopen
            && !is_end
        {
            return self.reopen(id, *endpoint);
        }
        if actions.stand_by {
            self.hang_up_datagrams(id);
        }
        if actions.hang_up || actions.stand_by {
            return self.hang_up(id);
        }
        if resumed || broken || gave_back {
            self.read_next_turn(id, LinkKind::Stream);
        }
        if actions.pull && may_pull {
            self.pull(id);
        }
    }

    /// Puts another link in the place of a session's.
    fn reopen(&mut self, id: SessionId, endpoint: Endpoint) {
        if matches!(endpoint.transport, Transport::Udp | Transport::BoundUdp | Transport::SharedUdp(_)) {
            return self.reopen_udp(id, &endpoint);
        }
        let Some(from) = self.alive(id).map(|entry| entry.links.from) else { return };
        let from = from.filter(|from| from.is_ipv4() == endpoint.address.is_ipv4());
        let opened = Link::open(&Endpoint { from, ..endpoint });
        self.hang_up(id);
        let Some(entry) = self.entries.get_mut(id.key as usize) else { return };
        entry.stands_by = false;
        let opened = opened.and_then(|mut link| {
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll
                .registry()
                .register(&mut link.stream, Token(id.key as usize), interest)
                .map_err(|error| LinkError { failure: Failure::SocketError, words: error.to_string() })?;
            Ok(link)
        });
        match opened {
            Ok(link) => {
                entry.links.stream = Some(link);
                (entry.low_water, entry.paused) = (1, false);
                (entry.given_back, entry.ended) = (Vec::new(), None);
                entry.choked = false;
            }
            Err(error) => self.end(id, &error),
        }
    }

    /// Passes the deadlines that are due.
    ///
    /// Where the process stood still behind the poll, links have been read up to it and deadlines are due up to now: those of the time
    /// between have to wait for the next poll, or they would overtake what came before them.
    fn fire_timers(&mut self, told: Moment) {
        let now = clock::now();
        let now = if now.since(told) > STANDSTILL { told } else { now };
        while let Some((deadline, id)) = self.timers.pop(now, &mut self.entries) {
            // What came before the deadline is dispatched before it.
            self.catch_up(id, deadline);
            self.dispatch(id, Event::Timer);
        }
    }

    fn wake_sessions(&mut self) {
        // Those that wake others in turn are served in the next turn, so that no pair can spin here.
        let mut woken = std::mem::take(&mut self.wake);
        for id in woken.drain(..) {
            self.dispatch(id, Event::Woken);
        }
        if self.wake.is_empty() {
            self.wake = woken;
        }
    }
}

impl<W: World> timer::Deadlines for Slab<Entry<W>> {
    fn of(&mut self, id: SessionId) -> Option<&mut Deadline> {
        entry_of(self, id).map(|entry| &mut entry.deadline)
    }
}

/// The entry of a session, unless another one has its key by now.
#[inline]
fn entry_of<W>(entries: &mut Slab<Entry<W>>, id: SessionId) -> Option<&mut Entry<W>> {
    entries.get_mut(id.key as usize).filter(|entry| entry.id == id)
}
