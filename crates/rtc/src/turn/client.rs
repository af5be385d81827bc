//! A client of a TURN server: one allocation, the permissions and channels to its peers, and what keeps them alive.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use md5::{Digest, Md5};
use weir_metrics::Moment;

use super::frames::append_channel;
use super::message::{Class, Message, Transaction, Writer, attribute, method};
use super::place::Carrier;

/// UDP, as the number of its protocol, with three bytes behind it (RFC 8656 section 18.8).
const UDP: [u8; 4] = [17, 0, 0, 0];
/// Channels have these numbers (section 12).
const FIRST_CHANNEL: u16 = 0x4000;
/// Peers that are talked to. A description has no more candidates that are taken, and others come on their own.
const MOST_PEERS: usize = 64;
/// A permission lives for 300 s (section 9).
const PERMISSION: Duration = Duration::from_secs(240);
/// A channel lives for 600 s (section 12).
const CHANNEL: Duration = Duration::from_secs(480);
/// An allocation that does not say how long it lives (section 7.2).
const LIFETIME: u32 = 600;
/// The server has forgotten the nonce so often for one request.
const MOST_TRIES: u8 = 5;
/// What a request waits for its answer before it is sent again over UDP; each wait is twice the one before (RFC 8489
/// section 6.2.1).
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// How often a request is sent over UDP, the first time included (the same section).
const MOST_SENT: u32 = 7;

/// What a message of the server means.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// There is an allocation: peers reach us at this address.
    Allocated(SocketAddr),
    /// A datagram of a peer.
    Datagram(SocketAddr, &'a mut [u8]),
    /// No way to this peer: the server says why.
    Denied {
        /// The peer.
        peer: SocketAddr,
        /// Such as 403.
        code: u16,
        /// Its words.
        words: String,
    },
    /// Nothing for the caller.
    Nothing,
    /// A malformed message, one of another key, or an answer to nothing that was asked.
    Strange,
}

/// Why there is no allocation, or no longer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TurnError {
    /// The server refused it.
    #[error("{code} {words}")]
    Refused {
        /// Such as 401: the credentials are wrong; 486, 508: there is no room.
        code: u16,
        /// Its words.
        words: String,
    },
    /// It consented without what a consent needs.
    #[error("the server's consent has no {0}")]
    Incomplete(&'static str),
}

/// What was asked and is not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ask {
    Allocate,
    Refresh { lifetime: u32 },
    Permit(SocketAddr),
    Bind(SocketAddr),
}

struct Pending {
    transaction: Transaction,
    ask: Ask,
    tries: u8,
    /// Of a client over UDP.
    repetition: Option<Repetition>,
}

/// A request that is sent again if no answer comes.
struct Repetition {
    bytes: Vec<u8>,
    at: Moment,
    sent: u32,
}

/// A peer behind the relay.
struct Peer {
    address: SocketAddr,
    /// When the permission is asked for again; `None`: it was refused.
    permit_at: Option<Moment>,
    /// Whether a channel is wanted, and when it is asked for again.
    bind_at: Option<Moment>,
    /// Whether the channel may be used.
    is_bound: bool,
}

/// What the server wants to hear with each request.
struct Challenge {
    realm: Vec<u8>,
    nonce: Vec<u8>,
    key: [u8; 16],
}

/// A client.
pub struct Client {
    username: String,
    password: String,
    /// Requests may be lost on their way (UDP), and so are sent again.
    is_lossy: bool,
    challenge: Option<Challenge>,
    pending: Vec<Pending>,
    /// The last answered request that was sent more than once: a server that was slow answers each of them.
    repeated: Option<Transaction>,
    peers: Vec<Peer>,
    allocated: bool,
    refresh_at: Option<Moment>,
}

impl Client {
    /// A client that has asked for nothing yet, of a server that is reached over `carrier`.
    pub fn new(username: &str, password: &str, carrier: Carrier) -> Self {
        Self {
            username: username.to_owned(),
            password: password.to_owned(),
            is_lossy: carrier == Carrier::Udp,
            challenge: None,
            pending: Vec::new(),
            repeated: None,
            peers: Vec::new(),
            allocated: false,
            refresh_at: None,
        }
    }

