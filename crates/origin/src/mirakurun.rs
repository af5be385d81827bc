//! MPEG-TS over HTTP: how the readers of a tuner server ask, and what they are answered.
//!
//! The paths and the field names are those that Mirakurun and mirakc share.

mod answer;
mod api;
mod responder;

use crate::http::HttpConnection;

/// A connection of a client that makes requests, or of a reader of a stream.
pub(crate) type TunerSession = HttpConnection<responder::TunerResponder>;
