//! The path of datagrams: the connection's own socket, or a relay; and the candidates that the server gets.

use super::Connection;
use crate::client_session::End;
use crate::rtc::figures::{ICE_RESTARTS, STRANGE};
use crate::rtc::refusal::of_transport;
use crate::rtc::relay::{Home, Relay, RelayedFrame, Server};
use crate::rtc::trickle::Next;
use crate::shard_recorder::ShardRecorder;
use std::net::SocketAddr;
use std::time::Duration;
use tracing::debug;
use weir_metrics::Failure;
use weir_metrics::common::SENT;
use weir_rtc::signalling::http::Restarted;
use weir_rtc::signalling::oven::IceServer;
use weir_rtc::turn::{Carrier, Frame, Frames};
use weir_shard::{Context, Side};

/// How long a path is sought without a relay, where the server names one and it was not asked for.
const DIRECT: Duration = Duration::from_secs(2);

/// What a relay has brought.
pub(in crate::rtc) enum Relayed<'a> {
    /// A datagram, and its sender.
    Datagram(SocketAddr, &'a mut [u8]),
    /// Something that is no datagram: go on.
    Nothing,
    /// There is no more.
    UsedUp,
}

impl Connection {
    /// Relays of the server are known: takes one at once if it was asked for, or if the server cannot be reached
    /// otherwise.
    pub(super) fn consider(
        &mut self,
        servers: &[IceServer],
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let is_wanted = self.is_relay_wanted;
        let is_needed =
            self.negotiation.as_ref().is_some_and(|it| it.reachable == 0 && it.names.are_resolved());
        match Server::all(servers) {
            Ok(servers) if is_wanted || is_needed => self.begin_relay(servers, context),
            Ok(mut servers) => {
                // A failure of the relay is one of the client: only what leaves its socket alone stands by unasked.
                servers.retain(|server| server.carrier() == Carrier::Tcp);
                self.spare = Some((context.now + DIRECT, servers)).filter(|(_, servers)| !servers.is_empty());
                Ok(())
            }
            Err(why) if is_wanted => Err((Failure::Rejected, format!("a relay was asked for, and {why}"))),
            Err(_) => Ok(()),
        }
    }

    pub(super) fn begin_relay(
        &mut self,
        servers: Vec<Server>,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        debug!(target: "rtc", client = self.planned.number(), servers = servers.len(), "goes by a relay");
        if servers.iter().any(|server| server.carrier() == Carrier::Udp) && !self.has_socket {
            self.open_socket(context)?;
        }
        let home = Home { address: self.endpoint.address.ip(), name: self.request.host().to_owned() };
        let relay = Relay::begin(servers, home, &self.terms.redirects, context)?;
        self.relay = Some(Box::new(relay));
        Ok(())
    }

    /// Something happened on the link to the TURN server, bytes apart.
    pub(in crate::rtc) fn side(
        &mut self,
        event: &Side<'_>,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        let Some(relay) = self.relay.as_mut().filter(|_| self.leaving.is_none()) else { return Ok(()) };
        match event {
            Side::Connected => {
                let sent = relay.connected(context);
                context.world.of(self.planned).count(SENT, sent);
                Ok(())
            }
            Side::Closed { failure, words } => relay.closed(*failure, words, &self.terms.redirects, context),
            Side::Bytes(_) => Ok(()),
        }
    }

    /// What takes frames off the link to the TURN server, to be given back.
    pub(in crate::rtc) fn take_frames(&mut self) -> Frames {
        self.relay.as_mut().map(|relay| relay.take_frames()).unwrap_or_default()
    }

    pub(in crate::rtc) fn put_back(&mut self, frames: Frames) {
        if let Some(relay) = &mut self.relay {
            relay.put_back(frames);
        }
    }

