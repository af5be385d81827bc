//! TURN (RFC 8656, RFC 8489): datagrams by a relay, for peers that are not reached without.
//!
//! Bytes of a link (TCP, TLS) go through [`Frames`], a datagram (UDP) is a [`Frame`]; what is a message goes to the
//! [`Client`], which says what it means and what to answer. What the client wants sent is appended to a buffer, frame
//! behind frame; over UDP each is a datagram ([`datagrams`]). Over a link nothing is sent twice: an answer comes, or the
//! link is gone. Over UDP a request is sent again until its answer comes.

mod client;
mod frames;
mod message;
mod place;

pub use client::{Client, Event, TurnError};
pub use frames::{Frame, FrameError, Frames, datagrams};
pub use place::{Carrier, ParseTurnServerError, TurnServer};
