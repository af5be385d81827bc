//! The loop: polls, reads into one buffer, tells sessions, carries out their orders.

use crate::link::{Door, Entry, Link, LinkError, State};
use crate::session::{NoLink, Orders};
use crate::timer::{Deadline, TimerQueue};
use crate::{Context, Event, Session, SessionId, World, clock};
use mio::net::TcpListener;
use mio::{Events, Interest, Poll, Token, Waker};
use rustls::ServerConfig;
use slab::Slab;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;
use weir_metrics::{Failure, Moment};

/// Bytes of the receive buffer that all sessions of a shard share.
const RECEIVE_BUFFER: usize = 256 * 1024;
/// Full buffers that one link may fill before the others have their turn.
const READS_A_TURN: usize = 4;
/// When to look again at listeners that found no descriptor: others may have let go of theirs.
const ACCEPT_AGAIN: Duration = Duration::from_millis(100);
/// Token of the waker; sessions have their slab key, listeners count down from here.
const WAKER: Token = Token(usize::MAX);

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
    timers: TimerQueue,
    wake: Vec<SessionId>,
    /// Links that were left with bytes to read, to be read in the next turn.
    unread: Vec<SessionId>,
    buffer: Box<[u8]>,
    plain: Vec<u8>,
    generation: u32,
    mail: Receiver<W::Message>,
    mailbox: Mailbox<W::Message>,
    /// What the sessions share.
    pub world: W,
}

struct Listening<W> {
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    accept: Accept<W>,
}

/// Where other threads leave messages for a shard's world.
#[derive(Debug)]
pub struct Mailbox<M> {
    sender: Sender<M>,
    waker: Arc<Waker>,
}

impl<M> Clone for Mailbox<M> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), waker: self.waker.clone() }
    }
}

impl<M> Mailbox<M> {
    /// Leaves a message and wakes the shard. A shard that has ended takes no notice.
    pub fn post(&self, message: M) {
        if self.sender.send(message).is_ok() {
            let _ = self.waker.wake();
        }
    }
}

/// A link that could not be begun.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {words}", failure.key())]
pub struct OpenError {
    /// The kind, on the local side as a rule.
    pub failure: Failure,
    /// The system's words.
    pub words: String,
}

