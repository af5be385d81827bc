//! A client's way by a TURN server: over a link (TCP, TLS) beside its signalling, or over its own socket (UDP).

use super::refusal::of_turn;
use crate::client_session::End;
use crate::redirect::{Redirect, Redirects};
use crate::target::{Scheme, Target};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_rtc::signalling::oven::IceServer;
use weir_rtc::turn::{Carrier, Client, Event, Frame, Frames, TurnServer, datagrams};
use weir_shard::{Context, Endpoint, OpenError, Outgoing, Transport};

/// The schemes under which servers are sought.
pub(super) const SCHEMES: &[Scheme] = &[Scheme::tcp("turn", 3478), Scheme::tls("turns", 5349)];

/// Carriers in order of preference: a client that is sent to a relay is often in a network that blocks UDP.
const CARRIERS: [Carrier; 3] = [Carrier::Tcp, Carrier::Tls, Carrier::Udp];

/// How long one address may take to answer while there is another to try.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often a name that is being sought is asked for.
const AGAIN: Duration = Duration::from_millis(20);
/// Bytes that may wait for a server that does not read; what comes then is gone, as datagrams are.
const MOST_UNSENT: usize = 256 << 10;

/// A TURN server that can be used.
#[derive(Clone)]
pub(super) struct Server {
    place: TurnServer,
    username: String,
    credential: String,
}

impl Server {
    /// The server with the preferred carrier of those that signalling names, or why none of them can be used.
    pub(super) fn choose(servers: &[IceServer]) -> Result<Self, &'static str> {
        let places = servers.iter().flat_map(|server| server.urls.iter().map(move |url| (server, url)));
        let places = places.filter_map(|(server, url)| Some((server, url.parse::<TurnServer>().ok()?)));
        let rank = |place: &TurnServer| CARRIERS.iter().position(|carrier| *carrier == place.carrier);
        match places.min_by_key(|(_, place)| rank(place)) {
            Some((server, place)) => {
                Ok(Self { place, username: server.username.clone(), credential: server.credential.clone() })
            }
            None => Err("the server names no TURN server"),
        }
    }

    /// What it is reached over.
    pub(super) fn carrier(&self) -> Carrier {
        self.place.carrier
    }
}

/// What came out of a frame.
#[derive(Debug)]
pub(super) enum Unwrapped<'a> {
    /// A datagram, and its sender.
    Datagram(SocketAddr, &'a mut [u8]),
    /// Others reach us at this address now.
    Allocated(SocketAddr),
    /// Nothing for the client.
    Nothing,
    /// A frame that neither the server nor a known peer sent.
    Strange,
}

/// A relay, from the search for its server to the end.
pub(super) struct Relay {
    server: Server,
    client: Client,
    frames: Frames,
    /// Where the server may be, the best at the end.
    addresses: Vec<SocketAddr>,
    /// A name that is being resolved.
    sought: Option<Target>,
    /// Where it is, or is hoped to be.
    address: SocketAddr,
    /// What carries a link to it; of TLS, it is known when the server was found.
    transport: Transport,
    /// The link is there; over UDP, the server has said something.
    is_open: bool,
    /// When to try the next address, or ask for the name again.
    next_try: Option<Moment>,
    /// What the server said of a peer that it does not allow.
    denied: Option<String>,
    out: Vec<u8>,
}

impl Relay {
    /// Begins to connect. The server is where signalling is (`home`, called `name` there) if it does not say where, or
    /// cannot be reached where it says. Over UDP the session must have its socket.
    pub(super) fn begin<W>(
        server: Server,
        home: IpAddr,
        name: &str,
        redirects: &Redirects,
        context: &mut Context<'_, W>,
    ) -> Result<Self, End> {
        let TurnServer { host, port, carrier } = &server.place;
        let home = SocketAddr::new(home, *port);
        let mut addresses = vec![home];
        let mut sought = None;
        let elsewhere = host.as_deref().filter(|host| !host.eq_ignore_ascii_case(name));
        if *carrier == Carrier::Tls {
            // Its certificate is checked, so that an address alone is not enough.
            let place =
                TurnServer { host: Some(elsewhere.unwrap_or(name).to_owned()), ..server.place.clone() };
            sought = Target::parse(&format!("turns://{place}"), "play", SCHEMES).ok();
        } else if let Some(host) = elsewhere {
            match host.parse::<IpAddr>() {
                Ok(address) if address == home.ip() => {}
                Ok(address) => addresses.push(SocketAddr::new(address, *port)),
                Err(_) => sought = Target::parse(&format!("turn://{}", server.place), "play", SCHEMES).ok(),
            }
        }
        let mut relay = Self {
            client: Client::new(&server.username, &server.credential, *carrier),
            server,
            frames: Frames::default(),
            addresses,
            sought,
            address: home,
            transport: Transport::Tcp,
            is_open: false,
            next_try: None,
            denied: None,
            out: Vec::new(),
        };
        relay.go_on(redirects, context)?;
        Ok(relay)
    }

