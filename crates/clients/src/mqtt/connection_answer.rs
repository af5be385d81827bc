//! What a broker says of the connection itself, which publishers and subscribers take alike.

use super::reconnect::may_return;
use super::refusal;
use weir_metrics::Failure;
use weir_mqtt::{ClientEvent, Version};

/// What the broker said of the connection in one read.
#[derive(Default)]
pub(super) struct ConnectionAnswer {
    /// Whether it has accepted the connection.
    pub(super) accepted: bool,
    pub(super) session_present: bool,
    /// Why it does not accept the connection, or ends it.
    pub(super) refused: Option<(Failure, String)>,
    /// Whether the client is to stay away.
    pub(super) for_good: bool,
}

impl ConnectionAnswer {
    #[cold]
    pub(super) fn on_event(&mut self, event: &ClientEvent<'_>, version: Version) {
        match event {
            ClientEvent::Connected(connack) => {
                (self.accepted, self.session_present) = (true, connack.session_present);
            }
            ClientEvent::Refused(connack) => self.refused = Some(refusal::of_connack(connack, version)),
            ClientEvent::Disconnected(disconnect) => {
                self.for_good = !may_return(disconnect.reason);
                self.refused = Some(refusal::of_disconnect(disconnect, version));
            }
            _ => {}
        }
    }
}
