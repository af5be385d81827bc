//! A listener: it gives out cookies, and remembers nothing of a caller that has not returned its own (draft-sharabayko-srt-01,
//! section 4.3.1).

use crate::agreement::ConnectionOptions;
use crate::connection::{Connection, socket_of};
use crate::encryption::{KeyMaterialError, Keys};
use crate::handshake::{CONCLUSION, Handshake, INDUCTION, MAGIC, capability};
use crate::packet::{Control, ControlHeader, Packet};
use crate::rejection::Rejection;
use crate::stream_id::AccessControl;
use aws_lc_rs::hmac;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use weir_metrics::Moment;

/// A cookie holds for one to two of these.
const COOKIE_NANOS: u64 = 60_000_000_000;
/// The oldest libsrt that speaks handshakes of version 5.
const LEAST_VERSION: u32 = 0x01_03_00;

/// What a listener makes of a datagram.
#[derive(Debug)]
pub enum ListenerAnswer {
    /// The datagram is not a handshake that a listener answers.
    Nothing,
    /// What was appended is to be sent back.
    Respond,
    /// A caller that is where it says wants a connection.
    Request(ConnectionRequest),
}

/// A caller that has returned its cookie.
#[derive(Clone, Debug)]
pub struct ConnectionRequest {
    /// Where it is.
    pub from: SocketAddr,
    handshake: Handshake,
    timestamp: u32,
}

impl ConnectionRequest {
    /// What it asks for, taken apart.
    pub fn access(&self) -> AccessControl<'_> {
        AccessControl::parse(self.handshake.stream_id.as_deref().unwrap_or_default())
    }

    /// Its socket: with its address the name of what may be a connection already.
    pub fn socket(&self) -> u32 {
        self.handshake.socket
    }
}

/// A listener's secrets and options.
#[derive(Debug)]
pub struct Listener {
    key: hmac::Key,
    options: ConnectionOptions,
}

