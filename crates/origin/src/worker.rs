//! What the sessions of one worker share: the streams, the counts, and the way to the other workers.

use crate::burn::Clients;
use crate::counts::{Counts, DepartedViewers, StreamCounts, UnitCounts, ViewerCounts};
use crate::fault::{Action, Effect, Fault};
use crate::forward::{ForwardTrouble, Forwarding, Route};
use crate::hls::Shelves;
use crate::policy::{Departure, MissingStream, Patience};
use crate::protocol_states::{ProtocolState, ProtocolStates, StateMessage, StateReport};
use crate::registry::Registry;
use crate::stream::{JoinedPackets, Log, Opening, Packet, Terms};
use crate::tuner::Catalogue;
use slab::Slab;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use weir_metrics::Moment;
use weir_rtc::signalling::oven::IceServer;
use weir_shard::{MessageSender, SessionId, World};
use weir_srt::Passphrase;

/// Streams that are over and still counted.
const PAST_STREAMS_KEPT: usize = 65_536;
/// Effects of faults that are kept.
const EFFECTS_KEPT: usize = 262_144;

/// What all workers have in common.
#[derive(Debug)]
pub(crate) struct OriginSettings {
    /// For streams that peers publish.
    pub(crate) terms: Terms,
    /// What tuners play, if there are any.
    pub(crate) tuners: Option<Catalogue>,
    /// What is served of streams by HLS, if anything is.
    pub(crate) hls: Option<Shelves>,
    pub(crate) missing_stream: MissingStream,
    pub(crate) departure: Departure,
    pub(crate) patience: Patience,
    pub(crate) faults: Vec<Fault>,
    /// Viewers that are there, on whatever worker.
    pub(crate) present: AtomicU64,
    pub(crate) routes: Vec<Route>,
    pub(crate) turn: Option<IceServer>,
    /// What callers by SRT have to know.
    pub(crate) srt_passphrase: Option<Passphrase>,
    pub(crate) registry: Registry,
    /// What is kept for each viewer for ever, because of a fault.
    pub(crate) leaked: Mutex<Vec<Box<[u8]>>>,
    /// Viewers that are gone and still counted one by one, of each worker.
    pub(crate) departed_kept: usize,
    /// Events that the origin's owner has not taken yet; rare, and bounded.
    pub(crate) troubles: Mutex<Vec<ForwardTrouble>>,
}

/// The most errors that wait for the origin's owner.
const MOST_TROUBLES: usize = 100;

impl OriginSettings {
    pub(crate) fn report_trouble(&self, trouble: ForwardTrouble) {
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        if troubles.len() < MOST_TROUBLES {
            troubles.push(trouble);
        }
    }

    /// Gives a viewer its number when it comes.
    pub(crate) fn next_viewer(&self) -> u64 {
        for fault in &self.faults {
            if let Action::Leak { bytes } = fault.action {
                let mut leaked = self.leaked.lock().unwrap_or_else(PoisonError::into_inner);
                // Written to, so that the kernel has to give its pages.
                leaked.push(vec![0x5A; bytes].into_boxed_slice());
            }
        }
        self.registry.next_viewer()
    }

    fn terms(&self, name: &str) -> Terms {
        match &self.tuners {
            Some(tuners) if tuners.station_of(name).is_some() => tuners.terms,
            _ => self.terms,
        }
    }
}

/// What one thread of an origin sends to another.
#[derive(Debug)]
pub struct Post(pub(crate) Message);

/// What workers tell each other, and the origin's owner them.
#[derive(Debug)]
pub(crate) enum Message {
    /// These are the other workers.
    Peers(Vec<MessageSender<Post>>),
    /// A publication began on another worker.
    Begin { name: Arc<str>, publication: u64 },
    /// Packets of one.
    Packets { publication: u64, packets: Vec<Arrival> },
    /// A publication on another worker is over.
    End { publication: u64 },
    /// What a session of some protocol tells the other workers; it may concern a peer of yours.
    OfProtocol(StateMessage),
    /// What has been counted?
    Report(Sender<Report>),
    /// The worker has to end.
    Stop,
}

