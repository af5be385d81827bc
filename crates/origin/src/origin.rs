//! The origin as its owner sees it: started, asked, stopped.

use crate::bulk::{BulkCounts, BulkSession};
use crate::burn::burn;
use crate::config::OriginConfig;
use crate::counts::Counts;
use crate::error::OriginError;
use crate::fault::{Action, Effect};
use crate::forward::{self, ForwardTrouble, Route};
use crate::http::HttpSession;
use crate::mqtt::{self, MessageCounts};
use crate::registry::Registry;
use crate::rtc::{self, Hub, Port, RtcSession};
use crate::rtmp::RtmpSession;
use crate::tuner::{self, Catalogue};
use crate::worker::{Message, Report, Settings, Terms, Worker};
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use weir_metrics::Moment;
use weir_rtc::transport::{Certificate, Clock as TransportClock};
use weir_shard::tls::server_config;
use weir_shard::{Mailbox, Shard, clock};

/// The longest that a worker sleeps when nothing happens.
const LONGEST_SLEEP: Duration = Duration::from_secs(60);

/// A running origin. Dropping it stops it.
#[derive(Debug)]
pub struct Origin {
    settings: Arc<Settings>,
    addresses: Addresses,
    mailboxes: Vec<Mailbox<Message>>,
    /// The broker's, if there is one.
    broker: Option<Mailbox<mqtt::Message>>,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    /// Ports that are taken and not listened on, because of a fault.
    _refusing: Vec<socket2::Socket>,
}

/// Where an origin listens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// For RTMP.
    pub rtmp: Option<SocketAddr>,
    /// For RTMP over TLS.
    pub rtmps: Option<SocketAddr>,
    /// For HTTP.
    pub http: Option<SocketAddr>,
    /// For HTTP over TLS.
    pub https: Option<SocketAddr>,
    /// For MQTT.
    pub mqtt: Option<SocketAddr>,
    /// For MQTT over TLS.
    pub mqtts: Option<SocketAddr>,
    /// For WebRTC's signalling.
    pub rtc: Option<SocketAddr>,
    /// For WebRTC's signalling over TLS.
    pub rtcs: Option<SocketAddr>,
    /// For bulk TCP streams.
    pub bulk: Option<SocketAddr>,
}

/// What is spoken at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Rtmp,
    Http,
    Mqtt,
    Rtc,
    Bulk,
}