    /// Asks for an allocation.
    pub fn begin(&mut self, now: Moment, out: &mut Vec<u8>) {
        self.request(now, Ask::Allocate, 0, out);
    }

    /// Whether there is an allocation.
    pub fn is_allocated(&self) -> bool {
        self.allocated
    }

    /// Appends a datagram to a peer as it must be wrapped; a permission is requested first if it has none. Without an
    /// allocation, or with too many peers, the datagram is dropped, as UDP may drop it.
    pub fn send(&mut self, now: Moment, peer: SocketAddr, datagram: &[u8], out: &mut Vec<u8>) {
        let Some(at) = self.peer(now, peer, out) else { return };
        let number = FIRST_CHANNEL + at as u16;
        let known = &self.peers[at];
        if known.is_bound {
            append_channel(number, datagram, out);
        } else if known.permit_at.is_some() {
            Writer::new(method::SEND, Class::Indication, transaction(), out)
                .address(attribute::XOR_PEER_ADDRESS, peer)
                .value(attribute::DATA, datagram);
        }
    }

    /// Asks for a channel to a peer, which spares most of what wraps its datagrams.
    pub fn bind(&mut self, now: Moment, peer: SocketAddr, out: &mut Vec<u8>) {
        if let Some(at) = self.peer(now, peer, out)
            && self.peers[at].bind_at.is_none()
        {
            self.peers[at].bind_at = Some(now + CHANNEL);
            self.request(now, Ask::Bind(peer), 0, out);
        }
    }

    /// The peer of a channel.
    pub fn peer_of(&self, channel: u16) -> Option<SocketAddr> {
        let at = usize::from(channel.checked_sub(FIRST_CHANNEL)?);
        self.peers.get(at).filter(|peer| peer.bind_at.is_some()).map(|peer| peer.address)
    }

