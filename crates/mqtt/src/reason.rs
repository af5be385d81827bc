//! Why something was accepted, refused or ended.

use crate::property::Properties;
use crate::{PacketKind, Version};

macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident = $code:literal, $words:literal, [$($kind:ident)*];)*) => {
        /// A reason code (MQTT 5 section 2.4, table 2-6). The return codes of MQTT 3.1.1 are mapped to those that they
        /// became.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u8)]
        pub enum ReasonCode {
            $($(#[$doc])* $name = $code,)*
        }

        impl ReasonCode {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The reason of a code in a packet of MQTT 5; `None` where the standard has none.
            pub const fn from_code(code: u8, packet: PacketKind) -> Option<Self> {
                match (code, packet) {
                    $($(($code, PacketKind::$kind) => Some(Self::$name),)*)*
                    _ => None,
                }
            }

            const fn plain_name(self) -> &'static str {
                match self { $(Self::$name => $words,)* }
            }
        }
    };
}

reasons! {
    /// All is well; also called Normal disconnection in DISCONNECT and Granted QoS 0 in SUBACK.
    Success = 0x00, "Success", [Connack Puback Pubrec Pubrel Pubcomp Suback Unsuback Disconnect Auth];
    /// The subscription was granted, at QoS 1 at most.
    GrantedQos1 = 0x01, "Granted QoS 1", [Suback];
    /// The subscription was granted, at QoS 2 at most.
    GrantedQos2 = 0x02, "Granted QoS 2", [Suback];
    /// The client goes, and its will is to be published.
    DisconnectWithWill = 0x04, "Disconnect with Will Message", [Disconnect];
    /// The message was accepted, and there is no matching subscription.
    NoMatchingSubscribers = 0x10, "No matching subscribers", [Puback Pubrec];
    /// There was nothing to unsubscribe from.
    NoSubscriptionExisted = 0x11, "No subscription existed", [Unsuback];
    /// Authentication goes on.
    ContinueAuthentication = 0x18, "Continue authentication", [Auth];
    /// Authentication begins again.
    ReAuthenticate = 0x19, "Re-authenticate", [Auth];
    /// The sender does not say why.
    UnspecifiedError = 0x80, "Unspecified error", [Connack Puback Pubrec Suback Unsuback Disconnect];
    /// A packet could not be read.
    MalformedPacket = 0x81, "Malformed Packet", [Connack Disconnect];
    /// A packet could be read, and is not allowed.
    ProtocolError = 0x82, "Protocol Error", [Connack Disconnect];
    /// The sender cannot take it.
    ImplementationError = 0x83, "Implementation specific error", [Connack Puback Pubrec Suback Unsuback Disconnect];
    /// The server does not speak this version.
    UnsupportedProtocolVersion = 0x84, "Unsupported Protocol Version", [Connack];
    /// The server does not allow this client identifier.
    ClientIdentifierNotValid = 0x85, "Client Identifier not valid", [Connack];
    /// The server does not take these credentials.
    BadUserNameOrPassword = 0x86, "Bad User Name or Password", [Connack];
    /// The client may not do this.
    NotAuthorized = 0x87, "Not authorized", [Connack Puback Pubrec Suback Unsuback Disconnect];
    /// The server is not available.
    ServerUnavailable = 0x88, "Server unavailable", [Connack];
    /// The server is busy.
    ServerBusy = 0x89, "Server busy", [Connack Disconnect];
    /// The client is banned.
    Banned = 0x8A, "Banned", [Connack];
    /// The server shuts down.
    ServerShuttingDown = 0x8B, "Server shutting down", [Disconnect];
    /// The authentication method is not supported.
    BadAuthenticationMethod = 0x8C, "Bad authentication method", [Connack Disconnect];
    /// Nothing came for one and a half times the keep-alive.
    KeepAliveTimeout = 0x8D, "Keep Alive timeout", [Disconnect];
    /// Another connection uses the same client identifier.
    SessionTakenOver = 0x8E, "Session taken over", [Disconnect];
    /// The topic filter is well-formed and not accepted.
    TopicFilterInvalid = 0x8F, "Topic Filter invalid", [Suback Unsuback Disconnect];
    /// The topic name is well-formed and not accepted.
    TopicNameInvalid = 0x90, "Topic Name invalid", [Connack Puback Pubrec Disconnect];
    /// The packet identifier is in use.
    PacketIdentifierInUse = 0x91, "Packet Identifier in use", [Puback Pubrec Suback Unsuback];
    /// The packet identifier is not known.
    PacketIdentifierNotFound = 0x92, "Packet Identifier not found", [Pubrel Pubcomp];
    /// More messages came than Receive Maximum allows.
    ReceiveMaximumExceeded = 0x93, "Receive Maximum exceeded", [Disconnect];
    /// A topic alias that was not agreed on.
    TopicAliasInvalid = 0x94, "Topic Alias invalid", [Disconnect];
    /// A packet is larger than the other side takes.
    PacketTooLarge = 0x95, "Packet too large", [Connack Disconnect];
    /// Messages come too fast.
    MessageRateTooHigh = 0x96, "Message rate too high", [Disconnect];
    /// A limit of the implementation or of its administrator.
    QuotaExceeded = 0x97, "Quota exceeded", [Connack Puback Pubrec Suback Disconnect];
    /// The administrator ends the connection.
    AdministrativeAction = 0x98, "Administrative action", [Disconnect];
    /// The payload is not what its indicator says.
    PayloadFormatInvalid = 0x99, "Payload format invalid", [Connack Puback Pubrec Disconnect];
    /// The server keeps no messages.
    RetainNotSupported = 0x9A, "Retain not supported", [Connack Disconnect];
    /// The server does not support this QoS.
    QosNotSupported = 0x9B, "QoS not supported", [Connack Disconnect];
    /// Go to another server, this time.
    UseAnotherServer = 0x9C, "Use another server", [Connack Disconnect];
    /// Go to another server, always.
    ServerMoved = 0x9D, "Server moved", [Connack Disconnect];
    /// The server has no shared subscriptions.
    SharedSubscriptionsNotSupported = 0x9E, "Shared Subscriptions not supported", [Suback Disconnect];
    /// Connections come too fast.
    ConnectionRateExceeded = 0x9F, "Connection rate exceeded", [Connack Disconnect];
    /// The connection has lasted as long as it may.
    MaximumConnectTime = 0xA0, "Maximum connect time", [Disconnect];
    /// The server has no subscription identifiers.
    SubscriptionIdentifiersNotSupported = 0xA1, "Subscription Identifiers not supported", [Suback Disconnect];
    /// The server has no wildcards.
    WildcardSubscriptionsNotSupported = 0xA2, "Wildcard Subscriptions not supported", [Suback Disconnect];
}