/// What a thread of the origin has counted.
#[derive(Debug, Default)]
pub(crate) struct Report {
    pub(crate) counts: Counts,
    pub(crate) effects: Vec<Effect>,
    /// What each protocol tells of its own.
    pub(crate) states: Vec<StateReport>,
}

/// A packet that came, from a publisher or another worker.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) arrived: Moment,
    pub(crate) packet: Packet,
    pub(crate) opening: Option<Arc<Opening>>,
}

/// Names a stream of one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamKey(usize);

/// Names a viewer's counts on one worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CountKey(usize);

/// One stream on one worker.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) terms: Terms,
    counts: StreamCounts,
    pub(crate) log: Log,
    joined: JoinedPackets,
    /// The latest publication, and whether it goes on.
    pub(crate) publication: u64,
    pub(crate) live: bool,
    viewers: BTreeSet<SessionId>,
    /// Viewers that cannot go on before a keyframe or another change.
    waiting: Vec<SessionId>,
    /// Sessions that wait for something new of the stream by HLS, and the version that they have seen.
    await_segments: Vec<(SessionId, u64)>,
    /// What viewers have to be woken for.
    news: News,
    /// The session that is woken for each packet, although packets are merged for others; and whether a packet has come.
    follower: Option<SessionId>,
    fresh: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum News {
    None,
    Keyframe,
    Packets,
    Change,
}

/// What plays on a worker without a link of its own, as tuners do.
pub(crate) trait Source {
    /// When it is to play next.
    fn due(&self) -> Moment;

    /// Plays up to now, and says which sessions have to be woken. Gives itself back unless it is over.
    fn play(
        self: Box<Self>,
        worker: &mut Worker,
        now: Moment,
        wakes: &mut Vec<SessionId>,
    ) -> Option<Box<dyn Source>>;
}

/// The [`World`] of one worker.
pub struct Worker {
    settings: Arc<OriginSettings>,
    peers: Vec<MessageSender<Post>>,
    streams: Slab<Stream>,
    names: HashMap<Arc<str>, StreamKey>,
    /// Publications under way, those of other workers included.
    publications: HashMap<u64, StreamKey>,
    links: u64,
    /// Publishers that send to sessions of this worker.
    publishers: usize,
    viewers: Slab<ViewerCounts>,
    departed: Vec<ViewerCounts>,
    /// Those beyond.
    departed_sum: DepartedViewers,
    past_streams: HashMap<Arc<str>, StreamCounts>,
    effects: Vec<Effect>,
    pub(crate) forwardings: Vec<Forwarding>,
    pub(crate) sources: Vec<Box<dyn Source>>,
    /// What protocols keep here of their own.
    states: ProtocolStates,
    pub(crate) stopping: bool,
}

impl Worker {
    pub(crate) fn new(settings: Arc<OriginSettings>) -> Self {
        Self {
            settings,
            peers: Vec::new(),
            streams: Slab::new(),
            names: HashMap::new(),
            publications: HashMap::new(),
            links: 0,
            publishers: 0,
            viewers: Slab::new(),
            departed: Vec::new(),
            departed_sum: DepartedViewers::default(),
            past_streams: HashMap::new(),
            effects: Vec::new(),
            forwardings: Vec::new(),
            sources: Vec::new(),
            states: ProtocolStates::default(),
            stopping: false,
        }
    }

    pub(crate) fn settings(&self) -> &Arc<OriginSettings> {
        &self.settings
    }

    /// Counts a link and gives it its number.
    pub fn accept(&mut self) -> u64 {
        self.links += 1;
        self.settings.registry.next_link()
    }

