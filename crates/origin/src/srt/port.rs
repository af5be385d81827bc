//! The session that has the UDP port: handshakes of callers, and their connections.

use super::demuxer::Demuxer;
use super::feed::Feed;
use super::peers::Peers;
use super::wish::Wish;
use super::wrong_secrets::WrongSecrets;
use crate::fault::{LinkEnd, LinkFaults, LinkPhase, ScriptedAnswer, Subject, Why};
use crate::policy::MissingStream;
use crate::publisher::Publisher;
use crate::rtmp::retime;
use crate::worker::{CountKey, Worker};
use slab::Slab;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::{Failure, Moment};
use weir_shard::{Context, Datagrams, Incoming, Outgoing, Session, SessionId, Shard};
use weir_srt::{
    Connection, ConnectionEvent, ConnectionOptions, ConnectionRequest, Encryption, Listener, ListenerAnswer,
    Rejection,
};

/// Bytes of a payload: seven packets of MPEG-TS.
const PAYLOAD: usize = 7 * 188;
/// Deadlines of many peers that are so near to each other are served together.
const MOST_OFTEN: Duration = Duration::from_millis(1);

/// Listens for callers at an address.
pub(crate) fn open_port(shard: &mut Shard<Worker>, address: SocketAddr) -> io::Result<()> {
    let failed = |words: &str| io::Error::other(words.to_owned());
    let random = || weir_rtc::random_number().ok_or_else(|| failed("the system has no random numbers"));
    let mut secret = [0; 32];
    for part in secret.chunks_exact_mut(8) {
        part.copy_from_slice(&random()?.to_le_bytes());
    }
    let passphrase = shard.world.settings().srt_passphrase.clone();
    let options =
        ConnectionOptions { encryption: passphrase.map(Encryption::new), ..ConnectionOptions::default() };
    let port = Port {
        listener: Listener::new(options, &secret),
        peers: Peers::new(),
        wrong_secrets: WrongSecrets::default(),
        touched: VecDeque::new(),
        feeds: Slab::new(),
        wakes: Vec::new(),
        out: Vec::new(),
    };
    let opened = shard.open_datagrams(address, Box::new(port));
    opened.map(|_| ()).map_err(|error| io::Error::new(io::ErrorKind::AddrInUse, error.to_string()))
}

struct Port {
    listener: Listener,
    peers: Peers<Peer>,
    wrong_secrets: WrongSecrets,
    /// Peers to which something has happened that was not served yet.
    touched: VecDeque<usize>,
    feeds: Slab<Feed>,
    /// Viewers, of any protocol, of what publishers have brought.
    wakes: Vec<SessionId>,
    out: Vec<u8>,
}

struct Peer {
    connection: Box<Connection>,
    role: Role,
    faults: LinkFaults,
    is_touched: bool,
    is_over: bool,
}

enum Role {
    Publisher(Box<Publication>),
    /// A viewer of the feed of this key.
    Viewer(usize, CountKey),
    /// A fault has it that it is answered nothing.
    Silenced,
}

struct Publication {
    publisher: Publisher,
    demuxer: Demuxer,
    /// Acknowledgements of which it is known whether a fault keeps them back.
    ruled: u64,
}

/// What is made of a caller that wants a connection.
enum Admission {
    As(Role, LinkFaults),
    Refused(Rejection),
}