/// The return codes of a CONNACK of MQTT 3.1.1, from 0 (section 3.2.2.3, table 3.1), and what they became.
const RETURN_CODES: [(ReasonCode, &str); 6] = [
    (ReasonCode::Success, "Connection Accepted"),
    (ReasonCode::UnsupportedProtocolVersion, "Connection Refused, unacceptable protocol version"),
    (ReasonCode::ClientIdentifierNotValid, "Connection Refused, identifier rejected"),
    (ReasonCode::ServerUnavailable, "Connection Refused, Server unavailable"),
    (ReasonCode::BadUserNameOrPassword, "Connection Refused, bad user name or password"),
    (ReasonCode::NotAuthorized, "Connection Refused, not authorized"),
];

/// The return codes of a SUBACK of MQTT 3.1.1 (section 3.9.3).
const SUBACK_CODES: [(ReasonCode, &str); 4] = [
    (ReasonCode::Success, "Success - Maximum QoS 0"),
    (ReasonCode::GrantedQos1, "Success - Maximum QoS 1"),
    (ReasonCode::GrantedQos2, "Success - Maximum QoS 2"),
    (ReasonCode::UnspecifiedError, "Failure"),
];

impl ReasonCode {
    /// The code on the wire of MQTT 5.
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Whether something failed (MQTT 5 section 2.4).
    pub const fn is_error(self) -> bool {
        self.code() >= 0x80
    }