    /// Asks for the name again, or tries the next address.
    fn go_on<W>(&mut self, redirects: &Redirects, context: &mut Context<'_, W>) -> Result<(), End> {
        let carrier = self.server.carrier();
        if let Some(target) = &self.sought {
            match redirects.find(target) {
                Redirect::Sought => {
                    self.next_try = Some(context.now + AGAIN);
                    return Ok(());
                }
                Redirect::Found(Endpoint { address, transport, .. }) => {
                    self.transport = transport;
                    self.addresses.retain(|known| *known != address);
                    self.addresses.push(address);
                }
                // Without the server's name its certificate cannot be checked.
                Redirect::None(words) if carrier == Carrier::Tls => {
                    return Err((Failure::ConnectTimeout, self.explain(&words)));
                }
                // Signalling's own address is left.
                Redirect::None(_) => {}
            }
            self.sought = None;
        }
        let Some(address) = self.addresses.pop() else { return Ok(()) };
        self.address = address;
        self.frames = Frames::default();
        self.client = Client::new(&self.server.username, &self.server.credential, carrier);
        self.next_try = (!self.addresses.is_empty()).then(|| context.now + PATIENCE);
        if carrier == Carrier::Udp {
            self.client.begin(context.now, &mut self.out);
            self.flush(&mut context.split().1);
            return Ok(());
        }
        let failed = |OpenError { failure, words }| (failure, self.explain(&words));
        let endpoint = Endpoint { transport: self.transport.clone(), ..Endpoint::tcp(address) };
        context.open_side(&endpoint).map_err(failed)
    }

    /// The link to the server is there.
    pub(super) fn connected<W>(&mut self, context: &mut Context<'_, W>) -> u64 {
        self.is_open = true;
        self.next_try = None;
        self.client.begin(context.now, &mut self.out);
        self.flush(&mut context.split().1)
    }

    /// The link is gone, or could not be had.
    pub(super) fn closed<W>(
        &mut self,
        failure: Failure,
        words: &str,
        redirects: &Redirects,
        context: &mut Context<'_, W>,
    ) -> Result<(), End> {
        if !self.is_open && !self.addresses.is_empty() {
            return self.go_on(redirects, context);
        }
        Err((failure, self.explain(if words.is_empty() { "it closed the link" } else { words })))
    }

    /// What takes the frames off the link, to be given back with [`Self::put_back`].
    pub(super) fn take_frames(&mut self) -> Frames {
        std::mem::take(&mut self.frames)
    }

    pub(super) fn put_back(&mut self, frames: Frames) {
        self.frames = frames;
    }

    /// Whether a datagram from there is the server's.
    #[inline]
    pub(super) fn takes_datagrams_of(&self, source: SocketAddr) -> bool {
        self.server.carrier() == Carrier::Udp && source == self.address
    }

