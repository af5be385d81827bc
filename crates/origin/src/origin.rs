//! The origin as its owner sees it: started, asked, stopped.

use crate::burn::{ClientCost, burn};
use crate::config::{Listen, OriginConfig};
use crate::counts::Counts;
use crate::error::OriginError;
use crate::fault::{Action, Effect};
use crate::forward::{ForwardTrouble, Route};
use crate::hls::Shelves;
use crate::origin_thread::{Listener, OriginThread, StartThread};
use crate::registry::Registry;
use crate::rtmp::begin_forwarding;
use crate::server::{self, Accept, Server, Sessions};
use crate::stream::Terms;
use crate::tuner::{self, Catalogue};
use crate::worker::{Message, OriginSettings, Post, Report, Worker};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_metrics::Moment;
use weir_shard::tls::server_config_offering;
use weir_shard::{MessageSender, Shard, clock};

/// The longest that a worker sleeps when nothing happens.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// The same when viewers cost CPU time, so that it is used evenly and not in one piece when something happens.
const LONGEST_SLEEP_OF_A_COST: Duration = Duration::from_millis(20);

/// A running origin. Dropping it stops it.
#[derive(Debug)]
pub struct Origin {
    settings: Arc<OriginSettings>,
    /// Where it listens, by the names of servers.
    addresses: Vec<(&'static str, SocketAddr)>,
    /// The ways to its workers and to threads of protocols' own.
    asked: Vec<Box<dyn OriginThread>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Ports that are taken and not listened on, because of a fault.
    _refusing: Vec<socket2::Socket>,
}

/// One place to listen, with a listener for each worker.
struct Listening {
    server: &'static Server,
    address: SocketAddr,
    listeners: Vec<TcpListener>,
    tls: Option<Arc<rustls::ServerConfig>>,
}

impl Origin {
    /// Takes the ports and starts the workers, in threads named `weir-origin-0` and so on.
    ///
    /// # Errors
    /// A port or certificate that cannot be used, an invalid URL to forward to, or a system
    /// that refuses a thread.
    pub fn start(config: &OriginConfig) -> Result<Self, OriginError> {
        let workers = config.workers.max(1);
        let routes = config.forward.iter().map(|url| Route::parse(url)).collect::<Result<_, _>>()?;
        let refuse = config.faults.iter().any(|fault| fault.action == Action::Refuse);
        let mut refusing = Vec::new();
        let mut addresses = Vec::new();
        let mut places = Vec::new();
        for Listen { server, address, identity } in &config.listen {
            let tls = identity
                .as_ref()
                .map(|it| server_config_offering(&it.chain, &it.key, server.alpn))
                .transpose()?;
            let name = if tls.is_some() { server.secure_name.unwrap_or(server.name) } else { server.name };
            let bound = if refuse {
                let socket = take(*address).map_err(|error| listen_error(*address, error))?;
                let bound = local_address(&socket, *address)?;
                refusing.push(socket);
                bound
            } else {
                // A thread of its own is one, and a port of datagrams has one worker.
                let threads = if matches!(server.sessions, Sessions::OnWorkers(_)) { workers } else { 1 };
                let place = Listening::open(server, *address, threads, tls)?;
                let bound = place.address;
                places.push(place);
                bound
            };
            addresses.push((name, bound));
        }
        let serves_http = config.listen.iter().any(|it| it.server.name == server::HTTP.name);
        let serves_hls = config.listen.iter().any(|it| it.server.name == server::HLS.name);
        let settings = Arc::new(OriginSettings {
            terms: Terms { history: config.history, merge: config.merge },
            tuners: serves_http.then(|| Catalogue::prepare(&config.tuners)).transpose()?,
            hls: serves_hls.then(|| Shelves::new(config.hls.clone())),
            missing_stream: config.missing_stream,
            departure: config.departure,
            patience: config.patience,
            faults: config.faults.clone(),
            present: AtomicU64::new(0),
            routes,
            turn: config.turn.clone(),
            srt_passphrase: config.srt_passphrase.clone(),
            registry: Registry::default(),
            leaked: Mutex::default(),
            departed_kept: config.departed_kept,
            troubles: Mutex::default(),
        });
        let mut origin = Self {
            settings: settings.clone(),
            addresses,
            asked: Vec::new(),
            stop: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
            _refusing: refusing,
        };
        for (StartThread(start), listeners) in own_threads(&mut places) {
            let (way, thread) = start(settings.clone(), listeners).map_err(OriginError::Thread)?;
            origin.asked.push(way);
            origin.threads.push(thread);
        }
        origin.start_workers(workers, places, &settings)?;
        for fault in &config.faults {
            if let Action::Burn { share, thread } = &fault.action {
                let burning = burn(thread, *share, origin.stop.clone()).map_err(OriginError::Thread)?;
                origin.threads.push(burning);
            }
        }
        Ok(origin)
    }

