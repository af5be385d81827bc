//! `weir relay`: a bad link over UDP between any senders and one peer, until Ctrl-C.

mod account;

use crate::args;
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use crate::print::{note, written};
use account::{Account, DirectionCounts, LeftInSocket};
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::atomic::{self, AtomicBool};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use weir_emulator::{EmulatedLink, Impairment, Passage};
use weir_metrics::Moment;
use weir_runner::{ErrorKind, RunError};

/// The largest datagram.
const LONGEST: usize = 65_536;
/// Bytes on their way at the most: two seconds at 250 Mbit/s.
const MOST_BYTES: usize = 64 << 20;
/// What a datagram takes beside its bytes: without it, empty ones would fill any memory.
const OVERHEAD: usize = 128;
/// Clients at once at the most: each has a socket and a thread.
const MOST_CLIENTS: usize = 512;
/// A client is forgotten when nothing has gone either way for this long: the mapping of a NAT lasts as long at the least
/// (RFC 4787 section 4.3 asks for two minutes; those of home routers keep to one).
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// What the kernel may keep of what was not read yet: a burst of 100 Mbit/s for a third of a second.
const RECEIVE_BUFFER: usize = 4 << 20;
/// How often a thread that waits for datagrams looks whether it is to end.
const LOOK_UP: Duration = Duration::from_millis(100);

/// Which way a datagram goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    ToPeer,
    ToClients,
}

/// A datagram on its way. The earliest arrival comes first, then what came first.
struct Datagram {
    arrives: Moment,
    serial: u64,
    came: Moment,
    direction: Direction,
    client: SocketAddr,
    /// The socket by which the peer knows the client.
    socket: Arc<UdpSocket>,
    bytes: Vec<u8>,
}

impl Datagram {
    fn order(&self) -> (Moment, u64) {
        (self.arrives, self.serial)
    }

    fn held_bytes(&self) -> usize {
        self.bytes.len() + OVERHEAD
    }
}

