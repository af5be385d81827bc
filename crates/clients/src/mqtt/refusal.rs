//! What a broker's reasons mean for a client, with their names and codes.

use weir_metrics::Failure;
use weir_mqtt::packet::{Connack, Disconnect};
use weir_mqtt::property::Properties;
use weir_mqtt::{PacketKind, Qos, ReasonCode, Version};
use weir_setting::MQTT_VERSION;

/// What helps at a broker that does not know MQTT 5.
fn try_older() -> String {
    format!("; try {}", MQTT_VERSION.to("3.1.1"))
}

/// The end of a link on which the broker had not answered CONNECT.
pub(super) fn before_connack(words: &str, version: Version) -> String {
    // Some brokers of 3.1.1 say nothing to a version that they do not know (3.1.1, MQTT-3.1.2-2).
    let more = if version == Version::V5 { try_older() } else { String::new() };
    format!("{words} before it answered CONNECT{more}")
}

/// The failure of a client that was not let in.
pub(super) fn of_connack(connack: &Connack<'_>, version: Version) -> (Failure, String) {
    let mut words = connack.reason.words(PacketKind::Connack, &connack.properties, version);
    if connack.reason == ReasonCode::UnsupportedProtocolVersion && version == Version::V5 {
        words.push_str(&try_older());
    }
    (refused(connack.reason, Failure::Rejected), words)
}

/// The failure of a client whose subscription was not granted.
pub(super) fn of_subscription(
    reason: ReasonCode,
    properties: &Properties<'_>,
    version: Version,
) -> (Failure, String) {
    let words = reason.words(PacketKind::Suback, properties, version);
    (refused(reason, Failure::SubscriptionRefused), words)
}

/// Why a broker did not take a message. MQTT 3.1.1 has no words for that.
pub(super) fn of_message(reason: ReasonCode, qos: Qos, properties: &Properties<'_>) -> String {
    let packet = match (qos, reason) {
        (Qos::ExactlyOnce, ReasonCode::PacketIdentifierNotFound) => PacketKind::Pubcomp,
        (Qos::ExactlyOnce, _) => PacketKind::Pubrec,
        _ => PacketKind::Puback,
    };
    reason.words(packet, properties, Version::V5)
}

/// The failure of a client that the broker has disconnected.
pub(super) fn of_disconnect(disconnect: &Disconnect<'_>, version: Version) -> (Failure, String) {
    let words = disconnect.reason.words(PacketKind::Disconnect, &disconnect.properties, version);
    (Failure::Disconnected, words)
}

fn refused(reason: ReasonCode, otherwise: Failure) -> Failure {
    match reason {
        ReasonCode::BadUserNameOrPassword
        | ReasonCode::NotAuthorized
        | ReasonCode::BadAuthenticationMethod
        | ReasonCode::Banned => Failure::Unauthorized,
        ReasonCode::ServerUnavailable | ReasonCode::ServerBusy => Failure::Unavailable,
        _ => otherwise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_mqtt::{Property, PropertyBuffer};

    #[test]
    fn reasons_are_failures_with_the_names_of_the_standard() {
        let properties = PropertyBuffer::new().with(Property::ReasonString("not you")).unwrap();
        for (reason, properties, version, failure, expected) in [
            (
                ReasonCode::NotAuthorized,
                Properties::NONE,
                Version::V5,
                Failure::Unauthorized,
                "CONNACK 0x87 Not authorized",
            ),
            (
                ReasonCode::NotAuthorized,
                Properties::NONE,
                Version::V311,
                Failure::Unauthorized,
                "CONNACK 0x05 Connection Refused, not authorized",
            ),
            (
                ReasonCode::ServerBusy,
                Properties::NONE,
                Version::V5,
                Failure::Unavailable,
                "CONNACK 0x89 Server busy",
            ),
            (
                ReasonCode::Banned,
                properties.properties(),
                Version::V5,
                Failure::Unauthorized,
                "CONNACK 0x8a Banned: not you",
            ),
        ] {
            let connack = Connack { session_present: false, reason, properties };
            assert_eq!(of_connack(&connack, version), (failure, expected.to_owned()));
        }
        let refused = of_subscription(ReasonCode::TopicFilterInvalid, &Properties::NONE, Version::V5);
        assert_eq!(refused, (Failure::SubscriptionRefused, "SUBACK 0x8f Topic Filter invalid".to_owned()));
        let old = Connack {
            session_present: false,
            reason: ReasonCode::UnsupportedProtocolVersion,
            properties: Properties::NONE,
        };
        let words = "CONNACK 0x84 Unsupported Protocol Version; try `mqtt_version: 3.1.1`";
        assert_eq!(of_connack(&old, Version::V5), (Failure::Rejected, words.to_owned()));
        assert!(!of_connack(&old, Version::V311).1.contains("try"));
        for (qos, reason, words) in [
            (Qos::AtLeastOnce, ReasonCode::NotAuthorized, "PUBACK 0x87 Not authorized: not you"),
            (Qos::ExactlyOnce, ReasonCode::QuotaExceeded, "PUBREC 0x97 Quota exceeded: not you"),
            (
                Qos::ExactlyOnce,
                ReasonCode::PacketIdentifierNotFound,
                "PUBCOMP 0x92 Packet Identifier not found: not you",
            ),
        ] {
            assert_eq!(of_message(reason, qos, &properties.properties()), words);
        }
        let gone = of_disconnect(&Disconnect::of(ReasonCode::SessionTakenOver), Version::V5);
        assert_eq!(gone, (Failure::Disconnected, "DISCONNECT 0x8e Session taken over".to_owned()));
    }
}
