//! What a server announces to its clients.

/// What a server announces to its clients, and the limits that it sets them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerOptions {
    /// The chunk size that the server sends with (section 5.4.1).
    pub chunk_size: u32,
    /// Bytes after which the server expects an acknowledgement (section 5.4.4).
    pub acknowledgement_window: u32,
    /// Bytes that the client may send unacknowledged (section 5.4.5).
    pub peer_bandwidth: u32,
    /// The longest message a client may announce. It is kept in memory until it is complete.
    pub max_message_length: u32,
    /// Bytes of messages that may be under way at once, as announced, on all chunk streams of a client together.
    pub max_unfinished: usize,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            chunk_size: 4096,
            acknowledgement_window: 2_500_000,
            peer_bandwidth: 2_500_000,
            max_message_length: 8 * 1024 * 1024,
            // Two of the longest: clients send the pieces of sound between those of a picture.
            max_unfinished: 16 * 1024 * 1024,
        }
    }
}
