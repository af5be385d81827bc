//! What a viewer and a publisher have in common: the connection on their link, and what of it is booked.

use super::address::{self, Request, SrtFields};
use super::figures::{
    self, ENCRYPTED, HELD, LATENCY, ROUND_TRIP, ROUND_TRIP_VARIANCE, SHUTDOWNS, UNACKNOWLEDGED,
};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use weir_clients::{
    ClientPhase, ClientState, End, EndpointFinder, Endpoints, PlannedStart, ShardRecorder, WorkloadError,
};
use weir_metrics::common::{READS, RECEIVED, SENT, SOCKET_DROPS};
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Datagrams, Incoming, Outgoing};
use weir_srt::{
    Agreement, Connection, ConnectionEvent, Disconnect, Listener, ListenerAnswer, Rejection, Statistics,
};

/// How often levels are sampled.
const SAMPLE: Duration = Duration::from_secs(1);

/// Whether it plays or publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Viewer,
    Publisher,
}

/// The ways to URLs, with what each says of its connections.
pub(super) fn endpoints(
    verb: &'static str,
    urls: &[String],
    mut finder: EndpointFinder,
    fields: &SrtFields,
) -> Result<Endpoints<Request>, WorkloadError> {
    let shared = fields.options()?;
    let found = Endpoints::find(verb, urls, &mut finder, |target| address::request(&target, &shared))?;
    let found = found.bound_where(|request| request.is_listener);
    Ok(match fields.sharing() {
        Some(sharing) => found.sharing(sharing),
        None => found,
    })
}

/// A client's connection.
pub(super) struct Caller {
    role: Role,
    request: Arc<Request>,
    /// Where the peer is; of one that is waited for, this side's own address until it is there.
    peer: SocketAddr,
    address: SocketAddr,
    listener: Option<Box<Listener>>,
    planned: PlannedStart,
    connection: Option<Box<Connection>>,
    booked: Statistics,
    sample_at: Moment,
    /// Datagrams that the kernel has dropped because the socket was full.
    dropped: u64,
}

impl Caller {
    pub(super) fn new(
        role: Role,
        request: Arc<Request>,
        address: SocketAddr,
        planned: PlannedStart,
        now: Moment,
    ) -> Self {
        let address = if request.is_listener { address } else { reached(address) };
        Self {
            role,
            request,
            peer: address,
            address,
            listener: None,
            planned,
            connection: None,
            booked: Statistics::default(),
            sample_at: now + SAMPLE,
            dropped: 0,
        }
    }

    /// The link is there: the handshake begins, or a caller is waited for.
    pub(super) fn call(&mut self, context: &mut Context<'_, ShardRecorder>) {
        if self.request.is_listener {
            self.listener = Listener::with_random_secret(self.request.options.clone()).map(Box::new);
            return;
        }
        let mut random = mix(u64::from(self.planned.number()) ^ context.now.as_nanos().rotate_left(20));
        let options = self.request.options.clone();
        // Another client on the same socket may have drawn the same number.
        while !context.claim_datagrams(Connection::socket_of(random)) {
            random = mix(random);
        }
        self.connection = Some(Box::new(Connection::call(options, self.peer.ip(), random, context.now)));
        self.flush(context);
    }