    fn start_workers(
        &mut self,
        workers: usize,
        mut places: Vec<Listening>,
        settings: &Arc<OriginSettings>,
    ) -> Result<(), OriginError> {
        let (ready, message_senders) = channel();
        for number in 0..workers {
            let listeners = places.iter_mut().filter_map(|place| {
                let listener = place.listeners.pop()?;
                let (Sessions::OnWorkers(accept) | Sessions::OnOneWorker(accept)) = place.server.sessions
                else {
                    return None;
                };
                Some((accept, listener, place.tls.clone()))
            });
            let (listeners, settings, ready) = (listeners.collect(), settings.clone(), ready.clone());
            let thread = std::thread::Builder::new()
                .name(format!("weir-origin-{number}"))
                .spawn(move || work(number, settings, listeners, &ready))
                .map_err(OriginError::Thread)?;
            self.threads.push(thread);
        }
        drop(ready);
        let mut ready: Vec<(usize, MessageSender<Post>)> =
            message_senders.iter().take(workers).collect::<io::Result<_>>().map_err(OriginError::Thread)?;
        ready.sort_by_key(|(number, _)| *number);
        for (number, message_sender) in &ready {
            let others = ready.iter().filter(|(other, _)| other != number);
            message_sender.post(Post(Message::Peers(
                others.map(|(_, message_sender)| message_sender.clone()).collect(),
            )));
        }
        for (_, message_sender) in ready {
            self.asked.push(Box::new(message_sender));
        }
        Ok(())
    }

    /// Where it listens for a service, by its name or its name by TLS, with the port that the system chose.
    pub fn address(&self, name: &str) -> Option<SocketAddr> {
        self.addresses.iter().find(|(listening, _)| *listening == name).map(|(_, address)| *address)
    }

    /// What it has sent and received up to now.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for report in self.reports() {
            counts.merge(report.counts);
        }
        counts
    }

    /// What faults did up to now, in the order of time.
    pub fn effects(&self) -> Vec<Effect> {
        let mut effects: Vec<_> = self.reports().flat_map(|report| report.effects).collect();
        effects.sort_by_key(|effect| effect.at);
        effects
    }

    /// Servers that streams could not be forwarded to, each once a series of tries; what was handed out is not again.
    pub fn forward_troubles(&self) -> Vec<ForwardTrouble> {
        std::mem::take(&mut self.settings.troubles.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What the threads of a protocol tell of its own.
    pub(crate) fn of_protocol<T: 'static>(&self) -> impl Iterator<Item = T> {
        let states = self.reports().flat_map(|report| report.states);
        states.filter_map(|state| state.downcast().ok().map(|state| *state))
    }

    fn reports(&self) -> impl Iterator<Item = Report> {
        let (reply, reports): (_, Receiver<Report>) = channel();
        self.asked.iter().for_each(|thread| thread.request_report(reply.clone()));
        reports.into_iter()
    }

    /// Ends all connections and threads. Returns when they have ended.
    pub fn stop(self) {
        drop(self);
    }
}

impl OriginThread for MessageSender<Post> {
    fn request_report(&self, reply: Sender<Report>) {
        self.post(Post(Message::Report(reply)));
    }

