//! What the WebRTC sessions of one worker share: the port, and the viewers and publishers behind it.

use super::channel::{Channel, Service};
use super::counts::Counts;
use super::feed::{Feed, TrackKind};
use super::ingest::Ingest;
use super::outbox::Outbox;
use super::peer::{Peer, Track};
use crate::fault::{Script, Subject};
use crate::protocol_states::{ProtocolState, StateMessage, StateReport};
use crate::publisher::Publisher;
use crate::worker::Worker;
use slab::Slab;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use weir_metrics::Moment;
use weir_rtc::sdp::{Agreement, Description, MediaKind};
use weir_rtc::transport::{Certificate, Clock, Transport, addressed_user_fragment};
use weir_rtc::{Datagram, transport};
use weir_shard::{Datagrams, Incoming, Outgoing, SessionId};

/// Names of streams without sound that are kept.
const MUTE_KEPT: usize = 1_024;
/// The least time between two keyframes that viewers of one stream have its publisher asked for.
const KEYFRAMES_APART: Duration = Duration::from_secs(1);

/// The hub of a worker.
pub(crate) struct Hub {
    /// The session that has the port.
    pub(super) port: SessionId,
    /// Where media goes out; of an unspecified address the port alone is meant.
    pub(super) local: SocketAddr,
    pub(super) certificate: Certificate,
    pub(super) clock: Clock,
    pub(crate) counts: Counts,
    feeds: Slab<Feed>,
    peers: Slab<Peer>,
    ingests: Slab<Ingest>,
    by_address: HashMap<SocketAddr, PeerRef>,
    by_fragment: HashMap<String, PeerRef>,
    by_session: HashMap<u64, PeerRef>,
    outbox: Outbox,
    /// Sessions that have to be woken: viewers, of any protocol, of what publishers have brought.
    pub(super) wakes: Vec<SessionId>,
    /// Streams whose sound was left out.
    mute: BTreeSet<Arc<str>>,
    /// When [`Self::handle_timeout`] is to be called.
    pub(super) next: Option<Moment>,
}

/// Names a peer of this hub: its key among the viewers or among the publishers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerRef {
    Viewer(usize),
    Publisher(usize),
}

/// A peer that comes, as signalling has made it.
pub(super) struct NewPeer {
    pub(super) transport: Transport,
    pub(super) agreed: Vec<Agreement>,
    /// Our sources: of pictures, of sound; of reports to a publisher the first.
    pub(super) sources: [u32; 2],
    pub(super) number: u64,
    pub(super) peer: SocketAddr,
    pub(super) stream: Arc<str>,
    pub(super) session: u64,
}

/// What the hub of a worker tells those of the others.
#[derive(Debug)]
pub(super) enum HubMessage {
    /// The peer of this session leaves; it may be yours.
    Dismiss { session: u64 },
    /// A viewer needs a keyframe of this stream; its publisher may be yours.
    Keyframe { stream: Arc<str> },
}

impl From<HubMessage> for StateMessage {
    fn from(message: HubMessage) -> Self {
        Arc::new(message)
    }
}

/// What a hub has done.
#[derive(Debug, Default)]
pub(crate) struct HubReport {
    pub(crate) counts: Counts,
    /// Streams whose sound is left out.
    pub(crate) mute_streams: Vec<Arc<str>>,
}

impl Hub {
    pub(crate) fn new(port: SessionId, local: SocketAddr, certificate: Certificate, clock: Clock) -> Self {
        Self {
            port,
            local,
            certificate,
            clock,
            counts: Counts::default(),
            feeds: Slab::new(),
            peers: Slab::new(),
            ingests: Slab::new(),
            by_address: HashMap::new(),
            by_fragment: HashMap::new(),
            by_session: HashMap::new(),
            outbox: Outbox::default(),
            wakes: Vec::new(),
            mute: BTreeSet::new(),
            next: None,
        }
    }