    /// Takes a frame apart. What is to be answered waits for [`Self::flush`].
    pub(super) fn unwrap<'a>(&mut self, now: Moment, frame: Frame<'a>) -> Result<Unwrapped<'a>, End> {
        if !self.is_open {
            (self.is_open, self.next_try) = (true, None);
        }
        let message = match frame {
            Frame::Channel(number, bytes) => {
                return Ok(match self.client.peer_of(number) {
                    Some(peer) => Unwrapped::Datagram(peer, bytes),
                    None => Unwrapped::Strange,
                });
            }
            Frame::Message(message) => message,
        };
        match self.client.receive(now, message, &mut self.out) {
            Ok(Event::Allocated(relayed)) => Ok(Unwrapped::Allocated(relayed)),
            Ok(Event::Datagram(peer, bytes)) => Ok(Unwrapped::Datagram(peer, bytes)),
            Ok(Event::Denied { peer, code, words }) => {
                self.denied = Some(format!("no way to {peer}: {code} {words}"));
                Ok(Unwrapped::Nothing)
            }
            Ok(Event::Nothing) => Ok(Unwrapped::Nothing),
            Ok(Event::Strange) => Ok(Unwrapped::Strange),
            Err(error) => Err((of_turn(&error), self.explain(&error.to_string()))),
        }
    }

    /// Whether datagrams go by it.
    pub(super) fn is_in_use(&self) -> bool {
        self.client.is_allocated()
    }

    /// Wraps a datagram; it waits for [`Self::flush`].
    pub(super) fn send(&mut self, now: Moment, peer: SocketAddr, datagram: &[u8]) {
        self.client.send(now, peer, datagram, &mut self.out);
    }

    /// This is the peer that media comes from.
    pub(super) fn bind(&mut self, now: Moment, peer: SocketAddr) {
        self.client.bind(now, peer, &mut self.out);
    }

    /// Where its server is, if it is reached over the session's own socket.
    pub(super) fn socket_peer(&self) -> Option<SocketAddr> {
        (self.server.carrier() == Carrier::Udp).then_some(self.address)
    }

    /// How media goes by it, in words.
    pub(super) fn path(&self) -> &'static str {
        match self.server.carrier() {
            Carrier::Udp => "relay over UDP",
            Carrier::Tcp => "relay over TCP",
            Carrier::Tls => "relay over TLS",
        }
    }

    /// Sends what waits, unless too much does. Says how many bytes were sent.
    pub(super) fn flush(&mut self, link: &mut Outgoing<'_>) -> u64 {
        if let Some(server) = self.socket_peer() {
            let sent = self.out.len() as u64;
            for datagram in datagrams(&self.out) {
                link.send_datagrams(server, datagram, datagram.len());
            }
            self.out.clear();
            return sent;
        }
        let goes = !self.out.is_empty() && link.unsent_side() <= MOST_UNSENT;
        let sent = if goes { self.out.len() as u64 } else { 0 };
        if goes {
            link.send_side(&self.out);
        }
        self.out.clear();
        sent
    }

    /// When to call [`Self::handle_timeout`].
    pub(super) fn due(&self) -> Option<Moment> {
        [self.next_try, self.client.due()].into_iter().flatten().min()
    }

    /// Time has passed.
    pub(super) fn handle_timeout<W>(
        &mut self,
        redirects: &Redirects,
        context: &mut Context<'_, W>,
    ) -> Result<(), End> {
        let now = context.now;
        if self.next_try.take_if(|at| *at <= now).is_some() {
            self.go_on(redirects, context)?;
        }
        if self.client.due().is_some_and(|due| due <= now) {
            self.client.handle_timeout(now, &mut self.out);
        }
        Ok(())
    }

    /// Gives the allocation back.
    pub(super) fn end(&mut self, now: Moment) {
        self.client.end(now, &mut self.out);
    }

    /// The failure of a client that has waited too long for a path.
    pub(super) fn overdue(&self) -> End {
        if let Some(target) = &self.sought {
            return (Failure::ConnectTimeout, format!("the TURN server's name was not found: {target}"));
        }
        if !self.is_open && self.server.carrier() != Carrier::Udp {
            return (Failure::ConnectTimeout, self.explain("the link was not established in time"));
        }
        if !self.client.is_allocated() {
            return (Failure::HandshakeTimeout, self.explain("it did not answer in time"));
        }
        let words = self.denied.as_deref().unwrap_or("no candidate of the server answered by it in time");
        (Failure::IceTimeout, self.explain(words))
    }

    /// An error's text with the server's address before it.
    pub(super) fn explain(&self, words: &str) -> String {
        format!("TURN server {}: {words}", self.address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(urls: &[&str]) -> IceServer {
        let urls = urls.iter().map(|&url| url.to_owned()).collect();
        IceServer { urls, username: "u".to_owned(), credential: "c".to_owned() }
    }

    #[test]
    fn of_several_servers_the_one_over_tcp_is_chosen_and_one_over_udp_last() {
        let servers = [
            server(&["stun:a", "turn:b?transport=udp"]),
            server(&["turns:c", "turn:d:7?transport=tcp", "turn:e?transport=tcp"]),
        ];
        let chosen = |servers: &[IceServer]| Server::choose(servers).map(|server| server.place.to_string());
        assert_eq!(chosen(&servers).as_deref(), Ok("d:7"));
        assert_eq!(chosen(&[server(&["turn:b", "turns:c"])]).as_deref(), Ok("c:5349"));
        assert_eq!(chosen(&servers[..1]).as_deref(), Ok("b:3478"));
        for none in [&[server(&["stun:a"])][..], &[]] {
            assert!(chosen(none).unwrap_err().contains("no TURN server"));
        }
    }
}
