//! RTMP players and publishers.

mod address;
mod attempts;
mod figures;
mod play;
mod publish;
mod refusal;
mod trace;
mod workload;

pub use workload::{play, publish};

use crate::target::Scheme;

/// The schemes of both.
pub const SCHEMES: &[Scheme] = &[Scheme::tcp("rtmp", 1935), Scheme::tls("rtmps", 443)];

/// The figures of both.
pub const SCHEMA: weir_metrics::Schema = weir_metrics::Schema::new(figures::FIGURES);

/// What only RTMP has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RtmpOptions {
    /// Whether to offer the handshake with digests, which some servers demand before H.264.
    pub digest_handshake: bool,
}