    /// A viewer comes.
    pub(super) fn admit(&mut self, new_peer: NewPeer, worker: &mut Worker, now: Moment) {
        let key = worker.stream_of(&new_peer.stream);
        let known = self.feeds.iter().find(|(_, feed)| feed.key == key).map(|(at, _)| at);
        let feed = known.unwrap_or_else(|| {
            worker.follow(key, self.port);
            let mut feed = Feed::new(&new_peer.stream, key, worker);
            feed.follow(worker);
            self.feeds.insert(feed)
        });
        self.feeds[feed].peers += 1;
        let settings = worker.settings().clone();
        let script = Script::of(&settings.faults, Subject::Viewer(new_peer.number));
        let counts = worker.count_viewer(new_peer.number, new_peer.peer, &new_peer.stream);
        let mut tracks = [None; 2];
        for agreed in &new_peer.agreed {
            let track = if agreed.kind == MediaKind::Video { TrackKind::Video } else { TrackKind::Audio };
            let ssrc = new_peer.sources[track as usize];
            tracks[track as usize] = Some(Track::new(agreed, ssrc));
        }
        let script = script.filter(|script| script.rules_units());
        let channel = Channel::new(new_peer.transport, new_peer.session, now, settings.patience.request);
        let (fragment, session) = (channel.user_fragment.clone(), channel.session);
        let at = PeerRef::Viewer(self.peers.insert(Peer::new(feed, channel, tracks, counts, script, now)));
        self.by_fragment.insert(fragment, at);
        self.by_session.insert(session, at);
        self.next = Some(now);
        self.want_keyframe(feed, worker, now);
    }

    /// A publisher comes, whose name was taken.
    pub(super) fn admit_publisher(
        &mut self,
        new_peer: NewPeer,
        publisher: Publisher,
        worker: &Worker,
        now: Moment,
    ) {
        let NewPeer { transport, agreed, sources, stream, session, .. } = new_peer;
        let channel = Channel::new(transport, session, now, worker.settings().patience.request);
        let fragment = channel.user_fragment.clone();
        let ingest = Ingest::new(channel, (stream, publisher), &agreed, sources[0], now);
        let at = PeerRef::Publisher(self.ingests.insert(ingest));
        self.by_fragment.insert(fragment, at);
        self.by_session.insert(session, at);
        self.counts.intake.publishers += 1;
        self.next = Some(now);
    }

    /// A viewer needs a keyframe of its stream: the publisher is asked, wherever it is.
    fn want_keyframe(&mut self, feed: usize, worker: &Worker, now: Moment) {
        let feed = &mut self.feeds[feed];
        if feed.asked_at.is_some_and(|at| now < at + KEYFRAMES_APART) {
            return;
        }
        feed.asked_at = Some(now);
        let stream = feed.name.clone();
        if self.ask_keyframe(&stream, now).is_none() {
            worker.tell_peers(&HubMessage::Keyframe { stream }.into());
        }
    }

    /// Asks the publisher of a stream for a keyframe. Returns the session to wake if the publisher is this worker's.
    fn ask_keyframe(&mut self, stream: &str, now: Moment) -> Option<SessionId> {
        let (_, ingest) = self.ingests.iter_mut().find(|(_, ingest)| &*ingest.name == stream)?;
        ingest.wants_keyframe(now);
        self.next = Some(now);
        Some(self.port)
    }

    /// The peer of a session leaves. Returns the session to wake if the peer is this worker's.
    pub(super) fn dismiss(&mut self, session: u64, now: Moment) -> Option<SessionId> {
        match *self.by_session.get(&session)? {
            PeerRef::Viewer(at) => self.peers[at].channel.is_gone = true,
            PeerRef::Publisher(at) => self.ingests[at].channel.is_gone = true,
        }
        self.next = Some(now);
        Some(self.port)
    }