    /// The connection, once there is one.
    pub(super) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_deref_mut()
    }

    /// Datagrams came, up to the returned moment: what came later may wait unread, so that nothing is given up after it.
    pub(super) fn receive(
        &mut self,
        mut datagrams: Datagrams<'_>,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Moment {
        let (mut received, mut read_up_to) = (0, None);
        while let Some(Incoming { arrived, source, bytes }) = datagrams.take_next() {
            received += bytes.len() as u64;
            read_up_to = Some(arrived);
            match &mut self.connection {
                Some(connection) if source == self.peer => connection.handle_datagram(bytes, arrived),
                // There is a caller already.
                Some(_) => {}
                None => self.answer(source, bytes, context),
            }
        }
        let recorder = context.world.of(self.planned);
        recorder.count(READS, 1);
        recorder.count(RECEIVED, received);
        read_up_to.unwrap_or(context.now).min(context.now)
    }

    /// Answers a caller; the first that is where it says has the connection.
    fn answer(&mut self, source: SocketAddr, bytes: &[u8], context: &mut Context<'_, ShardRecorder>) {
        let Some(listener) = &self.listener else { return };
        let mut out = Vec::new();
        match listener.handle_datagram(source, bytes, context.now, &mut out) {
            ListenerAnswer::Nothing => return,
            ListenerAnswer::Respond => {}
            ListenerAnswer::Request(request) => {
                let random = mix(u64::from(self.planned.number()) ^ context.now.as_nanos().rotate_left(20));
                match listener.accept(&request, random, context.now) {
                    Ok(connection) => {
                        (self.connection, self.peer) = (Some(Box::new(connection)), source);
                        return;
                    }
                    Err(why) => listener.reject(&request, why, &mut out),
                }
            }
        }
        if context.send_datagram(source, &out) {
            context.world.of(self.planned).count(SENT, out.len() as u64);
        }
    }

    /// The connection is lost, and another is to follow.
    pub(super) fn begin_again(&mut self, context: &mut Context<'_, ShardRecorder>) {
        if let Some(connection) = self.connection.take() {
            figures::book(connection.statistics(), &mut self.booked, context.world.of(self.planned));
        }
        self.sample_drops(context);
        (self.booked, self.dropped) = (Statistics::default(), 0);
        (self.peer, self.listener) = (self.address, None);
    }

    /// Takes note of what has happened to the connection: what was agreed on, when it is established.
    pub(super) fn settle(
        &mut self,
        state: &mut ClientState,
        context: &mut Context<'_, ShardRecorder>,
    ) -> Result<Option<Agreement>, End> {
        let mut agreed = None;
        while let Some(event) = self.connection.as_mut().and_then(|connection| connection.poll_event()) {
            match event {
                ConnectionEvent::Answered => {
                    state.reach(ClientPhase::Handshaking, context.now, context.world);
                }
                ConnectionEvent::Connected(agreement) => {
                    state.reach(ClientPhase::Waiting, context.now, context.world);
                    let latency = match self.role {
                        Role::Viewer => agreement.receive_latency,
                        Role::Publisher => agreement.send_latency,
                    };
                    let recorder = context.world.of(self.planned);
                    recorder.record(LATENCY, latency.as_micros() as u64);
                    recorder.count(ENCRYPTED, u64::from(agreement.encryption.is_some()));
                    agreed = Some(agreement);
                }
                ConnectionEvent::Ended(why) => {
                    context.world.of(self.planned).count(SHUTDOWNS, u64::from(why == Disconnect::Shutdown));
                    return Err(end(why, self.request.options.idle_timeout));
                }
            }
        }
        Ok(agreed)
    }

    /// Sends what waits, and books what was counted.
    pub(super) fn flush(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let Some(connection) = &mut self.connection else { return };
        let (now, peer) = (context.now, self.peer);
        let (shard, mut link) = context.split();
        if let Some(given) = link.given_datagrams() {
            connection.on_given(given);
        }
        let mut sent = 0;
        connection.flush(&mut |bytes, length| {
            // What the kernel does not take is lost, as on any link, and sent again.
            let taken = link.send_datagrams(peer, bytes, length);
            sent += bytes.len().min(taken * length) as u64;
            taken
        });
        ask_for_unsent(connection, &link, now);
        let recorder = shard.of(self.planned);
        recorder.count(SENT, sent);
        figures::book(connection.statistics(), &mut self.booked, recorder);
        if self.sample_at <= now && connection.agreement().is_some() {
            self.sample_at = now + SAMPLE;
            let round_trip = connection.round_trip();
            if round_trip.is_measured() {
                recorder.record(ROUND_TRIP, round_trip.time().as_micros() as u64);
                recorder.record(ROUND_TRIP_VARIANCE, round_trip.variance().as_micros() as u64);
            }
            match self.role {
                Role::Viewer => recorder.record(HELD, connection.held().as_micros() as u64),
                Role::Publisher => recorder.record(UNACKNOWLEDGED, connection.unacknowledged() as u64),
            }
            self.sample_drops(context);
        }
    }

    /// Asks the kernel what the socket has dropped and refused.
    fn sample_drops(&mut self, context: &mut Context<'_, ShardRecorder>) {
        let dropped = context.dropped_datagrams();
        let new = dropped - std::mem::replace(&mut self.dropped, dropped).min(dropped);
        context.world.of(self.planned).count(SOCKET_DROPS, new);
    }

    /// A deadline has come, which is returned: a thread that stood still has read everything up to there, and not up to now.
    pub(super) fn handle_timeout(&mut self, context: &mut Context<'_, ShardRecorder>) -> Moment {
        let now = context.now;
        let Some(connection) = &mut self.connection else { return now };
        // Before anything is given up: what still lies in the socket is no fault of the server.
        ask_for_unsent(connection, &context.split().1, now);
        match connection.poll_timeout().filter(|at| *at <= now) {
            Some(at) => {
                connection.handle_timeout(at);
                at
            }
            None => now,
        }
    }

    pub(super) fn poll_timeout(&self) -> Option<Moment> {
        self.connection.as_ref().and_then(|connection| connection.poll_timeout())
    }

    /// Says goodbye.
    pub(super) fn leave(&mut self, context: &mut Context<'_, ShardRecorder>) {
        if let Some(connection) = &mut self.connection {
            connection.close(context.now);
        }
        self.flush(context);
        self.sample_drops(context);
    }
}

