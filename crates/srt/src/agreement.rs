//! What a connection is asked to be like, what the two sides agree on, and how it ends.

use crate::encryption::{Encryption, KeyLength};
use crate::rejection::Rejection;
use std::time::Duration;

/// What a connection is to be like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConnectionOptions {
    /// How long what is received is held at the least (SRTO_RCVLATENCY).
    pub receive_latency: Duration,
    /// How long the peer is asked to hold what is sent (SRTO_PEERLATENCY).
    pub send_latency: Duration,
    /// What is asked for; empty for nothing.
    pub stream_id: String,
    /// How payloads are encrypted, if they are.
    pub encryption: Option<Encryption>,
    /// Bytes of an IP packet at the most (SRTO_MSS).
    pub mtu: u32,
    /// After how long a silent peer is given up (SRTO_PEERIDLETIMEO).
    pub idle_timeout: Duration,
}

impl Default for ConnectionOptions {
    /// As libsrt has it.
    fn default() -> Self {
        Self {
            receive_latency: Duration::from_millis(120),
            send_latency: Duration::ZERO,
            stream_id: String::new(),
            encryption: None,
            mtu: 1_500,
            idle_timeout: Duration::from_secs(5),
        }
    }
}

/// What both sides have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Agreement {
    /// How long what is received is held.
    pub receive_latency: Duration,
    /// How long the peer holds what is sent.
    pub send_latency: Duration,
    /// The version of the peer's library: 0x010501 is 1.5.1.
    pub peer_version: u32,
    /// How long keys are, if payloads are encrypted.
    pub encryption: Option<KeyLength>,
    /// Bytes of a payload at the most.
    pub most_payload: usize,
}

/// What happened to a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionEvent {
    /// The listener has answered the induction: it is there.
    Answered,
    /// The connection is established.
    Connected(Agreement),
    /// The connection is over. Nothing follows.
    Ended(Disconnect),
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disconnect {
    /// The listener refuses.
    Rejected(Rejection),
    /// This side cannot take what the listener says in its handshake.
    Refused(Rejection),
    /// The peer has ended it. A shutdown carries no reason.
    Shutdown,
    /// Nothing came from the peer for [`ConnectionOptions::idle_timeout`].
    Silent,
    /// What answers is no SRT listener of version 5.
    NoListener,
}