    /// Datagrams came.
    pub(super) fn receive(
        &mut self,
        mut batch: Datagrams<'_>,
        now: Moment,
        worker: &mut Worker,
        link: &mut Outgoing<'_>,
    ) {
        while let Some(Incoming { source, bytes, .. }) = batch.take_next() {
            let kind = Datagram::of(bytes);
            let known = self.by_address.get(&source).copied();
            // A new viewer may come from an address that an earlier one had.
            let addressed = match (kind, known) {
                (Datagram::Stun, _) => addressed_user_fragment(bytes)
                    .and_then(|fragment| self.by_fragment.get(&fragment).copied())
                    .or(known),
                (_, known) => known,
            };
            let Some(peer) = addressed else {
                self.counts.strange += 1;
                continue;
            };
            let (addressee, is_new) = (peer, known != Some(peer));
            let (outbox, counts, wakes) = (&mut self.outbox, &mut self.counts, &mut self.wakes);
            let mut service = Service { now, worker, link, counts, outbox, wakes };
            let next = match peer {
                PeerRef::Viewer(at) => {
                    let peer = &mut self.peers[at];
                    let feed = peer.feed;
                    let mut wants_keyframe = false;
                    match kind {
                        Datagram::Stun | Datagram::Dtls => {
                            let had_keys = peer.channel.has_keys();
                            if peer.channel.receive(source, bytes, is_new, &mut service) {
                                self.by_address.insert(source, addressee);
                            }
                            if !had_keys && peer.channel.has_keys() {
                                peer.pump(&self.feeds[feed], &mut service);
                            }
                        }
                        Datagram::Rtcp => {
                            wants_keyframe = peer.on_rtcp(bytes, &self.feeds[feed], &mut service);
                        }
                        _ => service.counts.strange += 1,
                    }
                    let next = peer.poll_timeout();
                    if wants_keyframe {
                        self.want_keyframe(feed, worker, now);
                    }
                    next
                }
                PeerRef::Publisher(at) => {
                    let ingest = &mut self.ingests[at];
                    match kind {
                        Datagram::Stun | Datagram::Dtls => {
                            if ingest.channel.receive(source, bytes, is_new, &mut service) {
                                self.by_address.insert(source, addressee);
                            }
                        }
                        Datagram::Rtp => ingest.receive(bytes, &mut service),
                        Datagram::Rtcp => ingest.on_rtcp(bytes, &mut service),
                        _ => service.counts.strange += 1,
                    }
                    continue;
                }
            };
            self.next = Some(self.next.map_or(next, |before| before.min(next)));
        }
        for (_, ingest) in &mut self.ingests {
            let (outbox, counts, wakes) = (&mut self.outbox, &mut self.counts, &mut self.wakes);
            ingest.after_batch(&mut Service { now, worker, link, counts, outbox, wakes });
            let next = ingest.poll_timeout();
            self.next = Some(self.next.map_or(next, |before| before.min(next)));
        }
    }

    /// Streams have gone on.
    pub(super) fn go_on(&mut self, now: Moment, worker: &mut Worker, link: &mut Outgoing<'_>) {
        let mut news = Vec::new();
        for (at, feed) in &mut self.feeds {
            let end = feed.units.end();
            feed.follow(worker);
            if feed.units.end() > end {
                news.push(at);
            }
        }
        if news.is_empty() {
            return;
        }
        let mut next = self.next;
        for (_, peer) in &mut self.peers {
            if news.contains(&peer.feed) {
                let (outbox, counts, wakes) = (&mut self.outbox, &mut self.counts, &mut self.wakes);
                let mut service = Service { now, worker, link, counts, outbox, wakes };
                peer.pump(&self.feeds[peer.feed], &mut service);
                let wish = peer.poll_timeout();
                next = Some(next.map_or(wish, |before| before.min(wish)));
            }
        }
        self.next = next;
    }

