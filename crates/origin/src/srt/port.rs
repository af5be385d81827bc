//! The session that has the UDP port: handshakes of callers, and their connections.

use super::demuxer::Demuxer;
use super::feed::Feed;
use crate::policy::MissingStream;
use crate::publisher::Publisher;
use crate::rtmp::retime;
use crate::worker::{CountKey, Worker};
use slab::Slab;
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Datagrams, Incoming, Session, SessionId, Shard};
use weir_srt::stream_id::{AccessControl, Mode};
use weir_srt::{
    Connection, ConnectionEvent, ConnectionOptions, ConnectionRequest, Listener, ListenerAnswer, Rejection,
};

/// Connections at the most: each may hold a window of 12 MB.
const MOST_PEERS: usize = 4_096;
/// Bytes of a payload: seven packets of MPEG-TS.
const PAYLOAD: usize = 7 * 188;
/// Deadlines of many peers that are so near to each other are served together.
const MOST_OFTEN: Duration = Duration::from_millis(1);
/// The stream of a caller that names none.
const UNNAMED: &str = "live/srt";

/// Listens for callers at an address.
pub(crate) fn open_port(shard: &mut Shard<Worker>, address: SocketAddr) -> io::Result<()> {
    let failed = |words: &str| io::Error::other(words.to_owned());
    let random = || weir_rtc::random_number().ok_or_else(|| failed("the system has no random numbers"));
    let mut secret = [0; 32];
    for part in secret.chunks_exact_mut(8) {
        part.copy_from_slice(&random()?.to_le_bytes());
    }
    let port = Port {
        listener: Listener::new(ConnectionOptions::default(), &secret),
        peers: Slab::new(),
        by_socket: HashMap::new(),
        by_caller: HashMap::new(),
        feeds: Slab::new(),
        wakes: Vec::new(),
        out: Vec::new(),
    };
    let opened = shard.open_datagrams(address, Box::new(port));
    opened.map(|_| ()).map_err(|error| io::Error::new(io::ErrorKind::AddrInUse, error.to_string()))
}

struct Port {
    listener: Listener,
    peers: Slab<Peer>,
    by_socket: HashMap<u32, usize>,
    by_caller: HashMap<(SocketAddr, u32), usize>,
    feeds: Slab<Feed>,
    /// Viewers, of any protocol, of what publishers have brought.
    wakes: Vec<SessionId>,
    out: Vec<u8>,
}

struct Peer {
    from: SocketAddr,
    connection: Box<Connection>,
    role: Role,
    is_over: bool,
}

enum Role {
    Publisher(Box<(Publisher, Demuxer)>),
    /// A viewer of the feed of this key.
    Viewer(usize, CountKey),
}

/// What a caller wants, by its stream ID.
#[derive(Debug, PartialEq, Eq)]
struct Wish {
    name: String,
    publishes: Option<bool>,
}

impl Wish {
    fn of(access: &AccessControl<'_>) -> Result<Self, Rejection> {
        let resource = access.resource.unwrap_or(UNNAMED);
        let by_mode = match access.mode() {
            Ok(Some(Mode::Publish)) => Some(true),
            Ok(Some(Mode::Request)) => Some(false),
            Ok(None) => None,
            Ok(Some(Mode::Bidirectional)) | Err(_) => return Err(Rejection::BAD_MODE),
        };
        // As MediaMTX has it: `publish:NAME` and `read:NAME`.
        let (name, by_name) = match resource.split_once(':') {
            Some(("publish", name)) => (name, Some(true)),
            Some(("read" | "play" | "request", name)) => (name, Some(false)),
            _ => (resource, None),
        };
        let name = name.trim_matches('/');
        let name = if name.is_empty() { UNNAMED } else { name };
        Ok(Self { name: name.to_owned(), publishes: by_mode.or(by_name) })
    }
}

