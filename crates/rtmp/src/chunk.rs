//! The chunk stream: messages cut into chunks, chunks from several messages interleaved (RTMP 1.0 section 5.3).
//!
//! [`Reader`] takes bytes as they come and says where messages start, what they carry and where they end,
//! without keeping a payload. [`Writer`] and [`frame`] cut messages into chunks.
//! Neither knows what a payload means, except for the two messages that govern chunks themselves.

mod error;
mod framing;
mod header;
mod reader;
mod writer;

pub use error::{ChunkFormat, Error};
pub use framing::MediaFraming;
pub use reader::{Event, Limits, Reader};
pub use writer::{Writer, frame, framed_len};

use crate::message::MessageKind;

/// The chunk size of both sides until they say otherwise (section 5.4.1).
pub const DEFAULT_CHUNK_SIZE: u32 = 128;

/// The largest chunk size that makes a difference: no message is longer (section 5.4.1).
pub const MAX_CHUNK_SIZE: u32 = 0xFF_FFFF;

/// The largest payload that the 24 bits of a message length can announce (section 5.3.1.2.1).
pub const MAX_MESSAGE_LENGTH: u32 = 0xFF_FFFF;

/// The lowest chunk stream id; 0 and 1 mark the longer forms (section 5.3.1.1).
pub const MIN_CHUNK_STREAM_ID: u32 = 2;

/// The highest chunk stream id, in the three-byte form (section 5.3.1.1).
pub const MAX_CHUNK_STREAM_ID: u32 = 65_599;

/// Everything a message says before its payload, with the timestamp already made absolute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageHeader {
    /// Which chunk stream carries it, [`MIN_CHUNK_STREAM_ID`] to [`MAX_CHUNK_STREAM_ID`].
    pub chunk_stream_id: u32,
    /// What it carries.
    pub kind: MessageKind,
    /// Milliseconds since an epoch of the sender's choice, modulo 2³² (section 4).
    pub timestamp: u32,
    /// Length of the payload in bytes, at most [`MAX_MESSAGE_LENGTH`].
    pub length: u32,
    /// Which message stream it belongs to; 0 is the connection itself.
    pub message_stream_id: u32,
}