impl PartialEq for Datagram {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Datagram {}

impl PartialOrd for Datagram {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Datagram {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// A client, and when something went either way.
struct Client {
    socket: Arc<UdpSocket>,
    active: Moment,
}

struct State {
    links: [EmulatedLink; 2],
    carried: [DirectionCounts; 2],
    on_its_way: BinaryHeap<Reverse<Datagram>>,
    bytes: usize,
    serial: u64,
    clients: HashMap<SocketAddr, Client>,
    taken_clients: u64,
    refused_clients: u64,
    failed_clients: u64,
    /// Threads that read what the peer sends to a client.
    readers: Vec<JoinHandle<()>>,
}

/// What the threads share.
struct Relay {
    front: UdpSocket,
    peer: SocketAddr,
    began: Instant,
    state: Mutex<State>,
    news: Condvar,
    over: AtomicBool,
}

/// Relays datagrams; prints where it listens, then what it carried.
pub(crate) fn relay(args: &args::Relay) -> Result<Exit, RunError> {
    let interrupt = interrupt_flag()?;
    let relay = Relay::open(args).map_err(|words| RunError::new(ErrorKind::Usage, words))?;
    let mut out = io::stdout();
    let listening = relay.front.local_addr().map_err(RunError::with(ErrorKind::Internal))?;
    // With --json, stdout is one document.
    let line = format!("listening on udp://{listening}, sending to udp://{}", relay.peer);
    if args.json {
        note(&line);
    } else {
        written(writeln!(out, "{line}").and_then(|()| out.flush()))?;
    }
    let relay = Arc::new(relay);
    let mut threads = Vec::new();
    for (name, work) in
        [("relay-clients", Relay::read_clients as fn(&Arc<Relay>)), ("relay-send", Relay::send)]
    {
        let shared = Arc::clone(&relay);
        let thread = Builder::new().name(name.into()).spawn(move || work(&shared));
        threads.push(thread.map_err(RunError::with(ErrorKind::Internal))?);
    }
    let ended = || args.duration.as_ref().is_some_and(|span| relay.began.elapsed() >= span.get());
    while !interrupt.load(atomic::Ordering::Relaxed) && !ended() {
        std::thread::sleep(Duration::from_millis(20));
    }
    relay.over.store(true, atomic::Ordering::Relaxed);
    relay.news.notify_all();
    for thread in threads {
        joined(thread)?;
    }
    // No other begins once the thread that reads clients has ended.
    let readers = std::mem::take(&mut relay.state().readers);
    for thread in readers {
        joined(thread)?;
    }
    let account = relay.account();
    let text = if args.json {
        serde_json::to_string_pretty(&account).map_err(RunError::with(ErrorKind::Internal))? + "\n"
    } else {
        account.text()
    };
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))?;
    Ok(Exit::Passed)
}

fn joined(thread: JoinHandle<()>) -> Result<(), RunError> {
    thread.join().map_err(|_| RunError::new(ErrorKind::Internal, "a thread of the relay panicked"))
}

impl Relay {
    fn open(args: &args::Relay) -> Result<Self, String> {
        let found = args.to.to_socket_addrs().map_err(|error| format!("--to {}: {error}", args.to))?;
        let is_ipv4 = args.listen.is_ipv4();
        let peer = found.min_by_key(|address| address.is_ipv4() != is_ipv4);
        let peer = peer.ok_or_else(|| format!("--to {}: there is no address of this name", args.to))?;
        let front =
            UdpSocket::bind(args.listen).map_err(|error| format!("--listen {}: {error}", args.listen))?;
        prepare(&front).map_err(|error| format!("--listen {}: {error}", args.listen))?;
        let impairment = Impairment {
            loss: args.loss,
            burst: args.burst,
            overtaken: args.reorder,
            delay: args.delay.get(),
            jitter: args.jitter.get(),
            rate: args.rate.as_ref().map(|rate| rate.get().bps()),
            queue: args.queue.get(),
        };
        let state = State {
            links: [0, 1]
                .map(|way| EmulatedLink::new(impairment, args.seed.wrapping_mul(2).wrapping_add(way))),
            carried: [DirectionCounts::default(); 2],
            on_its_way: BinaryHeap::new(),
            bytes: 0,
            serial: 0,
            clients: HashMap::new(),
            taken_clients: 0,
            refused_clients: 0,
            failed_clients: 0,
            readers: Vec::new(),
        };
        let (began, state) = (Instant::now(), Mutex::new(state));
        Ok(Self { front, peer, began, state, news: Condvar::new(), over: AtomicBool::new(false) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Moment {
        Moment::from_nanos(1) + self.began.elapsed()
    }

    fn is_over(&self) -> bool {
        self.over.load(atomic::Ordering::Relaxed)
    }

    /// Reads what clients send.
    fn read_clients(self: &Arc<Self>) {
        let mut buffer = vec![0; LONGEST];
        while !self.is_over() {
            let Ok((length, client)) = self.front.recv_from(&mut buffer) else { continue };
            let mut state = self.state();
            if !state.clients.contains_key(&client) {
                self.add_client(&mut state, client);
            }
            self.take(&mut state, Direction::ToPeer, client, &buffer[..length]);
        }
        let left = LeftInSocket::of(&self.front);
        self.state().carried[Direction::ToPeer as usize].leave(&left);
    }

    /// A new client is given a socket of its own, by which the peer knows it, and a thread for what comes back.
    fn add_client(self: &Arc<Self>, state: &mut State, client: SocketAddr) {
        if state.clients.len() >= MOST_CLIENTS {
            state.refused_clients += 1;
            return;
        }
        // Without a socket or a thread nothing would come back to it: it is tried again with its next datagram.
        state.failed_clients += 1;
        let Ok(socket) = self.socket().map(Arc::new) else { return };
        let (relay, of_thread) = (Arc::clone(self), Arc::clone(&socket));
        let reader = Builder::new().name("relay-client".into());
        let Ok(reader) = reader.spawn(move || relay.read_peer(&of_thread, client)) else { return };
        state.readers.retain(|reader| !reader.is_finished());
        state.readers.push(reader);
        state.clients.insert(client, Client { socket, active: self.now() });
        (state.taken_clients, state.failed_clients) = (state.taken_clients + 1, state.failed_clients - 1);
    }

    fn socket(&self) -> io::Result<UdpSocket> {
        let any: SocketAddr = match self.peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(self.peer)?;
        prepare(&socket)?;
        Ok(socket)
    }

    /// Reads what the peer sends to one client, until the client is forgotten.
    fn read_peer(&self, socket: &UdpSocket, client: SocketAddr) {
        let mut buffer = vec![0; LONGEST];
        while !self.is_over() {
            // An error is what an earlier datagram met, or that nothing came.
            if let Ok(length) = socket.recv(&mut buffer) {
                self.take(&mut self.state(), Direction::ToClients, client, &buffer[..length]);
            }
            let mut state = self.state();
            let active = state.clients.get(&client).map(|client| client.active);
            if active.is_none_or(|active| self.now().since(active) >= FORGOTTEN_AFTER) {
                state.clients.remove(&client);
                break;
            }
        }
        let left = LeftInSocket::of(socket);
        self.state().carried[Direction::ToClients as usize].leave(&left);
    }

    /// A datagram came: it is lost, or put on its way.
    fn take(&self, state: &mut State, direction: Direction, client: SocketAddr, bytes: &[u8]) {
        let now = self.now();
        let Some(known) = state.clients.get_mut(&client) else { return };
        known.active = now;
        let (link, carried) = (&mut state.links[direction as usize], &mut state.carried[direction as usize]);
        let has_room = state.bytes + bytes.len() + OVERHEAD <= MOST_BYTES;
        match link.carry(bytes.len(), now) {
            Passage::Lost => carried.dropped += 1,
            Passage::Overflowed => carried.overflowed += 1,
            Passage::Arrives(_) if !has_room => carried.overflowed += 1,
            Passage::Arrives(arrives) => {
                state.serial += 1;
                let socket = Arc::clone(&known.socket);
                let (serial, bytes) = (state.serial, bytes.to_vec());
                let datagram = Datagram { arrives, serial, came: now, direction, client, socket, bytes };
                state.bytes += datagram.held_bytes();
                state.on_its_way.push(Reverse(datagram));
                self.news.notify_one();
            }
        }
    }

    /// Sends what arrives, in the order of arrival.
    fn send(self: &Arc<Self>) {
        let mut state = self.state();
        while !self.is_over() {
            let now = self.now();
            let next = state.on_its_way.peek().map(|Reverse(datagram)| datagram.arrives);
            if next.is_none_or(|at| at > now) {
                let wait = next.map_or(LOOK_UP, |at| at.since(now).min(LOOK_UP));
                let waited = self.news.wait_timeout(state, wait);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
                continue;
            }
            let Some(Reverse(datagram)) = state.on_its_way.pop() else { continue };
            state.bytes -= datagram.held_bytes();
            drop(state);
            let sent = self.send_one(&datagram);
            let took = self.now().since(datagram.came);
            state = self.state();
            let carried = &mut state.carried[datagram.direction as usize];
            match sent {
                Ok(_) => carried.forward(datagram.bytes.len(), took, datagram.arrives.since(datagram.came)),
                Err(_) => carried.lost_here += 1,
            }
        }
    }

    fn send_one(&self, datagram: &Datagram) -> io::Result<usize> {
        let Datagram { direction, client, socket, bytes, .. } = datagram;
        let send = || match direction {
            Direction::ToPeer => socket.send(bytes),
            Direction::ToClients => self.front.send_to(bytes, client),
        };
        // A connected socket reports here what an earlier datagram met, and has sent nothing (RFC 1122 section 4.1.3.3).
        send().or_else(
            |error| if error.kind() == io::ErrorKind::ConnectionRefused { send() } else { Err(error) },
        )
    }

    fn account(&self) -> Account {
        let mut state = self.state();
        let state = &mut *state;
        for Reverse(datagram) in &state.on_its_way {
            state.carried[datagram.direction as usize].on_its_way += 1;
        }
        let [to_peer, to_clients] = state.carried.map(DirectionCounts::finished);
        let State { taken_clients: clients, refused_clients, failed_clients, .. } = *state;
        Account { clients, refused_clients, failed_clients, to_peer, to_clients }
    }
}

/// Gives a socket room for bursts, and has it return when nothing comes.
fn prepare(socket: &UdpSocket) -> io::Result<()> {
    // A kernel that gives less is no error: what is lost here is counted.
    let _ = rustix::net::sockopt::set_socket_recv_buffer_size(socket, RECEIVE_BUFFER);
    socket.set_read_timeout(Some(LOOK_UP))
}
