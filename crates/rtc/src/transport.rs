//! One bundled transport being set up: ICE finds the path, DTLS proves the peer and exports the keys of SRTP.
//!
//! Datagrams and time go in, datagrams and events come out; one local address, as each of weir's clients has its own
//! socket. ICE and DTLS are those of the crates `is` and `dimpl`. Once [`Event::Keys`] came, media needs nothing from
//! here; STUN and DTLS datagrams must still be handed over, for consent (RFC 7675) and close.

mod certificate;
mod clock;
mod records;
mod restart;

pub use certificate::{Certificate, Fingerprint, ParseFingerprintError};
pub use clock::Clock;
pub use restart::NewCredentials;

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dimpl::Dtls;
use is::stun::{StunMessage, StunPacket};
use is::{Candidate, IceAgent, IceAgentEvent, IceConnectionState, IceCreds, Protocol};
use weir_metrics::Moment;

use crate::Datagram;
use crate::srtp::{KeyingMaterial, MasterKey, Profile, SrtpError};

/// The largest DTLS datagram that is written.
const DTLS_MTU: usize = 1200;

/// How many candidates of the peer are taken: an agent forms a pair with each.
const MOST_CANDIDATES: usize = 32;

/// How many DTLS datagrams are kept of a peer that begins before our own check of its address was answered: a ClientHello
/// in fragments.
const MOST_HELD: usize = 4;

/// Timing of ICE's checks (RFC 8445 section 14).
struct Timing {
    /// The time until a check is repeated for the first time; it doubles with each.
    first: Duration,
    /// After how many unanswered checks in a row a pair has failed.
    most: usize,
}

/// Before there are keys. Servers drop checks that come right behind their description (OvenMediaEngine), and a set-up
/// that waits for the 500 ms of section 14.3 would be a figure of the timer. Browsers send one every 48 ms until one is
/// answered. The last is sent after the same 20 s as with the usual timing.
const SETTING_UP: Timing = Timing { first: Duration::from_millis(20), most: 13 };
/// With keys, checks are for consent only (RFC 7675).
const SET_UP: Timing = Timing { first: Duration::from_millis(250), most: 9 };
/// The least time between two checks of one transport: Ta, which section 14.2 has at 50 ms and lets be as short as 5.
const PACE: Duration = Duration::from_millis(20);

/// The side that begins the DTLS handshake (`a=setup`, RFC 5763 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DtlsRole {
    /// Active: sends the ClientHello.
    Client,
    /// Passive: waits for it.
    Server,
}

/// Our side of a transport.
#[derive(Clone, Debug)]
pub struct TransportSettings {
    /// Where the socket is bound; a wildcard address is no candidate.
    pub local: SocketAddr,
    /// Our certificate; many transports may share one.
    pub certificate: Certificate,
    /// We answer connectivity checks only, as servers with public addresses do (RFC 8445 section 2.5).
    pub lite: bool,
    /// We decide which pair is used: the side that made the offer, or the full one when the other is lite (section 6.1.1).
    pub controlling: bool,
    /// What the time that is passed in means.
    pub clock: Clock,
}

/// What the peer's description says of its side.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// `a=ice-ufrag`.
    pub user_fragment: String,
    /// `a=ice-pwd`.
    pub password: String,
    /// `a=fingerprint`.
    pub fingerprint: Fingerprint,
}

/// What is to be done, or was reached.
#[derive(Debug)]
pub enum Output {
    /// Send this datagram.
    Send {
        /// The peer's address.
        destination: SocketAddr,
        /// The datagram.
        datagram: Vec<u8>,
    },
    /// Something was reached.
    Event(Event),
}

/// What was reached.
#[derive(Debug)]
pub enum Event {
    /// ICE has a path; it comes again when the path changes.
    Path(SocketAddr),
    /// No connectivity check is answered any more.
    PathLost,
    /// The peer has proven to be the one of the description, and these are the keys.
    Keys {
        /// What the peer protects with.
        inbound: MasterKey,
        /// What we protect with.
        outbound: MasterKey,
        /// The profile of both.
        profile: Profile,
    },
    /// The peer closed the association.
    Closed,
    /// It cannot be set up, or broke.
    Failed(TransportError),
}