    /// Time has passed.
    pub(super) fn handle_timeout(&mut self, now: Moment, worker: &mut Worker, link: &mut Outgoing<'_>) {
        if self.next.is_none_or(|next| next > now) {
            return;
        }
        let mut gone = Vec::new();
        let mut next: Option<Moment> = None;
        let (outbox, counts, wakes) = (&mut self.outbox, &mut self.counts, &mut self.wakes);
        let mut service = Service { now, worker, link, counts, outbox, wakes };
        let mut judge = |peer: PeerRef, is_gone: bool, wish: Moment| {
            if is_gone {
                gone.push(peer);
            } else {
                next = Some(next.map_or(wish, |before| before.min(wish)));
            }
        };
        for (at, peer) in &mut self.peers {
            if peer.poll_timeout() <= now && !peer.channel.is_gone {
                peer.handle_timeout(&self.feeds[peer.feed], &mut service);
            }
            judge(PeerRef::Viewer(at), peer.channel.is_gone, peer.poll_timeout());
        }
        for (at, ingest) in &mut self.ingests {
            if ingest.poll_timeout() <= now && !ingest.channel.is_gone {
                ingest.handle_timeout(&mut service);
            }
            judge(PeerRef::Publisher(at), ingest.channel.is_gone, ingest.poll_timeout());
        }
        self.next = next;
        for peer in gone {
            self.remove(peer, now, worker, link);
        }
    }

    /// Removes all peers, and closes their associations.
    pub(super) fn close(&mut self, now: Moment, worker: &mut Worker, link: &mut Outgoing<'_>) {
        let viewers = self.peers.iter().map(|(at, _)| PeerRef::Viewer(at));
        let publishers = self.ingests.iter().map(|(at, _)| PeerRef::Publisher(at));
        let all: Vec<PeerRef> = viewers.chain(publishers).collect();
        for peer in all {
            self.remove(peer, now, worker, link);
        }
    }

    fn remove(&mut self, peer: PeerRef, now: Moment, worker: &mut Worker, link: &mut Outgoing<'_>) {
        let channel = match peer {
            PeerRef::Viewer(at) => &self.peers[at].channel,
            PeerRef::Publisher(at) => &self.ingests[at].channel,
        };
        self.by_fragment.remove(&channel.user_fragment);
        self.by_session.remove(&channel.session);
        self.by_address.retain(|_, other| *other != peer);
        let (outbox, counts, wakes) = (&mut self.outbox, &mut self.counts, &mut self.wakes);
        let mut service = Service { now, worker, link, counts, outbox, wakes };
        match peer {
            PeerRef::Publisher(at) => self.ingests.remove(at).end(&mut service),
            PeerRef::Viewer(at) => {
                let mut peer = self.peers.remove(at);
                peer.channel.close(&mut service);
                worker.depart(peer.counts);
                self.leave(peer.feed, worker);
            }
        }
    }

    /// A viewer of a stream is gone.
    fn leave(&mut self, feed: usize, worker: &mut Worker) {
        self.feeds[feed].peers -= 1;
        if self.feeds[feed].peers == 0 {
            let feed = self.feeds.remove(feed);
            if feed.sound_left_out && self.mute.len() < MUTE_KEPT {
                self.mute.insert(feed.name.clone());
            }
            worker.leave(feed.key, self.port);
        }
    }
}

impl ProtocolState for Hub {
    fn report(&self) -> StateReport {
        let now = self.feeds.iter().filter(|(_, feed)| feed.sound_left_out).map(|(_, feed)| &feed.name);
        let mute_streams = now.chain(&self.mute).cloned().collect();
        Box::new(HubReport { counts: self.counts, mute_streams })
    }

    fn receive(&mut self, message: &StateMessage, now: Moment) -> Option<SessionId> {
        match message.downcast_ref()? {
            HubMessage::Dismiss { session } => self.dismiss(*session, now),
            HubMessage::Keyframe { stream } => self.ask_keyframe(stream, now),
        }
    }
}

/// What the peer's description says of its side.
pub(super) fn remote(description: &Description) -> Option<transport::Remote> {
    let media = description.media.iter().find(|media| !media.rejected && media.user_fragment.is_some())?;
    Some(transport::Remote {
        user_fragment: media.user_fragment.clone()?,
        password: media.password.clone()?,
        fingerprint: media.fingerprint.clone()?,
    })
}
