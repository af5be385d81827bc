//! `weir relay`: a bad link over UDP between whoever sends to it and one peer, until Ctrl-C.

use crate::args;
use crate::exit::Exit;
use crate::interrupt::interrupt_flag;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_emulator::{EmulatedLink, Impairment, Passage};
use weir_metrics::Moment;
use weir_runner::{ErrorKind, RunError};

/// The largest datagram.
const LONGEST: usize = 65_536;
/// Bytes on their way at the most: two seconds at 250 Mbit/s.
const MOST_BYTES: usize = 64 << 20;
/// Clients at the most: each has a socket and a thread.
const MOST_CLIENTS: usize = 512;
/// How often a thread that waits for datagrams looks whether it is to end.
const LOOK_UP: Duration = Duration::from_millis(100);

/// What one direction of the relay did.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Carried {
    /// Datagrams that were sent on, and their bytes.
    forwarded: u64,
    forwarded_bytes: u64,
    /// Datagrams that --loss took.
    dropped: u64,
    /// Datagrams that found no room before --rate, or in memory.
    overflowed: u64,
    /// Datagrams that were sent on later than they came.
    delayed: u64,
    /// How long those that were sent on took, in seconds.
    mean_delay: f64,
    max_delay: f64,
    #[serde(skip)]
    delays: Duration,
}

/// What it carried: from clients to the peer, and back.
#[derive(Debug, Serialize)]
struct Account {
    clients: usize,
    refused_clients: u64,
    to_peer: Carried,
    to_clients: Carried,
}

/// Which way a datagram goes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    ToPeer,
    ToClients,
}

/// A datagram on its way: when it arrives, its number, which way it goes and for which client it is.
type OnItsWay = (Moment, u64, Direction, SocketAddr, Vec<u8>);

struct State {
    links: [EmulatedLink; 2],
    carried: [Carried; 2],
    on_its_way: BinaryHeap<Reverse<(OnItsWay, Moment)>>,
    bytes: usize,
    serial: u64,
    clients: HashMap<SocketAddr, Arc<UdpSocket>>,
    refused_clients: u64,
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
    let _ = if args.json { writeln!(io::stderr(), "{line}") } else { writeln!(out, "{line}") };
    let _ = out.flush();
    let relay = Arc::new(relay);
    let threads = [Relay::read_clients as fn(&Arc<Relay>), Relay::send].map(|work| {
        let relay = Arc::clone(&relay);
        std::thread::spawn(move || work(&relay))
    });
    let ended = || args.duration.as_ref().is_some_and(|span| relay.began.elapsed() >= span.get());
    while !interrupt.load(Ordering::Relaxed) && !ended() {
        std::thread::sleep(Duration::from_millis(20));
    }
    relay.over.store(true, Ordering::Relaxed);
    relay.news.notify_all();
    for thread in threads {
        thread.join().map_err(|_| RunError::new(ErrorKind::Internal, "a thread of the relay panicked"))?;
    }
    let account = relay.account();
    let _ = if args.json {
        let text = serde_json::to_string_pretty(&account).map_err(RunError::with(ErrorKind::Internal))?;
        writeln!(out, "{text}")
    } else {
        write!(out, "{}", account.text())
    };
    Ok(Exit::Passed)
}

impl Relay {
    fn open(args: &args::Relay) -> Result<Self, String> {
        let found = args.to.to_socket_addrs().map_err(|error| format!("--to {}: {error}", args.to))?;
        let is_ipv4 = args.listen.is_ipv4();
        let peer = found.min_by_key(|address| address.is_ipv4() != is_ipv4);
        let peer = peer.ok_or_else(|| format!("--to {}: there is no address of this name", args.to))?;
        let front =
            UdpSocket::bind(args.listen).map_err(|error| format!("--listen {}: {error}", args.listen))?;
        front.set_read_timeout(Some(LOOK_UP)).map_err(|error| error.to_string())?;
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
            carried: [Carried::default(); 2],
            on_its_way: BinaryHeap::new(),
            bytes: 0,
            serial: 0,
            clients: HashMap::new(),
            refused_clients: 0,
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
        self.over.load(Ordering::Relaxed)
    }

    /// Reads what clients send. A new one is given a socket of its own, by which the peer knows it, and a thread for what comes back.
    fn read_clients(self: &Arc<Self>) {
        let mut buffer = vec![0; LONGEST];
        while !self.is_over() {
            let Ok((length, client)) = self.front.recv_from(&mut buffer) else { continue };
            let mut state = self.state();
            if !state.clients.contains_key(&client) {
                let opened = if state.clients.len() < MOST_CLIENTS { self.socket().ok() } else { None };
                let Some(socket) = opened else {
                    state.refused_clients += 1;
                    continue;
                };
                let socket = Arc::new(socket);
                state.clients.insert(client, Arc::clone(&socket));
                let relay = Arc::clone(self);
                std::thread::spawn(move || relay.read_peer(&socket, client));
            }
            self.take(&mut state, Direction::ToPeer, client, &buffer[..length]);
        }
    }