/// What became of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reception {
    /// It was the peer's, or may have been.
    Taken,
    /// STUN that is not the peer's: a check of others' credentials, and from elsewhere also what answers nothing.
    Strange,
    /// A malformed STUN message.
    Malformed,
}

/// Why a transport cannot be set up, or broke.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// A candidate that cannot be read, or of a kind that is not supported.
    #[error("an ICE candidate cannot be read")]
    Candidate(#[source] is::IceError),
    /// More candidates than are kept of one description.
    #[error("over {MOST_CANDIDATES} ICE candidates")]
    TooManyCandidates,
    /// The certificate is not the one whose fingerprint the description gave: another peer answers, or signalling and
    /// media servers disagree.
    #[error("the peer's certificate has another fingerprint than its description says")]
    Fingerprint,
    /// The handshake failed. weir offers ECDSA cipher suites only: a server with an RSA certificate has none of them in
    /// common; give it an ECDSA certificate.
    #[error("the DTLS handshake failed; a peer with an RSA certificate needs an ECDSA one")]
    Dtls(#[source] dimpl::Error),
    /// The handshake ended without agreement on SRTP.
    #[error("the peer agreed on no SRTP profile")]
    NoProfile,
    /// Keys that do not fit.
    #[error(transparent)]
    Srtp(#[from] SrtpError),
}

/// The user fragment of ours that a STUN request is addressed to, on a socket that many transports share (RFC 8445
/// section 7.2.2: the username is theirs, a colon, and the sender's).
pub fn addressed_user_fragment(datagram: &[u8]) -> Option<String> {
    let message = StunMessage::parse(datagram).ok().filter(StunMessage::is_binding_request)?;
    message.split_username().map(|(ours, _)| ours.to_owned())
}

/// One transport.
pub struct Transport {
    settings: TransportSettings,
    ice: IceAgent,
    candidates: usize,
    remote: Option<(Remote, DtlsRole)>,
    dtls: Option<Dtls>,
    dtls_due: Option<Instant>,
    /// Where to send, once ICE or the peer says so.
    path: Option<SocketAddr>,
    /// The handshake has ended.
    connected: bool,
    state: State,
    outputs: VecDeque<Output>,
    buffer: Vec<u8>,
    /// DTLS of candidates of the peer whose address our own check has not proven yet.
    held: VecDeque<(SocketAddr, Vec<u8>)>,
    /// The last alert that nothing protected.
    alert: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    SettingUp,
    /// The certificate was the right one.
    Proven,
    Keyed,
    Over,
}

impl Transport {
    /// A transport whose peer is not known yet.
    ///
    /// # Errors
    ///
    /// When no peer could reach the local address.
    pub fn new(settings: TransportSettings) -> Result<Self, TransportError> {
        let candidate = Candidate::host(settings.local, Protocol::Udp).map_err(TransportError::Candidate)?;
        let mut transport = Self::without_candidates(settings);
        transport.ice.add_local_candidate(candidate);
        Ok(transport)
    }

    /// A transport that nothing reaches yet: it waits for a relay, see [`Self::relay`].
    pub fn without_candidates(settings: TransportSettings) -> Self {
        let mut ice = IceAgent::new(IceCreds::new());
        ice.set_ice_lite(settings.lite);
        ice.set_controlling(settings.controlling);
        ice.set_timing_advance(PACE);
        set_timing(&mut ice, &SETTING_UP);
        Self {
            settings,
            ice,
            candidates: 0,
            remote: None,
            dtls: None,
            dtls_due: None,
            path: None,
            connected: false,
            state: State::SettingUp,
            outputs: VecDeque::new(),
            buffer: vec![0; 2048],
            held: VecDeque::new(),
            alert: None,
        }
    }

    /// Seeks no path from here on with the candidates that there are: it waits for a relay.
    pub fn withdraw_candidates(&mut self) {
        let before: Vec<Candidate> = self.ice.local_candidates().collect();
        for candidate in &before {
            self.ice.invalidate_candidate(candidate);
        }
    }

    /// From now on all datagrams go by a relay, where peers reach us at this address (RFC 8445 section 5.1.1.2): what is
    /// to be sent is to be wrapped by the caller, and what is received came out of such wrapping.
    ///
    /// # Errors
    ///
    /// When no peer could reach the address.
    pub fn relay(&mut self, now: Moment, relayed: SocketAddr) -> Result<(), TransportError> {
        let candidate =
            Candidate::relayed(relayed, relayed, Protocol::Udp).map_err(TransportError::Candidate)?;
        self.withdraw_candidates();
        self.settings.local = relayed;
        self.ice.add_local_candidate(candidate);
        self.handle_timeout(now);
        Ok(())
    }

    /// Our `a=ice-ufrag`.
    pub fn user_fragment(&self) -> &str {
        &self.ice.local_credentials().ufrag
    }

    /// Our `a=ice-pwd`.
    pub fn password(&self) -> &str {
        &self.ice.local_credentials().pass
    }

    /// Our candidates, each as the value of an `a=candidate` line behind the colon.
    pub fn candidates(&self) -> impl Iterator<Item = String> {
        self.ice.local_candidates().map(|candidate| {
            let line = candidate.to_sdp_string();
            line.trim_start_matches("a=").trim_start_matches("candidate:").trim_end().to_owned()
        })
    }

    /// The peer's description came: begins to look for a path.
    pub fn connect(&mut self, now: Moment, remote: Remote, role: DtlsRole) {
        self.ice.set_remote_credentials(IceCreds {
            ufrag: remote.user_fragment.clone(),
            pass: remote.password.clone(),
        });
        self.remote = Some((remote, role));
        if role == DtlsRole::Server {
            self.start_dtls(now);
        }
        self.handle_timeout(now);
    }

    /// A candidate of the peer, as the value of an `a=candidate` line, with or without `candidate:` in front.
    ///
    /// # Errors
    ///
    /// When it cannot be read, or there are too many.
    pub fn add_candidate(&mut self, candidate: &str) -> Result<(), TransportError> {
        if self.candidates >= MOST_CANDIDATES {
            return Err(TransportError::TooManyCandidates);
        }
        let value = candidate.trim().trim_start_matches("a=").trim_start_matches("candidate:");
        let candidate =
            Candidate::from_sdp_string(&format!("candidate:{value}")).map_err(TransportError::Candidate)?;
        self.candidates += 1;
        self.ice.add_remote_candidate(candidate);
        Ok(())
    }

    /// A datagram came that [`Datagram::of`] calls STUN or DTLS; others are passed over.
    pub fn receive(&mut self, now: Moment, source: SocketAddr, datagram: &[u8]) -> Reception {
        // Without the peer's credentials nothing can be checked; it will ask again.
        if self.remote.is_none() || self.state == State::Over {
            return Reception::Taken;
        }
        let instant = self.settings.clock.instant(now);
        match Datagram::of(datagram) {
            Datagram::Stun => {
                let Ok(message) = StunMessage::parse(datagram) else { return Reception::Malformed };
                let is_request = message.is_binding_request();
                let packet =
                    StunPacket { proto: Protocol::Udp, source, destination: self.settings.local, message };
                if !self.ice.handle_packet(instant, packet) {
                    // The peer may answer late, and keep its way open by indications (RFC 8445 section 11).
                    let is_peer = self.path == Some(source) || self.ice.has_viable_remote_candidate(source);
                    // A flood of them must not cost what follows.
                    return if is_peer && !is_request { Reception::Taken } else { Reception::Strange };
                }
            }
            Datagram::Dtls if self.is_validated(source) => self.take_dtls(instant, source, datagram),
            Datagram::Dtls => return self.hold(source, datagram),
            _ => return Reception::Strange,
        }
        self.handle_timeout(now);
        Reception::Taken
    }

    /// Whether ICE has proven that the peer is at this address. DTLS itself proves nothing before its end, so that anybody that
    /// guesses our address could take part in the handshake, or end it; media may come from each of them (RFC 8445 section
    /// 12.2).
    pub fn is_validated(&self, source: SocketAddr) -> bool {
        self.path == Some(source) || self.ice.has_viable_remote_candidate(source)
    }

    /// Whether the peer may also be at another address than this one.
    pub fn may_be_elsewhere(&self, address: SocketAddr) -> bool {
        self.ice.remote_candidates().any(|candidate| candidate.addr() != address)
    }

    fn take_dtls(&mut self, now: Instant, source: SocketAddr, datagram: &[u8]) {
        let Some(dtls) = &mut self.dtls else { return };
        self.path.get_or_insert(source);
        let (datagram, alert) = records::without_plain_alerts(datagram);
        self.alert = alert.or(self.alert);
        let handled = dtls.handle_timeout(now).and_then(|()| dtls.handle_packet(&datagram));
        if let Err(error) = handled {
            self.fail(TransportError::Dtls(error));
        }
    }

    /// DTLS of an address that is not proven: a peer that has proven ours may begin before that. What a candidate of it says
    /// then waits, as in browsers; it would be sent again after a second only.
    fn hold(&mut self, source: SocketAddr, datagram: &[u8]) -> Reception {
        let is_awaited = self.dtls.is_some() && self.path.is_none();
        if !is_awaited || !self.ice.remote_candidates().any(|candidate| candidate.addr() == source) {
            return Reception::Strange;
        }
        // Anybody may have sent what waits. The latest stays: a peer speaks once it has proven our address, shortly before
        // we prove its own.
        if self.held.len() == MOST_HELD {
            self.held.pop_front();
        }
        self.held.push_back((source, datagram.to_vec()));
        Reception::Taken
    }

    /// Time passes: call it at [`Self::due`] at the latest.
    pub fn handle_timeout(&mut self, now: Moment) {
        if self.remote.is_none() || self.state == State::Over {
            return;
        }
        let instant = self.settings.clock.instant(now);
        self.ice.handle_timeout(instant);
        while let Some(event) = self.ice.poll_event() {
            self.ice_event(now, &event);
        }
        while let Some(transmit) = self.ice.poll_transmit() {
            let datagram = transmit.contents.to_vec();
            self.outputs.push_back(Output::Send { destination: transmit.destination, datagram });
        }
        while let Some(at) = self.held.iter().position(|(source, _)| self.is_validated(*source))
            && let Some((source, datagram)) = self.held.remove(at)
        {
            self.take_dtls(instant, source, &datagram);
        }
        if let Some(dtls) = &mut self.dtls
            && self.dtls_due.is_some_and(|due| due <= instant)
            && let Err(error) = dtls.handle_timeout(instant)
        {
            self.fail(TransportError::Dtls(error));
            return;
        }
        self.poll_dtls();
    }

    /// When to call [`Self::handle_timeout`].
    pub fn due(&mut self) -> Option<Moment> {
        if self.state == State::Over {
            return None;
        }
        let due = [self.ice.poll_timeout(), self.dtls_due].into_iter().flatten().min()?;
        Some(self.settings.clock.moment(due))
    }

    /// What is to be done, or was reached.
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// The round trip of connectivity checks on the path in use.
    pub fn round_trip(&self) -> Option<Duration> {
        self.ice.nominated_pair_rtt()
    }

    /// The last alert that came without protection, while there are no keys: what the peer reports of the handshake, or
    /// any host that sends from its address.
    pub fn unproven_alert(&self) -> Option<(u8, &'static str)> {
        self.alert.map(|code| (code, records::name(code)))
    }

    /// Sends close_notify to the peer.
    pub fn close(&mut self) {
        if let Some(dtls) = &mut self.dtls
            && self.state == State::Keyed
            && dtls.close().is_ok()
        {
            self.poll_dtls();
        }
        self.state = State::Over;
    }

    fn ice_event(&mut self, now: Moment, event: &IceAgentEvent) {
        match event {
            IceAgentEvent::NominatedSend { destination, .. } => {
                self.path = Some(*destination);
                self.outputs.push_back(Output::Event(Event::Path(*destination)));
                if self.state == State::Keyed {
                    // Behind a restart.
                    set_timing(&mut self.ice, &SET_UP);
                }
                let is_client = matches!(self.remote, Some((_, DtlsRole::Client)));
                if is_client && self.dtls.is_none() {
                    self.start_dtls(now);
                }
            }
            IceAgentEvent::IceConnectionStateChange(IceConnectionState::Disconnected) => {
                self.outputs.push_back(Output::Event(Event::PathLost));
            }
            IceAgentEvent::IceConnectionStateChange(_)
            | IceAgentEvent::IceRestart(_)
            | IceAgentEvent::DiscoveredRecv { .. } => {}
        }
    }

    fn start_dtls(&mut self, now: Moment) {
        let Some((_, role)) = &self.remote else { return };
        let instant = self.settings.clock.instant(now);
        let config = match dimpl::Config::builder().mtu(DTLS_MTU).use_server_cookie(false).build() {
            Ok(config) => Arc::new(config),
            Err(error) => return self.fail(TransportError::Dtls(error)),
        };
        let certificate = self.settings.certificate.for_dtls();
        let mut dtls = match role {
            // All of the field speaks 1.2; a server lets its client choose.
            DtlsRole::Client => Dtls::new_12(config, certificate, instant),
            DtlsRole::Server => Dtls::new_auto(config, certificate, instant),
        };
        dtls.set_active(*role == DtlsRole::Client);
        self.dtls = Some(dtls);
        self.dtls_due = Some(instant);
    }

    fn poll_dtls(&mut self) {
        loop {
            let Some(dtls) = &mut self.dtls else { return };
            match dtls.poll_output(&mut self.buffer) {
                dimpl::Output::Packet(datagram) => {
                    if let Some(destination) = self.path {
                        let datagram = datagram.to_vec();
                        self.outputs.push_back(Output::Send { destination, datagram });
                    }
                }
                dimpl::Output::BufferTooSmall { needed } => self.buffer.resize(needed, 0),
                dimpl::Output::Timeout(due) => {
                    self.dtls_due = Some(due);
                    // The keys may come behind the end of the handshake, but not later than with it.
                    if self.connected && matches!(self.state, State::SettingUp | State::Proven) {
                        self.fail(TransportError::NoProfile);
                    }
                    return;
                }
                dimpl::Output::PeerCert(certificate) => {
                    let expected = self.remote.as_ref().map(|(remote, _)| &remote.fingerprint);
                    if expected.is_some_and(|expected| expected.is_of(certificate)) {
                        self.state = State::Proven;
                    } else {
                        return self.fail(TransportError::Fingerprint);
                    }
                }
                dimpl::Output::KeyingMaterial(material, profile) => {
                    let keys = profile_of(profile)
                        .ok_or(TransportError::NoProfile)
                        .and_then(|profile| Ok((profile, KeyingMaterial::split(profile, &material)?)));
                    match keys {
                        Ok((profile, keys)) if self.state == State::Proven => self.keyed(profile, keys),
                        Ok(_) => return self.fail(TransportError::Fingerprint),
                        Err(error) => return self.fail(error),
                    }
                }
                dimpl::Output::Connected => self.connected = true,
                dimpl::Output::CloseNotify => {
                    self.state = State::Over;
                    self.outputs.push_back(Output::Event(Event::Closed));
                    return;
                }
                _ => {}
            }
        }
    }

    fn keyed(&mut self, profile: Profile, keys: KeyingMaterial) {
        let (inbound, outbound) = match self.remote {
            Some((_, DtlsRole::Client)) => (keys.server, keys.client),
            _ => (keys.client, keys.server),
        };
        self.state = State::Keyed;
        set_timing(&mut self.ice, &SET_UP);
        self.outputs.push_back(Output::Event(Event::Keys { inbound, outbound, profile }));
    }

    fn fail(&mut self, error: TransportError) {
        self.state = State::Over;
        self.dtls = None;
        self.dtls_due = None;
        self.outputs.push_back(Output::Event(Event::Failed(error)));
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Transport");
        debug.field("state", &self.state).field("path", &self.path).finish_non_exhaustive()
    }
}

fn set_timing(ice: &mut IceAgent, timing: &Timing) {
    ice.set_initial_stun_rto(timing.first);
    ice.set_max_stun_retransmits(timing.most);
}

fn profile_of(profile: dimpl::SrtpProfile) -> Option<Profile> {
    match profile {
        dimpl::SrtpProfile::AES128_CM_SHA1_80 => Some(Profile::Aes128CmHmacSha1_80),
        dimpl::SrtpProfile::AEAD_AES_128_GCM => Some(Profile::AeadAes128Gcm),
        dimpl::SrtpProfile::AEAD_AES_256_GCM => Some(Profile::AeadAes256Gcm),
        _ => None,
    }
}
