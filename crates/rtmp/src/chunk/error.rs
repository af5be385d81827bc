//! What a chunk stream can get wrong.

use std::fmt;

/// The two bits that say how much of a message header a chunk repeats (RTMP 1.0 section 5.3.1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkFormat(pub u8);

impl fmt::Display for ChunkFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "type {}", self.0)
    }
}

/// A chunk stream that cannot be read on. There is no marker to resume at, so every one of these ends the
/// connection. `at` counts bytes of the chunk stream before the chunk that is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A chunk refers to the header before it, and its chunk stream has had none (section 5.3.1.2).
    #[error(
        "byte {at}: a {format} chunk opens chunk stream {chunk_stream_id}, which has no header to refer to"
    )]
    NoHeader {
        /// Where the chunk begins.
        at: u64,
        /// The chunk stream.
        chunk_stream_id: u32,
        /// The chunk's format.
        format: ChunkFormat,
    },
    /// A chunk with a header of its own stands where the rest of a message was due (section 5.3.1.2.4).
    #[error(
        "byte {at}: a {format} chunk on chunk stream {chunk_stream_id}, with {missing} bytes of a message still due"
    )]
    Interrupted {
        /// Where the chunk begins.
        at: u64,
        /// The chunk stream.
        chunk_stream_id: u32,
        /// The chunk's format.
        format: ChunkFormat,
        /// How much of the message was still to come.
        missing: u32,
    },
    /// The peer opened more chunk streams than [`Limits`](super::Limits) allows.
    #[error("byte {at}: chunk stream {chunk_stream_id} is one more than the {limit} allowed")]
    TooManyChunkStreams {
        /// Where the chunk begins.
        at: u64,
        /// The chunk stream that was one too many.
        chunk_stream_id: u32,
        /// How many were allowed.
        limit: usize,
    },
    /// The peer announced a longer message than [`Limits`](super::Limits) allows.
    #[error("byte {at}: a message of {length} bytes on chunk stream {chunk_stream_id}, allowed are {limit}")]
    MessageTooLong {
        /// Where the chunk begins.
        at: u64,
        /// The chunk stream.
        chunk_stream_id: u32,
        /// The announced length.
        length: u32,
        /// The longest allowed.
        limit: u32,
    },
    /// A Set Chunk Size or Abort message is not four bytes long (sections 5.4.1 and 5.4.2).
    #[error("byte {at}: a message that governs chunks has {length} bytes in place of 4")]
    ControlLength {
        /// Where the chunk begins.
        at: u64,
        /// The announced length.
        length: u32,
    },
    /// A Set Chunk Size of zero, or with its top bit set (section 5.4.1).
    #[error("byte {at}: a chunk size of {size} is not between 1 and 2147483647")]
    ChunkSize {
        /// Where the message ends.
        at: u64,
        /// The size as it was sent.
        size: u32,
    },
}
