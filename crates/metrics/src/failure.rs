//! Why a client failed: a closed list, so that failures are counted by kind and never by text.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which side caused a failure. Local failures are never attributed to the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// weir or its machine.
    Local,
    /// The target, or the network between.
    Remote,
    /// The two did not speak the same language.
    Protocol,
}

macro_rules! failures {
    ($($(#[doc = $doc:literal])* $name:ident = $key:literal, $side:ident;)*) => {
        /// The kind of a failure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "snake_case")]
        pub enum Failure { $($(#[doc = $doc])* $name),* }

        impl Failure {
            /// All kinds, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The name in outputs.
            pub const fn key(self) -> &'static str {
                match self { $(Self::$name => $key),* }
            }

            /// The side that caused it.
            pub const fn side(self) -> Side {
                match self { $(Self::$name => Side::$side),* }
            }
        }
    };
}

impl Failure {
    /// Whether the server's side said nothing before it: nothing listens there, or no answer came in time.
    pub const fn is_silence(self) -> bool {
        matches!(
            self,
            Self::ConnectionRefused
                | Self::Unreachable
                | Self::ConnectTimeout
                | Self::HandshakeTimeout
                | Self::RequestTimeout
        )
    }

    /// The figure that counts what is no end of a client, and has words all the same.
    pub const fn figure(self) -> Option<&'static str> {
        match self {
            Self::MessageRefused => Some("mqtt.refused"),
            _ => None,
        }
    }
}

failures! {
    /// No descriptor was left (`EMFILE`, `ENFILE`). Raise `ulimit -n`.
    OutOfDescriptors = "out_of_descriptors", Local;
    /// No local port was left (`EADDRNOTAVAIL`). Add addresses with `--bind-addr`.
    OutOfPorts = "out_of_ports", Local;
    /// The kernel refused the socket for another reason.
    SocketError = "socket_error", Local;
    /// The publisher's own material could no longer be read.
    SourceFailed = "source_failed", Local;
    /// The server's host answered with a reset: nothing listens there.
    ConnectionRefused = "connection_refused", Remote;
    /// No route, or the host said unreachable.
    Unreachable = "unreachable", Remote;
    /// The link was not established in time.
    ConnectTimeout = "connect_timeout", Remote;
    /// TLS failed: certificate, name or version.
    TlsFailed = "tls_failed", Protocol;
    /// The protocol's handshake did not end in time.
    HandshakeTimeout = "handshake_timeout", Remote;
    /// The server did not consent in time.
    RequestTimeout = "request_timeout", Remote;
    /// The server accepted, but sent no decodable frame in time.
    NoMedia = "no_media", Remote;
    /// ICE found no path to the server: none of its candidates answered in time.
    IceTimeout = "ice_timeout", Remote;
    /// The DTLS handshake did not end in time.
    DtlsTimeout = "dtls_timeout", Remote;
    /// DTLS failed: certificate, fingerprint, or nothing in common.
    DtlsFailed = "dtls_failed", Protocol;
    /// Media came that the keys of the handshake do not open.
    SrtpFailed = "srtp_failed", Protocol;
    /// The server answers no connectivity check any more, and sends nothing.
    PathLost = "path_lost", Remote;
    /// The server does not know the stream.
    StreamNotFound = "stream_not_found", Remote;
    /// The server asks for credentials, or does not take these.
    Unauthorized = "unauthorized", Remote;
    /// The server has nothing free to serve with now: no tuner, no slot (HTTP 503).
    Unavailable = "unavailable", Remote;
    /// The server sent the client on to nowhere, or further than it goes.
    RedirectFailed = "redirect_failed", Remote;
    /// The server answered an offer with one of its own (WHEP, HTTP 406 or 409).
    CounterOffer = "counter_offer", Remote;
    /// The server refused for another reason; its words are in the events.
    Rejected = "rejected", Remote;
    /// The broker did not grant a subscription; its reason is in the events.
    SubscriptionRefused = "subscription_refused", Remote;
    /// The broker refused a message of a client that goes on: `mqtt.refused` counts them, and its reason is in the events.
    MessageRefused = "message_refused", Remote;
    /// The broker ended the connection and said why.
    Disconnected = "disconnected", Remote;
    /// The broker let a PINGREQ go without an answer.
    PingTimeout = "ping_timeout", Remote;
    /// The stream ended: its publisher went away.
    StreamEnded = "stream_ended", Remote;
    /// The server closed the link in the middle.
    ClosedByPeer = "closed_by_peer", Remote;
    /// The link broke in the middle: the peer reset it, or no longer acknowledged.
    Reset = "reset", Remote;
    /// The server no longer takes what is sent.
    SendTimeout = "send_timeout", Remote;
    /// The peer sent what its standard does not allow.
    MalformedInput = "malformed_input", Protocol;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_found_at_its_own_number() {
        for (number, failure) in Failure::ALL.iter().enumerate() {
            assert_eq!(*failure as usize, number, "{}", failure.key());
        }
    }
}
