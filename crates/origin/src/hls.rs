//! HTTP Live Streaming (RFC 8216; draft-pantos-hls-rfc8216bis-22): what is published becomes Media Segments and playlists.
//!
//! The worker of a publisher feeds a [`Segmenter`], which reads messages, cuts them and writes them in a container. What it
//! makes lies on a [`Shelf`] that the sessions of all workers share: a [`Window`](window::Window) of immutable buffers.

mod answer;
mod encryption;
mod fragments;
mod iso_box;
mod path;
mod playlist;
mod responder;
mod segmenter;
mod settings;
mod shelf;
mod transport;
mod unit;
mod window;

pub use encryption::{SegmentKey, UnknownSegmentKey};
pub(crate) use segmenter::Segmenter;
pub use settings::{HlsSettings, SegmentContainer};
pub(crate) use shelf::Shelves;
pub(crate) use transport::TransportWriter;
pub(crate) use unit::{Tracks, Unit, UnitReader};

use crate::http::HttpConnection;

/// A connection of a client that loads playlists and segments.
pub(crate) type HlsSession = HttpConnection<responder::HlsResponder>;
