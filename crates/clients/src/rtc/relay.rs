//! A client's way by a TURN server: over TCP, beside its signalling.

use super::refusal::of_turn;
use crate::client_session::End;
use crate::redirect::{Redirect, Redirects};
use crate::target::{Link, Scheme, Target};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_rtc::signalling::oven::IceServer;
use weir_rtc::turn::{Carrier, Client, Event, Frame, Frames, TurnServer};
use weir_shard::{Context, Endpoint, OpenError, Outgoing};

/// The scheme under which names of servers are sought.
pub(super) const SCHEMES: &[Scheme] = &[Scheme { name: "turn", port: 3478, link: Link::Tcp }];

/// How long a link to one address may take while there is another to try.
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
    /// The first server of the signalling's list that is reached over TCP, or why none can be used.
    pub(super) fn choose(servers: &[IceServer]) -> Result<Self, &'static str> {
        let places = servers.iter().flat_map(|server| server.urls.iter().map(move |url| (server, url)));
        let places: Vec<(&IceServer, TurnServer)> =
            places.filter_map(|(server, url)| Some((server, url.parse().ok()?))).collect();
        match places.iter().find(|(_, place)| place.carrier == Carrier::Tcp) {
            Some((server, place)) => Ok(Self {
                place: place.clone(),
                username: server.username.clone(),
                credential: server.credential.clone(),
            }),
            None if places.is_empty() => Err("the server names no TURN server"),
            None => Err("the server names TURN servers over UDP or TLS only; weir speaks TURN over TCP"),
        }
    }
}

/// What came out of a frame.
#[derive(Debug)]
pub(super) enum Unwrapped<'a> {
    /// A datagram, and who sent it.
    Datagram(SocketAddr, &'a mut [u8]),
    /// Others reach us at this address now.
    Allocated(SocketAddr),
    /// Nothing to be told.
    Nothing,
    /// A frame of nobody we know.
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
    is_open: bool,
    /// When to try the next address, or ask for the name again.
    next_try: Option<Moment>,
    /// What the server said of a peer that it does not allow.
    denied: Option<String>,
    out: Vec<u8>,
}

impl Relay {
    /// Begins to connect. The server is where signalling is (`home`, called `name` there) if it does not say where, or
    /// cannot be reached where it says.
    pub(super) fn begin<W>(
        server: Server,
        home: IpAddr,
        name: &str,
        redirects: &Redirects,
        context: &mut Context<'_, W>,
    ) -> Result<Self, End> {
        let TurnServer { host, port, .. } = &server.place;
        let home = SocketAddr::new(home, *port);
        let mut addresses = vec![home];
        let mut sought = None;
        if let Some(host) = host.as_deref().filter(|host| !host.eq_ignore_ascii_case(name)) {
            match host.parse::<IpAddr>() {
                Ok(address) if address == home.ip() => {}
                Ok(address) => addresses.push(SocketAddr::new(address, *port)),
                Err(_) => sought = Target::parse(&format!("turn://{}", server.place), "play", SCHEMES).ok(),
            }
        }
        let mut relay = Self {
            client: Client::new(&server.username, &server.credential),
            server,
            frames: Frames::default(),
            addresses,
            sought,
            address: home,
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
        if let Some(target) = &self.sought {
            match redirects.find(target) {
                Redirect::Sought => {
                    self.next_try = Some(context.now + AGAIN);
                    return Ok(());
                }
                Redirect::Found(endpoint) => self.addresses.push(endpoint.address),
                // Signalling's own address is left.
                Redirect::None(_) => {}
            }
            self.sought = None;
        }
        let Some(address) = self.addresses.pop() else { return Ok(()) };
        self.address = address;
        self.frames = Frames::default();
        self.client = Client::new(&self.server.username, &self.server.credential);
        self.next_try = (!self.addresses.is_empty()).then(|| context.now + PATIENCE);
        let failed = |OpenError { failure, words }| (failure, self.explain(&words));
        context.open_side(&Endpoint::tcp(address)).map_err(failed)
    }

    /// The link to the server is there.
    pub(super) fn connected<W>(&mut self, context: &mut Context<'_, W>) -> u64 {
        self.is_open = true;
        self.next_try = None;
        self.client.begin(&mut self.out);
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

    /// Takes a frame apart. What is to be answered waits for [`Self::flush`].
    pub(super) fn unwrap<'a>(&mut self, now: Moment, frame: Frame<'a>) -> Result<Unwrapped<'a>, End> {
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

    /// Sends what waits, unless too much does. Says how many bytes were sent.
    pub(super) fn flush(&mut self, link: &mut Outgoing<'_>) -> u64 {
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
    pub(super) fn end(&mut self) {
        self.client.end(&mut self.out);
    }

    /// The failure of a client that has waited too long for a path.
    pub(super) fn overdue(&self) -> End {
        if let Some(target) = &self.sought {
            return (Failure::ConnectTimeout, format!("the TURN server's name was not found: {target}"));
        }
        if !self.is_open {
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
    fn a_server_over_tcp_is_chosen() {
        let servers =
            [server(&["stun:a", "turn:b?transport=udp"]), server(&["turns:c", "turn:d:7?transport=tcp"])];
        assert_eq!(
            Server::choose(&servers).ok().map(|server| server.place.to_string()).as_deref(),
            Some("d:7")
        );
        let none = |servers: &[IceServer]| Server::choose(servers).err().unwrap();
        assert!(none(&servers[..1]).contains("weir speaks TURN over TCP"));
        assert!(
            none(&[server(&["stun:a"])]).contains("no TURN server") && none(&[]).contains("no TURN server")
        );
    }
}
