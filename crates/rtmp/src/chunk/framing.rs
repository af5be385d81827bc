//! How one sender frames the messages of a stream.

use super::{MessageHeader, frame, framed_len};
use crate::message::MediaKind;

/// All that the bytes of a framed media message depend on, besides the message.
///
/// Two connections with equal framings can be sent the same bytes, so that a message is framed once however many
/// viewers or publishers it goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MediaFraming {
    /// The chunk size that the peer has been told.
    pub chunk_size: u32,
    /// The message stream that the messages belong to.
    pub message_stream_id: u32,
}

impl MediaFraming {
    /// Appends one media message, with a full header that refers to nothing before it.
    ///
    /// # Panics
    ///
    /// When the payload is longer than [`MAX_MESSAGE_LENGTH`](super::MAX_MESSAGE_LENGTH).
    pub fn frame(&self, kind: MediaKind, timestamp: u32, payload: &[u8], out: &mut Vec<u8>) {
        frame(&self.header(kind, timestamp, payload.len()), payload, self.chunk_size, out);
    }

    /// How many bytes [`MediaFraming::frame`] appends for a payload of `length` bytes.
    pub fn framed_len(&self, kind: MediaKind, timestamp: u32, length: usize) -> usize {
        framed_len(&self.header(kind, timestamp, length), length, self.chunk_size)
    }

    fn header(&self, kind: MediaKind, timestamp: u32, length: usize) -> MessageHeader {
        MessageHeader {
            chunk_stream_id: kind.chunk_stream_id(),
            kind: kind.message_kind(),
            timestamp,
            length: length as u32,
            message_stream_id: self.message_stream_id,
        }
    }
}
