//! What is wrong with a packet, by the rule that it breaks; and what cannot be written as one.

use crate::{PacketKind, ReasonCode, Version};
use std::fmt;

/// The peer broke the standard. The connection is of no further use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    /// The packet it was found in, if its type was read.
    pub packet: Option<PacketKind>,
    /// The rule that it breaks.
    pub violation: Violation,
    /// The standard that the rule stands in.
    pub version: Version,
}

impl Error {
    /// Where the rule stands: the name of a normative statement, or a section.
    pub fn clause(&self) -> &'static str {
        self.violation.clause(self.version)
    }

    /// What a DISCONNECT or CONNACK says about it (MQTT 5 section 4.13).
    pub fn reason(&self) -> ReasonCode {
        self.violation.reason()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.packet {
            Some(packet) => write!(f, "{packet}: ")?,
            None => f.write_str("packet: ")?,
        }
        write!(f, "{} ({}, {})", self.violation.words(), self.version, self.clause())
    }
}

macro_rules! violations {
    ($($(#[$doc:meta])* $name:ident = $words:literal, $v311:literal, $v5:literal, $reason:ident;)*) => {
        /// A rule that a packet breaks.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Violation {
            $($(#[$doc])* $name,)*
        }

        impl Violation {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// What is wrong, in a few words.
            pub const fn words(self) -> &'static str {
                match self { $(Self::$name => $words,)* }
            }

            /// Where the rule stands.
            pub const fn clause(self, version: Version) -> &'static str {
                match (self, version) {
                    $((Self::$name, Version::V311) => $v311, (Self::$name, Version::V5) => $v5,)*
                }
            }

            /// The reason code for it.
            pub const fn reason(self) -> ReasonCode {
                match self { $(Self::$name => ReasonCode::$reason,)* }
            }
        }
    };
}

violations! {
    /// The packet type is 0, or 15 in MQTT 3.1.1.
    PacketType = "the packet type is reserved", "section 2.2.1", "section 2.1.2", MalformedPacket;
    /// A flag of the fixed header is not what it must be.
    Flags = "the fixed header has flags that are reserved", "MQTT-2.2.2-2", "MQTT-2.1.3-1", MalformedPacket;
    /// A variable byte integer has more than four bytes.
    IntegerTooLong = "a variable byte integer goes on after four bytes", "section 2.2.3", "section 1.5.5", MalformedPacket;
    /// A variable byte integer has more bytes than it needs.
    IntegerNotMinimal = "a variable byte integer has more bytes than it needs", "section 2.2.3", "MQTT-1.5.5-1", MalformedPacket;
    /// A field goes on after the end of the packet.
    Truncated = "the packet ends within a field", "section 2.2.3", "section 2.1.4", MalformedPacket;
    /// The packet goes on after its last field.
    TrailingBytes = "the packet goes on after its last field", "section 2.2.3", "section 2.1.4", MalformedPacket;
    /// Text is not UTF-8.
    IllFormedText = "a string is not well-formed UTF-8", "MQTT-1.5.3-1", "MQTT-1.5.4-1", MalformedPacket;
    /// Text contains U+0000.
    NullCharacter = "a string contains U+0000", "MQTT-1.5.3-2", "MQTT-1.5.4-2", MalformedPacket;
    /// A packet identifier is zero.
    PacketIdentifierZero = "the packet identifier is zero", "MQTT-2.3.1-1", "MQTT-2.2.1-3", ProtocolError;
    /// A packet is longer than this side takes.
    PacketTooLarge = "the packet is larger than this side takes", "section 4.8", "MQTT-3.1.2-24", PacketTooLarge;
    /// Properties go on after the end of the packet, or a property after the end of the properties.
    PropertyLength = "the properties do not end where they say", "section 2.3", "section 2.2.2.1", MalformedPacket;
    /// No property has this identifier.
    PropertyUnknown = "a property has an identifier that the standard does not name", "section 2.3", "section 2.2.2.2", MalformedPacket;
    /// A property of other packets.
    PropertyMisplaced = "a property belongs into another packet", "section 2.3", "section 2.2.2.2", MalformedPacket;
    /// A property comes twice that may come once.
    PropertyRepeated = "a property comes twice that may come once", "section 2.3", "section 2.2.2.2", ProtocolError;
    /// A property has a value that it cannot have.
    PropertyValue = "a property has a value that it must not have", "section 2.3", "section 2.2.2.2", ProtocolError;
    /// A reason or return code that this packet does not have.
    UnknownReason = "the packet has a reason code that the standard does not allow there", "section 3.2.2.3", "section 2.4", ProtocolError;
    /// The first packet of a connection is no CONNECT.
    FirstPacket = "the first packet of a client must be CONNECT", "MQTT-3.1.0-1", "MQTT-3.1.0-1", ProtocolError;
    /// A client sends CONNECT again.
    SecondConnect = "a client sends CONNECT once", "MQTT-3.1.0-2", "MQTT-3.1.0-2", ProtocolError;
    /// The protocol's name is not `MQTT`.
    ProtocolName = "the protocol name is not MQTT", "MQTT-3.1.2-1", "MQTT-3.1.2-1", UnsupportedProtocolVersion;
    /// The version is neither 4 nor 5.
    ProtocolVersion = "the protocol version is neither 3.1.1 nor 5", "MQTT-3.1.2-2", "MQTT-3.1.2-2", UnsupportedProtocolVersion;
    /// The lowest of the connect flags is set.
    ConnectFlags = "the reserved connect flag is set", "MQTT-3.1.2-3", "MQTT-3.1.2-3", MalformedPacket;
    /// QoS or retain of a will that is not there.
    WillFlags = "there is no will, but its QoS or retain flag is set", "MQTT-3.1.2-13", "MQTT-3.1.2-11", MalformedPacket;
    /// The will's QoS is 3.
    WillQos = "the will's QoS is 3", "MQTT-3.1.2-14", "MQTT-3.1.2-12", MalformedPacket;
    /// A password without a user name in MQTT 3.1.1.
    PasswordAlone = "there is a password, but no user name", "MQTT-3.1.2-22", "section 3.1.2.9", MalformedPacket;
    /// Authentication data without a method.
    AuthenticationData = "there is authentication data, but no method", "section 3.1", "section 3.1.2.11.10", ProtocolError;
    /// A reserved flag of CONNACK is set.
    ConnackFlags = "reserved flags of CONNACK are set", "section 3.2.2.1", "MQTT-3.2.2-1", MalformedPacket;
    /// CONNACK refuses, and says that there is a session.
    SessionOfRefusal = "CONNACK refuses and says that a session is present", "MQTT-3.2.2-4", "MQTT-3.2.2-6", ProtocolError;
    /// CONNACK says that there is a session that the client did not ask for.
    SessionUnasked = "CONNACK says that a session is present, and the client asked for a new one", "MQTT-3.2.2-1", "MQTT-3.2.2-2", ProtocolError;
    /// CONNACK says that there is a session, and the client has none.
    SessionUnknown = "CONNACK says that a session is present, and the client has none", "section 3.2.2.2", "MQTT-3.2.2-4", ProtocolError;
    /// The server sends something before CONNACK.
    ConnackFirst = "the server's first packet must be CONNACK", "MQTT-3.2.0-1", "MQTT-3.2.0-1", ProtocolError;
    /// The server sends CONNACK again.
    SecondConnack = "a server sends CONNACK once", "section 3.2", "MQTT-3.2.0-2", ProtocolError;
    /// Both QoS bits are set.
    QosBits = "the QoS is 3", "MQTT-3.3.1-4", "MQTT-3.3.1-4", MalformedPacket;
    /// A message of QoS 0 is called a repetition.
    DuplicateOfQos0 = "DUP is set at QoS 0", "MQTT-3.3.1-2", "MQTT-3.3.1-2", MalformedPacket;
    /// A wildcard in a topic name.
    TopicWildcard = "the topic name contains a wildcard", "MQTT-3.3.2-2", "MQTT-3.3.2-2", TopicNameInvalid;
    /// No topic name and no alias.
    TopicEmpty = "there is neither a topic name nor an alias", "MQTT-4.7.3-1", "section 3.3.2.1", ProtocolError;
    /// A topic alias above the maximum that was agreed on.
    TopicAliasTooHigh = "the topic alias is above the maximum", "section 3.3", "MQTT-3.3.2-11", TopicAliasInvalid;
    /// A topic alias that stands for nothing yet.
    TopicAliasUnknown = "the topic alias has no topic yet", "section 3.3", "section 3.3.2.3.4", ProtocolError;
    /// More messages without an acknowledgement than were agreed on.
    ReceiveMaximum = "more messages wait for an acknowledgement than Receive Maximum allows", "section 4.4", "MQTT-3.3.4-9", ReceiveMaximumExceeded;
    /// SUBSCRIBE without a filter.
    NothingToSubscribe = "there is no topic filter", "MQTT-3.8.3-3", "MQTT-3.8.3-2", ProtocolError;
    /// Reserved bits of subscription options.
    SubscriptionOptions = "the subscription options have bits that are reserved", "MQTT-3-8.3-4", "MQTT-3.8.3-5", MalformedPacket;
    /// Retain Handling is 3.
    RetainHandling = "Retain Handling is 3", "MQTT-3-8.3-4", "section 3.8.3.1", ProtocolError;
    /// No Local on a shared subscription.
    SharedNoLocal = "No Local is set on a shared subscription", "MQTT-3-8.3-4", "MQTT-3.8.3-4", ProtocolError;
    /// UNSUBSCRIBE without a filter.
    NothingToUnsubscribe = "there is no topic filter", "MQTT-3.10.3-2", "MQTT-3.10.3-2", ProtocolError;
    /// SUBACK or UNSUBACK has more or fewer codes than there were filters.
    ReasonCount = "there are more or fewer reason codes than topic filters", "MQTT-3.8.4-5", "MQTT-3.8.4-6", ProtocolError;
    /// A packet that only the other side sends.
    WrongSide = "only the other side sends this packet", "section 2.2.1", "section 2.1.2", ProtocolError;
    /// A message of QoS 2 is acknowledged as one of QoS 1.
    PubackOfQos2 = "PUBACK answers a message of QoS 2, whose answer is PUBREC; a server that does so has QoS 0 and 1 only", "MQTT-4.3.3-2", "MQTT-4.3.3-8", ProtocolError;
    /// An acknowledgement for nothing that was sent, or for something else.
    AcknowledgesNothing = "nothing that was sent waits for this acknowledgement", "MQTT-2.3.1-6", "MQTT-2.2.1-5", ProtocolError;
    /// A SUBACK or UNSUBACK for nothing that was sent.
    AnswersNothing = "no request waits for this answer", "MQTT-2.3.1-7", "MQTT-2.2.1-6", ProtocolError;
    /// AUTH without an authentication method in CONNECT.
    AuthUnasked = "AUTH comes, and CONNECT named no authentication method", "section 2.2.1", "MQTT-4.12.0-6", ProtocolError;
}

/// What was asked for cannot be written as a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A string or binary field has more than 65,535 bytes (MQTT 5 sections 1.5.4 and 1.5.6).
    #[error("a field has {length} bytes; MQTT has room for 65,535")]
    FieldTooLong {
        /// Its length.
        length: usize,
    },
    /// The packet has more than 268,435,455 bytes after its fixed header (MQTT 5 section 2.1.4).
    #[error("the packet has {length} bytes; MQTT has room for 268,435,455")]
    PacketTooLong {
        /// Its Remaining Length.
        length: usize,
    },
    /// MQTT 3.1.1 has no properties and no AUTH, and fewer codes and options.
    #[error("MQTT 3.1.1 cannot say this; it needs MQTT 5")]
    NeedsVersion5,
    /// A rule that a receiver would hold against the packet.
    #[error("{}", .0.words())]
    Forbidden(Violation),
}
