//! The handshake: three packets each way before the chunk stream (RTMP 1.0 section 5.2).
//!
//! The specification knows the plain one: each side sends a version byte and 1,536 bytes, and echoes the other's.
//! Adobe's own software adds digests that nobody published; servers that want to look like it, and clients that
//! want to be given H.264 by it, have to know them. [`Client`] offers either and takes what the server answers,
//! [`Server`] answers in kind.

mod client;
mod digest;
mod server;

pub use client::Client;
pub use digest::Schema;
pub use server::Server;

/// The length of C1, S1, C2 and S2.
pub const PACKET_LEN: usize = 1536;

/// The version byte of C0 and S0 (section 5.2.2).
pub const VERSION: u8 = 3;

/// Which handshake to offer, or was agreed on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// The one in the specification.
    #[default]
    Simple,
    /// The one with digests.
    Digest,
}

/// Whether the chunk stream has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// More bytes are needed.
    Pending,
    /// The next byte belongs to the chunk stream.
    Done,
}

/// Why a handshake cannot succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The peer's first byte is not [`VERSION`]: it speaks another protocol, such as RTMPE (6), TLS (22) or HTTP.
    #[error("the peer begins with byte {0:#04x} and not with RTMP version 3")]
    Version(u8),
}

/// A packet that is coming in.
#[derive(Clone, Debug)]
struct Incoming {
    bytes: [u8; PACKET_LEN],
    len: usize,
}

impl Incoming {
    fn new() -> Self {
        Self { bytes: [0; PACKET_LEN], len: 0 }
    }

    /// Takes what is missing off the front of `input`. Whether the packet is complete.
    fn take(&mut self, input: &mut &[u8]) -> bool {
        let (bytes, rest) = input.split_at(input.len().min(PACKET_LEN - self.len));
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
        *input = rest;
        self.len == PACKET_LEN
    }
}

/// Takes the version byte off the front of `input`. Whether it has come.
fn take_version(input: &mut &[u8]) -> Result<bool, Error> {
    match input.split_first() {
        None => Ok(false),
        Some((&VERSION, rest)) => {
            *input = rest;
            Ok(true)
        }
        Some((&other, _)) => Err(Error::Version(other)),
    }
}

/// Takes up to `left` bytes off the front of `input`, unread. Returns how many are left after that.
///
/// What a peer echoes decides nothing: real ones differ in what they send as C2 and S2.
fn skip(left: usize, input: &mut &[u8]) -> usize {
    let skipped = input.len().min(left);
    *input = &input[skipped..];
    left - skipped
}

/// A packet with random contents and the given version in its second word; its first word, the time, is zero.
fn random_packet(random: &mut fastrand::Rng, version: [u8; 4]) -> [u8; PACKET_LEN] {
    let mut packet = [0; PACKET_LEN];
    random.fill(&mut packet[8..]);
    packet[4..8].copy_from_slice(&version);
    packet
}
