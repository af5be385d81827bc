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
const ADDRESS_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a name that is being sought is asked for.
const AGAIN: Duration = Duration::from_millis(20);
/// Bytes that may wait for a server that does not read; what comes then is gone, as datagrams are.
const MOST_UNSENT: usize = 256 << 10;

/// Servers of one list that are tried: browsers warn of five and more. And places that are looked at to find them.
const MOST_SERVERS: usize = 8;
const MOST_LISTED: usize = 64;

/// A TURN server that can be used.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Server {
    place: TurnServer,
    username: String,
    credential: String,
}

impl Server {
    /// The servers that signalling names, in the order in which they are tried, or why none of them can be used.
    pub(super) fn all(servers: &[IceServer]) -> Result<Vec<Self>, &'static str> {
        let places = servers.iter().flat_map(|server| server.urls.iter().map(move |url| (server, url)));
        let places = places.take(MOST_LISTED);
        let places = places.filter_map(|(server, url)| Some((server, url.parse::<TurnServer>().ok()?)));
        let mut all: Vec<Self> = Vec::new();
        for (server, place) in places {
            let server =
                Self { place, username: server.username.clone(), credential: server.credential.clone() };
            if !all.contains(&server) {
                all.push(server);
            }
        }
        all.sort_by_key(|server| CARRIERS.iter().position(|carrier| *carrier == server.carrier()));
        all.truncate(MOST_SERVERS);
        if all.is_empty() { Err("the server names no TURN server") } else { Ok(all) }
    }

    /// What it is reached over.
    pub(super) fn carrier(&self) -> Carrier {
        self.place.carrier
    }
}

/// What came out of a frame.
#[derive(Debug)]
pub(super) enum RelayedFrame<'a> {
    /// A datagram, and its sender.
    Datagram(SocketAddr, &'a mut [u8]),
    /// Others reach us at this address now.
    Allocated(SocketAddr),
    /// Nothing for the client.
    Nothing,
    /// A frame that neither the server nor a known peer sent.
    Strange,
}

/// Where signalling is.
pub(super) struct Home {
    pub(super) address: IpAddr,
    /// What it is called in the URL.
    pub(super) name: String,
}

/// A relay, from the search for its server to the end.
pub(super) struct Relay {
    home: Home,
    server: Server,
    /// Those to try behind it, the next one at the end.
    rest: Vec<Server>,
    /// What became of those before it.
    left: Vec<End>,
    /// What became of it where it says that it is, while it is sought where signalling is.
    missed: Option<End>,
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
    has_taken_over: bool,
    /// When to try the next address or server, or ask for the name again.
    next_try: Option<Moment>,
    /// What the server said of a peer that it does not allow.
    denied: Option<String>,
    out: Vec<u8>,
}

impl Relay {
    /// Begins to connect to the first of these servers; there is one at least. A server is where signalling is if it does not
    /// say where, or cannot be reached where it says. Over UDP the session must have its socket.
    pub(super) fn begin<W>(
        mut servers: Vec<Server>,
        home: Home,
        redirects: &Redirects,
        context: &mut Context<'_, W>,
    ) -> Result<Self, End> {
        servers.reverse();
        let server = servers.pop().ok_or((Failure::Rejected, "there is no TURN server".to_owned()))?;
        let mut relay = Self {
            client: Client::new(&server.username, &server.credential, server.carrier()),
            address: SocketAddr::new(home.address, server.place.port),
            home,
            server,
            rest: servers,
            left: Vec::new(),
            missed: None,
            frames: Frames::default(),
            addresses: Vec::new(),
            sought: None,
            transport: Transport::Tcp,
            is_open: false,
            has_taken_over: false,
            next_try: None,
            denied: None,
            out: Vec::new(),
        };
        relay.seek();
        relay.go_on(redirects, context)?;
        Ok(relay)
    }

