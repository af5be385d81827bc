//! What a client hears from its server.

use crate::handshake::Scheme;
use crate::message::{MediaKind, Status};

/// Something a caller may want to know or count.
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEvent<'a> {
    /// S2 has come; `connect` goes out.
    HandshakeDone {
        /// The scheme that the server answered with.
        scheme: Scheme,
    },
    /// The server accepted the connection to the application; a stream is asked for.
    Connected,
    /// The server gave the stream a number; `play` or `publish` goes out.
    StreamCreated {
        /// The number.
        message_stream_id: u32,
    },
    /// The server said `NetStream.Play.Start`, or sent media without saying so. Once.
    Playing,
    /// The server said `NetStream.Publish.Start`: it takes media now. Once.
    Publishing,
    /// The server said how things stand, before any other event that follows from it. Of level `error` it is a
    /// refusal, or the end of what was going on.
    Status(Status<'a>),
    /// An audio, video or data message is complete.
    Media(Media<'a>),
    /// The stream can be used (user control event 0).
    StreamBegin {
        /// Which one.
        message_stream_id: u32,
    },
    /// The stream is over (user control event 1).
    StreamEof {
        /// Which one.
        message_stream_id: u32,
    },
    /// The server has nothing to send at present (user control event 2).
    StreamDry {
        /// Which one.
        message_stream_id: u32,
    },
    /// Bytes that the server has received, modulo 2³².
    Acknowledged {
        /// How many.
        bytes: u32,
    },
}

/// An audio, video or data message that has come to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Media<'a> {
    /// What it carries.
    pub kind: MediaKind,
    /// Milliseconds, modulo 2³².
    pub timestamp: u32,
    /// Length of the whole payload in bytes.
    pub length: u32,
    /// The stream it belongs to.
    pub message_stream_id: u32,
    /// The first bytes of the payload: all of them, up to [`HEAD_LEN`](super::HEAD_LEN) of audio and video, or
    /// what [`Client::keep`](super::Client::keep) has said, and
    /// [`DATA_HEAD_LEN`](super::DATA_HEAD_LEN) of data.
    pub head: &'a [u8],
}
