//! The links of a session: the one that it was begun with, one of datagrams, and another stream beside it.

use crate::datagrams::{DatagramLink, local_for};
use crate::endpoint::Endpoint;
use crate::link::Link;
use crate::link_error::OpenError;
use crate::shared::Membership;
use crate::transmit::Transmit;
use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use weir_metrics::Failure;

/// The links that one session can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LinkKind {
    Stream,
    Datagrams,
    Side,
}

/// Something of each kind of link.
pub(crate) type EachKind<T> = [T; 3];

/// The links of a session.
#[derive(Default)]
pub(crate) struct Links {
    /// The one that the session was begun with, unless it has hung up.
    pub(crate) stream: Option<Link>,
    /// The one of datagrams. Few sessions have one, and most of a load's memory is in what each has.
    pub(crate) datagrams: Option<Box<DatagramLink>>,
    /// A socket of datagrams that others share, in the place of one of the session's own.
    pub(crate) shared: Option<Box<Membership>>,
    /// Whether the session's own link of datagrams is new: it is not polled yet.
    pub(crate) unpolled: bool,
    /// The one beside the first.
    pub(crate) side: Option<Box<Link>>,
    /// Whether that is new.
    pub(crate) side_unpolled: bool,
    /// Whether the session was begun with datagrams and one peer: what the peer's machine says of them is its end.
    pub(crate) is_udp: bool,
    /// The local address that was asked for.
    pub(crate) from: Option<IpAddr>,
}

impl Links {
    /// Whether the session has more than the link that it was begun with.
    pub(crate) fn has_more(&self) -> bool {
        self.datagrams.is_some() || self.shared.is_some() || self.side.is_some()
    }

    /// The address that others reach this session at, port apart.
    fn local(&self) -> Option<IpAddr> {
        let stream = self.stream.as_ref()?.stream.local_addr().ok()?;
        Some(self.from.filter(|from| from.is_ipv4() == stream.is_ipv4()).unwrap_or(stream.ip()))
    }

    /// Takes this link of datagrams in the place of another one; the address to be reached at.
    fn hear(&mut self, link: DatagramLink, local: IpAddr) -> SocketAddr {
        let address = SocketAddr::new(local, link.port());
        self.datagrams = Some(Box::new(link));
        self.unpolled = true;
        address
    }
}

impl Transmit for Links {
    fn write(&mut self, slices: &[IoSlice<'_>]) -> usize {
        self.stream.as_mut().map_or(0, |stream| stream.write(slices))
    }

    fn send(&mut self, bytes: &[u8]) {
        if let Some(stream) = &mut self.stream {
            stream.send(bytes);
        }
    }

    fn unsent(&self) -> usize {
        self.stream.as_ref().map_or(0, Link::unsent)
    }

    fn unread(&self) -> usize {
        self.stream.as_ref().map_or(0, Link::unread)
    }

    fn acknowledged(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| stream.acknowledged().bytes)
    }

    fn peer_address(&self) -> Option<SocketAddr> {
        self.stream.as_ref()?.stream.peer_addr().ok()
    }

    fn open_datagrams(&mut self) -> Result<SocketAddr, OpenError> {
        let local = self.local().ok_or_else(no_address)?;
        let link = DatagramLink::open(local_for(local, self.from.filter(|from| *from == local)))?;
        Ok(self.hear(link, local))
    }

    fn open_datagram_pairs(&mut self, pairs: usize) -> Result<Vec<u16>, OpenError> {
        let local = self.local().ok_or_else(no_address)?;
        let link = DatagramLink::open_pairs(local, pairs)?;
        let ports = link.sockets().step_by(2).map(DatagramLink::port).collect();
        self.hear(link, local);
        Ok(ports)
    }

    fn send_datagrams_from(&mut self, port: usize, to: SocketAddr, bytes: &[u8], length: usize) -> usize {
        let socket = self.datagrams.as_ref().and_then(|link| link.sockets().nth(port));
        socket.map_or(0, |socket| socket.send(to, bytes, length))
    }

    fn send_datagrams(&mut self, to: SocketAddr, bytes: &[u8], length: usize) -> usize {
        if let Some(member) = &self.shared {
            return member.send(to, bytes, length);
        }
        self.datagrams.as_ref().map_or(0, |link| link.send(to, bytes, length))
    }

    fn unsent_datagrams(&self) -> u64 {
        if let Some(member) = &self.shared {
            return member.unsent();
        }
        self.datagrams.as_ref().map_or(0, |link| link.unsent())
    }

    fn connect_datagrams(&mut self, to: SocketAddr) {
        if let Some(link) = &self.datagrams {
            link.connect(to);
        }
    }

    fn dropped_datagrams(&self) -> u64 {
        if let Some(member) = &self.shared {
            return member.dropped();
        }
        self.datagrams.as_ref().map_or(0, |link| link.dropped())
    }

    fn claim_datagrams(&mut self, recipient: u32) -> bool {
        self.shared.as_mut().is_none_or(|member| member.claim(recipient))
    }

    fn given_datagrams(&self) -> Option<u64> {
        self.shared.as_ref().map(|member| member.given())
    }

    fn open_side(&mut self, endpoint: &Endpoint) -> Result<(), OpenError> {
        let from = self.from.filter(|from| from.is_ipv4() == endpoint.address.is_ipv4());
        self.side = Some(Box::new(Link::open(&Endpoint { from, ..endpoint.clone() })?));
        self.side_unpolled = true;
        Ok(())
    }

    fn send_side(&mut self, bytes: &[u8]) {
        if let Some(side) = &mut self.side {
            side.send(bytes);
        }
    }

    fn unsent_side(&self) -> usize {
        self.side.as_ref().map_or(0, |link| link.unsent())
    }

    fn close_side(&mut self) {
        // Closing the descriptor deregisters it as well.
        if let Some(mut side) = self.side.take() {
            side.close();
        }
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.stream.as_ref()?.alpn()
    }

    fn alpn_side(&self) -> Option<&[u8]> {
        self.side.as_ref()?.alpn()
    }
}

fn no_address() -> OpenError {
    OpenError { failure: Failure::SocketError, words: "the link has no local address".to_owned() }
}