impl Port {
    fn receive(&mut self, mut datagrams: Datagrams<'_>, context: &mut Context<'_, Worker>) {
        while let Some(Incoming { arrived, source, bytes }) = datagrams.take_next() {
            let bytes = &*bytes;
            let Some(destination) =
                bytes.get(12..16).and_then(<[u8]>::first_chunk).map(|it| u32::from_be_bytes(*it))
            else {
                continue;
            };
            if destination != 0 {
                // "If some stream addresses an existing SRT receiver by its SRT socket ID, IP, and port number, but arrives from a
                // different IP or port, the SRT receiver ignores it" (section 7).
                let peer = self.by_socket.get(&destination).and_then(|at| self.peers.get_mut(*at));
                if let Some(peer) = peer.filter(|peer| peer.from == source) {
                    peer.connection.handle_datagram(bytes, arrived);
                }
                continue;
            }
            self.out.clear();
            match self.listener.handle_datagram(source, bytes, context.now, &mut self.out) {
                ListenerAnswer::Nothing => {}
                ListenerAnswer::Respond => {
                    context.send_datagram(source, &self.out);
                }
                ListenerAnswer::Request(request) => {
                    let known = self.by_caller.get(&(source, request.socket()));
                    if let Some(peer) = known.and_then(|at| self.peers.get_mut(*at)) {
                        peer.connection.handle_datagram(bytes, arrived);
                    } else if let Err(why) = self.admit(&request, context) {
                        self.out.clear();
                        self.listener.reject(&request, why, &mut self.out);
                        context.send_datagram(source, &self.out);
                    }
                }
            }
        }
        self.serve(context);
    }

    fn admit(
        &mut self,
        request: &ConnectionRequest,
        context: &mut Context<'_, Worker>,
    ) -> Result<(), Rejection> {
        let (now, id) = (context.now, context.id());
        if self.peers.len() >= MOST_PEERS {
            return Err(Rejection::BACKLOG);
        }
        let wish = Wish::of(&request.access())?;
        let random = weir_rtc::random_number().ok_or(Rejection(1_001))?;
        let connection = Box::new(self.listener.accept(request, random, now)?);
        let (name, worker): (Arc<str>, _) = (wish.name.as_str().into(), &mut *context.world);
        let settings = worker.settings().clone();
        let is_live = settings.registry.is_live(&name);
        let number = worker.accept();
        let role = if wish.publishes.unwrap_or(!is_live) {
            let mut publisher =
                Publisher::claim(&name, Some(number), retime, worker, now).ok_or(Rejection::CONFLICT)?;
            self.wakes.extend(publisher.flush(worker));
            Role::Publisher(Box::new((publisher, Demuxer::new())))
        } else {
            if !is_live && settings.missing_stream == MissingStream::Refuse {
                return Err(Rejection::NOT_FOUND);
            }
            let key = worker.stream_of(&name);
            let known = self.feeds.iter().find(|(_, feed)| feed.key == key).map(|(at, _)| at);
            let feed = known.unwrap_or_else(|| {
                worker.follow(key, id);
                self.feeds.insert(Feed::new(key, worker))
            });
            self.feeds[feed].viewers += 1;
            Role::Viewer(feed, worker.count_viewer(settings.next_viewer(), request.from, &name))
        };
        let (socket, caller) = (connection.socket(), (request.from, request.socket()));
        let at = self.peers.insert(Peer { from: request.from, connection, role, is_over: false });
        self.by_socket.insert(socket, at);
        self.by_caller.insert(caller, at);
        Ok(())
    }

    /// Takes what publishers have brought, sends what waits, and removes those that are gone.
    fn serve(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        let mut gone = Vec::new();
        let (worker, mut link) = context.split();
        for (at, peer) in &mut self.peers {
            if peer.connection.poll_timeout().is_some_and(|next| next <= now) {
                peer.connection.handle_timeout(now);
            }
            let mut cut = None;
            match &mut peer.role {
                Role::Publisher(role) => {
                    let (publisher, demuxer) = &mut **role;
                    peer.connection.deliver(now, &mut |payload| {
                        demuxer.take(payload, &mut |packet, opening| {
                            cut = cut.or(publisher.take(packet, opening, worker, now));
                        });
                    });
                    publisher.release(worker, now);
                    cut = cut.or(publisher.cut(worker, now));
                    self.wakes.extend(publisher.flush(worker));
                }
                Role::Viewer(..) => peer.connection.deliver(now, &mut |_| {}),
            }
            if cut.is_some() {
                peer.connection.close(now);
                peer.is_over = true;
            }
            while let Some(event) = peer.connection.poll_event() {
                peer.is_over |= matches!(event, ConnectionEvent::Ended(_));
            }
            let from = peer.from;
            peer.connection.flush(&mut |bytes, length| {
                // What the kernel does not take is lost, as on any link, and sent again.
                link.send_datagrams(from, bytes, length);
            });
            if peer.is_over {
                gone.push(at);
            }
        }
        for at in gone {
            self.remove(at, now, worker);
        }
    }

