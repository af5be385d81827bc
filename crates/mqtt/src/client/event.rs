//! What a client receives from its server.

use crate::packet::{Auth, Connack, Disconnect, PacketId, Publish, Suback, Unsuback};
use crate::property::Properties;
use crate::{Qos, ReasonCode};

/// A message, with the topic that an alias stood for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// Its topic.
    pub topic: &'a str,
    /// The packet as it came; its topic is empty if it had an alias.
    pub publish: Publish<'a>,
}

/// Something a caller may want to know or count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientEvent<'a> {
    /// The server accepted the connection. If it kept the session, [`Client::next_resend`](super::Client::next_resend)
    /// says what is to be sent again; if not, [`Session::lost`](super::Session::lost) what is not known to have come.
    Connected(Connack<'a>),
    /// The server refused it, and closes it.
    Refused(Connack<'a>),
    /// A message came. It is acknowledged when this returns, unless the caller does that.
    Message(Message<'a>),
    /// A large message begins; its payload is still empty.
    MessageBegin {
        /// The message.
        message: Message<'a>,
        /// How many bytes of payload follow.
        payload: u32,
    },
    /// The next piece of its payload.
    MessagePayload(&'a [u8]),
    /// The large message is complete.
    MessageEnd {
        /// Its packet identifier, at QoS 1 and 2.
        packet_id: Option<PacketId>,
    },
    /// The message that follows is one more than Receive Maximum allows (MQTT-3.3.4-9), and the client puts up with it.
    Excess {
        /// Its packet identifier.
        packet_id: PacketId,
    },
    /// A message of QoS 2 came again before it was released, on this connection or on another one of the session. It is not handed
    /// out twice.
    Repeated {
        /// Its packet identifier.
        packet_id: PacketId,
        /// Whether the caller had settled it before, by [`Client::settle`](super::Client::settle): it is acknowledged now.
        settled: bool,
    },
    /// The server has a message of QoS 2, and PUBREL is sent for it.
    Received {
        /// The message's.
        token: u64,
        /// How it went.
        reason: ReasonCode,
        /// Properties of the PUBREC.
        properties: Properties<'a>,
    },
    /// A message is done with: PUBACK, PUBCOMP, or a PUBREC that refuses it.
    Acknowledged {
        /// The message's.
        token: u64,
        /// The message's.
        qos: Qos,
        /// How it went; an error is a refusal.
        reason: ReasonCode,
        /// Properties of the packet.
        properties: Properties<'a>,
    },
    /// A message was acknowledged once more that had been acknowledged before.
    AcknowledgedAgain {
        /// The packet identifier that it had.
        packet_id: PacketId,
    },
    /// The answer to a SUBSCRIBE.
    Subscribed {
        /// The request's.
        token: u64,
        /// The answer.
        suback: Suback<'a>,
    },
    /// The answer to an UNSUBSCRIBE.
    Unsubscribed {
        /// The request's.
        token: u64,
        /// The answer.
        unsuback: Unsuback<'a>,
    },
    /// The server answered PINGREQ.
    Pong,
    /// A step of an authentication.
    Auth(Auth<'a>),
    /// The server ends the connection, and says why.
    Disconnected(Disconnect<'a>),
}
