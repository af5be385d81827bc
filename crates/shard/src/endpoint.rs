//! Where a link leads, and what carries it.

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

/// Where a link leads and what it speaks.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The peer.
    pub address: SocketAddr,
    /// The local address to connect from, if not the system's choice.
    pub from: Option<IpAddr>,
    /// What carries the link.
    pub transport: Transport,
}

/// What carries a link.
#[derive(Clone, Debug)]
pub enum Transport {
    /// TCP (RFC 9293).
    Tcp,
    /// TLS over TCP: its settings, and the name that the peer's certificate must carry.
    Tls(Arc<ClientConfig>, ServerName<'static>),
    /// UDP (RFC 768): a session has its datagrams from the first event on, and nothing else.
    Udp,
    /// UDP, at an address of this machine: a session gets what anyone sends there.
    BoundUdp,
}

impl Endpoint {
    /// The way to a peer over TCP, from an address of the system's choice.
    pub const fn tcp(address: SocketAddr) -> Self {
        Self { address, from: None, transport: Transport::Tcp }
    }
}