impl Listener {
    /// One that accepts connections with these options. `secret` makes its cookies.
    pub fn new(options: ConnectionOptions, secret: &[u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret), options }
    }

    /// The same with a secret of the system's making, if it has random numbers.
    pub fn with_random_secret(options: ConnectionOptions) -> Option<Self> {
        let mut secret = [0; 32];
        aws_lc_rs::rand::fill(&mut secret).ok()?;
        Some(Self::new(options, &secret))
    }

    /// A datagram came that is for no connection. What is to be sent back is appended to `out`.
    pub fn handle_datagram(
        &self,
        from: SocketAddr,
        bytes: &[u8],
        now: Moment,
        out: &mut Vec<u8>,
    ) -> ListenerAnswer {
        let Ok(Packet::Control(header, Control::Handshake(field))) = Packet::parse(bytes) else {
            return ListenerAnswer::Nothing;
        };
        let Some(handshake) = Handshake::parse(field).ok().filter(|_| header.destination == 0) else {
            return ListenerAnswer::Nothing;
        };
        match handshake.handshake_type {
            INDUCTION => {
                let encryption = self.options.encryption.as_ref().map_or(0, |it| it.key_length.field());
                //= draft-sharabayko-srt-01, section 4.3.1.1
                //# - SYN Cookie: a cookie that is crafted based on host, port and current time
                //#   with 1 minute accuracy to avoid SYN flooding attack
                let answer = Handshake {
                    version: 5,
                    encryption,
                    extension: MAGIC,
                    cookie: self.cookie(from, now, 0),
                    ..fixed(&handshake)
                };
                respond(&handshake, &answer, out);
                ListenerAnswer::Respond
            }
            CONCLUSION if [0, 1].map(|age| self.cookie(from, now, age)).contains(&handshake.cookie) => {
                ListenerAnswer::Request(ConnectionRequest { from, handshake, timestamp: header.timestamp })
            }
            _ => ListenerAnswer::Nothing,
        }
    }

    fn cookie(&self, from: SocketAddr, now: Moment, age: u64) -> u32 {
        let mut context = hmac::Context::with_key(&self.key);
        match from.ip() {
            IpAddr::V4(address) => context.update(&address.octets()),
            IpAddr::V6(address) => context.update(&address.octets()),
        }
        context.update(&from.port().to_be_bytes());
        context.update(&(now.as_nanos() / COOKIE_NANOS).wrapping_sub(age).to_be_bytes());
        let tag = context.sign();
        tag.as_ref().first_chunk::<4>().map_or(1, |bytes| u32::from_be_bytes(*bytes).max(1))
    }

    /// Accepts a caller, as a connection with a socket that `random` names. The connection's first datagram is the answer.
    ///
    /// # Errors
    /// The two cannot speak with each other; say so by [`Self::reject`].
    pub fn accept(
        &self,
        request: &ConnectionRequest,
        random: u64,
        now: Moment,
    ) -> Result<Connection, Rejection> {
        self.accept_as(self.options.clone(), request, random, now)
    }

    fn accept_as(
        &self,
        options: ConnectionOptions,
        request: &ConnectionRequest,
        random: u64,
        now: Moment,
    ) -> Result<Connection, Rejection> {
        let said = &request.handshake;
        let Some(capabilities) = said.capabilities else { return Err(Rejection::ROGUE) };
        if said.version != 5 || capabilities.version < LEAST_VERSION {
            return Err(Rejection::VERSION);
        }
        if capabilities.flags & capability::STREAM != 0 {
            return Err(Rejection::MESSAGE_API);
        }
        if said.congestion.as_deref().is_some_and(|name| name != "live") {
            return Err(Rejection::CONGESTION);
        }
        if said.has_filter {
            return Err(Rejection::FILTER);
        }
        if said.has_group {
            return Err(Rejection::GROUP);
        }
        let keys = match (&self.options.encryption, &said.key_material) {
            (None, None) => None,
            (Some(encryption), Some(message)) => {
                Some(Keys::read(message, &encryption.passphrase).map_err(|error| match error {
                    KeyMaterialError::BadSecret => Rejection::BAD_SECRET,
                    KeyMaterialError::Malformed => Rejection::ROGUE,
                })?)
            }
            _ => return Err(Rejection::UNSECURE),
        };
        Ok(Connection::accepted(options, socket_of(random), said, request.timestamp, keys, now))
    }

    /// Appends the answer that refuses a caller before it is given a cookie. Whether the datagram asks for one.
    pub fn refuse_induction(&self, bytes: &[u8], why: Rejection, out: &mut Vec<u8>) -> bool {
        let Ok(Packet::Control(_, Control::Handshake(field))) = Packet::parse(bytes) else { return false };
        let Some(said) = Handshake::parse(field).ok().filter(|said| said.handshake_type == INDUCTION) else {
            return false;
        };
        let answer = Handshake { version: 5, handshake_type: why.0, ..fixed(&said) };
        respond(&said, &answer, out);
        true
    }

    /// [`Self::accept`], with this latency for both directions at the least.
    ///
    /// # Errors
    /// As those of [`Self::accept`].
    pub fn accept_with_latency(
        &self,
        request: &ConnectionRequest,
        latency: Duration,
        random: u64,
        now: Moment,
    ) -> Result<Connection, Rejection> {
        let options =
            ConnectionOptions { receive_latency: latency, send_latency: latency, ..self.options.clone() };
        self.accept_as(options, request, random, now)
    }

    /// Appends the answer that refuses a caller.
    pub fn reject(&self, request: &ConnectionRequest, why: Rejection, out: &mut Vec<u8>) {
        let answer = Handshake { version: 5, handshake_type: why.0, ..fixed(&request.handshake) };
        respond(&request.handshake, &answer, out);
    }
}

/// The handshake without extensions, as answers have it.
fn fixed(said: &Handshake) -> Handshake {
    Handshake {
        version: said.version,
        initial_sequence_number: said.initial_sequence_number,
        mtu: said.mtu,
        flow_window: said.flow_window,
        handshake_type: said.handshake_type,
        socket: said.socket,
        address: said.address,
        ..Handshake::default()
    }
}

fn respond(said: &Handshake, answer: &Handshake, out: &mut Vec<u8>) {
    ControlHeader { timestamp: 0, destination: said.socket }.handshake(out);
    answer.write(false, out);
}
