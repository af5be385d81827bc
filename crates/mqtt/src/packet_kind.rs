//! The types of control packets.

use std::fmt;

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