    /// A message came. What it wants answered is appended to `out`.
    ///
    /// # Errors
    ///
    /// When the allocation is refused, or lost.
    pub fn receive<'a>(
        &mut self,
        now: Moment,
        bytes: &'a mut [u8],
        out: &mut Vec<u8>,
    ) -> Result<Event<'a>, TurnError> {
        let Some(message) = Message::parse(bytes) else { return Ok(Event::Strange) };
        if (message.method, message.class) == (method::DATA, Class::Indication) {
            let peer = message.address(attribute::XOR_PEER_ADDRESS);
            let Some((peer, place)) = peer.zip(message.place_of(attribute::DATA)) else {
                return Ok(Event::Strange);
            };
            return Ok(Event::Datagram(peer, &mut bytes[place]));
        }
        let asked = self.pending.iter().position(|pending| pending.transaction == message.transaction);
        let is_answer = matches!(message.class, Class::Success | Class::Error);
        if is_answer && self.repeated.is_some_and(|known| known == message.transaction) {
            return Ok(Event::Nothing);
        }
        let Some(at) = asked.filter(|_| is_answer) else { return Ok(Event::Strange) };
        // An answer must prove that its sender knows the password (RFC 8489 section 9.2.5). Errors may be without a tag: what
        // they are about may be that the server could not make one.
        if let Some(Challenge { key, .. }) = &self.challenge
            && !message.is_authentic(key).unwrap_or(message.class == Class::Error)
        {
            return Ok(Event::Strange);
        }
        let Pending { ask, tries, transaction, repetition } = self.pending.swap_remove(at);
        if repetition.is_some_and(|it| it.sent > 1) {
            self.repeated = Some(transaction);
        }
        match message.class {
            Class::Success => self.granted(now, ask, &message),
            _ => self.refused(now, ask, tries, &message, out),
        }
    }

    fn granted(&mut self, now: Moment, ask: Ask, message: &Message<'_>) -> Result<Event<'static>, TurnError> {
        match ask {
            Ask::Allocate => {
                let relayed = message.address(attribute::XOR_RELAYED_ADDRESS);
                let relayed = relayed.ok_or(TurnError::Incomplete("XOR-RELAYED-ADDRESS"))?;
                self.allocated = true;
                self.keep(now, message);
                Ok(Event::Allocated(relayed))
            }
            Ask::Refresh { lifetime } => {
                if lifetime > 0 {
                    self.keep(now, message);
                }
                Ok(Event::Nothing)
            }
            Ask::Permit(_) => Ok(Event::Nothing),
            Ask::Bind(peer) => {
                if let Some(peer) = self.peers.iter_mut().find(|known| known.address == peer) {
                    peer.is_bound = true;
                }
                Ok(Event::Nothing)
            }
        }
    }

    /// Knows how long the allocation lives.
    fn keep(&mut self, now: Moment, message: &Message<'_>) {
        let lifetime = message.number(attribute::LIFETIME).unwrap_or(LIFETIME);
        let early = (lifetime / 2).min(60);
        self.refresh_at = Some(now + Duration::from_secs((lifetime - early).max(1).into()));
    }

    fn refused(
        &mut self,
        now: Moment,
        ask: Ask,
        tries: u8,
        message: &Message<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Event<'static>, TurnError> {
        let (code, words) = message.error();
        // 401 once, to learn what to sign with; 438 whenever the nonce has grown old (RFC 8489 section 9.2.5).
        let may_sign = code == 401 && self.challenge.is_none() || code == 438 && tries < MOST_TRIES;
        if may_sign && let Some(nonce) = message.value(attribute::NONCE) {
            let told = message.value(attribute::REALM).map(<[u8]>::to_vec);
            let before = self.challenge.as_ref().map(|challenge| challenge.realm.clone());
            let realm = told.or(before).ok_or(TurnError::Incomplete("REALM"))?;
            let key = key(&self.username, &realm, &self.password);
            self.challenge = Some(Challenge { realm, nonce: nonce.to_vec(), key });
            self.request(now, ask, tries + 1, out);
            return Ok(Event::Nothing);
        }
        match ask {
            Ask::Allocate | Ask::Refresh { lifetime: 1.. } => Err(TurnError::Refused { code, words }),
            Ask::Refresh { lifetime: 0 } => Ok(Event::Nothing),
            Ask::Permit(address) => {
                self.peers.iter_mut().filter(|peer| peer.address == address).for_each(|peer| {
                    peer.permit_at = None;
                });
                Ok(Event::Denied { peer: address, code, words })
            }
            // What goes without a channel goes on as it did.
            Ask::Bind(address) => {
                self.peers.iter_mut().filter(|peer| peer.address == address).for_each(|peer| {
                    peer.is_bound = false;
                });
                Ok(Event::Nothing)
            }
        }
    }

    /// When to call [`Self::handle_timeout`].
    pub fn due(&self) -> Option<Moment> {
        let peers = self.peers.iter().flat_map(|peer| [peer.permit_at, peer.bind_at]);
        let repetitions = self.pending.iter().map(|it| it.repetition.as_ref().map(|it| it.at));
        peers.chain(repetitions).chain([self.refresh_at]).flatten().min()
    }

    /// Time passes: what would run out is asked for again, and what was not answered is sent again.
    pub fn handle_timeout(&mut self, now: Moment, out: &mut Vec<u8>) {
        self.pending.retain_mut(|pending| {
            let Some(due) = pending.repetition.as_mut().filter(|due| due.at <= now) else { return true };
            // The request has failed: an answer that comes now belongs to no transaction.
            if due.sent == MOST_SENT {
                return false;
            }
            out.extend_from_slice(&due.bytes);
            due.at = now + FIRST_WAIT * (1 << due.sent);
            due.sent += 1;
            true
        });
        if self.refresh_at.is_some_and(|at| at <= now) {
            // The answer says when it is due again.
            self.refresh_at = None;
            self.request(now, Ask::Refresh { lifetime: LIFETIME }, 0, out);
        }
        for at in 0..self.peers.len() {
            let peer = &mut self.peers[at];
            let address = peer.address;
            let permits = peer.permit_at.is_some_and(|at| at <= now);
            let binds = peer.bind_at.is_some_and(|at| at <= now);
            if permits {
                peer.permit_at = Some(now + PERMISSION);
            }
            if binds {
                peer.bind_at = Some(now + CHANNEL);
            }
            if permits {
                self.request(now, Ask::Permit(address), 0, out);
            }
            if binds {
                self.request(now, Ask::Bind(address), 0, out);
            }
        }
    }

    /// Gives the allocation back (RFC 8656 section 8).
    pub fn end(&mut self, now: Moment, out: &mut Vec<u8>) {
        if std::mem::take(&mut self.allocated) {
            self.request(now, Ask::Refresh { lifetime: 0 }, 0, out);
        }
        // No answer is waited for any more.
        self.pending.iter_mut().for_each(|pending| pending.repetition = None);
        self.refresh_at = None;
        self.peers.clear();
    }

    /// The index of a peer, which is allowed to answer from now on.
    fn peer(&mut self, now: Moment, address: SocketAddr, out: &mut Vec<u8>) -> Option<usize> {
        if !self.allocated {
            return None;
        }
        if let Some(at) = self.peers.iter().position(|peer| peer.address == address) {
            return Some(at);
        }
        if self.peers.len() == MOST_PEERS {
            return None;
        }
        let permit_at = Some(now + PERMISSION);
        self.peers.push(Peer { address, permit_at, bind_at: None, is_bound: false });
        self.request(now, Ask::Permit(address), 0, out);
        Some(self.peers.len() - 1)
    }

    fn request(&mut self, now: Moment, ask: Ask, tries: u8, out: &mut Vec<u8>) {
        let (transaction, start) = (transaction(), out.len());
        let channel = |peer| {
            let at = self.peers.iter().position(|known| known.address == peer).unwrap_or(0);
            FIRST_CHANNEL + at as u16
        };
        let new = |method, out| Writer::new(method, Class::Request, transaction, out);
        let writer = match ask {
            Ask::Allocate => new(method::ALLOCATE, out).value(attribute::REQUESTED_TRANSPORT, &UDP),
            Ask::Refresh { lifetime } => new(method::REFRESH, out).number(attribute::LIFETIME, lifetime),
            Ask::Permit(peer) => {
                new(method::CREATE_PERMISSION, out).address(attribute::XOR_PEER_ADDRESS, peer)
            }
            // The number is followed by two bytes of nothing (RFC 8656 section 18.1).
            Ask::Bind(peer) => new(method::CHANNEL_BIND, out)
                .number(attribute::CHANNEL_NUMBER, u32::from(channel(peer)) << 16)
                .address(attribute::XOR_PEER_ADDRESS, peer),
        };
        if let Some(challenge) = &self.challenge {
            writer
                .value(attribute::USERNAME, self.username.as_bytes())
                .value(attribute::REALM, &challenge.realm)
                .value(attribute::NONCE, &challenge.nonce)
                .sign(&challenge.key);
        }
        let repetition =
            self.is_lossy.then(|| Repetition { bytes: out[start..].to_vec(), at: now + FIRST_WAIT, sent: 1 });
        // One that was asked before, of a server that does not answer over TCP, is not waited for any more.
        self.pending.retain(|other| other.ask != ask);
        self.pending.push(Pending { transaction, ask, tries, repetition });
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Client").field("allocated", &self.allocated).finish_non_exhaustive()
    }
}

/// The key of long-term credentials (RFC 8489 section 9.2.2).
pub(super) fn key(username: &str, realm: &[u8], password: &str) -> [u8; 16] {
    let mut hash = Md5::new();
    hash.update(username.as_bytes());
    hash.update(b":");
    hash.update(realm);
    hash.update(b":");
    hash.update(password.as_bytes());
    hash.finalize().into()
}

fn transaction() -> Transaction {
    let mut bytes = [0; 12];
    // Without randomness of the system they could be guessed, and answers of others would still not be signed.
    let _ = aws_lc_rs::rand::fill(&mut bytes);
    bytes
}