    /// The stream of a name, made if it is new here.
    pub(crate) fn stream_of(&mut self, name: &Arc<str>) -> StreamKey {
        if let Some(key) = self.names.get(name) {
            return *key;
        }
        let counts = self.past_streams.remove(name).unwrap_or_else(|| StreamCounts::new(name.clone()));
        let terms = self.settings.terms(name);
        let key = StreamKey(self.streams.insert(Stream {
            terms,
            counts,
            log: Log::new(terms.history),
            joined: JoinedPackets::default(),
            publication: 0,
            live: false,
            viewers: BTreeSet::new(),
            waiting: Vec::new(),
            await_segments: Vec::new(),
            news: News::None,
            follower: None,
            fresh: false,
        }));
        self.names.insert(name.clone(), key);
        key
    }

    pub(crate) fn stream(&self, key: StreamKey) -> &Stream {
        &self.streams[key.0]
    }

    /// A stream's packets, and where they are put side by side for several viewers.
    pub(crate) fn stream_to_send(&mut self, key: StreamKey) -> (&Log, &mut JoinedPackets) {
        let stream = &mut self.streams[key.0];
        (&stream.log, &mut stream.joined)
    }

    pub(crate) fn stream_counts(&mut self, key: StreamKey) -> &mut StreamCounts {
        &mut self.streams[key.0].counts
    }

    /// A publication begins, here or on another worker.
    pub(crate) fn begin(&mut self, name: &Arc<str>, publication: u64) -> StreamKey {
        let key = self.stream_of(name);
        let stream = &mut self.streams[key.0];
        self.publications.retain(|_, other| *other != key);
        self.publications.insert(publication, key);
        stream.log.clear();
        stream.publication = publication;
        stream.live = true;
        stream.news = News::Change;
        key
    }

    /// A publication that came in on this worker: counted, forwarded if that is wanted, and made known to the
    /// others.
    pub(crate) fn announce(&mut self, name: &Arc<str>, publication: u64, forwarded: bool) {
        let key = self.stream_of(name);
        let counts = self.stream_counts(key);
        counts.publications += 1;
        counts.live = true;
        for route in 0..if forwarded { self.settings.routes.len() } else { 0 } {
            self.forwardings.push(Forwarding::first(route, name.clone(), publication));
        }
        for peer in &self.peers {
            peer.post(Post(Message::Begin { name: name.clone(), publication }));
        }
    }

    /// Takes the next packet of a stream.
    pub(crate) fn push(&mut self, key: StreamKey, arrival: Arrival) {
        let stream = &mut self.streams[key.0];
        let news = if stream.terms.merge.is_zero() {
            News::Packets
        } else if arrival.packet.keyframe {
            News::Keyframe
        } else {
            News::None
        };
        stream.news = stream.news.max(news);
        stream.fresh = true;
        stream.log.push(arrival.packet, arrival.opening, arrival.arrived);
    }

    pub(crate) fn has_peers(&self) -> bool {
        !self.peers.is_empty()
    }

    /// Sends packets to the other workers.
    pub(crate) fn ship(&self, publication: u64, packets: Vec<Arrival>) {
        if let Some((last, others)) = self.peers.split_last() {
            for peer in others {
                peer.post(Post(Message::Packets { publication, packets: packets.clone() }));
            }
            last.post(Post(Message::Packets { publication, packets }));
        }
    }

    /// A publication is over, here or on another worker. Its packets stay for viewers that have not had them.
    pub(crate) fn end(&mut self, publication: u64) {
        if let Some(key) = self.publications.remove(&publication) {
            let stream = &mut self.streams[key.0];
            stream.live = false;
            stream.news = News::Change;
            stream.counts.live = false;
        }
    }

    /// Makes the end of a publication known to the other workers.
    pub(crate) fn announce_end(&self, publication: u64) {
        for peer in &self.peers {
            peer.post(Post(Message::End { publication }));
        }
    }

    /// Whether a publication goes on.
    pub(crate) fn is_under_way(&self, publication: u64) -> bool {
        self.publications.contains_key(&publication)
    }

