//! Control packets: read out of bytes without copying, written into a buffer of the caller's.
//!
//! A packet here is one that is complete in memory; [`Reader`](crate::Reader) takes them out of a stream. Which
//! packets may come in which order is the affair of the dialogues.

mod acknowledgement;
mod auth;
mod connack;
mod connect;
mod disconnect;
mod publish;
mod suback;
mod subscribe;

pub use acknowledgement::Acknowledgement;
pub use auth::Auth;
pub use connack::Connack;
pub use connect::{Connect, Will};
pub use disconnect::Disconnect;
pub use publish::Publish;
pub use suback::{ReasonCodes, Suback, Unsuback};
pub use subscribe::{
    Filters, RetainHandling, Subscribe, Subscription, SubscriptionOptions, Subscriptions, Unsubscribe,
};

pub(crate) use publish::head_len;

use crate::error::{EncodeError, Error, Violation};
use crate::field::{Fields, put_header};
use crate::property::{Properties, PropertyLocation};
use crate::version::Version;
use std::fmt;
use std::num::NonZeroU16;

/// A packet identifier (MQTT 5 section 2.2.1): never 0.
pub type PacketId = NonZeroU16;

/// The type of a control packet (MQTT 5 section 2.1.2, table 2-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PacketKind {
    /// A client asks for a connection.
    Connect = 1,
    /// The server's answer.
    Connack = 2,
    /// A message.
    Publish = 3,
    /// A message of QoS 1 is acknowledged.
    Puback = 4,
    /// A message of QoS 2 was received.
    Pubrec = 5,
    /// A message of QoS 2 is released.
    Pubrel = 6,
    /// A message of QoS 2 is complete.
    Pubcomp = 7,
    /// A client subscribes.
    Subscribe = 8,
    /// The server's answer.
    Suback = 9,
    /// A client unsubscribes.
    Unsubscribe = 10,
    /// The server's answer.
    Unsuback = 11,
    /// A client wants to hear from the server.
    Pingreq = 12,
    /// The server's answer.
    Pingresp = 13,
    /// The connection is about to end.
    Disconnect = 14,
    /// Authentication, MQTT 5 only.
    Auth = 15,
}

impl PacketKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 15] = [
        Self::Connect,
        Self::Connack,
        Self::Publish,
        Self::Puback,
        Self::Pubrec,
        Self::Pubrel,
        Self::Pubcomp,
        Self::Subscribe,
        Self::Suback,
        Self::Unsubscribe,
        Self::Unsuback,
        Self::Pingreq,
        Self::Pingresp,
        Self::Disconnect,
        Self::Auth,
    ];

    /// The kind of the four upper bits of a packet's first byte.
    #[inline]
    pub fn from_bits(bits: u8) -> Option<Self> {
        Self::ALL.get(usize::from(bits).wrapping_sub(1)).copied()
    }

    /// The first byte of a packet whose flags are not its own (table 2-2).
    #[inline]
    pub const fn first_byte(self) -> u8 {
        let flags = match self {
            Self::Pubrel | Self::Subscribe | Self::Unsubscribe => 0b0010,
            _ => 0,
        };
        (self as u8) << 4 | flags
    }
}

impl fmt::Display for PacketKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Connect => "CONNECT",
            Self::Connack => "CONNACK",
            Self::Publish => "PUBLISH",
            Self::Puback => "PUBACK",
            Self::Pubrec => "PUBREC",
            Self::Pubrel => "PUBREL",
            Self::Pubcomp => "PUBCOMP",
            Self::Subscribe => "SUBSCRIBE",
            Self::Suback => "SUBACK",
            Self::Unsubscribe => "UNSUBSCRIBE",
            Self::Unsuback => "UNSUBACK",
            Self::Pingreq => "PINGREQ",
            Self::Pingresp => "PINGRESP",
            Self::Disconnect => "DISCONNECT",
            Self::Auth => "AUTH",
        })
    }
}

