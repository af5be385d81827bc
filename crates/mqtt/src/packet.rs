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

pub use crate::field::PacketId;
pub use crate::packet_kind::PacketKind;

use crate::error::{EncodeError, Error, Violation};
use crate::field::{Fields, put_header};
use crate::version::Version;

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
            // The caller handles PUBLISH before, for speed.
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
