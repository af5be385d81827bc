//! What an origin does about streams that are missing, publishers that leave, and peers that do not go on.

use std::time::Duration;
use weir_shard::Deadlines;

/// What a viewer of a stream that no one publishes gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingStream {
    /// It waits for a publisher.
    #[default]
    Wait,
    /// It gets the protocol's error for a missing stream.
    Refuse,
}

/// What viewers get when their publisher goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Departure {
    /// They get the protocol's message about it, and wait for the next publisher.
    #[default]
    Stay,
    /// They get the protocol's message about it, and their connection is closed.
    Close,
}

/// How long the origin waits for peers that do not move on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// From the connection, TLS included, to a request to play or publish; likewise from one request over HTTP to the
    /// next, and from the answer to an offer to the keys of WebRTC.
    pub request: Duration,
    /// While a peer neither sends nor acknowledges a byte, whatever it has asked for. Over MQTT the keep-alive takes its
    /// place: of MQTT 5 two thirds of this at most, of MQTT 3.1.1 whatever the client says.
    pub idle: Duration,
    /// While a publisher sends nothing.
    pub publisher: Duration,
    /// While a viewer takes nothing of what waits for it.
    pub viewer: Duration,
}

impl Patience {
    /// What every listener holds its peers to.
    pub(crate) fn deadlines(&self) -> Deadlines {
        Deadlines { request: self.request, idle: self.idle }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            request: Duration::from_secs(15),
            idle: Duration::from_secs(600),
            publisher: Duration::from_secs(60),
            viewer: Duration::from_secs(30),
        }
    }
}