impl Port {
    fn receive(&mut self, mut datagrams: Datagrams<'_>, context: &mut Context<'_, Worker>) {
        while let Some(Incoming { arrived, source, bytes }) = datagrams.take_next() {
            let bytes = &*bytes;
            let Some(destination) = weir_srt::packet::destination(bytes) else { continue };
            if destination != 0 {
                // "If some stream addresses an existing SRT receiver by its SRT socket ID, IP, and port number, but arrives from a
                // different IP or port, the SRT receiver ignores it" (section 7).
                if let Some(key) = self.peers.of_socket(destination, source) {
                    self.hand(key, bytes, arrived);
                }
                continue;
            }
            self.out.clear();
            // Who finds no room is told so before there is anything to remember, in no more bytes than it has sent.
            if let Some(why) = self.has_no_room_for(source)
                && self.listener.refuse_induction(bytes, why, &mut self.out)
            {
                context.send_datagram(source, &self.out);
                continue;
            }
            match self.listener.handle_datagram(source, bytes, context.now, &mut self.out) {
                ListenerAnswer::Nothing => {}
                ListenerAnswer::Respond => {
                    context.send_datagram(source, &self.out);
                }
                ListenerAnswer::Request(request) => {
                    if let Some(key) = self.peers.of_caller(source, request.socket()) {
                        self.hand(key, bytes, arrived);
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

    fn hand(&mut self, key: usize, bytes: &[u8], arrived: Moment) {
        if let Some((_, peer)) = self.peers.get_mut(key) {
            peer.connection.handle_datagram(bytes, arrived);
            self.touch(key);
        }
    }

    fn touch(&mut self, key: usize) {
        if let Some((_, peer)) = self.peers.get_mut(key)
            && !std::mem::replace(&mut peer.is_touched, true)
        {
            self.touched.push_back(key);
        }
    }

    /// Why another peer from there is refused, if it is.
    fn has_no_room_for(&self, from: SocketAddr) -> Option<Rejection> {
        if self.peers.is_full_for(from) {
            return Some(Rejection::BACKLOG);
        }
        self.peers.is_short_of_memory().then_some(Rejection::RESOURCE)
    }

    /// Takes note of what a peer holds now. If all of them hold too much, those that hold most are closed: few with a long latency and a
    /// high rate, or such as acknowledge nothing, cost more than thousands of usual ones.
    fn account(&mut self, key: usize, now: Moment) {
        let Some((_, peer)) = self.peers.get_mut(key) else { return };
        let held = peer.connection.held_bytes();
        self.peers.hold(key, held);
        while let Some(heaviest) = self.peers.heaviest_of_too_much() {
            self.peers.hold(heaviest, 0);
            if let Some((_, peer)) = self.peers.get_mut(heaviest) {
                // What it was to be sent is given up with it, so that the memory is free at once.
                peer.connection.flush(&mut |_, _| 0);
                peer.connection.close(now);
                peer.is_over = true;
            }
            self.touch(heaviest);
        }
    }

    fn admit(
        &mut self,
        request: &ConnectionRequest,
        context: &mut Context<'_, Worker>,
    ) -> Result<(), Rejection> {
        let now = context.now;
        if let Some(why) = self.has_no_room_for(request.from) {
            return Err(why);
        }
        // One whose passphrase is right may come from there as well: it is not told that its own is wrong.
        if self.wrong_secrets.are_too_many_of(request.from, now) {
            return Err(Rejection::OVERLOAD);
        }
        let wish = Wish::of(&request.access())?;
        let number = context.world.accept();
        let mut faults = LinkFaults::of(&context.world.settings().faults, number);
        faults.begin(now);
        let latency = faults.latency(context.world, now);
        let random = weir_rtc::random_number().ok_or(Rejection(1_001))?;
        let accepted = match latency {
            Some(latency) => self.listener.accept_with_latency(request, latency, random, now),
            None => self.listener.accept(request, random, now),
        };
        let connection = accepted.inspect_err(|why| {
            if *why == Rejection::BAD_SECRET {
                self.wrong_secrets.add(request.from, now);
            }
        })?;
        if self.peers.has_socket(connection.socket()) {
            return Err(Rejection(1_001));
        }
        let (role, faults) = match self.role(&wish, faults, request.from, context) {
            Admission::As(role, faults) => (role, faults),
            Admission::Refused(why) => return Err(why),
        };
        let socket = connection.socket();
        let mut peer =
            Peer { connection: Box::new(connection), role, faults, is_touched: false, is_over: false };
        peer.rule_acknowledgements(context.world, now);
        let key = self.peers.insert(request.from, request.socket(), socket, peer);
        if let Some((_, Peer { role: Role::Viewer(feed, _), .. })) = self.peers.get_mut(key) {
            self.feeds[*feed].viewers.push(key);
        }
        self.touch(key);
        Ok(())
    }

    /// What a caller becomes, by what it wants and by what faults make of that.
    fn role(
        &mut self,
        wish: &Wish,
        mut faults: LinkFaults,
        from: SocketAddr,
        context: &mut Context<'_, Worker>,
    ) -> Admission {
        let (now, id) = (context.now, context.id());
        let name: Arc<str> = wish.name.as_str().into();
        let worker = &mut *context.world;
        let settings = worker.settings().clone();
        let is_live = settings.registry.is_live(&name);
        let publishes = wish.publishes.unwrap_or(!is_live);
        let mut asked =
            vec![(LinkPhase::Accept, None), (LinkPhase::Handshake, None), (LinkPhase::Connect, None)];
        let (phase, subject) = if publishes {
            (LinkPhase::Publish, Subject::Publisher(settings.registry.next_publisher()))
        } else {
            (LinkPhase::Play, Subject::Viewer(settings.next_viewer()))
        };
        asked.push((phase, Some(subject.clone())));
        for (phase, who) in asked {
            match faults.answer(phase, who, None, worker, now) {
                None => {}
                Some(ScriptedAnswer::Nothing) => return Admission::As(Role::Silenced, faults),
                Some(ScriptedAnswer::Refusal { why, code, .. }) => {
                    // SRT has no words for a refusal, and nowhere to send a caller to.
                    let usual = match why {
                        Why::Rejected | Why::Moved { .. } => 1_002,
                        Why::Unauthorized { .. } => 2_401,
                    };
                    let code = code.and_then(|code| code.parse().ok());
                    let said = code.filter(|code| (1_000..0x8000_0000).contains(code)).unwrap_or(usual);
                    return Admission::Refused(Rejection(said));
                }
            }
        }
        match subject {
            Subject::Publisher(number) => {
                let Some(mut publisher) = Publisher::claim(&name, Some(number), retime, worker, now) else {
                    return Admission::Refused(Rejection::CONFLICT);
                };
                self.wakes.extend(publisher.flush(worker));
                let publication = Publication { publisher, demuxer: Demuxer::new(), ruled: 0 };
                Admission::As(Role::Publisher(Box::new(publication)), faults)
            }
            Subject::Viewer(number) => {
                if !is_live && settings.missing_stream == MissingStream::Refuse {
                    return Admission::Refused(Rejection::NOT_FOUND);
                }
                let stream = worker.stream_of(&name);
                let known = self.feeds.iter().find(|(_, feed)| feed.key == stream).map(|(key, _)| key);
                let feed = known.unwrap_or_else(|| {
                    worker.follow(stream, id);
                    self.feeds.insert(Feed::new(stream, worker))
                });
                Admission::As(Role::Viewer(feed, worker.count_viewer(number, from, &name)), faults)
            }
            Subject::Link(_) | Subject::Stream(_) => Admission::Refused(Rejection(1_001)),
        }
    }

    /// Takes what publishers have brought, sends what waits, and removes those that are gone.
    fn serve(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        while let Some(key) = self.peers.take_due(now) {
            self.touch(key);
        }
        let (worker, mut link) = context.split();
        // Who holds too much is touched meanwhile, and is removed at once.
        while let Some(key) = self.touched.pop_front() {
            let Some((from, peer)) = self.peers.get_mut(key) else { continue };
            peer.is_touched = false;
            peer.serve(&mut self.wakes, worker, now);
            peer.flush(from, &mut link);
            if peer.is_over {
                self.remove(key, now, worker);
            } else {
                let deadline = peer.deadline(worker, now);
                self.peers.schedule(key, deadline);
                self.account(key, now);
            }
        }
    }

    /// Streams have gone on: viewers get what is new.
    fn go_on(&mut self, context: &mut Context<'_, Worker>) {
        let now = context.now;
        let worker = &mut *context.world;
        let feeds: Vec<usize> = self.feeds.iter().map(|(key, _)| key).collect();
        for feed in feeds {
            let bytes = self.feeds[feed].follow(worker);
            if bytes.is_empty() {
                continue;
            }
            let viewers = std::mem::take(&mut self.feeds[feed].viewers);
            for key in &viewers {
                let Some((_, peer)) = self.peers.get_mut(*key).filter(|(_, peer)| !peer.is_over) else {
                    continue;
                };
                for payload in bytes.chunks(PAYLOAD) {
                    peer.connection.send(payload, now);
                }
                if let Role::Viewer(_, counts) = peer.role {
                    worker.viewer_counts(counts).link_bytes += bytes.len() as u64;
                }
                self.touch(*key);
                self.account(*key, now);
            }
            self.feeds[feed].viewers = viewers;
        }
        self.serve(context);
    }

    fn remove(&mut self, key: usize, now: Moment, worker: &mut Worker) {
        let Some(peer) = self.peers.remove(key) else { return };
        match peer.role {
            Role::Publisher(publication) => {
                let Publication { mut publisher, mut demuxer, .. } = *publication;
                demuxer.finish(&mut |packet, opening| {
                    // It ends in any case.
                    let _ = publisher.take(packet, opening, worker, now);
                });
                self.wakes.extend(publisher.end(worker, now));
            }
            Role::Viewer(feed, counts) => {
                worker.depart(counts);
                self.feeds[feed].viewers.retain(|viewer| *viewer != key);
            }
            Role::Silenced => {}
        }
    }

    /// Lets go of streams without viewers.
    fn leave_streams(&mut self, context: &mut Context<'_, Worker>) {
        let id = context.id();
        let idle: Vec<usize> =
            self.feeds.iter().filter(|(_, feed)| feed.viewers.is_empty()).map(|(key, _)| key).collect();
        for key in idle {
            let feed = self.feeds.remove(key);
            context.world.leave(feed.key, id);
        }
    }
}

impl Peer {
    /// Takes what has come and whatever time has brought.
    fn serve(&mut self, wakes: &mut Vec<SessionId>, worker: &mut Worker, now: Moment) {
        if self.connection.poll_timeout().is_some_and(|next| next <= now) {
            self.connection.handle_timeout(now);
        }
        let mut cut = self.faults.cut(worker, now);
        match &mut self.role {
            Role::Publisher(publication) => {
                let Publication { publisher, demuxer, .. } = &mut **publication;
                self.connection.deliver(now, &mut |payload| {
                    demuxer.take(payload, &mut |packet, opening| {
                        cut = cut.or(publisher.take(packet, opening, worker, now));
                    });
                });
                publisher.release(worker, now);
                cut = cut.or(publisher.cut(worker, now));
                if publisher.is_silent(worker, now) {
                    cut = cut.or(Some(LinkEnd::Close));
                }
                wakes.extend(publisher.flush(worker));
            }
            Role::Viewer(..) | Role::Silenced => self.connection.deliver(now, &mut |_| {}),
        }
        self.rule_acknowledgements(worker, now);
        match cut {
            Some(LinkEnd::Close) => self.connection.close(now),
            // The peer is told nothing, and finds out when it has heard nothing for long enough.
            Some(LinkEnd::Reset) => self.connection.flush(&mut |_, _| 0),
            None => {}
        }
        self.is_over |= cut.is_some();
        while let Some(event) = self.connection.poll_event() {
            self.is_over |= matches!(event, ConnectionEvent::Ended(_));
        }
    }

    /// Has the next acknowledgement of a publisher sent or kept back, as its faults say.
    fn rule_acknowledgements(&mut self, worker: &mut Worker, now: Moment) {
        let Role::Publisher(publication) = &mut self.role else { return };
        let counts = self.connection.statistics();
        if publication.ruled <= counts.acknowledgements_sent + counts.acknowledgements_withheld {
            publication.ruled += 1;
            let withholds = publication.publisher.withholds_next(worker, now);
            self.connection.withhold_acknowledgements(withholds);
        }
    }

    fn flush(&mut self, from: SocketAddr, link: &mut Outgoing<'_>) {
        let is_silenced = matches!(self.role, Role::Silenced);
        // What the kernel does not take is lost, as on any link, and sent again.
        self.connection.flush(&mut |bytes, length| {
            if is_silenced { 0 } else { link.send_datagrams(from, bytes, length) }
        });
    }

    fn deadline(&mut self, worker: &Worker, now: Moment) -> Option<Moment> {
        let publisher = match &mut self.role {
            Role::Publisher(publication) => Some(publication.publisher.deadline(worker, now)),
            Role::Viewer(..) | Role::Silenced => None,
        };
        [self.connection.poll_timeout(), publisher, self.faults.next_cut()].into_iter().flatten().min()
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
        for key in self.peers.keys() {
            if let Some((_, peer)) = self.peers.get_mut(key) {
                peer.connection.close(now);
                peer.is_over = true;
            }
            self.touch(key);
        }
        self.serve(context);
        context.close();
    }

    fn handle_closed(&mut self, _: Failure, _: &str, _: &mut Context<'_, Worker>) {}

    fn after_event(&mut self, context: &mut Context<'_, Worker>) {
        self.leave_streams(context);
        let wakes = std::mem::take(&mut self.wakes);
        context.wake_all(wakes);
        let next = self.peers.next_due();
        context.set_timer(next.map(|next| next.max(context.now + MOST_OFTEN)));
    }
}