/// A control packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A client asks for a connection.
    Connect(Connect<'a>),
    /// The server's answer.
    Connack(Connack<'a>),
    /// A message.
    Publish(Publish<'a>),
    /// A message of QoS 1 is acknowledged.
    Puback(Acknowledgement<'a>),
    /// A message of QoS 2 was received.
    Pubrec(Acknowledgement<'a>),
    /// A message of QoS 2 is released.
    Pubrel(Acknowledgement<'a>),
    /// A message of QoS 2 is complete.
    Pubcomp(Acknowledgement<'a>),
    /// A client subscribes.
    Subscribe(Subscribe<'a>),
    /// The server's answer.
    Suback(Suback<'a>),
    /// A client unsubscribes.
    Unsubscribe(Unsubscribe<'a>),
    /// The server's answer.
    Unsuback(Unsuback<'a>),
    /// A client wants to hear from the server.
    Pingreq,
    /// The server's answer.
    Pingresp,
    /// The connection is about to end.
    Disconnect(Disconnect<'a>),
    /// Authentication.
    Auth(Auth<'a>),
}

impl<'a> Packet<'a> {
    /// Reads a packet of its first byte and of all that follows its Remaining Length.
    ///
    /// # Errors
    /// The rule that the packet breaks.
    #[inline]
    pub fn decode(first: u8, body: &'a [u8], version: Version) -> Result<Self, Error> {
        let kind = PacketKind::from_bits(first >> 4);
        let fail = |violation| Error { packet: kind, violation, version };
        let Some(kind) = kind.filter(|kind| version == Version::V5 || *kind != PacketKind::Auth) else {
            return Err(fail(Violation::PacketType));
        };
        if kind == PacketKind::Publish {
            return Publish::decode(first & 15, body, version).map(Self::Publish).map_err(fail);
        }
        if first != kind.first_byte() {
            return Err(fail(Violation::Flags));
        }
        let mut fields = Fields(body);
        Self::rest(kind, &mut fields, version)
            .and_then(|packet| fields.end().map(|()| packet))
            // CONNECT says itself which standard it follows.
            .map_err(|violation| Error { version: connect_version(kind, body, version), ..fail(violation) })
    }

    fn rest(kind: PacketKind, fields: &mut Fields<'a>, version: Version) -> Result<Self, Violation> {
        Ok(match kind {
            PacketKind::Connect => Self::Connect(Connect::take(fields)?),
            PacketKind::Connack => Self::Connack(Connack::take(fields, version)?),
            // Told apart by the caller, for speed.
            PacketKind::Publish => return Err(Violation::PacketType),
            PacketKind::Puback => Self::Puback(Acknowledgement::take(kind, fields, version)?),
            PacketKind::Pubrec => Self::Pubrec(Acknowledgement::take(kind, fields, version)?),
            PacketKind::Pubrel => Self::Pubrel(Acknowledgement::take(kind, fields, version)?),
            PacketKind::Pubcomp => Self::Pubcomp(Acknowledgement::take(kind, fields, version)?),
            PacketKind::Subscribe => Self::Subscribe(Subscribe::take(fields, version)?),
            PacketKind::Suback => Self::Suback(Suback::take(fields, version)?),
            PacketKind::Unsubscribe => Self::Unsubscribe(Unsubscribe::take(fields, version)?),
            PacketKind::Unsuback => Self::Unsuback(Unsuback::take(fields, version)?),
            PacketKind::Pingreq => Self::Pingreq,
            PacketKind::Pingresp => Self::Pingresp,
            PacketKind::Disconnect => Self::Disconnect(Disconnect::take(fields, version)?),
            PacketKind::Auth => Self::Auth(Auth::take(fields)?),
        })
    }

    /// Appends the packet to `out`. On an error nothing is appended.
    ///
    /// # Errors
    /// Something that the packet has no room for, or that this version cannot say.
    #[inline]
    pub fn encode(&self, version: Version, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        match self {
            Self::Connect(packet) => packet.encode(out),
            Self::Connack(packet) => packet.encode(version, out),
            Self::Publish(packet) => packet.encode(version, out),
            Self::Puback(packet) => packet.encode(PacketKind::Puback, version, out),
            Self::Pubrec(packet) => packet.encode(PacketKind::Pubrec, version, out),
            Self::Pubrel(packet) => packet.encode(PacketKind::Pubrel, version, out),
            Self::Pubcomp(packet) => packet.encode(PacketKind::Pubcomp, version, out),
            Self::Subscribe(packet) => packet.encode(version, out),
            Self::Suback(packet) => packet.encode(version, out),
            Self::Unsubscribe(packet) => packet.encode(version, out),
            Self::Unsuback(packet) => packet.encode(version, out),
            Self::Pingreq => put_header(PacketKind::Pingreq.first_byte(), 0, out),
            Self::Pingresp => put_header(PacketKind::Pingresp.first_byte(), 0, out),
            Self::Disconnect(packet) => packet.encode(version, out),
            Self::Auth(packet) => packet.encode(version, out),
        }
    }

    /// Its type.
    pub fn kind(&self) -> PacketKind {
        match self {
            Self::Connect(_) => PacketKind::Connect,
            Self::Connack(_) => PacketKind::Connack,
            Self::Publish(_) => PacketKind::Publish,
            Self::Puback(_) => PacketKind::Puback,
            Self::Pubrec(_) => PacketKind::Pubrec,
            Self::Pubrel(_) => PacketKind::Pubrel,
            Self::Pubcomp(_) => PacketKind::Pubcomp,
            Self::Subscribe(_) => PacketKind::Subscribe,
            Self::Suback(_) => PacketKind::Suback,
            Self::Unsubscribe(_) => PacketKind::Unsubscribe,
            Self::Unsuback(_) => PacketKind::Unsuback,
            Self::Pingreq => PacketKind::Pingreq,
            Self::Pingresp => PacketKind::Pingresp,
            Self::Disconnect(_) => PacketKind::Disconnect,
            Self::Auth(_) => PacketKind::Auth,
        }
    }
}

/// The standard by which a packet is judged: a CONNECT that says 5 by that of MQTT 5.
fn connect_version(kind: PacketKind, body: &[u8], version: Version) -> Version {
    match (kind, body.get(6)) {
        (PacketKind::Connect, Some(5)) => Version::V5,
        (PacketKind::Connect, Some(4)) => Version::V311,
        _ => version,
    }
}

/// Takes the properties of a packet; of MQTT 3.1.1, none.
#[inline]
fn take_properties<'a>(
    fields: &mut Fields<'a>,
    kind: PacketKind,
    version: Version,
) -> Result<Properties<'a>, Violation> {
    match version {
        Version::V311 => Ok(Properties::NONE),
        Version::V5 => Properties::take(fields, PropertyLocation::Packet(kind)),
    }
}

/// How many bytes the properties of a packet take; of MQTT 3.1.1, none.
#[inline]
fn properties_len(
    properties: &Properties<'_>,
    kind: PacketKind,
    version: Version,
) -> Result<usize, EncodeError> {
    if properties.is_empty() {
        return Ok(usize::from(version == Version::V5));
    }
    if version == Version::V311 {
        return Err(EncodeError::NeedsVersion5);
    }
    properties.fit(PropertyLocation::Packet(kind))?;
    Ok(properties.wire_len())
}

#[inline]
fn put_properties(properties: &Properties<'_>, version: Version, out: &mut Vec<u8>) {
    if version == Version::V5 {
        properties.put(out);
    }
}
