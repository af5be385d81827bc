//! WebRTC: viewers by WHEP and by OvenMediaEngine's signalling, publishers by WHIP, over one UDP port a worker.
//!
//! Units are RTP packets. A stream is cut into payloads once a worker ([`feed`]); each viewer has its own header and its
//! own encryption on them ([`peer`]). What a publisher sends ([`ingest`]) is put together track by track ([`track_receiver`]) and
//! goes into its stream as if it had come over RTMP ([`remux`]). Sound is left out unless it is Opus or G.711: nothing is
//! transcoded.

mod answer;
mod channel;
mod counts;
mod encoding;
mod feed;
mod hub;
mod identity;
mod ingest;
mod offers;
mod outbox;
mod page;
mod peer;
mod port;
mod remux;
mod request;
mod responder;
mod track_receiver;

pub(crate) use hub::{Hub, HubReport};
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use port::Port;
pub(crate) use port::open_port;

pub use counts::{Counts, IntakeCounts};

use crate::http::HttpConnection;

/// A connection of signalling.
pub(crate) type RtcSession = HttpConnection<responder::SignallingResponder>;
