//! The seam that a protocol plugs into: the events of a session, and what it may do about them.

use crate::datagrams::Datagrams;
use crate::endpoint::Endpoint;
use crate::link_error::OpenError;
use crate::transmit::Transmit;
use std::io::IoSlice;
use std::net::SocketAddr;
use std::time::Duration;
use weir_metrics::{Failure, Moment};

/// Names a session of one shard; never used again after the session's end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId {
    pub(crate) key: u32,
    pub(crate) generation: u32,
}

impl SessionId {
    /// An identity for a test that has no shard.
    pub const fn made_up(key: u32) -> Self {
        Self { key, generation: 0 }
    }

    /// A small number that no other session of the shard has at the same time: where a table keeps what belongs to it.
    pub const fn index(self) -> usize {
        self.key as usize
    }
}

/// What the sessions of one shard share: for clients their recorder, for an origin its streams.
pub trait World {
    /// What other threads may send to this shard.
    type Message: Send + 'static;

    /// Takes a message from another thread; sessions pushed on `wake` get [`Event::Woken`].
    fn receive(&mut self, message: Self::Message, now: Moment, wake: &mut Vec<SessionId>);
}

/// A state machine on a shard. It writes those methods whose events it cares about; each answers through the context.
pub trait Session<W> {
    /// [`Event::Opening`].
    fn handle_opening(&mut self, _: &mut Context<'_, W>) {}

    /// [`Event::Connected`].
    fn handle_connected(&mut self, _: &mut Context<'_, W>) {}

    /// [`Event::Bytes`].
    fn handle_input(&mut self, _: &[u8], _: &mut Context<'_, W>) {}

    /// [`Event::Datagrams`].
    fn handle_datagrams(&mut self, _: Datagrams<'_>, _: &mut Context<'_, W>) {}

    /// [`Event::Side`].
    fn handle_side(&mut self, _: Side<'_>, _: &mut Context<'_, W>) {}

    /// [`Event::Writable`].
    fn handle_writable(&mut self, _: &mut Context<'_, W>) {}

    /// [`Event::Timer`].
    fn handle_timeout(&mut self, _: &mut Context<'_, W>) {}

    /// [`Event::Edge`].
    fn handle_edge(&mut self, _: Edge, _: &mut Context<'_, W>) {}

    /// [`Event::Woken`].
    fn handle_woken(&mut self, _: &mut Context<'_, W>) {}

    /// [`Event::Stop`].
    fn handle_stop(&mut self, context: &mut Context<'_, W>) {
        context.close();
    }

    /// [`Event::HungUp`].
    fn handle_hung_up(&mut self, _: Failure, _: &str, _: &mut Context<'_, W>) {}

    /// [`Event::Closed`].
    fn handle_closed(&mut self, _: Failure, _: &str, _: &mut Context<'_, W>) {}

    /// Behind each of the above: what is to be done whatever has happened, such as setting the next deadline.
    fn after_event(&mut self, _: &mut Context<'_, W>) {}

    /// Takes note of what happened. What a shard calls; a session that writes it itself has none of the other methods.
    fn handle(&mut self, event: Event<'_>, context: &mut Context<'_, W>) {
        match event {
            Event::Opening => self.handle_opening(context),
            Event::Connected => self.handle_connected(context),
            Event::Bytes(bytes) => self.handle_input(bytes, context),
            Event::Datagrams(datagrams) => self.handle_datagrams(datagrams, context),
            Event::Side(event) => self.handle_side(event, context),
            Event::Writable => self.handle_writable(context),
            Event::Timer => self.handle_timeout(context),
            Event::Edge(edge) => self.handle_edge(edge, context),
            Event::Woken => self.handle_woken(context),
            Event::Stop => self.handle_stop(context),
            Event::HungUp { failure, words } => self.handle_hung_up(failure, words, context),
            Event::Closed { failure, words } => self.handle_closed(failure, words, context),
        }
        self.after_event(context);
    }
}

/// What can happen to a session.
#[derive(Debug)]
pub enum Event<'a> {
    /// The link is being established: the first event of a session that was opened, and the moment
    /// to set its first deadline. An accepted session starts with [`Self::Connected`].
    Opening,
    /// The link is established, TLS included.
    Connected,
    /// Bytes came, a slice of the shard's one receive buffer. Empty only as the answer to
    /// [`Context::pull`]: nothing was waiting.
    Bytes(&'a [u8]),
    /// Datagrams came, on the link that [`Context::open_datagrams`] opened or on one that is UDP itself.
    Datagrams(Datagrams<'a>),
    /// Something happened on the link that [`Context::open_side`] opened.
    Side(Side<'a>),
    /// The link takes bytes again after it had refused some.
    Writable,
    /// The deadline of [`Context::set_timer`] passed.
    Timer,
    /// A stretch of time that is judged begins or ends. What waited on the link has been passed on before it.
    Edge(Edge),
    /// Another session of this shard, or the world, asked for it.
    Woken,
    /// The run wants this session to end: it should send what its protocol ends with, and [`Context::close`].
    Stop,
    /// The link is gone, and the session goes on with its datagrams.
    HungUp {
        /// The kind of failure.
        failure: Failure,
        /// The words of the system or the TLS library.
        words: &'a str,
    },
    /// The link is gone, or could not be begun; so is the session when this call returns, unless it
    /// [stands by](Context::stand_by).
    Closed {
        /// The kind of failure.
        failure: Failure,
        /// The words of the system or the TLS library.
        words: &'a str,
    },
}

/// A moment at which a stretch of time that is judged begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// The moment itself; the shard may be late for it.
    pub at: Moment,
    /// When the newest bytes of the session's stream came, if it has one: before the moment, or after it if the shard is late.
    pub arrived: Option<Moment>,
}

/// What can happen to the link that stands beside a session's own.
#[derive(Debug)]
pub enum Side<'a> {
    /// It is established, TLS included.
    Connected,
    /// Bytes came, in the shard's one receive buffer. They may be changed where they lie.
    Bytes(&'a mut [u8]),
    /// It is gone; the session goes on.
    Closed {
        /// The kind of failure.
        failure: Failure,
        /// The words of the system or the TLS library.
        words: &'a str,
    },
}

/// Where a session says that its peer stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It has to say what it wants.
    AwaitsRequest,
    /// The peer's request was answered.
    Answered,
    /// It has said what it wants.
    Established,
}

/// What a session asked of its shard during one call.
#[derive(Debug, Default)]
pub(crate) struct Actions {
    pub(crate) timer: Option<Option<Moment>>,
    pub(crate) low_water: Option<usize>,
    pub(crate) paused: Option<bool>,
    pub(crate) read_limit: Option<usize>,
    pub(crate) unsent_limit: Option<usize>,
    pub(crate) stand_by: bool,
    pub(crate) datagrams_wait: Option<bool>,
    pub(crate) pull: bool,
    pub(crate) close: bool,
    pub(crate) reset: bool,
    pub(crate) hang_up: bool,
    pub(crate) reopen: Option<Box<Endpoint>>,
    pub(crate) given_back: Vec<u8>,
    pub(crate) progress: Option<Progress>,
    pub(crate) silence: Option<Duration>,
}

/// What a session has at hand while it handles an event.
pub struct Context<'a, W> {
    /// When the event happened.
    pub now: Moment,
    /// What the shard's sessions share.
    pub world: &'a mut W,
    pub(crate) id: SessionId,
    pub(crate) link: &'a mut dyn Transmit,
    pub(crate) actions: &'a mut Actions,
    pub(crate) wake: &'a mut Vec<SessionId>,
}

impl<W> Context<'_, W> {
    /// This session's identifier.
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Sends all of `bytes`, keeping what the link does not take now. Watch [`Self::unsent`].
    pub fn send(&mut self, bytes: &[u8]) {
        self.link.send(bytes);
    }

    /// Sends what the link takes now of shared buffers and says how many bytes that was. After a
    /// short count, [`Event::Writable`] follows when there is room.
    pub fn write(&mut self, slices: &[IoSlice<'_>]) -> usize {
        self.link.write(slices)
    }

    /// Bytes that [`Self::send`] took and the link has not.
    pub fn unsent(&self) -> usize {
        self.link.unsent()
    }

    /// Bytes that came and wait below the low-water mark, as they are on the link (of TLS: its records).
    pub fn unread(&self) -> usize {
        self.link.unread()
    }

    /// Bytes, as they are on the link, that the peer's machine has acknowledged so far. Grows while the peer reads,
    /// where [`Self::unsent`] may not shrink for long: the kernel takes more only when a third of its buffer is
    /// free. Costs a system call.
    pub fn acknowledged(&self) -> u64 {
        self.link.acknowledged()
    }

    /// The address of the peer of this link, if it is a stream. Costs a system call.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.link.peer_address()
    }

    /// Asks for [`Event::Timer`] at `at`, instead of any earlier wish, or for none. A session has one deadline.
    pub fn set_timer(&mut self, at: impl Into<Option<Moment>>) {
        self.actions.timer = Some(at.into());
    }

    /// From now on, wait until `bytes` have come before reading (1: read at every event).
    pub fn set_low_water(&mut self, bytes: usize) {
        self.actions.low_water = Some(bytes);
    }

    /// Read now, whatever the low-water mark: [`Event::Bytes`] follows at once, empty if nothing waited.
    /// Of no effect while [`Event::Connected`], [`Event::Bytes`] or [`Event::Closed`] is handled.
    pub fn pull(&mut self) {
        self.actions.pull = true;
    }

    /// Stop reading, or begin again: the peer feels back-pressure.
    pub fn pause_reading(&mut self, paused: bool) {
        self.actions.paused = Some(paused);
    }

    /// Gives back bytes of what came that were not looked at: [`Event::Bytes`] brings them again, before anything else,
    /// in the next turn, when other sessions have had theirs. For protocols in which a few bytes may ask for much work.
    pub fn give_back(&mut self, bytes: &[u8]) {
        self.actions.given_back.extend_from_slice(bytes);
    }

    /// The peer of an accepted link has said what it wants. From now on [`Deadlines::idle`] holds, and
    /// [`Deadlines::request`] no longer.
    ///
    /// [`Deadlines::idle`]: crate::Deadlines::idle
    /// [`Deadlines::request`]: crate::Deadlines::request
    pub fn established(&mut self) {
        self.actions.progress = Some(Progress::Established);
    }

    /// The peer of an accepted link has to say what it wants next: [`Deadlines::request`] begins now.
    ///
    /// [`Deadlines::request`]: crate::Deadlines::request
    pub fn await_request(&mut self) {
        self.actions.progress = Some(Progress::AwaitsRequest);
    }

    /// The peer of an accepted link was sent the answer to what it has asked for, and has to say what it wants next:
    /// [`Deadlines::request`] begins when it takes nothing more of the answer. Of use where nothing is sent but answers
    /// to requests that are whole; elsewhere a peer that wants nothing could have this deadline begin again and again.
    ///
    /// [`Deadlines::request`]: crate::Deadlines::request
    pub fn answered(&mut self) {
        self.actions.progress = Some(Progress::Answered);
    }

    /// From now on, the peer of an accepted link may be silent for this long at least, if it is [established], whatever
    /// [`Deadlines::idle`] says: it was promised that. What waits for it, it must still take as others do.
    ///
    /// [established]: Self::established
    /// [`Deadlines::idle`]: crate::Deadlines::idle
    pub fn allow_silence(&mut self, span: Duration) {
        self.actions.silence = Some(span);
    }

    /// From now on, do not read while more than `bytes` wait to be sent ([`UNSENT_LIMIT`](crate::UNSENT_LIMIT)
    /// at first). For sessions that send more than that of their own accord, and must hear their peer meanwhile.
    pub fn limit_unsent(&mut self, bytes: usize) {
        self.actions.unsent_limit = Some(bytes);
    }

    /// From now on, read at most `bytes` at a time.
    pub fn limit_reads(&mut self, bytes: usize) {
        self.actions.read_limit = Some(bytes.max(1));
    }

    /// Wakes another session of this shard.
    pub fn wake(&mut self, id: SessionId) {
        self.wake.push(id);
    }

    /// Wakes other sessions of this shard.
    pub fn wake_all(&mut self, ids: impl IntoIterator<Item = SessionId>) {
        self.wake.extend(ids);
    }

    /// Ends this session after this call. What still waits to be sent is tried once and dropped.
    pub fn close(&mut self) {
        self.actions.close = true;
    }

    /// Ends this session after this call with a reset: the peer's link fails, and what it was not
    /// sent yet is lost.
    pub fn reset(&mut self) {
        self.actions.reset = true;
        self.actions.close = true;
    }

    /// Lets go of this link after this call and connects to another peer by TCP or TLS, from the same local address:
    /// [`Event::Connected`] follows, or [`Event::Closed`]. Reads at every event until changed. Of no
    /// effect while [`Event::Closed`] is handled. A link of datagrams stays as it is.
    pub fn reopen(&mut self, endpoint: Endpoint) {
        self.actions.reopen = Some(Box::new(endpoint));
    }

    /// Lets go of this link after this call and lives on without one, with its timer, until it asks for another by
    /// [`Self::reopen`]. While [`Event::Closed`] is handled too: the session then outlives its link.
    pub fn stand_by(&mut self) {
        self.actions.stand_by = true;
    }

    /// Lets go of this link after this call; the session goes on with its datagrams and the link beside this one, and
    /// ends if it has neither.
    pub fn hang_up(&mut self) {
        self.actions.hang_up = true;
    }

    /// Opens a link of datagrams (UDP) beside this one, from the same local address. It receives from any sender.
    /// The address is where this session can be reached. [`Event::Datagrams`] follows.
    ///
    /// # Errors
    /// No descriptor or port was left.
    pub fn open_datagrams(&mut self) -> Result<SocketAddr, OpenError> {
        self.link.open_datagrams()
    }

    /// Opens a link of datagrams as [`Self::open_datagrams`] does, at this many pairs of ports: the first of each is even, the second
    /// the next one, as RTP and RTCP want them (RFC 3550 section 11). The first port of each pair; [`Event::Datagrams`] brings what
    /// comes to any of them.
    ///
    /// # Errors
    /// No descriptor or pair of ports was left.
    pub fn open_datagram_pairs(&mut self, pairs: usize) -> Result<Vec<u16>, OpenError> {
        self.link.open_datagram_pairs(pairs)
    }

    /// Sends one datagram. Whether the kernel took it; what it does not take is gone.
    pub fn send_datagram(&mut self, to: SocketAddr, bytes: &[u8]) -> bool {
        self.link.send_datagrams(to, bytes, bytes.len()) == 1
    }

    /// Sends several datagrams of `length` bytes each, the last of what is left, in one system call where the kernel
    /// can. How many it took: the first ones; the others are gone.
    pub fn send_datagrams(&mut self, to: SocketAddr, bytes: &[u8], length: usize) -> usize {
        self.link.send_datagrams(to, bytes, length)
    }

    /// Receives datagrams of this peer only from now on, which spares the session those of other hosts.
    pub fn connect_datagrams(&mut self, to: SocketAddr) {
        self.link.connect_datagrams(to);
    }

    /// Of a link that is [shared](crate::Transport::SharedUdp): what is for this recipient comes to this session from now on, in the place of what
    /// came to it before. `false`: another session has it. Of any other link all comes to the session anyway.
    pub fn claim_datagrams(&mut self, recipient: u32) -> bool {
        self.link.claim_datagrams(recipient)
    }

    /// From now on, datagrams may wait for up to 60 ms to be read together, which is cheaper than to wake up for each:
    /// [`Incoming::arrived`] is as exact as before. Deadlines wait likewise, and before [`Event::Timer`] comes, what came
    /// before it is read. A stream is still read at every event for a second after
    /// what came might have filled the socket.
    ///
    /// [`Incoming::arrived`]: crate::Incoming::arrived
    pub fn let_datagrams_wait(&mut self, wait: bool) {
        self.actions.datagrams_wait = Some(wait);
    }

    /// Datagrams that came and were dropped, or did not leave, because this session's socket was full. Each of a shared socket is
    /// said to one session only, the first that asks. Costs a system call.
    pub fn dropped_datagrams(&self) -> u64 {
        self.link.dropped_datagrams()
    }

    /// Begins to connect another link beside this one (TCP, or TLS over TCP), from the same local address, in the place
    /// of any other beside it. [`Event::Side`] follows. It lives on when this link ends, and ends with the session.
    ///
    /// # Errors
    /// No descriptor or port was left.
    pub fn open_side(&mut self, endpoint: &Endpoint) -> Result<(), OpenError> {
        self.link.open_side(endpoint)
    }

    /// Sends all of `bytes` on the link beside this one, keeping what it does not take now, and what is sent before it
    /// is established.
    pub fn send_side(&mut self, bytes: &[u8]) {
        self.link.send_side(bytes);
    }

    /// The protocol that both ends of this link have settled on, if it is one of TLS, is established, and they did (ALPN, RFC 7301).
    pub fn alpn(&self) -> Option<&[u8]> {
        self.link.alpn()
    }

    /// The same of the link beside this one.
    pub fn alpn_side(&self) -> Option<&[u8]> {
        self.link.alpn_side()
    }

    /// Lets go of the link beside this one: it brings no more events.
    pub fn close_side(&mut self) {
        self.link.close_side();
    }

    /// The world and the link apart, to send shared buffers that the world holds.
    pub fn split(&mut self) -> (&mut W, Outgoing<'_>) {
        (self.world, Outgoing(self.link))
    }
}

/// The sending end of a session's link.
pub struct Outgoing<'a>(&'a mut dyn Transmit);

impl Outgoing<'_> {
    /// See [`Context::write`].
    pub fn write(&mut self, slices: &[IoSlice<'_>]) -> usize {
        self.0.write(slices)
    }

    /// See [`Context::send_datagrams`].
    pub fn send_datagrams(&mut self, to: SocketAddr, bytes: &[u8], length: usize) -> usize {
        self.0.send_datagrams(to, bytes, length)
    }

    /// Sends them from one of several ports ([`Context::open_datagram_pairs`]): 0 is the first of the first pair, 1 the second of
    /// it, 2 the first of the next pair.
    pub fn send_datagrams_from(&mut self, port: usize, to: SocketAddr, bytes: &[u8], length: usize) -> usize {
        self.0.send_datagrams_from(port, to, bytes, length)
    }

    /// Bytes of datagrams that the kernel has taken and not sent yet, with what it needs beside them: a way out that is slower than
    /// what it is given holds seconds of it. Costs a system call.
    pub fn unsent_datagrams(&self) -> u64 {
        self.0.unsent_datagrams()
    }

    /// Bytes of datagrams that a shared link was given by all its sessions, as [`Self::unsent_datagrams`] is of all of them; `None` of a link of
    /// the session's own.
    pub fn given_datagrams(&self) -> Option<u64> {
        self.0.given_datagrams()
    }

    /// See [`Context::send_side`].
    pub fn send_side(&mut self, bytes: &[u8]) {
        self.0.send_side(bytes);
    }

    /// Bytes that [`Self::send_side`] took and the link has not.
    pub fn unsent_side(&self) -> usize {
        self.0.unsent_side()
    }
}
