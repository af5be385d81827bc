//! A client's dialogue, for the search for an error in it. Topics, payloads and the broker's own words stay away.

use tracing::debug;
use weir_mqtt::ClientEvent;

/// Shows what client number `client` received. Messages and their acknowledgements are not shown.
pub(super) fn heard(client: u32, event: &ClientEvent<'_>) {
    match event {
        ClientEvent::Connected(connack) => {
            debug!(target: "mqtt", client, session_present = connack.session_present, "CONNACK, accepted");
        }
        ClientEvent::Refused(connack) => debug!(target: "mqtt", client, reason = ?connack.reason, "CONNACK"),
        ClientEvent::Subscribed { suback, .. } => {
            let reasons: Vec<_> = suback.reasons.iter().collect();
            debug!(target: "mqtt", client, ?reasons, "SUBACK");
        }
        ClientEvent::Disconnected(disconnect) => {
            debug!(target: "mqtt", client, reason = ?disconnect.reason, "DISCONNECT");
        }
        ClientEvent::Pong => debug!(target: "mqtt", client, "PINGRESP"),
        _ => {}
    }
}