    fn socket(&self) -> io::Result<UdpSocket> {
        let any: SocketAddr = match self.peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(self.peer)?;
        socket.set_read_timeout(Some(LOOK_UP))?;
        Ok(socket)
    }

    /// Reads what the peer sends to one client.
    fn read_peer(&self, socket: &UdpSocket, client: SocketAddr) {
        let mut buffer = vec![0; LONGEST];
        while !self.is_over() {
            // An error is what an earlier datagram met, or that nothing came.
            match socket.recv(&mut buffer) {
                Ok(length) => {
                    self.take(&mut self.state(), Direction::ToClients, client, &buffer[..length]);
                }
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::thread::sleep(LOOK_UP),
                Err(_) => {}
            }
        }
    }

    /// A datagram came: it is lost, or put on its way.
    fn take(&self, state: &mut State, direction: Direction, client: SocketAddr, bytes: &[u8]) {
        let now = self.now();
        let (link, carried) = (&mut state.links[direction as usize], &mut state.carried[direction as usize]);
        match link.carry(bytes.len(), now) {
            Passage::Lost => carried.dropped += 1,
            Passage::Overflowed => carried.overflowed += 1,
            Passage::Arrives(_) if state.bytes + bytes.len() > MOST_BYTES => carried.overflowed += 1,
            Passage::Arrives(at) => {
                state.bytes += bytes.len();
                state.serial += 1;
                let datagram = (at, state.serial, direction, client, bytes.to_vec());
                state.on_its_way.push(Reverse((datagram, now)));
                self.news.notify_one();
            }
        }
    }

    /// Sends what arrives, in the order of arrival.
    fn send(self: &Arc<Self>) {
        let mut state = self.state();
        while !self.is_over() {
            let now = self.now();
            let next = state.on_its_way.peek().map(|Reverse(((at, ..), _))| *at);
            match next {
                Some(at) if at <= now => {
                    let Some(Reverse(((_, _, direction, client, bytes), came))) = state.on_its_way.pop()
                    else {
                        continue;
                    };
                    state.bytes -= bytes.len();
                    let socket = state.clients.get(&client).cloned();
                    drop(state);
                    // What the kernel does not take is lost, as on any link.
                    let sent = match (direction, socket) {
                        (Direction::ToPeer, Some(socket)) => socket.send(&bytes),
                        _ => self.front.send_to(&bytes, client),
                    };
                    let took = self.now().since(came);
                    state = self.state();
                    let carried = &mut state.carried[direction as usize];
                    carried.count(sent.is_ok(), bytes.len(), took, now.since(came));
                }
                _ => {
                    let wait = next.map_or(LOOK_UP, |at| at.since(now).min(LOOK_UP));
                    let waited = self.news.wait_timeout(state, wait);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    fn account(&self) -> Account {
        let state = self.state();
        let [to_peer, to_clients] = state.carried.map(Carried::finished);
        Account { clients: state.clients.len(), refused_clients: state.refused_clients, to_peer, to_clients }
    }
}

impl Carried {
    fn count(&mut self, is_sent: bool, bytes: usize, took: Duration, held: Duration) {
        if !is_sent {
            self.overflowed += 1;
            return;
        }
        self.forwarded += 1;
        self.forwarded_bytes += bytes as u64;
        // What takes a thread its turn is no delay of the link.
        self.delayed += u64::from(held >= Duration::from_millis(1));
        self.delays += took;
        self.max_delay = self.max_delay.max(took.as_secs_f64());
    }

    fn finished(self) -> Self {
        Self { mean_delay: self.delays.as_secs_f64() / (self.forwarded.max(1) as f64), ..self }
    }

    fn text(&self) -> String {
        let Self { forwarded, forwarded_bytes, dropped, overflowed, delayed, mean_delay, max_delay, .. } =
            self;
        format!(
            "forwarded {forwarded} datagrams ({forwarded_bytes} bytes), dropped {dropped}, overflowed {overflowed}, delayed {delayed}; delay mean {:.1} ms, max {:.1} ms",
            mean_delay * 1e3,
            max_delay * 1e3,
        )
    }
}

impl Account {
    fn text(&self) -> String {
        let refused = match self.refused_clients {
            0 => String::new(),
            count => format!("{count} datagrams of further clients were refused\n"),
        };
        let (to_peer, to_clients) = (self.to_peer.text(), self.to_clients.text());
        format!(
            "{}\nto the peer: {to_peer}\nback: {to_clients}\n{refused}",
            weir_metrics::several(self.clients as u64, "client")
        )
    }
}
