//! HTTP connections: one session of them all, and what answers the requests of each listener: signalling, playlists and segments,
//! tuners.

mod connection;
mod refusal;
mod websocket;

pub use connection::{HttpConnection, HttpLink, Responder};
pub use refusal::HttpRefusal;

pub(crate) use connection::UNSENT_LIMIT;
pub(crate) use refusal::{BASIC, FOUND};
pub(crate) use websocket::{is_of_another_site, socket_key};
