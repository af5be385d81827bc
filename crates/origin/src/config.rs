//! What an origin is to do.

use crate::fault::Fault;
use crate::server::Server;
use crate::stream::History;
use crate::tuner::Service;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use weir_rtc::signalling::oven::IceServer;
use weir_shard::Deadlines;
use weir_shard::tls::Identity;

/// What an origin is to do. The default listens nowhere.
#[derive(Clone, Debug)]
pub struct OriginConfig {
    /// Where to listen, and for what.
    pub listen: Vec<Listen>,
    /// What readers of MPEG-TS can tune to.
    pub tuners: Tuners,
    /// A TURN server that viewers by WebRTC are told of: those of OvenMediaEngine's signalling who ask for it
    /// (`?transport=tcp`), and all by WHEP.
    pub turn: Option<IceServer>,
    /// How many threads, each with its share of the connections.
    pub workers: usize,
    /// How long packets may wait to be sent together. Zero: each is sent as it comes. Tuners have their own.
    pub merge: Duration,
    /// What is kept of each stream that is published.
    pub history: History,
    /// What a viewer of a stream that no one publishes gets.
    pub missing_stream: MissingStream,
    /// What viewers get when their publisher goes.
    pub departure: Departure,
    /// Where to publish again what is published here: `rtmp://HOST[:PORT][/APP[/STREAM]]`; what is
    /// not said stays as it is here.
    pub forward: Vec<String>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
    /// How patient the origin is.
    pub patience: Patience,
    /// Of how many viewers that are gone each worker keeps the counts one by one; it adds up those of the others. With 0 its
    /// memory does not grow with the viewers that it has served.
    pub departed_kept: usize,
}

impl Default for OriginConfig {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            tuners: Tuners::default(),
            turn: None,
            workers: 1,
            merge: Duration::from_millis(350),
            history: History::default(),
            missing_stream: MissingStream::Wait,
            departure: Departure::Stay,
            forward: Vec::new(),
            faults: Vec::new(),
            patience: Patience::default(),
            departed_kept: 65_536,
        }
    }
}

/// What a tuner server offers, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tuners {
    /// The services. The first is also `/1.ts`.
    pub services: Vec<Service>,
    /// How long packets may wait to be sent together.
    pub merge: Duration,
    /// How far a reader may fall behind. Who falls further loses everything that waits for it, as with a
    /// device whose buffer runs over.
    pub queue: Duration,
    /// The same in bytes.
    pub queue_bytes: u64,
    /// Whether streams go in the chunked coding of HTTP/1.1, unless a reader asks otherwise (`?chunked=0`).
    pub chunked: bool,
}

impl Default for Tuners {
    /// No service; 40 ms of merging; two seconds or 16 MiB of buffer; chunked.
    fn default() -> Self {
        Self {
            services: Vec::new(),
            merge: Duration::from_millis(40),
            queue: Duration::from_secs(2),
            queue_bytes: 16 << 20,
            chunked: true,
        }
    }
}

/// A place to listen at.
#[derive(Clone, Debug)]
pub struct Listen {
    /// For what.
    pub server: &'static Server,
    /// Where; port 0 lets the system choose.
    pub address: SocketAddr,
    /// The certificate to show if links are TLS.
    pub identity: Option<Identity>,
}

/// A port of 127.0.0.1 that the system chooses.
pub const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

impl OriginConfig {
    /// The same with a place to listen at; port 0 lets the system choose.
    #[must_use]
    pub fn listening(mut self, server: &'static Server, address: SocketAddr) -> Self {
        self.listen.push(Listen { server, address, identity: None });
        self
    }

    /// The same with a place to listen at for links by TLS.
    #[must_use]
    pub fn listening_secure(
        mut self,
        server: &'static Server,
        address: SocketAddr,
        identity: Identity,
    ) -> Self {
        self.listen.push(Listen { server, address, identity: Some(identity) });
        self
    }
}

/// What a viewer of a stream that no one publishes gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingStream {
    /// It waits for a publisher.
    #[default]
    Wait,
    /// It is told that there is no such stream.
    Refuse,
}

/// What viewers get when their publisher goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Departure {
    /// They are told, and wait for the next publisher.
    #[default]
    Stay,
    /// They are told, and their connection is closed.
    Close,
}

/// How long the origin waits for peers that do not move on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From the connection, TLS included, to a request to play or publish; likewise from one request over HTTP to the
    /// next, and from the answer to an offer to the keys of WebRTC.
    pub request: Duration,
    /// While a peer neither sends nor acknowledges a byte, whatever it has asked for. Over MQTT the keep-alive takes its
    /// place: of MQTT 5 two thirds of this at most, of MQTT 3.1.1 whatever the client says.
    pub idle: Duration,
    /// While a publisher sends nothing.
    pub publisher: Duration,
    /// While a viewer takes nothing of what waits for it.
    pub viewer: Duration,
}

impl Patience {
    /// What every listener holds its peers to.
    pub(crate) fn deadlines(&self) -> Deadlines {
        Deadlines { request: self.request, idle: self.idle }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(15),
            idle: Duration::from_secs(600),
            publisher: Duration::from_secs(60),
            viewer: Duration::from_secs(30),
        }
    }
}