impl From<LinkError> for OpenError {
    fn from(error: LinkError) -> Self {
        Self { failure: error.failure, words: error.words }
    }
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
            timers: TimerQueue::default(),
            wake: Vec::new(),
            unread: Vec::new(),
            buffer: vec![0; RECEIVE_BUFFER].into_boxed_slice(),
            plain: Vec::new(),
            generation: 0,
            mail,
            mailbox: Mailbox { sender, waker },
            world,
        })
    }

    /// Where other threads leave messages.
    pub fn mailbox(&self) -> Mailbox<W::Message> {
        self.mailbox.clone()
    }

    /// Number of sessions.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no session is left.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Begins to connect a session to its peer: [`Event::Opening`], or [`Event::Closed`] and an error.
    ///
    /// # Errors
    /// No descriptor or port was left, or the address family is missing. The session knows already.
    pub fn open(&mut self, door: &Door, session: Box<dyn Session<W>>) -> Result<SessionId, OpenError> {
        let refused = match Link::open(door).map_err(OpenError::from) {
            Ok(link) => match self.insert(link, session) {
                Ok(id) => {
                    self.tell(id, Event::Opening);
                    return Ok(id);
                }
                Err((session, error)) => {
                    (session, OpenError { failure: Failure::SocketError, words: error.to_string() })
                }
            },
            Err(error) => (session, error),
        };
        let (mut session, error) = refused;
        session.handle(
            Event::Closed { failure: error.failure, words: &error.words },
            &mut Context {
                now: clock::now(),
                world: &mut self.world,
                id: SessionId { slot: u32::MAX, generation: 0 },
                link: &mut NoLink,
                orders: &mut Orders::default(),
                wake: &mut self.wake,
            },
        );
        Err(error)
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

    /// Wakes sessions, for whoever works between two turns: [`Event::Woken`] comes with the next one.
    pub fn wake_all(&mut self, ids: impl IntoIterator<Item = SessionId>) {
        self.wake.extend(ids);
    }

    /// Asks a session to end; one that has ended already takes no notice.
    pub fn stop(&mut self, id: SessionId) {
        self.tell(id, Event::Stop);
    }

    /// Reads what waits on links that are below their low-water mark, so that counts are exact now.
    pub fn sweep(&mut self) {
        let crowd: Vec<SessionId> =
            self.entries.iter().filter(|(_, entry)| entry.low_water > 1).map(|(_, entry)| entry.id).collect();
        for id in crowd {
            self.read(id, false);
        }
    }

    /// Sleeps until something happens, `until` at the latest, and handles it.
    ///
    /// # Errors
    /// The poll itself fails, which no session can cause.
    pub fn turn(&mut self, until: Moment) -> io::Result<()> {
        let next = [self.timers.next(), self.accept_again].into_iter().flatten().fold(until, Moment::min);
        let timeout = if self.unread.is_empty() && self.wake.is_empty() {
            next.since(clock::now())
        } else {
            Duration::ZERO
        };
        let mut events = std::mem::replace(&mut self.events, Events::with_capacity(0));
        let polled = self.poll.poll(&mut events, Some(timeout));
        match polled {
            Ok(()) => events.iter().for_each(|event| self.dispatch(event)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        self.events = events;
        for id in std::mem::take(&mut self.unread) {
            self.read(id, true);
        }
        self.fire_timers();
        self.wake_sessions();
        if self.accept_again.take_if(|at| *at <= clock::now()).is_some() {
            (0..self.listeners.len()).for_each(|position| self.accept(position));
        }
        Ok(())
    }

    fn dispatch(&mut self, event: &mio::event::Event) {
        let token = event.token().0;
        if event.token() == WAKER {
            while let Ok(message) = self.mail.try_recv() {
                self.world.receive(message, clock::now(), &mut self.wake);
            }
            return;
        }
        if token >= WAKER.0 - self.listeners.len() {
            self.accept(WAKER.0 - 1 - token);
            return;
        }
        let Some(id) = self.entries.get(token).map(|entry| entry.id) else { return };
        if event.is_writable() || event.is_error() {
            self.writable(id);
        }
        if event.is_readable() || event.is_read_closed() {
            self.read(id, event.is_read_closed());
        }
    }

    fn accept(&mut self, position: usize) {
        loop {
            let listening = &mut self.listeners[position];
            let (stream, address) = match listening.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                // No descriptor is left, as a rule. The kernel does not say again that someone waits.
                Err(_) => {
                    self.accept_again = Some(clock::now() + ACCEPT_AGAIN);
                    return;
                }
            };
            let Ok(link) = Link::accepted(stream, listening.tls.as_ref()) else { continue };
            let open = link.state == State::Open;
            let session = (listening.accept)(&mut self.world, address);
            if let Ok(id) = self.insert(link, session)
                && open
            {
                self.tell(id, Event::Connected);
            }
        }
    }

    /// Gives the session back when the link cannot be polled.
    fn insert(
        &mut self,
        mut link: Link,
        session: Box<dyn Session<W>>,
    ) -> Result<SessionId, (Box<dyn Session<W>>, io::Error)> {
        let vacant = self.entries.vacant_entry();
        self.generation = self.generation.wrapping_add(1);
        let id = SessionId { slot: vacant.key() as u32, generation: self.generation };
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().register(&mut link.stream, Token(vacant.key()), interest) {
            return Err((session, error));
        }
        vacant.insert(Entry {
            id,
            session,
            link,
            deadline: Deadline::default(),
            low_water: 1,
            paused: false,
            read_limit: RECEIVE_BUFFER,
        });
        Ok(id)
    }

    fn alive(&mut self, id: SessionId) -> Option<&mut Entry<W>> {
        self.entries.get_mut(id.slot as usize).filter(|entry| entry.id == id)
    }

    fn writable(&mut self, id: SessionId) {
        let Some(entry) = self.alive(id) else { return };
        match entry.link.writable() {
            Ok(true) => self.connected(id),
            Ok(false) if entry.link.has_room_again() => self.tell(id, Event::Writable),
            Ok(false) => {}
            Err(error) => self.end(id, &error),
        }
    }

    /// Tells a session that its link is there, which says as well that it takes bytes.
    fn connected(&mut self, id: SessionId) {
        if let Some(entry) = self.alive(id) {
            entry.link.has_room_again();
            self.tell(id, Event::Connected);
        }
    }

    /// Reads a link until it is empty, or for its share of this turn. A short read means empty,
    /// except that a peer's end (`to_end`) still waits behind it.
    fn read(&mut self, id: SessionId, to_end: bool) {
        for _ in 0..READS_A_TURN {
            match self.read_once(id) {
                Some(full) if !full && !to_end => return,
                Some(_) => {}
                None => return,
            }
        }
        self.unread.push(id);
    }

    /// Reads once and tells the session. Says whether it read all that it may; `None`: nothing
    /// waited, or the session has ended.
    fn read_once(&mut self, id: SessionId) -> Option<bool> {
        let entry = self.entries.get_mut(id.slot as usize).filter(|entry| entry.id == id)?;
        if entry.paused || entry.link.state == State::Connecting {
            return None;
        }
        let limit = entry.read_limit;
        let n = match entry.link.read(&mut self.buffer[..limit]) {
            Ok(Some(n)) => n,
            Ok(None) => return None,
            Err(error) => {
                self.end(id, &error);
                return None;
            }
        };
        if entry.link.is_tls() {
            self.plain.clear();
            let decrypted = entry.link.decrypt(&self.buffer[..n], &mut self.plain);
            let plain = std::mem::take(&mut self.plain);
            if decrypted.opened {
                self.connected(id);
            }
            if !plain.is_empty() {
                self.tell(id, Event::Bytes(&plain));
            }
            // The end of a link that its session has let go of is not the end of the next one.
            if let Some(error) = decrypted.end
                && self.alive(id).is_some_and(|entry| entry.link.state != State::Connecting)
            {
                self.end(id, &error);
            }
            self.plain = plain;
        } else {
            let buffer = std::mem::take(&mut self.buffer);
            self.tell(id, Event::Bytes(&buffer[..n]));
            self.buffer = buffer;
        }
        Some(n == limit)
    }

    /// Answers [`Context::pull`]: one read, and [`Event::Bytes`] even if it brought nothing in clear.
    fn pull(&mut self, id: SessionId) {
        let read = self.read_once(id).is_some();
        // A piece of a TLS record brings nothing yet; an empty slice more after a whole one does no harm.
        if !read || self.alive(id).is_some_and(|entry| entry.link.is_tls()) {
            self.tell(id, Event::Bytes(&[]));
        }
    }

    fn end(&mut self, id: SessionId, error: &LinkError) {
        self.tell(id, Event::Closed { failure: error.failure, words: &error.words });
        self.remove(id);
    }

    fn remove(&mut self, id: SessionId) {
        if self.alive(id).is_some() {
            let mut entry = self.entries.remove(id.slot as usize);
            entry.link.close();
            // Closing the descriptor deregisters it as well.
            let _ = self.poll.registry().deregister(&mut entry.link.stream);
        }
    }

    /// Tells a session one event and carries out what it asks for.
    fn tell(&mut self, id: SessionId, event: Event<'_>) {
        let Some(entry) = self.entries.get_mut(id.slot as usize).filter(|entry| entry.id == id) else {
            return;
        };
        let mut orders = Orders::default();
        entry.session.handle(
            event,
            &mut Context {
                now: clock::now(),
                world: &mut self.world,
                id,
                link: &mut entry.link,
                orders: &mut orders,
                wake: &mut self.wake,
            },
        );
        if let Some(at) = orders.timer {
            self.timers.set(id, &mut entry.deadline, at);
        }
        if let Some(bytes) = orders.low_water
            && entry.low_water != bytes
        {
            entry.low_water = bytes;
            entry.link.set_low_water(bytes);
        }
        let resumed = orders.paused == Some(false) && entry.paused;
        if let Some(paused) = orders.paused {
            entry.paused = paused;
        }
        if let Some(bytes) = orders.read_limit {
            entry.read_limit = bytes.min(RECEIVE_BUFFER);
        }
        if orders.reset {
            entry.link.reset();
        }
        let broken = entry.link.is_broken();
        if orders.close {
            return self.remove(id);
        }
        if let Some(door) = orders.reopen
            && !matches!(event, Event::Closed { .. })
        {
            return self.reopen(id, *door);
        }
        if resumed || broken {
            self.unread.push(id);
        }
        // What is there when these are told follows by itself, or never.
        if orders.pull && !matches!(event, Event::Bytes(_) | Event::Connected | Event::Closed { .. }) {
            self.pull(id);
        }
    }

    /// Puts another link in the place of a session's.
    fn reopen(&mut self, id: SessionId, door: Door) {
        let Some(entry) = self.entries.get_mut(id.slot as usize).filter(|entry| entry.id == id) else {
            return;
        };
        let from = entry.link.from.filter(|from| from.is_ipv4() == door.address.is_ipv4());
        let opened = Link::open(&Door { from, ..door }).and_then(|mut link| {
            let interest = Interest::READABLE | Interest::WRITABLE;
            self.poll
                .registry()
                .register(&mut link.stream, Token(id.slot as usize), interest)
                .map_err(|error| LinkError { failure: Failure::SocketError, words: error.to_string() })?;
            Ok(link)
        });
        match opened {
            Ok(link) => {
                let mut before = std::mem::replace(&mut entry.link, link);
                before.close();
                // Closing the descriptor deregisters it as well.
                let _ = self.poll.registry().deregister(&mut before.stream);
                (entry.low_water, entry.paused) = (1, false);
            }
            Err(error) => self.end(id, &error),
        }
    }

    fn fire_timers(&mut self) {
        let now = clock::now();
        while let Some((queued, id)) = self.timers.pop(now) {
            let Some(entry) = self.entries.get_mut(id.slot as usize).filter(|entry| entry.id == id) else {
                continue;
            };
            if self.timers.fire(id, &mut entry.deadline, queued, now) {
                self.tell(id, Event::Timer);
            }
        }
    }

    fn wake_sessions(&mut self) {
        // Those that wake others in turn are served in the next turn, so that no pair can spin here.
        let mut woken = std::mem::take(&mut self.wake);
        for id in woken.drain(..) {
            self.tell(id, Event::Woken);
        }
        if self.wake.is_empty() {
            self.wake = woken;
        }
    }
}

impl<W: World> fmt::Debug for Shard<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shard").field("sessions", &self.entries.len()).finish_non_exhaustive()
    }
}

/// Non-blocking listeners with deep backlogs, one a shard, that share one port. Port 0 is any free one.
///
/// # Errors
/// The address is taken, even by listeners that would share it, or is not of this machine.
pub fn listeners(address: SocketAddr, count: usize) -> io::Result<Vec<std::net::TcpListener>> {
    let Some(others) = count.checked_sub(1) else { return Ok(Vec::new()) };
    // Bound alone, so that nobody else has the port; shared only then, so that nobody takes it meanwhile.
    let first = bound(address, false)?;
    first.set_reuse_port(true)?;
    let address = first.local_addr()?.as_socket().unwrap_or(address);
    let others = (0..others).map(|_| bound(address, true));
    std::iter::once(Ok(first))
        .chain(others)
        .map(|socket| {
            let socket = socket?;
            // The kernel cuts this to net.core.somaxconn.
            socket.listen(65_535)?;
            Ok(socket.into())
        })
        .collect()
}

fn bound(address: SocketAddr, shared: bool) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(address),
        socket2::Type::STREAM.nonblocking().cloexec(),
        Some(socket2::Protocol::TCP),
    )?;
    // What an earlier server's connections left behind keeps no port.
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(shared)?;
    socket.bind(&address.into())?;
    Ok(socket)
}