    /// The code on the wire of a packet; `None` if that packet has none for it.
    pub fn code_in(self, packet: PacketKind, version: Version) -> Option<u8> {
        match (version, packet) {
            (Version::V5, _) => Self::from_code(self.code(), packet).map(Self::code),
            (Version::V311, PacketKind::Connack) => {
                RETURN_CODES.iter().position(|(reason, _)| *reason == self).map(|code| code as u8)
            }
            (Version::V311, PacketKind::Suback) => {
                SUBACK_CODES.iter().any(|(reason, _)| *reason == self).then(|| self.code())
            }
            (Version::V311, _) => None,
        }
    }

    /// The reason of a code in a packet; `None` where the standard has none.
    pub fn read(code: u8, packet: PacketKind, version: Version) -> Option<Self> {
        match (version, packet) {
            (Version::V5, _) => Self::from_code(code, packet),
            (Version::V311, PacketKind::Connack) => {
                RETURN_CODES.get(usize::from(code)).map(|(reason, _)| *reason)
            }
            (Version::V311, PacketKind::Suback) => {
                SUBACK_CODES.iter().map(|(reason, _)| *reason).find(|reason| reason.code() == code)
            }
            (Version::V311, _) => None,
        }
    }

    /// The name that the standard gives it in a packet.
    pub fn name(self, packet: PacketKind, version: Version) -> &'static str {
        let table: &[(Self, &'static str)] = match (version, packet) {
            (Version::V311, PacketKind::Connack) => &RETURN_CODES,
            (Version::V311, PacketKind::Suback) => &SUBACK_CODES,
            (_, PacketKind::Suback) => &[(Self::Success, "Granted QoS 0")],
            (_, PacketKind::Disconnect) => &[(Self::Success, "Normal disconnection")],
            _ => &[],
        };
        table.iter().find(|(reason, _)| *reason == self).map_or(self.plain_name(), |(_, name)| name)
    }

    /// The reason as text for a person, with the server's own words if it gave any: `CONNACK 0x87 Not authorized`.
    pub fn words(self, packet: PacketKind, properties: &Properties<'_>, version: Version) -> String {
        let code = self.code_in(packet, version).unwrap_or(self.code());
        let name = self.name(packet, version);
        match properties.reason_string() {
            Some(own) => format!("{packet} {code:#04x} {name}: {own}"),
            None => format!("{packet} {code:#04x} {name}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_packets_that_have_them() {
        for reason in ReasonCode::ALL {
            let packets: Vec<_> = PacketKind::ALL
                .iter()
                .filter(|packet| ReasonCode::from_code(reason.code(), **packet) == Some(*reason))
                .collect();
            assert!(!packets.is_empty(), "{reason:?}");
        }
        assert_eq!(ReasonCode::from_code(0x8B, PacketKind::Connack), None);
        assert_eq!(ReasonCode::from_code(0x03, PacketKind::Suback), None);
    }

    #[test]
    fn names_are_those_of_the_packet_and_the_version() {
        use PacketKind::{Connack, Disconnect, Puback, Suback};
        let name = |reason: ReasonCode, packet, version| reason.name(packet, version);
        assert_eq!(name(ReasonCode::Success, Disconnect, Version::V5), "Normal disconnection");
        assert_eq!(name(ReasonCode::Success, Suback, Version::V5), "Granted QoS 0");
        assert_eq!(name(ReasonCode::NoMatchingSubscribers, Puback, Version::V5), "No matching subscribers");
        assert_eq!(
            name(ReasonCode::NotAuthorized, Connack, Version::V311),
            "Connection Refused, not authorized"
        );
        assert_eq!(ReasonCode::read(5, Connack, Version::V311), Some(ReasonCode::NotAuthorized));
        assert_eq!(ReasonCode::NotAuthorized.code_in(Connack, Version::V311), Some(5));
        assert_eq!(ReasonCode::Banned.code_in(Connack, Version::V311), None);
        assert_eq!(ReasonCode::read(6, Connack, Version::V311), None);
        assert_eq!(ReasonCode::read(0x80, Suback, Version::V311), Some(ReasonCode::UnspecifiedError));
    }
}