    fn stop(&self) {
        self.post(Post(Message::Stop));
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.asked.iter().for_each(|thread| thread.stop());
        for thread in self.threads.drain(..) {
            // A worker that panicked has said so itself.
            let _ = thread.join();
        }
    }
}

type Ready = io::Result<(usize, MessageSender<Post>)>;
type Listeners = Vec<(Accept, TcpListener, Option<Arc<rustls::ServerConfig>>)>;

/// The life of a worker's thread.
fn work(number: usize, settings: Arc<OriginSettings>, listeners: Listeners, ready: &Sender<Ready>) {
    let deadlines = settings.patience.deadlines();
    let mut cost = ClientCost::of(&settings.faults, clock::now(), clock::thread_cpu());
    let opened = Shard::new(Worker::new(settings)).and_then(|mut shard| {
        shard.set_deadlines(deadlines);
        for (accept, listener, tls) in listeners {
            accept(&mut shard, listener, tls)?;
        }
        Ok(shard)
    });
    let mut shard = match opened {
        Ok(shard) => shard,
        Err(error) => {
            let _ = ready.send(Err(error));
            return;
        }
    };
    let _ = ready.send(Ok((number, shard.message_sender())));
    while !shard.world.stopping {
        let now = clock::now();
        let next = [begin_forwarding(&mut shard, now), tuner::play_due(&mut shard, now)];
        let longest = if cost.is_some() { LONGEST_SLEEP_OF_A_COST } else { LONGEST_SLEEP };
        let until = next.into_iter().flatten().fold(now + longest, Moment::min);
        if shard.turn(until).is_err() {
            return;
        }
        if let Some(cost) = &mut cost {
            cost.use_up(shard.world.clients());
        }
    }
}

impl Listening {
    fn open(
        server: &'static Server,
        address: SocketAddr,
        workers: usize,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> Result<Self, OriginError> {
        let refused = |error| listen_error(address, error);
        let listeners = weir_shard::listeners(address, workers).map_err(refused)?;
        let address = listeners.first().map_or(Ok(address), TcpListener::local_addr).map_err(refused)?;
        Ok(Self { server, address, listeners, tls })
    }
}

/// The threads of protocols' own that have to be started, each with all its listeners: of TLS as well.
fn own_threads(places: &mut [Listening]) -> Vec<(StartThread, Vec<Listener>)> {
    let mut threads: Vec<(&'static str, StartThread, Vec<Listener>)> = Vec::new();
    for place in places {
        let Sessions::OnOwnThread(start) = place.server.sessions else { continue };
        let listeners = std::mem::take(&mut place.listeners).into_iter().map(|it| (it, place.tls.clone()));
        match threads.iter_mut().find(|(name, ..)| *name == place.server.name) {
            Some((.., all)) => all.extend(listeners),
            None => threads.push((place.server.name, start, listeners.collect())),
        }
    }
    threads.into_iter().map(|(_, start, listeners)| (start, listeners)).collect()
}

/// Takes a port without listening, so that the system refuses connections.
fn take(address: SocketAddr) -> io::Result<socket2::Socket> {
    let socket = socket2::Socket::new(
        socket2::Domain::for_address(address),
        socket2::Type::STREAM.cloexec(),
        Some(socket2::Protocol::TCP),
    )?;
    socket.bind(&address.into())?;
    Ok(socket)
}

fn local_address(socket: &socket2::Socket, asked: SocketAddr) -> Result<SocketAddr, OriginError> {
    let address = socket.local_addr().map_err(|error| listen_error(asked, error))?;
    Ok(address.as_socket().unwrap_or(asked))
}

fn listen_error(address: SocketAddr, source: io::Error) -> OriginError {
    match source.kind() {
        io::ErrorKind::AddrInUse => OriginError::InUse { address },
        io::ErrorKind::PermissionDenied => OriginError::Forbidden { address },
        _ => OriginError::Listen { address, source },
    }
}
