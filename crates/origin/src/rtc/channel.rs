//! The way to one peer, viewer or publisher: ICE, DTLS, the keys that come of them, and when it is given up.

use super::counts::Counts;
use super::outbox::Outbox;
use crate::worker::Worker;
use std::net::SocketAddr;
use std::time::Duration;
use weir_metrics::Moment;
use weir_rtc::srtp::{Inbound, Outbound};
use weir_rtc::transport::{Event, Output, Reception, Transport};
use weir_shard::{Outgoing, SessionId};

/// How long a peer may be unreachable before it is gone.
const UNREACHABLE: Duration = Duration::from_secs(10);

/// From how many addresses a peer may come: it has a few candidates, and its network may map them again.
const MOST_ADDRESSES: usize = 32;

/// What a peer needs to be served.
pub(super) struct Service<'a, 'b> {
    pub(super) now: Moment,
    pub(super) worker: &'a mut Worker,
    pub(super) link: &'a mut Outgoing<'b>,
    pub(super) counts: &'a mut Counts,
    pub(super) outbox: &'a mut Outbox,
    /// Sessions that have to be woken for what was done.
    pub(super) wakes: &'a mut Vec<SessionId>,
}

pub(super) struct Channel {
    transport: Transport,
    pub(super) user_fragment: String,
    /// What signalling knows the peer by.
    pub(super) session: u64,
    /// Where its datagrams come from and go to.
    pub(super) path: Option<SocketAddr>,
    pub(super) keys: Option<Box<(Inbound, Outbound)>>,
    due: Option<Moment>,
    /// When it is given up.
    gone_at: Option<Moment>,
    pub(super) is_gone: bool,
    /// From how many addresses its peer has been heard.
    addresses: usize,
}

impl Channel {
    /// A channel that has to have keys within `patience`.
    pub(super) fn new(transport: Transport, session: u64, now: Moment, patience: Duration) -> Self {
        Self {
            user_fragment: transport.user_fragment().to_owned(),
            transport,
            session,
            path: None,
            keys: None,
            due: Some(now),
            gone_at: Some(now + patience),
            is_gone: false,
            addresses: 0,
        }
    }

    /// Whether the handshake is over.
    pub(super) fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// STUN or DTLS came; `is_new`: from an address that is not known to be the peer's. Whether it is from now on: who sends what is
    /// not signed is nobody, and no peer has many.
    pub(super) fn receive(
        &mut self,
        source: SocketAddr,
        bytes: &[u8],
        is_new: bool,
        service: &mut Service<'_, '_>,
    ) -> bool {
        let reception = self.transport.receive(service.now, source, bytes);
        self.drain(service);
        let is_peers = is_new && reception == Reception::Taken && self.addresses < MOST_ADDRESSES;
        self.addresses += usize::from(is_peers);
        is_peers
    }

    /// Sends what the transport has to send, and takes its events.
    fn drain(&mut self, service: &mut Service<'_, '_>) {
        while let Some(output) = self.transport.poll() {
            match output {
                Output::Send { destination, datagram } => {
                    service.link.send_datagrams(destination, &datagram, datagram.len());
                }
                Output::Event(Event::Path(path)) => {
                    self.path = Some(path);
                    if self.keys.is_some() {
                        self.gone_at = None;
                    }
                }
                Output::Event(Event::Keys { inbound, outbound, .. }) => {
                    let keys =
                        Inbound::new(&inbound).and_then(|inbound| Ok((inbound, Outbound::new(&outbound)?)));
                    match keys {
                        Ok(keys) => {
                            self.keys = Some(Box::new(keys));
                            self.gone_at = None;
                            service.counts.connected += 1;
                        }
                        Err(_) => self.is_gone = true,
                    }
                }
                Output::Event(Event::PathLost) => {
                    self.gone_at.get_or_insert(service.now + UNREACHABLE);
                }
                Output::Event(Event::Closed | Event::Failed(_)) => self.is_gone = true,
            }
        }
        self.due = self.transport.due();
    }

    /// A deadline passed: one of several.
    pub(super) fn handle_timeout(&mut self, service: &mut Service<'_, '_>) {
        if self.due.is_some_and(|due| due <= service.now) {
            self.transport.handle_timeout(service.now);
            self.drain(service);
        }
        if self.gone_at.is_some_and(|at| at <= service.now) {
            self.is_gone = true;
        }
    }

    /// When to call [`Self::handle_timeout`]; at once if the peer is gone and has to be removed.
    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        if self.is_gone {
            return Some(Moment::from_nanos(0));
        }
        [self.due, self.gone_at].into_iter().flatten().min()
    }

    /// Opens RTCP of the peer. One that does not open is counted.
    pub(super) fn open_rtcp<'a>(&mut self, bytes: &'a mut [u8], counts: &mut Counts) -> Option<&'a [u8]> {
        let opened = self.keys.as_mut()?.0.open_rtcp(bytes);
        counts.unauthentic += u64::from(opened.is_err());
        opened.ok().map(|opened| &*opened)
    }

    /// Protects a compound RTCP packet in place, and sends it.
    pub(super) fn send_rtcp(&mut self, compound: &mut Vec<u8>, link: &mut Outgoing<'_>) {
        let (Some(keys), Some(path)) = (&mut self.keys, self.path) else { return };
        if !compound.is_empty() && keys.1.protect_rtcp(compound, 0).is_ok() {
            link.send_datagrams(path, compound, compound.len());
        }
    }

    /// Closes the DTLS association.
    pub(super) fn close(&mut self, service: &mut Service<'_, '_>) {
        self.transport.close();
        while let Some(output) = self.transport.poll() {
            if let Output::Send { destination, datagram } = output {
                service.link.send_datagrams(destination, &datagram, datagram.len());
            }
        }
    }
}