    /// Where the server may be.
    fn seek(&mut self) {
        let TurnServer { host, port, carrier } = &self.server.place;
        let home = SocketAddr::new(self.home.address, *port);
        self.addresses = vec![home];
        self.sought = None;
        let elsewhere = host.as_deref().filter(|host| !host.eq_ignore_ascii_case(&self.home.name));
        if *carrier == Carrier::Tls {
            // Its certificate is checked, so that an address alone is not enough.
            let host = Some(elsewhere.unwrap_or(&self.home.name).to_owned());
            let place = TurnServer { host, ..self.server.place.clone() };
            self.sought = Target::parse(&format!("turns://{place}"), "play", SCHEMES).ok();
        } else if let Some(host) = elsewhere {
            match host.parse::<IpAddr>() {
                Ok(address) if address == home.ip() => {}
                Ok(address) => self.addresses.push(SocketAddr::new(address, *port)),
                Err(_) => {
                    self.sought =
                        Target::parse(&format!("turn://{}", self.server.place), "play", SCHEMES).ok();
                }
            }
        }
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
                Redirect::None(words) => {
                    let missed = (Failure::ConnectTimeout, words);
                    // Without the server's name its certificate cannot be checked.
                    if carrier == Carrier::Tls {
                        self.sought = None;
                        self.addresses.clear();
                        return self.failed(missed, redirects, context);
                    }
                    // Signalling's own address is left.
                    self.missed = Some(missed);
                }
            }
            self.sought = None;
        }
        let Some(address) = self.addresses.pop() else { return Ok(()) };
        self.address = address;
        self.frames = Frames::default();
        self.client = Client::new(&self.server.username, &self.server.credential, carrier);
        self.is_open = false;
        self.next_try = self.patience(context.now);
        if carrier == Carrier::Udp {
            self.client.begin(context.now, &mut self.out);
            self.flush(&mut context.split().1);
            return Ok(());
        }
        let endpoint = Endpoint { transport: self.transport.clone(), ..Endpoint::tcp(address) };
        match context.open_side(&endpoint) {
            Ok(()) => Ok(()),
            Err(OpenError { failure, words }) => self.failed((failure, words), redirects, context),
        }
    }

    /// Until when the server may take for the step that it is at, if there is anything else to try.
    fn patience(&self, now: Moment) -> Option<Moment> {
        let is_last = self.rest.is_empty() && (self.addresses.is_empty() || self.is_open);
        (!is_last).then(|| now + ADDRESS_TIMEOUT)
    }

    /// The server, at the address that was tried, is of no use: tries the next address, or the next server.
    ///
    /// # Errors
    /// No relay is left. What became of each is said.
    pub(super) fn failed<W>(
        &mut self,
        end: End,
        redirects: &Redirects,
        context: &mut Context<'_, W>,
    ) -> Result<(), End> {
        if !self.is_open && !self.addresses.is_empty() {
            self.missed.get_or_insert(end);
            return self.go_on(redirects, context);
        }
        let end = self.missed.take().unwrap_or(end);
        self.left.push(self.named(end));
        let Some(server) = self.rest.pop() else { return Err(verdict(&self.left)) };
        // It may have given an allocation that leads nowhere.
        self.client.end(context.now, &mut self.out);
        self.flush(&mut context.split().1);
        context.close_side();
        (self.server, self.transport, self.is_open, self.denied) = (server, Transport::Tcp, false, None);
        self.seek();
        self.go_on(redirects, context)
    }

    /// There is a path by it: no other is tried, and no other is spoken of.
    pub(super) fn stay(&mut self) {
        self.next_try = None;
        (self.rest, self.left) = (Vec::new(), Vec::new());
    }

    /// What became of the server, with its place as signalling says it before it.
    fn named(&self, (failure, words): End) -> End {
        let place = match &self.server.place.host {
            Some(_) => self.server.place.to_string(),
            None => SocketAddr::new(self.home.address, self.server.place.port).to_string(),
        };
        (failure, format!("{place}: {words}"))
    }

    /// The link to the server is there.
    pub(super) fn connected<W>(&mut self, context: &mut Context<'_, W>) -> u64 {
        self.is_open = true;
        self.next_try = self.patience(context.now);
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
        let words = if words.is_empty() { "it closed the link" } else { words };
        self.failed((failure, words.to_owned()), redirects, context)
    }

    /// What takes the frames off the link, to be given back with [`Self::put_back`].
    pub(super) fn take_frames(&mut self) -> Frames {
        std::mem::take(&mut self.frames)
    }

    pub(super) fn put_back(&mut self, frames: Frames) {
        // What the link to another server has left over is of no use.
        if self.is_open {
            self.frames = frames;
        }
    }

    /// Whether a datagram from there is the server's.
    #[inline]
    pub(super) fn takes_datagrams_of(&self, source: SocketAddr) -> bool {
        self.server.carrier() == Carrier::Udp && source == self.address
    }

    /// Takes a frame apart. What is to be answered waits for [`Self::flush`].
    pub(super) fn unwrap<'a>(&mut self, now: Moment, frame: Frame<'a>) -> Result<RelayedFrame<'a>, End> {
        if !self.is_open {
            self.is_open = true;
            self.next_try = self.patience(now);
        }
        let message = match frame {
            Frame::Channel(number, bytes) => {
                return Ok(match self.client.peer_of(number) {
                    Some(peer) => RelayedFrame::Datagram(peer, bytes),
                    None => RelayedFrame::Strange,
                });
            }
            Frame::Message(message) => message,
        };
        match self.client.receive(now, message, &mut self.out) {
            Ok(Event::Allocated(relayed)) => {
                self.next_try = self.patience(now);
                self.has_taken_over = true;
                Ok(RelayedFrame::Allocated(relayed))
            }
            Ok(Event::Datagram(peer, bytes)) => Ok(RelayedFrame::Datagram(peer, bytes)),
            Ok(Event::Denied { peer, code, words }) => {
                self.denied = Some(format!("no way to {peer}: {code} {words}"));
                Ok(RelayedFrame::Nothing)
            }
            Ok(Event::Nothing) => Ok(RelayedFrame::Nothing),
            Ok(Event::Strange) => Ok(RelayedFrame::Strange),
            Err(error) => Err((of_turn(&error), error.to_string())),
        }
    }

    /// Whether datagrams go by it: there was an allocation, if only of a server that was tried before.
    pub(super) fn is_in_use(&self) -> bool {
        self.has_taken_over
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
            if self.sought.is_some() {
                self.go_on(redirects, context)?;
            } else {
                self.failed(self.unanswered(), redirects, context)?;
            }
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
        let mut tried = self.left.clone();
        tried.push(self.named(self.missed.clone().unwrap_or_else(|| self.unanswered())));
        verdict(&tried)
    }

    /// What the server has not done in time.
    fn unanswered(&self) -> End {
        if self.sought.is_some() {
            return (Failure::ConnectTimeout, "its name was not found in time".to_owned());
        }
        if !self.is_open && self.server.carrier() != Carrier::Udp {
            return (Failure::ConnectTimeout, "the link was not established in time".to_owned());
        }
        if !self.client.is_allocated() {
            return (Failure::HandshakeTimeout, "it did not answer in time".to_owned());
        }
        let words = self.denied.as_deref().unwrap_or("no candidate of the server answered by it in time");
        (Failure::IceTimeout, words.to_owned())
    }
}

