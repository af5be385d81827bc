//! What a client is to do, and how.

use crate::handshake::Scheme;

/// What a client asks the server for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// To be sent the stream.
    Play,
    /// To take the stream.
    Publish,
}

/// What a client is to do, and how. [`ClientOptions::play`] and [`ClientOptions::publish`] fill in what is usual.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// Play or publish.
    pub role: Role,
    /// The application, the first part of the URL's path.
    pub app: String,
    /// The URL up to and with the application.
    pub tc_url: String,
    /// The stream's name or key, the rest of the URL's path with its query.
    pub stream: String,
    /// The handshake to offer.
    pub handshake: Scheme,
    /// How much a player says it buffers, in milliseconds. Servers may send that much at once at the start.
    pub buffer_length: u32,
    /// Bytes after which the client acknowledges, until the server says otherwise; 0 for never (section 5.4.4).
    pub acknowledgement_window: u32,
    /// The chunk size that a publisher sends with (section 5.4.1).
    pub chunk_size: u32,
    /// The name and version that the client gives itself.
    pub flash_version: String,
}

impl ClientOptions {
    /// A player of `stream`.
    pub fn play(tc_url: impl Into<String>, app: impl Into<String>, stream: impl Into<String>) -> Self {
        Self {
            role: Role::Play,
            app: app.into(),
            tc_url: tc_url.into(),
            stream: stream.into(),
            handshake: Scheme::Simple,
            buffer_length: 3000,
            acknowledgement_window: 2_500_000,
            chunk_size: 4096,
            flash_version: "LNX 9,0,124,2".into(),
        }
    }

    /// A publisher of `stream`.
    pub fn publish(tc_url: impl Into<String>, app: impl Into<String>, stream: impl Into<String>) -> Self {
        Self {
            role: Role::Publish,
            flash_version: "FMLE/3.0 (compatible; weir)".into(),
            ..Self::play(tc_url, app, stream)
        }
    }
}