    /// Streams have gone on: viewers get what is new.
    fn go_on(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        let worker = &mut *context.world;
        let news: Vec<(usize, Vec<u8>)> =
            self.feeds.iter_mut().map(|(at, feed)| (at, feed.follow(worker))).collect();
        for (_, peer) in &mut self.peers {
            let Role::Viewer(feed, counts) = peer.role else { continue };
            let Some((_, bytes)) = news.iter().find(|(at, bytes)| *at == feed && !bytes.is_empty()) else {
                continue;
            };
            for payload in bytes.chunks(PAYLOAD) {
                peer.connection.send(payload, now);
            }
            worker.viewer_counts(counts).link_bytes += bytes.len() as u64;
        }
        self.serve(context);
    }

    fn remove(&mut self, at: usize, now: Moment, worker: &mut Worker) {
        let peer = self.peers.remove(at);
        self.by_socket.remove(&peer.connection.socket());
        self.by_caller.remove(&(peer.from, peer.connection.peer_socket()));
        match peer.role {
            Role::Publisher(role) => {
                let (mut publisher, mut demuxer) = *role;
                demuxer.finish(&mut |packet, opening| {
                    // It ends in any case.
                    let _ = publisher.take(packet, opening, worker, now);
                });
                self.wakes.extend(publisher.end(worker, now));
            }
            Role::Viewer(feed, counts) => {
                worker.depart(counts);
                self.feeds[feed].viewers -= 1;
            }
        }
    }

    /// Lets go of streams without viewers.
    fn leave_streams(&mut self, context: &mut Context<'_, Worker>) {
        let id = context.id();
        let idle: Vec<usize> =
            self.feeds.iter().filter(|(_, feed)| feed.viewers == 0).map(|(at, _)| at).collect();
        for at in idle {
            let feed = self.feeds.remove(at);
            context.world.leave(feed.key, id);
        }
    }
}

impl Session<Worker> for Port {
    fn handle_datagrams(&mut self, datagrams: Datagrams<'_>, context: &mut Context<'_, Worker>) {
        self.receive(datagrams, context);
    }

    fn handle_timeout(&mut self, context: &mut Context<'_, Worker>) {
        self.serve(context);
    }

    fn handle_woken(&mut self, context: &mut Context<'_, Worker>) {
        self.go_on(context);
    }

    fn handle_stop(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        for (_, peer) in &mut self.peers {
            peer.connection.close(now);
            peer.is_over = true;
        }
        self.serve(context);
        context.close();
    }

    fn handle_closed(&mut self, _: Failure, _: &str, _: &mut Context<'_, Worker>) {}

    fn after_event(&mut self, context: &mut Context<'_, Worker>) {
        self.leave_streams(context);
        let wakes = std::mem::take(&mut self.wakes);
        context.wake_all(wakes);
        let next = self.peers.iter().filter_map(|(_, peer)| peer.connection.poll_timeout()).min();
        context.set_timer(next.map(|next| next.max(context.now + MOST_OFTEN)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_caller_wants_is_in_its_stream_id() {
        let wish = |text: &str| Wish::of(&AccessControl::parse(text)).map(|wish| (wish.name, wish.publishes));
        for (text, name, publishes) in [
            ("#!::r=live/a,m=publish", "live/a", Some(true)),
            ("#!::r=/live/a,m=request", "live/a", Some(false)),
            ("publish:live/a", "live/a", Some(true)),
            ("read:live/a", "live/a", Some(false)),
            ("live/a", "live/a", None),
            ("", UNNAMED, None),
        ] {
            assert_eq!(wish(text), Ok((name.to_owned(), publishes)), "{text}");
        }
        assert_eq!(wish("#!::r=a,m=bidirectional"), Err(Rejection::BAD_MODE));
    }
}