/// One place to listen, with a listener for each worker.
struct Listening {
    protocol: Protocol,
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
        let mut addresses = Addresses::default();
        let mut places = Vec::new();
        for (protocol, plain, secure, bound_at) in [
            (Protocol::Rtmp, config.rtmp, None, &mut addresses.rtmp),
            (Protocol::Rtmp, None, config.rtmps.as_ref(), &mut addresses.rtmps),
            (Protocol::Http, config.http, None, &mut addresses.http),
            (Protocol::Http, None, config.https.as_ref(), &mut addresses.https),
            (Protocol::Mqtt, config.mqtt, None, &mut addresses.mqtt),
            (Protocol::Mqtt, None, config.mqtts.as_ref(), &mut addresses.mqtts),
            (Protocol::Rtc, config.rtc, None, &mut addresses.rtc),
            (Protocol::Rtc, None, config.rtcs.as_ref(), &mut addresses.rtcs),
            (Protocol::Bulk, config.bulk, None, &mut addresses.bulk),
        ] {
            let Some(address) = plain.or(secure.map(|secure| secure.address)) else { continue };
            let tls = secure.map(|secure| server_config(&secure.chain, &secure.key)).transpose()?;
            let bound = if refuse {
                let socket = take(address).map_err(|error| listen_error(address, error))?;
                let bound = local_address(&socket, address)?;
                refusing.push(socket);
                bound
            } else {
                // A broker has one thread.
                let threads = if protocol == Protocol::Mqtt { 1 } else { workers };
                let place = Listening::open(protocol, address, threads, tls)?;
                let bound = place.address;
                places.push(place);
                bound
            };
            *bound_at = Some(bound);
        }
        let serves_http = config.http.is_some() || config.https.is_some();
        let settings = Arc::new(Settings {
            terms: Terms { history: config.history, merge: config.merge },
            tuners: serves_http.then(|| Catalogue::prepare(&config.tuners)).transpose()?,
            missing_stream: config.missing_stream,
            departure: config.departure,
            patience: config.patience,
            faults: config.faults.clone(),
            routes,
            turn: config.turn.clone(),
            registry: Registry::default(),
            troubles: Mutex::default(),
        });
        let mut origin = Self {
            settings: settings.clone(),
            addresses,
            mailboxes: Vec::new(),
            broker: None,
            stop: Arc::new(AtomicBool::new(false)),
            threads: Vec::new(),
            _refusing: refusing,
        };
        let (brokers, places): (Vec<_>, _) =
            places.into_iter().partition(|place: &Listening| place.protocol == Protocol::Mqtt);
        let listeners: Vec<_> = brokers
            .into_iter()
            .flat_map(|place| place.listeners.into_iter().map(move |it| (it, place.tls.clone())))
            .collect();
        if !listeners.is_empty() {
            let (mailbox, thread) = mqtt::start(settings.clone(), listeners).map_err(OriginError::Thread)?;
            origin.broker = Some(mailbox);
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
        settings: &Arc<Settings>,
    ) -> Result<(), OriginError> {
        let (ready, mailboxes) = channel();
        for number in 0..workers {
            let listeners = places.iter_mut().filter_map(|place| {
                let listener = place.listeners.pop()?;
                Some((place.protocol, listener, place.tls.clone()))
            });
            let (listeners, settings, ready) = (listeners.collect(), settings.clone(), ready.clone());
            let thread = std::thread::Builder::new()
                .name(format!("weir-origin-{number}"))
                .spawn(move || work(number, settings, listeners, &ready))
                .map_err(OriginError::Thread)?;
            self.threads.push(thread);
        }
        drop(ready);
        let mut ready: Vec<_> =
            mailboxes.iter().take(workers).collect::<io::Result<_>>().map_err(OriginError::Thread)?;
        ready.sort_by_key(|(number, _)| *number);
        self.mailboxes = ready.into_iter().map(|(_, mailbox)| mailbox).collect();
        for (number, mailbox) in self.mailboxes.iter().enumerate() {
            let others = self.mailboxes.iter().enumerate().filter(|(other, _)| *other != number);
            mailbox.post(Message::Peers(others.map(|(_, mailbox)| mailbox.clone()).collect()));
        }
        Ok(())
    }

    /// Where it listens, with the ports that the system chose.
    pub fn addresses(&self) -> Addresses {
        self.addresses
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
        effects.extend(self.broker_report().map(|report| report.effects).unwrap_or_default());
        effects.sort_by_key(|effect| effect.at);
        effects
    }

    /// What its broker has taken and handed on up to now.
    pub fn messages(&self) -> MessageCounts {
        self.broker_report().map(|report| report.counts).unwrap_or_default()
    }

    /// What it has done by WebRTC up to now.
    pub fn rtc(&self) -> rtc::Counts {
        let mut counts = rtc::Counts::default();
        self.reports().for_each(|report| counts.add(&report.rtc));
        counts
    }

    /// What its bulk streams have carried up to now.
    pub fn bulk(&self) -> BulkCounts {
        let mut counts = BulkCounts::default();
        self.reports().for_each(|report| counts.add(&report.bulk));
        counts
    }

