//! What an origin is to do.

use crate::fault::Fault;
use crate::hls::HlsSettings;
use crate::policy::{Departure, MissingStream, Patience};
use crate::server::Server;
use crate::stream::History;
use crate::tuner::Tuners;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;
use weir_rtc::signalling::oven::IceServer;
use weir_shard::tls::Identity;
use weir_srt::Passphrase;

/// What an origin is to do. The default listens nowhere.
#[derive(Clone, Debug)]
pub struct OriginConfig {
    /// Where to listen, and for what.
    pub listen: Vec<Listen>,
    /// What readers of MPEG-TS can tune to.
    pub tuners: Tuners,
    /// A TURN server that is offered to viewers by WebRTC: to those of OvenMediaEngine's signalling that ask for it
    /// (`?transport=tcp`), and all by WHEP.
    pub turn: Option<IceServer>,
    /// What callers by SRT have to know; without it nothing is encrypted.
    pub srt_passphrase: Option<Passphrase>,
    /// How many threads, each with its share of the connections.
    pub workers: usize,
    /// How long packets may wait to be sent together. Zero: each is sent as it comes. Tuners have their own.
    pub merge: Duration,
    /// What is kept of each stream that is published.
    pub history: History,
    /// How streams are cut for viewers by HLS.
    pub hls: HlsSettings,
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
            srt_passphrase: None,
            workers: 1,
            merge: Duration::from_millis(350),
            history: History::default(),
            hls: HlsSettings::default(),
            missing_stream: MissingStream::Wait,
            departure: Departure::Stay,
            forward: Vec::new(),
            faults: Vec::new(),
            patience: Patience::default(),
            departed_kept: 65_536,
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