/// What became of all servers that were tried, as the failure of the first, which is the preferred one.
fn verdict(tried: &[End]) -> End {
    let failure = tried.first().map_or(Failure::ConnectTimeout, |(failure, _)| *failure);
    let words: Vec<&str> = tried.iter().map(|(_, words)| &**words).collect();
    match &words[..] {
        [only] => (failure, format!("TURN server {only}")),
        all => (failure, format!("no way by {} TURN servers: {}", all.len(), all.join("; "))),
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
    fn of_several_servers_those_over_tcp_are_tried_first_and_those_over_udp_last() {
        let servers = [
            server(&["stun:a", "turn:b?transport=udp"]),
            server(&["turns:c", "turn:d:7?transport=tcp", "turn:e?transport=tcp"]),
        ];
        let all = |servers: &[IceServer]| {
            let all = Server::all(servers)?;
            Ok::<_, &str>(all.iter().map(|server| server.place.to_string()).collect::<Vec<_>>().join(" "))
        };
        assert_eq!(all(&servers).as_deref(), Ok("d:7 e:3478 c:5349 b:3478"));
        assert_eq!(all(&[server(&["turn:b", "turns:c", "turn:b"])]).as_deref(), Ok("c:5349 b:3478"));
        assert_eq!(all(&servers[..1]).as_deref(), Ok("b:3478"));
        for none in [&[server(&["stun:a"])][..], &[]] {
            assert!(all(none).unwrap_err().contains("no TURN server"));
        }
        let many: Vec<String> = (0..1_000).map(|at| format!("turn:h{at}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(Server::all(&[server(&many)]).map(|all| all.len()), Ok(MOST_SERVERS));
    }
}