    /// Servers that streams could not be forwarded to, each once a series of tries; what was handed out is not again.
    pub fn forward_troubles(&self) -> Vec<ForwardTrouble> {
        std::mem::take(&mut self.settings.troubles.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Streams whose sound viewers by WebRTC are not sent, because it is not Opus and nothing is transcoded.
    pub fn mute_streams(&self) -> Vec<Arc<str>> {
        let mut names: Vec<_> = self.reports().flat_map(|report| report.mute).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn broker_report(&self) -> Option<mqtt::Report> {
        let (reply, report) = channel();
        self.broker.as_ref()?.post(mqtt::Message::Report(reply));
        report.recv().ok()
    }

    fn reports(&self) -> impl Iterator<Item = Report> {
        let (reply, reports): (_, Receiver<Report>) = channel();
        for mailbox in &self.mailboxes {
            mailbox.post(Message::Report(reply.clone()));
        }
        reports.into_iter()
    }

    /// Ends all connections and threads. Returns when they have ended.
    pub fn stop(self) {
        drop(self);
    }
}

impl Drop for Origin {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for mailbox in &self.mailboxes {
            mailbox.post(Message::Stop);
        }
        if let Some(broker) = &self.broker {
            broker.post(mqtt::Message::Stop);
        }
        for thread in self.threads.drain(..) {
            // A worker that panicked has said so itself.
            let _ = thread.join();
        }
    }
}

type Ready = io::Result<(usize, Mailbox<Message>)>;
type Listeners = Vec<(Protocol, TcpListener, Option<Arc<rustls::ServerConfig>>)>;

/// The life of a worker's thread.
fn work(number: usize, settings: Arc<Settings>, listeners: Listeners, ready: &Sender<Ready>) {
    let deadlines = settings.patience.deadlines();
    let opened = Shard::new(Worker::new(settings)).and_then(|mut shard| {
        shard.set_deadlines(deadlines);
        if let Some((_, listener, _)) = listeners.iter().find(|(protocol, ..)| *protocol == Protocol::Rtc) {
            open_port(&mut shard, listener.local_addr()?.ip())?;
        }
        for (protocol, listener, tls) in listeners {
            match protocol {
                Protocol::Rtmp => {
                    shard.listen(listener, tls, |worker, peer| Box::new(RtmpSession::new(worker, peer)))?;
                }
                Protocol::Rtc => {
                    shard.listen(listener, tls, |worker, peer| Box::new(RtcSession::new(worker, peer)))?;
                }
                Protocol::Bulk => {
                    shard.listen(listener, tls, |worker, _| Box::new(BulkSession::new(worker)))?;
                }
                // They go to the broker's own thread.
                Protocol::Mqtt => {}
                Protocol::Http => {
                    shard.listen(listener, tls, |worker, peer| Box::new(HttpSession::new(worker, peer)))?;
                }
            }
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
    let _ = ready.send(Ok((number, shard.mailbox())));
    while !shard.world.stopping {
        let now = clock::now();
        let next = [forward::begin_due(&mut shard, now), tuner::play_due(&mut shard, now)];
        let until = next.into_iter().flatten().fold(now + LONGEST_SLEEP, Moment::min);
        if shard.turn(until).is_err() {
            return;
        }
    }
}

/// Takes a UDP port for this worker's viewers.
fn open_port(shard: &mut Shard<Worker>, address: IpAddr) -> io::Result<()> {
    let failed = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
    let certificate = Certificate::generate().map_err(|error| failed(&error))?;
    let local = SocketAddr::new(address, 0);
    let (port, local) = shard.open_datagrams(local, Box::new(Port)).map_err(|error| failed(&error))?;
    let transport_clock = TransportClock::new(clock::now(), Instant::now());
    shard.world.rtc = Some(Box::new(Hub::new(port, local, certificate, transport_clock)));
    Ok(())
}

impl Listening {
    fn open(
        protocol: Protocol,
        address: SocketAddr,
        workers: usize,
        tls: Option<Arc<rustls::ServerConfig>>,
    ) -> Result<Self, OriginError> {
        let refused = |error| listen_error(address, error);
        let listeners = weir_shard::listeners(address, workers).map_err(refused)?;
        let address = listeners.first().map_or(Ok(address), TcpListener::local_addr).map_err(refused)?;
        Ok(Self { protocol, address, listeners, tls })
    }
}

/// Takes a port without listening: the system refuses whoever comes.
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
