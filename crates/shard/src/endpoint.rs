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
    /// UDP, through a socket to the peer that sessions of one thread share.
    SharedUdp(Arc<Sharing>),
}

/// How sessions share sockets. Those with the same one do, and no others.
#[derive(Debug)]
pub struct Sharing {
    /// Sockets to one peer, of all threads together; a thread that needs any has one at least.
    pub sockets: u32,
    /// Whom a datagram is for, by its bytes.
    pub recipient: fn(&[u8]) -> Option<u32>,
    /// Datagrams of this length or less leave behind longer ones of the same turn of the event loop: their order among those is of no matter.
    pub short: usize,
}

impl Endpoint {
    /// The way to a peer over TCP, from an address of the system's choice.
    pub const fn tcp(address: SocketAddr) -> Self {
        Self { address, from: None, transport: Transport::Tcp }
    }
}
