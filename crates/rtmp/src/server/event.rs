//! What a server receives from its client.

use crate::handshake::Scheme;
use crate::message::MediaKind;

/// Something the server's owner has to decide or may want to know.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerEvent<'a> {
    /// C2 has come.
    HandshakeDone {
        /// The scheme that the client asked for.
        scheme: Scheme,
    },
    /// The client wants to be connected to an application: [`accept_connect`](super::Server::accept_connect) or
    /// [`reject_connect`](super::Server::reject_connect).
    Connect(ConnectRequest<'a>),
    /// The client wants to publish: [`accept_publish`](super::Server::accept_publish), or
    /// [`send_status`](super::Server::send_status) with an error.
    Publish {
        /// The message stream that media will come on.
        message_stream_id: u32,
        /// The name or key, with its query.
        stream: &'a str,
    },
    /// The client wants to be sent a stream: [`accept_play`](super::Server::accept_play), or
    /// [`send_status`](super::Server::send_status) with an error.
    Play {
        /// The message stream that it wants it on.
        message_stream_id: u32,
        /// The name, with its query.
        stream: &'a str,
        /// Where to start, as sent; negative for the live stream (section 7.2.2.1).
        start: f64,
    },
    /// An audio, video or data message, whole. Clients may send it before the answer to their `publish`, and go on
    /// after a refusal.
    Media(MediaMessage<'a>),
    /// The stream's metadata: a data message `onMetaData`, whole, to be given to every viewer now and later.
    Metadata(MediaMessage<'a>),
    /// The client stops publishing or playing on a message stream (`closeStream`, `deleteStream`); one that sends
    /// both causes two events.
    Closed {
        /// The message stream.
        message_stream_id: u32,
    },
    /// How much the client buffers (user control event 3).
    BufferLength {
        /// The message stream.
        message_stream_id: u32,
        /// The buffer's length.
        milliseconds: u32,
    },
    /// Bytes that the client has received, modulo 2³².
    Acknowledged {
        /// How many.
        bytes: u32,
    },
    /// The client answers a [`ping`](super::Server::ping).
    Pong {
        /// The timestamp of the ping.
        timestamp: u32,
    },
}

/// Where a client wants to be connected to (section 7.2.1.1). What it did not say is empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectRequest<'a> {
    /// The application.
    pub app: &'a str,
    /// The URL up to and with the application.
    pub tc_url: &'a str,
    /// The name and version that the client gives itself.
    pub flash_version: &'a str,
}

/// An audio, video or data message, whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediaMessage<'a> {
    /// The message stream it came on.
    pub message_stream_id: u32,
    /// What it carries.
    pub kind: MediaKind,
    /// Milliseconds, modulo 2³².
    pub timestamp: u32,
    /// The payload that viewers are to be sent: all of it but a leading `@setDataFrame`.
    pub payload: &'a [u8],
}
