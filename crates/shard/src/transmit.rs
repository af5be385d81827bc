//! What a session asks of its links: of those of the shard, of one on the bench, and of none.

use crate::endpoint::Endpoint;
use crate::link_error::OpenError;
use std::io::IoSlice;
use std::net::SocketAddr;
use weir_metrics::Failure;

/// The link as a session may use it.
pub(crate) trait Transmit {
    /// Takes as many bytes as fit now, in order; 0 while earlier ones wait.
    fn write(&mut self, slices: &[IoSlice<'_>]) -> usize;
    /// Takes all bytes; those that do not fit now wait.
    fn send(&mut self, bytes: &[u8]);
    /// Bytes that wait to be sent.
    fn unsent(&self) -> usize;
    /// Bytes that wait to be read.
    fn unread(&self) -> usize;
    /// Bytes that the peer's machine has acknowledged.
    fn acknowledged(&self) -> u64;
    /// The address of the peer of this link, if it is a stream.
    fn peer_address(&self) -> Option<SocketAddr>;
    /// Opens the link of datagrams; the address to be reached at.
    fn open_datagrams(&mut self) -> Result<SocketAddr, OpenError>;
    /// Opens the link of datagrams at pairs of ports; the first of each.
    fn open_datagram_pairs(&mut self, pairs: usize) -> Result<Vec<u16>, OpenError>;
    /// The same as the next from one of several ports.
    fn send_datagrams_from(&mut self, port: usize, to: SocketAddr, bytes: &[u8], length: usize) -> usize;
    /// Sends datagrams of `length` bytes each. How many of the first the kernel took.
    fn send_datagrams(&mut self, to: SocketAddr, bytes: &[u8], length: usize) -> usize;
    /// Bytes of datagrams that it took and has not sent.
    fn unsent_datagrams(&self) -> u64;
    /// Receives datagrams of this peer only from now on.
    fn connect_datagrams(&mut self, to: SocketAddr);
    /// Datagrams that found no room in this socket: they came, or were to leave.
    fn dropped_datagrams(&self) -> u64;
    /// Takes what is for this recipient, of a link that sessions share. Whether no other session has it.
    fn claim_datagrams(&mut self, recipient: u32) -> bool;
    /// Bytes that a shared link was given by all its sessions.
    fn given_datagrams(&self) -> Option<u64>;
    /// Begins to connect the link beside this one.
    fn open_side(&mut self, endpoint: &Endpoint) -> Result<(), OpenError>;
    /// As [`Self::send`], on the link beside this one.
    fn send_side(&mut self, bytes: &[u8]);
    /// As [`Self::unsent`], of the link beside this one.
    fn unsent_side(&self) -> usize;
    /// Lets go of the link beside this one.
    fn close_side(&mut self);
    /// The protocol that TLS has settled on.
    fn alpn(&self) -> Option<&[u8]>;
    /// As [`Self::alpn`], of the link beside this one.
    fn alpn_side(&self) -> Option<&[u8]>;
}

/// The link of a session that got none: takes nothing.
pub(crate) struct NoLink;

impl Transmit for NoLink {
    fn write(&mut self, _: &[IoSlice<'_>]) -> usize {
        0
    }

    fn send(&mut self, _: &[u8]) {}

    fn unsent(&self) -> usize {
        0
    }

    fn unread(&self) -> usize {
        0
    }

    fn acknowledged(&self) -> u64 {
        0
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        None
    }

    fn open_datagrams(&mut self) -> Result<SocketAddr, OpenError> {
        Err(OpenError { failure: Failure::SocketError, words: "there is no link".to_owned() })
    }

    fn open_datagram_pairs(&mut self, _: usize) -> Result<Vec<u16>, OpenError> {
        self.open_datagrams().map(|_| Vec::new())
    }

    fn send_datagrams_from(&mut self, _: usize, _: SocketAddr, _: &[u8], _: usize) -> usize {
        0
    }

    fn send_datagrams(&mut self, _: SocketAddr, _: &[u8], _: usize) -> usize {
        0
    }

    fn unsent_datagrams(&self) -> u64 {
        0
    }

    fn connect_datagrams(&mut self, _: SocketAddr) {}

    fn dropped_datagrams(&self) -> u64 {
        0
    }

    fn claim_datagrams(&mut self, _: u32) -> bool {
        true
    }

    fn given_datagrams(&self) -> Option<u64> {
        None
    }

    fn open_side(&mut self, _: &Endpoint) -> Result<(), OpenError> {
        Err(OpenError { failure: Failure::SocketError, words: "there is no link".to_owned() })
    }

    fn send_side(&mut self, _: &[u8]) {}

    fn unsent_side(&self) -> usize {
        0
    }

    fn close_side(&mut self) {}

    fn alpn(&self) -> Option<&[u8]> {
        None
    }

    fn alpn_side(&self) -> Option<&[u8]> {
        None
    }
}