/// Asks the socket what it still holds, if it is time to.
fn ask_for_unsent(connection: &mut Connection, link: &Outgoing<'_>, now: Moment) {
    if !connection.asks_for_unsent(now) {
        return;
    }
    if let Some(given) = link.given_datagrams() {
        connection.on_given(given);
    }
    connection.on_unsent(link.unsent_datagrams(), now);
}

/// Where datagrams to an address arrive: those to an unspecified one at this machine's loopback address, from which its listeners
/// answer. The socket is not connected, so that the sources of datagrams are compared with this.
fn reached(mut address: SocketAddr) -> SocketAddr {
    let loopback = match address.ip() {
        IpAddr::V4(_) => IpAddr::from(Ipv4Addr::LOCALHOST),
        IpAddr::V6(_) => IpAddr::from(Ipv6Addr::LOCALHOST),
    };
    if address.ip().is_unspecified() {
        address.set_ip(loopback);
    }
    address
}

/// How a client fails whose connection has ended so.
fn end(why: Disconnect, idle: Duration) -> End {
    match why {
        Disconnect::Rejected(rejection) => {
            let failure = match rejection {
                Rejection::BAD_SECRET | Rejection::UNSECURE | Rejection::FORBIDDEN | Rejection(2_401) => {
                    Failure::Unauthorized
                }
                Rejection::NOT_FOUND => Failure::StreamNotFound,
                Rejection::BACKLOG | Rejection::OVERLOAD | Rejection::RESOURCE | Rejection(1_007 | 2_503) => {
                    Failure::Unavailable
                }
                _ => Failure::Rejected,
            };
            (failure, rejection.to_string())
        }
        Disconnect::Refused(rejection) => {
            (Failure::Rejected, format!("the server's answer to the handshake cannot be taken: {rejection}"))
        }
        Disconnect::Shutdown => {
            (Failure::StreamEnded, "the server ended the connection (SHUTDOWN)".to_owned())
        }
        Disconnect::Silent => {
            (Failure::PathLost, format!("nothing came from the server for {} s", idle.as_secs_f64()))
        }
        Disconnect::NoListener => {
            (Failure::MalformedInput, "what answers is no listener of SRT 1.3 or later".to_owned())
        }
    }
}

/// Scatters a number over all 64 bits (the finaliser of SplitMix64).
fn mix(mut number: u64) -> u64 {
    number = (number ^ number >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    number = (number ^ number >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_called_at_an_unspecified_address_answers_from_the_loopback_address() {
        for (called, answers) in [
            ("0.0.0.0:9000", "127.0.0.1:9000"),
            ("[::]:9000", "[::1]:9000"),
            ("127.0.0.2:9000", "127.0.0.2:9000"),
            ("[2001:db8::1]:9000", "[2001:db8::1]:9000"),
        ] {
            assert_eq!(reached(called.parse().unwrap()).to_string(), answers);
        }
    }

    #[test]
    fn the_kind_of_a_rejection_is_that_of_its_code() {
        for (rejection, failure) in [
            (Rejection::BAD_SECRET, Failure::Unauthorized),
            (Rejection::NOT_FOUND, Failure::StreamNotFound),
            (Rejection::BACKLOG, Failure::Unavailable),
            (Rejection::RESOURCE, Failure::Unavailable),
            (Rejection::CONFLICT, Failure::Rejected),
            (Rejection(3_001), Failure::Rejected),
        ] {
            let (kind, words) = end(Disconnect::Rejected(rejection), Duration::ZERO);
            assert_eq!(kind, failure);
            assert!(words.contains(&rejection.0.to_string()), "{words}");
        }
    }
}