    /// The viewers to be woken for what has happened to a stream.
    pub(crate) fn take_wakes(&mut self, key: StreamKey) -> Vec<SessionId> {
        let Some(stream) = self.streams.get_mut(key.0) else { return Vec::new() };
        let mut woken = Vec::new();
        if !stream.await_segments.is_empty()
            && let Some(shelves) = &self.settings.hls
        {
            let version = shelves.version(&stream.counts.name);
            let extracted = stream.await_segments.extract_if(.., |(_, seen)| *seen != version);
            woken.extend(extracted.map(|(id, _)| id));
        }
        let follower = stream.follower.filter(|_| std::mem::take(&mut stream.fresh));
        match std::mem::replace(&mut stream.news, News::None) {
            News::None => {
                woken.extend(follower);
                return woken;
            }
            News::Keyframe => woken.extend(std::mem::take(&mut stream.waiting).into_iter().chain(follower)),
            News::Packets | News::Change => {
                stream.waiting.clear();
                woken.extend(stream.viewers.iter().copied());
            }
        }
        self.forget_if_idle(key);
        woken
    }

    /// A viewer comes to a stream.
    pub(crate) fn join(&mut self, key: StreamKey, id: SessionId) {
        self.streams[key.0].viewers.insert(id);
    }

    /// A session comes to a stream that wants to be woken for each packet: one for many viewers.
    pub(crate) fn follow(&mut self, key: StreamKey, id: SessionId) {
        self.join(key, id);
        self.streams[key.0].follower = Some(id);
    }

    /// Sends what a protocol has to say to its state on all other workers.
    pub(crate) fn tell_peers(&self, message: &StateMessage) {
        self.peers.iter().for_each(|peer| peer.post(Post(Message::OfProtocol(message.clone()))));
    }

    /// What a protocol keeps here, if it does.
    pub(crate) fn state<T: ProtocolState>(&self) -> Option<&T> {
        self.states.get()
    }

    /// The same, to change.
    pub(crate) fn state_mut<T: ProtocolState>(&mut self) -> Option<&mut T> {
        self.states.get_mut()
    }

    /// Has a protocol change what it counts here.
    pub(crate) fn count<T: ProtocolState + Default>(&mut self, change: impl FnOnce(&mut T)) {
        match self.states.get_mut() {
            Some(counts) => change(counts),
            None => {
                let mut counts = Box::<T>::default();
                change(&mut counts);
                self.states.put(counts);
            }
        }
    }

    /// Takes out what a protocol keeps here, for calls that need the worker beside it; to be put back.
    pub(crate) fn take_state<T: ProtocolState>(&mut self) -> Option<Box<T>> {
        self.states.take()
    }

    /// Keeps a protocol's state here.
    pub(crate) fn put_state<T: ProtocolState>(&mut self, state: Box<T>) {
        self.states.put(state);
    }

    /// A viewer cannot go on before a keyframe: it wants to be woken then.
    pub(crate) fn wait(&mut self, key: StreamKey, id: SessionId) {
        self.streams[key.0].waiting.push(id);
    }

    /// A session waits for something newer than what it has seen of a stream by HLS: it wants to be woken then.
    pub(crate) fn await_segments(&mut self, key: StreamKey, id: SessionId, seen: u64) {
        self.streams[key.0].await_segments.push((id, seen));
    }

    /// A viewer leaves a stream.
    pub(crate) fn leave(&mut self, key: StreamKey, id: SessionId) {
        let stream = &mut self.streams[key.0];
        stream.viewers.remove(&id);
        stream.follower = stream.follower.filter(|other| *other != id);
        stream.waiting.retain(|other| *other != id);
        stream.await_segments.retain(|(other, _)| *other != id);
        self.forget_if_idle(key);
    }