    /// The next datagram from a relay, and its sender.
    pub(in crate::rtc) fn next_relayed<'a, 'b: 'a>(
        &mut self,
        frames: &'a mut Frames,
        input: &mut &'b mut [u8],
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<Relayed<'a>, End> {
        let Some(relay) = &mut self.relay else { return Ok(Relayed::UsedUp) };
        let frame = match frames.take(input) {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(Relayed::UsedUp),
            Err(error) => {
                let end = (Failure::MalformedInput, error.to_string());
                relay.failed(end, &self.terms.redirects, context)?;
                // What else the link has brought is of a server that is left.
                return Ok(Relayed::UsedUp);
            }
        };
        self.unwrap(frame, context)
    }

    /// Whether a datagram from there came by a relay that is reached over the connection's own socket.
    #[inline]
    pub(in crate::rtc) fn comes_by_relay(&self, source: SocketAddr) -> bool {
        self.relay.as_ref().is_some_and(|relay| relay.takes_datagrams_of(source))
    }

    /// What such a datagram has brought.
    pub(in crate::rtc) fn relayed_datagram<'a>(
        &mut self,
        bytes: &'a mut [u8],
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<Relayed<'a>, End> {
        match Frame::of_datagram(bytes).filter(|_| self.leaving.is_none()) {
            Some(frame) => self.unwrap(frame, context),
            None => {
                context.world.of(self.planned).count(STRANGE, 1);
                Ok(Relayed::Nothing)
            }
        }
    }

    fn unwrap<'a>(
        &mut self,
        frame: Frame<'a>,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<Relayed<'a>, End> {
        let Some(relay) = &mut self.relay else { return Ok(Relayed::Nothing) };
        match relay.unwrap(context.now, frame) {
            Err(end) => {
                relay.failed(end, &self.terms.redirects, context)?;
                return Ok(Relayed::UsedUp);
            }
            Ok(RelayedFrame::Datagram(source, bytes)) => return Ok(Relayed::Datagram(source, bytes)),
            Ok(RelayedFrame::Strange) => context.world.of(self.planned).count(STRANGE, 1),
            Ok(RelayedFrame::Nothing) => self.flush_relay(context),
            Ok(RelayedFrame::Allocated(relayed)) => {
                debug!(target: "rtc", client = self.planned.number(), %relayed, "the relay has an address for it");
                if let Some(negotiation) = &mut self.negotiation {
                    negotiation
                        .transport
                        .relay(context.now, relayed)
                        .map_err(|error| of_transport(&error))?;
                }
                self.send_candidates(context);
                // Keys cannot come before a datagram has.
                self.drain(context)?;
            }
        }
        Ok(Relayed::Nothing)
    }

    pub(super) fn flush_relay(&mut self, context: &mut Context<'_, ShardRecorder>) {
        if let Some(relay) = &mut self.relay {
            let (world, mut link) = context.split();
            let sent = relay.flush(&mut link);
            world.of(self.planned).count(SENT, sent);
        }
    }

    /// Sends one datagram the way that datagrams go.
    pub(super) fn deliver(
        &mut self,
        destination: SocketAddr,
        datagram: &[u8],
        context: &mut Context<'_, ShardRecorder>,
    ) {
        match self.relay.as_mut().filter(|relay| relay.is_in_use()) {
            Some(relay) => {
                relay.send(context.now, destination, datagram);
                self.flush_relay(context);
            }
            None => {
                context.send_datagram(destination, datagram);
                context.world.of(self.planned).count(SENT, datagram.len() as u64);
            }
        }
    }

    /// Whether datagrams are to go by a relay, so that what comes otherwise is nothing.
    pub(in crate::rtc) fn is_relayed(&self) -> bool {
        self.is_relay_wanted || self.relay.as_ref().is_some_and(|relay| relay.is_in_use())
    }

    /// There is a path: a relay that is not in use by then is not needed.
    pub(super) fn spare_relay(&mut self, context: &mut Context<'_, ShardRecorder>) {
        self.spare = None;
        if self.relay.take_if(|relay| !relay.is_in_use()).is_some() {
            context.close_side();
        }
    }

    /// Media takes this path. Of a peer that is nowhere else no other has to be received.
    pub(super) fn settle(&mut self, path: SocketAddr, context: &mut Context<'_, ShardRecorder>) {
        match self.relay.as_mut().filter(|relay| relay.is_in_use()) {
            Some(relay) => {
                relay.bind(context.now, path);
                if let Some(server) = relay.socket_peer() {
                    context.connect_datagrams(server);
                }
                self.flush_relay(context);
            }
            None => {
                let elsewhere =
                    self.negotiation.as_ref().is_some_and(|it| it.transport.may_be_elsewhere(path));
                if !elsewhere {
                    context.connect_datagrams(path);
                }
            }
        }
    }

    /// Checks candidates of the server whose names have an address by now.
    pub(super) fn resolve_candidates(&mut self, context: &mut Context<'_, ShardRecorder>) -> Result<(), End> {
        let now = context.now;
        let Some(negotiation) = &mut self.negotiation else { return Ok(()) };
        if negotiation.names.poll_timeout().is_none_or(|due| due > now) {
            return Ok(());
        }
        for candidate in negotiation.names.resolve(now, &self.terms.redirects) {
            debug!(target: "rtc", client = self.planned.number(), candidate, "a candidate's name has an address");
            negotiation.reachable += usize::from(negotiation.transport.add_candidate(&candidate).is_ok());
            negotiation.transport.handle_timeout(now);
        }
        // Keys cannot come before a datagram has.
        self.drain(context)?;
        Ok(())
    }

    /// Sends our candidates to the server, if it takes them.
    pub(super) fn send_candidates(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let Some((trickle, resource)) = self.trickle.as_mut().zip(self.resource.as_ref()) else { return };
        match self.request.endpoint_of(resource, &self.endpoint) {
            Some(endpoint) if trickle.request() => context.reopen(endpoint),
            Some(_) => {}
            None => self.trickle = None,
        }
    }

    /// No connectivity check is answered any more: asks the server to begin again with ICE, once for each path that is lost, if it takes that.
    pub(super) fn request_restart(&mut self, context: &mut Context<'_, ShardRecorder>) {
        if !self.has_keys || self.has_restarted {
            return;
        }
        let Some((trickle, resource)) = self.trickle.as_mut().zip(self.resource.as_ref()) else { return };
        if let Some(endpoint) = self.request.endpoint_of(resource, &self.endpoint) {
            self.has_restarted = true;
            if trickle.request_restart() {
                context.reopen(endpoint);
            }
        }
    }

    /// The answer to a PATCH, or the end of the link that it was sent over.
    pub(super) fn on_trickle_answer(
        &mut self,
        next: Next,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<(), End> {
        match next {
            Next::Wait => {}
            Next::Again => {
                let resource = self.resource.as_ref();
                match resource.and_then(|resource| self.request.endpoint_of(resource, &self.endpoint)) {
                    Some(endpoint) => context.reopen(endpoint),
                    None => self.trickle = None,
                }
            }
            Next::Restart(ours, theirs) => {
                context.hang_up();
                context.world.of(self.planned).count(ICE_RESTARTS, 1);
                if let Some(negotiation) = &mut self.negotiation {
                    let Restarted { user_fragment, password, candidates } = theirs;
                    let transport = &mut negotiation.transport;
                    transport.restart(context.now, *ours, &user_fragment, &password, &candidates);
                }
                // There have been keys for long.
                self.drain(context)?;
            }
            Next::Over { taken } => {
                context.hang_up();
                if !taken {
                    self.trickle = None;
                }
            }
        }
        Ok(())
    }
}
