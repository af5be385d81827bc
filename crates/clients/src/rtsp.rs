//! RTSP players and publishers.

mod connection;
mod datagrams;
mod figures;
mod play;
mod publish;
mod receiver;
mod refusal;
mod request;
mod sending;
mod workload;

pub use figures::PACKETS;
pub use workload::{play, publish};

use crate::target::Scheme;
use std::str::FromStr;

/// The schemes of both (RFC 2326 section 3.2; `rtsps` is RFC 7826's, with its port).
pub const SCHEMES: &[Scheme] = &[Scheme::tcp("rtsp", 554), Scheme::tls("rtsps", 322)];

/// What carries RTP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RtspTransport {
    /// The connection itself, interleaved.
    #[default]
    Tcp,
    /// Datagrams.
    Udp,
}

/// A text that names no transport.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' carries no RTP here; known: tcp, udp")]
pub struct UnknownTransport(String);

impl FromStr for RtspTransport {
    type Err = UnknownTransport;

    fn from_str(text: &str) -> Result<Self, UnknownTransport> {
        match text {
            "tcp" => Ok(Self::Tcp),
            "udp" => Ok(Self::Udp),
            other => Err(UnknownTransport(other.to_owned())),
        }
    }
}

/// The figures of both.
pub const SCHEMA: weir_metrics::Schema = weir_metrics::Schema::new(figures::FIGURES);
