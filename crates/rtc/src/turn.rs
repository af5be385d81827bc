//! TURN over TCP (RFC 8656, RFC 8489): datagrams by a relay, for peers that UDP does not reach.
//!
//! Bytes of the link go through [`Frames`]; what is a message goes to the [`Client`], which says what it means and what
//! to answer. What the client wants sent is appended to a buffer. Over TCP nothing is sent twice: an answer comes, or
//! the link is gone.

mod client;
mod frames;
mod message;
mod place;

pub use client::{Client, Event, TurnError};
pub use frames::{Frame, FrameError, Frames};
pub use place::{Carrier, ParseTurnServerError, TurnServer};