    /// A stream that no one publishes or watches is kept in the counts only.
    fn forget_if_idle(&mut self, key: StreamKey) {
        let Some(stream) = self.streams.get(key.0) else { return };
        if stream.live || !stream.viewers.is_empty() {
            return;
        }
        let counts = self.streams.remove(key.0).counts;
        self.names.remove(&counts.name);
        if counts.publications > 0 && self.past_streams.len() < PAST_STREAMS_KEPT {
            self.past_streams.insert(counts.name.clone(), counts);
        }
    }

    /// Opens a viewer's counts.
    pub(crate) fn count_viewer(&mut self, number: u64, peer: SocketAddr, stream: &Arc<str>) -> CountKey {
        self.settings.present.fetch_add(1, Ordering::Relaxed);
        CountKey(self.viewers.insert(ViewerCounts {
            number,
            peer,
            stream: stream.clone(),
            present: true,
            sent: UnitCounts::default(),
            link_bytes: 0,
            skipped: 0,
            skipped_bytes: 0,
            dropped: UnitCounts::default(),
        }))
    }

    pub(crate) fn viewer_counts(&mut self, key: CountKey) -> &mut ViewerCounts {
        &mut self.viewers[key.0]
    }

    /// How many viewers and publishers this worker has.
    pub(crate) fn clients(&self) -> Clients {
        Clients { viewers: self.viewers.len(), publishers: self.publishers }
    }

    /// A publisher begins to send here.
    pub(crate) fn add_publisher(&mut self) {
        self.publishers += 1;
    }

    /// A publisher has ended.
    pub(crate) fn remove_publisher(&mut self) {
        self.publishers = self.publishers.saturating_sub(1);
    }

    /// How many viewers are there, those of other workers included.
    pub(crate) fn present(&self) -> u64 {
        self.settings.present.load(Ordering::Relaxed)
    }

    /// A viewer is gone.
    pub(crate) fn depart(&mut self, key: CountKey) {
        self.settings.present.fetch_sub(1, Ordering::Relaxed);
        let counts = self.viewers.remove(key.0);
        if self.departed.len() < self.settings.departed_kept {
            self.departed.push(ViewerCounts { present: false, ..counts });
        } else {
            self.departed_sum.add(&counts);
        }
    }

    /// Keeps what faults did.
    pub(crate) fn note(&mut self, effects: impl Iterator<Item = Effect>) {
        let room = EFFECTS_KEPT.saturating_sub(self.effects.len());
        self.effects.extend(effects.take(room));
    }
}

impl World for Worker {
    type Message = Post;

    fn receive(&mut self, Post(message): Post, now: Moment, wake: &mut Vec<SessionId>) {
        match message {
            Message::Peers(peers) => self.peers = peers,
            Message::Begin { name, publication } => {
                let key = self.begin(&name, publication);
                wake.extend(self.take_wakes(key));
            }
            Message::Packets { publication, packets } => {
                let Some(&key) = self.publications.get(&publication) else { return };
                for arrival in packets {
                    self.push(key, arrival);
                }
                wake.extend(self.take_wakes(key));
            }
            Message::End { publication } => {
                let key = self.publications.get(&publication).copied();
                self.end(publication);
                wake.extend(key.map(|key| self.take_wakes(key)).unwrap_or_default());
            }
            Message::OfProtocol(message) => {
                wake.extend(self.states.iter_mut().filter_map(|state| state.receive(&message, now)));
            }
            Message::Report(reply) => {
                let counts = Counts {
                    links: self.links,
                    viewers: self
                        .viewers
                        .iter()
                        .map(|(_, viewer)| viewer)
                        .chain(&self.departed)
                        .cloned()
                        .collect(),
                    departed: self.departed_sum,
                    streams: self
                        .streams
                        .iter()
                        .map(|(_, stream)| &stream.counts)
                        .chain(self.past_streams.values())
                        .filter(|stream| stream.publications > 0)
                        .cloned()
                        .collect(),
                };
                let states = self.states.iter().map(ProtocolState::report).collect();
                // The asker may have given up.
                let _ = reply.send(Report { counts, effects: self.effects.clone(), states });
            }
            Message::Stop => self.stopping = true,
        }
    }
}
